//! A policy as the gate uses it: one or several layers, and how their rulings combine.
//!
//! Layers stand in a known order: managed by the machine's owner, user, project. A lower layer never loosens a higher one's
//! deny. A layer that is not trusted may only tighten.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callgate_model::digest::sha256_hex_of;
use callgate_model::effect::{Action, Coverage, Effect};
use callgate_model::word::Word;

use super::{Classification, Decision, EffectRuling, JudgeRequest, Judgement, Ruling};
use crate::boundary::BoundarySettings;
use crate::builder::{PermissionHandler, PermissionPolicy};
use crate::directories;
use crate::file::approval_rules::ApprovalRules;
use crate::file::audit::AuditSettings;
use crate::file::model::{ExecInput, Timeouts};
use crate::rules::judge::{Judge, Outcome, Subject, Why};
use crate::source::Chain;

/// The rules a call is held to.
#[derive(Debug)]
pub struct Policy {
    pub(crate) layers: Vec<Layer>,
    pub(crate) home: Option<PathBuf>,
    boundary: BoundarySettings,
    audit: AuditSettings,
    version: String,
}

/// One layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub kind: LayerKind,
    pub trust: Trust,
    pub body: Body,
}

/// Who is responsible for a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// The owner of the machine.
    Managed,
    /// The user.
    User,
    /// The project.
    Project,
}

/// Whether a layer may loosen what higher layers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Trusted,
    MayOnlyTighten,
}

#[derive(Debug)]
pub(crate) enum Body {
    File(Box<Chain>),
    Built(Arc<PermissionPolicy>),
}

impl Body {
    pub(crate) fn chain(&self) -> Option<&Chain> {
        match self {
            Body::File(chain) => Some(chain),
            Body::Built(_) => None,
        }
    }
}

impl From<PermissionPolicy> for Arc<Policy> {
    fn from(policy: PermissionPolicy) -> Self {
        Arc::new(policy.into())
    }
}

impl From<PermissionPolicy> for Policy {
    fn from(policy: PermissionPolicy) -> Self {
        Self::of_layers(vec![Layer {
            kind: LayerKind::User,
            trust: Trust::Trusted,
            body: Body::Built(Arc::new(policy)),
        }])
    }
}

/// The boundary of all layers. What a layer that may only tighten adds to the lists is ignored.
fn boundary_of(layers: &[Layer]) -> BoundarySettings {
    let mut result = BoundarySettings::default();
    for layer in layers {
        let Body::File(chain) = &layer.body else { continue };
        let own = chain.settings.boundary.clone();
        match layer.trust {
            // A higher layer that refuses what lies outside has drawn the line.
            Trust::Trusted if result.outside == Some(Decision::Deny) => {}
            Trust::Trusted => {
                result.roots = own.roots.or(result.roots);
                result.readable = own.readable.or(result.readable);
                result.outside = own.outside.or(result.outside);
                result.list_outside = own.list_outside.or(result.list_outside);
            }
            Trust::MayOnlyTighten => {
                result.outside = result.outside.max(own.outside);
                result.list_outside = result.list_outside.max(own.list_outside);
            }
        }
    }
    result
}

/// The settings of the log. A project's file has no say, trusted or not: an agent works there, and the log is about the agent.
fn audit_of(layers: &[Layer]) -> AuditSettings {
    layers
        .iter()
        .filter(|layer| layer.kind != LayerKind::Project)
        .filter_map(|layer| layer.body.chain())
        .fold(AuditSettings::default(), |settings, chain| settings.or(&chain.settings.audit))
}

impl Policy {
    pub(crate) fn of_layers(layers: Vec<Layer>) -> Self {
        let version = sha256_hex_of(layers.iter().flat_map(|layer| {
            let version = match &layer.body {
                Body::File(chain) => chain.settings.version.clone(),
                Body::Built(policy) => policy.version(),
            };
            [vec![layer.kind as u8, layer.trust as u8], version.into_bytes()]
        }));
        let boundary = boundary_of(&layers);
        let audit = audit_of(&layers);
        Self { layers, home: directories::home(), boundary, audit, version }
    }

    /// The same policy for a caller with this home directory.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// What the policy says about the boundary.
    pub fn boundary_settings(&self) -> &BoundarySettings {
        &self.boundary
    }

    /// What the policy says about the log. Only the machine's owner and the user have a say in it, the owner first.
    pub fn audit_settings(&self) -> &AuditSettings {
        &self.audit
    }

    /// The policy's own handler, which is asked before the gate's.
    pub fn handler(&self) -> Option<Arc<dyn PermissionHandler>> {
        self.layers.iter().find_map(|layer| match &layer.body {
            Body::Built(policy) => policy.handler(),
            Body::File(_) => None,
        })
    }

