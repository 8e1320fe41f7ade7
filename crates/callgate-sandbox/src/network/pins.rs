//! Which names led to which addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::hosts::target;
use super::name::HostName;

/// How long an address stays pinned. Programs keep addresses longer than a record says; an address that is given to somebody
/// else is not reused within minutes.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// The most pairs of names and addresses that are kept, so that a call with a wildcard cannot fill the memory.
const MOST: usize = 4096;

/// The addresses that listed names resolved to, so that the name that was judged is the address that is reached.
#[derive(Debug, Default)]
pub(super) struct Pins {
    pairs: Mutex<HashMap<(IpAddr, HostName), Instant>>,
}

impl Pins {
    /// Remembers that `name` led to `addresses` at `now`.
    pub(super) fn pin(&self, name: &HostName, addresses: &[IpAddr], now: Instant) {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for address in addresses {
            pairs.insert((target(*address), name.clone()), now);
        }
        if pairs.len() > MOST {
            pairs.retain(|_, since| now.saturating_duration_since(*since) < LIFETIME);
            // A quarter at once, so that the next pins cost nothing.
            let mut times: Vec<Instant> = pairs.values().copied().collect();
            times.sort_unstable();
            if let Some(oldest) = times.len().checked_sub(MOST - MOST / 4).and_then(|excess| times.get(excess).copied())
            {
                let mut room = MOST;
                pairs.retain(|_, since| {
                    let keep = *since >= oldest && room > 0;
                    room = room.saturating_sub(usize::from(keep));
                    keep
                });
            }
        }
    }

    /// The names that led to `address`.
    pub(super) fn names(&self, address: IpAddr, now: Instant) -> Vec<HostName> {
        let address = target(address);
        let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |since: &Instant| now.saturating_duration_since(*since) < LIFETIME;
        pairs
            .iter()
            .filter(|((pinned, _), since)| *pinned == address && fresh(since))
            .map(|((_, name), _)| name.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::name::Host;
    use super::*;

    fn name(text: &str) -> HostName {
        match Host::new(text).unwrap() {
            Host::Name(name) => name,
            Host::Address(address) => panic!("{address}"),
        }
    }

    #[test]
    fn pins_expire() {
        let pins = Pins::default();
        let now = Instant::now();
        let address: IpAddr = "9.9.9.9".parse().unwrap();
        pins.pin(&name("a.example"), &["::ffff:9.9.9.9".parse().unwrap()], now);
        assert_eq!(pins.names(address, now), [name("a.example")]);
        assert_eq!(pins.names("9.9.9.8".parse().unwrap(), now), []);
        assert_eq!(pins.names(address, now + LIFETIME), []);
        pins.pin(&name("a.example"), &[address], now + LIFETIME);
        assert_eq!(pins.names(address, now + LIFETIME).len(), 1);
    }

    #[test]
    fn the_newest_pins_are_kept_when_there_are_too_many() {
        let pins = Pins::default();
        let now = Instant::now();
        let address: IpAddr = "9.9.9.9".parse().unwrap();
        for number in 0..3 * MOST {
            let at = now + Duration::from_millis(u64::try_from(number).unwrap());
            pins.pin(&name(&format!("n{number}.example")), &[address], at);
        }
        let kept = pins.names(address, now + Duration::from_secs(60));
        assert!(kept.len() <= MOST && kept.contains(&name(&format!("n{}.example", 3 * MOST - 1))), "{}", kept.len());
        // All at the same moment.
        for number in 0..2 * MOST {
            pins.pin(&name(&format!("m{number}.example")), &[address], now + Duration::from_secs(120));
        }
        assert!(pins.names(address, now + Duration::from_secs(120)).len() <= MOST);
    }
}
