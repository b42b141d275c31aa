//! What a participant does in one step is bounded, however much there is of it.

use std::net::Ipv4Addr;
use std::time::Instant;

use taut_base::{
    Duration, EntityId, Guid, GuidPrefix, InstanceHandle, Locator, SequenceNumber, SequenceNumberSet, Time,
    VendorId,
};
use taut_mem::Bytes;
use taut_port::{Frame, Loopback, Traffic};
use taut_qos::{DurabilityKind, EndpointQos, History, LivelinessKind, ReliabilityKind};
use taut_rtps::discovery::{EndpointData, ParticipantData, builtin_endpoint};
use taut_rtps::{
    ChangeKind, Config, EndpointConfig, Event, NewChange, Offer, Participant, Reader, ReaderIndex, Sink,
    TxClass, limits,
};
use taut_wire::{AckNack, DataHeader, Endian, PayloadKind, write_message_header};

/// The lease of the other participant.
const LEASE: Duration = Duration::from_secs(10);
const OTHER: GuidPrefix = GuidPrefix([2; 12]);
const ADDRESS: Locator = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410);
const GROUP: Locator = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);
const ENDPOINTS: u32 = 1_000;

struct Nowhere;

impl Sink for Nowhere {
    fn deliver(&mut self, _: ReaderIndex, _: i32, _: &mut Offer) {}
}

fn participant(initial_peers: Vec<Locator>) -> Participant {
    let mut config = Config::at(GuidPrefix([1; 12]), ADDRESS);
    config.addresses.metatraffic_multicast = vec![GROUP];
    Participant::new(Config { initial_peers, ..config })
}

/// A change of a built-in writer of the other participant.
fn change(writer_id: EntityId, number: i64, payload: &[u8]) -> Frame {
    let mut message = Vec::new();
    write_message_header(&mut message, OTHER);
    let header = DataHeader { reader_id: EntityId::UNKNOWN, writer_id, writer_sn: SequenceNumber(number) };
    header.write(&mut message, Endian::Little, &[], PayloadKind::Data, payload.len());
    message.extend_from_slice(payload);
    Frame { source: ADDRESS, traffic: Traffic::Meta, bytes: Bytes::from(message) }
}

fn announcement() -> Frame {
    announcement_from(ADDRESS)
}

/// The other participant says where it is reached.
fn announcement_from(address: Locator) -> Frame {
    announcement_with(address, vec![address])
}

/// The same, and where what is no discovery goes.
fn announcement_with(address: Locator, default_unicast: Vec<Locator>) -> Frame {
    let mut payload = Vec::new();
    let data = ParticipantData {
        guid_prefix: OTHER,
        vendor_id: VendorId([1, 127]),
        metatraffic_unicast: vec![address],
        default_unicast,
        builtin_endpoints: builtin_endpoint::PUBLICATIONS_ANNOUNCER
            | builtin_endpoint::SUBSCRIPTIONS_ANNOUNCER,
        lease_duration: LEASE,
        ..ParticipantData::default()
    };
    data.write(&mut payload);
    change(EntityId::SPDP_WRITER, 1, &payload)
}

fn topic(key: u32) -> String {
    format!("Topic{key}")
}

fn writer(key: u32) -> Guid {
    Guid::new(OTHER, EntityId::user(key, true, false))
}

/// The other participant tells of one of its writers.
fn publication(key: u32) -> Frame {
    let guid = writer(key);
    let mut payload = Vec::new();
    EndpointData::of(guid, &topic(key), "Type", EndpointQos::default_writer()).write(&mut payload);
    change(EntityId::SEDP_PUBLICATIONS_WRITER, key.into(), &payload)
}

/// The other participant tells of one of its readers, all of one topic, each at an address of its own.
fn subscription(key: u32, qos: EndpointQos) -> Frame {
    subscription_at(key, qos, vec![address_of(key)])
}

fn subscription_at(key: u32, qos: EndpointQos, unicast_locators: Vec<Locator>) -> Frame {
    let guid = Guid::new(OTHER, EntityId::user(key, false, false));
    let mut payload = Vec::new();
    let mut data = EndpointData::of(guid, &topic(0), "Type", qos);
    data.unicast_locators = unicast_locators;
    data.write(&mut payload);
    change(EntityId::SEDP_SUBSCRIPTIONS_WRITER, key.into(), &payload)
}

fn address_of(key: u32) -> Locator {
    Locator::udp_v4(Ipv4Addr::LOCALHOST, 8_000 + key as u16)
}

/// One that has as many readers as the other one writers, each of a topic of its own.
fn matched() -> Participant {
    matched_with(EndpointQos::default_reader())
}