    /// A hash of everything the policy is made of.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How long approvers may take; the shortest that any layer says.
    pub fn timeouts(&self) -> Timeouts {
        let shortest = |of: fn(&Timeouts) -> Option<u64>| {
            self.chains().filter_map(|(_, chain)| of(&chain.settings.timeouts)).min()
        };
        Timeouts {
            approval_ms: shortest(|timeouts| timeouts.approval_ms),
            human_ms: shortest(|timeouts| timeouts.human_ms),
        }
    }

    /// How long a question waits, if a file says so.
    pub fn approval_timeout(&self) -> Option<Duration> {
        self.timeouts().approval_ms.map(Duration::from_millis)
    }

    /// How far a running program covers what is typed into it. The strictest layer counts; one that may only tighten does no more.
    pub fn exec_input(&self) -> ExecInput {
        let of = |wanted: Trust| {
            let chains = self.chains().filter(move |(trust, _)| *trust == wanted);
            chains.filter_map(|(_, chain)| chain.settings.exec_input)
        };
        let trusted = of(Trust::Trusted).max().unwrap_or_default();
        of(Trust::MayOnlyTighten).max().map_or(trusted, |tightened| tightened.max(trusted))
    }

    /// Who answers where somebody would be asked, if a file has rules for that: those of the first file that may loosen. Files that
    /// may only tighten have no say in it.
    pub fn approval_rules(&self) -> Option<ApprovalRules> {
        let section = self.trusted_chains().find_map(|chain| chain.settings.approvals.as_ref())?;
        // checked when the file was read
        ApprovalRules::read(section).ok()
    }

    /// Whether a layer asks for everything to run in the sandbox.
    pub fn wants_sandbox(&self) -> bool {
        self.chains().any(|(_, chain)| chain.settings.sandbox)
    }

    /// Program tables that the files bring along, each with the file it comes from. Files that may only tighten bring none:
    /// a table says what is harmless.
    pub fn program_tables(&self) -> Vec<(&str, &str)> {
        self.trusted_chains()
            .flat_map(|chain| &chain.settings.programs)
            .map(|(file, table)| (file.as_str(), table.as_str()))
            .collect()
    }

