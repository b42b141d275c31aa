//! How much of a history a reader of the same participant is given in one step, and in which order.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use taut_base::{Duration, GuidPrefix, InstanceHandle, Locator, Time};
use taut_mem::Bytes;
use taut_qos::{DurabilityKind, EndpointQos, History, ReliabilityKind};

use crate::history_cache::ChangeKind;
use crate::limits::{FORGOTTEN, LOCAL_CHANGES};
use crate::writer::NewChange;
use crate::{Config, EndpointConfig, Event, Offer, Participant, ReaderIndex, Sink, WriterIndex};

const NOW: Time = Time(1);

/// What readers have been given, in order, with room for so many more.
struct Caches {
    taken: BTreeMap<ReaderIndex, Vec<i64>>,
    room: usize,
}

impl Sink for Caches {
    fn deliver(&mut self, reader: ReaderIndex, _: i32, offer: &mut Offer) {
        if self.room > 0
            && let Some(change) = offer.take()
        {
            self.room -= 1;
            self.taken.entry(reader).or_default().push(change.sequence_number.0);
        }
    }
}

impl Caches {
    fn new() -> Caches {
        Caches { taken: BTreeMap::new(), room: usize::MAX }
    }

    fn count(&self) -> usize {
        self.taken.values().map(Vec::len).sum()
    }

    fn has(&self, reader: ReaderIndex, last: i64) -> bool {
        self.taken[&reader] == Vec::from_iter(1..=last)
    }
}

fn participant() -> Participant {
    Participant::new(Config::at(GuidPrefix([1; 12]), Locator::udp_v4(Ipv4Addr::LOCALHOST, 7410)))
}

fn durable(history: History) -> EndpointConfig {
    let mut qos = EndpointQos::default_writer();
    (qos.reliability.kind, qos.durability) = (ReliabilityKind::Reliable, DurabilityKind::TransientLocal);
    let (topic_name, type_name) = ("Topic".to_owned(), "Type".to_owned());
    EndpointConfig { topic_name, type_name, keyed: true, qos, history, max_samples: None }
}

/// Writes the next change, of the instance with its number.
fn write(participant: &mut Participant, writer: WriterIndex, number: i64, sink: &mut Caches) -> bool {
    let mut instance = InstanceHandle::NIL;
    instance.0[..8].copy_from_slice(&number.to_le_bytes());
    let mut change = NewChange {
        kind: ChangeKind::Alive,
        instance,
        source_timestamp: None,
        payload: Bytes::new(),
        number: None,
        in_lane: false,
        called: NOW,
        was_left: false,
    };
    participant.write(NOW, writer, &mut change, sink).is_ok()
}

/// Runs `step`. No more is delivered in it than in a step may be.
fn bounded<R>(sink: &mut Caches, beside: usize, step: impl FnOnce(&mut Caches) -> R) -> R {
    let before = sink.count();
    let result = step(sink);
    let delivered = sink.count() - before;
    assert!(delivered <= LOCAL_CHANGES + beside, "{delivered} changes");
    result
}

/// As the layer above does: timers, and behind them what is left to be matched and delivered.
fn run_timers(participant: &mut Participant, sink: &mut Caches) {
    while participant.next_timeout().is_some_and(|next| next <= NOW) {
        participant.on_timeout(NOW, usize::MAX);
        if participant.is_matching() {
            bounded(sink, 0, |sink| participant.match_more(NOW, sink));
        }
    }
}

#[test]
fn a_long_history_comes_in_steps_and_what_is_written_meanwhile_behind_it() {
    const INSTANCES: i64 = 50_000;
    let (mut participant, mut sink) = (participant(), Caches::new());
    let writer = participant.create_writer(NOW, durable(History::KeepLast(1)), &mut sink);
    (1..=INSTANCES).for_each(|number| assert!(write(&mut participant, writer, number, &mut sink)));
    run_timers(&mut participant, &mut sink);
    let reader =
        bounded(&mut sink, 0, |sink| participant.create_reader(NOW, durable(History::KeepAll), sink));
    let (entity, guid) =
        (participant.reader(reader).unwrap().guid.entity, participant.writer(writer).unwrap().guid);
    let mut last = INSTANCES;
    while participant.is_matching() {
        let has_all = sink.taken[&reader].len() as i64 == last;
        assert_eq!(participant.may_read_lane(entity, guid), has_all, "it would overtake history");
        assert!(participant.next_timeout() >= Some(NOW), "what was due before waits for all of it");
        bounded(&mut sink, 0, |sink| participant.match_more(NOW, sink));
        if last < INSTANCES + 50 {
            last += 1;
            bounded(&mut sink, 0, |sink| assert!(write(&mut participant, writer, last, sink)));
        }
    }
    assert_eq!(last, INSTANCES + 50);
    assert!(sink.has(reader, last) && participant.is_acknowledged(writer));
    assert!(participant.may_read_lane(entity, guid));
    let events: Vec<_> = std::iter::from_fn(|| participant.poll_event()).collect();
    let ends = events.iter().filter(|event| matches!(event, Event::HistoryReceived { .. })).count();
    assert_eq!(ends, 1, "who would join them by a lane is told");
}

