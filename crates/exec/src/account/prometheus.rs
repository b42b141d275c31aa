//! Reports of response times as Prometheus reads them: text format 0.0.4, times in seconds.
//!
//! Times are histograms of the same bounds everywhere, so that those of several participants add up. A participant tells
//! of itself by this, and `taut top` of all that it hears.

use std::fmt::{Display, Write};

use crate::account::latency::{Histogram, JobReport, LatencyReport, Spread};

/// A report, and the labels that tell it from others.
type Labelled<'r> = (&'r str, &'r LatencyReport);

impl LatencyReport {
    /// The report as Prometheus reads it (text format 0.0.4): how long steps ran and waited as histograms, class by class.
    /// *Units*: seconds.
    pub fn prometheus(&self) -> String {
        LatencyReport::prometheus_of(&[("", self)])
    }

    /// The same of several participants, each with the labels that tell it from others, as `host="a",name="b"`: all series
    /// of a metric stand together, as Prometheus asks for. Of a report without histograms there are no series of these.
    pub fn prometheus_of(reports: &[(&str, &LatencyReport)]) -> String {
        let mut out = String::new();
        histograms(&mut out, "taut_step_seconds", "How long steps of the executor ran.", reports, |of| {
            &of.running
        });
        histograms(&mut out, "taut_wait_seconds", "How long they waited before.", reports, |of| &of.waiting);
        let name = "taut_wait_bound_seconds";
        head(&mut out, name, "gauge", "What a step waits at most, by the longest steps so far.");
        for (labels, report) in reports {
            for of in &report.classes {
                series(&mut out, name, &[labels, &class(of)], report.bound(of.class).as_secs_f64());
            }
        }
        let name = "taut_listeners_seconds";
        head(&mut out, name, "gauge", "How long listeners ran at a time, at most.");
        for (labels, report) in reports {
            series(&mut out, name, &[labels], report.listeners.as_secs_f64());
        }
        let name = "taut_steps_ahead";
        head(&mut out, name, "gauge", "Other steps that ran while a critical write waited, at most.");
        for (labels, report) in reports {
            series(&mut out, name, &[labels], report.steps_ahead);
        }
        out
    }
}

