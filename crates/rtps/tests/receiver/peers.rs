//! Who is taken for a participant: of what domain, by which address, until when, and how one is asked.

use std::net::{Ipv6Addr, SocketAddr};

use taut_base::{
    Duration, EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, Time, VendorId,
};
use taut_port::{Frame, Loopback};
use taut_qos::ReliabilityKind;
use taut_rtps::discovery::{ParticipantData, builtin_endpoint};
use taut_rtps::{Config, Participant, TxClass, limits};
use taut_wire::{
    Checksum, DataFragHeader, Endian, HEADER_LEN, HeaderExtension, InfoSource, InlineQos, PayloadKind,
    StatusInfo, SubmessageKind, WireError, write_message_header,
};

use crate::common::{
    ADDRESS, Announcement, FOREIGN, Nowhere, OTHER, OWN, announcement, frame, heartbeat, heartbeat_of,
    inline, message, participant, publication, put_data, reader_of,
};

#[test]
fn nobody_makes_a_participant_its_own_peer() {
    let mut participant = participant();
    for (header, source) in [(OTHER, OWN), (OWN, OTHER)] {
        let announced = Announcement { header, source, ..Announcement::of(OTHER) }.frame();
        participant.on_frame(Time(0), &announced, &mut Nowhere);
    }
    assert_eq!(participant.database().peers().count(), 0);
    assert_eq!(participant.counters().reflected, 2);
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 1);
}

#[test]
fn a_domain_with_a_tag_is_another_one() {
    let mut participant = participant();
    let announced = Announcement { tag: "night", ..Announcement::of(OTHER) }.frame();
    participant.on_frame(Time(0), &announced, &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 0);
    assert_eq!(participant.counters().foreign_domain, 1);
}

#[test]
fn an_address_of_a_kind_that_is_not_used_is_skipped_and_counted() {
    let mut participant = participant();
    let at = |addresses: &[Locator]| Announcement { addresses, ..Announcement::of(OTHER) }.frame();
    let v6 = Locator::from(SocketAddr::from((Ipv6Addr::LOCALHOST, 7410)));
    participant.on_frame(Time(0), &at(&[v6]), &mut Nowhere);
    assert_eq!(participant.database().peers().count(), 0, "it cannot be answered");
    assert_eq!(participant.counters().unusable_locators, 2);
    participant.on_frame(Time(0), &at(&[v6, ADDRESS]), &mut Nowhere);
    let peer = participant.database().peers().next().expect("known now");
    assert_eq!((&peer.metatraffic[..], &peer.unicast[..]), (&[ADDRESS][..], &[ADDRESS][..]));
    // An announcement that names nothing usable any more changes nothing.
    participant.on_frame(Time(0), &at(&[v6]), &mut Nowhere);
    assert_eq!(participant.database().peers().next().unwrap().metatraffic, [ADDRESS]);
    assert_eq!(participant.counters().unusable_locators, 6);
}

/// As over a VPN, whose address is one of many that the other participant has, and the only one that leads there from here.
#[test]
fn who_is_behind_a_router_is_reached_where_it_speaks_from() {
    let mut participant = participant();
    let [home, vpn] = [[192, 168, 0, 5], [100, 64, 0, 7]].map(|ip| Locator::udp_v4(ip.into(), 7410));
    let said = Announcement { addresses: &[home, vpn], ..Announcement::of(OTHER) }.frame();
    let (mut now, kept) = (Time(0), Announcement::of(OTHER).lease.min(limits::SOURCE_KEPT));
    // Where it does not speak from any more it is not sent to for longer than that.
    let heard = [(vpn, vpn), (home, vpn), (vpn, vpn), (home, vpn), (home, home), (vpn, home)];
    for (n, (source, reached)) in heard.into_iter().enumerate() {
        now = now + if n == 4 { kept } else { limits::LOOK_REPEAT };
        participant.on_frame(now, &Frame { source, ..said.clone() }, &mut Nowhere);
        let peer = participant.database().peers().next().expect("it is known");
        assert_eq!((&peer.metatraffic[..], &peer.unicast[..]), (&[reached][..], &[reached][..]), "{n}");
    }
}

#[test]
fn a_property_that_is_too_long_is_left_out_and_counted() {
    let mut participant = participant();
    let properties = [("long", "x".repeat(5_000)), ("short", "x".into())];
    let announced = Announcement { properties: &properties, ..Announcement::of(OTHER) }.frame();
    participant.on_frame(Time(0), &announced, &mut Nowhere);
    let peer = participant.database().peers().next().expect("it is found");
    assert_eq!(peer.data.properties, [("short".to_owned(), "x".to_owned())]);
    assert_eq!(participant.counters().refused(), [("too_long", 1)]);
}

