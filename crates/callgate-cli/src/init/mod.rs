//! `callgate init`: looks at the project and writes a policy that fits it, explained line by line.
//!
//! Every line is tried before the file is written: what does not load, does not hold or is decided otherwise by the bundled policy
//! is left out of the rules, and shown in a comment.

mod look;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use callgate::assess::Assessor;
use callgate::git::GitHardening;
use callgate::policy::{Decision, Policy, Severity};
use callgate::{Call, Gate, SandboxSupport};
use callgate_model::fence::Protection;
use clap::{Args, ValueEnum};
use look::{Found, FoundCommand, Purpose};
use serde_json::json;

use crate::outcome::{Outcome, Trouble};

const TEMPLATE: &str = include_str!("template.yaml");

/// The arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The bundled policy to extend
    #[arg(long, value_enum, default_value = "standard")]
    pub from: Bundled,
    /// Where to write it; the directory is the project that is looked at
    #[arg(default_value = "callgate.yaml")]
    pub path: std::path::PathBuf,
    /// Print what was found and what was written as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the file instead of writing it
    #[arg(long)]
    pub dry_run: bool,
}

/// The bundled policies.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Bundled {
    /// Unfamiliar code, or an agent you do not trust yet
    Strict,
    /// A developer at work
    Standard,
    /// Your own repository, whose code you would start unread
    Relaxed,
    /// A throw-away machine
    Permissive,
    /// Runs without a person
    Unattended,
}

impl Bundled {
    /// The name in `extends:`.
    pub fn name(self) -> &'static str {
        match self {
            Bundled::Strict => "strict",
            Bundled::Standard => "standard",
            Bundled::Relaxed => "relaxed",
            Bundled::Permissive => "permissive",
            Bundled::Unattended => "unattended",
        }
    }
}

/// Writes the file. An existing file is not overwritten.
pub fn run(arguments: &InitArguments) -> Result<Outcome, Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))?;
    let place = here.join(&arguments.path);
    let project = place.parent().unwrap_or(&here);
    let shown = arguments.path.display();
    let exists = || Trouble::new(format!("{shown} already exists; pass another path to write a second policy"));
    if !arguments.dry_run && place.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let found = look::look(project);
    let sandbox = callgate_sandbox::choose(&Protection::ALL, None);
    let backend = sandbox.as_ref().ok().map(|backend| backend.as_str());
    let fit = Fit::new(arguments.from, project, &found)?;
    let text = fit.text(&found, backend);
    if !arguments.dry_run {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&place).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::AlreadyExists => exists(),
                _ => Trouble::new(format!("cannot write {shown}: {error}")),
            }
        })?;
        file.write_all(text.as_bytes()).map_err(|error| Trouble::new(format!("cannot write {shown}: {error}")))?;
    }
    let next = ["callgate trust", "callgate install"];
    if arguments.json {
        let verdicts: Vec<_> = fit
            .judged
            .iter()
            .map(|judged| json!({ "command": judged.found.example, "named_by_rule": judged.ruled, "with_sandbox": judged.with, "without_sandbox": judged.without }))
            .collect();
        let rules: Vec<&str> = fit.rules.iter().map(|rule| rule.name).collect();
        anstream::println!(
            "{:#}",
            json!({
                "path": arguments.path, "written": !arguments.dry_run, "from": arguments.from.name(), "found": found,
                "verdicts": verdicts, "rules": rules, "sandbox": backend, "text": text, "next": next,
            })
        );
        return Ok(Outcome::Done);
    }
    if arguments.dry_run {
        anstream::print!("{text}");
        return Ok(Outcome::Done);
    }
    anstream::println!("wrote {shown}, which extends '{}'", arguments.from.name());
    for line in found_lines(&found) {
        anstream::println!("{line}");
    }
    anstream::println!("{}", sandbox_line(backend));
    anstream::println!(
        "next: read the file; `callgate trust` lets it loosen rules, too (until then it can only tighten them);"
    );
    anstream::println!("      `callgate install` puts callgate in front of your agents");
    Ok(Outcome::Done)
}

