//! Makes scripts: harmless ones that can be run, and soups of tokens.

pub mod hostile;
pub mod manual;

/// A small generator of numbers: the same scripts every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9e37_79b9_7f4a_7c15)
}

/// Scripts that start stubs in many ways.
pub fn scripts(count: usize) -> Vec<(String, String)> {
    let mut dice = Dice(seed());
    (0..count).map(|number| (format!("generated {number}"), list(&mut dice, 3))).collect()
}

/// Tokens in any order: most of it is wrong.
pub fn token_soups(count: usize) -> Vec<(String, String)> {
    const TOKENS: &[&str] = &[
        "p",
        "q",
        " ",
        " ",
        " ",
        "\n",
        ";",
        "&",
        "|",
        "&&",
        "||",
        "(",
        ")",
        "{ ",
        " }",
        "<",
        ">",
        ">>",
        "<<E\n",
        "\nE\n",
        "$",
        "$(",
        "${",
        "}",
        "'",
        "\"",
        "`",
        "\\",
        "#",
        "!",
        "=",
        "[",
        "]",
        "if ",
        "; then ",
        "; fi",
        "for x in ",
        "; do ",
        "; done",
        "while ",
        "case x in ",
        ") ",
        ";; ",
        "esac",
        "((",
        "))",
        "[[ ",
        " ]]",
        "x=",
        "a=(",
        "function f ",
        "f() ",
        "<(",
        "2>",
        "&>",
        "<<<",
        "time ",
        "coproc ",
        "$'",
        "1",
        "*",
        "in ",
        "select x in ",
        "until ",
        "{a,b}",
        "~",
        "$x",
        "${x:-",
        "@(",
        "$((",
        ";&",
        "|&",
        "é",
    ];
    let mut dice = Dice(seed() ^ 77);
    (0..count)
        .map(|number| {
            let length = 1 + dice.roll(9);
            let script: String = (0..length).map(|_| dice.pick(TOKENS)).collect();
            (format!("soup {number}"), script)
        })
        .collect()
}

fn list(dice: &mut Dice, depth: usize) -> String {
    let mut text = command(dice, depth);
    for _ in 0..dice.roll(3) {
        text.push_str(dice.pick(&["; ", "\n", " && ", " || ", "; ", " | ", "; "]));
        text.push_str(&command(dice, depth));
    }
    text
}

fn command(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return simple(dice, 0);
    }
    let inner = depth - 1;
    match dice.roll(26) {
        0 => format!("( {} )", list(dice, inner)),
        1 => format!("{{ {}; }}", list(dice, inner)),
        2 => format!("if {}; then {}; else {}; fi", list(dice, inner), list(dice, inner), list(dice, inner)),
        3 => format!("for v in {} {}; do {}; done", word(dice, inner), word(dice, inner), list(dice, inner)),
        4 => format!(
            "case {} in {}) {};; *) {};; esac",
            word(dice, inner),
            dice.pick(&["a", "b*", "?", "x|y"]),
            list(dice, inner),
            list(dice, inner)
        ),
        5 => {
            let number = dice.roll(100_000);
            format!("f{number}() {{ {}; }}; f{number} {} {}", list(dice, inner), word(dice, inner), word(dice, inner))
        }
        6 => format!("x={}", word(dice, inner)),
        7 => format!("y={}; x=$y{}", word(dice, inner), word(dice, inner)),
        8 => format!("eval {}", quoted(&list(dice, inner))),
        9 => format!("cd {} && {}", dice.pick(&["sub", "nowhere", "."]), list(dice, inner)),
        10 => format!("set -- {} {}", word(dice, inner), word(dice, inner)),
        11 => format!("i=0; while [[ $i -lt 2 ]]; do {}; i=$((i+1)); done", simple(dice, inner)),
        12 => format!("a=({} {}); p \"${{a[@]}}\" ${{a[0]}} ${{#a[@]}}", word(dice, inner), word(dice, inner)),
        13 => format!("trap {} EXIT", quoted(&simple(dice, inner))),
        14 => format!("! {}", simple(dice, inner)),
        15 => format!("local_test() {{ local x={}; p \"$x\"; }}; local_test; p \"$x\"", word(dice, inner)),
        16 => format!("export x={}", word(dice, inner)),
        17 => format!("read x <<< {}; p \"$x\"", word(dice, inner)),
        18 => format!("for ((i=0; i<2; i++)); do {}; done", simple(dice, inner)),
        _ => simple(dice, depth),
    }
}

