//! The part of a reader that its own thread works on: the samples, and the lanes they come through.
//!
//! Everything else of a participant needs the participant; this needs only whoever guards it. The protocol
//! delivers into it, lanes are emptied into it, the application takes from it. Must never wait.

mod insert;

use std::ops::Deref;

use taut_base::{Guid, InstanceHandle, SequenceNumber, Time};
use taut_mem::lane::{Entry, INLINE, LaneReader, Next, Payload, Peephole};
use taut_mem::{Bytes, Pool};
use taut_qos::{DataReaderQos, ReliabilityKind};
use taut_rtps::history_cache::{CacheChange, ChangeKind};
use taut_rtps::{Offer, Passage};

use crate::anatomy::{Anatomies, SampleAnatomy};
use crate::between_lanes::Waiting;
use crate::blocked::Blocked;
use crate::cell::{self, Head};
use crate::deadline::Missed;
use crate::lifespan::Lifespans;
use crate::names::Names;
use crate::reader_cache::ReaderCache;
use crate::sample_info::{PayloadKind, Sample, SampleInfo, Selection};
use crate::status::{SampleLostStatus, SampleRejectedStatus, StatusMask};
use crate::type_support::{ContentFilter, KeyHash, TypeSupport};

/// A lane that a reader reads.
#[repr(align(64))]
pub(crate) struct Source {
    pub(crate) writer: Guid,
    /// The writer's GUID as samples tell it.
    handle: InstanceHandle,
    strength: i32,
    pub(crate) lane: LaneReader,
    /// Must what the lane leaves out be waited for?
    pub(crate) reliable: bool,
    /// What is below has come, through the lane or the protocol.
    pub(crate) next: SequenceNumber,
    /// What is below it and not in the lane comes no more.
    pub(crate) settled: SequenceNumber,
    /// The last that it had written when it fell silent, if some of that has to wait.
    pub(crate) silent_until: SequenceNumber,
    /// The lane's next sample has to wait, for one that comes through the protocol or for room.
    pub(crate) stalled: bool,
    /// The writer broke the lane's rules; nothing of it is read any more.
    pub(crate) broken: bool,
    /// Its words say when `write` was called, by a clock that is this one.
    tells_time: bool,
    /// Its next sample, if it was found beside those of others.
    pub(crate) waiting: Option<Waiting>,
}

impl Source {
    pub(crate) fn is_ready(&self) -> bool {
        !self.stalled && !self.broken && self.lane.is_ready()
    }

    /// How many samples it holds at most.
    pub(crate) fn cells(&self) -> usize {
        usize::try_from(self.lane.lane().cells()).unwrap_or(usize::MAX)
    }

    /// The number of the lane's next sample.
    pub(crate) fn first(&self) -> Option<SequenceNumber> {
        self.lane.peek().map(|meta| Head::of(&meta).number)
    }

    /// Is the lane's next sample one with data that nothing comes before? Who may be overtaken cannot say.
    fn shows_next(&self) -> bool {
        let next = || self.lane.peek().map(|meta| Head::of(&meta));
        let is_sure = |head: Head| head.number == self.next && head.kind == ChangeKind::Alive;
        self.reliable && self.is_ready() && next().is_some_and(is_sure)
    }

    /// Tells the writer how far the lane is read. Does it wait to hear it?
    #[inline]
    fn publish(&mut self) -> bool {
        if self.reliable {
            return self.lane.publish();
        }
        self.lane.publish_unawaited();
        false
    }
}

/// What emptying the lanes has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pulled {
    /// What is new.
    pub news: StatusMask,
    /// A writer waits to hear that there is room.
    pub awaited: bool,
    /// Samples that were read, without those that have to wait.
    pub read: usize,
}

impl Pulled {
    /// Both together.
    pub fn add(&mut self, other: Pulled) {
        self.news = self.news | other.news;
        self.awaited |= other.awaited;
        self.read = self.read.saturating_add(other.read);
    }
}

/// What became of the wish to pass a sample on.
pub enum Passed<R, F> {
    /// It was passed on.
    On(R),
    /// There is none, in a lane or in the cache.
    Nothing,
    /// It has to go through the cache.
    Not(F),
}

