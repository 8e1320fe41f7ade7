//! Roles, the `<…>` of a table.

use super::effects::mark;
use super::tokens::{Commas, Kind, tokens};
use crate::programs::table::{Derived, Role, RoleKind};

/// Reads what stands between the angle brackets.
pub(super) fn role(text: &str) -> Result<Role, String> {
    let unknown = || format!("unknown role `<{text}>`: the roles are listed in docs/program-tables.md");
    let cut = tokens(text, 0, Commas::Literal).map_err(|(_, problem)| problem)?;
    let mut words = cut.iter().map(|token| &token.kind).peekable();
    let Some(Kind::Word(first)) = words.next() else {
        return Err(unknown());
    };
    let kind = match *first {
        "text" => RoleKind::Text,
        "list" => RoleKind::List,
        "read" => RoleKind::Read,
        "write" => match words.next_if(|kind| **kind == Kind::Word("into")) {
            Some(_) => RoleKind::WriteInto,
            None => RoleKind::Write,
        },
        "delete" => RoleKind::Delete,
        "update" => match words.next_if(|kind| **kind == Kind::Word("by")) {
            Some(_) => match words.next() {
                Some(Kind::Word("code")) => RoleKind::UpdateByCode,
                _ => return Err(unknown()),
            },
            None => RoleKind::Update,
        },
        "move" => RoleKind::Move,
        "run-file" => RoleKind::RunFile,
        "dir" => RoleKind::Directory,
        "shell" => match words.next_if(|kind| **kind == Kind::Word("words")) {
            Some(_) => RoleKind::ShellWords,
            None => RoleKind::Shell,
        },
        "command" => match words.next_if(|kind| **kind == Kind::Word("until")) {
            Some(_) => match words.next() {
                Some(Kind::Word(";")) => RoleKind::Command { until: true, prefix: None },
                _ => return Err(unknown()),
            },
            None => {
                let prefix = words.next_if(|kind| matches!(kind, Kind::Word(word) if word.ends_with('-')));
                let prefix = prefix.and_then(|kind| match kind {
                    Kind::Word(word) => Some((*word).to_owned()),
                    _ => None,
                });
                RoleKind::Command { until: false, prefix }
            }
        },
        "assign" => RoleKind::Assign,
        "code" => match words.next() {
            Some(Kind::Word(language)) => RoleKind::Code((*language).to_owned()),
            _ => return Err(unknown()),
        },
        "host" => match words.next_if(|kind| **kind == Kind::Word("send")) {
            Some(_) => RoleKind::HostSend,
            None => RoleKind::Host,
        },
        "url" => match words.next_if(|kind| **kind == Kind::Word("send")) {
            Some(_) => RoleKind::UrlSend,
            None => RoleKind::Url,
        },
        "remote" => match words.next() {
            Some(Kind::Word("read")) => RoleKind::RemoteRead,
            Some(Kind::Word("write")) => RoleKind::RemoteWrite,
            _ => return Err(unknown()),
        },
        "suffix" => RoleKind::BackupSuffix,
        "revision" => RoleKind::Revision,
        "at" => match words.next() {
            Some(Kind::Word("read")) => RoleKind::AtRead,
            _ => return Err(unknown()),
        },
        "opaque" => match words.next() {
            Some(Kind::Quoted(why)) => RoleKind::Opaque((*why).to_owned()),
            None => RoleKind::Opaque("its meaning is not known".to_owned()),
            _ => return Err(unknown()),
        },
        _ => return Err(unknown()),
    };
    let mut role = Role::plain(kind);
    while let Some(kind) = words.next() {
        match kind {
            Kind::Word("tree") => role.tree = true,
            Kind::Word("elsewhere") => match words.next() {
                Some(Kind::Word(place) | Kind::Quoted(place)) => role.elsewhere = Some((*place).to_owned()),
                _ => return Err(unknown()),
            },
            Kind::Word("adds") => match words.next() {
                Some(Kind::Word(suffix)) => role.derived = Some(Derived::Adds((*suffix).to_owned())),
                _ => return Err(unknown()),
            },
            Kind::Word(form @ ("drops" | "pieces")) => {
                let fronts: &[char] = if *form == "drops" { &['.'] } else { &['?', '*'] };
                let follows = |kind: &&Kind<'_>| matches!(kind, Kind::Word(word) if word.starts_with(fronts));
                let list: Vec<String> = std::iter::from_fn(|| words.next_if(follows)).map(Kind::shown).collect();
                if list.is_empty() {
                    return Err(unknown());
                }
                role.derived = Some(match *form {
                    "drops" => Derived::Drops(list.iter().map(|suffix| replaced(suffix)).collect()),
                    _ => Derived::Pieces(list),
                });
            }
            Kind::Word(word) => role.marks.push(mark(word).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        }
    }
    role.marks.sort_unstable();
    role.marks.dedup();
    Ok(role)
}

/// `.tgz=.tar`: a suffix, and what stands in its place.
fn replaced(suffix: &str) -> (String, String) {
    let (old, new) = suffix.split_once('=').unwrap_or((suffix, ""));
    (old.to_owned(), new.to_owned())
}
