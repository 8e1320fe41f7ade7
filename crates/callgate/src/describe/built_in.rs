//! Describes calls of the tools in the table `tools.txt`.

use std::sync::Arc;

use callgate_model::effect::{Action, CodeOrigin, Names};
use callgate_shell::environment::{influence, is_harmless};
use callgate_shell::patch;
use serde_json::{Map, Value};

use super::collect::Collector;
use super::edits;
use super::parameters::{self, Caution, WrongType, texts};
use super::role::{Access, Parameter, Role, ToolEntry, ToolKind};
use super::tools;
use super::{CallContext, DescribeError, Described, Description, Descriptor, Part, TypedInput, shell, uri};
use callgate_model::call::Call;
use callgate_model::redact::{Redacted, Redactor, Shown};

/// The descriptor of a built-in tool.
pub(super) fn find(name: &str) -> Option<Arc<dyn Descriptor>> {
    tools::find(name).map(|entry| Arc::new(entry) as Arc<dyn Descriptor>)
}

/// The names of all built-in tools, sorted.
pub fn built_in_tools() -> Vec<&'static str> {
    let mut names: Vec<_> = tools::all().flatten().flat_map(|entry| entry.names).collect();
    names.sort_unstable();
    names
}

impl Descriptor for ToolEntry {
    fn category(&self) -> &str {
        self.category
    }

    fn describe(&self, call: &Call, context: &CallContext) -> Result<Described, DescribeError> {
        let mut collector = Collector::new(context);
        let parts = match &call.input {
            Value::Object(fields) => {
                CallReader { entry: self, fields, workspace: context.directory.as_deref() }.read(&mut collector)
            }
            _ => {
                collector.opaque("the input is not a JSON object");
                Vec::new()
            }
        };
        let left = collector.left_shell();
        let mut all = parts;
        if all.is_empty() || !collector.is_empty() {
            let edits = match &call.input {
                Value::Object(fields) if self.category == "file_write" => edits::of_patch(self, fields, &collector),
                _ => Vec::new(),
            };
            let mut part = collector.into_part();
            part.edits = edits;
            if let Value::Object(fields) = &call.input
                && self.category == "file_write"
            {
                part.edits.extend(edits::read(self, fields, &part));
            }
            all.push(part);
        }
        Ok(Described { description: Description::of_parts(self.category, all), shell: left })
    }

    fn typed_input(&self, call: &Call) -> Option<TypedInput> {
        let Value::Object(fields) = &call.input else { return None };
        let reader = CallReader { entry: self, fields, workspace: None };
        let text = reader.only(Role::Typed)?.as_str()?.to_owned();
        let exec = match reader.only(Role::Process)? {
            Value::String(exec) => exec.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(TypedInput { exec, text })
    }

    fn for_approval(&self, call: &Call, redactor: &Redactor) -> Redacted {
        redactor.input(&call.input, &|name| self.role(name).map_or(Shown::Text, Role::shown))
    }
}

/// Reads the fields of one call by the entry of its tool.
struct CallReader<'a> {
    entry: &'a ToolEntry,
    fields: &'a Map<String, Value>,
    workspace: Option<&'a str>,
}

/// What is put together after all parameters are read.
#[derive(Default)]
struct FoundParameters {
    bases: Vec<String>,
    patterns: Vec<String>,
    commands: Vec<Part>,
}

impl<'a> CallReader<'a> {
    /// Returns the commands as parts. All other effects go to the collector.
    fn read(&self, collector: &mut Collector<'_>) -> Vec<Part> {
        if let Some(directory) = self.directory(collector) {
            collector.directory = directory;
        }
        self.dialect(collector);
        let mut found = FoundParameters::default();
        for parameter in &self.entry.parameters {
            self.parameter(parameter, collector, &mut found);
        }
        self.unknown_parameters(collector);
        self.whole(collector, &found);
        found.commands
    }

    /// The values of a parameter under all its names, without `null`.
    fn values(&self, parameter: &Parameter) -> impl Iterator<Item = (&'static str, &'a Value)> {
        parameter
            .names
            .iter()
            .filter_map(|name| self.fields.get(*name).map(|value| (*name, value)))
            .filter(|(_, value)| !value.is_null())
    }

