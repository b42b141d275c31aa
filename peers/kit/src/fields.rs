//! The types of `peers/types.idl` as structs of the adapter's own.
//!
//! An adapter declares them with the attributes that its middleware asks for; [`payload!`](crate::payload!)
//! makes [`Payload`]s of them, and says what answers what.

use crate::Payload;

/// A sample that ping sends, and what pong makes of it.
pub trait Exchange: Payload {
    /// The same type, or an acknowledgement of its number.
    type Answer: Payload;
    /// Makes the answer.
    fn answer(self) -> Self::Answer;
}

/// Header of a `Sample` and the length of its sequence.
pub const BYTES_HEADER: usize = 28;

/// What an `Item` takes: the length of its info, seven characters and a zero, its index.
pub const ITEM_SIZE: usize = 16;

/// The seven characters.
pub const ITEM_INFO: &str = "1234567";

/// Implements [`Payload`](crate::Payload) and, where it is sent by ping, [`Exchange`]:
/// `payload!(bytes Sample)`, `payload!(plain Plain64: 40)`, `payload!(plain16 Plain16)`,
/// `payload!(simple Simple, Ack)`, `payload!(complex Complex of Item, Ack)`, `payload!(ack Ack)`.
#[macro_export]
macro_rules! payload {
    (bytes $type:ident) => {
        $crate::payload!(stamped $type, |size| size.saturating_sub($crate::fields::BYTES_HEADER), |len| vec![0; len]);
    };
    (plain $type:ident: $data:literal) => {
        $crate::payload!(stamped $type, |_size| $data, |_len| [0; $data]);
    };
    (stamped $type:ident, $len:expr, $blank:expr) => {
        impl $crate::Payload for $type {
            fn sized(size: usize) -> Self {
                let len: fn(usize) -> usize = $len;
                #[allow(clippy::redundant_closure_call, reason = "the caller's expression")]
                let data = ($blank)(len(size));
                $type { seq: 0, sent_ns: 0, seen_ns: 0, data }
            }

            fn stamp(&self) -> $crate::Stamp {
                $crate::Stamp { seq: self.seq, sent_ns: self.sent_ns as u64, seen_ns: self.seen_ns as u64 }
            }

            fn set_stamp(&mut self, stamp: $crate::Stamp) {
                self.seq = stamp.seq;
                (self.sent_ns, self.seen_ns) = (stamp.sent_ns as i64, stamp.seen_ns as i64);
                $crate::line::mark(&mut self.data, stamp.seq);
            }

            fn intact(&self, size: usize) -> bool {
                let len: fn(usize) -> usize = $len;
                $crate::line::marked(&self.data, len(size), self.seq)
            }
        }

        $crate::payload!(echoed $type);
    };
    (plain16 $type:ident) => {
        impl $crate::Payload for $type {
            fn sized(_size: usize) -> Self {
                $type { seq: 0, sent_ns: 0 }
            }

            fn stamp(&self) -> $crate::Stamp {
                $crate::Stamp { seq: self.seq, sent_ns: self.sent_ns as u64, seen_ns: 0 }
            }

            fn set_stamp(&mut self, stamp: $crate::Stamp) {
                (self.seq, self.sent_ns) = (stamp.seq, stamp.sent_ns as i64);
            }

            fn intact(&self, _size: usize) -> bool {
                true
            }
        }

        $crate::payload!(echoed $type);
    };
    (simple $type:ident, $ack:ident) => {
        impl $crate::Payload for $type {
            fn sized(size: usize) -> Self {
                $type { index: 0, data: vec![0; size] }
            }

            fn stamp(&self) -> $crate::Stamp {
                $crate::Stamp { seq: self.index as u64, ..Default::default() }
            }

            fn set_stamp(&mut self, stamp: $crate::Stamp) {
                self.index = stamp.seq as i32;
                $crate::line::mark(&mut self.data, stamp.seq);
            }

            fn intact(&self, size: usize) -> bool {
                $crate::line::marked(&self.data, size, self.index as u64)
            }
        }

        $crate::payload!(acknowledged $type, $ack);
    };
    (complex $type:ident of $item:ident, $ack:ident) => {
        impl $crate::Payload for $type {
            fn sized(size: usize) -> Self {
                let count = (size / $crate::fields::ITEM_SIZE).max(1);
                let item = |index| $item { info: $crate::fields::ITEM_INFO.into(), index: index as i32 };
                $type { length: count as i32, items: (0..count).map(item).collect() }
            }

            fn stamp(&self) -> $crate::Stamp {
                let seq = self.items.first().map_or(0, |item| item.index as u64);
                $crate::Stamp { seq, ..Default::default() }
            }

            fn set_stamp(&mut self, stamp: $crate::Stamp) {
                if let Some(first) = self.items.first_mut() {
                    first.index = stamp.seq as i32;
                }
            }

            fn intact(&self, size: usize) -> bool {
                let count = (size / $crate::fields::ITEM_SIZE).max(1);
                let last = self.items.last();
                self.items.len() == count && last.is_some_and(|last| last.info == $crate::fields::ITEM_INFO)
            }
        }

        $crate::payload!(acknowledged $type, $ack);
    };
    (ack $type:ident) => {
        impl $crate::Payload for $type {
            fn sized(_size: usize) -> Self {
                $type { index: 0 }
            }

            fn stamp(&self) -> $crate::Stamp {
                $crate::Stamp { seq: self.index as u64, ..Default::default() }
            }

            fn set_stamp(&mut self, stamp: $crate::Stamp) {
                self.index = stamp.seq as i32;
            }

            fn intact(&self, _size: usize) -> bool {
                true
            }
        }
    };
    (echoed $type:ident) => {
        impl $crate::fields::Exchange for $type {
            type Answer = Self;
            fn answer(self) -> Self {
                self
            }
        }
    };
    (acknowledged $type:ident, $ack:ident) => {
        impl $crate::fields::Exchange for $type {
            type Answer = $ack;
            fn answer(self) -> $ack {
                $ack { index: $crate::Payload::stamp(&self).seq as i32 }
            }
        }
    };
}
