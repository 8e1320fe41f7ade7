//! Ordinary work: it goes through inside as it does without a sandbox, and writes nothing outside.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::case::{self, Case};
use crate::run::{Outcome, Wrapper, run};
use crate::world::User;

/// At least this many kinds of work are shown.
const KINDS: usize = 36;

fn works(case: &Case, outcome: &Outcome) -> Result<(), String> {
    if outcome.code != Some(case.code) {
        return Err(format!("exit code {:?} instead of {}: {}", outcome.code, case.code, outcome.output.trim()));
    }
    match &case.expect {
        Some(text) if !outcome.output.contains(text.as_str()) => {
            Err(format!("{text:?} is not in the output: {}", outcome.output.trim()))
        }
        _ if !outcome.checked => Err(format!("the check outside fails: {}", outcome.output.trim())),
        _ => Ok(()),
    }
}

enum Shown {
    Works,
    NotHere(String),
    Fails(String),
}

/// With the ordinary user first: where the work is impossible for that user even without a sandbox, root does it.
fn show(case: &Case, wrapper: Wrapper) -> Shown {
    let mut reason = String::new();
    for user in [User::ordinary(), User::ROOT] {
        if let Err(why) = works(case, &run(case, user, Wrapper::None)) {
            reason = why;
            continue;
        }
        let inside = run(case, user, wrapper);
        return match works(case, &inside) {
            Err(why) => Shown::Fails(format!("{} (user {}): {why}", case.id, user.id)),
            Ok(()) if !inside.harm.is_empty() => Shown::Fails(format!("{}: {}", case.id, inside.harm.join("; "))),
            Ok(()) => Shown::Works,
        };
    }
    match &case.may_not_apply {
        Some(why) => Shown::NotHere(format!("{}: {why}", case.id)),
        None => Shown::Fails(format!("{} does not work without a sandbox either: {reason}", case.id)),
    }
}

pub fn all(wrapper: Wrapper) -> (usize, Vec<String>, Vec<String>) {
    let waiting = Mutex::new(case::work().into_iter().collect::<VecDeque<_>>());
    let shown = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(case) = waiting.lock().expect("no thread panics here").pop_front() else { break };
                    let result = show(&case, wrapper);
                    shown.lock().expect("no thread panics here").push(result);
                }
            });
        }
    });
    let (mut works, mut not_here, mut fails) = (0, Vec::new(), Vec::new());
    for one in shown.into_inner().expect("no thread panics here") {
        match one {
            Shown::Works => works += 1,
            Shown::NotHere(why) => not_here.push(why),
            Shown::Fails(why) => fails.push(why),
        }
    }
    fails.sort();
    println!("{works} kinds of work go through; not here: {not_here:?}");
    (works, not_here, fails)
}

#[test]
fn ordinary_work_goes_through() {
    let (works, not_here, fails) = all(Wrapper::Callgate);
    assert!(fails.is_empty(), "{} kinds of work fail:\n{}", fails.len(), fails.join("\n"));
    assert!(not_here.len() <= 6, "too much is not installed here: {not_here:?}");
    assert!(std::env::var_os("CALLGATE_CASES").is_some() || works >= KINDS, "{works} kinds of work");
}
