use super::*;
use Decision::{Allow, Ask, Deny};

fn read(effect: PlacedEffect) -> Scene {
    Scene::tool("Read").effect(effect)
}

fn at(name: &str) -> PlacedEffect {
    path(Action::Read, name)
}

#[test]
fn deny_fires_for_either_path_and_allow_needs_both() {
    let link = at("/w/link").place(|place| place.resolved = "/home/me/.ssh/id_rsa".into());
    assert_eq!(read(link.clone()).decide(&rules("  - {paths: ['~/.ssh/**'], action: deny}\n")), Deny);
    assert_eq!(read(link.clone()).decide(&rules("  - {paths: ['/w/link'], action: deny}\n")), Deny);
    assert_eq!(read(link).decide(&rules("  - {paths: ['./**'], action: allow}\n")), Ask);
    assert_eq!(read(at("/w/a")).decide(&rules("  - {paths: ['./**'], action: allow}\n")), Allow);
}

#[test]
fn home_is_every_users_home_to_deny_and_ones_own_to_allow() {
    for home in ["/home/me", "/home/you", "/Users/you", "/root"] {
        let scene = read(at(&format!("{home}/.ssh/x")));
        assert_eq!(scene.decide(&rules("  - {paths: ['~/.ssh/**'], action: deny}\n")), Deny, "{home}");
        let expected = if home == "/home/me" { Allow } else { Ask };
        assert_eq!(scene.decide(&rules("  - {paths: ['~/.ssh/**'], action: allow}\n")), expected, "{home}");
    }
}

#[test]
fn later_patterns_win_and_sets_are_lists() {
    let policy = policy(
        "sets:
  keys: ['~/.ssh/**', '!~/.ssh/*.pub', '@more/keys']
  more/keys: ['**/*.pem', '!**/ca.pem', '/w/secret/ca.pem']
rules:
  - {paths: ['@keys'], action: deny}
  - {effects: [read], action: allow}
",
    );
    for (name, expected) in [
        ("/home/me/.ssh/id", Deny),
        ("/home/me/.ssh/id.pub", Allow),
        ("/w/a.pem", Deny),
        ("/w/ca.pem", Allow),
        ("/w/secret/ca.pem", Deny),
        ("/w/pem", Allow),
    ] {
        assert_eq!(read(at(name)).decide(&policy), expected, "{name}");
    }
}

#[test]
fn what_an_allow_leaves_out_is_left_out() {
    let policy = rules("  - {effects: [read], paths: ['./**', '!./private/**'], action: allow}\n");
    assert_eq!(read(at("/w/a")).decide(&policy), Allow);
    assert_eq!(read(at("/w/private/a")).decide(&policy), Ask);
    assert_eq!(read(at("/w/src").tree()).decide(&policy), Allow);
    assert_eq!(read(at("/w").tree()).decide(&policy), Ask);
    assert_eq!(read(at("/w").glob("p*/a")).decide(&policy), Ask);
}

#[test]
fn trees() {
    let policy = rules(
        "  - {paths: ['~/.ssh/**', '/etc/shadow', '**/.env'], action: deny}
  - {paths: ['./**', '/etc/**'], action: allow}
",
    );
    for (name, expected) in [
        ("/home/me", Deny),
        ("/home", Deny),
        ("/", Deny),
        ("/home/me/.ssh", Deny),
        ("/home/me/.ssh/sub", Deny),
        ("/etc", Deny),
        // Inside the project a search may pass by an .env file; outside of it, that is worth a question.
        ("/w", Allow),
        ("/w/src", Allow),
        ("/srv", Ask),
    ] {
        assert_eq!(read(at(name).tree()).decide(&policy), expected, "{name}");
        let below = at(name).place(|place| place.rest = Rest::Anything);
        assert_eq!(read(below).decide(&policy), expected, "{name} (below)");
    }
}

#[test]
fn removing_a_directory_removes_the_protected_names_in_it() {
    let policy = rules(
        "  - {effects: [delete, read], paths: ['**/.git/hooks/**'], action: deny}\n  - {paths: ['./**'], action: allow}\n",
    );
    let scene = |action| Scene::tool("x").effect(path(action, "/w/.git").tree());
    assert_eq!(scene(Action::Delete).decide(&policy), Deny);
    assert_eq!(scene(Action::Read).decide(&policy), Allow);
    assert_eq!(Scene::tool("x").effect(path(Action::Delete, "/w").tree()).decide(&policy), Allow);
}

