//! Removes an item from a list or an object, even if everything around it has changed.

use jsonc_parser::ast;
use serde_json::Value;

use super::{Container, JsonDocument, JsonEdit, JsonItem, Splices, after_trivia, value_of};
use crate::error::EditError;

/// The members that name what a hook runs. If they are unchanged, the hook is still ours, whatever else was changed.
const WHAT_RUNS: &[&str] = &["command", "bash", "exec", "to", "args"];

/// Removes an item from the list or object at its path, and the members that were `created` for it if they are empty now.
/// Returns `None` if the item is not there. A member with another value stays.
pub(crate) fn remove(text: &str, edit: &JsonEdit, created: &[Vec<String>]) -> Result<Option<String>, EditError> {
    let document = JsonDocument::parse(text)?;
    let path = edit.path.as_slice();
    let Some(container) = document.at(path)? else { return Ok(None) };
    let Some((container, index)) = find(container, &edit.what) else { return Ok(None) };
    let mut text = take(document.text, &container, index).ok_or(EditError::Unfaithful)?;
    for length in (0..=path.len()).rev() {
        let prefix = path.get(..length).unwrap_or_default();
        if !created.iter().any(|made| prefix.starts_with(made)) {
            break;
        }
        match without_empty(&text, prefix)? {
            Some(shorter) => text = shorter,
            None => break,
        }
    }
    JsonDocument::parse(&text)?;
    Ok(Some(text))
}

/// Removes every hook in a list that starts callgate, however somebody edited it, and the members that were `created` if they are
/// empty then. Returns `None` if there is none.
pub(crate) fn sweep(given: &str, created: &[Vec<String>]) -> Result<Option<String>, EditError> {
    let mut text = given.to_owned();
    loop {
        let document = JsonDocument::parse(&text)?;
        let Some((container, index)) = document.root.as_ref().and_then(find_started) else { break };
        text = take(document.text, &container, index).ok_or(EditError::Unfaithful)?;
    }
    if text == given {
        return Ok(None);
    }
    let mut created: Vec<&Vec<String>> = created.iter().collect();
    created.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in created {
        text = without_empty(&text, path)?.unwrap_or(text);
    }
    JsonDocument::parse(&text)?;
    Ok(Some(text))
}

/// The list with a hook that starts callgate, and the index of that hook, or of its group if there is no other hook in it.
fn find_started(value: &ast::Value<'_>) -> Option<(Container, usize)> {
    match value {
        ast::Value::Array(array) => array.elements.iter().enumerate().find_map(|(index, element)| {
            let ast::Value::Object(group) = element else { return find_started(element) };
            if starts_callgate(&value_of(element)) {
                return Some((Container::of(value)?, index));
            }
            let lonely = |member: &ast::ObjectProp<'_>| match &member.value {
                ast::Value::Array(hooks) => {
                    hooks.elements.len() == 1
                        && hooks.elements.first().is_some_and(|hook| starts_callgate(&value_of(hook)))
                }
                _ => false,
            };
            if group.properties.iter().any(lonely) {
                return Some((Container::of(value)?, index));
            }
            find_started(element)
        }),
        ast::Value::Object(object) => object.properties.iter().find_map(|member| find_started(&member.value)),
        _ => None,
    }
}

/// Whether an object is a hook that starts `callgate hook`.
fn starts_callgate(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    let mut line = String::new();
    for name in WHAT_RUNS {
        let member = members.get(*name);
        let texts = member.into_iter().flat_map(|member| match member {
            Value::Array(words) => words.iter().collect(),
            other => vec![other],
        });
        texts.filter_map(Value::as_str).for_each(|text| line.extend([text, " "]));
    }
    says_hook(&line)
}

/// Whether a text contains the words `callgate hook`, with any path in front.
pub(crate) fn says_hook(text: &str) -> bool {
    let bare = |word: &str| {
        let word =
            word.trim_matches(|letter: char| matches!(letter, '\'' | '"' | '`' | ';' | '&' | '|' | '(' | ')' | ','));
        word.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
    };
    let mut program = false;
    text.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty()).any(|word| {
        let word = bare(word);
        let found = program && word == "hook";
        program = matches!(word.as_str(), "callgate" | "callgate.exe");
        found
    })
}

/// What is left that starts callgate, as far as can be seen: what each hook runs.
pub(crate) fn left(text: &str) -> Result<bool, EditError> {
    fn any(value: &Value) -> bool {
        starts_callgate(value)
            || match value {
                Value::String(text) => says_hook(text),
                Value::Array(elements) => elements.iter().any(any),
                Value::Object(members) => members.values().any(any),
                _ => false,
            }
    }
    Ok(JsonDocument::parse(text)?.value().is_some_and(|value| any(&value)))
}

/// Whether the item is there.
pub(crate) fn contains(text: &str, edit: &JsonEdit) -> Result<bool, EditError> {
    let document = JsonDocument::parse(text)?;
    Ok(document.at(&edit.path)?.is_some_and(|container| match (&edit.what, container) {
        (JsonItem::Element(node), ast::Value::Array(array)) => {
            let value = node.value();
            array.elements.iter().any(|element| value_of(element) == value)
        }
        (JsonItem::Member(key, node), ast::Value::Object(object)) => {
            object.get(key).is_some_and(|member| value_of(&member.value) == node.value())
        }
        _ => false,
    }))
}

