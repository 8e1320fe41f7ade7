//! The table of cases: a world, a call, and what must come back. See `cases/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic like tests"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use callgate::{Gate, Policy};
use callgate_tools::{HumanQuestion, NoAnswer, ToolCall, Toolbox, ToolboxBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    tool: String,
    input: Value,
    /// Files by name; a name that ends in `/` is a directory, a text that begins with `-> ` a symlink.
    #[serde(default)]
    world: serde_json::Map<String, Value>,
    /// What the result must contain; objects are compared field by field.
    expect: Value,
    /// What files must contain afterwards; `null` for those that must not exist.
    #[serde(default)]
    after: serde_json::Map<String, Value>,
}

fn builder(root: &Path) -> ToolboxBuilder {
    // without the temporary directories, in which these tests run
    let policy = Policy::from_yaml("default: allow\nboundary: {roots: [\".\"]}\n", "test").unwrap();
    Toolbox::builder(Gate::builder().policy(policy), root)
}

fn make(root: &Path, world: &serde_json::Map<String, Value>) {
    for (name, contents) in world {
        let path = root.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(&path).unwrap();
            continue;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match contents {
            Value::String(text) => match text.strip_prefix("-> ") {
                Some(target) => symlink(target, &path).unwrap(),
                None => fs::write(&path, text).unwrap(),
            },
            Value::Array(bytes) => {
                fs::write(
                    &path,
                    bytes.iter().map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap()).collect::<Vec<u8>>(),
                )
                .unwrap();
            }
            Value::Number(length) => {
                fs::write(&path, "x".repeat(usize::try_from(length.as_u64().unwrap()).unwrap())).unwrap()
            }
            other => panic!("{name}: {other} is no contents"),
        }
    }
}

/// Where `found` lacks something of `expected`; `@root@` stands for the workspace.
fn differs(expected: &Value, found: &Value, root: &Path, place: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(fields), Value::Object(all)) => fields.iter().find_map(|(name, value)| {
            differs(value, all.get(name).unwrap_or(&Value::Null), root, &format!("{place}.{name}"))
        }),
        (Value::Array(items), Value::Array(all)) if items.len() == all.len() => items
            .iter()
            .zip(all)
            .enumerate()
            .find_map(|(number, (item, found))| differs(item, found, root, &format!("{place}[{number}]"))),
        (Value::String(text), found) => {
            let text = text.replace("@root@", root.to_str().unwrap());
            let found = found.as_str();
            let same = match text.strip_prefix('~') {
                Some(part) => found.is_some_and(|found| found.contains(part)),
                None => found == Some(text.as_str()),
            };
            (!same).then(|| format!("{place}: expected {text:?}, found {found:?}"))
        }
        (expected, found) => (expected != found).then(|| format!("{place}: expected {expected}, found {found}")),
    }
}

#[test]
fn every_case_gives_what_the_table_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|suffix| suffix != "jsonl") {
            continue;
        }
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let case: Case =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), number + 1));
            count += 1;
            let place = tempfile::tempdir().unwrap();
            let root = place.path().canonicalize().unwrap().join("work");
            fs::create_dir(&root).unwrap();
            fs::write(root.parent().unwrap().join("outside"), "outside\n").unwrap();
            make(&root, &case.world);
            let toolbox = builder(&root).human(answer, None).build();
            let result = toolbox.dispatch(ToolCall::new("1", &case.tool, case.input.clone()));
            let found = serde_json::to_value(&result).unwrap();
            let after = case.after.iter().find_map(|(name, expected)| {
                let now = fs::read_to_string(root.join(name)).map_or(Value::Null, Value::String);
                (now != *expected).then(|| format!("{name} is {now} and not {expected}"))
            });
            let left = || leftovers(&root);
            if let Some(why) = differs(&case.expect, &found, &root, "result").or(after).or_else(left) {
                wrong.push(format!("{}: {}: {why}\n    {found}", path.file_name().unwrap().display(), case.name));
            }
        }
    }
    println!("{count} cases");
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// A person who takes the first choice, or says `yes`.
fn answer(question: &HumanQuestion) -> Result<String, NoAnswer> {
    match question.question.as_str() {
        "late" => Err(NoAnswer::TimedOut),
        "stop" => Err(NoAnswer::Cancelled),
        _ => Ok(question.choices.first().cloned().unwrap_or_else(|| "yes".to_owned())),
    }
}

