//! Options as the real parsers take them: the words, and the effects they must have.

use crate::effect::{Action, Effect, Names, Target};
use crate::programs::{Invocation, ProgramAnalysis, Programs};
use crate::stream::Stream;
use crate::word::Word;

const TABLE: &str = "\
frob: a program of the gnu style
  -a --all
  -b --brief
  -r --recursive tree
  -o --output <write>
  --output-directory <write>
  -c --color [<text>]
  -n --count <text>
  --range <text> <text>
  -i [<write>]
  -x => delete gone
  -NUMBER
  @* <read>
  -h --halt ends
  args: <read>*
posixly: a program of the posix style
  style posix
  -o <write>
  -v
  args: <read>*
single: a program of the single style
  style single
  -out <write>
  -verbose
  -D* <text>
  args: <read>*
tool: a program of the long style
  style long
  everywhere
  -C <dir>
  -q --quiet
  -v --version ends
  sub show list: look
    --output <write>
    args: <read>*
  sub rm: remove
    --dry-run
    does if not --dry-run: send <tool> !destructive
    args: <text>*
packer: a program of the tar style
  style tar
  -x
  -c
  -f <read>
  value -f if -c: <write>
  -C <dir>
  args: <read>*
  globs unsafe
plain: a program whose options are harmless
  -v
  -n <text>
  args: <text> <read>*
";

fn words(command: &str) -> Vec<Word> {
    command
        .split(' ')
        .map(|word| match word.split_once('$') {
            Some(("", name)) => Word::Unknown { why: format!("${name}"), many: name.starts_with("many") },
            Some((prefix, name)) => Word::Partly { prefix: prefix.to_owned(), why: format!("${name}"), many: false },
            None if word.contains('*') => Word::Glob(word.to_owned()),
            None => Word::Known(word.to_owned()),
        })
        .collect()
}

fn reading(command: &str) -> ProgramAnalysis {
    let programs = Programs::bundled().extended(TABLE, "test").expect("a sound table");
    let words = words(command);
    programs.read(&Invocation {
        words: &words,
        directory: Some("/w"),
        home: Some("/home/me"),
        stdin: &Stream::Unconnected,
    })
}

