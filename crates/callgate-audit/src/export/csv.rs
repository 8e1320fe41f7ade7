//! A table for spreadsheets (RFC 4180).

use super::summary;
use crate::entry::{EntryBody, LogEntry};
use crate::read::effects_of;

pub(super) const HEADER: &str = "seq,time,kind,call,session,agent,tool,decision,rule,risk,effects,summary\r\n";

pub(super) fn row(entry: &LogEntry) -> String {
    let record = &entry.record;
    let attempt = match &record.body {
        EntryBody::ToolAttempt(attempt) => Some(attempt),
        _ => None,
    };
    let risk = attempt
        .and_then(|attempt| attempt.classification.as_ref()?.get("risk_level")?.as_str().map(str::to_owned))
        .or_else(|| match &record.body {
            EntryBody::SecurityViolation(violation) => Some(violation.risk_level.clone()),
            _ => None,
        });
    let effects = attempt.map(|attempt| {
        let names = effects_of(attempt).into_iter().map(|effect| format!("{:?} {}", effect.action, effect.shown));
        names.collect::<Vec<_>>().join("; ").to_lowercase()
    });
    let cells = [
        Some(entry.seq.to_string()),
        Some(entry.time.precise()),
        Some(record.body.kind().to_owned()),
        record.call.clone(),
        record.session.clone(),
        record.agent.clone(),
        record.body.tool().map(str::to_owned),
        attempt.map(|attempt| attempt.decision.to_string()),
        attempt.and_then(|attempt| attempt.rule.clone()),
        risk,
        effects,
        Some(summary(entry)),
    ];
    let mut row = cells.map(|cell| cell.map(|cell| quoted(&cell)).unwrap_or_default()).join(",");
    row.push_str("\r\n");
    row
}

/// Quotes a cell where needed and turns formulas into text: a log contains what an attacker wrote.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula || cell.contains(['"', ',', '\n', '\r']) {
        let guard = if formula { "'" } else { "" };
        format!("\"{guard}{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_text() {
        assert_eq!(quoted("a b"), "a b");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
        assert_eq!(quoted("x\ny"), "\"x\ny\"");
    }
}
