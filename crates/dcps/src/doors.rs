//! Where readers' sides are kept: by the executor behind locks of their own, by who has one thread in a row.

use taut_base::Time;
use taut_rtps::{Offer, ReaderIndex};

use crate::reader_side::ReaderSide;
use crate::status::StatusMask;

/// A change on its way to a reader's side, and what has come of it there.
pub struct Delivery<'a> {
    /// The time of the step.
    pub(crate) now: Time,
    /// OWNERSHIP_STRENGTH of its writer.
    pub(crate) strength: i32,
    /// From the monotonic clock to the wall clock, in ns.
    pub(crate) to_wall: Option<i64>,
    /// It; what is left has found no room.
    pub(crate) offer: &'a mut Offer,
    /// What is new.
    pub(crate) news: StatusMask,
    /// When to look at deadlines.
    pub(crate) alarm: Option<Time>,
    /// There is such a reader.
    pub(crate) is_there: bool,
}

impl Delivery<'_> {
    /// Brings it into the side.
    #[inline]
    pub fn enter(&mut self, side: &mut ReaderSide) {
        side.lifespans.note_wall_clock(self.to_wall);
        self.news = side.deliver(self.now, self.strength, self.offer);
        self.alarm = side.take_alarm();
        self.is_there = true;
    }
}

/// Where the sides of a participant's readers are, so that their owners reach them without it.
pub trait Doors: Send {
    /// Puts a reader's side in its place, or takes it away.
    fn set(&mut self, index: ReaderIndex, side: Option<ReaderSide>);
    /// Shows a reader's side; nothing happens if there is none.
    fn look(&self, index: ReaderIndex, call: &mut dyn FnMut(&ReaderSide));
    /// Calls with a reader's side; not at all if there is none.
    fn with(&mut self, index: ReaderIndex, call: &mut dyn FnMut(&mut ReaderSide));
    /// The same with a change that is delivered. *Cost*: what most calls do is done where the side is.
    fn deliver(&mut self, index: ReaderIndex, delivery: &mut Delivery<'_>) {
        self.with(index, &mut |side| delivery.enter(side));
    }
}

/// All in one place, for who has one thread.
impl Doors for Vec<Option<ReaderSide>> {
    fn set(&mut self, index: ReaderIndex, side: Option<ReaderSide>) {
        let at = index.0 as usize;
        if self.len() <= at {
            self.resize_with(at.saturating_add(1), || None);
        }
        if let Some(slot) = self.get_mut(at) {
            *slot = side;
        }
    }

    fn look(&self, index: ReaderIndex, call: &mut dyn FnMut(&ReaderSide)) {
        if let Some(Some(side)) = self.get(index.0 as usize) {
            call(side);
        }
    }

    fn with(&mut self, index: ReaderIndex, call: &mut dyn FnMut(&mut ReaderSide)) {
        if let Some(Some(side)) = self.get_mut(index.0 as usize) {
            call(side);
        }
    }
}
