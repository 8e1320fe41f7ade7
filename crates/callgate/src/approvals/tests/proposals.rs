//! The narrowest rule that helps, and the file it is written to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use callgate_model::effect::{Action, CodeOrigin, Coverage, Effect, Host, Names, PathTarget, Program, Target};
use callgate_model::word::Word;

use super::*;
use crate::describe::{Description, Part, PlacedEffect};
use crate::path::{Contents, Place, Rest, Zone};
use callgate_model::call::Tool;

fn effect(action: Action, target: Target) -> PlacedEffect {
    PlacedEffect { effect: Effect { action, target, marks: vec![], because: String::new() }, place: None }
}

fn run(name: &str) -> PlacedEffect {
    effect(Action::Run, Target::Program(Program { name: name.into(), origin: CodeOrigin::Known }))
}

fn send(host: &str) -> PlacedEffect {
    effect(Action::Send, Target::Host(Host { name: Some(host.into()), shown: host.into() }))
}

fn write(path: &str) -> PlacedEffect {
    let target = Target::Path(PathTarget::new(Names::Exact(path.into()), false));
    let place = Place {
        named: path.into(),
        resolved: path.into(),
        rest: Rest::Nothing,
        tree: false,
        zone: Zone::Root,
        traversal: false,
        contents: Contents::Existing,
    };
    PlacedEffect { place: Some(place), ..effect(Action::Write, target) }
}

fn part(command: &str, effects: Vec<PlacedEffect>) -> Part {
    let words = command.split_whitespace().map(|word| Word::Known(word.into())).collect();
    Part { words, effects, ..Part::default() }
}

fn description(parts: Vec<Part>) -> Description {
    Description { category: "shell".into(), parts, coverage: Coverage::Complete }
}

fn extents(description: &Description, effects: &[(usize, usize)]) -> Result<Vec<Extent>, NoProposal> {
    let asked = AskedCall { tool: &Tool::own("Bash"), description, effects };
    let proposals = candidates(&asked)?;
    Ok(proposals.into_iter().map(|proposal| proposal.extent).collect())
}

