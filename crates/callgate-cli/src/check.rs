//! `callgate check`: the verdict first, then the effects, then the rule.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use callgate::approvals::Patience;
use callgate::assess::Assessment;
use callgate::gate::CheckOptions;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::Locations;
use callgate::{Decision, Gate, Refusal};
use callgate_model::description::PlacedEffect;
use callgate_model::quote::shell_word;
use callgate_model::show::visible;
use callgate_model::wording;
use clap::Args;
use serde_json::{Value, json};

use crate::choice::CallArguments;
use crate::outcome::{Outcome, Trouble};
use crate::terminal::Who;
use crate::{choice, shown, untrusted};

/// The arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The call
    #[command(flatten)]
    pub call: CallArguments,
    /// Where the answer is ask, ask: here on the terminal, or in another one through `callgate approvals`
    #[arg(long, conflicts_with = "jsonl")]
    pub ask: bool,
    /// With --ask: if there is no terminal here, wait for `callgate approvals` in another one
    #[arg(long, requires = "ask")]
    pub wait: bool,
    /// With --ask: how long the answer may take (90s, 10m), whatever policy and environment say
    #[arg(long, value_name = "TIME", requires = "ask", value_parser = humantime::parse_duration)]
    pub timeout: Option<Duration>,
    /// With --ask: the session that the call belongs to
    #[arg(long, value_name = "SESSION", requires = "ask")]
    pub session: Option<String>,
    /// With --ask: the task that the call belongs to; its grants may be spent
    #[arg(long, value_name = "TASK", requires = "ask")]
    pub scope: Option<String>,
    /// Read requests from standard input, one JSON object a line, and answer each with one
    #[arg(long, conflicts_with_all = ["command", "tool", "input"])]
    pub jsonl: bool,
}

/// Judges one call and prints the answer.
pub fn run(arguments: &CallArguments) -> Result<Outcome, Trouble> {
    let (gate, assessed) = choice::assessed(arguments)?;
    let remedy = remedy(arguments, &gate, &assessed);
    let untrusted = would_be(arguments, &assessed);
    if arguments.json {
        let mut answer = answer(&gate, &assessed);
        if let (Value::Object(fields), Some(remedy)) = (&mut answer, remedy) {
            fields.insert("remedy".to_owned(), remedy.ok().into());
        }
        if let (Value::Object(fields), Some(untrusted)) = (&mut answer, untrusted) {
            fields.insert("untrusted".to_owned(), untrusted.into());
        }
        anstream::println!("{}", shown::one_line(&answer));
    } else {
        print(&gate, &assessed, remedy, untrusted);
    }
    Ok(Outcome::Judged(decision(&assessed)))
}

/// The one command that would change an ask or a deny, or why none can; `None` for everything else.
fn remedy(
    arguments: &CallArguments,
    gate: &Gate,
    assessed: &Result<Assessment, Refusal>,
) -> Option<Result<String, String>> {
    let assessment = assessed.as_ref().ok()?;
    match assessment.ruling().decision {
        Decision::Allow | Decision::Contain => None,
        Decision::Deny => Some(Err("a deny changes only with its rule or the boundary".to_owned())),
        Decision::Ask if arguments.policy.policy.is_some() => {
            Some(Err("with --policy, only that file counts".to_owned()))
        }
        Decision::Ask => {
            let call = choice::call(arguments).ok()?;
            let written = |tool: &String| {
                let input = arguments.input.as_deref().map(|input| format!(" --input {}", shell_word(input)));
                format!("callgate allow --tool {}{}", shell_word(tool), input.unwrap_or_default())
            };
            let command = || arguments.tool.as_ref().map_or_else(|| callgate::approvals::remedy(&call.input), written);
            Some(gate.proposals(&call, assessment).map(|_| command()).map_err(|why| why.to_string()))
        }
    }
}

/// That a rule of a file which nobody trusts would decide more leniently, if one would.
fn would_be(arguments: &CallArguments, assessed: &Result<Assessment, Refusal>) -> Option<String> {
    let decided = decision(assessed);
    if decided < Decision::Ask || arguments.policy.policy.is_some() {
        return None;
    }
    let call = choice::call(arguments).ok()?;
    let locations = Locations::of(call.origin.directory.clone()?);
    let files = load_policy(PolicyChoice::Layers(&locations), None).ok()?.files;
    untrusted::missing(&locations, &files, &call, decided)
}

