//! Participants that keep the addresses which they have found this one at. RTPS 2.5 §8.5.3.2.
//!
//! To them an announcement with other addresses says nothing: what their discovery has to say goes to where nobody is any
//! more. They find anew who has left, so they are told that this participant leaves, and then that it is there. Owns who
//! is to be told so. Called when this participant's addresses change, and for each announcement.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use taut_base::{GuidPrefix, Time, VendorId};

use crate::limits;
use crate::participant::Interface;

/// Whose participants do so.
const KEEPS_ADDRESSES: [VendorId; 2] = [VendorId::CYCLONE_DDS, VendorId::FAST_DDS];

/// Does a participant of this vendor keep addresses?
pub(super) fn keeps_addresses(vendor: VendorId) -> bool {
    KEEPS_ADDRESSES.contains(&vendor)
}

/// Those that have acknowledged nothing of discovery since the addresses by which they reach this participant have gone.
#[derive(Default)]
pub(crate) struct Stranded {
    /// The addresses, and how often each of them is told once more, at most.
    peers: BTreeMap<GuidPrefix, (Vec<IpAddr>, u32)>,
    /// Those that are told now.
    due: VecDeque<GuidPrefix>,
    /// Before this, nobody is told again: who has been told is about to find this participant.
    next_at: Time,
}

impl Stranded {
    /// This participant has another address, and had these by which this one reaches it, if any.
    pub fn note(&mut self, prefix: GuidPrefix, known: Vec<IpAddr>) {
        if !known.is_empty() {
            self.peers.entry(prefix).or_insert((known, limits::STRANDED_TOLD));
        }
    }

    /// This participant has these addresses now. Who knows one of them is not stranded, and what the others were told before
    /// may not have reached them.
    pub fn begin_anew(&mut self, own: &[Interface]) {
        self.peers.retain(|_, (known, left)| {
            *left = limits::STRANDED_TOLD;
            !own.iter().any(|own| known.contains(&own.address))
        });
        self.next_at = Time::AT_ONCE;
    }

    pub fn contains(&self, prefix: GuidPrefix) -> bool {
        self.peers.contains_key(&prefix)
    }

    /// This one reaches this participant, or is no more.
    pub fn remove(&mut self, prefix: GuidPrefix) {
        if self.peers.remove(&prefix).is_some() {
            self.due.retain(|due| *due != prefix);
        }
    }

    pub fn clear(&mut self) {
        *self = Stranded::default();
    }

    /// Those that are still there are told, if it is time. Returns whether there are any.
    pub fn begin(&mut self, now: Time) -> bool {
        if now < self.next_at || self.peers.is_empty() {
            return false;
        }
        self.next_at = now + limits::STRANDED_REPEAT;
        self.due = self.peers.keys().copied().collect();
        self.peers.retain(|_, (_, left)| {
            *left = left.saturating_sub(1);
            *left > 0
        });
        true
    }

    /// The next one that is told.
    pub fn next_due(&self) -> Option<GuidPrefix> {
        self.due.front().copied()
    }

    /// That one is told.
    pub fn take_due(&mut self) {
        self.due.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use taut_base::{Duration, EntityId, GuidPrefix, Locator, SequenceNumber, Time, VendorId};
    use taut_port::{Frame, Loopback, Traffic};
    use taut_wire::{Header, Payload, Submessage, Submessages};

    use crate::limits;
    use crate::participant::{Addresses, Config, Interface, Participant, Sink};
    use crate::reader::Offer;
    use crate::writer::MulticastChoice;
    use crate::{ReaderIndex, TxClass};

    struct Nowhere;

    impl Sink for Nowhere {
        fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
    }

    fn at(host: u8, number: u8) -> Locator {
        Locator::udp_v4(Ipv4Addr::new(10, 0, 0, host), 7_400 + u16::from(number))
    }

    /// Those of this host, and beside them one in another network.
    fn addresses(host: u8, number: u8) -> Addresses {
        let beside = Locator::udp_v4(Ipv4Addr::new(172, 17, 0, 1), 7_400 + u16::from(number));
        let unicast = vec![at(host, number), beside];
        let interfaces = unicast.iter().map(|own| Interface {
            address: own.ip().expect("an address"),
            prefix_len: 24,
            link: 1,
            multicast: true,
        });
        Addresses {
            interfaces: interfaces.collect(),
            metatraffic_unicast: unicast.clone(),
            default_unicast: unicast,
            ..Addresses::default()
        }
    }

    fn participant(number: u8) -> Participant {
        Participant::new(Config {
            guid_prefix: GuidPrefix([number; 12]),
            domain_id: 0,
            entity_name: String::new(),
            user_data: Vec::new(),
            properties: Vec::new(),
            lease_duration: Duration::from_secs(100),
            announcement_period: Duration::from_secs(3),
            addresses: addresses(number, number),
            initial_peers: vec![at(200, 0)],
            multicast: MulticastChoice::Auto,
            anatomy: None,
        })
    }

    /// The participant 1, what it sends, and the time.
    struct Mover {
        participant: Participant,
        port: Loopback,
        now: Time,
    }

    impl Mover {
        fn hear(&mut self, number: u8, bytes: Vec<u8>) {
            let frame = Frame { source: at(number, number), traffic: Traffic::Meta, bytes: bytes.into() };
            self.participant.on_frame(self.now, &frame, &mut Nowhere);
        }

        /// A participant of this vendor announces itself.
        fn find(&mut self, number: u8, VendorId(vendor): VendorId) {
            let (mut other, mut port) = (participant(number), Loopback::new());
            other.on_timeout(self.now, usize::MAX);
            other.poll_transmit(self.now, &mut port, TxClass::Discovery, usize::MAX);
            let mut bytes = port.take().expect("an announcement").1.to_vec();
            bytes[6..8].copy_from_slice(&vendor);
            let named = bytes.windows(4).position(|at| at == [0x16, 0, 4, 0]).expect("PID_VENDORID");
            bytes[named + 4..named + 6].copy_from_slice(&vendor);
            self.hear(number, bytes);
        }

        /// It acknowledges all publications.
        fn acknowledge(&mut self, number: u8, count: u8) {
            let mut bytes = [&b"RTPS\x02\x05\x01\x10"[..], &[number; 12], &[6, 3, 24, 0]].concat();
            bytes.extend(
                [EntityId::SEDP_PUBLICATIONS_READER.0, EntityId::SEDP_PUBLICATIONS_WRITER.0].concat(),
            );
            bytes.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, count, 0, 0, 0]);
            self.hear(number, bytes);
        }