    /// The one value of a role; `None` if there are several.
    fn only(&self, role: Role) -> Option<&'a Value> {
        let mut given = self.values_of(role);
        given.next().filter(|_| given.next().is_none()).map(|(_, value)| value)
    }

    /// The values of all parameters of a role.
    fn values_of(&self, role: Role) -> impl Iterator<Item = (&'static str, &'a Value)> {
        let parameters = self.entry.parameters.iter().filter(move |parameter| parameter.role == role);
        parameters.flat_map(|parameter| self.values(parameter))
    }

    /// The working directory, if one is given; `Some(None)` if it is invalid.
    fn directory(&self, collector: &mut Collector<'_>) -> Option<Option<String>> {
        let mut given = self.values_of(Role::Directory);
        let (name, value) = given.next()?;
        if given.next().is_some() {
            collector.opaque("several working directories are given");
            return Some(None);
        }
        match value.as_str() {
            Some("") => None,
            Some(text) => {
                let directory = collector.directory_of(text);
                let below = directory
                    .as_deref()
                    .zip(self.workspace)
                    .is_some_and(|(inner, outer)| is_plainly_below(inner, outer));
                if !below {
                    collector.path(Access::List, text, name);
                }
                Some(directory)
            }
            None => {
                collector.opaque(format!("`{name}` is not a string"));
                Some(None)
            }
        }
    }

    /// Sets the shell dialect, if a shell is named.
    fn dialect(&self, collector: &mut Collector<'_>) {
        for name in self.values_of(Role::ShellName).filter_map(|(_, value)| value.as_str()) {
            match shell::dialect_of(name) {
                Some(dialect) => collector.dialect = dialect,
                None => collector.opaque(format!("unknown shell `{}`", callgate_model::show::brief(name))),
            }
        }
    }

    fn parameter(&self, parameter: &Parameter, collector: &mut Collector<'_>, found: &mut FoundParameters) {
        let mut any = false;
        for (name, value) in self.values(parameter) {
            any = true;
            if self.value((name, value), parameter, collector, found) == Err(WrongType) {
                collector.opaque(format!("`{name}` has the wrong type"));
            }
        }
        if parameter.required && !any {
            let names = parameter.names.first().copied().unwrap_or_default();
            collector.opaque(format!("missing parameter `{names}`"));
        }
        if parameter.role == Role::UrlsInText && any {
            let texts = self.values(parameter).filter_map(|(_, value)| texts(value).ok());
            if texts.flatten().all(|text| uri::urls_in(text).is_empty()) {
                collector.opaque("no URL is given");
            }
        }
    }

    fn value(
        &self,
        (name, value): (&str, &Value),
        parameter: &Parameter,
        collector: &mut Collector<'_>,
        found: &mut FoundParameters,
    ) -> Result<(), WrongType> {
        match parameter.role {
            Role::Path(access) => {
                let access = self.editor_access(collector).unwrap_or(access);
                let paths = texts(value)?;
                if paths.is_empty() || paths.contains(&"") {
                    if access != Access::List {
                        collector.opaque(format!("`{name}` is empty"));
                        return Ok(());
                    }
                    collector.path(access, ".", name);
                }
                for path in paths.into_iter().filter(|path| !path.is_empty()) {
                    collector.path(access, path, name);
                }
            }
            Role::BundlePath => {
                for path in texts(value)? {
                    collector.path(Access::Read, path, name);
                    collector.opaque("the directory of the skill is unknown");
                }
            }
            Role::Base => {
                found.bases.extend(texts(value)?.into_iter().filter(|text| !text.is_empty()).map(str::to_owned))
            }
            Role::Pattern => found.patterns.extend(texts(value)?.into_iter().map(str::to_owned)),
            Role::Command => {
                let source = value.as_str().ok_or(WrongType)?;
                found.commands.extend(shell::source(source, collector));
            }
            Role::Words => {
                value.as_array().ok_or(WrongType)?;
                found.commands.extend(shell::words(&texts(value)?, collector));
            }
            Role::CommandOrWords => match value {
                Value::String(source) => found.commands.extend(shell::source(source, collector)),
                other => found.commands.extend(shell::words(&texts(other)?, collector)),
            },
            Role::ShellName => {
                // read before the command, see `read`
                value.as_str().ok_or(WrongType)?;
            }
            Role::Environment => environment_effects(value, collector)?,
            Role::Sandbox => sandbox_effects(name, value, collector),
            Role::Typed => match value.as_str().ok_or(WrongType)? {
                // nothing, or Ctrl-C
                "" | "\u{3}" => {}
                _ => collector.opaque("types text into a running program"),
            },
            Role::Url => {
                for url in texts(value)? {
                    collector.resource(url, name);
                }
            }
            Role::UrlsInText => {
                for url in texts(value)?.into_iter().flat_map(uri::urls_in) {
                    collector.resource(url, name);
                }
            }
            Role::Resource => collector.resource(value.as_str().ok_or(WrongType)?, name),
            Role::Query => {
                texts(value)?;
                collector.service("<web-search>", name);
            }
            Role::Patch => match patch::read(value.as_str().ok_or(WrongType)?) {
                Ok(changes) => {
                    for (change, path) in changes {
                        let access = match change {
                            patch::PatchAction::Write => Access::Write,
                            patch::PatchAction::Delete => Access::Delete,
                        };
                        collector.path(access, &path, "patch");
                    }
                }
                Err(error) => collector.opaque(error.to_string()),
            },
            // contents may be a list of edits that name files
            Role::Content if value.is_array() || value.is_object() => {
                let mut found = Vec::new();
                parameters::unknown(collector, "", value, Caution::Content, &mut found);
            }
            Role::Directory | Role::Content | Role::NoEffect | Role::Process => {}
        }
        Ok(())
    }

    /// What the `command` of an editor does to its path.
    fn editor_access(&self, collector: &mut Collector<'_>) -> Option<Access> {
        const COMMANDS: [(&str, Access); 6] = [
            ("view", Access::Read),
            ("create", Access::Write),
            ("str_replace", Access::Update),
            ("insert", Access::Update),
            ("undo_edit", Access::Update),
            ("delete", Access::Delete),
        ];
        if self.entry.kind != ToolKind::Editor {
            return None;
        }
        let command = self.fields.get("command").and_then(Value::as_str);
        let access = COMMANDS.iter().find(|(name, _)| Some(*name) == command).map(|(_, access)| *access);
        if access.is_none() {
            collector.opaque("unknown editor command");
        }
        access
    }

    /// Describes parameters that are not in the table by their names.
    fn unknown_parameters(&self, collector: &mut Collector<'_>) {
        let mut commands = Vec::new();
        for (name, value) in self.fields {
            if self.entry.role(name).is_none() {
                parameters::unknown(collector, name, value, Caution::KnownTool, &mut commands);
            }
        }
        if !commands.is_empty() {
            collector.opaque("a command in an unknown parameter");
        }
    }

    /// Describes what follows from all parameters together.
    fn whole(&self, collector: &mut Collector<'_>, search: &FoundParameters) {
        match &self.entry.kind {
            ToolKind::Plain | ToolKind::Editor => {}
            ToolKind::Globs(action) => self.globs(*action, collector, search),
            ToolKind::Search(action) => self.search(*action, collector, search),
            ToolKind::Skill => {
                let named = |name: &str| self.fields.get(name).and_then(Value::as_str);
                let skill = named("skill_mention").or_else(|| named("skill"));
                let action = named("action_id").or_else(|| named("action"));
                match skill.zip(action) {
                    Some((skill, action)) => collector.run(format!("{skill}:{action}"), CodeOrigin::Project, "skill"),
                    None => collector.opaque("missing name of the skill or its action"),
                }
            }
            ToolKind::Writes(paths) => {
                for path in paths {
                    collector.path(Access::Write, path, "the tool's own file");
                }
            }
            ToolKind::Opaque(why) => collector.opaque(why),
        }
        let default_directory =
            self.entry.parameters.iter().any(|parameter| parameter.role == Role::Path(Access::List));
        if default_directory && collector.is_empty() {
            collector.path(Access::List, ".", "the working directory");
        }
    }

    fn bases(&self, collector: &mut Collector<'_>, search: &FoundParameters) -> Vec<String> {
        if search.bases.is_empty() {
            return vec![collector.joined(".")];
        }
        let mut bases = Vec::new();
        for base in &search.bases {
            match collector.directory_of(base) {
                Some(directory) => bases.push(directory),
                // not absolute: the path effect says why it is unknown
                None => collector.path(Access::ReadTree, base, "search"),
            }
        }
        bases
    }

    fn globs(&self, action: Action, collector: &mut Collector<'_>, search: &FoundParameters) {
        for base in self.bases(collector, search) {
            for pattern in &search.patterns {
                if collector.is_full() {
                    return;
                }
                collector.glob(action, &base, pattern, "pattern");
            }
        }
    }

    fn search(&self, action: Action, collector: &mut Collector<'_>, search: &FoundParameters) {
        let filters: Vec<&str> = search
            .patterns
            .iter()
            .map(|pattern| pattern.trim())
            // Some tools take several patterns in one text.
            .flat_map(|pattern| {
                std::iter::once(pattern).chain(
                    pattern
                        .split([' ', '\t', '\n', ','])
                        .filter(move |_| pattern.contains([' ', '\t', '\n', ',']) && !pattern.contains('{')),
                )
            })
            .filter(|pattern| !pattern.is_empty() && !pattern.starts_with('!'))
            .collect();
        for base in self.bases(collector, search) {
            if collector.is_full() {
                return;
            }
            if filters.is_empty() {
                collector.at(&[action], Names::Exact(base), true, "search");
                continue;
            }
            // the base itself is searched even if no pattern matches it
            if !search.bases.is_empty() {
                collector.at(&[action], Names::Exact(base.clone()), false, "search");
            }
            for filter in &filters {
                if collector.is_full() {
                    return;
                }
                let below = format!("**/{}", filter.trim_start_matches('/'));
                collector.glob(action, &base, &below, "search");
                if filter.starts_with(['/', '~']) {
                    collector.glob(action, &base, filter, "search");
                }
            }
        }
    }
}

