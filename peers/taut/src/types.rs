//! The types of `peers/types.idl`, as Taut's.

use taut::{DdsType, Octets};
use taut_perf_kit::line::{mark, marked};
use taut_perf_kit::{Payload, Stamp};

/// What can be sent, and what answers it.
pub trait Type: DdsType + Payload + Send + Sync + 'static {
    /// The same type, or [`Ack`].
    type Answer: DdsType + Payload + Send + Sync + 'static;
    /// Makes the answer.
    fn answer(self) -> Self::Answer;
}

macro_rules! answered {
    ($($type:ty),*: with itself) => {
        $(impl Type for $type {
            type Answer = Self;
            fn answer(self) -> Self {
                self
            }
        })*
    };
    ($($type:ty),*: with an ack) => {
        $(impl Type for $type {
            type Answer = Ack;
            fn answer(self) -> Ack {
                Ack { index: self.stamp().seq as i32 }
            }
        })*
    };
}

/// A sample with a sequence of bytes.
#[derive(DdsType)]
#[dds(final, name = "perf::Sample")]
pub struct Bytes {
    seq: u64,
    sent_ns: i64,
    seen_ns: i64,
    data: Octets,
}

/// Marks them, if they are not marked so already: what was taken is answered as it lies there.
fn mark_octets(data: &mut Octets, seq: u64) {
    if !marked(data, data.len(), seq) {
        mark(data.to_mut(), seq);
    }
}

/// Header and length of the sequence.
const BYTES_HEADER: usize = 28;

impl Payload for Bytes {
    fn sized(size: usize) -> Self {
        Bytes { seq: 0, sent_ns: 0, seen_ns: 0, data: vec![0; size.saturating_sub(BYTES_HEADER)].into() }
    }

    fn stamp(&self) -> Stamp {
        Stamp { seq: self.seq, sent_ns: self.sent_ns as u64, seen_ns: self.seen_ns as u64 }
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        (self.seq, self.sent_ns, self.seen_ns) = (stamp.seq, stamp.sent_ns as i64, stamp.seen_ns as i64);
        mark_octets(&mut self.data, stamp.seq);
    }

    fn intact(&self, size: usize) -> bool {
        marked(&self.data, size.saturating_sub(BYTES_HEADER), self.seq)
    }
}

macro_rules! plain {
    ($($name:ident: $wire_name:literal, $data:literal;)*) => {
        $(
            /// A sample whose memory is its wire form; its size is in its name.
            #[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
            #[dds(final, plain, name = $wire_name)]
            #[repr(C)]
            pub struct $name {
                seq: u64,
                sent_ns: i64,
                seen_ns: i64,
                data: [u8; $data],
            }

            impl Payload for $name {
                fn sized(_size: usize) -> Self {
                    bytemuck::Zeroable::zeroed()
                }

                fn stamp(&self) -> Stamp {
                    Stamp { seq: self.seq, sent_ns: self.sent_ns as u64, seen_ns: self.seen_ns as u64 }
                }

                fn set_stamp(&mut self, stamp: Stamp) {
                    self.seq = stamp.seq;
                    (self.sent_ns, self.seen_ns) = (stamp.sent_ns as i64, stamp.seen_ns as i64);
                    mark(&mut self.data, stamp.seq);
                }

                fn intact(&self, _size: usize) -> bool {
                    marked(&self.data, $data, self.seq)
                }
            }

        )*
    };
}

plain! {
    Plain64: "perf::Plain64", 40;
    Plain256: "perf::Plain256", 232;
    Plain512: "perf::Plain512", 488;
    Plain1024: "perf::Plain1024", 1_000;
    Plain4096: "perf::Plain4096", 4_072;
    Plain8192: "perf::Plain8192", 8_168;
    Plain16384: "perf::Plain16384", 16_360;
    Plain65536: "perf::Plain65536", 65_512;
    Plain1048576: "perf::Plain1048576", 1_048_552;
    Plain2097152: "perf::Plain2097152", 2_097_128;
    Plain4194304: "perf::Plain4194304", 4_194_280;
    Plain8388608: "perf::Plain8388608", 8_388_584;
}

answered!(Plain64, Plain256, Plain512, Plain1024, Plain4096, Plain8192, Plain16384, Plain65536: with itself);

/// The smallest: 16 bytes.
#[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[dds(final, plain, name = "perf::Plain16")]
#[repr(C)]
pub struct Plain16 {
    seq: u64,
    sent_ns: i64,
}

impl Payload for Plain16 {
    fn sized(_size: usize) -> Self {
        Plain16 { seq: 0, sent_ns: 0 }
    }

    fn stamp(&self) -> Stamp {
        Stamp { seq: self.seq, sent_ns: self.sent_ns as u64, seen_ns: 0 }
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        (self.seq, self.sent_ns) = (stamp.seq, stamp.sent_ns as i64);
    }

    fn intact(&self, _size: usize) -> bool {
        true
    }
}

/// D's simple type.
#[derive(DdsType)]
#[dds(final, name = "perf::Simple")]
pub struct Simple {
    index: i32,
    data: Octets,
}

impl Payload for Simple {
    fn sized(size: usize) -> Self {
        Simple { index: 0, data: vec![0; size].into() }
    }

    fn stamp(&self) -> Stamp {
        Stamp { seq: self.index as u64, ..Stamp::default() }
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        self.index = stamp.seq as i32;
        mark_octets(&mut self.data, stamp.seq);
    }

    fn intact(&self, size: usize) -> bool {
        marked(&self.data, size, self.index as u64)
    }
}

/// An item of [`Complex`].
#[derive(DdsType)]
#[dds(final, name = "perf::Item")]
pub struct Item {
    info: String,
    index: i32,
}

/// D's complex type.
#[derive(DdsType)]
#[dds(final, name = "perf::Complex")]
pub struct Complex {
    length: i32,
    items: Vec<Item>,
}

/// What an item takes: its length, seven characters and a zero, its index.
const ITEM_SIZE: usize = 16;

impl Payload for Complex {
    fn sized(size: usize) -> Self {
        let count = (size / ITEM_SIZE).max(1);
        let item = |index| Item { info: "1234567".into(), index: index as i32 };
        Complex { length: count as i32, items: (0..count).map(item).collect() }
    }

    fn stamp(&self) -> Stamp {
        Stamp { seq: self.items.first().map_or(0, |item| item.index as u64), ..Stamp::default() }
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        if let Some(first) = self.items.first_mut() {
            first.index = stamp.seq as i32;
        }
    }

    fn intact(&self, size: usize) -> bool {
        let last = self.items.last();
        self.items.len() == (size / ITEM_SIZE).max(1) && last.is_some_and(|last| last.info == "1234567")
    }
}

/// What answers [`Simple`] and [`Complex`].
#[derive(DdsType)]
#[dds(final, name = "perf::Ack")]
pub struct Ack {
    index: i32,
}

impl Payload for Ack {
    fn sized(_size: usize) -> Self {
        Ack { index: 0 }
    }

    fn stamp(&self) -> Stamp {
        Stamp { seq: self.index as u64, ..Stamp::default() }
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        self.index = stamp.seq as i32;
    }

    fn intact(&self, _size: usize) -> bool {
        true
    }
}

answered!(Bytes, Plain16: with itself);
answered!(Simple, Complex: with an ack);
