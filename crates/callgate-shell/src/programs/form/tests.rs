use super::*;
use crate::effect::{Action, CodeOrigin, Mark};
use crate::programs::table::{Derived, EffectTarget, LoadPlace, LoadedFiles, Repeat, RoleKind, Term, ValueSet, Values};
use callgate_model::description::LoadMatters;

fn table(text: &str) -> Table {
    let (mut tables, errors) = parse(text, "test", &mut Shares::default());
    assert_eq!(errors, [], "in {text}");
    assert_eq!(tables.len(), 1);
    tables.remove(0)
}

fn problem(text: &str) -> (usize, usize, String) {
    let (_, errors) = parse(text, "test", &mut Shares::default());
    let error = errors.first().expect("a mistake");
    (error.line, error.column, error.problem.clone())
}

#[test]
fn a_block_has_names_options_operands_and_examples() {
    let table = table(
        "cp copy: copy files\n  from coreutils 9.1: manual, --help\n  # a comment\n  -r -R --recursive   tree  # whole trees\n  -t <write into>\n  \
         args if -t: <read>*\n  args: <read>+ <write into>\n\n  example cp 'a  # b' c => read a, write c\n",
    );
    assert_eq!(table.names, ["cp", "copy"]);
    assert!(table.level.options[0].tree);
    assert_eq!(table.level.options[0].names, ["-r", "-R", "--recursive"]);
    assert_eq!(table.level.args.len(), 2);
    assert_eq!(table.level.args[0].condition.all, [Term { negated: false, any: vec![Atom::Option("-t".into())] }]);
    assert_eq!(table.level.args[1].then[0].repeat, Repeat::Some);
    assert_eq!(table.examples[0].command, "cp 'a  # b' c");
    assert_eq!(table.examples[0].expected.len(), 2);
}

#[test]
fn options_have_values_ends_and_effects() {
    let table = table(
        "x: x\n  --color [<text>]\n  --range <text> <text>\n  --help ends\n  -delete => delete . tree, send <aws> !destructive\n  \
         if= <read>\n  ( ) ! ,\n  --[no-]pager\n  -e <opaque \"a > b\">\n",
    );
    let options = &table.level.options;
    assert!(matches!(options[0].values, Values::Optional(_)));
    assert!(matches!(&options[1].values, Values::Words(roles) if roles.len() == 2));
    assert!(options[2].ends);
    assert_eq!(options[3].effects[0].action, Action::Delete);
    assert!(options[3].effects[0].tree);
    assert_eq!(options[3].effects[1].target, EffectTarget::Host(Some("<aws>".into())));
    assert_eq!(options[3].effects[1].marks, [Mark::Destructive]);
    assert_eq!(options[5].names, ["(", ")", "!", ","]);
    assert_eq!(options[6].names, ["--pager", "--no-pager"]);
    assert!(matches!(&options[7].values, Values::Words(roles) if roles[0].kind == RoleKind::Opaque("a > b".into())));
}

#[test]
fn subcommands_are_nested_and_inherit_the_style() {
    let table = table(
        "git: git\n  style long\n  -C <dir>\n  sub stash: aside\n    sub drop clear: gone\n      does if -C: run project hooks\n    none: write .\n  sub x: x\n    style single\n",
    );
    let stash = &table.level.subs[0].level;
    assert_eq!(stash.style, Style::Long);
    assert_eq!(stash.subs[0].names, ["drop", "clear"]);
    assert_eq!(stash.subs[0].level.does[0].then[0].target, EffectTarget::Program(CodeOrigin::Project, "hooks".into()));
    assert_eq!(stash.none.len(), 1);
    assert_eq!(table.level.subs[1].level.style, Style::Single);
}

