//! A message of RTPS, read to its end.

use taut_wire::{
    Data, EncapsulationId, Header, HeaderExtension, InlineQos, Payload, Submessage, Submessages, WireError,
};

pub fn play(bytes: &[u8]) {
    _ = read(bytes);
}

pub fn seeds() -> Vec<Vec<u8>> {
    crate::captured().iter().map(|captured| captured.bytes.to_vec()).collect()
}

fn read(message: &[u8]) -> Result<(), WireError> {
    let (_, rest) = Header::parse(message)?;
    _ = HeaderExtension::verify(message);
    for submessage in Submessages::new(rest) {
        match submessage? {
            Submessage::Data(Data { inline_qos, payload, .. }) => {
                _ = inline_qos.map(InlineQos::parse);
                if let Payload::Data(bytes) | Payload::Key(bytes) = payload {
                    _ = EncapsulationId::parse(bytes);
                }
            }
            Submessage::DataFrag(frag) => {
                _ = frag.inline_qos.map(InlineQos::parse);
                let end = frag.offset() + frag.payload.len();
                assert!(end <= frag.sample_size as usize && !frag.payload.is_empty(), "within its sample");
            }
            Submessage::InfoReply(reply) => {
                assert_eq!(reply.unicast.iter().count(), reply.unicast.len());
            }
            Submessage::AckNack(acknack) => {
                let state = acknack.reader_sn_state;
                assert!(state.iter().all(|sn| sn >= state.base() && sn.0 > 0), "numbers of the set");
            }
            _ => {}
        }
    }
    Ok(())
}
