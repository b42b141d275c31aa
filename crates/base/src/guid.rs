//! GUIDs and their parts, and the instance handle. RTPS 2.5 §8.2.4, §9.3.1.

use std::cmp::Ordering;
use std::fmt;

/// The 12 bytes that name a participant. *Source*: RTPS 2.5 §9.3.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GuidPrefix(pub [u8; 12]);

/// The 4 bytes that name an entity inside its participant, in wire order. *Source*: RTPS 2.5 §9.3.1.2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EntityId(pub [u8; 4]);

/// A globally unique name of an entity. *Shape*: 16 bytes, prefix then entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guid {
    /// The participant.
    pub prefix: GuidPrefix,
    /// The entity in it.
    pub entity: EntityId,
}

/// The 16 bytes that name an instance: its key, or the MD5 of it. *Source*: RTPS 2.5 §9.6.4.8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InstanceHandle(pub [u8; 16]);

/// A vendor of an RTPS implementation. *Source*: RTPS 2.5 §8.3.3.1.3, the list the OMG keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VendorId(pub [u8; 2]);

/// Major and minor version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProtocolVersion {
    /// Incompatible when it differs.
    pub major: u8,
    /// Compatible whatever it is.
    pub minor: u8,
}

/// The order of the bytes, compared as one number: tables are searched by it for each submessage.
macro_rules! ordered_as_number {
    ($($name:ident)*) => {$(
        impl Ord for $name {
            #[inline]
            fn cmp(&self, other: &$name) -> Ordering {
                self.number().cmp(&other.number())
            }
        }

        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    )*};
}
ordered_as_number! { GuidPrefix EntityId Guid }

impl ProtocolVersion {
    /// What Taut speaks.
    pub const RTPS_2_5: ProtocolVersion = ProtocolVersion { major: 2, minor: 5 };
}

impl GuidPrefix {
    /// GUIDPREFIX_UNKNOWN.
    pub const UNKNOWN: GuidPrefix = GuidPrefix([0; 12]);

    #[inline]
    fn number(self) -> u128 {
        Guid::new(self, EntityId::UNKNOWN).number()
    }
}

