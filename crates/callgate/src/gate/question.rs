//! The question to an approver: everything that matters about a call, without its secrets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_model::digest::sha256_hex;
use callgate_model::effect::Target;
use callgate_model::wording::exact_target;

use super::{AdmittedCall, Assessment, CheckOptions, Gate};
use crate::approvals::{ApprovalId, Question, QuestionCommand, QuestionEffect, timeout};
use crate::describe::{DescribeError, built_in_tools};
use crate::grant::{Demand, GrantTarget, Scope, current_scope};
use crate::key::{KeyedRequest, approval_key};
use crate::path::resolve::resolve;
use crate::policy::{Decision, Policy};
use callgate_model::call::Call;
use callgate_model::clock::Timestamp;
use callgate_model::redact::Redactor;
use callgate_model::refusal::{Refusal, RefusalKind};

/// Parameters of built-in tools that are notes for people and do not change what runs.
const TEXTS: &[&str] = &["description", "assessment", "justification"];

/// The largest script whose contents are looked at.
const LARGEST_SCRIPT: usize = 8 * 1024 * 1024;

impl Gate {
    /// Builds the question about a call, without proposals. `assessment` says what is asked about.
    pub(super) fn question(
        &self,
        call: &Call,
        admitted: &AdmittedCall,
        assessment: &Assessment,
        options: &CheckOptions,
    ) -> Result<Question, Refusal> {
        let failed = |why: String| Refusal::new(RefusalKind::Unknown, why);
        let described = |error: DescribeError| failed(error.to_string());
        #[allow(clippy::disallowed_methods, reason = "how long to wait, not what to decide")]
        let variable = std::env::var_os(timeout::VARIABLE).map(|value| value.to_string_lossy().into_owned());
        let policy = self.assessor.policy().and_then(Policy::approval_timeout);
        let time: Duration =
            options.patience.timeout(variable.as_deref(), policy).map_err(|error| failed(error.to_string()))?;
        let id = ApprovalId::random().ok_or_else(|| failed("no randomness available".into()))?;
        let request = self.registry().for_approval(call, self.redactor()).map_err(described)?;
        let contained = assessment.is_contained();
        let directory = call.origin.working_directory();
        let resolved = directory.and_then(|directory| resolve(self.assessor.file_system.as_ref(), directory).ok());
        let own = call.tool.server.is_none() && built_in_tools().contains(&call.tool.name.as_str());
        let parts = &assessment.description.parts;
        let places = parts.iter().flat_map(|part| &part.effects).filter_map(|placed| placed.place.as_ref());
        let scripts = self.scripts(assessment, directory);
        // an approval in one state of a shell does not count in another
        let changed = options.shell.as_ref().filter(|shell| !shell.is_fresh(directory.and_then(Path::to_str)));
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
        let ruling = &admitted.assessment.ruling;
        let text = |text: &Option<String>| text.as_deref().map(|text| self.redactor().text(text));
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
            commands: self.commands(&admitted.assessment),
            effects: self.question_effects(assessment),
            risk_level: admitted.assessment.risk().as_str().to_owned(),
            rule: ruling.rule.clone(),
            place: ruling.place.clone(),
            reason: self.redactor().text(&ruling.reason),
            answerable: assessment.answerable(),
            proposals: Vec::new(),
            no_proposal: None,
            kept: false,
            asked_at: now,
            deadline: now.after(time),
        })
    }

    /// The files that a call runs as programs, with digests of their contents, so that an approval does not cover a changed
    /// file. `None` if one of them cannot be read.
    fn scripts(&self, assessment: &Assessment, directory: Option<&Path>) -> Option<Vec<(PathBuf, String)>> {
        let mut scripts = Vec::new();
        for part in &assessment.description.parts {
            let from = part.directory.as_deref().map(Path::new).or(directory);
            for placed in &part.effects {
                let Target::Program(program) = &placed.effect.target else { continue };
                // a bare name is found by PATH, where agents do not write
                if !program.name.contains('/') || part.elsewhere.is_some() {
                    continue;
                }
                let named = Path::new(&program.name);
                let path = if named.is_absolute() { named.to_owned() } else { from?.join(named) };
                let path = resolve(self.assessor.file_system.as_ref(), &path).ok()?;
                let contents = self.assessor.file_system.read(&path, LARGEST_SCRIPT).ok()?;
                scripts.push((path, contents.map_or_else(|| "missing".to_owned(), |contents| sha256_hex(&contents))));
            }
        }
        Some(scripts)
    }

    /// Redacts a text, including secrets that only the words of the call together reveal.
    pub(super) fn shown(&self, words: Option<&Redactor>, text: &str) -> String {
        let text = self.redactor().text(text);
        words.map_or_else(|| text.clone(), |words| words.text(&text))
    }

    fn commands(&self, assessment: &Assessment) -> Vec<QuestionCommand> {
        let words = self.redactor().of_words(&assessment.description);
        let parts = assessment.description.parts.iter().filter(|part| !part.words.is_empty());
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

    /// All effects in full: an approver sees everything, however long it is.
    fn question_effects(&self, assessment: &Assessment) -> Vec<QuestionEffect> {
        let words = self.redactor().of_words(&assessment.description);
        let asked = assessment.effects_from(Decision::Ask);
        let mut effects = Vec::new();
        for (part_index, part) in assessment.description.parts.iter().enumerate() {
            for (index, placed) in part.effects.iter().enumerate() {
                let marks = placed.effect.marks.iter().filter_map(|mark| serde_json::to_value(mark).ok());
                effects.push(QuestionEffect {
                    action: placed.effect.action.as_str().to_owned(),
                    target: self.shown(words.as_ref(), &exact_target(placed)),
                    marks: marks.filter_map(|mark| mark.as_str().map(str::to_owned)).collect(),
                    asked: asked.binary_search(&(part_index, index)).is_ok(),
                });
            }
        }
        effects
    }
}

/// What grants can be spent on: each target that must be asked about, or the call as a whole.
pub(super) fn demands(call: &Call, assessment: &Assessment, question: &Question) -> Vec<Demand> {
    let action = call.tool.to_string();
    let find = |(part, effect): &(usize, usize)| assessment.description.parts.get(*part)?.effects.get(*effect);
    let asked = assessment.effects_from(Decision::Ask);
    let targets: Vec<GrantTarget> = asked.iter().filter_map(find).map(|placed| exact_target(placed).into()).collect();
    let scope = call.origin.scope.as_deref().map(Scope::new).or_else(current_scope);
    [Demand::new(action.clone(), targets), Demand::new(action.clone(), [action.as_str()])]
        .into_iter()
        .filter(|demand| !demand.targets.is_empty())
        .map(|demand| demand.scope(scope.clone()).request(question.key))
        .collect()
}
