//! What other sandboxes do with the same cases, as a document.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::case;
use crate::escapes::run_all;
use crate::run::{Outcome, Wrapper};
use crate::work;

struct Tool {
    name: &'static str,
    wrapper: Wrapper,
    note: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool { name: "callgate", wrapper: Wrapper::Callgate, note: "`callgate run --contain`" },
    Tool {
        name: "bwrap",
        wrapper: Wrapper::Bubblewrap,
        note: "bubblewrap as people write it by hand: `bwrap --ro-bind / / --bind WORKSPACE WORKSPACE --unshare-all --die-with-parent --new-session --dev /dev --proc /proc --tmpfs /tmp`",
    },
    Tool {
        name: "Codex",
        wrapper: Wrapper::Other("CALLGATE_CODEX"),
        note: "`codex sandbox` with `sandbox_mode=\"workspace-write\"` (npm `@openai/codex`)",
    },
    Tool {
        name: "sandbox-runtime",
        wrapper: Wrapper::Other("CALLGATE_SRT"),
        note: "`srt` with the workspace writable, `~/.ssh` and `~/.aws` unreadable and one allowed domain (npm `@anthropic-ai/sandbox-runtime`)",
    },
];

/// Tools whose program is not named in the environment are left out.
fn present(tool: &Tool) -> bool {
    match tool.wrapper {
        Wrapper::Other(variable) => std::env::var_os(variable).is_some(),
        _ => true,
    }
}

const INTRODUCTION: &str = "\
# What sandboxes do with the cases of the escape suite

This page is written by a test, which runs every case of `crates/callgate-cli/tests/contained/cases` as an ordinary user in each tool:

```console
$ CALLGATE_CODEX=… CALLGATE_SRT=… cargo test -p callgate-cli --test contained -- --ignored what_other_sandboxes_do
```

The variables name programs that run their arguments in Codex' and Anthropic's sandbox; a tool that is not named is left out. A case counts only
if it does harm without a sandbox on the same machine. *Out* means that the suite saw harm outside. That is not always a defect of the tool: the others
do not promise to hide files, to protect the names of every editor and agent, or to keep their own start away from a hostile `PATH`.

";

#[test]
#[ignore = "writes docs/sandbox-cases.md; needs the other sandboxes"]
fn what_other_sandboxes_do() {
    let applicable: BTreeMap<String, bool> = run_all(case::all(), true, Wrapper::None)
        .into_iter()
        .map(|(case, outcome)| (case.id, !outcome.harm.is_empty()))
        .collect();
    let cases: Vec<_> = case::all().into_iter().filter(|case| applicable.get(&case.id) == Some(&true)).collect();
    let tools: Vec<&Tool> = TOOLS.iter().filter(|tool| present(tool)).collect();
    let mut columns: Vec<BTreeMap<String, Outcome>> = Vec::new();
    let mut work_done = Vec::new();
    for tool in &tools {
        columns.push(
            run_all(cases.clone(), true, tool.wrapper).into_iter().map(|(case, outcome)| (case.id, outcome)).collect(),
        );
        let (works, not_here, fails) = work::all(tool.wrapper);
        println!("{}: {fails:#?}", tool.name);
        work_done.push((works, works + fails.len()));
        assert!(not_here.len() < 10, "{not_here:?}");
    }
    let mut page = INTRODUCTION.to_owned();
    for tool in &tools {
        writeln!(page, "- **{}**: {}", tool.name, tool.note).expect("a string takes text");
    }
    let heads: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let line = |page: &mut String, cells: Vec<String>| {
        writeln!(page, "| {} |", cells.join(" | ")).expect("a string takes text")
    };
    let table = |page: &mut String, first: &[&str]| {
        page.push('\n');
        line(page, first.iter().chain(&heads).map(|cell| (*cell).to_owned()).collect());
        line(page, vec!["---".to_owned(); first.len() + heads.len()]);
    };
    page.push_str("\n## Cases that got out\n");
    table(&mut page, &["class", "cases"]);
    let mut classes: Vec<&str> = cases.iter().map(|case| case.class).collect();
    classes.dedup();
    classes.push("");
    for class in classes {
        let of: Vec<_> = cases.iter().filter(|case| class.is_empty() || case.class == class).collect();
        let mut cells = vec![if class.is_empty() { "all".to_owned() } else { class.to_owned() }, of.len().to_string()];
        for column in &columns {
            cells.push(
                of.iter()
                    .filter(|case| column.get(&case.id).is_some_and(|outcome| !outcome.harm.is_empty()))
                    .count()
                    .to_string(),
            );
        }
        line(&mut page, cells);
    }
    let mut cells = vec!["ordinary work that goes through".to_owned(), String::new()];
    cells.extend(work_done.iter().map(|(works, all)| format!("{works} of {all}")));
    line(&mut page, cells);
    page.push_str("\n## Case by case\n");
    table(&mut page, &["case", "what is attempted"]);
    for case in &cases {
        let mut cells = vec![format!("`{}`", case.id), case.title.replace('|', "\\|")];
        for column in &columns {
            cells.push(match column.get(&case.id) {
                Some(outcome) if !outcome.harm.is_empty() => "**out**".to_owned(),
                Some(outcome) if outcome.refused => "refused".to_owned(),
                Some(_) => "held".to_owned(),
                None => "-".to_owned(),
            });
        }
        line(&mut page, cells);
    }
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox-cases.md");
    std::fs::write(place, page).expect("the page can be written");
}
