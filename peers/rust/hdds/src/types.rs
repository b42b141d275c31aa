//! The types of `peers/types.idl`, as HDDS's.
//!
//! Its derive knows numbers, strings and `Vec<u8>`. Arrays and sequences of structs are written by hand
//! over its public trait, with its own cursors, the bytes of an array copied at once.

use hdds::core::ser::cursor::{Cursor, CursorMut};
use hdds::core::types::TypeDescriptor;
use hdds::dds::{Error, Result};
use hdds::{DDS, DdsTrait};
use taut_perf_kit::fields::{Exchange, ITEM_SIZE};
use taut_perf_kit::payload;

/// What can be sent.
pub trait Type: DdsTrait + Exchange<Answer: DdsTrait> {}

impl<T: DdsTrait + Exchange<Answer: DdsTrait>> Type for T {}

/// A sample with a sequence of bytes.
#[derive(DDS)]
pub struct Sample {
    seq: u64,
    sent_ns: i64,
    seen_ns: i64,
    data: Vec<u8>,
}

payload!(bytes Sample);

/// D's simple type.
#[derive(DDS)]
pub struct Simple {
    index: i32,
    data: Vec<u8>,
}

payload!(simple Simple, Ack);

/// What answers [`Simple`] and [`Complex`].
#[derive(DDS)]
pub struct Ack {
    index: i32,
}

payload!(ack Ack);

/// The smallest: 16 bytes.
#[derive(DDS)]
pub struct Plain16 {
    seq: u64,
    sent_ns: i64,
}

payload!(plain16 Plain16);

macro_rules! plain {
    ($($name:ident: $data:literal, $id:literal;)*) => {
        $(
            /// A sample whose size is in its name.
            pub struct $name {
                seq: u64,
                sent_ns: i64,
                seen_ns: i64,
                data: [u8; $data],
            }

            payload!(plain $name: $data);

            impl DdsTrait for $name {
                fn type_descriptor() -> &'static TypeDescriptor {
                    static DESCRIPTOR: TypeDescriptor =
                        TypeDescriptor::new($id, stringify!($name), $data + 24, 8, false, &[]);
                    &DESCRIPTOR
                }

                fn encode_cdr2(&self, buf: &mut [u8]) -> Result<usize> {
                    let mut cursor = CursorMut::new(buf);
                    cursor.write_u64_le(self.seq)?;
                    cursor.write_u64_le(self.sent_ns as u64)?;
                    cursor.write_u64_le(self.seen_ns as u64)?;
                    cursor.write_bytes(&self.data)?;
                    Ok(cursor.offset())
                }

                fn decode_cdr2(buf: &[u8]) -> Result<Self> {
                    let mut cursor = Cursor::new(buf);
                    let seq = cursor.read_u64_le()?;
                    let (sent_ns, seen_ns) = (cursor.read_u64_le()? as i64, cursor.read_u64_le()? as i64);
                    let bytes = cursor.read_bytes($data)?;
                    let data = bytes.try_into().map_err(|_| Error::SerializationError)?;
                    Ok($name { seq, sent_ns, seen_ns, data })
                }
            }
        )*
    };
}

plain! {
    Plain64: 40, 0x5045_0040;
    Plain256: 232, 0x5045_0100;
    Plain512: 488, 0x5045_0200;
    Plain1024: 1_000, 0x5045_0400;
    Plain4096: 4_072, 0x5045_1000;
    Plain8192: 8_168, 0x5045_2000;
    Plain16384: 16_360, 0x5045_4000;
}

/// An item of [`Complex`].
pub struct Item {
    info: String,
    index: i32,
}

/// D's complex type.
pub struct Complex {
    length: i32,
    items: Vec<Item>,
}

payload!(complex Complex of Item, Ack);

impl DdsTrait for Complex {
    fn type_descriptor() -> &'static TypeDescriptor {
        // The descriptor's word for a size that varies.
        static DESCRIPTOR: TypeDescriptor =
            TypeDescriptor::new(0x5045_0001, "Complex", u32::MAX, 4, true, &[]);
        &DESCRIPTOR
    }

    fn encode_cdr2(&self, buf: &mut [u8]) -> Result<usize> {
        let mut cursor = CursorMut::new(buf);
        cursor.write_i32_le(self.length)?;
        cursor.write_u32_le(self.items.len() as u32)?;
        for item in &self.items {
            cursor.align(4)?;
            cursor.write_u32_le(item.info.len() as u32 + 1)?;
            cursor.write_bytes(item.info.as_bytes())?;
            cursor.write_u8(0)?;
            cursor.align(4)?;
            cursor.write_i32_le(item.index)?;
        }
        Ok(cursor.offset())
    }

    fn decode_cdr2(buf: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(buf);
        let (length, count) = (cursor.read_i32_le()?, cursor.read_u32_le()? as usize);
        // A count that the bytes cannot hold must not reserve memory.
        let mut items = Vec::with_capacity(count.min(buf.len() / ITEM_SIZE + 1));
        for _ in 0..count {
            cursor.align(4)?;
            let len = cursor.read_u32_le()? as usize;
            let text = cursor.read_bytes(len)?.strip_suffix(&[0]).ok_or(Error::SerializationError)?;
            let info = std::str::from_utf8(text).map_err(|_| Error::SerializationError)?.into();
            cursor.align(4)?;
            items.push(Item { info, index: cursor.read_i32_le()? });
        }
        Ok(Complex { length, items })
    }
}
