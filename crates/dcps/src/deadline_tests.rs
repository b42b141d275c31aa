//! REQUESTED_DEADLINE_MISSED: what counts for a reader, through the protocol and through lanes.

use std::sync::Arc;

use taut_base::{Duration, Guid, SequenceNumber, Time, Timestamp};
use taut_mem::Region;
use taut_mem::lane::{FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter, Meta};
use taut_qos::DataReaderQos;
use taut_rtps::history_cache::{CacheChange, ChangeKind};

use crate::deadline::{DEADLINES_PER_STEP, Missed};
use crate::reader_cache_tests::{change, handle, writer};
use crate::reader_side::{Passed, Pulled, ReaderSide};
use crate::{IgnoredReason, Insert, ReaderCache, TypeSupport};

const PERIOD: Duration = Duration(100);

fn qos() -> DataReaderQos {
    DataReaderQos::default().keep_all().deadline(PERIOD)
}

struct Rig {
    cache: ReaderCache,
}

impl Rig {
    fn new(qos: DataReaderQos) -> Rig {
        Rig { cache: ReaderCache::new(&qos, true) }
    }

    fn put(&mut self, at: i64, kind: ChangeKind, w: u8, instance: u8) -> Insert {
        // The stronger the higher its number.
        self.cache.insert(Time(at), change(kind, w, instance, at), i32::from(w), None)
    }

    fn write(&mut self, at: i64, w: u8, instance: u8) -> Insert {
        self.put(at, ChangeKind::Alive, w, instance)
    }

    fn missed(&mut self, now: i64) -> u64 {
        self.look(now).count
    }

    fn look(&mut self, now: i64) -> Missed {
        self.cache.look_at_deadlines(Time(now), &mut DEADLINES_PER_STEP.clone())
    }
}

#[test]
fn nothing_is_kept_without_a_deadline() {
    let mut rig = Rig::new(DataReaderQos::default());
    rig.write(1, 1, 1);
    assert_eq!(
        (rig.missed(i64::MAX - 1), rig.cache.next_deadline(), rig.cache.alarm),
        (0, Time::NEVER, false)
    );
}

#[test]
fn each_instance_has_its_own_time_from_its_first_sample_on() {
    let mut rig = Rig::new(qos());
    assert_eq!(rig.cache.next_deadline(), Time::NEVER);
    rig.write(10, 1, 1);
    assert!(rig.cache.alarm && rig.cache.next_deadline() == Time(110));
    rig.cache.alarm = false;
    rig.write(50, 1, 2);
    rig.write(90, 1, 1);
    assert!(!rig.cache.alarm, "what is due is later than what is known");
    assert_eq!((rig.missed(110), rig.cache.next_deadline()), (0, Time(150)));
    assert_eq!(rig.look(150), Missed { count: 1, last: handle(2) });
    assert_eq!(rig.look(190), Missed { count: 1, last: handle(1) });
    // Whether they are taken has nothing to do with it.
    rig.cache.take(&crate::Selection::ANY, |_| ());
    assert_eq!(rig.missed(300), 2);
}

#[test]
fn an_instance_that_has_ended_misses_nothing_until_it_comes_back() {
    use ChangeKind::{NotAliveDisposed, NotAliveUnregistered};
    for end in [NotAliveDisposed, NotAliveUnregistered] {
        let mut rig = Rig::new(qos());
        rig.write(0, 1, 1);
        rig.put(250, end, 1, 1);
        assert_eq!(rig.missed(1_000), 2, "those before the end");
        assert_eq!(rig.missed(2_000), 0);
        rig.write(3_000, 1, 1);
        assert_eq!(rig.missed(3_100), 1);
    }
    let mut rig = Rig::new(qos());
    rig.write(0, 1, 1);
    rig.cache.writer_gone(Time(150), writer(1));
    assert_eq!((rig.missed(1_000), rig.missed(2_000)), (1, 0), "nobody is left who promised anything");
}

#[test]
fn an_instance_that_is_forgotten_leaves_nothing_behind() {
    let mut rig = Rig::new(qos());
    rig.write(0, 1, 1);
    rig.put(10, ChangeKind::NotAliveDisposedUnregistered, 1, 1);
    rig.cache.take(&crate::Selection::ANY, |_| ());
    assert_eq!(rig.cache.instance_count(), 0);
    // The new instance has the place of the old one.
    rig.write(20, 1, 2);
    assert_eq!(rig.look(120), Missed { count: 1, last: handle(2) });
}

