//! Participants that keep the addresses which they have found this one at. RTPS 2.5 §8.5.3.2.
//!
//! To them an announcement with other addresses says nothing: what their discovery has to say goes to where nobody is any
//! more. They find anew who has left, so they are told that this participant leaves, and then that it is there. Owns who
//! is to be told so. Called when this participant's addresses change, and for each announcement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use taut_base::{GuidPrefix, Locator, Time, VendorId};

use super::locators::likely_known;
use super::{ParticipantData, Peer};
use crate::limits;
use crate::participant::Addresses;

/// Whose participants do so.
const KEEPS_ADDRESSES: [VendorId; 2] = [VendorId::CYCLONE_DDS, VendorId::FAST_DDS];

/// The addresses that this participant, which is reached at `peer`, is likely to have found this one at, and keeps.
pub(super) fn kept_addresses(data: &ParticipantData, peer: &[Locator], own: &Addresses) -> Vec<IpAddr> {
    if KEEPS_ADDRESSES.contains(&data.vendor_id) { likely_known(peer, &own.interfaces) } else { Vec::new() }
}

/// Does this participant have none of the addresses any more that this one keeps?
pub(super) fn is_stranded(peer: &Peer, own: &Addresses) -> bool {
    let kept = &peer.kept_addresses;
    !kept.is_empty() && !own.interfaces.iter().any(|own| kept.contains(&own.address))
}

/// Those that have acknowledged nothing of discovery since the addresses by which they reach this participant have gone.
#[derive(Default)]
pub(crate) struct Stranded {
    peers: BTreeMap<GuidPrefix, Told>,
    /// Those that are told now.
    due: VecDeque<GuidPrefix>,
    /// Those that have been told, and hear in turn that this participant is there.
    told: BTreeSet<GuidPrefix>,
    /// Before this, nobody is told again: who has been told is about to find this participant.
    next_at: Time,
}

/// How far it has come with one of them.
struct Told {
    /// So often it is told once more, at most.
    left: u32,
    /// It has been told that this participant leaves and that it is there, at the addresses of now.
    all: bool,
}

impl Stranded {
    /// This participant has other addresses: these are stranded now, and what they were told before may not have reached
    /// them.
    pub fn begin_anew(&mut self, peers: Vec<GuidPrefix>) {
        self.peers = peers
            .into_iter()
            .map(|prefix| (prefix, Told { left: limits::STRANDED_TOLD, all: false }))
            .collect();
        self.due.clear();
        self.told.retain(|prefix| !self.peers.contains_key(prefix));
        self.next_at = Time::AT_ONCE;
    }

    pub fn contains(&self, prefix: GuidPrefix) -> bool {
        self.peers.contains_key(&prefix)
    }

    /// Could this one have found this participant anew?
    pub fn may_be_reached(&self, prefix: GuidPrefix) -> bool {
        self.peers.get(&prefix).is_some_and(|told| told.all)
    }

    /// This one has found this participant anew. It hears once more that this participant is there, if it is about to.
    pub fn reached(&mut self, prefix: GuidPrefix) {
        self.peers.remove(&prefix);
        self.due.retain(|due| *due != prefix);
    }

    /// This one is no more.
    pub fn remove(&mut self, prefix: GuidPrefix) {
        self.reached(prefix);
        self.told.remove(&prefix);
    }

    pub fn clear(&mut self) {
        *self = Stranded::default();
    }

    /// Those that are still there are told, if it is time. Returns whether there are any.
    pub fn begin(&mut self, now: Time) -> bool {
        if now < self.next_at {
            return false;
        }
        self.due = self.peers.iter().filter(|(_, told)| told.left > 0).map(|(prefix, _)| *prefix).collect();
        self.next_at = now + limits::STRANDED_REPEAT;
        !self.due.is_empty()
    }

    /// The next one that is told.
    pub fn next_due(&self) -> Option<GuidPrefix> {
        self.due.front().copied()
    }