fn matched_with(qos: EndpointQos) -> Participant {
    let mut participant = participant(Vec::new());
    for key in 1..=ENDPOINTS {
        let endpoint = EndpointConfig {
            topic_name: topic(key),
            type_name: "Type".into(),
            keyed: false,
            qos: qos.clone(),
            history: History::KeepLast(1),
            max_samples: None,
        };
        participant.create_reader(Time(0), endpoint, &mut Nowhere);
    }
    participant.on_timeout(Time(0), usize::MAX);
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    (1..=ENDPOINTS).for_each(|key| participant.on_frame(Time(0), &publication(key), &mut Nowhere));
    assert_eq!(ended(&mut participant), (0, false));
    participant
}

/// How many matches have ended since the last look, and is the other participant lost?
fn ended(participant: &mut Participant) -> (usize, bool) {
    let mut ended = (0, false);
    while let Some(event) = participant.poll_event() {
        match event {
            Event::SubscriptionMatched { matched: false, .. } => ended.0 += 1,
            Event::ParticipantLost { .. } => ended.1 = true,
            _ => {}
        }
    }
    ended
}

/// Runs timers one by one until none is due. Returns how many steps there were in which matches ended.
fn run_timers(
    participant: &mut Participant,
    now: Time,
    mut between: impl FnMut(&mut Participant, usize),
) -> usize {
    let (mut steps, mut matches, mut times) = (0, 0, Vec::new());
    loop {
        let start = Instant::now();
        if participant.on_timeout(now, 1) == 0 {
            break;
        }
        times.push(start.elapsed());
        let (ended, _) = ended(participant);
        assert!(ended <= limits::PEER_STEP, "{ended} matches ended in one step");
        matches += ended;
        steps += usize::from(ended > 0);
        // How long a step has waited is counted from the time that it was due.
        assert!(participant.next_timeout().is_none_or(|next| next >= Time(0)), "due before the clock began");
        between(participant, steps);
    }
    assert_eq!(matches, ENDPOINTS as usize);
    times.sort();
    let all: std::time::Duration = times.iter().sum();
    let [half, most, longest] =
        [times.len() / 2, times.len() * 99 / 100, times.len() - 1].map(|at| times[at]);
    println!(
        "{} steps of {half:?}, 99 % of them up to {most:?}, the longest {longest:?}, in all {all:?}",
        times.len()
    );
    steps
}

#[test]
fn a_peer_with_a_thousand_endpoints_is_forgotten_in_many_steps() {
    let mut participant = matched();
    let late = Time(0) + LEASE;
    let steps = run_timers(&mut participant, late, |participant, steps| {
        assert!(steps == 0 || participant.database().peers().count() == 0, "from the first step on");
    });
    assert!(steps >= ENDPOINTS as usize / limits::PEER_STEP, "{steps}");
    assert_eq!(participant.database().endpoints().count(), 0);
    assert!(participant.next_timeout().is_some_and(|next| next > late));
}

#[test]
fn who_comes_back_while_it_is_forgotten_is_found_anew() {
    let mut participant = matched();
    let late = Time(0) + LEASE;
    run_timers(&mut participant, late, |participant, steps| {
        if steps == 3 {
            participant.on_frame(late, &announcement(), &mut Nowhere);
            // Nothing is believed of one that is not known, and what is left of it matches nothing new.
            participant.on_frame(late, &publication(ENDPOINTS + 1), &mut Nowhere);
            assert_eq!(participant.database().peers().count(), 0);
        }
    });
    assert_eq!(participant.database().peers().count(), 1);
    assert_eq!(participant.database().endpoints().count(), 0);
    participant.on_frame(late, &publication(1), &mut Nowhere);
    assert_eq!(participant.database().endpoints().count(), 1);
}

/// The readers of which something holds.
fn count(participant: &Participant, holds: impl Fn(&Reader) -> bool) -> usize {
    let readers = (0..ENDPOINTS + 10).filter_map(|index| participant.reader(ReaderIndex(index)));
    readers.filter(|reader| !reader.guid.entity.is_builtin() && holds(reader)).count()
}

/// Handles a datagram and what follows, timer by timer. Something comes to hold of all readers, of no more than `most`
/// at a time. Returns in how many steps.
fn spreads(
    participant: &mut Participant,
    (now, frame, most): (Time, Frame, usize),
    holds: impl Fn(&Reader) -> bool,
) -> usize {
    let mut before = count(participant, &holds);
    assert_eq!(before, 0);
    let mut steps = 0;
    let mut look = |participant: &Participant| {
        let held = count(participant, &holds);
        assert!(held - before <= most, "{} readers in one step", held - before);
        steps += usize::from(held > before);
        before = held;
    };
    participant.on_frame(now, &frame, &mut Nowhere);
    look(participant);
    while participant.on_timeout(now, 1) > 0 {
        look(participant);
    }
    assert_eq!(before, ENDPOINTS as usize);
    steps
}

