//! SPDPdiscoveredParticipantData and its bytes. RTPS 2.5 §8.5.3.2, §9.6.2.2, table 9.14.
//!
//! Owns the layout. Must never believe a claim: whether the prefix is the sender's is for
//! SPDP to check, which calls this for every announcement.

use taut_base::{Duration, EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, VendorId};
use taut_qos::MAX_NAME;
use taut_wire::{Cursor, Parameter, ParameterListWriter, WireError, pid};

use super::parameters::{
    check_unknown, put_locators, read_entity_name, read_key, read_label, read_list, read_locator, read_name,
    write_key, write_list,
};

/// The bits of [`ParticipantData::builtin_endpoints`]. RTPS 2.5 §9.3.2.12, XTypes 1.3 §7.6.3.3.4.
pub mod builtin_endpoint {
    /// SPDP writer.
    pub const PARTICIPANT_ANNOUNCER: u32 = 1;
    /// SPDP reader.
    pub const PARTICIPANT_DETECTOR: u32 = 1 << 1;
    /// SEDP writer of publications.
    pub const PUBLICATIONS_ANNOUNCER: u32 = 1 << 2;
    /// SEDP reader of publications.
    pub const PUBLICATIONS_DETECTOR: u32 = 1 << 3;
    /// SEDP writer of subscriptions.
    pub const SUBSCRIPTIONS_ANNOUNCER: u32 = 1 << 4;
    /// SEDP reader of subscriptions.
    pub const SUBSCRIPTIONS_DETECTOR: u32 = 1 << 5;
    /// Writer of the liveliness protocol.
    pub const PARTICIPANT_MESSAGE_WRITER: u32 = 1 << 10;
    /// Reader of the liveliness protocol.
    pub const PARTICIPANT_MESSAGE_READER: u32 = 1 << 11;
    /// Writer of TypeLookup requests.
    pub const TYPE_LOOKUP_REQUEST_WRITER: u32 = 1 << 12;
    /// Reader of TypeLookup requests.
    pub const TYPE_LOOKUP_REQUEST_READER: u32 = 1 << 13;
    /// Writer of TypeLookup replies.
    pub const TYPE_LOOKUP_REPLY_WRITER: u32 = 1 << 14;
    /// Reader of TypeLookup replies.
    pub const TYPE_LOOKUP_REPLY_READER: u32 = 1 << 15;
    /// SEDP writer of topics.
    pub const TOPICS_ANNOUNCER: u32 = 1 << 28;
    /// SEDP reader of topics.
    pub const TOPICS_DETECTOR: u32 = 1 << 29;
}

/// The lease of a participant that names none. *Source*: RTPS 2.5 table 9.14.
pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(100);

/// The most properties of a participant that are kept. Cyclone DDS sends 4; lower loses some of a
/// peer's, higher only costs memory, which the bytes received bound anyway.
const MAX_PROPERTIES: usize = 64;

/// The longest value of a property that is kept. *Units*: bytes. Peers put paths of processes there; lower loses some of
/// these, higher only costs memory, which the bytes received bound anyway.
const MAX_PROPERTY_VALUE: usize = 4_096;

/// The flag of a participant of OpenDDS whose endpoints say durations as the standard has them.
const OPENDDS_DURATION_FRACTION: u32 = 8;

/// The properties that say which process a participant is of where it may have the name of an earlier one. Both are of Fast
/// DDS: the first stays the same where the application has given it, the second where processes are numbered anew, as in a
/// container.
const OF_PROCESS: [&str; 2] = ["PID_PERSISTENCE_GUID", "fastdds.physical_data.process"];

/// What a participant announces about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParticipantData {
    /// Its name.
    pub guid_prefix: GuidPrefix,
    /// The version it speaks.
    pub protocol_version: ProtocolVersion,
    /// Who made it.
    pub vendor_id: VendorId,
    /// The domain, if it says so; else it is that of the port.
    pub domain_id: Option<u32>,
    /// Participants with different tags do not hear each other.
    pub domain_tag: String,
    /// Do its readers want inline QoS with every change?
    pub expects_inline_qos: bool,
    /// Where its built-in endpoints listen.
    pub metatraffic_unicast: Vec<Locator>,
    /// The groups where they listen.
    pub metatraffic_multicast: Vec<Locator>,
    /// Where endpoints listen that name no locators of their own.
    pub default_unicast: Vec<Locator>,
    /// The groups where they listen.
    pub default_multicast: Vec<Locator>,
    /// Which built-in endpoints it has: bits of [`builtin_endpoint`].
    pub builtin_endpoints: u32,
    /// Bit 0: its reader of the liveliness protocol is best-effort.
    pub builtin_endpoint_qos: u32,
    /// How long it counts as alive after an announcement.
    pub lease_duration: Duration,
    /// Grows when the application asserts its liveliness.
    pub manual_liveliness_count: i32,
    /// Are the durations of its endpoints in nanoseconds where the standard has fractions of seconds? OpenDDS does that.
    pub says_nanoseconds: bool,
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// ENTITY_NAME; empty if none.
    pub entity_name: String,
    /// Names and values.
    pub properties: Vec<(String, String)>,
    /// So much of what it said was longer than is kept: an `entity_name`, which is cut, or `properties`, which are left out.
    pub too_long: u64,
}