fn shown(effect: &Effect) -> Option<String> {
    let action = format!("{:?}", effect.action).to_lowercase();
    Some(match &effect.target {
        Target::Path(path) => {
            let name = match &path.names {
                Names::Exact(name) | Names::Glob(name) | Names::Below(name) => name.clone(),
                Names::Unknown(_) => return None,
            };
            format!("{action} {}{}", name.replace("/w/", ""), if path.tree { " tree" } else { "" })
        }
        Target::Host(host) => format!("{action} {}", host.name.clone().unwrap_or_default()),
        _ if effect.action == Action::Opaque => action,
        _ => return None,
    })
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (command, expected) in cases {
        let mut found: Vec<String> = reading(command).effects.iter().filter_map(shown).collect();
        found.sort();
        found.dedup();
        let found = found.join(", ");
        if found != *expected {
            wrong.push(format!("{command}\n    expected `{expected}`\n    found    `{found}`"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn values_are_glued_spaced_or_behind_an_equals_sign() {
    check(&[
        ("frob -o out a", "read a, write out"),
        ("frob -oout a", "read a, write out"),
        ("frob -abo out a", "read a, write out"),
        ("frob -aboout", "write out"),
        ("frob --output out a", "read a, write out"),
        ("frob --output=out a", "read a, write out"),
        ("frob -o=out", "write =out"),
        ("frob --range 1 2 a", "read a"),
        ("frob --range=1 2 a", "read a"),
    ]);
}

#[test]
fn optional_values_are_only_glued() {
    check(&[
        ("frob --color a", "read a"),
        ("frob --color=auto a", "read a"),
        ("frob -cauto a", "read a"),
        ("frob -i a", "read a"),
        ("frob -iout a", "read a, write out"),
    ]);
}

#[test]
fn long_options_may_be_abbreviated_if_that_is_clear() {
    check(&[
        ("frob --out=x a", "opaque, read a"),
        ("frob --rec a", "read a tree"),
        ("frob --cou 3 a", "read a"),
        ("frob --c=x a", "opaque, read a"),
        ("frob --output x", "write x"),
        ("tool show --out x", "opaque, read x"),
    ]);
}

#[test]
fn options_may_follow_operands_unless_the_style_says_otherwise() {
    check(&[
        ("frob a -o out", "read a, write out"),
        ("frob a -- -o out", "read -o, read a, read out"),
        ("posixly a -o out", "read -o, read a, read out"),
        ("posixly -v -o out a", "read a, write out"),
    ]);
}

#[test]
fn unknown_options_are_opaque_and_hide_nothing_else() {
    check(&[
        ("frob --nonsense a -o out", "opaque, read a, write out"),
        ("frob -az a", "opaque, read a"),
        ("frob --all=yes a", "opaque, read a"),
        ("single --nonsense a", "opaque, read a"),
    ]);
}

#[test]
fn an_option_that_ends_the_program_hides_everything_but_doubt_and_other_options() {
    check(&[
        // After an operand it may be one more operand on other systems.
        ("frob a -o out --help", "read a, write out"),
        // Many programs act on an option while they read it.
        ("frob -o out --help a", "write out"),
        ("frob --help -o out a", "write out"),
        ("frob -x -h", "delete gone"),
        ("tool rm --help x", ""),
        ("frob --help=false a", "opaque, read a"),
        ("frob -h a", ""),
        ("frob -ah a", ""),
        ("frob --vers", ""),
        ("frob --nonsense --help", "opaque"),
        ("frob -o --help a", "read a, write --help"),
        ("frob -- --help", "read --help"),
        ("posixly a --help", "read --help, read a"),
        ("tool show --version a", "opaque, read a"),
        ("tool show --help", ""),
    ]);
}

#[test]
fn single_dash_options_are_whole_words() {
    check(&[
        ("single -out x a", "read a, write x"),
        ("single -out=x a", "read a, write x"),
        ("single --out x a", "read a, write x"),
        ("single -Dkey=value a", "read a"),
        ("single -o x", "opaque, read x"),
    ]);
}

#[test]
fn a_first_word_without_dash_may_be_a_bundle() {
    check(&[
        ("packer xf a.tar", "read a.tar"),
        ("packer cf a.tar src", "read src, write a.tar"),
        ("packer cfC a.tar dir src", "read dir/src, write a.tar"),
        ("packer -cf a.tar -C dir src", "read dir/src, write a.tar"),
        ("packer cf a.tar *", "opaque, read *, write a.tar"),
        ("packer cf a.tar ./*", "read *, write a.tar"),
    ]);
}

#[test]
fn subcommands_have_options_of_their_own() {
    check(&[
        ("tool -q show a", "read a"),
        ("tool show -q a --output x", "read a, write x"),
        ("tool -C dir show a", "read dir/a"),
        ("tool rm x", "send <tool>"),
        ("tool rm x --dry-run", ""),
        ("tool rm x --dry-run=false", "send <tool>"),
        ("tool frobnicate x", "opaque"),
        ("tool $x", "opaque"),
    ]);
}

#[test]
fn a_word_that_may_be_an_option_is_not_understood() {
    check(&[
        ("frob $x a", "opaque, read a"),
        ("frob -- $x", "opaque"),
        ("frob --output=$x a", "opaque, read a"),
        ("frob -n$x a", "read a"),
        ("frob --count=$x a", "read a"),
        ("frob -$x a", "opaque, read a"),
        ("frob --$x a", "opaque, read a"),
        ("frob -n $many a", "opaque, read a"),
        ("frob @$x", "opaque"),
        ("frob a$x", "opaque"),
        ("plain $x a", "read a"),
        ("plain $many a", "opaque, read a"),
        ("plain x $x", "opaque"),
        ("plain -n $x y a", "read a"),
    ]);
}

#[test]
fn numbers_and_fronts_of_words_are_options() {
    check(&[("frob -20 a", "read a"), ("frob @list a", "read a, read list"), ("frob -x", "delete gone")]);
}

#[test]
fn a_destination_that_may_be_a_directory_gets_the_sources_inside() {
    check(&[
        ("cp x/.bashrc /home/me", "read x/.bashrc, write /home/me, write /home/me/.bashrc"),
        ("cp -r src/. /home/me", "read src/. tree, write /home/me, write /home/me tree"),
        ("cp *.o out", "read *.o, write out"),
    ]);
}

#[test]
fn programs_are_found_by_name_by_system_path_and_by_version() {
    check(&[("/usr/bin/cp a b", "read a, write b, write b/a"), ("frob3.11 a", "read a"), ("frob-12 a", "read a")]);
    let cases = [
        ("./frob a", false),
        ("/tmp/cp a b", false),
        ("nonsense --version", true),
        ("cp2 a b", true),
        ("/proc/self/root/bin/cp a b", false),
    ];
    for (command, opaque) in cases {
        let reading = reading(command);
        assert_eq!(reading.table, None, "{command}");
        assert_eq!(reading.effects.iter().any(|effect| effect.action == Action::Opaque), opaque, "{command}");
    }
}

#[test]
fn the_run_of_the_program_comes_first() {
    for command in ["frob a", "nonsense", "./x", "env frob a", "find . -delete"] {
        assert_eq!(reading(command).effects.first().map(|effect| effect.action), Some(Action::Run), "{command}");
    }
}

proptest::proptest! {
    #[test]
    fn any_words_are_read_without_panic(
        program in "frob|posixly|single|tool|packer|env|find|xargs|bash|sudo|fd|parallel|ssh|tmux",
        rest in proptest::collection::vec("-{0,2}[a-zA-Z=.;+{}$*/@]{0,6}", 0..8),
    ) {
        let _ = reading(&format!("{program} {}", rest.join(" ")));
    }
}
