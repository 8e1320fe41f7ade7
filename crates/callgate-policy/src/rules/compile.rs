//! From files to the compiled form: flat lists and numbers, so that it can be stored and mapped in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use callgate_model::effect::{Action, CodeOrigin, Mark};
use serde::{Deserialize, Serialize};

use super::index::{Index, IndexSections};
use super::matching::glob::{Base, Segment, expand_braces};
use super::matching::hosts::{self, HostPattern};
use super::matching::pattern::{self, Patterns};
use super::matching::place::{PathLists, PathSections};
use super::matching::tools::{self, ToolPattern};
use super::matching::{Pool, Side, Span, Text, name, words};
use super::stored::{Flat, Image, List, Section, Writer, flat_struct};
use super::when::Conditions;
use crate::Decision;
use crate::file::mistake::{Mistake, Position};
use crate::file::model::{At, File, RuleText, Texts};
use callgate_model::glob::escape;

/// All globs of a policy together, after sets and braces are expanded.
const MAXIMUM_GLOBS: usize = 500_000;

/// One file of a chain: what it says, what it is called, and where its relative globs start.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub file: File,
    pub shown: String,
    pub base: Base,
}

/// A mistake and the number of the file it is in.
pub(crate) type Located = (usize, Mistake);

/// A compiled rule. Lists are ranges of the lists in [`Compiled`]; an empty range is a condition that was not written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub name: Text,
    pub reason: Text,
    pub description: Text,
    pub risk_level: Text,
    pub file: u32,
    pub line: u32,
    pub decision: Decision,
    /// One bit for each action; none: any.
    pub actions: u16,
    pub marks: u8,
    pub without_marks: u8,
    pub zones: u8,
    pub code: u8,
    pub traversal: Option<bool>,
    pub recursive: Option<bool>,
    /// Tried only where everything else says ask.
    pub instead_of_ask: bool,
    pub complex_only: bool,
    pub custom_only: bool,
    pub tools: Span,
    pub runs: Span,
    pub run_by: Span,
    pub commands: Span,
    pub hosts: Span,
    pub paths: Option<u32>,
    pub command_patterns: Span,
    pub path_patterns: Span,
    pub when: Option<u32>,
}

flat_struct!(Rule {
    name: Text,
    reason: Text,
    description: Text,
    risk_level: Text,
    file: u32,
    line: u32,
    decision: Decision,
    actions: u16,
    marks: u8,
    without_marks: u8,
    zones: u8,
    code: u8,
    traversal: Option<bool>,
    recursive: Option<bool>,
    instead_of_ask: bool,
    complex_only: bool,
    custom_only: bool,
    tools: Span,
    runs: Span,
    run_by: Span,
    commands: Span,
    hosts: Span,
    paths: Option<u32>,
    command_patterns: Span,
    path_patterns: Span,
    when: Option<u32>,
});

impl Flat for Decision {
    const SIZE: usize = 1;

    fn put(&self, to: &mut Vec<u8>) {
        (*self as u8).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        [Self::Allow, Self::Contain, Self::Ask, Self::Deny].get(usize::from(u8::take(from)?)).copied()
    }
}

impl Rule {
    pub(crate) fn side(&self) -> Side {
        if self.decision < Decision::Ask { Side::Permits } else { Side::Restricts }
    }
}

/// A compiled chain of files.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub pool: Pool,
    pub rules: List<Rule>,
    pub tools: List<ToolPattern>,
    pub runs: List<Text>,
    pub segments: List<Segment>,
    pub commands: List<Span>,
    pub hosts: List<HostPattern>,
    pub paths: PathLists,
    pub patterns: Patterns,
    pub conditions: Conditions,
    pub index: Index,
    pub about: About,
}

/// What is said once, whatever the number of rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct About {
    /// What the files are called in messages.
    pub files: Vec<String>,
    pub default: Option<Decision>,
    pub trusted_tags: Vec<String>,
    pub trusted_servers: Vec<String>,
}

