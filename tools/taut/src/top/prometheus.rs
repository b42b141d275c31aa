//! The reports as Prometheus reads them: text format 0.0.4.
//!
//! What [`taut::LatencyReport::prometheus`] tells of one participant is told here of all, under the same names. All
//! series of a metric stand together, each once: otherwise Prometheus refuses the whole text.

use std::fmt::{Display, Write};

use taut::{JobReport, LatencyReport, ParticipantReport, Spread};

use crate::list::place;

use super::{Domain, Row};

/// A participant whose report is fresh.
struct Answer<'d> {
    /// What tells it from others.
    labels: String,
    report: &'d ParticipantReport,
    /// With our own names of the classes, each once, whatever a peer has sent.
    latency: LatencyReport,
}

/// What is counted in a report, and its unit.
type Count = fn(&ParticipantReport) -> u64;

const COUNTS: [(&str, &str, Count); 8] = [
    ("taut_datagrams_received_total", "Datagrams received.", |of| of.datagrams_in),
    ("taut_received_bytes_total", "Bytes in them.", |of| of.bytes_in),
    ("taut_datagrams_sent_total", "Datagrams sent.", |of| of.datagrams_out),
    ("taut_sent_bytes_total", "Bytes in them.", |of| of.bytes_out),
    ("taut_port_calls_total", "System calls that receive or send.", |of| of.port_calls),
    ("taut_tokens_total", "How often the token was taken.", |of| of.tokens),
    ("taut_tokens_contended_total", "How often it had to be waited for.", |of| of.contended),
    ("taut_refused_total", "Input that was refused, for all reasons together.", |of| of.refused),
];

/// Everything about the participants that are meant. Of one that is silent only that it is.
pub fn text(domain: &Domain, wanted: Option<&str>) -> String {
    let meant = || domain.rows.values().filter(|row| wanted.is_none_or(|wanted| row.is_meant(wanted)));
    let answers: Vec<Answer> = meant().filter_map(Answer::new).collect();
    let mut out = String::new();
    head(&mut out, "taut_reports", "gauge", "1 if the participant reports, 0 if it is silent.");
    for row in meant() {
        series(&mut out, "taut_reports", &labels(row), "", u8::from(Answer::new(row).is_some()));
    }
    head(&mut out, "taut_step_seconds", "summary", "How long steps of the executor ran.");
    for (answer, of) in classes(&answers) {
        quantiles(&mut out, "taut_step_seconds", answer, of, &of.running);
        let class = class_label(of);
        series(&mut out, "taut_step_seconds_sum", &answer.labels, &class, of.busy.as_secs_f64());
    }
    head(&mut out, "taut_wait_seconds", "summary", "How long they waited before.");
    for (answer, of) in classes(&answers) {
        quantiles(&mut out, "taut_wait_seconds", answer, of, &of.waiting);
    }
    let help = "What a step waits at most, by the longest steps so far.";
    head(&mut out, "taut_wait_bound_seconds", "gauge", help);
    for (answer, of) in classes(&answers) {
        let bound = answer.latency.bound(of.class).as_secs_f64();
        series(&mut out, "taut_wait_bound_seconds", &answer.labels, &class_label(of), bound);
    }
    head(&mut out, "taut_steps_ahead", "gauge", "Other steps that ran while a write waited, at most.");
    for answer in &answers {
        series(&mut out, "taut_steps_ahead", &answer.labels, "", answer.latency.steps_ahead);
    }
    for (name, help, count) in COUNTS {
        head(&mut out, name, "counter", help);
        for answer in &answers {
            series(&mut out, name, &answer.labels, "", count(answer.report));
        }
    }
    out
}

