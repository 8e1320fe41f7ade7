use super::ast::{Argument, CommandKind, Part};
use super::{Dialect, Limits, parse, work};
use proptest::prelude::*;

fn understood(source: &str) -> bool {
    parse(source, Dialect::Bash, Limits::default()).mistake.is_none()
}

fn first_words(source: &str) -> Vec<Vec<Part>> {
    let reading = parse(source, Dialect::Bash, Limits::default());
    let command = &reading.script.items[0].first.commands[0];
    match &command.kind {
        CommandKind::Simple { words, .. } => words
            .iter()
            .map(|word| match word {
                Argument::Word(word) => word.parts.clone(),
                Argument::Assignment(_) => Vec::new(),
            })
            .collect(),
        other => panic!("not a simple command: {other:?}"),
    }
}

#[test]
fn redirections_may_stand_between_words() {
    let words = first_words("rm >/dev/null -rf /");
    assert_eq!(words.len(), 3);
}

#[test]
fn a_line_continuation_joins() {
    assert_eq!(first_words("p a\\\nb"), [[Part::Literal("p".into())], [Part::Literal("ab".into())]]);
}

#[test]
fn carriage_return_and_vertical_tab_are_text() {
    assert_eq!(first_words("p a\r b\x0bc")[1..], [[Part::Literal("a\r".into())], [Part::Literal("b\x0bc".into())]]);
}

#[test]
fn a_brace_behind_a_word_is_a_word() {
    let reading = parse("p {; q", Dialect::Bash, Limits::default());
    assert_eq!((reading.script.items.len(), reading.mistake), (2, None));
}

#[test]
fn double_parentheses_may_be_subshells() {
    let words = first_words("p $((q a); (r b))");
    assert!(matches!(&words[1][0], Part::Command(body) if body.script.items.len() == 2));
    let words = first_words("p $(( (1) + 2 ))");
    assert!(matches!(&words[1][0], Part::Arithmetic(..)));
}

#[test]
fn what_came_before_a_mistake_is_kept() {
    let reading = parse("p a\nq 'b", Dialect::Bash, Limits::default());
    assert_eq!(reading.script.items.len(), 1);
    assert!(reading.mistake.is_some());
}

#[test]
fn deep_nesting_is_refused_on_a_small_stack() {
    let shapes: [(&str, &str); 16] = [
        ("(", ")"),
        ("((", "))"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("$((", "))"),
        ("${x:-", "}"),
        ("{ ", ";}"),
        ("if p; then ", "; fi"),
        ("[[ ! ", " ]]"),
        ("[[ ( ", " ) ]]"),
        ("<(", ")"),
        ("a=(", ")"),
        ("f() { ", "; }"),
        ("case x in x) ", ";; esac"),
        ("`", "`"),
        ("$(( ${x[", "]} ))"),
    ];
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            for (open, close) in shapes {
                for count in [30, 100, 10_000] {
                    let source = format!("{}p{}", open.repeat(count), close.repeat(count));
                    parse(&source, Dialect::Bash, Limits::default());
                    parse(&open.repeat(count), Dialect::Bash, Limits::default());
                    parse(&format!("p {}", open.repeat(count)), Dialect::Bash, Limits::default());
                }
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn work_grows_with_the_length_and_not_faster() {
    let limits = Limits { nodes: usize::MAX, bytes: usize::MAX, ..Limits::default() };
    let shapes = [
        "''",
        "p;",
        "\"\" ",
        "`p` ",
        "$(p) ",
        "${x:-y}",
        "$((1))",
        "((p));",
        "p<<E\nE\n",
        "p|",
        "p&&",
        "[[ a ]];",
        "((",
        "$((",
        "$((p) ",
        "a=(b) ",
        "\\`",
    ];
    for shape in shapes {
        let small = work(&shape.repeat(500), Dialect::Bash, limits);
        let large = work(&shape.repeat(5_000), Dialect::Bash, limits);
        assert!(large <= small.max(200) * 12, "{shape}: {small} and {large}");
    }
}

#[test]
fn what_is_foreign_to_sh_is_refused() {
    for source in ["[[ a ]]", "p &>x", "p |& q", "a=(1)", "p <(q)", "p $'a'", "((1))", "p <<<x", "${x:0:1}", "a+=1"] {
        assert!(parse(source, Dialect::Sh, Limits::default()).mistake.is_some(), "{source}");
        assert!(understood(source), "{source}");
    }
}

fn soup() -> impl Strategy<Value = String> {
    let bits = [
        "p", " ", "\n", ";", "&", "|", "(", ")", "<", ">", "$", "{", "}", "'", "\"", "`", "\\", "#", "!", "=", "[",
        "]", "a", "if ", "then ", "fi", "do ", "done", "case ", "in ", "esac", "<<E", "E\n", "for ", "((", "))", "$(",
        "${", "[[ ", " ]]", "é", "*", "~",
    ];
    proptest::collection::vec(proptest::sample::select(bits.to_vec()), 0..40).prop_map(|bits| bits.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn mistakes_point_into_the_source(source in soup()) {
        for dialect in [Dialect::Bash, Dialect::Sh] {
            if let Some(mistake) = parse(&source, dialect, Limits::default()).mistake {
                prop_assert!(mistake.span.start <= mistake.span.end && mistake.span.end <= source.len());
            }
        }
    }

    #[test]
    fn any_text_is_read_without_panic(source in ".{0,60}") {
        parse(&source, Dialect::Bash, Limits::default());
        parse(&source, Dialect::Sh, Limits::default());
    }
}
