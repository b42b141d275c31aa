//! The samples of `peers/types.idl` that are counted.

use taut::DdsType;

/// A type whose memory is its wire form.
pub trait Sample: DdsType + PartialEq {
    /// Serialized, without the encapsulation header. *Units*: bytes.
    const SIZE: usize;
    /// One whose bytes are not all alike.
    fn example(seq: u64) -> Self;
}

macro_rules! plain {
    ($($name:ident $size:literal)*) => {$(
        #[derive(DdsType, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        #[dds(final, plain)]
        #[repr(C)]
        pub struct $name {
            pub seq: u64,
            pub sent_ns: i64,
            pub seen_ns: i64,
            pub data: [u8; $size - 24],
        }

        impl Sample for $name {
            const SIZE: usize = $size;

            fn example(seq: u64) -> Self {
                $name { seq, sent_ns: 1, seen_ns: 2, data: [seq.to_le_bytes()[0]; $size - 24] }
            }
        }
    )*};
}
plain!(Plain64 64 Plain256 256 Plain1024 1024 Plain4096 4096);

/// Texts and numbers in a sequence.
#[derive(DdsType, Clone, PartialEq)]
#[dds(final)]
pub struct Complex {
    pub length: i32,
    pub items: Vec<Item>,
}

/// *Shape*: 16 bytes with seven characters of info.
#[derive(DdsType, Clone, PartialEq)]
#[dds(final)]
pub struct Item {
    pub info: String,
    pub index: i32,
}

impl Complex {
    /// The bytes of one item, and of length and count before them.
    pub const ITEM: usize = 16;
    pub const HEAD: usize = 8;

    /// A sample with items of `size` bytes together.
    pub fn example(size: usize) -> Complex {
        let items: Vec<Item> =
            (0..).take(size / Complex::ITEM).map(|index| Item { info: "a label".into(), index }).collect();
        Complex { length: items.len() as i32, items }
    }
}

/// As long, with its instance behind what whoever looks for it goes past.
#[derive(DdsType, Clone, PartialEq)]
#[dds(final)]
pub struct KeyBehind {
    pub labels: Vec<Label>,
    #[dds(key)]
    pub place: String,
    #[dds(key)]
    pub number: i32,
}

/// As [`Item`]; one of its own, as an encoder that only one type has is made for it.
#[derive(DdsType, Clone, PartialEq)]
#[dds(final)]
pub struct Label {
    pub info: String,
    pub index: i32,
}

impl KeyBehind {
    /// A sample with labels of `size` bytes together.
    pub fn example(size: usize) -> KeyBehind {
        let labels =
            (0..).take(size / Complex::ITEM).map(|index| Label { info: "a label".into(), index }).collect();
        KeyBehind { labels, place: "a place".into(), number: 3 }
    }
}
