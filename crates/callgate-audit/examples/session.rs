//! A gate that writes an audit log: `cargo run -p callgate-audit --example session -- DIRECTORY`.

use callgate::Gate;
use callgate::approvals::{ApprovalDecision, Question};
use callgate::call::Call;
use callgate::policy::Policy;
use callgate_audit::{AuditSink, Log, LogSettings};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("say in which directory the log should lie")?;
    let log = Log::open(LogSettings::at(directory))?;
    // somebody who says yes to everything but pushes
    let approver = |question: &Question| {
        if question.request.to_string().contains("push") {
            ApprovalDecision::Denied
        } else {
            ApprovalDecision::Approved
        }
    };
    let gate =
        Gate::builder().policy(Policy::bundled("standard")?).approver(approver).events(AuditSink::new(log)).build();
    for command in ["ls", "git status", "cargo test", "cargo test", "git push", "cat ~/.ssh/id_rsa", "cat notes.md"] {
        let call = Call::new("Bash", json!({"command": command}))
            .agent("example")
            .session("s-1")
            .directory(std::env::current_dir()?);
        match gate.check(call) {
            Ok(permit) => {
                let _ = permit.run(|_| {
                    println!("would run {command}");
                    Ok::<(), ()>(())
                });
            }
            Err(refusal) => println!("{command}: {refusal}"),
        }
    }
    Ok(())
}
