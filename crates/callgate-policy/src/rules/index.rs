//! Finds the rules that may match an effect, without looking at all of them.
//!
//! Every rule is filed under its most selective condition: its paths, the first words of its commands, its hosts, a literal
//! of its regular expressions, its tools, or else its actions. All conditions of a rule that is found are still compared, so
//! the index decides nothing.

use std::borrow::Cow;
use std::collections::HashMap;

use callgate_model::word::Word;

use super::compile::{CompiledPolicy, Rule};
use super::matching::glob::Segment;
use super::matching::hosts::{HostPattern, HostTarget};
use super::matching::table::Table;
use super::matching::tools::ToolPattern;
use super::matching::words::base_name;
use super::matching::{Span, hash, name, pattern};
use super::stored::{StoredList, stored_struct};
use callgate_model::call::Tool;
use callgate_model::description::Part;

const LIST: u8 = 16;
const FIRST_WORD: u8 = 17;
const FIRST_TWO_WORDS: u8 = 18;
/// Every command rule by its first word, for commands whose second word is not known.
const FIRST_WORD_OF_ALL: u8 = 19;
const HOST: u8 = 20;
const COMMAND_GRAM: u8 = 21;
const PATH_GRAM: u8 = 22;
const TOOL: u8 = 23;
const SERVER: u8 = 24;

/// Nine actions, and calls without any effect.
pub(crate) const KINDS: usize = 10;
/// Texts are looked up by pieces of this length.
const GRAM: usize = 3;

stored_struct! {
    /// The index of a compiled policy.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Index {
        keyed: Table,
        /// Numbers of rules, which the others are ranges of.
        numbers: StoredList<u32>,
        /// For each kind of effect, the rules that have no better key.
        general: [Span; KINDS],
        /// Rules filed under paths, for effects whose path is not known.
        paths: Span,
        /// Rules filed under commands, for commands whose first word is not known.
        commands: Span,
        /// Rules filed under hosts, for machines that are not known.
        hosts: Span,
        /// Rules filed under pieces of paths, for effects whose path is not one exact one.
        path_patterns: Span,
        /// Rules filed under pieces of commands.
        command_patterns: Span,
    }
}

/// Rules as they are filed.
#[derive(Default)]
struct FiledRules {
    general: [Vec<u32>; KINDS],
    paths: Vec<u32>,
    commands: Vec<u32>,
    hosts: Vec<u32>,
    path_patterns: Vec<u32>,
    command_patterns: Vec<u32>,
}

impl Index {
    /// Files all rules. `literals` holds, for every regular expression, what must occur in a text that fits.
    pub(crate) fn new(compiled: &CompiledPolicy, literals: &[pattern::Literals]) -> Self {
        let mut filed = FiledRules::default();
        let literals = LiteralCounts::new(literals);
        let mut entries: Vec<(u64, u32)> = Vec::new();
        for (number, rule) in compiled.rules.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let keys = filed.file(compiled, &rule, number, &literals);
            match keys {
                Some(keys) => entries.extend(keys.into_iter().map(|key| (key, number))),
                None => {
                    for (kind, list) in filed.general.iter_mut().enumerate() {
                        // The last kind is a call without effects, which rules about effects do not match.
                        let fits = rule.actions == 0 || rule.actions >> kind & 1 == 1;
                        if fits {
                            list.push(number);
                        }
                    }
                }
            }
        }
        let mut numbers = StoredList::default();
        Self {
            keyed: Table::new(entries),
            general: filed.general.map(|list| numbers.append(list)),
            paths: numbers.append(filed.paths),
            commands: numbers.append(filed.commands),
            hosts: numbers.append(filed.hosts),
            path_patterns: numbers.append(filed.path_patterns),
            command_patterns: numbers.append(filed.command_patterns),
            numbers,
        }
    }
}

impl FiledRules {
    fn file(
        &mut self,
        compiled: &CompiledPolicy,
        rule: &Rule,
        number: u32,
        literals: &LiteralCounts<'_>,
    ) -> Option<Vec<u64>> {
        if let Some(list) = rule.paths {
            self.paths.push(number);
            return Some(vec![hash(LIST, &list.to_le_bytes())]);
        }
        if let Some(keys) = command_keys(compiled, rule) {
            self.commands.push(number);
            return Some(keys);
        }
        if let Some(keys) = host_keys(compiled, rule) {
            self.hosts.push(number);
            return Some(keys);
        }
        if let Some(keys) = gram_keys(rule.command_patterns, literals, COMMAND_GRAM) {
            self.command_patterns.push(number);
            return Some(keys);
        }
        if let Some(keys) = gram_keys(rule.path_patterns, literals, PATH_GRAM) {
            self.path_patterns.push(number);
            return Some(keys);
        }
        tool_keys(compiled, rule)
    }
}

impl Index {
    fn look_up(&self, family: u8, key: &[u8], found: &mut Vec<u32>) {
        found.extend_from_slice(&self.keyed.get(hash(family, key)));
    }

