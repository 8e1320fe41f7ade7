//! Policies, as [`callgate_policy`] reads and judges them, and what needs the file system beside.

use std::path::{Path, PathBuf};

use callgate_model::call::Origin;
pub use callgate_policy::*;

use crate::path::boundary::{Boundary, host_directories};
use crate::path::file_system::RealFileSystem;

/// Looks for mistakes of meaning in the files of a policy: rules that never match, a log where agents may write, and the like.
pub fn lint(policy: &Policy) -> Vec<LintFinding> {
    policy.lint(&root_around)
}

/// The root of a boundary that a path lies in, for calls from here.
#[allow(clippy::disallowed_methods, reason = "lint looks at the boundary of calls from here")]
fn root_around(settings: &BoundarySettings, path: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    let origin = Origin { workspace: here.clone(), directory: here, ..Origin::default() };
    let boundary = Boundary::from(settings).resolve(&origin, &host_directories(), &RealFileSystem);
    boundary.root_around(path, &RealFileSystem)
}

#[cfg(test)]
mod tests {
    use super::{Policy, Severity, lint};

    #[test]
    fn a_log_inside_the_boundary_is_found_behind_links_and_where_nothing_is_yet() {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = |name: &str| base.path().join(name).display().to_string();
        std::fs::create_dir(path("project")).unwrap();
        std::os::unix::fs::symlink(path("project"), path("link")).unwrap();
        for (place, inside) in [("link/not/there/yet", true), ("project/x", true), ("project_evil/x", false)] {
            let text =
                format!("boundary: {{roots: [\"{}\"]}}\naudit: {{directory: {}}}\n", path("project"), path(place));
            let findings = lint(&Policy::from_yaml(&text, "test.yaml").unwrap());
            assert_eq!(findings.iter().any(|finding| finding.severity == Severity::Error), inside, "{text}");
        }
    }
}