    /// The files it is made of, each with its text, in the order in which their rules are tried. A policy from the cache has none.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.chains().flat_map(|(_, chain)| &chain.files);
        files.map(|file| (file.source.shown.as_str(), file.text.as_str()))
    }

    fn chains(&self) -> impl Iterator<Item = (Trust, &Chain)> {
        self.layers.iter().filter_map(|layer| Some((layer.trust, layer.body.chain()?)))
    }

    fn trusted_chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains().filter(|(trust, _)| *trust == Trust::Trusted).map(|(_, chain)| chain)
    }

    /// Whether something that was read from the cache was not as it was written. What was judged with it counts for nothing.
    pub fn is_damaged(&self) -> bool {
        self.chains().any(|(_, chain)| chain.is_damaged())
    }

    /// Judges a call: every effect by the first rule that matches it, the call by the strictest of these rulings.
    ///
    /// Where all layers together say ask, the rules `instead_of: ask` of the trusted ones are tried.
    pub fn judge(&self, request: &JudgeRequest<'_>) -> Judgement {
        self.judge_layers(request, self.layers.iter().collect())
    }

    /// The same as if a trusted file below all others had one more rule.
    pub fn judge_with(&self, request: &JudgeRequest<'_>, rule: &Policy) -> Judgement {
        // a layer that has nothing but rules `instead_of: ask` says nothing by itself
        self.judge_layers(request, self.layers.iter().chain(&rule.layers).collect())
    }

    fn judge_layers(&self, request: &JudgeRequest<'_>, layers: Vec<&Layer>) -> Judgement {
        let judges: Vec<LayerJudge<'_>> =
            layers.iter().map(|layer| LayerJudge::new(layer, *request, self.home.as_deref())).collect();
        let mut strictest: Option<Ruled> = None;
        let mut effects = Vec::new();
        for (subject, place) in subjects(request) {
            let mut ruled = combine(&judges, &subject);
            if ruled.outcome.decision == Decision::Ask {
                ruled = instead_of_ask(&judges, &subject).unwrap_or(ruled);
            }
            if let Some((part, effect)) = place {
                effects.push(EffectRuling { part, effect, ruling: self.ruling(&judges, &ruled) });
            }
            // Among rulings alike, the one with most at stake speaks for the call; then the first.
            let weight = |ruled: &Ruled| (ruled.outcome.decision, self.risk(ruled));
            if strictest.is_none_or(|strictest| weight(&ruled) > weight(&strictest)) {
                strictest = Some(ruled);
            }
        }
        // A policy without layers says nothing, and what nobody allows is denied.
        let strictest = strictest.unwrap_or(Ruled::NOBODY);
        let ruling = if self.is_damaged() {
            let reason = "the stored policy is damaged; it is made anew with the next call".to_owned();
            Ruling { decision: Decision::Deny, rule: None, place: None, reason }
        } else {
            self.ruling(&judges, &strictest)
        };
        let classification = self.classify(request, &strictest, &ruling);
        Judgement { ruling, effects, classification }
    }

    fn ruling(&self, judges: &[LayerJudge<'_>], ruled: &Ruled) -> Ruling {
        let Outcome { decision, rule, why } = ruled.outcome;
        let layer = self.layers.get(ruled.layer);
        if let Some(LayerJudge { body: JudgeBody::Built(outcome), .. }) = judges.get(ruled.layer) {
            return outcome.ruling.clone();
        }
        let compiled = layer.and_then(|layer| match &layer.body {
            Body::File(chain) => Some(&chain.compiled),
            Body::Built(_) => None,
        });
        let rule = compiled.and_then(|compiled| Some((compiled, compiled.rules.get(rule? as usize)?)));
        let Some((compiled, rule)) = rule else {
            let reason = match why {
                Why::Nothing => "nothing would be done".to_owned(),
                Why::NotUnderstood => "no rule matches, and what is not understood is asked about".to_owned(),
                _ if self.layers.is_empty() => "there is no policy".to_owned(),
                _ => format!("no rule matches; the default is {}", decision.as_str()),
            };
            return Ruling { decision, rule: None, place: None, reason };
        };
        let name = compiled.pool.get(rule.name);
        let reason = compiled.pool.get(rule.reason);
        let file = compiled.about.files.get(rule.file as usize).map_or("", String::as_str);
        Ruling {
            decision,
            rule: Some(name.to_owned()),
            place: Some(format!("{file}:{}", rule.line)),
            reason: match why {
                Why::Doubt => {
                    format!("the rule may apply ({reason}), but not everything is known that would decide it")
                }
                Why::Overrun => "a pattern of the rule took too long; what cannot be judged is refused".to_owned(),
                _ => reason.to_owned(),
            },
        }
    }

    /// How bad the rule that decided says it would be, from 0.
    fn risk(&self, ruled: &Ruled) -> u8 {
        let risk = match self.layers.get(ruled.layer).map(|layer| &layer.body) {
            Some(Body::File(chain)) => ruled.outcome.rule.and_then(|number| {
                let rule = chain.compiled.rules.get(number as usize)?;
                Some(chain.compiled.pool.get(rule.risk_level))
            }),
            _ => None,
        };
        match risk {
            Some("critical") => 4,
            Some("high") => 3,
            Some("medium") => 2,
            Some("low") => 1,
            _ => 0,
        }
    }

    fn classify(&self, request: &JudgeRequest<'_>, ruled: &Ruled, ruling: &Ruling) -> Classification {
        let rule = self.layers.get(ruled.layer).and_then(|layer| match &layer.body {
            Body::File(chain) => {
                let rule = chain.compiled.rules.get(ruled.outcome.rule? as usize)?;
                let pool = &chain.compiled.pool;
                Some((pool.get(rule.risk_level), pool.get(rule.description)))
            }
            Body::Built(_) => None,
        });
        let (risk, description) = rule.unwrap_or_default();
        let usual = match ruling.decision {
            Decision::Allow => "low",
            Decision::Contain | Decision::Ask => "medium",
            Decision::Deny => "high",
        };
        Classification {
            category: ruling.rule.clone().unwrap_or_else(|| request.description.category.clone()),
            risk_level: if risk.is_empty() { usual } else { risk }.to_owned(),
            description: if description.is_empty() { ruling.reason.clone() } else { description.to_owned() },
            deny_reason: (ruling.decision == Decision::Deny).then(|| ruling.reason.clone()),
            matched_rule: ruling.rule.clone(),
        }
    }
}

/// An outcome and the layer it comes from.
#[derive(Debug, Clone, Copy)]
struct Ruled {
    layer: usize,
    outcome: Outcome,
}

impl Ruled {
    const NOBODY: Self =
        Self { layer: usize::MAX, outcome: Outcome { decision: Decision::Deny, rule: None, why: Why::Default } };
}

/// A layer at work on one call.
struct LayerJudge<'a> {
    trust: Trust,
    body: JudgeBody<'a>,
}

enum JudgeBody<'a> {
    File { judge: Judge<'a>, has_default: bool },
    Built(crate::builder::Evaluated),
}

