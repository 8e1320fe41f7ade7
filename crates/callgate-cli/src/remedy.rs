//! `callgate allow`, `callgate deny` and `callgate policy undo`: one line that changes what is decided.
//!
//! A rule is written only if the call is judged again with it and decided as wished. These commands are for people: `standard`
//! denies them to agents.

use std::path::Path;

use callgate::approvals::{AskedCall, NoProposal, Proposal, candidates, take_rule};
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::Locations;
use callgate::{Assessment, Call, Decision, Gate, SandboxSupport};
use callgate_audit::learn::RecordedCall;
use callgate_audit::read::Entries;
use callgate_model::show::visible;
use clap::Args;
use serde_json::json;

use crate::always::{self, Wish};
use crate::audit::{LogArguments, cut};
use crate::choice::{self, CallArguments, DoorArguments, PlaceArguments, PolicyArguments, SandboxArgument};
use crate::outcome::{Outcome, Trouble};

/// How many recorded calls a rule is tried on, the newest first, and how many of them are shown.
const TRIED: usize = 2_000;
const SHOWN: usize = 3;

/// The arguments of `allow` and `deny`.
#[derive(Debug, Args)]
pub struct RemedyArguments {
    /// The shell command: one text, or its words
    #[arg(conflicts_with_all = ["tool", "last"])]
    pub command: Vec<String>,
    /// A tool instead of a shell command; mcp__SERVER__TOOL for a server's tool
    #[arg(long, value_name = "NAME", conflicts_with = "last")]
    pub tool: Option<String>,
    /// Its input: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", requires = "tool", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// The call that was asked about or refused last, from the audit log
    #[arg(long)]
    pub last: bool,
    /// Which rule to write, if there are several: 1 is the narrowest
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub rule: usize,
    /// Only show what would be written
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Where the call happens
    #[command(flatten)]
    pub place: PlaceArguments,
}

/// `callgate allow`
pub fn allow(arguments: &RemedyArguments) -> Result<Outcome, Trouble> {
    let subject = Subject::of(arguments)?;
    // as agents run it, and as `callgate run` does where there is a sandbox
    let gates = [subject.gate(SandboxSupport::Missing)?, subject.gate(SandboxSupport::Available)?];
    let mut proposals: Option<Vec<Proposal>> = None;
    let mut ruling = None;
    for gate in &gates {
        let assessment = subject.assess(gate)?;
        match assessment.ruling().decision {
            Decision::Allow | Decision::Contain => {
                ruling.get_or_insert(assessment.ruling().clone());
            }
            Decision::Ask => {
                let passing = match gate.proposals(&subject.call, &assessment) {
                    Ok(passing) => passing,
                    Err(why) => return none_can(arguments, &assessment, &why.to_string()),
                };
                let known = proposals.get_or_insert_with(|| passing.clone());
                known.retain(|proposal| passing.contains(proposal));
            }
            Decision::Deny => {
                let why =
                    "it is denied, and an allow only answers questions; change the rule or the boundary that denies it";
                return none_can(arguments, &assessment, why);
            }
        }
    }
    match (proposals, ruling) {
        (Some(proposals), _) if proposals.is_empty() => {
            none_can(arguments, &subject.assess(&gates[0])?, &NoProposal::WouldNotPass.to_string())
        }
        (Some(proposals), _) => offer(arguments, &subject, &gates[0], Wish::Allow, &proposals),
        (None, ruling) => {
            let rule = ruling.and_then(|ruling| ruling.rule).unwrap_or_else(|| "the default".to_owned());
            report(arguments, json!({ "written": false, "already": rule }), || {
                anstream::println!("already allowed, by {}", visible(&rule));
            });
            Ok(Outcome::Done)
        }
    }
}

/// `callgate deny`
pub fn deny(arguments: &RemedyArguments) -> Result<Outcome, Trouble> {
    let subject = Subject::of(arguments)?;
    let gate = subject.gate(SandboxSupport::Missing)?;
    let assessment = subject.assess(&gate)?;
    if let (Decision::Deny, rule) = (assessment.ruling().decision, &assessment.ruling().rule) {
        let rule = rule.clone().unwrap_or_else(|| "the default".to_owned());
        report(arguments, json!({ "written": false, "already": rule }), || {
            anstream::println!("already denied, by {}", visible(&rule));
        });
        return Ok(Outcome::Done);
    }
    let description = assessment.description();
    let parts = description.parts.iter().enumerate();
    let effects: Vec<(usize, usize)> =
        parts.flat_map(|(part, of)| (0..of.effects.len()).map(move |effect| (part, effect))).collect();
    let asked = AskedCall { tool: &subject.call.tool, description, effects: &effects };
    let candidates = match candidates(&asked) {
        Ok(candidates) => candidates,
        Err(why) => return none_can(arguments, &assessment, &why.to_string()),
    };
    let flips = |proposal: &Proposal| {
        let tried = always::try_out(&subject.locations, proposal, Wish::Deny, Some(&subject.call));
        let secret = proposal.texts().iter().any(|text| gate.redactor().text(text) != *text);
        tried.is_ok() && !secret
    };
    let proposals: Vec<Proposal> = candidates.into_iter().filter(flips).collect();
    if proposals.is_empty() {
        return none_can(arguments, &assessment, "no rule that was tried denies it");
    }
    offer(arguments, &subject, &gate, Wish::Deny, &proposals)
}

