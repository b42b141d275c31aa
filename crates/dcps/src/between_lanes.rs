//! Which lane is read first where several have something. DCPS 1.4 §2.2.3.9.2, §2.2.3.17, §2.2.3.18.
//!
//! A lane is read when somebody wants to see what is in it, which may be long after that was written. What several writers
//! have written meanwhile comes in the order in which they wrote, by their source timestamps: else one that KEEP_LAST
//! keeps would not be the last, an instance would be disposed of that was written since, and a weaker writer be heard
//! beside its owner. Within a lane nothing changes its place.

use taut_base::Time;

use crate::StatusMask;
use crate::cell::Head;
use crate::reader_side::{Pulled, ReaderSide, Source};

/// So many samples of each other lane come before one though it would be its turn after them: a writer's timestamps may be
/// the user's, and far ahead. Lower and samples of a long pause are out of order, higher and one waits longer behind who
/// writes without a pause. As many as a lane holds: what lay in the others when it was written comes before it.
pub(crate) const PATIENCE: usize = 512;

/// Before all others.
const FIRST: u64 = 0;

/// A lane's next sample, since it was found there.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    /// When it was written.
    written: u64,
    /// How many samples of others have come before it since.
    others: usize,
}

impl Source {
    /// When its next sample was written; one that does not say comes at once.
    pub(crate) fn written(&self) -> u64 {
        let meta = self.lane.peek();
        meta.and_then(|meta| Head::of(&meta).source_timestamp).map_or(FIRST, |written| written.to_bits())
    }

    /// Has its next sample waited too long, whenever it was written?
    fn is_overdue(&self, patience: usize) -> bool {
        self.waiting.is_some_and(|waiting| waiting.others >= patience)
    }
}

impl ReaderSide {
    /// Does it matter which of several samples was written first? With KEEP_LAST the last stays, and an instance has the
    /// state and the owner that it had at the end.
    #[inline]
    pub(crate) fn minds_order(&self) -> bool {
        self.key_hash.is_some() || self.cache.depth.is_some() || self.cache.exclusive
    }

    /// There is room for which changes of other writers wait in the protocol: half of the times it is offered to the lanes first.
    /// Who takes samples one by one would not look there as long as those keep the cache full.
    #[cold]
    pub(crate) fn offer_to_lanes(&mut self, now: Time) -> StatusMask {
        self.offers = self.offers.wrapping_add(1);
        // Twice in a row, and twice not: the protocol has two sides that take turns there each time.
        if self.offers & 2 == 0 {
            return StatusMask::NONE;
        }
        let pulled = self.pull_at_most(now, taut_rtps::limits::LOCAL_CHANGES);
        self.note_awaited(pulled);
        pulled.news
    }

    /// Has another lane something that may have to come before what is in the one at this place?
    #[inline]
    pub(crate) fn is_one_of_several(&self, place: usize) -> bool {
        self.sources.len() > 1
            && self.minds_order()
            && self.sources.iter().enumerate().any(|(at, source)| at != place && source.is_ready())
    }

    /// Takes what is in the lane at this place.
    pub(crate) fn pull_alone(&mut self, now: Time, at: usize) -> Pulled {
        let (mut pulled, mut source) = (Pulled::default(), self.sources.swap_remove(at));
        self.pull_source(now, &mut source, &mut pulled, usize::MAX, u64::MAX);
        self.sources.push(source);
        let last = self.sources.len().saturating_sub(1);
        self.sources.swap(at, last);
        pulled
    }

    /// Takes what is in these lanes, in the order in which it was written, until `pulled` has at most so many samples.
    /// *Cost*: whenever the next sample is of another lane, words of its own for each that has something, and a look into
    /// each that has nothing. So N lanes with a sample each cost N² of both.
    #[cold]
    pub(crate) fn pull_in_order(
        &mut self,
        now: Time,
        sources: &mut [Source],
        pulled: &mut Pulled,
        most: usize,
    ) {
        // Who goes on writing meanwhile is not waited for.
        let mut left = sources.iter().fold(0, |cells: usize, source| cells.saturating_add(source.cells()));
        let patience = PATIENCE.saturating_mul(sources.len().saturating_sub(1));
        while pulled.read < most
            && left > 0
            && let Some((at, until)) = self.first_written(sources, patience)
        {
            let Some(source) = sources.get_mut(at) else { return };
            let (before, passed) = (pulled.read, source.lane.passed());
            // With one that is overdue comes all that has gathered behind it.
            let until = if source.is_overdue(patience) { u64::MAX } else { until };
            self.pull_source(now, source, pulled, most, until);
            let read = pulled.read.saturating_sub(before);
            let passed = source.lane.passed().saturating_sub(passed);
            // One that was overtaken while it was looked at has had its turn. What was passed there is not read.
            left = left.saturating_sub(read.max(1)).saturating_sub(passed as usize);
            for waiting in sources.iter_mut().filter_map(|source| source.waiting.as_mut()) {
                waiting.others = waiting.others.saturating_add(read);
            }
            if pulled.read >= most {
                self.turn = at.saturating_add(1);
            }
        }
    }

    /// The lane whose next sample was written first, and until when what follows in it was written before that of others. Of
    /// those that were written at the same time it is the first whose turn it is.
    fn first_written(&self, sources: &mut [Source], patience: usize) -> Option<(usize, u64)> {
        let turn = if self.turn < sources.len() { self.turn } else { 0 };
        let (before, after) = sources.split_at_mut_checked(turn)?;
        let places = (turn..).take(after.len()).chain(0..turn);
        let (mut first, mut second) = (None, u64::MAX);
        for (source, at) in after.iter_mut().chain(before).zip(places) {
            // Only what is there before others are read waits for them. It is looked at once.
            if source.waiting.is_none() && source.is_ready() {
                source.waiting = Some(Waiting { written: source.written(), others: 0 });
            }
            let Some(waiting) = source.waiting else { continue };
            let written = if source.is_overdue(patience) { FIRST } else { waiting.written };
            match first {
                Some((_, earliest)) if written >= earliest => second = second.min(written),
                found => {
                    second = found.map_or(second, |(_, earliest)| second.min(earliest));
                    first = Some((at, written));
                }
            }
        }
        first.map(|(at, written)| (at, second.max(written)))
    }
}
