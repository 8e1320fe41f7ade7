//! `callgate suggest`: the few rules that would save the most questions, accepted by number.
//!
//! They are learned from what people said yes to. What destroys something, touches secrets, uses other rights or is in doubt is never
//! among them, because no rule may answer it in advance.

use std::io::{BufRead, IsTerminal};

use callgate::assess::Assessor;
use callgate::load::{PolicyChoice, load_policy};
use callgate::policy::Locations;
use callgate::show::visible;
use callgate_audit::learn::{Suggestion, suggest};
use clap::Args;
use serde_json::json;

use crate::always::{self, Wish};
use crate::audit::{LogArguments, asked, cut};
use crate::outcome::{Outcome, Trouble};

/// How many rules are proposed.
const MOST: usize = 5;

/// What to accept.
#[derive(Debug, Args)]
pub struct SuggestionArguments {
    /// Accept these proposals, by number
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub accept: Vec<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The log
    #[command(flatten)]
    pub log: LogArguments,
}

/// Proposes rules, and writes those that are accepted.
pub fn run(arguments: &SuggestionArguments) -> Result<Outcome, Trouble> {
    let here = std::env::current_dir()
        .map_err(|error| Trouble::new(format!("cannot determine the current directory: {error}")))?;
    let locations = Locations::of(&here);
    let policy = load_policy(PolicyChoice::Layers(&locations), None)?.policy;
    let directory = arguments.log.directory().map_err(Trouble::new)?;
    let calls = asked(&directory).map_err(Trouble::new)?;
    let suggestions = suggest(&calls, &Assessor::new(policy), MOST);
    if arguments.json && arguments.accept.is_empty() {
        anstream::println!("{}", json!({ "suggestions": suggestions, "questions": calls.len() }));
        return Ok(Outcome::Done);
    }
    if suggestions.is_empty() {
        let none = format!("no rule would save questions ({} were examined)", calls.len());
        anstream::println!("{}", if arguments.json { json!({ "written": [] }).to_string() } else { none });
        return Ok(if arguments.accept.is_empty() { Outcome::Done } else { Outcome::Found });
    }
    let accepted = if arguments.accept.is_empty() {
        show(&suggestions);
        chosen(suggestions.len())?
    } else {
        arguments.accept.clone()
    };
    // All numbers are checked before anything is written.
    let rules = accepted.iter().map(|number| {
        let found = number.checked_sub(1).and_then(|index| suggestions.get(index));
        found.ok_or_else(|| Trouble::new(format!("there is no proposal {number}; there are {}", suggestions.len())))
    });
    let rules: Vec<&Suggestion> = rules.collect::<Result<_, _>>()?;
    let mut written = Vec::new();
    for rule in rules {
        let file = always::write(&locations, &rule.proposal, Wish::Allow, None)
            .map_err(|why| Trouble::new(format!("no rule was written: {}", visible(&why))))?;
        if !arguments.json {
            anstream::println!(
                "allowed: {}; written to {}",
                visible(&rule.proposal.extent.to_string()),
                visible(&file)
            );
        }
        written.push(json!({ "covers": rule.proposal.extent.to_string(), "file": file }));
    }
    if arguments.json {
        anstream::println!("{}", json!({ "written": written }));
    } else if !written.is_empty() {
        anstream::println!("undo, one at a time: callgate policy undo");
    }
    Ok(Outcome::Done)
}

fn show(suggestions: &[Suggestion]) {
    for (number, suggestion) in (1_usize..).zip(suggestions) {
        anstream::println!("{number}. {}", visible(&suggestion.proposal.extent.to_string()));
        anstream::println!(
            "   saves {} questions, such as {}",
            suggestion.saves,
            cut(&suggestion.examples.join(" · "), 120)
        );
        anstream::println!("   also covers {}", cut(&suggestion.also, 160));
        for call in &suggestion.also_recorded {
            anstream::println!("   also lets through what nobody approved: {}", cut(call, 120));
        }
    }
}

/// The numbers that the user types at a terminal; elsewhere none.
fn chosen(count: usize) -> Result<Vec<usize>, Trouble> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        anstream::println!("accept with: callgate suggest --accept NUMBER,…");
        return Ok(Vec::new());
    }
    anstream::println!("accept which? (numbers from 1 to {count}, or nothing)");
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Trouble::new(format!("cannot read the answer: {error}")))?;
    let numbers = line.split([',', ' ', '\n', '\r']).filter(|word| !word.is_empty()).map(|word| {
        word.parse().map_err(|_| Trouble::new(format!("{} is no number; nothing was written", visible(word))))
    });
    numbers.collect()
}