/// By whomever it is sent.
#[test]
fn what_is_said_again_counts_again_and_shows_that_its_participant_lives() {
    let mut participant = participant();
    let v6 = Locator::from(SocketAddr::from((Ipv6Addr::LOCALHOST, 7410)));
    let (header, lease) = (GuidPrefix([3; 12]), Duration(100));
    let announced =
        Announcement { header, addresses: &[v6, ADDRESS], lease, ..Announcement::of(OTHER) }.frame();
    for now in [0, 60, 120] {
        participant.on_timeout(Time(now), usize::MAX);
        participant.on_frame(Time(now), &announced, &mut Nowhere);
    }
    participant.on_timeout(Time(219), usize::MAX);
    assert_eq!(participant.database().peers().count(), 1);
    assert_eq!(participant.counters().unusable_locators, 6);
    participant.on_timeout(Time(220), usize::MAX);
    assert_eq!(participant.database().peers().count(), 0);
}

#[test]
fn a_message_that_is_not_the_one_that_was_sent_is_dropped_and_counted() {
    let announcement = announcement().bytes;
    for checksum in [None, Some(Checksum::Crc32c(0)), Some(Checksum::Crc64(0)), Some(Checksum::Md5([0; 16]))]
    {
        let extension = HeaderExtension { message_length: Some(0), checksum, ..HeaderExtension::default() };
        let mut sealed = announcement[..HEADER_LEN].to_vec();
        extension.write(&mut sealed, Endian::Little);
        sealed.extend_from_slice(&announcement[HEADER_LEN..]);
        HeaderExtension::seal(&mut sealed, &[]).unwrap();
        let peers = |message: &[u8], refused: Option<WireError>| {
            let mut participant = participant();
            participant.on_frame(Time(0), &frame(message.to_vec()), &mut Nowhere);
            if let Some(reason) = refused {
                assert_eq!(participant.counters().of(reason), 1, "{checksum:?}");
            }
            participant.database().peers().count()
        };
        assert_eq!(peers(&sealed, None), 1, "{checksum:?}");
        // Four bytes more are no reason to doubt what is before them, but that nobody has sent them.
        let longer = [&sealed[..], &[1, 0, 0, 0]].concat();
        assert_eq!(peers(&longer, Some(WireError::BadLength)), 0, "{checksum:?}");
        if checksum.is_some() {
            *sealed.last_mut().unwrap() ^= 1;
            assert_eq!(peers(&sealed, Some(WireError::ChecksumMismatch)), 0, "{checksum:?}");
        }
    }
}

/// Where the sets begin by which the built-in writers of the other participant are asked what they have.
fn asked_from(participant: &mut Participant, now: Time) -> Vec<u32> {
    asked_by(participant, now, TxClass::Discovery)
}

/// The same of writers of a class.
fn asked_by(participant: &mut Participant, now: Time, class: TxClass) -> Vec<u32> {
    const FINAL: u8 = 2;
    let mut port = Loopback::new();
    participant.poll_transmit(now, &mut port, class, usize::MAX);
    let mut asked = Vec::new();
    while let Some((_, datagram)) = port.take() {
        // As it stands there: who reads a set takes 0 for 1.
        let mut rest = &datagram[HEADER_LEN..];
        while let [id, flags, low, high, body @ ..] = rest {
            let (body, behind) = body.split_at(u16::from_le_bytes([*low, *high]).into());
            if SubmessageKind(*id) == SubmessageKind::ACKNACK && flags & FINAL == 0 {
                assert_eq!(body[8..12], [0; 4]);
                asked.push(u32::from_le_bytes(body[12..16].try_into().unwrap()));
            }
            rest = behind;
        }
    }
    asked
}

/// Fast DDS that has been cut off without noticing says what it has only if it is asked as its own readers ask, and
/// RTI Connext that has nothing says so only then.
#[test]
fn fast_dds_and_connext_are_asked_for_their_first_heartbeat_from_0() {
    for (vendor, first) in [(FOREIGN, 1), (VendorId::FAST_DDS, 0), (VendorId::CONNEXT, 0)] {
        let mut participant = participant();
        let announced = Announcement { vendor, ..Announcement::of(OTHER) }.frame();
        participant.on_frame(Time(0), &announced, &mut Nowhere);
        assert_eq!(asked_from(&mut participant, Time(0)), [first; 2]);
        participant.on_frame(Time(1), &heartbeat(1, 1), &mut Nowhere);
        participant.on_frame(Time(1), &announced, &mut Nowhere);
        assert_eq!(asked_from(&mut participant, Time(1)), [1, first], "publications have been heard of");
    }
}