/// The bytes of a sample that is being taken, where they lie.
pub enum TakenPayload<'a> {
    /// They have come out of a lane.
    Lane(&'a mut Payload),
    /// The cache has kept them.
    Cache(&'a mut Bytes),
}

impl TakenPayload<'_> {
    /// Takes them away.
    pub fn take(&mut self) -> Payload {
        match self {
            TakenPayload::Lane(payload) => std::mem::take(payload),
            TakenPayload::Cache(bytes) => Payload::Long(std::mem::take(bytes)),
        }
    }
}

impl Deref for TakenPayload<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            TakenPayload::Lane(payload) => payload,
            TakenPayload::Cache(bytes) => bytes,
        }
    }
}

/// A sample that is being taken, where it was put together.
pub struct Taken<'a> {
    /// Its bytes, to be left or taken away.
    pub payload: TakenPayload<'a>,
    /// What these bytes are.
    pub payload_kind: PayloadKind,
    /// What is known of it.
    pub info: &'a SampleInfo,
    short: &'a mut Pool,
}

impl Taken<'_> {
    /// The sample, to keep. *Cost*: a copy of a short payload.
    pub fn keep(self) -> Sample {
        let Taken { mut payload, payload_kind, info, short } = self;
        Sample { payload: payload.take().keep(short), payload_kind, info: *info }
    }
}

/// Buffers for short payloads that a reader remembers. Lower and a deep cache allocates each time that it
/// fills; higher and one that was full once keeps more memory.
const SHORT_BUFFERS: usize = 4_096;

/// One reader's samples and where they come from.
pub struct ReaderSide {
    /// Its samples.
    pub cache: ReaderCache,
    /// Samples that were lost on their way, or are none of its type.
    pub sample_lost: SampleLostStatus,
    /// Samples that found no room.
    pub sample_rejected: SampleRejectedStatus,
    /// Samples that its filter has kept out.
    pub filtered_out: u64,
    /// Lanes whose writers broke their rules.
    pub broken_lanes: u64,
    /// The writers of those that nobody has been told of.
    broken: Vec<Guid>,
    /// Writers that it is matched with.
    pub matched: usize,
    pub(crate) key_hash: Option<KeyHash>,
    pub(crate) filter: Option<ContentFilter>,
    pub(crate) lifespans: Lifespans,
    reliable: bool,
    /// Buffers for short payloads that stay in the cache.
    pub(crate) short: Pool,
    /// A change waits in the protocol for room in the cache.
    pub(crate) blocked: Blocked,
    /// How often there was room that those changes wait for: it says whose turn it is.
    pub(crate) offers: u8,
    /// A writer waits to hear of room that was made where nobody could tell it.
    awaited: bool,
    pub(crate) sources: Vec<Source>,
    /// The place of the source that is looked at first.
    pub(crate) turn: usize,
    /// When its lanes are to be looked into for the sake of deadlines, and how much has been read there since that began.
    sweep_at: Time,
    swept: usize,
    /// When who drives looks next, as far as it was told.
    pub(crate) looked_at_next: Time,
    /// What was found in a lane last, and what is known of it. They are put together here and copied once:
    /// a processor waits where it reads as one what it has just written in parts.
    pub(crate) entry: Entry,
    info: SampleInfo,
    /// Where the latency of its last samples went, if somebody wants to know.
    anatomies: Option<Box<Anatomies>>,
}

impl ReaderSide {
    pub(crate) fn new(qos: &DataReaderQos, type_support: &TypeSupport) -> ReaderSide {
        let mut cache = ReaderCache::new(qos, type_support.key_hash.is_some());
        cache.instances.names = Names::new(type_support.other_key_hash);
        cache.instances.key_of = type_support.key_of;
        ReaderSide {
            cache,
            sample_lost: SampleLostStatus::default(),
            sample_rejected: SampleRejectedStatus::default(),
            filtered_out: 0,
            broken_lanes: 0,
            broken: Vec::new(),
            matched: 0,
            key_hash: type_support.key_hash,
            filter: type_support.filter.clone(),
            lifespans: Lifespans::default(),
            reliable: qos.reliability.kind == ReliabilityKind::Reliable,
            short: Pool::new(INLINE, SHORT_BUFFERS),
            blocked: Blocked::default(),
            offers: 0,
            awaited: false,
            sources: Vec::new(),
            turn: 0,
            sweep_at: Time::NEVER,
            swept: 0,
            looked_at_next: Time::NEVER,
            entry: Entry::default(),
            info: SampleInfo::NONE,
            anatomies: None,
        }
    }

