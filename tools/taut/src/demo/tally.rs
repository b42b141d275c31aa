//! What the subscriber of the demo has received: the newest values, the counts, the latency.

use std::collections::BTreeMap;
use std::time::Instant;

use hdrhistogram::Histogram;
use taut::Guid;

use crate::types::Metric;

/// Rows that are kept; samples of further names are counted but not shown. More than a screen holds.
const MAX_ROWS: usize = 1_024;
/// Latencies above a minute count as a minute.
const MAX_LATENCY_NS: u64 = 60_000_000_000;

/// What a row is of: two writers of one name count by themselves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub origin: Origin,
    pub writer: Guid,
    pub name: String,
}

/// One metric of one writer.
#[derive(Clone, Debug)]
pub struct Row {
    /// Rows are shown in the order in which they came.
    pub order: usize,
    pub value: f64,
    pub unit: String,
    pub received: u64,
    /// The number of the first sample that can have come: what others had sent before this process was there is not lost.
    pub first: u64,
    /// The number that the next sample has if none is lost.
    pub expected: u64,
}

impl Row {
    /// Samples that were sent between the first and the newest one and have not come.
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.first).saturating_sub(self.received)
    }
}

/// The delivery from one source.
pub struct Source {
    pub received: u64,
    latency: Histogram<u64>,
}

/// What a source is called, our own publisher first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The publisher of this demo.
    Own,
    /// Another vendor's.
    Other(String),
}

impl Origin {
    /// For people.
    pub fn name(&self) -> &str {
        match self {
            Origin::Own => "Taut",
            Origin::Other(name) => name,
        }
    }
}

/// Everything that has come.
#[derive(Default)]
pub struct Tally {
    /// When the first sample of our own publisher came.
    pub begin: Option<Instant>,
    pub rows: BTreeMap<Key, Row>,
    pub sources: BTreeMap<Origin, Source>,
}

impl Tally {
    /// Counts a sample.
    pub fn add(&mut self, origin: &Origin, writer: Guid, metric: Metric, now_unix_ns: i64) {
        if *origin == Origin::Own {
            self.begin.get_or_insert_with(Instant::now);
        }
        if !self.sources.contains_key(origin) {
            let Ok(latency) = Histogram::new_with_max(MAX_LATENCY_NS, 3) else { return };
            self.sources.insert(origin.clone(), Source { received: 0, latency });
        }
        if let Some(source) = self.sources.get_mut(origin) {
            source.received += 1;
            let latency = now_unix_ns.saturating_sub(metric.sent_unix_ns);
            source.latency.saturating_record(u64::try_from(latency).unwrap_or(0).clamp(1, MAX_LATENCY_NS));
        }
        let key = Key { origin: origin.clone(), writer, name: metric.name };
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&key) {
            return;
        }
        let order = self.rows.len();
        // Ours waits for this process before it begins.
        let first = if *origin == Origin::Own { 0 } else { metric.seq };
        let row = self.rows.entry(key).or_insert(Row {
            order,
            value: 0.0,
            unit: String::new(),
            received: 0,
            first,
            expected: 0,
        });
        row.received += 1;
        row.first = row.first.min(metric.seq);
        row.expected = row.expected.max(metric.seq.saturating_add(1));
        row.value = metric.value;
        row.unit = metric.unit;
    }

    /// Samples that came from a source.
    pub fn received(&self, origin: &Origin) -> u64 {
        self.sources.get(origin).map_or(0, |source| source.received)
    }

    /// Latency of a source in ns at these quantiles.
    pub fn latency_ns(&self, origin: &Origin, quantiles: [f64; 3]) -> Option<[u64; 3]> {
        let latency = &self.sources.get(origin)?.latency;
        Some(quantiles.map(|quantile| latency.value_at_quantile(quantile)))
    }
}

#[cfg(test)]
mod tests {
    use taut::{EntityId, GuidPrefix};

    use super::*;

    fn writer(number: u8) -> Guid {
        Guid::new(GuidPrefix([number; 12]), EntityId::PARTICIPANT)
    }

    fn metric(name: &str, seq: u64) -> Metric {
        Metric { name: name.to_owned(), seq, sent_unix_ns: 1_000, value: seq as f64, unit: "B".to_owned() }
    }

    #[test]
    fn counts_what_comes_and_what_does_not() {
        let mut tally = Tally::default();
        for seq in [0, 1, 4] {
            tally.add(&Origin::Own, writer(1), metric("a", seq), 3_000);
        }
        let other = Origin::Other("Cyclone DDS".to_owned());
        tally.add(&other, writer(2), metric("a", 0), 0);
        let row = &tally.rows[&Key { origin: Origin::Own, writer: writer(1), name: "a".to_owned() }];
        assert_eq!((row.received, row.lost(), row.value), (3, 2, 4.0));
        assert_eq!(tally.received(&other), 1);
        let [p50, _, max] = tally.latency_ns(&Origin::Own, [0.5, 0.99, 1.0]).unwrap();
        assert!((1_990..=2_010).contains(&p50) && (1_990..=2_010).contains(&max));
    }

    #[test]
    fn what_others_sent_before_is_not_lost_and_each_writer_counts_by_itself() {
        let mut tally = Tally::default();
        let other = Origin::Other("Taut 0.1.0".to_owned());
        for (number, seq) in [(2, 600), (2, 601), (3, 0), (3, 1), (2, 604), (3, 2)] {
            tally.add(&other, writer(number), metric("a", seq), 0);
        }
        tally.add(&Origin::Own, writer(1), metric("a", 2), 0);
        let lost: Vec<u64> = tally.rows.values().map(Row::lost).collect();
        assert_eq!(lost, [2, 2, 0], "ours from 0 on, theirs from the first that has come");
    }

    #[test]
    fn names_without_end_do_not_fill_the_memory() {
        let mut tally = Tally::default();
        for number in 0..MAX_ROWS + 5 {
            tally.add(&Origin::Own, writer(1), metric(&number.to_string(), 0), 0);
        }
        assert_eq!(tally.rows.len(), MAX_ROWS);
        assert_eq!(tally.received(&Origin::Own), (MAX_ROWS + 5) as u64);
    }
}