/// HDDS answers each announcement by its own, and not all writers that it says to have ever say what they have.
#[test]
fn who_answers_each_announcement_by_its_own_is_answered_now_and_then() {
    const MILLISECONDS: i64 = 400;
    let (mut participant, mut port) = (participant(), Loopback::new());
    let mut answered_until = |participant: &mut Participant, from, until| {
        let mut sent = 0;
        for millisecond in from..until {
            let now = Time(0) + Duration::from_millis(millisecond);
            participant.on_frame(now, &announcement(), &mut Nowhere);
            participant.on_timeout(now, usize::MAX);
            participant.poll_transmit(now, &mut port, TxClass::Discovery, usize::MAX);
            sent += std::iter::from_fn(|| port.take()).count();
        }
        sent
    };
    let sent = answered_until(&mut participant, 0, MILLISECONDS);
    assert!((4..=12).contains(&sent), "{sent} in {MILLISECONDS} ms");
    // The longer it says nothing, the less it is asked.
    let sent = answered_until(&mut participant, MILLISECONDS, 10_000);
    assert!((4..=20).contains(&sent), "{sent} in the rest of 10 s");
    // None is overlooked: the last one is answered when its time has come.
    let last = Time(0) + Duration::from_millis(10_000) + limits::ASK_REPEAT_MOST;
    participant.on_timeout(last, usize::MAX);
    assert_eq!(asked_from(&mut participant, last), [1; 2]);
}

/// A pause that has grown ends with the silence.
/// As with static discovery: it would forget this participant, as nothing of it can say that it is there.
#[test]
fn who_has_no_built_in_endpoints_is_told_when_it_announces_itself_but_not_much_more_than_it_says() {
    for (user_data, is_told_back) in [(0, true), (5_000, false)] {
        let config = Config { user_data: vec![8; user_data], ..Config::at(OWN, ADDRESS) };
        let mut participant = Participant::new(config);
        let address = Locator::udp_v4([127, 0, 0, 1].into(), 7412);
        let builtin_endpoints =
            builtin_endpoint::PARTICIPANT_ANNOUNCER | builtin_endpoint::PARTICIPANT_DETECTOR;
        let said = Announcement { addresses: &[address], builtin_endpoints, ..Announcement::of(OTHER) };
        let (said, mut port) = (said.frame(), Loopback::new());
        let mut told = |participant: &mut Participant, now| {
            participant.on_timeout(now, usize::MAX);
            while participant.poll_transmit(now, &mut port, TxClass::Discovery, 8).more {}
            let sent: Vec<_> = std::iter::from_fn(|| port.take()).collect();
            sent.iter().filter(|(to, _)| *to == address).map(|(_, bytes)| bytes.len()).sum::<usize>()
        };
        participant.on_frame(Time(0), &said, &mut Nowhere);
        assert!(told(&mut participant, Time(0)) > 0, "a newcomer");
        for period in 1..10 {
            let now = Time(0) + limits::ASK_REPEAT_MOST.times(period);
            assert_eq!(told(&mut participant, now), 0, "it says nothing");
            participant.on_frame(now, &said, &mut Nowhere);
            let bytes = told(&mut participant, now);
            assert_eq!(bytes > 0, is_told_back, "{bytes}");
            assert!(bytes <= said.bytes.len() * limits::TOLD_BACK, "{bytes} for {}", said.bytes.len());
        }
        // However often it says so.
        let now = Time(0) + limits::ASK_REPEAT_MOST.times(20);
        let bytes: usize = (0..100)
            .map(|_| {
                participant.on_frame(now, &said, &mut Nowhere);
                told(&mut participant, now)
            })
            .sum();
        assert_eq!(bytes > 0, is_told_back, "{bytes}");
        assert!(bytes <= said.bytes.len() * limits::TOLD_BACK, "once: {bytes}");
    }
}

