//! Two participants of one process over real sockets on the loopback interface.

use std::time::Instant;

use taut::{Config, DdsType, DomainParticipant, Duration, Error, ErrorText, Qos};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Keyed {
    #[dds(key)]
    id: u32,
    seq: u32,
    payload: Vec<u8>,
}

fn participant(domain_id: u32) -> DomainParticipant {
    let config = Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap()
}

const SOON: Duration = Duration::from_secs(10);

#[test]
fn reliable_samples_arrive_in_order() {
    let (a, b) = (participant(61), participant(61));
    let qos = || Qos::default().reliable().keep_all();
    let writer = a.topic::<Keyed>("Ordered").unwrap().writer(qos()).unwrap();
    let reader = b.topic::<Keyed>("Ordered").unwrap().reader(qos()).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    for (round, size) in [10, 1_000, 65_000, 1 << 20, 10].into_iter().enumerate() {
        let sample = Keyed { id: 7, seq: round as u32, payload: vec![round as u8; size] };
        writer.write(&sample).unwrap();
        reader.wait(SOON).unwrap();
        assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap(), sample);
    }
    writer.wait_for_acknowledgments(SOON).unwrap();
    assert!(matches!(reader.wait(Duration::from_millis(1)), Err(Error::Timeout(_))));
}

#[test]
fn a_late_joiner_gets_the_history() {
    let (a, b) = (participant(62), participant(62));
    let qos = || Qos::default().reliable().keep_all().transient_local();
    let writer = a.topic::<Keyed>("History").unwrap().writer(qos()).unwrap();
    for seq in 0..600 {
        writer.write(&Keyed { id: seq % 3, seq, payload: vec![1; 100] }).unwrap();
    }
    let reader = b.topic::<Keyed>("History").unwrap().reader(qos()).unwrap();
    let mut next = 0;
    while next < 600 {
        reader.wait(SOON).unwrap();
        for sample in reader.take().unwrap() {
            next += 1;
            drop(sample.data.unwrap());
        }
    }
}

#[test]
fn a_sample_of_64_mib_arrives_whole() {
    let (a, b) = (participant(64), participant(64));
    let qos = || Qos::default().reliable().keep_last(1);
    let writer = a.topic::<Keyed>("Large").unwrap().writer(qos()).unwrap();
    let reader = b.topic::<Keyed>("Large").unwrap().reader(qos()).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let payload: Vec<u8> = (0..64_u32 << 20).map(|n| (n % 251) as u8).collect();
    let sample = Keyed { id: 1, seq: 1, payload };
    writer.write(&sample).unwrap();
    reader.wait(Duration::from_secs(30)).unwrap();
    assert!(reader.take_next().unwrap().unwrap().data.unwrap() == sample);
}

