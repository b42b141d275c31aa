//! What `taut top` shows: lines for people, objects for programs.

use serde_json::{Value, json};
use taut::{ClassReport, SpreadReport};
use taut_perf::words::counted;

use crate::list::{place, title};
use crate::output::escaped;

use super::{Domain, Row};

/// The line of the picture that is the heading.
pub const HEADING: usize = 1;
/// The widest name that is shown whole.
const NAME: usize = 40;

/// What there is to say of a domain without participants of Taut.
const EMPTY: &str = "nobody so far: `taut ls` lists other vendors', `taut doctor` says what is in the way";

/// A column behind the name.
struct Column {
    heading: &'static str,
    width: usize,
    /// Is it text, and not a number?
    text: bool,
    /// Where there is no room, the highest goes first; none of 0 does.
    goes: u8,
}

/// What a participant has in these columns, from left to right.
type Cells = [String; 8];

const COLUMNS: [Column; 8] = [
    Column { heading: "steps/s", width: 8, text: false, goes: 6 },
    Column { heading: "busy", width: 7, text: false, goes: 1 },
    Column { heading: "longest us", width: 10, text: false, goes: 0 },
    Column { heading: "of", width: 12, text: true, goes: 3 },
    Column { heading: "at most us", width: 10, text: false, goes: 0 },
    Column { heading: "in/s", width: 7, text: false, goes: 5 },
    Column { heading: "out/s", width: 7, text: false, goes: 4 },
    Column { heading: "refused/s", width: 9, text: false, goes: 2 },
];

/// How many columns of a terminal a line takes with those that go after `limit`.
fn columns(name: usize, limit: u8) -> usize {
    name + COLUMNS.iter().filter(|column| column.goes <= limit).map(|column| 1 + column.width).sum::<usize>()
}

/// A line for each participant, the busiest first. Where that is wider than `room`, columns are left out, and the headline
/// says so.
pub fn lines(domain: &Domain, room: Option<usize>) -> Vec<String> {
    let mut rows: Vec<&Row> = domain.rows.values().collect();
    let busy = |row: &Row| row.rates().map_or(-1.0, |rates| (rates.busy * 1_000.0).round());
    rows.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    let names: Vec<String> = rows.iter().map(|row| name(row)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("participant".len());
    let all = COLUMNS.len() as u8;
    let fits = |limit: &u8| room.is_none_or(|room| columns(width, *limit) <= room);
    let limit = (0..=all).rev().find(fits).unwrap_or(0);
    let is_cut = !rows.is_empty() && columns(width, limit) < columns(width, all);
    let hint = if is_cut { format!("  {} columns show more", columns(width, all)) } else { String::new() };
    let mut headline = headline(domain, rows.len()) + &others(domain) + &hint;
    if is_cut && room.is_some_and(|room| headline.chars().count() > room) {
        headline = self::headline(domain, rows.len()) + &hint;
    }
    let headings = COLUMNS.each_ref().map(|column| column.heading.to_owned());
    let mut lines = vec![headline, format!("{:width$}{}", "participant", aligned(&headings, limit))];
    for (row, name) in rows.iter().zip(names) {
        let figures = cells(row).map_or_else(|state| format!(" {state}"), |cells| aligned(&cells, limit));
        lines.push(format!("{name:width$}{figures}").trim_end().to_owned());
    }
    if rows.is_empty() {
        lines.push(EMPTY.to_owned());
    }
    lines
}

fn aligned(cells: &Cells, limit: u8) -> String {
    let mut line = String::new();
    for (cell, Column { width, text, .. }) in
        cells.iter().zip(&COLUMNS).filter(|(_, column)| column.goes <= limit)
    {
        let (cell, width) = (cell.as_str(), *width);
        line.push_str(&if *text { format!(" {cell:<width$}") } else { format!(" {cell:>width$}") });
    }
    line
}

fn headline(domain: &Domain, count: usize) -> String {
    format!("taut top  domain {}  {} of Taut", domain.domain_id, counted(count, "participant"))
}

fn others(domain: &Domain) -> String {
    match domain.others {
        0 => String::new(),
        others => format!(", {others} of other vendors"),
    }
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

/// What is in its columns. *Errors*: why there is nothing.
fn cells(row: &Row) -> Result<Cells, String> {
    let silence = row.silence().map(|silence| format!("silent for {} s", silence.as_secs()));
    let Some(newest) = &row.newest else {
        return Err(silence.map_or_else(|| "no report yet".into(), |_| "does not report".into()));
    };
    if let Some(silence) = silence {
        return Err(silence);
    }
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    let rates = row.rates();
    let of = |part: fn(&super::Rates) -> f64| rate(rates.as_ref().map(part));
    let busy = rates.as_ref().map_or_else(|| "-".to_owned(), |rates| format!("{:.1} %", rates.busy * 100.0));
    let (class, longest) = row.longest.clone().unwrap_or_default();
    let bound = newest.classes.first().map_or(0, |of| of.bound_ns);
    Ok([
        of(|rates| rates.steps),
        busy,
        us(longest),
        escaped(&class),
        us(bound),
        of(|rates| rates.datagrams_in),
        of(|rates| rates.datagrams_out),
        of(|rates| rates.refused),
    ])
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
            None => lines.extend(cells(row).err()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::prometheus::tests::{domain, report, row};

    #[test]
    fn a_narrow_terminal_has_whole_columns_and_is_told() {
        let domain = domain(vec![row(1, "pump", Some(report()))]);
        let wide = lines(&domain, None);
        assert!(wide[1].ends_with(" refused/s") && !wide[0].contains("columns"), "{wide:?}");
        let all = wide[1].chars().count();
        assert_eq!(lines(&domain, Some(all)), wide);
        for room in 60..all {
            let narrow = lines(&domain, Some(room));
            assert!(narrow[0].ends_with(&format!("  {all} columns show more")), "{narrow:?}");
            assert!(narrow[1..].iter().all(|line| line.chars().count() <= room), "{room}: {narrow:?}");
            assert!(narrow[1].contains(" longest us") && narrow[1].contains(" at most us"), "{narrow:?}");
            assert!(!narrow[1].contains("steps/s"), "{narrow:?}");
        }
        assert!(lines(&domain, Some(80))[1].ends_with(" refused/s"));
        assert_eq!(lines(&domain, Some(1)), lines(&domain, Some(30)), "the least there is");
        let among_others = Domain { others: 12, ..domain };
        for room in [70, 80, 90] {
            let headline = &lines(&among_others, Some(room))[0];
            assert!(headline.ends_with(" show more") && headline.chars().count() <= room, "{headline}");
        }
    }

    #[test]
    fn other_vendors_are_counted() {
        let domain = super::Domain { domain_id: 7, others: 2, ..Domain::default() };
        assert_eq!(lines(&domain, None)[0], "taut top  domain 7  0 participants of Taut, 2 of other vendors");
    }
}