fn words(command: &str) -> Extent {
    Extent::Words(command.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn the_narrowest_is_offered_first() {
    let push = description(vec![part("git push origin main", vec![run("git"), send("github.com")])]);
    assert_eq!(
        extents(&push, &[(0, 1)]).unwrap(),
        [
            words("git push origin main"),
            Extent::Subcommand("git".into(), "push".into()),
            Extent::Host { actions: vec![Action::Send], host: "github.com".into() },
        ]
    );
    let editing = description(vec![part("", vec![write("/home/ada/project/src/a.rs")])]);
    assert_eq!(
        extents(&editing, &[(0, 0)]).unwrap(),
        [
            Extent::File { actions: vec![Action::Write], path: "/home/ada/project/src/a.rs".into() },
            Extent::Directory { actions: vec![Action::Write], path: "/home/ada/project/src".into() },
        ]
    );
}

#[test]
fn a_word_that_is_no_subcommand_is_not_taken_for_one() {
    for command in ["rm build -r", "bash build.sh now", "env x=1 make", "git --version", "python -c pass"] {
        let description = description(vec![part(command, vec![run("x")])]);
        assert_eq!(extents(&description, &[(0, 0)]).unwrap(), [words(command)], "{command}");
    }
}

#[test]
fn no_rule_is_offered_for_a_wrapper_several_commands_or_unknown_words() {
    let inner = |change: &dyn Fn(&mut Part)| {
        let mut part = part("git push", vec![run("git")]);
        change(&mut part);
        extents(&description(vec![part]), &[(0, 0)])
    };
    assert_eq!(inner(&|part| part.wrappers.push("sudo".into())), Err(NoProposal::Wrapped));
    assert_eq!(inner(&|part| part.elsewhere = Some("host".into())), Err(NoProposal::Wrapped));
    let unknown = Word::Unknown { why: "$x".into(), many: false };
    assert_eq!(inner(&|part| part.words.push(unknown.clone())), Err(NoProposal::UnknownWords));
    let two = description(vec![part("git push", vec![run("git")]), part("make", vec![run("make")])]);
    assert_eq!(extents(&two, &[(0, 0), (1, 0)]), Err(NoProposal::Several));
    assert!(extents(&two, &[(1, 0)]).is_ok(), "only one of them must be asked about");
    assert_eq!(extents(&two, &[]), Err(NoProposal::Nothing));
}

#[test]
fn a_tool_that_is_not_understood_is_offered_as_itself() {
    let opaque = description(vec![part("", vec![effect(Action::Opaque, Target::Text("unknown tool".into()))])]);
    let tool = Tool::of_server("mail", "send");
    let asked = AskedCall { tool: &tool, description: &opaque, effects: &[(0, 0)] };
    assert_eq!(candidates(&asked).unwrap(), [Proposal { extent: Extent::Tool("mcp__mail__send".into()) }]);
}

#[test]
fn only_what_would_have_let_the_call_pass_is_offered() {
    let push = description(vec![part("git push", vec![send("github.com")])]);
    let asked = AskedCall { tool: &Tool::own("Bash"), description: &push, effects: &[(0, 0)] };
    assert_eq!(narrowest(&asked, &|_| false), Err(NoProposal::WouldNotPass));
    let hosts = narrowest(&asked, &|proposal| matches!(proposal.extent, Extent::Host { .. })).unwrap();
    assert_eq!(hosts.len(), 1);
}

#[test]
fn the_rule_is_readable_and_means_nothing_but_itself() {
    let rule = |extent: Extent| Proposal { extent }.rule("always-1", "always allowed by ada on 2023-11-14");
    assert_eq!(
        rule(Extent::Words(vec!["grep".into(), "a*b {c}".into(), String::new()])),
        "- name: \"always-1\"\n  commands: [\"grep a\\\\*b\\\\ \\\\{c\\\\} ''\"]\n  action: allow\n  instead_of: ask\n  \
         reason: \"always allowed by ada on 2023-11-14\"\n"
    );
    assert!(rule(Extent::Subcommand("git".into(), "push".into())).contains("commands: [\"git push **\"]"));
    let directory = Extent::Directory { actions: vec![Action::Read, Action::Write], path: "/p/s[1]".into() };
    assert!(rule(directory).contains("effects: [read, write]\n  paths: [\"/p/s\\\\[1\\\\]/**\"]"));
}

mod file {
    use super::*;

    const RULE: &str = "- name: \"new\"\n  action: allow\n";

    #[test]
    fn a_rule_goes_in_front_of_the_others_and_nothing_else_changes() {
        let cases = [
            ("rules:\n- a: 1\n", "rules:\n- name: \"new\"\n  action: allow\n- a: 1\n"),
            (
                "# mine\nrules: # in order\n\n    # first\n    - a: 1\nx: 2\n",
                "# mine\nrules: # in order\n    - name: \"new\"\n      action: allow\n\n    # first\n    - a: 1\nx: 2\n",
            ),
            ("rules: []\nx: 2", "rules:\n  - name: \"new\"\n    action: allow\nx: 2"),
            ("version: 1", "version: 1\n\nrules:\n  - name: \"new\"\n    action: allow\n"),
        ];
        for (before, after) in cases {
            assert_eq!(insert_rule(before, RULE).as_deref(), Some(after), "{before}");
        }
        assert_eq!(insert_rule("rules: [{action: ask}]\n", RULE), None);
    }

    #[test]
    fn a_rule_that_does_not_help_leaves_the_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("callgate.yaml");
        fs::write(&path, "version: 1\nrules: []\n").unwrap();
        let error = add_rule(&path, RULE, &|_| Err("a deny stands before it".into())).unwrap_err();
        assert_eq!(error.to_string(), "the rule would not allow the call: a deny stands before it");
        assert_eq!(fs::read_to_string(&path).unwrap(), "version: 1\nrules: []\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_made_for_its_owner_and_replaced_with_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("callgate/callgate.yaml");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let check = |file: &std::path::Path| {
            let text = fs::read_to_string(file).unwrap();
            if text.contains("extends: standard") && file.parent() == path.parent() { Ok(()) } else { Err(text) }
        };
        add_rule(&path, RULE, &check).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        add_rule(&path, RULE, &|_| Ok(())).unwrap();
        assert_eq!(mode(), 0o640);
        assert_eq!(fs::read_to_string(&path).unwrap().matches("name: \"new\"").count(), 2);
    }

    #[test]
    fn of_many_who_write_at_once_nobody_loses_a_rule_and_a_link_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let (real, path) = (directory.path().join("dotfiles.yaml"), directory.path().join("callgate.yaml"));
        fs::write(&real, "version: 1 # mine\nrules: []\n").unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    add_rule(path, &format!("- name: n{number}\n  action: ask\n"), &|_| Ok(())).unwrap()
                });
            }
        });
        let text = fs::read_to_string(&real).unwrap();
        assert_eq!(text.matches("- name: n").count(), 8, "{text}");
        assert!(text.starts_with("version: 1 # mine\n") && fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
