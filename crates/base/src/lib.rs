//! The words every floor of Taut shares: time, GUIDs, sequence numbers, locators.
//!
//! Owns plain values only. Must never touch a clock, a socket or an allocator trick.
//! RTPS 2.5 §8.2.4 (attribute types) and §9.3 (their mapping to bytes). Every crate uses it.
#![forbid(unsafe_code)]

mod error;
mod guid;
mod locator;
mod rng;
mod sequence;
mod time;

pub use error::{Error, ErrorText, Result};
pub use guid::{EntityId, Guid, GuidPrefix, InstanceHandle, ProtocolVersion, VendorId};
pub use locator::{Locator, LocatorKind};
pub use rng::Rng;
pub use sequence::{FragmentNumber, FragmentNumberSet, SequenceNumber, SequenceNumberSet};
pub use time::{Duration, Time, Timestamp};
