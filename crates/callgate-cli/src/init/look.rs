//! What a project is made of: manifests, the commands that they bring, git hooks, agents.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Runs tests.
    Test,
    /// Builds.
    Build,
    /// Checks or formats the code.
    Lint,
    /// Installs the packages that the manifest names.
    Install,
    /// Releases something.
    Publish,
}

/// A command of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundCommand {
    /// The words that every use of it begins with.
    pub command: String,
    /// The command as people write it.
    pub example: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it comes from.
    pub source: String,
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub struct Found {
    /// The manifests.
    pub manifests: Vec<String>,
    /// The commands.
    pub commands: Vec<FoundCommand>,
    /// Directories with git hooks, and files that configure them.
    pub git_hooks: Vec<String>,
    /// Agents that have settings here.
    pub agents: Vec<&'static str>,
}

use Purpose::{Build, Install, Lint, Publish, Test};

/// A command and what it is for; if there is a word, it comes only with a manifest that contains the word.
type Brought = (Purpose, &'static str, &'static str);

/// Manifests and the commands that come with them.
const MANIFESTS: &[(&str, &[Brought])] = &[
    (
        "Cargo.toml",
        &[
            (Test, "cargo test", ""),
            (Build, "cargo build", ""),
            (Lint, "cargo clippy", ""),
            (Lint, "cargo fmt", ""),
            (Install, "cargo fetch", ""),
            (Publish, "cargo publish", ""),
        ],
    ),
    (
        "go.mod",
        &[
            (Test, "go test ./...", ""),
            (Build, "go build ./...", ""),
            (Lint, "go vet ./...", ""),
            (Install, "go mod download", ""),
        ],
    ),
    (
        "pyproject.toml",
        &[
            (Test, "pytest", "pytest"),
            (Lint, "ruff check", "ruff"),
            (Lint, "mypy .", "mypy"),
            (Build, "python3 -m build", "build-system"),
            (Publish, "twine upload dist/x.whl", ""),
        ],
    ),
    ("pytest.ini", &[(Test, "pytest", "")]),
    ("tox.ini", &[(Test, "tox", "")]),
    ("noxfile.py", &[(Test, "nox", "")]),
    ("setup.py", &[(Test, "pytest", "pytest"), (Publish, "twine upload dist/x.whl", "")]),
    ("requirements.txt", &[(Test, "pytest", "pytest"), (Install, "pip install -r requirements.txt", "")]),
    ("requirements-dev.txt", &[(Test, "pytest", "pytest"), (Install, "pip install -r requirements-dev.txt", "")]),
    ("uv.lock", &[(Test, "uv run pytest", "name = \"pytest\""), (Install, "uv sync", ""), (Publish, "uv publish", "")]),
    (
        "poetry.lock",
        &[
            (Test, "poetry run pytest", "name = \"pytest\""),
            (Install, "poetry install", ""),
            (Publish, "poetry publish", ""),
        ],
    ),
    (
        "Gemfile",
        &[
            (Test, "bundle exec rspec", "rspec"),
            (Lint, "bundle exec rubocop", "rubocop"),
            (Install, "bundle install", ""),
            (Publish, "gem push x.gem", ""),
        ],
    ),
    ("Rakefile", &[(Test, "rake test", "test")]),
    ("composer.json", &[(Test, "vendor/bin/phpunit", "phpunit"), (Install, "composer install", "")]),
    (
        "mix.exs",
        &[
            (Test, "mix test", ""),
            (Build, "mix compile", ""),
            (Install, "mix deps.get", ""),
            (Publish, "mix hex.publish", ""),
        ],
    ),
    ("gradlew", &[(Test, "./gradlew test", ""), (Build, "./gradlew build", "")]),
    ("pom.xml", &[(Test, "mvn test", ""), (Build, "mvn package", ""), (Publish, "mvn deploy", "")]),
    ("deno.json", &[(Test, "deno test", ""), (Lint, "deno lint", "")]),
    ("CMakeLists.txt", &[(Build, "cmake --build build", ""), (Test, "ctest", "")]),
    ("Package.swift", &[(Test, "swift test", ""), (Build, "swift build", "")]),
    (".pre-commit-config.yaml", &[(Lint, "pre-commit run", "")]),
];