    /// From now on it remembers where the latency of so many samples went. *Cost*: 128 B each.
    pub fn remember(&mut self, samples: usize) {
        self.anatomies = Some(Box::new(Anatomies::new(samples)));
        self.cache.note_all();
    }

    /// All that it remembers, oldest first.
    pub fn anatomies(&self) -> impl Iterator<Item = SampleAnatomy> {
        self.anatomies.iter().flat_map(|seen| seen.iter())
    }

    /// What it remembers of a sample.
    pub fn anatomy_of(&self, info: &SampleInfo) -> Option<SampleAnatomy> {
        self.anatomies.as_ref()?.find(info.publication_handle, info.sequence_number)
    }

    /// The protocol knows when a sample was written.
    pub(crate) fn note_passage(&mut self, writer: Guid, number: SequenceNumber, passage: Passage) {
        if let Some(seen) = &mut self.anatomies {
            seen.note_passage(writer, number, passage);
        }
    }

    /// What was delivered since the last call of this is there now. Asks for the time only if somebody wants to know.
    #[inline]
    pub fn end_delivery(&mut self, now: impl FnOnce() -> Time) {
        if let Some(seen) = &mut self.anatomies {
            seen.end_delivery(now);
        }
    }

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

    /// Has a deadline come up that who drives does not know of? When to look then. What the owner finds in a lane
    /// need not be told: a look comes before the first period that begins there ends.
    #[inline]
    pub(crate) fn take_alarm(&mut self) -> Option<Time> {
        std::mem::take(&mut self.cache.alarm).then(|| {
            self.take_untold();
            self.plan_look()
        })
    }

    /// When who drives is to look; it is told.
    #[inline(never)]
    fn plan_look(&mut self) -> Time {
        let expires = self.cache.next_timeout().unwrap_or(Time::NEVER).min(self.blocked.next_timeout());
        self.looked_at_next = self.cache.next_deadline().min(self.sweep_at).min(expires);
        self.looked_at_next
    }

    /// Forgets what is too old, looks which deadlines were missed and when to look again. What lies in a lane has come when it was written:
    /// once in each period is often enough to find it before its instance's next sample is due.
    pub(crate) fn look_at_deadlines(
        &mut self,
        now: Time,
        budget: &mut usize,
    ) -> ((Missed, Time), StatusMask) {
        // Who goes on writing is not waited for longer than until as much was read as the lanes hold.
        let sweeps = self.swept < self.sources.iter().map(Source::cells).sum();
        let pulled = if sweeps { self.pull_at_most(now, *budget) } else { Pulled::default() };
        self.note_awaited(pulled);
        *budget -= pulled.read;
        self.swept += pulled.read;
        if sweeps && *budget == 0 && self.is_ready() {
            self.sweep_at = Time::AT_ONCE;
            return ((Missed::default(), self.plan_look()), pulled.news);
        }
        self.swept = 0;
        *budget -= self.on_timeout(now, *budget);
        self.sweep_at = if self.sources.is_empty() { Time::NEVER } else { now + self.cache.deadline() };
        let missed = self.cache.look_at_deadlines(now, budget);
        self.cache.freed |= self.blocked.is_due(now);
        (self.cache.alarm, _) = (false, self.take_untold());
        let surfaced = self.take_surfaced();
        ((missed, self.plan_look()), pulled.news | surfaced)
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

    /// Is nothing here, and does nothing come by itself: no lane leads here, and no time brings anything?
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.cache.is_empty() && self.sources.is_empty() && !self.cache.has_timeout()
    }

    /// Is there a sample that was not read, as far as that can be said without looking through the lanes? If
    /// one is in a lane it is left there, from where [`ReaderSide::pass_next`] takes it. Asks for the time only if it
    /// needs to know.
    pub fn shows_unread(&mut self, now: impl FnOnce() -> Time) -> bool {
        self.expire(now);
        let passes = || self.key_hash.is_none() && self.filter.is_none() && self.cache.may_pass();
        self.cache.unread_count() > 0 || (passes() && self.sources.iter().any(Source::shows_next))
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

    /// Takes a change from the protocol, after what its writer's lane holds before it. What has no room stays.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Time, strength: i32, change: &mut Offer) -> StatusMask {
        if self.sources.is_empty() {
            return self.deliver_one(now, strength, change);
        }
        self.deliver_beside_lanes(now, strength, change)
    }

