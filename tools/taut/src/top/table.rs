//! What `taut top` shows: lines for people, objects for programs.

use serde_json::{Value, json};
use taut::{ClassReport, SpreadReport};
use taut_perf::words::counted;

use crate::columns::{self, Column, number, text};
use crate::list::{place, title};
use crate::output::{self, escaped};

use super::{Domain, Row};

/// The line of the picture that is the heading.
pub const HEADING: usize = 1;
/// The widest name that is shown whole.
const NAME: usize = 40;
/// The heading of the names.
const HEAD: &str = "participant";

/// What a participant has in these columns, from left to right.
type Cells = [String; 8];

const COLUMNS: [Column; 8] = [
    number("steps/s", 8, 6),
    number("busy", 7, 1),
    number("longest us", 10, 0),
    text("of", 12, 3),
    number("at most us", 10, 0),
    number("in/s", 7, 5),
    number("out/s", 7, 4),
    number("refused/s", 9, 2),
];

/// What a class has where there is no room for all that its participant tells: the bound is the last to go.
const CLASSES: [Column; 7] = [
    text("us", 12, 0),
    number("runs p99", 8, 5),
    number("runs longest", 12, 2),
    number("waits p50", 9, 4),
    number("waits p99", 9, 3),
    number("waits longest", 13, 1),
    number("at most", 9, 0),
];

