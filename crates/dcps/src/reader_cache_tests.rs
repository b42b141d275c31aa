//! The reader cache against the state chart of DCPS 1.4 §2.2.2.5.1, policy by policy.

use taut_base::{Duration, EntityId, Guid, GuidPrefix, InstanceHandle, SequenceNumber, Time, Timestamp};
use taut_mem::Bytes;
use taut_qos::{
    DataReaderQos, DestinationOrderKind, Presentation, PresentationAccessScopeKind, ReaderDataLifecycle,
    ResourceLimits,
};
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::reader_cache::MAX_REORDER;
use crate::{
    IgnoredReason, Insert, InstanceState, InstanceStateMask, PayloadKind, ReaderCache, Sample,
    SampleRejectedReason, SampleState, SampleStateMask, Selection, ViewState, ViewStateMask,
};

pub(crate) fn writer(n: u8) -> Guid {
    Guid::new(GuidPrefix([n; 12]), EntityId::user(1, true, true))
}

pub(crate) fn handle(n: u8) -> InstanceHandle {
    InstanceHandle([n; 16])
}

pub(crate) fn change(kind: ChangeKind, w: u8, instance: u8, number: i64) -> CacheChange {
    CacheChange {
        kind,
        writer_guid: writer(w),
        sequence_number: SequenceNumber(number),
        instance: Some(handle(instance)),
        source_timestamp: None,
        time: Time(number),
        payload: if kind == ChangeKind::Alive { Bytes::copy_from(&[instance, 9, 9]) } else { Bytes::new() },
    }
}

/// A cache with short words for what writers do; time and sequence numbers count up by one.
struct Rig {
    cache: ReaderCache,
    clock: i64,
}

impl Rig {
    fn new(qos: DataReaderQos) -> Rig {
        Rig { cache: ReaderCache::new(&qos, true), clock: 0 }
    }

    fn put(&mut self, kind: ChangeKind, w: u8, instance: u8) -> Insert {
        self.clock += 1;
        let change = change(kind, w, instance, self.clock);
        self.cache.insert(Time(self.clock), change, 0, None)
    }

    fn write(&mut self, w: u8, instance: u8) -> Insert {
        self.put(ChangeKind::Alive, w, instance)
    }

    fn dispose(&mut self, w: u8, instance: u8) -> Insert {
        self.put(ChangeKind::NotAliveDisposed, w, instance)
    }

    fn unregister(&mut self, w: u8, instance: u8) -> Insert {
        self.put(ChangeKind::NotAliveUnregistered, w, instance)
    }

    /// Writes with a source timestamp.
    fn write_at(&mut self, w: u8, instance: u8, seconds: u32) -> Insert {
        self.clock += 1;
        let mut change = change(ChangeKind::Alive, w, instance, self.clock);
        change.source_timestamp = Some(Timestamp { seconds, fraction: 0 });
        self.cache.insert(Time(self.clock), change, 0, None)
    }

    fn take(&mut self) -> Vec<Sample> {
        self.take_of(&Selection::ANY)
    }

    fn take_of(&mut self, selection: &Selection) -> Vec<Sample> {
        let mut found = Vec::new();
        let count = self.cache.take(selection, |sample| found.push(sample));
        assert_eq!(count, found.len());
        found
    }

    fn read(&mut self) -> Vec<Sample> {
        let mut found = Vec::new();
        self.cache.read(&Selection::ANY, |sample| found.push(sample));
        found
    }
}

fn numbers(samples: &[Sample]) -> Vec<i64> {
    samples.iter().map(|sample| sample.info.sequence_number.0).collect()
}

fn keep_all() -> DataReaderQos {
    DataReaderQos::default().keep_all()
}

#[test]
fn keep_last_keeps_the_newest_of_each_instance() {
    let mut rig = Rig::new(DataReaderQos::default().keep_last(2));
    assert_eq!(rig.write(1, 1), Insert::Stored);
    assert_eq!(rig.write(1, 2), Insert::Stored);
    assert_eq!(rig.write(1, 1), Insert::Stored);
    assert_eq!(rig.write(1, 1), Insert::Replaced);
    assert_eq!((rig.cache.len(), rig.cache.unread_count()), (3, 3));
    assert_eq!(numbers(&rig.take()), [2, 3, 4], "2 has waited longest");
    assert!(rig.cache.is_empty() && rig.cache.unread_count() == 0);
}

