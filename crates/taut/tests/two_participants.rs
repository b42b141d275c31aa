//! Two participants of one process over real sockets on the loopback interface.

use taut::{Config, DdsType, DomainParticipant, Duration, Error, Qos};

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
