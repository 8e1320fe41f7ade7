//! Installing and uninstalling: everything is worked out first, then written file by file, then tried out, and put back if
//! any of it fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use similar::TextDiff;

use crate::canary::{CanaryError, Expected};
use crate::change::{Change, ChangeError, Content};
use crate::file::{self, FileError, Found};
use crate::mirror::HardDeny;
use crate::receipt::{Receipt, Written};
use crate::recipes::{Recipe, Request};
use crate::sighting::seconds;
use crate::surroundings::{Scope, Surroundings};

/// Why nothing was changed, or everything was put back.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The agent has no place for this.
    #[error("{agent} has nothing to plug into for the scope `{scope}`")]
    NoPlace {
        /// Which agent.
        agent: &'static str,
        /// For whom.
        scope: &'static str,
    },
    /// Only root installs for everybody.
    #[error("only root can install for everybody: sudo callgate install --managed")]
    NeedsRoot,
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be edited.
    #[error("{path}: {source}", path = path.display())]
    Change {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ChangeError,
    },
    /// It does not work.
    #[error("{0}; everything was put back as it was")]
    Canary(#[from] CanaryError),
}

/// Installs for one user, project or machine.
#[derive(Debug, Clone)]
pub struct Installer<'a> {
    /// Where things are.
    pub surroundings: &'a Surroundings,
    /// The callgate program that hooks start.
    pub program: &'a Path,
    /// For whom.
    pub scope: Scope,
    /// What is written into the agents' own rules as well.
    pub mirror: &'a [HardDeny],
    /// Whether the hook is recorded as trusted where an agent wants that.
    pub trust: bool,
    /// What the policy says of the calls by which it is tried out.
    pub expected: Expected,
}

/// What would be done to one file.
#[derive(Debug, Clone)]
pub struct Step {
    /// Which file.
    pub path: PathBuf,
    /// What is in it; `None` if it is not there.
    pub before: Option<String>,
    /// What would be in it; `None` if it would not be there.
    pub after: Option<String>,
    found: Found,
    /// What is in it without callgate.
    without: Option<String>,
    /// Whether it belongs to what is installed, and is not only taken back.
    wanted: bool,
    put: Content,
    created: Vec<Vec<String>>,
}

impl Step {
    /// Whether anything would change.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }

    /// The difference, as `diff -u` shows it.
    pub fn diff(&self) -> String {
        let name = |text: &Option<String>| match text {
            Some(_) => self.path.display().to_string(),
            None => "/dev/null".to_owned(),
        };
        let (old, new) = (self.before.clone().unwrap_or_default(), self.after.clone().unwrap_or_default());
        TextDiff::from_lines(&old, &new).unified_diff().header(&name(&self.before), &name(&self.after)).to_string()
    }

    fn executable(&self) -> bool {
        matches!(self.put, Content::Whole { executable: true, .. })
    }
}

/// What would be done, or was done.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// File by file.
    pub files: Vec<Step>,
    /// What the user has to do or know beside.
    pub advice: Vec<String>,
    /// What was shown when it was tried out.
    pub shown: Vec<&'static str>,
}

impl Steps {
    /// Whether anything would change.
    pub fn changes(&self) -> bool {
        self.files.iter().any(Step::changes)
    }
}

