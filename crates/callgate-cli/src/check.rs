//! `callgate check`: the verdict first, then the effects, then the rule.

use anstyle::{AnsiColor, Style};
use callgate::approvals::Patience;
use callgate::describe::PlacedEffect;
use callgate::gate::Explanation;
use callgate::policy::Decision;
use callgate::refusal::Refusal;
use callgate::show::visible;
use callgate::{Call, Gate, Verdict};
use serde_json::{Value, json};

use crate::arguments::{CallArguments, CheckArguments};
use crate::outcome::{Outcome, Trouble};
use crate::terminal::Who;
use crate::{choice, shown};

/// Judges one call and prints the answer.
pub fn run(arguments: &CallArguments) -> Result<Outcome, Trouble> {
    let call = choice::call(arguments)?;
    let directory = call.origin.directory.clone().unwrap_or_default();
    let gate = choice::gate(arguments.policy.policy.as_deref(), &directory)?;
    let judged = gate.explain(&call);
    if arguments.json {
        anstream::println!("{}", shown::one_line(&answer(&gate, &judged)));
    } else {
        print(&gate, &judged);
    }
    Ok(Outcome::Judged(decision(&judged)))
}

/// Judges one call as a gate in front of a tool would: whoever can answer is asked, grants are spent.
pub fn ask(arguments: &CheckArguments) -> Result<Outcome, Trouble> {
    let mut call = choice::call(&arguments.call)?;
    call.origin.session.clone_from(&arguments.session);
    call.origin.scope.clone_from(&arguments.scope);
    let who = if arguments.wait { Who::TerminalOrElsewhere } else { Who::Terminal };
    let gate = choice::asking_gate(arguments.call.policy.policy.as_deref(), &call, who)?;
    let patience = arguments.timeout.map(Patience::of).unwrap_or_default();
    let (outcome, answer) = match gate.check_with(call, patience) {
        Verdict::Permitted(permit) => (Decision::Allow, json!({ "decision": "allow", "id": permit.id() })),
        Verdict::Refused(refusal) => (
            Decision::Deny,
            json!({
                "decision": "deny",
                "rule": refusal.rule,
                "reason": refusal.reason,
                "kind": refusal.kind.as_str(),
                "hint": refusal.hint,
            }),
        ),
    };
    if arguments.call.json {
        anstream::println!("{answer}");
    } else {
        let style = style(outcome);
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or("permitted");
        anstream::println!("{style}{:<7}{style:#} {}", shown::decision(outcome), visible(reason));
    }
    Ok(Outcome::Judged(outcome))
}

/// What was decided; a call that could not be judged is denied.
pub fn decision(judged: &Result<Explanation, Refusal>) -> Decision {
    judged.as_ref().map_or(Decision::Deny, |explanation| explanation.ruling().decision)
}

/// Judges a call for a program.
pub fn judge(gate: &Gate, call: &Call) -> Value {
    answer(gate, &gate.explain(call))
}

fn answer(gate: &Gate, judged: &Result<Explanation, Refusal>) -> Value {
    match judged {
        Ok(explanation) => {
            let ruling = explanation.ruling();
            json!({
                "decision": shown::decision(ruling.decision),
                "rule": ruling.rule,
                "place": ruling.place,
                "reason": gate.redactor().text(&ruling.reason),
                "risk": explanation.risk().as_str(),
                "category": explanation.description().category,
                "coverage": explanation.description().coverage,
                "effects": explanation
                    .description()
                    .parts
                    .iter()
                    .flat_map(|part| &part.effects)
                    .map(|effect| shown::effect_as_json(effect, gate.redactor()))
                    .collect::<Vec<_>>(),
            })
        }
        Err(refusal) => json!({
            "decision": "deny",
            "rule": refusal.rule,
            "reason": refusal.reason,
            "kind": refusal.kind.as_str(),
            "hint": refusal.hint,
            "effects": [],
        }),
    }
}

/// The colour of a decision.
pub fn style(decision: Decision) -> Style {
    let colour = match decision {
        Decision::Allow => AnsiColor::Green,
        Decision::Contain => AnsiColor::Cyan,
        Decision::Ask => AnsiColor::Yellow,
        Decision::Deny => AnsiColor::Red,
    };
    Style::new().fg_color(Some(colour.into())).bold()
}

/// The verdict with its reason and rule, as the first lines.
pub fn print_verdict(gate: &Gate, judged: &Result<Explanation, Refusal>) {
    let decision = decision(judged);
    let style = style(decision);
    let word = shown::decision(decision);
    match judged {
        Ok(explanation) => {
            let ruling = explanation.ruling();
            anstream::println!("{style}{word:<7}{style:#} {}", visible(&gate.redactor().text(&ruling.reason)));
            match (&ruling.rule, &ruling.place) {
                (Some(rule), Some(place)) => anstream::println!("        rule {rule} ({place})"),
                (Some(rule), None) => anstream::println!("        rule {rule}"),
                (None, _) => anstream::println!("        no rule matches; this is the policy's default"),
            }
        }
        Err(refusal) => {
            anstream::println!("{style}{word:<7}{style:#} {}", visible(&refusal.reason));
            if let Some(hint) = &refusal.hint {
                anstream::println!("        {hint}");
            }
        }
    }
}

fn print(gate: &Gate, judged: &Result<Explanation, Refusal>) {
    print_verdict(gate, judged);
    let Ok(explanation) = judged else { return };
    anstream::println!();
    for effect in explanation.description().parts.iter().flat_map(|part| &part.effects) {
        print_effect(gate, effect);
    }
}

/// One effect: what, to what, and where that is known from.
pub fn print_effect(gate: &Gate, placed: &PlacedEffect) {
    let dim = Style::new().dimmed();
    let target = shown::target(&placed.effect, gate.redactor());
    let because = gate.redactor().text(&placed.effect.because);
    anstream::println!(
        "        {:<9} {:<40} {dim}{}{dim:#}",
        shown::action(placed.effect.action),
        format!("{target}{}", shown::remarks(placed)),
        visible(&because)
    );
}
