//! Counts the steps of loops over input, so that tests can tell linear work from quadratic.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts steps in tests; does nothing otherwise.
#[inline]
pub(crate) fn count(steps: usize) {
    #[cfg(test)]
    STEPS.with(|counted| counted.set(counted.get().saturating_add(steps)));
    let _ = steps;
}

/// How many steps something takes.
#[cfg(test)]
pub(crate) fn counted(run: impl FnOnce()) -> usize {
    STEPS.with(|counted| counted.set(0));
    run();
    STEPS.with(std::cell::Cell::get)
}
