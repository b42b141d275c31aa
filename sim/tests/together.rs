//! Samples of several writers that meet share datagrams: datagrams are counted.

use std::collections::BTreeMap;

use taut_base::{Duration, EntityId, Time};
use taut_dcps::Write;
use taut_qos::Qos;
use taut_rtps::ChangeKind;
use taut_sim::{Content, Faults, Pair, instance};
use taut_wire::{Header, Submessage, Submessages};

const WRITERS: usize = 50;
/// What a sample takes of a datagram: 52 bytes of content, its headers and a HEARTBEAT.
const EACH: usize = 160;

/// Writers with these priorities, each with a reader on the other side, all matched; datagrams of at most `path_size`.
fn pair(seed: u64, path_size: usize, priorities: impl IntoIterator<Item = i32>, qos: &Qos) -> Pair {
    let mut pair = Pair::new(seed);
    pair.network.nodes.iter_mut().for_each(|node| node.options.path_size = path_size);
    for (n, priority) in priorities.into_iter().enumerate() {
        pair.topic.name = format!("Topic{n}");
        pair.reader(qos.clone());
        pair.writer(qos.clone().transport_priority(priority));
    }
    settle(&mut pair);
    pair
}

/// Each writer has matched the reader of its topic, and all is said that follows.
fn settle(pair: &mut Pair) {
    let is_matched = |pair: &mut Pair| {
        let both = pair.writers.iter().zip(&pair.readers);
        both.into_iter().all(|(writer, reader)| pair.network.is_matched(writer, reader) == (true, true))
    };
    assert!(pair.run_until(Duration::from_secs(30), is_matched));
    pair.network.run_for(Duration::from_secs(1));
}

/// Each writer writes so many samples before any of them is sent.
fn write_at_once(pair: &mut Pair, samples: usize, filler: u32) {
    let writers = pair.writers.iter_mut();
    let mut writes: Vec<_> = writers
        .map(|writer| {
            writer.written += samples as u64;
            let numbers = writer.written + 1 - samples as u64..=writer.written;
            (writer.index, numbers.map(|number| (writer.tag, number)).collect::<Vec<_>>())
        })
        .collect();
    pair.network.on(Pair::WRITER, |participant, now| {
        for n in 0..samples {
            for (index, contents) in &mut writes {
                let (tag, number) = contents[n];
                let content = Content { key: 1, tag, number, filler };
                let mut write = Write {
                    kind: ChangeKind::Alive,
                    instance: instance(1),
                    source_timestamp: None,
                    payload: content.encode(),
                    number: None,
                    in_lane: false,
                    called: Time::default(),
                    was_left: false,
                };
                participant.write(now, *index, &mut write).unwrap();
            }
        }
    });
}

