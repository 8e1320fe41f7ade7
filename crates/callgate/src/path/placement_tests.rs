use callgate_model::effect::{Coverage, Effect};

use super::super::boundary::{Boundary, HostDirectories, Root};
use super::super::file_system::fake::Fake;
use super::*;
use crate::describe::{Part, PlacedEffect};
use crate::policy::Policy;
use crate::{Call, Decision, Gate, SandboxSupport};
use callgate_model::call::Origin;
use callgate_model::word::Word;

fn apply(
    boundary: &ResolvedBoundary,
    description: &mut Description,
    file_system: &dyn FileSystem,
) -> Vec<EffectRuling> {
    let unresolved = boundary.place_effects(description, file_system);
    boundary.rulings(description, &unresolved)
}

fn file_system() -> Fake {
    Fake::new()
        .file("/home/ada/ws/src/main.rs")
        .link("/home/ada/ws/inside", "src")
        .link("/home/ada/ws/keys", "/home/ada/.ssh")
        .link("/home/ada/ws/doc", "/usr/share/doc")
        .link("/home/ada/ws/loop", "loop")
        .file("/home/ada/.ssh/id_rsa")
        .file("/home/ada/ws_evil/x")
        .file("/usr/share/doc/x")
        .directory("/var/tmp-real")
        .link("/tmp", "/var/tmp-real")
        .unreadable("/home/eve")
        .file("/etc/passwd")
}

fn host() -> HostDirectories {
    HostDirectories { home: Some("/home/ada".into()), temporary: vec!["/tmp".into()], programs: vec![] }
}

fn origin() -> Origin {
    Origin { directory: Some("/home/ada/ws/src".into()), workspace: Some("/home/ada/ws".into()), ..Origin::default() }
}

fn boundary() -> Boundary {
    Boundary { readable: vec![Root::of_call("/usr/**"), Root::of_call("/home")].into(), ..Boundary::default() }
}

struct Seen {
    place: Place,
    decision: Option<Decision>,
    reason: String,
}

fn look_with(boundary: &Boundary, action: Action, names: Names, tree: bool) -> Seen {
    let effect = Effect {
        action,
        target: Target::Path(PathTarget::new(names, tree)),
        marks: Vec::new(),
        because: String::new(),
    };
    let mut description = Description {
        category: "test".into(),
        parts: vec![Part { effects: vec![PlacedEffect { effect, place: None }], ..Part::default() }],
        coverage: Coverage::Complete,
    };
    let settled = boundary.resolve(&origin(), &host(), &file_system());
    let rulings = apply(&settled, &mut description, &file_system());
    let ruling = rulings.into_iter().next().map(|ruling| ruling.ruling);
    Seen {
        place: description.parts[0].effects[0].place.clone().expect("a place"),
        decision: ruling.as_ref().map(|ruling| ruling.decision),
        reason: ruling.map(|ruling| ruling.reason).unwrap_or_default(),
    }
}

fn look(action: Action, path: &str) -> Seen {
    look_with(&boundary(), action, Names::Exact(path.into()), false)
}

#[test]
fn every_path_has_a_zone() {
    use Action::{Delete, List, Read, Write};
    let deny = Some(Decision::Deny);
    let cases: &[(Action, &str, Zone, bool, Option<Decision>)] = &[
        (Read, "/home/ada/ws/src/main.rs", Zone::Root, false, None),
        (Write, "/home/ada/ws/new/deep/file", Zone::Root, false, None),
        (Write, "/home/ada/ws/inside/x", Zone::Root, false, None),
        (Write, "/home/ada/ws/src/../x", Zone::Root, false, None),
        (Write, "/tmp/x", Zone::Root, false, None),
        (Write, "/var/tmp-real/x", Zone::Root, false, None),
        (Write, "/home/ada/.claude/plans/p.md", Zone::Root, false, None),
        (Read, "/usr/share/doc/x", Zone::Readable, false, None),
        (Write, "/usr/share/doc/x", Zone::Readable, false, deny),
        (Delete, "/usr/share/doc/x", Zone::Readable, false, deny),
        (Read, "/etc/passwd", Zone::Outside, false, deny),
        (List, "/etc", Zone::Outside, false, deny),
        (Read, "/home/ada/ws/../../../etc/passwd", Zone::Outside, true, deny),
        (Read, "/home/ada/ws/keys/id_rsa", Zone::Readable, true, Some(Decision::Ask)),
        (Write, "/home/ada/ws/keys/id_rsa", Zone::Readable, true, deny),
        (Read, "/home/ada/ws/doc/x", Zone::Readable, true, Some(Decision::Ask)),
        (Read, "/usr_evil/x", Zone::Outside, false, deny),
        (Write, "/home/ada/ws_evil/x", Zone::Readable, false, deny),
        (Write, "/dev/null", Zone::Root, false, None),
        (Write, "/dev/stderr", Zone::Root, false, None),
        (Read, "/dev/urandom", Zone::Readable, false, None),
        (Write, "/dev/sda", Zone::Outside, false, deny),
    ];
    for (action, path, zone, traversal, decision) in cases {
        let seen = look(*action, path);
        assert_eq!(&seen.place.zone, zone, "{action:?} {path}");
        assert_eq!(seen.place.traversal, *traversal, "{action:?} {path}");
        assert_eq!(seen.decision, *decision, "{action:?} {path}: {}", seen.reason);
    }
}

