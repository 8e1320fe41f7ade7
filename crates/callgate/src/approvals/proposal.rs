//! What "for this session" and "always" offer: the narrowest rules that would have let a call pass.

use std::fmt;
use std::path::{Path, PathBuf};

use callgate_model::effect::{Action, Effect, Target};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::describe::{Description, Part, PlacedEffect};
use crate::path::{Rest, Zone};
use callgate_model::call::Tool;
use callgate_policy::{Policy, PolicyError};

/// Programs with subcommands, for rules such as "this program and subcommand".
const WITH_SUBCOMMANDS: &str = "apt apt-get brew bun bundle cargo composer conda deno docker dotnet flutter gem gh git glab \
    go gradle helm hg jj just kubectl make mix mvn npm pip pip3 pnpm podman poetry rake rustup svn systemctl terraform tofu uv yarn";

/// A rule that would have let a call pass.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Proposal {
    /// What the rule covers.
    pub extent: Extent,
}

/// What a proposed rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// This command with these words.
    Words(Vec<String>),
    /// This program and subcommand, with whatever words follow.
    Subcommand(String, String),
    /// These actions at this host.
    Host {
        /// Connect, send.
        actions: Vec<Action>,
        /// The host.
        host: String,
    },
    /// These actions at this file.
    File {
        /// Read, write …
        actions: Vec<Action>,
        /// The file, as it was resolved.
        path: PathBuf,
    },
    /// These actions below this directory.
    Directory {
        /// Read, write …
        actions: Vec<Action>,
        /// The directory, as it was resolved.
        path: PathBuf,
    },
    /// This tool, whatever its input.
    Tool(String),
}

/// Why no rule can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoProposal {
    /// Several simple commands must be asked about; rules for the parts would be broader than the whole.
    #[error("several commands of this call need an answer, and one rule cannot cover them together")]
    Several,
    /// Words that are only known when it runs.
    #[error("some words of the command are known only at run time")]
    UnknownWords,
    /// The command runs under another user, in a container or inside a program that changes what it means.
    #[error("a rule for the command inside a wrapper would not say what the wrapper does")]
    Wrapped,
    /// Nothing in it can be named by a rule.
    #[error("no rule can name anything in this call")]
    Nothing,
    /// A deny or the boundary may apply.
    #[error("the call does not say enough to know whether a deny or the boundary applies, so only a person can answer")]
    Doubt,
    /// The boundary asks, and no rule speaks for it.
    #[error("the call is outside the boundary and rules cannot allow it; add the directory to `boundary`")]
    Boundary,
    /// Every rule would write a secret down.
    #[error("a rule for this call would contain a secret")]
    Secret,
    /// Rules were found, but none of them would have let the call pass.
    #[error("a stricter rule still applies with every rule that was tried")]
    WouldNotPass,
}

/// The effects of a call that must be asked about.
#[derive(Debug, Clone, Copy)]
pub struct AskedCall<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// What the call would do.
    pub description: &'a Description,
    /// Which effects: part and effect, both from 0.
    pub effects: &'a [(usize, usize)],
}

impl<'a> AskedCall<'a> {
    fn parts(&self) -> Vec<&'a Part> {
        let mut indices: Vec<usize> = self.effects.iter().map(|(part, _)| *part).collect();
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().filter_map(|index| self.description.parts.get(index)).collect()
    }

    fn effects(&self) -> Vec<&'a PlacedEffect> {
        let find = |(part, effect): &(usize, usize)| self.description.parts.get(*part)?.effects.get(*effect);
        self.effects.iter().filter_map(find).collect()
    }
}

