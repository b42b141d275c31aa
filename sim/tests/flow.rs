//! KEEP_ALL: a reader that does not take stops the writer, and nothing is lost.

use taut_base::Duration;
use taut_qos::{Qos, ResourceLimits};
use taut_sim::Pair;

fn small_reader(samples: u32) -> Qos {
    let limits = ResourceLimits { max_samples: Some(samples), ..ResourceLimits::default() };
    Qos::default().reliable().keep_all().resource_limits(limits)
}

#[test]
fn a_reader_that_does_not_take_stops_the_writer() {
    for loss in [0.0, 0.2] {
        let mut pair = Pair::new(5).with_loss(loss);
        pair.reader(small_reader(50));
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        let mut written = 0;
        while pair.write(1, 100).is_ok() {
            written += 1;
            pair.run_for(Duration::from_millis(1));
            assert!(written < 10_000, "the writer is told to wait");
        }
        pair.run_for(Duration::from_secs(5));
        assert!(pair.write(1, 100).is_err(), "and waits as long as the reader does");
        let before = pair.network.sent();
        pair.run_for(Duration::from_secs(60));
        let sent = pair.network.sent().since(&before);
        assert!(sent.datagrams < 400, "waiting is quiet: {sent:?}");
        let mut got = Vec::new();
        while got.len() < 2_000 {
            let before = got.len();
            got.extend(pair.take_numbers());
            pair.run_for(Duration::from_millis(20));
            if written < 2_000 && pair.write(1, 100).is_ok() {
                written += 1;
            }
            assert!(got.len() > before || pair.network.now().0 < 600_000_000_000, "it goes on");
        }
        assert_eq!(got, (1..=2_000).collect::<Vec<_>>());
    }
}

#[test]
fn max_samples_of_the_writer_hold_it_until_readers_acknowledge() {
    let mut pair = Pair::new(6);
    pair.reader(Qos::default().reliable().keep_all());
    pair.writer(small_reader(10));
    pair.run_until_matched();
    pair.cut();
    let written = (0..100).take_while(|_| pair.write(1, 100).is_ok()).count();
    assert_eq!(written, 10);
    pair.mend();
    pair.run_for(Duration::from_secs(2));
    for _ in 0..1_000 {
        assert!(pair.run_until(Duration::from_millis(500), |pair| pair.write(1, 100).is_ok()));
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.take_numbers(), (1..=1_010).collect::<Vec<_>>());
}

#[test]
fn a_local_reader_holds_the_writer_too() {
    let mut pair = Pair::new(7);
    pair.reader_on(Pair::WRITER, small_reader(20));
    pair.writer(small_reader(20));
    pair.run_until_matched();
    let written = (0..100).take_while(|_| pair.write(1, 100).is_ok()).count();
    assert_eq!(written, 40, "20 in the reader's cache, 20 in the writer's");
    assert_eq!(pair.take_numbers(), (1..=20).collect::<Vec<_>>());
    assert!(pair.write(1, 100).is_ok());
    assert_eq!(pair.take_numbers(), (21..=40).collect::<Vec<_>>());
    assert_eq!(pair.take_numbers(), [41]);
}

#[test]
fn room_in_the_reader_is_told_at_once() {
    let mut pair = Pair::new(8);
    pair.reader(small_reader(10));
    pair.writer(small_reader(10));
    pair.run_until_matched();
    // The heartbeats have backed off to one a second by then.
    for _ in 0..100 {
        let _ = pair.write(1, 100);
        pair.run_for(Duration::from_millis(100));
    }
    pair.run_for(Duration::from_secs(10));
    assert!(pair.write(1, 100).is_err());
    assert_eq!(pair.take_numbers().len(), 10);
    pair.run_for(Duration::from_millis(1));
    assert!(pair.write(1, 100).is_ok(), "one acknowledgement later");
}
