//! Expands `$x` and `${x…}`.

use super::Evaluator;
use super::expand::{Fields, Splitting};
use super::language::is_plain_key;
use super::patterns::{self, PatternStep};
use super::pieces::Piece;
use super::state::{State, Value};
use crate::secret_names::is_secret;
use crate::stream::Stream;
use crate::syntax::Dialect;
use crate::syntax::ast::{ArrayIndex, Operator, Parameter, Part, Span, TestKind};
use crate::word::DIGITS;
use std::sync::Arc;

/// Values beyond this many bytes are not tracked.
const MOST_EXPANDED: usize = 1 << 22;

/// Variables that the shell itself makes whole numbers.
const NUMBERS: [&str; 10] = ["?", "$", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "EPOCHSECONDS"];

/// Variables that the system sets to one plain word.
const WORDS: [&str; 6] = ["USER", "LOGNAME", "HOSTNAME", "OSTYPE", "HOSTTYPE", "MACHTYPE"];

impl Evaluator<'_> {
    /// Counts expanded bytes. Returns whether values are still tracked.
    fn follows(&self, bytes: usize) -> bool {
        self.expanded.set(self.expanded.get().saturating_add(bytes));
        self.expanded.get() <= MOST_EXPANDED
    }

    /// The same for the elements of a list. Each costs extra, because it becomes a word.
    fn follows_all(&self, values: &[Value]) -> bool {
        let text = |value: &Value| value.known().map_or(0, str::len);
        crate::work::count(values.len().min(MOST_EXPANDED.saturating_sub(self.expanded.get())));
        self.follows(values.len().saturating_mul(32))
            && self.follows(values.iter().map(text).fold(0, usize::saturating_add))
    }

    /// The value of a variable or parameter.
    pub fn lookup(&self, name: &str, state: &State) -> Value {
        if let Some(variable) = state.variables.get(name) {
            if variable.value.known().is_some_and(|text| !self.follows(text.len())) {
                return Value::unknown("too much text to track");
            }
            return variable.value.clone();
        }
        if let Ok(place) = name.parse::<usize>() {
            return match (place.checked_sub(1), &state.positional) {
                (None, _) => state.zero.clone().unwrap_or_else(|| Value::unknown("`$0` is unknown")),
                (Some(place), Some(values)) => values.get(place).cloned().unwrap_or(Value::Unset),
                (Some(_), None) => Value::unknown("the arguments are unknown"),
            };
        }
        if NUMBERS.contains(&name) {
            return Value::Number;
        }
        match name {
            // Nothing, if there was no command in the background.
            "!" => Value::Glob(Arc::from(DIGITS)),
            "#" => match &state.positional {
                Some(values) => Value::text(&values.len().to_string()),
                None => Value::Number,
            },
            _ if state.anything_set => Value::unknown("an unknown command may have set it"),
            "IFS" => Value::text(" \t\n"),
            "PWD" => match state.directories.as_ref() {
                [Some(directory)] => Value::Text(Arc::clone(directory)),
                _ => Value::unknown("the working directory is unknown"),
            },
            "OLDPWD" => state.previous.clone().map_or(Value::unknown("the previous directory is unknown"), Value::Text),
            "_" | "SHLVL" | "-" => Value::unknown("the shell sets it"),
            _ if self.elsewhere.is_some() => Value::unknown("a variable of another machine"),
            _ => match (self.context.variables.get(name), name, self.context.home) {
                (Some(text), _, _) => Value::text(text),
                (None, "HOME", Some(home)) => Value::text(home),
                _ => Value::unknown(&format!("the value of ${name} is unknown")),
            },
        }
    }

    /// Whether a variable can only come from the environment that the shell was started in.
    pub fn is_inherited(&self, name: &str, state: &State) -> bool {
        !state.variables.contains_key(name) && !state.anything_set && self.elsewhere.is_none()
    }

    pub fn parameter(&mut self, parameter: &Parameter, state: &mut State, quoted: bool, fields: &mut Fields) {
        if is_secret(&parameter.name) && !parameter.length && !state.variables.contains_key(&*parameter.name) {
            self.doubt(&format!("the value of ${} looks like a secret", parameter.name), &parameter.span);
        }
        if parameter.indirect
            && let Value::Text(name) = self.lookup(&parameter.name, state)
            && is_secret(&name)
            && !state.variables.contains_key(&*name)
        {
            self.doubt(&format!("the value of ${name} looks like a secret"), &parameter.span);
        }
        let list = parameter.index.is_some() || matches!(parameter.name.as_str(), "@" | "*");
        if self.dialect == Dialect::Any && list && !quoted && fields.splits {
            self.doubt("zsh does not split an unquoted list as bash does", &parameter.span);
        }
        if self.dialect == Dialect::Any && parameter.name == "#" && parameter.operator != Operator::Plain {
            self.doubt("zsh reads this as the length of an expansion", &parameter.span);
        }
        if parameter.operator == Operator::Names {
            return fields.unknown("names of variables", true);
        }
        if self.is_plain_word(parameter, state) {
            return self.output(Stream::Word, state, quoted, fields);
        }
        let each = match (&parameter.index, parameter.name.as_str()) {
            (Some(ArrayIndex::Each), _) | (None, "@") => true,
            (Some(ArrayIndex::Joined), _) | (None, "*") => !quoted && fields.splits,
            _ => return self.one_value(parameter, state, quoted, fields),
        };
        let values = match parameter.index {
            None => state.positional.as_ref().filter(|values| self.follows_all(values)).map(|values| values.to_vec()),
            Some(_) => self.elements(&parameter.name, state),
        };
        let plain = parameter.operator == Operator::Plain;
        match (values, parameter.length) {
            (Some(values), true) => {
                let count = Value::text(&values.len().to_string());
                fields.push(&count, quoted, self.splitting(state));
            }
            (None, true) => fields.push(&Value::Number, quoted, self.splitting(state)),
            (Some(values), false) if plain => {
                let keys = (0..values.len()).map(|place| Value::text(&place.to_string()));
                let values: Vec<Value> = if parameter.indirect { keys.collect() } else { values };
                self.list_of(&values, each, state, quoted, fields);
            }
            _ => {
                self.look_into_operands(&parameter.operator, &parameter.span, state);
                fields.unknown("an unknown list", true);
            }
        }
    }

    /// Whether a parameter is a user or machine name from the system, which has no blanks, slashes or leading dash.
    fn is_plain_word(&self, parameter: &Parameter, state: &State) -> bool {
        let plain = parameter.operator == Operator::Plain
            && parameter.index.is_none()
            && !parameter.length
            && !parameter.indirect;
        plain && WORDS.contains(&parameter.name.as_str()) && self.is_inherited(&parameter.name, state)
    }

    fn list_of(&mut self, values: &[Value], each: bool, state: &State, quoted: bool, fields: &mut Fields) {
        let splitting = self.splitting(state);
        for (place, value) in values.iter().enumerate() {
            if place > 0 && each {
                fields.next();
            } else if place > 0 {
                let joiner = match splitting {
                    Splitting::Blanks => Value::text(" "),
                    Splitting::Unknown => Value::unknown("IFS has been changed"),
                };
                fields.push(&joiner, true, splitting);
            }
            fields.push(value, quoted, splitting);
        }
        if !each {
            fields.open.quoted |= quoted;
        }
    }

    /// The elements of an array, if they are known.
    fn elements(&self, name: &str, state: &State) -> Option<Vec<Value>> {
        let variable = state.variables.get(name)?;
        match (&variable.elements, &variable.value) {
            (Some(elements), _) => self.follows_all(elements).then(|| elements.clone()),
            (None, value @ Value::Text(_)) if !variable.array => Some(vec![value.clone()]),
            (None, Value::Unset) if !variable.array => Some(Vec::new()),
            _ => None,
        }
    }

    /// Operands may hold substitutions even where their value does not matter.
    fn look_into_operands(&mut self, operator: &Operator, span: &Span, state: &mut State) {
        let lists: Vec<&[Part]> = match operator {
            Operator::Plain | Operator::Transform(_) | Operator::Names => Vec::new(),
            Operator::Test { operand, .. } => vec![operand],
            Operator::Remove { pattern, .. } | Operator::Case { pattern, .. } => vec![pattern],
            Operator::Replace { pattern, replacement, .. } => vec![pattern, replacement],
            Operator::Substring { offset, length } => {
                self.may_drop_line(state);
                self.arithmetic(offset, span, state);
                if let Some(length) = length {
                    self.arithmetic(length, span, state);
                }
                Vec::new()
            }
        };
        for parts in lists {
            self.single(parts, state);
        }
    }

    fn one_value(&mut self, parameter: &Parameter, state: &mut State, quoted: bool, fields: &mut Fields) {
        let mut value = match &parameter.index {
            Some(ArrayIndex::Expression(parts)) => self.element(&parameter.name, parts, parameter, state),
            _ => self.lookup(&parameter.name, state),
        };
        if parameter.indirect {
            value = self.indirect(&value, parameter, state);
        }
        if parameter.length {
            value = match value {
                Value::Text(text) if text.is_ascii() => Value::text(&text.len().to_string()),
                Value::Unset => Value::text("0"),
                _ => Value::Number,
            };
        }
        let value = match &parameter.operator {
            Operator::Plain => value,
            Operator::Test { kind, colon, operand } => {
                return self.test(parameter, value, (*kind, *colon), operand, state, quoted, fields);
            }
            operator => self.changed(&value, operator, parameter, state),
        };
        fields.push(&value, quoted, self.splitting(state));
    }

    fn element(&mut self, name: &str, index: &[Part], parameter: &Parameter, state: &mut State) -> Value {
        if state.variables.get(name).is_some_and(|variable| variable.keyed) {
            self.key(index, &parameter.span, state);
            return Value::unknown("an element of an array");
        }
        let place = self.array_index(index, &parameter.span, state);
        if place.is_none() {
            self.may_drop_line(state);
        }
        match (self.elements(name, state), place) {
            (Some(elements), Some(place)) => elements.get(place).cloned().unwrap_or(Value::Unset),
            _ => Value::unknown("an element of an array"),
        }
    }

    fn indirect(&mut self, value: &Value, parameter: &Parameter, state: &State) -> Value {
        match value {
            Value::Text(name)
                if !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                    && self.dialect != Dialect::Any =>
            {
                self.lookup(name, state)
            }
            _ => self.doubt_value("an indirect expansion may run code", &parameter.span),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a struct for them would be made and taken apart in one place")]
    fn test(
        &mut self,
        parameter: &Parameter,
        value: Value,
        (kind, colon): (TestKind, bool),
        operand: &[Part],
        state: &mut State,
        quoted: bool,
        fields: &mut Fields,
    ) {
        if kind == TestKind::Assign && (parameter.indirect || parameter.index.is_some()) {
            self.doubt("`${…:=…}` assigns to something that is not a plain variable", &parameter.span);
        }
        let splitting = self.splitting(state);
        let given = match &value {
            Value::Text(text) => Some(!text.is_empty() || !colon),
            Value::Unset => Some(false),
            // The output of a program, or the match of a pattern, may be empty.
            Value::Unknown(_) | Value::Below(..) | Value::Glob(_) => None,
            Value::Number | Value::Prefix(..) => Some(true),
        };
        match (given, kind) {
            (Some(true), TestKind::Alternative) | (Some(false), TestKind::Default) => {
                self.operand(operand, state, quoted, fields);
            }
            (Some(true), _) => {
                self.unused_operand(operand, state);
                fields.push(&value, quoted, splitting);
            }
            (Some(false), TestKind::Alternative) => {
                self.unused_operand(operand, state);
                fields.open.quoted |= quoted;
            }
            (Some(false), TestKind::Assign) => {
                let value = self.value(operand, state);
                self.set(&parameter.name, value.clone(), &parameter.span, state);
                fields.push(&value, quoted, splitting);
            }
            (Some(false), TestKind::Error) => {
                self.may_drop_line(state);
                self.single(operand, state);
                fields.push(&Value::unknown("a variable that must be set"), quoted, splitting);
            }
            (None, _) => {
                let mut aside = state.clone();
                self.single(operand, &mut aside);
                if kind == TestKind::Error {
                    self.may_drop_line(state);
                }
                if kind == TestKind::Assign {
                    let unknown = Value::unknown("it may have had a value before");
                    self.set(&parameter.name, unknown, &parameter.span, state);
                }
                let value = match value {
                    Value::Unknown(_) => value,
                    _ => Value::unknown("it may have been empty"),
                };
                fields.push(&value, quoted, splitting);
            }
        }
    }

    /// Walks an operand whose value is not used, because the commands in it are judged all the same.
    fn unused_operand(&mut self, operand: &[Part], state: &State) {
        self.single(operand, &mut state.clone().unreachable());
    }

    /// Evaluates the index of an array element. Returns the place that it names, if it is certain.
    pub fn array_index(&mut self, index: &[Part], span: &Span, state: &mut State) -> Option<usize> {
        if self.dialect == Dialect::Any {
            self.doubt("zsh counts the elements of an array from 1", span);
        }
        self.arithmetic(index, span, state).index()
    }

    /// Evaluates the key of an element of an associative array.
    pub fn key(&mut self, key: &[Part], span: &Span, state: &mut State) {
        let value = self.value(key, state);
        if !value.known().is_some_and(is_plain_key) {
            self.doubt("the key of an array may run code", span);
        }
    }

    /// Expands the word after `:-` and similar operators.
    fn operand(&mut self, parts: &[Part], state: &mut State, quoted: bool, fields: &mut Fields) {
        self.doubt_about_difference(parts, quoted);
        for (place, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) if !quoted => {
                    let mut text = text.as_str();
                    if place == 0
                        && let Some(rest) = text.strip_prefix('~')
                    {
                        let home = if rest.is_empty() || rest.starts_with('/') {
                            self.lookup("HOME", state)
                        } else {
                            Value::unknown("a home directory")
                        };
                        fields.push(&home, true, self.splitting(state));
                        text = rest;
                    }
                    fields.push(&Value::text(text), false, self.splitting(state));
                }
                Part::Quoted(text) => {
                    fields.open.push_text(text, true);
                    fields.open.quoted = true;
                }
                other => self.expansion(other, state, quoted, fields),
            }
        }
        fields.open.quoted |= quoted;
    }

    /// Applies an operator that changes a value.
    fn changed(&mut self, value: &Value, operator: &Operator, parameter: &Parameter, state: &mut State) -> Value {
        if self.dialect == Dialect::Any && matches!(operator, Operator::Case { .. } | Operator::Transform(_)) {
            self.doubt("zsh does not know this expansion", &parameter.span);
        }
        match operator {
            Operator::Remove { front, longest, pattern } => {
                let steps = self.pattern(pattern, state);
                match (value, steps) {
                    (Value::Unset, _) => Value::Unset,
                    (Value::Text(text), Some(steps)) if text.len() < 10_000 && text.is_ascii() => {
                        Value::text(&patterns::remove(&steps, text, *front, *longest))
                    }
                    (Value::Glob(names), Some(steps)) if !front => shortened(names, &steps),
                    _ => Value::unknown("a part of a value"),
                }
            }
            Operator::Replace { all, pattern, replacement } => {
                let steps = self.pattern(pattern, state);
                let replacement = self.value(replacement, state);
                match (value, steps, replacement) {
                    (Value::Unset, _, _) => Value::Unset,
                    (Value::Text(text), Some(steps), Value::Text(new)) => replaced(text, &steps, &new, *all),
                    _ => Value::unknown("a modified value"),
                }
            }
            Operator::Substring { offset, length } => {
                if self.dialect == Dialect::Any
                    && matches!(offset.first(), Some(Part::Literal(text)) if text.starts_with(|one: char| one.is_alphabetic()))
                {
                    self.doubt("zsh takes a letter after `:` for a modifier", &parameter.span);
                }
                let offset = self.arithmetic(offset, &parameter.span, state);
                let length = length.as_ref().map(|length| self.arithmetic(length, &parameter.span, state));
                if length.as_ref().is_some_and(|length| length.index().is_none()) {
                    self.may_drop_line(state);
                }
                substring(value, &offset, length.as_ref())
            }
            Operator::Case { kind, pattern } => {
                self.single(pattern, state);
                match value {
                    Value::Text(text) if text.is_ascii() && pattern.is_empty() => match kind.as_str() {
                        "^^" => Value::text(&text.to_ascii_uppercase()),
                        ",," => Value::text(&text.to_ascii_lowercase()),
                        _ => Value::unknown("a modified value"),
                    },
                    Value::Number | Value::Unset => value.clone(),
                    _ => Value::unknown("a modified value"),
                }
            }
            Operator::Transform(letter) => match (letter, value) {
                ('P', Value::Text(text)) if !text.contains(['$', '`', '\\']) => value.clone(),
                ('P', _) => self.doubt_value("`${…@P}` expands a prompt, which may run code", &parameter.span),
                ('U', Value::Text(text)) if text.is_ascii() => Value::text(&text.to_ascii_uppercase()),
                ('L', Value::Text(text)) if text.is_ascii() => Value::text(&text.to_ascii_lowercase()),
                _ => Value::unknown("a modified value"),
            },
            Operator::Plain | Operator::Names | Operator::Test { .. } => value.clone(),
        }
    }

    /// Reads a pattern made of text, `*` and `?`; `None`: any other pattern.
    fn pattern(&mut self, parts: &[Part], state: &mut State) -> Option<Vec<PatternStep>> {
        let mut steps = Vec::new();
        // Wildcards in the value of an unquoted variable count.
        let expands = parts.iter().any(|part| !matches!(part, Part::Literal(_) | Part::Quoted(_) | Part::Double(_)));
        for piece in self.single(parts, state).pieces {
            let Piece::Text { text, quoted } = piece else {
                return None;
            };
            for character in text.chars() {
                steps.push(match character {
                    '*' | '?' | '[' | '(' | '\\' if quoted && expands => return None,
                    _ if quoted => PatternStep::Character(character),
                    '*' => PatternStep::Run,
                    '?' => PatternStep::Any,
                    '[' | '(' | '\\' | '~' => return None,
                    _ => PatternStep::Character(character),
                });
            }
        }
        Some(steps)
    }
}

