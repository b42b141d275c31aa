//! The rules by which adapters take times: each line has their number, for figures of different rules are no
//! comparison.

use std::collections::BTreeSet;

use crate::record::Record;

/// Those of `peers/README.md`. To be raised with each change there after which the same peer has other figures.
pub const CURRENT: u32 = 3;

/// Those of lines without a number.
pub(crate) fn unnumbered() -> u32 {
    1
}

/// Those of a line whose figures they make: a rate of a stream is the same by all.
pub(crate) fn of(record: &Record) -> Option<u32> {
    let is_timed = record.rate_hz > 0.0 || ["cdr", "discovery"].contains(&record.workload.as_str());
    is_timed.then_some(record.run.rules)
}

fn numbers<'a>(records: impl IntoIterator<Item = &'a Record>) -> BTreeSet<u32> {
    records.into_iter().filter_map(of).collect()
}

/// The sentence for lines that are of several.
pub(crate) fn mixed<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<String> {
    let all: Vec<String> = numbers(records).iter().map(u32::to_string).collect();
    (all.len() > 1).then(|| {
        format!(
            "times are taken by rules {}: open loops, cdr and discovery of one are no comparison with those of another",
            all.join(" and ")
        )
    })
}

/// How open loops count in lines of these rules.
pub(crate) fn explained(records: &[Record]) -> String {
    let meanings: Vec<&str> = numbers(records).into_iter().map(meaning).collect();
    meanings.join(" ")
}

fn meaning(number: u32) -> &'static str {
    match number {
        ..2 => {
            "Open loops of lines that say how far they were behind count from when a sample was due, the others from its write."
        }
        2 => {
            "Open loops of lines that say how late the sender was woken count a sample from its write, but from when it was due if the middleware held the sender up."
        }
        _ => {
            "Open loops of lines that say how late the sender was woken count a sample from its write, but from when it was due if the middleware held the sender up, be it by work in the sender's own wait."
        }
    }
}
