//! The user's own rules that allow a call about which callgate decides otherwise.

use callgate::policy::Decision;
use callgate::{Call, Gate};
use callgate_install::HostEnvironment;
use serde::Serialize;

use crate::error::ImportError;
use crate::importer::Importer;
use crate::probe::Probe;
use crate::proof::{AgentDecision, Reading};
use crate::settings_file::SettingsFile;

/// A rule that allows a call in the agent, where callgate decides otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverriddenRule {
    /// The file and the text of the rule.
    pub origin: String,
    /// An example call in one line.
    pub call: String,
    /// The decision of callgate about it.
    pub decision: Decision,
    #[serde(skip)]
    example: Call,
}

impl OverriddenRule {
    /// The decision of another gate about the example.
    pub fn judged_by(&self, gate: &Gate) -> Decision {
        decide(gate, &self.example)
    }
}

fn decide(gate: &Gate, call: &Call) -> Decision {
    gate.assess(call).map_or(Decision::Deny, |judged| judged.ruling().decision)
}

/// The agent's own allow rules about which a gate decides otherwise, each with one example.
pub fn overridden(
    importer: Importer,
    files: &[SettingsFile],
    gate: &Gate,
    environment: &HostEnvironment,
) -> Result<Vec<OverriddenRule>, ImportError> {
    let reading = crate::read(importer, files, environment)?;
    let rules = reading.examples.iter().filter(|rule| rule.allows);
    let found = rules.filter_map(|rule| {
        // Odd forms of a command are asked about anywhere; its plainest form is what the rule was written for.
        let most = if rule.is_broad() { usize::MAX } else { 1 };
        rule.probes.iter().filter(|probe| is_allowed(&reading, probe)).take(most).find_map(|probe| {
            let example = reading.tools.call(probe, environment)?;
            let decision = decide(gate, &example);
            let (origin, call) = (rule.origin.clone(), probe.shown(reading.tools));
            (decision != Decision::Allow).then_some(OverriddenRule { origin, call, decision, example })
        })
    });
    Ok(found.collect())
}

/// Whether the agent allows a call. A tool that takes an input is judged by its input, which an example of the bare tool lacks.
fn is_allowed(reading: &Reading, probe: &Probe) -> bool {
    let bare = matches!(probe, Probe::Tool(name) if reading.tools.has(name));
    !bare && reading.model.decide(probe) == AgentDecision::Allowed
}

/// Whether the agent's own rules allow this shell command.
pub fn allows_command(
    importer: Importer,
    files: &[SettingsFile],
    command: &str,
    environment: &HostEnvironment,
) -> Result<bool, ImportError> {
    let reading = crate::read(importer, files, environment)?;
    let by_rule = reading.examples.iter().any(|rule| rule.allows);
    Ok(by_rule && reading.model.decide(&Probe::Shell(command.to_owned())) == AgentDecision::Allowed)
}
