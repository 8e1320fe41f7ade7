//! Finding the rules that an effect may have to do with, without looking at all of them.
//!
//! Every rule is filed under its rarest kind of condition: its paths, the first words of its commands, its hosts, a piece of
//! text that its regular expressions need, its tools, or else only the actions it is about. A rule that is found is still
//! compared in full, so the index decides nothing.

use std::collections::HashMap;

use callgate_shell::word::Word;
use serde::{Deserialize, Serialize};

use super::compile::{Compiled, Rule};
use super::matching::glob::Segment;
use super::matching::hosts::{HostPattern, Machine};
use super::matching::table::Table;
use super::matching::tools::ToolPattern;
use super::matching::words::base_name;
use super::matching::{Span, hash, name};
use crate::call::Tool;
use crate::describe::Part;

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

/// The index of a compiled policy.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Index {
    keyed: Table,
    /// For each kind of effect, the rules that have no better key.
    general: Vec<Vec<u32>>,
    /// Rules filed under paths, for effects whose path is not known.
    paths: Vec<u32>,
    /// Rules filed under commands, for commands whose first word is not known.
    commands: Vec<u32>,
    /// Rules filed under hosts, for machines that are not known.
    hosts: Vec<u32>,
    has_command_grams: bool,
    /// Rules filed under pieces of paths, for effects whose path is not one exact one.
    path_patterns: Vec<u32>,
}

impl Index {
    /// Files all rules. `literals` holds, for every regular expression, what must occur in a text that fits.
    pub(crate) fn new(compiled: &Compiled, literals: &[Option<Vec<Vec<u8>>>]) -> Self {
        let mut index = Self { general: vec![Vec::new(); KINDS], ..Self::default() };
        let literals = Literals::new(literals);
        let mut entries: Vec<(u64, u32)> = Vec::new();
        for (number, rule) in compiled.rules.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let keys = index.file(compiled, rule, number, &literals);
            match keys {
                Some(keys) => entries.extend(keys.into_iter().map(|key| (key, number))),
                None => {
                    for (kind, list) in index.general.iter_mut().enumerate() {
                        // The last kind is a call without effects, which rules about effects do not match.
                        let fits = rule.actions == 0 || rule.actions >> kind & 1 == 1;
                        if fits {
                            list.push(number);
                        }
                    }
                }
            }
        }
        index.keyed = Table::new(entries);
        index
    }

    fn file(&mut self, compiled: &Compiled, rule: &Rule, number: u32, literals: &Literals<'_>) -> Option<Vec<u64>> {
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
            self.has_command_grams = true;
            return Some(keys);
        }
        if let Some(keys) = gram_keys(rule.path_patterns, literals, PATH_GRAM) {
            self.path_patterns.push(number);
            return Some(keys);
        }
        tool_keys(compiled, rule)
    }

    /// Rules that only say what kind of effect they are about.
    pub(crate) fn general(&self, kind: usize) -> &[u32] {
        self.general.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Rules about a list of paths.
    pub(crate) fn list(&self, list: u32) -> &[u32] {
        self.keyed.get(hash(LIST, &list.to_le_bytes()))
    }

    /// All rules about paths.
    pub(crate) fn all_paths(&self) -> &[u32] {
        &self.paths
    }

    /// Rules about a tool of the agent by its name, or about a server.
    pub(crate) fn tool(&self, tool: &Tool) -> &[u32] {
        match &tool.server {
            Some(server) => self.keyed.get(hash(SERVER, server.as_bytes())),
            None => self.keyed.get(hash(TOOL, tool.name.as_bytes())),
        }
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
                        found.extend_from_slice(self.keyed.get(hash(FIRST_WORD, first.as_bytes())));
                        found.extend_from_slice(self.keyed.get(pair(first, second)));
                    }
                    None => found.extend_from_slice(self.keyed.get(hash(FIRST_WORD, first.as_bytes()))),
                    Some(_) => found.extend_from_slice(self.keyed.get(hash(FIRST_WORD_OF_ALL, first.as_bytes()))),
                }
            }
            Some(_) => found.extend_from_slice(&self.commands),
        }
        for program in programs {
            found.extend_from_slice(self.keyed.get(hash(FIRST_WORD_OF_ALL, base_name(program).as_bytes())));
        }
    }

    /// Rules about a machine.
    pub(crate) fn host(&self, machine: &Machine, found: &mut Vec<u32>) {
        let name = match machine {
            Machine::Name(name) | Machine::Service(name) => name,
            Machine::Unknown => return found.extend_from_slice(&self.hosts),
            Machine::Address(_) => return,
        };
        found.extend_from_slice(self.keyed.get(hash(HOST, name.as_bytes())));
        for (dot, _) in name.match_indices('.') {
            found.extend_from_slice(self.keyed.get(hash(HOST, name.as_bytes().get(dot..).unwrap_or_default())));
        }
    }

    pub(crate) fn has_command_grams(&self) -> bool {
        self.has_command_grams
    }

    /// Rules with regular expressions on paths.
    pub(crate) fn all_path_patterns(&self) -> &[u32] {
        &self.path_patterns
    }

    /// Rules with a regular expression that may fit this text.
    pub(crate) fn text(&self, text: &[u8], found: &mut Vec<u32>, commands: bool) {
        let family = if commands { COMMAND_GRAM } else { PATH_GRAM };
        for gram in text.windows(GRAM) {
            found.extend_from_slice(self.keyed.get(hash(family, gram)));
        }
        found.sort_unstable();
        found.dedup();
    }
}

fn pair(first: &str, second: &str) -> u64 {
    hash(FIRST_TWO_WORDS, format!("{first}\0{second}").as_bytes())
}

fn command_keys(compiled: &Compiled, rule: &Rule) -> Option<Vec<u64>> {
    if rule.commands.is_empty() {
        return None;
    }
    let mut keys = Vec::new();
    for command in rule.commands.of(&compiled.commands) {
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

fn host_keys(compiled: &Compiled, rule: &Rule) -> Option<Vec<u64>> {
    if rule.hosts.is_empty() {
        return None;
    }
    let keys = rule.hosts.of(&compiled.hosts).iter().map(|host| match host {
        HostPattern::Name(text) | HostPattern::Below(text) => Some(hash(HOST, compiled.pool.get(*text).as_bytes())),
        _ => None,
    });
    keys.collect()
}

/// Each literal is filed under the rarest of its pieces, since all of them must occur.
fn gram_keys(patterns: Span, literals: &Literals<'_>, family: u8) -> Option<Vec<u64>> {
    if patterns.is_empty() {
        return None;
    }
    let mut keys = Vec::new();
    for of_pattern in patterns.of(literals.all) {
        for literal in of_pattern.as_ref()? {
            keys.push(hash(family, literal.windows(GRAM).min_by_key(|gram| literals.counts.get(gram))?));
        }
    }
    Some(keys)
}

/// What must occur in texts that fit the regular expressions, and how often each piece of it is found among them.
struct Literals<'a> {
    all: &'a [Option<Vec<Vec<u8>>>],
    counts: HashMap<&'a [u8], usize>,
}

impl<'a> Literals<'a> {
    fn new(all: &'a [Option<Vec<Vec<u8>>>]) -> Self {
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        for gram in all.iter().flatten().flatten().flat_map(|literal| literal.windows(GRAM)) {
            let count = counts.entry(gram).or_default();
            *count = count.saturating_add(1);
        }
        Self { all, counts }
    }
}

fn tool_keys(compiled: &Compiled, rule: &Rule) -> Option<Vec<u64>> {
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
