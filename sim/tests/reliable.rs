//! RELIABLE: exactly once, in order, whatever the network does.

use taut_base::Duration;
use taut_qos::Qos;
use taut_sim::{Faults, Pair};

fn keep_all() -> Qos {
    Qos::default().reliable().keep_all()
}

#[test]
fn a_pair_discovers_matches_and_moves_a_sample() {
    let mut pair = Pair::new(1);
    pair.reader(keep_all());
    pair.writer(keep_all());
    pair.run_until_matched();
    pair.write(7, 100).unwrap();
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.take_numbers(), [1]);
}

/// A pair whose writer has written 500 changes, each of which has waited for room for so long at most.
fn written_under_loss(seed: u64, loss: u64, most: Duration) -> Pair {
    let faults = Faults { loss, duplicate: 100, reorder: 100, ..Faults::default() };
    let mut pair = Pair::new(seed).with_faults(faults);
    pair.reader(keep_all());
    pair.writer(keep_all());
    pair.run_until_matched();
    for n in 0..500 {
        let written = pair.run_until(most, |pair| pair.write(1, 10 + n).is_ok());
        assert!(written, "loss {loss}, seed {seed}: there is no room for {n}");
        if n % 7 == 0 {
            pair.run_for(Duration::from_micros(300));
        }
    }
    pair
}

/// Who waits for room asks for it no more rarely than each 100 ms, though half of what is asked and answered is lost.
#[test]
fn a_write_that_waits_for_room_goes_on_soon() {
    for seed in 0..100 {
        written_under_loss(seed, 500, Duration::from_millis(2_500));
    }
}

#[test]
fn all_arrive_once_and_in_order_under_loss() {
    for loss in [0, 10, 50, 100, 200, 300, 500] {
        for seed in 0..20 {
            // Losses in a row look like those of a small buffer: the window may close for a while.
            let mut pair = written_under_loss(seed, loss, Duration::from_secs(5));
            let mut got = Vec::new();
            let done = pair.run_until(Duration::from_secs(30), |pair| {
                got.extend(pair.take_numbers());
                got.len() >= 500
            });
            assert!(done, "loss {loss}, seed {seed}: {} of 500 arrive", got.len());
            assert_eq!(got, (1..=500).collect::<Vec<_>>(), "loss {loss}, seed {seed}");
        }
    }
}
