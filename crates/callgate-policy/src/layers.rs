//! A policy of one or several layers, and how their rulings combine.
//!
//! The order of the layers is managed, user, project. A lower layer never overrides a deny of a higher one. A layer that is
//! not trusted can only tighten.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate_model::call::Origin;
use callgate_model::digest::sha256_hex_of;
use callgate_model::effect::{Action, CodeOrigin, Coverage, Effect, Target};
use callgate_model::fence::{Globs, Network, Protections};
use callgate_model::place::Zone;
use callgate_model::word::Word;

use super::{Classification, Decision, EffectRuling, FenceTerms, JudgeRequest, Judgement, Ruling};
use crate::boundary::BoundarySettings;
use crate::builder::{PermissionHandler, PermissionPolicy};
use crate::directories;
use crate::file::approval_rules::ApprovalRules;
use crate::file::audit::AuditSettings;
use crate::file::keys::RISKS;
use crate::file::model::{AgentAnswers, ExecInput, SandboxSettings, Timeouts};
use crate::rules::compile::{CompiledPolicy, Rule, limits_of};
use crate::rules::guard::RestrictedPaths;
use crate::rules::judge::{DecisionCause, EffectDecision, JudgedEffect, REPLACED, RuleEvaluator};
use crate::rules::matching::Text;
use crate::rules::path_list::GlobBases;
use crate::source::PolicyChain;

/// A loaded policy, which judges calls.
#[derive(Debug)]
pub struct Policy {
    pub(crate) layers: Vec<Layer>,
    pub(crate) home: Option<PathBuf>,
    boundary: BoundarySettings,
    audit: AuditSettings,
    version: String,
}

/// The sets of a policy that a fence is made of, with absolute globs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FenceGlobs {
    /// `@secrets`.
    pub secrets: Globs,
    /// `@runs-outside`.
    pub runs_outside: Globs,
    /// `@toolchains`.
    pub toolchains: Globs,
    /// `@caches`.
    pub caches: Globs,
    /// `@callgate`.
    pub own: Globs,
}

/// One layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub kind: LayerKind,
    pub trust: LayerTrust,
    pub body: LayerBody,
}

/// Who wrote a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// The administrator of the machine.
    Managed,
    /// The user.
    User,
    /// The project.
    Project,
}

/// Whether a layer can loosen the decisions of higher layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerTrust {
    Trusted,
    MayOnlyTighten,
}

#[derive(Debug)]
pub(crate) enum LayerBody {
    File(Box<PolicyChain>),
    Built(Arc<PermissionPolicy>),
}

impl LayerBody {
    pub(crate) fn chain(&self) -> Option<&PolicyChain> {
        match self {
            LayerBody::File(chain) => Some(chain),
            LayerBody::Built(_) => None,
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
            trust: LayerTrust::Trusted,
            body: LayerBody::Built(Arc::new(policy)),
        }])
    }
}

/// The boundary of all layers. Layers that can only tighten cannot add directories.
fn boundary_of(layers: &[Layer]) -> BoundarySettings {
    let mut result = BoundarySettings::default();
    for layer in layers {
        let Some(chain) = layer.body.chain() else { continue };
        let own = chain.settings.boundary.clone();
        match layer.trust {
            // A higher layer that denies everything outside has fixed the boundary.
            LayerTrust::Trusted if result.outside == Some(Decision::Deny) => {}
            LayerTrust::Trusted => {
                result.roots = own.roots.or(result.roots);
                result.readable = own.readable.or(result.readable);
                result.outside = own.outside.or(result.outside);
                result.list_outside = own.list_outside.or(result.list_outside);
            }
            LayerTrust::MayOnlyTighten => {
                result.outside = result.outside.max(own.outside);
                result.list_outside = result.list_outside.max(own.list_outside);
            }
        }
    }
    result
}