/// What a participant of Taut would announce if it had nothing to say.
impl Default for ParticipantData {
    fn default() -> Self {
        ParticipantData {
            guid_prefix: GuidPrefix::UNKNOWN,
            protocol_version: ProtocolVersion::RTPS_2_5,
            vendor_id: VendorId::UNKNOWN,
            domain_id: None,
            domain_tag: String::new(),
            expects_inline_qos: false,
            metatraffic_unicast: Vec::new(),
            metatraffic_multicast: Vec::new(),
            default_unicast: Vec::new(),
            default_multicast: Vec::new(),
            builtin_endpoints: 0,
            builtin_endpoint_qos: 0,
            lease_duration: DEFAULT_LEASE_DURATION,
            manual_liveliness_count: 0,
            says_nanoseconds: false,
            user_data: Vec::new(),
            entity_name: String::new(),
            properties: Vec::new(),
            too_long: 0,
        }
    }
}

impl ParticipantData {
    /// Does its reader of the liveliness protocol acknowledge? *Source*: RTPS 2.5 §8.4.13.3.
    pub fn acknowledges_liveliness(&self) -> bool {
        self.builtin_endpoint_qos & 1 == 0
    }

    /// The GUID of the participant.
    pub fn guid(&self) -> Guid {
        Guid::new(self.guid_prefix, EntityId::PARTICIPANT)
    }

    /// Does what has the same name say that it is of another process, so that this one has ended?
    pub(super) fn is_of_another_process(&self, other: &ParticipantData) -> bool {
        OF_PROCESS.iter().any(|name| {
            let [before, now] = [self, other].map(|data| data.property(name));
            before.is_some() && now.is_some() && before != now
        })
    }

    fn property(&self, name: &str) -> Option<&str> {
        let found = self.properties.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads an announcement, encapsulation header included. `vendor` is the one in the header of the
    /// message, which holds if the announcement does not name one.
    ///
    /// *Errors*: a known parameter that is not valid, an unknown one that must be understood, or no
    /// PID_PARTICIPANT_GUID. *Cost*: memory in proportion to the bytes received.
    pub fn parse(payload: &[u8], vendor: VendorId) -> Result<ParticipantData, WireError> {
        let mut data = ParticipantData { vendor_id: vendor, ..ParticipantData::default() };
        let mut opendds_flags = 0;
        for parameter in read_list(payload)? {
            let parameter = parameter?;
            if parameter.pid == pid::vendor::OPENDDS_PARTICIPANT_FLAGS {
                opendds_flags = parameter.cursor().u32().unwrap_or(0);
            }
            data.take(&parameter)?;
        }
        data.says_nanoseconds =
            data.vendor_id == VendorId::OPENDDS && opendds_flags & OPENDDS_DURATION_FRACTION == 0;
        if data.guid_prefix == GuidPrefix::UNKNOWN {
            return Err(WireError::MissingParameter);
        }
        Ok(data)
    }

    fn take(&mut self, parameter: &Parameter<'_>) -> Result<(), WireError> {
        let mut value = parameter.cursor();
        match pid::canonical(parameter.pid) {
            pid::PARTICIPANT_GUID => self.guid_prefix = participant_guid(value.guid()?)?.prefix,
            pid::PROTOCOL_VERSION => self.protocol_version = value.protocol_version()?,
            pid::VENDOR_ID => self.vendor_id = value.vendor_id()?,
            pid::DOMAIN_ID => self.domain_id = Some(value.u32()?),
            pid::DOMAIN_TAG => self.domain_tag = read_name(&mut value)?,
            pid::EXPECTS_INLINE_QOS => self.expects_inline_qos = value.boolean()?,
            pid::METATRAFFIC_UNICAST_LOCATOR => {
                read_locator(&mut self.metatraffic_unicast, parameter, false)?;
            }
            pid::METATRAFFIC_MULTICAST_LOCATOR => {
                read_locator(&mut self.metatraffic_multicast, parameter, true)?;
            }
            pid::DEFAULT_UNICAST_LOCATOR => read_locator(&mut self.default_unicast, parameter, false)?,
            pid::DEFAULT_MULTICAST_LOCATOR => read_locator(&mut self.default_multicast, parameter, true)?,
            pid::BUILTIN_ENDPOINT_SET | pid::PARTICIPANT_BUILTIN_ENDPOINTS => {
                self.builtin_endpoints = value.u32()?;
            }
            pid::BUILTIN_ENDPOINT_QOS => self.builtin_endpoint_qos = value.u32()?,
            pid::PARTICIPANT_LEASE_DURATION => self.lease_duration = value.duration()?,
            pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT => self.manual_liveliness_count = value.i32()?,
            pid::USER_DATA => self.user_data = value.octets()?.to_vec(),
            pid::ENTITY_NAME => self.entity_name = read_entity_name(&mut value, &mut self.too_long)?,
            pid::PROPERTY_LIST => self.properties = read_properties(&mut value, &mut self.too_long)?,
            _ => check_unknown(parameter)?,
        }
        Ok(())
    }

    /// Appends the announcement, encapsulation header included.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut list = write_list(out);
        list.put(pid::PROTOCOL_VERSION, |out| out.put_protocol_version(self.protocol_version));
        list.put(pid::VENDOR_ID, |out| out.put_vendor_id(self.vendor_id));
        list.put_guid(pid::PARTICIPANT_GUID, self.guid());
        if let Some(domain_id) = self.domain_id {
            list.put_u32(pid::DOMAIN_ID, domain_id);
        }
        // Whoever does not know the tag must not hear a tagged participant; all know an untagged one.
        if !self.domain_tag.is_empty() {
            list.put_string(pid::DOMAIN_TAG, &self.domain_tag);
        }
        if self.expects_inline_qos {
            list.put_boolean(pid::EXPECTS_INLINE_QOS, true);
        }
        put_locators(&mut list, pid::METATRAFFIC_UNICAST_LOCATOR, &self.metatraffic_unicast);
        put_locators(&mut list, pid::METATRAFFIC_MULTICAST_LOCATOR, &self.metatraffic_multicast);
        put_locators(&mut list, pid::DEFAULT_UNICAST_LOCATOR, &self.default_unicast);
        put_locators(&mut list, pid::DEFAULT_MULTICAST_LOCATOR, &self.default_multicast);
        list.put_duration(pid::PARTICIPANT_LEASE_DURATION, self.lease_duration);
        list.put_u32(pid::BUILTIN_ENDPOINT_SET, self.builtin_endpoints);
        self.write_optional(&mut list);
        list.finish();
    }

