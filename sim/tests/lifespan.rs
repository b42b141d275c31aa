//! LIFESPAN on a virtual clock: what is too old goes, on both sides.

use taut_base::Duration;
use taut_qos::{Qos, ReaderDataLifecycle, ResourceLimits};
use taut_rtps::ChangeKind;
use taut_sim::Pair;

const LIFESPAN: Duration = Duration::from_millis(500);
const TENTH: Duration = Duration::from_millis(50);

fn durable() -> Qos {
    Qos::default().reliable().keep_all().transient_local()
}

fn held(pair: &Pair) -> usize {
    let participant = pair.network.participant(Pair::WRITER).unwrap();
    participant.core().writer(pair.writers[0].index).unwrap().changes_held()
}

fn unread(pair: &Pair, reader: usize) -> usize {
    let reader = &pair.readers[reader];
    let participant = pair.network.participant(reader.node).unwrap();
    participant.side(reader.index, |side| side.cache.unread_count()).unwrap()
}

#[test]
fn what_nobody_takes_is_not_there_for_longer() {
    for (seed, node) in [Pair::READER, Pair::WRITER].into_iter().enumerate() {
        let mut pair = Pair::new(seed as u64 + 1);
        pair.writer(Qos::default().reliable().keep_all().lifespan(LIFESPAN));
        pair.reader_on(node, Qos::default().reliable().keep_all());
        pair.run_until_matched();
        pair.write(1, 40).unwrap();
        pair.run_for(TENTH.times(6));
        pair.write(1, 40).unwrap();
        pair.run_for(TENTH.times(3));
        assert_eq!(unread(&pair, 0), 2);
        pair.run_for(TENTH.times(2));
        assert_eq!(unread(&pair, 0), 1, "nobody has looked, and the first one is gone");
        assert_eq!(pair.take_numbers(), [2]);
        pair.write(1, 40).unwrap();
        pair.run_for(TENTH.times(11));
        assert_eq!(pair.take_numbers(), [] as [u64; 0]);
        // An instance that ends does not come back to life.
        pair.end_instance(ChangeKind::NotAliveDisposed, 1).unwrap();
        pair.run_for(TENTH.times(30));
        assert_eq!(pair.take().len(), 1);
    }
}

#[test]
fn a_late_joiner_gets_what_is_not_too_old() {
    for node in [Pair::READER, Pair::WRITER] {
        let mut pair = Pair::new(3);
        pair.writer(durable().lifespan(LIFESPAN.times(4)));
        for _ in 0..10 {
            pair.write(1, 40).unwrap();
            pair.run_for(TENTH.times(4));
        }
        assert_eq!(held(&pair), 9);
        pair.reader_on(node, durable());
        pair.run_until_matched();
        pair.run_for(TENTH);
        let expected: Vec<u64> = (2..=10).collect();
        let taken = pair.take_numbers();
        assert!(taken.len() > 5 && expected.ends_with(&taken), "{taken:?}");
        // What it has got counts from its write, too.
        pair.write(1, 40).unwrap();
        pair.run_for(LIFESPAN.times(4));
        pair.run_for(Duration(1));
        assert_eq!((held(&pair), unread(&pair, 0)), (0, 0));
    }
}

#[test]
fn what_is_too_old_is_not_repaired_and_nobody_waits_for_it() {
    let mut pair = Pair::new(4);
    pair.writer(Qos::default().reliable().keep_all().lifespan(LIFESPAN));
    pair.reader(Qos::default().reliable().keep_all());
    pair.run_until_matched();
    pair.network.faults.loss = 1_000;
    for _ in 0..10 {
        pair.write(1, 40).unwrap();
        pair.run_for(TENTH);
    }
    pair.run_for(TENTH.times(12));
    assert_eq!(held(&pair), 0);
    pair.network.faults.loss = 0;
    pair.write(1, 40).unwrap();
    pair.run_for(TENTH.times(5));
    assert_eq!(pair.take_numbers(), [11]);
    assert!(pair.is_acknowledged(0));
}

#[test]
fn what_expires_makes_room() {
    for (seed, node) in [Pair::READER, Pair::WRITER].into_iter().enumerate() {
        let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
        let mut pair = Pair::new(seed as u64 + 5);
        pair.writer(Qos::default().reliable().keep_all().lifespan(LIFESPAN));
        pair.reader_on(node, Qos::default().reliable().keep_all().resource_limits(limits));
        pair.run_until_matched();
        for _ in 0..8 {
            pair.write(1, 40).unwrap();
            pair.run_for(TENTH);
        }
        assert_eq!(unread(&pair, 0), 4);
        pair.run_for(TENTH.times(6));
        // The first four were too old before the others were.
        assert!((1..=4).contains(&unread(&pair, 0)), "{}", unread(&pair, 0));
        let taken = pair.take_numbers();
        assert!(taken.last() == Some(&8) && taken[0] > 4, "{taken:?}");
    }
}

