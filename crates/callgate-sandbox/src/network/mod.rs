//! The network of contained calls: which hosts they reach, under which names, and how.
//!
//! Contained processes live in an empty network namespace. The supervisor outside connects on their behalf and answers their
//! name queries; this module decides about both and does them. [`HostList`] is the list of a call's fence. [`Resolver`]
//! resolves the names on it and pins the addresses. [`Connector`] connects to addresses that are listed or pinned.
//! [`Proxy`] does the same for programs that are told of a proxy, where the kernel has no listener. [`registries`]
//! expands the set `@registries`.
//!
//! # What it does not do
//!
//! It does not look into connections: a host on the list can receive whatever the call can read, and an address that several
//! hosts share serves all of them. Names below a listed `*.name` reach that domain's name servers.

mod address;
mod connect;
mod hosts;
mod message;
mod name;
mod pins;
mod proxy;
mod registries;
mod resolver;
mod stream;
mod tunnel;

pub use address::AddressKind;
pub use connect::{ConnectError, Connector, SocketKind};
pub use hosts::{Answer, HostError, HostList};
pub use proxy::Proxy;
pub use registries::registries;
pub use resolver::{Report, Resolver};
pub(crate) use tunnel::run as tunnel;