/// Judges one call as a gate in front of a tool would: whoever can answer is asked, grants are spent.
pub fn ask(arguments: &CheckArguments) -> Result<Outcome, Trouble> {
    let mut call = choice::call(&arguments.call)?;
    call.origin.session.clone_from(&arguments.session);
    call.origin.scope.clone_from(&arguments.scope);
    let who = if arguments.wait { Who::TerminalOrElsewhere } else { Who::Terminal };
    let gate = choice::asking_gate(&arguments.call, &call, who)?;
    let patience = arguments.timeout.map(Patience::of).unwrap_or_default();
    let (outcome, answer) = match gate.check_with(call, CheckOptions::default().patience(patience)).verdict {
        Ok(permit) => (Decision::Allow, json!({ "decision": "allow", "id": permit.id() })),
        Err(refusal) => (Decision::Deny, refused(&refusal)),
    };
    if arguments.call.json {
        anstream::println!("{answer}");
    } else {
        let style = style(outcome);
        let reason = answer.get("reason").and_then(Value::as_str).unwrap_or("permitted");
        anstream::println!("{style}{outcome:<7}{style:#} {}", visible(reason));
    }
    Ok(Outcome::Judged(outcome))
}

/// What was decided; a call that could not be judged is denied.
pub fn decision(assessed: &Result<Assessment, Refusal>) -> Decision {
    assessed.as_ref().map_or(Decision::Deny, |assessment| assessment.ruling().decision)
}

/// The answer for a program.
pub fn answer(gate: &Gate, assessed: &Result<Assessment, Refusal>) -> Value {
    let mut answer = summary(gate, assessed);
    let effects = assessed.iter().flat_map(|assessment| assessment.description().effects());
    let effects: Vec<Value> = effects.map(|effect| shown::effect_as_json(effect, gate.redactor())).collect();
    if let Value::Object(fields) = &mut answer {
        fields.insert("effects".to_owned(), Value::Array(effects));
    }
    answer
}

/// The answer for a program without the effects.
pub fn summary(gate: &Gate, assessed: &Result<Assessment, Refusal>) -> Value {
    let assessment = match assessed {
        Ok(assessment) => assessment,
        Err(refusal) => return refused(refusal),
    };
    let ruling = assessment.ruling();
    let mut answer = json!({
        "decision": ruling.decision,
        "rule": ruling.rule,
        "place": ruling.place,
        "reason": gate.redactor().text(&ruling.reason),
        "risk": assessment.risk().as_str(),
        "category": assessment.description().category,
        "coverage": assessment.description().coverage,
    });
    if let (Value::Object(fields), Some(command)) = (&mut answer, assessment.rewritten()) {
        fields.insert("rewritten".to_owned(), json!(gate.redactor().text(command)));
    }
    answer
}

fn refused(refusal: &Refusal) -> Value {
    json!({
        "decision": Decision::Deny,
        "rule": refusal.rule,
        "reason": refusal.reason,
        "kind": refusal.kind.as_str(),
        "hint": refusal.hint,
    })
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
pub fn print_verdict(gate: &Gate, assessed: &Result<Assessment, Refusal>) {
    let decision = decision(assessed);
    let style = style(decision);
    match assessed {
        Ok(assessment) => {
            let ruling = assessment.ruling();
            anstream::println!("{style}{decision:<7}{style:#} {}", visible(&gate.redactor().text(&ruling.reason)));
            match (&ruling.rule, &ruling.place) {
                (Some(rule), Some(place)) => anstream::println!("        rule {rule} ({place})"),
                (Some(rule), None) => anstream::println!("        rule {rule}"),
                (None, _) => anstream::println!("        no rule matches; this is the policy's default"),
            }
            if let Some(command) = assessment.rewritten() {
                anstream::println!("        runs as {}", visible(&gate.redactor().text(command)));
            }
        }
        Err(refusal) => {
            anstream::println!("{style}{decision:<7}{style:#} {}", visible(&refusal.reason));
            if let Some(hint) = &refusal.hint {
                anstream::println!("        {hint}");
            }
        }
    }
}

fn print(
    gate: &Gate,
    assessed: &Result<Assessment, Refusal>,
    remedy: Option<Result<String, String>>,
    untrusted: Option<String>,
) {
    print_verdict(gate, assessed);
    match remedy {
        Some(Ok(command)) => anstream::println!("        allow it: {}", visible(&command)),
        Some(Err(why)) => anstream::println!("        no rule can allow it: {}", visible(&why)),
        None => {}
    }
    if let Some(untrusted) = untrusted {
        anstream::println!("        {untrusted}: callgate trust");
    }
    let Ok(assessment) = assessed else { return };
    anstream::println!();
    for effect in assessment.description().effects() {
        print_effect(gate, effect);
    }
}

/// One effect: what, to what, and where that is known from.
pub fn print_effect(gate: &Gate, placed: &PlacedEffect) {
    let dim = Style::new().dimmed();
    let target = wording::target(&placed.effect, gate.redactor());
    let because = gate.redactor().text(&placed.effect.because);
    anstream::println!(
        "        {:<9} {:<40} {dim}{}{dim:#}",
        placed.effect.action.as_str(),
        format!("{target}{}", wording::remarks(placed)),
        visible(&because)
    );
}
