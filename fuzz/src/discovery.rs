//! What participants and endpoints say of themselves. The first byte chooses what is read, and whose it is.

use taut_base::{EntityId, VendorId};
use taut_rtps::discovery::{EndpointData, ParticipantData};
use taut_wire::{Data, Header, Payload, Submessage, Submessages};

use crate::byte;

/// Taut, RTI Connext, OpenDDS, eProsima, Eclipse Cyclone: what some of them send is read in another way.
const VENDORS: [[u8; 2]; 5] = [[1, 0x20], [1, 1], [1, 3], [1, 0x0f], [1, 0x10]];

pub fn play(mut bytes: &[u8]) {
    let choice = byte(&mut bytes);
    let vendor = VendorId(VENDORS[usize::from(choice >> 4) % VENDORS.len()]);
    match choice % 3 {
        0 => {
            _ = ParticipantData::parse(bytes, vendor);
            _ = ParticipantData::parse_key(bytes);
        }
        kind => {
            if let Ok(data) = EndpointData::parse(bytes, kind == 1, vendor) {
                assert!(!data.topic_name.is_empty() && data.is_writer() == (kind == 1));
            }
            _ = EndpointData::parse_key(bytes);
        }
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let captured = crate::captured();
    let payloads = captured.iter().flat_map(|captured| {
        let submessages = Header::parse(&captured.bytes).map(|(_, rest)| Submessages::new(rest));
        submessages.into_iter().flatten().filter_map(|submessage| seed(&submessage.ok()?)).collect::<Vec<_>>()
    });
    payloads.collect()
}

fn seed(submessage: &Submessage<'_>) -> Option<Vec<u8>> {
    let Submessage::Data(Data { writer_id, payload: Payload::Data(payload), .. }) = submessage else {
        return None;
    };
    let choice = match *writer_id {
        EntityId::SPDP_WRITER => 0_u8,
        EntityId::SEDP_PUBLICATIONS_WRITER => 1,
        EntityId::SEDP_SUBSCRIPTIONS_WRITER => 2,
        _ => return None,
    };
    Some([&[choice], *payload].concat())
}
