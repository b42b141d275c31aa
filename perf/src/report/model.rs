//! The lines of a run, sorted into what is shown together.
//!
//! A group is what is comparable: one workload under one set of conditions, of one run; its lines differ by peer and
//! size. The subject is Taut, or without it the first peer that is not the floor.

use crate::record::{Record, SUBSCRIBERS, Times};
use crate::report::{peers, units};

/// What a group's lines have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) workload: String,
    pub(crate) transport: String,
    /// How long it spins, or that it blocks: which way of blocking a peer has is its own affair.
    pub(crate) wait: &'static str,
    pub(crate) pin: String,
    pub(crate) rate_hz: f64,
    pub(crate) qos: String,
    /// Without what is an axis or a row of the chart.
    pub(crate) case: String,
}

/// Lines to be shown together.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) key: Key,
    /// What sets it apart from the other groups of its workload.
    pub(crate) title: String,
    pub(crate) lines: Vec<&'a Record>,
}

impl Key {
    pub(crate) fn of(record: &Record) -> Key {
        let is_axis = |word: &&str| word.split('=').next() == Some(SUBSCRIBERS);
        // The cases of interference are what is compared, and some of them pin or spin.
        let by_case = record.workload == "interference";
        let words = record.case.split_whitespace().filter(|word| !is_axis(word) && !by_case);
        let case: Vec<&str> = words.collect();
        Key {
            workload: record.workload.clone(),
            transport: record.transport.clone(),
            wait: if record.wait == "spin" && !by_case { "spin" } else { "block" },
            pin: if by_case { String::new() } else { record.pin.clone() },
            rate_hz: record.rate_hz,
            qos: record.qos.clone(),
            case: case.join(" "),
        }
    }

    /// The conditions in words, the telling ones first; empty for what goes without saying.
    fn words(&self) -> [String; 7] {
        let pin = match self.pin.as_str() {
            "same" => "both on one core",
            "split" => "a core each",
            "none" => "",
            other => other,
        };
        // The label of an open loop says its period.
        let says_rate = self.rate_hz > 0.0 && !self.case.contains("every");
        let rate =
            if says_rate { format!("{}/s", units::thousands(self.rate_hz as u64)) } else { String::new() };
        let wait = if self.wait == "spin" { "spinning" } else { "" };
        let qos = self.qos.trim_end_matches(" volatile");
        let (reliability, history) = qos.split_once(' ').unwrap_or((qos, ""));
        let transport = self.transport.to_uppercase();
        let transport = if ["THREAD", "INTRA"].contains(&transport.as_str()) {
            self.transport.clone()
        } else {
            transport
        };
        let case = self.case.replace(" us", " µs").replace('=', " ");
        let case = case.replace("fifo inline", "fifo (inline where there is such a mode)");
        [transport, case, pin.into(), wait.into(), rate, reliability.into(), history.replace(':', " ")]
    }
}

/// All lines.
pub(crate) struct Model<'a> {
    /// As they were given.
    pub(crate) records: &'a [Record],
    pub(crate) groups: Vec<Group<'a>>,
    pub(crate) subject: String,
    /// Lines that are not shown, as another run has measured the same.
    pub(crate) left_out: usize,
    /// Charts over time that the page has room for.
    pub(crate) series_most: usize,
}

/// Charts over time weigh 12 kB each: so many let the page of a full run open at once on a phone. Fewer
/// hide a line that somebody looks for.
const SERIES_MOST: usize = 60;

impl<'a> Model<'a> {
    /// Of the lines that count: see [`crate::report::current`].
    pub(crate) fn new(records: &'a [Record]) -> Model<'a> {
        let mut groups: Vec<Group> = Vec::new();
        for record in records {
            let key = Key::of(record);
            let is_of = |group: &&mut Group| group.key == key && group.lines[0].run.id == record.run.id;
            let group = match groups.iter_mut().find(is_of) {
                Some(group) => group,
                None => {
                    groups.push(Group { key, title: String::new(), lines: Vec::new() });
                    groups.last_mut().expect("just pushed")
                }
            };
            group.lines.push(record);
        }
        for group in &mut groups {
            group.lines.sort_by_key(|line| (peers::order(&line.peer), line.size_bytes));
        }
        let subject = subject(records);
        let mut model = Model { records, groups, subject, left_out: 0, series_most: SERIES_MOST };
        model.name_groups();
        model
    }

    /// A group is named by what differs between the groups of its workload, in as few words as tell them
    /// apart.
    fn name_groups(&mut self) {
        let keys: Vec<Key> = self.groups.iter().map(|group| group.key.clone()).collect();
        for group in &mut self.groups {
            let words = group.key.words();
            let others = keys.iter().filter(|key| key.workload == group.key.workload && **key != group.key);
            let others: Vec<[String; 7]> = others.map(Key::words).collect();
            let mut named: Vec<usize> =
                (0..words.len()).filter(|at| others.iter().any(|other| other[*at] != words[*at])).collect();
            let alone =
                |named: &[usize]| !others.iter().any(|other| named.iter().all(|at| other[*at] == words[*at]));
            // From the least telling.
            for at in (0..words.len()).rev() {
                let fewer: Vec<usize> = named.iter().copied().filter(|other| *other != at).collect();
                if fewer.iter().any(|at| !words[*at].is_empty()) && alone(&fewer) {
                    named = fewer;
                }
            }
            let said = |at: &usize| Some(words[*at].as_str()).filter(|word| !word.is_empty());
            let title = named.iter().filter_map(said).collect::<Vec<_>>().join(", ");
            group.title = if title.is_empty() { words[0].clone() } else { title };
            // What another run has of the same stands apart.
            if keys.iter().filter(|key| **key == group.key).count() > 1 {
                group.title += &format!(" ({})", group.label());
            }
        }
    }

    /// The groups of a workload.
    pub(crate) fn of(&self, workload: &str) -> Vec<&Group<'a>> {
        self.groups.iter().filter(|group| group.key.workload == workload).collect()
    }