/// The call that a rule is wanted for.
struct Subject {
    call: Call,
    locations: Locations,
}

impl Subject {
    fn of(arguments: &RemedyArguments) -> Result<Self, Trouble> {
        let call = if arguments.last {
            last()?
        } else {
            choice::call(&CallArguments {
                command: arguments.command.clone(),
                tool: arguments.tool.clone(),
                input: arguments.input.clone(),
                place: arguments.place.clone(),
                policy: PolicyArguments { policy: None },
                door: DoorArguments { door: None, sandbox: SandboxArgument::Auto },
                json: false,
            })?
        };
        let project = call.origin.workspace.clone().or_else(|| call.origin.directory.clone());
        Ok(Subject { locations: Locations::of(project.unwrap_or_default()), call })
    }

    fn gate(&self, sandbox: SandboxSupport) -> Result<Gate, Trouble> {
        let policy = load_policy(PolicyChoice::Layers(&self.locations), None)?.policy;
        Ok(Gate::builder().policy(policy).sandbox(sandbox).build())
    }

    fn assess(&self, gate: &Gate) -> Result<Assessment, Trouble> {
        gate.assess(&self.call).map_err(|refusal| Trouble::new(refusal.to_string()))
    }
}

/// The call that was asked about or refused last.
fn last() -> Result<Call, Trouble> {
    let directory = LogArguments { log: None }.directory().map_err(Trouble::new)?;
    let held = |recorded: &RecordedCall| recorded.decision >= Decision::Ask;
    let entries = Entries::open(&directory).map_err(|error| Trouble::new(error.to_string()))?;
    let last = entries.filter_map(|found| RecordedCall::of(&found.ok()?.entry)).filter(held).last();
    let last = last.ok_or_else(|| Trouble::new("the audit log has no call that was asked about or refused"))?;
    anstream::eprintln!("the last one was: {}", cut(&last.shown, 200));
    if !last.exact || last.call.input.to_string().contains("[redacted: ") {
        return Err(Trouble::new("the log has this call without its secrets or cut off; pass the command itself"));
    }
    Ok(last.call)
}

/// Says that no rule can, and why.
fn none_can(arguments: &RemedyArguments, assessment: &Assessment, why: &str) -> Result<Outcome, Trouble> {
    let ruling = assessment.ruling();
    let answer = json!({ "written": false, "decision": ruling.decision, "rule": ruling.rule, "place": ruling.place,
        "why": why });
    report(arguments, answer, || {
        anstream::println!("no rule can change this: {}", visible(why));
        if let Some(rule) = &ruling.rule {
            let place = ruling.place.as_deref().map(|place| format!(" ({})", visible(place))).unwrap_or_default();
            anstream::println!("it is decided by {}{place}", visible(rule));
        }
    });
    Ok(Outcome::Found)
}

/// Writes one of the rules, and says what it covers.
fn offer(
    arguments: &RemedyArguments,
    subject: &Subject,
    gate: &Gate,
    wish: Wish,
    proposals: &[Proposal],
) -> Result<Outcome, Trouble> {
    let chosen = arguments.rule.checked_sub(1).and_then(|index| proposals.get(index));
    let chosen = chosen.ok_or_else(|| Trouble::new(format!("there are {} rules to choose from", proposals.len())))?;
    let examples = examples(gate, wish, chosen, &subject.call);
    let act = if arguments.dry_run { always::try_out } else { always::write };
    let file = act(&subject.locations, chosen, wish, Some(&subject.call))
        .map_err(|why| Trouble::new(format!("no rule was written: {}", visible(&why))))?;
    let word = if wish == Wish::Deny { "deny" } else { "allow" };
    let also = chosen.extent.also_covers();
    let others: Vec<_> = (1_usize..).zip(proposals).filter(|(number, _)| *number != arguments.rule).collect();
    let answer = json!({
        "written": !arguments.dry_run, "file": file, "action": word, "covers": chosen.extent.to_string(),
        "also": also, "recorded": examples, "rule": wish.rule(chosen),
        "others": others.iter().map(|(number, other)| json!({"rule": number, "covers": other.extent.to_string()}))
            .collect::<Vec<_>>(),
    });
    report(arguments, answer, || {
        anstream::println!("{word}: {}", visible(&chosen.extent.to_string()));
        anstream::println!("  also covers {}", visible(&also));
        for example in &examples {
            anstream::println!("  also, from the log: {}", cut(example, 120));
        }
        match arguments.dry_run {
            true => anstream::println!("would be written to {}", visible(&file)),
            false => anstream::println!("written to {}; undo: callgate policy undo", visible(&file)),
        }
        for (number, other) in &others {
            let also = other.extent.also_covers();
            anstream::println!(
                "  --rule {number}: {} (also covers {})",
                visible(&other.extent.to_string()),
                visible(&also)
            );
        }
    });
    Ok(Outcome::Done)
}