/// Lock files and the package manager that writes them; the first that is there runs the scripts of package.json.
const NODE: &[(&str, &str)] =
    &[("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];

/// What the names of scripts and targets say about their purpose.
const NAMES: &[(Purpose, &[&str])] = &[
    (Test, &["test", "tests", "check", "e2e", "coverage", "spec"]),
    (Build, &["build", "all", "compile", "bundle", "generate"]),
    (Lint, &["lint", "format", "fmt", "typecheck", "types", "prettier", "eslint"]),
    (Publish, &["publish", "release", "deploy"]),
];

/// Settings and the agents that they belong to.
const AGENTS: &[(&str, &str)] = &[
    (".claude", "claude"),
    ("CLAUDE.md", "claude"),
    (".codex", "codex"),
    (".gemini", "gemini"),
    ("GEMINI.md", "gemini"),
    (".github/copilot-instructions.md", "copilot"),
    (".github/hooks", "copilot"),
    (".cursor", "cursor"),
    (".opencode", "opencode"),
    ("opencode.json", "opencode"),
    (".qwen", "qwen"),
    (".windsurf", "windsurf"),
    (".amp", "amp"),
    (".goosehints", "goose"),
];

/// Looks at a project. Everything in it may have been written by anybody: only plain names are taken over.
pub fn look(project: &Path) -> Found {
    let mut found = Found::default();
    for (manifest, commands) in MANIFESTS {
        let Some(text) = text(&project.join(manifest)) else { continue };
        found.manifests.push((*manifest).to_owned());
        for (purpose, command, word) in *commands {
            if text.contains(word) {
                found.add(*purpose, command, manifest);
            }
        }
    }
    if let Some(text) = text(&project.join("package.json")) {
        found.manifests.push("package.json".to_owned());
        node(project, &text, &mut found);
    }
    for (file, program) in [("Makefile", "make"), ("GNUmakefile", "make"), ("justfile", "just")] {
        if let Some(text) = text(&project.join(file)) {
            found.manifests.push(file.to_owned());
            for target in text.lines().filter_map(target) {
                if let Some(purpose) = purpose(target) {
                    found.add(purpose, &format!("{program} {target}"), file);
                }
            }
        }
    }
    hooks(project, &mut found);
    for (settings, agent) in AGENTS {
        if project.join(settings).symlink_metadata().is_ok() && !found.agents.contains(agent) {
            found.agents.push(agent);
        }
    }
    found
}

impl Found {
    fn add(&mut self, purpose: Purpose, example: &str, source: &str) {
        if self.commands.iter().any(|known| known.example == example) {
            return;
        }
        // Paths and files are arguments of an example, not part of the command.
        let is_argument = |word: &&str| {
            !word.starts_with("./gradlew")
                && (word.starts_with('.') || word.ends_with(".whl") || word.ends_with(".gem"))
        };
        let words: Vec<&str> = example.split(' ').filter(|word| !is_argument(word)).collect();
        let found =
            FoundCommand { command: words.join(" "), example: example.to_owned(), purpose, source: source.to_owned() };
        self.commands.push(found);
    }
}

/// The scripts of package.json.
fn node(project: &Path, text: &str, found: &mut Found) {
    let locked = NODE.iter().find(|(file, _)| project.join(file).is_file());
    let manager = locked.map_or("npm", |(_, manager)| manager);
    let manifest: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = manifest.get("scripts").and_then(Value::as_object);
    for (name, body) in scripts.into_iter().flatten() {
        let Some(purpose) = purpose(name).filter(|_| is_plain(name)) else { continue };
        let mut source = "package.json".to_owned();
        if let Some(body) = body.as_str() {
            let _ = write!(source, ": {}", in_a_comment(body));
        }
        match name.as_str() {
            "test" => found.add(purpose, &format!("{manager} test"), &source),
            _ => found.add(purpose, &format!("{manager} run {name}"), &source),
        }
    }
    found.add(
        Install,
        &if manager == "npm" { "npm ci".to_owned() } else { format!("{manager} install") },
        "package.json",
    );
    found.add(Publish, &format!("{manager} publish"), "package.json");
}

/// The target that a line of a Makefile or justfile begins.
fn target(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let name = name.trim_end();
    (is_plain(name) && !rest.starts_with('=') && !name.starts_with('.')).then_some(name)
}

/// Git hooks of the project itself.
fn hooks(project: &Path, found: &mut Found) {
    let configured = text(&project.join(".git/config")).and_then(|text| {
        let line = text.lines().rev().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            key.trim()
                .eq_ignore_ascii_case("hookspath")
                .then(|| value.trim().trim_matches('"').trim_matches('/').to_owned())
        })?;
        is_plain_path(&line).then_some(line)
    });
    let usual = [".husky", ".githooks", "lefthook.yml", ".pre-commit-config.yaml"].map(str::to_owned);
    for place in configured.into_iter().chain(usual) {
        if project.join(&place).exists() && !found.git_hooks.contains(&place) {
            found.git_hooks.push(place);
        }
    }
    let own = std::fs::read_dir(project.join(".git/hooks")).into_iter().flatten().flatten();
    if own.take(100).any(|entry| entry.path().extension().is_none_or(|extension| extension != "sample")) {
        found.git_hooks.push(".git/hooks".to_owned());
    }
}

/// What a name says: `test:unit` is a test.
fn purpose(name: &str) -> Option<Purpose> {
    let first = name.split([':', '-', '_', '.']).next().unwrap_or(name);
    NAMES.iter().find(|(_, names)| names.contains(&first)).map(|(purpose, _)| *purpose)
}

/// Whether a name means only itself in a shell, in a pattern and in YAML.
fn is_plain(name: &str) -> bool {
    name.len() <= 40
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || "_-:.".contains(character))
}

fn is_plain_path(path: &str) -> bool {
    path.split('/').all(|part| is_plain(part.trim_start_matches('.')) && part != ".." && part != ".")
}

/// A text that somebody else wrote, short and on one line.
fn in_a_comment(text: &str) -> String {
    let plain: String = text.chars().take(60).map(|each| if matches!(each, ' '..='~') { each } else { '?' }).collect();
    if text.chars().count() > 60 { format!("{plain}…") } else { plain }
}

/// The beginning of an ordinary file.
fn text(path: &Path) -> Option<String> {
    const ENOUGH: u64 = 1 << 20;
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(ENOUGH).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
