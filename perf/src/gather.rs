//! The rounds of one peer in one case, put together into a line of the result.

use crate::accounting::Sent;
use crate::args::name;
use crate::case::Case;
use crate::catalog::Entry;
use crate::record::{Calls, Memory, Outcome, Pace, Record, Run};
use crate::session::Trouble;
use crate::statistics::{Distribution, median, ratio};
use crate::workload::{Figure, Round};

/// What came of a peer so far.
pub struct Gathered {
    peer: String,
    version: String,
    note: String,
    /// Did it run, so far.
    pub outcome: Outcome,
    rounds: u32,
    /// Rounds without figures, or with a flaw.
    failed: u32,
    /// Has one of them taken all the time that it had?
    has_hung: bool,
    /// Rounds with figures and a flaw.
    flawed: u32,
    /// Why the last of them failed.
    failure: Option<String>,
    /// The mean times from due to write, each with the samples that it is of.
    behind: Vec<(f64, u64)>,
    floods: Vec<f64>,
    times: Vec<(Figure, Distribution)>,
    rates: Vec<f64>,
    also: Option<(&'static str, Vec<f64>)>,
    /// The sums; the words are those of the last round.
    sum: Round,
    /// What entities took, in each round.
    memories: Vec<Vec<Memory>>,
    /// What each pace brought, in each round.
    paces: Vec<Vec<Pace>>,
    sent: Vec<Sent>,
}

impl Gathered {
    /// Nothing yet.
    pub fn new(entry: &Entry, case: &Case) -> Gathered {
        let (version, note, outcome) = match entry {
            Entry::Found(peer) => {
                let outcome = case.obstacle(peer).map_or(Outcome::Ok, Outcome::Absent);
                (peer.info.version.clone(), peer.info.note.clone(), outcome)
            }
            Entry::Absent(_, reason) => (String::new(), String::new(), Outcome::Absent(reason.clone())),
            Entry::Failed(_, reason) => (String::new(), String::new(), Outcome::Failed(reason.clone())),
        };
        Gathered {
            peer: entry.name().to_string(),
            version,
            note,
            outcome,
            rounds: 0,
            failed: 0,
            has_hung: false,
            flawed: 0,
            failure: None,
            behind: Vec::new(),
            floods: Vec::new(),
            times: Vec::new(),
            rates: Vec::new(),
            also: None,
            sum: Round { wait: name(&case.wait), ..Round::default() },
            memories: Vec::new(),
            paces: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Is it worth another round? Who has failed more often than it has run is not: each failure may take as long as
    /// all that the others do. One that did not is no judgement by the first round alone.
    pub fn goes_on(&self) -> bool {
        let spared = u32::from(!self.has_hung);
        self.outcome == Outcome::Ok && self.failed <= self.rounds.max(spared)
    }

    /// Adds a round, or why there is none.
    pub fn add(&mut self, round: Result<Round, Trouble>) {
        match round {
            Ok(round) => self.add_round(round),
            Err(Trouble::Absent(reason)) if self.rounds == 0 => self.outcome = Outcome::Absent(reason),
            // What has run is there.
            Err(Trouble::Absent(reason) | Trouble::Failed(reason)) => self.fail(reason),
            Err(Trouble::Hung(reason)) => {
                self.has_hung = true;
                self.fail(reason);
            }
            Err(Trouble::Stopped) => {}
        }
    }

    fn fail(&mut self, reason: String) {
        self.failed += 1;
        self.failure = Some(reason);
        self.skip();
    }

    /// Keeps the place of a round that did not run, so that rounds of all peers stay side by side.
    pub fn skip(&mut self) {
        for (_, distribution) in &mut self.times {
            distribution.add_round(Vec::new());
        }
        self.rates.push(0.0);
        self.memories.push(Vec::new());
        if let Some((_, rates)) = &mut self.also {
            rates.push(0.0);
        }
    }

    fn add_round(&mut self, round: Round) {
        let before = self.rates.len();
        self.rounds += 1;
        for (figure, samples) in round.times {
            let at = self.times.iter().position(|(known, _)| *known == figure).unwrap_or_else(|| {
                let mut empty = Distribution::default();
                (0..before).for_each(|_| empty.add_round(Vec::new()));
                self.times.push((figure, empty));
                self.times.len() - 1
            });
            self.times[at].1.add_round(samples);
            if let Some((_, p50)) = round.finer.iter().find(|(known, _)| *known == figure) {
                self.times[at].1.refine(*p50);
            }
        }
        self.rates.push(round.rate.unwrap_or(0.0));
        if let Some((label, rate)) = round.also {
            self.also.get_or_insert_with(|| (label, vec![0.0; before])).1.push(rate);
        }
        let sum = &mut self.sum;
        sum.samples += round.samples;
        sum.cpu_samples += round.cpu_samples;
        sum.lost += round.lost;
        sum.refused += round.refused;
        sum.late += round.late;
        if let Some(expected) = round.expected {
            *sum.expected.get_or_insert(0) += expected;
        }
        self.behind.extend(round.behind_ns.map(|ns| (ns, round.samples)));
        self.floods.extend(round.flood_per_s);
        sum.out_of_order += round.out_of_order;
        sum.duplicates += round.duplicates;
        sum.corrupt += round.corrupt;
        sum.usage.add(round.usage);
        sum.rate = round.rate;
        sum.wait = round.wait;
        self.memories.push(round.memory);
        add_calls(&mut sum.calls, round.calls);
        self.paces.extend(Some(round.paces).filter(|paces| !paces.is_empty()));
        self.sent.extend(round.sent);
        if round.flaw.is_some() {
            self.failed += 1;
            self.flawed += 1;
            self.failure = round.flaw;
        }
    }

    /// It ran if a round did as it should.
    fn settled(&self) -> Outcome {
        match &self.failure {
            Some(reason) if self.outcome == Outcome::Ok && self.rounds == self.flawed => {
                Outcome::Failed(reason.clone())
            }
            _ => self.outcome.clone(),
        }
    }

    /// The mean of all samples.
    fn behind_ns(&self) -> Option<f64> {
        let samples: u64 = self.behind.iter().map(|(_, samples)| samples).sum();
        let sum: f64 = self.behind.iter().map(|(ns, samples)| ns * *samples as f64).sum();
        (samples > 0).then(|| sum / samples as f64)
    }

    /// Its lines; none if the run was ended before anything came of it.
    pub fn records(&self, case: &Case, run: &Run) -> Vec<Record> {
        if self.rounds == 0 && self.settled() == Outcome::Ok {
            return Vec::new();
        }
        let mut record = self.record(case, run);
        let Some((label, rates)) = &self.also else { return vec![record] };
        let mut further = record.clone();
        further.case = format!("{} {label}", record.case);
        further.round_values.clone_from(rates);
        set_rate(&mut further, rates);
        set_rate(&mut record, &self.rates);
        vec![record, further]
    }

    fn record(&self, case: &Case, run: &Run) -> Record {
        let times = |figure| self.times.iter().find(|(known, _)| *known == figure).and_then(|t| t.1.times());
        let compared = self.times.first().map(|(_, distribution)| distribution);
        let is_rate = self.sum.rate.is_some();
        let mut run = run.clone();
        run.notes.extend(Some(self.note.clone()).filter(|note| !note.is_empty()));
        let measured = self.sum.cpu_samples > 0 && self.sum.usage.cpu_ns > 0;
        let of_each = |used: u64| measured.then(|| used as f64 / self.sum.cpu_samples as f64);
        let mut record = Record {
            workload: case.workload.to_string(),
            peer: self.peer.clone(),
            version: self.version.clone(),
            transport: case.transport_name(),
            wait: self.sum.wait.clone(),
            pin: name(&case.pin),
            size_bytes: case.size,
            rate_hz: case.rate_hz(),
            qos: case.qos(),
            case: case.label.clone(),
            outcome: self.settled(),
            rounds: self.rounds,
            failed_rounds: self.failed,
            failure: self.failure.clone(),
            samples: self.sum.samples,
            lost: self.sum.lost,
            refused: self.sum.refused,
            expected: self.sum.expected,
            late: self.sum.late,
            behind_ns: self.behind_ns(),
            overslept_ns: times(Figure::Overslept),
            flood_per_s: (!self.floods.is_empty()).then(|| median(&self.floods)),
            out_of_order: self.sum.out_of_order,
            duplicates: self.sum.duplicates,
            corrupt: self.sum.corrupt,
            rtt_ns: times(Figure::RoundTrip),
            one_way_ns: times(Figure::OneWay),
            burst_ns: times(Figure::Burst),
            write_ns: times(Figure::Write),
            encode_ns: times(Figure::Encode),
            decode_ns: times(Figure::Decode),
            matched_ns: times(Figure::Matched),
            samples_per_s: None,
            bytes_per_s: None,
            cpu_ns_per_sample: of_each(self.sum.usage.cpu_ns),
            context_switches: measured.then_some(self.sum.usage.switches),
            switches_per_sample: of_each(self.sum.usage.switches),
            allocations_per_sample: self.allocations_per_sample(),
            network_bytes: self.sent_median(|sent| sent.bytes),
            network_packets: self.sent_median(|sent| sent.packets),
            memory: typical_memory(&self.memories),
            calls: self.sum.calls.clone(),
            paces: typical_paces(&self.paces),
            ratio: Vec::new(),
            round_values: match compared {
                _ if is_rate => self.rates.clone(),
                Some(distribution) => distribution.rounds_p50().to_vec(),
                None => memory_values(&self.memories),
            },
            encode_round_values: self.rounds_of(Figure::Encode),
            decode_round_values: self.rounds_of(Figure::Decode),
            histogram: compared.map(Distribution::cells).unwrap_or_default(),
            series: compared.map(Distribution::series).unwrap_or_default(),
            run,
        };
        if is_rate {
            set_rate(&mut record, &self.rates);
        }
        record
    }

    /// The median of each round of a figure; nothing without it.
    fn rounds_of(&self, figure: Figure) -> Vec<f64> {
        let of = self.times.iter().find(|(known, _)| *known == figure);
        of.map(|(_, distribution)| distribution.rounds_p50().to_vec()).unwrap_or_default()
    }

    /// Where the adapter counts them.
    fn allocations_per_sample(&self) -> Option<f64> {
        let counted = self.sum.usage.allocations.filter(|_| self.sum.cpu_samples > 0);
        counted.map(|count| count as f64 / self.sum.cpu_samples as f64)
    }

    /// The median of the rounds.
    fn sent_median(&self, pick: fn(&Sent) -> u64) -> Option<u64> {
        let all: Vec<f64> = self.sent.iter().map(|sent| pick(sent) as f64).collect();
        (!all.is_empty()).then(|| median(&all) as u64)
    }

    /// The distribution that is compared with other peers.
    pub fn compared(&self) -> Option<&Distribution> {
        self.times.first().map(|(_, distribution)| distribution)
    }
}

fn set_rate(record: &mut Record, rates: &[f64]) {
    let rate = median(rates);
    record.samples_per_s = Some(rate);
    record.bytes_per_s = Some(rate * record.size_bytes as f64);
}

/// What memory is compared by in each round: the bytes of all entities together, 0 in one that failed. Nothing if there was
/// none.
fn memory_values(rounds: &[Vec<Memory>]) -> Vec<f64> {
    if rounds.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let of_round = |round: &Vec<Memory>| round.iter().map(|of| of.bytes_each * of.count as i64).sum::<i64>();
    rounds.iter().map(|round| of_round(round).max(0) as f64).collect()
}

/// Of what each entity took the median of the rounds. It may be nothing, or less: a page that was there already.
fn typical_memory(rounds: &[Vec<Memory>]) -> Vec<Memory> {
    let Some(last) = rounds.iter().rfind(|round| !round.is_empty()) else { return Vec::new() };
    let typical = |entity: &Memory| {
        let same = rounds.iter().flatten().filter(|other| other.entity == entity.entity);
        let mut all: Vec<i64> = same.map(|other| other.bytes_each).collect();
        all.sort_unstable();
        let bytes_each = match all.len() {
            n if n % 2 == 1 => all[n / 2],
            n => all[n / 2 - 1].midpoint(all[n / 2]),
        };
        Memory { bytes_each, ..entity.clone() }
    };
    last.iter().map(typical).collect()
}

/// Adds those of another round to those of the same side.
fn add_calls(sum: &mut Vec<Calls>, round: Vec<Calls>) {
    for calls in round {
        match sum.iter_mut().find(|known| known.side == calls.side) {
            Some(known) => {
                known.all += calls.all;
                known.send += calls.send;
                known.receive += calls.receive;
                known.wait += calls.wait;
                known.futex += calls.futex;
            }
            None => sum.push(calls),
        }
    }
}

/// Of each pace the median rate of the rounds in which it ran, and the samples of all of them. A round that was given up
/// has not all paces.
fn typical_paces(rounds: &[Vec<Pace>]) -> Vec<Pace> {
    let Some(longest) = rounds.iter().max_by_key(|paces| paces.len()) else { return Vec::new() };
    let typical = |pace: &Pace| {
        let is_same = |other: &&Pace| (other.demand, other.interval_ms) == (pace.demand, pace.interval_ms);
        let same = || rounds.iter().flatten().filter(is_same);
        let rates: Vec<f64> = same().map(|other| other.samples_per_s).collect();
        Pace {
            samples_per_s: median(&rates),
            expected: same().map(|other| other.expected).sum(),
            lost: same().map(|other| other.lost).sum(),
            ..*pace
        }
    };
    longest.iter().map(typical).collect()
}

/// Sets each line of one case against the same of every other peer.
pub fn set_ratios(lines: &mut [(Record, Option<&Distribution>)]) {
    let others: Vec<(String, String, Vec<f64>, Option<crate::record::Times>)> = lines
        .iter()
        .map(|(record, distribution)| {
            let times = distribution.and_then(|distribution| distribution.times());
            (record.peer.clone(), record.case.clone(), record.round_values.clone(), times)
        })
        .collect();
    for (record, _) in lines.iter_mut() {
        let Some(own) = others.iter().find(|other| other.0 == record.peer && other.1 == record.case) else {
            continue;
        };
        let comparable = others.iter().filter(|other| other.0 != own.0 && other.1 == own.1);
        record.ratio = comparable
            .filter_map(|other| ratio(&other.0, (&own.2, own.3.as_ref()), (&other.2, other.3.as_ref())))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Transport, options};
    use crate::workload::throughput;

    fn after(rounds: Vec<Result<Round, Trouble>>) -> (Record, bool) {
        let case = throughput::cases(&options("--sizes 64"), 1.0).remove(0);
        assert_eq!(case.transport, Some(Transport::Udp));
        let entry = Entry::Found(Box::new(crate::catalog::Peer {
            name: "some".into(),
            variant: String::new(),
            program: "/".into(),
            info: crate::contract::Info {
                transports: vec!["udp".into()],
                roles: vec!["pub".into(), "sub".into()],
                types: vec!["bytes".into()],
                ..Default::default()
            },
        }));
        let mut gathered = Gathered::new(&entry, &case);
        for round in rounds {
            gathered.add(round);
        }
        (gathered.records(&case, &Run::default()).remove(0), gathered.goes_on())
    }

    fn good(rate: f64) -> Result<Round, Trouble> {
        Ok(Round { rate: Some(rate), samples: 10, lost: 5, expected: Some(15), ..Round::default() })
    }

    fn bad() -> Result<Round, Trouble> {
        Err(Trouble::failed("it broke"))
    }

    #[test]
    fn a_failed_round_leaves_the_others_and_is_told() {
        let (record, goes_on) = after(vec![good(10.0), bad(), good(30.0)]);
        assert_eq!((record.outcome.clone(), record.rounds, record.failed_rounds), (Outcome::Ok, 2, 1));
        assert_eq!((record.round_values, record.samples_per_s), (vec![10.0, 0.0, 30.0], Some(20.0)));
        assert_eq!((record.failure.as_deref(), record.expected, goes_on), (Some("it broke"), Some(30), true));
    }

    #[test]
    fn what_a_sample_costs_is_of_those_that_were_sent() {
        let mut lossy = good(10.0).unwrap();
        lossy.cpu_samples = 20;
        (lossy.usage.cpu_ns, lossy.usage.switches) = (2_000, 60);
        let (record, _) = after(vec![Ok(lossy)]);
        assert_eq!((record.samples, record.context_switches), (10, Some(60)));
        assert_eq!((record.cpu_ns_per_sample, record.switches_per_sample), (Some(100.0), Some(3.0)));
    }

    /// A round that was not, and those in which an entity took no page of its own, are rounds all the same.
    #[test]
    fn what_an_entity_takes_is_the_median_of_all_rounds() {
        let round = |bytes: &[i64]| -> Vec<Memory> {
            let (count, threads, descriptors) = (1, 1, 3);
            let of = |bytes_each: &i64| Memory {
                entity: "topic".into(),
                count,
                bytes_each: *bytes_each,
                threads,
                descriptors,
            };
            bytes.iter().map(of).collect()
        };
        for (rounds, typical, values) in [
            ([0, 0, 0, 131_072].map(|of| round(&[of])).to_vec(), 0, vec![0.0, 0.0, 0.0, 131_072.0]),
            ([-4_096, 0, 4_096].map(|of| round(&[of])).to_vec(), 0, vec![0.0, 0.0, 4_096.0]),
            (vec![round(&[10]), round(&[]), round(&[30])], 20, vec![10.0, 0.0, 30.0]),
        ] {
            assert_eq!(typical_memory(&rounds)[0].bytes_each, typical);
            assert_eq!(memory_values(&rounds), values);
        }
        assert!(typical_memory(&[round(&[])]).is_empty() && memory_values(&[round(&[])]).is_empty());
    }

    #[test]
    fn a_cell_of_the_table_of_bursts_is_of_all_rounds_in_which_it_ran() {
        let pace = |interval_ms: u64, samples_per_s: f64, lost: u64| Pace {
            demand: 100,
            interval_ms,
            samples_per_s,
            expected: if samples_per_s > 0.0 { 50 } else { 0 },
            lost,
        };
        let with = |paces: Vec<Pace>| good(1.0).map(|round| Round { paces, ..round });
        let given_up = vec![pace(0, 0.0, 0)];
        let rounds =
            [vec![pace(0, 10.0, 0), pace(10, 4.0, 5)], given_up, vec![pace(0, 30.0, 1), pace(10, 0.0, 0)]];
        let (record, _) = after(rounds.map(with).into());
        assert_eq!(record.paces, [Pace { expected: 100, ..pace(0, 20.0, 1) }, pace(10, 4.0, 5)]);
        assert_eq!((record.paces[1].asked_per_s(), record.paces[1].loss()), (Some(10_000.0), 0.1));
    }

    #[test]
    fn who_fails_more_often_than_it_runs_is_given_up() {
        let (record, goes_on) = after(vec![bad(), bad()]);
        assert_eq!((record.outcome, goes_on), (Outcome::Failed("it broke".into()), false));
        let hung = || Err(Trouble::Hung("no ready".into()));
        assert!(after(vec![bad()]).1 && !after(vec![hung()]).1, "once more, unless it took all its time");
        assert!(after(vec![good(1.0), hung()]).1 && !after(vec![bad(), good(1.0), bad()]).1);
        assert!(after(vec![good(1.0), bad()]).1 && !after(vec![good(1.0), bad(), bad()]).1);
    }

    #[test]
    fn what_has_run_is_not_absent() {
        let absent = || Err(Trouble::Absent("no such path".into()));
        let (record, goes_on) = after(vec![good(10.0), absent()]);
        assert_eq!((record.outcome, record.rounds, record.failed_rounds), (Outcome::Ok, 1, 1));
        assert_eq!((record.failure.as_deref(), goes_on), (Some("no such path"), true));
        let (record, goes_on) = after(vec![absent()]);
        assert_eq!((record.outcome, goes_on), (Outcome::Absent("no such path".into()), false));
    }

    #[test]
    fn processes_that_always_end_badly_have_failed() {
        let flawed = || good(1.0).map(|round| Round { flaw: Some("crashed".into()), ..round });
        let (record, _) = after(vec![flawed(), flawed()]);
        assert_eq!((record.outcome, record.rounds), (Outcome::Failed("crashed".into()), 2));
        let (record, _) = after(vec![flawed(), good(2.0)]);
        assert_eq!((record.outcome, record.rounds, record.failed_rounds), (Outcome::Ok, 2, 1));
    }
}
