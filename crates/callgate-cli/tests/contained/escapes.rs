//! The escape suite.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::case::{self, Case, Users};
use crate::run::{Outcome, Wrapper, run};
use crate::world::{User, is_root};

/// At least this many attempts are made for each user and backend.
const ATTEMPTS: usize = 120;
/// How often an attempt without a sandbox is repeated if it does no harm.
const RACES: usize = 10;

/// Where not every case is run: root runs those that only root can try and every third of the others, backends that are not the
/// first choice every third. `CALLGATE_EVERY_CASE` runs them all.
fn share(cases: Vec<Case>) -> Vec<Case> {
    if std::env::var_os("CALLGATE_EVERY_CASE").is_some() || std::env::var_os("CALLGATE_CASES").is_some() {
        return cases;
    }
    let mut number = 0_usize;
    let mut chosen = |case: &Case| {
        number += 1;
        case.users == Users::OnlyRoot || number.is_multiple_of(3)
    };
    cases.into_iter().filter(|case| chosen(case)).collect()
}

/// The cases of a user, each with its outcome, on as many threads as there are processors.
pub fn run_all(cases: Vec<Case>, ordinary: bool, wrapper: Wrapper) -> Vec<(Case, Outcome)> {
    let waiting = Mutex::new(
        cases
            .into_iter()
            .filter(|case| case.users != if ordinary { Users::OnlyRoot } else { Users::OnlyOrdinary })
            .collect::<VecDeque<_>>(),
    );
    let done = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(case) = waiting.lock().expect("no thread panics here").pop_front() else { break };
                    let user = if ordinary { User::ordinary() } else { User::ROOT };
                    let outcome = run(&case, user, wrapper);
                    done.lock().expect("no thread panics here").push((case, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics here");
    done.sort_by(|(one, _), (other, _)| (one.class, &one.id).cmp(&(other.class, &other.id)));
    let mut slow: Vec<(u128, &str)> =
        done.iter().map(|(case, outcome)| (outcome.took.as_millis(), case.id.as_str())).collect();
    slow.sort_unstable_by(|one, other| other.cmp(one));
    println!(
        "{} ms for each; slowest: {:?}",
        slow.iter().map(|(time, _)| time).sum::<u128>() / slow.len().max(1) as u128,
        slow.get(..12)
    );
    done
}

/// Without the sandbox every attempt does harm, or the case says why it may not apply here.
fn controls(ordinary: bool) {
    if !ordinary && !is_root() {
        return;
    }
    let cases = if ordinary { case::all() } else { share(case::all()) };
    let mut done = run_all(cases, ordinary, Wrapper::None);
    let user = if ordinary { User::ordinary() } else { User::ROOT };
    for (case, outcome) in &mut done {
        let may_race = case.may_not_apply.is_none();
        // Whoever swaps a name or an argument while another thread uses it does not win every time.
        for _ in 0..RACES {
            if may_race && outcome.harm.is_empty() {
                *outcome = run(case, user, Wrapper::None);
            }
        }
    }
    let failed: Vec<&(Case, Outcome)> = done.iter().filter(|(_, outcome)| outcome.harm.is_empty()).collect();
    println!("{} controls, {} without harm", done.len(), failed.len());
    let mut wrong = Vec::new();
    for (case, outcome) in failed {
        match &case.may_not_apply {
            Some(why) => println!("  {} does not apply here: {why}", case.id),
            None => wrong.push(format!("{}: {}", case.id, outcome.output.trim())),
        }
    }
    assert!(
        wrong.is_empty(),
        "these attempts do no harm without a sandbox, so they show nothing:\n{}",
        wrong.join("\n")
    );
}

fn held(ordinary: bool, wrapper: Wrapper) {
    if !ordinary && !is_root() {
        return;
    }
    let mut cases = case::all();
    if wrapper == Wrapper::CallgateWithGit {
        cases.retain(|case| case.class == "protected");
    } else if !ordinary || wrapper != Wrapper::Callgate {
        cases = share(cases);
    }
    let done = run_all(cases, ordinary, wrapper);
    let refused: Vec<&str> =
        done.iter().filter(|(_, outcome)| outcome.refused).map(|(case, _)| case.id.as_str()).collect();
    println!("{} attempts, {} refused before the start: {}", done.len(), refused.len(), refused.join(" "));
    let mut wrong = Vec::new();
    for (case, outcome) in &done {
        if matches!(wrapper, Wrapper::Callgate | Wrapper::CallgateWithGit)
            && outcome.refused
            && case.may_be_refused.is_none()
        {
            wrong.push(format!("{} was refused, so that it shows nothing: {}", case.id, outcome.output.trim()));
        }
        if !outcome.harm.is_empty() {
            wrong.push(format!("{} ({}): {}", case.id, case.title, outcome.harm.join("; ")));
        } else if !outcome.began && !outcome.refused {
            wrong.push(format!(
                "{}: the attack did not begin (exit code {:?}): {}",
                case.id,
                outcome.code,
                outcome.output.trim()
            ));
        }
    }
    assert!(std::env::var_os("CALLGATE_CASES").is_some() || done.len() >= ATTEMPTS, "only {} attempts", done.len());
    assert!(wrong.is_empty(), "{} of {} attempts were not held:\n{}", wrong.len(), done.len(), wrong.join("\n"));
}

#[test]
fn without_the_sandbox_every_attempt_of_an_ordinary_user_does_harm() {
    controls(true);
}

#[test]
fn without_the_sandbox_every_attempt_of_root_does_harm() {
    controls(false);
}

#[test]
fn where_nothing_is_attempted_no_check_sees_harm() {
    let done = run_all(share(case::all()), true, Wrapper::Nothing);
    let wrong: Vec<String> = done
        .iter()
        .filter(|(case, outcome)| case.signal.is_none() && !outcome.harm.is_empty())
        .map(|(case, outcome)| format!("{}: {}", case.id, outcome.harm.join("; ")))
        .collect();
    assert!(wrong.is_empty(), "these checks see harm where there is none:\n{}", wrong.join("\n"));
}

#[test]
fn every_attempt_of_an_ordinary_user_is_held() {
    held(true, Wrapper::Callgate);
}

#[test]
fn every_attempt_on_protected_names_is_held_in_calls_with_git_too() {
    held(true, Wrapper::CallgateWithGit);
}

#[test]
fn every_attempt_of_root_is_held() {
    held(false, Wrapper::Callgate);
}

#[test]
fn bubblewrap_as_backend_holds_every_attempt_or_is_refused() {
    held(true, Wrapper::Backend("bubblewrap"));
}

#[test]
fn bubblewrap_as_backend_holds_every_attempt_of_root_or_is_refused() {
    held(false, Wrapper::Backend("bubblewrap"));
}

#[test]
fn landlock_as_backend_holds_every_attempt_or_is_refused() {
    held(true, Wrapper::Backend("landlock"));
}
