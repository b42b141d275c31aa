//! DEADLINE on a virtual clock: what the protocol brings, and what it does not bring in time.

use taut_base::Duration;
use taut_dcps::RequestedDeadlineMissedStatus;
use taut_qos::Qos;
use taut_rtps::ChangeKind;
use taut_sim::Pair;

const PERIOD: Duration = Duration::from_millis(100);
const HALF: Duration = Duration::from_millis(50);

/// The status of the first reader, whose changes then count from 0 again.
fn missed(pair: &mut Pair) -> RequestedDeadlineMissedStatus {
    let index = pair.readers[0].index;
    let participant = pair.network.nodes[Pair::READER].participant.as_mut().unwrap();
    participant.reader_mut(index).unwrap().requested_deadline_missed.take()
}

fn pair(seed: u64, qos: &Qos) -> Pair {
    let mut pair = Pair::new(seed);
    pair.reader(qos.clone());
    pair.writer(qos.clone());
    pair.run_until_matched();
    pair
}

#[test]
fn periods_without_a_sample_are_told_as_they_end() {
    let mut pair = pair(1, &Qos::default().reliable().keep_all().deadline(PERIOD));
    pair.run_for(PERIOD.times(10));
    assert_eq!(missed(&mut pair).total_count, 0, "nothing has been written yet");
    for _ in 0..20 {
        pair.write(1, 40).unwrap();
        pair.run_for(HALF);
    }
    assert_eq!(missed(&mut pair).total_count, 0);
    pair.run_for(PERIOD.times(4));
    let status = missed(&mut pair);
    assert_eq!((status.total_count, status.total_count_change), (4, 4));
    assert_ne!(status.last_instance_handle, Default::default());
    pair.end_instance(ChangeKind::NotAliveDisposed, 1).unwrap();
    pair.run_for(PERIOD.times(10));
    let status = missed(&mut pair);
    assert!(status.total_count <= 5 && status.total_count_change <= 1, "{status:?}");
    // A writer that is gone has promised nothing.
    pair.write(2, 40).unwrap();
    pair.run_for(Duration::from_millis(150));
    assert_eq!(missed(&mut pair).total_count_change, 1);
}

#[test]
fn a_link_that_is_cut_is_seen_by_the_deadline() {
    let mut pair = pair(2, &Qos::default().reliable().keep_all().deadline(PERIOD));
    let write_on = |pair: &mut Pair, times: u32| {
        for _ in 0..times {
            pair.write(1, 40).unwrap();
            pair.run_for(HALF);
        }
    };
    write_on(&mut pair, 10);
    pair.cut();
    write_on(&mut pair, 10);
    let cut = missed(&mut pair).total_count;
    assert!((3..=5).contains(&cut), "{cut}");
    pair.mend();
    write_on(&mut pair, 10);
    let _ = missed(&mut pair);
    write_on(&mut pair, 10);
    assert_eq!(missed(&mut pair).total_count_change, 0);
}

#[test]
fn the_weaker_writer_is_heard_once_the_owner_is_silent() {
    let qos = |strength| Qos::default().reliable().keep_all().exclusive().ownership_strength(strength);
    let mut pair = Pair::new(3);
    pair.reader(qos(0).deadline(PERIOD));
    pair.writer(qos(9).deadline(PERIOD));
    pair.writer(qos(1).deadline(PERIOD));
    pair.run_until_matched();
    let tags = |pair: &mut Pair| -> Vec<u64> {
        pair.take().iter().filter_map(|taken| taken.content).map(|content| content.tag).collect()
    };
    pair.write_by(0, 1, 40).unwrap();
    for _ in 0..9 {
        pair.run_for(Duration::from_millis(10));
        pair.write_by(1, 1, 40).unwrap();
    }
    assert_eq!(tags(&mut pair), [1]);
    for _ in 0..5 {
        pair.run_for(Duration::from_millis(10));
        pair.write_by(1, 1, 40).unwrap();
    }
    pair.run_for(Duration::from_millis(5));
    let heard = tags(&mut pair);
    assert!(heard.len() >= 4 && heard.iter().all(|tag| *tag == 2), "{heard:?}");
    pair.write_by(0, 1, 40).unwrap();
    pair.write_by(1, 1, 40).unwrap();
    pair.run_for(Duration::from_millis(5));
    assert_eq!(tags(&mut pair), [1], "the stronger one is back");
}

#[test]
fn a_period_that_nobody_can_keep_is_looked_at_now_and_then() {
    let mut pair = pair(4, &Qos::default().reliable().keep_all().deadline(Duration(1)));
    pair.network.event_limit = pair.network.events + 10_000;
    pair.write(1, 40).unwrap();
    pair.run_for(Duration::from_millis(10));
    let _ = missed(&mut pair);
    let before = pair.network.nodes[Pair::READER].timeouts;
    pair.run_for(Duration::from_millis(100));
    let looks = pair.network.nodes[Pair::READER].timeouts - before;
    assert!(looks <= 1_100, "{looks} looks in a tenth of a second");
    let counted = missed(&mut pair).total_count_change;
    assert!((99_900_000..=100_100_000).contains(&counted), "each period counts: {counted} of 100,000,000");
}
