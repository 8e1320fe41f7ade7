//! Installing and uninstalling: all changes are prepared first, then written file by file, then tested, and reverted if
//! anything fails.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use similar::TextDiff;

use crate::canary::{CanaryError, CanaryExpectation};
use crate::content::{FileContent, SettingsChange};
use crate::environment::{HostEnvironment, InstallScope};
use crate::error::EditError;
use crate::file::{self, FileError, FileSnapshot};
use crate::hard_denies::HardDeny;
use crate::receipt::{InstallReceipt, WrittenFile};
use crate::recipes::{InstallPlan, InstallRequest, Recipe};
use crate::sighting::seconds;

/// Why nothing was installed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The agent does not support hooks in this scope.
    #[error("{agent} does not support hooks for the scope `{scope}`")]
    UnsupportedScope {
        /// The agent.
        agent: &'static str,
        /// The scope.
        scope: &'static str,
    },
    /// Only root can install for everybody.
    #[error("only root can install for everybody; run: sudo callgate install --managed")]
    NeedsRoot,
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file cannot be edited.
    #[error("{path}: {source}", path = path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: EditError,
    },
    /// The hook failed its test.
    #[error("{0}; all changes were reverted")]
    Canary(#[from] CanaryError),
}

/// Installs callgate for one user, project or machine.
#[derive(Debug, Clone)]
pub struct Installer<'a> {
    /// The host.
    pub environment: &'a HostEnvironment,
    /// The callgate program that hooks start.
    pub program: &'a Path,
    /// For whom to install.
    pub scope: InstallScope,
    /// The denies to write into the agents' own rules.
    pub denies: &'a [HardDeny],
    /// Whether to mark the hook as trusted where an agent requires it.
    pub trust: bool,
    /// Who answers questions: the value of `callgate hook --ask` that hooks are started with, if any.
    pub ask: Option<&'a str>,
    /// What the policy decides about the calls that test a hook.
    pub expected: CanaryExpectation,
}

/// A change to one file.
#[derive(Debug, Clone)]
pub struct FileStep {
    /// The file.
    pub path: PathBuf,
    /// Its content before; `None` if it does not exist.
    pub before: Option<String>,
    /// Its content after; `None` if it is removed.
    pub after: Option<String>,
    found: FileSnapshot,
    /// Its content without callgate.
    without: Option<String>,
    /// Whether the file belongs to the new installation; otherwise an older one is removed from it.
    wanted: bool,
    put: FileContent,
    created: Vec<Vec<String>>,
}

impl FileStep {
    /// Whether the file changes.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }

    /// The change as a unified diff.
    pub fn diff(&self) -> String {
        let name = |text: &Option<String>| match text {
            Some(_) => self.path.display().to_string(),
            None => "/dev/null".to_owned(),
        };
        let (old, new) = (self.before.clone().unwrap_or_default(), self.after.clone().unwrap_or_default());
        TextDiff::from_lines(&old, &new).unified_diff().header(&name(&self.before), &name(&self.after)).to_string()
    }

    fn executable(&self) -> bool {
        matches!(self.put, FileContent::Whole { executable: true, .. })
    }
}

/// The changes of an installation or removal, planned or done.
#[derive(Debug, Clone, Default)]
pub struct InstallReport {
    /// The files.
    pub files: Vec<FileStep>,
    /// What the user has to do or know.
    pub advice: Vec<String>,
    /// What the test of the hook showed.
    pub shown: Vec<&'static str>,
    /// After a removal: the files that still start callgate.
    pub left: Vec<PathBuf>,
}

impl InstallReport {
    /// Whether any file changes.
    pub fn changes(&self) -> bool {
        self.files.iter().any(FileStep::changes)
    }
}

