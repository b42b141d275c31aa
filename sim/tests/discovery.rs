//! Finding, matching, losing and finding again.

use taut_base::Duration;
use taut_dcps::{Entity, InstanceState, StatusMask};
use taut_qos::{LivelinessKind, PolicyId, Qos};
use taut_rtps::discovery::Refusal;
use taut_rtps::limits;
use taut_sim::{Faults, NodeOptions, Pair};

fn second() -> Duration {
    Duration::from_secs(1)
}

fn short_leases(seed: u64) -> Pair {
    let options = NodeOptions { lease: second().times(10), ..NodeOptions::default() };
    Pair::with_options(seed, options, options)
}

fn durable() -> Qos {
    Qos::default().reliable().keep_all().transient_local()
}

#[test]
fn a_qos_mismatch_is_told_on_both_sides_with_both_values() {
    let mut pair = Pair::new(1).with_loss(0.1);
    pair.reader(Qos::default().reliable().transient_local());
    pair.writer(Qos::default().best_effort());
    pair.run_for(second().times(5));
    let (writer, reader) = (pair.writers[0].clone(), pair.readers[0]);
    let offered = pair
        .network
        .on(0, |p, _| p.writer_mut(writer.index).map(|w| w.offered_incompatible_qos.take()))
        .flatten()
        .unwrap();
    let requested = pair
        .network
        .on(1, |p, _| p.reader_mut(reader.index).map(|r| r.requested_incompatible_qos.take()))
        .flatten()
        .unwrap();
    for (status, remote) in [(offered, reader.guid), (requested, writer.guid)] {
        assert_eq!((status.total_count, status.last_remote), (1, remote));
        let policies: Vec<PolicyId> = status.last.iter().map(|found| found.policy).collect();
        assert_eq!(policies, [PolicyId::DURABILITY, PolicyId::RELIABILITY]);
        assert_eq!(status.last[0].offered, "VOLATILE");
        assert_eq!(status.last[0].requested, "TRANSIENT_LOCAL");
    }
}

/// Changes that the writers of a node hold, the built-in ones among them.
fn held(pair: &mut Pair, node: usize) -> usize {
    let of = |p: &mut taut_dcps::DomainParticipant| {
        (0..64).filter_map(|at| p.core().writer(taut_rtps::WriterIndex(at))).map(|w| w.changes_held()).sum()
    };
    pair.network.on(node, |p, _| of(p)).unwrap()
}

#[test]
fn that_endpoints_are_gone_is_kept_for_a_while_and_not_for_ever() {
    let mut pair = short_leases(3).with_loss(0.1);
    pair.writer(durable());
    let come_and_go = |pair: &mut Pair| {
        let at = pair.reader(durable());
        let index = pair.readers[at].index;
        pair.run_until_matched();
        pair.network.on(1, |p, now| p.delete_reader(now, index));
        pair.readers.clear();
    };
    pair.run_for(second());
    let before = held(&mut pair, 1);
    (0..50).for_each(|_| come_and_go(&mut pair));
    pair.run_for(second().times(5));
    assert_eq!(held(&mut pair, 1) - before, 50);
    pair.run_for(limits::GONE_KEPT);
    come_and_go(&mut pair);
    assert_eq!(held(&mut pair, 1) - before, 1, "the last one");
}

#[test]
fn partitions_and_types_separate() {
    let mut pair = Pair::new(2);
    pair.reader(durable().partition(["left"]));
    pair.writer(durable().partition(["right"]));
    pair.writer(durable().partition(["le*"]));
    pair.topic.type_name = "Other".into();
    pair.writer(durable().partition(["left"]));
    pair.run_for(second().times(2));
    let reader = pair.readers[0];
    let matched: Vec<_> = pair.writers.iter().map(|w| pair.network.is_matched(w, &reader)).collect();
    assert_eq!(matched, [(false, false), (true, true), (false, false)]);
    for node in [0, 1] {
        let refusals: Vec<Refusal> = pair
            .network
            .participant(node)
            .unwrap()
            .core()
            .database()
            .refusals()
            .map(|r| r.2.clone())
            .collect();
        assert!(refusals.iter().any(|r| matches!(r, Refusal::Partition { .. })), "{refusals:?}");
        assert!(refusals.iter().any(|r| matches!(r, Refusal::Type { .. })), "{refusals:?}");
    }
}

