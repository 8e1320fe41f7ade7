//! `callgate explain`: every step from the call to the verdict.

use anstyle::Style;
use callgate::describe::Part;
use callgate::gate::Explanation;
use callgate::{Call, Gate};
use serde_json::{Value, json};

use crate::arguments::CallArguments;
use crate::outcome::{Outcome, Trouble};
use crate::{check, choice, shown};

/// Judges one call and prints how that came about.
pub fn run(arguments: &CallArguments) -> Result<Outcome, Trouble> {
    let call = choice::call(arguments)?;
    let directory = call.origin.directory.clone().unwrap_or_default();
    let gate = choice::gate(arguments.policy.policy.as_deref(), &directory)?;
    let judged = gate.explain(&call);
    match (&judged, arguments.json) {
        (Ok(explanation), true) => anstream::println!("{:#}", as_json(&gate, &call, explanation)),
        (Ok(explanation), false) => {
            check::print_verdict(&gate, &judged);
            print_tree(&gate, explanation);
        }
        (Err(_), true) => anstream::println!("{:#}", check::judge(&gate, &call)),
        (Err(_), false) => check::print_verdict(&gate, &judged),
    }
    Ok(Outcome::Judged(check::decision(&judged)))
}

fn print_tree(gate: &Gate, explanation: &Explanation) {
    let dim = Style::new().dimmed();
    let bold = Style::new().bold();
    let coverage = match explanation.description().coverage {
        callgate_shell::effect::Coverage::Complete => "everything is understood",
        callgate_shell::effect::Coverage::Partial => "not everything is understood",
    };
    anstream::println!(
        "        {} · risk {} · {coverage}",
        explanation.description().category,
        explanation.risk().as_str()
    );
    for (number, part) in explanation.description().parts.iter().enumerate() {
        anstream::println!();
        anstream::println!("{bold}{:>5}.{bold:#}  {}", number.saturating_add(1), headline(gate, part));
        for (place, placed) in part.effects.iter().enumerate() {
            check::print_effect(gate, placed);
            if let Some(ruling) = explanation.ruling_of(number, place) {
                let style = check::style(ruling.decision);
                let rule = ruling.rule.as_deref().unwrap_or("default");
                anstream::println!(
                    "                  {style}{}{style:#} {dim}{rule}{dim:#}",
                    shown::decision(ruling.decision)
                );
            }
        }
    }
    anstream::println!();
    for step in explanation.steps() {
        anstream::println!("        {dim}{:<9} {:>8.1} µs{dim:#}", step.name, step.duration.as_secs_f64() * 1e6);
    }
}

/// The words of a part as they will run, with what was peeled off.
fn headline(gate: &Gate, part: &Part) -> String {
    let mut line = gate.redactor().text(&shown::words(part));
    if line.is_empty() {
        line = "(not a command)".to_owned();
    }
    if !part.wrappers.is_empty() {
        line.push_str(&format!("   run by {}", part.wrappers.join(", ")));
    }
    if let Some(place) = &part.elsewhere {
        line.push_str(&format!("   on {place}"));
    }
    line
}

fn as_json(gate: &Gate, call: &Call, explanation: &Explanation) -> Value {
    let parts: Vec<Value> = explanation
        .description()
        .parts
        .iter()
        .enumerate()
        .map(|(number, part)| {
            let effects: Vec<Value> = part
                .effects
                .iter()
                .enumerate()
                .map(|(place, placed)| {
                    let mut effect = shown::effect_as_json(placed, gate.redactor());
                    if let (Value::Object(fields), Some(ruling)) = (&mut effect, explanation.ruling_of(number, place)) {
                        fields.insert(
                            "ruling".to_owned(),
                            json!({
                                "decision": shown::decision(ruling.decision),
                                "rule": ruling.rule,
                                "place": ruling.place,
                                "reason": gate.redactor().text(&ruling.reason),
                            }),
                        );
                    }
                    effect
                })
                .collect();
            json!({
                "command": gate.redactor().text(&shown::words(part)),
                "words": part.words.len(),
                "wrappers": part.wrappers,
                "elsewhere": part.elsewhere,
                "effects": effects,
            })
        })
        .collect();
    let mut answer = check::judge(gate, call);
    if let Value::Object(fields) = &mut answer {
        fields.remove("effects");
        fields.insert("parts".to_owned(), Value::Array(parts));
        fields.insert("classification".to_owned(), json!(explanation.classification()));
        fields.insert("steps".to_owned(), json!(explanation.steps()));
    }
    answer
}
