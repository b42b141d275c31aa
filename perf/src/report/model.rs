//! The lines of a run, sorted into what is shown together, and how the subject stands to the others.
//!
//! A group is what is comparable: one workload under one set of conditions; its lines differ by peer and
//! size. The subject is Taut, or without it the first peer that is not the floor.

use crate::record::{MEDIAN_SUBSCRIBER, Outcome, Ratio, Record, SUBSCRIBERS, Times};
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
            let group = match groups.iter_mut().find(|group| group.key == key) {
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
        "throughput" | "fanout" => record.one_way_ns.as_ref(),
        _ => record.rtt_ns.as_ref().or(record.one_way_ns.as_ref()),
    }
}

/// The floor that hands the kernel many datagrams with one call: the limit of rates over UDP.
pub(crate) const FLOOR_OF_RATES: &str = "floor:gso";

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

/// How the subject stands to another peer. Above 1 it is ahead, whether times or rates are compared.
#[derive(Clone, Debug)]
pub(crate) struct Gain<'a> {
    pub(crate) record: &'a Record,
    pub(crate) to: &'a str,
    pub(crate) median: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p99: Option<f64>,
    pub(crate) max: Option<f64>,
    /// Which share of the samples got lost, of its own and of theirs.
    pub(crate) loss: (f64, f64),
}

/// A loss that is this much greater is one: a sample in a thousand.
const LOSS_OF_INTEREST: f64 = 0.001;

/// What a gain says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    Behind,
    /// The interval does not tell.
    Even,
    /// Ahead by the median, behind by the 99th percentile.
    Tail,
    /// Ahead, but it loses more on the way.
    Lossy,
    Ahead,
}

impl Standing {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Standing::Behind => "behind",
            Standing::Even => "cannot tell",
            Standing::Tail => "behind at p99",
            Standing::Lossy => "ahead, losing more",
            Standing::Ahead => "ahead",
        }
    }
}

impl<'a> Gain<'a> {
    pub(crate) fn new(record: &'a Record, ratio: &'a Ratio) -> Option<Gain<'a>> {
        let rate = is_rate(record);
        let gain = |ratio: f64| if rate { ratio } else { 1.0 / ratio };
        let sound = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
        let interval = ratio
            .low
            .filter(sound)
            .zip(ratio.high.filter(sound))
            .map(|(low, high)| if rate { (low, high) } else { (1.0 / high, 1.0 / low) });
        // The times beside a rate are those of samples in a full queue: they say nothing of the rate.
        let tail = |ratio: Option<f64>| ratio.filter(sound).filter(|_| !rate).map(gain);
        sound(&ratio.p50).then(|| Gain {
            record,
            to: &ratio.to,
            median: gain(ratio.p50),
            interval,
            p99: tail(ratio.p99),
            max: tail(ratio.max),
            loss: (record.loss(), 0.0),
        })
    }

    /// Beside that of another one, whose loss is told with it.
    fn beside(mut self, group: &Group) -> Gain<'a> {
        let same = |line: &&&Record| {
            line.peer == self.to && line.size_bytes == self.record.size_bytes && line.case == self.record.case
        };
        self.loss.1 = group.lines.iter().find(same).map_or(0.0, |line| line.loss());
        self
    }

    /// What got lost on either side; empty for nothing.
    pub(crate) fn losses(&self) -> String {
        let (own, theirs) = self.loss;
        if own + theirs == 0.0 {
            return String::new();
        }
        format!("{} lost, theirs {}", units::percent(own), units::percent(theirs))
    }

    /// Its standing, with what got lost.
    pub(crate) fn says(&self) -> String {
        let losses = self.losses();
        let between = if losses.is_empty() { "" } else { "; " };
        format!("{}{between}{losses}", self.standing().word())
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.interval {
            Some((_, high)) if high < 1.0 => Standing::Behind,
            Some((low, _)) if low > 1.0 => match self.p99 {
                Some(p99) if p99 < 1.0 => Standing::Tail,
                _ if self.loss.0 > self.loss.1 + LOSS_OF_INTEREST => Standing::Lossy,
                _ => Standing::Ahead,
            },
            // Memory has one round, for it does not depend on the moment.
            None if self.record.workload == "memory" && self.median < 0.98 => Standing::Behind,
            None if self.record.workload == "memory" && self.median > 1.02 => Standing::Ahead,
            _ => Standing::Even,
        }
    }

    pub(crate) fn is_floor(&self) -> bool {
        peers::adapter(self.to) == "floor"
    }

    /// Is it against what cannot be passed? At rates over UDP the plain floor can: it calls the kernel for each sample.
    pub(crate) fn is_limit(&self) -> bool {
        let by_call = is_rate(self.record) && self.record.transport == "udp" && self.to != FLOOR_OF_RATES;
        self.is_floor() && !by_call
    }
}

