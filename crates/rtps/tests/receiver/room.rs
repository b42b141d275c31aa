//! A reader's cache is full, and writers wait for the room that each take makes: which of them has it, and what they hear.

use std::collections::BTreeMap;

use taut_base::{EntityId, Guid, InstanceHandle, Time};
use taut_mem::Bytes;
use taut_port::Loopback;
use taut_qos::{EndpointQos, ReliabilityKind};
use taut_rtps::{ChangeKind, NewChange, Offer, Participant, ReaderIndex, Sink, TxClass, WriterIndex};
use taut_wire::{Header, Submessage, Submessages};

use crate::common::{OTHER, announcement, change, endpoint_of, publication, reader_of};

const NOW: Time = Time(0);

/// How many changes of which writer have found room, and for how many more there is some.
#[derive(Default)]
struct Cache {
    room: usize,
    taken: BTreeMap<Guid, usize>,
    /// There is never any for this one, as if its instance were full.
    refused: Option<Guid>,
}

impl Sink for Cache {
    fn deliver(&mut self, _: ReaderIndex, _: i32, offer: &mut Offer) {
        let writer = offer.as_ref().map(|change| change.writer_guid);
        if self.room > 0
            && self.refused != writer
            && let Some(change) = offer.take()
        {
            self.room -= 1;
            *self.taken.entry(change.writer_guid).or_default() += 1;
        }
    }
}

impl Cache {
    fn of(&self, writer: Guid) -> usize {
        self.taken.get(&writer).copied().unwrap_or(0)
    }
}

fn remote(key: u32) -> Guid {
    Guid::new(OTHER, EntityId::user(key, true, false))
}

/// A reader that is matched with so many writers of another participant.
fn matched(writers: u32) -> (Participant, ReaderIndex, Cache) {
    let (mut participant, mut cache) = (crate::common::participant(), Cache::default());
    let reader = reader_of(&mut participant, "Topic", ReliabilityKind::Reliable);
    participant.on_frame(NOW, &announcement(), &mut cache);
    for key in 1..=writers {
        let reliable = |qos: &mut EndpointQos| qos.reliability.kind = ReliabilityKind::Reliable;
        participant.on_frame(NOW, &publication(key.into(), key, "Topic", reliable), &mut cache);
    }
    (participant, reader, cache)
}

/// So many changes of a writer of the other participant come.
fn come(participant: &mut Participant, cache: &mut Cache, key: u32, numbers: std::ops::RangeInclusive<i64>) {
    numbers.for_each(|number| {
        participant.on_frame(NOW, &change(remote(key).entity, number, &[0, 1, 0, 0]), cache)
    });
}

/// A sample is taken.
fn take(participant: &mut Participant, reader: ReaderIndex, cache: &mut Cache) {
    cache.room = 1;
    participant.on_room(NOW, reader, cache);
}

/// The first one has a hundred changes at once, or the next one as soon as one is delivered.
#[test]
fn writers_that_wait_for_room_have_it_in_turn() {
    for at_once in [100, 1] {
        let (mut participant, reader, mut cache) = matched(2);
        come(&mut participant, &mut cache, 1, 1..=at_once);
        come(&mut participant, &mut cache, 2, 1..=100);
        for _ in 0..100 {
            take(&mut participant, reader, &mut cache);
            let last = at_once + cache.of(remote(1)) as i64;
            come(&mut participant, &mut cache, 1, last..=last);
        }
        assert_eq!([1, 2].map(|key| cache.of(remote(key))), [50, 50], "{at_once} at once");
    }
}

#[test]
fn one_that_finds_no_room_where_others_do_leaves_them_their_turns() {
    for refused in 1..=3 {
        let (mut participant, reader, mut cache) = matched(3);
        cache.refused = Some(remote(refused));
        (1..=3).for_each(|key| come(&mut participant, &mut cache, key, 1..=100));
        (0..100).for_each(|_| take(&mut participant, reader, &mut cache));
        let mut taken = [1, 2, 3].map(|key| cache.of(remote(key)));
        taken.sort();
        assert_eq!(taken, [0, 50, 50], "{refused}");
    }
}

fn write(participant: &mut Participant, writer: WriterIndex, cache: &mut Cache) {
    let mut change = NewChange {
        kind: ChangeKind::Alive,
        instance: InstanceHandle::NIL,
        source_timestamp: None,
        payload: Bytes::new(),
        number: None,
        in_lane: false,
        called: NOW,
        was_left: false,
    };
    participant.write(NOW, writer, &mut change, cache).unwrap();
}

#[test]
fn writers_of_this_participant_and_of_others_have_room_in_turn() {
    let (mut participant, reader, mut cache) = matched(2);
    let local: Vec<WriterIndex> = (0..3)
        .map(|_| {
            let endpoint = endpoint_of("Topic", EndpointQos::default_writer(), ReliabilityKind::Reliable);
            participant.create_writer(NOW, endpoint, &mut cache)
        })
        .collect();
    for key in [1, 2] {
        come(&mut participant, &mut cache, key, 1..=100);
    }
    for _ in 0..40 {
        local.iter().for_each(|writer| write(&mut participant, *writer, &mut cache));
    }
    (0..120).for_each(|_| take(&mut participant, reader, &mut cache));
    assert_eq!([1, 2].map(|key| cache.of(remote(key))), [30, 30]);
    let names = local.iter().map(|writer| participant.writer(*writer).unwrap().guid);
    assert_eq!(names.map(|name| cache.of(name)).collect::<Vec<_>>(), [20, 20, 20]);
}

/// How many ACKNACKs are sent.
fn acknowledged(participant: &mut Participant) -> usize {
    let (mut port, mut count) = (Loopback::new(), 0);
    while participant.poll_transmit(NOW, &mut port, TxClass::Repair, usize::MAX).more {}
    while let Some((_, datagram)) = port.take() {
        let (_, rest) = Header::parse(&datagram).unwrap();
        let submessages = Submessages::new(rest);
        count += submessages.filter(|submessage| matches!(submessage, Ok(Submessage::AckNack(_)))).count();
    }
    count
}

#[test]
fn who_waits_for_room_is_told_only_of_what_it_has_found() {
    const WRITERS: u32 = 10;
    let (mut participant, reader, mut cache) = matched(WRITERS);
    (1..=WRITERS).for_each(|key| come(&mut participant, &mut cache, key, 1..=3));
    acknowledged(&mut participant);
    for room in [1, 0, 4] {
        cache.room = room;
        participant.on_room(NOW, reader, &mut cache);
        let told = acknowledged(&mut participant);
        assert!(told <= room && (told > 0) == (room > 0), "{told} of {room}");
    }
}
