//! The part of a reader that its own thread works on: the samples, and the lanes they come through.
//!
//! Everything else of a participant needs the participant; this needs only whoever guards it. The protocol
//! delivers into it, lanes are emptied into it, the application takes from it. Must never wait.

mod insert;
mod lanes;
mod source;

use std::ops::Deref;

pub use source::Pulled;
pub(crate) use source::Source;
use taut_base::{Guid, SequenceNumber, Time};
use taut_mem::lane::{Entry, INLINE, Payload};
use taut_mem::{Bytes, Pool};
use taut_qos::{DataReaderQos, ReliabilityKind};
use taut_rtps::history_cache::CacheChange;
use taut_rtps::{Offer, Passage};

use crate::anatomy::{Anatomies, SampleAnatomy};
use crate::blocked::Blocked;
use crate::deadline::Missed;
use crate::lifespan::Lifespans;
use crate::names::Names;
use crate::reader_cache::ReaderCache;
use crate::sample_info::{PayloadKind, Sample, SampleInfo, Selection};
use crate::status::{SampleLostStatus, SampleRejectedStatus, StatusMask};
use crate::type_support::{ContentFilter, KeyHash, TypeSupport};

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

    /// Takes a change from the protocol, after what its writer's lane holds before it. What has no room stays.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Time, strength: i32, change: &mut Offer) -> StatusMask {
        if self.sources.is_empty() {
            return self.deliver_one(now, strength, change);
        }
        self.deliver_beside_lanes(now, strength, change)
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

    /// Reads selected samples; they stay. Returns how many.
    pub fn read(&mut self, now: Time, selection: &Selection, out: impl FnMut(Sample)) -> usize {
        self.on_timeout(now, usize::MAX);
        self.cache.read(selection, out)
    }
}