impl<'d> Answer<'d> {
    fn new(row: &'d Row) -> Option<Answer<'d>> {
        let report = row.newest.as_ref().filter(|_| row.silence().is_none())?;
        Some(Answer { labels: labels(row), report, latency: report.latency_report() })
    }
}

fn classes<'a>(answers: &'a [Answer<'_>]) -> impl Iterator<Item = (&'a Answer<'a>, &'a JobReport)> {
    answers.iter().flat_map(|answer| answer.latency.classes.iter().map(move |of| (answer, of)))
}

fn labels(row: &Row) -> String {
    let host = place(&row.about).0.unwrap_or_default();
    let of =
        [("participant", row.about.guid.to_string().as_str()), ("name", &row.about.name), ("host", host)]
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    of.join(",")
}

/// A value of a label, which may be what a peer likes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn class_label(of: &JobReport) -> String {
    format!(",class=\"{}\"", of.class.name())
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn series(out: &mut String, name: &str, labels: &str, more: &str, value: impl Display) {
    let _ = writeln!(out, "{name}{{{labels}{more}}} {value}");
}

fn quantiles(out: &mut String, name: &str, answer: &Answer<'_>, of: &JobReport, spread: &Spread) {
    let class = class_label(of);
    for (quantile, time) in [("0.5", spread.p50), ("0.99", spread.p99), ("0.999", spread.p999)] {
        let more = format!("{class},quantile=\"{quantile}\"");
        series(out, name, &answer.labels, &more, time.as_secs_f64());
    }
    series(out, &format!("{name}_count"), &answer.labels, &class, of.steps);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Instant;

    use taut::{ClassReport, Duration, Guid, JobClass, ParticipantSummary, SpreadReport, VendorId};

    use super::super::SILENT;
    use super::*;

    fn row(number: u8, name: &str, report: Option<ParticipantReport>) -> Row {
        let mut row = Row::new(ParticipantSummary {
            guid: Guid::from_bytes([number; 16]),
            vendor: VendorId::UNKNOWN,
            name: name.into(),
            properties: vec![("taut.host".into(), format!("host{number}"))],
            user_data: Vec::new(),
            unicast: Vec::new(),
            multicast: Vec::new(),
            metatraffic: Vec::new(),
            lease_duration: Duration::from_secs(100),
            own: false,
        });
        report.into_iter().for_each(|report| row.note(report));
        row
    }

    fn report() -> ParticipantReport {
        let spread = SpreadReport { p50_ns: 1_000, p99_ns: 2_000, p999_ns: 3_000, longest_ns: 4_000 };
        let class = |class: &JobClass| ClassReport {
            class: class.name().into(),
            steps: 10,
            busy_ns: 12_000,
            waiting: spread,
            running: spread,
            ..ClassReport::default()
        };
        let classes = JobClass::ALL.iter().map(class).collect();
        ParticipantReport { classes, datagrams_in: 7, steps_ahead: 1, ..ParticipantReport::default() }
    }

    fn domain(rows: Vec<Row>) -> Domain {
        let rows = rows.into_iter().map(|row| (row.about.guid.to_bytes(), row)).collect();
        Domain { rows, ..Domain::default() }
    }

    #[test]
    fn a_participant_is_told_of_as_it_tells_of_itself() {
        let text = text(&domain(vec![row(1, "pump", Some(report()))]), None);
        let labels = labels(&row(1, "pump", None));
        let ours = text.replace(&format!("{{{labels},"), "{").replace(&format!("{{{labels}}}"), "");
        let ours: HashSet<&str> = ours.lines().collect();
        for line in report().latency_report().prometheus().lines() {
            assert!(ours.contains(line), "{line} is not in\n{text}");
        }
        assert!(ours.contains("taut_step_seconds_sum{class=\"timers\"} 0.000012"), "{text}");
        assert!(ours.contains("taut_datagrams_received_total 7"), "{text}");
    }

    #[test]
    fn a_metric_stands_together_and_a_series_once() {
        let mut strange = report();
        let twice = strange.classes[0].clone();
        strange.classes.extend([twice, ClassReport { class: "new".into(), ..ClassReport::default() }]);
        let text = text(&domain(vec![row(1, "a", Some(report())), row(2, "b", Some(strange))]), None);
        let (mut told, mut seen) = (HashSet::new(), HashSet::new());
        let mut metric = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                metric = rest.split(' ').next().unwrap();
                assert!(told.insert(metric), "{metric} twice");
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(metric) && value.parse::<f64>().is_ok(), "{line} in {metric}");
                assert!(seen.insert(series), "{series} twice");
            }
        }
        assert_eq!(seen.len() % 2, 0, "as much of the one as of the other");
    }

    #[test]
    fn who_is_silent_is_told_of_as_silent_only() {
        let mut stopped = row(3, "stopped", Some(report()));
        stopped.heard = Instant::now().checked_sub(SILENT);
        let rows = vec![row(1, "a\"b\\\nc", Some(report())), row(2, "silent", None), stopped];
        let text = text(&domain(rows), None);
        let of = |number: &str| text.lines().filter(|line| line.contains(number)).collect::<Vec<_>>();
        for name in ["name=\"silent\"", "name=\"stopped\""] {
            let told = of(name);
            let is_only = told.len() == 1 && told[0].starts_with("taut_reports{") && told[0].ends_with(" 0");
            assert!(is_only, "{text}");
        }
        let other = of(",name=\"a\\\"b\\\\\\nc\",host=\"host1\"");
        assert!(other.len() > 60 && other[0].ends_with("host=\"host1\"} 1"), "{text}");
        assert!(!super::text(&domain(vec![row(1, "a", Some(report()))]), Some("b")).contains('{'));
    }
}
