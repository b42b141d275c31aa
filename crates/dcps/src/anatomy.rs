//! Where the latency of single samples went: what a reader remembers of the last ones it got.
//!
//! Owns a ring of fixed size for each reader that wants to know, and the words for it. The protocol says when a sample
//! was written and came, the reader's side when it was delivered and taken, both by times that they are given. Must
//! never allocate after it was made.

use std::fmt;

use taut_base::{Duration, Guid, InstanceHandle, SequenceNumber, Time};
use taut_rtps::{Clock, Passage};

/// A part of the way of a sample. They come in this order, and what is missing has not been: the next one then begins
/// where the last one before it has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// From the call of `write` until the protocol has it: encoding it, a wait for readers or for the token.
    Write,
    /// Until it is put into a datagram: a wait for company or for samples before it; until it is sent again, if the
    /// first datagram was lost.
    Queue,
    /// Until its datagram, the last one of a large sample, is read: the system's work and the network's.
    Wire,
    /// From the call of `write` until it is found in the memory that writer and reader share.
    Lane,
    /// Until it is in the reader's cache: a wait for samples before it, or for room.
    Deliver,
    /// Until it is taken: a thread is woken, and comes to it.
    Take,
}

impl Stage {
    /// All of them.
    pub const ALL: [Stage; 6] =
        [Stage::Write, Stage::Queue, Stage::Wire, Stage::Lane, Stage::Deliver, Stage::Take];

    /// For people and tools.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Write => "write",
            Stage::Queue => "queue",
            Stage::Wire => "wire",
            Stage::Lane => "lane",
            Stage::Deliver => "deliver",
            Stage::Take => "take",
        }
    }
}

/// When one sample was where. *Units*: ns on the monotonic clock of a host, 0 at its start.
///
/// Shown it is one line, as `write 0.4us · queue 1.2us · wire 6.1us · deliver 0.3us · take 2.0us`; a stage whose
/// ends are told by two clocks has a `?`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleAnatomy {
    /// Who wrote it.
    pub writer: Guid,
    /// Its number in its writer's order.
    pub sequence_number: SequenceNumber,
    /// `write` was called; `None` if the writer does not say.
    pub written: Option<Time>,
    /// The writer's protocol had it; `None` as above, or if it came through shared memory.
    pub queued: Option<Time>,
    /// It was put into a datagram: the beginning of the step that sends it; `None` as above, or if there was none.
    pub sent: Option<Time>,
    /// Its datagram was read, the last one of a large sample; `None` if there was none.
    pub received: Option<Time>,
    /// It was in the cache; `None` if it is not there yet.
    pub delivered: Option<Time>,
    /// It left the cache, before it was decoded; `None` if it has not.
    pub taken: Option<Time>,
    /// Are the first three times by this host's clock, as the others are?
    pub one_clock: bool,
}

impl SampleAnatomy {
    const fn of(writer: Guid, sequence_number: SequenceNumber) -> SampleAnatomy {
        SampleAnatomy {
            writer,
            sequence_number,
            written: None,
            queued: None,
            sent: None,
            received: None,
            delivered: None,
            taken: None,
            one_clock: true,
        }
    }

    /// The stages that it has gone through, in order; `None` for the time of one whose ends are told by two clocks.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, Option<Duration>)> {
        let arrives = if self.queued.is_none() && self.received.is_none() && self.written.is_some() {
            Stage::Lane
        } else {
            Stage::Deliver
        };
        let ends = [
            (Stage::Write, self.queued),
            (Stage::Queue, self.sent),
            (Stage::Wire, self.received),
            (arrives, self.delivered),
            (Stage::Take, self.taken),
        ];
        let one_clock = self.one_clock;
        let (mut last, mut told_by_writer) = (self.written, true);
        ends.into_iter().filter_map(move |(stage, end)| {
            let end = end?;
            let by_writer = stage <= Stage::Queue;
            let comparable = one_clock || by_writer == told_by_writer;
            told_by_writer = by_writer;
            let begin = last.replace(end)?;
            Some((stage, comparable.then(|| end.since(begin))))
        })
    }

    /// It is not there before it was given to the protocol, or came. Of several threads' clocks the latest is that of the
    /// protocol, and this one's may be behind.
    fn earliest_delivery(&self) -> Time {
        let before = self.received.max(self.queued.filter(|_| self.one_clock));
        before.unwrap_or_default()
    }

    /// How long one stage took; `None` if it was not gone through, or cannot be told.
    pub fn stage(&self, stage: Stage) -> Option<Duration> {
        self.stages().find(|(of, _)| *of == stage)?.1
    }

    /// From `write` to `take`: the sum of all stages.
    pub fn total(&self) -> Option<Duration> {
        Some(self.taken?.since(self.written.filter(|_| self.one_clock)?))
    }
}

impl fmt::Display for SampleAnatomy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (stage, time)) in self.stages().enumerate() {
            let gap = if at > 0 { " · " } else { "" };
            match time {
                Some(Duration(ns)) => write!(f, "{gap}{} {:.1}us", stage.name(), ns as f64 / 1e3)?,
                None => write!(f, "{gap}{} ?", stage.name())?,
            }
        }
        Ok(())
    }
}

