//! A call that must be asked about, as whoever answers sees it: everything that counts, nothing secret.

use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_shell::effect::{Action, Effect, Names, Target};

use super::{Explanation, Gate, Judged};
use crate::approvals::{ApprovalId, Patience, Question, QuestionCommand, QuestionEffect, timeout};
use crate::call::Call;
use crate::clock::Timestamp;
use crate::describe::{DescribeError, PlacedEffect, built_in_tools};
use crate::grant::{Demand, Scope, Target as GrantTarget, current_scope};
use crate::key::{KeyedRequest, approval_key, digest};
use crate::path::resolve::resolve;
use crate::policy::{Decision, Policy};
use crate::redact::Redactor;
use crate::refusal::{Refusal, RefusalKind};

/// Parameters of tools that are built in which are words for people: they change nothing that runs.
const TEXTS: &[&str] = &["description", "explanation", "justification"];

/// The largest script whose contents are looked at.
const LARGEST_SCRIPT: usize = 8 * 1024 * 1024;

impl Gate {
    /// The question about a call, without proposals. `explanation` says what is asked about.
    pub(super) fn question(
        &self,
        call: &Call,
        judged: &Judged,
        explanation: &Explanation,
        patience: Patience,
    ) -> Result<Question, Refusal> {
        let failed = |why: String| Refusal::new(RefusalKind::Unknown, why);
        let described = |error: DescribeError| failed(error.to_string());
        let variable = std::env::var_os(timeout::VARIABLE).map(|value| value.to_string_lossy().into_owned());
        let policy = self.policy.as_ref().and_then(Policy::approval_timeout);
        let time: Duration =
            patience.timeout(variable.as_deref(), policy).map_err(|error| failed(error.to_string()))?;
        let id = ApprovalId::random().ok_or_else(|| failed("there are no random numbers to be had".into()))?;
        let request = self.registry.for_approval(call, &self.redactor).map_err(described)?;
        let contained = explanation.judgement.effects.iter().any(|(_, _, ruling)| ruling.decision == Decision::Contain);
        let directory = call.origin.directory.as_deref().or(call.origin.workspace.as_deref());
        let resolved = directory.and_then(|directory| resolve(self.file_system.as_ref(), directory).ok());
        let own = call.tool.server.is_none() && built_in_tools().contains(&call.tool.name.as_str());
        let parts = &explanation.description.parts;
        let places = parts.iter().flat_map(|part| &part.effects).filter_map(|placed| placed.place.as_ref());
        let scripts = self.scripts(explanation, directory);
        // what was approved in one state of a shell is not approved in another
        let changed = call.shell.as_ref().filter(|shell| !shell.is_fresh(directory.and_then(Path::to_str)));
        let shell = changed.map(|_| serde_json::to_value(parts).unwrap_or_default());
        let key = scripts.as_ref().and_then(|scripts| {
            let request = KeyedRequest {
                tool: &call.tool,
                input: &call.input,
                texts: if own { TEXTS } else { &[] },
                redacted: request.as_value(),
                paths: places.map(|place| place.resolved.as_path()).collect(),
                scripts: scripts.iter().map(|(path, digest)| (path.as_path(), digest.clone())).collect(),
                directory: resolved.as_deref().or(directory),
                sandbox: if contained { "required" } else { "none" },
                shell: shell.as_ref(),
            };
            approval_key(&request).ok()
        });
        let ruling = judged.explanation.ruling();
        let text = |text: &Option<String>| text.as_deref().map(|text| self.redactor.text(text));
        let now = Timestamp::now();
        Ok(Question {
            id,
            tool: call.tool.to_string(),
            key,
            session: call.origin.session.clone(),
            agent: text(&call.origin.agent),
            scope: call.origin.scope.clone(),
            directory: call.origin.directory.clone(),
            request: request.as_value().clone(),
            commands: self.commands(&judged.explanation),
            effects: self.question_effects(explanation),
            risk_level: judged.explanation.risk().as_str().to_owned(),
            rule: ruling.rule.clone(),
            place: ruling.place.clone(),
            reason: self.redactor.text(&ruling.reason),
            proposals: Vec::new(),
            no_proposal: None,
            asked_at: now,
            deadline: now.after(time),
        })
    }