#[test]
fn shell_patterns() {
    let policy = rules(
        "  - {paths: ['~/.ssh/**', '**/.env', '**/*.pem'], action: deny}
  - {paths: ['./**'], action: allow}
",
    );
    for (directory, pattern, expected) in [
        ("/home/me", ".s*/id_rsa", Deny),
        ("/home/me/.ssh", "*", Deny),
        ("/w", ".en[v]", Deny),
        ("/w", ".e*", Deny),
        ("/w", "*.pem", Deny),
        ("/w", "*/.env", Deny),
        ("/w", "*", Allow),
        ("/w", "*.rs", Allow),
        ("/w", "src/**/*.rs", Allow),
        ("/w", "*/../../x", Ask),
    ] {
        assert_eq!(read(at(directory).glob(pattern)).decide(&policy), expected, "{directory} {pattern}");
    }
    let narrow = rules("  - {paths: ['./src/**'], action: allow}\n");
    assert_eq!(read(at("/w").glob("*.rs")).decide(&narrow), Ask);
    assert_eq!(read(at("/w/src").glob("*.rs")).decide(&narrow), Allow);
}

#[test]
fn a_path_that_is_not_known_may_be_any() {
    let unresolved = at("/w/x").place(|place| place.zone = Zone::Unresolved("loop".into()));
    let policy = rules(
        "  - {name: secrets, paths: ['~/.ssh/**'], action: deny}\n  - {effects: [read], zones: [root], action: allow}\n",
    );
    let judgement = read(unresolved.clone()).judge(&policy);
    assert_eq!((judgement.ruling.decision, judgement.ruling.rule.as_deref()), (Ask, Some("secrets")));
    assert_eq!(read(unresolved.clone()).decide(&rules("  - {paths: ['**'], action: allow}\n")), Ask);
    assert_eq!(read(unresolved).decide(&rules("  - {zones: [unresolved], action: deny}\n")), Deny);
    let unplaced = PlacedEffect { place: None, ..at("/w/x") };
    assert_eq!(read(unplaced).decide(&rules("  - {paths: ['**'], action: allow}\n")), Ask);
}

#[test]
fn zones_traversal_and_recursion() {
    let zones = rules("  - {zones: [root], action: allow}\n  - {zones: [outside], action: deny}\n");
    assert_eq!(read(at("/w/a")).decide(&zones), Allow);
    assert_eq!(read(at("/srv/a")).decide(&zones), Deny);
    assert_eq!(read(at("/usr/a")).decide(&zones), Ask);
    let left = at("/w/a").place(|place| place.traversal = true);
    assert_eq!(read(left.clone()).decide(&zones), Ask);
    assert_eq!(read(left.clone()).decide(&policy("default: allow")), Ask);
    assert_eq!(read(left).decide(&rules("  - {traversal: true, action: deny}\n")), Deny);
    let recursive = rules("  - {recursive: true, action: deny}\n");
    assert_eq!(read(at("/w").tree()).decide(&recursive), Deny);
    assert_eq!(read(at("/w")).decide(&recursive), Ask);
}

#[test]
fn regular_expressions_on_paths() {
    let deny = rules("  - {path_patterns: ['\\.env$'], action: deny}\n  - {effects: [read], action: allow}\n");
    assert_eq!(read(at("/w/.env")).decide(&deny), Deny);
    assert_eq!(read(at("/w/a")).decide(&deny), Allow);
    let allow = rules("  - {path_patterns: ['^src/'], action: allow}\n");
    assert_eq!(read(at("/w/src/a")).decide(&allow), Allow);
    assert_eq!(read(at("/x/src/a")).decide(&allow), Ask);
    assert_eq!(read(at("/w/src").tree()).decide(&allow), Ask);
    let link = at("/w/src/a").place(|place| place.resolved = "/etc/passwd".into());
    assert_eq!(read(link).decide(&allow), Ask);
}

#[test]
fn paths_are_compared_by_component() {
    let policy = rules("  - {paths: ['/repo/**'], action: allow}\n");
    assert_eq!(read(at("/repo/x")).decide(&policy), Allow);
    assert_eq!(read(at("/repo_evil/x")).decide(&policy), Ask);
}
