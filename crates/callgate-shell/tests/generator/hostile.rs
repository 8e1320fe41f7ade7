//! Scripts made of everything that bash's manual lists, with hostile values and redirections that fail.

use super::manual::Manual;
use super::{Dice, command, quoted, seed};

/// Values that run a canary where a shell evaluates them.
const VALUES: &[&str] = &[
    "a[$(p hit)]",
    "$(p hit)",
    "`p hit`",
    "; p hit",
    "x[0$(p hit)]=1",
    "a[`p hit`]+1",
    "p hit",
    "-vRANDOM",
    "-n",
    "-p",
    "1",
    "0",
    "7",
    "08",
    "",
    "b c",
    "*",
    "/",
    "./evil",
    "./evil:/nowhere",
    "x",
    "RANDOM",
    "PATH",
    "a",
    "sub",
    "nowhere",
    "a[0]",
    "x=1",
    "EXIT",
    "%1",
    "+1",
    "--",
    "-",
    "f",
    "q",
    "p",
    "evil/code",
    "(p hit)",
    "($(p hit))",
    "[0]=$(p hit)",
    "\\u@\\h$(p hit)",
];

/// The number of a script decides what it is.
pub fn script(manual: &Manual, number: u64) -> String {
    let mut dice = Dice((seed() ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d)) | 1);
    for _ in 0..8 {
        dice.roll(2);
    }
    let mut text = String::new();
    match dice.roll(5) {
        0 => text = format!("h={}; ", value(&mut dice)),
        1 => text = format!("x=1; a=(1 b); h={}; ", value(&mut dice)),
        2 => text = format!("x={}; h={}; ", dice.pick(&["abcab", "a.b.c", "'a b'", "sub", "'a*'"]), value(&mut dice)),
        _ => {}
    }
    let count = 1 + dice.roll(3);
    for _ in 0..count {
        text.push_str(&statement(manual, &mut dice, 2));
        text.push_str(dice.pick(&["\n", "; ", "\n", " && ", " || ", "; "]));
    }
    text + dice.pick(&["p end", "p end", "q end $x", ":"])
}

fn value(dice: &mut Dice) -> String {
    let text = dice.pick(VALUES);
    match dice.roll(8) {
        0 => "$h".to_owned(),
        1 => "\"$h\"".to_owned(),
        2 => format!("\"{}\"", text.replace(['"', '`', '$', '\\'], "")),
        _ => quoted(text),
    }
}

fn variable(manual: &Manual, dice: &mut Dice) -> String {
    match dice.roll(3) {
        0 => dice.pick(&["x", "y", "a", "h"]).to_owned(),
        _ => manual.variables[dice.roll(manual.variables.len())].clone(),
    }
}

fn statement(manual: &Manual, dice: &mut Dice, depth: usize) -> String {
    match dice.roll(14) {
        0..=3 => builtin(manual, dice),
        4..=6 => assignment(manual, dice),
        7 | 8 => format!("{} {}", dice.pick(&["p", ":", "x=", "q -"]), expansion(manual, dice)).replace("= ", "="),
        9 => format!("cd {}{}", dice.pick(&["sub", "nowhere", "..", "$h", "."]), redirections(manual, dice)),
        10 if depth > 0 => command(dice, 1),
        11 | 12 if depth > 0 => control(manual, dice, depth - 1),
        _ => format!("{} {}{}", dice.pick(&["p", "q"]), value(dice), redirections(manual, dice)),
    }
}