#[test]
fn a_peer_with_a_thousand_endpoints_moves_in_many_steps() {
    let mut participant = matched();
    let next = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7412);
    let is_at = move |address: Locator| {
        move |reader: &Reader| reader.proxies.values().all(|proxy| proxy.locators == [address])
    };
    assert_eq!(count(&participant, is_at(ADDRESS)), ENDPOINTS as usize);
    let moves = |address| (Time(0), announcement_from(address), limits::PEER_STEP);
    let steps = spreads(&mut participant, moves(next), is_at(next));
    assert!(steps >= ENDPOINTS as usize / limits::PEER_STEP, "{steps}");
    // Before the way back is through it moves again: all end up where it is then.
    let later = Time(0) + limits::LOOK_REPEAT;
    participant.on_frame(later, &announcement_from(ADDRESS), &mut Nowhere);
    participant.on_timeout(later, 5);
    assert!(count(&participant, is_at(ADDRESS)) < ENDPOINTS as usize);
    let last = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7413);
    let later = later + limits::LOOK_REPEAT;
    spreads(&mut participant, (later, announcement_from(last), limits::PEER_STEP), is_at(last));
}

#[test]
fn who_moves_and_is_lost_in_the_midst_of_it_is_forgotten() {
    let mut participant = matched();
    participant.on_frame(
        Time(0),
        &announcement_from(Locator::udp_v4(Ipv4Addr::LOCALHOST, 7412)),
        &mut Nowhere,
    );
    participant.on_timeout(Time(0), 5);
    let late = Time(0) + Duration::from_secs(11);
    participant.forget_participant(late, OTHER);
    while participant.on_timeout(late, 1) > 0 {}
    assert_eq!(participant.database().endpoints().count(), 0);
    assert!(participant.next_timeout().is_some_and(|next| next > late));
}

#[test]
fn a_thousand_silent_writers_are_asked_again_in_many_steps() {
    let mut qos = EndpointQos::default_reader();
    qos.reliability.kind = ReliabilityKind::Reliable;
    let mut participant = matched_with(qos);
    participant.poll_transmit(Time(0), &mut Loopback::new(), TxClass::Discovery, usize::MAX);
    participant.on_timeout(Time(0), usize::MAX);
    for _ in 0..2 {
        let now = participant.next_timeout().unwrap();
        let asks = (now, announcement(), limits::ASK_STEP);
        let steps = spreads(&mut participant, asks, Reader::has_acks);
        assert!(steps >= ENDPOINTS as usize / limits::ASK_STEP, "{steps}");
        participant.poll_transmit(now, &mut Loopback::new(), TxClass::Discovery, usize::MAX);
    }
}

#[test]
fn announcements_to_many_go_out_within_the_budget() {
    const PEERS: u16 = 100;
    const BUDGET: usize = 8;
    let peers: Vec<Locator> = (1..=PEERS).map(|port| Locator::udp_v4(Ipv4Addr::LOCALHOST, port)).collect();
    let mut participant = participant(peers.clone());
    let mut told: Vec<Locator> = Vec::new();
    let mut announce = |participant: &mut Participant, now| {
        let mut port = Loopback::new();
        loop {
            let progress = participant.poll_transmit(now, &mut port, TxClass::Discovery, BUDGET);
            assert!(progress.calls <= BUDGET, "{progress:?}");
            told.extend(std::iter::from_fn(|| port.take()).map(|(to, _)| to));
            if !progress.more {
                break std::mem::take(&mut told);
            }
        }
    };
    let everybody: Vec<Locator> = std::iter::once(GROUP).chain(peers).collect();
    participant.on_timeout(Time(0), usize::MAX);
    assert_eq!(announce(&mut participant, Time(0)), everybody);
    // The same when it leaves in the midst of an announcement.
    let next = Time(0) + limits::INITIAL_ANNOUNCEMENT_PERIOD;
    participant.on_timeout(next, usize::MAX);
    participant.poll_transmit(next, &mut Loopback::new(), TxClass::Discovery, BUDGET);
    participant.leave();
    assert_eq!(announce(&mut participant, next), everybody);
}

