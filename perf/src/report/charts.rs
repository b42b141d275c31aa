//! From groups of lines to charts: what is on which axis, and what is said about each point.

use maud::Markup;

use crate::record::{Outcome, Record, Times};
use crate::report::gains::Gain;
use crate::report::lines::{Line, LineChart, Point};
use crate::report::model::{Group, Model, main_times, remark};
use crate::report::peers;
use crate::report::rows::{Row, RowChart, Value};
use crate::report::scale::Kind;
use crate::report::series;
use crate::report::svg::Frame;
use crate::report::units::{bytes, percent, rate, size, size_tick, time, times};

/// Names of points in tooltips, and of the ends of lines.
fn say(label: &str, what: &str, t: &Times) -> String {
    let [p50, p99, max] = [t.p50, t.p99, t.max].map(|ns| time(ns as f64));
    format!("{label}, {what}: p50 {p50}, p99 {p99}, max {max}")
}

fn ran<'a>(lines: &[&'a Record]) -> Vec<&'a Record> {
    let mut lines: Vec<&Record> = lines.iter().copied().filter(|line| line.outcome == Outcome::Ok).collect();
    lines.sort_by_key(|line| line.size_bytes);
    lines
}

/// Median time against size; the band goes to the 99th percentile.
pub(crate) fn time_by_size(model: &Model, group: &Group, frame: Frame) -> Markup {
    let point = |label: &str, line: &Record| {
        let t = main_times(line)?;
        Some(Point {
            x: line.size_bytes as f64,
            y: t.p50 as f64,
            band: Some((t.p50 as f64, t.p99 as f64)),
            title: say(label, &size(line.size_bytes), t),
        })
    };
    let lines = lines_of(group, point);
    LineChart {
        says: format!("{} against size, {}", group.key.workload, group.conditions()),
        subject: &model.subject,
        x: Kind::Log,
        y: Kind::Log,
        x_title: "size of a sample in bytes",
        y_title: "median time; the band reaches to p99",
        x_label: &size_tick,
        y_label: &time,
        x_measured: true,
        marks: true,
        ends: None,
        lines,
    }
    .draw(frame)
}