#[test]
fn a_full_keep_last_cache_reuses_its_places() {
    let mut rig = Rig::new(DataReaderQos::default().keep_last(10));
    for _ in 0..10_000 {
        rig.write(1, 1);
    }
    assert_eq!(rig.cache.len(), 10);
    assert!(rig.cache.samples.end() <= 11, "{} places for 10 samples", rig.cache.samples.end());
}

#[test]
fn keep_last_above_max_samples_keeps_as_many_of_the_newest_as_may_be() {
    let limits = ResourceLimits { max_samples: Some(5), ..ResourceLimits::default() };
    let qos = DataReaderQos::default().keep_last(10).resource_limits(limits);
    // Those that only wait to be taken, and those that were looked at.
    for (keyed, read) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut rig = Rig { cache: ReaderCache::new(&qos, keyed), clock: 0 };
        for number in 1..=20 {
            assert!(rig.cache.has_room(handle(1)));
            let wanted = if number <= 5 { Insert::Stored } else { Insert::Replaced };
            assert_eq!(rig.write(1, 1), wanted, "{number}, keyed: {keyed}");
            if read {
                rig.read();
            }
        }
        assert_eq!(numbers(&rig.take()), [16, 17, 18, 19, 20]);
    }
}

#[test]
fn keep_all_refuses_at_its_limits_and_keeps_what_it_has() {
    let limits = |samples, instances, each| {
        let qos = keep_all().resource_limits(ResourceLimits {
            max_samples: samples,
            max_instances: instances,
            max_samples_per_instance: each,
        });
        Rig::new(qos)
    };
    let mut rig = limits(Some(2), None, None);
    assert_eq!((rig.write(1, 1), rig.write(1, 2)), (Insert::Stored, Insert::Stored));
    assert!(!rig.cache.has_room(handle(1)) && !rig.cache.has_room(handle(3)));
    assert_eq!(rig.write(1, 1), Insert::Rejected(SampleRejectedReason::RejectedBySamplesLimit));
    assert_eq!(numbers(&[rig.cache.take_next().unwrap()]), [1]);
    assert!(rig.cache.has_room(handle(1)));
    assert_eq!(rig.write(1, 1), Insert::Stored);

    let mut rig = limits(None, None, Some(1));
    assert_eq!((rig.write(1, 1), rig.write(1, 2)), (Insert::Stored, Insert::Stored));
    let full = SampleRejectedReason::RejectedBySamplesPerInstanceLimit;
    assert_eq!(rig.write(1, 1), Insert::Rejected(full));

    let mut rig = limits(None, Some(1), None);
    assert_eq!(rig.write(1, 1), Insert::Stored);
    assert_eq!(rig.write(1, 2), Insert::Rejected(SampleRejectedReason::RejectedByInstancesLimit));
    assert!(!rig.cache.has_room(handle(2)) && rig.cache.has_room(handle(1)));
    rig.take();
    assert!(!rig.cache.has_room(handle(2)), "the instance is alive");
    rig.dispose(1, 1);
    rig.take();
    assert_eq!(rig.write(1, 2), Insert::Stored, "an instance that is over gives way");
    assert_eq!(rig.cache.instance_count(), 1);
}

#[test]
fn dispose_and_rebirth() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    assert_eq!(rig.dispose(1, 1), Insert::Stored);
    assert_eq!(rig.dispose(1, 1), Insert::Ignored(IgnoredReason::NothingNew));
    rig.write(1, 1);
    rig.write(1, 1);
    let samples = rig.read();
    let of = |f: fn(&Sample) -> u32| samples.iter().map(f).collect::<Vec<_>>();
    assert_eq!(samples.iter().map(|s| s.info.valid_data).collect::<Vec<_>>(), [true, false, true, true]);
    assert_eq!(of(|s| s.info.disposed_generation_count), [0, 0, 1, 1]);
    assert_eq!(of(|s| s.info.sample_rank), [3, 2, 1, 0]);
    assert_eq!(of(|s| s.info.generation_rank), [1, 1, 0, 0]);
    assert_eq!(of(|s| s.info.absolute_generation_rank), [1, 1, 0, 0]);
    assert!(samples.iter().all(|s| s.info.instance_state == InstanceState::Alive));
    assert!(samples.iter().all(|s| s.info.view_state == ViewState::New));
    assert!(rig.read().iter().all(|s| s.info.view_state == ViewState::NotNew));
    rig.dispose(1, 1);
    rig.write(1, 1);
    let samples = rig.take();
    assert!(samples.iter().all(|s| s.info.view_state == ViewState::New), "born again");
    assert_eq!(samples.last().unwrap().info.disposed_generation_count, 2);
}

