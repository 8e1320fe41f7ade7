//! From a YAML tree to the model, collecting every mistake on the way.

use callgate_model::effect::{Action, CodeOrigin, Mark};

use super::audit;
use super::keys::{self, Key, nearest};
#[cfg(feature = "legacy")]
use super::legacy;
use super::mistake::{Mistake, Position};
use super::model::{At, BoundaryText, Example, ExecInput, File, RuleText, Texts, ToolText, ZoneText};
use super::yaml::{Node, Value};
use crate::Decision;
use crate::file::approval_rules::ApprovalRules;

/// More rules than this are refused.
pub(crate) const MAXIMUM_RULES: usize = 50_000;
/// A longer pattern is refused.
pub(crate) const MAXIMUM_PATTERN: usize = 4096;
/// Mistakes are collected up to this number.
const MAXIMUM_MISTAKES: usize = 100;

/// Reads a whole file.
pub(crate) fn file(root: &Node) -> Result<File, Vec<Mistake>> {
    let mut decoder = Decoder::default();
    let file = decoder.file(root);
    if decoder.mistakes.is_empty() { Ok(file) } else { Err(decoder.mistakes) }
}

/// Collects mistakes; every reader returns what it could make of its node.
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

    fn expected(&mut self, node: &Node, what: &str) {
        self.mistake(Mistake::new(node.position, format!("expected {what}, found {}", node.kind())));
    }

    /// The entries of a mapping whose keys are all known and written once.
    pub(crate) fn section<'n>(&mut self, node: &'n Node, keys: &[Key], what: &str) -> Vec<(&'static str, &'n Node)> {
        let entries = match &node.value {
            Value::Mapping(entries) => entries.as_slice(),
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
                        Mistake::new(key.position, format!("the key `{name}` is written twice"))
                            .help("keep one of them"),
                    );
                }
                Some(known) => found.push((known.name, value)),
            }
        }
        found
    }

    fn unknown<'a>(
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
            None => format!("{place} takes {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.mistake(Mistake::new(position, format!("unknown {kind} `{shown}` in {place}")).help(help));
    }

    pub(crate) fn text(&mut self, node: &Node) -> Option<At<String>> {
        match node.text() {
            Some(text) => Some(At { value: text.to_owned(), position: node.position }),
            None => {
                self.expected(node, "text");
                None
            }
        }
    }

    pub(crate) fn texts(&mut self, node: &Node) -> Texts {
        match &node.value {
            Value::Sequence(items) => items.iter().filter_map(|item| self.text(item)).collect(),
            _ => self.text(node).into_iter().collect(),
        }
    }

    /// A list that says something: an empty one would match nothing, which nobody means.
    fn some_texts(&mut self, node: &Node, key: &str) -> Texts {
        self.not_empty(node, key);
        let texts = self.texts(node);
        for text in &texts {
            if text.value.len() > MAXIMUM_PATTERN {
                self.mistake(Mistake::new(text.position, format!("longer than {MAXIMUM_PATTERN} bytes")));
            } else if text.value.trim().is_empty() || text.value.contains('\0') {
                self.mistake(Mistake::new(text.position, "an empty pattern, or one with a NUL byte, matches nothing"));
            }
        }
        texts
    }

    fn not_empty(&mut self, node: &Node, key: &str) {
        if matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
            self.mistake(
                Mistake::new(node.position, format!("an empty `{key}` matches nothing"))
                    .help(format!("leave `{key}` out if the rule does not depend on it")),
            );
        }
    }

    pub(crate) fn flag(&mut self, node: &Node) -> Option<At<bool>> {
        let value = match node.text() {
            Some("true") => true,
            Some("false") => false,
            _ => {
                self.mistake(
                    Mistake::new(node.position, "expected true or false").help("write `true` or `false`, in full"),
                );
                return None;
            }
        };
        Some(At { value, position: node.position })
    }

    pub(crate) fn number(&mut self, node: &Node) -> Option<u64> {
        let number = node.text().and_then(|text| text.parse().ok());
        if number.is_none() {
            self.expected(node, "a whole number");
        }
        number
    }

    /// One word of a list of words, looked up by position so that callers map words to values in one table.
    pub(crate) fn word(&mut self, node: &Node, words: &[&str], what: &str) -> Option<usize> {
        let text = self.text(node)?;
        let found = words.iter().position(|word| *word == text.value);
        if found.is_none() {
            self.unknown(node.position, &text.value, "word", what, words.iter().copied());
        }
        found
    }

    fn words<T: Copy>(&mut self, node: &Node, key: &str, words: &[&str], values: &[T]) -> Vec<At<T>> {
        self.not_empty(node, key);
        let items: Vec<&Node> = match &node.value {
            Value::Sequence(items) => items.iter().collect(),
            _ => vec![node],
        };
        items
            .into_iter()
            .filter_map(|item| {
                let value = values.get(self.word(item, words, &format!("`{key}`"))?)?;
                Some(At { value: *value, position: item.position })
            })
            .collect()
    }

    pub(crate) fn decision(&mut self, node: &Node, what: &str) -> Option<Decision> {
        const DECISIONS: &[Decision] =
            &[Decision::Allow, Decision::Ask, Decision::Deny, Decision::Contain, Decision::Ask];
        self.word(node, keys::ACTIONS, what).and_then(|index| DECISIONS.get(index).copied())
    }

    fn file(&mut self, root: &Node) -> File {
        let mut file = File::default();
        #[cfg(feature = "legacy")]
        let mut sections = legacy::Sections::default();
        for (key, node) in self.section(root, keys::FILE, "a policy file") {
            match key {
                "version" | "config_version" => self.version(node),
                "extends" => file.extends = self.text(node),
                "default" => file.default = self.decision(node, "`default`").or(file.default),
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
                    let message = format!("`{key}` needs callgate's feature `legacy`");
                    self.mistake(Mistake::new(node.position, message));
                }
                _ => {
                    // `name` and `description` say what the file is to whoever reads it.
                    self.text(node);
                }
            }
        }
        #[cfg(feature = "legacy")]
        legacy::translate(self, &sections, &mut file);
        file
    }

    fn version(&mut self, node: &Node) {
        if node.text() != Some("1") {
            self.mistake(
                Mistake::new(node.position, "this version of the format is not known").help("write `version: 1`"),
            );
        }
    }

    fn boundary(&mut self, node: &Node) -> BoundaryText {
        let mut boundary = BoundaryText::default();
        for (key, node) in self.section(node, keys::BOUNDARY, "`boundary`") {
            match key {
                "roots" => boundary.roots = Some(self.texts(node)),
                "readable" => boundary.readable = Some(self.texts(node)),
                "outside" => {
                    boundary.outside = self
                        .word(node, keys::OUTSIDE, "`outside`")
                        .map(|index| if index == 0 { Decision::Deny } else { Decision::Ask });
                }
                _ => {
                    boundary.list_outside =
                        self.word(node, keys::LIST_OUTSIDE, "`list_outside`").map(|index| match index {
                            0 => Decision::Allow,
                            1 => Decision::Ask,
                            _ => Decision::Deny,
                        });
                }
            }
        }
        boundary
    }

    fn sets(&mut self, node: &Node) -> Vec<(At<String>, Texts)> {
        let Value::Mapping(entries) = &node.value else {
            self.expected(node, "a mapping from names to lists");
            return Vec::new();
        };
        let mut sets: Vec<(At<String>, Texts)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (key, value) in entries {
            let Some(name) = self.text(key) else { continue };
            if name.value.starts_with('@') {
                self.mistake(
                    Mistake::new(name.position, "a set is defined without `@`")
                        .help(format!("write `{}:`", name.value.trim_start_matches('@'))),
                );
            }
            if !seen.insert(name.value.clone()) {
                self.mistake(Mistake::new(name.position, format!("the set `{}` is defined twice", name.value)));
            }
            let patterns = self.some_texts(value, &name.value);
            sets.push((name, patterns));
        }
        sets
    }

    fn approvals(&mut self, node: &Node, file: &mut File) {
        const EXEC_INPUT: [ExecInput; 3] = [ExecInput::Covered, ExecInput::Judged, ExecInput::Asked];
        let mut provider = serde_json::Map::new();
        for (key, node) in self.section(node, keys::APPROVALS, "`approvals`") {
            match key {
                "timeout_seconds" => file.timeouts.approval_ms = self.seconds(node),
                "exec_input" => {
                    let index = self.word(node, keys::EXEC_INPUT, "`exec_input`");
                    file.exec_input = index.and_then(|index| EXEC_INPUT.get(index).copied());
                }
                _ => {
                    provider.insert(key.to_owned(), node.to_json());
                    file.without_effect.push(At { value: format!("approvals.{key}"), position: node.position });
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
            self.expected(node, "fewer seconds");
        }
        milliseconds
    }

    fn trust(&mut self, node: &Node, file: &mut File) {
        for (key, node) in self.section(node, keys::TRUST, "`trust`") {
            match key {
                "tags" => file.trusted_tags = self.texts(node),
                _ => file.trusted_servers = self.texts(node),
            }
        }
    }

    /// Settings of the second format: only the default matters here, the rest belongs to whoever runs the tools.
    fn settings(&mut self, node: &Node, file: &mut File) {
        let Value::Mapping(entries) = &node.value else {
            if !node.is_null() {
                self.expected(node, "a mapping for `settings`");
            }
            return;
        };
        for (key, value) in entries {
            match key.text() {
                Some("default_action") => file.default = self.decision(value, "`default_action`"),
                Some("approval_timeout_seconds") => {
                    file.timeouts.approval_ms = self.seconds(value);
                }
                Some(other) => file.unused.push(At { value: format!("settings.{other}"), position: key.position }),
                None => self.expected(key, "a key"),
            }
        }
    }

    fn rules(&mut self, node: &Node) -> Vec<RuleText> {
        let items = match &node.value {
            Value::Sequence(items) => items,
            _ if node.is_null() => return Vec::new(),
            _ => {
                self.expected(node, "a list of rules");
                return Vec::new();
            }
        };
        if items.len() > MAXIMUM_RULES {
            self.mistake(Mistake::new(node.position, format!("more than {MAXIMUM_RULES} rules")));
            return Vec::new();
        }
        items.iter().filter_map(|item| self.rule(item)).collect()
    }

    fn rule(&mut self, node: &Node) -> Option<RuleText> {
        if !matches!(node.value, Value::Mapping(_)) {
            self.expected(node, "a rule (a mapping)");
            return None;
        }
        let mut rule = RuleText::new(node.position, Decision::Deny);
        let mut has_action = false;
        let mut instead_of = None;
        for (key, node) in self.section(node, keys::RULE, "a rule") {
            match key {
                "name" => rule.name = self.text(node),
                "tools" => rule.tools = self.tools(node),
                "effects" => rule.effects = self.words(node, key, keys::EFFECTS, EFFECT_VALUES),
                "marks" => rule.marks = self.marks(node),
                "zones" => rule.zones = self.words(node, key, keys::ZONES, ZONE_VALUES),
                "traversal" => rule.traversal = self.flag(node),
                "recursive" => rule.recursive = self.flag(node).map(|flag| flag.value),
                "paths" => rule.paths = self.some_texts(node, key),
                "code" => rule.code = self.words(node, key, keys::CODE, CODE_VALUES),
                "runs" => rule.runs = self.some_texts(node, key),
                "run_by" => rule.run_by = self.some_texts(node, key),
                "commands" => rule.commands = self.some_texts(node, key),
                "hosts" => rule.hosts = self.some_texts(node, key),
                "command_patterns" => rule.command_patterns = self.some_texts(node, key),
                "path_patterns" => rule.path_patterns = self.some_texts(node, key),
                "when" => rule.when = self.text(node),
                "action" => {
                    has_action = true;
                    rule.action = self.decision(node, "`action`").unwrap_or(Decision::Deny);
                }
                "instead_of" => instead_of = self.word(node, keys::INSTEAD_OF, "`instead_of`").map(|_| node.position),
                "reason" => rule.reason = self.text(node).map(|text| text.value),
                "description" => rule.description = self.text(node).map(|text| text.value),
                "risk_level" => {
                    rule.risk_level = self
                        .word(node, keys::RISKS, "`risk_level`")
                        .and_then(|index| keys::RISKS.get(index))
                        .map(|risk| (*risk).to_owned());
                }
                "matches" => rule.matches = self.examples(node),
                _ => rule.misses = self.examples(node),
            }
        }
        if !has_action {
            self.mistake(
                Mistake::new(node.position, "a rule without `action`")
                    .help("add `action: allow`, `ask`, `deny` or `contain`"),
            );
        }
        rule.instead_of_ask = instead_of.is_some();
        if let Some(position) = instead_of
            && rule.action >= Decision::Ask
        {
            self.mistake(
                Mistake::new(position, "a rule that stands in for a question answers it")
                    .help("use `action: allow` or `contain`, or leave `instead_of` out"),
            );
        }
        if let Some(flag) = rule.traversal
            && flag.value
            && rule.action < Decision::Ask
        {
            self.mistake(
                Mistake::new(flag.position, "a path that leaves a root by `..` or by a link is never silent")
                    .help("use `action: ask`, or add the directory to `boundary.roots`"),
            );
        }
        Some(rule)
    }

    fn tools(&mut self, node: &Node) -> Vec<At<ToolText>> {
        self.not_empty(node, "tools");
        let items: Vec<&Node> = match &node.value {
            Value::Sequence(items) => items.iter().collect(),
            _ => vec![node],
        };
        items.into_iter().filter_map(|item| self.tool(item)).collect()
    }

    fn tool(&mut self, node: &Node) -> Option<At<ToolText>> {
        let value = if let Value::Mapping(entries) = &node.value {
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
                    Mistake::new(node.position, format!("`{text}` is no tool"))
                        .help("write a name, a glob such as `github/*`, or `@tag:NAME`"),
                );
                return None;
            } else if let Some(server) = text.strip_prefix("server:") {
                ToolText::Server(server.trim().to_owned())
            } else {
                ToolText::Name(text)
            }
        };
        Some(At { value, position: node.position })
    }

    fn marks(&mut self, node: &Node) -> Vec<At<(Mark, bool)>> {
        self.not_empty(node, "marks");
        let mut marks = Vec::new();
        for text in self.texts(node) {
            let (word, wanted) = match text.value.strip_prefix('!') {
                Some(word) => (word, false),
                None => (text.value.as_str(), true),
            };
            match keys::MARKS.iter().position(|known| *known == word).and_then(|index| MARK_VALUES.get(index)) {
                Some(mark) => marks.push(At { value: (*mark, wanted), position: text.position }),
                None => self.unknown(text.position, word, "word", "`marks`", keys::MARKS.iter().copied()),
            }
        }
        marks
    }

    fn examples(&mut self, node: &Node) -> Vec<At<Example>> {
        let items: Vec<&Node> = match &node.value {
            Value::Sequence(items) => items.iter().collect(),
            _ => vec![node],
        };
        items
            .into_iter()
            .filter_map(|item| {
                let value = if matches!(item.value, Value::Mapping(_)) {
                    self.example(item)?
                } else {
                    Example::Command(self.text(item)?.value)
                };
                Some(At { value, position: item.position })
            })
            .collect()
    }

    fn example(&mut self, node: &Node) -> Option<Example> {
        let (mut tool, mut input, mut command) = (None, serde_json::json!({}), None);
        for (key, node) in self.section(node, keys::EXAMPLE, "an example") {
            match key {
                "tool" => tool = self.text(node),
                "input" => input = node.to_json(),
                _ => command = self.text(node),
            }
        }
        match (tool, command) {
            (Some(tool), None) => Some(Example::Call { tool: tool.value, input }),
            (None, Some(command)) => Some(Example::Command(command.value)),
            _ => {
                self.mistake(
                    Mistake::new(node.position, "an example is a command, or a tool with its input").help(
                        "put a command with `: ` in it in quotes; a call is `{tool: Read, input: {file_path: x}}`",
                    ),
                );
                None
            }
        }
    }
}

const EFFECT_VALUES: &[Action] = &[
    Action::List,
    Action::Read,
    Action::Write,
    Action::Delete,
    Action::Run,
    Action::Connect,
    Action::Send,
    Action::Privilege,
    Action::Opaque,
];
const MARK_VALUES: &[Mark] = &[
    Mark::Destructive,
    Mark::Elsewhere,
    Mark::Redirection,
    Mark::Environment,
    Mark::ProjectCode,
    Mark::Credentials,
    Mark::OwnFiles,
    Mark::Shared,
];
const ZONE_VALUES: &[ZoneText] = &[ZoneText::Root, ZoneText::Readable, ZoneText::Outside, ZoneText::Unresolved];
const CODE_VALUES: &[CodeOrigin] = &[
    CodeOrigin::Known,
    CodeOrigin::Unknown,
    CodeOrigin::File,
    CodeOrigin::Project,
    CodeOrigin::Inline,
    CodeOrigin::Fetched,
    CodeOrigin::Defined,
];