#[test]
fn later_stages_get_the_resolved_path() {
    let seen = look(Action::Read, "/home/ada/ws/keys/id_rsa");
    assert_eq!(seen.place.named, Path::new("/home/ada/ws/keys/id_rsa"));
    assert_eq!(seen.place.resolved, Path::new("/home/ada/.ssh/id_rsa"));
}

#[test]
fn loops_nul_bytes_and_unreadable_parents_are_refused() {
    for path in ["/home/ada/ws/loop/x", "/home/ada/ws/x\0y", "/home/eve/x", &"/a".repeat(100_000)] {
        let seen = look(Action::Read, path);
        assert!(matches!(seen.place.zone, Zone::Unresolved(_)));
        assert_eq!(seen.decision, Some(Decision::Deny));
        assert!(seen.reason.len() < 600, "{}", seen.reason);
    }
}

#[test]
fn what_is_not_known_is_asked_about() {
    let ask = Some(Decision::Ask);
    for names in [
        Names::Unknown("$x".into()),
        Names::Exact("relative".into()),
        Names::Exact("/dev/fd/7".into()),
        Names::Glob("/home/ada/ws/*/../../x".into()),
        Names::Glob("/home/ada/ws/k*/id_rsa".into()),
    ] {
        let seen = look_with(&boundary(), Action::Read, names.clone(), false);
        assert!(matches!(seen.place.zone, Zone::Unresolved(_)), "{names:?}");
        assert_eq!(seen.decision, ask, "{names:?}");
    }
}

#[test]
fn outside_may_be_asked_about_and_listing_may_be_silent_but_traversal_never() {
    let lenient = Boundary { outside: Outside::Ask, list_outside: Some(Decision::Allow), ..boundary() };
    let exact = |path: &str| Names::Exact(path.into());
    let cases = [
        (Action::Read, "/etc/passwd", Some(Decision::Ask)),
        (Action::List, "/etc", None),
        (Action::List, "/home/ada/ws/../../../etc", Some(Decision::Ask)),
        (Action::Write, "/usr/x", Some(Decision::Ask)),
    ];
    for (action, path, decision) in cases {
        let seen = look_with(&lenient, action, exact(path), false);
        assert_eq!(seen.decision, decision, "{action:?} {path}");
    }
}

#[test]
fn the_refusal_names_the_path_but_not_the_roots() {
    let seen = look(Action::Read, "/etc/passwd");
    assert!(seen.reason.contains("/etc/passwd"));
    assert!(!seen.reason.contains("/home/ada"));
}

#[test]
fn patterns_and_unknown_names_lie_where_their_fixed_part_lies() {
    let glob = look_with(&boundary(), Action::List, Names::Glob("/home/ada/ws/src/*.rs".into()), false);
    assert_eq!(glob.place.named, Path::new("/home/ada/ws/src"));
    assert_eq!(glob.place.rest, Rest::Glob("*.rs".into()));
    assert_eq!(glob.place.zone, Zone::Root);
    let below = look_with(&boundary(), Action::Read, Names::Below("/etc".into()), false);
    assert_eq!((below.place.rest, below.place.zone), (Rest::Anything, Zone::Outside));
}

#[test]
fn a_tree_around_home_or_a_root_is_outside() {
    let exact = |path: &str| Names::Exact(path.into());
    let tree = |path: &str| look_with(&boundary(), Action::Read, exact(path), true).place.zone;
    assert_eq!(tree("/home/ada/ws"), Zone::Root);
    assert_eq!(tree("/home"), Zone::Outside);
    assert_eq!(tree("/home/ada"), Zone::Outside);
    assert_eq!(tree("/"), Zone::Outside);
    assert_eq!(tree("/usr"), Zone::Readable);
    let wide = Boundary { roots: vec![Root::of_call("/home")].into(), ..Boundary::none() };
    let zone = |path: &str, tree: bool| look_with(&wide, Action::Delete, exact(path), tree).place.zone;
    assert_eq!(zone("/home/ada", true), Zone::Outside);
    assert_eq!(zone("/home/ada", false), Zone::Root);
    assert_eq!(zone("/home/ada/ws", true), Zone::Root);
}