/// Temporary files that a tool left behind.
fn leftovers(root: &Path) -> Option<String> {
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(".callgate-") {
                return Some(format!("{} was left behind", entry.path().display()));
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    None
}

/// Values of every type, among them those that no parameter takes.
fn values() -> [Value; 9] {
    [json!(null), json!(true), json!(0), json!(-1), json!(1.5), json!(""), json!([]), json!([1]), json!({"a": 1})]
}

/// Whether a schema of a parameter takes a value: written a second time, so that it can disagree.
fn takes(schema: &Value, value: &Value) -> bool {
    let minimum = schema["minimum"].as_i64().unwrap_or(i64::MIN);
    match schema["type"].as_str().unwrap() {
        "string" => value.as_str().is_some_and(|text| {
            (schema["minLength"].is_null() || !text.is_empty())
                && (schema["enum"].is_null() || schema["enum"].as_array().unwrap().contains(value))
        }),
        "integer" => value.as_i64().is_some_and(|number| number >= minimum),
        "boolean" => value.is_boolean(),
        "array" => value.as_array().is_some_and(|items| {
            (schema["minItems"].is_null() || !items.is_empty())
                && items.iter().all(|item| takes(&schema["items"], item))
        }),
        "object" => value.as_object().is_some_and(|fields| {
            fields.iter().all(|(name, value)| match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Value::Null, Value::Bool(false)) => false,
                (Value::Null, Value::Null) => true,
                (Value::Null, other) => takes(other, value),
                (known, _) => takes(known, value),
            })
        }),
        other => panic!("{other}"),
    }
}

#[test]
fn every_wrong_missing_and_unknown_argument_is_a_validation_error() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let toolbox = builder(&root).build();
    let mut tried = 0;
    for spec in callgate_tools::built_in() {
        let properties = spec.parameters["properties"].as_object().unwrap();
        let required: Vec<&str> =
            spec.parameters["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let mut wrong: Vec<Value> = vec![json!([]), json!("text"), json!(1)];
        let sample = |schema: &Value| match schema["type"].as_str().unwrap() {
            "string" => json!(schema["enum"][0].as_str().unwrap_or("x")),
            "integer" => json!(1),
            "boolean" => json!(true),
            "array" => json!(["x"]),
            _ => json!({}),
        };
        let whole: serde_json::Map<String, Value> =
            required.iter().map(|name| ((*name).to_owned(), sample(&properties[*name]))).collect();
        for name in &required {
            let mut less = whole.clone();
            less.remove(*name);
            wrong.push(Value::Object(less));
        }
        let mut more = whole.clone();
        more.insert("surprise".to_owned(), json!(1));
        wrong.push(Value::Object(more));
        for (name, schema) in properties {
            for value in values().into_iter().filter(|value| !takes(schema, value)) {
                let mut other = whole.clone();
                other.insert(name.clone(), value);
                wrong.push(Value::Object(other));
            }
        }
        for input in wrong {
            tried += 1;
            let result = toolbox.dispatch(ToolCall::new("1", &spec.name, input.clone()));
            let kind = result.error_kind.map(|kind| kind.as_str());
            assert_eq!(kind, Some("validation"), "{} {input}: {result:?}", spec.name);
            assert!(!result.stderr.is_empty());
        }
    }
    println!("{tried} inputs");
    assert!(tried > 400, "{tried}");
}

/// Ends another thread, also if this one panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_symlink_that_is_flipped_never_leads_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let root = base.join("work");
    for directory in ["work/real", "out"] {
        fs::create_dir_all(base.join(directory)).unwrap();
        fs::write(base.join(directory).join("file"), if directory == "out" { "SECRET" } else { "inside" }).unwrap();
    }
    let toolbox = builder(&root).build();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (over, root, base) = (&over, &root, &base);
        scope.spawn(move || {
            // `dir` is a directory, then a link out of the workspace, then a directory again
            while !over.load(Ordering::Relaxed) {
                let _ = fs::rename(root.join("real"), root.join("dir"));
                let _ = fs::rename(root.join("dir"), root.join("real"));
                let _ = symlink(base.join("out"), root.join("dir"));
                let _ = fs::remove_file(root.join("dir"));
            }
        });
        let _end = Ends(over);
        let calls = [
            ("file_read", json!({"path": "dir/file"})),
            ("read_file", json!({"file_path": "dir/file"})),
            ("grep_files", json!({"pattern": "SECRET"})),
            ("file_write", json!({"path": "dir/new", "content": "x", "create_dirs": false})),
            ("view_image", json!({"path": "dir/file"})),
        ];
        for round in 0..400_usize {
            let (tool, input) = &calls[round % calls.len()];
            let result = toolbox.dispatch(ToolCall::new("1", *tool, input.clone()));
            assert!(
                !result.content().contains("SECRET\\n") && !result.stdout.contains("L1: SECRET"),
                "{tool}: {result:?}"
            );
            assert!(result.stdout != "SECRET", "{tool}: {result:?}");
            if *tool == "grep_files" {
                assert_eq!(result.stdout, "No matches found.\n");
            }
        }
    });
    let outside: Vec<PathBuf> = fs::read_dir(base.join("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(outside, [base.join("out/file")]);
}
