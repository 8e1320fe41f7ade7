//! The question as a person sees it: nothing left out, nothing hidden.

use std::fmt::Write as _;
use std::time::Duration;

use crate::approvals::{Question, QuestionEffect};
use callgate_model::show::{unpadded, visible};

/// The narrowest screen for which lines are broken.
const NARROWEST: usize = 20;
/// Equal lines that are shown; more of them are counted.
const EQUAL_LINES: usize = 3;
/// What stands in front of the text of others, so that no line of it looks like one of callgate's own.
const BAR: &str = "      │ ";
/// The same where a long line goes on.
const GOES_ON: &str = "      ┆ ";
/// Actions by what is at stake.
const STAKES: [&str; 9] = ["privilege", "opaque", "delete", "send", "connect", "write", "run", "read", "list"];

/// How a terminal shows text. The default is plain text in lines of any length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// The width of the screen; without it, lines are not broken.
    pub columns: Option<usize>,
    /// Whether colours are shown.
    pub colours: bool,
    /// Whether the cursor can be moved, so that a countdown can run.
    pub moves: bool,
}

#[derive(Debug, Clone, Copy)]
enum Tone {
    Strong,
    Alarm,
    Warning,
    Calm,
    Quiet,
}

impl Look {
    fn painted(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Strong => "1",
            Tone::Alarm => "1;31",
            Tone::Warning => "1;33",
            Tone::Calm => "32",
            Tone::Quiet => "2",
        };
        if self.colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A text of others in full: its lines one below the other behind a bar, hidden characters spelled out, repetitions counted, and
    /// long lines broken where the screen ends. A short line stands behind its label.
    ///
    /// ```
    /// use callgate::approvals::channel::Look;
    ///
    /// assert_eq!(Look::default().block("command", "ls"), "    command: ls\n");
    /// assert_eq!(Look::default().block("command", "cat <<E\nx\nE"), "    command:\n      │ cat <<E\n      │ x\n      │ E\n");
    /// ```
    pub fn block(self, label: &str, text: &str) -> String {
        let label = unpadded(label);
        let short = format!("    {label}: {}", unpadded(text));
        if !text.contains('\n') && self.columns.is_none_or(|columns| width(&short) < columns) {
            return format!("{short}\n");
        }
        let mut block = self.wrapped("    ", GOES_ON, &format!("{label}:"));
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let mut count = 1_usize;
            while lines.next_if_eq(&line).is_some() {
                count = count.saturating_add(1);
            }
            let shown = self.wrapped(BAR, GOES_ON, &unpadded(line));
            if count > EQUAL_LINES {
                block.push_str(&shown);
                let _ = writeln!(block, "{BAR}⟨this line {count} times⟩");
            } else {
                (0..count).for_each(|_| block.push_str(&shown));
            }
        }
        block
    }

    /// A line, broken where the screen ends.
    fn wrapped(self, first: &str, next: &str, text: &str) -> String {
        let columns = self.columns.map(|columns| columns.max(NARROWEST));
        let mut lines = first.to_owned();
        let mut used = width(first);
        for character in text.chars() {
            let wide = width_of(character);
            if columns.is_some_and(|columns| used.saturating_add(wide) >= columns) {
                lines.push('\n');
                lines.push_str(next);
                used = width(next);
            }
            lines.push(character);
            used = used.saturating_add(wide);
        }
        lines.push('\n');
        lines
    }

    /// A sentence of callgate's own, broken between words.
    fn sentence(self, first: &str, next: &str, words: &str) -> String {
        let columns = self.columns.map_or(usize::MAX, |columns| columns.max(NARROWEST));
        let mut lines = String::new();
        let mut line = first.to_owned();
        let mut is_empty = true;
        for word in words.split(' ') {
            if !is_empty && width(&line).saturating_add(width(word)).saturating_add(1) >= columns {
                lines.push_str(&self.wrapped("", next, &line));
                line = next.to_owned();
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        lines + &self.wrapped("", next, &line)
    }

    /// A line of which the beginning has a tone.
    fn line(self, tone: Tone, first: &str, next: &str, text: &str) -> String {
        self.toned(tone, first, self.wrapped(first, next, text))
    }

    fn toned(self, tone: Tone, first: &str, whole: String) -> String {
        match whole.strip_prefix(first) {
            Some(rest) => format!("{}{rest}", self.painted(tone, first)),
            None => whole,
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// At most so many columns: letters of some scripts take two.
fn width_of(character: char) -> usize {
    if character.is_ascii() || matches!(character, '│' | '┆' | '…') { 1 } else { 2 }
}

/// The question as a person sees it: nothing left out, nothing hidden.
pub fn prompt(question: &Question, always: bool, look: Look) -> String {
    let agent = question.agent.as_deref().unwrap_or("an agent");
    let risk = visible(&question.risk_level);
    let tone = match risk.as_str() {
        "low" => Tone::Calm,
        "medium" => Tone::Warning,
        _ => Tone::Alarm,
    };
    let (title, risk) = (format!("callgate: may {} do this?", visible(agent)), format!("(risk: {risk})"));
    let fits =
        look.columns.is_none_or(|columns| width(&title).saturating_add(width(&risk)).saturating_add(2) < columns);
    let title = look.painted(Tone::Strong, look.sentence("", "  ", &title).trim_end());
    let mut text = format!("\n{title}{}{}\n\n", if fits { "  " } else { "\n" }, look.painted(tone, &risk));
    let place = question.directory.as_deref().map(|directory| format!("  in {}", directory.display()));
    let tool = format!("{}{}", visible(&question.tool), visible(&place.unwrap_or_default()));
    text.push_str(&look.wrapped("  ", GOES_ON, &tool));
    match question.request.as_object() {
        Some(fields) => {
            for (name, value) in fields {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.push_str(&look.block(name, &value));
            }
        }
        None => text.push_str(&look.block("input", &question.request.to_string())),
    }
    if !question.effects.is_empty() {
        text.push_str("\nIt would (* needs your answer):\n");
        let mut effects: Vec<&QuestionEffect> = question.effects.iter().collect();
        effects.sort_by_key(|effect| (!effect.asked, stake(&effect.action)));
        for effect in effects {
            text.push_str(&effect_line(effect, look));
        }
    }
    text.push('\n');
    text.push_str(&look.line(Tone::Strong, "Why: ", GOES_ON, &unpadded(&question.reason)));
    if let Some(rule) = &question.rule {
        let place = question.place.as_deref().map(|place| format!(" ({})", visible(place))).unwrap_or_default();
        text.push_str(&look.line(Tone::Quiet, "Rule: ", GOES_ON, &format!("{}{place}", visible(rule))));
    }
    if question.kept {
        let kept =
            "The call was refused, because nobody could answer. A yes lets it pass once, when it is tried again.";
        text.push('\n');
        text.push_str(&look.sentence("", "", kept));
    }
    text.push('\n');
    choices(&mut text, question, always, look);
    text
}

/// What can be typed.
fn choices(text: &mut String, question: &Question, always: bool, look: Look) {
    let choice = |letter: &str, words: &str| {
        let first = format!("  {letter:<3} ");
        look.toned(Tone::Strong, &first, look.sentence(&first, "      ", words))
    };
    text.push_str(&choice("y", "yes, this once"));
    if question.can_be_remembered() {
        text.push_str(&choice("s", "yes, and the same request again in this session"));
    }
    let mut proposals = |letter: &str, lead: &str| {
        for (number, proposal) in (1_usize..).zip(&question.proposals) {
            let extent = unpadded(&proposal.extent.to_string());
            text.push_str(&choice(&format!("{letter}{number}"), &format!("{lead}: {extent}")));
            let covers = format!("also covers {}", unpadded(&proposal.extent.also_covers()));
            text.push_str(&look.sentence("      ", "      ", &covers));
        }
    };
    if question.session.is_some() {
        proposals("s", "yes, and in this session");
    }
    if always {
        proposals("a", "yes, always (writes a rule)");
    }
    if let Some(why) = &question.no_proposal {
        text.push_str(&look.sentence("  ", "      ", &format!("(no broader choice: {})", visible(why))));
    }
    text.push_str(&choice("n", "no; text after it is sent to the agent"));
    text.push_str(&choice("q", "no, and stop the run"));
}

fn stake(action: &str) -> usize {
    STAKES.iter().position(|known| *known == action).unwrap_or(0)
}

fn effect_line(effect: &QuestionEffect, look: Look) -> String {
    let marks: Vec<String> = effect.marks.iter().map(|mark| visible(mark)).collect();
    let marks = if marks.is_empty() { String::new() } else { format!("  [{}]", marks.join(", ")) };
    let action = visible(&effect.action);
    let (tone, first) = match effect.asked {
        true => (Tone::Warning, format!("  * {action:<9} ")),
        false => (Tone::Quiet, format!("    {action:<9} ")),
    };
    look.line(tone, &first, GOES_ON, &format!("{}{marks}", unpadded(&effect.target)))
}

/// How much time is left, in words. Begun seconds count.
pub(super) fn countdown(left: Duration, look: Look) -> String {
    let seconds = left.as_secs().saturating_add(u64::from(left.subsec_nanos() > 0));
    let words = match seconds {
        0..60 => format!("{seconds} s left"),
        60..3600 => format!("{} min {} s left", seconds / 60, seconds % 60),
        _ => format!("{} h {} min left", seconds / 3600, seconds % 3600 / 60),
    };
    look.painted(if seconds < 10 { Tone::Alarm } else { Tone::Quiet }, &words)
}