/// Where the parts of a compiled policy lie in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sections {
    pool: Section,
    rules: Section,
    tools: Section,
    runs: Section,
    segments: Section,
    commands: Section,
    hosts: Section,
    paths: PathSections,
    patterns: Section,
    conditions: Section,
    index: IndexSections,
    about: About,
}

impl Compiled {
    /// Writes all lists.
    pub(crate) fn store(&self, writer: &mut Writer) -> Sections {
        Sections {
            pool: self.pool.store(writer),
            rules: self.rules.store(writer),
            tools: self.tools.store(writer),
            runs: self.runs.store(writer),
            segments: self.segments.store(writer),
            commands: self.commands.store(writer),
            hosts: self.hosts.store(writer),
            paths: self.paths.store(writer),
            patterns: self.patterns.sources().store(writer),
            conditions: self.conditions.sources().store(writer),
            index: self.index.store(writer),
            about: self.about.clone(),
        }
    }

    /// The compiled policy that lies in a file.
    pub(crate) fn open(image: &Arc<Image>, sections: Sections) -> Self {
        Self {
            pool: Pool::open(image, sections.pool),
            rules: List::open(image, sections.rules),
            tools: List::open(image, sections.tools),
            runs: List::open(image, sections.runs),
            segments: List::open(image, sections.segments),
            commands: List::open(image, sections.commands),
            hosts: List::open(image, sections.hosts),
            paths: PathLists::open(image, sections.paths),
            patterns: Patterns::new(List::open(image, sections.patterns)),
            conditions: Conditions::new(List::open(image, sections.conditions)),
            index: Index::open(image, sections.index),
            about: sections.about,
        }
    }
}

/// One bit for an action.
pub(crate) fn action_bit(action: Action) -> u16 {
    1 << action as u16
}

/// One bit for a mark.
pub(crate) fn mark_bit(mark: Mark) -> u8 {
    1 << mark as u8
}

/// One bit for an origin.
pub(crate) fn code_bit(origin: CodeOrigin) -> u8 {
    1 << origin as u8
}

/// Compiles a chain: the rules of the first file come first, then those of the file it extends, and so on. The last one may
/// hold nothing but the bundled sets.
pub(crate) fn compile(chain: &[Arc<Source>]) -> Result<Compiled, Vec<Located>> {
    let mut compiler = Compiler {
        compiled: Compiled {
            about: About {
                files: chain.iter().map(|source| source.shown.clone()).collect(),
                default: chain.iter().find_map(|source| source.file.default),
                ..About::default()
            },
            ..Compiled::default()
        },
        chain,
        mistakes: Vec::new(),
        path_lists: HashMap::new(),
        literals: Vec::new(),
        expanded: 0,
    };
    for (number, source) in chain.iter().enumerate() {
        let texts = |texts: &Texts| texts.iter().map(|text| text.value.clone()).collect::<Vec<_>>();
        compiler.compiled.about.trusted_tags.extend(texts(&source.file.trusted_tags));
        compiler.compiled.about.trusted_servers.extend(texts(&source.file.trusted_servers));
        // A set that nobody uses is read too, so that its mistakes are found where they are made. The bundled sets, which come
        // last, are checked by the tests.
        let sets = if number.saturating_add(1) == chain.len() { &[] } else { source.file.sets.as_slice() };
        for (name, _) in sets {
            compiler.expand(number, &At { value: format!("@{}", name.value), position: name.position }, Kind::Other);
        }
        for rule in &source.file.rules {
            compiler.rule(number, rule);
        }
    }
    let Compiler { mut compiled, mistakes, literals, .. } = compiler;
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    compiled.paths.index(&mut compiled.pool);
    compiled.index = Index::new(&compiled, &literals);
    Ok(compiled)
}

/// What the patterns of a list are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// Relative ones start somewhere.
    Paths,
    Other,
}

struct Compiler<'a> {
    compiled: Compiled,
    chain: &'a [Arc<Source>],
    mistakes: Vec<Located>,
    /// Lists that several rules share are kept once.
    path_lists: HashMap<Vec<String>, u32>,
    /// What every text that fits a pattern must hold, for the index.
    literals: Vec<Option<Vec<Vec<u8>>>>,
    /// How many patterns all lists together stand for.
    expanded: usize,
}