impl Installer<'_> {
    fn request(&self, receipt: Option<&InstallReceipt>) -> InstallRequest<'_> {
        InstallRequest {
            scope: self.scope,
            program: self.program,
            environment: self.environment,
            denies: self.denies,
            ask: self.ask,
            // Trust that was given once is kept.
            trust: self.trust || receipt.is_some_and(InstallReceipt::is_trusted),
        }
    }

    fn plan(&self, recipe: &Recipe, request: &InstallRequest<'_>) -> Result<InstallPlan, InstallError> {
        let unsupported = InstallError::UnsupportedScope { agent: recipe.title(), scope: self.scope.name() };
        recipe.plan(request).ok_or(unsupported)
    }

    fn check_rights(&self) -> Result<(), InstallError> {
        let root = rustix::process::geteuid().is_root();
        if self.scope == InstallScope::Managed && !root { Err(InstallError::NeedsRoot) } else { Ok(()) }
    }

    fn ground(&self, path: &Path) -> PathBuf {
        self.environment.ground(self.scope, path)
    }

    fn read(&self, path: &Path) -> Result<FileSnapshot, FileError> {
        file::read(path, self.scope.owner(), &self.ground(path))
    }

    /// Plans an installation without changing anything.
    pub fn preview(&self, recipe: &Recipe) -> Result<InstallReport, InstallError> {
        let (receipt, _) = InstallReceipt::find(self.environment, recipe.name(), self.scope)?;
        let request = self.request(receipt.as_ref());
        let plan = self.plan(recipe, &request)?;
        let mut advice = plan.advice;
        let mut files: Vec<FileStep> = Vec::new();
        for change in plan.changes {
            files.push(self.step(change, receipt.as_ref(), &mut advice)?);
        }
        let text = |path: &Path| match files.iter().find(|step| step.path == path) {
            Some(step) => step.after.clone(),
            None => self.read(path).ok().and_then(|found| found.text),
        };
        for change in recipe.afterwards(&request, &text) {
            files.push(self.step(change, receipt.as_ref(), &mut advice)?);
        }
        // Undo what an earlier installation wrote into other files.
        for written in receipt.iter().flat_map(|receipt| &receipt.files) {
            if !files.iter().any(|step| step.path == written.path) {
                files.push(self.step_back(written)?);
            }
        }
        Ok(InstallReport { files, advice, ..InstallReport::default() })
    }

    fn step(
        &self,
        change: SettingsChange,
        receipt: Option<&InstallReceipt>,
        advice: &mut Vec<String>,
    ) -> Result<FileStep, InstallError> {
        let SettingsChange { path, content } = change;
        let real = file::followed(&path, self.scope.owner(), &self.ground(&path))?;
        if real != path {
            advice.push(format!("{} is a link: {} is the file that is edited", path.display(), real.display()));
        }
        let failed = |source| InstallError::Edit { path: path.clone(), source };
        let found = self.read(&path)?;
        let before = found.text.clone();
        let written = receipt.and_then(|receipt| receipt.files.iter().find(|written| written.path == path));
        let without = match written {
            Some(written) => self.without(&found, written)?,
            None => before.clone(),
        };
        // If everything is there, it stays where it is, whatever was added around it.
        if let (Some(text), Some(written)) = (&before, written)
            && written.put.is_part_of(&content)
            && content.apply(Some(text)).map_err(failed)?.text == *text
        {
            let (put, created) = (written.put.clone(), written.created.clone());
            return Ok(FileStep { path, after: before.clone(), before, found, without, wanted: true, put, created });
        }
        let applied = content.apply(without.as_deref()).map_err(failed)?;
        if !applied.left_out.is_empty() {
            advice.push(format!(
                "{} already has other values, so these were left out: {}",
                path.display(),
                applied.left_out.join("; ")
            ));
        }
        let after = if applied.text.is_empty() { without.clone() } else { Some(applied.text) };
        Ok(FileStep { path, before, after, found, without, wanted: true, put: applied.put, created: applied.created })
    }

    fn step_back(&self, written: &WrittenFile) -> Result<FileStep, InstallError> {
        let found = self.read(&written.path)?;
        let without = self.without(&found, written)?;
        Ok(FileStep {
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

    /// The content of a file without what callgate wrote: the original bytes if nothing else changed it.
    fn without(&self, found: &FileSnapshot, written: &WrittenFile) -> Result<Option<String>, InstallError> {
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
            .map_err(|source| InstallError::Edit { path: written.path.clone(), source })?;
        let left = removed.unwrap_or_else(|| text.clone());
        Ok(if left.is_empty() && written.before.is_none() { None } else { Some(left) })
    }

    /// Installs the hook, tests it, and reverts all changes if it fails.
    pub fn install(&self, recipe: &Recipe) -> Result<InstallReport, InstallError> {
        self.check_rights()?;
        let mut report = self.preview(recipe)?;
        let plan = self.plan(recipe, &self.request(None))?;
        let now = seconds(SystemTime::now());
        let old = InstallReceipt::find(self.environment, recipe.name(), self.scope)?.0;
        let written = report.files.iter().filter(|step| step.wanted).filter_map(|step| {
            Some(WrittenFile {
                path: step.path.clone(),
                before: step.without.as_deref().map(file::hash),
                after: file::hash(step.after.as_deref()?),
                put: step.put.clone(),
                created: step.created.clone(),
            })
        });
        let mut receipt = InstallReceipt::new(recipe.name(), self.scope, self.program, now, written.collect());
        if let (Some(old), false) = (&old, report.changes()) {
            receipt.installed = old.installed;
        }
        // The receipt comes first, so that an interrupted installation can be undone.
        receipt.save(self.environment)?;
        let tested = self.write(&report.files, Backups::Keep).and_then(|()| {
            let directory = self.environment.own_state().join("canary");
            std::fs::create_dir_all(&directory)
                .map_err(|source| FileError::System { path: directory.clone(), source })?;
            let shown = plan.canary.prove(&directory, self.expected);
            drop(std::fs::remove_dir(&directory));
            Ok(shown?)
        });
        match tested {
            Ok(shown) => report.shown = shown,
            Err(error) => {
                self.revert(&report.files);
                match old {
                    Some(old) => old.save(self.environment)?,
                    None => InstallReceipt::forget(self.environment, recipe.name(), self.scope)?,
                }
                return Err(error);
            }
        }
        receipt.proven = Some(now);
        receipt.save(self.environment)?;
        Ok(report)
    }

    /// Plans a removal without changing anything.
    pub fn preview_removal(&self, recipe: &Recipe) -> Result<InstallReport, InstallError> {
        let mut files = Vec::new();
        if let (Some(receipt), _) = InstallReceipt::find(self.environment, recipe.name(), self.scope)? {
            for written in &receipt.files {
                files.push(self.step_back(written)?);
            }
        } else if let Some(plan) = recipe.plan(&self.request(None)) {
            // Without a receipt, remove only what nobody else would have written.
            for change in plan.changes {
                let put = change.content.unambiguous();
                let (path, created, before) = (change.path, Vec::new(), Some(String::new()));
                files.push(self.step_back(&WrittenFile { path, before, after: String::new(), put, created })?);
            }
        }
        let still = |step: &&FileStep| step.after.as_deref().is_some_and(|text| step.put.is_left_in(text));
        let left: Vec<PathBuf> = files.iter().filter(still).map(|step| step.path.clone()).collect();
        let advice = left.iter().map(|path| format!("{} still starts callgate: remove that by hand", path.display()));
        Ok(InstallReport { advice: advice.collect(), files, left, ..InstallReport::default() })
    }

    /// Removes exactly what was added.
    pub fn uninstall(&self, recipe: &Recipe) -> Result<InstallReport, InstallError> {
        self.check_rights()?;
        let mut report = self.preview_removal(recipe)?;
        if let Err(error) = self.write(&report.files, Backups::Ignore) {
            self.revert(&report.files);
            return Err(error);
        }
        for step in &report.files {
            let path = file::backup_of(&step.path);
            let Ok(backup) = self.read(&path) else { continue };
            if backup.text.is_none() {
                continue;
            }
            if backup.text == step.after {
                file::delete(&path, &backup, &self.ground(&path))?;
            } else {
                report.advice.push(format!("the content from before the installation is still in {}", path.display()));
            }
        }
        // What is left stays known.
        if report.left.is_empty() {
            InstallReceipt::forget(self.environment, recipe.name(), self.scope)?;
        }
        Ok(report)
    }

    fn write(&self, steps: &[FileStep], backups: Backups) -> Result<(), InstallError> {
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
                None if step.before.is_some() => file::delete(&step.path, &step.found, &self.ground(&step.path))?,
                None => {}
            }
        }
        Ok(())
    }

    /// Reverts the changes as far as possible. A file that cannot be reverted has its backup beside it.
    fn revert(&self, steps: &[FileStep]) {
        for step in steps.iter().filter(|step| step.changes()) {
            let Ok(now) = self.read(&step.path) else { continue };
            if now.text == step.before {
                continue;
            }
            let (owner, ground) = (self.scope.owner(), self.ground(&step.path));
            let reverted = match &step.before {
                Some(text) => file::write(&step.path, text, &now.with_mode_of(&step.found), owner, step.executable()),
                None => file::delete(&step.path, &now, &ground),
            };
            let path = file::backup_of(&step.path);
            if let (Ok(()), Ok(backup)) = (reverted, self.read(&path))
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
