//! Times over a run beside their histogram, with the mean and the bound marked; and the tail by rank.

use maud::{Markup, html};

use crate::record::{Record, Slice};
use crate::report::model::main_times;
use crate::report::peers;
use crate::report::scale::{Kind, Scale, log_ends};
use crate::report::svg::{Anchor, Area, Frame, line, n, path, sheet, text, x_axis, y_axis};
use crate::report::units;

/// More slices than this are not told apart on the wide sheet, and the page has many of these charts.
const SLICES: usize = 260;
/// On the narrow sheet.
const SLICES_NARROW: usize = 110;
/// Bars of the histogram over the whole height: thinner ones than 4 pixels are noise.
const BARS: usize = 70;

/// The series of one line; nothing if it has none.
pub(crate) fn draw(record: &Record, subject: &str, frame: Frame) -> Option<Markup> {
    let times = main_times(record)?;
    let last = record.series.last()?;
    let ends = log_ends([times.min as f64, times.max as f64].into_iter())?;
    let height = frame.pick(330.0, 280.0);
    let top = 26.0;
    let histogram = frame.pick(150.0, 70.0);
    let edge = frame.width() - frame.pick(126.0, 62.0);
    let area =
        Area { left: frame.pick(58.0, 50.0), right: edge - histogram - 12.0, top, bottom: height - 40.0 };
    let y = Scale::new(Kind::Log, ends, (area.bottom, area.top));
    let seconds = (last.at_ns as f64 / 1e9).max(1e-3);
    let x = Scale::new(Kind::Linear, (0.0, seconds), (area.left, area.right));
    let beside = Area { left: area.right + 12.0, right: edge, ..area };
    let slices = merged(&record.series, frame.pick(SLICES, SLICES_NARROW));
    let at = |slice: &Slice| x.at(slice.at_ns as f64 / 1e9);
    let upper = slices.iter().map(|slice| (at(slice), y.at(slice.max as f64)));
    let lower = slices.iter().rev().map(|slice| (at(slice), y.at(slice.min as f64)));
    let hero = peers::adapter(&record.peer) == subject;
    let name = peers::name(&record.peer);
    let says = format!(
        "Times of {name} over {seconds:.1} s: mean {}, bound {}.",
        units::time(times.mean as f64),
        units::time(times.max as f64)
    );
    let content = html! {
        (text(0.0, 12.0, Anchor::Start, "", "time of each sample"))
        (text(beside.left, 12.0, Anchor::Start, "", frame.pick("how many, by powers of ten", "how many")))
        (y_axis(Area { right: edge, ..area }, &y, &units::time))
        (x_axis(area, &x, &x.ticks(frame.pick(70.0, 50.0)), &seconds_label))
        g.one.hero[hero].(peers::class(&record.peer)) {
            path.spread d=(path(upper.chain(lower)) + "z") {}
            path.line.thin d=(path(slices.iter().map(|slice| (at(slice), y.at(slice.p50 as f64))))) {}
            (bars(&record.histogram, &y, beside))
            @let max_x = bound_x(record, &x, times.max);
            circle.dot cx=(n(max_x)) cy=(n(y.at(times.max as f64))) r="3.5" {
                title { "the bound: " (units::time(times.max as f64)) ", " (units::time(times.max_at_ns as f64)) " into its round" }
            }
        }
        (level("bound", times.max, &y, area.left, edge, frame))
        (level("mean", times.mean, &y, area.left, edge, frame))
    };
    Some(sheet(frame, height, &says, &content))
}

fn seconds_label(seconds: f64) -> String {
    if seconds == 0.0 { "0".to_string() } else { units::time(seconds * 1e9) }
}

/// A value across both parts, named at the right.
fn level(name: &str, ns: u64, y: &Scale, left: f64, edge: f64, frame: Frame) -> Markup {
    let at = y.at(ns as f64);
    let value = units::time(ns as f64);
    html! {
        (line("bound", (left, at), (edge + 4.0, at)))
        @if frame == Frame::Wide {
            (text(edge + 9.0, at + 4.0, Anchor::Start, "strong", &format!("{name} {value}")))
        } @else {
            (text(edge + 8.0, at - 2.0, Anchor::Start, "", name))
            (text(edge + 8.0, at + 12.0, Anchor::Start, "strong", &value))
        }
    }
}