#[test]
fn a_cut_longer_than_the_lease_ends_the_match_and_its_end_brings_it_back() {
    for seed in 0..10 {
        let mut pair = short_leases(seed).with_loss(0.1);
        pair.reader(durable());
        pair.writer(durable());
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(second());
        pair.cut();
        pair.run_for(second().times(12));
        assert!(!pair.is_matched(), "the lease is over");
        pair.write(1, 10).unwrap();
        pair.mend();
        let back = pair.run_until(second().times(10), |pair| pair.is_matched());
        assert!(back, "seed {seed}");
        pair.run_for(second().times(3));
        pair.write(1, 10).unwrap();
        pair.run_for(second().times(3));
        let got = pair.take_numbers();
        assert_eq!(got, [1, 2, 3], "each once, seed {seed}");
    }
}

#[test]
fn a_one_way_cut_between_unequal_leases_heals() {
    // The reader forgets the writer, the writer never notices: both must talk again afterwards.
    for (deaf, seed) in (0..20).map(|seed| (seed as usize % 2, seed)) {
        let short = NodeOptions { lease: second().times(4), ..NodeOptions::default() };
        let long = NodeOptions { lease: second().times(60), ..NodeOptions::default() };
        let mut pair = Pair::with_options(seed, short, long).with_loss(0.1);
        pair.reader(durable());
        pair.writer(durable());
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(second());
        pair.network.cut(1 - deaf, deaf);
        pair.run_for(second().times(10));
        pair.mend();
        pair.run_for(second().times(15));
        assert!(pair.is_matched(), "node {deaf} was deaf, seed {seed}");
        pair.write(1, 10).unwrap();
        pair.run_for(second().times(5));
        let got = pair.take_numbers();
        assert_eq!(got, [1, 2], "each once: node {deaf} was deaf, seed {seed}");
    }
}

/// Two of which the second one has named the first as its peer, by its address.
fn one_names_the_other(seed: u64) -> Pair {
    let named = NodeOptions { lease: second().times(10), ..NodeOptions::default() };
    Pair::with_options(seed, named, NodeOptions { names_peers: true, ..named })
}

/// Does each know the other?
fn knows(pair: &Pair) -> [bool; 2] {
    [(0, 1), (1, 0)].map(|(node, other)| {
        let participant = pair.network.participant(node).expect("it is up");
        participant.core().database().peer(pair.network.prefix(other)).is_some()
    })
}

#[test]
fn one_that_names_the_other_suffices_where_the_network_loses_groups() {
    for seed in 0..4 {
        let mut pair = one_names_the_other(seed);
        pair.network.loses_groups = true;
        for (topic, span) in [("Early", 1), ("Later", 11), ("Late", 48)] {
            pair.run_for(second().times(span));
            assert_eq!(knows(&pair), [true; 2], "seed {seed}, {topic}");
            pair.topic = taut_sim::TopicSpec::new(topic, true);
            let (writer, reader) = (pair.writer(durable()), pair.reader(durable()));
            pair.write_by(writer, 1, 10).unwrap();
            assert!(pair.run_until(second(), |pair| pair.take_numbers_from(reader) == [1]), "{topic}");
        }
        // The one that has named the other forgets it, which never notices.
        pair.network.cut(0, 1);
        pair.run_for(second().times(11));
        assert_eq!(knows(&pair), [true, false]);
        pair.mend();
        let finds = pair.run_until(second().times(4), |pair| knows(pair) == [true; 2]);
        assert!(finds, "seed {seed}: it finds it again");
    }
}

#[test]
fn where_groups_are_heard_who_names_the_other_hears_of_it_no_more_often() {
    let mut pair = one_names_the_other(1);
    pair.run_for(second());
    pair.network.capturing = usize::MAX;
    pair.run_for(second().times(30));
    let of_named: Vec<_> = pair.network.captured.iter().filter(|sent| sent.from == 0).collect();
    assert!(
        of_named.len() >= 9 && of_named.iter().all(|sent| sent.to == taut_sim::META_GROUP),
        "{of_named:?}"
    );
}

