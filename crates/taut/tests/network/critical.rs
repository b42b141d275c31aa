//! Critical endpoints are reached at a port of their own, by peers that know nothing of it, too.

use std::thread;
use std::time::{Duration, Instant};

use taut::{Config, DataReader, DataWriter, DomainParticipant, Driver, Qos};
use taut_testbed::while_none_starts;

use crate::{Host, Number, SOON, two_hosts};

const DOMAIN: u32 = 3;
/// Where samples reach the first participant of a host: RTPS 2.5 §9.6.2.3.
const USUAL: u16 = 7_400 + 250 * DOMAIN as u16 + 11;
const CRITICAL: u16 = USUAL - 9;

fn config() -> Config {
    Config { domain_id: DOMAIN, ..Config::default() }
}

fn qos(priority: i32) -> Qos {
    Qos::default().reliable().keep_all().max_blocking_time(SOON).transport_priority(priority)
}

/// A writer and a reader of a topic.
struct Way {
    writer: DataWriter<Number>,
    reader: DataReader<Number>,
}

impl Way {
    fn new(name: &str, writes: &DomainParticipant, reads: &DomainParticipant, priority: i32) -> Way {
        let writer = writes.topic::<Number>(name).unwrap().writer(qos(priority)).unwrap();
        let reader = reads.topic::<Number>(name).unwrap().reader(qos(priority)).unwrap();
        writer.wait_matched(SOON).unwrap();
        Way { writer, reader }
    }

    /// Writes a sample, and takes it. It is not waited for by this thread, which is in neither namespace.
    fn carries(&self, value: u32) {
        self.writer.write(&Number { value }).unwrap();
        let end = Instant::now() + SOON;
        let taken = loop {
            match self.reader.take_next().unwrap() {
                Some(sample) => break sample.data,
                None => thread::sleep(Duration::from_micros(100)),
            }
            assert!(Instant::now() < end, "sample {value} arrives");
        };
        assert_eq!(taken, Some(Number { value }));
    }
}

/// A participant with a critical port on one host, and one without on the other, which meets it.
fn pair(near: &Host, far: &Host) -> (DomainParticipant, DomainParticipant) {
    (near.participant(&Config { critical_port: CRITICAL, ..config() }), far.participant(&config()))
}

/// What comes to one port is lost, and what comes to the other is not.
fn is_reached_at(port: u16, other: u16, priority: i32, network: u8) {
    let cable = format!("critical{network}");
    let Some((near, far)) = two_hosts(&cable, network) else { return };
    let (own, peer) = pair(&near, &far);
    let ways = [Way::new("In", &peer, &own, priority), Way::new("Out", &own, &peer, priority)];
    near.on_ingress(&cable, format!("ip protocol udp udp dport {other} drop"));
    // Samples come there, and acknowledgements of what was written here.
    (0..20).for_each(|value| ways.iter().for_each(|way| way.carries(value)));
    near.on_ingress(&cable, format!("ip protocol udp udp dport {port} drop"));
    ways[0].writer.write(&Number { value: 20 }).unwrap();
    assert!(ways[0].writer.wait_for_acknowledgments(Duration::from_millis(300)).is_err());
}

#[test]
fn what_is_critical_comes_by_its_port() {
    is_reached_at(CRITICAL, USUAL, 100, 40);
}

#[test]
fn all_else_comes_by_the_usual_one() {
    is_reached_at(USUAL, CRITICAL, 99, 41);
}

/// Critical endpoints name their addresses themselves, and the others with those of the participant.
#[test]
fn what_is_critical_follows_the_address() {
    let Some((near, far)) = two_hosts("critical46", 46) else { return };
    let (own, peer) = pair(&near, &far);
    let ways = [Way::new("In", &peer, &own, 100), Way::new("Out", &own, &peer, 100)];
    let carries = |value| ways.iter().for_each(|way| way.carries(value));
    carries(0);
    // The address that has come stays when the first one goes.
    near.on(|| std::fs::write("/proc/sys/net/ipv4/conf/critical46/promote_secondaries", "1").unwrap());
    near.ip("addr add 10.78.46.9/24 dev critical46");
    near.ip("addr del 10.78.46.1/24 dev critical46");
    near.on_ingress("critical46", format!("ip daddr 10.78.46.1 udp dport {CRITICAL} drop"));
    near.on_ingress("critical46", format!("ip protocol udp udp dport {USUAL} drop"));
    (1..20).for_each(carries);
}