/// One of many readers has not answered its greeting, so that all are told apart.
#[test]
fn that_a_writer_is_alive_goes_out_within_the_budget_and_to_all_each_time() {
    const READERS: u32 = 200;
    const BUDGET: usize = 8;
    let mut participant = participant(Vec::new());
    let mut qos = EndpointQos::default_writer();
    qos.reliability.kind = ReliabilityKind::Reliable;
    qos.liveliness.kind = LivelinessKind::ManualByTopic;
    let (topic_name, type_name) = (topic(0), "Type".into());
    let history = History::KeepLast(1);
    let endpoint = EndpointConfig { topic_name, type_name, keyed: false, qos, history, max_samples: None };
    let index = participant.create_writer(Time(0), endpoint, &mut Nowhere);
    let writer_id = participant.writer(index).unwrap().guid.entity;
    participant.on_frame(Time(0), &announcement(), &mut Nowhere);
    let mut qos = EndpointQos::default_reader();
    qos.reliability.kind = ReliabilityKind::Reliable;
    for key in 1..=READERS {
        participant.on_frame(Time(0), &subscription(key, qos.clone()), &mut Nowhere);
    }
    while participant.on_timeout(Time(0), usize::MAX) > 0 {}
    for key in (1..=READERS).filter(|key| *key != READERS / 2) {
        let reader_id = EntityId::user(key, false, false);
        let reader_sn_state = SequenceNumberSet::new(SequenceNumber::FIRST);
        let mut message = Vec::new();
        write_message_header(&mut message, OTHER);
        AckNack { reader_id, writer_id, reader_sn_state, count: 1, final_flag: true }
            .write(&mut message, Endian::Little);
        let answer = Frame { source: ADDRESS, traffic: Traffic::User, bytes: Bytes::from(message) };
        participant.on_frame(Time(0), &answer, &mut Nowhere);
    }
    participant.poll_transmit(Time(0), &mut Loopback::new(), TxClass::Discovery, usize::MAX);
    let mut told = Vec::new();
    let step = |participant: &mut Participant, told: &mut Vec<Locator>| {
        let mut port = Loopback::new();
        let progress = participant.poll_transmit(Time(0), &mut port, TxClass::Liveliness, BUDGET);
        assert!(progress.calls <= BUDGET, "{progress:?}");
        told.extend(std::iter::from_fn(|| port.take()).map(|(to, _)| to));
        progress.more
    };
    participant.assert_liveliness(Time(0), index);
    assert!((0..2).all(|_| step(&mut participant, &mut told)));
    assert_eq!(told.len(), 2 * BUDGET);
    // It says so again before all have heard it: each hears it once more, and the others first.
    participant.assert_liveliness(Time(0), index);
    while step(&mut participant, &mut told) {}
    let all: Vec<Locator> = (1..=READERS).map(address_of).collect();
    assert_eq!(told, [&all[..], &all[..2 * BUDGET]].concat());
}

/// Whoever is told nothing, as it names no address, takes of a step's time all the same.
#[test]
fn a_history_for_a_reader_without_an_address_is_gone_through_in_many_steps() {
    const SAMPLES: usize = 10_000;
    const BUDGET: usize = 4;
    let mut participant = participant(Vec::new());
    let mut qos = EndpointQos::default_writer();
    (qos.reliability.kind, qos.durability) = (ReliabilityKind::Reliable, DurabilityKind::TransientLocal);
    let (topic_name, type_name) = (topic(0), "Type".into());
    let history = History::KeepAll;
    let endpoint = EndpointConfig { topic_name, type_name, keyed: false, qos, history, max_samples: None };
    let index = participant.create_writer(Time(0), endpoint, &mut Nowhere);
    for _ in 0..SAMPLES {
        let mut new = NewChange {
            kind: ChangeKind::Alive,
            instance: InstanceHandle::NIL,
            source_timestamp: None,
            payload: Bytes::from(vec![0; 64]),
            number: None,
            in_lane: false,
            called: Time(0),
            was_left: false,
        };
        participant.write(Time(0), index, &mut new, &mut Nowhere).unwrap();
    }
    participant.on_frame(Time(0), &announcement_with(ADDRESS, Vec::new()), &mut Nowhere);
    let mut qos = EndpointQos::default_reader();
    (qos.reliability.kind, qos.durability) = (ReliabilityKind::BestEffort, DurabilityKind::TransientLocal);
    participant.on_frame(Time(0), &subscription_at(1, qos, Vec::new()), &mut Nowhere);
    participant.on_timeout(Time(0), usize::MAX);
    let is_match = |event| matches!(event, Event::PublicationMatched { .. });
    assert!(std::iter::from_fn(|| participant.poll_event()).any(is_match));
    let mut steps = 1;
    while participant.poll_transmit(Time(0), &mut Loopback::new(), TxClass::Discovery, BUDGET).more {
        steps += 1;
    }
    // What a datagram holds, and how many there are in a step.
    let least = SAMPLES * 64 / (BUDGET << 16);
    assert!(steps > least, "{steps}, {least}");
}
