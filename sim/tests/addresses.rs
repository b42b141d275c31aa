//! Participants that are reached elsewhere than before.

use taut_base::Duration;
use taut_qos::Qos;
use taut_sim::{NodeOptions, Pair};

fn second() -> Duration {
    Duration::from_secs(1)
}

fn reliable() -> Qos {
    Qos::default().reliable().keep_all()
}

/// Matched, and one sample has come through.
fn pair(seed: u64, loss: f64, qos: &Qos) -> Pair {
    // What only a lease would mend does not come back in time.
    let options = NodeOptions { lease: second().times(1_000), ..NodeOptions::default() };
    let mut pair = Pair::with_options(seed, options, options).with_loss(loss);
    pair.reader(qos.clone());
    pair.writer(qos.clone());
    pair.run_until_matched();
    pair
}

/// How often the reader has been matched, in all.
fn matches(pair: &mut Pair) -> u32 {
    let index = pair.readers[0].index;
    let total = pair.network.on(1, |p, _| p.reader_mut(index).map(|r| r.subscription_matched.take()));
    total.flatten().unwrap().total_count
}

#[test]
fn samples_follow_whoever_moves() {
    for (seed, movers) in [&[1][..], &[0], &[0, 1]].into_iter().enumerate() {
        for (loss, qos) in [(0.0, Qos::default().best_effort()), (0.0, reliable()), (0.3, reliable())] {
            let mut pair = pair(seed as u64, loss, &qos);
            for round in 0..3 {
                movers.iter().for_each(|node| pair.network.move_away(*node, true));
                // One announcement and one of the endpoint are on their way.
                pair.run_for(second().times(if loss > 0.0 { 3 } else { 1 }));
                let number = pair.write(1, 10).unwrap();
                let expected = u64::try_from(number.0).unwrap();
                let came = pair.run_until(second().times(3), |pair| pair.take_numbers().contains(&expected));
                assert!(came, "{movers:?} moved, loss {loss}, round {round}");
            }
            assert_eq!(matches(&mut pair), 1, "{movers:?} moved, loss {loss}: the match holds");
        }
    }
}

#[test]
fn what_was_lost_before_a_move_is_told_comes_after_it() {
    for (seed, mover) in [(1, 1), (2, 0)] {
        let mut pair = pair(seed, 0.1, &reliable());
        pair.network.move_away(mover, false);
        for _ in 0..20 {
            pair.write(1, 10).unwrap();
            pair.run_for(Duration::from_millis(100));
        }
        pair.network.move_away(mover, true);
        let mut numbers = Vec::new();
        pair.run_until(second().times(5), |pair| {
            numbers.extend(pair.take_numbers());
            numbers.len() == 20
        });
        assert_eq!(numbers.len(), 20, "{mover} moved");
        assert!(numbers.is_sorted(), "{numbers:?}");
    }
}

#[test]
fn without_multicast_a_move_is_told_to_who_is_known() {
    let options = NodeOptions { multicast_discovery: false, ..NodeOptions::default() };
    let mut pair = Pair::with_options(7, options, options);
    pair.reader(reliable());
    pair.writer(reliable());
    pair.run_until_matched();
    for mover in [0, 1, 1, 0] {
        pair.network.move_away(mover, true);
        pair.run_for(second());
        pair.write(1, 10).unwrap();
        assert!(pair.run_until(second(), |pair| pair.take_numbers().len() == 1), "{mover} moved");
    }
}
