//! The set `@registries`: where package managers fetch from.
//!
//! It consists of the well-known registries and of those that the user's own configuration names. A project's files do not
//! count: an agent can write them.

mod settings;

use std::collections::BTreeSet;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::hosts::port_number;
use super::name::Host;
use settings::{Format, Setting};

/// The longest settings file that is read.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The registries that package managers use unless they are told otherwise.
const WELL_KNOWN: &[&str] = &[
    // JavaScript
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "npm.jsr.io",
    "jsr.io",
    // Python
    "pypi.org",
    "files.pythonhosted.org",
    "conda.anaconda.org",
    "repo.anaconda.com",
    // Rust
    "index.crates.io",
    "static.crates.io",
    "crates.io",
    // Go
    "proxy.golang.org",
    "sum.golang.org",
    // Ruby
    "rubygems.org",
    "index.rubygems.org",
    // Java
    "repo.maven.apache.org",
    "repo1.maven.org",
    "plugins.gradle.org",
    // PHP
    "packagist.org",
    "repo.packagist.org",
    // .NET
    "api.nuget.org",
    // Erlang and Elixir
    "hex.pm",
    "repo.hex.pm",
    // Dart, Haskell, R, Perl, Lua, Julia, OCaml
    "pub.dev",
    "hackage.haskell.org",
    "cloud.r-project.org",
    "cpan.metacpan.org",
    "luarocks.org",
    "pkg.julialang.org",
    "opam.ocaml.org",
];

/// Environment variables that name registries. A proxy is not one: it leads everywhere.
const VARIABLES: &[&str] = &[
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "YARN_REGISTRY",
    "YARN_NPM_REGISTRY_SERVER",
    "BUN_CONFIG_REGISTRY",
    "JSR_URL",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "CONDA_CHANNEL_ALIAS",
    "CARGO_REGISTRIES_CRATES_IO_INDEX",
    "GOPROXY",
    "GOSUMDB",
    "BUNDLE_MIRROR__ALL",
    "HEX_MIRROR",
    "HEX_MIRROR_URL",
    "PUB_HOSTED_URL",
    "JULIA_PKG_SERVER",
];