fn lines_of(group: &Group, point: impl Fn(&str, &Record) -> Option<Point>) -> Vec<Line> {
    let all = group.by_peer();
    let line = |(label, lines): &(String, Vec<&Record>)| Line {
        peer: lines[0].peer.clone(),
        label: label.clone(),
        points: ran(lines).into_iter().filter_map(|line| point(label, line)).collect(),
    };
    all.iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// Bytes per second against size: samples per second would hide the large sizes.
pub(crate) fn rate_by_size(model: &Model, group: &Group, frame: Frame) -> Markup {
    let point = |label: &str, line: &Record| {
        let (samples, bytes_per_s) = (line.samples_per_s?, line.bytes_per_s?);
        let share = 100.0 * line.loss();
        let ends = crate::report::model::round_ends(line);
        let scale = bytes_per_s / samples.max(f64::MIN_POSITIVE);
        (samples > 0.0).then(|| Point {
            x: line.size_bytes as f64,
            y: bytes_per_s,
            band: ends.map(|(low, high)| (low * scale, high * scale)),
            title: format!(
                "{label}, {}: {}, {}/s, {share:.2} % lost",
                size(line.size_bytes),
                rate(samples),
                bytes(bytes_per_s)
            ),
        })
    };
    LineChart {
        says: format!("throughput against size, {}", group.conditions()),
        subject: &model.subject,
        x: Kind::Log,
        y: Kind::Log,
        x_title: "size of a sample in bytes",
        y_title: "received per second; band: all rounds",
        x_label: &size_tick,
        y_label: &|value| format!("{}/s", bytes(value)),
        x_measured: true,
        marks: true,
        ends: None,
        lines: lines_of(group, point),
    }
    .draw(frame)
}

/// What each subscriber receives against their number.
pub(crate) fn fanout(model: &Model, group: &Group, ends: Option<(f64, f64)>) -> Markup {
    let point = |label: &str, line: &Record| {
        let (count, samples) = (line.subscribers()? as f64, line.samples_per_s?);
        (samples > 0.0).then(|| Point {
            x: count,
            y: samples,
            band: None,
            title: format!(
                "{label}, {count} subscribers: {} each, {:.2} % lost",
                rate(samples),
                100.0 * line.loss()
            ),
        })
    };
    let mut lines = lines_of(group, point);
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    LineChart {
        says: format!("samples per second against subscribers, {}", group.conditions()),
        subject: &model.subject,
        x: Kind::Log,
        y: Kind::Log,
        x_title: "subscribers",
        y_title: "received by each subscriber",
        x_label: &|count| format!("{count:.0}"),
        y_label: &rate,
        x_measured: true,
        marks: true,
        ends,
        lines,
    }
    .draw(Frame::Narrow)
}

/// The distribution by rank, of one size.
pub(crate) fn tail(model: &Model, group: &Group, bytes: u64, frame: Frame) -> Option<Markup> {
    let all = group.by_peer();
    let curve = |(label, lines): &(String, Vec<&Record>)| {
        let line = ran(lines).into_iter().find(|line| line.size_bytes == bytes)?;
        let place = |(share, ns): (f64, f64)| Point { x: share, y: ns, band: None, title: String::new() };
        let points: Vec<Point> = series::ranks(&line.histogram).into_iter().map(place).collect();
        (points.len() > 1).then(|| Line { peer: line.peer.clone(), label: label.clone(), points })
    };
    let lines: Vec<Line> = all.iter().filter_map(curve).collect();
    if lines.is_empty() {
        return None;
    }
    let chart = LineChart {
        says: format!("Distribution of times by rank, {}, {}", size(bytes), group.conditions()),
        subject: &model.subject,
        x: Kind::Tail,
        y: Kind::Log,
        x_title: "this share of all samples …",
        y_title: "… takes no longer than",
        x_label: &share,
        y_label: &time,
        x_measured: false,
        marks: false,
        ends: None,
        lines,
    };
    Some(chart.draw(frame))
}

fn share(share: f64) -> String {
    let nines = -(1.0 - share).log10().round() as usize;
    match nines {
        0 => "0 %".to_string(),
        _ => format!("{:.*} %", nines.saturating_sub(2), 100.0 * share),
    }
}

/// Median and 99th percentile of one size or case, as bars. Who failed says why; who has no such path is
/// left out, for it is no result.
pub(crate) fn time_bars<'a>(model: &'a Model, title: String, lines: &[&Record]) -> RowChart<'a> {
    let row = |line: &&Record| {
        let t = main_times(line).filter(|_| line.outcome == Outcome::Ok);
        let label = peers::name(&line.peer);
        let (value, figures, title) = match (t, &line.outcome) {
            (Some(t), _) => (
                Value::Bar {
                    value: t.p50 as f64,
                    tail: (line.workload != "discovery").then_some(t.p99 as f64),
                },
                vec![time(t.p50 as f64), second_figure(line, t)],
                say(&label, &size(line.size_bytes), t) + &remark(line),
            ),
            (None, Outcome::Absent(why) | Outcome::Failed(why)) => {
                (Value::Nothing(why.clone()), Vec::new(), why.clone())
            }
            (None, Outcome::Ok) => (Value::Nothing("no times".to_string()), Vec::new(), String::new()),
        };
        Row { peer: line.peer.clone(), label, value, figures, title }
    };
    let discovery = lines.first().is_some_and(|line| line.workload == "discovery");
    RowChart {
        says: title.clone(),
        title: String::new(),
        subject: &model.subject,
        heads: if discovery { vec!["matched", "sent"] } else { vec!["p50", "p99"] },
        rows: lines.iter().filter(|line| !matches!(line.outcome, Outcome::Absent(_))).map(row).collect(),
        ends: None,
    }
}

/// The one chart that says most, with its title: round trips of small samples over UDP; on one core if
/// that was measured, for there a wake-up costs least and the software's path shows.
pub(crate) fn headline<'a>(model: &'a Model) -> Option<(String, RowChart<'a>)> {
    let groups = model.of("latency");
    let ran = |group: &Group| group.lines.iter().any(|line| line.outcome == Outcome::Ok);
    let closed =
        groups.iter().filter(|group| group.key.rate_hz == 0.0 && group.key.wait == "block" && ran(group));
    let group = closed.min_by_key(|group| (group.key.transport != "udp", group.key.pin != "same"))?;
    let least = *group.sizes().first()?;
    let lines: Vec<&Record> = group.lines.iter().copied().filter(|line| line.size_bytes == least).collect();
    let pin = if group.key.pin == "same" { "both processes on one core" } else { "two processes" };
    let transport = group.key.transport.to_uppercase();
    let title = format!("Round trip of {} over {transport}, {pin} ({})", size(least), group.label());
    let chart = time_bars(model, title.clone(), &lines);
    Some((title, chart))
}

