//! The reports as Prometheus reads them: text format 0.0.4.
//!
//! What [`LatencyReport::prometheus`] tells of one participant is told here of all, and by the same code. All series of
//! a metric stand together, each once: otherwise Prometheus refuses the whole text.

use std::fmt::{Display, Write};

use taut::{LatencyReport, ParticipantReport};

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
        series(&mut out, "taut_reports", &labels(row), u8::from(Answer::new(row).is_some()));
    }
    let times: Vec<_> = answers.iter().map(|answer| (answer.labels.as_str(), &answer.latency)).collect();
    out.push_str(&LatencyReport::prometheus_of(&times));
    for (name, help, count) in COUNTS {
        head(&mut out, name, "counter", help);
        for answer in &answers {
            series(&mut out, name, &answer.labels, count(answer.report));
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

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn series(out: &mut String, name: &str, labels: &str, value: impl Display) {
    let _ = writeln!(out, "{name}{{{labels}}} {value}");
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;
    use std::time::Instant;

    use taut::{
        ClassReport, Duration, Guid, HistogramReport, JobClass, ParticipantSummary, SpreadReport, VendorId,
    };

    use super::super::SILENT;
    use super::*;

    pub fn row(number: u8, name: &str, report: Option<ParticipantReport>) -> Row {
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

    pub fn report() -> ParticipantReport {
        let spread = SpreadReport { p50_ns: 1_000, p99_ns: 2_000, p999_ns: 3_000, longest_ns: 4_000 };
        let class = |class: &JobClass| ClassReport {
            class: class.name().into(),
            steps: 10,
            busy_ns: 12_000,
            waiting: spread,
            running: spread,
            ..ClassReport::default()
        };
        let histogram = |class: &JobClass| HistogramReport {
            class: class.name().into(),
            waited_ns: 13_000,
            waiting: [10; 16],
            running: [&[0, 3][..], &[10; 14]].concat().try_into().unwrap(),
        };
        ParticipantReport {
            classes: JobClass::ALL.iter().map(class).collect(),
            datagrams_in: 7,
            steps_ahead: 1,
            histograms: JobClass::ALL.iter().map(histogram).collect(),
            ..ParticipantReport::default()
        }
    }

    pub fn domain(rows: Vec<Row>) -> Domain {
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
        for line in [
            "taut_step_seconds_sum{class=\"timers\"} 0.000012",
            "taut_wait_seconds_sum{class=\"timers\"} 0.000013",
            "taut_step_seconds_bucket{class=\"timers\",le=\"0.000001\"} 0",
            "taut_step_seconds_bucket{class=\"timers\",le=\"0.000002\"} 3",
            "taut_step_seconds_bucket{class=\"timers\",le=\"+Inf\"} 10",
            "taut_step_seconds_count{class=\"timers\"} 10",
        ] {
            assert!(ours.contains(line), "{line} is not in\n{text}");
        }
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
    fn counts_that_a_peer_has_made_up_are_a_histogram_all_the_same() {
        let mut strange = report();
        strange.histograms[0].running = [&[u64::MAX, 0, 7][..], &[3; 13]].concat().try_into().unwrap();
        strange.histograms[1].running = [&[4, 0, 6][..], &[5; 13]].concat().try_into().unwrap();
        strange.histograms.truncate(2);
        let text = text(&domain(vec![row(1, "a", Some(strange))]), None);
        let of = |class: JobClass| {
            let of_class = format!("class=\"{}\",le=", class.name());
            let lines = text.lines().filter(|line| line.starts_with("taut_step_seconds_bucket{"));
            let values =
                lines.filter(|line| line.contains(&of_class)).map(|line| line.rsplit_once(' ').unwrap().1);
            values.map(|value| value.parse().unwrap()).collect::<Vec<u64>>()
        };
        assert_eq!(of(JobClass::Writes), [10; 17]);
        assert_eq!(of(JobClass::Calls), [&[4, 4][..], &[6; 14], &[10]].concat());
        assert!(of(JobClass::Timers).is_empty(), "nothing was told of their steps");
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