/// How many datagrams come by the group, of samples that two participants of a host read with this priority.
fn by_group(priority: i32, network: u8) -> Option<u64> {
    let cable = format!("critical{network}");
    let (near, far) = two_hosts(&cable, network)?;
    let reads =
        [CRITICAL, CRITICAL + 1].map(|critical_port| near.participant(&Config { critical_port, ..config() }));
    let writes = far.participant(&config());
    let writer = writes.topic::<Number>("Group").unwrap().writer(qos(0)).unwrap();
    let reader = |of: &DomainParticipant| of.topic::<Number>("Group").unwrap().reader(qos(priority)).unwrap();
    let readers = reads.each_ref().map(reader);
    writer.wait_matched_count(2, SOON).unwrap();
    near.on_ingress(&cable, format!("ip daddr 239.255.0.1 udp dport {} counter", USUAL - 10));
    for value in 0..20 {
        writer.write(&Number { value }).unwrap();
        readers.iter().for_each(|reader| reader.wait(SOON).unwrap());
        writer.wait_for_acknowledgments(SOON).unwrap();
        readers.iter().for_each(|reader| assert_eq!(reader.take().unwrap().len(), 1));
    }
    Some(near.counted())
}

/// What several read is one datagram to their group, but for those who are to be reached at ports of their own.
#[test]
fn critical_samples_go_to_no_group() {
    let Some(usual) = by_group(99, 42) else { return };
    assert!(usual >= 20, "{usual}");
    assert_eq!(by_group(100, 44), Some(0));
}

/// Does something wait at this port of the host?
fn has_come(host: &Host, port: u16) -> bool {
    let sockets = host.on(|| std::fs::read_to_string("/proc/thread-self/net/udp")).unwrap();
    // The number, the address, that of the peer, the state, bytes that leave and that have come.
    let waits = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&format!(":{port:04X}")) && !fields[4].ends_with(":00000000")
    };
    sockets.lines().skip(1).any(waits)
}

/// Whoever drives finds both at once.
#[test]
fn what_is_critical_is_received_first() {
    let Some((near, far)) = two_hosts("critical45", 45) else { return };
    let inline = Config { driver: Driver::Inline, anatomy: 16, critical_port: CRITICAL, ..config() };
    let (reads, writes) = (near.participant(&inline), far.participant(&Config { anatomy: 16, ..config() }));
    let ends = |priority| {
        let name = format!("First{priority}");
        let reader = reads.topic::<Number>(&name).unwrap().reader(qos(priority)).unwrap();
        (writes.topic::<Number>(&name).unwrap().writer(qos(priority)).unwrap(), reader)
    };
    let ways = [0, 100].map(ends);
    let drive = || reads.run_once(Duration::from_millis(1)).unwrap();
    let await_that = |what: &str, is_so: &dyn Fn() -> bool| {
        let end = Instant::now() + SOON;
        while !is_so() {
            drive();
            assert!(Instant::now() < end, "{what}");
        }
    };
    let matches = |(writer, reader): &(DataWriter<Number>, DataReader<Number>)| {
        writer.publication_matched_status().current_count + reader.subscription_matched_status().current_count
            == 2
    };
    await_that("they match", &|| ways.iter().all(matches));
    for value in 0..20 {
        ways.iter().for_each(|(writer, _)| writer.write(&Number { value }).unwrap());
        let end = Instant::now() + SOON;
        while ![USUAL, CRITICAL].iter().all(|port| has_come(&near, *port)) {
            assert!(Instant::now() < end, "both come");
        }
        let delivered = ways.each_ref().map(|(_, reader)| {
            let end = Instant::now() + SOON;
            let sample = loop {
                match reader.take_next().unwrap() {
                    Some(sample) => break sample,
                    None => drive(),
                }
                assert!(Instant::now() < end, "they are received");
            };
            reader.anatomy_of(&sample.info).unwrap().delivered.unwrap()
        });
        // Among the first may be what is said as they match.
        assert!(value == 0 || delivered[1] < delivered[0], "{delivered:?}");
        let is_acknowledged =
            |writer: &DataWriter<Number>| writer.wait_for_acknowledgments(Duration::ZERO).is_ok();
        await_that("they are acknowledged", &|| ways.iter().all(|(writer, _)| is_acknowledged(writer)));
        // What asked for that may have come twice: it is no sample that has come.
        await_that("nothing waits", &|| ![USUAL, CRITICAL].iter().any(|port| has_come(&near, *port)));
    }
}

#[test]
fn a_port_that_another_has_is_refused() {
    let Some((near, _far)) = two_hosts("critical43", 43) else { return };
    let critical = Config { critical_port: CRITICAL, ..config() };
    let first = near.participant(&critical);
    let refused = |config: Config| {
        near.on(move || DomainParticipant::with_config(&config).err().expect("it is refused").to_string())
    };
    let told = refused(critical.clone());
    assert!(told.contains("another program holds the critical port"), "{told}");
    let told = refused(Config { critical_port: USUAL, ..config() });
    assert!(told.contains("have by the standard: choose another, as 8152"), "{told}");
    let told = refused(Config { xdp_only_critical: true, ..config() });
    assert!(told.contains("xdp_only_critical tells by critical_port"), "{told}");
    // A child of another test, until it is its program, would have the port, too.
    while_none_starts(|| {
        drop(first);
        near.participant(&critical);
    });
}
