//! Compiles policy files to flat lists and numbers, which can be stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use callgate_model::effect::{Action, CodeOrigin, Mark};
use callgate_model::fence::Limits;
use serde::{Deserialize, Serialize};

use super::index::Index;
use super::matching::glob::{Segment, expand_braces};
use super::matching::hosts::{self, HostPattern};
use super::matching::pattern::{self, Patterns};
use super::matching::place::{EVERY_ACTION, MAXIMUM_GLOBS, PathLists};
use super::matching::tools::{self, ToolPattern};
use super::matching::{Polarity, Pool, Span, Text, name, words};
use super::stored::{ImageReader, ImageWriter, Stored, StoredList, flat_enum, flat_struct, stored_struct};
use super::when::{self, Conditions};
use crate::Decision;
use crate::file::keys::REGISTRIES;
use crate::file::mistake::{Mistake, Position};
use crate::file::model::{PolicyFile, RuleText, Spanned, Texts};
use crate::roots::RelativeTo;
use callgate_model::glob::escape;

/// One file of a chain: its contents, its name in messages, and what its relative globs are relative to.
#[derive(Debug, Clone)]
pub(crate) struct PolicySource {
    pub file: PolicyFile,
    pub shown: String,
    pub relative_to: RelativeTo,
}

/// A mistake and the number of the file it is in.
pub(crate) type LocatedMistake = (usize, Mistake);

flat_struct! {
    /// A compiled rule. Lists are ranges of the lists in [`CompiledPolicy`]; an empty range means that the condition is absent.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub(crate) struct Rule {
        pub name: Text,
        pub reason: Text,
        pub description: Text,
        pub risk_level: Text,
        pub file: u32,
        pub line: u32,
        pub decision: Decision,
        /// One bit for each action; 0 means any.
        pub actions: u16,
        pub marks: u16,
        pub without_marks: u16,
        pub zones: u8,
        pub code: u8,
        pub traversal: Option<bool>,
        pub recursive: Option<bool>,
        /// Used only if all other rules together decide so.
        pub instead_of: Option<Decision>,
        pub last: bool,
        pub needs_sandbox: bool,
        pub doubt: bool,
        pub free: bool,
        /// `none`, `all` or hosts.
        pub network: Span,
        /// As [`limit_values`] gives them.
        pub limits: Span,
        /// The bits of the protections that must be held; 0 for all.
        pub requires: u16,
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
}
flat_enum!(Decision { 0: Allow, 1: Contain, 2: Ask, 3: Deny });

impl Rule {
    pub(crate) fn side(&self) -> Polarity {
        if self.decision < Decision::Ask { Polarity::Permits } else { Polarity::Restricts }
    }

    /// The marks that a permitting rule covers only if it names them.
    pub(crate) fn never_covered_marks(&self) -> u16 {
        let mut marks = mark_bit(Mark::Elsewhere) | mark_bit(Mark::Environment);
        if self.commands.is_empty() && self.command_patterns.is_empty() {
            marks |= mark_bit(Mark::Destructive) | mark_bit(Mark::Credentials);
        }
        marks & !self.marks
    }

    /// Whether the rule is about actions on paths, whatever else the call is.
    pub(crate) fn is_about_paths_alone(&self) -> bool {
        let spans =
            [self.tools, self.runs, self.run_by, self.commands, self.hosts, self.command_patterns, self.path_patterns];
        self.paths.is_some()
            && spans.iter().all(|span| span.is_empty())
            && self.code == 0
            && self.when.is_none()
            && !self.complex_only
            && !self.custom_only
    }

    /// Whether the rule has no conditions.
    pub(crate) fn is_unconditional(&self) -> bool {
        let Self { name, reason, description, risk_level, file, line, decision, instead_of, .. } = *self;
        let Self { free, network, limits, requires, .. } = *self;
        let told = Self { name, reason, description, risk_level, file, line, free, network, limits, ..Self::default() };
        *self == Self { decision, instead_of, requires, ..told }
    }
}