/// The user's writers of what `is` picks in each datagram that was captured and has some of that.
fn writers_of(pair: &Pair, is: impl Fn(Submessage<'_>) -> Option<EntityId>) -> Vec<Vec<EntityId>> {
    let of = |bytes: &[u8]| {
        let (_, rest) = Header::parse(bytes).unwrap();
        let picked = Submessages::new(rest).filter_map(|submessage| is(submessage.unwrap()));
        picked.filter(|writer| !writer.is_builtin()).collect::<Vec<_>>()
    };
    let captured = pair.network.captured.iter();
    captured.map(|captured| of(&captured.bytes)).filter(|writers| !writers.is_empty()).collect()
}

/// The writers whose DATA is in each datagram.
fn contents(pair: &Pair) -> Vec<Vec<EntityId>> {
    writers_of(pair, |submessage| match submessage {
        Submessage::Data(data) => Some(data.writer_id),
        _ => None,
    })
}

fn take_all(pair: &mut Pair) -> Vec<Vec<u64>> {
    (0..pair.readers.len()).map(|reader| pair.take_numbers_from(reader)).collect()
}

#[test]
fn writers_that_meet_share_datagrams_up_to_the_size_of_the_path() {
    for (path_size, qos) in [
        (usize::MAX, Qos::default().reliable().keep_all()),
        (1_472, Qos::default().reliable().keep_all()),
        (1_472, Qos::default().best_effort().keep_last(10)),
    ] {
        let mut pair = pair(1, path_size, [0; WRITERS], &qos);
        pair.network.capturing = usize::MAX;
        write_at_once(&mut pair, 3, 20);
        let datagrams = contents(&pair);
        let at_most = (3 * WRITERS * EACH).div_ceil(path_size.min(65_000)) + 1;
        assert!(datagrams.len() <= at_most, "{} datagrams, {at_most} at most", datagrams.len());
        assert_eq!(datagrams.concat().len(), 3 * WRITERS);
        pair.network.run_for(Duration::from_secs(1));
        assert_eq!(take_all(&mut pair), vec![vec![1, 2, 3]; WRITERS]);
    }
}

#[test]
fn writers_of_other_priorities_do_not() {
    let priorities: Vec<i32> = (0..40).map(|n| [0, 7, 50, -3][n % 4]).collect();
    let mut pair = pair(2, usize::MAX, priorities.iter().copied(), &Qos::default().reliable().keep_all());
    pair.network.capturing = usize::MAX;
    write_at_once(&mut pair, 2, 20);
    let entities = pair.writers.iter().map(|writer| writer.guid.entity);
    let of: BTreeMap<EntityId, i32> = entities.zip(priorities).collect();
    let datagrams = contents(&pair);
    let seen: Vec<i32> = datagrams
        .iter()
        .map(|data| {
            let priority = of[&data[0]];
            assert!(data.iter().all(|writer| of[writer] == priority), "{data:?}");
            priority
        })
        .collect();
    assert_eq!(seen, [50, 7, 0, -3]);
}

/// Writers for one destination stand between those for another.
#[test]
fn writers_for_other_destinations_stand_between() {
    let mut pair = Pair::new(3);
    let third = pair.network.add(Default::default());
    pair.network.start(third);
    let qos = Qos::default().reliable().keep_all();
    for n in 0..20 {
        pair.topic.name = format!("Topic{n}");
        pair.reader_on(if n % 2 == 0 { Pair::READER } else { third }, qos.clone());
        pair.writer(qos.clone());
    }
    settle(&mut pair);
    pair.network.capturing = usize::MAX;
    write_at_once(&mut pair, 1, 20);
    assert_eq!(contents(&pair).iter().map(Vec::len).collect::<Vec<_>>(), [10, 10]);
    pair.network.run_for(Duration::from_secs(1));
    assert_eq!(take_all(&mut pair), vec![vec![1]; 20]);
}

/// How many datagrams have so many pieces of this size, if they are filled up to what any path takes.
fn filled(pieces: usize, size: usize) -> usize {
    const BEFORE: usize = 20 + 16;
    pieces.div_ceil((508 - BEFORE) / size)
}

/// What a participant owes the endpoints of another one it says in few datagrams, not in one for each of them.
#[test]
fn acknowledgements_of_several_readers_share_datagrams() {
    let mut pair = pair(4, usize::MAX, [0; WRITERS], &Qos::default().reliable().keep_all());
    pair.network.capturing = usize::MAX;
    write_at_once(&mut pair, 1, 20);
    pair.network.run_for(Duration::from_secs(1));
    let acknowledged = writers_of(&pair, |submessage| match submessage {
        Submessage::AckNack(acknack) => Some(acknack.writer_id),
        _ => None,
    });
    let mut once = acknowledged.concat();
    once.sort_unstable();
    once.dedup();
    assert_eq!((once.len(), acknowledged.concat().len()), (WRITERS, WRITERS));
    assert!(acknowledged.len() <= filled(WRITERS, 32), "{} datagrams", acknowledged.len());
}

#[test]
fn heartbeats_and_repairs_of_several_writers_share_datagrams() {
    let mut pair = pair(5, usize::MAX, [0; WRITERS], &Qos::default().reliable().keep_all());
    pair.cut();
    write_at_once(&mut pair, 1, 20);
    pair.mend();
    pair.network.capturing = usize::MAX;
    pair.network.run_for(Duration::from_secs(1));
    assert_eq!(take_all(&mut pair), vec![vec![1]; WRITERS]);
    let told = writers_of(&pair, |submessage| match submessage {
        Submessage::Heartbeat(heartbeat) => Some(heartbeat.writer_id),
        _ => None,
    });
    let repaired = contents(&pair);
    assert_eq!(
        (repaired.concat().len(), told.concat().len()),
        (WRITERS, 2 * WRITERS),
        "asked, and told behind the repair"
    );
    assert!(told.len() <= 6 && repaired.len() <= 5, "{} and {} datagrams", told.len(), repaired.len());
}

/// Large samples go beside, and what is lost of shared datagrams is repaired.
#[test]
fn all_arrive_in_order_whatever_is_lost() {
    for seed in 0..10 {
        let mut pair = pair(seed, 1_472, [0; 10], &Qos::default().reliable().keep_all());
        pair.network.faults = Faults::loss(200);
        for round in 0..10 {
            write_at_once(&mut pair, 3, [20, 700, 3_000][round % 3]);
            pair.network.run_for(Duration::from_millis(1));
        }
        pair.network.faults = Faults::default();
        pair.network.run_for(Duration::from_secs(5));
        assert_eq!(take_all(&mut pair), vec![Vec::from_iter(1..=30); 10], "seed {seed}");
        let participant = pair.network.participant(Pair::WRITER).unwrap();
        assert!(pair.writers.iter().all(|writer| participant.is_acknowledged(writer.index)));
    }
}
