//! What is remembered of an agent's session from call to call: where it began, what was decided, what was written.
//!
//! One file a session, in the user's state directory, mode 0600. Hooks run side by side, so lines are only ever appended, each
//! with one write.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use callgate::call::Call;
use callgate_agents::Incoming;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// More than this is not remembered: then everything is asked about again that memory would have answered.
const LONGEST: u64 = 4 << 20;

/// Of one call, so many files are remembered.
const MOST_WRITTEN: usize = 100;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// Where the session began. The first such line counts.
    Began(PathBuf),
    /// A call that was let pass or left to the agent's user: what it is recognised by, and its id in the log.
    Judged(String, Option<String>),
    /// A file that a call which was let pass may have written.
    Wrote(PathBuf),
}

/// A session.
pub struct Session {
    file: Option<File>,
    lines: Vec<Line>,
    /// The project that the session is about.
    pub workspace: Option<PathBuf>,
    /// Nothing was remembered of it.
    pub is_new: bool,
}

impl Session {
    /// What is remembered of the session that an event belongs to.
    pub fn open(incoming: &Incoming, directory: Option<PathBuf>) -> Result<Self, String> {
        let origin = &incoming.origin;
        let Some(session) = origin.session.as_deref() else {
            let workspace = origin.workspace.clone().or(directory);
            return Ok(Self { file: None, lines: Vec::new(), workspace, is_new: false });
        };
        let trouble =
            |error: std::io::Error| format!("what callgate remembers of this session cannot be used: {error}");
        let path = path(origin.agent.as_deref().unwrap_or_default(), session)?;
        let mut file = open(&path).map_err(trouble)?;
        let mut text = String::new();
        Read::by_ref(&mut file).take(LONGEST).read_to_string(&mut text).map_err(trouble)?;
        // A line that was cut off by a kill is no line.
        let lines: Vec<Line> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let is_new = lines.is_empty();
        let mut opened = Self { file: Some(file), lines, workspace: None, is_new };
        let began = opened.lines.iter().find_map(|line| match line {
            Line::Began(directory) => Some(directory.clone()),
            _ => None,
        });
        // A directory that moves is the model's choice. It says where relative paths lead, not what the project is.
        let stays = origin.directory.clone().filter(|_| !incoming.directory_moves);
        let starts = origin.directory.clone().filter(|_| incoming.event == callgate_agents::Event::SessionStart);
        let workspace = origin.workspace.clone().or(began.clone()).or(stays).or(starts).or(directory);
        if let (None, Some(workspace)) = (began, &workspace) {
            opened.add(Line::Began(workspace.clone())).map_err(trouble)?;
        }
        opened.workspace = workspace;
        Ok(opened)
    }

    fn add(&mut self, line: Line) -> std::io::Result<()> {
        append(self.file.as_ref(), std::slice::from_ref(&line))?;
        self.lines.push(line);
        Ok(())
    }

    /// This call was let pass with what it writes, or left to the agent's user.
    pub fn passed(
        &self,
        incoming: &Incoming,
        call: &Call,
        id: Option<&str>,
        written: Vec<PathBuf>,
    ) -> std::io::Result<()> {
        let judged = Line::Judged(identity(incoming, call), id.map(str::to_owned));
        let written = written.into_iter().filter(|path| !self.has_written(path)).take(MOST_WRITTEN).map(Line::Wrote);
        let lines: Vec<Line> = std::iter::once(judged).chain(written).collect();
        append(self.file.as_ref(), &lines)
    }

    /// Whether a call of this session may have written this file.
    pub fn has_written(&self, path: &Path) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Wrote(written) if written == path))
    }

    /// The verdict that let this call pass: its id in the log, as far as it has one.
    pub fn verdict(&self, incoming: &Incoming, call: &Call) -> Option<Option<String>> {
        let identity = identity(incoming, call);
        self.lines.iter().rev().find_map(|line| match line {
            Line::Judged(judged, id) if *judged == identity => Some(id.clone()),
            _ => None,
        })
    }
}

/// Appends lines with one write.
fn append(file: Option<&File>, lines: &[Line]) -> std::io::Result<()> {
    let Some(mut file) = file else { return Ok(()) };
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    file.write_all(&text)
}

/// What a call is recognised by afterwards: the agent's own id, or else its tool and input.
fn identity(incoming: &Incoming, call: &Call) -> String {
    match &incoming.call_id {
        Some(id) => id.clone(),
        None => {
            let mut hasher = Sha256::new();
            hasher.update(call.tool.to_string());
            hasher.update([0]);
            hasher.update(call.input.to_string());
            hexadecimal(&hasher.finalize())
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The file of a session. Its name says nothing of what the agent calls it, so that no name leads elsewhere.
fn path(agent: &str, session: &str) -> Result<PathBuf, String> {
    let digest = hexadecimal(&Sha256::digest(format!("{agent}\0{session}")));
    let state = callgate::directories::state().ok_or("there is no home directory to remember sessions in")?;
    Ok(state.join("sessions").join(digest))
}

fn open(path: &Path) -> std::io::Result<File> {
    let attempt =
        || OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(NOFOLLOW).open(path);
    match attempt() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let directory = path.parent().unwrap_or(path);
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            attempt()
        }
        other => other,
    }
}

const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
