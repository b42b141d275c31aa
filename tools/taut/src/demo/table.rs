//! The picture of the demo: a table that is drawn again in its place, or a line now and then where no
//! terminal is.

use std::fmt::Write as _;
use std::io;

use super::peers::Running;
use super::tally::{Key, Origin, Row, Tally};
use crate::columns::{self, Column, number, text};
use crate::output::{self, escaped};
use crate::picture::Picture;

/// Quantiles of the latency that are shown: the middle, the slow, the slowest.
const QUANTILES: [f64; 3] = [0.5, 0.99, 1.0];
/// The width of a bar.
const BAR: usize = 8;
/// The heading's place in the picture.
const HEADING: usize = 3;
/// Lines of a picture that are no rows of the table.
const FRAME: usize = 6;

/// What a picture shows.
pub struct Shown<'a> {
    pub tally: &'a Tally,
    pub watched: &'a [Running],
}

/// Where the pictures go.
pub struct Screen {
    domain_id: u32,
    seconds: u64,
    /// On a terminal.
    picture: Option<Picture>,
}

impl Screen {
    pub fn new(domain_id: u32, seconds: u64, live: bool) -> Screen {
        Screen { domain_id, seconds, picture: live.then(|| Picture::new(HEADING)) }
    }

    /// Is a table drawn?
    pub fn is_live(&self) -> bool {
        self.picture.is_some()
    }

    /// Draws the next picture, or prints the next line.
    pub fn show(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        let Some(begin) = shown.tally.begin else { return Ok(()) };
        let elapsed = begin.elapsed().as_secs().min(self.seconds);
        let title = self.title(elapsed);
        let Some(picture) = &mut self.picture else {
            return output::line(&format!("{title}  {}", figures(shown.tally, None)));
        };
        let size @ (width, height) = Picture::size();
        let mut lines = vec![title, figures(shown.tally, Some(width)), String::new()];
        let rows = table(shown, width);
        let room = height.saturating_sub(FRAME).max(1);
        let hidden = rows.len().saturating_sub(room + 1);
        lines.extend(rows.into_iter().take(room + 1));
        if hidden > 0 {
            lines.push(format!("… {hidden} more"));
        }
        picture.draw(&lines, size)
    }

    fn title(&self, elapsed: u64) -> String {
        format!("taut demo  domain {}  {elapsed:>2} of {} s", self.domain_id, self.seconds)
    }
}

/// What has come from everybody, and how fast ours came; where there is no room, what was lost and the slowest stay longest.
fn figures(tally: &Tally, room: Option<usize>) -> String {
    // A peer may say what it likes.
    let lost = tally.rows.values().map(Row::lost).fold(0, u64::saturating_add);
    let received: u64 = tally.sources.values().map(|source| source.received).sum();
    let mut parts = vec![(format!("received {received}"), 4), (format!("  lost {lost}"), 0)];
    if let Some([p50, p99, max]) = latency(tally, &Origin::Own) {
        parts.push(("  latency".to_owned(), 1));
        parts.extend([(format!(" {p50}"), 3), (format!("  {p99}"), 2), (format!("  {max}"), 1)]);
    }
    columns::line(&parts, room)
}

/// The columns that there are whoever watches.
const COLUMNS: [Column; 6] = [
    text("from", 11, 2),
    text("metric", 16, 0),
    number("value", 11, 0),
    text("", BAR, 4),
    number("received", 8, 3),
    number("lost", 5, 1),
];

/// What another vendor's subscriber sees.
fn sees(vendor: &str) -> Column {
    let heading = format!("{} sees", vendor.split(' ').next().unwrap_or(vendor));
    Column { heading: heading.into(), ..number("", 12, 5) }
}

/// The heading and a line for each metric of each source.
fn table(shown: &Shown<'_>, width: usize) -> Vec<String> {
    let seen: Vec<_> = shown.watched.iter().map(|watched| (watched.vendor, watched.seen())).collect();
    let columns: Vec<Column> =
        COLUMNS.into_iter().chain(seen.iter().map(|(vendor, _)| sees(vendor))).collect();
    // The first space is that in front of the first column.
    let limit = columns::limit(&columns, Some(width + 1));
    let mut lines = vec![columns::headings(&columns, limit)];
    let mut rows: Vec<_> = shown.tally.rows.iter().collect();
    rows.sort_by_key(|(key, row)| (key.origin.clone(), row.order));
    for (Key { origin, name, .. }, row) in rows {
        let mut cells = vec![
            escaped(origin.name()),
            escaped(name),
            value(row.value, &row.unit),
            bar(row),
            row.received.to_string(),
            row.lost().to_string(),
        ];
        for (_, seen) in seen.iter().filter(|_| *origin == Origin::Own) {
            cells.push(
                seen.newest.get(name).map_or_else(|| "-".to_owned(), |newest| value(*newest, &row.unit)),
            );
        }
        lines.push(columns::aligned(cells.iter().map(String::as_str), &columns, limit));
    }
    lines.iter().map(|line| line[1..].trim_end().to_owned()).collect()
}