#[test]
fn mistakes_name_their_place_and_the_remedy() {
    let cases = [
        ("cp\n", 1, 1, "a table starts with `NAMES: DESCRIPTION` in the first column"),
        ("cp: c\n   -a\n", 2, 4, "odd indentation of 3 spaces: indent by 2 for each level"),
        ("cp: c\n    -a\n", 2, 5, "unexpected indentation of 4 spaces (at most 2 here): indent by 2 for each level"),
        ("cp: c\n  args <read>\n", 2, 3, "missing colon after `args`: write `args: …` or `args if CONDITION: …`"),
        ("cp: c\n  args: <raed>\n", 2, 9, "unknown role `<raed>`: the roles are listed in docs/program-tables.md"),
        (
            "cp: c\n  args: read\n",
            2,
            9,
            "`read` is not a role: write roles in angle brackets, like `<text>` or `<read>*`",
        ),
        ("cp: c\n  args: <read>* <write>+\n", 2, 17, "only one role of an `args` line can repeat"),
        (
            "cp: c\n  args: <command> <read>\n",
            2,
            19,
            "`<command>` takes all words that follow, so it must be the last role",
        ),
        ("cp: c\n  -a\n  -b -a\n", 3, 3, "duplicate option `-a`"),
        (
            "cp: c\n  -a => frob x\n",
            2,
            9,
            "unknown action `frob`: write list, read, write, delete, run, connect, send, privilege or opaque",
        ),
        ("cp: c\n  does: read\n", 2, 9, "`read` needs a path"),
        (
            "cp: c\n  does: read a b\n",
            2,
            16,
            "unexpected `b` after an effect: write tree, !destructive or !credentials",
        ),
        (
            "cp: c\n  args if -x: <read>\n",
            1,
            1,
            "unknown option `-x` in a condition or a `hosts` line: this table does not have it",
        ),
        (
            "cp: c\n  style german\n",
            2,
            9,
            "unknown style `german`: write gnu, posix, long, long-first, single, single-first, tar, none or custom NAME",
        ),
        (
            "cp: c\n  stdout: letters\n",
            2,
            11,
            "unknown output `letters`: the outputs are listed in docs/program-tables.md",
        ),
        ("cp: c\n  example cp a b\n", 2, 11, "invalid example: write `example COMMAND => EFFECTS`"),
        (
            "cp: c\n  from cp: manual\n",
            2,
            8,
            "invalid `from` line: write `from PROGRAM VERSION: SOURCES` at the top level; the sources are manual, --help, completion and source",
        ),
        (
            "cp: c\n  from cp 9.1: hearsay\n",
            2,
            8,
            "invalid `from` line: write `from PROGRAM VERSION: SOURCES` at the top level; the sources are manual, --help, completion and source",
        ),
        (
            "cp: c\n  loads desk: a\n",
            2,
            9,
            "invalid `loads desk`: write `loads project: FILES`, `loads home: FILES` or `loads system: FILES`, relative to that directory, with `except KEYS` or `with WORDS` behind them",
        ),
        (
            "cp: c\n  loads home: /a\n",
            2,
            15,
            "invalid `loads home: /a`: write `loads project: FILES`, `loads home: FILES` or `loads system: FILES`, relative to that directory, with `except KEYS` or `with WORDS` behind them",
        ),
        ("cp: c\n  heeds: A-B\n", 2, 10, "invalid variable name `A-B`"),
        (
            "cp: c\n  hosts: file\n",
            2,
            10,
            "invalid `hosts` line: write `hosts: none`, or list `args`, `arg1`, options and hosts of the service",
        ),
        ("cp: c\n  hosts:\n", 2, 3, "missing colon after `hosts`: write `hosts: …` or `hosts if CONDITION: …`"),
        (
            "cp: c\n  hosts: -x\n",
            1,
            1,
            "unknown option `-x` in a condition or a `hosts` line: this table does not have it",
        ),
        (
            "cp: c\n  sub s: s\n    interactive\n",
            3,
            5,
            "`interactive` describes the whole program: move it to the top level of the table",
        ),
        ("cp: c\n  globs safe\n", 2, 9, "write `globs unsafe`"),
        ("cp: c\n  -a <read\n", 2, 6, "unclosed `<`"),
        (
            "cp: c\n  -a <text> -b\n",
            2,
            13,
            "unexpected `-b` after the values: write `NAMES VALUES ends tree => EFFECTS`",
        ),
    ];
    for (text, line, column, expected) in cases {
        assert_eq!(problem(text), (line, column, expected.to_owned()), "in {text}");
    }
}