#[test]
fn one_that_leaves_is_forgotten_at_once_and_one_that_crashes_within_its_lease() {
    for crash in [false, true] {
        let mut pair = short_leases(5);
        pair.reader(durable());
        pair.writer(durable());
        pair.run_until_matched();
        if crash {
            pair.network.crash(0);
        } else {
            pair.network.leave(0);
        }
        pair.run_for(Duration::from_millis(100));
        let known = pair.network.participant(1).unwrap().core().database().peers().count();
        assert_eq!(known, usize::from(crash));
        pair.run_for(second().times(11));
        let database = pair.network.participant(1).unwrap().core().database();
        assert_eq!((database.peers().count(), database.endpoints().count()), (0, 0));
    }
}

#[test]
fn restarted_under_a_new_name_it_is_found_before_the_old_one_is_forgotten() {
    let mut pair = Pair::new(6).with_loss(0.1);
    pair.reader(durable());
    pair.writer(durable());
    pair.run_until_matched();
    pair.write(1, 10).unwrap();
    pair.run_for(second());
    assert_eq!(pair.take_numbers(), [1]);
    pair.network.crash(0);
    pair.network.start(0);
    pair.writer(durable());
    pair.write_by(1, 1, 10).unwrap();
    pair.run_for(second().times(2));
    let taken = pair.take();
    assert_eq!(
        taken.iter().filter_map(|t| t.content).map(|c| (c.tag, c.number)).collect::<Vec<_>>(),
        [(2, 1)]
    );
}

#[test]
fn restarted_under_the_old_name_it_is_found_after_its_lease() {
    let mut pair = short_leases(7);
    pair.reader(durable());
    pair.writer(durable());
    pair.run_until_matched();
    pair.write(1, 10).unwrap();
    pair.run_for(second());
    pair.take();
    pair.network.crash(0);
    pair.run_for(second().times(11));
    pair.network.start_again(0);
    pair.writer(durable());
    pair.write_by(1, 1, 10).unwrap();
    pair.run_for(second().times(2));
    assert!(pair.take().iter().any(|t| t.content.is_some_and(|c| (c.tag, c.number) == (2, 1))));
}

/// What a participant that ends and starts again at once, or `pause` later, has in common with what it was is its name.
fn starts_again(pair: &mut Pair, node: usize, pause: Duration) {
    pair.network.crash(node);
    pair.run_for(pause);
    pair.network.start_again(node);
}

#[test]
fn a_writer_that_starts_again_under_its_old_name_is_found_within_its_lease() {
    for (seed, endpoints, pause, loss) in
        [(1, 1, 2_000, 0.0), (2, 1, 0, 0.0), (3, 1, 500, 0.2), (4, 5, 0, 0.0), (5, 5, 3_000, 0.2)]
    {
        let mut pair = Pair::new(seed).with_loss(loss);
        pair.reader(durable());
        (0..endpoints).for_each(|_| _ = pair.writer(durable()));
        pair.run_until_matched();
        (0..20).for_each(|_| _ = pair.write(1, 10).unwrap());
        pair.run_for(second().times(5));
        assert_eq!(pair.take_numbers().len(), 20);
        starts_again(&mut pair, Pair::WRITER, Duration::from_millis(pause));
        let new = pair.writer(durable());
        let tag = new as u64 + 1;
        (0..3).for_each(|_| _ = pair.write_by(new, 1, 10).unwrap());
        pair.run_for(second().times(12));
        let got: Vec<_> = pair.take().iter().filter_map(|t| t.content).map(|c| (c.tag, c.number)).collect();
        assert_eq!(got, [(tag, 1), (tag, 2), (tag, 3)], "seed {seed}");
    }
}

/// It has as many endpoints as before, and has said as little: only the process tells them apart.
#[test]
fn a_process_that_takes_the_name_of_an_earlier_one_is_found_at_once() {
    for (seed, endpoints) in [(1, 1), (2, 1), (3, 5)] {
        let options = NodeOptions { tells_process: true, ..NodeOptions::default() };
        let mut pair = Pair::with_options(seed, options, NodeOptions::default());
        pair.reader(Qos::default().reliable().keep_all());
        (0..endpoints).for_each(|_| _ = pair.writer(durable()));
        pair.run_until_matched();
        for life in 1..=3 {
            let first = pair.writers.len() - endpoints;
            (first..first + endpoints).for_each(|writer| _ = pair.write_by(writer, 1, 10).unwrap());
            pair.run_for(second().times(2));
            assert_eq!(pair.take_numbers(), vec![1; endpoints], "life {life} of seed {seed}");
            starts_again(&mut pair, Pair::WRITER, Duration::ZERO);
            (0..endpoints).for_each(|_| _ = pair.writer(durable()));
            pair.run_for(limits::INITIAL_ANNOUNCEMENT_PERIOD.times(2));
        }
    }
}