/// What a reader remembers: the samples that came last.
#[derive(Debug)]
pub(crate) struct Anatomies {
    ring: Vec<SampleAnatomy>,
    capacity: usize,
    /// The place of the oldest, once all are taken.
    oldest: usize,
    /// Where the next to be taken is looked for first.
    next_taken: usize,
    /// Those whose delivery is not over yet, as many as there are places at most.
    arriving: Vec<usize>,
}

impl Anatomies {
    /// For so many samples, at least one.
    pub fn new(samples: usize) -> Anatomies {
        let capacity = samples.max(1);
        let (ring, arriving) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Anatomies { ring, capacity, oldest: 0, next_taken: 0, arriving }
    }

    /// The protocol says when a sample was written. Said again, it was sent again.
    pub fn note_passage(&mut self, writer: Guid, number: SequenceNumber, passage: Passage) {
        let Passage { written, queued, sent, received, clock } = passage;
        let of = self.latest(writer, number);
        let one = &mut self.ring[of];
        (one.written, one.queued, one.sent) = (Some(written), Some(queued), sent);
        (one.received, one.one_clock) = (received, clock == Clock::Own);
    }

    /// A sample that came by the protocol is in the cache. `arrived`: all of it had been read.
    pub fn note_delivered(&mut self, writer: Guid, number: SequenceNumber, arrived: Time, now: Time) {
        let of = self.latest(writer, number);
        let one = &mut self.ring[of];
        if one.queued.is_none() || one.sent.is_some() {
            one.received = one.received.or(Some(arrived));
        }
        one.delivered = Some(now);
        self.note_arriving(of);
    }

    fn note_arriving(&mut self, of: usize) {
        if self.arriving.len() < self.capacity {
            self.arriving.push(of);
        }
    }

    /// What was delivered before is there now. In a lane it may have been written since somebody began to look, but
    /// not later than now.
    pub fn end_delivery(&mut self, now: impl FnOnce() -> Time) {
        if self.arriving.is_empty() {
            return;
        }
        let now = now();
        for of in self.arriving.drain(..) {
            let one = &mut self.ring[of];
            one.delivered = one.delivered.map(|_| now.max(one.earliest_delivery()));
            one.written = one.written.filter(|at| one.queued.is_some() || *at <= now);
        }
    }

    /// A sample was found in a lane and is in the cache now.
    pub fn note_found(&mut self, writer: Guid, number: SequenceNumber, written: Option<Time>, now: Time) {
        let of = self.latest(writer, number);
        let one = &mut self.ring[of];
        (one.written, one.delivered) = (written, Some(now));
        self.note_arriving(of);
    }

    /// A sample is taken.
    pub fn note_taken(&mut self, writer: InstanceHandle, number: SequenceNumber, now: Time) {
        let len = self.ring.len();
        let is_it = |one: &SampleAnatomy| one.sequence_number == number && handle(one) == writer;
        // Most are taken in the order in which they came.
        let places = (self.next_taken..len).chain(0..self.next_taken.min(len));
        if let Some(at) = places.into_iter().find(|at| is_it(&self.ring[*at])) {
            // One that takes many has read the clock before it looked for them.
            self.ring[at].taken = Some(self.ring[at].delivered.map_or(now, |delivered| delivered.max(now)));
            self.next_taken = at + 1;
        }
    }

    /// What is known of a sample.
    pub fn find(&self, writer: InstanceHandle, number: SequenceNumber) -> Option<SampleAnatomy> {
        self.iter().find(|one| one.sequence_number == number && handle(one) == writer)
    }

    /// All that it remembers, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = SampleAnatomy> {
        let (newer, older) = self.ring.split_at(self.oldest);
        older.iter().chain(newer).copied()
    }

    /// The place of a sample that is about to come, or has just come.
    fn latest(&mut self, writer: Guid, number: SequenceNumber) -> usize {
        let is_it = |one: &SampleAnatomy| one.sequence_number == number && one.writer == writer;
        let (newer, older) = self.ring.split_at(self.oldest);
        if let Some(at) = newer.iter().rposition(is_it) {
            return at;
        }
        if let Some(at) = older.iter().rposition(is_it) {
            return self.oldest + at;
        }
        let one = SampleAnatomy::of(writer, number);
        if self.ring.len() < self.capacity {
            self.ring.push(one);
            return self.ring.len() - 1;
        }
        let at = self.oldest;
        self.ring[at] = one;
        self.oldest = (at + 1) % self.capacity;
        at
    }
}

