//! RTPS 2.5 bytes: header, submessages, parameter lists; checked views, no copies.
//!
//! Owns the mapping between bytes and small values, both byte orders, both ways. Must never panic,
//! allocate while it reads, or keep state from one message to the next. RTPS 2.5 §8.3 and §9.4.
//! `rtps` calls it for every datagram, `dcps` and the tools for parameter lists.
//!
//! ```
//! use taut_base::{EntityId, GuidPrefix, ProtocolVersion, SequenceNumber, VendorId};
//! use taut_wire::{Endian, Header, Heartbeat, Submessage, Submessages};
//!
//! let header = Header {
//!     version: ProtocolVersion::RTPS_2_5,
//!     vendor: VendorId::UNKNOWN,
//!     prefix: GuidPrefix([7; 12]),
//! };
//! let heartbeat = Heartbeat {
//!     reader_id: EntityId::UNKNOWN,
//!     writer_id: EntityId::user(1, true, true),
//!     first_sn: SequenceNumber(1),
//!     last_sn: SequenceNumber(9),
//!     count: 1,
//!     final_flag: false,
//!     liveliness_flag: false,
//!     group_info: None,
//! };
//! let mut message = Vec::new();
//! header.write(&mut message);
//! heartbeat.write(&mut message, Endian::Little);
//!
//! let (read, rest) = Header::parse(&message)?;
//! assert_eq!(read, header);
//! let submessages: Vec<_> = Submessages::new(rest).collect::<Result<_, _>>()?;
//! assert_eq!(submessages, [Submessage::Heartbeat(heartbeat)]);
//! # Ok::<(), taut_wire::WireError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod acknack;
mod anatomy;
mod cursor;
mod data;
mod data_frag;
mod encapsulation;
mod error;
mod fields;
mod gap;
mod header;
mod header_extension;
mod heartbeat;
mod inline_qos;
mod interpreter;
mod out;
mod parameter_list;
pub mod pid;
mod short;
mod submessage;

pub use acknack::{AckNack, NackFrag};
pub use anatomy::Stamps;
pub use cursor::{Cursor, Endian};
pub use data::{Data, DataHeader, Payload, PayloadKind};
pub use data_frag::{DataFrag, DataFragHeader};
pub use encapsulation::{ENCAPSULATION_HEADER_LEN, EncapsulationId};
pub use error::WireError;
pub use gap::{Gap, GapGroupInfo};
pub use header::{HEADER_LEN, Header, write_message_header};
pub use header_extension::{Checksum, ChecksumKind, HeaderExtension};
pub use heartbeat::{GroupDigest, Heartbeat, HeartbeatFrag, HeartbeatGroupInfo};
pub use inline_qos::{InlineQos, StatusInfo};
pub use interpreter::{
    InfoReply, InfoReplyIp4, InfoSource, LocatorIter, LocatorList, LocatorUdpV4, write_info_dst,
    write_info_ts, write_pad,
};
pub use out::Out;
pub use parameter_list::{Parameter, ParameterId, ParameterIter, ParameterList, ParameterListWriter};
pub use submessage::{Framed, SUBMESSAGE_HEADER_LEN, Submessage, SubmessageKind, Submessages};
