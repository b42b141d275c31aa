//! The 20 bytes at the front of every message. RTPS 2.5 §8.3.3.1, §9.4.4.

use taut_base::{GuidPrefix, ProtocolVersion, VendorId};

use crate::short::Short;
use crate::{Cursor, Endian, WireError};

/// The length of the header. *Units*: bytes.
pub const HEADER_LEN: usize = 20;

const MAGIC: [u8; 4] = *b"RTPS";

/// Who sent the message and which protocol it speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The sender's version of the protocol.
    pub version: ProtocolVersion,
    /// The sender's vendor.
    pub vendor: VendorId,
    /// The sender's participant.
    pub prefix: GuidPrefix,
}

impl Header {
    /// Reads the header and returns it with the submessages after it.
    ///
    /// *Errors*: [`WireError::Truncated`], [`WireError::BadMagic`]; [`WireError::BadVersion`] for a
    /// major version other than 2 (RTPS 2.5 §8.3.6.3 refuses larger ones; 1.x has other submessages).
    #[inline]
    pub fn parse(message: &[u8]) -> Result<(Header, &[u8]), WireError> {
        let mut message = Cursor::new(message, Endian::Big);
        let fixed = message.fixed::<HEADER_LEN>()?;
        if fixed.array::<0, 4>() != MAGIC {
            return Err(WireError::BadMagic);
        }
        let [major, minor] = fixed.array::<4, 2>();
        let version = ProtocolVersion { major, minor };
        if version.major != ProtocolVersion::RTPS_2_5.major {
            return Err(WireError::BadVersion);
        }
        let header =
            Header { version, vendor: VendorId(fixed.array::<6, 2>()), prefix: fixed.guid_prefix::<8>() };
        Ok((header, message.rest()))
    }

    /// Appends the 20 bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut short = Short::<HEADER_LEN>::new(Endian::Big);
        self.put(&mut short);
        short.append_to(out);
    }

    #[inline]
    pub(crate) fn put<const N: usize>(&self, short: &mut Short<N>) {
        short.put(MAGIC);
        short.put([self.version.major, self.version.minor]);
        short.put(self.vendor.0);
        short.put(self.prefix.0);
    }
}

/// Appends the header of a message from `prefix` in the version and vendor of Taut.
pub fn write_message_header(out: &mut Vec<u8>, prefix: GuidPrefix) {
    Header { version: ProtocolVersion::RTPS_2_5, vendor: VendorId::UNKNOWN, prefix }.write(out);
}