fn handle(one: &SampleAnatomy) -> InstanceHandle {
    one.writer.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taut_base::{EntityId, GuidPrefix};

    const WRITER: Guid = Guid::new(GuidPrefix([7; 12]), EntityId([0, 0, 1, 3]));
    const OTHER: Guid = Guid::new(GuidPrefix([8; 12]), EntityId([0, 0, 1, 3]));

    fn passage(clock: Clock) -> Passage {
        let [written, queued, sent] = [1_000, 1_400, 2_600].map(Time);
        Passage { written, queued, sent: Some(sent), received: Some(Time(8_700)), clock }
    }

    fn number(n: i64) -> SequenceNumber {
        SequenceNumber(n)
    }

    fn taken_by_network(clock: Clock) -> SampleAnatomy {
        let mut seen = Anatomies::new(4);
        seen.note_passage(WRITER, number(1), passage(clock));
        seen.note_delivered(WRITER, number(1), Time(8_700), Time(8_700));
        seen.end_delivery(|| Time(9_000));
        seen.note_taken(WRITER.into(), number(1), Time(11_000));
        seen.find(WRITER.into(), number(1)).unwrap()
    }

    #[test]
    fn the_stages_of_a_datagram_add_up() {
        let one = taken_by_network(Clock::Own);
        assert_eq!(one.to_string(), "write 0.4us · queue 1.2us · wire 6.1us · deliver 0.3us · take 2.0us");
        let sum: i64 = one.stages().map(|(_, time)| time.unwrap().0).sum();
        assert_eq!((one.total(), sum), (Some(Duration(10_000)), 10_000));
        assert_eq!((one.stage(Stage::Wire), one.stage(Stage::Lane)), (Some(Duration(6_100)), None));
    }

    #[test]
    fn no_stage_ends_before_it_begins_where_threads_clocks_differ() {
        let mut seen = Anatomies::new(4);
        let local = Passage { sent: None, received: None, ..passage(Clock::Own) };
        let far = passage(Clock::Other);
        for (n, passage) in [(1, local), (2, far)] {
            seen.note_passage(WRITER, number(n), Passage { queued: Time(9_000), ..passage });
            seen.note_delivered(WRITER, number(n), Time(8_700), Time(9_000));
        }
        // The thread that delivers reads a clock that is behind that of who held the token before.
        seen.end_delivery(|| Time(8_600));
        let delivered = seen.iter().map(|one| one.delivered).collect::<Vec<_>>();
        assert_eq!(delivered, [Some(Time(9_000)), Some(Time(8_700))]);
    }

    #[test]
    fn two_clocks_leave_the_wire_open() {
        let one = taken_by_network(Clock::Other);
        assert_eq!(one.to_string(), "write 0.4us · queue 1.2us · wire ? · deliver 0.3us · take 2.0us");
        assert_eq!((one.total(), one.stage(Stage::Wire)), (None, None));
    }

    #[test]
    fn ways_without_a_datagram_or_without_stamps_have_fewer_stages() {
        let mut seen = Anatomies::new(4);
        seen.note_found(WRITER, number(1), Some(Time(100)), Time(1_000));
        seen.note_taken(WRITER.into(), number(1), Time(1_200));
        seen.note_delivered(OTHER, number(1), Time(5_000), Time(5_500));
        let local = Passage { sent: None, received: None, ..passage(Clock::Own) };
        seen.note_passage(WRITER, number(2), local);
        seen.note_delivered(WRITER, number(2), Time(1_400), Time(1_500));
        let lines: Vec<String> = seen.iter().map(|one| one.to_string()).collect();
        assert_eq!(lines, ["lane 0.9us · take 0.2us", "deliver 0.5us", "write 0.4us · deliver 0.1us"]);
        assert_eq!(seen.find(WRITER.into(), number(1)).unwrap().total(), Some(Duration(1_100)));
        assert_eq!(seen.find(OTHER.into(), number(1)).unwrap().total(), None, "it has not been taken");
    }

    #[test]
    fn the_oldest_makes_room_and_nothing_is_allocated() {
        let mut seen = Anatomies::new(3);
        let memory = (seen.ring.as_ptr(), seen.ring.capacity());
        for n in 1..=8 {
            seen.note_found(WRITER, number(n), None, Time(n));
        }
        for n in [7, 1, 8, 6] {
            seen.note_taken(WRITER.into(), number(n), Time(100 + n));
        }
        let seen_now: Vec<_> = seen.iter().map(|one| (one.sequence_number.0, one.taken)).collect();
        let taken = |n| (n, Some(Time(100 + n)));
        assert_eq!(seen_now, [taken(6), taken(7), taken(8)]);
        assert_eq!(memory, (seen.ring.as_ptr(), seen.ring.capacity()));
    }

    #[test]
    fn what_is_sent_again_is_one_sample() {
        let mut seen = Anatomies::new(3);
        seen.note_passage(WRITER, number(1), Passage { received: None, ..passage(Clock::Own) });
        let again = Passage { sent: Some(Time(7_000)), received: None, ..passage(Clock::Own) };
        seen.note_passage(WRITER, number(1), again);
        seen.note_delivered(WRITER, number(1), Time(9_000), Time(9_000));
        assert_eq!(seen.iter().count(), 1);
        let one = seen.iter().next().unwrap();
        assert_eq!(
            (one.sent, one.received),
            (Some(Time(7_000)), Some(Time(9_000))),
            "the last datagram counts"
        );
    }
}