#[test]
fn who_has_answered_is_asked_as_often_as_at_first() {
    let mut participant = participant();
    reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    let announced_at = |participant: &mut Participant, millisecond, class| {
        let now = Time(0) + Duration::from_millis(millisecond);
        participant.on_frame(now, &announcement(), &mut Nowhere);
        participant.on_timeout(now, usize::MAX);
        asked_by(participant, now, class).len()
    };
    let asked = [0, 50, 100, 150, 200].map(|at| announced_at(&mut participant, at, TxClass::Discovery));
    assert_eq!(asked, [2, 2, 2, 0, 2]);
    let now = Time(0) + Duration::from_millis(200);
    participant.on_frame(now, &heartbeat_of(EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, 0), &mut Nowhere);
    participant.on_frame(now, &publication(1, 1, "Topic", |_| {}), &mut Nowhere);
    participant.on_frame(now, &heartbeat(1, 1), &mut Nowhere);
    // By now it has answered, but for its new writer.
    announced_at(&mut participant, 400, TxClass::Repair);
    let asked = [450, 500, 550].map(|at| announced_at(&mut participant, at, TxClass::Repair));
    assert_eq!(asked, [1; 3]);
}

/// Where it was nobody may have heard the questions.
#[test]
fn who_is_reached_elsewhere_is_asked_as_often_as_at_first() {
    let mut participant = participant();
    let mut asked_at = |millisecond, port| {
        let now = Time(0) + Duration::from_millis(millisecond);
        let addresses = [Locator { port, ..ADDRESS }];
        let announced = Announcement { addresses: &addresses, ..Announcement::of(OTHER) }.frame();
        participant.on_frame(now, &announced, &mut Nowhere);
        participant.on_timeout(now, usize::MAX);
        asked_from(&mut participant, now).len()
    };
    // Each pause is twice the one before.
    let grows = [0, 50, 150, 350, 750, 1_550, 3_150, 6_150].map(|at| asked_at(at, 7410));
    assert_eq!(grows, [2; 8]);
    assert_eq!([6_200, 6_300].map(|at| asked_at(at, 7410)), [0; 2]);
    assert_eq!([6_400, 6_450, 6_500, 6_550].map(|at| asked_at(at, 7420)), [2, 2, 2, 0]);
}

#[test]
fn a_message_tells_of_no_more_participants_than_a_step_takes() {
    const TOLD: usize = 20;
    let mut participant = participant();
    let each = |n: u8| Announcement { source: GuidPrefix([n; 12]), ..Announcement::of(OTHER) }.frame().bytes;
    let mut message = each(100).to_vec();
    (101..100 + TOLD as u8).for_each(|n| message.extend_from_slice(&each(n)[HEADER_LEN..]));
    let most = limits::MESSAGE_ANNOUNCEMENTS as usize;
    // What is repeated is known, and the next ones are told of.
    for known in [most, 2 * most, TOLD] {
        participant.on_frame(Time(0), &frame(message.clone()), &mut Nowhere);
        assert_eq!(participant.database().peers().count(), known);
    }
    assert_eq!(participant.counters().too_many_participants, (2 * TOLD - 3 * most) as u64);
}

/// Each that is forgotten takes a step of its own with all that it has.
#[test]
fn a_message_ends_no_more_participants_than_a_step_takes() {
    const TOLD: u8 = 20;
    let mut participant = participant();
    let prefixes = (100..100 + TOLD).map(|n| GuidPrefix([n; 12]));
    let mut ends = message();
    for prefix in prefixes {
        participant.on_frame(
            Time(0),
            &Announcement { source: prefix, ..Announcement::of(OTHER) }.frame(),
            &mut Nowhere,
        );
        InfoSource { version: ProtocolVersion::RTPS_2_5, vendor: FOREIGN, prefix }
            .write(&mut ends, Endian::Little);
        let said = InlineQos { status_info: StatusInfo::DISPOSED, ..InlineQos::default() };
        let mut key = vec![0, 3, 0, 0, 0x50, 0, 16, 0];
        key.extend(Guid::new(prefix, EntityId::PARTICIPANT).to_bytes());
        key.extend([1, 0, 0, 0]);
        put_data(&mut ends, EntityId::SPDP_WRITER, 2, &inline(&said, &[]), PayloadKind::Key, &key);
    }
    assert_eq!(participant.database().peers().count(), usize::from(TOLD));
    participant.on_frame(Time(0), &frame(ends), &mut Nowhere);
    let left = usize::from(TOLD) - limits::MESSAGE_ANNOUNCEMENTS as usize;
    assert_eq!(participant.database().peers().count(), left);
    assert_eq!(participant.counters().too_many_participants, left as u64);
}

