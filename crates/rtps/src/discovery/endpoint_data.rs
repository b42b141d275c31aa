//! DiscoveredWriterData and DiscoveredReaderData and their bytes. RTPS 2.5 §8.5.4.4, §9.6.2.2,
//! tables 9.14 and 9.18.
//!
//! Owns the layout; one struct for both, as they differ in defaults only. Must never believe a claim:
//! whether the prefix is the sender's and the kind fits the topic is for SEDP to check.

use taut_base::{EntityId, Guid, Locator, VendorId};
use taut_qos::EndpointQos;
use taut_wire::{Parameter, WireError, pid};

use super::ParticipantData;
use super::parameters::{
    check_unknown, put_locators, read_entity_name, read_key, read_list, read_locator, read_name, write_key,
    write_list,
};
use super::qos_parameters::{read_policy, write_policies};

/// What a participant announces about one of its writers or readers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointData {
    /// Its name; the kind octet says whether it is a writer.
    pub guid: Guid,
    /// Its participant, if it says so: the prefix of `guid` does in any case.
    pub participant_guid: Option<Guid>,
    /// The topic. *Range*: 1 to 256 bytes.
    pub topic_name: String,
    /// The type. *Range*: 1 to 256 bytes.
    pub type_name: String,
    /// What it offers or requests.
    pub qos: EndpointQos,
    /// Where it listens; empty is the participant's default.
    pub unicast_locators: Vec<Locator>,
    /// The groups where it listens.
    pub multicast_locators: Vec<Locator>,
    /// Does this reader want the topic's name and the writer's policies with every change? Taut's writers do not send them.
    pub expects_inline_qos: bool,
    /// Its publisher or subscriber.
    pub group_entity_id: Option<EntityId>,
    /// The largest sample. *Units*: bytes.
    pub type_max_size_serialized: Option<u32>,
    /// TypeInformation as it travels, with its padding.
    pub type_information: Option<Vec<u8>>,
    /// ENTITY_NAME; empty if none.
    pub entity_name: String,
    /// Does this reader acknowledge only what it misses? An extension of RTI Connext and Fast DDS.
    pub disable_positive_acks: bool,
    /// How often what it said was longer than is kept: an `entity_name`, which is cut.
    pub too_long: u64,
}

/// Who has PID_DISABLE_POSITIVE_ACKS; with others the number may mean something else.
const DISABLE_POSITIVE_ACKS_VENDORS: [VendorId; 2] = [VendorId::CONNEXT, VendorId::FAST_DDS];

impl EndpointData {
    /// An endpoint of which no more is said.
    pub fn of(guid: Guid, topic_name: &str, type_name: &str, qos: EndpointQos) -> EndpointData {
        EndpointData {
            guid,
            participant_guid: None,
            topic_name: topic_name.to_owned(),
            type_name: type_name.to_owned(),
            qos,
            unicast_locators: Vec::new(),
            multicast_locators: Vec::new(),
            expects_inline_qos: false,
            group_entity_id: None,
            type_max_size_serialized: None,
            type_information: None,
            entity_name: String::new(),
            disable_positive_acks: false,
            too_long: 0,
        }
    }

    /// Is it a writer? Else it is a reader.
    pub fn is_writer(&self) -> bool {
        self.guid.entity.is_writer()
    }

    /// Reads an announcement, encapsulation header included. What did not travel has the default of a
    /// writer or of a reader, by the kind of the GUID. `vendor` is the sender's.
    ///
    /// *Errors*: a known parameter that is not valid, an unknown one that must be understood, or no
    /// PID_ENDPOINT_GUID, PID_TOPIC_NAME or PID_TYPE_NAME; [`WireError::BadGuid`] if the GUID is not
    /// that of a `writer` or else of a reader. *Cost*: memory in proportion to the bytes received.
    pub fn parse(payload: &[u8], writer: bool, vendor: VendorId) -> Result<EndpointData, WireError> {
        let peer = ParticipantData { vendor_id: vendor, ..ParticipantData::default() };
        EndpointData::parse_of(payload, writer, &peer)
    }