#[test]
fn roots_are_relative_to_the_policy_file_or_the_call() {
    let boundary = Boundary {
        roots: vec![Root::of_directory("data", "/srv/policy"), Root::of_call("src/**")].into(),
        ..Boundary::none()
    };
    let zone = |path: &str| look_with(&boundary, Action::Write, Names::Exact(path.into()), false).place.zone;
    assert_eq!(zone("/srv/policy/data/x"), Zone::Root);
    assert_eq!(zone("/srv/policy/x"), Zone::Outside);
    assert_eq!(zone("/home/ada/ws/src/x"), Zone::Root);
    assert_eq!(zone("/home/ada/ws/x"), Zone::Outside);
}

#[test]
fn braces_and_exceptions_in_a_boundary() {
    let boundary = Boundary {
        readable: vec![
            Root::of_call("/{usr,opt}/**"),
            Root::of_call("!/usr/secret/**"),
            Root::of_call("/usr/secret/public"),
            Root::of_call("/srv/*"),
        ]
        .into(),
        ..Boundary::none()
    };
    let zone = |path: &str| look_with(&boundary, Action::Read, Names::Exact(path.into()), false).place.zone;
    assert_eq!(zone("/usr/lib/x"), Zone::Readable);
    assert_eq!(zone("/opt/x"), Zone::Readable);
    assert_eq!(zone("/usr/secret/x"), Zone::Outside);
    assert_eq!(zone("/usr/secret/public/x"), Zone::Readable);
    assert_eq!(zone("/srv/x"), Zone::Outside);
    let tree = look_with(&boundary, Action::Read, Names::Exact("/usr".into()), true);
    assert_eq!(tree.place.zone, Zone::Outside);
}

#[test]
fn without_a_directory_there_is_no_workspace_root() {
    let settled = Boundary::default().resolve(&Origin::default(), &HostDirectories::default(), &file_system());
    assert_eq!(settled.zone(Path::new("/home/ada/ws/x"), false, &file_system()), Zone::Outside);
}

#[test]
fn paths_on_another_machine_are_left_to_the_policy() {
    let effect = Effect {
        action: Action::Read,
        target: Target::Path(PathTarget::new(Names::Exact("/etc/passwd".into()), false)),
        marks: vec![Mark::Elsewhere],
        because: String::new(),
    };
    let mut description = Description {
        category: "shell".into(),
        parts: vec![Part { effects: vec![PlacedEffect { effect, place: None }], ..Part::default() }],
        coverage: Coverage::Complete,
    };
    let settled = boundary().resolve(&origin(), &host(), &file_system());
    assert_eq!(apply(&settled, &mut description, &file_system()), Vec::new());
    let place = description.parts[0].effects[0].place.as_ref().expect("a place");
    assert!(matches!(place.zone, Zone::Unresolved(_)));
}

#[test]
fn the_patterns_of_a_command_stand_for_the_names_that_are_there() {
    let glob = |path: &str| PlacedEffect {
        effect: Effect {
            action: Action::Read,
            target: Target::Path(PathTarget::new(Names::Glob(path.into()), false)),
            marks: Vec::new(),
            because: String::new(),
        },
        place: None,
    };
    let opaque = || PlacedEffect {
        effect: Effect {
            action: Action::Opaque,
            target: Target::Text(String::new()),
            marks: Vec::new(),
            because: String::new(),
        },
        place: None,
    };
    let part = |effects: Vec<PlacedEffect>| Part { words: vec![Word::Known("cat".into())], effects, ..Part::default() };
    let places = |parts: Vec<Part>| -> Vec<(PathBuf, Rest)> {
        let mut description = Description { category: "shell".into(), parts, coverage: Coverage::Complete };
        apply(&boundary().resolve(&origin(), &host(), &file_system()), &mut description, &file_system());
        let effects = description.parts.iter().flat_map(|part| &part.effects);
        effects.filter_map(|placed| placed.place.clone()).map(|place| (place.resolved, place.rest)).collect()
    };
    let pattern = "/home/ada/ws/[k]*/id_*";
    let exact = [(PathBuf::from("/home/ada/.ssh/id_rsa"), Rest::Nothing)];
    assert_eq!(places(vec![part(vec![glob(pattern)])]), exact);
    // something before it may make names that are not there yet; those that are there are read all the same
    let later = places(vec![part(vec![opaque()]), part(vec![glob("/home/ada/ws/src/*.rs")])]);
    let pattern = (PathBuf::from("/home/ada/ws/src"), Rest::Glob("*.rs".into()));
    assert_eq!(later, [(PathBuf::from("/home/ada/ws/src/main.rs"), Rest::Nothing), pattern]);
    // tools match in ways of their own
    let tool = Part { words: Vec::new(), ..part(vec![glob("/home/ada/ws/src/*.rs")]) };
    assert_eq!(places(vec![tool]), [(PathBuf::from("/home/ada/ws/src"), Rest::Glob("*.rs".into()))]);
}

