//! The lanes that a reader reads: what comes through them goes into its cache, or is passed on from where it lies.
//!
//! The owner empties them when it wants to see what is there, and so does who drives where something else has to come after
//! that. Beside a lane the protocol brings what found no room in it.

use taut_base::{Guid, InstanceHandle, SequenceNumber, Time};
use taut_mem::lane::{LaneReader, Next, Peephole};
use taut_rtps::Offer;
use taut_rtps::history_cache::ChangeKind;

use super::{Passed, Pulled, ReaderSide, Source, Taken, TakenPayload};
use crate::cell::{self, Head};
use crate::sample_info::PayloadKind;
use crate::status::StatusMask;

impl ReaderSide {
    /// Reads a writer's lane from now on. `next` is the number after all that has come from the writer.
    pub fn add_lane(
        &mut self,
        writer: Guid,
        strength: i32,
        lane: LaneReader,
        reliable: bool,
        next: SequenceNumber,
    ) {
        self.remove_lane(writer);
        let reliable = reliable && self.reliable;
        if self.keeps_more_than(lane.lane().cells()) {
            lane.want_all();
        }
        let (handle, stalled, broken, tells_time, waiting) = (writer.into(), false, false, false, None);
        let (settled, silent_until) = (SequenceNumber::ZERO, SequenceNumber::ZERO);
        let source = Source {
            writer,
            handle,
            strength,
            lane,
            reliable,
            next,
            settled,
            silent_until,
            stalled,
            broken,
            tells_time,
            waiting,
        };
        self.sources.push(source);
        if !self.cache.deadline().is_infinite() {
            self.sweep_at = Time::AT_ONCE;
            self.cache.alarm = true;
        }
    }

    /// May it keep samples of which so many are followed by others?
    fn keeps_more_than(&self, samples: u64) -> bool {
        let holds_more = self.cache.depth.is_none_or(|depth| depth as u64 > samples / 2);
        holds_more || self.key_hash.is_some() || self.filter.is_some() || self.cache.separation.is_on()
    }

    /// The writer of a lane says when it was called, by this clock.
    pub(crate) fn believe_lane(&mut self, writer: Guid) {
        for source in self.sources.iter_mut().filter(|source| source.writer == writer) {
            source.tells_time = true;
        }
    }

    /// No longer reads a writer's lane. Returns the number after all that has come from the writer, if it did.
    pub fn remove_lane(&mut self, writer: Guid) -> Option<SequenceNumber> {
        let at = self.sources.iter().position(|source| source.writer == writer)?;
        Some(self.sources.remove(at).next)
    }

    /// The strength of a writer from now on, for what comes through its lane.
    pub(crate) fn set_lane_strength(&mut self, writer: Guid, strength: i32) {
        self.sources
            .iter_mut()
            .filter(|source| source.writer == writer)
            .for_each(|source| source.strength = strength);
    }