/// `${f%.txt}` of names that match `*.txt`: names that match `*`.
fn shortened(names: &str, steps: &[PatternStep]) -> Value {
    let mut literal = String::new();
    for step in steps {
        match step {
            PatternStep::Character(character)
                if character.is_alphanumeric() || matches!(character, '.' | '_' | '-') =>
            {
                literal.push(*character)
            }
            _ => return Value::unknown("a part of a value"),
        }
    }
    match names.strip_suffix(literal.as_str()) {
        Some(rest) if !rest.ends_with('\\') => Value::Glob(Arc::from(rest)),
        _ => Value::unknown("a part of a value"),
    }
}

/// Replaces literal text; other patterns are not computed.
fn replaced(text: &str, steps: &[PatternStep], new: &str, all: bool) -> Value {
    let mut literal = String::new();
    for step in steps {
        match step {
            PatternStep::Character(character) => literal.push(*character),
            _ => return Value::unknown("a modified value"),
        }
    }
    if literal.is_empty() || literal.starts_with(['#', '%']) || new.contains('&') {
        return Value::unknown("a modified value");
    }
    let result = if all { text.replace(&literal, new) } else { text.replacen(&literal, new, 1) };
    if result.len() > 100_000 { Value::unknown("a long value") } else { Value::text(&result) }
}

fn substring(value: &Value, offset: &Value, length: Option<&Value>) -> Value {
    let number = |value: &Value| value.known().and_then(|text| text.parse::<i64>().ok());
    let unknown = Value::unknown("a part of a value");
    // What a character is depends on the locale.
    let (Value::Text(text), Some(offset)) = (value, number(offset)) else {
        return unknown;
    };
    if !text.is_ascii() {
        return unknown;
    }
    let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let start = if offset < 0 { count.saturating_add(offset) } else { offset };
    if start < 0 || start > count {
        return Value::text("");
    }
    let end = match length {
        None => count,
        Some(length) => match number(length) {
            Some(length) if length >= 0 => start.saturating_add(length).min(count),
            Some(length) => count.saturating_add(length),
            None => return unknown,
        },
    };
    if end < start {
        return unknown;
    }
    let (skip, take) = (usize::try_from(start).unwrap_or(0), usize::try_from(end.saturating_sub(start)).unwrap_or(0));
    Value::text(&text.chars().skip(skip).take(take).collect::<String>())
}
