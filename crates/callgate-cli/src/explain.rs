//! `callgate explain`: every step from the call to the verdict.

use anstyle::Style;
use callgate::assess::Assessment;
use callgate::{Gate, Refusal};
use callgate_model::description::{Part, PlacedEffect};
use callgate_model::effect::Coverage;
use callgate_model::wording;
use serde_json::{Value, json};

use crate::choice::CallArguments;
use crate::outcome::{Outcome, Trouble};
use crate::{check, choice, shown};

/// Judges one call and prints how that came about.
pub fn run(arguments: &CallArguments) -> Result<Outcome, Trouble> {
    let (gate, assessed) = choice::assessed(arguments)?;
    if arguments.json {
        anstream::println!("{:#}", as_json(&gate, &assessed));
    } else {
        check::print_verdict(&gate, &assessed);
        if let Ok(assessment) = &assessed {
            print_tree(&gate, assessment);
        }
    }
    Ok(Outcome::Judged(check::decision(&assessed)))
}

fn print_tree(gate: &Gate, assessment: &Assessment) {
    let dim = Style::new().dimmed();
    let bold = Style::new().bold();
    let coverage = match assessment.description().coverage {
        Coverage::Complete => "everything is understood",
        Coverage::Partial => "not everything is understood",
    };
    anstream::println!(
        "        {} · risk {} · {coverage}",
        assessment.description().category,
        assessment.risk().as_str()
    );
    for (number, part) in assessment.description().parts.iter().enumerate() {
        anstream::println!();
        anstream::println!("{bold}{:>5}.{bold:#}  {}", number.saturating_add(1), headline(gate, part));
        for (place, placed) in part.effects.iter().enumerate() {
            check::print_effect(gate, placed);
            if let Some(ruling) = assessment.ruling_of(number, place) {
                let style = check::style(ruling.decision);
                let rule = ruling.rule.as_deref().unwrap_or("default");
                anstream::println!("                  {style}{}{style:#} {dim}{rule}{dim:#}", ruling.decision);
            }
        }
    }
    anstream::println!();
    for step in assessment.steps() {
        anstream::println!("        {dim}{:<9} {:>8.1} µs{dim:#}", step.name, step.duration.as_secs_f64() * 1e6);
    }
}

/// The words of a part as they will run, with what was peeled off.
fn headline(gate: &Gate, part: &Part) -> String {
    let mut line = gate.redactor().text(&wording::command(part));
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

fn as_json(gate: &Gate, assessed: &Result<Assessment, Refusal>) -> Value {
    let Ok(assessment) = assessed else { return check::answer(gate, assessed) };
    let parts = assessment.description().parts.iter().enumerate();
    let parts: Vec<Value> = parts.map(|(number, part)| part_as_json(gate, assessment, number, part)).collect();
    let mut answer = check::summary(gate, assessed);
    if let Value::Object(fields) = &mut answer {
        fields.insert("parts".to_owned(), Value::Array(parts));
        fields.insert("classification".to_owned(), json!(assessment.classification()));
        fields.insert("steps".to_owned(), json!(assessment.steps()));
    }
    answer
}

fn part_as_json(gate: &Gate, assessment: &Assessment, number: usize, part: &Part) -> Value {
    let effect = |(place, placed): (usize, &PlacedEffect)| {
        let mut effect = shown::effect_as_json(placed, gate.redactor());
        if let (Value::Object(fields), Some(ruling)) = (&mut effect, assessment.ruling_of(number, place)) {
            let reason = gate.redactor().text(&ruling.reason);
            let ruling =
                json!({ "decision": ruling.decision, "rule": ruling.rule, "place": ruling.place, "reason": reason });
            fields.insert("ruling".to_owned(), ruling);
        }
        effect
    };
    json!({
        "command": gate.redactor().text(&wording::command(part)),
        "words": part.words.len(),
        "wrappers": part.wrappers,
        "elsewhere": part.elsewhere,
        "effects": part.effects.iter().enumerate().map(effect).collect::<Vec<_>>(),
    })
}