fn report(arguments: &RemedyArguments, answer: serde_json::Value, print: impl FnOnce()) {
    if arguments.json {
        anstream::println!("{answer}");
    } else {
        print();
    }
}

/// Other recorded calls that the rule would decide about.
fn examples(gate: &Gate, wish: Wish, proposal: &Proposal, call: &Call) -> Vec<String> {
    let text = match wish {
        Wish::Always | Wish::Allow => proposal.rule("tried", "tried"),
        Wish::Deny => proposal.denial("tried", "tried"),
    };
    // without an answer of its own for what it does not name
    let Ok(rule) = callgate::Policy::from_yaml(&format!("version: 1\ndefault: allow\nrules:\n{text}"), "tried") else {
        return Vec::new();
    };
    let Ok(directory) = LogArguments { log: None }.directory() else { return Vec::new() };
    let Ok(entries) = Entries::open(&directory) else { return Vec::new() };
    let mut recorded: std::collections::VecDeque<RecordedCall> = std::collections::VecDeque::new();
    for entry in entries.filter_map(|found| RecordedCall::of(&found.ok()?.entry)) {
        if recorded.len() == TRIED {
            recorded.pop_front();
        }
        recorded.push_back(entry);
    }
    let covered = |recorded: &&RecordedCall| {
        let Ok(assessment) = recorded.assess(gate.assessor()) else { return false };
        let with = |rule| gate.assessor().judged_with(rule, &recorded.call, &assessment, &recorded.claims);
        let decision = assessment.ruling().decision;
        match wish {
            Wish::Always | Wish::Allow => {
                decision == Decision::Ask && !assessment.is_held_by_boundary() && with(&rule) < Decision::Ask
            }
            Wish::Deny => decision != Decision::Deny && with(&rule) == Decision::Deny,
        }
    };
    let mut shown: Vec<String> = Vec::new();
    for other in recorded.iter().rev().filter(|other| other.call.input != call.input).filter(covered) {
        if !shown.contains(&other.shown) {
            shown.push(other.shown.clone());
        }
        if shown.len() == SHOWN {
            break;
        }
    }
    shown
}

/// `callgate policy undo`
pub fn undo(json: bool) -> Result<Outcome, Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))?;
    let locations = Locations::of(&here);
    let file =
        locations.user.as_deref().ok_or_else(|| Trouble::new("cannot determine where the user policy file is"))?;
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let Some(name) = newest(&text) else {
        let message = format!("{} has no rule that callgate wrote", file.display());
        anstream::println!("{}", if json { json!({ "removed": null, "file": file }).to_string() } else { message });
        return Ok(Outcome::Found);
    };
    let loads = |new: &Path| {
        let locations = Locations { user: Some(new.to_owned()), ..locations.clone() };
        load_policy(PolicyChoice::Layers(&locations), None).map(|_| ()).map_err(|error| error.to_string())
    };
    take_rule(file, &name, &loads).map_err(|error| Trouble::new(error.to_string()))?;
    let message = format!("removed the rule {} from {}", visible(&name), file.display());
    anstream::println!("{}", if json { json!({ "removed": name, "file": file }).to_string() } else { message });
    Ok(Outcome::Done)
}

/// The newest rule that callgate wrote. Their names end with the time, which sorts as text.
fn newest(text: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- name:"));
    let names = names.map(|name| name.trim().trim_matches(['"', '\'']));
    let dated = names.filter_map(|name| {
        let time = Wish::ALL.iter().find_map(|wish| name.strip_prefix(wish.prefix()))?;
        callgate_model::clock::Timestamp::parse(time)?;
        Some((time, name))
    });
    // of two that were written in one second, the upper one is newer
    dated
        .fold(None, |newest: Option<(&str, &str)>, found| match newest {
            Some(newest) if newest.0 >= found.0 => Some(newest),
            _ => Some(found),
        })
        .map(|(_, name)| name.to_owned())
}
