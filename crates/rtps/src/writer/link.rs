//! What a writer's owner and the protocol tell each other without meeting.
//!
//! The owner of a writer whose readers all take its changes from a lane need not go through the protocol
//! at all: it writes into the lane and says so here. The protocol says here when that is enough.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use taut_base::SequenceNumber;
use taut_mem::fail::{self, Point};
use taut_mem::store_and_fence;

/// Words that the owner of the writer sets, and words that the protocol sets.
///
/// They may be a change late on the other side. A change that is written directly while a reader matches
/// who needs the protocol is, to that reader, one from before the match or one that is gone.
#[derive(Debug, Default)]
pub struct Link {
    last: AtomicU64,
    off_lane: AtomicI64,
    unread_from: AtomicI64,
    seen: AtomicI64,
    direct: AtomicBool,
    full: AtomicBool,
}

impl Link {
    /// The last change that was written past the protocol.
    pub fn last(&self) -> SequenceNumber {
        SequenceNumber(self.last.load(Ordering::SeqCst).cast_signed())
    }

    /// The owner has written a change past the protocol, which had seen all before it that it was given. Ends
    /// with a fence, so that of the owner and the protocol at least one sees what the other has just said.
    pub fn set_last(&self, last: SequenceNumber) {
        store_and_fence(&self.last, last.0.cast_unsigned());
        fail::point(Point::LinkMoved);
    }

    /// The last change that was written past the protocol and past the lane, as it had no reader.
    pub fn off_lane(&self) -> SequenceNumber {
        SequenceNumber(self.off_lane.load(Ordering::SeqCst))
    }

    /// The owner is about to write a change past both. A reader that comes at this moment may wait for it: it is
    /// told that it is gone.
    pub fn set_off_lane(&self, number: SequenceNumber) {
        self.off_lane.store(number.0, Ordering::Release);
    }

    /// The first change that waits in the lane: from there on all count against RESOURCE_LIMITS, wherever they are.
    pub fn unread_from(&self) -> Option<SequenceNumber> {
        Some(SequenceNumber(self.unread_from.load(Ordering::Relaxed)))
            .filter(|from| *from > SequenceNumber::ZERO)
    }

    /// This is the first change that waits in the lane of a writer with a limit.
    pub fn set_unread_from(&self, first: Option<SequenceNumber>) {
        self.unread_from.store(first.unwrap_or(SequenceNumber::ZERO).0, Ordering::Relaxed);
    }

    /// Are the writer's readers content with its lane, and does the protocol owe them nothing?
    pub fn is_direct(&self) -> bool {
        self.direct.load(Ordering::SeqCst)
    }

    /// Has a change that came through the protocol found no room, and has it had none since?
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(super) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    /// The last change that came through the protocol.
    pub fn seen(&self) -> SequenceNumber {
        SequenceNumber(self.seen.load(Ordering::Acquire))
    }

    pub(super) fn set_seen(&self, seen: SequenceNumber) {
        self.seen.store(seen.0, Ordering::Release);
    }

    pub(super) fn set_direct(&self, direct: bool) {
        if self.direct.load(Ordering::Relaxed) != direct {
            self.direct.store(direct, Ordering::SeqCst);
        }
    }
}
