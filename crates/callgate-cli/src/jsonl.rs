//! `callgate check --jsonl`: one request per line, one answer per line, in order.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use callgate::{Call, Gate};
use callgate_model::json;
use serde_json::{Map, Value, json};

use crate::choice::{CallArguments, DoorArguments};
use crate::outcome::{Outcome, Trouble};
use crate::{check, choice, shown};

/// How many gates are kept, one per directory.
const MAXIMUM_GATES: usize = 64;

/// Answers every line of standard input.
pub fn run(arguments: &CallArguments) -> Result<Outcome, Trouble> {
    let (directory, workspace) = choice::place(&arguments.place)?;
    let mut answerer = Answerer {
        policy: arguments.policy.policy.clone(),
        door: arguments.door.clone(),
        directory,
        workspace,
        shell: choice::shell(arguments),
        gates: HashMap::new(),
    };
    // Report a broken policy once, before reading any request.
    answerer.prepare()?;
    let mut input = BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut number = 0_u64;
    loop {
        number = number.saturating_add(1);
        let line =
            read_line(&mut input).map_err(|error| Trouble::new(format!("cannot read standard input: {error}")))?;
        let answer = match line {
            None => break,
            Some(Line::TooLong) => mistake(Value::Null, number, "the line is longer than 16 MiB"),
            Some(Line::Text(text)) if text.trim_ascii().is_empty() => continue,
            Some(Line::Text(text)) => answerer.answer(&text, number),
        };
        let written = output
            .write_all(shown::one_line(&answer).as_bytes())
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| if input.buffer().is_empty() { output.flush() } else { Ok(()) });
        if let Err(error) = written {
            return if error.kind() == std::io::ErrorKind::BrokenPipe {
                Ok(Outcome::Done)
            } else {
                Err(Trouble::new(format!("cannot write the answer: {error}")))
            };
        }
    }
    output.flush().map_err(|error| Trouble::new(format!("cannot write the answer: {error}")))?;
    Ok(Outcome::Done)
}

enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// Reads the next line without its line break. A line that is too long is skipped.
fn read_line(input: &mut impl BufRead) -> std::io::Result<Option<Line>> {
    let limit = json::MAXIMUM_SIZE;
    let mut line = Vec::new();
    let taken = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    if input.by_ref().take(taken).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(Line::Text(line)));
    }
    if line.len() <= limit {
        return Ok(Some(Line::Text(line)));
    }
    while !line.is_empty() && line.last() != Some(&b'\n') {
        line.clear();
        input.by_ref().take(1 << 20).read_until(b'\n', &mut line)?;
    }
    Ok(Some(Line::TooLong))
}

struct Answerer {
    policy: Option<String>,
    door: DoorArguments,
    directory: PathBuf,
    workspace: PathBuf,
    shell: Option<String>,
    gates: HashMap<PathBuf, Gate>,
}

impl Answerer {
    fn prepare(&mut self) -> Result<(), Trouble> {
        let directory = self.directory.clone();
        self.gate(&directory).map(|_| ())
    }

    /// The gate for calls from a directory. A named policy is the same for all directories.
    fn gate(&mut self, directory: &Path) -> Result<&Gate, Trouble> {
        let key = if self.policy.is_some() { PathBuf::new() } else { directory.to_owned() };
        if self.gates.len() >= MAXIMUM_GATES && !self.gates.contains_key(&key) {
            self.gates.clear();
        }
        match self.gates.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                Ok(entry.insert(choice::gate(self.policy.as_deref(), directory, &self.door)?))
            }
        }
    }

    fn answer(&mut self, text: &[u8], number: u64) -> Value {
        let request = match json::read(text) {
            Ok(Value::Object(request)) => request,
            Ok(_) => return mistake(Value::Null, number, "expected a JSON object"),
            Err(error) => return mistake(Value::Null, number, &error.to_string()),
        };
        let id = request.get("id").cloned().unwrap_or(Value::Null);
        let call = match self.call(request) {
            Ok(call) => call,
            Err(why) => return mistake(id, number, &why),
        };
        let directory = call.origin.directory.clone().unwrap_or_default();
        match self.gate(&directory) {
            Ok(gate) => match check::answer(gate, &gate.assess(&call)) {
                Value::Object(mut answer) => {
                    answer.insert("id".to_owned(), id);
                    Value::Object(answer)
                }
                other => other,
            },
            Err(trouble) => mistake(id, number, &trouble.to_string()),
        }
    }

    fn call(&self, mut request: Map<String, Value>) -> Result<Call, String> {
        let context = match request.remove("context") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(context)) => context,
            Some(_) => return Err("expected an object for \"context\"".to_owned()),
        };
        let directory = match text(&request, "cwd")?.or(text(&context, "cwd")?) {
            Some(directory) => self.directory.join(directory),
            None => self.directory.clone(),
        };
        let workspace = match text(&context, "workspace")? {
            Some(workspace) => self.directory.join(workspace),
            None if directory == self.directory => self.workspace.clone(),
            None => directory.clone(),
        };
        let call = match (request.remove("command"), text(&request, "tool")?.map(str::to_owned)) {
            (Some(Value::String(command)), None) => Call::new("Bash", json!({ "command": command })),
            (Some(_), None) => return Err("expected a string for \"command\"".to_owned()),
            (None, Some(tool)) => Call::new(tool.as_str(), request.remove("input").unwrap_or_else(|| json!({}))),
            (Some(_), Some(_)) => return Err("pass either \"command\" or \"tool\", not both".to_owned()),
            (None, None) => return Err("missing \"command\" or \"tool\"".to_owned()),
        };
        let mut call = call.directory(directory).workspace(workspace);
        call.origin.agent = text(&context, "agent")?.map(str::to_owned);
        call.origin.session = text(&context, "session")?.map(str::to_owned);
        call.origin.shell = text(&context, "shell")?.map(str::to_owned).or_else(|| self.shell.clone());
        Ok(call)
    }
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("expected a string for \"{key}\"")),
    }
}

/// The answer to a line that cannot be read: a deny, because nothing was judged.
fn mistake(id: Value, line: u64, why: &str) -> Value {
    json!({ "id": id, "decision": "deny", "error": why, "line": line, "reason": "cannot read the request", "effects": [] })
}