#[test]
fn an_owner_that_misses_its_deadline_makes_way() {
    let mut rig = Rig::new(qos().exclusive());
    let not_owner = Insert::Ignored(IgnoredReason::NotOwner);
    assert_eq!(rig.write(0, 9, 1), Insert::Stored);
    assert_eq!(rig.write(50, 1, 1), not_owner);
    assert_eq!(rig.missed(99), 0);
    assert_eq!(
        rig.look(100),
        Missed { count: 1, last: handle(1) },
        "the weaker one is not heard, and no excuse"
    );
    assert_eq!(rig.write(110, 1, 1), Insert::Stored);
    assert_eq!((rig.write(120, 9, 1), rig.write(130, 1, 1)), (Insert::Stored, not_owner), "it is back");
    // The same if nobody has looked in between.
    assert_eq!((rig.write(221, 1, 1), rig.missed(222)), (Insert::Stored, 1));
    // And without a deadline nothing of it.
    let mut patient = Rig::new(DataReaderQos::default().exclusive());
    patient.write(0, 9, 1);
    assert_eq!(patient.write(1_000_000, 1, 1), not_owner);
}

#[test]
fn what_the_time_based_filter_drops_has_come() {
    let mut rig = Rig::new(qos().time_based_filter(PERIOD));
    for at in [0, 60, 120, 180, 240] {
        rig.write(at, 1, 1);
    }
    assert_eq!((rig.cache.len(), rig.missed(300)), (3, 0));
}

#[test]
fn one_step_looks_at_a_bounded_number() {
    let mut cache = ReaderCache::new(&qos(), true);
    for n in 0..1_000_u128 {
        let instance = Some(taut_base::InstanceHandle(n.to_be_bytes()));
        cache.insert(Time(0), CacheChange { instance, ..change(ChangeKind::Alive, 1, 0, 0) }, 0, None);
    }
    let mut counts = Vec::new();
    while cache.next_deadline() <= Time(100) {
        counts.push(cache.look_at_deadlines(Time(100), &mut DEADLINES_PER_STEP.clone()).count);
    }
    assert_eq!(counts, [256, 256, 256, 232]);
}

/// A reader's side that reads one lane.
fn side() -> (ReaderSide, LaneWriter) {
    let type_support = TypeSupport { type_name: "Number".into(), ..TypeSupport::default() };
    let mut side = ReaderSide::new(&qos(), &type_support);
    let lane_writer = add_lane(&mut side, 1, 8);
    (side, lane_writer)
}

/// It reads the lane of this writer, too, which holds so many samples.
fn add_lane(side: &mut ReaderSide, of: u8, cells: usize) -> LaneWriter {
    let lane = Arc::new(Lane::create(Region::heap(Lane::size(cells, 0)), cells));
    let lane_writer = LaneWriter::new(Arc::clone(&lane), Box::new(|_, _| true));
    let feedback = Arc::new(Feedback::new(Region::heap(FEEDBACK_LEN)).unwrap());
    side.add_lane(writer(of), 0, LaneReader::attach(lane, feedback, false), true, SequenceNumber(1));
    lane_writer
}

/// The words of a sample that was written then; 0 if it does not say when.
fn written(number: u64, at: u64) -> Meta {
    [number, u64::MAX, at << 2, 0, 0]
}

/// Looks at the deadlines: how many were missed, and when to look again.
fn look(side: &mut ReaderSide, now: i64) -> (u64, i64) {
    let ((missed, next), _) = side.look_at_deadlines(Time(now), &mut DEADLINES_PER_STEP.clone());
    (missed.count, next.0)
}

#[test]
fn what_lies_in_a_lane_has_come_when_it_was_written() {
    let (mut side, mut lane) = side();
    assert_eq!(side.take_alarm(), Some(Time::AT_ONCE), "a lane is to be looked into");
    assert_eq!(look(&mut side, 0), (0, 100));
    lane.push(&written(1, 30), b"a").unwrap();
    assert_eq!(look(&mut side, 100), (0, 130), "nobody has looked meanwhile, and the next is due from 30 on");
    lane.push(&written(2, 125), b"b").unwrap();
    assert_eq!(look(&mut side, 131), (0, 225));
    assert_eq!(look(&mut side, 226), (1, 325));
    // Later than now there is nothing, whatever a writer says.
    lane.push(&written(3, 1 << 50), b"c").unwrap();
    assert_eq!((look(&mut side, 250), look(&mut side, 350)), ((0, 325), (1, 450)));
}

