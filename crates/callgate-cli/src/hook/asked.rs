//! Who answers when the policy says ask.

use std::sync::{Mutex, PoisonError};

use callgate::Call;
use callgate::approvals::channel::{Elsewhere, InOrder, Nobody, configured};
use callgate::approvals::{Answer, Approver, AskError, Question};
use callgate::policy::{ApproverKind, Locations, Policy};
use callgate_hooks::HookRequest;

use super::arguments::{AskWhom, HookArguments};
use super::session::Session;
use crate::notify::Notifier;
use crate::{terminal, watching};

/// Routes the question of a hook, and keeps it for the answer.
pub struct Asked {
    whom: Whom,
    notifier: Notifier,
    question: Mutex<Option<Question>>,
}

enum Whom {
    /// The agent's own prompt.
    Agent,
    /// A person who answers with `callgate approvals`.
    Approvers,
    /// Those whom the policy names.
    Configured(InOrder),
    Nobody,
}

impl Asked {
    /// Chooses who answers questions about this event.
    pub fn of(
        arguments: &HookArguments,
        incoming: &HookRequest,
        policy: &Policy,
        always: Option<(Locations, Call)>,
    ) -> Self {
        let prompts = incoming.event.can_ask();
        let notifier = Notifier::of(policy);
        let named = || policy.approval_rules().map(|section| section.ask).unwrap_or_default();
        let auto = arguments.ask == AskWhom::Auto;
        let whom = match arguments.ask {
            // what the policy says, unless the hook's own arguments say otherwise
            _ if auto && named().first().is_some_and(|first| first.who != ApproverKind::Agent || !prompts) => {
                configured(policy, &terminal::asking(&notifier, always)).map_or(Whom::Nobody, Whom::Configured)
            }
            AskWhom::Approvers => Whom::Approvers,
            AskWhom::Agent | AskWhom::Auto if prompts => Whom::Agent,
            AskWhom::Auto if watching::somebody_watches() => Whom::Approvers,
            AskWhom::Agent | AskWhom::Auto | AskWhom::Nobody => Whom::Nobody,
        };
        Self { whom, notifier, question: Mutex::new(None) }
    }

    /// The question, if there was one.
    pub fn question(&self) -> Option<Question> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the agent's own prompt decides.
    pub fn left_to_agent(&self) -> bool {
        matches!(self.whom, Whom::Agent)
    }
}

impl Approver for Asked {
    fn ask(&self, question: &Question, open: &dyn Fn() -> bool) -> Result<Answer, AskError> {
        *self.question.lock().unwrap_or_else(PoisonError::into_inner) = Some(question.clone());
        match &self.whom {
            Whom::Configured(in_order) => in_order.ask(question, open),
            Whom::Agent => Err(AskError::Unavailable("left to the agent's own prompt".into())),
            Whom::Approvers => {
                self.notifier.notify(question);
                Elsewhere.ask(question, open)
            }
            Whom::Nobody => Nobody.ask(question, open),
        }
    }
}

/// The question in one line, for the agent or its user: why, which effects, and which of them were written in this session.
pub fn words(question: &Question, session: &Session) -> String {
    let rule = question.rule.as_deref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
    let effects: Vec<String> = question
        .effects
        .iter()
        .filter(|effect| effect.asked)
        .map(|effect| format!("{} {}", effect.action, effect.target))
        .collect();
    let runs = question.effects.iter().filter(|effect| effect.action == "run").map(|effect| effect.target.as_str());
    let written = session.written(&runs.collect::<Vec<_>>());
    let mut words = format!("{}{rule}", question.reason);
    if !effects.is_empty() {
        words.push_str(&format!(": {}", effects.join(", ")));
    }
    if !written.is_empty() {
        words.push_str(&format!("; written in this session: {}", written.join(", ")));
    }
    match question.remedy() {
        Ok(command) => words.push_str(&format!("; to always allow it: {command}")),
        Err(why) => words.push_str(&format!("; no rule can allow it: {why}")),
    }
    words
}