impl Compiler<'_> {
    fn mistake(&mut self, file: usize, mistake: Mistake) {
        if self.mistakes.len() < 100 {
            self.mistakes.push((file, mistake));
        }
    }

    fn rule(&mut self, file: usize, text: &RuleText) {
        let pool = &mut self.compiled.pool;
        let line = text.position.line;
        let rule_name = match &text.name {
            Some(name) => name.value.clone(),
            None => format!("rule in line {line}"),
        };
        let reason =
            text.reason.clone().or_else(|| text.description.clone()).unwrap_or_else(|| format!("rule {rule_name}"));
        let mut rule = Rule {
            name: pool.add(&rule_name),
            reason: pool.add(&reason),
            description: pool.add(text.description.as_deref().unwrap_or_default()),
            risk_level: pool.add(text.risk_level.as_deref().unwrap_or_default()),
            file: u32::try_from(file).unwrap_or(u32::MAX),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            decision: text.action,
            actions: text.effects.iter().fold(0, |bits, effect| bits | action_bit(effect.value)),
            marks: text.marks.iter().filter(|mark| mark.value.1).fold(0, |bits, mark| bits | mark_bit(mark.value.0)),
            without_marks: text
                .marks
                .iter()
                .filter(|mark| !mark.value.1)
                .fold(0, |bits, mark| bits | mark_bit(mark.value.0)),
            zones: text.zones.iter().fold(0, |bits, zone| bits | 1 << zone.value as u8),
            code: text.code.iter().fold(0, |bits, code| bits | code_bit(code.value)),
            traversal: text.traversal.map(|flag| flag.value),
            recursive: text.recursive,
            instead_of_ask: text.instead_of_ask,
            complex_only: text.complex_only,
            custom_only: text.custom_only,
            tools: Span::default(),
            runs: Span::default(),
            run_by: Span::default(),
            commands: Span::default(),
            hosts: Span::default(),
            paths: None,
            command_patterns: Span::default(),
            path_patterns: Span::default(),
            when: None,
        };
        rule.tools = self.tools(file, text);
        rule.runs = self.runs(file, &text.runs);
        rule.run_by = self.runs(file, &text.run_by);
        rule.commands = self.commands(file, &text.commands);
        rule.hosts = self.hosts(file, &text.hosts);
        rule.paths = self.paths(file, &text.paths);
        rule.command_patterns = self.patterns(file, &text.command_patterns);
        rule.path_patterns = self.patterns(file, &text.path_patterns);
        if let Some(when) = &text.when {
            let source = self.compiled.pool.add(&when.value);
            match self.compiled.conditions.add(&when.value, source) {
                Ok(number) => rule.when = Some(number),
                Err(mistake) => self.mistake(file, Mistake::new(when.position, mistake.message).help(mistake.help)),
            }
        }
        self.compiled.rules.append([rule]);
    }

    fn tools(&mut self, file: usize, rule: &RuleText) -> Span {
        let mut compiled = Vec::new();
        for tool in &rule.tools {
            match tools::compile(&tool.value, &mut self.compiled.pool) {
                Ok(pattern) => compiled.push(pattern),
                Err(why) => self.mistake(file, Mistake::new(tool.position, why)),
            }
        }
        self.compiled.tools.append(compiled)
    }

    fn runs(&mut self, file: usize, texts: &Texts) -> Span {
        let mut compiled = Vec::new();
        for (pattern, position) in self.expand_all(file, texts, Kind::Other) {
            match name::check(pattern.strip_prefix('!').unwrap_or(&pattern)) {
                Ok(()) => compiled.push(self.compiled.pool.add(&pattern)),
                Err(why) => self.mistake(file, Mistake::new(position, why)),
            }
        }
        self.compiled.runs.append(compiled)
    }

    fn commands(&mut self, file: usize, texts: &Texts) -> Span {
        let mut compiled = Vec::new();
        for text in texts {
            let expanded = self.expand(file, text, Kind::Other);
            for pattern in expanded {
                match words::compile(&pattern, &mut self.compiled.pool, &mut self.compiled.segments) {
                    Ok(spans) => compiled.extend(spans),
                    Err(error) => self.mistake(file, Mistake::new(text.position, error.to_string())),
                }
            }
        }
        self.compiled.commands.append(compiled)
    }

    fn hosts(&mut self, file: usize, texts: &Texts) -> Span {
        let mut compiled = Vec::new();
        for (pattern, position) in self.expand_all(file, texts, Kind::Other) {
            match hosts::compile(&pattern, &mut self.compiled.pool) {
                Ok(pattern) => compiled.push(pattern),
                Err(error) => {
                    let help = "write a name, `*.example.com`, an address, a network such as `10.0.0.0/8`, or a service such as `<aws>`";
                    self.mistake(file, Mistake::new(position, error.to_string()).help(help));
                }
            }
        }
        self.compiled.hosts.append(compiled)
    }

    fn paths(&mut self, file: usize, texts: &Texts) -> Option<u32> {
        let first = texts.first()?;
        let mut patterns = Vec::new();
        for text in texts {
            let expanded = self.expand(file, text, Kind::Paths);
            // Compiled on its own first, so that a mistake is shown where it stands.
            for pattern in &expanded {
                let probe = super::matching::glob::compile(
                    pattern,
                    &Base::Workspace,
                    &mut Pool::default(),
                    &mut List::default(),
                );
                if let Err(error) = probe {
                    self.mistake(file, Mistake::new(text.position, format!("{error} (in `{pattern}`)")));
                }
            }
            patterns.extend(expanded);
        }
        if patterns.iter().all(|pattern| pattern.starts_with('!')) {
            let help = "add what they are taken out of, such as \"**\"";
            self.mistake(file, Mistake::new(first.position, "patterns with `!` alone match nothing").help(help));
        }
        if let Some(list) = self.path_lists.get(&patterns) {
            return Some(*list);
        }
        if self.compiled.paths.len().saturating_add(patterns.len()) > MAXIMUM_GLOBS {
            self.mistake(file, Mistake::new(first.position, format!("more than {MAXIMUM_GLOBS} globs")));
            return None;
        }
        let list = self
            .compiled
            .paths
            .add(patterns.iter().map(String::as_str), &Base::Workspace, &mut self.compiled.pool)
            .ok()?;
        self.path_lists.insert(patterns, list);
        Some(list)
    }

    fn patterns(&mut self, file: usize, texts: &Texts) -> Span {
        let mut sources = Vec::new();
        for text in texts {
            match pattern::check(&text.value) {
                Ok(checked) => {
                    self.literals.push(checked.literals);
                    sources.push(self.compiled.pool.add(&text.value));
                }
                Err(why) => {
                    let message = format!("this regular expression cannot be read: {why}");
                    self.mistake(file, Mistake::new(text.position, message));
                }
            }
        }
        self.compiled.patterns.append(sources)
    }

    fn expand_all(&mut self, file: usize, texts: &Texts, kind: Kind) -> Vec<(String, Position)> {
        let mut all = Vec::new();
        for text in texts {
            all.extend(self.expand(file, text, kind).into_iter().map(|pattern| (pattern, text.position)));
        }
        all
    }

    /// The patterns that one entry stands for: sets are looked up, braces expanded, relative paths given their start.
    fn expand(&mut self, file: usize, text: &At<String>, kind: Kind) -> Vec<String> {
        if self.expanded > MAXIMUM_GLOBS {
            return Vec::new();
        }
        let mut expansion = Expansion { chain: self.chain, patterns: Vec::new(), open: HashSet::new() };
        let result = expansion.entry(file, 0, &text.value, text.position, kind, false);
        self.expanded = self.expanded.saturating_add(expansion.patterns.len());
        if self.expanded > MAXIMUM_GLOBS {
            self.mistake(
                file,
                Mistake::new(text.position, format!("the sets stand for more than {MAXIMUM_GLOBS} patterns")),
            );
        }
        match result {
            Ok(()) => expansion.patterns,
            Err((in_file, mistake)) => {
                if !self.mistakes.contains(&(in_file, mistake.clone())) {
                    self.mistake(in_file, mistake);
                }
                Vec::new()
            }
        }
    }
}

