//! Patterns on tools. A tool's identity is its server and its name.

use super::{Match, Polarity, Pool, Text, name};
use crate::file::model::ToolText;
use crate::rules::stored::flat_enum;
use callgate_model::call::Tool;

/// A compiled tool pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolPattern {
    /// A tool of the agent itself; `exact` if the name has no wildcards.
    Own { name: Text, exact: bool },
    /// A tool of a server; `exact` if the server has no wildcards and the name is more than one.
    Served { server: Text, name: Text, exact: bool },
    /// A tag of the tool.
    Tag(Text),
    /// The absence of a tag.
    NotTag(Text),
}

flat_enum!(ToolPattern {
    0: Own { name: name: Text, exact: exact: bool },
    1: Served { server: server: Text, name: name: Text, exact: exact: bool },
    2: Tag { 0: tag: Text },
    3: NotTag { 0: tag: Text },
});

/// The result of matching a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolMatch {
    pub fit: Match,
    /// Whether the pattern names this very tool: by its exact name or by a trusted tag.
    pub meant: bool,
}

/// The tags of a tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolClaims<'a> {
    pub tags: &'a [String],
    /// Whether the policy trusts a tag.
    pub believed: &'a dyn Fn(&str) -> bool,
}

/// Compiles a pattern.
pub(crate) fn compile(text: &ToolText, pool: &mut Pool) -> Result<ToolPattern, &'static str> {
    let mut checked = |text: &str| -> Result<Text, &'static str> {
        name::check(text)?;
        Ok(pool.add(text))
    };
    Ok(match text {
        ToolText::Tag(tag) => ToolPattern::Tag(checked(tag)?),
        ToolText::NotTag(tag) => ToolPattern::NotTag(checked(tag)?),
        ToolText::Server(server) => ToolPattern::Served { server: checked(server)?, name: checked("*")?, exact: false },
        ToolText::Name(text) => match parse(text) {
            (None, tool) => ToolPattern::Own { name: checked(tool)?, exact: !name::is_pattern(tool) },
            (Some(server), tool) => ToolPattern::Served {
                server: checked(server)?,
                name: checked(tool)?,
                exact: !name::is_pattern(server) && tool != "*",
            },
        },
    })
}

/// `server/tool`, `mcp__server__tool` or a bare name.
fn parse(text: &str) -> (Option<&str>, &str) {
    if let Some((server, tool)) = text.split_once('/') {
        return (Some(server), tool);
    }
    match text.strip_prefix("mcp__") {
        Some(rest) => match rest.split_once("__") {
            Some((server, tool)) => (Some(server), tool),
            None => (Some(rest), "*"),
        },
        None => (None, text),
    }
}

/// Whether a tool matches a pattern.
pub(crate) fn fit(
    pattern: ToolPattern,
    pool: &Pool,
    tool: &Tool,
    claimed: ToolClaims<'_>,
    side: Polarity,
) -> ToolMatch {
    let fits = |text: Text, value: &str| name::matches(pool.get(text), value.as_bytes());
    let (holds, meant) = match (pattern, &tool.server) {
        (ToolPattern::Own { name, exact }, None) => (fits(name, &tool.name), exact),
        // A bare name covers that tool of every server if the rule restricts, and only the agent's own tool if it permits.
        (ToolPattern::Own { name, .. }, Some(_)) => (side == Polarity::Restricts && fits(name, &tool.name), false),
        (ToolPattern::Served { .. }, None) => (false, false),
        (ToolPattern::Served { server, name, exact }, Some(from)) => {
            (fits(server, from) && fits(name, &tool.name), exact)
        }
        (ToolPattern::Tag(tag), _) => {
            let tag = pool.get(tag);
            let claim = claimed.tags.iter().any(|claim| claim == tag);
            let believed = claim && (claimed.believed)(tag);
            (if side == Polarity::Permits { believed } else { claim }, believed)
        }
        (ToolPattern::NotTag(tag), _) => {
            let tag = pool.get(tag);
            let claim = claimed.tags.iter().any(|claim| claim == tag);
            (if side == Polarity::Permits { !claim } else { !(claim && (claimed.believed)(tag)) }, false)
        }
    };
    ToolMatch { fit: Match::certain(holds), meant: holds && meant }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &ToolText, server: Option<&str>, name: &str, side: Polarity) -> (bool, bool) {
        let mut pool = Pool::default();
        let pattern = compile(text, &mut pool).unwrap();
        let tool = Tool { server: server.map(str::to_owned), name: name.to_owned() };
        let tags = ["read_only".to_owned()];
        let named = fit(pattern, &pool, &tool, ToolClaims { tags: &tags, believed: &|_| server == Some("good") }, side);
        (named.fit == Match::Yes, named.meant)
    }

    #[test]
    fn a_bare_name_permits_no_server_and_restricts_all() {
        for (pattern, server, name, fits) in [
            ("Read", None, "Read", true),
            ("Read", Some("evil"), "Read", false),
            ("*/Read", Some("evil"), "Read", true),
            ("*/Read", None, "Read", false),
            ("*/*", Some("evil"), "Read", true),
            ("github/*", Some("github"), "search", true),
            ("github/*", Some("gitlab"), "search", false),
            ("mcp__github__search", Some("github"), "search", true),
            ("mcp__github__*", Some("github"), "x", true),
            ("mcp__github", Some("github"), "x", true),
            ("File*", None, "FileRead", true),
            ("*", Some("evil"), "Read", false),
        ] {
            let text = ToolText::Name(pattern.to_owned());
            assert_eq!(check(&text, server, name, Polarity::Permits).0, fits, "{pattern}");
        }
        for restricting in ["*", "Read"] {
            assert!(check(&ToolText::Name(restricting.into()), Some("evil"), "Read", Polarity::Restricts).0);
        }
    }

    #[test]
    fn claims_tighten_always_and_loosen_only_if_believed() {
        let tag = ToolText::Tag("read_only".into());
        assert_eq!(check(&tag, None, "x", Polarity::Permits), (false, false));
        assert_eq!(check(&tag, Some("good"), "x", Polarity::Permits), (true, true));
        assert!(check(&tag, None, "x", Polarity::Restricts).0);
        let not = ToolText::NotTag("read_only".into());
        assert!(check(&not, None, "x", Polarity::Restricts).0);
        assert!(!check(&not, Some("good"), "x", Polarity::Restricts).0);
        assert!(!check(&not, None, "x", Polarity::Permits).0);
    }
}
