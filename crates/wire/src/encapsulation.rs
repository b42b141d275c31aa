//! The 4 bytes in front of every serialized payload. RTPS 2.5 §10.2, XTypes 1.3 §7.6.3.1.2.

use crate::{Endian, WireError};

/// The length of an encapsulation header: identifier and options. *Units*: bytes.
pub const ENCAPSULATION_HEADER_LEN: usize = 4;

/// How the payload is serialized. *Source*: RTPS 2.5 table 10.3, XTypes 1.3 table 60.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EncapsulationId(pub u16);

impl EncapsulationId {
    /// XCDR1, big-endian.
    pub const CDR_BE: EncapsulationId = EncapsulationId(0x0000);
    /// XCDR1, little-endian.
    pub const CDR_LE: EncapsulationId = EncapsulationId(0x0001);
    /// XCDR1 parameter list, big-endian.
    pub const PL_CDR_BE: EncapsulationId = EncapsulationId(0x0002);
    /// XCDR1 parameter list, little-endian.
    pub const PL_CDR_LE: EncapsulationId = EncapsulationId(0x0003);
    /// XML.
    pub const XML: EncapsulationId = EncapsulationId(0x0004);
    /// XCDR2 of a final type, big-endian.
    pub const CDR2_BE: EncapsulationId = EncapsulationId(0x0006);
    /// XCDR2 of a final type, little-endian.
    pub const CDR2_LE: EncapsulationId = EncapsulationId(0x0007);
    /// XCDR2 of an appendable type, big-endian.
    pub const D_CDR2_BE: EncapsulationId = EncapsulationId(0x0008);
    /// XCDR2 of an appendable type, little-endian.
    pub const D_CDR2_LE: EncapsulationId = EncapsulationId(0x0009);
    /// XCDR2 of a mutable type, big-endian.
    pub const PL_CDR2_BE: EncapsulationId = EncapsulationId(0x000a);
    /// XCDR2 of a mutable type, little-endian.
    pub const PL_CDR2_LE: EncapsulationId = EncapsulationId(0x000b);

    /// The byte order of the payload; of no meaning for XML.
    pub const fn endian(self) -> Endian {
        if self.0 & 1 == 1 { Endian::Little } else { Endian::Big }
    }

    /// Splits a payload into its identifier and what follows the options.
    ///
    /// *Errors*: [`WireError::Truncated`] below 4 bytes.
    pub fn parse(payload: &[u8]) -> Result<(EncapsulationId, &[u8]), WireError> {
        let ([a, b, _, _], body) = payload.split_first_chunk().ok_or(WireError::Truncated)?;
        Ok((EncapsulationId(u16::from_be_bytes([*a, *b])), body))
    }

    /// The encapsulation header with options of 0.
    pub const fn header(self) -> [u8; ENCAPSULATION_HEADER_LEN] {
        let [a, b] = self.0.to_be_bytes();
        [a, b, 0, 0]
    }
}