    /// Does it read lanes?
    pub fn has_lanes(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Is there something in a lane that has not been looked at? *Cost*: one load for each lane.
    pub fn is_ready(&self) -> bool {
        self.sources.iter().any(Source::is_ready)
    }

    /// Where it looks next in the lane of a writer; `None` if it reads none of it.
    pub fn peephole(&self, writer: Guid) -> Option<Peephole> {
        self.sources.iter().find(|source| source.writer == writer).map(|source| source.lane.peephole())
    }

    /// Does the writer of a lane wait for room?
    pub fn is_awaited(&self) -> bool {
        let is_wanted = |source: &Source| {
            let lane = source.lane.lane();
            lane.is_awaited() || lane.calls_readers() && source.is_ready()
        };
        self.sources.iter().any(is_wanted)
    }

    /// Remembers for [`ReaderSide::take_awaited`] who waits.
    pub fn note_awaited(&mut self, pulled: Pulled) {
        self.awaited |= pulled.awaited;
    }

    /// Does a writer of a lane wait to hear what the protocol has emptied? Forgets it: who asks tells.
    pub fn take_awaited(&mut self) -> bool {
        std::mem::take(&mut self.awaited)
    }

    /// Is there a writer whose lane is broken, of which nobody was told?
    #[inline]
    pub fn has_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// A writer whose lane is broken, told once: its samples are to take the usual way.
    pub fn take_broken(&mut self) -> Option<Guid> {
        self.broken.pop()
    }

    /// Samples have gone: is a lane full for want of room, that may go on?
    pub fn is_stalled(&self) -> bool {
        self.sources.iter().any(|source| source.stalled)
    }

    /// Takes what is in the lanes if a take wants to see it. What a KEEP_ALL reader has not taken yet comes
    /// first anyway: what follows it is left where it lies, and is [passed on](ReaderSide::pass_next) from there.
    /// Asks for the time only if it needs to know.
    #[inline]
    pub fn refill(&mut self, now: impl Fn() -> Time) -> Pulled {
        if self.sources.is_empty() { Pulled::default() } else { self.refill_from_lanes(now) }
    }

    #[inline(never)]
    fn refill_from_lanes(&mut self, now: impl Fn() -> Time) -> Pulled {
        self.expire(&now);
        if self.cache.unread_count() > 0 && self.cache.keeps_order() {
            return Pulled::default();
        }
        let pulled = self.pull(now());
        self.end_delivery(now);
        pulled
    }

    /// Takes what is in the lanes as far as there is room.
    pub fn pull(&mut self, now: Time) -> Pulled {
        self.pull_at_most(now, usize::MAX)
    }

    /// The same for at most so many samples. What is left is found by [`ReaderSide::is_ready`], and those of other lanes
    /// come first then. *Cost*: a look at each lane whose next sample has to wait, too.
    pub fn pull_at_most(&mut self, now: Time, most: usize) -> Pulled {
        let mut pulled = Pulled::default();
        let mut sources = std::mem::take(&mut self.sources);
        // There may be room by now.
        sources.iter_mut().for_each(|source| source.stalled = false);
        if sources.iter().filter(|source| source.is_ready()).nth(1).is_some() {
            self.pull_in_order(now, &mut sources, &mut pulled, most);
        } else if let Some(source) = sources.iter_mut().find(|source| source.is_ready()) {
            self.pull_source(now, source, &mut pulled, most, u64::MAX);
        }
        self.sources = sources;
        pulled
    }

    /// Takes what is in a lane and was written until then, until `pulled` has at most so many samples.
    pub(crate) fn pull_source(
        &mut self,
        now: Time,
        source: &mut Source,
        pulled: &mut Pulled,
        most: usize,
        until: u64,
    ) {
        (source.stalled, source.waiting) = (false, None);
        if !source.is_ready() {
            return;
        }
        let mut is_late = false;
        for _ in 0..source.cells().min(most.saturating_sub(pulled.read)) {
            if until != u64::MAX && source.written() > until {
                break;
            }
            match source.lane.poll(&mut self.entry) {
                Next::Empty => break,
                Next::Broken => {
                    source.broken = true;
                    self.broken_lanes = self.broken_lanes.saturating_add(1);
                    self.broken.push(source.writer);
                    break;
                }
                Next::Sample { lost } => {
                    let payload = std::mem::take(&mut self.entry.payload).keep(&mut self.short);
                    let change = cell::change(source.writer, now, &self.entry.meta, payload);
                    let number = change.sequence_number;
                    if number < source.next {
                        pulled.read = pulled.read.saturating_add(1);
                        continue;
                    }
                    if lost > 0 || number != source.next {
                        self.note_lost(source.skipped(number).unwrap_or(lost), pulled);
                    }
                    if source.reliable && number > source.next.max(source.settled) {
                        source.stall();
                        break;
                    }
                    if is_late && number > source.silent_until {
                        is_late = false;
                        self.end_late(now, source.writer, pulled);
                    }
                    let mut change = Some(change);
                    let news = self.insert(now, source.strength, &mut change);
                    pulled.news = pulled.news | news;
                    if change.is_some() {
                        source.stall();
                        self.await_expiry();
                        break;
                    }
                    if news.intersects(StatusMask::DATA_AVAILABLE)
                        && let Some(seen) = &mut self.anatomies
                    {
                        let called = cell::called(&self.entry.meta).filter(|_| source.tells_time);
                        seen.note_found(source.writer, number, called, now);
                    }
                    pulled.read = pulled.read.saturating_add(1);
                    source.next = number.next();
                    is_late |= number <= source.silent_until;
                }
            }
        }
        pulled.awaited |= source.publish();
        if is_late {
            self.end_late(now, source.writer, pulled);
        }
    }

    #[cold]
    fn note_lost(&mut self, lost: u64, pulled: &mut Pulled) {
        if lost > 0 {
            self.sample_lost.count(lost);
            pulled.news = pulled.news | StatusMask::SAMPLE_LOST;
        }
    }

    pub(super) fn deliver_beside_lanes(
        &mut self,
        now: Time,
        strength: i32,
        change: &mut Offer,
    ) -> StatusMask {
        let Some((writer, number)) = change.as_ref().map(|one| (one.writer_guid, one.sequence_number)) else {
            return StatusMask::NONE;
        };
        // What lies in a lane was written before.
        let comes_after = self.minds_order() && self.is_ready();
        let mut pulled = if comes_after { self.pull(now) } else { Pulled::default() };
        let Some(at) = self.sources.iter().position(|source| source.writer == writer) else {
            self.note_awaited(pulled);
            return pulled.news | self.deliver_one(now, strength, change);
        };
        let mut news = StatusMask::NONE;
        let mut source = self.sources.swap_remove(at);
        self.pull_before(now, &mut source, &mut pulled, number);
        if number < source.next {
            *change = None;
        } else if source.reliable && source.first().is_some_and(|first| first < number) {
            // The lane holds what comes before it, and there is no room for that.
            self.note_blocked();
        } else {
            news = self.deliver_one(now, strength, change);
        }
        if change.is_none() {
            source.next = source.next.max(number.next());
            self.pull_source(now, &mut source, &mut pulled, usize::MAX, u64::MAX);
        }
        self.sources.push(source);
        self.note_awaited(pulled);
        news | pulled.news
    }

    /// See [`taut_rtps::Sink::lane_next`].
    pub(crate) fn lane_next(
        &mut self,
        now: Time,
        writer: Guid,
        expected: SequenceNumber,
    ) -> (SequenceNumber, StatusMask) {
        let Some(at) = self.sources.iter().position(|source| source.writer == writer) else {
            return (expected, StatusMask::NONE);
        };
        let source = &mut self.sources[at];
        // What the lane still holds has not come, whatever the protocol knows of it.
        let known = source.first().map_or(expected, |first| first.min(expected));
        source.next = source.next.max(known);
        let pulled = self.pull_for(now, at, expected);
        self.note_awaited(pulled);
        (self.sources[at].next, pulled.news)
    }

    /// Takes the next sample straight from a lane, the same as [`ReaderSide::pull`] and
    /// [`ReaderSide::take_next`] while nothing else waits, and gives it to `out`.
    #[inline]
    pub fn pass_next<R, F: FnOnce(Taken<'_>) -> R>(&mut self, pulled: &mut Pulled, out: F) -> Passed<R, F> {
        if !self.cache.may_pass() {
            return Passed::Not(out);
        }
        // After one source the next: else a fast writer's lane is all that is ever looked at.
        let Some(at) = self.next_ready() else { return Passed::Nothing };
        if self.is_one_of_several(at) {
            return Passed::Not(out);
        }
        let source = &mut self.sources[at];
        // With KEEP_LAST what follows may take this one's place.
        let Next::Sample { lost } = source.lane.poll(&mut self.entry) else { return Passed::Not(out) };
        let head = Head::of(&self.entry.meta);
        let follows = head.number == source.next || (!source.reliable && head.number > source.next);
        let last = self.cache.depth.is_none() || !source.lane.is_ready();
        // Else nothing is lost before it.
        let skips = head.number != source.next || lost > 0;
        let instance = match self.key_hash {
            None => Some(InstanceHandle::NIL),
            Some(key_hash) => key_hash(&self.entry.payload, false),
        };
        let is_wanted = || self.filter.as_ref().is_none_or(|filter| filter.passes(&self.entry.payload));
        let passes = follows && last && head.kind == ChangeKind::Alive && is_wanted();
        let passed = instance.filter(|_| passes).is_some_and(|instance| {
            self.cache.pass(instance, (source.writer, source.handle), &head, &mut self.info)
        });
        if !passed {
            source.lane.step_back();
            self.entry.payload.clear();
            if skips && source.skipped(head.number).is_none() {
                self.note_lost(lost, pulled);
            }
            return Passed::Not(out);
        }
        let skipped = if skips { source.skipped(head.number).unwrap_or(lost) } else { 0 };
        source.next = head.number.next();
        pulled.awaited |= source.publish();
        if skipped > 0 {
            self.note_lost(skipped, pulled);
        }
        let taken = out(Taken {
            payload: TakenPayload::Lane(&mut self.entry.payload),
            payload_kind: PayloadKind::Data,
            info: &self.info,
            short: &mut self.short,
        });
        self.entry.payload.clear();
        Passed::On(taken)
    }

    /// The place of the next source that has something, after the one that was found last.
    #[inline]
    fn next_ready(&mut self) -> Option<usize> {
        let count = self.sources.len();
        for _ in 0..count {
            let at = if self.turn < count { self.turn } else { 0 };
            self.turn = at + 1;
            if self.sources[at].is_ready() {
                return Some(at);
            }
        }
        None
    }
}
