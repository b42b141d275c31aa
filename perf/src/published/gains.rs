//! What going past the kernel gains, in percent: the figure of relative gains of the study of user-space networking.
//!
//! Each line of Taut over the link stands beside that of Cyclone DDS by the kernel's sockets, to which the study relates
//! all, and beside Taut's own by them. Where the line polls, both do, and where it does not, each waits as it does by
//! default: else a gain would be that of polling. What was not measured is left out.

use super::figure::mean_ns;
use super::{Table, WAYS, is_linked, waits};
use crate::record::{Outcome, Record, Run};
use crate::report::current::recency;
use crate::report::peers;
use crate::report::units::{self, bytes, size, thousands, time};
use crate::workload::is_as_named;

/// What the study has of a way, for each of [`MEASURES`]. Its XDP has no IP, and is the nearest to both of ours.
fn published(transport: &str) -> [&'static str; MEASURES.len()] {
    match transport {
        "xdp" | "xdp-l2" => ["-18 %", "-95 %", "-95 %", "halved", "below Cyclone DDS", "-24 %", "", ""],
        "dpdk" => ["-31 %", "-95 %", "-95 %", "halved", "+59 %", "+47 %", "", ""],
        _ => [""; MEASURES.len()],
    }
}

/// To whom a gain relates: by the kernel, all of them.
const BASES: [&str; 3] = ["cyclonedds", "cyclonedds11", "taut"];

/// What is compared.
struct Measure {
    name: &'static str,
    workload: &'static str,
    case: &'static str,
    size: u64,
    figure: fn(&Record) -> Option<f64>,
    shown: fn(f64) -> String,
}

/// The bound.
fn max_ns(record: &Record) -> Option<f64> {
    record.rtt_ns.map(|times| times.max as f64)
}

/// The study's axes; its bound twice, as the more samples there are the more it says.
const MEASURES: [Measure; 8] = [
    Measure { name: "mean", workload: "latency", case: EVERY_MS, size: 32, figure: mean_ns, shown: time },
    Measure { name: "maximum", workload: "latency", case: EVERY_MS, size: 32, figure: max_ns, shown: time },
    Measure { name: "maximum", workload: "soak", case: LINK, size: 64, figure: max_ns, shown: time },
    Measure {
        name: "delay variation",
        workload: "latency",
        case: EVERY_MS,
        size: 32,
        figure: |r| r.rtt_ns.map(|times| times.pdv as f64),
        shown: time,
    },
    rate(LINK),
    bandwidth(LINK),
    rate(JUMBO),
    bandwidth(JUMBO),
];

const EVERY_MS: &str = "every 1 ms link";
const LINK: &str = "link";
const JUMBO: &str = "link mtu 9000";

const fn rate(case: &'static str) -> Measure {
    let (name, workload) = ("rate", "throughput");
    Measure { name, workload, case, size: 32, figure: |r| r.samples_per_s, shown: units::rate }
}

const fn bandwidth(case: &'static str) -> Measure {
    let (name, workload) = ("bandwidth", "throughput");
    let shown = |per_s| bytes(per_s) + "/s";
    Measure { name, workload, case, size: 1_024, figure: |r| r.bytes_per_s, shown }
}

impl Measure {
    /// Is it a line of this way, and of this kind of waiting?
    fn is_of(&self, record: &Record, transport: &str, spins: bool) -> bool {
        record.case == self.case
            && record.qos.starts_with("reliable")
            && is_as_named(record)
            && is_linked(record)
            && record.outcome == Outcome::Ok
            && record.workload == self.workload
            && record.size_bytes == self.size
            && record.transport == transport
            && (record.wait == "spin") == spins
    }

