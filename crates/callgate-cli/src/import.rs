//! `callgate import`: converts an agent's own permission rules into a policy.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use callgate::show::brief;
use callgate_import::{
    ChangedDecision, ImportedPolicy, Importer, MAXIMUM_SIZE, SettingsFile, SettingsLayer, SettingsLocation, import,
    settings_locations,
};
use callgate_install::{HostEnvironment, holds_only_own_denies};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::outcome::{Outcome, Trouble};

/// How many examples of each kind are printed.
const SHOWN: usize = 8;
/// The most files in a directory of rules.
const MAXIMUM_FILES: usize = 1000;

pub const EXAMPLES: &str = "Examples:
  callgate import claude --dry-run
  callgate import codex --output ~/.config/callgate/callgate.yaml
  callgate import gemini --from policies/team.toml --from settings.json

Exit codes: 0 imported · 1 nothing written, because a denied call would become allowed · 2 a file could not be read";

/// The arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// The agent
    #[arg(value_enum)]
    pub agent: Agent,
    /// Read these files instead of the agent's own
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// Where to write the policy; an existing file is not overwritten
    #[arg(long, value_name = "FILE", default_value = "callgate.yaml")]
    pub output: PathBuf,
    /// Print the policy instead of writing it
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The agents whose rules can be read.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Agent {
    /// Claude Code: `permissions` in its settings
    Claude,
    /// Codex: *.rules and config.toml
    Codex,
    /// Gemini CLI: policies/*.toml and `tools` in its settings
    Gemini,
    /// OpenCode: `permission` in its configuration
    Opencode,
}

impl From<Agent> for Importer {
    fn from(agent: Agent) -> Self {
        match agent {
            Agent::Claude => Importer::Claude,
            Agent::Codex => Importer::Codex,
            Agent::Gemini => Importer::Gemini,
            Agent::Opencode => Importer::OpenCode,
        }
    }
}

/// Reads, translates and compares the rules, and writes the policy if nothing becomes looser.
pub fn run(arguments: &ImportArguments) -> Result<Outcome, Trouble> {
    let importer = Importer::from(arguments.agent);
    let environment = crate::agents::environment()?;
    let places = if arguments.from.is_empty() {
        settings_locations(importer, &environment)
    } else {
        let named = |path: &PathBuf| SettingsLocation {
            path: environment.project.join(path),
            extension: None,
            layer: layer(path, &environment),
        };
        arguments.from.iter().map(named).collect()
    };
    let sources = sources(&places, &environment, !arguments.from.is_empty())?;
    if sources.is_empty() {
        let looked: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
        return Err(Trouble::new(format!(
            "found no settings of {}; looked for {}",
            importer.title(),
            looked.join(", ")
        )));
    }
    let imported = import(importer, &sources, &environment).map_err(|error| Trouble::new(error.to_string()))?;
    let holds = imported.proof.holds();
    if holds && !arguments.dry_run {
        write(&arguments.output, &imported.policy)?;
    }
    if arguments.json {
        let written = (holds && !arguments.dry_run).then(|| arguments.output.display().to_string());
        let read: Vec<String> = sources.iter().map(|source| source.path.display().to_string()).collect();
        anstream::println!(
            "{}",
            json!({
                "agent": importer.name(), "read": read, "rules": imported.rules, "holds": holds, "written": written,
                "policy": imported.policy, "notes": imported.notes, "proof": imported.proof,
            })
        );
    } else {
        if arguments.dry_run {
            anstream::println!("{}", imported.policy);
        }
        report(importer, &imported, sources.len());
        if holds && !arguments.dry_run {
            anstream::println!(
                "wrote {}; it can only tighten the rules until you run `callgate trust`",
                arguments.output.display()
            );
        } else if !holds {
            anstream::println!("nothing was written");
        }
    }
    Ok(if holds { Outcome::Done } else { Outcome::Found })
}

/// The layer of a file that was named.
fn layer(path: &Path, environment: &HostEnvironment) -> SettingsLayer {
    if environment.project.join(path).starts_with(&environment.project) {
        SettingsLayer::Project
    } else {
        SettingsLayer::User
    }
}