/// A line for each participant, the busiest first. Where that is wider than `room`, columns are left out, and the headline
/// says so.
pub fn lines(domain: &Domain, room: Option<usize>) -> Vec<String> {
    let mut rows: Vec<&Row> = domain.rows.values().collect();
    let busy = |row: &Row| row.rates().map_or(-1.0, |rates| (rates.busy * 1_000.0).round());
    rows.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    // The columns that do not go need their room more than the end of a name does.
    let most = room.map_or(NAME, |room| room.saturating_sub(columns::width(&COLUMNS, 0)));
    let named = |most| {
        let names: Vec<String> = rows.iter().map(|row| name(row, most)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(HEAD.len());
        (names, width)
    };
    let all = named(NAME).1 + columns::width(&COLUMNS, u8::MAX);
    let is_cut = !rows.is_empty() && room.is_some_and(|room| room < all);
    let (names, width) = named(most.clamp(HEAD.len(), NAME));
    let limit = columns::limit(&COLUMNS, room.map(|room| room.saturating_sub(width)));
    let mut lines = vec![
        headline(domain, is_cut.then_some(all), room),
        format!("{HEAD:width$}{}", columns::headings(&COLUMNS, limit)),
    ];
    for (row, name) in rows.iter().zip(names) {
        let figures = match cells(row) {
            Ok(cells) => columns::aligned(cells.iter().map(String::as_str), &COLUMNS, limit),
            Err(state) => format!(" {state}"),
        };
        lines.push(format!("{name:width$}{figures}").trim_end().to_owned());
    }
    if rows.is_empty() {
        lines.extend(folded(&nobody(domain, None), room));
    }
    lines
}

/// What there is to say where nobody is meant.
pub fn nobody(domain: &Domain, wanted: Option<&str>) -> String {
    match wanted.filter(|_| !domain.rows.is_empty()) {
        Some(wanted) => format!("none of them begins with {wanted}"),
        None => {
            "nobody so far: `taut ls` lists other vendors', `taut doctor` says what is in the way".to_owned()
        }
    }
}

/// `all` are the columns that would show more.
fn headline(domain: &Domain, all: Option<usize>, room: Option<usize>) -> String {
    let others = match domain.others {
        0 => String::new(),
        others => format!(", {others} of other vendors"),
    };
    columns::line(
        &[
            ("taut top".to_owned(), 2),
            (format!("  domain {}", domain.domain_id), 1),
            (format!("  {} of Taut", counted(domain.rows.len(), "participant")), 3),
            (others, 4),
            (all.map_or_else(String::new, |all| format!("  {all} columns show more")), 0),
        ],
        room,
    )
}

fn folded(line: &str, room: Option<usize>) -> Vec<String> {
    output::folded(line, room.unwrap_or(usize::MAX))
}

/// What it calls itself with its process id, and its host, in so many columns.
fn name(row: &Row, most: usize) -> String {
    let host = place(&row.about).0.map(|host| format!(" {}", escaped(host)));
    let name = format!("{}{}", title(&row.about), host.unwrap_or_default());
    if name.chars().count() <= most {
        return name;
    }
    let cut: String = name.chars().take(most - 1).collect();
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

/// Every class of those that are meant. Where that is wider than `room`, columns are left out, and the headline says so.
pub fn details(domain: &Domain, wanted: &str, room: Option<usize>) -> Vec<String> {
    let meant: Vec<&Row> = domain.rows.values().filter(|row| row.is_meant(wanted)).collect();
    let mut lines = Vec::new();
    let mut all = None;
    if meant.is_empty() {
        lines.extend(folded(&nobody(domain, Some(wanted)), room));
    }
    for row in meant {
        lines.push(String::new());
        lines.extend(folded(&format!("{}  {}", name(row, NAME), row.about.guid.prefix), room));
        let Some(newest) = &row.newest else {
            lines.extend(cells(row).err());
            continue;
        };
        let told = newest.latency_report().to_string();
        let width = told.lines().next().map_or(0, |heading| heading.chars().count());
        let (table, rest) = told.rsplit_once('\n').unwrap_or_default();
        if room.is_some_and(|room| room < width) {
            all = Some(width);
            lines.extend(classes(&newest.classes, room));
        } else {
            lines.extend(table.lines().map(str::to_owned));
        }
        lines.extend(folded(rest, room));
        lines.extend(row.silence().map(|silence| format!("silent for {} s", silence.as_secs())));
    }
    lines.insert(0, headline(domain, all, room));
    lines
}

/// The table of classes with as much of it as there is room for.
fn classes(classes: &[ClassReport], room: Option<usize>) -> Vec<String> {
    // The first space is that in front of the first column.
    let limit = columns::limit(&CLASSES, room.map(|room| room + 1));
    let line = |of: &ClassReport| {
        let (runs, waits) = (&of.running, &of.waiting);
        let figures =
            [runs.p99_ns, runs.longest_ns, waits.p50_ns, waits.p99_ns, waits.longest_ns, of.bound_ns];
        let cells: Vec<String> = std::iter::once(escaped(&of.class)).chain(figures.map(us)).collect();
        columns::aligned(cells.iter().map(String::as_str), &CLASSES, limit)
    };
    let lines = std::iter::once(columns::headings(&CLASSES, limit)).chain(classes.iter().map(line));
    lines.map(|line| line[1..].trim_end().to_owned()).collect()
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

    fn width(lines: &[String]) -> usize {
        lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_narrow_terminal_has_whole_columns_and_is_told() {
        let domain = domain(vec![row(1, "pump", Some(report())), row(2, &"long".repeat(9), Some(report()))]);
        let wide = lines(&domain, None);
        assert!(wide[1].ends_with(" refused/s") && !wide[0].contains("columns"), "{wide:?}");
        let all = wide[1].chars().count();
        assert_eq!(lines(&domain, Some(all)), wide);
        let among_others = Domain { others: 12, ..domain };
        for room in 33..all {
            let narrow = lines(&among_others, Some(room));
            assert!(narrow[0].ends_with(&format!("{all} columns show more")), "{narrow:?}");
            assert!(width(&narrow) <= room, "{room}: {narrow:?}");
            assert!(narrow[1].contains(" longest us") && narrow[1].contains(" at most us"), "{narrow:?}");
            assert!(!narrow[1].contains("steps/s"), "{narrow:?}");
        }
        assert!(lines(&among_others, Some(98))[1].ends_with(" refused/s"));
        assert_eq!(
            lines(&among_others, Some(1))[1..],
            lines(&among_others, Some(33))[1..],
            "the least there is"
        );
        assert!(width(&lines(&Domain::default(), Some(60))) <= 60, "it is folded");
    }

    #[test]
    fn the_bound_of_each_class_is_there_however_narrow_it_is() {
        let mut report = report();
        report.classes.iter_mut().for_each(|of| of.bound_ns = 539_500);
        let domain = domain(vec![row(1, "pump", Some(report))]);
        let wide = details(&domain, "pump", None);
        assert!(wide[3].ends_with(" at most") && !wide[0].contains("columns"), "{wide:?}");
        assert_eq!(details(&domain, "pump", Some(88)), wide);
        for room in 26..88 {
            let narrow = details(&domain, "pump", Some(room));
            let heading = narrow.iter().position(|line| line.starts_with("us ")).unwrap();
            assert!(
                narrow[0].ends_with("88 columns show more") && width(&narrow) <= room,
                "{room}: {narrow:?}"
            );
            assert!(narrow[heading].ends_with(" at most"), "{narrow:?}");
            assert!(narrow[heading + 1].ends_with(" 539.5"), "{narrow:?}");
        }
    }

    #[test]
    fn other_vendors_are_counted() {
        let domain = super::Domain { domain_id: 7, others: 2, ..Domain::default() };
        assert_eq!(lines(&domain, None)[0], "taut top  domain 7  0 participants of Taut, 2 of other vendors");
    }
}