fn sandbox_line(backend: Option<&str>) -> String {
    match backend {
        Some(backend) => format!("this machine has a sandbox ({backend}): contained commands run without a question"),
        None => "this machine has no sandbox that holds everything: the rules that contain do not apply (see `callgate doctor`)".to_owned(),
    }
}

fn found_lines(found: &Found) -> Vec<String> {
    let or_none = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    vec![
        format!("manifests: {}", or_none(found.manifests.iter().map(String::as_str).collect())),
        format!("commands:  {}", or_none(found.commands.iter().map(|found| found.example.as_str()).collect())),
        format!("git hooks: {}", or_none(found.git_hooks.iter().map(String::as_str).collect())),
        format!("agents:    {}", or_none(found.agents.clone())),
    ]
}

/// A rule that is written, with the lines that it consists of.
struct Rule {
    name: &'static str,
    /// What stands above it.
    comment: String,
    /// The keys in front of the patterns.
    before: &'static str,
    /// `commands` or `paths`.
    key: &'static str,
    /// Its patterns.
    lines: Vec<Line>,
    /// The keys behind the patterns.
    after: &'static str,
    /// A command that it must not match.
    misses: Option<String>,
}

/// A pattern with an example.
#[derive(Debug, Clone)]
struct Line {
    pattern: String,
    example: String,
    /// Where it comes from.
    source: String,
}

impl Rule {
    fn text(&self) -> String {
        let mut text = String::new();
        for line in self.comment.lines() {
            let _ = writeln!(text, "  # {line}");
        }
        let _ = writeln!(text, "  - name: {}", self.name);
        text.push_str(self.before);
        let _ = writeln!(text, "    {}:", self.key);
        for Line { pattern, source, .. } in &self.lines {
            let _ = writeln!(text, "      - {:<40} # {source}", quoted(pattern));
        }
        text.push_str(self.after);
        let _ = writeln!(text, "    matches:");
        for line in &self.lines {
            let _ = writeln!(text, "      - {}", quoted(&line.example));
        }
        if let Some(other) = &self.misses {
            let _ = writeln!(text, "    misses: [{}]", quoted(other));
        }
        text.push('\n');
        text
    }
}

/// JSON is YAML, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What is said about a command of the project.
struct Judged<'a> {
    found: &'a FoundCommand,
    /// Whether a rule of the file names it.
    ruled: bool,
    with: Decision,
    without: Decision,
}

