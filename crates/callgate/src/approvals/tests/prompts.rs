//! What the person sees, and what is made of what they type.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;
use crate::approvals::channel::{Look, Terminal, TerminalApprover, prompt};

/// A terminal at which these lines are typed.
struct Typing {
    lines: VecDeque<&'static str>,
    shown: String,
}

impl Terminal for Typing {
    fn show(&mut self, text: &str) -> Result<(), AskError> {
        self.shown.push_str(text);
        Ok(())
    }

    fn line(&mut self, _: Duration) -> Result<Option<String>, AskError> {
        Ok(self.lines.pop_front().map(|line| format!("{line}\n")))
    }
}

fn typed(
    approver: &TerminalApprover,
    question: &Question,
    lines: &[&'static str],
) -> (Result<Answer, AskError>, String) {
    let mut terminal = Typing { lines: lines.iter().copied().collect(), shown: String::new() };
    let answer = approver.ask_on(&mut terminal, question, &|| false);
    (answer, terminal.shown)
}

fn decided(line: &'static str) -> Result<ApprovalDecision, AskError> {
    typed(&TerminalApprover::new(), &question(), &[line]).0.map(|answer| answer.decision)
}

#[test]
fn the_prompt_says_what_why_and_by_which_rule() {
    let proposal = Proposal { extent: Extent::Subcommand("git".into(), "push".into()) };
    let question = Question { proposals: vec![proposal], ..question() };
    insta::assert_snapshot!(prompt(&question, true, Look::default()), @r#"

    callgate: may claude do this?  (risk: medium)

      shell_exec  in /home/ada/project
        argv: ["pytest","-q"]

    It would (* needs your answer):
      * run       pytest

    Why: this runs code of the project
    Rule: runs-code (standard.yaml:83)

      y   yes, this once
      s   yes, and the same request again in this session
      s1  yes, and in this session: `git push …`
          also covers every `git push`, with any options and arguments, in any directory
      a1  yes, always (writes a rule): `git push …`
          also covers every `git push`, with any options and arguments, in any directory
      n   no; text after it is sent to the agent
      q   no, and stop the run
    "#);
}

#[test]
fn nothing_is_hidden_by_length_or_by_characters() {
    let padded = format!("ls{}; rm -rf ~ \u{202e}\u{200b}\u{1b}[2K\r# ok", " ".repeat(20_000));
    let text = prompt(&Question { request: json!({ "command": padded }), ..question() }, false, Look::default());
    assert!(text.contains("ls⟨20000 × \" \"⟩; rm -rf ~ \\u{202e}\\u{200b}\\u{1b}[2K\\r# ok"), "{text}");
    assert!(text.lines().all(|line| line.len() < 200), "nothing is pushed out of sight");
    let varied: String = (0..5000).map(|number| format!("{number};")).collect();
    let text = prompt(&Question { request: json!({ "command": varied }), ..question() }, false, Look::default());
    assert!(text.contains(&varied), "nothing is cut short");
    assert!(text.chars().all(|character| character == '\n' || !character.is_control()));
}

#[test]
fn only_a_clear_letter_is_an_answer() {
    assert_eq!(decided("y"), Ok(ApprovalDecision::Approved));
    assert_eq!(decided("  yes "), Ok(ApprovalDecision::Approved));
    assert_eq!(decided("s"), Ok(ApprovalDecision::ApprovedForSession));
    assert_eq!(decided("n"), Ok(ApprovalDecision::Denied));
    assert_eq!(decided("q"), Ok(ApprovalDecision::Abort));
    // the question is settled elsewhere while the person still thinks
    assert_eq!(decided("Y"), Ok(ApprovalDecision::Approved));
    for line in ["", "ye", "ja", "1", "s1", "a1", "always", "\u{1b}[A", "ny"] {
        assert_eq!(decided(line), Err(AskError::Closed), "{line}");
    }
}

#[test]
fn five_unclear_answers_are_a_refusal() {
    let (answer, _) = typed(&TerminalApprover::new(), &question(), &["?", "", "", "what", "y?", "y"]);
    assert!(matches!(answer, Err(AskError::Unusable(_))));
}

#[test]
fn what_is_typed_behind_no_reaches_the_agent() {
    let (answer, _) = typed(&TerminalApprover::new(), &question(), &["n use the staging host instead"]);
    assert_eq!(answer.unwrap().reason.as_deref(), Some("use the staging host instead"));
}

#[test]
fn session_is_only_offered_where_it_can_be_remembered() {
    let question = Question { key: None, ..question() };
    assert!(!prompt(&question, false, Look::default()).contains("\n  s "));
    assert_eq!(typed(&TerminalApprover::new(), &question, &["s"]).0, Err(AskError::Closed));
}

#[test]
fn always_is_said_where_a_rule_can_help_and_else_why_not() {
    let proposal = Proposal { extent: Extent::Tool("x".into()) };
    let question = Question { proposals: vec![proposal], ..question() };
    let writes = TerminalApprover::new().always(|_| Ok("callgate.yaml".into()));
    let answer = typed(&writes, &question, &["a1"]).0.unwrap();
    assert_eq!(
        (answer.decision, answer.always, answer.reason.as_deref()),
        (ApprovalDecision::Approved, Some(0), Some("always, by a rule in callgate.yaml"))
    );
    let refuses = TerminalApprover::new().always(|_| Err("a deny stands before it".into()));
    let (answer, shown) = typed(&refuses, &question, &["a1", "n"]);
    assert_eq!(answer.unwrap().decision, ApprovalDecision::Denied);
    assert!(shown.contains("no rule was written: a deny stands before it"));
}

#[test]
fn a_proposal_is_chosen_for_the_session_by_its_number() {
    let proposal = Proposal { extent: Extent::Tool("x".into()) };
    let question = Question { proposals: vec![proposal], ..question() };
    let answer = typed(&TerminalApprover::new(), &question, &["s1"]).0.unwrap();
    assert_eq!((answer.decision, answer.proposal), (ApprovalDecision::ApprovedForSession, Some(0)));
    for line in ["s0", "s2", "s-1", "s99999999999999999999"] {
        assert_eq!(typed(&TerminalApprover::new(), &question, &[line]).0, Err(AskError::Closed), "{line}");
    }
}