/// Finds the list or object that holds the item, and the index of the item in it.
fn find(container: &ast::Value<'_>, item: &JsonItem) -> Option<(Container, usize)> {
    match (item, container) {
        (JsonItem::Member(key, node), ast::Value::Object(object)) => {
            let index = object.properties.iter().position(|member| member.name.as_str() == key)?;
            let member = object.properties.get(index)?;
            (value_of(&member.value) == node.value()).then_some((Container::of(container)?, index))
        }
        (JsonItem::Element(node), ast::Value::Array(array)) => {
            let value = node.value();
            if let Some(index) = array.elements.iter().rposition(|element| value_of(element) == value) {
                return Some((Container::of(container)?, index));
            }
            let wanted = runs(&value);
            if wanted.is_empty() {
                return None;
            }
            array.elements.iter().enumerate().rev().find_map(|(index, element)| {
                if is_ours(element, &wanted) {
                    return Some((Container::of(container)?, index));
                }
                // In a group of hooks others may have been added beside ours.
                let ast::Value::Object(group) = element else { return None };
                group.properties.iter().find_map(|member| {
                    let ast::Value::Array(hooks) = &member.value else { return None };
                    let inner = hooks.elements.iter().position(|hook| is_ours(hook, &wanted))?;
                    if hooks.elements.len() == 1 {
                        Some((Container::of(container)?, index))
                    } else {
                        Some((Container::of(&member.value)?, inner))
                    }
                })
            })
        }
        _ => None,
    }
}

fn is_ours(element: &ast::Value<'_>, wanted: &[Value]) -> bool {
    matches!(element, ast::Value::Object(_)) && what_runs(&value_of(element)).is_some_and(|it| wanted.contains(&it))
}

/// The members that name what each hook in a value runs.
fn runs(value: &Value) -> Vec<Value> {
    let inner = match value {
        Value::Array(elements) => elements.iter().flat_map(runs).collect(),
        Value::Object(members) => members.values().flat_map(runs).collect(),
        _ => Vec::new(),
    };
    what_runs(value).into_iter().chain(inner).collect()
}

fn what_runs(value: &Value) -> Option<Value> {
    let members = value.as_object()?;
    let kept: serde_json::Map<String, Value> = members
        .iter()
        .filter(|(key, _)| WHAT_RUNS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// The text without one child. Its comma and its line go, comments stay.
fn take(text: &str, container: &Container, index: usize) -> Option<String> {
    let child = container.children.get(index)?;
    let mut splices = Splices::default();
    let before = text.get(..child.start)?;
    let bare = before.trim_end();
    let gap = before.get(bare.len()..)?;
    let line = gap.rfind('\n').map(|newline| {
        let newline = bare.len().saturating_add(newline);
        if text.get(..newline).is_some_and(|it| it.ends_with('\r')) { newline.saturating_sub(1) } else { newline }
    });
    let comma = |from: usize| {
        let at = after_trivia(text, from);
        text.get(at..).is_some_and(|rest| rest.starts_with(',')).then_some(at)
    };
    match comma(child.end) {
        Some(comma) => {
            let end = comma.saturating_add(1);
            match line {
                Some(line) => splices.cut(line, child.end),
                None => splices.cut(child.start, child.end),
            }
            // On one line the space after the comma goes too.
            let rest = text.get(end..)?;
            let blanks = if line.is_none() { rest.len().saturating_sub(rest.trim_start_matches(' ').len()) } else { 0 };
            splices.cut(comma, end.saturating_add(blanks));
        }
        None => {
            if let Some(previous) = index.checked_sub(1).and_then(|previous| container.children.get(previous)) {
                let comma = comma(previous.end)?;
                splices.cut(comma, comma.saturating_add(1));
            }
            // From the line break, or from the space after the previous child.
            let start = line.unwrap_or(bare.len());
            splices.cut(start, child.end);
            if container.children.len() == 1 && bare.len() == container.inside() {
                let rest = text.get(child.end..container.close())?;
                if rest.trim().is_empty() {
                    splices.cut(child.end, container.close());
                }
            }
        }
    }
    splices.apply(text)
}

/// The text without the list or object at `path`, if it is empty and without comments.
fn without_empty(text: &str, path: &[String]) -> Result<Option<String>, EditError> {
    let document = JsonDocument::parse(text)?;
    let Some(container) = document.at(path)?.and_then(Container::of) else { return Ok(None) };
    let interior = text.get(container.inside()..container.close()).unwrap_or_default();
    if !container.children.is_empty() || !interior.trim().is_empty() {
        return Ok(None);
    }
    let Some((key, parent)) = path.split_last() else {
        let mut splices = Splices::default();
        splices.cut(container.range.start, container.range.end);
        let rest = splices.apply(text).ok_or(EditError::Unfaithful)?;
        return Ok(Some(if rest.trim().is_empty() { String::new() } else { rest }));
    };
    let Some(parent @ ast::Value::Object(object)) = document.at(parent)? else { return Ok(None) };
    let Some(index) = object.properties.iter().position(|member| member.name.as_str() == key) else { return Ok(None) };
    let Some(parent) = Container::of(parent) else { return Ok(None) };
    take(text, &parent, index).map(Some).ok_or(EditError::Unfaithful)
}