impl Installer<'_> {
    /// Trust once given is kept.
    fn request(&self, receipt: Option<&Receipt>) -> Request<'_> {
        let trusted = receipt.is_some_and(Receipt::is_trusted);
        Request {
            scope: self.scope,
            program: self.program,
            surroundings: self.surroundings,
            mirror: self.mirror,
            trust: self.trust || trusted,
        }
    }

    fn allowed(&self) -> Result<(), InstallError> {
        let root = rustix::process::geteuid().is_root();
        if self.scope == Scope::Managed && !root { Err(InstallError::NeedsRoot) } else { Ok(()) }
    }

    fn read(&self, path: &Path) -> Result<Found, FileError> {
        file::read(path, self.scope.owner(), &self.surroundings.ground(self.scope, path))
    }

    /// What installing would do. Nothing is changed.
    pub fn preview(&self, recipe: &dyn Recipe) -> Result<Steps, InstallError> {
        let (receipt, _) = Receipt::find(self.surroundings, recipe.name(), self.scope)?;
        let request = self.request(receipt.as_ref());
        let plan =
            recipe.plan(&request).ok_or(InstallError::NoPlace { agent: recipe.title(), scope: self.scope.name() })?;
        let mut advice = plan.advice;
        let mut files: Vec<Step> = Vec::new();
        for change in plan.changes {
            files.push(self.step(change, receipt.as_ref(), &mut advice)?);
        }
        let texts: BTreeMap<PathBuf, Option<String>> =
            files.iter().map(|step| (step.path.clone(), step.after.clone())).collect();
        let text = |path: &Path| match texts.get(path) {
            Some(text) => text.clone(),
            None => self.read(path).ok().and_then(|found| found.text),
        };
        for change in recipe.afterwards(&request, &text) {
            files.push(self.step(change, receipt.as_ref(), &mut advice)?);
        }
        // What an earlier installation wrote elsewhere is not wanted any more.
        for written in receipt.iter().flat_map(|receipt| &receipt.files) {
            if !files.iter().any(|step| step.path == written.path) {
                files.push(self.step_back(written)?);
            }
        }
        Ok(Steps { files, advice, shown: Vec::new() })
    }

    fn step(&self, change: Change, receipt: Option<&Receipt>, advice: &mut Vec<String>) -> Result<Step, InstallError> {
        let Change { path, content } = change;
        let failed = |source| InstallError::Change { path: path.clone(), source };
        let found = self.read(&path)?;
        let before = found.text.clone();
        let written = receipt.and_then(|receipt| receipt.files.iter().find(|written| written.path == path));
        // What is all there stays where it is, whatever was put around it.
        if let (Some(text), Some(written)) = (&before, written)
            && written.put.is_part_of(&content)
            && content.apply(Some(text)).map_err(failed)?.text == *text
        {
            let without = self.without(&found, written)?;
            return Ok(Step {
                path,
                after: before.clone(),
                before,
                found,
                without,
                wanted: true,
                put: written.put.clone(),
                created: written.created.clone(),
            });
        }
        let without = match written {
            Some(written) => self.without(&found, written)?,
            None => before.clone(),
        };
        let applied = content.apply(without.as_deref()).map_err(failed)?;
        if !applied.left_out.is_empty() {
            advice.push(format!(
                "{} says something else already, so that this was left out: {}",
                path.display(),
                applied.left_out.join("; ")
            ));
        }
        let after = if applied.text.is_empty() { without.clone() } else { Some(applied.text) };
        Ok(Step { path, before, after, found, without, wanted: true, put: applied.put, created: applied.created })
    }

    fn step_back(&self, written: &Written) -> Result<Step, InstallError> {
        let found = self.read(&written.path)?;
        let without = self.without(&found, written)?;
        Ok(Step {
            path: written.path.clone(),
            before: found.text.clone(),
            after: without.clone(),
            found,
            without,
            wanted: false,
            put: written.put.clone(),
            created: written.created.clone(),
        })
    }

    /// What is in a file without what was written: the very bytes of before if nothing else happened to it.
    fn without(&self, found: &Found, written: &Written) -> Result<Option<String>, InstallError> {
        let Some(text) = &found.text else { return Ok(None) };
        if file::hash(text) == written.after {
            let Some(before) = &written.before else { return Ok(None) };
            if let Ok(backup) = self.read(&file::backup_of(&written.path))
                && backup.hash().as_ref() == Some(before)
            {
                return Ok(backup.text);
            }
        }
        let removed = written
            .put
            .remove(text, &written.created)
            .map_err(|source| InstallError::Change { path: written.path.clone(), source })?;
        let left = removed.unwrap_or_else(|| text.clone());
        Ok(if left.is_empty() && written.before.is_none() { None } else { Some(left) })
    }

    /// Installs, tries it out, and puts everything back if it does not work.
    pub fn install(&self, recipe: &dyn Recipe) -> Result<Steps, InstallError> {
        self.allowed()?;
        let mut steps = self.preview(recipe)?;
        let plan = recipe
            .plan(&self.request(None))
            .ok_or(InstallError::NoPlace { agent: recipe.title(), scope: self.scope.name() })?;
        let now = seconds(SystemTime::now());
        let old = Receipt::find(self.surroundings, recipe.name(), self.scope)?.0;
        let written: Vec<Written> = steps
            .files
            .iter()
            .filter(|step| step.wanted)
            .filter_map(|step| {
                Some(Written {
                    path: step.path.clone(),
                    before: step.without.as_deref().map(file::hash),
                    after: file::hash(step.after.as_deref()?),
                    put: step.put.clone(),
                    created: step.created.clone(),
                })
            })
            .collect();
        let mut receipt = Receipt::new(recipe.name(), self.scope, self.program, now, written);
        if let (Some(old), false) = (&old, steps.changes()) {
            receipt.installed = old.installed;
        }
        // First, so that what a kill leaves behind can be undone.
        receipt.save(self.surroundings)?;
        let proof = self.write(&steps.files, Backups::Keep).and_then(|()| {
            let directory = self.surroundings.own_state().join("canary");
            std::fs::create_dir_all(&directory)
                .map_err(|source| FileError::System { path: directory.clone(), source })?;
            let shown = plan.canary.prove(&directory, self.expected);
            drop(std::fs::remove_dir(&directory));
            Ok(shown?)
        });
        match proof {
            Ok(shown) => steps.shown = shown,
            Err(error) => {
                self.put_back(&steps.files);
                match old {
                    Some(old) => old.save(self.surroundings)?,
                    None => Receipt::forget(self.surroundings, recipe.name(), self.scope)?,
                }
                return Err(error);
            }
        }
        receipt.proven = Some(now);
        receipt.save(self.surroundings)?;
        Ok(steps)
    }

    /// What uninstalling would do. Nothing is changed.
    pub fn preview_removal(&self, recipe: &dyn Recipe) -> Result<Steps, InstallError> {
        let mut files = Vec::new();
        if let (Some(receipt), _) = Receipt::find(self.surroundings, recipe.name(), self.scope)? {
            for written in &receipt.files {
                files.push(self.step_back(written)?);
            }
        } else if let Some(plan) = recipe.plan(&self.request(None)) {
            // Without a receipt only what can be nobody else's is taken out.
            for change in plan.changes {
                let put = change.content.surely_ours();
                let (path, created, before) = (change.path, Vec::new(), Some(String::new()));
                files.push(self.step_back(&Written { path, before, after: String::new(), put, created })?);
            }
        }
        Ok(Steps { files, ..Steps::default() })
    }

    /// Takes out exactly what was put in.
    pub fn uninstall(&self, recipe: &dyn Recipe) -> Result<Steps, InstallError> {
        self.allowed()?;
        let mut steps = self.preview_removal(recipe)?;
        if let Err(error) = self.write(&steps.files, Backups::Ignore) {
            self.put_back(&steps.files);
            return Err(error);
        }
        for step in &steps.files {
            let path = file::backup_of(&step.path);
            let Ok(backup) = self.read(&path) else { continue };
            if backup.text.is_none() {
                continue;
            }
            if backup.text == step.after {
                file::delete(&path, &backup, &self.surroundings.ground(self.scope, &path))?;
            } else {
                steps.advice.push(format!("what was there before callgate is still in {}", path.display()));
            }
        }
        Receipt::forget(self.surroundings, recipe.name(), self.scope)?;
        Ok(steps)
    }

    fn write(&self, steps: &[Step], backups: Backups) -> Result<(), InstallError> {
        let owner = self.scope.owner();
        for step in steps.iter().filter(|step| step.changes()) {
            if let (Backups::Keep, Some(text)) = (backups, &step.without) {
                let path = file::backup_of(&step.path);
                let found = self.read(&path)?;
                if found.text.as_ref() != Some(text) {
                    file::write(&path, text, &found.with_mode_of(&step.found), owner, false)?;
                }
            }
            match &step.after {
                Some(text) => file::write(&step.path, text, &step.found, owner, step.executable())?,
                None if step.before.is_some() => {
                    file::delete(&step.path, &step.found, &self.surroundings.ground(self.scope, &step.path))?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// As far as possible: what cannot be put back has its backup beside it.
    fn put_back(&self, steps: &[Step]) {
        for step in steps.iter().filter(|step| step.changes()) {
            let Ok(now) = self.read(&step.path) else { continue };
            if now.text == step.before {
                continue;
            }
            let ground = self.surroundings.ground(self.scope, &step.path);
            let restored = match &step.before {
                Some(text) => {
                    file::write(&step.path, text, &now.with_mode_of(&step.found), self.scope.owner(), step.executable())
                }
                None => file::delete(&step.path, &now, &ground),
            };
            let path = file::backup_of(&step.path);
            if let (Ok(()), Ok(backup)) = (restored, self.read(&path))
                && backup.text.is_some()
                && backup.text == step.before
            {
                drop(file::delete(&path, &backup, &ground));
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Backups {
    Keep,
    Ignore,
}
