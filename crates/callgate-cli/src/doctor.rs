//! `callgate doctor`: what this machine can hold, tried out as this user, and what helps where it cannot.

use anstyle::{AnsiColor, Style};
use callgate_model::fence::Protection;
use callgate_sandbox::{Findings, probe};
use clap::Args;
use serde_json::json;

use crate::health::{self, Health, Problem};
use crate::outcome::{Outcome, Trouble};

/// How to print.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Tries out what can be held and prints it.
pub fn run(arguments: &DoctorArguments) -> Result<Outcome, Trouble> {
    let findings = probe();
    let reports = crate::status::reports(&[])?;
    let mut problems = Health::look().problems(&reports, 0);
    // What helps the sandbox is said above.
    problems.retain(|problem| problem.command != "callgate doctor");
    if arguments.json {
        print_json(&findings, &problems);
    } else {
        print(&findings);
        health::print_problems(&problems);
    }
    let complete =
        findings.best().is_some_and(|best| best.holds.as_ref().is_ok_and(|held| held.len() == Protection::ALL.len()));
    let serious = problems.iter().any(|problem| problem.serious);
    Ok(if complete && !serious { Outcome::Done } else { Outcome::Found })
}

fn print_json(findings: &Findings, problems: &[Problem]) {
    let backends: Vec<_> = findings
        .probes
        .iter()
        .map(|probe| match &probe.holds {
            Ok(held) => json!({"backend": probe.backend.as_str(), "works": true, "holds": held}),
            Err(denied) => json!({"backend": probe.backend.as_str(), "works": false, "reason": denied.reason}),
        })
        .collect();
    let best = findings.best().map(|best| best.backend.as_str());
    anstream::println!(
        "{}",
        json!({"kernel": findings.kernel, "landlock": findings.landlock, "backends": backends, "best": best, "advice": findings.advice, "problems": problems})
    );
}

fn print(findings: &Findings) {
    let (good, bad) = (AnsiColor::Green, AnsiColor::Red);
    let style = |colour: AnsiColor| Style::new().fg_color(Some(colour.into())).bold();
    anstream::println!("kernel      {}", findings.kernel);
    match findings.landlock {
        0 => anstream::println!("landlock    missing: nothing lies underneath if another protection fails"),
        version => anstream::println!("landlock    version {version}"),
    }
    for probe in &findings.probes {
        match &probe.holds {
            Ok(held) => {
                let style = style(good);
                let missing: Vec<&str> = Protection::ALL
                    .iter()
                    .filter(|protection| !held.contains(protection))
                    .map(|protection| protection.as_str())
                    .collect();
                let note = if missing.is_empty() {
                    "holds everything".to_owned()
                } else {
                    format!("cannot hold {}", missing.join(", "))
                };
                anstream::println!("{style}{:<11}{style:#} works: {note}", probe.backend.as_str());
            }
            Err(denied) => {
                let style = style(bad);
                anstream::println!("{style}{:<11}{style:#} {}", probe.backend.as_str(), denied.reason);
            }
        }
    }
    for advice in &findings.advice {
        anstream::println!("            {advice}");
    }
    let best = findings.best().and_then(|best| best.holds.as_ref().ok()).map_or(0, Vec::len);
    if best == Protection::ALL.len() {
        anstream::println!("contained calls run without a question");
    } else {
        anstream::println!("calls that must be contained are asked about, or refused where nobody can be asked");
    }
}