    /// That one is told.
    pub fn take_due(&mut self) {
        let Some(prefix) = self.due.pop_front() else { return };
        if let Some(told) = self.peers.get_mut(&prefix) {
            told.left = told.left.saturating_sub(1);
        }
        self.told.insert(prefix);
    }

    /// Those that have been told, all of which hear now that this participant is there, and again if it `is_repeated`.
    pub fn take_told(&mut self, is_repeated: bool) -> BTreeSet<GuidPrefix> {
        for prefix in &self.told {
            if let Some(told) = self.peers.get_mut(prefix) {
                told.all = true;
            }
        }
        if is_repeated { self.told.clone() } else { std::mem::take(&mut self.told) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use taut_base::{Duration, EntityId, GuidPrefix, Locator, SequenceNumber, Time, VendorId};
    use taut_mem::Bytes;
    use taut_port::{Frame, Loopback, Traffic};
    use taut_wire::{Header, Payload, Submessage, Submessages};

    use crate::limits;
    use crate::participant::{Addresses, Config, Interface, Participant, Sink};
    use crate::participant_tests::endpoint;
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
            cuts_discovery: false,
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
            self.hear_from(number, number, bytes);
        }

        fn hear_from(&mut self, host: u8, number: u8, bytes: Vec<u8>) {
            let frame = Frame { source: at(host, number), traffic: Traffic::Meta, bytes: bytes.into() };
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
            self.acknowledge_from(number, number, count);
        }

        fn acknowledge_from(&mut self, host: u8, number: u8, count: u8) {
            let mut bytes = [&b"RTPS\x02\x05\x01\x10"[..], &[number; 12], &[6, 3, 24, 0]].concat();
            bytes.extend(
                [EntityId::SEDP_PUBLICATIONS_READER.0, EntityId::SEDP_PUBLICATIONS_WRITER.0].concat(),
            );
            bytes.extend([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, count, 0, 0, 0]);
            self.hear_from(host, number, bytes);
        }

        fn move_to(&mut self, host: u8) {
            self.participant.set_addresses(self.now, addresses(host, 1), &mut Nowhere);
        }

        /// What each is told of this participant until then: to whom, whether it is there, and the number of the change.
        fn told_for(&mut self, time: Duration) -> Vec<(Locator, bool, SequenceNumber)> {
            let mut told = Vec::new();
            for (to, datagram) in self.sent_for(time) {
                let (_, rest) = Header::parse(&datagram).unwrap();
                told.extend(Submessages::new(rest).filter_map(|submessage| match submessage.unwrap() {
                    Submessage::Data(data) if data.writer_id == EntityId::SPDP_WRITER => {
                        Some((to, matches!(data.payload, Payload::Data(_)), data.writer_sn))
                    }
                    _ => None,
                }));
            }
            told
        }

        /// All that is sent until then.
        fn sent_for(&mut self, time: Duration) -> Vec<(Locator, Bytes)> {
            let (end, mut sent) = (self.now + time, Vec::new());
            loop {
                self.participant.on_timeout(self.now, usize::MAX);
                // Not all at once, as of many.
                while self.participant.poll_transmit(self.now, &mut self.port, TxClass::Discovery, 1).more {}
                sent.extend(std::iter::from_fn(|| self.port.take()));
                let next = self.participant.next_timeout().unwrap_or(Time::NEVER);
                if next > end {
                    self.now = end;
                    return sent;
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
        let [(false, end), is_there] = of(at(2, 2))[..] else { panic!("{told:?}") };
        assert_eq!(is_there, (true, end + 1), "also where no group and no initial peer brings it");
        assert_eq!(of(at(3, 3)), [(false, end), is_there]);
        assert_eq!(of(at(4, 4)), [(true, end + 1)], "who follows is not left");
        assert_eq!(of(at(200, 0)), [(true, end + 1)], "behind the end, with a number above it");
        let last = told.iter().rposition(|of| !of.1).unwrap();
        assert!(told[..last].iter().all(|of| !of.1), "the end comes first: {told:?}");
    }

    /// A participant whose initial peer this one is, and that neither its groups nor its initial peers lead to, hears of it
    /// all along: it would forget it after the lease.
    #[test]
    fn who_is_of_no_group_hears_that_this_one_is_still_there() {
        let mut mover = mover();
        let time = Duration::from_secs(60);
        let told = mover.told_for(time);
        let is_there = told.iter().filter(|of| of.0 == at(4, 4) && of.1).count();
        assert_eq!(is_there as u64, time.0 as u64 / Duration::from_secs(3).0 as u64);
    }

    /// Somebody may have made it up, to have what it is told go to the one whose address it has named.
    #[test]
    fn who_never_answers_hears_little_of_this_one_however_long_it_seems_to_be_there() {
        let mut mover = mover();
        mover.find(5, VendorId::UNKNOWN);
        let mut sent = mover.sent_for(Duration::from_secs(99));
        mover.hear(5, [&b"RTPS\x02\x05\x01\x10"[..], &[5; 12]].concat());
        sent.extend(mover.sent_for(Duration::from_secs(99)));
        assert!(mover.participant.database().peer(GuidPrefix([5; 12])).is_some(), "it seems to be there");
        let told = sent.iter().filter(|(to, _)| *to == at(5, 5)).count();
        assert!((1..=3).contains(&told), "{told} datagrams");
    }

    /// Where there are endpoints to tell of it is asked whether it knows them: for each announcement of its own, whatever else
    /// seems to come from it.
    #[test]
    fn who_never_answers_is_asked_a_few_times_for_each_announcement() {
        let mut mover = mover();
        mover.participant.create_writer(mover.now, endpoint(), &mut Nowhere);
        let told_for = |mover: &mut Mover, time| {
            let sent = mover.sent_for(time);
            sent.iter().filter(|(to, _)| *to == at(5, 5)).count() as u32
        };
        for _ in 0..2 {
            mover.find(5, VendorId::UNKNOWN);
            let told = told_for(&mut mover, Duration::from_secs(60));
            assert!((2..=limits::SILENT_ASKED + 1).contains(&told), "{told} datagrams");
            mover.hear(5, [&b"RTPS\x02\x05\x01\x10"[..], &[5; 12]].concat());
            assert_eq!(told_for(&mut mover, Duration::from_secs(30)), 0);
        }
        mover.acknowledge(5, 1);
        assert!(
            told_for(&mut mover, Duration::from_secs(3)) > 0,
            "it is there, and may not know all of them yet"
        );
    }

    /// Whenever each of several was asked last, all are asked ever more rarely: at last each second.
    #[test]
    fn those_that_answer_no_more_are_asked_ever_more_rarely() {
        let mut mover = mover();
        mover.participant.create_writer(mover.now, endpoint(), &mut Nowhere);
        // It is asked between those that were there before.
        mover.find(5, VendorId::UNKNOWN);
        mover.sent_for(Duration::from_secs(10));
        let in_a_minute = mover.sent_for(Duration::from_secs(60));
        for number in 2..=4 {
            let told = in_a_minute.iter().filter(|(to, _)| *to == at(number, number)).count();
            assert!((50..=61 + 20).contains(&told), "{told} datagrams, announcements among them");
        }
    }

    /// What this one is told, in this order, without what is said again.
    fn told_of(told: &[(Locator, bool, SequenceNumber)], number: u8) -> Vec<(bool, i64)> {
        let mut told: Vec<_> =
            told.iter().filter(|of| of.0 == at(number, number)).map(|of| (of.1, of.2.0)).collect();
        told.dedup();
        told
    }

    #[test]
    fn each_end_is_followed_by_an_announcement_without_initial_peers() {
        let mut mover = mover();
        mover.participant.config.initial_peers.clear();
        mover.move_to(9);
        let told = mover.told_for(Duration::from_secs(60));
        for number in [2, 3] {
            let told = told_of(&told, number);
            assert_eq!(told.len(), 2 * limits::STRANDED_TOLD as usize, "{told:?}");
            for pair in told.chunks(2) {
                let [(false, end), (true, announced)] = *pair else { panic!("{told:?}") };
                assert_eq!(announced, end + 1);
            }
        }
    }

    /// Those of these hosts, of this number.
    fn both(left: u8, right: u8) -> Addresses {
        let [mut both, more] = [left, right].map(|host| addresses(host, 1));
        both.interfaces.extend(more.interfaces);
        both.metatraffic_unicast.extend(more.metatraffic_unicast);
        both.default_unicast.extend(more.default_unicast);
        both
    }

    #[test]
    fn an_address_that_came_before_the_old_one_went_is_not_known() {
        let mut mover = mover();
        mover.participant.set_addresses(mover.now, both(1, 9), &mut Nowhere);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), 0);
        mover.acknowledge(2, 2);
        mover.move_to(9);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1);
        mover.acknowledge(2, 3);
        mover.participant.set_addresses(mover.now, both(9, 8), &mut Nowhere);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), 0, "it has found the new one");
    }

    #[test]
    fn who_was_told_often_in_vain_is_told_again_when_the_network_returns() {
        let mut mover = mover();
        mover.participant.set_addresses(mover.now, without(0), &mut Nowhere);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), limits::STRANDED_TOLD as usize);
        mover.move_to(9);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1);
        mover.acknowledge(2, 2);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), 0);
    }

    #[test]
    fn what_was_said_before_the_end_or_by_another_host_is_no_answer() {
        let mut mover = mover();
        mover.move_to(9);
        mover.acknowledge(2, 2);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1, "before the end");
        mover.acknowledge_from(7, 3, 2);
        let told = mover.told_for(Duration::from_secs(60));
        let ends = |number| told.iter().filter(|of| of.0 == at(number, number) && !of.1).count();
        assert_eq!([2, 3].map(ends), [limits::STRANDED_TOLD as usize - 1; 2]);
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
    fn who_may_have_heard_the_end_is_told_again_though_the_old_address_is_back() {
        let mut mover = mover();
        mover.move_to(9);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1);
        mover.move_to(1);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1, "it may have found 9");
        mover.acknowledge(2, 2);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), 0);
    }

    #[test]
    fn who_was_told_in_vain_is_told_again_after_the_next_move() {
        let mut mover = mover();
        mover.participant.set_addresses(mover.now, without(0), &mut Nowhere);
        mover.told_for(Duration::from_secs(3));
        mover.move_to(9);
        assert_eq!(mover.ends_for(Duration::from_secs(60), 2), limits::STRANDED_TOLD as usize);
    }

    /// The time passes, and nothing can be sent.
    fn unable_to_send(mover: &mut Mover, time: Duration) {
        let end = mover.now + time;
        while mover.now < end {
            mover.participant.on_timeout(mover.now, usize::MAX);
            mover.now = mover.participant.next_timeout().unwrap_or(Time::NEVER).clamp(mover.now, end);
        }
        mover.participant.on_timeout(mover.now, usize::MAX);
    }

    #[test]
    fn what_answers_the_end_before_is_no_answer_to_one_that_waits() {
        let mut mover = mover();
        mover.move_to(9);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1);
        mover.move_to(8);
        unable_to_send(&mut mover, limits::INITIAL_ANNOUNCEMENT_PERIOD);
        mover.acknowledge(2, 2);
        assert_eq!(mover.ends_for(limits::INITIAL_ANNOUNCEMENT_PERIOD, 2), 1, "it has found 9");
    }

    #[test]
    fn an_end_that_could_not_be_sent_does_not_count() {
        let mut mover = mover();
        mover.move_to(9);
        unable_to_send(&mut mover, limits::STRANDED_REPEAT.times(i64::from(3 * limits::STRANDED_TOLD)));
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
