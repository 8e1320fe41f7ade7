//! The options that a manual page describes, from its groff source.
//!
//! This is no formatter. It knows the ways in which pages tag their items: `.TP` and `.IP` of man, `.It` of mdoc, a
//! paragraph that stands before an indented block (DocBook, AsciiDoc), and headings (podman).

use super::options::{SLANTED, Stated, Takes, options_of};

/// One item: the options, and the text about them.
#[derive(Debug)]
pub struct Item {
    pub options: Vec<Stated>,
    pub text: String,
}

/// Sections whose tags are not options of the program: what stands there is typed into it, or into other programs.
const ELSEWHERE: &[&str] = &[
    "BUGS",
    "BUILTINS",
    "CONDITIONAL",
    "CONFIGURATION",
    "ENVIRONMENT",
    "EXAMPLE",
    "FILES",
    "HISTORY",
    "INTERACTIVE COMMANDS",
    "NOTES",
    "SEE ALSO",
    "SHELL BUILTIN",
];

/// Whether the next line of text is, or may be, a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expecting {
    Nothing,
    /// It is one: `.TP`.
    Tag,
    /// It is one if it looks so: the start of a paragraph.
    Paragraph,
}

/// The items of a page that are about options.
pub fn items(source: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut expecting = Expecting::Nothing;
    let mut elsewhere = false;
    let joined = source.replace("\\c\n", "");
    for line in joined.lines() {
        let (line, mut tag) = match line.strip_prefix(['.', '\'']) {
            None => (plain(line), None),
            Some(request) => {
                let request = request.trim_start();
                let end = request.find([' ', '\t']).unwrap_or(request.len());
                let (request, rest) = request.split_at(end);
                match request {
                    "TP" | "TQ" => {
                        expecting = Expecting::Tag;
                        continue;
                    }
                    "PP" | "P" | "LP" | "sp" | "HP" | "br" => {
                        expecting = expecting.max_with(Expecting::Paragraph);
                        continue;
                    }
                    "IP" => {
                        let tag = words(rest).into_iter().next().unwrap_or_default();
                        // Lists with bullets carry the tag as their text.
                        expecting = if tag.starts_with('-') { Expecting::Nothing } else { Expecting::Paragraph };
                        (String::new(), Some(tag))
                    }
                    "It" => (String::new(), Some(mdoc(rest))),
                    "SS" => (String::new(), Some(words(rest).join(" "))),
                    "B" | "I" | "SM" | "SB" | "R" => (words(rest).join(" "), None),
                    "BR" | "RB" | "BI" | "IB" | "RI" | "IR" => (alternating(request, words(rest)), None),
                    "SH" | "Sh" => {
                        elsewhere = elsewhere_title(rest);
                        expecting = Expecting::Nothing;
                        continue;
                    }
                    "Ss" => {
                        elsewhere = elsewhere_title(rest);
                        expecting = Expecting::Nothing;
                        continue;
                    }
                    "RS" | "nf" => {
                        expecting = Expecting::Nothing;
                        continue;
                    }
                    "Fl" | "Ar" | "Nm" | "Cm" | "Pa" | "Xr" | "Dq" | "Ql" | "Sq" | "Ev" | "Op" => {
                        (mdoc(&format!("{request}{rest}")), None)
                    }
                    _ => continue,
                }
            }
        };
        if tag.is_none() && !line.trim().is_empty() {
            let found = line.trim();
            let is_tag = match expecting {
                Expecting::Nothing => false,
                Expecting::Tag => true,
                Expecting::Paragraph => looks_like_tag(found),
            };
            expecting = Expecting::Nothing;
            if is_tag {
                tag = Some(found.to_owned());
            }
        }
        match tag {
            Some(tag) => {
                let options = options_of(&tag);
                if !options.is_empty() && !elsewhere {
                    items.push(Item { options, text: String::new() });
                }
            }
            None => {
                if let Some(item) = items.last_mut() {
                    item.text.push_str(&line);
                    item.text.push(' ');
                }
            }
        }
    }
    items
}

