//! Several writers and readers, on one side and on both; instances and their ends.

use taut_base::Duration;
use taut_dcps::InstanceState;
use taut_qos::Qos;
use taut_rtps::ChangeKind;
use taut_sim::{NodeOptions, Pair, Taken};

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

#[test]
fn many_writers_and_readers_of_one_topic() {
    let mut pair = Pair::new(1).with_loss(0.2);
    for node in [0, 1] {
        for _ in 0..4 {
            pair.reader_on(node, reliable());
            pair.writer_on(node, reliable());
        }
    }
    pair.run_until_matched();
    for _ in 0..50 {
        for writer in 0..8 {
            pair.write_by(writer, 1, 40).unwrap();
        }
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(Duration::from_secs(10));
    for reader in 0..8 {
        let taken = pair.take_from(reader);
        for tag in 1..=8 {
            let numbers: Vec<u64> =
                taken.iter().filter_map(|t| t.content).filter(|c| c.tag == tag).map(|c| c.number).collect();
            assert_eq!(numbers, (1..=50).collect::<Vec<_>>(), "writer {tag}, reader {reader}");
        }
    }
}

#[test]
fn two_readers_in_one_participant_get_one_datagram() {
    let mut pair = Pair::new(2);
    pair.reader(reliable());
    pair.reader(reliable());
    pair.writer(reliable());
    pair.run_until_matched();
    pair.run_for(Duration::from_secs(1));
    let before = pair.network.nodes[Pair::WRITER].sent.data;
    pair.write(1, 40).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.network.nodes[Pair::WRITER].sent.data - before, 1);
    assert_eq!((pair.take_numbers_from(0), pair.take_numbers_from(1)), (vec![1], vec![1]));
}

#[test]
fn within_one_participant_nothing_is_sent() {
    let mut pair = Pair::new(3);
    pair.reader_on(Pair::WRITER, reliable());
    pair.writer(reliable());
    pair.run_until_matched();
    pair.write(1, 40).unwrap();
    assert_eq!(pair.take_numbers(), [1], "at once");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.network.sent().user_traffic(), 0);
}

#[test]
fn a_durable_local_reader_gets_the_history() {
    let qos = reliable().transient_local();
    let mut pair = Pair::new(4);
    pair.writer(qos.clone());
    for _ in 0..300 {
        pair.write(1, 8).unwrap();
    }
    pair.reader_on(Pair::WRITER, qos);
    assert_eq!(pair.take_numbers(), (1..=300).collect::<Vec<_>>());
}

#[test]
fn instances_end_by_dispose_and_by_unregister() {
    for seed in 0..10 {
        let mut pair = Pair::new(seed).with_loss(0.3);
        pair.reader(reliable());
        pair.writer(reliable());
        pair.run_until_matched();
        for key in 0..4 {
            pair.write(key, 20).unwrap();
        }
        pair.end_instance(ChangeKind::NotAliveDisposed, 1).unwrap();
        pair.end_instance(ChangeKind::NotAliveUnregistered, 2).unwrap();
        pair.end_instance(ChangeKind::NotAliveDisposedUnregistered, 3).unwrap();
        pair.run_for(Duration::from_secs(5));
        let taken = pair.take();
        let state = |number: u64| {
            let handle = taken.iter().find(|t| t.number() == number).unwrap().info.instance_handle;
            taken.iter().rfind(|t| t.info.instance_handle == handle).map(Taken::state).unwrap()
        };
        let states: Vec<_> = (1..=4).map(state).collect();
        let disposed = InstanceState::NotAliveDisposed;
        assert_eq!(states, [InstanceState::Alive, disposed, InstanceState::NotAliveNoWriters, disposed]);
        assert_eq!(taken.iter().filter(|t| !t.info.valid_data).count(), 3, "seed {seed}");
        pair.write(1, 20).unwrap();
        pair.run_for(Duration::from_secs(5));
        let again = pair.take();
        assert_eq!(again.len(), 1);
        assert_eq!((again[0].state(), again[0].info.disposed_generation_count), (InstanceState::Alive, 1));
    }
}

#[test]
fn a_writer_that_goes_leaves_its_instances_without_writers() {
    for crash in [false, true] {
        let options = NodeOptions { lease: Duration::from_secs(10), ..NodeOptions::default() };
        let mut pair = Pair::with_options(6, options, options);
        pair.reader(reliable());
        pair.writer(reliable());
        pair.run_until_matched();
        pair.write(1, 20).unwrap();
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.take().len(), 1);
        let index = pair.writers[0].index;
        if crash {
            pair.network.crash(0);
        } else {
            pair.network.on(0, |p, now| p.delete_writer(now, index));
        }
        pair.run_for(Duration::from_secs(12));
        let taken = pair.take();
        assert_eq!(taken.iter().map(Taken::state).collect::<Vec<_>>(), [InstanceState::NotAliveNoWriters]);
    }
}

#[test]
fn best_effort_is_in_order_and_never_twice() {
    let faults = taut_sim::Faults { loss: 100, duplicate: 200, reorder: 200, ..Default::default() };
    let mut pair = Pair::new(7).with_faults(faults).without_key();
    pair.reader(Qos::default().best_effort().keep_all());
    pair.writer(Qos::default().best_effort());
    pair.run_until_matched();
    for _ in 0..1_000 {
        pair.write(0, 20).unwrap();
        pair.run_for(Duration::from_millis(1));
    }
    pair.run_for(Duration::from_secs(1));
    let got = pair.take_numbers();
    assert!(got.windows(2).all(|two| two[0] < two[1]), "rising");
    assert!(got.len() > 300, "{} of 1000", got.len());
}

#[test]
fn a_reader_that_goes_does_not_hold_the_writer() {
    let mut pair = Pair::new(8);
    pair.reader(reliable());
    pair.reader(reliable());
    pair.writer(reliable());
    pair.run_until_matched();
    pair.cut();
    while pair.write(1, 20).is_ok() {}
    let second = pair.readers[1];
    pair.network.on(1, |p, now| p.delete_reader(now, second.index));
    pair.mend();
    pair.run_for(Duration::from_secs(5));
    assert!(pair.write(1, 20).is_ok());
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.take_numbers().len() as u64, pair.writers[0].written);
}