/// Samples of other readers wait for one step of it.
#[test]
fn a_look_reads_no_more_of_lanes_than_a_step_may_and_judges_when_all_was_read() {
    const BUDGET: usize = 16;
    const UNREAD: u64 = 300;
    const CELLS: usize = 512;
    for goes_on in [false, true] {
        let mut side = ReaderSide::new(&qos(), &TypeSupport::default());
        let mut lanes = [1, 2].map(|of| add_lane(&mut side, of, CELLS));
        let mut number = 0;
        let mut write = |at| {
            number += 1;
            lanes.iter_mut().for_each(|lane| lane.push(&written(number, at), b"a").unwrap());
        };
        assert_eq!((side.take_alarm(), look(&mut side, 0)), (Some(Time::AT_ONCE), (0, 100)));
        (0..UNREAD).for_each(|_| write(10));
        let mut looks = 0;
        let (missed, next) = loop {
            let before = side.cache.len();
            let ((missed, next), _) = side.look_at_deadlines(Time(150), &mut BUDGET.clone());
            looks += 1;
            assert!(looks < CELLS, "it never judges");
            assert!(side.cache.len() - before <= BUDGET);
            if next != Time::AT_ONCE {
                break (missed.count, next);
            }
            assert!(!missed.is_any(), "not all was read");
            side.cache.alarm = true;
            assert_eq!(side.take_alarm(), Some(Time::AT_ONCE), "whatever else is told");
            // As much as is read at once.
            (0..if goes_on { BUDGET / 2 } else { 0 }).for_each(|_| write(20));
        };
        let last = if goes_on { 20 } else { 10 };
        assert_eq!((missed, next), (1, Time(last + 2 * PERIOD.0)));
        // One for what is left, or to judge.
        let read = if goes_on { 2 * CELLS } else { 2 * UNREAD as usize };
        assert_eq!(looks, read / BUDGET + 1);
    }
}

#[test]
fn what_has_expired_in_a_lane_had_come_even_so() {
    let (mut side, mut lane) = side();
    side.set_lifespan(writer(1), Duration(50));
    side.set_wall_clock(Time(0), Timestamp::from_unix_ns(0));
    look(&mut side, 0);
    lane.push(&written(1, 60), b"a").unwrap();
    assert_eq!(look(&mut side, 100).0, 0);
    for (number, at) in [(2, 120), (3, 200)] {
        lane.push(&written(number, at), b"b").unwrap();
    }
    assert_eq!(look(&mut side, 260), (0, 300), "each came in time, and the next is due then");
    assert_eq!(side.cache.unread_count(), 0, "they are too old");
    assert_eq!(look(&mut side, 301).0, 1);
}

#[test]
fn who_takes_from_a_lane_tells_of_the_deadlines_that_this_finds() {
    let (mut side, mut lane) = side();
    assert_eq!((side.take_alarm(), look(&mut side, 0)), (Some(Time::AT_ONCE), (0, 100)));
    let take = |side: &mut ReaderSide, now: i64| {
        assert!(matches!(side.pass_next(&mut Pulled::default(), |_| ()), Passed::Not(_)));
        side.refill(|| Time(now));
        assert!(side.take_next(Time(now)).is_some());
    };
    lane.push(&written(1, 10), b"a").unwrap();
    take(&mut side, 12);
    assert!(side.cache.alarm && side.take_alarm() == Some(Time(100)), "an instance that is new");
    assert_eq!(look(&mut side, 100), (0, 110));
    lane.push(&written(2, 105), b"b").unwrap();
    take(&mut side, 107);
    assert!(!side.cache.alarm);
    assert_eq!(look(&mut side, 110), (0, 205));
    lane.push(&written(3, 310), b"c").unwrap();
    take(&mut side, 312);
    assert_eq!(side.take_alarm(), Some(Time::AT_ONCE), "it is too late, and that is told at once");
    assert_eq!(look(&mut side, 313), (2, 410));
    // Of one that does not say when it was written only who looks knows.
    lane.push(&written(4, 0), b"d").unwrap();
    take(&mut side, 390);
    assert_eq!((look(&mut side, 410), look(&mut side, 490)), ((0, 490), (1, 590)));
}

#[test]
fn the_protocol_s_sample_has_come_when_it_is_delivered() {
    let (mut side, _lane) = side();
    let other: Guid = writer(2);
    assert!(other != writer(1));
    let mut early = Some(change(ChangeKind::Alive, 2, 0, 1));
    side.deliver(Time(500), 0, &mut early);
    assert_eq!(look(&mut side, 599).0, 0, "it had to wait for what came before it");
    assert_eq!(look(&mut side, 600).0, 1);
}