/// Rules that might have let a call pass, the narrowest first.
pub fn candidates(asked: &AskedCall<'_>) -> Result<Vec<Proposal>, NoProposal> {
    let parts = asked.parts();
    let [part] = parts.as_slice() else {
        let wrapped = parts.iter().any(|part| !part.wrappers.is_empty());
        return Err(match parts.len() {
            0 => NoProposal::Nothing,
            _ if wrapped => NoProposal::Wrapped,
            _ => NoProposal::Several,
        });
    };
    let mut extents: Vec<Extent> = Vec::new();
    let mut refused = NoProposal::Nothing;
    if !part.words.is_empty() {
        match known_words(part) {
            Ok(words) => {
                if let [program, subcommand, _, ..] | [program, subcommand] = words.as_slice()
                    && WITH_SUBCOMMANDS.split(' ').any(|known| known == program)
                    && subcommand.starts_with(|first: char| first.is_ascii_alphanumeric())
                {
                    extents.push(Extent::Words(words.clone()));
                    extents.push(Extent::Subcommand(program.clone(), subcommand.clone()));
                } else {
                    extents.push(Extent::Words(words));
                }
            }
            Err(why) => refused = why,
        }
    }
    let effects = asked.effects();
    extents.extend(host(&effects));
    extents.extend(places(&effects));
    if part.words.is_empty() && effects.iter().any(|placed| placed.effect.action == Action::Opaque) {
        extents.push(Extent::Tool(asked.tool.to_string()));
    }
    if extents.is_empty() { Err(refused) } else { Ok(extents.into_iter().map(|extent| Proposal { extent }).collect()) }
}

/// The candidates that would really have let the call pass. `would_pass` judges it again with the rule in place.
pub fn narrowest(asked: &AskedCall<'_>, would_pass: &dyn Fn(&Proposal) -> bool) -> Result<Vec<Proposal>, NoProposal> {
    let passing: Vec<Proposal> = candidates(asked)?.into_iter().filter(would_pass).collect();
    if passing.is_empty() { Err(NoProposal::WouldNotPass) } else { Ok(passing) }
}

fn known_words(part: &Part) -> Result<Vec<String>, NoProposal> {
    if !part.wrappers.is_empty() || part.elsewhere.is_some() {
        return Err(NoProposal::Wrapped);
    }
    let words: Option<Vec<String>> = part.words.iter().map(|word| word.known().map(str::to_owned)).collect();
    words.ok_or(NoProposal::UnknownWords)
}

fn actions_of(effects: &[&PlacedEffect]) -> Vec<Action> {
    let mut actions: Vec<Action> = effects.iter().map(|placed| placed.effect.action).collect();
    actions.sort_unstable();
    actions.dedup();
    actions
}

/// The one host that all asked effects are about.
fn host(effects: &[&PlacedEffect]) -> Option<Extent> {
    let name = |effect: &Effect| match (&effect.action, &effect.target) {
        (Action::Connect | Action::Send, Target::Host(host)) => host.name.clone(),
        _ => None,
    };
    let hosts: Option<Vec<String>> = effects.iter().map(|placed| name(&placed.effect)).collect();
    let mut hosts = hosts?;
    hosts.dedup();
    let [host] = hosts.try_into().ok()?;
    Some(Extent::Host { actions: actions_of(effects), host })
}

/// The one file, or the one directory, that all asked effects are about.
fn places(effects: &[&PlacedEffect]) -> Vec<Extent> {
    let place = |placed: &&PlacedEffect| {
        let place = placed.place.as_ref()?;
        let plain = place.rest == Rest::Nothing && !place.traversal && !matches!(place.zone, Zone::Unresolved(_));
        plain.then(|| (place.resolved.clone(), place.tree))
    };
    let Some(places) = effects.iter().map(place).collect::<Option<Vec<_>>>() else { return Vec::new() };
    let Some((first, tree)) = places.first().cloned() else { return Vec::new() };
    let actions = actions_of(effects);
    if places.iter().all(|(path, _)| *path == first) {
        if tree {
            return vec![Extent::Directory { actions, path: first }];
        }
        let directory = first.parent().filter(|parent| parent.components().count() > 2).map(Path::to_path_buf);
        let mut extents = vec![Extent::File { actions: actions.clone(), path: first }];
        extents.extend(directory.map(|path| Extent::Directory { actions, path }));
        return extents;
    }
    let parents: Option<Vec<&Path>> = places.iter().map(|(path, _)| path.parent()).collect();
    match parents.as_deref() {
        Some([parent, rest @ ..]) if rest.iter().all(|other| other == parent) && parent.components().count() > 2 => {
            vec![Extent::Directory { actions, path: parent.to_path_buf() }]
        }
        _ => Vec::new(),
    }
}