    /// The same of an endpoint of `peer`.
    pub(super) fn parse_of(
        payload: &[u8],
        writer: bool,
        peer: &ParticipantData,
    ) -> Result<EndpointData, WireError> {
        let guid = EndpointData::parse_key(payload)?;
        if guid.entity.is_writer() != writer {
            return Err(WireError::BadGuid);
        }
        let qos = if writer { EndpointQos::default_writer() } else { EndpointQos::default_reader() };
        let mut data = EndpointData::of(guid, "", "", qos);
        for parameter in read_list(payload)? {
            let parameter = parameter?;
            if !read_policy(&mut data.qos, &parameter, peer.says_nanoseconds)? {
                data.take(&parameter, peer.vendor_id)?;
            }
        }
        if data.topic_name.is_empty() || data.type_name.is_empty() {
            return Err(WireError::MissingParameter);
        }
        Ok(data)
    }

    fn take(&mut self, parameter: &Parameter<'_>, vendor: VendorId) -> Result<(), WireError> {
        let mut value = parameter.cursor();
        match pid::canonical(parameter.pid) {
            pid::ENDPOINT_GUID => {}
            pid::PARTICIPANT_GUID => self.participant_guid = Some(value.guid()?),
            pid::TOPIC_NAME => self.topic_name = read_name(&mut value)?,
            pid::TYPE_NAME => self.type_name = read_name(&mut value)?,
            pid::UNICAST_LOCATOR => read_locator(&mut self.unicast_locators, parameter, false)?,
            pid::MULTICAST_LOCATOR => read_locator(&mut self.multicast_locators, parameter, true)?,
            pid::EXPECTS_INLINE_QOS => self.expects_inline_qos = value.boolean()?,
            pid::GROUP_ENTITY_ID => self.group_entity_id = Some(value.entity_id()?),
            pid::GROUP_GUID => self.group_entity_id = Some(value.guid()?.entity),
            pid::TYPE_MAX_SIZE_SERIALIZED => self.type_max_size_serialized = Some(value.u32()?),
            pid::TYPE_INFORMATION => self.type_information = Some(parameter.value.to_vec()),
            pid::ENTITY_NAME => self.entity_name = read_entity_name(&mut value, &mut self.too_long)?,
            pid::vendor::DISABLE_POSITIVE_ACKS if DISABLE_POSITIVE_ACKS_VENDORS.contains(&vendor) => {
                self.disable_positive_acks = value.boolean()?;
            }
            _ => check_unknown(parameter)?,
        }
        Ok(())
    }

    /// Appends the announcement, encapsulation header included.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut list = write_list(out);
        list.put_guid(pid::ENDPOINT_GUID, self.guid);
        if let Some(guid) = self.participant_guid {
            list.put_guid(pid::PARTICIPANT_GUID, guid);
        }
        if let Some(id) = self.group_entity_id {
            list.put_entity_id(pid::GROUP_ENTITY_ID, id);
        }
        list.put_string(pid::TOPIC_NAME, &self.topic_name);
        list.put_string(pid::TYPE_NAME, &self.type_name);
        write_policies(&mut list, &self.qos, self.is_writer());
        put_locators(&mut list, pid::UNICAST_LOCATOR, &self.unicast_locators);
        put_locators(&mut list, pid::MULTICAST_LOCATOR, &self.multicast_locators);
        if self.expects_inline_qos {
            list.put_boolean(pid::EXPECTS_INLINE_QOS, true);
        }
        if let Some(size) = self.type_max_size_serialized {
            list.put_u32(pid::TYPE_MAX_SIZE_SERIALIZED, size);
        }
        if let Some(bytes) = &self.type_information {
            list.put_bytes(pid::TYPE_INFORMATION, bytes);
        }
        if !self.entity_name.is_empty() {
            list.put_string(pid::ENTITY_NAME, &self.entity_name);
        }
        list.finish();
    }

    /// Reads the payload of a dispose: a key. *Errors*: [`WireError::BadGuid`] if it is no endpoint.
    pub fn parse_key(payload: &[u8]) -> Result<Guid, WireError> {
        endpoint_guid(read_key(payload, pid::ENDPOINT_GUID)?)
    }

    /// Appends the payload of a dispose: a key.
    pub fn write_key(guid: Guid, out: &mut Vec<u8>) {
        write_key(guid, pid::ENDPOINT_GUID, out);
    }
}

fn endpoint_guid(guid: Guid) -> Result<Guid, WireError> {
    let endpoint = guid.entity.is_writer() || guid.entity.is_reader();
    if endpoint && guid.prefix != Guid::UNKNOWN.prefix { Ok(guid) } else { Err(WireError::BadGuid) }
}