/// The rules that hold in this project.
struct Fit<'a> {
    from: Bundled,
    project: &'a Path,
    /// The bundled policy alone.
    base: Arc<Policy>,
    rules: Vec<Rule>,
    judged: Vec<Judged<'a>>,
    others: [(&'static str, Decision); OTHERS.len()],
}

/// What people ask about first.
const OTHERS: [&str; 7] = [
    "git status",
    "git commit -m message",
    "git push",
    "curl https://example.com",
    "rm -r src",
    "npx some-package",
    "cat ~/.ssh/id_rsa",
];

const CONTAIN: &str = "    action: contain\n    reason: \"{effect}, inside the sandbox\"\n";
const CONTAIN_WITH_REGISTRIES: &str = "    action: contain
    network: [\"@registries\"]     # the registries that your own settings name, and the well-known ones
    reason: \"{effect}, inside the sandbox, with package registries\"
";
const CONTAINED: &str =
    "    instead_of: ask              # only where callgate would ask otherwise; what is denied stays denied
    needs: sandbox               # only where there is a sandbox
    effects: [run]
    code: [project, file]        # code of this project, nothing that was downloaded
";
const INSTALLED: &str = "    instead_of: ask
    needs: sandbox
    effects: [run]
    code: [project, file, fetched]  # packages and this project may run code when they are installed
";

/// The rules for commands that run contained: purpose, name, what they are, keys in front of and behind the commands.
const CONTAINING: [(Purpose, &str, &str, &str, &str); 4] = [
    (Purpose::Test, "our-tests", "Tests", CONTAINED, CONTAIN),
    (Purpose::Build, "our-builds", "Builds", CONTAINED, CONTAIN),
    (Purpose::Lint, "our-linters", "Linters and formatters", CONTAINED, CONTAIN),
    (Purpose::Install, "our-packages", "Commands for the packages of a manifest", INSTALLED, CONTAIN_WITH_REGISTRIES),
];

impl<'a> Fit<'a> {
    fn new(from: Bundled, project: &'a Path, found: &'a Found) -> Result<Self, Trouble> {
        let mut fit = Fit {
            from,
            project,
            base: Arc::new(Policy::bundled(from.name())?),
            rules: Vec::new(),
            judged: Vec::new(),
            others: OTHERS.map(|command| (command, Decision::Deny)),
        };
        let of = |purpose: Purpose| found.commands.iter().filter(move |found| found.purpose == purpose);
        let line = |found: &FoundCommand| Line {
            // An install with more words may install something else.
            pattern: match found.purpose {
                Purpose::Install => found.example.clone(),
                _ => format!("{} **", found.command),
            },
            example: found.example.clone(),
            source: found.source.clone(),
        };
        let mut published: Vec<Line> = of(Purpose::Publish).map(line).collect();
        if published.is_empty() {
            published.push(Line {
                pattern: "{cargo,npm,pnpm,yarn} publish **".to_owned(),
                example: "npm publish --tag next".to_owned(),
                source: "whatever comes".to_owned(),
            });
        }
        let test = of(Purpose::Test).next().map_or_else(|| "npm test".to_owned(), |found| found.example.clone());
        let publish = Rule {
            name: "never-publish",
            comment: "Releases are made by people. Write `ask` instead of `deny` to be asked.".to_owned(),
            before: "",
            key: "commands",
            lines: published,
            after: "    action: deny                 # allow, ask, deny, contain\n    reason: releases are made by people\n",
            misses: Some(test),
        };
        fit.offer(publish, &|_, _| true);

        let hooks = found.git_hooks.iter().filter(|place| *place != ".git/hooks" && project.join(place).is_dir());
        let hooks = hooks.map(|place| Line {
            pattern: format!("**/{place}/**"),
            example: format!("echo x > {place}/pre-commit"),
            source: "git hooks".to_owned(),
        });
        let hooks = Rule {
            name: "git-hooks",
            comment: "Git runs these files outside the sandbox, as you. callgate asks before an agent changes them."
                .to_owned(),
            before: "    effects: [write, delete]\n",
            key: "paths",
            lines: hooks.collect(),
            after: "    action: ask\n    reason: \"{effect}, which git runs by itself\"\n",
            misses: None,
        };
        fit.offer(hooks, &|old, new| new >= old);

        let missing = gate(Arc::clone(&fit.base), SandboxSupport::Missing);
        for (purpose, name, title, before, after) in CONTAINING {
            let without = of(purpose).map(|found| fit.decision(&missing, &found.example)).max();
            let otherwise = match without {
                Some(Decision::Allow) => "Without a sandbox they run free.",
                Some(Decision::Deny) => "Without a sandbox at least one of them is denied.",
                _ => "Without a sandbox callgate asks about them.",
            };
            let rule = Rule {
                name,
                comment: format!("{title} that were found here. {otherwise}"),
                before,
                key: "commands",
                lines: of(purpose).map(line).collect(),
                after,
                misses: None,
            };
            // What runs free already needs no rule, and what stays a question is not promised here.
            fit.offer(rule, &|old, new| old != Decision::Allow && new == Decision::Contain);
        }

        let policy = Arc::new(Policy::from_yaml(&fit.draft(), "callgate.yaml")?);
        let with = gate(Arc::clone(&policy), SandboxSupport::Available);
        let without = gate(policy, SandboxSupport::Missing);
        for command in &found.commands {
            let mut lines = fit.rules.iter().flat_map(|rule| &rule.lines);
            let ruled = lines.any(|line| line.example == command.example);
            let (with, without) = (fit.decision(&with, &command.example), fit.decision(&without, &command.example));
            fit.judged.push(Judged { found: command, ruled, with, without });
        }
        fit.others = OTHERS.map(|command| (command, fit.decision(&with, command)));
        Ok(fit)
    }

    /// Takes a rule with those of its lines that hold: the file loads, lints clean, its examples pass, and in this very project the
    /// decisions with a sandbox are as `wanted` (before and after).
    fn offer(&mut self, mut rule: Rule, wanted: &dyn Fn(Decision, Decision) -> bool) {
        let offered = std::mem::take(&mut rule.lines);
        self.rules.push(rule);
        if !self.accepts(offered.clone(), wanted) {
            for line in offered {
                self.accepts(vec![line], wanted);
            }
        }
        self.rules.pop_if(|rule| rule.lines.is_empty());
    }

    /// Adds lines to the last rule if all of them hold.
    fn accepts(&mut self, lines: Vec<Line>, wanted: &dyn Fn(Decision, Decision) -> bool) -> bool {
        let Some(rule) = self.rules.last_mut() else { return false };
        let before = rule.lines.len();
        let examples: Vec<String> = lines.iter().map(|line| line.example.clone()).collect();
        rule.lines.extend(lines);
        let holds = tried(&self.draft()).is_some_and(|policy| {
            let new = gate(policy, SandboxSupport::Available);
            let old = gate(Arc::clone(&self.base), SandboxSupport::Available);
            examples.iter().all(|example| wanted(self.decision(&old, example), self.decision(&new, example)))
        });
        if !holds && let Some(rule) = self.rules.last_mut() {
            rule.lines.truncate(before);
        }
        holds
    }

    /// What a gate says about a command in this project.
    fn decision(&self, gate: &Gate, command: &str) -> Decision {
        let mut call = Call::new("Bash", json!({ "command": command })).directory(self.project).workspace(self.project);
        call.origin.shell = Some("bash".to_owned());
        gate.assess(&call).map_or(Decision::Deny, |assessment| assessment.ruling().decision)
    }

    fn rule_lines(&self) -> String {
        let rules: String = self.rules.iter().map(Rule::text).collect();
        if rules.is_empty() { "  []\n\n".to_owned() } else { rules }
    }

    /// The file without its explanations.
    fn draft(&self) -> String {
        format!("version: 1\nextends: {}\nrules:\n{}", self.from.name(), self.rule_lines())
    }

    /// The file.
    fn text(&self, found: &Found, backend: Option<&str>) -> String {
        let mut lines = String::from("# Found here:\n");
        for line in found_lines(found) {
            let _ = writeln!(lines, "#   {line}");
        }
        let mut rest = String::new();
        let unruled = self.judged.iter().filter(|judged| !judged.ruled);
        let unruled = unruled.map(|judged| (judged.found.example.as_str(), judged.with));
        for (command, decision) in unruled.chain(self.others) {
            let _ = writeln!(rest, "#   {:<8} {command}", decision.to_string());
        }
        TEMPLATE
            .replace("{from}", self.from.name())
            .replace("{found}", lines.trim_end())
            .replace("{sandbox}", &format!("# When this file was written: {}.", sandbox_line(backend)))
            .replace("{rest}", rest.trim_end())
            .replace("{rules}", &self.rule_lines())
    }
}

fn gate(policy: Arc<Policy>, sandbox: SandboxSupport) -> Gate {
    Gate::builder().policy(policy).git_hardening(GitHardening::WhenNeeded).sandbox(sandbox).build()
}

/// The policy, if it loads, lints clean and its examples hold.
fn tried(text: &str) -> Option<Arc<Policy>> {
    let policy = Arc::new(Policy::from_yaml(text, "callgate.yaml").ok()?);
    let clean = callgate::policy::lint(&policy).iter().all(|finding| finding.severity <= Severity::Note)
        && Assessor::new(Arc::clone(&policy)).check_examples().iter().all(|checked| checked.failed.is_empty());
    clean.then_some(policy)
}
