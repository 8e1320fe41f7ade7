//! Converts a YAML tree to the model and collects every mistake.

use callgate_model::effect::Mark;
use serde::Deserialize;
use serde::de::value::{Error as DeserializeError, StrDeserializer};

use super::audit;
use super::containment;
use super::keys::{self, Key, nearest};
#[cfg(feature = "legacy")]
use super::legacy;
use super::mistake::{Mistake, Position};
use super::model::{BoundaryText, PolicyFile, RuleExample, RuleText, Spanned, Texts, ToolText};
use super::yaml::{Node, NodeValue};
use crate::Decision;
use crate::file::approval_rules::ApprovalRules;

/// More rules than this are refused.
pub(crate) const MAXIMUM_RULES: usize = 50_000;
/// A longer pattern is refused.
pub(crate) const MAXIMUM_PATTERN: usize = 4096;
/// Mistakes are collected up to this number.
const MAXIMUM_MISTAKES: usize = 100;

/// Reads a whole file.
pub(crate) fn file(root: &Node) -> Result<PolicyFile, Vec<Mistake>> {
    let mut decoder = Decoder::default();
    let file = decoder.file(root);
    if decoder.mistakes.is_empty() { Ok(file) } else { Err(decoder.mistakes) }
}

/// Collects mistakes; every method returns what it could read of its node.
#[derive(Default)]
pub(crate) struct Decoder {
    pub mistakes: Vec<Mistake>,
}

impl Decoder {
    pub(crate) fn mistake(&mut self, mistake: Mistake) {
        if self.mistakes.len() < MAXIMUM_MISTAKES {
            self.mistakes.push(mistake);
        }
    }

    pub(crate) fn expected(&mut self, node: &Node, what: &str) {
        self.mistake(Mistake::new(node.position, format!("expected {what}, found {}", node.kind())));
    }