fn simple(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    if dice.roll(8) == 0 {
        text.push_str(dice.pick(&["x=1 ", "FOO='a b' ", "z=$x "]));
    }
    text.push_str(dice.pick(&["p", "q", "r", "s", "'p'", "\"q\"", "\\r", "command p", "p"]));
    for _ in 0..dice.roll(4) {
        text.push(' ');
        text.push_str(&word(dice, depth));
        if dice.roll(12) == 0 {
            text.push_str(dice.pick(&[
                " >out",
                " 2>&1",
                " </dev/null",
                " >>out 2>/dev/null",
                " >|out",
                " &>out",
                " <a1",
            ]));
        }
    }
    if dice.roll(20) == 0 {
        text.push_str(" <<E\nbody $x\nE\n:");
    }
    text
}

fn word(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..=dice.roll(2) {
        text.push_str(&part(dice, depth));
    }
    text
}

fn part(dice: &mut Dice, depth: usize) -> String {
    const FLAT: &[&str] = &[
        "a",
        "b",
        "xy",
        "-n",
        "'a b'",
        "\"c  d\"",
        "\\ ",
        "''",
        "\"\"",
        "$x",
        "\"$x\"",
        "${x}",
        "$y",
        "\"$y\"",
        "{a,b}",
        "{1..3}",
        "{a,{b,c}}",
        "a{b}c",
        "{x,y}z",
        "*",
        "a*",
        "?",
        "[ab]1",
        "nomatch*",
        "~",
        "~/x",
        "$'a\\tb'",
        "$'\\x41\\u00e9'",
        "$'it\\'s'",
        "\"a'b\"",
        "'a\"b'",
        "\"\\$x\"",
        "$#",
        "$1",
        "\"$@\"",
        "$@",
        "\"$*\"",
        "$*",
        "${x:-d e}",
        "\"${x:-d e}\"",
        "${x:+s}",
        "${y-'q r'}",
        "${#x}",
        "${x#a}",
        "${x%b}",
        "${x/a/b}",
        "${x//a/}",
        "${x:1}",
        "${x:0:1}",
        "$((1+2))",
        "$((2*3-1))",
        "${x^^}",
        "=",
        "a=b",
        "#a",
        "a#b",
        "\\\n",
        "{,a}",
        "{a..c}",
        "{01..03}",
        "$",
        "a$",
        "%",
        "\"${x}y\"",
        "{a,'b c'}",
        "{a,$x}",
        "$v",
        "\"$v\"",
        "{a",
        "a}",
        "{}",
        "{a,}",
        "!",
        "${y:=w}",
        "\"${z:-'k'}\"",
        "$((i))",
        "@",
        "x[0]",
    ];
    if depth == 0 {
        return dice.pick(FLAT).to_owned();
    }
    match dice.roll(16) {
        0 => format!("$({})", list(dice, depth - 1)),
        1 => format!("\"$({})\"", list(dice, depth - 1)),
        2 => format!("`{}`", simple(dice, 0).replace(['`', '\\'], "")),
        3 => format!("${{x:-$({})}}", simple(dice, depth - 1)),
        4 => format!("<({})", simple(dice, depth - 1)),
        5 => format!("$(echo {})", part(dice, 0)),
        _ => dice.pick(FLAT).to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