#[test]
fn ranks_are_about_what_is_returned() {
    let mut rig = Rig::new(keep_all());
    for _ in 0..2 {
        rig.write(1, 1);
        rig.dispose(1, 1);
    }
    rig.write(1, 1);
    let first = rig.take_of(&Selection { max_samples: 3, ..Selection::ANY });
    let ranks: Vec<_> = first
        .iter()
        .map(|s| (s.info.sample_rank, s.info.generation_rank, s.info.absolute_generation_rank))
        .collect();
    assert_eq!(ranks, [(2, 1, 2), (1, 1, 2), (0, 0, 1)]);
    let rest = rig.take();
    assert!(rest.iter().all(|s| s.info.view_state == ViewState::New), "the last life was not seen yet");
}

#[test]
fn no_writers_when_the_last_one_goes() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    rig.write(2, 1);
    assert_eq!(rig.unregister(1, 1), Insert::Ignored(IgnoredReason::NothingNew));
    assert_eq!(rig.unregister(1, 1), Insert::Ignored(IgnoredReason::NothingNew));
    assert_eq!(rig.cache.instance_state(handle(1)), Some(InstanceState::Alive));
    rig.cache.writer_gone(Time(9), writer(2));
    assert_eq!(rig.cache.instance_state(handle(1)), Some(InstanceState::NotAliveNoWriters));
    let samples = rig.take();
    assert_eq!(samples.len(), 3);
    let last = samples.last().unwrap();
    assert!(!last.info.valid_data && last.info.sequence_number == SequenceNumber::UNKNOWN);
    assert_eq!((&*last.payload, last.payload_kind), (&[1, 9, 9][..], PayloadKind::Data));
    assert_eq!(rig.cache.instance_count(), 0, "nothing is left to tell");
    assert_eq!(rig.unregister(2, 1), Insert::Ignored(IgnoredReason::UnknownInstance));
}

#[test]
fn no_writers_and_rebirth_counts_apart_from_dispose() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    assert_eq!(rig.unregister(1, 1), Insert::Stored);
    rig.write(1, 1);
    rig.dispose(1, 1);
    rig.write(1, 1);
    let last = rig.take().pop().unwrap().info;
    assert_eq!((last.no_writers_generation_count, last.disposed_generation_count), (1, 1));
}

#[test]
fn a_disposed_instance_stays_disposed_when_its_writers_go() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    assert_eq!(rig.put(ChangeKind::NotAliveDisposedUnregistered, 1, 1), Insert::Stored);
    rig.cache.writer_gone(Time(9), writer(1));
    assert_eq!(rig.cache.instance_state(handle(1)), Some(InstanceState::NotAliveDisposed));
    assert_eq!(rig.take().len(), 2);
    assert_eq!(rig.cache.instance_count(), 0);
}

#[test]
fn the_end_of_an_unknown_instance() {
    let mut rig = Rig::new(keep_all());
    assert_eq!(rig.unregister(1, 1), Insert::Ignored(IgnoredReason::UnknownInstance));
    let mut dispose = change(ChangeKind::NotAliveDisposed, 1, 1, 1);
    dispose.payload = Bytes::copy_from(&[7]);
    assert_eq!(rig.cache.insert(Time(1), dispose, 0, None), Insert::Stored);
    let samples = rig.take();
    assert_eq!((&*samples[0].payload, samples[0].payload_kind), (&[7][..], PayloadKind::Key));
    assert_eq!(samples[0].info.view_state, ViewState::New);
    assert_eq!(rig.cache.key_payload(handle(1)), Some((Bytes::copy_from(&[7]), PayloadKind::Key)));
}

#[test]
fn a_state_change_costs_keep_last_no_data() {
    let mut rig = Rig::new(DataReaderQos::default());
    for _ in 0..3 {
        rig.write(1, 1);
        rig.dispose(1, 1);
    }
    let samples = rig.take();
    assert_eq!(samples.iter().map(|s| s.info.valid_data).collect::<Vec<_>>(), [true, false]);
    assert_eq!(numbers(&samples), [5, 6]);
    assert!(samples.iter().all(|s| s.info.instance_state == InstanceState::NotAliveDisposed));
}

