//! How the subject stands to the other peers: where it is ahead, by how much, and where it has no result.

use crate::half::{Half, HalfRatio};
use crate::record::{MEDIAN_SUBSCRIBER, Outcome, Ratio, Record};
use crate::report::model::{Group, Model, is_rate};
use crate::report::{peers, tables, units};

/// The floor that hands the kernel many datagrams with one call: the limit of rates over UDP.
pub(crate) const FLOOR_OF_RATES: &str = "floor:gso";

/// How the subject stands to another peer. Above 1 it is ahead, whether times or rates are compared.
#[derive(Clone, Debug)]
pub(crate) struct Gain<'a> {
    pub(crate) record: &'a Record,
    pub(crate) to: &'a str,
    /// What of the line is compared, if not all of it.
    pub(crate) half: Option<Half>,
    pub(crate) median: f64,
    /// Is its interval as wide as that of both halves, of which alone there are rounds?
    pub(crate) is_wide: bool,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) p99: Option<f64>,
    pub(crate) max: Option<f64>,
    /// Which share of the samples got lost, of its own and of theirs.
    pub(crate) loss: (f64, f64),
}

const MARKED: &str = "Of encode and decode some runs have the rounds of both together only: an interval with ≈ is as wide as that of both, and by the nanosecond to which the two medians are stored. ";

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
    /// Those over another one: of most lines one, of coding one for each half.
    fn all(group: &Group<'a>, record: &'a Record, to: &'a Ratio) -> Vec<Gain<'a>> {
        if record.workload != "cdr" {
            return Gain::new(record, &to.to, to).into_iter().collect();
        }
        let Some(other) = same_of(group, record, &to.to) else { return Vec::new() };
        let of_half = |half: Half| {
            let HalfRatio { ratio, of_both } = half.ratio(record, other)?;
            let gain = Gain::new(record, &to.to, &ratio)?;
            Some(Gain { half: Some(half), is_wide: of_both, ..gain })
        };
        Half::BOTH.into_iter().filter_map(of_half).collect()
    }

    fn new(record: &'a Record, to: &'a str, ratio: &Ratio) -> Option<Gain<'a>> {
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
            to,
            half: None,
            is_wide: false,
            median: gain(ratio.p50),
            interval,
            p99: tail(ratio.p99),
            max: tail(ratio.max),
            loss: (record.loss(), 0.0),
        })
    }

    /// Beside that of another one, whose loss is told with it.
    fn beside(mut self, group: &Group) -> Gain<'a> {
        self.loss.1 = same_of(group, self.record, self.to).map_or(0.0, Record::loss);
        self
    }

    /// What was measured, in words.
    pub(crate) fn what(&self, group: &Group) -> String {
        tables::what_of(group, self.record, self.half)
    }

    /// The words of its case, with that of its half.
    pub(crate) fn case(&self) -> String {
        format!("{} {}", self.record.case, self.half.map_or("", Half::word))
    }

    /// What stands before an interval that is no more than likely.
    pub(crate) fn mark(&self) -> &'static str {
        if self.is_wide { "≈ " } else { "" }
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

    /// Is it against what cannot be passed? At rates and in bursts over UDP the plain floor can: it calls the kernel for each
    /// sample.
    pub(crate) fn is_limit(&self) -> bool {
        let is_stream = is_rate(self.record) || self.record.workload == "bursts";
        let by_call = is_stream && self.record.transport == "udp" && self.to != FLOOR_OF_RATES;
        self.is_floor() && !by_call
    }
}

/// The line of another peer that is measured as this one.
fn same_of<'a>(group: &Group<'a>, record: &Record, peer: &str) -> Option<&'a Record> {
    let same = |line: &&&Record| {
        line.peer == peer && line.size_bytes == record.size_bytes && line.case == record.case
    };
    group.lines.iter().find(same).copied()
}

/// What is to be said of intervals with a mark, if there are any.
pub(crate) fn marked(model: &Model) -> &'static str {
    let any = model.groups.iter().any(|group| gains(model, group).iter().any(|gain| gain.is_wide));
    if any { MARKED } else { "" }
}

/// All gains of the subject over other peers, in the order of the groups.
pub(crate) fn gains<'a>(model: &Model<'a>, group: &Group<'a>) -> Vec<Gain<'a>> {
    // What the same rounds say a second time counts once.
    let own =
        group.lines.iter().filter(|line| model.is_subject(line) && !line.case.ends_with(MEDIAN_SUBSCRIBER));
    let ratios = own.flat_map(|line| line.ratio.iter().map(move |ratio| (*line, ratio)));
    let rivals = ratios.filter(|(_, ratio)| peers::adapter(&ratio.to) != model.subject);
    let gains = rivals.flat_map(|(line, ratio)| Gain::all(group, line, ratio));
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
