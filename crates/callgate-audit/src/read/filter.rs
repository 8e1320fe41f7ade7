//! Which entries are wanted.

use callgate::policy::Decision;
use callgate_model::clock::Timestamp;
use callgate_model::effect::{Action, Target};
use serde_json::Value;

use crate::entry::{EntryBody, LogEntry, ToolAttempt};

/// An effect of a recorded call, as far as a filter looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEffect {
    /// What is done.
    pub action: Action,
    /// The paths it is about: as named and as resolved.
    pub paths: Vec<String>,
    /// The host it is about.
    pub host: Option<String>,
    /// Everything it is about, in words.
    pub shown: String,
}

/// The effects of a recorded call.
pub fn effects_of(attempt: &ToolAttempt) -> Vec<RecordedEffect> {
    let parts = attempt.description.get("parts").and_then(Value::as_array);
    let effects = parts.into_iter().flatten().filter_map(|part| part.get("effects")?.as_array()).flatten();
    effects.filter_map(effect_of).collect()
}

fn effect_of(placed: &Value) -> Option<RecordedEffect> {
    let effect: callgate_model::effect::Effect = serde_json::from_value(placed.get("effect")?.clone()).ok()?;
    let place = placed.get("place");
    let text = |name: &str| place.and_then(|place| place.get(name)?.as_str()).map(str::to_owned);
    let mut paths: Vec<String> = [text("resolved"), text("named")].into_iter().flatten().collect();
    paths.dedup();
    let (host, shown) = match &effect.target {
        Target::Host(host) => (host.name.clone(), host.shown.clone()),
        Target::Program(program) => (None, program.name.clone()),
        Target::Text(text) => (None, text.clone()),
        Target::Path(path) => {
            use callgate_model::effect::Names;
            let (Names::Exact(name) | Names::Glob(name) | Names::Below(name) | Names::Unknown(name)) = &path.names;
            if paths.is_empty() && !matches!(path.names, Names::Unknown(_)) {
                paths.push(name.clone());
            }
            (None, paths.first().cloned().unwrap_or_else(|| name.clone()))
        }
    };
    Some(RecordedEffect { action: effect.action, paths, host, shown })
}

/// Selects entries. A field that is `None` matches every entry.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    /// Not before.
    pub since: Option<Timestamp>,
    /// Not after.
    pub until: Option<Timestamp>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this call.
    pub call: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this tool; `*` matches anything.
    pub tool: Option<String>,
    /// Calls with an effect of this kind.
    pub effect: Option<Action>,
    /// Calls that were judged so.
    pub decision: Option<Decision>,
    /// Calls that this rule decided.
    pub rule: Option<String>,
    /// Calls that touch a path at or below this one; `*` matches anything.
    pub path: Option<String>,
    /// Calls that reach this host or one below it.
    pub host: Option<String>,
    /// Entries about the log itself too.
    pub housekeeping: bool,
}

impl EntryFilter {
    /// Whether an entry is wanted.
    pub fn wants(&self, entry: &LogEntry) -> bool {
        let record = &entry.record;
        let says =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
        if self.since.is_some_and(|since| entry.time < since)
            || self.until.is_some_and(|until| entry.time > until)
            || !says(&self.session, record.session.as_deref())
            || !says(&self.call, record.call.as_deref())
            || !says(&self.kind, Some(record.body.kind()))
            || self.tool.as_deref().is_some_and(|tool| !record.body.tool().is_some_and(|is| fits(tool, is)))
            || !self.housekeeping && self.kind.is_none() && record.body.is_housekeeping()
        {
            return false;
        }
        let looks_at_attempt = self.effect.is_some()
            || self.decision.is_some()
            || self.rule.is_some()
            || self.path.is_some()
            || self.host.is_some();
        if !looks_at_attempt {
            return true;
        }
        match &record.body {
            EntryBody::ToolAttempt(attempt) => self.wants_attempt(attempt),
            // a violation names its rule as well
            EntryBody::SecurityViolation(violation) => {
                self.rule.is_some() && says(&self.rule, violation.rule.as_deref()) && self.decision.is_none()
            }
            _ => false,
        }
    }

    fn wants_attempt(&self, attempt: &ToolAttempt) -> bool {
        if self.decision.is_some_and(|decision| decision != attempt.decision)
            || self.rule.as_deref().is_some_and(|rule| attempt.rule.as_deref() != Some(rule))
        {
            return false;
        }
        if self.effect.is_none() && self.path.is_none() && self.host.is_none() {
            return true;
        }
        effects_of(attempt).iter().any(|effect| {
            self.effect.is_none_or(|action| action == effect.action)
                && self.path.as_deref().is_none_or(|path| effect.paths.iter().any(|is| is_below(path, is)))
                && self.host.as_deref().is_none_or(|host| effect.host.as_deref().is_some_and(|is| is_host(host, is)))
        })
    }
}

/// Whether a text matches a pattern in which `*` matches anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = rest.get(at.saturating_add(part.len())..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn is_below(wanted: &str, path: &str) -> bool {
    if wanted.contains('*') {
        return fits(wanted, path);
    }
    let wanted = wanted.strip_suffix('/').unwrap_or(wanted);
    path.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_host(wanted: &str, host: &str) -> bool {
    host.eq_ignore_ascii_case(wanted)
        || host.to_ascii_lowercase().strip_suffix(&wanted.to_ascii_lowercase()).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fitting) in [
            ("Bash", "Bash", true),
            ("Bash", "Bash2", false),
            ("mcp__*", "mcp__files__read", true),
            ("*read", "mcp__files__read", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("*", "", true),
            ("", "", true),
        ] {
            assert_eq!(fits(pattern, text), fitting, "{pattern} {text}");
        }
    }

    #[test]
    fn paths_are_compared_by_component_and_hosts_by_label() {
        assert!(is_below("/repo", "/repo/src"));
        assert!(is_below("/repo/", "/repo"));
        assert!(!is_below("/repo", "/repo_evil"));
        assert!(is_below("/home/*/.ssh*", "/home/ada/.ssh/id_rsa"));
        assert!(is_host("example.com", "api.example.com"));
        assert!(is_host("Example.com", "example.com"));
        assert!(!is_host("example.com", "evilexample.com"));
    }
}
