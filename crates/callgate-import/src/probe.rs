//! Example calls: common ones, and those derived from rules.

use std::path::Path;

use callgate::Call;
use callgate::call::Tool;
use callgate_install::HostEnvironment;
use serde_json::{Value, json};

use crate::command::TextPattern;
use crate::path::PathPattern;

/// An example call, independent of any agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Probe {
    Shell(String),
    Read(String),
    Write(String),
    Edit(String),
    /// Searching the contents of a directory.
    Search(String),
    /// Listing the names in a directory.
    List(String),
    Fetch(String),
    WebSearch,
    /// A tool of an MCP server.
    Served {
        server: String,
        tool: String,
    },
    /// Any other tool of the agent itself.
    Tool(String),
}

/// The names of an agent's tools: `kind=name.parameter` with the main parameter, separated by spaces. The agent has no tool
/// for a kind that is missing.
#[derive(Debug)]
pub(crate) struct ToolNames(pub &'static str);

impl ToolNames {
    /// The name of the tool for a call.
    pub(crate) fn name(&self, probe: &Probe) -> Option<&'static str> {
        self.named(probe).map(|(name, _)| name)
    }

    /// Whether the agent has a tool of this name that takes a command, a path or a URL.
    pub(crate) fn has(&self, name: &str) -> bool {
        let tools = self.0.split_whitespace().filter_map(|tool| tool.split_once('=')?.1.split_once('.'));
        tools.into_iter().any(|(known, _)| known == name)
    }

    /// The name of the tool for a call, and its main parameter.
    fn named(&self, probe: &Probe) -> Option<(&'static str, &'static str)> {
        let kind = match probe {
            Probe::Shell(_) => "shell",
            Probe::Read(_) => "read",
            Probe::Write(_) => "write",
            Probe::Edit(_) => "edit",
            Probe::Search(_) => "search",
            Probe::List(_) => "list",
            Probe::Fetch(_) => "fetch",
            Probe::WebSearch => "web_search",
            Probe::Served { .. } | Probe::Tool(_) => return None,
        };
        let tools = self.0.split_whitespace().filter_map(|tool| tool.split_once('='));
        tools.filter(|(known, _)| *known == kind).find_map(|(_, tool)| tool.split_once('.'))
    }

    /// The input of a call, as the agent would write it.
    pub(crate) fn input(&self, probe: &Probe) -> Option<Value> {
        let (name, key) = match probe {
            Probe::Served { .. } | Probe::Tool(_) => return Some(json!({})),
            _ => self.named(probe)?,
        };
        Some(match probe {
            Probe::Write(path) | Probe::Edit(path) if name == "apply_patch" => {
                json!({ key: format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n") })
            }
            Probe::Write(path) => json!({ key: path, "content": "x" }),
            Probe::Edit(path) => json!({ key: path, "old_string": "a", "new_string": "b" }),
            Probe::Search(path) => json!({ key: path, "pattern": "x" }),
            Probe::List(path) => json!({ key: path, "pattern": "*" }),
            Probe::Shell(text) | Probe::Read(text) | Probe::Fetch(text) => json!({ key: text }),
            Probe::WebSearch => json!({ key: "rust" }),
            Probe::Served { .. } | Probe::Tool(_) => json!({}),
        })
    }

    /// The call for the gate.
    pub(crate) fn call(&self, probe: &Probe, environment: &HostEnvironment) -> Option<Call> {
        let tool = match probe {
            Probe::Served { server, tool } => Tool::of_server(server, tool),
            Probe::Tool(name) => Tool::own(name),
            _ => Tool::own(self.name(probe)?),
        };
        let call = Call::new(tool, self.input(probe)?);
        Some(call.directory(&environment.project).workspace(&environment.project))
    }
}

impl Probe {
    /// The call in one line.
    pub(crate) fn shown(&self, tools: &ToolNames) -> String {
        let name = tools.name(self).unwrap_or_default();
        match self {
            Probe::Shell(text) => text.clone(),
            Probe::WebSearch => name.to_owned(),
            Probe::Served { server, tool } => format!("mcp__{server}__{tool}"),
            Probe::Tool(name) => name.clone(),
            Probe::Read(text)
            | Probe::Write(text)
            | Probe::Edit(text)
            | Probe::Search(text)
            | Probe::List(text)
            | Probe::Fetch(text) => format!("{name} {text}"),
        }
    }
}

/// How many samples of a pattern are also tried wrapped and among other commands.
const DRESSED: usize = 2;

/// Commands that agents run often, and some that they should not run: one per line.
const COMMANDS: &str = include_str!("common_commands.txt");

/// The calls that every import is compared on.
pub(crate) fn common(environment: &HostEnvironment) -> Vec<Probe> {
    let project = |name: &str| environment.project.join(name).display().to_string();
    let home = |name: &str| environment.home.join(name).display().to_string();
    let mut probes: Vec<Probe> = COMMANDS.lines().map(|command| Probe::Shell(command.to_owned())).collect();
    let paths = [
        project("README.md"),
        project("src/main.rs"),
        project(".env"),
        project("config/secrets.json"),
        project("package.json"),
        project(".git/config"),
        project(".github/workflows/ci.yml"),
        project("docs/a.md"),
        home("notes.txt"),
        home(".ssh/id_rsa"),
        home(".aws/credentials"),
        home(".bashrc"),
        "/etc/passwd".to_owned(),
        "/etc/shadow".to_owned(),
        "/usr/share/dict/words".to_owned(),
        "/srv/data/x".to_owned(),
    ];
    for path in paths {
        probes.extend([Probe::Read(path.clone()), Probe::Write(path.clone()), Probe::Edit(path)]);
    }
    for directory in [project(""), project("src"), home(""), "/".to_owned()] {
        probes.extend([Probe::Search(directory.clone()), Probe::List(directory)]);
    }
    probes.extend(
        ["https://example.com/a", "https://docs.rs/serde", "http://localhost:8080/"]
            .map(|url| Probe::Fetch(url.to_owned())),
    );
    probes.push(Probe::WebSearch);
    probes.extend([("github", "search"), ("files", "write_file")].map(|(server, tool)| served(server, tool)));
    probes
}

/// A call of a server's tool.
pub(crate) fn served(server: &str, tool: &str) -> Probe {
    Probe::Served { server: server.to_owned(), tool: tool.to_owned() }
}

/// Calls for a pattern on commands: matching and nearly matching ones, alone, wrapped and among other commands.
pub(crate) fn of_command(pattern: &TextPattern) -> Vec<Probe> {
    let samples = pattern.samples();
    let dressed = samples.iter().take(DRESSED).flat_map(|sample| around_command(sample));
    dressed.chain(samples.iter().skip(DRESSED).cloned()).map(Probe::Shell).collect()
}

/// A command alone, wrapped and among other commands.
pub(crate) fn around_command(command: &str) -> Vec<String> {
    let mut commands = vec![command.to_owned()];
    let forms: &[(&str, &str)] = &[
        ("timeout 5 ", ""),
        ("nice ", ""),
        ("A=1 ", ""),
        ("cd src && ", ""),
        ("ls; ", ""),
        ("ls | ", ""),
        ("", " && ls"),
        ("", " > out.txt"),
        ("(", ")"),
        ("echo $(", ")"),
    ];
    commands.extend(forms.iter().map(|(before, after)| format!("{before}{command}{after}")));
    if !command.contains('\'') {
        commands.push(format!("bash -c '{command}'"));
    }
    commands
}

/// Calls for a pattern on paths.
pub(crate) fn of_path(pattern: &PathPattern, environment: &HostEnvironment) -> Vec<Probe> {
    around_path(&pattern.sample(environment))
}

/// Calls for a path, a path below it, and a path beside it.
pub(crate) fn around_path(path: &Path) -> Vec<Probe> {
    let parent = path.parent().unwrap_or(path);
    let mut probes = Vec::new();
    for path in [path.to_owned(), path.join("below"), parent.join("beside.txt")] {
        let text = path.display().to_string();
        probes.extend([Probe::Read(text.clone()), Probe::Write(text.clone()), Probe::Edit(text.clone())]);
        if !text.contains(|c: char| c.is_whitespace() || "'\"\\*?[]{}$`!()<>|&;~#".contains(c)) {
            probes.extend(
                [format!("cat {text}"), format!("cd src && head -1 {text}"), format!("ls {text}")].map(Probe::Shell),
            );
        }
    }
    probes.push(Probe::Search(parent.display().to_string()));
    probes.push(Probe::Search(path.display().to_string()));
    probes
}