/// A value with its unit, short enough for a column.
fn value(value: f64, unit: &str) -> String {
    const STEPS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    match unit {
        "B" => {
            let mut rest = value;
            let mut step = 0;
            while rest >= 1024.0 && step + 1 < STEPS.len() {
                rest /= 1024.0;
                step += 1;
            }
            if step == 0 { format!("{rest:.0} B") } else { format!("{rest:.1} {}", STEPS[step]) }
        }
        "%" => format!("{value:.1} %"),
        "" => format!("{value:.2}"),
        other => format!("{value:.1} {}", escaped(other)),
    }
}

/// A percentage as a bar; blank for everything else.
fn bar(row: &Row) -> String {
    if row.unit != "%" {
        return " ".repeat(BAR);
    }
    let full = ((row.value / 100.0 * BAR as f64).round().clamp(0.0, BAR as f64)) as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

fn latency(tally: &Tally, origin: &Origin) -> Option<[String; 3]> {
    let [p50, p99, max] = tally.latency_ns(origin, QUANTILES)?;
    Some([format!("p50 {}", time(p50)), format!("p99 {}", time(p99)), format!("max {}", time(max))])
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// The delivery between each two, and the latency from each source.
pub fn summary(deliveries: &[(String, u64, u64)], tally: &Tally) -> String {
    let mut text = String::new();
    for (between, sent, received) in deliveries {
        let lost = sent.saturating_sub(*received);
        let _ = writeln!(text, "delivery  {between:<22} sent {sent:>7}  received {received:>7}  lost {lost}");
    }
    for origin in tally.sources.keys() {
        if let Some(latency) = latency(tally, origin) {
            let between = format!("{} to Taut", escaped(origin.name()));
            let _ = writeln!(text, "latency   {between:<22} {}", latency.join("  "));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use taut::Guid;

    use super::*;
    use crate::types::Metric;

    #[test]
    fn values_fit_their_column() {
        assert_eq!(value(23.14, "%"), "23.1 %");
        assert_eq!(value(1023.0, "B"), "1023 B");
        assert_eq!(value(3.5 * 1024.0 * 1024.0 * 1024.0, "B"), "3.5 GiB");
        assert_eq!(value(0.5, ""), "0.50");
        for number in [0.0, 1.0, 1e3, 1e6, 1e9, 1e12, 1e15] {
            assert!(value(number, "B").len() <= 11);
        }
        assert_eq!(time(61_400), "62 µs");
        assert_eq!(time(1_240_000), "1.2 ms");
    }

    #[test]
    fn a_narrow_terminal_has_whole_figures() {
        let mut tally = Tally::default();
        let name = "cpu".to_owned();
        let metric =
            |seq| Metric { name: name.clone(), seq, sent_unix_ns: 0, value: 23.0, unit: "%".to_owned() };
        for (seq, took_ns) in [(0, 71_000), (1, 71_000), (3, 3_900_000)] {
            tally.add(&Origin::Own, Guid::from_bytes([1; 16]), metric(seq), took_ns);
        }
        let all = "received 3  lost 1  latency p50 72 µs  p99 3.9 ms  max 3.9 ms";
        assert_eq!([figures(&tally, None), figures(&tally, Some(all.chars().count()))], [all, all]);
        let shown = Shown { tally: &tally, watched: &[] };
        for (room, line, heading) in [
            (
                60,
                "lost 1  latency p50 72 µs  p99 3.9 ms  max 3.9 ms",
                "from        metric                 value received  lost",
            ),
            (46, "lost 1  latency  p99 3.9 ms  max 3.9 ms", "from        metric                 value  lost"),
            (34, "lost 1  latency  max 3.9 ms", "metric                 value  lost"),
        ] {
            assert_eq!(figures(&tally, Some(room)), line);
            let table = table(&shown, room);
            assert_eq!(table[0], heading);
            assert!(table[1].ends_with(" 1") && table[1].chars().count() <= room, "{table:?}");
        }
    }

    #[test]
    fn whatever_peers_say_there_is_a_sum_of_it() {
        let mut tally = Tally::default();
        for name in ["cpu", "memory"] {
            for seq in [0, u64::MAX] {
                let metric =
                    Metric { name: name.to_owned(), seq, sent_unix_ns: 0, value: 0.0, unit: "%".to_owned() };
                tally.add(&Origin::Other("x".to_owned()), Guid::from_bytes([2; 16]), metric, 1_000);
            }
        }
        assert_eq!(figures(&tally, None), format!("received 4  lost {}", u64::MAX));
    }

    #[test]
    fn bars_stay_in_their_width() {
        for (percent, full) in [(0.0, 0), (49.0, 4), (100.0, 8), (250.0, 8), (f64::NAN, 0)] {
            let unit = "%".to_owned();
            let row = Row { value: percent, unit, order: 0, received: 1, first: 0, expected: 1 };
            assert_eq!(bar(&row).chars().filter(|c| *c == '█').count(), full, "{percent}");
            assert_eq!(bar(&row).chars().count(), BAR);
        }
    }
}