fn histograms(
    out: &mut String,
    name: &str,
    help: &str,
    reports: &[Labelled<'_>],
    spread: fn(&JobReport) -> &Spread,
) {
    head(out, name, "histogram", help);
    for (labels, report) in reports {
        for of in &report.classes {
            let Some(Histogram { up_to, count, total }) = spread(of).histogram else { continue };
            let (bucket, class) = (format!("{name}_bucket"), class(of));
            for (bound_ns, times) in Histogram::BOUNDS_NS.iter().zip(up_to) {
                let bound = format!("le=\"{}\"", *bound_ns as f64 / 1e9);
                series(out, &bucket, &[labels, &class, &bound], times);
            }
            series(out, &bucket, &[labels, &class, "le=\"+Inf\""], count);
            series(out, &format!("{name}_sum"), &[labels, &class], total.as_secs_f64());
            series(out, &format!("{name}_count"), &[labels, &class], count);
        }
    }
}

fn class(of: &JobReport) -> String {
    format!("class=\"{}\"", of.class.name())
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn series(out: &mut String, name: &str, labels: &[&str], value: impl Display) {
    let labels: Vec<&str> = labels.iter().copied().filter(|label| !label.is_empty()).collect();
    let _ = match labels.join(",").as_str() {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::jobs::{Accounts, JobClass};

    fn report() -> LatencyReport {
        let us = taut_base::Duration::from_micros;
        let mut accounts = Accounts::default();
        for n in 1..=1_000 {
            accounts.begin_round();
            accounts.note(JobClass::ReceiveUser, (us(n % 10), us(2 * n)), 1.into());
        }
        accounts.note(JobClass::Timers, (us(0), us(5_000)), 1.into());
        accounts.note(JobClass::SendMeta, (us(1), us(300_000)), 1.into());
        accounts.report()
    }

    /// The value of a series.
    fn value(text: &str, series: &str) -> f64 {
        let lines: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' ')).collect();
        assert_eq!(lines.len(), 1, "{series} in\n{text}");
        lines[0].parse().unwrap()
    }

    /// The bounds of a histogram and what is counted up to each, in the order of the text.
    fn buckets(text: &str, name: &str, labels: &str) -> Vec<(f64, f64)> {
        let head = format!("{name}_bucket{{{labels},le=\"");
        let of = |line: &str| {
            let (bound, count) = line.strip_prefix(&head)?.split_once("\"} ").unwrap();
            Some((bound.parse().unwrap(), count.parse().unwrap()))
        };
        text.lines().filter_map(of).collect()
    }

    #[test]
    fn buckets_count_what_is_not_above_their_bounds() {
        let text = report().prometheus();
        for class in JobClass::ALL {
            for name in ["taut_step_seconds", "taut_wait_seconds"] {
                let labels = format!("class=\"{}\"", class.name());
                let buckets = buckets(&text, name, &labels);
                assert_eq!(buckets.len(), Histogram::BOUNDS_NS.len() + 1, "{name} {labels}");
                assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{buckets:?}");
                let count = value(&text, &format!("{name}_count{{{labels}}}"));
                assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{name} {labels}");
            }
        }
        let steps = buckets(&text, "taut_step_seconds", "class=\"receive_user\"");
        // Of 2, 4, ... 2,000 us.
        let exact = [0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 1_000.0];
        for ((bound, count), exact) in steps.iter().zip(exact) {
            assert!(
                *count <= exact && *count >= (exact * 15.0 / 16.0).floor() - 1.0,
                "{bound}: {count}, {exact}"
            );
        }
        let late = buckets(&text, "taut_step_seconds", "class=\"send_meta\"");
        assert_eq!(late[15..], [(0.1, 0.0), (f64::INFINITY, 1.0)], "longer than all bounds");
    }

    #[test]
    fn times_are_told_in_seconds() {
        let text = report().prometheus();
        let near = |series: &str, seconds: f64| (value(&text, series) / seconds - 1.0).abs() < 1e-9;
        assert!(near("taut_step_seconds_sum{class=\"receive_user\"}", 1.001), "{text}");
        assert!(near("taut_wait_seconds_sum{class=\"receive_user\"}", 0.0045), "{text}");
        assert!(near("taut_wait_bound_seconds{class=\"send_user\"}", 0.302), "{text}");
        assert_eq!(value(&text, "taut_step_seconds_count{class=\"receive_user\"}"), 1_000.0);
        assert_eq!(value(&text, "taut_steps_ahead"), 0.0);
        assert!(text.contains("_bucket{class=\"timers\",le=\"0.000001\"} 0\n"), "{text}");
    }

    #[test]
    fn each_line_is_a_series_of_the_metric_above_it() {
        let (one, other) = (report(), Accounts::default().report());
        let text = LatencyReport::prometheus_of(&[("host=\"a\"", &one), ("host=\"b\"", &other)]);
        let (mut metric, mut kind) = ("", "");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                (metric, kind) = rest.split_once(' ').unwrap();
            } else if !line.starts_with("# HELP ") {
                let (series, number) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap();
                assert!(labels.starts_with("host=\"") && labels.ends_with("\"}"), "{line}");
                assert!(number.parse::<f64>().is_ok(), "{line}");
                let part = name.strip_prefix(metric).unwrap_or_else(|| panic!("{line} in {metric}"));
                let parts: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(parts.contains(&part), "{line} in {metric}");
            }
        }
        let count =
            |host| value(&text, &format!("taut_step_seconds_count{{host=\"{host}\",class=\"timers\"}}"));
        assert_eq!((count("a"), count("b")), (1.0, 0.0));
    }

    #[test]
    fn a_report_without_histograms_tells_the_rest() {
        let mut report = report();
        report.classes.iter_mut().for_each(|of| of.running.histogram = None);
        let text = report.prometheus();
        assert!(!text.contains("taut_step_seconds_"), "{text}");
        assert_eq!(value(&text, "taut_wait_seconds_count{class=\"timers\"}"), 1.0);
    }
}