#[test]
fn a_reader_that_starts_again_under_its_old_name_is_found_within_its_lease() {
    for (seed, pause, loss) in [(1, 2_000, 0.0), (2, 0, 0.0), (3, 500, 0.2)] {
        let mut pair = Pair::new(seed).with_loss(loss);
        pair.reader(durable());
        pair.writer(durable());
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(second().times(5));
        assert_eq!(pair.take_numbers(), [1]);
        starts_again(&mut pair, Pair::READER, Duration::from_millis(pause));
        let new = pair.reader(durable());
        pair.run_for(second().times(12));
        pair.write(1, 10).unwrap();
        pair.run_for(second());
        assert_eq!(pair.take_numbers_from(new), [1, 2], "seed {seed}");
    }
}

/// It may look at its clock before it finds in its sockets what the others have said meanwhile.
#[test]
fn who_was_stopped_for_longer_than_a_lease_keeps_those_who_lived() {
    for clock_first in [true, false] {
        let short = NodeOptions { lease: second().times(10), ..NodeOptions::default() };
        let long = NodeOptions { lease: second().times(1_000), ..NodeOptions::default() };
        let mut pair = Pair::with_options(9, long, short);
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(second());
        assert_eq!(pair.take_numbers(), [1]);
        pair.network.cut(Pair::WRITER, Pair::READER);
        (0..3).for_each(|_| _ = pair.write(1, 10).unwrap());
        pair.run_for(Duration::from_millis(10));
        pair.network.pause(Pair::WRITER);
        pair.run_for(second().times(35));
        pair.mend();
        pair.network.go_on(Pair::WRITER, clock_first);
        pair.run_for(second().times(2));
        assert_eq!(pair.take_numbers(), [2, 3, 4], "clock first: {clock_first}");
    }
}

#[test]
fn who_was_stopped_forgets_those_who_ended_meanwhile() {
    let mut pair = short_leases(10);
    pair.reader(durable());
    pair.writer(durable());
    pair.run_until_matched();
    pair.network.crash(Pair::READER);
    pair.run_for(second());
    pair.network.pause(Pair::WRITER);
    pair.run_for(second().times(30));
    pair.network.go_on(Pair::WRITER, true);
    let known =
        |pair: &Pair| pair.network.participant(Pair::WRITER).unwrap().core().database().peers().count();
    assert_eq!(known(&pair), 1, "it has not looked yet");
    pair.run_for(limits::LEASE_GRACE);
    assert_eq!(known(&pair), 0);
}

#[test]
fn liveliness_is_lost_and_regained() {
    for kind in
        [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic]
    {
        let mut pair = Pair::new(8);
        let qos = Qos::default().reliable().liveliness(kind, second().times(1));
        pair.reader(qos.clone());
        pair.writer(qos);
        pair.run_until_matched();
        pair.write(1, 10).unwrap();
        pair.run_for(Duration::from_millis(500));
        let alive = |pair: &mut Pair| {
            let reader = pair.readers[0];
            let status =
                pair.network.on(1, |p, _| p.reader(reader.index).map(|r| r.liveliness_changed.clone()));
            status.flatten().map(|s| (s.alive_count, s.not_alive_count)).unwrap()
        };
        assert_eq!(alive(&mut pair), (1, 0), "{kind}");
        if kind == LivelinessKind::Automatic {
            pair.run_for(second().times(5));
            assert_eq!(alive(&mut pair), (1, 0), "{kind}: asserted by itself");
            pair.cut();
            pair.run_for(second().times(2));
            assert_eq!(alive(&mut pair), (0, 1), "{kind}");
            pair.mend();
        } else {
            pair.run_for(second().times(2));
            assert_eq!(alive(&mut pair), (0, 1), "{kind}");
            let index = pair.writers[0].index;
            let lost = pair.network.on(0, |p, _| p.writer(index).map(|w| w.liveliness_lost.total_count));
            assert_eq!(lost.flatten(), Some(1), "{kind}");
            pair.network.on(0, |p, now| p.assert_liveliness(now, index));
        }
        pair.run_for(Duration::from_millis(900));
        assert_eq!(alive(&mut pair), (1, 0), "{kind}: regained");
        if kind != LivelinessKind::Automatic {
            pair.run_for(second().times(3));
            assert_eq!(alive(&mut pair), (0, 1), "{kind}");
            pair.write(1, 10).unwrap();
            pair.run_for(Duration::from_millis(100));
            assert_eq!(alive(&mut pair), (1, 0), "{kind}: a write tells too");
        }
    }
}