fn elsewhere_title(rest: &str) -> bool {
    let title = words(rest).join(" ").to_ascii_uppercase();
    ELSEWHERE.iter().any(|other| title.starts_with(other))
}

impl Expecting {
    /// A tag that is due stays due.
    fn max_with(self, other: Expecting) -> Expecting {
        if self == Expecting::Tag { self } else { other }
    }
}

/// A paragraph that is nothing but options, not a sentence about one.
fn looks_like_tag(line: &str) -> bool {
    line.starts_with('-') && line.len() < 120 && line.split(' ').count() <= 8 && !line.ends_with('.')
}

/// The arguments of a request.
fn words(rest: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quoted, mut started, mut escaped) = (false, false, false);
    for character in rest.chars() {
        if escaped {
            word.push(character);
            escaped = false;
            continue;
        }
        match character {
            '\\' => {
                word.push(character);
                escaped = true;
                started = true;
            }
            '"' => {
                quoted = !quoted;
                started = true;
            }
            ' ' | '\t' if !quoted => {
                if started {
                    words.push(plain(&std::mem::take(&mut word)));
                    started = false;
                }
            }
            _ => {
                word.push(character);
                started = true;
            }
        }
    }
    if started {
        words.push(plain(&word));
    }
    words
}

/// Text without escapes.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(if character == '\t' { ' ' } else { character });
            continue;
        }
        match characters.next() {
            Some('-') => out.push('-'),
            Some('e' | '\\') => out.push('\\'),
            Some(' ' | '~' | '0') => out.push(' '),
            Some('"' | '#') => break,
            Some('f') => {
                if matches!(name(&mut characters).as_str(), "I" | "2") {
                    out.push(SLANTED);
                }
            }
            Some('*') => {
                // The page of patch calls two dashes so.
                let string = name(&mut characters);
                out.push_str(if string == "=" { "--" } else { "" });
            }
            Some('F' | 'm' | 'n') => {
                name(&mut characters);
            }
            Some('s') => {
                characters.next_if(|next| matches!(next, '+' | '-'));
                while characters.next_if(char::is_ascii_digit).is_some() {}
            }
            Some('(') => {
                let name: String = characters.by_ref().take(2).collect();
                out.push_str(glyph(&name));
            }
            Some('[') => {
                let name: String = characters.by_ref().take_while(|next| *next != ']').collect();
                out.push_str(glyph(&name));
            }
            Some('w' | 'h' | 'v' | 'z' | 'o' | 'X') => {
                if let Some(quote) = characters.next() {
                    for next in characters.by_ref() {
                        if next == quote {
                            break;
                        }
                    }
                }
            }
            Some(quote @ ('\'' | '`' | '.')) => out.push(quote),
            _ => {}
        }
    }
    out
}

/// A name behind `\f` and others: one character, `(xx` or `[…]`.
fn name(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    match characters.next() {
        Some('(') => characters.by_ref().take(2).collect(),
        Some('[') => characters.by_ref().take_while(|next| *next != ']').collect(),
        other => other.into_iter().collect(),
    }
}

/// The words of `.BI` and others, in turn in one type and the other.
fn alternating(request: &str, words: Vec<String>) -> String {
    let mut out = String::new();
    for (word, kind) in words.iter().zip(request.chars().cycle()) {
        if kind == 'I' {
            out.push(SLANTED);
        }
        out.push_str(word);
    }
    out
}

fn glyph(name: &str) -> &'static str {
    match name {
        "hy" | "en" | "mi" | "u2010" => "-",
        "em" => "—",
        "aq" | "cq" | "oq" => "'",
        "dq" | "lq" | "rq" => "\"",
        "ti" => "~",
        "ha" => "^",
        "rs" => "\\",
        "or" | "ba" => "|",
        "sl" => "/",
        "bu" | "ci" => "•",
        _ => "",
    }
}