/// The bound's time is known within its round only; the slice that holds it is known in the whole run.
fn bound_x(record: &Record, x: &Scale, max: u64) -> f64 {
    let slice = record.series.iter().find(|slice| slice.max >= max).or(record.series.last());
    slice.map_or(0.0, |slice| x.at(slice.at_ns as f64 / 1e9))
}

/// Neighbours joined until there are at most `most`: the least of the least, the most of the most.
fn merged(series: &[Slice], most: usize) -> Vec<Slice> {
    let per = series.len().div_ceil(most).max(1);
    let join = |part: &[Slice]| {
        let mut medians: Vec<u64> = part.iter().map(|slice| slice.p50).collect();
        medians.sort_unstable();
        Slice {
            at_ns: part[0].at_ns,
            min: part.iter().map(|slice| slice.min).min().unwrap_or(0),
            p50: medians[medians.len() / 2],
            max: part.iter().map(|slice| slice.max).max().unwrap_or(0),
        }
    };
    series.chunks(per).map(join).collect()
}

/// One path for all bars. Their length is the logarithm of the count: the single outlier must be seen.
fn bars(histogram: &[(u64, u64)], y: &Scale, area: Area) -> Markup {
    let bar = (area.bottom - area.top) / BARS as f64;
    let mut counts = [0u64; BARS];
    for (ns, count) in histogram {
        let at = ((area.bottom - y.at(*ns as f64)) / bar) as usize;
        counts[at.min(BARS - 1)] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(2) as f64;
    let mut d = String::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let length = (1.0 + *count as f64).ln() / (1.0 + most).ln() * (area.right - area.left);
        let low = area.bottom - bar * at as f64;
        d += &format!("M{} {}h{}v{}h-{}z", n(area.left), n(low), n(length), n(1.0 - bar), n(length));
    }
    html! { path.dot d=(d) {} }
}

/// The distribution by rank: for each share of the samples the time that they do not exceed.
pub(crate) fn ranks(histogram: &[(u64, u64)]) -> Vec<(f64, f64)> {
    /// Points for each factor of ten in rarity: the curve looks smooth.
    const PER_DECADE: usize = 14;
    let total: u64 = histogram.iter().map(|cell| cell.1).sum();
    let decades = (total.max(1) as f64).log10();
    let steps = (decades * PER_DECADE as f64).floor() as usize;
    let wanted = (0..=steps).map(|step| 1.0 - 10f64.powf(-(step as f64) / PER_DECADE as f64));
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut cells = histogram.iter();
    let mut current = cells.next();
    let mut below = 0;
    for share in wanted {
        let rank = ((share * total as f64).ceil() as u64).max(1);
        while let Some((_, count)) = current {
            if below + count >= rank {
                break;
            }
            below += count;
            current = cells.next();
        }
        if let Some((ns, _)) = current {
            points.push((share, *ns as f64));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_known_distribution() {
        let points = ranks(&[(10, 900), (50, 90), (70, 9), (99, 1)]);
        assert_eq!(points[0], (0.0, 10.0));
        let at = |share: f64| points.iter().find(|point| (point.0 - share).abs() < 1e-9).unwrap().1;
        assert_eq!((at(0.9), at(0.99), at(0.999)), (10.0, 50.0, 70.0));
        assert!(ranks(&[]).is_empty());
    }

    #[test]
    fn joined_slices_keep_the_outlier() {
        let slice = |n: u64| Slice { at_ns: n, min: 5, p50: 6, max: if n == 77 { 999 } else { 7 } };
        let slices: Vec<Slice> = (0..400).map(slice).collect();
        let few = merged(&slices, 110);
        assert!(few.len() <= 110 && few.iter().any(|slice| slice.max == 999));
        assert_eq!(merged(&slices[..3], 110).len(), 3);
    }
}