#[test]
fn a_promise_that_is_broken_wakes_nobody_again() {
    for kind in [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant] {
        let mut pair = Pair::new(1);
        let qos = Qos::default().reliable().liveliness(kind, Duration::from_millis(1));
        pair.writer(qos);
        pair.run_for(second());
        let lost = |pair: &mut Pair| {
            let index = pair.writers[0].index;
            pair.network.on(0, |p, _| p.writer(index).map(|w| w.liveliness_lost.total_count)).flatten()
        };
        assert_eq!(lost(&mut pair), Some(1), "{kind}");
        let before = pair.network.nodes[0].timeouts;
        pair.run_for(second());
        let woken = pair.network.nodes[0].timeouts - before;
        assert!(woken < 10, "{kind}: woken {woken} times in a second in which nothing happens");
        // It is watched again once it lives.
        pair.write(1, 0).unwrap();
        pair.run_for(Duration::from_millis(2));
        assert_eq!(lost(&mut pair), Some(2), "{kind}");
    }
}

#[test]
fn a_lease_that_nobody_can_hold_floods_nobody() {
    for kind in [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant] {
        let mut pair = Pair::new(3);
        let qos = Qos::default().reliable().liveliness(kind, Duration(1));
        pair.reader(qos.clone());
        // Of one alone each write tells.
        pair.writer(qos.clone());
        pair.writer(qos);
        pair.network.event_limit = pair.network.events + 20_000;
        pair.run_until_matched();
        let before = pair.network.sent();
        for _ in 0..100 {
            pair.write(1, 10).unwrap();
            pair.run_for(Duration::from_micros(100));
        }
        let told = pair.network.sent().since(&before).wlp;
        assert!((1..=60).contains(&told), "{kind}: {told} messages of liveliness in 10 ms");
    }
}

#[test]
fn a_writer_that_goes_changes_the_liveliness() {
    let mut pair = Pair::new(8);
    pair.reader_on(0, Qos::default());
    pair.writer_on(0, Qos::default());
    let (index, reader) = (pair.writers[0].index, pair.readers[0].index);
    let news = pair.network.on(0, |p, now| {
        p.delete_writer(now, index);
        let news =
            std::iter::from_fn(|| p.poll_news()).filter(|(entity, _)| *entity == Entity::Reader(reader));
        let news = news.fold(StatusMask::NONE, |all, (_, kinds)| all | kinds);
        (news, p.reader_mut(reader).map(|reader| reader.liveliness_changed.take()))
    });
    let (news, status) = news.unwrap();
    assert_eq!(status.map(|status| (status.alive_count, status.alive_count_change)), Some((0, 0)));
    assert!(news.contains(StatusMask::SUBSCRIPTION_MATCHED | StatusMask::LIVELINESS_CHANGED), "{news:?}");
}

/// Within one participant no message tells who is alive.
#[test]
fn a_reader_beside_the_writer_sees_its_liveliness_too() {
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        let mut pair = Pair::new(8);
        let qos = Qos::default().reliable().liveliness(kind, second().times(1));
        pair.reader_on(0, qos.clone());
        pair.writer_on(0, qos.clone());
        let (index, reader) = (pair.writers[0].index, pair.readers[0].index);
        let counts = |pair: &mut Pair| {
            let changed =
                |p: &taut_dcps::DomainParticipant| p.reader(reader).map(|r| r.liveliness_changed.clone());
            let status = pair.network.on(0, |p, _| changed(p)).flatten().unwrap();
            (status.alive_count, status.not_alive_count)
        };
        pair.write(1, 10).unwrap();
        assert_eq!((counts(&mut pair), pair.take().len()), ((1, 0), 1), "{kind}");
        pair.run_for(second().times(2));
        assert_eq!(counts(&mut pair), (0, 1), "{kind}");
        assert_eq!(pair.take()[0].state(), InstanceState::NotAliveNoWriters, "{kind}");
        pair.network.on(0, |p, now| p.assert_liveliness(now, index));
        assert_eq!(counts(&mut pair), (1, 0), "{kind}");
        pair.run_for(second().times(2));
        assert_eq!(counts(&mut pair), (0, 1), "{kind}");
        pair.write(1, 10).unwrap();
        assert_eq!(counts(&mut pair), (1, 0), "{kind}");
        pair.run_for(second().times(2));
        // Who comes or goes while the writer is silent counts it among the silent.
        pair.reader_on(0, qos.clone());
        let late = pair.readers[1].index;
        let seen = pair.network.on(0, |p, _| p.reader(late).map(|r| r.liveliness_changed.not_alive_count));
        assert_eq!(seen.flatten(), Some(1), "{kind}");
        pair.network.on(0, |p, now| p.delete_writer(now, index));
        assert_eq!(counts(&mut pair), (0, 0), "{kind}");
    }
}