    /// The entries of a mapping whose keys are all known and written once.
    pub(crate) fn section<'n>(&mut self, node: &'n Node, keys: &[Key], what: &str) -> Vec<(&'static str, &'n Node)> {
        let entries = match &node.value {
            NodeValue::Mapping(entries) => entries.as_slice(),
            _ if node.is_null() => return Vec::new(),
            _ => {
                self.expected(node, &format!("a mapping for {what}"));
                return Vec::new();
            }
        };
        let mut found: Vec<(&'static str, &Node)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Some(name) = key.text() else {
                self.expected(key, "a key");
                continue;
            };
            match keys.iter().find(|known| known.name == name) {
                None => self.unknown(key.position, name, "key", what, keys.iter().map(|key| key.name)),
                Some(known) if found.iter().any(|(seen, _)| *seen == known.name) => {
                    self.mistake(
                        Mistake::new(key.position, format!("duplicate key `{name}`")).help("remove one of them"),
                    );
                }
                Some(known) => found.push((known.name, value)),
            }
        }
        found
    }

    pub(crate) fn unknown<'a>(
        &mut self,
        position: Position,
        word: &str,
        kind: &str,
        place: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) {
        let shown: String = word.chars().take(60).collect();
        let help = match nearest(word, known.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("expected one of {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.mistake(Mistake::new(position, format!("unknown {kind} `{shown}` in {place}")).help(help));
    }

    pub(crate) fn text(&mut self, node: &Node) -> Option<Spanned<String>> {
        match node.text() {
            Some(text) => Some(Spanned { value: text.to_owned(), position: node.position }),
            None => {
                self.expected(node, "text");
                None
            }
        }
    }

    pub(crate) fn texts(&mut self, node: &Node) -> Texts {
        node.items().iter().filter_map(|item| self.text(item)).collect()
    }

    /// A list of patterns, which must not be empty: an empty one would match nothing.
    pub(crate) fn some_texts(&mut self, node: &Node, key: &str) -> Texts {
        self.not_empty(node, key);
        let texts = self.texts(node);
        for text in &texts {
            if text.value.len() > MAXIMUM_PATTERN {
                self.mistake(Mistake::new(text.position, format!("pattern is longer than {MAXIMUM_PATTERN} bytes")));
            } else if text.value.trim().is_empty() || text.value.contains('\0') {
                self.mistake(Mistake::new(
                    text.position,
                    "pattern is empty or contains a NUL byte, so it matches nothing",
                ));
            }
        }
        texts
    }

    fn not_empty(&mut self, node: &Node, key: &str) {
        if matches!(&node.value, NodeValue::Sequence(items) if items.is_empty()) {
            self.mistake(
                Mistake::new(node.position, format!("`{key}` is empty, so the rule matches nothing"))
                    .help(format!("remove `{key}` if the rule does not depend on it")),
            );
        }
    }

    pub(crate) fn flag(&mut self, node: &Node) -> Option<Spanned<bool>> {
        let value = match node.text() {
            Some("true") => true,
            Some("false") => false,
            _ => {
                self.mistake(Mistake::new(node.position, "expected true or false").help("write `true` or `false`"));
                return None;
            }
        };
        Some(Spanned { value, position: node.position })
    }

    pub(crate) fn number(&mut self, node: &Node) -> Option<u64> {
        let number = node.text().and_then(|text| text.parse().ok());
        if number.is_none() {
            self.expected(node, "a whole number");
        }
        number
    }

    /// One of these words, read as `T` reads it.
    pub(crate) fn word<T: for<'de> Deserialize<'de>>(&mut self, node: &Node, words: &[&str], what: &str) -> Option<T> {
        let text = self.text(node)?;
        self.known_word(&text, &text.value, words, what)
    }

    fn known_word<T: for<'de> Deserialize<'de>>(
        &mut self,
        text: &Spanned<String>,
        word: &str,
        words: &[&str],
        what: &str,
    ) -> Option<T> {
        if !words.contains(&word) {
            self.unknown(text.position, word, "word", what, words.iter().copied());
            return None;
        }
        T::deserialize(StrDeserializer::<DeserializeError>::new(word)).ok()
    }

    pub(crate) fn words<T: for<'de> Deserialize<'de>>(
        &mut self,
        node: &Node,
        key: &str,
        words: &[&str],
    ) -> Vec<Spanned<T>> {
        self.not_empty(node, key);
        let mut word = |item: &Node| {
            let value = self.word(item, words, &format!("`{key}`"))?;
            Some(Spanned { value, position: item.position })
        };
        node.items().iter().filter_map(&mut word).collect()
    }

    /// A decision, also by the names it has in some places.
    pub(crate) fn decision(&mut self, node: &Node, words: &[&str], what: &str) -> Option<Decision> {
        match self.word::<String>(node, words, what)?.as_str() {
            "allow" | "silent" => Some(Decision::Allow),
            "contain" => Some(Decision::Contain),
            "ask" | "require_approval" => Some(Decision::Ask),
            _ => Some(Decision::Deny),
        }
    }

    fn file(&mut self, root: &Node) -> PolicyFile {
        let mut file = PolicyFile::default();
        #[cfg(feature = "legacy")]
        let mut sections = legacy::LegacySections::default();
        for (key, node) in self.section(root, keys::FILE, "a policy file") {
            match key {
                "version" | "config_version" => self.version(node),
                "extends" => file.extends = self.text(node),
                "default" => file.default = self.decision(node, keys::ACTIONS, "`default`").or(file.default),
                "boundary" => file.boundary = self.boundary(node),
                "sets" => file.sets = self.sets(node),
                "programs" => file.programs = self.text(node),
                "trust" => self.trust(node, &mut file),
                "approvals" => self.approvals(node, &mut file),
                "rules" => file.rules = self.rules(node),
                "audit" => file.audit = audit::decode(self, node),
                "settings" => self.settings(node, &mut file),
                #[cfg(feature = "legacy")]
                "safety" => sections.safety = Some(node),
                #[cfg(feature = "legacy")]
                "sandbox" => sections.sandbox = Some(node),
                #[cfg(feature = "legacy")]
                "run" => sections.run = Some(node),
                #[cfg(not(feature = "legacy"))]
                "safety" | "sandbox" | "run" => {
                    let message = format!("`{key}` requires callgate's feature `legacy`");
                    self.mistake(Mistake::new(node.position, message));
                }
                _ => {
                    // `name` and `description` are for people who read the file.
                    self.text(node);
                }
            }
        }
        #[cfg(feature = "legacy")]
        legacy::translate(self, &sections, &mut file);
        containment::fill(self, &mut file);
        file
    }

    fn version(&mut self, node: &Node) {
        if node.text() != Some("1") {
            self.mistake(Mistake::new(node.position, "unsupported format version").help("write `version: 1`"));
        }
    }

    fn boundary(&mut self, node: &Node) -> BoundaryText {
        let mut boundary = BoundaryText::default();
        for (key, node) in self.section(node, keys::BOUNDARY, "`boundary`") {
            match key {
                "roots" => boundary.roots = Some(self.texts(node)),
                "readable" => boundary.readable = Some(self.texts(node)),
                "outside" => boundary.outside = self.decision(node, keys::OUTSIDE, "`outside`"),
                _ => boundary.list_outside = self.decision(node, keys::LIST_OUTSIDE, "`list_outside`"),
            }
        }
        boundary
    }

    fn sets(&mut self, node: &Node) -> Vec<(Spanned<String>, Texts)> {
        let NodeValue::Mapping(entries) = &node.value else {
            self.expected(node, "a mapping from names to lists");
            return Vec::new();
        };
        let mut sets: Vec<(Spanned<String>, Texts)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (key, value) in entries {
            let Some(name) = self.text(key) else { continue };
            if name.value.starts_with('@') {
                self.mistake(
                    Mistake::new(name.position, "set names are defined without `@`")
                        .help(format!("write `{}:`", name.value.trim_start_matches('@'))),
                );
            }
            if !seen.insert(name.value.clone()) {
                self.mistake(Mistake::new(name.position, format!("duplicate set `{}`", name.value)));
            }
            let patterns = self.some_texts(value, &name.value);
            sets.push((name, patterns));
        }
        sets
    }

    fn approvals(&mut self, node: &Node, file: &mut PolicyFile) {
        let mut provider = serde_json::Map::new();
        for (key, node) in self.section(node, keys::APPROVALS, "`approvals`") {
            match key {
                "timeout_seconds" => file.timeouts.approval_ms = self.seconds(node),
                "agent_answers" => file.agent_answers = self.word(node, keys::AGENT_ANSWERS, "`agent_answers`"),
                "exec_input" => file.exec_input = self.word(node, keys::EXEC_INPUT, "`exec_input`"),
                _ => {
                    provider.insert(key.to_owned(), node.to_json());
                }
            }
        }
        if provider.is_empty() {
            return;
        }
        let section = provider.into();
        match ApprovalRules::read(&section) {
            Ok(_) => file.approvals = Some(section),
            Err(error) => self.mistake(Mistake::new(node.position, error.to_string())),
        }
    }

    /// A number of seconds, in milliseconds.
    fn seconds(&mut self, node: &Node) -> Option<u64> {
        let seconds = self.number(node)?;
        let milliseconds = seconds.checked_mul(1000);
        if milliseconds.is_none() {
            self.expected(node, "a smaller number of seconds");
        }
        milliseconds
    }

    fn trust(&mut self, node: &Node, file: &mut PolicyFile) {
        for (key, node) in self.section(node, keys::TRUST, "`trust`") {
            match key {
                "tags" => file.trusted_tags = self.texts(node),
                _ => file.trusted_servers = self.texts(node),
            }
        }
    }

    /// Settings of the second format. Only the default and the timeout have an effect.
    fn settings(&mut self, node: &Node, file: &mut PolicyFile) {
        let NodeValue::Mapping(entries) = &node.value else {
            if !node.is_null() {
                self.expected(node, "a mapping for `settings`");
            }
            return;
        };
        for (key, value) in entries {
            match key.text() {
                Some("default_action") => file.default = self.decision(value, keys::ACTIONS, "`default_action`"),
                Some("approval_timeout_seconds") => {
                    file.timeouts.approval_ms = self.seconds(value);
                }
                Some(other) => file.unused.push(Spanned { value: format!("settings.{other}"), position: key.position }),
                None => self.expected(key, "a key"),
            }
        }
    }

    fn rules(&mut self, node: &Node) -> Vec<RuleText> {
        let items = match &node.value {
            NodeValue::Sequence(items) => items,
            _ if node.is_null() => return Vec::new(),
            _ => {
                self.expected(node, "a list of rules");
                return Vec::new();
            }
        };
        if items.len() > MAXIMUM_RULES {
            self.mistake(Mistake::new(node.position, format!("too many rules; the limit is {MAXIMUM_RULES}")));
            return Vec::new();
        }
        items.iter().filter_map(|item| self.rule(item)).collect()
    }

    fn rule(&mut self, node: &Node) -> Option<RuleText> {
        if !matches!(node.value, NodeValue::Mapping(_)) {
            self.expected(node, "a rule (a mapping)");
            return None;
        }
        let mut rule = RuleText { position: node.position, ..RuleText::default() };
        let mut has_action = false;
        let mut instead_of = node.position;
        let mut terms = None;
        for (key, node) in self.section(node, keys::RULE, "a rule") {
            match key {
                "name" => rule.name = self.text(node),
                "tools" => rule.tools = self.tools(node),
                "effects" => rule.effects = self.words(node, key, keys::EFFECTS),
                "marks" => rule.marks = self.marks(node),
                "zones" => rule.zones = self.words(node, key, keys::ZONES),
                "traversal" => rule.traversal = self.flag(node),
                "recursive" => rule.recursive = self.flag(node).map(|flag| flag.value),
                "paths" => rule.paths = self.some_texts(node, key),
                "code" => rule.code = self.words(node, key, keys::CODE),
                "runs" => rule.runs = self.some_texts(node, key),
                "run_by" => rule.run_by = self.some_texts(node, key),
                "commands" => rule.commands = self.some_texts(node, key),
                "hosts" => rule.hosts = self.some_texts(node, key),
                "command_patterns" => rule.command_patterns = self.some_texts(node, key),
                "path_patterns" => rule.path_patterns = self.some_texts(node, key),
                "when" => rule.when = self.text(node),
                "action" => {
                    has_action = true;
                    rule.action = self.decision(node, keys::ACTIONS, "`action`").unwrap_or(Decision::Deny);
                }
                "instead_of" => {
                    rule.instead_of = self.decision(node, keys::INSTEAD_OF, "`instead_of`");
                    instead_of = node.position;
                }
                "last" => rule.last = self.flag(node).is_some_and(|flag| flag.value),
                "needs" => rule.needs_sandbox = self.word::<String>(node, keys::NEEDS, "`needs`").is_some(),
                "doubt" => rule.doubt = self.flag(node).is_some_and(|flag| flag.value),
                "where" => {
                    rule.free = self.word::<String>(node, keys::WHERE, "`where`").map(|_| node.position);
                }
                "network" => {
                    rule.network = self.some_texts(node, key);
                    terms = Some(("network", node.position));
                }
                "limits" => {
                    rule.limits = containment::limits(self, node);
                    terms = Some(("limits", node.position));
                }
                "profile" => {
                    rule.profile = self.text(node);
                    terms = Some(("profile", node.position));
                }
                "reason" => rule.reason = self.text(node).map(|text| text.value),
                "description" => rule.description = self.text(node).map(|text| text.value),
                "risk_level" => rule.risk_level = self.word(node, keys::RISKS, "`risk_level`"),
                "matches" => rule.matches = self.examples(node),
                _ => rule.misses = self.examples(node),
            }
        }
        if !has_action {
            self.mistake(
                Mistake::new(node.position, "missing key `action`")
                    .help("add `action: allow`, `ask`, `deny` or `contain`"),
            );
        }
        if rule.instead_of == Some(rule.action)
            || rule.instead_of == Some(Decision::Allow) && rule.action == Decision::Contain
        {
            self.mistake(
                Mistake::new(instead_of, format!("`action: {}` changes nothing here", rule.action))
                    .help("use another action, or remove `instead_of`"),
            );
        }
        containment::check(self, &rule, terms);
        if let Some(flag) = rule.traversal
            && flag.value
            && rule.action < Decision::Ask
        {
            self.mistake(
                Mistake::new(flag.position, "rules cannot allow paths that leave a root through `..` or a symlink")
                    .help("use `action: ask`, or add the directory to `boundary.roots`"),
            );
        }
        Some(rule)
    }

    fn tools(&mut self, node: &Node) -> Vec<Spanned<ToolText>> {
        self.not_empty(node, "tools");
        node.items().iter().filter_map(|item| self.tool(item)).collect()
    }

    fn tool(&mut self, node: &Node) -> Option<Spanned<ToolText>> {
        let value = if let NodeValue::Mapping(entries) = &node.value {
            match entries.as_slice() {
                [(key, server)] if key.text() == Some("server") => ToolText::Server(self.text(server)?.value),
                _ => {
                    self.expected(node, "`{server: NAME}`");
                    return None;
                }
            }
        } else {
            let text = self.text(node)?.value;
            if let Some(tag) = text.strip_prefix("@tag:") {
                ToolText::Tag(tag.to_owned())
            } else if let Some(tag) = text.strip_prefix("!@tag:") {
                ToolText::NotTag(tag.to_owned())
            } else if text.starts_with('@') || text.starts_with('!') {
                self.mistake(
                    Mistake::new(node.position, format!("invalid tool pattern `{text}`"))
                        .help("write a name, a glob such as `github/*`, or `@tag:NAME`"),
                );
                return None;
            } else if let Some(server) = text.strip_prefix("server:") {
                ToolText::Server(server.trim().to_owned())
            } else {
                ToolText::Name(text)
            }
        };
        Some(Spanned { value, position: node.position })
    }

    fn marks(&mut self, node: &Node) -> Vec<Spanned<(Mark, bool)>> {
        self.not_empty(node, "marks");
        let mut marks = Vec::new();
        for text in self.texts(node) {
            let (word, wanted) = match text.value.strip_prefix('!') {
                Some(word) => (word, false),
                None => (text.value.as_str(), true),
            };
            if let Some(mark) = self.known_word(&text, word, keys::MARKS, "`marks`") {
                marks.push(Spanned { value: (mark, wanted), position: text.position });
            }
        }
        marks
    }

    fn examples(&mut self, node: &Node) -> Vec<Spanned<RuleExample>> {
        node.items()
            .iter()
            .filter_map(|item| {
                let value = if matches!(item.value, NodeValue::Mapping(_)) {
                    self.example(item)?
                } else {
                    RuleExample::Command(self.text(item)?.value)
                };
                Some(Spanned { value, position: item.position })
            })
            .collect()
    }

    fn example(&mut self, node: &Node) -> Option<RuleExample> {
        let (mut tool, mut input, mut command) = (None, serde_json::json!({}), None);
        for (key, node) in self.section(node, keys::EXAMPLE, "an example") {
            match key {
                "tool" => tool = self.text(node),
                "input" => input = node.to_json(),
                _ => command = self.text(node),
            }
        }
        match (tool, command) {
            (Some(tool), None) => Some(RuleExample::Call { tool: tool.value, input }),
            (None, Some(command)) => Some(RuleExample::Command(command.value)),
            _ => {
                self.mistake(
                    Mistake::new(node.position, "invalid example: expected a command, or a tool with its input").help(
                        "quote a command that contains `: `; write a call as `{tool: Read, input: {file_path: x}}`",
                    ),
                );
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate_model::decision::ApprovalDecision;
    use callgate_model::effect::{Action, CodeOrigin};

    use super::super::model::{AgentAnswers, ExecInput, ZoneText};
    use super::*;

    fn all_are_known<T: for<'de> Deserialize<'de>>(words: &[&str]) {
        for word in words {
            assert!(T::deserialize(StrDeserializer::<DeserializeError>::new(word)).is_ok(), "{word}");
        }
    }

    #[test]
    fn every_word_of_the_tables_has_a_value() {
        all_are_known::<Action>(keys::EFFECTS);
        all_are_known::<Mark>(keys::MARKS);
        all_are_known::<ZoneText>(keys::ZONES);
        all_are_known::<CodeOrigin>(keys::CODE);
        all_are_known::<AgentAnswers>(keys::AGENT_ANSWERS);
        all_are_known::<ExecInput>(keys::EXEC_INPUT);
        all_are_known::<ApprovalDecision>(keys::APPROVAL_DECISIONS);
    }
}