impl<'a> LayerJudge<'a> {
    fn new(layer: &'a Layer, request: JudgeRequest<'a>, home: Option<&'a Path>) -> Self {
        let body = match &layer.body {
            Body::File(chain) => JudgeBody::File {
                judge: Judge::new(&chain.compiled, request, home),
                has_default: chain.compiled.about.default.is_some(),
            },
            Body::Built(policy) => JudgeBody::Built(policy.evaluate(&request)),
        };
        Self { trust: layer.trust, body }
    }

    /// What the layer says, and how firmly.
    fn judge(&self, subject: &Subject<'_>) -> (Outcome, Firmness) {
        match &self.body {
            JudgeBody::File { judge, has_default } => {
                let outcome = judge.judge(subject);
                let firmness = match (outcome.rule, outcome.why) {
                    (Some(_), _) => Firmness::Rule,
                    (None, Why::Nothing) => Firmness::None,
                    (None, _) if *has_default => Firmness::Default,
                    (None, _) => Firmness::None,
                };
                (outcome, firmness)
            }
            JudgeBody::Built(evaluated) => {
                let firmness = if evaluated.by_rule { Firmness::Rule } else { Firmness::Default };
                let outcome = Outcome { decision: evaluated.ruling.decision, rule: None, why: Why::Rule };
                (outcome, firmness)
            }
        }
    }
}

/// How firmly a layer says something, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Firmness {
    /// It says nothing.
    None,
    /// Its written default.
    Default,
    /// One of its rules.
    Rule,
}

/// What all layers together say of one effect.
fn combine(judges: &[LayerJudge<'_>], subject: &Subject<'_>) -> Ruled {
    let mut result: Option<(Ruled, Firmness)> = None;
    for (layer, judge) in judges.iter().enumerate() {
        let (outcome, firmness) = judge.judge(subject);
        let ruled = Ruled { layer, outcome };
        let replaces = match &result {
            None => true,
            // A higher layer's deny stands, whether a rule says it or a default somebody wrote.
            Some((higher, firm)) if higher.outcome.decision == Decision::Deny && *firm > Firmness::None => false,
            Some((higher, firm)) => match judge.trust {
                Trust::MayOnlyTighten => firmness == Firmness::Rule && outcome.decision > higher.outcome.decision,
                Trust::Trusted => firmness == Firmness::Rule || firmness > Firmness::None && *firm < Firmness::Rule,
            },
        };
        if replaces {
            result = Some((ruled, firmness));
        }
    }
    result.map_or(Ruled::NOBODY, |(ruled, _)| ruled)
}

/// What a trusted layer says instead of the question that all together came to.
fn instead_of_ask(judges: &[LayerJudge<'_>], subject: &Subject<'_>) -> Option<Ruled> {
    let trusted = judges.iter().enumerate().filter(|(_, judge)| judge.trust == Trust::Trusted);
    trusted
        .filter_map(|(layer, judge)| match &judge.body {
            JudgeBody::File { judge, .. } => judge.instead_of_ask(subject).map(|outcome| Ruled { layer, outcome }),
            JudgeBody::Built(_) => None,
        })
        .next()
}

pub(crate) type PlacedSubject<'a> = (Subject<'a>, Option<(usize, usize)>);

/// Everything that is judged about a call: its effects, and what stands for parts and calls without any.
pub(crate) fn subjects<'a>(request: &JudgeRequest<'a>) -> impl Iterator<Item = PlacedSubject<'a>> {
    let description = request.description;
    let is_opaque = |effect: &Effect| effect.action == Action::Opaque;
    let has_opaque = description.parts.iter().flat_map(|part| &part.effects).any(|placed| is_opaque(&placed.effect));
    let nothing = |action| (Subject { part: None, effect: None, place: None, action }, None);
    let empty = description.parts.iter().all(|part| part.effects.is_empty() && part.words.is_empty());
    // Something was not understood, and nothing says what: that is opaque as well.
    let hidden = (description.coverage == Coverage::Partial && !has_opaque
        || empty && description.category == "unknown")
        .then(|| nothing(Some(Action::Opaque)));
    let idle = (empty && hidden.is_none()).then(|| nothing(None));
    let parts = description.parts.iter().enumerate().flat_map(|(number, part)| {
        let effects = part.effects.iter().enumerate().map(move |(index, placed)| {
            let subject = Subject {
                part: Some((number, part)),
                effect: Some(&placed.effect),
                place: placed.place.as_ref(),
                action: Some(placed.effect.action),
            };
            (subject, Some((number, index)))
        });
        // A command without effects still runs its program.
        let run = (part.effects.is_empty() && !part.words.is_empty()).then(|| {
            let known = matches!(part.words.first(), Some(Word::Known(_)));
            let action = if known { Action::Run } else { Action::Opaque };
            (Subject { part: Some((number, part)), effect: None, place: None, action: Some(action) }, None)
        });
        effects.chain(run)
    });
    parts.chain(hidden).chain(idle)
}
