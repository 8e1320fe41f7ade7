//! Expands the patterns of shell commands to the names they match.

use callgate_model::description::Description;
use callgate_model::effect::{Action, Names, PathTarget, Target, TreeNames};
use callgate_shell::programs::Programs;
use callgate_shell::programs::table::ProgramTrait;

use super::file_system::FileSystem;
use super::pattern::{Hidden, Pattern};

/// Replaces the patterns of commands by the names that they match now, as the shell will.
///
/// After a command that may change which names exist, a pattern stays beside the names that it matches now: what is read of these is
/// read in any case, as far as it is still there. Does not apply to other tools, which match in different ways.
pub(super) fn expand_patterns(description: &mut Description, file_system: &dyn FileSystem) {
    let sets_options = description.parts.iter().any(|part| {
        let unknown = part.words.first().is_some_and(|program| program.known().is_none());
        unknown || Programs::bundled().has_trait(&part.words, ProgramTrait::Globbing)
    });
    let hidden = if sets_options { Hidden::Matched } else { Hidden::LeftOut };
    let mut has_changed = false;
    for part in &mut description.parts {
        if part.words.is_empty() || part.elsewhere.is_some() {
            return;
        }
        let effects = std::mem::take(&mut part.effects);
        let changes = effects.iter().any(|placed| placed.effect.may_change_names());
        for placed in effects {
            let looks = matches!(placed.effect.action, Action::List | Action::Read);
            let names = match &placed.effect.target {
                _ if has_changed && !looks => None,
                Target::Path(PathTarget { names: Names::Glob(text), below: TreeNames::Existing(_), .. }) => {
                    let pattern = Pattern::parse(text);
                    pattern.matches(file_system, &pattern.fixed, hidden)
                }
                _ => None,
            };
            match names {
                None => part.effects.push(placed),
                Some(names) => {
                    part.effects.extend(names.iter().filter_map(|name| {
                        let mut exact = placed.clone();
                        if let Target::Path(target) = &mut exact.effect.target {
                            target.names = Names::Exact(name.to_str()?.to_owned());
                        }
                        Some(exact)
                    }));
                    if has_changed {
                        part.effects.push(placed);
                    }
                }
            }
        }
        has_changed |= changes;
    }
}
