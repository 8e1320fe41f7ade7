//! Effects in words, as a person reads them: `delete /home/ada/x and all below`.

use callgate_shell::effect::{Action, CodeOrigin, Effect, Mark, Names, Target};

use crate::redact::Redactor;
use crate::show::brief;

/// One effect in words, without secrets and hidden characters.
pub fn effect(effect: &Effect, redactor: &Redactor) -> String {
    let mut text = match (effect.action, &effect.target) {
        (action, Target::Path(target)) => {
            let tree = if target.tree { " and all below" } else { "" };
            let name = match &target.names {
                Names::Exact(path) => path.clone(),
                Names::Glob(pattern) => format!("what matches {pattern}"),
                Names::Below(directory) => format!("something below {directory}"),
                Names::Unknown(why) => format!("an unknown path ({why})"),
            };
            format!("{} {name}{tree}", verb(action))
        }
        (action, Target::Program(program)) => {
            let origin = match program.origin {
                CodeOrigin::Known | CodeOrigin::Defined => "",
                CodeOrigin::Unknown => " (an unknown program)",
                CodeOrigin::File => " (a file)",
                CodeOrigin::Project => " (what the project says)",
                CodeOrigin::Inline => " (code on the command line)",
                CodeOrigin::Fetched => " (code from elsewhere)",
            };
            format!("{} {}{origin}", verb(action), program.name)
        }
        (action, Target::Host(host)) => {
            let name = host.name.as_deref().unwrap_or("an unknown host");
            format!("{} {name}", verb(action))
        }
        (action, Target::Text(text)) => format!("{} {text}", verb(action)),
    };
    if effect.marks.contains(&Mark::Destructive) {
        text.push_str(", which cannot be undone");
    }
    if effect.marks.contains(&Mark::Credentials) {
        text.push_str(", which shows secrets");
    }
    if effect.marks.contains(&Mark::Elsewhere) {
        text.push_str(", elsewhere");
    }
    brief(&redactor.text(&text))
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::List => "list",
        Action::Read => "read",
        Action::Write => "write",
        Action::Delete => "delete",
        Action::Run => "run",
        Action::Connect => "connect to",
        Action::Send => "send to",
        Action::Privilege => "gain the right",
        Action::Opaque => "not understood:",
    }
}