/// The audit settings. Project files are ignored, trusted or not: the log is about an agent that can write there.
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
                LayerBody::File(chain) => chain.settings.version.clone(),
                LayerBody::Built(policy) => policy.version(),
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

    /// The boundary settings of all layers.
    pub fn boundary_settings(&self) -> &BoundarySettings {
        &self.boundary
    }

    /// The audit settings of the managed layer and the user's, the managed one first. Project files are ignored.
    pub fn audit_settings(&self) -> &AuditSettings {
        &self.audit
    }

    /// The handler of the policy, which is asked before the handler of the gate.
    pub fn handler(&self) -> Option<Arc<dyn PermissionHandler>> {
        self.layers.iter().find_map(|layer| match &layer.body {
            LayerBody::Built(policy) => policy.handler(),
            LayerBody::File(_) => None,
        })
    }

    /// A hash of everything the policy is made of.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The timeouts; the shortest of all layers.
    pub fn timeouts(&self) -> Timeouts {
        Timeouts::shortest(self.chains().map(|(_, chain)| chain.settings.timeouts))
    }

    /// How long a question waits for an answer, if a file sets it.
    pub fn approval_timeout(&self) -> Option<Duration> {
        self.timeouts().approval_ms.map(Duration::from_millis)
    }

    /// How input to a running program is treated; the strictest of all layers.
    pub fn exec_input(&self) -> ExecInput {
        let of = |wanted: LayerTrust| {
            let chains = self.chains().filter(move |(trust, _)| *trust == wanted);
            chains.filter_map(|(_, chain)| chain.settings.exec_input)
        };
        let trusted = of(LayerTrust::Trusted).max().unwrap_or_default();
        of(LayerTrust::MayOnlyTighten).max().map_or(trusted, |tightened| tightened.max(trusted))
    }

    /// How long a yes at the agent's own prompt counts; the strictest of all layers.
    pub fn agent_answers(&self) -> AgentAnswers {
        self.chains().filter_map(|(_, chain)| chain.settings.agent_answers).max().unwrap_or_default()
    }

    /// The approval rules of the first trusted file that has any. Files that can only tighten are ignored.
    pub fn approval_rules(&self) -> Option<ApprovalRules> {
        let section = self.trusted_chains().find_map(|chain| chain.settings.approvals.as_ref())?;
        // checked when the file was read
        ApprovalRules::read(section).ok()
    }

    /// Whether a layer requires the sandbox for every command.
    pub fn wants_sandbox(&self) -> bool {
        self.sandbox_settings().restricted == Some(true)
    }

    /// The `sandbox:` settings; of all layers, the strictest.
    pub fn sandbox_settings(&self) -> SandboxSettings {
        self.chains().fold(SandboxSettings::default(), |all, (trust, chain)| {
            let own = chain.settings.sandbox;
            let or =
                |one: Option<bool>, other: Option<bool>| one.into_iter().chain(other).reduce(|one, other| one || other);
            let and =
                |one: Option<bool>, other: Option<bool>| one.into_iter().chain(other).reduce(|one, other| one && other);
            let is_trusted = trust == LayerTrust::Trusted;
            SandboxSettings {
                restricted: or(all.restricted, own.restricted),
                mode: all.mode.or(own.mode.filter(|_| is_trusted)),
                network: and(all.network, own.network.filter(|open| is_trusted || !open)),
                limits: all.limits.lowest(own.limits),
                // less is enough only if a trusted file says so, and all that say something together
                requires: match own.requires {
                    none if none.is_empty() && own.restricted == Some(true) && is_trusted => Protections::all(),
                    _ if all.requires.is_empty() && !is_trusted => all.requires,
                    stated => all.requires.and(stated),
                },
            }
        })
    }

    /// The globs that a fence is made of, for calls from one workspace: without `~`, `./` and braces.
    ///
    /// They are those of the first trusted layer that defines sets, or the bundled ones. Other layers can add secrets and protected
    /// names, and take nothing out.
    pub fn fence_globs(&self, home: Option<&Path>, workspace: Option<&Path>) -> FenceGlobs {
        static BUNDLED: OnceLock<Option<Policy>> = OnceLock::new();
        let bases = GlobBases::new(home, workspace);
        let globs = |chain: &PolicyChain, number: usize| -> Globs {
            let (compiled, mut all) = (&chain.compiled, Globs::default());
            let span = compiled.fence.get(number).map(|span| span.of(&compiled.fence_globs));
            for glob in span.iter().flat_map(|span| span.iter()) {
                if let Some(parts) = bases.absolute(compiled.pool.get(*glob)) {
                    all.push(&parts);
                }
            }
            all
        };
        let defining = || self.chains().filter(|(_, chain)| chain.compiled.fence.iter().any(|span| !span.is_empty()));
        let own = defining().find(|(trust, _)| *trust == LayerTrust::Trusted).map(|(_, chain)| chain);
        let Some(base) = own.or_else(|| {
            let bundled = BUNDLED.get_or_init(|| Policy::bundled("standard").ok());
            bundled.as_ref()?.chains().next().map(|(_, chain)| chain)
        }) else {
            return FenceGlobs::default();
        };
        let all = |number: usize| {
            let mut all = globs(base, number);
            for (_, chain) in defining().filter(|(_, chain)| !std::ptr::eq(*chain, base)) {
                all.extend(globs(chain, number).iter().filter(|glob| !glob.starts_with('!')));
            }
            all
        };
        FenceGlobs {
            secrets: all(0),
            runs_outside: all(1),
            toolchains: globs(base, 2),
            caches: globs(base, 3),
            own: all(4),
        }
    }

    /// The program tables of trusted files, each with its file. A table can declare a program harmless, so files that can only
    /// tighten have none.
    pub fn program_tables(&self) -> Vec<(&str, &str)> {
        self.trusted_chains()
            .flat_map(|chain| &chain.settings.programs)
            .map(|(file, table)| (file.as_str(), table.as_str()))
            .collect()
    }

    /// The files of the policy with their texts, in the order of their rules. Empty for a policy from the cache.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.chains().flat_map(|(_, chain)| &chain.files);
        files.map(|file| (file.source.shown.as_str(), file.text.as_str()))
    }

    /// Whether a path is one that a rule which asks or denies is about, for calls of one origin.
    ///
    /// Other conditions of the rule do not count, so this may say yes where the rule does not apply. Whoever looks into a
    /// directory asks this to find the names that matter.
    pub fn restricts<'a>(&'a self, origin: &'a Origin) -> impl Fn(Action, &Path, &Path) -> bool + 'a {
        let (home, workspace) = (self.home.as_deref(), origin.project());
        let layers: Vec<RestrictedPaths<'a>> =
            self.chains().map(|(_, chain)| RestrictedPaths::new(&chain.compiled, home, workspace)).collect();
        move |action, named, resolved| layers.iter().any(|layer| layer.contain(action, named, resolved))
    }

    fn chains(&self) -> impl Iterator<Item = (LayerTrust, &PolicyChain)> {
        self.layers.iter().filter_map(|layer| Some((layer.trust, layer.body.chain()?)))
    }

    fn trusted_chains(&self) -> impl Iterator<Item = &PolicyChain> {
        self.chains().filter(|(trust, _)| *trust == LayerTrust::Trusted).map(|(_, chain)| chain)
    }

    /// Whether a page of a cached policy was damaged. Decisions made with it must not be used.
    pub fn is_damaged(&self) -> bool {
        self.chains().any(|(_, chain)| chain.is_damaged())
    }

    /// Judges a call: every effect by the first rule that matches it, the call by the strictest of these rulings.
    ///
    /// What all layers together decide can be replaced by rules with `instead_of`: by any that tighten, and by those of trusted layers.
    pub fn judge(&self, request: &JudgeRequest<'_>) -> Judgement {
        self.judge_layers(request, self.layers.iter().collect())
    }

    /// Judges a call as if `rule` were one more trusted layer below all others.
    pub fn judge_with(&self, request: &JudgeRequest<'_>, rule: &Policy) -> Judgement {
        // a layer that has nothing but rules with `instead_of` says nothing by itself
        self.judge_layers(request, self.layers.iter().chain(&rule.layers).collect())
    }

    fn judge_layers(&self, request: &JudgeRequest<'_>, layers: Vec<&Layer>) -> Judgement {
        let judges: Vec<LayerEvaluator<'_>> =
            layers.iter().map(|layer| LayerEvaluator::new(layer, *request, self.home.as_deref())).collect();
        let mut strictest: Option<LayerDecision> = None;
        let mut effects = Vec::new();
        let mut terms = FenceTerms::default();
        for (subject, place) in subjects(request) {
            let mut ruled = combine(&judges, &subject);
            for replaced in REPLACED {
                if ruled.outcome.decision == replaced {
                    ruled = instead_of(&judges, &subject, &ruled).unwrap_or(ruled);
                }
            }
            if request.is_containable() {
                self.hold(&mut ruled, &subject, place, &mut terms);
            }
            if let Some((part, effect)) = place {
                effects.push(EffectRuling { part, effect, ruling: self.ruling(&judges, &ruled) });
            }
            // Among equal decisions, one that answers a question represents the call, then the one with the highest risk, then
            // the first.
            let answers = |ruled: &LayerDecision| {
                self.rule(ruled).is_some_and(|(_, rule)| rule.instead_of == Some(Decision::Ask))
            };
            let weight = |ruled: &LayerDecision| (ruled.outcome.decision, answers(ruled), self.risk(ruled));
            if strictest.is_none_or(|strictest| weight(&ruled) > weight(&strictest)) {
                strictest = Some(ruled);
            }
        }
        // A policy without layers denies everything.
        let strictest = strictest.unwrap_or(LayerDecision::NOBODY);
        let ruling = if self.is_damaged() {
            let reason = "the cached policy is damaged; it will be compiled again for the next call".to_owned();
            Ruling { decision: Decision::Deny, rule: None, place: None, reason, doubt: false }
        } else {
            self.ruling(&judges, &strictest)
        };
        let classification = self.classify(request, &strictest, &ruling);
        Judgement { ruling, effects, classification, terms }
    }

    /// Contains code that calls may write, though a rule allows it, and notes what the rule says about the fence.
    fn hold(
        &self,
        ruled: &mut LayerDecision,
        subject: &JudgedEffect<'_>,
        place: Option<(usize, usize)>,
        terms: &mut FenceTerms,
    ) {
        let rule = self.rule(ruled);
        let may_open = self.layers.get(ruled.layer).is_some_and(|layer| layer.trust == LayerTrust::Trusted);
        let is_free = may_open && rule.as_ref().is_some_and(|(_, rule)| rule.free);
        if runs_writable_code(subject) && !is_free {
            // a yes to code that comes from elsewhere lets it run as without a sandbox
            if ruled.outcome.decision < Decision::Ask || !is_fetched(subject) {
                terms.code.extend(place);
            }
            if ruled.outcome.decision == Decision::Allow {
                ruled.outcome.decision = Decision::Contain;
            }
        }
        let stated = rule.as_ref().map(|(_, rule)| Protections::from_bits(rule.requires));
        match ruled.outcome.decision {
            Decision::Allow => {}
            Decision::Contain => {
                let less = stated.filter(|stated| may_open && !stated.is_empty());
                terms.required = terms.required.and(less.unwrap_or_else(Protections::all));
            }
            Decision::Ask | Decision::Deny => {
                terms.required = Protections::all();
                return;
            }
        }
        let Some((compiled, rule)) = rule else { return };
        if !rule.limits.is_empty() {
            terms.limits = terms.limits.lowest(limits_of(&rule.limits.of(&compiled.limits)));
        }
        if !may_open {
            return;
        }
        let texts = rule.network.of(&compiled.network);
        let hosts = || texts.iter().map(|text| compiled.pool.get(*text).to_owned());
        match (&mut terms.network, hosts().next().as_deref()) {
            (_, None | Some("none")) | (Network::All, _) => {}
            (network, Some("all")) => *network = Network::All,
            (Network::Hosts(all), _) => {
                for host in hosts() {
                    if !all.contains(&host) {
                        all.push(host);
                    }
                }
            }
            (network, _) => *network = Network::Hosts(hosts().collect()),
        }
        if subject.action == Some(Action::Connect) && hosts().next().is_some_and(|first| first != "none") {
            terms.opened.extend(place);
        }
    }

    fn ruling(&self, judges: &[LayerEvaluator<'_>], ruled: &LayerDecision) -> Ruling {
        let EffectDecision { decision, why, .. } = ruled.outcome;
        if let Some(LayerEvaluator { body: EvaluatorBody::Built(outcome), .. }) = judges.get(ruled.layer) {
            return Ruling { decision, ..outcome.ruling.clone() };
        }
        let Some((compiled, rule)) = self.rule(ruled) else {
            let reason = match why {
                DecisionCause::Nothing => "the call has no effect".to_owned(),
                DecisionCause::NotUnderstood => "no rule matches, and the call could not be fully analyzed".to_owned(),
                _ if self.layers.is_empty() => "no policy is loaded".to_owned(),
                _ => format!("no rule matches; the default is {}", decision.as_str()),
            };
            return Ruling { decision, rule: None, place: None, reason, doubt: false };
        };
        let name = compiled.pool.get(rule.name);
        let reason = compiled.pool.get(rule.reason);
        let file = compiled.about.files.get(rule.file as usize).map_or("", String::as_str);
        Ruling {
            decision,
            doubt: why == DecisionCause::Doubt { denies: true },
            rule: Some(name.to_owned()),
            place: Some(format!("{file}:{}", rule.line)),
            reason: match why {
                DecisionCause::Doubt { .. } => {
                    format!("callgate cannot rule out this: {reason}")
                }
                DecisionCause::Overrun => "a regular expression of the rule exceeded its limit".to_owned(),
                _ => reason.to_owned(),
            },
        }
    }

    /// The rule that decided, if it was one of a file.
    fn rule(&self, ruled: &LayerDecision) -> Option<(&CompiledPolicy, Rule)> {
        let compiled = &self.layers.get(ruled.layer)?.body.chain()?.compiled;
        Some((compiled, compiled.rules.get(ruled.outcome.rule? as usize)?))
    }

    /// The risk level that the deciding rule states, from 0.
    fn risk(&self, ruled: &LayerDecision) -> usize {
        let risk = self.rule(ruled).map_or("", |(compiled, rule)| compiled.pool.get(rule.risk_level));
        RISKS.iter().position(|level| *level == risk).map_or(0, |level| level.saturating_add(1))
    }

    fn classify(&self, request: &JudgeRequest<'_>, ruled: &LayerDecision, ruling: &Ruling) -> Classification {
        let text = |of: fn(&Rule) -> Text| self.rule(ruled).map_or("", |(compiled, rule)| compiled.pool.get(of(&rule)));
        let (risk, description) = (text(|rule| rule.risk_level), text(|rule| rule.description));
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

/// Whether an effect runs code that lies where calls may write, or that the call brings along. git's hooks and settings are
/// protected from contained calls.
fn runs_writable_code(subject: &JudgedEffect<'_>) -> bool {
    if subject.action != Some(Action::Run) {
        return false;
    }
    match subject.effect.map(|effect| &effect.target) {
        Some(Target::Program(program)) => match program.origin {
            CodeOrigin::Project | CodeOrigin::File => !program.name.starts_with("git-"),
            CodeOrigin::Inline | CodeOrigin::Fetched => true,
            CodeOrigin::Known | CodeOrigin::Unknown | CodeOrigin::Defined => false,
        },
        Some(Target::Path(_)) => {
            subject.place.is_none_or(|place| !matches!(place.zone, Zone::Readable | Zone::Outside))
        }
        _ => false,
    }
}

/// Whether an effect runs code that comes from elsewhere.
fn is_fetched(subject: &JudgedEffect<'_>) -> bool {
    let target = subject.effect.map(|effect| &effect.target);
    matches!(target, Some(Target::Program(program)) if program.origin == CodeOrigin::Fetched)
}

/// A decision and the layer that made it.
#[derive(Debug, Clone, Copy)]
struct LayerDecision {
    layer: usize,
    outcome: EffectDecision,
}

impl LayerDecision {
    const NOBODY: Self = Self {
        layer: usize::MAX,
        outcome: EffectDecision {
            decision: Decision::Deny,
            rule: None,
            why: DecisionCause::Default,
            settled: false,
            file: u32::MAX,
        },
    };
}

/// Evaluates one layer for one call.
struct LayerEvaluator<'a> {
    trust: LayerTrust,
    body: EvaluatorBody<'a>,
}

enum EvaluatorBody<'a> {
    File { judge: RuleEvaluator<'a>, has_default: bool },
    Built(crate::builder::BuiltRuling),
}

impl<'a> LayerEvaluator<'a> {
    fn new(layer: &'a Layer, request: JudgeRequest<'a>, home: Option<&'a Path>) -> Self {
        let body = match &layer.body {
            LayerBody::File(chain) => EvaluatorBody::File {
                judge: RuleEvaluator::new(&chain.compiled, request, home),
                has_default: chain.compiled.about.default.is_some(),
            },
            LayerBody::Built(policy) => EvaluatorBody::Built(policy.evaluate(&request)),
        };
        Self { trust: layer.trust, body }
    }

    /// The decision of the layer, and how firm it is.
    fn judge(&self, subject: &JudgedEffect<'_>) -> (EffectDecision, Firmness) {
        match &self.body {
            EvaluatorBody::File { judge, has_default } => {
                let outcome = judge.judge(subject);
                let firmness = match (outcome.rule, outcome.why) {
                    (Some(_), _) => Firmness::Rule,
                    (None, DecisionCause::Nothing) => Firmness::None,
                    (None, _) if *has_default => Firmness::Default,
                    (None, _) => Firmness::None,
                };
                (outcome, firmness)
            }
            EvaluatorBody::Built(evaluated) => {
                let firmness = if evaluated.by_rule { Firmness::Rule } else { Firmness::Default };
                let outcome = EffectDecision::new(evaluated.ruling.decision, None, DecisionCause::Rule);
                (outcome, firmness)
            }
        }
    }
}

/// How firm a decision is, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Firmness {
    /// The layer decides nothing.
    None,
    /// Its written default.
    Default,
    /// One of its rules.
    Rule,
}