macro_rules! entity_ids {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        impl EntityId { $($(#[$doc])* pub const $name: EntityId = EntityId(($value as u32).to_be_bytes());)* }
    };
}

// RTPS 2.5 §9.3.1.3 table 9.2.
entity_ids! {
    /// ENTITYID_UNKNOWN: any entity that the submessage can concern.
    UNKNOWN = 0;
    /// The participant itself.
    PARTICIPANT = 0x0000_01c1;
    /// SEDPbuiltinTopicsWriter.
    SEDP_TOPIC_WRITER = 0x0000_02c2;
    /// SEDPbuiltinTopicsReader.
    SEDP_TOPIC_READER = 0x0000_02c7;
    /// SEDPbuiltinPublicationsWriter.
    SEDP_PUBLICATIONS_WRITER = 0x0000_03c2;
    /// SEDPbuiltinPublicationsReader.
    SEDP_PUBLICATIONS_READER = 0x0000_03c7;
    /// SEDPbuiltinSubscriptionsWriter.
    SEDP_SUBSCRIPTIONS_WRITER = 0x0000_04c2;
    /// SEDPbuiltinSubscriptionsReader.
    SEDP_SUBSCRIPTIONS_READER = 0x0000_04c7;
    /// SPDPbuiltinParticipantWriter.
    SPDP_WRITER = 0x0001_00c2;
    /// SPDPbuiltinParticipantReader.
    SPDP_READER = 0x0001_00c7;
    /// BuiltinParticipantMessageWriter.
    PARTICIPANT_MESSAGE_WRITER = 0x0002_00c2;
    /// BuiltinParticipantMessageReader.
    PARTICIPANT_MESSAGE_READER = 0x0002_00c7;
}

impl EntityId {
    /// A user-defined entity from its 24-bit key. *Source*: RTPS 2.5 §9.3.1.2 table 9.1.
    pub fn user(key: u32, writer: bool, keyed: bool) -> EntityId {
        let kind = match (writer, keyed) {
            (true, true) => 0x02,
            (true, false) => 0x03,
            (false, false) => 0x04,
            (false, true) => 0x07,
        };
        let [_, a, b, c] = key.to_be_bytes();
        EntityId([a, b, c, kind])
    }

    #[inline]
    fn number(self) -> u32 {
        u32::from_be_bytes(self.0)
    }

    /// The kind octet.
    pub fn kind(self) -> u8 {
        self.0[3]
    }

    /// Is it one of the specification's own endpoints?
    pub fn is_builtin(self) -> bool {
        self.kind() & 0xc0 == 0xc0
    }

    /// Is it a writer (keyed or not, built in or not)?
    pub fn is_writer(self) -> bool {
        matches!(self.kind() & 0x3f, 0x02 | 0x03)
    }

    /// Is it a reader (keyed or not, built in or not)?
    pub fn is_reader(self) -> bool {
        matches!(self.kind() & 0x3f, 0x04 | 0x07)
    }

    /// Does the kind octet say that the topic has a key?
    pub fn is_keyed(self) -> bool {
        matches!(self.kind() & 0x3f, 0x02 | 0x07)
    }
}

impl Guid {
    /// GUID_UNKNOWN.
    pub const UNKNOWN: Guid = Guid { prefix: GuidPrefix::UNKNOWN, entity: EntityId::UNKNOWN };

    /// Puts the two parts together.
    pub const fn new(prefix: GuidPrefix, entity: EntityId) -> Guid {
        Guid { prefix, entity }
    }

    #[inline]
    fn number(self) -> u128 {
        u128::from_be_bytes(self.to_bytes())
    }

    /// The 16 bytes as on the wire.
    #[inline]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..12].copy_from_slice(&self.prefix.0);
        out[12..].copy_from_slice(&self.entity.0);
        out
    }

    /// From the 16 bytes of the wire.
    pub fn from_bytes(bytes: [u8; 16]) -> Guid {
        let [p @ .., a, b, c, d] = bytes;
        Guid { prefix: GuidPrefix(p), entity: EntityId([a, b, c, d]) }
    }
}

impl InstanceHandle {
    /// HANDLE_NIL: no instance. Not the one of a topic without a key either, as far as readers and writers name it; in changes
    /// it is that.
    pub const NIL: InstanceHandle = InstanceHandle([0; 16]);
}

impl From<Guid> for InstanceHandle {
    fn from(guid: Guid) -> Self {
        InstanceHandle(guid.to_bytes())
    }
}

impl VendorId {
    /// VENDORID_UNKNOWN, which Taut sends until the OMG has given it a number of its own.
    pub const UNKNOWN: VendorId = VendorId([0, 0]);

    /// Eclipse Cyclone DDS.
    pub const CYCLONE_DDS: VendorId = VendorId([1, 16]);

    /// RTI Connext.
    pub const CONNEXT: VendorId = VendorId([1, 1]);

    /// OpenDDS.
    pub const OPENDDS: VendorId = VendorId([1, 3]);

    /// eProsima Fast DDS.
    pub const FAST_DDS: VendorId = VendorId([1, 15]);

    /// The product behind the number, as the OMG's list has it.
    pub fn name(self) -> &'static str {
        match self {
            VendorId::CONNEXT => "RTI Connext",
            VendorId([1, 2]) => "OpenSplice",
            VendorId::OPENDDS => "OpenDDS",
            VendorId([1, 6]) => "CoreDX",
            VendorId([1, 8]) => "Vortex Lite",
            VendorId([1, 9]) => "InterCOM",
            VendorId::FAST_DDS => "Fast DDS",
            VendorId::CYCLONE_DDS => "Cyclone DDS",
            VendorId([1, 17]) => "GurumDDS",
            VendorId([1, 18]) => "RustDDS",
            VendorId([1, 20]) => "dust_dds",
            _ => "unknown",
        }
    }
}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
}

macro_rules! hex_format {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { hex(f, &self.0) }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { hex(f, &self.0) }
        }
    )*};
}
hex_format!(GuidPrefix, EntityId, InstanceHandle, VendorId);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.prefix, self.entity)
    }
}
impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entity_kinds() {
        assert_eq!(EntityId::user(0x0102_0304, true, true).0, [2, 3, 4, 2]);
        assert!(EntityId::SPDP_WRITER.is_writer() && EntityId::SPDP_WRITER.is_builtin());
        assert!(EntityId::SEDP_PUBLICATIONS_READER.is_reader());
        assert!(!EntityId::user(1, false, false).is_keyed());
        assert!(!EntityId::PARTICIPANT.is_reader() && !EntityId::PARTICIPANT.is_writer());
    }

    #[test]
    fn guid_bytes_round_trip() {
        let guid = Guid::new(GuidPrefix([7; 12]), EntityId::SPDP_READER);
        assert_eq!(Guid::from_bytes(guid.to_bytes()), guid);
    }
}
