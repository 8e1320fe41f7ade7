//! Judges the shell commands given as arguments by the bundled `standard` policy, and shows why.

use callgate::call::Call;
use callgate::gate::Gate;
use callgate::policy::Policy;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gate = Gate::builder().policy(Policy::bundled("standard")?).build();
    for command in std::env::args().skip(1) {
        let call = Call::new("Bash", serde_json::json!({"command": command})).directory(std::env::current_dir()?);
        let assessment = gate.assess(&call)?;
        let ruling = assessment.ruling();
        println!("{:?}  {command}", ruling.decision);
        println!("    {} ({})", ruling.reason, ruling.rule.as_deref().unwrap_or("default"));
        for effect in assessment.effects(gate.redactor()) {
            println!("    {:?}: {}", effect.decision, effect.effect);
        }
    }
    Ok(())
}