#[test]
fn a_topic_without_key_has_one_instance_and_only_data() {
    let mut cache = ReaderCache::new(&DataReaderQos::default().keep_last(3), false);
    for n in 1..=5 {
        let change = CacheChange { instance: None, ..change(ChangeKind::Alive, 1, 0, n) };
        cache.insert(Time(n), change, 0, None);
    }
    cache.writer_gone(Time(6), writer(1));
    assert_eq!((cache.len(), cache.instance_count()), (3, 1));
    let next: Vec<_> = std::iter::from_fn(|| cache.take_next()).collect();
    assert_eq!(numbers(&next), [3, 4, 5]);
    assert!(next.iter().all(|s| s.info.instance_state == InstanceState::NotAliveNoWriters));
    assert_eq!(next[0].info.view_state, ViewState::New);
    assert_eq!(next[1].info.view_state, ViewState::NotNew);
    assert_eq!(cache.instance_count(), 0);
}

#[test]
fn without_a_key_the_newest_take_the_place_of_those_that_wait() {
    for depth in 1..=3 {
        let mut cache = ReaderCache::new(&DataReaderQos::default().keep_last(depth), false);
        let mut clock = 0;
        let mut write = |cache: &mut ReaderCache, w| {
            clock += 1;
            cache.insert(Time(clock), change(ChangeKind::Alive, w, 0, clock), 0, None)
        };
        for _ in 0..2 {
            let outcomes: Vec<_> = (0..6).map(|_| write(&mut cache, 1)).collect();
            let depth = depth as usize;
            let (stored, replaced) = outcomes.split_at(depth);
            assert!(stored.iter().all(|one| *one == Insert::Stored), "{outcomes:?}");
            assert!(replaced.iter().all(|one| *one == Insert::Replaced), "{outcomes:?}");
            assert_eq!((cache.len(), cache.unread_count()), (depth, depth));
            let mut taken = std::iter::from_fn(|| cache.take_next());
            let first = taken.next().unwrap().info.sequence_number.0;
            assert_eq!((first % 6, taken.count()), ((7 - depth as i64) % 6, depth - 1));
        }
    }
}

#[test]
fn the_writer_of_a_sample_that_was_replaced_has_written_all_the_same() {
    let mut cache = ReaderCache::new(&DataReaderQos::default(), false);
    let write = |cache: &mut ReaderCache, w, n| {
        cache.insert(Time(n), change(ChangeKind::Alive, w, 0, n), 0, None);
    };
    write(&mut cache, 1, 1);
    cache.take_next().unwrap();
    write(&mut cache, 2, 2);
    write(&mut cache, 1, 3);
    cache.writer_gone(Time(4), writer(1));
    let sample = cache.take_next().unwrap();
    assert_eq!(sample.info.instance_state, InstanceState::Alive, "the other one is still there");
    write(&mut cache, 1, 5);
    cache.read(&Selection::ANY, |_| ());
    write(&mut cache, 1, 6);
    assert_eq!(cache.take_next().unwrap().info.sequence_number.0, 6, "also in place of one that was read");
    assert!(cache.is_empty());
}

#[test]
fn masks_select() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    rig.read();
    rig.write(1, 1);
    rig.write(1, 2);
    rig.dispose(1, 2);
    let count = |rig: &mut Rig, selection: Selection| {
        let mut count = 0;
        let contains = rig.cache.contains(&selection);
        let mut probe = Selection { sample_states: selection.sample_states, ..selection };
        probe.max_samples = usize::MAX;
        rig.cache.read(&Selection { max_samples: 0, ..probe }, |_| count += 1);
        assert_eq!(count, 0, "no more than asked for");
        let found = rig.take_of(&probe).len();
        assert_eq!(contains, found > 0);
        found
    };
    let new = Selection { view_states: ViewStateMask::NEW, ..Selection::ANY };
    let alive = Selection { instance_states: InstanceStateMask::ALIVE, ..Selection::ANY };
    let read = Selection { sample_states: SampleStateMask::READ, ..Selection::ANY };
    assert_eq!(count(&mut rig, Selection { instance: Some(handle(3)), ..Selection::ANY }), 0);
    assert_eq!(count(&mut rig, Selection { instance_states: alive.instance_states, ..new }), 0);
    assert_eq!(count(&mut rig, read), 1);
    assert_eq!(count(&mut rig, new), 2, "the second instance and its end");
    assert_eq!(count(&mut rig, Selection { instance: Some(handle(1)), ..alive }), 1);
    assert!(rig.cache.is_empty());
}

