//! What a policy promises, sentence by sentence.

mod audit;
mod files;
mod judging;
mod layering;
mod legacy;
mod mistakes;
mod paths;
mod stored;

use std::path::{Path, PathBuf};

use callgate_model::effect::{Action, CodeOrigin, Coverage, Effect, Host, Mark, Names, PathTarget, Program, Target};
use callgate_model::word::Word;
use serde_json::{Value, json};

use super::{
    BoundarySettings, Claims, Decision, HostDirectories, JudgeRequest, Judgement, Policy, Root, Roots, TEMPORARY,
};
use callgate_model::call::{Call, Origin, Tool};
use callgate_model::description::{Description, Part, PlacedEffect};
use callgate_model::place::{Contents, Place, Rest, Zone};

/// A call put together by hand, as describing and placing would have made it.
#[derive(Clone)]
struct Scene {
    call: Call,
    description: Description,
    claims: Claims,
}

impl Scene {
    fn tool(name: &str) -> Self {
        let (server, name) = match name.split_once('/') {
            Some((server, name)) => (Some(server.to_owned()), name),
            None => (None, name),
        };
        Self {
            call: Call {
                tool: Tool { server, name: name.to_owned() },
                input: json!({}),
                origin: Origin { workspace: Some("/w".into()), directory: Some("/w".into()), ..Origin::default() },
            },
            description: Description {
                category: "file_read".to_owned(),
                parts: vec![Part::default()],
                coverage: Coverage::Complete,
            },
            claims: Claims::default(),
        }
    }

    /// A shell call; `;` between simple commands.
    fn shell(command: &str) -> Self {
        let mut scene = Self::tool("Bash").input(json!({ "command": command })).category("shell");
        scene.description.parts = command
            .split(';')
            .map(|command| {
                let words: Vec<Word> = command.split_whitespace().map(|word| Word::Known(word.to_owned())).collect();
                let program = words[0].known().unwrap().to_owned();
                Part { words, effects: vec![run(&program, CodeOrigin::Known)], ..Part::default() }
            })
            .collect();
        scene
    }

    /// A tool without a descriptor.
    fn custom(name: &str) -> Self {
        Self::tool(name).category("unknown").effect(opaque()).partial()
    }

    fn effect(mut self, effect: PlacedEffect) -> Self {
        self.description.parts.last_mut().unwrap().effects.push(effect);
        self
    }

    fn words(mut self, words: Vec<Word>) -> Self {
        self.description.parts.last_mut().unwrap().words = words;
        self
    }

    fn wrapped_in(mut self, wrapper: &str) -> Self {
        self.description.parts.last_mut().unwrap().wrappers.push(wrapper.to_owned());
        self
    }

    fn input(mut self, input: Value) -> Self {
        self.call.input = input;
        self
    }

    fn category(mut self, category: &str) -> Self {
        self.description.category = category.to_owned();
        self
    }

    fn tag(mut self, tag: &str) -> Self {
        self.claims.tags.push(tag.to_owned());
        self
    }

    fn partial(mut self) -> Self {
        self.description.coverage = Coverage::Partial;
        self
    }

    fn judge(&self, policy: &Policy) -> Judgement {
        policy.judge(&JudgeRequest {
            call: &self.call,
            description: &self.description,
            claims: &self.claims,
            sandbox: crate::SandboxSupport::Missing,
        })
    }

    fn decide(&self, policy: &Policy) -> Decision {
        self.judge(policy).ruling.decision
    }
}

fn placed(action: Action, target: Target, place: Option<Place>) -> PlacedEffect {
    PlacedEffect { effect: Effect { action, target, marks: Vec::new(), because: String::new() }, place }
}

fn run(program: &str, origin: CodeOrigin) -> PlacedEffect {
    placed(Action::Run, Target::Program(Program { name: program.to_owned(), origin }), None)
}

fn opaque() -> PlacedEffect {
    placed(Action::Opaque, Target::Text("not understood".to_owned()), None)
}

fn host(action: Action, name: Option<&str>) -> PlacedEffect {
    placed(action, Target::Host(Host { name: name.map(str::to_owned), shown: String::new() }), None)
}

/// A path effect. `/w` is the root, `/usr` may be read, everything else is outside.
fn path(action: Action, path: &str) -> PlacedEffect {
    let zone = match path {
        _ if path.starts_with("/w/") || path == "/w" => Zone::Root,
        _ if path.starts_with("/usr") => Zone::Readable,
        _ => Zone::Outside,
    };
    let place = Place {
        named: PathBuf::from(path),
        resolved: PathBuf::from(path),
        rest: Rest::Nothing,
        tree: false,
        zone,
        traversal: false,
        contents: Contents::Existing,
    };
    let target = Target::Path(PathTarget::new(Names::Exact(path.to_owned()), false));
    placed(action, target, Some(place))
}

trait With: Sized {
    fn place(self, change: impl FnOnce(&mut Place)) -> Self;
    fn tree(self) -> Self {
        self.place(|place| place.tree = true)
    }
    fn glob(self, pattern: &str) -> Self {
        self.place(|place| place.rest = Rest::Glob(pattern.to_owned()))
    }
    fn mark(self, mark: Mark) -> Self;
}

impl With for PlacedEffect {
    fn place(mut self, change: impl FnOnce(&mut Place)) -> Self {
        change(self.place.as_mut().unwrap());
        self
    }

    fn mark(mut self, mark: Mark) -> Self {
        self.effect.marks.push(mark);
        self
    }
}

fn policy(text: &str) -> Policy {
    match Policy::from_yaml(text, "test.yaml") {
        Ok(policy) => policy.with_home("/home/me"),
        Err(error) => panic!("{error}"),
    }
}

/// A policy of rules, the default ask.
fn rules(text: &str) -> Policy {
    policy(&format!("rules:\n{text}"))
}

/// The root of a boundary that a path lies in, by names alone.
fn root_around(settings: &BoundarySettings, path: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    let host = HostDirectories { home: Some("/home/ada".into()), temporary: vec!["/tmp".into()], programs: vec![] };
    let default = Roots::from(vec![Root::of_call("."), Root::of_call(TEMPORARY)]);
    let roots = settings.roots.as_ref().unwrap_or(&default);
    let directories = roots.iter().flat_map(|root| root.directories(here.as_deref(), &host));
    let mut around = None;
    for (directory, excluded) in directories.filter(|(directory, _)| path.starts_with(directory)) {
        around = (!excluded).then_some(directory);
    }
    around
}
