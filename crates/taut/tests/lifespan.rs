//! LIFESPAN by the source timestamps that a caller gives.

use taut::{Config, DdsType, DomainParticipant, Duration, Error, Qos, Timestamp};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Number {
    n: u32,
}

const SOON: Duration = Duration::from_secs(20);

/// That many seconds before now.
fn before(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ns(taut::wall_clock_now().to_unix_ns() - seconds * 1_000_000_000)
}

#[test]
fn what_is_older_than_its_lifespan_never_comes() {
    for (within, local) in [(true, true), (true, false), (false, true), (false, false)] {
        let config = Config { domain_id: 95, interfaces: vec!["lo".into()], local, ..Config::default() };
        let out = DomainParticipant::with_config(&config).unwrap();
        let inward = if within { out.clone() } else { DomainParticipant::with_config(&config).unwrap() };
        let qos = || Qos::default().reliable().keep_all().transient_local();
        let writer = out.topic::<Number>("Ages").unwrap();
        let writer = writer.writer(qos().lifespan(Duration::from_secs(30))).unwrap();
        // The history comes with the match.
        writer.write_with_timestamp(&Number { n: 1 }, before(60)).unwrap();
        let reader = inward.topic::<Number>("Ages").unwrap().reader(qos()).unwrap();
        reader.wait_matched(SOON).unwrap();
        writer.wait_matched(SOON).unwrap();
        for (n, age) in [(2, 3_600), (3, 1_000_000_000), (4, 31)] {
            writer.write_with_timestamp(&Number { n }, before(age)).unwrap();
            let waited = reader.wait(Duration::from_millis(50));
            assert!(matches!(waited, Err(Error::Timeout(_))), "{n}, within {within}, local {local}");
        }
        writer.write_with_timestamp(&Number { n: 5 }, before(1)).unwrap();
        reader.wait(SOON).unwrap();
        let numbers: Vec<_> =
            reader.take().unwrap().into_iter().map(|sample| sample.data.unwrap().n).collect();
        assert_eq!(numbers, [5], "within {within}, local {local}");
    }
}