/// All gains of the subject over other peers, in the order of the groups.
pub(crate) fn gains<'a>(model: &Model<'a>, group: &Group<'a>) -> Vec<Gain<'a>> {
    // What the same rounds say a second time counts once.
    let own =
        group.lines.iter().filter(|line| model.is_subject(line) && !line.case.ends_with(MEDIAN_SUBSCRIBER));
    let ratios = own.flat_map(|line| line.ratio.iter().map(move |ratio| (*line, ratio)));
    let rivals = ratios.filter(|(_, ratio)| peers::adapter(&ratio.to) != model.subject);
    let gains = rivals.filter_map(|(line, ratio)| Gain::new(line, ratio));
    let mut gains: Vec<Gain> = gains.map(|gain| gain.beside(group)).collect();
    gains.sort_by_key(|gain| (gain.record.size_bytes, peers::order(gain.to)));
    gains
}

/// Lines of the subject without a result, for one reason, and who has one.
pub(crate) struct Gap<'g, 'a> {
    pub(crate) reason: String,
    pub(crate) lines: Vec<(&'g Group<'a>, &'a Record)>,
    pub(crate) others: Vec<String>,
}

/// Where the subject has no result, but another one besides the floor has.
pub(crate) fn gaps<'g, 'a>(model: &'g Model<'a>) -> Vec<Gap<'g, 'a>> {
    let mut gaps: Vec<Gap> = Vec::new();
    for group in &model.groups {
        for line in group.lines.iter().filter(|line| model.is_subject(line)) {
            let (Outcome::Absent(why) | Outcome::Failed(why)) = &line.outcome else { continue };
            let same = |other: &&&Record| {
                other.size_bytes == line.size_bytes && other.case == line.case && other.outcome == Outcome::Ok
            };
            let rival = |other: &&&Record| !model.is_subject(other) && peers::adapter(&other.peer) != "floor";
            let ran: Vec<&&Record> = group.lines.iter().filter(same).filter(rival).collect();
            // What a variant has not, the subject itself may have.
            let has_own = group.lines.iter().filter(same).any(|other| model.is_subject(other));
            if ran.is_empty() || has_own {
                continue;
            }
            let at = gaps.iter().position(|gap| gap.reason == *why).unwrap_or_else(|| {
                gaps.push(Gap { reason: why.clone(), lines: Vec::new(), others: Vec::new() });
                gaps.len() - 1
            });
            gaps[at].lines.push((group, line));
            for name in ran.iter().map(|other| peers::name(&other.peer)) {
                if !gaps[at].others.contains(&name) {
                    gaps[at].others.push(name);
                }
            }
        }
    }
    gaps
}

/// The worst and the best round of a line.
pub(crate) fn round_ends(record: &Record) -> Option<(f64, f64)> {
    let ran = record.round_values.iter().copied().filter(|value| *value > 0.0);
    let ends = ran.fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    (ends.1 > 0.0).then_some(ends)
}