        fn move_to(&mut self, host: u8) {
            self.participant.set_addresses(self.now, addresses(host, 1), &mut Nowhere);
        }

        /// What each is told of this participant until then: to whom, whether it is there, and the number of the change.
        fn told_for(&mut self, time: Duration) -> Vec<(Locator, bool, SequenceNumber)> {
            let (end, mut told) = (self.now + time, Vec::new());
            loop {
                self.participant.on_timeout(self.now, usize::MAX);
                // Not all at once, as of many.
                while self.participant.poll_transmit(self.now, &mut self.port, TxClass::Discovery, 1).more {}
                while let Some((to, datagram)) = self.port.take() {
                    let (_, rest) = Header::parse(&datagram).unwrap();
                    told.extend(Submessages::new(rest).filter_map(|submessage| match submessage.unwrap() {
                        Submessage::Data(data) if data.writer_id == EntityId::SPDP_WRITER => {
                            Some((to, matches!(data.payload, Payload::Data(_)), data.writer_sn))
                        }
                        _ => None,
                    }));
                }
                let next = self.participant.next_timeout().unwrap_or(Time::NEVER);
                if next > end {
                    self.now = end;
                    return told;
                }
                self.now = self.now.max(next);
            }
        }

        /// How often one is told that this participant leaves.
        fn ends_for(&mut self, time: Duration, number: u8) -> usize {
            let told = self.told_for(time);
            told.iter().filter(|(to, is_there, _)| *to == at(number, number) && !is_there).count()
        }
    }

    /// Known to three others, of three vendors, which have all.
    fn mover() -> Mover {
        let mut mover = Mover { participant: participant(1), port: Loopback::new(), now: Time(0) };
        let vendors = [VendorId::CYCLONE_DDS, VendorId::FAST_DDS, VendorId::UNKNOWN];
        (2..).zip(vendors).for_each(|(number, vendor)| mover.find(number, vendor));
        (2..=4).for_each(|number| mover.acknowledge(number, 1));
        mover.told_for(Duration::from_secs(10));
        mover
    }

    #[test]
    fn who_keeps_addresses_hears_of_an_end_and_then_of_new_ones() {
        let mut mover = mover();
        mover.move_to(9);
        let told = mover.told_for(limits::INITIAL_ANNOUNCEMENT_PERIOD);
        let of = |to: Locator| -> Vec<_> {
            told.iter().filter(|of| of.0 == to).map(|of| (of.1, of.2.0)).collect()
        };
        let [(false, end)] = of(at(2, 2))[..] else { panic!("{told:?}") };
        assert_eq!(of(at(3, 3)), [(false, end)]);
        assert_eq!(of(at(4, 4)), [(true, end + 1)], "who follows is not left");
        assert_eq!(of(at(200, 0)), [(true, end + 1)], "behind the end, with a number above it");
        let last = told.iter().rposition(|of| !of.1).unwrap();
        assert!(told[..last].iter().all(|of| !of.1), "the end comes first: {told:?}");
    }

    #[test]
    fn it_hears_it_again_until_it_answers() {
        let mut mover = mover();
        mover.move_to(9);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1);
        mover.acknowledge(3, 2);
        let told = mover.told_for(Duration::from_secs(60));
        let ends = |number| told.iter().filter(|of| of.0 == at(number, number) && !of.1).count();
        assert_eq!([2, 3, 4].map(ends), [limits::STRANDED_TOLD as usize - 1, 0, 0]);
        mover.move_to(1);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 3), limits::STRANDED_TOLD as usize);
    }

    /// Without the address of this place among them.
    fn without(place: usize) -> Addresses {
        let mut less = addresses(1, 1);
        less.interfaces.remove(place);
        less.metatraffic_unicast.remove(place);
        less.default_unicast.remove(place);
        less
    }

    #[test]
    fn who_still_reaches_this_participant_is_not_left() {
        let mut mover = mover();
        mover.participant.set_addresses(mover.now, without(1), &mut Nowhere);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), 0, "by an address that stays");
    }

    #[test]
    fn who_reaches_this_participant_again_is_not_left() {
        let mut mover = mover();
        mover.participant.set_addresses(mover.now, without(0), &mut Nowhere);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1, "on a way that there may be");
        mover.move_to(1);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), 0, "at the address that it knows");
    }

    #[test]
    fn who_was_told_in_vain_is_told_again_after_the_next_move() {
        let mut mover = mover();
        mover.participant.set_addresses(mover.now, without(0), &mut Nowhere);
        mover.told_for(Duration::from_secs(3));
        mover.move_to(9);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), limits::STRANDED_TOLD as usize);
    }

    #[test]
    fn nobody_is_left_twice() {
        let mut mover = mover();
        mover.move_to(9);
        mover.participant.leave();
        let told = mover.told_for(Duration::from_secs(60));
        assert_eq!(told.iter().filter(|of| of.0 == at(2, 2)).count(), 1, "{told:?}");
    }
}