/// Whether a path is below another without any `..` on the way.
fn is_plainly_below(inner: &str, outer: &str) -> bool {
    let inner = std::path::Path::new(inner);
    inner.starts_with(outer) && !inner.components().any(|part| part == std::path::Component::ParentDir)
}

fn environment_effects(value: &Value, collector: &mut Collector<'_>) -> Result<(), WrongType> {
    for (name, value) in value.as_object().ok_or(WrongType)? {
        let shown = callgate_model::show::brief(name);
        if let Some(why) = influence(name, value.as_str()) {
            collector.opaque(format!("the variable `{shown}` {why}"));
        } else if !is_harmless(name, value.as_str()) {
            collector.opaque(format!("sets `{shown}`, which the program may heed"));
        } else if !is_variable_name(name) {
            collector.opaque(format!("`{shown}` is not a valid variable name"));
        } else if !(value.is_string() || value.is_number() || value.is_boolean()) {
            return Err(WrongType);
        }
    }
    Ok(())
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|character: char| character.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// The privilege that a call asks for if it wants no sandbox.
pub(crate) const OUTSIDE_THE_SANDBOX: &str = "run outside the sandbox";

/// Asking for a weaker sandbox is asking for a privilege.
fn sandbox_effects(name: &str, value: &Value, collector: &mut Collector<'_>) {
    const WEAKER: [&str; 4] = ["none", "require_escalated", "danger-full-access", "with_additional_permissions"];
    const HARMLESS: [&str; 6] = ["inherit", "restricted", "use_default", "read-only", "workspace-write", ""];
    match value {
        Value::Bool(true) if name == "sandbox" => {}
        Value::Bool(false) if name == "sandbox" => collector.privilege(OUTSIDE_THE_SANDBOX, name),
        Value::Bool(false) => {}
        Value::Bool(true) => collector.privilege(OUTSIDE_THE_SANDBOX, name),
        Value::String(text) if WEAKER.contains(&text.as_str()) => {
            collector.privilege(OUTSIDE_THE_SANDBOX, name);
        }
        Value::String(text) if HARMLESS.contains(&text.as_str()) => {}
        _ => collector.opaque(format!("`{name}` asks for an unknown sandbox mode")),
    }
}

#[cfg(test)]
#[path = "built_in_tests.rs"]
mod tests;