/// Expands references to sets.
pub(crate) struct Expansion<'a> {
    chain: &'a [Arc<Source>],
    patterns: Vec<String>,
    /// Sets that are being expanded, by the file that defines them.
    open: HashSet<(usize, String)>,
}

/// A list may stand for this many patterns.
const MAXIMUM_PATTERNS: usize = 20_000;

impl<'a> Expansion<'a> {
    /// The patterns of a list outside of rules (the boundary), with sets expanded. `built_in` names stay as they are.
    pub(crate) fn boundary(
        chain: &'a [Arc<Source>],
        file: usize,
        texts: &Texts,
        built_in: &[&str],
    ) -> Result<Vec<String>, Located> {
        let mut expansion = Self { chain, patterns: Vec::new(), open: HashSet::new() };
        for text in texts {
            if built_in.contains(&text.value.as_str()) {
                expansion.patterns.push(text.value.clone());
            } else {
                expansion.entry(file, 0, &text.value, text.position, Kind::Other, false)?;
            }
        }
        Ok(expansion.patterns)
    }

    /// `from`: the first file in which a set is looked for; a file may replace a set of the one it extends.
    fn entry(
        &mut self,
        file: usize,
        from: usize,
        text: &str,
        position: Position,
        kind: Kind,
        negated: bool,
    ) -> Result<(), Located> {
        let (negated, body) = match text.strip_prefix('!') {
            Some(body) => (!negated, body),
            None => (negated, text),
        };
        if self.patterns.len() > MAXIMUM_PATTERNS {
            return Err((file, Mistake::new(position, format!("stands for more than {MAXIMUM_PATTERNS} patterns"))));
        }
        if let Some(name) = body.strip_prefix('@') {
            return self.set(file, from, name, position, kind, negated);
        }
        let alternatives = expand_braces(body).map_err(|error| (file, Mistake::new(position, error.to_string())))?;
        for alternative in alternatives {
            let pattern = match (kind, self.chain.get(file).map(|source| &source.base)) {
                (Kind::Paths, Some(Base::Directory(directory))) if is_relative(&alternative) => {
                    format!("{}/{alternative}", escape(directory))
                }
                _ => alternative,
            };
            self.patterns.push(if negated { format!("!{pattern}") } else { pattern });
        }
        Ok(())
    }