/// Where a settings file is.
enum Place {
    /// Below the home directory.
    Home(&'static str),
    /// Below `XDG_CONFIG_HOME`, usually `~/.config`.
    Config(&'static str),
    /// Below the directory that a variable names, or below this one of the home directory.
    Directory(&'static str, &'static str, &'static str),
    /// The file that a variable names.
    Variable(&'static str),
    /// Of the whole machine.
    System(&'static str),
}

/// The settings files, and what in them names registries.
const FILES: &[(Place, Format)] = &[
    (Place::Home(".npmrc"), settings::NPM),
    (Place::Variable("NPM_CONFIG_USERCONFIG"), settings::NPM),
    (Place::Config("pnpm/rc"), settings::NPM),
    (Place::System("/etc/npmrc"), settings::NPM),
    (Place::System("/usr/etc/npmrc"), settings::NPM),
    (Place::System("/usr/local/etc/npmrc"), settings::NPM),
    (Place::Home(".yarnrc"), settings::NPM),
    (Place::Home(".yarnrc.yml"), settings::YARN),
    (Place::Home(".bunfig.toml"), settings::BUN),
    (Place::Config("pip/pip.conf"), settings::PIP),
    (Place::Home(".pip/pip.conf"), settings::PIP),
    (Place::Variable("PIP_CONFIG_FILE"), settings::PIP),
    (Place::System("/etc/pip.conf"), settings::PIP),
    (Place::System("/etc/xdg/pip/pip.conf"), settings::PIP),
    (Place::Config("uv/uv.toml"), settings::UV),
    (Place::Variable("UV_CONFIG_FILE"), settings::UV),
    (Place::System("/etc/uv/uv.toml"), settings::UV),
    (Place::Config("pypoetry/config.toml"), settings::POETRY),
    (Place::Config("pdm/config.toml"), settings::UV),
    (Place::Home(".condarc"), settings::CONDA),
    (Place::Directory("CARGO_HOME", ".cargo", "config.toml"), settings::CARGO),
    (Place::Directory("CARGO_HOME", ".cargo", "config"), settings::CARGO),
    (Place::Config("go/env"), settings::GO),
    (Place::Variable("GOENV"), settings::GO),
    (Place::Home(".gemrc"), settings::GEM),
    (Place::Home(".bundle/config"), settings::BUNDLER),
    (Place::Home(".m2/settings.xml"), settings::MAVEN),
    (Place::Directory("COMPOSER_HOME", ".config/composer", "config.json"), settings::COMPOSER),
    (Place::Home(".composer/config.json"), settings::COMPOSER),
    (Place::Home(".nuget/NuGet/NuGet.Config"), settings::NUGET),
    (Place::Config("NuGet/NuGet.Config"), settings::NUGET),
];

/// The hosts of `@registries`, each with its port, as entries of a list of hosts.
///
/// `home` is the user's home directory. `environment` must be the environment in which the user started the session, and not
/// one that the call or a project sets: it decides whom a contained call reaches.
pub fn registries(home: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut hosts: BTreeSet<String> = WELL_KNOWN.iter().map(|host| format!("{host}:443")).collect();
    for (place, format) in FILES {
        for path in paths(place, home, environment) {
            let Some(text) = read(&path) else {
                continue;
            };
            for Setting { key, value } in format.settings(&text) {
                hosts.extend(urls(&value).filter_map(host_of));
                // cargo lets a variable name the index of every registry that it knows.
                if let Some(registry) = key.strip_prefix("registries.").and_then(|key| key.strip_suffix(".index")) {
                    let name = registry.to_ascii_uppercase().replace('-', "_");
                    let value = environment(&format!("CARGO_REGISTRIES_{name}_INDEX")).unwrap_or_default();
                    hosts.extend(urls(&value).filter_map(host_of));
                }
            }
        }
    }
    if let Some(name) = environment("CARGO_REGISTRY_DEFAULT") {
        let name = name.to_ascii_uppercase().replace('-', "_");
        hosts.extend(
            urls(&environment(&format!("CARGO_REGISTRIES_{name}_INDEX")).unwrap_or_default()).filter_map(host_of),
        );
    }
    for variable in VARIABLES {
        hosts.extend(urls(&environment(variable).unwrap_or_default()).filter_map(host_of));
    }
    hosts.into_iter().collect()
}

fn paths(place: &Place, home: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    // A relative path would lie in the project.
    let variable = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match place {
        Place::Home(path) => vec![home.join(path)],
        Place::Config(path) => vec![variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join(path)],
        Place::Directory(name, directory, path) => {
            vec![variable(name).unwrap_or_else(|| home.join(directory)).join(path)]
        }
        Place::Variable(name) => variable(name).into_iter().collect(),
        Place::System(path) => vec![PathBuf::from(path)],
    }
}

/// The text of an ordinary file of bounded size.
fn read(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST_FILE {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(LONGEST_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The URLs in a value, which may be a list of them.
fn urls(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(|char: char| char.is_whitespace() || matches!(char, ',' | '|' | '"' | '\'' | '<' | '>' | ';'))
        .filter_map(|word| word.find("http").and_then(|at| word.get(at..)))
        .filter(|word| word.starts_with("http://") || word.starts_with("https://"))
}

/// The host and port of a URL as an entry of a list. Programs disagree on what is odd, so that it is no entry.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    if authority.contains('\\') || authority.matches('@').count() > 1 {
        return None;
    }
    let authority = authority.rsplit('@').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        // The colons of an address in brackets are its own.
        Some((host, port)) if !port.ends_with(']') => (host, port_number(port)?),
        _ => (authority, if scheme == "http" { 80 } else { 443 }),
    };
    match Host::new(host).ok()? {
        Host::Name(name) => Some(format!("{name}:{port}")),
        Host::Address(IpAddr::V4(address)) => Some(format!("{address}:{port}")),
        Host::Address(IpAddr::V6(address)) => host.starts_with('[').then(|| format!("[{address}]:{port}")),
    }
}

#[cfg(test)]
mod tests;
