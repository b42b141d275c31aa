//! Who a submessage is from and for, and how much more of its message is looked at. RTPS 2.5 §8.3.4.

use taut_base::{GuidPrefix, Locator, SequenceNumberSet, Timestamp, VendorId};
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
}

impl<'a> Source<'a> {
    /// Before the first submessage.
    pub(super) fn new(message: &'a [u8], header: &Header, locator: Locator) -> Source<'a> {
        let (prefix, vendor, numbers) = (header.prefix, header.vendor, limits::MESSAGE_NUMBERS);
        Source { message, prefix, vendor, locator, for_us: true, reflected: false, timestamp: None, numbers }
    }

    /// May a set with so many numbers be looked through, which counts? What is too much for one step is repeated.
    #[inline]
    pub(super) fn may_name(&mut self, set: &SequenceNumberSet) -> bool {
        let cost = set.num_bits().saturating_add(1);
        let may = cost <= self.numbers;
        self.numbers = self.numbers.saturating_sub(cost);
        may
    }
}
