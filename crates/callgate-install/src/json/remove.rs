//! Taking something out of a list or an object again, also when everything around it has changed since.

use jsonc_parser::ast;
use serde_json::Value;

use super::{Container, Document, Item, JsonError, Splices, after_trivia, value_of};

/// The members that say what a hook runs. Whoever changes a time limit of our hook has not made it theirs.
const WHAT_RUNS: &[&str] = &["command", "bash", "exec", "to", "args"];

/// Takes an item out of the list or object at `path`, and what was `created` for it as far as it is empty now. `None` if the
/// item is not there. A member whose value was changed stays.
pub fn remove(
    text: &str,
    path: &[String],
    item: &Item<'_>,
    created: &[Vec<String>],
) -> Result<Option<String>, JsonError> {
    let document = Document::parse(text)?;
    let Some(container) = document.at(path)? else { return Ok(None) };
    let Some((container, index)) = find(container, item) else { return Ok(None) };
    let mut text = take(document.text, &container, index).ok_or(JsonError::Unfaithful)?;
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
    Document::parse(&text)?;
    Ok(Some(text))
}

/// Whether the item is there.
pub fn contains(text: &str, path: &[String], item: &Item<'_>) -> Result<bool, JsonError> {
    let document = Document::parse(text)?;
    Ok(document.at(path)?.is_some_and(|container| match (item, container) {
        (Item::Element(node), ast::Value::Array(array)) => {
            let value = node.value();
            array.elements.iter().any(|element| value_of(element) == value)
        }
        (Item::Member(key, node), ast::Value::Object(object)) => {
            object.get(key).is_some_and(|member| value_of(&member.value) == node.value())
        }
        _ => false,
    }))
}

/// The list or object to take something out of, and which of its children.
fn find(container: &ast::Value<'_>, item: &Item<'_>) -> Option<(Container, usize)> {
    match (item, container) {
        (Item::Member(key, node), ast::Value::Object(object)) => {
            let index = object.properties.iter().position(|member| member.name.as_str() == *key)?;
            let member = object.properties.get(index)?;
            (value_of(&member.value) == node.value()).then_some((Container::of(container)?, index))
        }
        (Item::Element(node), ast::Value::Array(array)) => {
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
                // A group of hooks, in which others may have been put beside ours.
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

/// What each hook in a value runs.
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

/// The text without one child. Comments stay, its comma and its line go.
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
            // On one line the blank behind the comma goes as well.
            let rest = text.get(end..)?;
            let blanks = if line.is_none() { rest.len().saturating_sub(rest.trim_start_matches(' ').len()) } else { 0 };
            splices.cut(comma, end.saturating_add(blanks));
        }
        None => {
            if let Some(previous) = index.checked_sub(1).and_then(|previous| container.children.get(previous)) {
                let comma = comma(previous.end)?;
                splices.cut(comma, comma.saturating_add(1));
            }
            // From the line break, or from the blank behind what is before.
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

/// The text without the list or object at `path`, if it is empty and has no comment in it.
fn without_empty(text: &str, path: &[String]) -> Result<Option<String>, JsonError> {
    let document = Document::parse(text)?;
    let Some(container) = document.at(path)?.and_then(Container::of) else { return Ok(None) };
    let interior = text.get(container.inside()..container.close()).unwrap_or_default();
    if !container.children.is_empty() || !interior.trim().is_empty() {
        return Ok(None);
    }
    let Some((key, parent)) = path.split_last() else {
        let mut splices = Splices::default();
        splices.cut(container.range.start, container.range.end);
        let rest = splices.apply(text).ok_or(JsonError::Unfaithful)?;
        return Ok(Some(if rest.trim().is_empty() { String::new() } else { rest }));
    };
    let Some(ast::Value::Object(object)) = document.at(parent)? else { return Ok(None) };
    let Some(index) = object.properties.iter().position(|member| member.name.as_str() == key) else { return Ok(None) };
    let parent = Container { range: object.range, children: object.properties.iter().map(|it| it.range).collect() };
    take(text, &parent, index).map(Some).ok_or(JsonError::Unfaithful)
}