/// An instance without writers goes after a while, and nobody takes meanwhile.
#[test]
fn a_writer_that_leaves_makes_room() {
    for (seed, node) in [Pair::READER, Pair::WRITER].into_iter().enumerate() {
        let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let lifecycle =
            ReaderDataLifecycle { autopurge_nowriter_samples_delay: LIFESPAN, ..Default::default() };
        let mut pair = Pair::new(seed as u64 + 20);
        pair.writer(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        let qos = Qos::default().reliable().keep_all().resource_limits(limits);
        pair.reader_on(node, qos.reader_data_lifecycle(lifecycle));
        pair.run_until_matched();
        pair.write_by(1, 2, 40).unwrap();
        pair.run_for(TENTH);
        pair.write(1, 40).unwrap();
        pair.run_for(TENTH);
        assert!(!pair.is_acknowledged(0), "there is no room");
        let leaves = pair.writers[1].index;
        pair.network.on(Pair::WRITER, |participant, now| participant.delete_writer(now, leaves));
        pair.run_for(LIFESPAN.times(2));
        assert!(pair.is_acknowledged(0), "there is, and nobody has told");
        assert_eq!(pair.take_numbers(), [1]);
    }
}

#[test]
fn a_reader_beside_has_all_once_what_follows_the_end_of_an_instance_is_too_old() {
    let mut pair = Pair::new(9);
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair.writer(Qos::default().reliable().keep_all().lifespan(LIFESPAN));
    pair.writer(Qos::default().reliable().keep_all());
    pair.reader_on(Pair::WRITER, Qos::default().reliable().keep_all().resource_limits(limits));
    pair.run_until_matched();
    // There is no room for what the first one writes.
    pair.write_by(1, 2, 40).unwrap();
    pair.end_instance(ChangeKind::NotAliveDisposed, 1).unwrap();
    pair.write(1, 40).unwrap();
    pair.run_for(LIFESPAN.times(2));
    assert!(!pair.is_acknowledged(0));
    assert_eq!((pair.take().len(), pair.take().len()), (1, 1));
    assert_eq!((pair.is_acknowledged(0), held(&pair)), (true, 0));
}

#[test]
fn that_instances_have_ended_is_not_kept_for_longer_than_all_have_been_told_of_it() {
    for (seed, node) in [Pair::READER, Pair::WRITER].into_iter().enumerate() {
        let mut pair = Pair::new(seed as u64 + 10);
        pair.writer(durable().lifespan(LIFESPAN));
        pair.reader_on(node, durable());
        pair.run_until_matched();
        for key in 1..=10 {
            pair.write(key, 40).unwrap();
            pair.end_instance(ChangeKind::NotAliveDisposed, key).unwrap();
            pair.run_for(TENTH);
            assert_eq!(pair.take().len(), 2);
        }
        pair.run_for(LIFESPAN.times(2));
        assert_eq!((pair.is_acknowledged(0), held(&pair)), (true, 0));
        // Who comes now hears of none of them, and of all that follows.
        pair.reader(durable());
        pair.run_until_matched();
        pair.write(11, 40).unwrap();
        pair.run_for(TENTH);
        assert_eq!(pair.take_from(1).len(), 1);
    }
}

#[test]
fn that_an_instance_has_ended_is_kept_until_all_have_been_told_of_it() {
    let mut pair = Pair::new(12);
    pair.writer(durable().lifespan(LIFESPAN));
    pair.reader(durable());
    pair.run_until_matched();
    pair.write(1, 40).unwrap();
    pair.run_for(TENTH);
    assert_eq!(pair.take_numbers(), [1]);
    pair.network.faults.loss = 1_000;
    pair.end_instance(ChangeKind::NotAliveDisposed, 1).unwrap();
    pair.run_for(LIFESPAN.times(2));
    assert_eq!(held(&pair), 1);
    pair.network.faults.loss = 0;
    assert!(pair.run_until(LIFESPAN.times(2), |pair| pair.take().len() == 1), "it is not told");
    pair.run_for(TENTH);
    assert_eq!(held(&pair), 0, "and no longer, though nothing is written");
    pair.write(2, 40).unwrap();
    pair.run_for(LIFESPAN.times(2));
    assert_eq!(held(&pair), 0);
}
