//! DURABILITY and HISTORY: what a late joiner gets, and what KEEP_LAST leaves.

use taut_base::Duration;
use taut_port::Traffic;
use taut_qos::{Qos, ResourceLimits};
use taut_rtps::{MulticastChoice, limits};
use taut_sim::{NodeOptions, Pair, Taken, user_locator};

fn durable() -> Qos {
    Qos::default().reliable().keep_all().transient_local()
}

fn second() -> Duration {
    Duration::from_secs(1)
}

#[test]
fn a_late_joiner_gets_the_whole_history() {
    for (count, loss) in [(1, 0.0), (10, 0.3), (256, 0.0), (257, 0.0), (900, 0.0), (900, 0.3)] {
        for seed in 0..5 {
            let mut pair = Pair::new(seed).with_loss(loss);
            pair.writer(durable());
            for n in 0..count {
                pair.write(1, 8 + n).unwrap();
            }
            pair.run_for(second());
            pair.reader(durable());
            pair.run_until_matched();
            pair.run_for(second().times(5));
            let expected: Vec<u64> = (1..=u64::from(count)).collect();
            assert_eq!(pair.take_numbers(), expected, "{count} samples, loss {loss}, seed {seed}");
        }
    }
}

#[test]
fn samples_before_and_after_the_match_come_in_order() {
    let mut pair = Pair::new(3).with_loss(0.2);
    pair.writer(durable());
    for _ in 0..400 {
        pair.write(1, 64).unwrap();
    }
    pair.reader(durable());
    for _ in 0..400 {
        pair.write(1, 64).unwrap();
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(second().times(5));
    assert_eq!(pair.take_numbers(), (1..=800).collect::<Vec<u64>>());
}

/// More history than a KEEP_ALL writer may have under way, to a reader that takes its time, while the stream goes on.
#[test]
fn who_takes_a_long_history_holds_up_no_other_reader() {
    let mut pair = Pair::new(9);
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(durable());
    pair.run_until_matched();
    let history = 5 * limits::WINDOW_CHANGES as u64;
    for _ in 0..history {
        pair.write(1, 64).unwrap();
        pair.run_for(Duration::from_micros(50));
        pair.take_numbers();
    }
    assert!(pair.run_until(second(), |pair| pair.is_acknowledged(0)));
    pair.take_numbers();
    let slow = NodeOptions { service: Duration::from_micros(200), ..NodeOptions::default() };
    let late = pair.network.add(slow);
    pair.network.start(late);
    pair.reader_on(late, durable());
    pair.run_until_matched();
    let joining = |pair: &Pair| {
        let writer =
            pair.network.participant(Pair::WRITER).and_then(|p| p.core().writer(pair.writers[0].index));
        writer.into_iter().flat_map(|writer| writer.lags()).filter(|lag| lag.is_joining).count()
    };
    assert_eq!(joining(&pair), 1, "the one that is waited for last");
    let (all, mut taken) = (history + 6_000, Vec::new());
    for number in history + 1..=all {
        assert!(pair.write(1, 64).is_ok(), "number {number} waits for who has taken {} samples", taken.len());
        pair.run_for(Duration::from_millis(1));
        assert_eq!(pair.take_numbers(), [number]);
        taken.extend(pair.take_numbers_from(1));
    }
    assert!(pair.run_until(second().times(5), |pair| pair.is_acknowledged(0)), "{} taken", taken.len());
    assert_eq!(joining(&pair), 0);
    taken.extend(pair.take_numbers_from(1));
    assert_eq!(taken, (1..=all).collect::<Vec<u64>>());
}

#[test]
fn a_volatile_late_joiner_gets_nothing_old() {
    // The second of each pair asks for less than is offered: a durable writer, a volatile reader.
    let volatile = Qos::default().reliable().keep_all();
    for offered in [volatile.clone(), durable()] {
        let mut pair = Pair::new(4).with_loss(0.1);
        pair.writer(offered);
        pair.reader(volatile.clone());
        pair.run_until_matched();
        for _ in 0..300 {
            pair.write(1, 16).unwrap();
        }
        pair.run_for(second().times(3));
        assert_eq!(pair.take_numbers().len(), 300);
        pair.reader(volatile.clone());
        pair.run_until_matched();
        pair.run_for(second().times(3));
        assert_eq!(pair.take_numbers_from(1), [] as [u64; 0]);
        pair.write(1, 16).unwrap();
        pair.run_for(second().times(3));
        assert_eq!(pair.take_numbers_from(1), [301]);
        for reader in pair.readers.clone() {
            let lost =
                pair.network.on(reader.node, |p, _| p.at_side(reader.index, |side| side.sample_lost.take()));
            assert_eq!(lost.flatten().map(|s| s.total_count), Some(0), "what came before it is not lost");
        }
    }
}

/// The writer repairs what two readers have lost by multicast, where a third one listens that it does not know yet.
#[test]
fn a_volatile_reader_takes_nothing_that_its_neighbours_are_sent_again() {
    for offered in [Qos::default().reliable().keep_all(), durable()] {
        let options = NodeOptions { multicast: MulticastChoice::Always, ..NodeOptions::default() };
        let mut pair = Pair::with_options(5, options, NodeOptions::default());
        pair.writer(offered);
        let volatile = Qos::default().reliable().keep_all();
        (0..2).for_each(|_| _ = pair.reader(volatile.clone()));
        pair.run_until_matched();
        pair.run_for(second());
        pair.network.cut(0, 1);
        (0..2).for_each(|_| _ = pair.write(1, 16).unwrap());
        pair.run_for(second().times(2));
        pair.network.cut(1, 0);
        pair.reader(volatile);
        assert_eq!(pair.network.is_matched(&pair.writers[0], &pair.readers[2]), (false, true));
        pair.mend();
        pair.write(1, 16).unwrap();
        pair.run_until_matched();
        pair.write(1, 16).unwrap();
        pair.run_for(second());
        let taken: Vec<_> = (0..3).map(|reader| pair.take_numbers_from(reader)).collect();
        assert_eq!(taken, [vec![1, 2, 3, 4], vec![1, 2, 3, 4], vec![4]]);
        let reader = pair.readers[2];
        let lost = pair.network.on(1, |p, _| p.at_side(reader.index, |side| side.sample_lost.take()));
        assert_eq!(lost.flatten().map(|s| s.total_count), Some(0), "what came before it is not lost");
    }
}

/// How long the first sample takes from now on, and what comes with it.
fn time_to_first_sample(pair: &mut Pair) -> (Duration, Vec<u64>) {
    let from = pair.network.now();
    let mut taken = Vec::new();
    let came = pair.run_until(second().times(5), |pair| {
        taken.extend(pair.take_numbers());
        !taken.is_empty()
    });
    assert!(came, "the first sample comes");
    (pair.network.now().since(from), taken)
}

#[test]
fn first_samples_wait_for_no_more_than_what_matching_takes() {
    let volatile = Qos::default().reliable().keep_all();
    let delay = taut_sim::Faults::default().delay;
    for (seed, reader_first, offered) in [
        (1, true, volatile.clone()),
        (2, false, volatile.clone()),
        (3, true, durable()),
        (4, false, durable()),
    ] {
        let mut pair = Pair::new(seed);
        pair.run_for(second());
        if reader_first {
            pair.reader(volatile.clone());
            pair.run_for(second());
            pair.writer(offered);
        } else {
            pair.writer(offered);
            pair.run_for(second());
            pair.reader(volatile.clone());
        }
        let knows = |pair: &mut Pair| pair.network.is_matched(&pair.writers[0], &pair.readers[0]).0;
        assert!(pair.run_until(second(), knows));
        pair.write(1, 16).unwrap();
        let (waited, taken) = time_to_first_sample(&mut pair);
        assert_eq!(taken, [1]);
        // Where the writer is new it is announced and acknowledged first, and greets then.
        let most = if reader_first { delay.times(3) } else { delay };
        assert!(waited <= most, "{waited:?}");
    }
}

/// The writer says again where the stream begins, as the samples behind it are not acknowledged.
#[test]
fn first_samples_come_though_the_greeting_is_lost() {
    let volatile = Qos::default().reliable().keep_all();
    for offered in [volatile.clone(), durable()] {
        let mut pair = Pair::new(6);
        pair.writer(offered);
        pair.run_for(second());
        pair.network.cut(0, 1);
        pair.reader(volatile.clone());
        pair.run_until_matched();
        pair.mend();
        (0..3).for_each(|_| _ = pair.write(1, 16).unwrap());
        let (waited, taken) = time_to_first_sample(&mut pair);
        assert!(waited <= limits::HEARTBEAT_FIRST.times(2), "{waited:?}");
        assert_eq!(taken, [1, 2, 3]);
    }
}

#[test]
fn first_samples_come_though_no_greeting_ever_does() {
    let volatile = Qos::default().reliable().keep_all();
    let mut pair = Pair::new(7);
    pair.writer(volatile.clone());
    pair.run_for(second());
    pair.network.cut(0, 1);
    pair.reader(volatile);
    pair.run_until_matched();
    // The reader hears that it is known, and from now on nothing but this one change.
    pair.mend();
    pair.run_for(Duration::from_millis(100));
    pair.network.cut(0, 1);
    pair.network.capturing = 1;
    pair.write(1, 16).unwrap();
    let change = pair.network.captured.remove(0);
    pair.network.inject(1, Traffic::User, user_locator(0), change.bytes);
    let (almost, rest) = (Duration::from_millis(800), Duration::from_millis(200));
    assert_eq!(limits::GREETING_PATIENCE, second());
    pair.run_for(almost);
    assert_eq!(pair.take_numbers(), []);
    pair.run_for(rest);
    assert_eq!(pair.take_numbers(), [1]);
}

#[test]
fn a_best_effort_late_joiner_has_lost_nothing() {
    let qos = Qos::default().best_effort();
    let mut pair = Pair::new(4);
    pair.writer(qos.clone());
    pair.reader(qos.clone());
    pair.run_until_matched();
    for _ in 0..10 {
        pair.write(1, 16).unwrap();
    }
    pair.run_for(second());
    pair.reader(qos);
    pair.run_until_matched();
    pair.write(1, 16).unwrap();
    pair.run_for(second());
    assert_eq!(pair.take_numbers_from(1), [11]);
    let reader = pair.readers[1];
    let lost = pair.network.on(reader.node, |p, _| p.at_side(reader.index, |side| side.sample_lost.take()));
    assert_eq!(lost.flatten().map(|s| s.total_count), Some(0));
}

#[test]
fn keep_last_keeps_the_last_of_each_instance() {
    for seed in 0..10 {
        let qos = Qos::default().reliable().keep_last(3).transient_local();
        let mut pair = Pair::new(seed).with_loss(0.3);
        pair.writer(qos.clone());
        for n in 0..1_000 {
            pair.write(n % 4, 32).unwrap();
        }
        pair.write(9, 32).unwrap();
        for n in 0..1_000 {
            pair.write(n % 4, 32).unwrap();
        }
        pair.reader(qos);
        pair.run_until_matched();
        pair.run_for(second().times(10));
        let mut numbers = pair.take_numbers();
        numbers.sort_unstable();
        let expected: Vec<u64> = std::iter::once(1_001).chain(1_990..=2_001).collect();
        assert_eq!(numbers, expected, "holes in the numbers are told of, seed {seed}");
    }
}

#[test]
fn a_long_hole_in_the_numbers_takes_one_answer() {
    let qos = Qos::default().reliable().keep_last(1).transient_local();
    let mut pair = Pair::new(1);
    pair.writer(qos.clone());
    for instance in 0..20 {
        pair.write(instance, 32).unwrap();
        (0..1_000).for_each(|_| _ = pair.write(100, 32).unwrap());
    }
    pair.run_for(second());
    let before = pair.network.sent();
    pair.reader(qos);
    pair.run_until_matched();
    pair.run_for(second());
    let mut numbers = pair.take_numbers();
    numbers.sort_unstable();
    let expected: Vec<u64> = (0..20).map(|n| 1 + n * 1_001).chain([20_020]).collect();
    assert_eq!(numbers, expected);
    let sent = pair.network.sent().since(&before);
    assert!(sent.acknack <= 3 && sent.gap <= 21, "{sent:?}");
}

/// Of few instances among many samples of another one, and of many.
#[test]
fn a_best_effort_late_joiner_gets_what_is_held_however_old() {
    for (instances, between) in [(20, 1_000), (1_000, 1)] {
        let qos = Qos::default().best_effort().keep_last(1).transient_local();
        let mut pair = Pair::new(1);
        pair.writer(qos.clone());
        for instance in 0..instances {
            pair.write(instance, 32).unwrap();
            (0..between).for_each(|_| _ = pair.write(instances, 32).unwrap());
        }
        pair.run_for(second());
        pair.reader(qos);
        pair.run_until_matched();
        pair.run_for(second());
        let taken = pair.take_numbers();
        assert_eq!(taken.len(), instances as usize + 1);
        assert!(taken.is_sorted(), "{taken:?}");
        pair.write(1, 32).unwrap();
        pair.run_for(second());
        assert_eq!(pair.take_numbers().len(), 1);
        let reader = pair.readers[0];
        let lost =
            pair.network.on(reader.node, |p, _| p.at_side(reader.index, |side| side.sample_lost.take()));
        assert_eq!(lost.flatten().map(|s| s.total_count), Some(0), "what KEEP_LAST has dropped is not lost");
    }
}

/// Readers that join a stream, the first alone, the second beside one of its participant that has live samples already, the
/// others in participants of their own, and of the same multicast group.
#[test]
fn a_best_effort_late_joiner_gets_history_first() {
    for (filler, seed) in [(16, 1), (16, 2), (100_000, 3), (100_000, 4)] {
        let best_effort = || Qos::default().best_effort().keep_all().transient_local();
        let mut pair = Pair::new(seed);
        pair.writer(if seed % 2 == 0 { durable() } else { best_effort() });
        let mut written = 0;
        let mut write = |pair: &mut Pair, count: u64| {
            for _ in 0..count {
                pair.write(1, filler).unwrap();
                pair.run_for(Duration::from_micros(200));
            }
            written += count;
            written
        };
        write(&mut pair, 40);
        for joins in 0..4 {
            let node = if joins < 2 { Pair::READER } else { pair.network.add(NodeOptions::default()) };
            if joins >= 2 {
                pair.network.start(node);
            }
            let reader = pair.reader_on(node, best_effort());
            write(&mut pair, 10);
            pair.run_until_matched();
            let last = write(&mut pair, 10);
            pair.run_for(second().times(3));
            let numbers = pair.take_numbers_from(reader);
            assert_eq!(
                numbers,
                (1..=last).collect::<Vec<_>>(),
                "reader {reader}, filler {filler}, seed {seed}"
            );
        }
    }
}

#[test]
fn a_live_keep_last_reader_ends_with_the_last_samples() {
    for seed in 0..20 {
        let qos = Qos::default().reliable().keep_last(2);
        let mut pair = Pair::new(seed).with_loss(0.4);
        pair.reader(qos.clone());
        pair.writer(qos);
        pair.run_until_matched();
        for n in 0..600 {
            pair.write(n % 3, 32).unwrap();
            if n % 5 == 0 {
                pair.run_for(Duration::from_millis(1));
            }
        }
        pair.run_for(second().times(20));
        let taken: Vec<Taken> = pair.take();
        let data = taken.iter().filter(|sample| sample.info.valid_data);
        let mut numbers: Vec<u64> = data.map(Taken::number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (595..=600).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// How many samples the first reader has lost when the first writer is deleted.
fn lost_when_deleted(pair: &mut Pair) -> Option<u32> {
    let (writer, reader) = (pair.writers[0].clone(), pair.readers[0]);
    pair.network.on(writer.node, |p, now| p.delete_writer(now, writer.index));
    let lost = pair.network.on(reader.node, |p, _| p.at_side(reader.index, |side| side.sample_lost.take()));
    lost.flatten().map(|status| status.total_count)
}

#[test]
fn what_has_expired_is_not_lost_to_a_late_joiner_beside_the_writer() {
    let mut pair = Pair::new(1);
    pair.writer(durable().lifespan(second()));
    (0..100).for_each(|_| _ = pair.write(1, 16).unwrap());
    pair.run_for(second().times(2));
    pair.reader_on(Pair::WRITER, durable());
    assert!(pair.is_acknowledged(0), "there is nothing for it");
    assert_eq!((pair.take_numbers(), lost_when_deleted(&mut pair)), (vec![], Some(0)));
}

#[test]
fn only_what_is_held_is_lost_to_a_full_reader_beside_the_writer() {
    let mut pair = Pair::new(1);
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair.writer(Qos::default().reliable().keep_last(1).transient_local());
    let fills = pair.writer_on(Pair::WRITER, durable());
    pair.reader_on(Pair::WRITER, durable().resource_limits(limits));
    pair.write_by(fills, 9, 16).unwrap();
    for number in 1..=100 {
        pair.write(u32::from(number > 3), 16).unwrap();
    }
    assert_eq!(lost_when_deleted(&mut pair), Some(2), "3 and 100");
}