    fn deliver_beside_lanes(&mut self, now: Time, strength: i32, change: &mut Offer) -> StatusMask {
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

    #[inline]
    fn deliver_one(&mut self, now: Time, strength: i32, change: &mut Offer) -> StatusMask {
        if self.anatomies.is_some() {
            return self.deliver_noted(now, strength, change);
        }
        self.deliver_unnoted(now, strength, change)
    }

    #[cold]
    fn deliver_noted(&mut self, now: Time, strength: i32, offer: &mut Offer) -> StatusMask {
        let name = |change: &CacheChange| (change.writer_guid, change.sequence_number, change.time);
        let name = offer.as_ref().map(name);
        let news = self.deliver_unnoted(now, strength, offer);
        if let Some((writer, number, arrived)) = name.filter(|_| news.intersects(StatusMask::DATA_AVAILABLE))
            && let Some(seen) = &mut self.anatomies
        {
            seen.note_delivered(writer, number, arrived, now);
        }
        news
    }

    #[inline]
    fn deliver_unnoted(&mut self, now: Time, strength: i32, change: &mut Offer) -> StatusMask {
        let goes_by_time = !self.cache.deadline().is_infinite() || self.cache.separation.is_on();
        if let Some(change) = change.as_mut().filter(|_| goes_by_time) {
            // It may have arrived before what it had to wait for.
            change.time = now;
        }
        let news = self.insert(now, strength, change);
        if change.is_some() {
            self.note_blocked();
            self.await_expiry();
        }
        news
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

    /// Takes selected samples. Returns how many.
    pub fn take(&mut self, now: Time, selection: &Selection, mut out: impl FnMut(Sample)) -> usize {
        self.on_timeout(now, usize::MAX);
        let ReaderSide { cache, anatomies, .. } = self;
        cache.take(selection, |sample| {
            if let Some(seen) = anatomies {
                seen.note_taken(sample.info.publication_handle, sample.info.sequence_number, now);
            }
            out(sample);
        })
    }

    /// Takes the next sample that was not read before.
    pub fn take_next(&mut self, now: Time) -> Option<Sample> {
        self.on_timeout(now, usize::MAX);
        if self.anatomies.is_some() {
            return self.take_noted(now);
        }
        self.cache.take_next()
    }

    /// Apart from the others, whose sample goes to its place without a copy.
    #[cold]
    fn take_noted(&mut self, now: Time) -> Option<Sample> {
        let sample = self.cache.take_next()?;
        if let Some(seen) = &mut self.anatomies {
            seen.note_taken(sample.info.publication_handle, sample.info.sequence_number, now);
        }
        Some(sample)
    }

    /// Takes the next sample that was not read before, and gives it to `out`. Asks for the time only if it needs
    /// to know.
    pub fn take_next_with<R>(
        &mut self,
        now: impl Fn() -> Time,
        out: impl FnOnce(Taken<'_>) -> R,
    ) -> Option<R> {
        self.expire(&now);
        let ReaderSide { cache, anatomies, info, short, .. } = self;
        let mut note = |info: &SampleInfo| {
            if let Some(seen) = anatomies {
                seen.note_taken(info.publication_handle, info.sequence_number, now());
            }
        };
        if let Some(fresh) = cache.take_fresh(info) {
            note(info);
            let payload = TakenPayload::Cache(fresh.0);
            return Some(out(Taken { payload, payload_kind: PayloadKind::Data, info, short }));
        }
        if cache.unread_count() == 0 {
            return None;
        }
        let mut sample = cache.take_next()?;
        note(&sample.info);
        let Sample { payload, payload_kind, info } = &mut sample;
        let payload = TakenPayload::Cache(payload);
        Some(out(Taken { payload, payload_kind: *payload_kind, info, short }))
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

    /// Reads selected samples; they stay. Returns how many.
    pub fn read(&mut self, now: Time, selection: &Selection, out: impl FnMut(Sample)) -> usize {
        self.on_timeout(now, usize::MAX);
        self.cache.read(selection, out)
    }
}
