//! A durable writer and a reader of another participant that is lost, or leaves, and comes back.

use taut_base::{Duration, EntityId, Guid, InstanceHandle, SequenceNumber, SequenceNumberSet, Time};
use taut_mem::Bytes;
use taut_port::Loopback;
use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};
use taut_rtps::discovery::{EndpointData, ParticipantData};
use taut_rtps::{ChangeKind, EndpointConfig, Event, NewChange, Participant, TxClass, WriterIndex, limits};
use taut_wire::{AckNack, Endian, InlineQos, PayloadKind, StatusInfo};

use crate::common::{
    Nowhere, OTHER, announcement, change, endpoint_of, events, frame, inline, message, participant,
};

/// What the end of the instance has for a payload, and nothing else.
const END: [u8; 8] = [0, 1, 0, 0, 0xe, 0xd, 0xe, 0xd];
fn reader() -> EntityId {
    EntityId::user(1, false, true)
}

/// The other participant tells of its reader, which takes the history.
fn subscription() -> taut_port::Frame {
    let mut qos = EndpointQos::default_reader();
    (qos.reliability.kind, qos.durability) = (ReliabilityKind::Reliable, DurabilityKind::TransientLocal);
    let mut payload = Vec::new();
    EndpointData::of(Guid::new(OTHER, reader()), "Topic", "Type", qos).write(&mut payload);
    change(EntityId::SEDP_SUBSCRIPTIONS_WRITER, 1, &payload)
}

struct Rig {
    participant: Participant,
    writer: WriterIndex,
    writer_id: EntityId,
    acks: i32,
}

impl Rig {
    fn new(lifespan: Duration) -> Rig {
        let mut participant = participant();
        let durability = DurabilityKind::TransientLocal;
        let qos = EndpointQos { durability, lifespan, ..EndpointQos::default_writer() };
        let endpoint = endpoint_of("Topic", qos, ReliabilityKind::Reliable);
        let endpoint = EndpointConfig { keyed: true, history: History::KeepLast(1), ..endpoint };
        let writer = participant.create_writer(Time(0), endpoint, &mut Nowhere);
        let writer_id = participant.writer(writer).unwrap().guid.entity;
        Rig { participant, writer, writer_id, acks: 0 }
    }

    /// The reader is found. Is the end of the instance among what it is sent?
    fn is_told_of_the_end(&mut self, now: Time) -> bool {
        self.participant.on_frame(now, &announcement(), &mut Nowhere);
        self.participant.on_frame(now, &subscription(), &mut Nowhere);
        self.participant.on_timeout(now, usize::MAX);
        let matched = |event: Event| matches!(event, Event::PublicationMatched { matched: true, .. });
        assert!(events(&mut self.participant).any(matched));
        self.sends_end(now) | self.acknowledge(now, 0)
    }

    /// The reader has all up to this number. Is the end among what it is sent then?
    fn acknowledge(&mut self, now: Time, through: i64) -> bool {
        self.acks += 1;
        let reader_sn_state = SequenceNumberSet::new(SequenceNumber(through + 1));
        let (writer_id, count) = (self.writer_id, self.acks);
        let mut message = message();
        AckNack { reader_id: reader(), writer_id, reader_sn_state, count, final_flag: false }
            .write(&mut message, Endian::Little);
        self.participant.on_frame(now, &frame(message), &mut Nowhere);
        self.sends_end(now)
    }

    fn sends_end(&mut self, now: Time) -> bool {
        let mut port = Loopback::new();
        while self.participant.poll_transmit(now, &mut port, TxClass::Discovery, usize::MAX).more {}
        let mut sent = std::iter::from_fn(|| port.take());
        sent.any(|(_, datagram)| datagram.windows(END.len()).any(|octets| octets == END))
    }

    fn write(&mut self, now: Time, kind: ChangeKind, payload: [u8; 8]) {
        let mut new = NewChange {
            kind,
            instance: InstanceHandle([7; 16]),
            source_timestamp: None,
            payload: Bytes::from(payload.to_vec()),
            number: None,
            in_lane: false,
            called: now,
            was_left: false,
        };
        self.participant.write(now, self.writer, &mut new, &mut Nowhere).unwrap();
    }

    /// A reader that is matched has a sample of an instance.
    fn with_a_sample() -> Rig {
        Rig::with_a_sample_for(Duration::INFINITE)
    }

    fn with_a_sample_for(lifespan: Duration) -> Rig {
        let mut rig = Rig::new(lifespan);
        assert!(!rig.is_told_of_the_end(Time(0)));
        rig.write(Time(0), ChangeKind::Alive, [0, 1, 0, 0, 1, 1, 1, 1]);
        rig.sends_end(Time(0));
        rig.acknowledge(Time(0), 1);
        rig
    }

    fn ends(&mut self) -> Option<bool> {
        events(&mut self.participant).find_map(|event| match event {
            Event::ParticipantLost { left, .. } => Some(left),
            _ => None,
        })
    }
}

#[test]
fn who_comes_back_hears_of_what_has_ended_meanwhile() {
    let mut rig = Rig::with_a_sample();
    let lost = Time(0) + ParticipantData::default().lease_duration;
    rig.participant.on_timeout(lost, usize::MAX);
    assert_eq!(rig.ends(), Some(false));
    rig.write(lost, ChangeKind::NotAliveDisposedUnregistered, END);
    assert!(!rig.sends_end(lost), "to nobody");
    assert!(rig.is_told_of_the_end(lost + Duration::from_secs(1)));
}

/// The end of an instance is held for whom has not heard of it, though no sample is as old.
#[test]
fn who_comes_back_hears_of_what_has_ended_longer_ago_than_samples_last() {
    let lifespan = Duration::from_secs(1);
    let mut rig = Rig::with_a_sample_for(lifespan);
    let lost = Time(0) + ParticipantData::default().lease_duration;
    rig.participant.on_timeout(lost, usize::MAX);
    assert_eq!(rig.ends(), Some(false));
    rig.write(lost, ChangeKind::NotAliveDisposedUnregistered, END);
    assert!(!rig.sends_end(lost), "to nobody");
    let later = lost + lifespan.times(2);
    rig.participant.on_timeout(later, usize::MAX);
    assert!(rig.is_told_of_the_end(later));
}

/// It knows nothing of the instance any more.
#[test]
fn who_has_left_is_told_nothing_of_what_has_ended_meanwhile() {
    let mut rig = Rig::with_a_sample();
    let said = InlineQos { status_info: StatusInfo::DISPOSED, ..InlineQos::default() };
    let mut bytes = message();
    let mut key = vec![0, 3, 0, 0, 0x50, 0, 16, 0];
    key.extend(Guid::new(OTHER, EntityId::PARTICIPANT).to_bytes());
    key.extend([1, 0, 0, 0]);
    crate::common::put_data(
        &mut bytes,
        EntityId::SPDP_WRITER,
        2,
        &inline(&said, &[]),
        PayloadKind::Key,
        &key,
    );
    // So long before it is back that it is no announcement of before.
    rig.participant.on_frame(Time(0), &frame(bytes), &mut Nowhere);
    rig.participant.on_timeout(Time(0), usize::MAX);
    assert_eq!(rig.ends(), Some(true));
    rig.write(Time(0), ChangeKind::NotAliveDisposedUnregistered, END);
    assert!(!rig.is_told_of_the_end(Time(0) + limits::RESTART_AFTER));
}
