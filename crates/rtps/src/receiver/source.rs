//! Who a submessage is from and for, and how much more of its message is looked at. RTPS 2.5 §8.3.4.

use std::cell::Cell;

use taut_base::{GuidPrefix, Locator, Timestamp, VendorId};
use taut_wire::Header;

use crate::limits;

/// What the submessages so far say about those that follow. RTPS 2.5 §8.3.4 Receiver.
pub(crate) struct Source<'a> {
    /// All of the message.
    pub(super) message: &'a [u8],
    pub prefix: GuidPrefix,
    pub vendor: VendorId,
    pub locator: Locator,
    pub(super) for_us: bool,
    /// It claims to come from this participant itself.
    pub(super) reflected: bool,
    pub(super) timestamp: Option<Timestamp>,
    /// How many numbers its sets may still have.
    numbers: u32,
    /// How many participants it may still tell something new of.
    announcements: Cell<u32>,
}

impl<'a> Source<'a> {
    /// Before the first submessage.
    pub(super) fn new(message: &'a [u8], header: &Header, locator: Locator) -> Source<'a> {
        Source {
            message,
            prefix: header.prefix,
            vendor: header.vendor,
            locator,
            for_us: true,
            reflected: false,
            timestamp: None,
            numbers: limits::MESSAGE_NUMBERS,
            announcements: Cell::new(limits::MESSAGE_ANNOUNCEMENTS),
        }
    }

    /// May it tell something new of one more participant, which counts? What is too much for one step is repeated.
    pub(crate) fn may_announce(&self) -> bool {
        let left = self.announcements.get();
        self.announcements.set(left.saturating_sub(1));
        left > 0
    }

    /// May a set of so many bits be looked through, which counts? What is too much for one step is repeated.
    #[inline]
    pub(super) fn may_name(&mut self, bits: u32) -> bool {
        let cost = bits.saturating_add(1);
        let may = cost <= self.numbers;
        self.numbers = self.numbers.saturating_sub(cost);
        may
    }
}