#[test]
fn read_marks_and_take_next_steps_over() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    assert_eq!(rig.read()[0].info.sample_state, SampleState::NotRead);
    assert_eq!(rig.read()[0].info.sample_state, SampleState::Read);
    assert!(rig.cache.take_next().is_none() && rig.cache.unread_count() == 0);
    rig.write(1, 1);
    assert_eq!(rig.cache.take_next().unwrap().info.sequence_number.0, 2);
    assert_eq!(rig.cache.len(), 1);
}

#[test]
fn next_instance_walks_all_instances() {
    let mut rig = Rig::new(keep_all());
    for instance in [3, 1, 2, 1] {
        rig.write(1, instance);
    }
    rig.take_of(&Selection { instance: Some(handle(2)), ..Selection::ANY });
    let mut after = InstanceHandle::NIL;
    let mut walked = Vec::new();
    loop {
        let samples = rig.take_of(&Selection { next_instance_after: Some(after), ..Selection::ANY });
        let Some(first) = samples.first() else { break };
        after = first.info.instance_handle;
        walked.push(numbers(&samples));
    }
    assert_eq!(walked, [vec![2, 4], vec![1]]);
}

#[test]
fn next_instance_ends_on_a_topic_without_a_key() {
    let mut cache = ReaderCache::new(&keep_all(), false);
    for number in 1..=2 {
        let change = change(ChangeKind::Alive, 1, 0, number);
        assert!(cache.has_room(InstanceHandle::NIL));
        assert_eq!(cache.insert(Time(number), change, 0, None), Insert::Stored);
    }
    let after = |after| Selection { next_instance_after: Some(after), ..Selection::ANY };
    let mut found = Vec::new();
    let selection = after(InstanceHandle::NIL);
    assert_eq!(cache.read(&selection, |sample| found.push(sample)), 2);
    let only = found[0].info.instance_handle;
    assert_ne!(only, InstanceHandle::NIL, "NIL stands before all");
    assert!(cache.contains(&selection) && !cache.contains(&after(only)));
    assert_eq!(cache.read(&after(only), |_| ()), 0, "there is one, and it was read");
    let of = |handle| Selection { instance: Some(handle), ..Selection::ANY };
    assert_eq!((cache.read(&of(only), |_| ()), cache.instance_state(only)), (2, Some(InstanceState::Alive)));
    assert_eq!(cache.take(&of(only), |_| ()), 2);
}

#[test]
fn order_of_what_is_returned() {
    let mut rig = Rig::new(keep_all());
    for instance in [1, 2, 1, 2] {
        rig.write(1, instance);
    }
    assert_eq!(numbers(&rig.read()), [1, 3, 2, 4], "an instance's samples come together");
    rig.cache.set_presentation(&Presentation {
        access_scope: PresentationAccessScopeKind::Topic,
        coherent_access: false,
        ordered_access: true,
    });
    assert_eq!(numbers(&rig.read()), [1, 2, 3, 4]);
}

#[test]
fn exclusive_ownership() {
    let mut cache = ReaderCache::new(&keep_all().exclusive(), true);
    let mut number = 0;
    let mut put = |cache: &mut ReaderCache, kind, w, strength| {
        number += 1;
        cache.insert(Time(number), change(kind, w, 1, number), strength, None)
    };
    const LOST: Insert = Insert::Ignored(IgnoredReason::NotOwner);
    use ChangeKind::{Alive, NotAliveDisposed, NotAliveUnregistered};
    assert_eq!(put(&mut cache, Alive, 2, 5), Insert::Stored);
    assert_eq!(put(&mut cache, Alive, 3, 4), LOST, "weaker");
    assert_eq!(put(&mut cache, Alive, 3, 5), LOST, "as strong, higher GUID");
    assert_eq!(put(&mut cache, Alive, 1, 5), Insert::Stored, "as strong, lower GUID");
    assert_eq!(put(&mut cache, Alive, 2, 5), LOST);
    assert_eq!(put(&mut cache, Alive, 3, 6), Insert::Stored, "stronger");
    assert_eq!(put(&mut cache, NotAliveDisposed, 1, 5), LOST, "only the owner disposes");
    assert_eq!(put(&mut cache, NotAliveUnregistered, 3, 6), Insert::Ignored(IgnoredReason::NothingNew));
    assert_eq!(put(&mut cache, Alive, 2, 1), Insert::Stored, "the owner has gone");
    cache.writer_gone(Time(99), writer(2));
    assert_eq!(cache.instance_state(handle(1)), Some(InstanceState::Alive), "1 still writes it");
    cache.writer_gone(Time(99), writer(1));
    assert_eq!(cache.instance_state(handle(1)), Some(InstanceState::NotAliveNoWriters));
}

