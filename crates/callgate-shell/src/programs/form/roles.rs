//! Roles, the `<…>` of a table.

use super::effects::mark;
use super::tokens::{Commas, Kind, tokens};
use crate::programs::table::{Derived, MemberRole, Role, RoleKind};

/// Reads what stands between the angle brackets.
pub(super) fn role(text: &str) -> Result<Role, String> {
    let unknown = || format!("unknown role `<{text}>`: the roles are listed in docs/program-tables.md");
    let cut = tokens(text, 0, Commas::Literal).map_err(|(_, problem)| problem)?;
    let kinds: Vec<Kind<'_>> = cut.into_iter().map(|token| token.kind).collect();
    let (kind, rest) = match kinds.as_slice() {
        [Kind::Word("text"), rest @ ..] => (RoleKind::Text, rest),
        [Kind::Word("list"), rest @ ..] => (RoleKind::List, rest),
        [Kind::Word("read"), rest @ ..] => (RoleKind::Read, rest),
        [Kind::Word("write"), Kind::Word("into"), rest @ ..] => (RoleKind::WriteInto, rest),
        [Kind::Word("write"), rest @ ..] => (RoleKind::Write, rest),
        [Kind::Word("delete"), rest @ ..] => (RoleKind::Delete, rest),
        [Kind::Word("update"), Kind::Word("by"), Kind::Word("code"), rest @ ..] => (RoleKind::UpdateByCode, rest),
        [Kind::Word("update"), rest @ ..] => (RoleKind::Update, rest),
        [Kind::Word("move"), rest @ ..] => (RoleKind::Move, rest),
        [Kind::Word("run-file"), rest @ ..] => (RoleKind::RunFile, rest),
        [Kind::Word("dir"), rest @ ..] => (RoleKind::Directory, rest),
        [Kind::Word("shell"), Kind::Word("words"), rest @ ..] => (RoleKind::ShellWords, rest),
        [Kind::Word("shell"), rest @ ..] => (RoleKind::Shell, rest),
        [Kind::Word("command"), Kind::Word("until"), Kind::Word(";"), rest @ ..] => {
            (RoleKind::Command { until: true, prefix: None }, rest)
        }
        [Kind::Word("command"), Kind::Word(prefix), rest @ ..] if prefix.ends_with('-') => {
            (RoleKind::Command { until: false, prefix: Some((*prefix).to_owned()) }, rest)
        }
        [Kind::Word("command"), rest @ ..] => (RoleKind::Command { until: false, prefix: None }, rest),
        [Kind::Word("assign"), rest @ ..] => (RoleKind::Assign, rest),
        [Kind::Word("code"), Kind::Word(language), rest @ ..] => (RoleKind::Code((*language).to_owned()), rest),
        [Kind::Word("host"), Kind::Word("send"), rest @ ..] => (RoleKind::HostSend, rest),
        [Kind::Word("host"), rest @ ..] => (RoleKind::Host, rest),
        [Kind::Word("url"), Kind::Word("send"), rest @ ..] => (RoleKind::UrlSend, rest),
        [Kind::Word("url"), rest @ ..] => (RoleKind::Url, rest),
        [Kind::Word("remote"), Kind::Word("read"), rest @ ..] => (RoleKind::RemoteRead, rest),
        [Kind::Word("remote"), Kind::Word("write"), rest @ ..] => (RoleKind::RemoteWrite, rest),
        [Kind::Word("only"), rest @ ..] => (RoleKind::Only, rest),
        [Kind::Word("except"), Kind::Word("dir"), rest @ ..] => (RoleKind::ExceptDirectory, rest),
        [Kind::Word("except"), rest @ ..] => (RoleKind::Except, rest),
        [Kind::Word("strip"), rest @ ..] => (RoleKind::Strip, rest),
        [Kind::Word("suffix"), rest @ ..] => (RoleKind::BackupSuffix, rest),
        [Kind::Word("revision"), rest @ ..] => (RoleKind::Revision, rest),
        [Kind::Word("pathspec"), rest @ ..] => (RoleKind::Pathspec, rest),
        [Kind::Word("at"), Kind::Word("read"), rest @ ..] => (RoleKind::AtRead, rest),
        [Kind::Word("opaque"), Kind::Quoted(why), rest @ ..] => (RoleKind::Opaque((*why).to_owned()), rest),
        [Kind::Word("opaque")] => (RoleKind::Opaque("its meaning is not known".to_owned()), [].as_slice()),
        _ => return Err(unknown()),
    };
    let mut words = rest.iter().peekable();
    let mut role = Role::plain(kind);
    while let Some(kind) = words.next() {
        match kind {
            Kind::Word("tree") => role.tree = true,
            Kind::Word("members") => {
                role.members = Some(MemberRole::Archive);
            }
            Kind::Word("patch") => {
                let first = words.next_if(|kind| **kind == Kind::Word("1")).map(|_| 1);
                role.members = Some(MemberRole::Patch(first));
            }
            Kind::Word("derives") => role.derived = Some(Derived::Anything),
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
