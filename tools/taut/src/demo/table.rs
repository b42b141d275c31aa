//! The picture of the demo: a table that is drawn again in its place, or a line now and then where no
//! terminal is.

use std::fmt::Write as _;
use std::io;

use super::peers::Running;
use super::tally::{Origin, Row, Tally};
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
        let figures = figures(shown.tally);
        let Some(picture) = &mut self.picture else {
            return output::line(&format!("{title}  {figures}"));
        };
        let size @ (_, height) = Picture::size();
        let mut lines = vec![title, figures, String::new()];
        let rows = table(shown);
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

/// What has come from everybody, and how fast ours came.
fn figures(tally: &Tally) -> String {
    let lost: u64 = tally.rows.values().map(Row::lost).sum();
    let received: u64 = tally.sources.values().map(|source| source.received).sum();
    let mut figures = format!("received {received}  lost {lost}");
    if let Some(latency) = latency(tally, &Origin::Own) {
        let _ = write!(figures, "  latency {latency}");
    }
    figures
}

/// The heading and a line for each metric of each source.
fn table(shown: &Shown<'_>) -> Vec<String> {
    let seen: Vec<_> = shown.watched.iter().map(|watched| (watched.vendor, watched.seen())).collect();
    let mut heading = format!(
        "{:<11} {:<16} {:>11} {:BAR$} {:>8} {:>5}",
        "from", "metric", "value", "", "received", "lost"
    );
    for (vendor, _) in &seen {
        let _ = write!(heading, " {:>12}", format!("{} sees", vendor.split(' ').next().unwrap_or(vendor)));
    }
    let mut lines = vec![heading];
    let mut rows: Vec<_> = shown.tally.rows.iter().collect();
    rows.sort_by_key(|((origin, _), row)| (origin.clone(), row.order));
    for ((origin, name), row) in rows {
        let mut line = format!(
            "{:<11} {:<16} {:>11} {} {:>8} {:>5}",
            escaped(origin.name()),
            escaped(name),
            value(row.value, &row.unit),
            bar(row),
            row.received,
            row.lost()
        );
        if *origin == Origin::Own {
            for (_, seen) in &seen {
                let text =
                    seen.newest.get(name).map_or_else(|| "-".to_owned(), |newest| value(*newest, &row.unit));
                let _ = write!(line, " {text:>12}");
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
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

fn latency(tally: &Tally, origin: &Origin) -> Option<String> {
    let [p50, p99, max] = tally.latency_ns(origin, QUANTILES)?;
    Some(format!("p50 {}  p99 {}  max {}", time(p50), time(p99), time(max)))
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
            let _ =
                writeln!(text, "latency   {:<22} {latency}", format!("{} to Taut", escaped(origin.name())));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn bars_stay_in_their_width() {
        for (percent, full) in [(0.0, 0), (49.0, 4), (100.0, 8), (250.0, 8), (f64::NAN, 0)] {
            let row = Row { value: percent, unit: "%".to_owned(), order: 0, received: 1, expected: 1 };
            assert_eq!(bar(&row).chars().filter(|c| *c == '█').count(), full, "{percent}");
            assert_eq!(bar(&row).chars().count(), BAR);
        }
    }
}
