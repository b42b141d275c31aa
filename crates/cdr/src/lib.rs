//! XCDR1 and XCDR2: the serialized form of DDS samples and keys, and the key hash.
//!
//! Owns the rules of DDS-XTypes 1.3 §7.4 (encodings), §7.6.3.1.2 (encapsulation) and §7.6.8 (key hash).
//! Must never panic on bytes, allocate more than the bytes received call for, or know about RTPS.
//! Called by the typed API on floor 5 (through `derive(DdsType)`) and by its untyped table of functions.
//!
//! ```
//! use taut_cdr::{Representation, from_payload, to_payload};
//! use taut_derive::DdsType;
//!
//! #[derive(DdsType, Debug, PartialEq)]
//! #[dds(final, name = "ShapeType", crate = taut_cdr)]
//! struct Shape {
//!     #[dds(key, bound = 128)]
//!     color: String,
//!     x: i32,
//!     y: i32,
//!     shapesize: i32,
//! }
//! let shape = Shape { color: "BLUE".into(), x: 1, y: 2, shapesize: 30 };
//! let mut payload = Vec::new();
//! to_payload(&shape, Representation::Xcdr1, &mut payload).unwrap();
//! assert_eq!(payload.len(), 4 + 4 + 5 + 3 + 12);
//! assert_eq!(from_payload(&payload), Ok(shape));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod bits;
mod collections;
mod decoder;
mod encoder;
mod error;
mod field;
mod key;
mod octets;
mod payload;
mod plain;
mod primitives;
mod strings;
mod types;

pub use bits::BitField;
pub use bytemuck;
pub use decoder::Decoder;
pub use encoder::{Encoder, append};
pub use error::{CdrError, Result};
pub use field::{FieldKind, FieldValue, Step};
pub use key::{KeyHasher, KeySize, key_hash, key_hash_of_payload, key_hash_of_payload_in};
pub use octets::Octets;
pub use payload::{
    Encapsulation, SerializedPayload, fill_payload, from_key_payload, from_payload, from_payload_into,
    key_payload_of, key_to_payload, key_to_payload_in, to_payload, to_payload_in,
};
pub use plain::{
    Plain, put_plain, put_plain_slice, skip_plain, take_plain, take_plain_boxed, take_plain_into,
    take_plain_vec, view,
};
pub use primitives::{Char, LongDouble, WChar};
pub use strings::WString;
pub use types::{Cdr, DdsType, Endian, Extensibility, Members, Representation, key_unit, min_size};