#[test]
fn time_based_filter() {
    let mut cache = ReaderCache::new(&keep_all().time_based_filter(Duration(10)), true);
    let mut at =
        |now: i64, instance| cache.insert(Time(now), change(ChangeKind::Alive, 1, instance, now), 0, None);
    assert_eq!(at(100, 1), Insert::Stored);
    assert_eq!(at(109, 1), Insert::Ignored(IgnoredReason::TooSoon));
    assert_eq!(at(109, 2), Insert::Stored);
    assert_eq!(at(110, 1), Insert::Stored);
}

#[test]
fn lifespan() {
    let mut cache = ReaderCache::new(&keep_all(), true);
    let mut put = |now: i64, expires: i64| {
        cache.insert(Time(now), change(ChangeKind::Alive, 1, 1, now), 0, Some(Time(expires)))
    };
    assert_eq!(put(1, 1), Insert::Ignored(IgnoredReason::Expired));
    assert_eq!((put(2, 30), put(3, 20)), (Insert::Stored, Insert::Stored));
    assert_eq!(cache.next_timeout(), Some(Time(20)));
    cache.on_timeout(Time(19));
    assert_eq!(cache.len(), 2);
    cache.on_timeout(Time(20));
    assert_eq!((cache.len(), cache.unread_count(), cache.next_timeout()), (1, 1, Some(Time(30))));
    assert!(cache.take_next().is_some());
    assert_eq!(cache.next_timeout(), None, "a sample that was taken leaves no timer");
}

#[test]
fn autopurge() {
    let lifecycle = ReaderDataLifecycle {
        autopurge_nowriter_samples_delay: Duration(10),
        autopurge_disposed_samples_delay: Duration(20),
    };
    let mut rig = Rig::new(keep_all().reader_data_lifecycle(lifecycle));
    rig.write(1, 1);
    rig.dispose(1, 1);
    assert_eq!(rig.cache.next_timeout(), Some(Time(22)));
    rig.write(1, 1);
    assert_eq!(rig.cache.next_timeout(), None, "born again");
    rig.write(2, 2);
    rig.unregister(2, 2);
    rig.dispose(1, 1);
    assert_eq!(rig.cache.next_timeout(), Some(Time(15)));
    rig.cache.on_timeout(Time(15));
    assert_eq!((rig.cache.instance_count(), rig.cache.next_timeout()), (1, Some(Time(26))));
    rig.cache.on_timeout(Time(26));
    assert!(rig.cache.is_empty());
    assert_eq!(rig.cache.instance_count(), 1, "its writer lives");
    rig.cache.writer_gone(Time(27), writer(1));
    assert_eq!(rig.cache.instance_count(), 0);
    rig.write(1, 1);
    rig.unregister(1, 1);
    rig.take();
    assert_eq!((rig.cache.instance_count(), rig.cache.next_timeout()), (0, None));
}

#[test]
fn by_source_timestamp() {
    let qos = || keep_all().destination_order(DestinationOrderKind::BySourceTimestamp);
    let late = Insert::Ignored(IgnoredReason::OutOfOrder);
    let mut rig = Rig::new(qos());
    for (w, seconds) in [(1, 10), (2, 30), (1, 20), (1, 30)] {
        assert_eq!(rig.write_at(w, 1, seconds), Insert::Stored);
    }
    assert_eq!(numbers(&rig.take()), [1, 3, 4, 2], "equal times go by GUID");
    assert_eq!(rig.write_at(1, 1, 29), late, "newer ones were taken");
    assert_eq!(rig.write_at(3, 1, 30), Insert::Stored);

    let mut rig = Rig::new(qos().keep_last(1));
    rig.write_at(1, 1, 10);
    assert_eq!(rig.write_at(2, 1, 9), late);
    assert_eq!((rig.write_at(2, 1, 11), rig.cache.len()), (Insert::Replaced, 1));

    let mut rig = Rig::new(qos());
    rig.write_at(1, 1, 1);
    for n in 0..MAX_REORDER as u32 {
        rig.write_at(1, 1, 100 + n);
    }
    assert_eq!(rig.write_at(1, 1, 50), late, "too far back");
}