    /// The files that a call runs as programs, with their contents by digest: what was approved is not what was changed since.
    /// `None` if one of them cannot be told.
    fn scripts(&self, explanation: &Explanation, directory: Option<&Path>) -> Option<Vec<(PathBuf, String)>> {
        let mut scripts = Vec::new();
        for part in &explanation.description.parts {
            let from = part.directory.as_deref().map(Path::new).or(directory);
            for placed in &part.effects {
                let Target::Program(program) = &placed.effect.target else { continue };
                // a bare name is found by PATH, where agents do not write
                if !program.name.contains('/') || part.elsewhere.is_some() {
                    continue;
                }
                let named = Path::new(&program.name);
                let path = if named.is_absolute() { named.to_owned() } else { from?.join(named) };
                let path = resolve(self.file_system.as_ref(), &path).ok()?;
                let contents = self.file_system.read(&path, LARGEST_SCRIPT).ok()?;
                scripts.push((path, contents.map_or_else(|| "missing".to_owned(), |contents| digest(&contents))));
            }
        }
        Some(scripts)
    }

    /// A text without secrets, nor those that only the words of the call together give away.
    pub(super) fn shown(&self, words: Option<&Redactor>, text: &str) -> String {
        let text = self.redactor.text(text);
        words.map_or_else(|| text.clone(), |words| words.text(&text))
    }

    fn commands(&self, explanation: &Explanation) -> Vec<QuestionCommand> {
        let words = self.redactor.of_words(&explanation.description);
        let parts = explanation.description.parts.iter().filter(|part| !part.words.is_empty());
        parts
            .map(|part| QuestionCommand {
                words: part
                    .words
                    .iter()
                    .map(|word| word.known().map(|text| self.shown(words.as_ref(), text)))
                    .collect(),
                wrappers: part.wrappers.clone(),
            })
            .collect()
    }

    /// In full: an approver sees everything, however long it is.
    fn question_effects(&self, explanation: &Explanation) -> Vec<QuestionEffect> {
        let words = self.redactor.of_words(&explanation.description);
        let asked = explanation.asked();
        let mut effects = Vec::new();
        for (part_index, part) in explanation.description.parts.iter().enumerate() {
            for (index, placed) in part.effects.iter().enumerate() {
                let marks = placed.effect.marks.iter().filter_map(|mark| serde_json::to_value(mark).ok());
                effects.push(QuestionEffect {
                    action: name_of(placed.effect.action),
                    target: self.shown(words.as_ref(), &target_text(placed)),
                    marks: marks.filter_map(|mark| mark.as_str().map(str::to_owned)).collect(),
                    asked: asked.contains(&(part_index, index)),
                });
            }
        }
        effects
    }
}

/// What grants could be spent for: each target of what must be asked about, or else the call as a whole.
pub(super) fn demands(call: &Call, explanation: &Explanation, question: &Question) -> Vec<Demand> {
    let action = call.tool.to_string();
    let find = |(part, effect): &(usize, usize)| explanation.description.parts.get(*part)?.effects.get(*effect);
    let asked = explanation.asked();
    let targets: Vec<GrantTarget> = asked.iter().filter_map(find).map(|placed| target_text(placed).into()).collect();
    let scope = call.origin.scope.as_deref().map(Scope::new).or_else(current_scope);
    [Demand::new(action.clone(), targets), Demand::new(action.clone(), [action.as_str()])]
        .into_iter()
        .filter(|demand| !demand.targets.is_empty())
        .map(|demand| demand.scope(scope.clone()).request(question.key))
        .collect()
}

/// What an effect is about, in full. A path as it was resolved.
fn target_text(placed: &PlacedEffect) -> String {
    let PlacedEffect { effect, place } = placed;
    let tree = |tree: bool| if tree { " and all below" } else { "" };
    match (&effect.target, place) {
        (Target::Path(target), Some(place)) if place.rest == crate::path::Rest::Nothing => {
            format!("{}{}", lossless(&place.resolved), tree(target.tree))
        }
        (Target::Path(target), _) => path_text(effect, tree(target.tree)),
        (Target::Program(program), _) => program.name.clone(),
        (Target::Host(host), _) => host.name.clone().unwrap_or_else(|| host.shown.clone()),
        (Target::Text(text), _) => text.clone(),
    }
}

fn path_text(effect: &Effect, tree: &str) -> String {
    let Target::Path(target) = &effect.target else { return String::new() };
    match &target.names {
        Names::Exact(path) => format!("{path}{tree}"),
        Names::Glob(pattern) => format!("what matches {pattern}{tree}"),
        Names::Below(directory) => format!("something below {directory}{tree}"),
        Names::Unknown(why) => format!("an unknown path ({why})"),
    }
}

/// A path in text, such that two paths stay two.
fn lossless(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

fn name_of(action: Action) -> String {
    format!("{action:?}").to_lowercase()
}
