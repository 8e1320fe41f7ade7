//! How the command is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // A hook starts with every call, and in a position-independent program every page with an address in it is relocated and so
    // copied at each start. What that would hide are the addresses of safe code in a process that reads one message.
    if target("OS") == "linux"
        && target("ENV") == "gnu"
        && std::env::var("PROFILE").is_ok_and(|profile| profile == "release")
    {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