    pub(crate) fn is_subject(&self, record: &Record) -> bool {
        peers::adapter(&record.peer) == self.subject
    }
}

/// The whole line's name, beside its peer: what must be equal to be the same measurement.
pub(crate) fn same_line(a: &Record, b: &Record) -> bool {
    a.peer == b.peer
        && a.workload == b.workload
        && a.transport == b.transport
        && a.wait == b.wait
        && a.pin == b.pin
        && a.size_bytes == b.size_bytes
        && a.rate_hz == b.rate_hz
        && a.qos == b.qos
        && a.case == b.case
}

pub(crate) fn subject(records: &[Record]) -> String {
    let mut names: Vec<&str> = records.iter().map(|record| peers::adapter(&record.peer)).collect();
    names.sort_by_key(|name| peers::order(name));
    let rival = names.iter().find(|name| **name == "taut" || **name != "floor");
    rival.or(names.first()).map_or_else(String::new, |name| (*name).to_string())
}

impl<'a> Group<'a> {
    /// The conditions that the group shares, as one phrase.
    pub(crate) fn conditions(&self) -> String {
        let words = self.key.words();
        words.iter().filter(|word| !word.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
    }

    /// The processor and the build of its run.
    pub(crate) fn label(&self) -> String {
        self.lines.first().map_or_else(String::new, |line| line.run.label())
    }

    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.lines.iter().map(|line| line.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The lines by peer, and by way of waiting where a peer was measured with two; in the peers' order.
    pub(crate) fn by_peer(&self) -> Vec<(String, Vec<&'a Record>)> {
        let mut all: Vec<(String, Vec<&Record>)> = Vec::new();
        for line in &self.lines {
            let same = |other: &&&Record| {
                other.peer == line.peer && other.case == line.case && other.size_bytes == line.size_bytes
            };
            let two = self.lines.iter().filter(same).any(|other| other.wait != line.wait);
            let name = peers::name(&line.peer);
            let label = if two { format!("{name} {}", line.wait) } else { name };
            match all.iter_mut().find(|(other, _)| *other == label) {
                Some((_, lines)) => lines.push(line),
                None => all.push((label, vec![line])),
            }
        }
        all
    }
}

/// The time that a line is about.
pub(crate) fn main_times(record: &Record) -> Option<&Times> {
    match record.workload.as_str() {
        "write" => record.write_ns.as_ref(),
        "cdr" => record.encode_ns.as_ref(),
        "discovery" => record.matched_ns.as_ref(),
        "bursts" => record.burst_ns.as_ref(),
        "throughput" | "fanout" => record.one_way_ns.as_ref(),
        _ => record.rtt_ns.as_ref().or(record.one_way_ns.as_ref()),
    }
}

/// What a reader must know of a line beside its figures: rounds that failed, and a mode of its case that the peer has
/// not. The floor has no thread but the one that waits, whatever that is called.
pub(crate) fn remark(record: &Record) -> String {
    let mut remarks = Vec::new();
    if record.failed_rounds > 0 {
        remarks.push(format!("{} failed", failed_rounds(record)));
    }
    let asked = record.case.split(' ').any(|word| word == "inline");
    if asked && record.wait != "inline" && peers::adapter(&record.peer) != "floor" && record.rounds > 0 {
        remarks.push(format!("no inline mode, {}", record.wait));
    }
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) }
}

/// How many rounds failed, of how many.
pub(crate) fn failed_rounds(record: &Record) -> String {
    // A flawed round has figures and is among both.
    let places = record.round_values.len() as u32;
    let all = places.max(record.rounds).max(record.failed_rounds);
    format!("{} of {all} rounds", record.failed_rounds)
}

/// Is more better: are the values of its rounds rates.
pub(crate) fn is_rate(record: &Record) -> bool {
    matches!(record.workload.as_str(), "throughput" | "fanout") && record.samples_per_s.is_some()
}

/// The worst and the best round of a line.
pub(crate) fn round_ends(record: &Record) -> Option<(f64, f64)> {
    let ran = record.round_values.iter().copied().filter(|value| *value > 0.0);
    let ends = ran.fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    (ends.1 > 0.0).then_some(ends)
}