    /// The lines of Taut that have a base in their own run, for of two runs it would be a gain of the machine's, too.
    fn gained<'a>(&self, records: &'a [Record], transport: &str, spins: bool) -> Vec<Gained<'a>> {
        let of = |record: &'a Record| {
            (self.figure)(record).filter(|figure| *figure > 0.0).map(|figure| (record, figure))
        };
        let own = records.iter().filter(|r| r.peer == "taut" && self.is_of(r, transport, spins));
        let gained = own.filter_map(of).map(|(record, own)| {
            let is_base = |peer: &str, base: &Record| {
                base.peer == peer
                    && base.run.id == record.run.id
                    && !std::ptr::eq(base, record)
                    && self.is_of(base, "udp", spins)
            };
            let base = |peer| records.iter().rfind(|base| is_base(peer, base)).and_then(of);
            Gained { record, own, bases: BASES.map(base) }
        });
        gained.filter(|gained| gained.rank().0 > 0).collect()
    }

    fn what(&self, of: &Record, way: &str, spins: bool) -> String {
        let wait = waits(&of.transport, spins);
        if self.workload == "throughput" {
            let over = if self.case == JUMBO { " at an MTU of 9,000" } else { "" };
            return format!("{} of {}{over} by {way}, {wait}", self.name, size(self.size));
        }
        // A maximum is no more than that of its samples.
        let samples = thousands(of.samples);
        format!("{} of {samples} round trips of {}, 1,000/s, by {way}, {wait}", self.name, size(self.size))
    }
}

/// A line of Taut, its figure, and what there is of each of [`BASES`].
struct Gained<'a> {
    record: &'a Record,
    own: f64,
    bases: [Option<(&'a Record, f64)>; BASES.len()],
}

impl<'a> Gained<'a> {
    fn rank(&self) -> (usize, (bool, &'a str)) {
        (self.bases.iter().flatten().count(), recency(self.record))
    }
}

/// What a row says of each of [`BASES`].
type Cells = [Option<String>; BASES.len()];

/// How much more than the other one it is, in percent.
fn change(own: f64, other: f64) -> String {
    let percent = 100.0 * (own / other - 1.0);
    let digits = usize::from(percent.abs() < 99.95);
    format!("{percent:+.digits$} %")
}

/// The table, if Taut was measured over the link beside another one by the kernel.
pub(super) fn table(records: &[Record]) -> Option<Table> {
    let mut used: Vec<&Record> = Vec::new();
    let mut lines: Vec<(&Run, [String; 3], Cells)> = Vec::new();
    for (transport, way) in WAYS {
        for spins in [true, false] {
            for (measure, published) in MEASURES.iter().zip(published(transport)) {
                let newest = measure.gained(records, transport, spins).into_iter().max_by_key(Gained::rank);
                let Some(Gained { record, own, bases }) = newest else { continue };
                used.push(record);
                used.extend(bases.iter().flatten().map(|(base, _)| *base));
                let cell = |(_, other): (&Record, f64)| {
                    format!("{} of {}", change(own, other), (measure.shown)(other))
                };
                let cells = bases.map(|base| base.map(cell));
                let words = [measure.what(record, way, spins), published.into(), (measure.shown)(own)];
                lines.push((&record.run, words, cells));
            }
        }
    }
    let kept: Vec<usize> =
        (0..BASES.len()).filter(|at| lines.iter().any(|(.., cells)| cells[*at].is_some())).collect();
    if kept.is_empty() {
        return None;
    }
    let says = "In percent of what others, and Taut itself, reach by the kernel's sockets over the same link: all polling, or each waiting as by default, where Taut looks before it sleeps and the others sleep at once; by DPDK Taut's driver polls even then. A minus is good of times, a plus of rates. Published is relative to Cyclone DDS.";
    let bases = kept.iter().map(|at| format!("against {} by the kernel", peers::name(BASES[*at])));
    let mut table = Table::new("What going past the kernel gains", &used, says)
        .with_heads(["measured", "published"].map(String::from), std::iter::once("Taut".into()).chain(bases));
    for (run, words, cells) in lines {
        let gains = kept.iter().map(|at| cells[*at].clone().unwrap_or_else(|| "–".into()));
        table.add(words.into_iter().chain(gains).collect(), Some(run));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_its_sign_and_no_more_digits_than_it_is_worth() {
        assert_eq!([change(74.0, 107.0), change(250.0, 157.0)], ["-30.8 %", "+59.2 %"]);
        assert_eq!([change(7.0, 7.0), change(4.27e6, 194e3)], ["+0.0 %", "+2101 %"]);
    }
}
