//! Reading a policy never panics, and what cannot be read is an error.
#![no_main]

use callgate::Policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = Policy::from_yaml(text, "fuzz.yaml");
});