#[test]
fn a_wait_for_a_match_says_what_is_in_its_way() {
    /// Who only asks, and does not wait, is told where to look.
    const A_MOMENT: Duration = Duration::from_millis(1);
    let (a, b) = (participant(75), participant(75));
    let (topic, other) = (a.topic::<Keyed>("Alone").unwrap(), b.topic::<Keyed>("Alone").unwrap());
    let writer = topic.writer(Qos::default().best_effort()).unwrap();
    let said = |waited: taut::Result<()>| match waited {
        Err(Error::Timeout(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let participants = a.builtin_participants();
    participants.wait(SOON).unwrap();
    let about = a.discovered_participants().into_iter().find(|about| !about.own).unwrap();
    let property = |name: &str| about.properties.iter().find(|(key, _)| key == name).unwrap().1.clone();
    let [program, pid, host] = ["taut.process", "taut.pid", "taut.host"].map(property);
    let process = format!("{program}, process {pid} on {host}");
    let asked = said(writer.wait_matched(Duration::ZERO));
    assert!(asked.contains("matches() tells why"), "{asked}");
    let alone = said(writer.wait_matched(A_MOMENT));
    let expected =
        "the writer of topic \"Alone\" has 0 of 1 matches; no reader of it is known, and 1 other participant";
    assert_eq!(alone, expected);
    let reader = other.reader(Qos::default().reliable()).unwrap();
    let until = Instant::now() + SOON.into();
    while a.matches().is_empty() || b.matches().is_empty() {
        assert!(Instant::now() < until, "neither knows the other");
    }
    for (waited, ours, theirs, remote) in [
        (writer.wait_matched(A_MOMENT), "writer", "reader", reader.guid()),
        (reader.wait_matched(A_MOMENT), "reader", "writer", writer.guid()),
    ] {
        let why = "RELIABILITY: offered BEST_EFFORT, requested RELIABLE";
        let refused = format!("; {theirs} {remote} ({process}) does not match: {why}");
        let text = said(waited);
        assert_eq!(text, format!("the {ours} of topic \"Alone\" has 0 of 1 matches{refused}"));
    }
    let second = other.reader(Qos::default().best_effort()).unwrap();
    second.wait_matched(SOON).unwrap();
    writer.wait_matched(SOON).unwrap();
    drop(reader);
    while a.matches().len() > 1 {
        assert!(Instant::now() < until, "the reader is gone");
    }
    let text = said(writer.wait_matched_count(2, A_MOMENT));
    assert!(text.contains("has 1 of 2 matches; no other reader of it is known"), "{text}");
}

#[test]
fn a_wait_for_samples_says_why_nobody_is_heard() {
    let (a, b) = (participant(78), participant(78));
    let said = |waited: taut::Result<()>| match waited {
        Err(Error::Timeout(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let reader = a.topic::<Keyed>("chatter").unwrap().reader(Qos::default()).unwrap();
    let like = b.topic::<Keyed>("rt/chatter").unwrap().writer(Qos::default()).unwrap();
    let found = |guid| a.discovered_endpoints().iter().any(|endpoint| endpoint.guid == guid);
    let until = Instant::now() + SOON.into();
    while !found(like.guid()) {
        assert!(Instant::now() < until, "the writer of the other topic is not known");
    }
    let text = said(reader.wait(Duration::from_millis(100)));
    let expected = "the reader of topic \"chatter\" has 0 of 1 matches; no writer of it is known \
                    (there is one of topic \"rt/chatter\"), and 1 other participant";
    assert_eq!(text, expected);
    // Who waits in short turns, or not at all, pays for no text.
    for turn in [Duration::ZERO, Duration::from_millis(1)] {
        let Err(Error::Timeout(text)) = reader.wait(turn) else { panic!("nothing was written") };
        assert!(matches!(&text, ErrorText::Fixed(text) if text.contains("matches() tells which")), "{text}");
    }
    let _writer = b.topic::<Keyed>("chatter").unwrap().writer(Qos::default()).unwrap();
    reader.wait_matched(SOON).unwrap();
    assert!(said(reader.wait(Duration::from_millis(100))).starts_with("no sample has come"));
}

#[test]
fn an_initial_peer_is_found_without_multicast() {
    let unicast = || {
        let (interfaces, initial_peers) = (vec!["lo".into()], vec!["127.0.0.1".into()]);
        let config =
            Config { domain_id: 65, interfaces, initial_peers, multicast: false, ..Config::default() };
        DomainParticipant::with_config(&config).unwrap()
    };
    let (a, b) = (unicast(), unicast());
    assert!(a.discovered_participants()[0].multicast.is_empty());
    let writer = a.topic::<Keyed>("Unicast").unwrap().writer(Qos::default().reliable()).unwrap();
    let reader = b.topic::<Keyed>("Unicast").unwrap().reader(Qos::default().reliable()).unwrap();
    writer.wait_matched(SOON).unwrap();
    let sample = Keyed { id: 1, seq: 1, payload: vec![1, 2, 3] };
    writer.write(&sample).unwrap();
    reader.wait(SOON).unwrap();
    assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap(), sample);
}
