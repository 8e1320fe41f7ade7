//! Reading a program table never panics.
#![no_main]

use callgate_shell::programs::Programs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Programs::bundled().extended(text, "fuzz");
});