    fn write_optional(&self, list: &mut ParameterListWriter<'_>) {
        if self.builtin_endpoint_qos != 0 {
            list.put_u32(pid::BUILTIN_ENDPOINT_QOS, self.builtin_endpoint_qos);
        }
        if self.manual_liveliness_count != 0 {
            list.put_i32(pid::PARTICIPANT_MANUAL_LIVELINESS_COUNT, self.manual_liveliness_count);
        }
        if !self.user_data.is_empty() {
            list.put_octets(pid::USER_DATA, &self.user_data);
        }
        if !self.entity_name.is_empty() {
            list.put_string(pid::ENTITY_NAME, &self.entity_name);
        }
        if !self.properties.is_empty() {
            list.put(pid::PROPERTY_LIST, |out| {
                out.put_count(self.properties.len());
                for (name, value) in &self.properties {
                    for text in [name, value] {
                        out.align(4);
                        out.put_string(text);
                    }
                }
            });
        }
    }

    /// Reads the payload of a dispose: a key. *Errors*: [`WireError::BadGuid`] if it is no participant.
    pub fn parse_key(payload: &[u8]) -> Result<Guid, WireError> {
        participant_guid(read_key(payload, pid::PARTICIPANT_GUID)?)
    }

    /// Appends the payload of a dispose: a key.
    pub fn write_key(guid: Guid, out: &mut Vec<u8>) {
        write_key(guid, pid::PARTICIPANT_GUID, out);
    }
}

fn participant_guid(guid: Guid) -> Result<Guid, WireError> {
    if guid.entity != EntityId::PARTICIPANT || guid.prefix == GuidPrefix::UNKNOWN {
        return Err(WireError::BadGuid);
    }
    Ok(guid)
}

/// One that is too long is left out: cut it would say something else.
fn read_properties(value: &mut Cursor<'_>, too_long: &mut u64) -> Result<Vec<(String, String)>, WireError> {
    // Two strings take at least 8 bytes: no memory for more than can be there.
    let count = value.count(8)?.min(MAX_PROPERTIES);
    let mut properties = Vec::with_capacity(count);
    for _ in 0..count {
        value.align(4)?;
        let (name, is_name) = read_label(value, MAX_NAME)?;
        value.align(4)?;
        let (text, is_text) = read_label(value, MAX_PROPERTY_VALUE)?;
        if is_name && is_text {
            properties.push((name, text));
        } else {
            *too_long = too_long.saturating_add(1);
        }
    }
    Ok(properties)
}