/// Control flow around a canary.
fn control(manual: &Manual, dice: &mut Dice, depth: usize) -> String {
    let leaves =
        dice.pick(&["exit", "exit 0", "return", "break", "continue", "exec", "exec p", "break 2", "return 1", "false"]);
    let leaves = format!("{leaves}{}", redirections(manual, dice));
    let inner = statement(manual, dice, depth);
    match dice.roll(18) {
        0 => format!("{leaves}; p after"),
        1 => format!("{{ {leaves}; {inner}; }}{}; p after", redirections(manual, dice)),
        2 => format!("( {leaves}; p in ){}; p after", redirections(manual, dice)),
        3 => format!("for i in 1 2; do {leaves}; p in $i; done{}; p after", redirections(manual, dice)),
        4 => format!("f() {{ {leaves}; {inner}; }}; f {}{}; p after", value(dice), redirections(manual, dice)),
        5 => format!("f() {{ {inner}; p body; }}"),
        6 => format!("case {} in a) {leaves};;& b) {inner};; *) p arm;; esac", value(dice)),
        7 => format!("set -e; {inner}; p strict"),
        8 => format!("if {leaves}; then {inner}; else p no; fi"),
        9 => format!("trap {} {}; {inner}", quoted(&inner), dice.pick(&["EXIT", "DEBUG", "ERR", "RETURN", "INT", "0"])),
        10 => format!("{leaves} || p or; {leaves} && p and"),
        11 => format!("$( {leaves}; p in )"),
        12 => format!("select i in {}; do {leaves}; p in; break; done <<< 1", value(dice)),
        13 => format!("coproc {} {{ {inner}; }}", variable(manual, dice)),
        14 => format!("! {inner}; time {leaves}; p after"),
        15 => format!("i=0; while (( i++ < 2 )); do {leaves}; {inner}; done; p after"),
        16 => format!("eval {}; p after", quoted(&leaves)),
        _ => format!("[[ {} -eq {} || -v {} ]]; p after", value(dice), value(dice), value(dice)),
    }
}

fn builtin(manual: &Manual, dice: &mut Dice) -> String {
    let (name, letters) = manual.builtins.iter().nth(dice.roll(manual.builtins.len())).unwrap();
    let prefix = dice.pick(&["", "", "", "", "x=1 ", "IFS=, ", "builtin ", "command ", "x='a[$(p hit)]' ", "h=sub "]);
    let mut text = prefix.to_owned() + name;
    for _ in 0..dice.roll(3) {
        if letters.is_empty() {
            break;
        }
        let letter = letters[dice.roll(letters.len())];
        // It stops the shell for good.
        if name == "suspend" && letter == 'f' && dice.roll(64) > 0 {
            continue;
        }
        text.push_str(&format!(" {}{letter}", dice.pick(&["-", "-", "-", "-", "+"])));
        if dice.roll(3) == 0 {
            text.push_str(&operand(manual, dice, name));
        }
    }
    for _ in 0..dice.roll(4) {
        text.push(' ');
        text.push_str(&operand(manual, dice, name));
    }
    text + &redirections(manual, dice)
}

fn operand(manual: &Manual, dice: &mut Dice, name: &str) -> String {
    // Nothing else may be signalled.
    if name == "kill" {
        return dice.pick(&["$$", "%1", "HUP", "x", "'a[$(p hit)]'"]).to_owned();
    }
    match dice.roll(7) {
        0..=3 if matches!(name, "set" | "shopt") => manual.options[dice.roll(manual.options.len())].clone(),
        0 => variable(manual, dice),
        1 => format!("{}={}", variable(manual, dice), value(dice)),
        2 => format!("x[{}]", value(dice)),
        3 => expansion(manual, dice),
        4 => dice.pick(&["x", "y=x", "x=2", "b=([x]=1)", "$x"]).to_owned(),
        _ => value(dice),
    }
}

fn assignment(manual: &Manual, dice: &mut Dice) -> String {
    let (name, value) = (variable(manual, dice), value(dice));
    let letter = dice.pick(&["i", "a", "A", "n", "u", "l", "x", "r", "g", "t", "ia", "iA", "p", "f"]);
    let text = match dice.roll(34) {
        0 => format!("{name}={value}"),
        1 => format!("{name}={value} p ok"),
        2 => format!("export {name}={value}"),
        3 => format!("declare -{letter} {name}={value}"),
        4 => format!("export -p {name}={value}"),
        5 => format!("read {name} <<< {value}"),
        6 => format!("read -a {name} <<< {value}"),
        7 => format!("printf -v {name} %s {value}"),
        8 => format!("printf -v{name} %s {value}"),
        9 => format!("mapfile {name} <<< {value}"),
        10 => format!("for {name} in {value} 2; do :; done"),
        11 => format!("select {name} in {value}; do break; done <<< 1"),
        12 => format!(": ${{{name}:={value}}}"),
        13 => format!("{name}[0]={value}"),
        14 => format!("{name}+={value}"),
        15 => format!("{name}=({value} 2)"),
        16 => format!("n={name}; declare $n={value}"),
        17 => format!("n={name}; printf -v $n %s {value}"),
        18 => format!("let {name}={value}"),
        19 => format!("(( {name} = {} ))", value.trim_matches(['\'', '"'])),
        20 => format!("exec {{{name}}}>out"),
        21 => format!("p & wait -p {name} $!"),
        22 => format!("getopts ab {name} {value}"),
        23 => format!("declare -{letter} {name}; {name}={value}"),
        24 => format!("declare -{letter} {name}; read {name} <<< {value}"),
        25 => format!("declare -{letter} {name}; for {name} in {value}; do :; done"),
        26 => format!("f() {{ local -{letter} {name}={value}; p \"${name}\"; }}; f"),
        27 => format!("unset {name}; {name}={value}"),
        28 => format!("{name}={value} eval ': $(({name}))'"),
        29 => format!("readonly {name}={value}; {name}=2; cd sub"),
        30 => format!("n={name}; : ${{!n:={value}}}"),
        31 => format!("declare -A {name}; {name}[{value}]=1"),
        32 => format!("f() {{ :; }}; {name}={value} f"),
        _ => format!("typeset {name}={value}; declare -{letter} {name}"),
    };
    let uses = match dice.roll(8) {
        0 => format!("; p \"${name}\""),
        1 => format!("; : $(({name}))"),
        2 => format!("; : ${{x:{name}}} ${{@:{name}}}"),
        3 => format!("; [[ {name} -gt 1 ]]"),
        4 => format!("; p ${name}"),
        5 => "; q used".to_owned(),
        _ => String::new(),
    };
    text + &uses
}