#[test]
fn conditions_have_their_own_little_form() {
    let table = table(
        "x: x\n  -r\n  -n\n  -X <text>\n  does if -r and not -n|-X=PO*|a=b|-r and no args: read a\n  \
         does if arg1=create*|arg2=x|y|arg3 and arg2: read b\n  does if -X not GET|[|]* and arg1 not list|-l: read c\n  \
         does if args=x|y|args and args not a|args=b: read d\n",
    );
    let values = |globs: &[&str], others| {
        let globs = globs.iter().map(|glob| Text::Owned((*glob).to_owned())).collect();
        ValueSet { globs, others }
    };
    let atoms = |line: usize, term: usize| table.level.does[line].condition.all[term].any.clone();
    assert_eq!(table.level.does[0].condition.all.len(), 3);
    let either = [
        Atom::Option("-n".into()),
        Atom::Value("-X".into(), values(&["PO*", "a=b"], false)),
        Atom::Option("-r".into()),
    ];
    assert_eq!(atoms(0, 1), either);
    assert_eq!(table.level.does[0].condition.all[2], Term { negated: true, any: vec![Atom::Count(1)] });
    let either =
        [Atom::Operand(1, values(&["create*"], false)), Atom::Operand(2, values(&["x", "y"], false)), Atom::Count(3)];
    assert_eq!(atoms(1, 0), either);
    assert_eq!(atoms(1, 1), [Atom::Count(2)]);
    assert_eq!(atoms(2, 0), [Atom::Value("-X".into(), values(&["GET", "[|]*"], true))]);
    assert_eq!(atoms(2, 1), [Atom::Operand(1, values(&["list", "-l"], true))]);
    assert_eq!(atoms(3, 0), [Atom::AnyOperand(values(&["x", "y"], false)), Atom::Count(1)]);
    assert_eq!(atoms(3, 1), [Atom::AnyOperand(values(&["a", "args=b"], true))]);
    for wrong in ["-X not", "-X=a not b", "-X|-r not a", "-X not a b", "or -X"] {
        let text = format!("x: x\n  -r\n  -X <text>\n  does if {wrong}: read a\n");
        assert_eq!(
            problem(&text).2,
            format!(
                "invalid condition `{wrong}`: write `-x`, `-x|-y`, `-x=VALUE|VALUE`, `-x not VALUE|VALUE`, `args`, `no args`, `arg1=VALUE`, `not …`, joined by `and`"
            )
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in "([a-z:<>\\[\\]\",=|!#* -]{0,20}\n {0,6}){0,8}") {
        let _ = parse(&text, "test", &mut Shares::default());
    }
}

#[test]
fn shared_lines_stand_where_they_are_used() {
    let text = "share looks: how it looks\n  -a\n  use deeper\n  sub list: l\n    -b\nshare deeper: more\n  -c <read>\n\
        x: x\n  sub s: s\n    use looks\n    -d\n";
    let table = table(text);
    let inner = &table.level.subs[0].level;
    let names: Vec<&str> = inner.options.iter().map(|option| option.names[0].as_ref()).collect();
    assert_eq!(names, ["-a", "-c", "-d"]);
    assert_eq!(inner.subs[0].level.options[0].names, ["-b"]);
    assert_eq!(
        problem("x: x\n  -a\n  use nothing\n"),
        (3, 3, "unknown shared lines `nothing`: see programs/shared, or add a block `share nothing: …`".to_owned())
    );
    assert_eq!(
        problem("share a: a\n  use a\nx: x\n  use a\n").2,
        "unknown shared lines `a`: see programs/shared, or add a block `share a: …`".to_owned()
    );
    assert_eq!(problem("share a: a\n  -v\nx: x\n  -v\n  use a\n").2, "duplicate option `-v`".to_owned());
}

#[test]
fn tables_say_when_a_loaded_file_matters() {
    let table = table(
        "x: x\n  -f\n  loads project first: a.toml except b.* c\n  loads project first if -f: d with e f\n  needs: g h\n  needs first if -f: i\n  \
         hosts: x.example -f\n  -g => opaque\n",
    );
    let lines: Vec<_> = table.level.loads.iter().map(|line| (&line.then.matters, line.then.first)).collect();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            (&LoadMatters::SetsOther(words(&["b.*", "c"])), true),
            (&LoadMatters::Contains(words(&["e", "f"])), true),
            (&LoadMatters::Missing, false),
            (&LoadMatters::Missing, true),
        ]
    );
    assert_eq!(table.level.loads[1].condition.all.len(), 1);
    assert_eq!(table.level.hosts, Some(vec![HostPlace::Own("x.example".into()), HostPlace::Option("-f".into())]));
    for wrong in [
        "loads project: a except",
        "loads project: /a",
        "loads elsewhere: a",
        "needs: a with b",
        "loads project: a except b with c",
    ] {
        assert!(problem(&format!("x: x\n  {wrong}\n")).2.contains("loads"), "{wrong}");
    }
}

#[test]
fn tables_say_what_a_program_loads_heeds_and_derives() {
    let table = table(
        "x: x\n  -f <read>\n  --url <text>\n  loads project if not -f: Makefile *.mk\n  loads home: .xrc\n  heeds: X_* PAGER\n  \
         hosts: arg2 --url\n  args: <move adds .gz> <read drops .gz .tgz=.tar>+ <write pieces ?? ???>\n  sub s: s\n    hosts: none\n",
    );
    let level = &table.level;
    assert_eq!(
        level.loads[0].then,
        LoadedFiles {
            place: LoadPlace::Project,
            files: vec!["Makefile".into(), "*.mk".into()],
            matters: LoadMatters::Found,
            first: false,
        }
    );
    assert_eq!(level.loads[0].condition.all.len(), 1);
    assert_eq!(level.loads[1].then.place, LoadPlace::Home);
    assert_eq!(level.heeds, ["X_*", "PAGER"]);
    assert_eq!(level.hosts, Some(vec![HostPlace::Operand(2), HostPlace::Option("--url".into())]));
    assert_eq!(level.subs[0].level.hosts, Some(Vec::new()));
    let derived: Vec<_> = level.args[0].then.iter().filter_map(|slot| slot.role.derived.clone()).collect();
    let drops = Derived::Drops(vec![(".gz".into(), String::new()), (".tgz".into(), ".tar".into())]);
    assert_eq!(derived, [Derived::Adds(".gz".into()), drops, Derived::Pieces(vec!["??".into(), "???".into()])]);
}

#[test]
fn a_long_line_goes_on_in_the_next() {
    let table = table(
        "x: x\n  -a \\\n      -b <text>  # why\n  args if -a| \\\n      -b: <read>\n  args if -a \\\n    |-b: <text>\n",
    );
    assert_eq!(table.level.options[0].names, ["-a", "-b"]);
    assert_eq!(table.level.args[1].condition.all[0].any.len(), 2);
}