/// The words of an mdoc request: `Fl o Ar file` is `-o file`.
fn mdoc(rest: &str) -> String {
    let mut out = String::new();
    let mut glue = true;
    let mut flag = false;
    let mut brackets = 0;
    let mut words = words(rest).into_iter().peekable();
    while let Some(word) = words.next() {
        let callable = |word: &str| {
            matches!(
                word,
                "Fl" | "Ar"
                    | "Cm"
                    | "Ns"
                    | "Op"
                    | "Oo"
                    | "Oc"
                    | "Pa"
                    | "Xo"
                    | "Xc"
                    | "No"
                    | "Li"
                    | "Ql"
                    | "Sm"
                    | "Dv"
                    | "Ic"
                    | "Sy"
                    | "Em"
                    | "Ev"
                    | "Nm"
                    | "Dq"
                    | "Sq"
                    | "Aq"
                    | "Va"
                    | "Brq"
                    | "Sx"
                    | "Xr"
            )
        };
        match word.as_str() {
            "Ns" => {
                glue = true;
                flag = false;
            }
            "Op" | "Oo" => {
                if !glue {
                    out.push(' ');
                }
                out.push('[');
                brackets += i32::from(word == "Op");
                glue = true;
            }
            "Oc" => {
                out.push(']');
                glue = false;
            }
            "Fl" => {
                flag = true;
                if words.peek().is_none_or(|next| callable(next) || next == ",") {
                    if !glue {
                        out.push(' ');
                    }
                    out.push('-');
                    glue = true;
                    flag = false;
                }
            }
            "Ar" if words.peek().is_none_or(|next| callable(next) || next == ",") => {
                out.push_str(if glue { "file" } else { " file" });
                glue = false;
                flag = false;
            }
            "," | ":" | ";" | ")" | "." | "]" => out.push_str(&word),
            "|" => out.push_str(" |"),
            _ if callable(&word) => flag = false,
            _ => {
                if !glue {
                    out.push(' ');
                }
                if flag {
                    out.push('-');
                }
                out.push_str(&word);
                glue = false;
            }
        }
    }
    for _ in 0..brackets {
        out.push(']');
    }
    out
}

#[test]
fn every_way_to_tag_an_item_is_read() {
    let cases: &[(&str, &[&str], Takes)] = &[
        (".TP\n\\fB\\-k\\fR, \\fB\\-\\-key\\fR=\\fI\\,KEYDEF\\/\\fR\nsort\n", &["-k", "--key"], Takes::Value),
        (".TP\n.BR \\-E \", \" \\-\\-extended\\-regexp\nextended\n", &["-E", "--extended-regexp"], Takes::Nothing),
        (
            ".TP\n.BI \\-e \" PATTERNS\" \"\\fR,\\fP \\-\\-regexp=\" PATTERNS\nthese\n",
            &["-e", "--regexp"],
            Takes::Value,
        ),
        (".IP \"\\fB\\-in\\fR \\fIfilename\\fR\" 4\n.IX Item \"-in\"\n", &["-in"], Takes::Value),
        (".PP\n\\-n, \\-\\-dry\\-run\n.RS 4\nnothing\n.RE\n", &["-n", "--dry-run"], Takes::Nothing),
        (".sp\n\\fB\\-o\\fP, \\fB\\-\\-output\\fP \\fIlist\\fP\n.RS 4\nx\n", &["-o", "--output"], Takes::Value),
        (".It Fl o Ar file\nwrite\n", &["-o"], Takes::Value),
        (".It Fl l , Fl Fl long\nlong\n", &["-l", "--long"], Takes::Nothing),
        (".It Fl -exclude Ns = Ns Ar pattern\nnot these\n", &["--exclude"], Takes::Value),
        (".SS \\fB--annotation\\fP=\\fIkey=value\\fP\nadd\n", &["--annotation"], Takes::Value),
        (".IP \"\\[ci]\" 4\n\\fB\\-\\-seq\\fR:\n.IP\nuse\n", &["--seq"], Takes::Nothing),
    ];
    for (source, names, takes) in cases {
        let found = items(source);
        assert_eq!(found.len(), 1, "{source}");
        let expected: Vec<_> = names.iter().map(|name| ((*name).to_owned(), Some(*takes))).collect();
        assert_eq!(found[0].options, expected, "{source}");
    }
    assert!(items(".PP\n\\-x and -y are the same, unless somebody says something else.\n").is_empty());
}