    /// Rules that only say what kind of effect they are about.
    pub(crate) fn general(&self, kind: usize) -> Cow<'_, [u32]> {
        self.general.get(kind).copied().unwrap_or_default().of(&self.numbers)
    }

    /// Rules about a list of paths.
    pub(crate) fn list(&self, list: u32) -> Cow<'_, [u32]> {
        self.keyed.get(hash(LIST, &list.to_le_bytes()))
    }

    /// All rules about paths.
    pub(crate) fn all_paths(&self) -> Cow<'_, [u32]> {
        self.paths.of(&self.numbers)
    }

    /// Rules about a tool of the agent by its name, or about a server.
    pub(crate) fn tool(&self, tool: &Tool) -> Vec<u32> {
        // a rule that restricts a bare name is about the tools of that name of all servers too
        let mut found = self.keyed.get(hash(TOOL, tool.name.as_bytes())).into_owned();
        if let Some(server) = &tool.server {
            found.extend_from_slice(&self.keyed.get(hash(SERVER, server.as_bytes())));
        }
        found
    }

    /// Rules about a simple command.
    pub(crate) fn command(&self, part: &Part, found: &mut Vec<u32>) {
        if self.commands.is_empty() {
            return;
        }
        let programs = part.wrappers.iter().map(String::as_str);
        match part.words.split_first() {
            None => {}
            Some((Word::Known(first), rest)) => {
                let first = base_name(first);
                match rest.first() {
                    Some(Word::Known(second)) => {
                        self.look_up(FIRST_WORD, first.as_bytes(), found);
                        found.extend_from_slice(&self.keyed.get(pair(first, second)));
                    }
                    None => self.look_up(FIRST_WORD, first.as_bytes(), found),
                    Some(_) => self.look_up(FIRST_WORD_OF_ALL, first.as_bytes(), found),
                }
            }
            Some(_) => found.extend_from_slice(&self.commands.of(&self.numbers)),
        }
        for program in programs {
            self.look_up(FIRST_WORD_OF_ALL, base_name(program).as_bytes(), found);
        }
    }

    /// Rules about a machine.
    pub(crate) fn host(&self, machine: &HostTarget, found: &mut Vec<u32>) {
        let name = match machine {
            HostTarget::Name(name) | HostTarget::Service(name) => name,
            HostTarget::Unknown => return found.extend_from_slice(&self.hosts.of(&self.numbers)),
            HostTarget::Address(_) => return,
        };
        self.look_up(HOST, name.as_bytes(), found);
        for (dot, _) in name.match_indices('.') {
            self.look_up(HOST, name.as_bytes().get(dot..).unwrap_or_default(), found);
        }
    }

    pub(crate) fn has_command_grams(&self) -> bool {
        !self.command_patterns.is_empty()
    }

    /// Rules with regular expressions on paths.
    pub(crate) fn all_path_patterns(&self) -> Cow<'_, [u32]> {
        self.path_patterns.of(&self.numbers)
    }

    /// Rules with a regular expression that may fit this text.
    pub(crate) fn text(&self, text: &[u8], found: &mut Vec<u32>, commands: bool) {
        let family = if commands { COMMAND_GRAM } else { PATH_GRAM };
        for gram in text.windows(GRAM) {
            found.extend_from_slice(&self.keyed.get(hash(family, gram)));
        }
        found.sort_unstable();
        found.dedup();
    }
}

fn pair(first: &str, second: &str) -> u64 {
    hash(FIRST_TWO_WORDS, format!("{first}\0{second}").as_bytes())
}

fn command_keys(compiled: &CompiledPolicy, rule: &Rule) -> Option<Vec<u64>> {
    if rule.commands.is_empty() {
        return None;
    }
    let mut keys = Vec::new();
    for command in rule.commands.of(&compiled.commands).iter() {
        let words = command.of(&compiled.segments);
        let Some(Segment::Literal(first)) = words.first() else {
            return None;
        };
        let first = base_name(compiled.pool.get(*first));
        keys.push(hash(FIRST_WORD_OF_ALL, first.as_bytes()));
        match words.get(1) {
            Some(Segment::Literal(second)) => keys.push(pair(first, compiled.pool.get(*second))),
            _ => keys.push(hash(FIRST_WORD, first.as_bytes())),
        }
    }
    Some(keys)
}

fn host_keys(compiled: &CompiledPolicy, rule: &Rule) -> Option<Vec<u64>> {
    if rule.hosts.is_empty() {
        return None;
    }
    let hosts = rule.hosts.of(&compiled.hosts);
    let keys = hosts.iter().map(|host| match host {
        HostPattern::Name(text) | HostPattern::Below(text) => Some(hash(HOST, compiled.pool.get(*text).as_bytes())),
        _ => None,
    });
    keys.collect()
}

/// Each literal is filed under the rarest of its pieces, since all of them must occur.
fn gram_keys(patterns: Span, literals: &LiteralCounts<'_>, family: u8) -> Option<Vec<u64>> {
    if patterns.is_empty() {
        return None;
    }
    let mut keys = Vec::new();
    let (start, end) = patterns.bounds();
    for of_pattern in literals.all.get(start..end).unwrap_or_default() {
        for literal in of_pattern.as_ref()? {
            keys.push(hash(family, literal.windows(GRAM).min_by_key(|gram| literals.counts.get(gram))?));
        }
    }
    Some(keys)
}

/// What must occur in texts that fit the regular expressions, and how often each piece of it is found among them.
struct LiteralCounts<'a> {
    all: &'a [pattern::Literals],
    counts: HashMap<&'a [u8], usize>,
}

impl<'a> LiteralCounts<'a> {
    fn new(all: &'a [pattern::Literals]) -> Self {
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        for gram in all.iter().flatten().flatten().flat_map(|literal| literal.windows(GRAM)) {
            let count = counts.entry(gram).or_default();
            *count = count.saturating_add(1);
        }
        Self { all, counts }
    }
}

fn tool_keys(compiled: &CompiledPolicy, rule: &Rule) -> Option<Vec<u64>> {
    if rule.tools.is_empty() {
        return None;
    }
    rule.tools
        .of(&compiled.tools)
        .iter()
        .map(|tool| match tool {
            ToolPattern::Own { name, exact: true } => Some(hash(TOOL, compiled.pool.get(*name).as_bytes())),
            ToolPattern::Served { server, .. } if !name::is_pattern(compiled.pool.get(*server)) => {
                Some(hash(SERVER, compiled.pool.get(*server).as_bytes()))
            }
            _ => None,
        })
        .collect()
}
