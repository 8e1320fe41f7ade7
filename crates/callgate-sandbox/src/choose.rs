//! Chooses the way in which a call is contained: the best one that this machine lets us use and that holds what is required.
//!
//! The choice is made by trying, before anything of the call is started. What fails later is an error: another way is not tried.

use callgate::permit::Sandbox;
use callgate_model::fence::{Fence, Protection};
use callgate_policy::SandboxSupport;

use crate::denied::Denied;
use crate::order::Backend;
use crate::prepared::Prepared;
use crate::probe::works;
use crate::supervisor::{self, Launch, Outcome};
use crate::system;

/// What holds a call, for the log: the chosen backend, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enforced(pub Option<Backend>);

impl Sandbox for Enforced {
    fn enforces(&self) -> String {
        match self.0 {
            Some(Backend::Namespaces) => "namespaces, landlock, seccomp".to_owned(),
            Some(Backend::Bubblewrap) => "bubblewrap, landlock, seccomp".to_owned(),
            Some(Backend::Landlock) => "landlock, seccomp".to_owned(),
            None => "nothing, so the call is refused".to_owned(),
        }
    }
}

/// Runs a program inside a fence, with the standard streams of this process, in the best way that holds what the fence requires; in
/// the stage that is prepared if it is of that kind.
pub fn run(fence: &Fence, launch: &Launch, mut prepared: Option<Prepared>) -> Result<Outcome, Denied> {
    let backend = choose_with(&fence.required, launch.backend, prepared.as_mut())?;
    supervisor::run(fence, launch, backend, prepared)
}

/// The best backend that works here and holds what is required, or the one that the caller wants.
pub fn choose(required: &[Protection], wanted: Option<Backend>) -> Result<Backend, Denied> {
    choose_with(required, wanted, None)
}

/// The same for a caller with a stage that is prepared: that it could be prepared is the trial of its backend.
pub fn choose_with(
    required: &[Protection],
    wanted: Option<Backend>,
    mut prepared: Option<&mut Prepared>,
) -> Result<Backend, Denied> {
    best(required, wanted, |backend| match prepared.as_deref_mut().filter(|prepared| prepared.backend() == backend) {
        Some(prepared) => prepared.works(),
        None => is_usable(backend),
    })
}

/// What this machine can hold, at best.
pub fn support(wanted: Option<Backend>) -> SandboxSupport {
    if choose(&Protection::ALL, wanted).is_ok() {
        return SandboxSupport::Available;
    }
    match choose(&[], wanted) {
        Ok(backend) => SandboxSupport::Partial(
            Protection::ALL.into_iter().filter(|protection| backend.holds(*protection)).collect(),
        ),
        Err(_) => SandboxSupport::Missing,
    }
}

fn best(
    required: &[Protection],
    wanted: Option<Backend>,
    mut is_usable: impl FnMut(Backend) -> Result<(), Denied>,
) -> Result<Backend, Denied> {
    let mut reasons = Vec::new();
    for backend in Backend::ALL.into_iter().filter(|backend| wanted.is_none_or(|wanted| wanted == *backend)) {
        let missing: Vec<&str> =
            required.iter().filter(|required| !backend.holds(**required)).map(|missing| missing.as_str()).collect();
        if !missing.is_empty() {
            reasons.push(format!("{backend} cannot hold {}", missing.join(", ")));
            continue;
        }
        // A wanted one is used or fails: there is nothing to choose.
        match if wanted.is_some() { Ok(()) } else { is_usable(backend) } {
            Ok(()) => return Ok(backend),
            Err(denied) => reasons.push(format!("{backend} cannot be used: {}", denied.reason)),
        }
    }
    Err(Denied::new(format!("this machine cannot contain the call: {}", reasons.join("; ")))
        .hint("run `callgate doctor` to see what is missing and how to get it"))
}

fn is_usable(backend: Backend) -> Result<(), Denied> {
    match backend {
        // Nearly every machine ends here, so this trial is short.
        Backend::Namespaces => {
            system::may_make_namespaces().map_err(|error| Denied::new(format!("cannot make namespaces: {error}")))
        }
        Backend::Bubblewrap | Backend::Landlock => works(backend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(usable: &'static [Backend]) -> impl Fn(Backend) -> Result<(), Denied> {
        move |backend| if usable.contains(&backend) { Ok(()) } else { Err(Denied::new("broken")) }
    }

    #[test]
    fn the_best_that_works_and_holds_is_chosen() {
        use Backend::{Bubblewrap, Landlock, Namespaces};
        let all = Protection::ALL.as_slice();
        assert_eq!(best(all, None, only(&Backend::ALL)), Ok(Namespaces));
        assert_eq!(best(all, None, only(&[Bubblewrap, Landlock])), Ok(Bubblewrap));
        assert_eq!(best(&[Protection::Writes], None, only(&[Landlock])), Ok(Landlock));
        let denied = best(all, None, only(&[Landlock])).unwrap_err();
        assert!(denied.reason.contains("namespaces cannot be used: broken; bubblewrap cannot be used: broken"));
        assert!(denied.reason.contains("landlock cannot hold reads, secrets"));
        assert!(denied.hint.unwrap().contains("callgate doctor"));
    }

    #[test]
    fn what_is_wanted_is_not_replaced() {
        let all = Protection::ALL.as_slice();
        assert_eq!(best(all, Some(Backend::Bubblewrap), only(&[Backend::Namespaces])), Ok(Backend::Bubblewrap));
        assert!(best(all, Some(Backend::Landlock), only(&Backend::ALL)).is_err());
    }
}