stored_struct! {
    /// A compiled chain of files.
    #[derive(Debug, Default)]
    pub(crate) struct CompiledPolicy {
        pub pool: Pool,
        pub rules: StoredList<Rule>,
        pub tools: StoredList<ToolPattern>,
        pub runs: StoredList<Text>,
        pub segments: StoredList<Segment>,
        pub commands: StoredList<Span>,
        pub hosts: StoredList<HostPattern>,
        pub paths: PathLists,
        pub patterns: Patterns,
        pub conditions: Conditions,
        pub index: Index,
        pub about: About,
        /// The globs of [`FENCE_SETS`], one range for each; empty if no file of the chain defines sets.
        pub fence: [Span; FENCE_SETS.len()],
        pub fence_globs: StoredList<Text>,
        pub network: StoredList<Text>,
        pub limits: StoredList<u64>,
    }
}

/// The sets that a fence is made of.
pub(crate) const FENCE_SETS: [&str; 5] = ["@secrets", "@runs-outside", "@toolchains", "@caches", "@callgate"];

/// What a compiled policy contains besides its rules.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct About {
    /// The names of the files in messages.
    pub files: Vec<String>,
    pub default: Option<Decision>,
    pub trusted_tags: Vec<String>,
    pub trusted_servers: Vec<String>,
}

/// The cache stores it in the head of the file.
impl Stored for About {
    fn store(&self, _writer: &mut ImageWriter) {}

    fn open(_reader: &mut ImageReader) -> Self {
        Self::default()
    }
}

/// Limits as numbers, 0 for those that are absent; the time in milliseconds.
fn limit_values(limits: &Limits) -> [u64; 7] {
    let Limits { time, memory, processes, written, file_size, open_files, output } = *limits;
    let time = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
    [time, memory, processes, written, file_size, open_files, output].map(Option::unwrap_or_default)
}

/// The limits that [`limit_values`] gave.
pub(crate) fn limits_of(values: &[u64]) -> Limits {
    let value = |index: usize| values.get(index).copied().filter(|value| *value != 0);
    Limits {
        time: value(0).map(Duration::from_millis),
        memory: value(1),
        processes: value(2),
        written: value(3),
        file_size: value(4),
        open_files: value(5),
        output: value(6),
    }
}

/// One bit for an action.
pub(crate) fn action_bit(action: Action) -> u16 {
    1 << action as u16
}

/// One bit for a mark.
pub(crate) fn mark_bit(mark: Mark) -> u16 {
    1 << mark as u16
}

/// One bit for an origin.
pub(crate) fn code_bit(origin: CodeOrigin) -> u8 {
    1 << origin as u8
}

/// Compiles a chain: the rules of the first file come first, then those of the file it extends, and so on. The last one may
/// hold nothing but the bundled sets.
pub(crate) fn compile(chain: &[Arc<PolicySource>]) -> Result<CompiledPolicy, Vec<LocatedMistake>> {
    let mut compiler = Compiler {
        compiled: CompiledPolicy {
            about: About {
                files: chain.iter().map(|source| source.shown.clone()).collect(),
                default: chain.iter().find_map(|source| source.file.default),
                ..About::default()
            },
            ..CompiledPolicy::default()
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
        // Unused sets are expanded too, to find their mistakes. The tests check the bundled sets, which come last.
        let sets = if number.saturating_add(1) == chain.len() { &[] } else { source.file.sets.as_slice() };
        for (name, _) in sets {
            compiler.expand(
                number,
                &Spanned { value: format!("@{}", name.value), position: name.position },
                PatternKind::Other,
            );
        }
        for rule in &source.file.rules {
            compiler.rule(number, rule);
        }
    }
    // A small file that uses no sets stays small: the bundled ones apply to it.
    let own_sets = chain.iter().rev().skip(1).any(|source| !source.file.sets.is_empty());
    let fence_sets = FENCE_SETS.into_iter().enumerate().filter(|_| own_sets);
    for (number, set) in fence_sets {
        let set = Spanned { value: set.to_owned(), position: Position::default() };
        let globs = compiler.expand(0, &set, PatternKind::Paths);
        let compiled = &mut compiler.compiled;
        let globs: Vec<Text> = globs.iter().map(|glob| compiled.pool.add(glob)).collect();
        if let Some(span) = compiled.fence.get_mut(number) {
            *span = compiled.fence_globs.append(globs);
        }
    }
    let Compiler { mut compiled, mistakes, literals, path_lists, .. } = compiler;
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut actions = vec![0; path_lists.len()];
    for rule in compiled.rules.iter() {
        if let Some(actions) = rule.paths.and_then(|list| actions.get_mut(list as usize)) {
            *actions |= if rule.actions == 0 { EVERY_ACTION } else { rule.actions };
        }
    }
    compiled.paths.index(&actions, &mut compiled.pool);
    compiled.index = Index::new(&compiled, &literals);
    Ok(compiled)
}

/// What the patterns of a list match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PatternKind {
    /// Paths, which may be relative.
    Paths,
    Other,
}