#[test]
fn a_pattern_that_names_nothing_yet_is_a_doubt_about_secrets() {
    let decide = |command: &str| {
        let files = Fake::new().file("/w/a").file("/w/x/.env").file("/w/x/f1");
        let policy = Policy::bundled("standard").unwrap();
        let gate = Gate::builder().policy(policy).file_system(files).sandbox(SandboxSupport::Available).build();
        let call = Call::new("Bash", serde_json::json!({"command": command})).directory("/w").workspace("/w");
        gate.assess(&call).unwrap().ruling().decision
    };
    for command in
        ["mkdir d && echo a > d/f1 && cat d/f*", "mkdir d && cd d && echo a > f1 && cat f*", "touch b && cat x/f*"]
    {
        assert_eq!(decide(command), Decision::Contain, "{command}");
    }
    for command in ["cat x/.e*", "touch b && cat x/.e*", "mkdir d && cat ~/.ss*/id_rsa", "mkdir d; rm x/.e*"] {
        assert_eq!(decide(command), Decision::Deny, "{command}");
    }
}

#[test]
fn what_an_earlier_command_may_have_turned_into_a_link_is_not_known() {
    let effect = |action: Action, path: &str, tree: bool| PlacedEffect {
        effect: Effect {
            action,
            target: Target::Path(PathTarget::new(Names::Exact(path.into()), tree)),
            marks: Vec::new(),
            because: String::new(),
        },
        place: None,
    };
    let part = |program: &str, effects: Vec<PlacedEffect>| Part {
        words: vec![Word::Known(program.into())],
        effects,
        ..Part::default()
    };
    let decisions = |parts: Vec<Part>| -> Vec<(usize, Decision)> {
        let mut description = Description { category: "shell".into(), parts, coverage: Coverage::Complete };
        let rulings = apply(&boundary().resolve(&origin(), &host(), &file_system()), &mut description, &file_system());
        rulings.into_iter().map(|ruling| (ruling.part, ruling.ruling.decision)).collect()
    };
    let in_ws = "/home/ada/ws/new";
    let cat = || part("cat", vec![effect(Action::Read, in_ws, false)]);
    let linked = part("/bin/ln", vec![effect(Action::Write, in_ws, false)]);
    assert_eq!(decisions(vec![linked, cat()]), [(1, Decision::Ask)]);
    let unpacked = part("tar", vec![effect(Action::Write, "/home/ada/ws", true)]);
    assert_eq!(decisions(vec![unpacked.clone(), cat()]), [(1, Decision::Ask)]);
    let listed = part("ls", vec![effect(Action::List, in_ws, false)]);
    assert_eq!(decisions(vec![unpacked, listed]), []);
    let touched = part("touch", vec![effect(Action::Write, in_ws, false)]);
    assert_eq!(decisions(vec![touched, cat()]), []);
}

#[test]
fn what_everybody_writes_to_is_marked() {
    let marks = |action, path: &str, tree| {
        let names = Names::Exact(path.into());
        let effect = Effect {
            action,
            target: Target::Path(PathTarget::new(names, tree)),
            marks: Vec::new(),
            because: String::new(),
        };
        let mut description = Description {
            category: "test".into(),
            parts: vec![Part { effects: vec![PlacedEffect { effect, place: None }], ..Part::default() }],
            coverage: Coverage::Complete,
        };
        let file_system = Fake::new().directory("/tmp/mine").directory("/home/ada/ws");
        apply(&boundary().resolve(&origin(), &host(), &file_system), &mut description, &file_system);
        description.parts[0].effects[0].effect.marks.contains(&Mark::Shared)
    };
    assert!(marks(Action::Write, "/tmp/out", false));
    assert!(marks(Action::Write, "/tmp", true));
    assert!(!marks(Action::Write, "/tmp/mine/out", false));
    assert!(!marks(Action::Write, "/home/ada/ws/out", false));
    assert!(!marks(Action::Read, "/tmp/out", false));
}
