//! What is remembered of an agent's session from call to call: where it began, what was let pass, what was written.
//!
//! One directory a session, in the user's state directory. Hooks run side by side, so files are only ever appended to, with one
//! write at a time. Before a tool runs only the beginning is read, so that a long session costs no more than a short one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use callgate::call::Call;
use callgate_hooks::{HookDetails, HookRequest};
use sha2::{Digest, Sha256};

/// Where the session began.
const BEGAN: &str = "began";
/// The calls that were let pass: what each is recognised by, its id in the log, and the digest of its permit if it has one.
const PASSED: &str = "passed";
/// The files that calls which were let pass may have written, as JSON strings.
const WRITTEN: &str = "written";

/// The questions that were left to the agent's own prompt: see `left.rs`.
pub(super) const LEFT: &str = "left";
/// In which states calls left the shells that the agent keeps: see `shells.rs`.
pub(super) const SHELLS: &str = "shells";

/// More than this of a file is not read: what is not remembered is noted or asked about once more.
const LONGEST: u64 = 16 << 20;
/// Of one call, so many files are remembered.
const MOST_WRITTEN: usize = 100;

/// A call that was let pass.
pub struct PassedCall {
    /// Its id in the log, if it has one.
    pub id: Option<String>,
    /// The digests of the permits that were issued for it, the latest first.
    pub permits: Vec<String>,
}

/// A session.
pub struct Session {
    /// `None`: the agent names no session, and nothing is remembered.
    directory: Option<PathBuf>,
    /// The project that the session is about.
    pub workspace: Option<PathBuf>,
    /// Nothing was remembered of it.
    pub is_new: bool,
}

impl Session {
    /// What is remembered of the session that an event belongs to. `here` is the hook's own working directory.
    pub fn open(incoming: &HookRequest, here: Option<PathBuf>) -> Result<Self, String> {
        let origin = &incoming.origin;
        let Some(session) = origin.session.as_deref() else {
            return Ok(Self { directory: None, workspace: origin.workspace.clone().or(here), is_new: false });
        };
        let trouble =
            |error: std::io::Error| format!("what callgate remembers of this session cannot be used: {error}");
        let directory = place(origin.agent.as_deref().unwrap_or_default(), session)?;
        let began = read(&directory.join(BEGAN)).map_err(trouble)?;
        // Hooks that began together wrote a line each: the first one counts.
        let began =
            began.as_deref().and_then(|text| text.lines().next()).and_then(|line| serde_json::from_str(line).ok());
        // A directory that moves is the model's choice. It says where relative paths lead, not what the project is.
        let stays = || origin.directory.clone().filter(|_| !incoming.directory_moves);
        let starts = || origin.directory.clone().filter(|_| incoming.details == HookDetails::SessionStart);
        let workspace = origin.workspace.clone().or(began.clone()).or_else(stays).or_else(starts).or(here);
        let is_new = began.is_none();
        if let (true, Some(workspace)) = (is_new, &workspace) {
            DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(trouble)?;
            append(&directory.join(BEGAN), &line(&workspace.to_string_lossy())).map_err(trouble)?;
        }
        Ok(Self { directory: Some(directory), workspace, is_new })
    }

    /// This call was handed over: it runs in place of the agent's, which may tell of either afterwards.
    pub fn handed_over(
        &self,
        incoming: &HookRequest,
        calls: [&Call; 2],
        id: &str,
        permit: &str,
    ) -> std::io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let [first, second] = calls.map(|call| identity(incoming, call));
        let mut lines = format!("{first} {id} {permit}\n");
        if first != second {
            lines.push_str(&format!("{second} {id} {permit}\n"));
        }
        append(&directory.join(PASSED), &lines)
    }

    /// This call was let pass with what it writes, or left to the agent's user.
    pub fn passed(
        &self,
        incoming: &HookRequest,
        call: &Call,
        id: Option<&str>,
        written: &[&Path],
    ) -> std::io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        append(&directory.join(PASSED), &format!("{} {}\n", identity(incoming, call), id.unwrap_or_default()))?;
        if written.is_empty() {
            return Ok(());
        }
        let lines: String = written.iter().take(MOST_WRITTEN).map(|path| line(&path.to_string_lossy())).collect();
        append(&directory.join(WRITTEN), &lines)
    }

    /// One of the session's files; `None` if not all of it can be read.
    pub(super) fn whole(&self, name: &str) -> Option<String> {
        let text = read(&self.directory.as_ref()?.join(name)).ok()?.unwrap_or_default();
        u64::try_from(text.len()).is_ok_and(|length| length < LONGEST).then_some(text)
    }

    /// Adds to one of the session's files.
    pub(super) fn note(&self, name: &str, text: &str) -> std::io::Result<()> {
        self.directory.as_ref().map_or(Ok(()), |directory| append(&directory.join(name), text))
    }

    /// The verdict that let this call pass.
    pub fn verdict(&self, incoming: &HookRequest, call: &Call) -> Option<PassedCall> {
        let identity = identity(incoming, call);
        let passed = self.remembered(PASSED);
        let entries = passed.lines().rev().filter_map(|line| line.split_once(' '));
        let mut verdict: Option<PassedCall> = None;
        // several hooks may have been told of one call
        for (_, rest) in entries.filter(|(passed, _)| *passed == identity) {
            let (id, permit) = rest.split_once(' ').map_or((rest, None), |(id, permit)| (id, Some(permit)));
            let id = Some(id.to_owned()).filter(|id| !id.is_empty());
            let found = verdict.get_or_insert(PassedCall { id, permits: Vec::new() });
            found.permits.extend(permit.map(str::to_owned));
        }
        verdict
    }

    /// Which of these files calls of this session may have written.
    pub fn written<'a>(&self, paths: &[&'a str]) -> Vec<&'a str> {
        if paths.is_empty() {
            return Vec::new();
        }
        let written = self.remembered(WRITTEN);
        paths.iter().copied().filter(|path| written.lines().any(|known| known == line(path).trim_end())).collect()
    }

    fn remembered(&self, name: &str) -> String {
        let text = self.directory.as_ref().and_then(|directory| read(&directory.join(name)).ok().flatten());
        text.unwrap_or_default()
    }
}

/// A text as one line.
fn line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

/// What a call is recognised by afterwards: the agent's own id, or else its tool and input.
pub(super) fn identity(incoming: &HookRequest, call: &Call) -> String {
    match &incoming.call_id {
        Some(id) => digest(&[id.as_bytes()]),
        None => contents(call),
    }
}

/// What a call is: its tool and its input.
pub(super) fn contents(call: &Call) -> String {
    digest(&[call.tool.to_string().as_bytes(), call.input.to_string().as_bytes()])
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hasher.update(part);
    }
    let mut digest = hex::encode(hasher.finalize());
    digest.truncate(32);
    digest
}

/// The directory of a session. Its name says nothing of what the agent calls it, so that no name leads elsewhere.
fn place(agent: &str, session: &str) -> Result<PathBuf, String> {
    let state = callgate::policy::directories::state().ok_or("there is no home directory to remember sessions in")?;
    Ok(state.join("sessions").join(digest(&[agent.as_bytes(), session.as_bytes()])))
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(NOFOLLOW).open(path)?;
    file.write_all(text.as_bytes())
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    let file: File = match OpenOptions::new().read(true).custom_flags(NOFOLLOW).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(Some(text))
}

const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
