//! Patterns of shell commands, put into the names they stand for.

use callgate_model::description::Description;
use callgate_model::effect::{Action, CodeOrigin, Names, PathTarget, Target};
use callgate_shell::programs::Programs;
use callgate_shell::programs::table::ProgramTrait;

use super::file_system::FileSystem;
use super::pattern::{Hidden, Pattern};

/// Puts the names that a command's patterns match now in the place of the patterns, as the shell will.
///
/// Not behind a command that may change which names there are, and not for tools, which match in ways of their own.
pub(super) fn expand_patterns(description: &mut Description, file_system: &dyn FileSystem) {
    let sets_options = description.parts.iter().any(|part| {
        let unknown = part.words.first().is_some_and(|program| program.known().is_none());
        unknown || Programs::bundled().has_trait(&part.words, ProgramTrait::Globbing)
    });
    let hidden = if sets_options { Hidden::Matched } else { Hidden::LeftOut };
    for part in &mut description.parts {
        if part.words.is_empty() || part.elsewhere.is_some() {
            return;
        }
        let effects = std::mem::take(&mut part.effects);
        let changes = effects.iter().any(|placed| changes_names(placed.effect.action, &placed.effect.target));
        for placed in effects {
            let names = match &placed.effect.target {
                Target::Path(PathTarget { names: Names::Glob(text), .. }) => {
                    let pattern = Pattern::parse(text);
                    pattern.matches(file_system, &pattern.fixed, hidden)
                }
                _ => None,
            };
            match names {
                None => part.effects.push(placed),
                Some(names) => part.effects.extend(names.iter().filter_map(|name| {
                    let mut exact = placed.clone();
                    if let Target::Path(target) = &mut exact.effect.target {
                        target.names = Names::Exact(name.to_str()?.to_owned());
                    }
                    Some(exact)
                })),
            }
        }
        if changes {
            return;
        }
    }
}

/// Whether what a command does may change which names a later pattern matches.
fn changes_names(action: Action, target: &Target) -> bool {
    match action {
        Action::List | Action::Read | Action::Connect => false,
        Action::Run => !matches!(target, Target::Program(program) if program.origin == CodeOrigin::Known),
        Action::Write => {
            !matches!(target, Target::Path(target) if target.names == Names::Exact("/dev/null".to_owned()))
        }
        Action::Delete | Action::Send | Action::Privilege | Action::Opaque => true,
    }
}