struct Compiler<'a> {
    compiled: CompiledPolicy,
    chain: &'a [Arc<PolicySource>],
    mistakes: Vec<LocatedMistake>,
    /// Lists that several rules share are kept once.
    path_lists: HashMap<Vec<String>, u32>,
    /// Literals of every regular expression, for the index.
    literals: Vec<pattern::Literals>,
    /// The number of patterns of all lists, after expansion.
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
        let marks = |wanted: bool| {
            text.marks.iter().filter(|mark| mark.value.1 == wanted).fold(0, |bits, mark| bits | mark_bit(mark.value.0))
        };
        let rule = Rule {
            name: pool.add(&rule_name),
            reason: pool.add(&reason),
            description: pool.add(text.description.as_deref().unwrap_or_default()),
            risk_level: pool.add(text.risk_level.as_deref().unwrap_or_default()),
            file: u32::try_from(file).unwrap_or(u32::MAX),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            decision: text.action,
            actions: text.effects.iter().fold(0, |bits, effect| bits | action_bit(effect.value)),
            marks: marks(true),
            without_marks: marks(false),
            zones: text.zones.iter().fold(0, |bits, zone| bits | 1 << zone.value as u8),
            code: text.code.iter().fold(0, |bits, code| bits | code_bit(code.value)),
            traversal: text.traversal.map(|flag| flag.value),
            recursive: text.recursive,
            instead_of: text.instead_of,
            last: text.last,
            needs_sandbox: text.needs_sandbox,
            doubt: text.doubt,
            free: text.free.is_some(),
            network: self.network(file, &text.network),
            limits: match text.limits == Limits::default() {
                true => Span::default(),
                false => self.compiled.limits.append(limit_values(&text.limits)),
            },
            requires: text.requires.bits(),
            complex_only: text.complex_only,
            custom_only: text.custom_only,
            tools: self.tools(file, text),
            runs: self.runs(file, &text.runs),
            run_by: self.runs(file, &text.run_by),
            commands: self.commands(file, &text.commands),
            hosts: self.hosts(file, &text.hosts),
            paths: self.paths(file, &text.paths),
            command_patterns: self.patterns(file, &text.command_patterns),
            path_patterns: self.patterns(file, &text.path_patterns),
            when: text.when.as_ref().and_then(|when| self.condition(file, when)),
        };
        self.compiled.rules.append([rule]);
    }

    fn network(&mut self, file: usize, texts: &Texts) -> Span {
        for text in texts {
            let (host, port) = match text.value.rsplit_once(':') {
                // an IPv6 address has more colons
                Some((host, port)) if !host.contains(':') => (host, Some(port)),
                _ => (text.value.as_str(), None),
            };
            let word = texts.len() == 1 && matches!(text.value.as_str(), "none" | "all");
            let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
            let is_host = || {
                !matches!(host, "none" | "all")
                    && !host.starts_with(['<', '@', '!'])
                    && hosts::compile(host, &mut Pool::default()).is_ok()
                    && port.is_none_or(is_port)
            };
            if !word && text.value != REGISTRIES && !is_host() {
                let help = "write `none`, `all`, or a list of names, `*.example.com`, addresses and networks, each with an \
                            optional `:PORT`, and \"@registries\"";
                self.mistake(file, Mistake::new(text.position, format!("`{}` is not a host", text.value)).help(help));
            }
        }
        let pool = &mut self.compiled.pool;
        let texts: Vec<Text> = texts.iter().map(|text| pool.add(&text.value)).collect();
        self.compiled.network.append(texts)
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

    /// Compiles all patterns of a list; those that cannot be used are mistakes.
    fn compile_all<T>(
        &mut self,
        file: usize,
        texts: &Texts,
        compile: impl Fn(&mut CompiledPolicy, &str, Position) -> Result<T, Mistake>,
    ) -> Vec<T> {
        let mut compiled = Vec::new();
        for (pattern, position) in self.expand_all(file, texts, PatternKind::Other) {
            match compile(&mut self.compiled, &pattern, position) {
                Ok(pattern) => compiled.push(pattern),
                Err(mistake) => self.mistake(file, mistake),
            }
        }
        compiled
    }

    fn runs(&mut self, file: usize, texts: &Texts) -> Span {
        let runs = self.compile_all(file, texts, |compiled, pattern, position| {
            let checked = name::check(pattern.strip_prefix('!').unwrap_or(pattern));
            checked.map(|()| compiled.pool.add(pattern)).map_err(|why| Mistake::new(position, why))
        });
        self.compiled.runs.append(runs)
    }

    fn commands(&mut self, file: usize, texts: &Texts) -> Span {
        let commands = self.compile_all(file, texts, |compiled, pattern, position| {
            words::compile(pattern, &mut compiled.pool, &mut compiled.segments)
                .map_err(|error| Mistake::new(position, error.to_string()))
        });
        self.compiled.commands.append(commands)
    }

    fn hosts(&mut self, file: usize, texts: &Texts) -> Span {
        let help =
            "write a name, `*.example.com`, an address, a network such as `10.0.0.0/8`, or a service such as `<aws>`";
        let hosts = self.compile_all(file, texts, |compiled, pattern, position| {
            hosts::compile(pattern, &mut compiled.pool)
                .map_err(|error| Mistake::new(position, error.to_string()).help(help))
        });
        self.compiled.hosts.append(hosts)
    }

    fn paths(&mut self, file: usize, texts: &Texts) -> Option<u32> {
        let first = texts.first()?;
        let (patterns, positions): (Vec<_>, Vec<_>) =
            self.expand_all(file, texts, PatternKind::Paths).into_iter().unzip();
        if patterns.iter().all(|pattern| pattern.starts_with('!')) {
            let help = "add a pattern without `!`, such as \"**\"";
            self.mistake(
                file,
                Mistake::new(first.position, "patterns that all start with `!` match nothing").help(help),
            );
        }
        if let Some(list) = self.path_lists.get(&patterns) {
            return Some(*list);
        }
        if self.compiled.paths.len().saturating_add(patterns.len()) > MAXIMUM_GLOBS {
            self.mistake(file, Mistake::new(first.position, format!("too many globs; the limit is {MAXIMUM_GLOBS}")));
            return None;
        }
        let list = u32::try_from(self.path_lists.len()).unwrap_or(u32::MAX);
        for (pattern, position) in patterns.iter().zip(positions) {
            if let Err(error) = self.compiled.paths.add(list, pattern, &mut self.compiled.pool) {
                self.mistake(file, Mistake::new(position, format!("{error} (in `{pattern}`)")));
            }
        }
        self.path_lists.insert(patterns, list);
        Some(list)
    }

    fn patterns(&mut self, file: usize, texts: &Texts) -> Span {
        let mut sources = Vec::new();
        for text in texts {
            match pattern::check(&text.value) {
                Ok(literals) => {
                    self.literals.push(literals);
                    sources.push(self.compiled.pool.add(&text.value));
                }
                Err(why) => {
                    let message = format!("invalid regular expression: {why}");
                    self.mistake(file, Mistake::new(text.position, message));
                }
            }
        }
        self.compiled.patterns.append(sources)
    }

    fn condition(&mut self, file: usize, when: &Spanned<String>) -> Option<u32> {
        if let Err(mistake) = when::check(&when.value) {
            self.mistake(file, Mistake::new(when.position, mistake.message).help(mistake.help));
            return None;
        }
        let source = self.compiled.pool.add(&when.value);
        u32::try_from(self.compiled.conditions.append([source]).bounds().0).ok()
    }

    fn expand_all(&mut self, file: usize, texts: &Texts, kind: PatternKind) -> Vec<(String, Position)> {
        let mut all = Vec::new();
        for text in texts {
            all.extend(self.expand(file, text, kind).into_iter().map(|pattern| (pattern, text.position)));
        }
        all
    }

    /// Expands the sets and braces of one entry and makes relative paths of project files absolute.
    fn expand(&mut self, file: usize, text: &Spanned<String>, kind: PatternKind) -> Vec<String> {
        if self.expanded > MAXIMUM_GLOBS {
            return Vec::new();
        }
        let mut expansion = SetExpansion { chain: self.chain, patterns: Vec::new(), open: HashSet::new() };
        let result = expansion.entry(file, 0, &text.value, text.position, kind, false);
        self.expanded = self.expanded.saturating_add(expansion.patterns.len());
        if self.expanded > MAXIMUM_GLOBS {
            self.mistake(
                file,
                Mistake::new(text.position, format!("sets expand to more than {MAXIMUM_GLOBS} patterns")),
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
pub(crate) struct SetExpansion<'a> {
    chain: &'a [Arc<PolicySource>],
    patterns: Vec<String>,
    /// Sets that are being expanded, by the file that defines them.
    open: HashSet<(usize, String)>,
}

/// The limit for one list, after expansion.
const MAXIMUM_PATTERNS: usize = 20_000;

impl<'a> SetExpansion<'a> {
    /// Expands a list of the boundary. `built_in` sets are kept.
    pub(crate) fn boundary(
        chain: &'a [Arc<PolicySource>],
        file: usize,
        texts: &Texts,
        built_in: &[&str],
    ) -> Result<Vec<String>, LocatedMistake> {
        let mut expansion = Self { chain, patterns: Vec::new(), open: HashSet::new() };
        for text in texts {
            if built_in.contains(&text.value.as_str()) {
                expansion.patterns.push(text.value.clone());
            } else {
                expansion.entry(file, 0, &text.value, text.position, PatternKind::Other, false)?;
            }
        }
        Ok(expansion.patterns)
    }

    /// `from` is the first file to look for a set in: a file may replace a set of the one it extends.
    fn entry(
        &mut self,
        file: usize,
        from: usize,
        text: &str,
        position: Position,
        kind: PatternKind,
        negated: bool,
    ) -> Result<(), LocatedMistake> {
        let (negated, body) = match text.strip_prefix('!') {
            Some(body) => (!negated, body),
            None => (negated, text),
        };
        if self.patterns.len() > MAXIMUM_PATTERNS {
            return Err((file, Mistake::new(position, format!("expands to more than {MAXIMUM_PATTERNS} patterns"))));
        }
        if let Some(name) = body.strip_prefix('@') {
            return self.set(file, from, name, position, kind, negated);
        }
        let alternatives = expand_braces(body).map_err(|error| (file, Mistake::new(position, error.to_string())))?;
        for alternative in alternatives {
            let pattern = match (kind, self.chain.get(file).map(|source| &source.relative_to)) {
                (PatternKind::Paths, Some(RelativeTo::Directory(directory))) if is_relative(&alternative) => {
                    // The directory is a path, not a pattern: what looks special in it is taken literally.
                    format!("{}/{alternative}", escape(&directory.to_string_lossy()))
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
        kind: PatternKind,
        negated: bool,
    ) -> Result<(), LocatedMistake> {
        let found = self.chain.iter().enumerate().skip(from).find_map(|(number, source)| {
            source.file.sets.iter().find(|(set, _)| set.value == name).map(|(_, patterns)| (number, patterns))
        });
        let Some((number, patterns)) = found else {
            let known = self.chain.iter().flat_map(|source| source.file.sets.iter().map(|(set, _)| set.value.as_str()));
            let mistake = Mistake::new(position, format!("unknown set `{name}`"));
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
            // A set that refers to itself extends the one it replaces.
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
