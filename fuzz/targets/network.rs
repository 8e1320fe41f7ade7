//! Any bytes are a DNS message that is answered or ignored, and any text is a host or an error. Nothing is looked up: the list
//! of hosts is empty.
#![no_main]

use std::sync::Arc;

use callgate_model::fence::Network;
use callgate_sandbox::network::{HostList, Resolver};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let resolver = Resolver::new(Arc::new(HostList::default()), Arc::new(|_| {}));
    if let Some(answer) = resolver.answer(bytes) {
        assert!(answer.len() <= 512);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let (entry, host) = text.split_once('\n').unwrap_or((text, text));
        if let Ok(list) = HostList::new(&Network::Hosts(vec![entry.to_owned()])) {
            list.allows_name(host, 443);
        }
    }
});