    fn set(
        &mut self,
        file: usize,
        from: usize,
        name: &str,
        position: Position,
        kind: Kind,
        negated: bool,
    ) -> Result<(), Located> {
        let found = self.chain.iter().enumerate().skip(from).find_map(|(number, source)| {
            source.file.sets.iter().find(|(set, _)| set.value == name).map(|(_, patterns)| (number, patterns))
        });
        let Some((number, patterns)) = found else {
            let known = self.chain.iter().flat_map(|source| source.file.sets.iter().map(|(set, _)| set.value.as_str()));
            let mistake = Mistake::new(position, format!("there is no set `{name}`"));
            return Err((
                file,
                match crate::file::keys::nearest(name, known) {
                    Some(meant) => mistake.help(format!("did you mean \"@{meant}\"?")),
                    None => mistake.help(format!("define it under `sets:` as `{name}: [\"pattern\"]`")),
                },
            ));
        };
        if !self.open.insert((number, name.to_owned())) {
            return Err((file, Mistake::new(position, format!("the set `{name}` contains itself"))));
        }
        for pattern in patterns {
            // A set that names itself adds to the one it replaces.
            let own = pattern.value.trim_start_matches('!').strip_prefix('@') == Some(name);
            let from = if own { number.saturating_add(1) } else { 0 };
            self.entry(number, from, &pattern.value, pattern.position, kind, negated)?;
        }
        self.open.remove(&(number, name.to_owned()));
        Ok(())
    }
}

fn is_relative(pattern: &str) -> bool {
    !["/", "~", "**/", "./"].iter().any(|start| pattern.starts_with(start)) && !matches!(pattern, "**" | ".")
}
