use super::*;
use proptest::prelude::*;

fn hook() -> SettingsNode {
    SettingsNode::object([
        ("matcher", "*".into()),
        (
            "hooks",
            SettingsNode::List(vec![SettingsNode::object([
                ("type", "command".into()),
                ("command", "/bin/gate".into()),
            ])]),
        ),
    ])
}

fn hook_edit() -> JsonEdit {
    JsonEdit::element(&["hooks", "Pre"], hook())
}

fn with_hook(text: &str) -> insert::Inserted {
    insert(text, &hook_edit()).expect("can be edited")
}

#[test]
fn only_what_is_put_in_changes() {
    // Before, and what it looks like afterwards.
    let cases: &[(&str, &str)] = &[
        ("", "{\n  \"list\": [\n    \"new\"\n  ]\n}\n"),
        ("{}", "{\n  \"list\": [\n    \"new\"\n  ]\n}"),
        ("// note\n", "// note\n{\n  \"list\": [\n    \"new\"\n  ]\n}\n"),
        ("{\"a\":1}", "{\"a\":1,\"list\":[\"new\"]}"),
        ("{\n\t\"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"list\": [\n\t\t\"new\"\n\t]\n}\n"),
        ("{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1,\r\n  \"list\": [\r\n    \"new\"\r\n  ]\r\n}\r\n"),
        ("{\n  \"list\": []\n}", "{\n  \"list\": [\n    \"new\"\n  ]\n}"),
        ("{\n  \"list\": [\"a\", \"b\"]\n}", "{\n  \"list\": [\"a\", \"b\", \"new\"]\n}"),
        ("{\n  \"list\": [\n    \"a\" // why\n  ]\n}", "{\n  \"list\": [\n    \"a\", // why\n    \"new\"\n  ]\n}"),
        ("{\n  \"list\": [\n    \"a\", // why\n  ],\n}", "{\n  \"list\": [\n    \"a\", // why\n    \"new\",\n  ],\n}"),
        ("{\n  \"list\": [\n    // none\n  ]\n}", "{\n  \"list\": [\n    // none\n    \"new\"\n  ]\n}"),
        ("{\n  \"list\": [ /* none */ ]\n}", "{\n  \"list\": [ /* none */\n    \"new\"\n   ]\n}"),
        ("{ \"list\": [\"a\" /* x */, \"b\" // y\n] }", "{ \"list\": [\"a\" /* x */, \"b\", \"new\" // y\n] }"),
    ];
    for (before, after) in cases {
        let inserted = insert(before, &JsonEdit::element(&["list"], "new".into())).expect(before);
        assert_eq!(inserted.text, *after, "{before:?}");
    }
}

#[test]
fn the_first_place_is_before_all_others() {
    for (before, after) in [
        ("{\n  \"list\": [\n    \"a\"\n  ]\n}", "{\n  \"list\": [\n    \"new\",\n    \"a\"\n  ]\n}"),
        ("{\"list\":[\"a\"]}", "{\"list\":[\"new\",\"a\"]}"),
        ("{\n  \"list\": [ // why\n    \"a\"\n  ]\n}", "{\n  \"list\": [\n    \"new\", // why\n    \"a\"\n  ]\n}"),
    ] {
        let inserted = insert(before, &JsonEdit::element(&["list"], "new".into()).before_others()).expect(before);
        assert_eq!(inserted.text, after);
    }
}

#[test]
fn what_is_broken_or_of_another_shape_is_refused_with_its_place() {
    let told = |text: &str| insert(text, &hook_edit()).expect_err(text).to_string();
    assert!(told("{\n  \"a\": ,\n}").starts_with("line 2, column 8: "), "{}", told("{\n  \"a\": ,\n}"));
    assert!(told("{\n  'a': 1\n}").starts_with("line 2"));
    assert_eq!(told("{\n  \"hooks\": []\n}"), "line 2, column 12: `hooks` is not an object");
    assert_eq!(told("{\"hooks\": {\"Pre\": {}}}"), "line 1, column 19: `hooks.Pre` is not a list");
    assert_eq!(told("[]"), "line 1, column 1: `the whole file` is not an object");
    assert_eq!(told("{\"hooks\": {},\n\"hooks\": {}}"), "line 2, column 1: `hooks` is defined twice");
    assert!(told(&"[".repeat(100_000)).contains("depth"));
}

#[test]
fn what_was_put_in_is_found_again_whatever_was_done_around_it() {
    let inserted = with_hook("{\n  \"hooks\": {\n    \"Pre\": []\n  }\n}");
    let out = |text: &str| remove(text, &hook_edit(), &[]).expect("JSON");
    // Another one behind, another one before, a comment, a time limit, another hook in the same group.
    let behind = inserted.text.replace("      }\n    ]", "      },\n      {\"mine\": 1} // yes\n    ]");
    assert_eq!(
        out(&behind).expect("found"),
        "{\n  \"hooks\": {\n    \"Pre\": [\n      {\"mine\": 1} // yes\n    ]\n  }\n}"
    );
    let changed = inserted.text.replace("\"type\": \"command\",", "\"type\": \"command\", \"timeout\": 5, // mine");
    assert_eq!(out(&changed).expect("found"), "{\n  \"hooks\": {\n    \"Pre\": []\n  }\n}");
    let beside = inserted.text.replace("\"hooks\": [\n", "\"hooks\": [\n          {\"command\": \"/bin/mine\"},\n");
    let left = out(&beside).expect("found");
    assert!(left.contains("/bin/mine") && !left.contains("/bin/gate"), "{left}");
    assert_eq!(out("{\n  \"hooks\": {}\n}"), None);
    assert_eq!(out("{\"hooks\": {\"Pre\": [{\"command\": \"/bin/other\"}]}}"), None);
}

