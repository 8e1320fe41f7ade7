//! The user's own allow rules in an agent, which callgate overrides once it is installed: shown, and offered for import.

use std::path::{Path, PathBuf};

use callgate::Gate;
use callgate::policy::{Decision, Locations, Policy};
use callgate::show::visible;
use callgate_import::{
    ImportedPolicy, Importer, OverriddenRule, SettingsFile, SettingsLayer, import, overridden, settings_locations,
};
use callgate_install::HostEnvironment;
use serde_json::{Value, json};

use crate::choice::{DoorArguments, SandboxArgument};
use crate::outcome::Trouble;
use crate::{choice, terminal};

/// How many rules are printed.
const SHOWN: usize = 8;

/// Whether to import the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportWish {
    /// Import them.
    Import,
    /// Leave them.
    Leave,
    /// Ask at the terminal.
    Ask,
    /// Only say how.
    Say,
}

/// Rules of one owner that callgate overrides.
pub struct OwnRules {
    importer: Importer,
    /// Each with the decision after an import.
    rules: Vec<(OverriddenRule, Decision)>,
    imported: ImportedPolicy,
    /// The policy file that they would be written to.
    target: PathBuf,
    /// Whether that file counts only once it is trusted.
    of_project: bool,
}

/// What became of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Written {
    Yes,
    No,
    Failed(String),
}

/// The rules of an agent's user that callgate overrides: those for every project, and those for this one.
pub fn find(agent: &str, environment: &HostEnvironment) -> Result<Vec<OwnRules>, Trouble> {
    let Some(importer) = Importer::find(agent) else { return Ok(Vec::new()) };
    let files = crate::import::sources(&settings_locations(importer, environment), environment, false)?;
    let of_project = |file: &SettingsFile| matches!(file.layer, SettingsLayer::Project | SettingsLayer::Local);
    let mut found = Vec::new();
    for project in [false, true] {
        // In the home directory, the files of the user and of the project are the same.
        if project && environment.project == environment.home {
            continue;
        }
        let managed = |file: &SettingsFile| file.layer == SettingsLayer::Managed;
        let owned: Vec<SettingsFile> =
            files.iter().filter(|file| managed(file) || of_project(file) == project).cloned().collect();
        let target = match project {
            true => Some(environment.project.join("callgate.yaml")),
            false => Locations::of(&environment.project).user,
        };
        if let Some(target) = target
            && owned.iter().any(|file| !managed(file))
        {
            found.extend(of_files(importer, &owned, target, project, environment)?);
        }
    }
    Ok(found)
}

fn of_files(
    importer: Importer,
    files: &[SettingsFile],
    target: PathBuf,
    of_project: bool,
    environment: &HostEnvironment,
) -> Result<Option<OwnRules>, Trouble> {
    let trouble = |error: &dyn std::fmt::Display| Trouble::new(error.to_string());
    let door = DoorArguments { door: Some(importer.name().to_owned()), sandbox: SandboxArgument::Auto };
    let now = choice::gate(None, &environment.project, &door)?;
    let rules = overridden(importer, files, &now, environment).map_err(|error| trouble(&error))?;
    if rules.is_empty() {
        return Ok(None);
    }
    let imported = import(importer, files, environment).map_err(|error| trouble(&error))?;
    let policy = Policy::from_yaml(&imported.policy, "the imported policy").map_err(|error| trouble(&error))?;
    let after = Gate::builder()
        .policy(policy.with_home(&environment.home))
        .git_hardening(door.git_hardening()?)
        .sandbox(door.sandbox())
        .build();
    let judged = |rule: OverriddenRule| {
        let decision = rule.judged_by(&after);
        (rule, decision)
    };
    let rules = rules.into_iter().map(judged).collect();
    Ok(Some(OwnRules { importer, rules, imported, target, of_project }))
}

impl OwnRules {
    /// Shows the rules, imports them if that is wished, and returns what a program is told.
    pub fn settle(&self, wish: ImportWish, as_json: bool) -> Value {
        if !as_json {
            self.show();
        }
        let wanted = match wish {
            ImportWish::Import => true,
            ImportWish::Leave | ImportWish::Say => false,
            ImportWish::Ask => {
                let question = format!("Import these rules into {}?", visible(&self.target.to_string_lossy()));
                !self.target.exists() && terminal::agrees(&question).unwrap_or(false)
            }
        };
        let written = if wanted { self.write() } else { Written::No };
        if !as_json {
            self.conclude(wish, &written);
        }
        json!({
            "rules": self.rules.iter().map(|(rule, after)| json!({
                "origin": rule.origin, "call": rule.call, "decision": rule.decision, "after_import": after,
            })).collect::<Vec<_>>(),
            "target": self.target,
            "imported": written == Written::Yes,
            "error": match written { Written::Failed(why) => Some(why), _ => None },
        })
    }

    fn show(&self) {
        let title = self.importer.title();
        anstream::println!("    note: your own rules in {title} allow calls about which callgate decides otherwise:");
        for (rule, after) in self.rules.iter().take(SHOWN) {
            let after = match after {
                after if *after == rule.decision => "the same after an import".to_owned(),
                after => format!("{after} after an import"),
            };
            let (call, origin) = (visible(&rule.call), visible(&rule.origin));
            anstream::println!("        {:<8} {call}  ({origin}; {after})", rule.decision.to_string());
        }
        if self.rules.len() > SHOWN {
            anstream::println!("        … and {} more (--json shows all)", self.rules.len().saturating_sub(SHOWN));
        }
    }

    fn conclude(&self, wish: ImportWish, written: &Written) {
        let (agent, target) = (self.importer.name(), self.target.display().to_string());
        let target = visible(&target);
        match written {
            Written::Yes if self.of_project => anstream::println!(
                "    imported into {target}; it can only tighten the rules until you run `callgate trust`"
            ),
            Written::Yes => anstream::println!("    imported into {target}"),
            Written::Failed(why) => anstream::eprintln!("    not imported: {}", visible(why)),
            Written::No if wish == ImportWish::Leave => {}
            Written::No if self.target.exists() => anstream::println!(
                "        {target} exists; to see what an import would add: callgate import {agent} --dry-run"
            ),
            Written::No => anstream::println!("        to import them: callgate install {agent} --import"),
        }
    }

    fn write(&self) -> Written {
        if !self.imported.proof.holds() {
            let command = format!("callgate import {} --dry-run", self.importer.name());
            return Written::Failed(format!("a call that was denied would be allowed; see `{command}`"));
        }
        if let Err(error) = directory_of(&self.target) {
            return Written::Failed(format!("cannot write {}: {error}", self.target.display()));
        }
        match crate::import::write(&self.target, &self.imported.policy) {
            Ok(()) => Written::Yes,
            Err(trouble) => Written::Failed(trouble.to_string()),
        }
    }

    /// Whether an import was wished and failed.
    pub fn failed(told: &Value) -> bool {
        told.get("error").is_some_and(Value::is_string)
    }
}

fn directory_of(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    match path.parent() {
        Some(directory) => std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory),
        None => Ok(()),
    }
}
