//! What `taut top` shows: lines for people, objects for programs.

use serde_json::{Value, json};
use taut::{ClassReport, SpreadReport};

use crate::list::{place, title};
use crate::output::escaped;

use super::{Domain, Row};

/// The line of the picture that is the heading.
pub const HEADING: usize = 1;
/// The widest name that is shown whole.
const NAME: usize = 40;

/// A line for each participant, the busiest first.
pub fn lines(domain: &Domain) -> Vec<String> {
    let mut rows: Vec<&Row> = domain.rows.values().collect();
    let busy = |row: &Row| row.rates().map_or(-1.0, |rates| (rates.busy * 1_000.0).round());
    rows.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    let names: Vec<String> = rows.iter().map(|row| name(row)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("participant".len());
    let mut lines = vec![
        headline(domain, rows.len()),
        format!(
            "{:width$} {:>8} {:>7} {:>10} {:<12} {:>10} {:>7} {:>7} {:>9}",
            "participant", "steps/s", "busy", "longest us", "of", "at most us", "in/s", "out/s", "refused/s"
        ),
    ];
    for (row, name) in rows.iter().zip(names) {
        lines.push(format!("{name:width$} {}", figures(row)).trim_end().to_owned());
    }
    lines
}

fn headline(domain: &Domain, count: usize) -> String {
    let participants = if count == 1 { "participant" } else { "participants" };
    format!("taut top  domain {}  {count} {participants} of Taut", domain.domain_id)
}

/// What it calls itself with its process id, and its host.
fn name(row: &Row) -> String {
    let host = place(&row.about).0.map(|host| format!(" {}", escaped(host)));
    let name = format!("{}{}", title(&row.about), host.unwrap_or_default());
    if name.chars().count() <= NAME {
        return name;
    }
    let cut: String = name.chars().take(NAME - 1).collect();
    format!("{cut}…")
}

fn figures(row: &Row) -> String {
    let silence = row.silence().map(|silence| format!("silent for {} s", silence.as_secs()));
    let Some(newest) = &row.newest else {
        return silence.map_or_else(|| "no report yet".into(), |_| "does not report".into());
    };
    if let Some(silence) = silence {
        return silence;
    }
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    let rates = row.rates();
    let of = |part: fn(&super::Rates) -> f64| rate(rates.as_ref().map(part));
    let busy = rates.as_ref().map_or_else(|| "-".to_owned(), |rates| format!("{:.1} %", rates.busy * 100.0));
    let (class, longest) = row.longest.clone().unwrap_or_default();
    let bound = newest.classes.first().map_or(0, |of| of.bound_ns);
    format!(
        "{:>8} {:>7} {:>10} {:<12} {:>10} {:>7} {:>7} {:>9}",
        of(|rates| rates.steps),
        busy,
        us(longest),
        escaped(&class),
        us(bound),
        of(|rates| rates.datagrams_in),
        of(|rates| rates.datagrams_out),
        of(|rates| rates.refused),
    )
}

fn us(ns: u64) -> String {
    if ns == 0 { "-".to_owned() } else { format!("{:.1}", ns as f64 / 1e3) }
}

/// Every class of those that are meant.
pub fn details(domain: &Domain, wanted: &str) -> Vec<String> {
    let meant: Vec<&Row> = domain.rows.values().filter(|row| row.is_meant(wanted)).collect();
    let mut lines = vec![headline(domain, domain.rows.len())];
    if meant.is_empty() {
        lines.push(format!("none of them begins with {wanted}"));
    }
    for row in meant {
        lines.push(String::new());
        lines.push(format!("{}  {}", name(row), row.about.guid.prefix));
        match &row.newest {
            Some(newest) => {
                lines.extend(newest.latency_report().to_string().lines().map(str::to_owned));
                lines.extend(row.silence().map(|silence| format!("silent for {} s", silence.as_secs())));
            }
            None => lines.push(figures(row)),
        }
    }
    lines
}

/// An object for each participant that is meant.
pub fn objects(domain: &Domain, wanted: Option<&str>) -> Vec<Value> {
    let meant = domain.rows.values().filter(|row| wanted.is_none_or(|wanted| row.is_meant(wanted)));
    meant.map(object).collect()
}

fn object(row: &Row) -> Value {
    let (host, process, pid) = place(&row.about);
    let (rates, newest) = (row.rates(), row.newest.as_ref());
    let (class, longest) = row.longest.clone().unzip();
    json!({
        "kind": "participant",
        "guid": row.about.guid.to_string(),
        "name": row.about.name,
        "host": host,
        "process": process,
        "pid": pid,
        "silent_s": row.silence().map(|silence| silence.as_secs()),
        "steps_per_s": rates.as_ref().map(|rates| rates.steps),
        "busy": rates.as_ref().map(|rates| rates.busy),
        "longest_ns": longest,
        "longest_class": class,
        "bound_ns": newest.and_then(|report| report.classes.first()).map(|of| of.bound_ns),
        "datagrams_in_per_s": rates.as_ref().map(|rates| rates.datagrams_in),
        "datagrams_out_per_s": rates.as_ref().map(|rates| rates.datagrams_out),
        "refused_per_s": rates.as_ref().map(|rates| rates.refused),
        "classes": newest.map(|report| report.classes.iter().map(class_object).collect::<Vec<_>>()),
    })
}

fn class_object(of: &ClassReport) -> Value {
    let spread = |spread: &SpreadReport| {
        json!({
            "p50_ns": spread.p50_ns,
            "p99_ns": spread.p99_ns,
            "p999_ns": spread.p999_ns,
            "longest_ns": spread.longest_ns,
        })
    };
    json!({
        "class": of.class,
        "steps": of.steps,
        "busy_ns": of.busy_ns,
        "runs": spread(&of.running),
        "waits": spread(&of.waiting),
        "bound_ns": of.bound_ns,
    })
}