fn second_figure(line: &Record, t: &Times) -> String {
    match line.workload.as_str() {
        "discovery" => line.network_bytes.map(|count| bytes(count as f64)).unwrap_or_default(),
        _ => time(t.p99 as f64),
    }
}

/// Gains over each peer in one line, as bars around 1.
pub(crate) fn gain_bars(model: &Model, gains: &[&Gain]) -> Markup {
    let row = |gain: &&Gain| Row {
        peer: gain.to.to_string(),
        label: match gain.loss.1 {
            0.0 => peers::name(gain.to),
            theirs => format!("{}, {} lost", peers::name(gain.to), percent(theirs)),
        },
        value: Value::Gain { value: gain.median, interval: gain.interval },
        figures: vec![times(gain.median)],
        title: crate::report::tables::tooltip(gain),
    };
    let chart = RowChart {
        says: "Gains over each peer".to_string(),
        title: String::new(),
        subject: &model.subject,
        heads: vec!["median"],
        rows: gains.iter().map(row).collect(),
        ends: None,
    };
    chart.draw(Frame::Narrow, 0.0)
}

/// For one peer, what each mitigation leaves of the tail.
pub(crate) fn interference(model: &Model, lines: &[&Record], ends: Option<(f64, f64)>) -> Markup {
    let row = |line: &&Record| {
        let label = if line.case.is_empty() { "quiet".to_string() } else { line.case.clone() };
        let t = main_times(line).filter(|_| line.outcome == Outcome::Ok);
        let (value, figures, title) = match (t, &line.outcome) {
            (Some(t), _) => (
                Value::Span { p50: t.p50 as f64, p99: t.p99 as f64, max: t.max as f64 },
                vec![time(t.p99 as f64), time(t.max as f64)],
                say(&peers::name(&line.peer), &label, t)
                    + &line.flood_per_s.map_or(String::new(), |flood| format!(", flood of {}", rate(flood)))
                    + &remark(line),
            ),
            (None, Outcome::Absent(why) | Outcome::Failed(why)) => {
                (Value::Nothing(why.clone()), Vec::new(), why.clone())
            }
            (None, Outcome::Ok) => (Value::Nothing("no times".to_string()), Vec::new(), String::new()),
        };
        Row { peer: line.peer.clone(), label, value, figures, title }
    };
    let chart = RowChart {
        says: "Median, 99th percentile and maximum for each mitigation".to_string(),
        title: String::new(),
        subject: &model.subject,
        heads: vec!["p99", "max"],
        rows: lines.iter().map(row).collect(),
        ends,
    };
    chart.draw(Frame::Narrow, 0.0)
}

/// Memory of both processes over the seconds of a soak.
pub(crate) fn soak(model: &Model, group: &Group, frame: Frame) -> Markup {
    let all = group.by_peer();
    let line = |(label, lines): &(String, Vec<&Record>)| {
        let steps = lines.iter().flat_map(|line| line.memory.iter());
        let place = |step: &crate::record::Memory| {
            let second = step.entity.strip_prefix("t=")?.parse().ok()?;
            Some(Point { x: second, y: step.bytes_each as f64, band: None, title: String::new() })
        };
        Line { peer: lines[0].peer.clone(), label: label.clone(), points: steps.filter_map(place).collect() }
    };
    LineChart {
        says: format!("Memory over time, {}", group.conditions()),
        subject: &model.subject,
        x: Kind::Linear,
        y: Kind::Linear,
        x_title: "since the start",
        y_title: "memory of both processes",
        x_label: &|second| format!("{second:.0} s"),
        y_label: &bytes,
        x_measured: false,
        marks: false,
        ends: None,
        lines: all.iter().map(line).collect(),
    }
    .draw(frame)
}
