//! What the names of endpoints are, when all have been given out.

use std::net::Ipv4Addr;

use taut_base::{GuidPrefix, Locator, Time};
use taut_qos::{EndpointQos, History};

use crate::{Config, EndpointConfig, Offer, Participant, ReaderIndex, Sink};

struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

#[test]
fn no_two_endpoints_have_the_same_name_however_many_there_were() {
    let here = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);
    let mut participant = Participant::new(Config::at(GuidPrefix([1; 12]), here));
    let endpoint = |participant: &mut Participant, is_writer| {
        let endpoint = EndpointConfig {
            topic_name: "Topic".to_owned(),
            type_name: "Type".to_owned(),
            keyed: false,
            qos: EndpointQos::default_reader(),
            history: History::KeepAll,
            max_samples: None,
        };
        match is_writer {
            true => _ = participant.create_writer(Time(0), endpoint, &mut Nowhere),
            false => _ = participant.create_reader(Time(0), endpoint, &mut Nowhere),
        }
    };
    let long_lived = [false, true, false];
    long_lived.into_iter().for_each(|is_writer| endpoint(&mut participant, is_writer));
    // So many have come and gone since that all keys have been given out.
    participant.next_entity_key = (1 << 24) + 1;
    long_lived.into_iter().for_each(|is_writer| endpoint(&mut participant, is_writer));
    assert_eq!(participant.local_endpoints().count(), 6);
}