#[test]
fn a_member_that_somebody_changed_stays() {
    let text = "{\n  \"a\": 1,\n  \"strict\": true\n}";
    let edit = JsonEdit::member(&[], "strict", true.into());
    assert_eq!(remove(text, &edit, &[]).expect("JSON").as_deref(), Some("{\n  \"a\": 1\n}"));
    assert_eq!(remove(&text.replace("true", "false"), &edit, &[]).expect("JSON"), None);
}

#[test]
fn what_was_made_for_it_goes_too_once_it_is_empty() {
    for before in ["{\n  \"a\": 1\n}\n", "{\"a\":1}", "{}", "", "{\n  \"hooks\": {\n    \"Post\": []\n  }\n}"] {
        let inserted = with_hook(before);
        let created: Vec<_> = inserted.created.clone().into_iter().collect();
        let removed = remove(&inserted.text, &hook_edit(), &created);
        assert_eq!(removed.expect("JSON").as_deref(), Some(before));
    }
    // A comment in it is somebody's.
    let inserted = with_hook("{\n  \"a\": 1\n}\n");
    let commented = inserted.text.replace("\"Pre\": [", "\"Pre\": [ // keep");
    let created: Vec<_> = inserted.created.into_iter().collect();
    let removed = remove(&commented, &hook_edit(), &created).expect("JSON");
    assert!(removed.expect("found").contains("// keep"));
}

/// Settings as people write them: any JSON, any layout, comments and trailing commas anywhere.
fn settings() -> impl Strategy<Value = String> {
    let trivia = || {
        prop_oneof![
            4 => Just(String::new()),
            3 => Just(" ".to_owned()),
            3 => Just("\n  ".to_owned()),
            1 => Just("\r\n\t".to_owned()),
            1 => Just(" /* c, ] } */ ".to_owned()),
            1 => Just(" // c \" }\n".to_owned()),
        ]
    };
    let key = prop_oneof![
        2 => Just("hooks".to_owned()),
        2 => Just("Pre".to_owned()),
        1 => Just("permissions".to_owned()),
        2 => "[a-z]{1,4}",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-1.5e3".to_owned()),
        Just("\"a\\\"// \\u00e9 ü\"".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let joined = |parts: Vec<String>, trailing: bool, tail: String| {
            let comma = if trailing && !parts.is_empty() { "," } else { "" };
            format!("{}{comma}{tail}", parts.join(","))
        };
        let element = (trivia(), inner.clone(), trivia()).prop_map(|(a, it, b)| format!("{a}{it}{b}"));
        let member = (trivia(), key.clone(), trivia(), inner, trivia())
            .prop_map(|(a, key, b, it, c)| (key.clone(), format!("{a}\"{key}\":{b}{it}{c}")));
        prop_oneof![
            (prop::collection::vec(element, 0..4), any::<bool>(), trivia())
                .prop_map(move |(parts, trailing, tail)| format!("[{}]", joined(parts, trailing, tail))),
            (prop::collection::vec(member, 0..4), any::<bool>(), trivia()).prop_map(
                move |(members, trailing, tail)| {
                    let mut seen = std::collections::BTreeSet::new();
                    let parts =
                        members.into_iter().filter(|(key, _)| seen.insert(key.clone())).map(|(_, it)| it).collect();
                    format!("{{{}}}", joined(parts, trailing, tail))
                }
            ),
        ]
    });
    (trivia(), value.clone(), trivia(), value, trivia(), any::<bool>()).prop_map(|(a, value, b, hooks, c, comma)| {
        let comma = if comma { "," } else { "" };
        let hooks = if hooks.starts_with('{') { format!(",{b}\"hooks\":{b}{hooks}{comma}") } else { comma.to_owned() };
        format!("{a}{{{c}\"x\":{value}{hooks}{b}}}{c}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever the layout: the text says what it said plus the item, every byte that was there is still there in order,
    /// and taking the item out leaves what the text said before.
    #[test]
    fn insertion_keeps_everything_and_removal_restores_the_meaning(text in settings(), first: bool) {
        let edit = JsonEdit { first, ..hook_edit() };
        let Ok(inserted) = insert(&text, &edit) else { return Ok(()) };
        prop_assert!(is_subsequence(&text, &inserted.text), "{text:?} {:?}", inserted.text);
        prop_assert!(contains(&inserted.text, &edit).unwrap());
        let created: Vec<_> = inserted.created.into_iter().collect();
        let removed = remove(&inserted.text, &edit, &created).unwrap().unwrap();
        prop_assert_eq!(JsonDocument::parse(&removed).unwrap().value(), JsonDocument::parse(&text).unwrap().value());
        prop_assert_eq!(comments(&removed), comments(&text));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        drop(insert(&text, &hook_edit()));
        drop(remove(&text, &hook_edit(), &[Vec::new()]));
    }
}

fn is_subsequence(inner: &str, outer: &str) -> bool {
    let mut outer = outer.bytes();
    inner.bytes().all(|wanted| outer.any(|byte| byte == wanted))
}

fn comments(text: &str) -> usize {
    text.matches("/* c, ] } */").count() + text.matches("// c \" }").count()
}