#[test]
fn what_a_reader_has_not_taken_goes_in_steps_when_it_has_gone() {
    const DEPTH: u32 = 3 * FORGOTTEN as u32;
    let mut volatile = durable(History::KeepLast(DEPTH));
    volatile.qos.durability = DurabilityKind::Volatile;
    volatile.keyed = false;
    let (mut participant, mut sink) = (participant(), Caches::new());
    let writer = participant.create_writer(NOW, volatile.clone(), &mut sink);
    let reader = participant.create_reader(NOW, volatile, &mut sink);
    sink.room = 0;
    (1..=DEPTH.into()).for_each(|number| assert!(write(&mut participant, writer, number, &mut sink)));
    run_timers(&mut participant, &mut sink);
    let held = |participant: &Participant| participant.writer(writer).unwrap().changes_held();
    assert_eq!(held(&participant), DEPTH as usize);
    participant.delete_reader(NOW, reader, &mut sink);
    let (mut now, mut left) = (NOW, held(&participant));
    while left > 0 {
        now = now.max(participant.next_timeout().expect("the rest goes, too"));
        assert!(now < NOW + Duration::from_secs(1), "{left} are left");
        participant.on_timeout(now, 1);
        let before = std::mem::replace(&mut left, held(&participant));
        assert!(before - left <= FORGOTTEN, "{before} to {left}");
    }
}

/// Each of many writers has a history, and each is given its turn without that somebody asks for it.
#[test]
fn histories_of_many_writers_come_in_steps_by_timers_too() {
    const WRITERS: i64 = 40;
    let (mut participant, mut sink) = (participant(), Caches::new());
    for _ in 0..WRITERS {
        let writer = participant.create_writer(NOW, durable(History::KeepAll), &mut sink);
        (1..=1_000).for_each(|number| assert!(write(&mut participant, writer, number, &mut sink)));
    }
    run_timers(&mut participant, &mut sink);
    bounded(&mut sink, 0, |sink| participant.create_reader(NOW, durable(History::KeepAll), sink));
    run_timers(&mut participant, &mut sink);
    assert_eq!(sink.count() as i64, 1_000 * WRITERS);
    assert!(!participant.is_matching());
}

#[test]
fn what_waits_for_room_comes_in_steps_and_the_writer_is_told() {
    let (mut participant, mut sink) = (participant(), Caches::new());
    let reader = participant.create_reader(NOW, durable(History::KeepAll), &mut sink);
    let writer = participant.create_writer(NOW, durable(History::KeepAll), &mut sink);
    let other = participant.create_reader(NOW, durable(History::KeepAll), &mut sink);
    sink.room = 0;
    let mut last = 0;
    while write(&mut participant, writer, last + 1, &mut sink) {
        last += 1;
    }
    run_timers(&mut participant, &mut sink);
    sink.room = usize::MAX;
    while participant.poll_event().is_some() {}
    // One for the other reader, which has had no turn.
    bounded(&mut sink, 1, |sink| participant.on_room(NOW, reader, sink));
    assert!(sink.count() >= LOCAL_CHANGES, "{}", sink.count());
    while participant.next_timeout().is_some_and(|next| next <= NOW) {
        participant.on_timeout(NOW, usize::MAX);
        bounded(&mut sink, 1, |sink| participant.match_more(NOW, sink));
        let events: Vec<_> = std::iter::from_fn(|| participant.poll_event()).collect();
        let is_told = |event: &Event| matches!(event, Event::Acknowledged { writer: of } if *of == writer);
        assert!(events.iter().any(is_told), "{events:?}");
    }
    assert!(sink.has(reader, last) && sink.has(other, last));
    assert!(write(&mut participant, writer, last + 1, &mut sink));
}