#[test]
fn by_source_timestamp_however_it_is_taken() {
    let qos = keep_all().destination_order(DestinationOrderKind::BySourceTimestamp);
    let filled = || {
        let mut rig = Rig::new(qos.clone());
        // Of two instances: what is late of one of them stays behind what came of the other before.
        for (key, seconds) in [(1, 30), (2, 5), (1, 10), (2, 4), (1, 20), (1, 40)] {
            assert_eq!(rig.write_at(1, key, seconds), Insert::Stored);
        }
        rig
    };
    let seconds = |samples: Vec<Sample>| -> Vec<(InstanceHandle, u32)> {
        let of = |sample: &Sample| {
            (sample.info.instance_handle, sample.info.source_timestamp.map_or(0, |at| at.seconds))
        };
        samples.iter().map(of).collect()
    };
    let wanted = [(1, 10), (1, 20), (1, 30), (2, 4), (2, 5), (1, 40)].map(|(key, at)| (handle(key), at));
    let mut rig = filled();
    assert_eq!(seconds(std::iter::from_fn(|| rig.cache.take_next()).collect()), wanted);
    let mut rig = filled();
    rig.cache.set_presentation(&Presentation {
        access_scope: PresentationAccessScopeKind::Topic,
        coherent_access: false,
        ordered_access: true,
    });
    assert_eq!(seconds(rig.take()), wanted);
}

#[test]
fn by_source_timestamp_an_old_sample_does_not_revive() {
    let qos = keep_all().destination_order(DestinationOrderKind::BySourceTimestamp);
    let mut rig = Rig::new(qos);
    rig.write_at(1, 1, 10);
    let mut dispose = change(ChangeKind::NotAliveDisposed, 1, 1, 90);
    dispose.source_timestamp = Some(Timestamp { seconds: 20, fraction: 0 });
    assert_eq!(rig.cache.insert(Time(9), dispose.clone(), 0, None), Insert::Stored);
    let late = Insert::Ignored(IgnoredReason::OutOfOrder);
    assert_eq!(rig.write_at(2, 1, 15), late);
    assert_eq!(rig.write_at(2, 1, 21), Insert::Stored);
    assert_eq!(rig.cache.insert(Time(9), dispose, 0, None), late, "a dispose from before");
    assert_eq!(rig.cache.instance_state(handle(1)), Some(InstanceState::Alive));
}

#[test]
fn keys_of_instances_and_their_table_are_bounded() {
    let mut rig = Rig::new(keep_all());
    rig.write(1, 1);
    let (key, kind) = rig.cache.key_payload(handle(1)).unwrap();
    assert_eq!((&*key, kind), (&[1, 9, 9][..], PayloadKind::Data));
    assert_eq!(rig.cache.lookup_instance(handle(1)), Some(handle(1)));
    assert_eq!(rig.cache.lookup_instance(handle(2)), None);
    let of = |number: u32| {
        let mut bytes = [5; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        CacheChange { instance: Some(InstanceHandle(bytes)), ..change(ChangeKind::Alive, 1, 1, 1) }
    };
    let most = crate::DEFAULT_MAX_INSTANCES;
    for number in 0..most as u32 + 10 {
        assert_eq!(rig.cache.insert(Time(0), of(number), 0, None), Insert::Stored);
        rig.take();
    }
    assert_eq!(rig.cache.instance_count(), most);
    // None is forgotten that has samples.
    let mut rig = Rig::new(DataReaderQos::default());
    for number in 0..most as u32 {
        assert_eq!(rig.cache.insert(Time(0), of(number), 0, None), Insert::Stored);
    }
    let refused = Insert::Rejected(SampleRejectedReason::RejectedByInstancesLimit);
    assert_eq!(rig.cache.insert(Time(0), of(most as u32), 0, None), refused);
    rig.take();
    assert_eq!(rig.cache.insert(Time(0), of(most as u32), 0, None), Insert::Stored);
}