/// Reads the files that exist, without those that callgate itself wrote. A file that was named must exist.
pub fn sources(
    places: &[SettingsLocation],
    environment: &HostEnvironment,
    required: bool,
) -> Result<Vec<SettingsFile>, Trouble> {
    let mut sources = Vec::new();
    for place in places {
        let files = match place.extension {
            None => vec![place.path.clone()],
            Some(ending) => files_in(&place.path, ending)?,
        };
        for path in files {
            match text(&path) {
                Ok(text) if !required && holds_only_own_denies(&text, &environment.home) => {}
                Ok(text) => sources.push(SettingsFile::new(path, place.layer, text, environment)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => {}
                // It may deny something, so do not skip it.
                Err(error) => return Err(Trouble::new(format!("cannot read {}: {error}", path.display()))),
            }
        }
    }
    Ok(sources)
}

/// The files of a directory with this ending, in order.
fn files_in(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, Trouble> {
    let trouble = |error: std::io::Error| Trouble::new(format!("cannot read {}: {error}", directory.display()));
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(trouble(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(trouble)?.path();
        if path.extension().is_some_and(|extension| extension == ending) {
            files.push(path);
        }
        if files.len() > MAXIMUM_FILES {
            return Err(Trouble::new(format!("{} has more than {MAXIMUM_FILES} files", directory.display())));
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a regular file up to the size limit.
fn text(path: &Path) -> std::io::Result<String> {
    let invalid = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    // A pipe is refused before it is opened: opening alone may block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(invalid("it is no file".to_owned()));
    }
    let limit = u64::try_from(MAXIMUM_SIZE).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > MAXIMUM_SIZE {
        return Err(invalid(format!("it is larger than {MAXIMUM_SIZE} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8 text".to_owned()))
}

/// Writes a policy into a new file.
pub fn write(path: &Path, policy: &str) -> Result<(), Trouble> {
    let shown = path.display();
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            Trouble::new(format!("{shown} already exists; pass another name with --output, or preview with --dry-run"))
        } else {
            Trouble::new(format!("cannot write {shown}: {error}"))
        }
    })?;
    file.write_all(policy.as_bytes()).map_err(|error| Trouble::new(format!("cannot write {shown}: {error}")))
}

fn report(importer: Importer, imported: &ImportedPolicy, files: usize) {
    let proof = &imported.proof;
    let ending = if files == 1 { "" } else { "s" };
    anstream::println!("{}: {} rules in {files} file{ending}", importer.title(), imported.rules);
    if !imported.notes.is_empty() {
        anstream::println!("\nnot translated exactly ({})", imported.notes.len());
        for note in &imported.notes {
            anstream::println!("  {}: {}: {}", brief(&note.origin), note.outcome.words(), brief(&note.why));
        }
    }
    anstream::println!(
        "\nchecked {} example calls: the old rules denied {} and asked about {}",
        proof.examples,
        proof.denied,
        proof.asked
    );
    if proof.left_out > 0 {
        anstream::println!("  {} more were not checked", proof.left_out);
    }
    let (good, bad) = (colour(AnsiColor::Green), colour(AnsiColor::Red));
    if proof.holds() {
        anstream::println!("  {good}none of them is allowed now{good:#}");
    } else {
        anstream::println!("  {bad}denied or asked about before, now allowed ({}){bad:#}", proof.loosened.len());
        changes(&proof.loosened);
    }
    for (title, list) in [
        ("denied before, now asked about", &proof.softened),
        ("allowed before, now asked about or denied", &proof.tightened),
        ("asked about before without a rule, now allowed", &proof.quieter),
    ] {
        if !list.is_empty() {
            anstream::println!("  {title} ({})", list.len());
            changes(list);
        }
    }
    anstream::println!();
}

fn changes(list: &[ChangedDecision]) {
    for change in list.iter().take(SHOWN) {
        anstream::println!("    {}", change.shown());
    }
    if list.len() > SHOWN {
        anstream::println!("    … and {} more (--json shows all)", list.len().saturating_sub(SHOWN));
    }
}

fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into())).bold()
}