#[test]
fn participants_that_answer_nothing_give_way_to_newcomers() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    participant.on_frame(Time(0), &heartbeat(1, 0), &mut Nowhere);
    let prefix =
        |n: usize| GuidPrefix(std::array::from_fn(|at| if at < 8 { 9 } else { n.to_be_bytes()[at - 4] }));
    let mut comes =
        |n| participant.on_frame(Time(n as i64), &Announcement::of(prefix(n)).frame(), &mut Nowhere);
    (1..limits::PEERS + 10).for_each(&mut comes);
    let knows = |prefix| participant.database().peer(prefix).is_some();
    assert_eq!(participant.database().peers().count(), limits::PEERS);
    assert!(knows(OTHER), "it has answered");
    assert!(!knows(prefix(1)) && !knows(prefix(10)) && knows(prefix(11)), "the oldest have gone");
    assert!(knows(prefix(limits::PEERS + 9)));
    assert_eq!(participant.counters().too_many_participants, 10);
}

/// Else somebody who makes up participants fills the table for good, and has all of them asked for ever.
#[test]
fn who_has_answered_nothing_is_forgotten_however_long_its_lease_is() {
    let (mut participant, silent) = (participant(), GuidPrefix([9; 12]));
    let lease = limits::SILENT_LEASE;
    let for_ever = |prefix| Announcement { lease: Duration::INFINITE, ..Announcement::of(prefix) }.frame();
    let known_at = |participant: &mut Participant, now| {
        participant.on_timeout(now, usize::MAX);
        [OTHER, silent].map(|prefix| participant.database().peer(prefix).is_some())
    };
    for prefix in [OTHER, silent] {
        participant.on_frame(Time(0), &for_ever(prefix), &mut Nowhere);
    }
    participant.on_frame(Time(0), &heartbeat(1, 0), &mut Nowhere);
    let almost = Time(lease.0 - 1);
    assert_eq!(known_at(&mut participant, almost), [true, true]);
    participant.on_frame(almost, &for_ever(silent), &mut Nowhere);
    let again = known_at(&mut participant, Time(2 * lease.0 - 2));
    assert_eq!(again, [true, true], "it has announced itself again");
    assert_eq!(known_at(&mut participant, Time(2 * lease.0 - 1)), [true, false]);
    assert_eq!(known_at(&mut participant, Time(1_000 * lease.0)), [true, false], "who answers has its lease");
}

#[test]
fn no_more_timers_are_handled_than_the_budget_has() {
    const PEERS: u8 = 12;
    const BUDGET: usize = 5;
    let mut participant = participant();
    for number in 0..PEERS {
        let peer = GuidPrefix([10 + number; 12]);
        let frame = Announcement { vendor: VendorId::UNKNOWN, ..Announcement::of(peer) }.frame();
        participant.on_frame(Time(0), &frame, &mut Nowhere);
    }
    assert_eq!(participant.database().peers().count(), usize::from(PEERS));
    // All leases end at the same time.
    let after = Time(0) + ParticipantData::default().lease_duration;
    let mut last = usize::from(PEERS);
    while last > 0 {
        let handled = participant.on_timeout(after, BUDGET);
        let left = participant.database().peers().count();
        assert!(handled <= BUDGET && last - left <= BUDGET, "{handled} timers: {last} peers, then {left}");
        assert!(handled == BUDGET || left == 0, "{left} peers are left");
        last = left;
    }
}

/// One fragment of an announcement of some participant, as Fast DDS sends it over a transport that takes no larger messages.
fn part_of_announcement(prefix: GuidPrefix, number: i64, size: u16, part: u32, payload: &[u8]) -> Frame {
    let header = DataFragHeader {
        reader_id: EntityId::SPDP_READER,
        writer_id: EntityId::SPDP_WRITER,
        writer_sn: SequenceNumber(number),
        fragment_starting_num: part,
        fragments_in_submessage: 1,
        fragment_size: size,
        sample_size: payload.len() as u32,
        key: false,
    };
    fragment_of(prefix, header, payload.chunks(size.into()).nth(part as usize - 1).unwrap())
}

fn fragment_of(prefix: GuidPrefix, header: DataFragHeader, bytes: &[u8]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, prefix);
    header.write(&mut message, Endian::Little, &[], bytes.len());
    message.extend_from_slice(bytes);
    frame(message)
}