fn expansion(manual: &Manual, dice: &mut Dice) -> String {
    match dice.roll(12) {
        0 => return format!("$(({}))", dice.pick(&["h", "x", "a[0]", "$h", "x=h", "1/x", "RANDOM", "x++"])),
        1 => return format!("$\"{}\"", dice.pick(&["text", "$h", "$(p in)"])),
        2 => return format!("<({})", dice.pick(&["p in", "exit; p in"])),
        _ => {}
    }
    let form = &manual.expansions[dice.roll(manual.expansions.len())];
    let parameter = match dice.roll(8) {
        0 => variable(manual, dice),
        1 => dice.pick(&["@", "*", "#", "?", "1", "!", "$", "-", "_"]).to_owned(),
        2 => format!("a[{}]", dice.pick(&["0", "h", "$h", "@", "*", "x"])),
        _ => dice.pick(&["x", "h", "y", "a", "!h", "!x"]).to_owned(),
    };
    let number = |dice: &mut Dice| dice.pick(&["1", "0", "h", "$h", " -1", "x", "a[0]", "'a[$(p hit)]'"]).to_owned();
    let (offset, length) = (number(dice), number(dice));
    let operator = manual.operators[dice.roll(manual.operators.len())].clone();
    let text = form
        .replace("parameter", "\u{1}")
        .replace("offset", &offset)
        .replace("length", &length)
        .replace("operator", &operator)
        .replace("pattern", dice.pick(&["a", "*", "$h", "?", "b*", "[ab]", "\"$h\"", "\\*"]))
        .replace("string", dice.pick(&["b", "$h", "&", "$(p in)"]))
        .replace("word", dice.pick(&["w", "$h", "$(p in)", "b c", "*b", "?", "\"$h\"", "'a[$(p hit)]'"]))
        .replace("prefix", "x")
        .replace("name", "a")
        .replace('\u{1}', &parameter);
    if dice.roll(2) == 0 { format!("\"{text}\"") } else { text }
}

fn redirections(manual: &Manual, dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..dice.roll(5).saturating_sub(2) {
        let form = &manual.redirections[dice.roll(manual.redirections.len())];
        let descriptor = match dice.roll(6) {
            0 => format!("{{{}}}", variable(manual, dice)),
            1 => "{a[0]}".to_owned(),
            2 | 3 => dice.pick(&["0", "1", "2", "3", "9"]).to_owned(),
            _ => String::new(),
        };
        if form.contains("<<[-]") {
            return format!("{text} {descriptor}<<{}E\nbody $h $(p here)\nE\n:", dice.pick(&["", "-"]));
        }
        let target = match dice.roll(10) {
            0 => value(dice),
            1 => "$h".to_owned(),
            _ => dice
                .pick(&[
                    "nofile",
                    "a1",
                    "out",
                    "/nowhere/x",
                    "''",
                    "sub",
                    "/dev/null",
                    "/dev/tcp/127.0.0.1/1",
                    "9",
                    "1",
                    "-",
                    "/dev/fd/9",
                ])
                .to_owned(),
        };
        let form = form.replace("[n]", &descriptor).replace("word", &target).replace("digit", dice.pick(&["1", "9"]));
        text.push_str(&format!(" {form}"));
    }
    text
}