/// The decision of all layers about one effect.
fn combine(judges: &[LayerEvaluator<'_>], subject: &JudgedEffect<'_>) -> LayerDecision {
    let mut result: Option<(LayerDecision, Firmness)> = None;
    for (layer, judge) in judges.iter().enumerate() {
        let (outcome, firmness) = judge.judge(subject);
        let ruled = LayerDecision { layer, outcome };
        let replaces = match &result {
            None => true,
            // A higher layer's deny stands, whether a rule says it or a default somebody wrote.
            Some((higher, firm)) if higher.outcome.decision == Decision::Deny && *firm > Firmness::None => false,
            Some((higher, firm)) => match judge.trust {
                LayerTrust::MayOnlyTighten => firmness == Firmness::Rule && outcome.decision > higher.outcome.decision,
                LayerTrust::Trusted => {
                    firmness == Firmness::Rule || firmness > Firmness::None && *firm < Firmness::Rule
                }
            },
        };
        if replaces {
            result = Some((ruled, firmness));
        }
    }
    result.map_or(LayerDecision::NOBODY, |(ruled, _)| ruled)
}

/// The decision that replaces that of all layers: the first of a trusted layer, or one of any layer that tightens.
fn instead_of(
    judges: &[LayerEvaluator<'_>],
    subject: &JudgedEffect<'_>,
    ruled: &LayerDecision,
) -> Option<LayerDecision> {
    judges.iter().enumerate().find_map(|(layer, judge)| {
        let EvaluatorBody::File { judge: rules, .. } = &judge.body else { return None };
        let outcome = rules.instead_of(&ruled.outcome, subject, layer == ruled.layer)?;
        (judge.trust == LayerTrust::Trusted || outcome.decision > ruled.outcome.decision)
            .then_some(LayerDecision { layer, outcome })
    })
}

pub(crate) type NumberedEffect<'a> = (JudgedEffect<'a>, Option<(usize, usize)>);

/// Everything to judge about a call: its effects, and one that represents each part or call without effects.
pub(crate) fn subjects<'a>(request: &JudgeRequest<'a>) -> impl Iterator<Item = NumberedEffect<'a>> {
    let description = request.description;
    let is_opaque = |effect: &Effect| effect.action == Action::Opaque;
    let has_opaque = description.parts.iter().flat_map(|part| &part.effects).any(|placed| is_opaque(&placed.effect));
    let nothing = |action| (JudgedEffect { part: None, effect: None, place: None, action }, None);
    let empty = description.parts.iter().all(|part| part.effects.is_empty() && part.words.is_empty());
    // A call that was only partly analyzed is opaque, even if no effect says so.
    let hidden = (description.coverage == Coverage::Partial && !has_opaque
        || empty && description.category == "unknown")
        .then(|| nothing(Some(Action::Opaque)));
    let idle = (empty && hidden.is_none()).then(|| nothing(None));
    let parts = description.parts.iter().enumerate().flat_map(|(number, part)| {
        let effects = part.effects.iter().enumerate().map(move |(index, placed)| {
            let subject = JudgedEffect {
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
            (JudgedEffect { part: Some((number, part)), effect: None, place: None, action: Some(action) }, None)
        });
        effects.chain(run)
    });
    parts.chain(hidden).chain(idle)
}