/// What a participant says of itself, with more than one small datagram holds.
fn long_announcement(prefix: GuidPrefix) -> Vec<u8> {
    let mut payload = Vec::new();
    let data = ParticipantData {
        guid_prefix: prefix,
        metatraffic_unicast: vec![ADDRESS],
        default_unicast: vec![ADDRESS],
        user_data: vec![7; 3_000],
        ..ParticipantData::default()
    };
    data.write(&mut payload);
    payload
}

/// Fast DDS announces itself so where `maxMessageSize` of its transport is less than an announcement takes.
#[test]
fn who_announces_itself_in_fragments_is_found() {
    let payload = long_announcement(OTHER);
    for order in [[1, 2, 3], [3, 1, 2], [1, 2, 2]] {
        let mut participant = participant();
        for part in order {
            let part = part_of_announcement(OTHER, 1, 1_224, part, &payload);
            participant.on_frame(Time(0), &part, &mut Nowhere);
        }
        let whole = order.contains(&3);
        assert_eq!(participant.database().peers().count(), usize::from(whole), "{order:?}");
        // What was lost comes with the next announcement, which is the same one, or another one in other fragments.
        let (number, size) = if whole { (2, 1_164) } else { (1, 1_224) };
        for part in 1..=3 {
            let part = part_of_announcement(OTHER, number, size, part, &payload);
            participant.on_frame(Time(1), &part, &mut Nowhere);
        }
        let peer = participant.database().peers().next().expect("found");
        assert_eq!(peer.data.user_data.len(), 3_000);
    }
}

/// Nobody knows a peer that has announced itself any better than one that has not.
#[test]
fn what_a_built_in_writer_says_is_no_longer_than_it_can_have_to_say() {
    let mut participant = participant();
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    for (sample_size, refused) in [(limits::DISCOVERY_SIZE, 0), (limits::DISCOVERY_SIZE + 1, 1)] {
        let large = DataFragHeader {
            reader_id: EntityId::UNKNOWN,
            writer_id: EntityId::SEDP_PUBLICATIONS_WRITER,
            writer_sn: SequenceNumber(1),
            fragment_starting_num: 1,
            fragments_in_submessage: 1,
            fragment_size: 64,
            sample_size,
            key: false,
        };
        participant.on_frame(Time(0), &fragment_of(OTHER, large, &[0; 64]), &mut Nowhere);
        assert_eq!(participant.counters().of(WireError::LimitExceeded), refused);
    }
}

/// Of those that are begun the last ones are kept, and no more.
#[test]
fn the_oldest_of_too_many_announcements_gives_way() {
    for others in [limits::ANNOUNCEMENTS - 1, limits::ANNOUNCEMENTS] {
        let mut participant = participant();
        let payload = long_announcement(OTHER);
        let mut hear = |prefix, part| {
            let part = part_of_announcement(prefix, 1, 1_224, part, &payload);
            participant.on_frame(Time(0), &part, &mut Nowhere);
        };
        hear(OTHER, 1);
        hear(OTHER, 2);
        for number in 0..others {
            hear(GuidPrefix([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, u8::try_from(number).unwrap()]), 1);
        }
        hear(OTHER, 3);
        let is_kept = others < limits::ANNOUNCEMENTS;
        assert_eq!(participant.database().peers().count(), usize::from(is_kept), "beside {others}");
    }
}

/// Who begins announcements and ends none keeps nobody else out for long.
#[test]
fn announcements_that_do_not_end_keep_nobody_out() {
    let mut participant = participant();
    let payload = long_announcement(OTHER);
    for number in 0..10_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let made_up = GuidPrefix([9, 9, 9, 9, 9, 9, 9, 9, a, b, c, d]);
        let part = part_of_announcement(made_up, 1, 1_224, 1, &payload);
        participant.on_frame(Time(0), &part, &mut Nowhere);
    }
    let large = DataFragHeader {
        reader_id: EntityId::UNKNOWN,
        writer_id: EntityId::SPDP_WRITER,
        writer_sn: SequenceNumber(1),
        fragment_starting_num: 1,
        fragments_in_submessage: 1,
        fragment_size: 64,
        sample_size: limits::ANNOUNCEMENT_SIZE + 1,
        key: false,
    };
    participant.on_frame(Time(0), &fragment_of(OTHER, large, &[0; 64]), &mut Nowhere);
    assert_eq!(participant.counters().of(WireError::LimitExceeded), 1);
    for part in 1..=3 {
        let part = part_of_announcement(OTHER, 1, 1_224, part, &payload);
        participant.on_frame(Time(0), &part, &mut Nowhere);
    }
    assert_eq!(participant.database().peers().count(), 1);
}
