//! E's table of demands and burst intervals: at each, how much of it each peer brings.

use super::{COLUMNS, Table};
use crate::record::{Outcome, Pace, Record};
use crate::report::current::most_of;
use crate::report::peers;
use crate::report::units::{percent, rate, size, thousands};

/// A table for each way and size, of those whose lines keep their cells.
pub(super) fn tables(records: &[Record]) -> Vec<Table> {
    let kept = |r: &&Record| r.outcome == Outcome::Ok && r.paces.len() > 1;
    let mut settings: Vec<(&str, u64, &str)> = Vec::new();
    for record in records.iter().filter(kept) {
        let setting = (record.transport.as_str(), record.size_bytes, record.case.as_str());
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings.sort_unstable();
    let of = |(transport, bytes, case): (&str, u64, &str)| {
        let is =
            |r: &&Record| (r.transport.as_str(), r.size_bytes, r.case.as_str()) == (transport, bytes, case);
        let all: Vec<&Record> = records.iter().filter(kept).filter(is).collect();
        let run = most_of(&all)?;
        table(&all.into_iter().filter(|record| record.run.id == run.id).collect::<Vec<_>>())
    };
    settings.into_iter().filter_map(of).collect()
}

/// Of the lines of one setting.
fn table(lines: &[&Record]) -> Option<Table> {
    let of_peer = |peer: &&str| lines.iter().rfind(|line| line.peer == *peer).copied();
    let used: Vec<&Record> = COLUMNS.iter().filter_map(of_peer).collect();
    let first = used.first()?;
    let way = if first.transport == "udp" { "UDP" } else { first.transport.as_str() };
    let mut paces: Vec<&Pace> = used.iter().flat_map(|line| line.paces.iter()).collect();
    paces.sort_by_key(|pace| (pace.demand, pace.interval_ms));
    paces.dedup_by_key(|pace| (pace.demand, pace.interval_ms));
    let says = "So many samples without a pause, then the rest of the interval. A rate below what was asked for is what the \
                peer could bring.";
    let title = format!("Demand and interval: {} by {way}, {}", size(first.size_bytes), first.case);
    let names = used.iter().map(|line| peers::name(&line.peer));
    let mut table = Table::new(title, &used, says)
        .with_heads(["demand".to_string(), "interval".into(), "asked for".into()], names);
    for pace in paces {
        let is = |other: &&Pace| (other.demand, other.interval_ms) == (pace.demand, pace.interval_ms);
        let mut row = vec![
            thousands(pace.demand),
            format!("{} ms", pace.interval_ms),
            pace.asked_per_s().map_or("no limit".into(), rate),
        ];
        row.extend(used.iter().map(|line| line.paces.iter().find(is).map_or("–".into(), had)));
        table.add(row, Some(&first.run));
    }
    Some(table)
}

/// The rate, and what got lost.
fn had(pace: &Pace) -> String {
    match pace {
        Pace { samples_per_s: 0.0, .. } => "failed".to_string(),
        Pace { lost: 0, samples_per_s, .. } => rate(*samples_per_s),
        _ => format!("{}, {} lost", rate(pace.samples_per_s), percent(pace.loss())),
    }
}