#[test]
fn an_idle_matched_system_is_quiet() {
    let mut pair = Pair::new(9);
    for node in [0, 1] {
        for _ in 0..5 {
            pair.reader_on(node, durable());
            pair.writer_on(node, durable());
        }
    }
    pair.run_until_matched();
    for writer in 0..10 {
        pair.write_by(writer, 1, 100).unwrap();
    }
    pair.run_for(second().times(5));
    let before = pair.network.sent();
    pair.run_for(second().times(30));
    let sent = pair.network.sent().since(&before);
    assert_eq!((sent.user_traffic(), sent.sedp, sent.wlp), (0, 0, 0), "{sent:?}");
    assert!(sent.spdp <= 22 && sent.datagrams == sent.spdp, "one announcement each 3 s: {sent:?}");
}

#[test]
fn loss_of_one_direction_only() {
    for lossy in [(0, 1), (1, 0)] {
        let mut pair = Pair::new(10);
        pair.network.links.insert(lossy, Faults::loss(600));
        pair.reader(Qos::default().reliable().keep_all());
        pair.writer(Qos::default().reliable().keep_all());
        pair.run_until_matched();
        for _ in 0..200 {
            pair.write(1, 100).unwrap();
        }
        pair.run_for(second().times(10));
        assert_eq!(pair.take_numbers(), (1..=200).collect::<Vec<_>>(), "{lossy:?}");
    }
}

/// DCPS 1.4 §2.2.3.11: with MANUAL_BY_PARTICIPANT one writer speaks for all of its participant.
#[test]
fn a_write_shows_that_the_participant_is_alive() {
    let kind = LivelinessKind::ManualByParticipant;
    let mut pair = Pair::new(12);
    let qos = Qos::default().reliable().liveliness(kind, second());
    for node in [1, 0] {
        pair.reader_on(node, qos.clone());
    }
    pair.writer(qos.clone());
    pair.topic = taut_sim::TopicSpec::new("Circle", true);
    pair.writer(qos);
    pair.run_for(second().times(1));
    pair.network.on(0, |p, now| p.assert_participant(now));
    pair.run_for(Duration::from_millis(100));
    let silent = |pair: &mut Pair| {
        let counts: Vec<_> = pair
            .readers
            .clone()
            .iter()
            .map(|reader| {
                let status = pair
                    .network
                    .on(reader.node, |p, _| p.reader(reader.index).map(|r| r.liveliness_changed.clone()));
                status.flatten().map(|status| (status.alive_count, status.not_alive_count)).unwrap()
            })
            .collect();
        counts
    };
    assert_eq!(silent(&mut pair), [(1, 0), (1, 0)]);
    let index = pair.writers[0].index;
    let lost =
        |pair: &mut Pair| pair.network.on(0, |p, _| p.writer_mut(index).map(|w| w.liveliness_lost.take()));
    lost(&mut pair);
    let before = pair.network.sent().wlp;
    for _ in 0..100 {
        pair.write_by(1, 1, 10).unwrap();
        pair.run_for(Duration::from_millis(50));
        assert_eq!(silent(&mut pair), [(1, 0), (1, 0)]);
    }
    assert_eq!(lost(&mut pair).flatten().map(|status| status.total_count_change), Some(0));
    let messages = pair.network.sent().wlp - before;
    assert!((15..=80).contains(&messages), "it is said no more often than the lease asks for: {messages}");
    pair.run_for(second().times(2));
    assert_eq!(silent(&mut pair), [(0, 1), (0, 1)]);
    pair.write_by(1, 1, 10).unwrap();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(silent(&mut pair), [(1, 0), (1, 0)]);
}
