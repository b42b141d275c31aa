//! One lane of a reader, and what emptying lanes has done.

use taut_base::{Guid, InstanceHandle, SequenceNumber};
use taut_mem::lane::LaneReader;
use taut_rtps::history_cache::ChangeKind;

use crate::between_lanes::Waiting;
use crate::cell::Head;
use crate::status::StatusMask;

/// A lane that a reader reads.
#[repr(align(64))]
pub(crate) struct Source {
    pub(crate) writer: Guid,
    /// The writer's GUID as samples tell it.
    pub(super) handle: InstanceHandle,
    pub(super) strength: i32,
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
    pub(super) tells_time: bool,
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
    pub(super) fn shows_next(&self) -> bool {
        let next = || self.lane.peek().map(|meta| Head::of(&meta));
        let is_sure = |head: Head| head.number == self.next && head.kind == ChangeKind::Alive;
        self.reliable && self.is_ready() && next().is_some_and(is_sure)
    }

    /// Tells the writer how far the lane is read. Does it wait to hear it?
    #[inline]
    pub(super) fn publish(&mut self) -> bool {
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