impl Proposal {
    /// Every text of the call that the rule would hold.
    pub fn texts(&self) -> Vec<String> {
        match &self.extent {
            Extent::Words(words) => words.iter().cloned().chain([words.join(" ")]).collect(),
            Extent::Subcommand(program, subcommand) => vec![program.clone(), subcommand.clone()],
            Extent::Host { host, .. } => vec![host.clone()],
            Extent::File { path, .. } | Extent::Directory { path, .. } => vec![path.to_string_lossy().into_owned()],
            Extent::Tool(tool) => vec![tool.clone()],
        }
    }

    /// A policy with nothing but this rule.
    pub fn as_policy(&self) -> Result<Policy, PolicyError> {
        Policy::from_yaml(&format!("version: 1\nrules:\n{}", self.rule("proposed", "proposed")), "proposed")
    }

    /// The rule as it stands in a policy file, without indentation. It answers a question and overturns nothing else.
    pub fn rule(&self, name: &str, reason: &str) -> String {
        self.written(name, "action: allow\ninstead_of: ask", reason)
    }

    /// The same as a rule that denies.
    pub fn denial(&self, name: &str, reason: &str) -> String {
        self.written(name, "action: deny", reason)
    }

    fn written(&self, name: &str, action: &str, reason: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let list = |actions: &[Action]| format!("effects: [{}]\n", names(actions).join(", "));
        let conditions = match &self.extent {
            Extent::Words(words) => format!("commands: [{}]\n", quoted(&command_pattern(words))),
            Extent::Subcommand(program, subcommand) => {
                let words = command_pattern(&[program.clone(), subcommand.clone()]);
                format!("commands: [{}]\n", quoted(&format!("{words} **")))
            }
            Extent::Host { actions, host } => format!("{}hosts: [{}]\n", list(actions), quoted(host)),
            Extent::File { actions, path } => {
                format!("{}paths: [{}]\n", list(actions), quoted(&escaped(&path.to_string_lossy())))
            }
            Extent::Directory { actions, path } => {
                format!("{}paths: [{}]\n", list(actions), quoted(&format!("{}/**", escaped(&path.to_string_lossy()))))
            }
            Extent::Tool(tool) => format!("tools: [{}]\n", quoted(tool)),
        };
        let (name, reason) = (quoted(name), quoted(reason));
        let lines = format!("name: {name}\n{conditions}{action}\nreason: {reason}");
        format!("- {}\n", lines.replace('\n', "\n  "))
    }
}

fn names(actions: &[Action]) -> Vec<&'static str> {
    actions.iter().map(|action| action.as_str()).collect()
}

/// Words as a command pattern that means exactly these.
fn command_pattern(words: &[String]) -> String {
    let words: Vec<String> =
        words.iter().map(|word| if word.is_empty() { "''".to_owned() } else { escaped(word) }).collect();
    words.join(" ")
}

/// A text with everything that a pattern could take for more than itself escaped.
fn escaped(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "/._-:=@%+,".contains(character);
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        if !plain(character) {
            escaped.push('\\');
        }
        escaped.push(character);
        escaped
    })
}

impl Extent {
    /// What else it would let pass.
    pub fn also_covers(&self) -> String {
        match self {
            Extent::Words(_) => "the same words in other directories, whatever the files they name hold then".into(),
            Extent::Subcommand(program, subcommand) => {
                format!("every `{program} {subcommand}`, with any options and arguments, in any directory")
            }
            Extent::Host { host, .. } => format!("every address and every contents at {host}, by any tool and command"),
            Extent::File { .. } => "any contents, by any tool and command".into(),
            Extent::Directory { path, .. } => format!("every file below {}, by any tool and command", path.display()),
            Extent::Tool(tool) => format!("{tool} with any input"),
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |actions: &[Action]| names(actions).join(" and ");
        match self {
            Extent::Words(words) => write!(formatter, "`{}`", command_pattern(words)),
            Extent::Subcommand(program, subcommand) => write!(formatter, "`{program} {subcommand} …`"),
            Extent::Host { actions, host } => write!(formatter, "{} {host}", list(actions)),
            Extent::File { actions, path } => write!(formatter, "{} {}", list(actions), path.display()),
            Extent::Directory { actions, path } => write!(formatter, "{} below {}", list(actions), path.display()),
            Extent::Tool(tool) => write!(formatter, "the tool {tool}"),
        }
    }
}
