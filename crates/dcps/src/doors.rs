//! Where readers' sides are kept: by the executor behind locks of their own, by who has one thread in a row.

use taut_rtps::ReaderIndex;

use crate::reader_side::ReaderSide;

/// Where the sides of a participant's readers are, so that their owners reach them without it.
pub trait Doors: Send {
    /// Puts a reader's side in its place, or takes it away.
    fn set(&mut self, index: ReaderIndex, side: Option<ReaderSide>);
    /// Shows a reader's side; nothing happens if there is none.
    fn look(&self, index: ReaderIndex, call: &mut dyn FnMut(&ReaderSide));
    /// Calls with a reader's side; not at all if there is none.
    fn with(&mut self, index: ReaderIndex, call: &mut dyn FnMut(&mut ReaderSide));
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
