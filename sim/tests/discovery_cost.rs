//! What it takes until many participants that start at once are matched: datagrams for each ordered pair of them, and
//! time where some are lost.

use taut_base::Duration;
use taut_qos::Qos;
use taut_sim::{Faults, Network, NodeOptions, SimReader, SimWriter, TopicSpec};

struct Crowd {
    network: Network,
    writers: Vec<SimWriter>,
    readers: Vec<SimReader>,
}

impl Crowd {
    /// Participants that start one after the other, each with a writer and a reader of the same topic.
    fn start(mut network: Network, count: usize, options: NodeOptions, apart: Duration) -> Crowd {
        (0..count).for_each(|_| _ = network.add(options));
        let mut crowd = Crowd { network, writers: Vec::new(), readers: Vec::new() };
        let (qos, topic) = (Qos::default().reliable(), TopicSpec::new("Square", true));
        for node in 0..count {
            crowd.network.start(node);
            crowd.writers.push(crowd.network.create_writer(node, node as u64 + 1, &topic, &qos));
            crowd.readers.push(crowd.network.create_reader(node, &topic, &qos));
            crowd.network.run_for(apart);
        }
        crowd
    }

    /// How long it takes until all have matched all.
    fn match_all(&mut self, limit: Duration) -> Option<Duration> {
        let start = self.network.now();
        loop {
            let took = self.network.now().since(start);
            let mut pairs =
                self.writers.iter().flat_map(|writer| self.readers.iter().map(move |r| (writer, r)));
            if pairs.all(|(writer, reader)| self.network.is_matched(writer, reader) == (true, true)) {
                return Some(took);
            }
            if took > limit {
                return None;
            }
            self.network.run_for(Duration::from_millis(1));
        }
    }
}

#[test]
fn each_tells_each_other_in_a_handful_of_datagrams() {
    const COUNT: usize = 50;
    let (at_once, apart) = (Duration::ZERO, Duration::from_millis(1));
    // What is said by both at the same time is said once more than if one begins: that is the most.
    for (machine, service, apart, bound) in [
        ("idle, all at once", Duration::ZERO, at_once, 6.5),
        ("idle, one after the other", Duration::ZERO, apart, 5.0),
        ("busy", Duration::from_micros(100), apart, 5.5),
    ] {
        let options = NodeOptions { service, ..NodeOptions::default() };
        let mut crowd = Crowd::start(Network::new(1), COUNT, options, apart);
        let took = crowd.match_all(Duration::from_secs(1));
        let took = took.unwrap_or_else(|| panic!("{machine}: some stay blind for a second"));
        // With all that follows.
        crowd.network.run_for(Duration::from_secs(1));
        let sent = crowd.network.sent();
        let for_each = sent.datagrams as f64 / (COUNT * (COUNT - 1)) as f64;
        println!("{machine}: matched {took} after the last start, {for_each:.2} for each pair; {sent:?}");
        assert!(for_each < bound, "{machine}: {for_each:.2} datagrams for each ordered pair");
    }
}

#[test]
fn what_is_lost_on_the_way_is_soon_said_again() {
    const SEEDS: u64 = 20;
    for (loss, bound) in [(100, 350), (200, 800)] {
        let mut sum = Duration::ZERO;
        for seed in 0..SEEDS {
            let mut network = Network::new(seed);
            network.faults = Faults::loss(loss);
            let mut crowd = Crowd::start(network, 20, NodeOptions::default(), Duration::from_millis(1));
            let took = crowd.match_all(Duration::from_secs(10));
            sum.0 += took.unwrap_or_else(|| panic!("seed {seed}, loss {loss}: some stay blind")).0;
        }
        let mean = Duration(sum.0 / SEEDS as i64);
        println!("20 participants, loss {loss}: matched after {mean} in the mean");
        assert!(mean < Duration::from_millis(bound), "loss {loss}: {mean}");
    }
}

#[test]
fn a_late_endpoint_is_soon_known_though_much_is_lost() {
    const SEEDS: u64 = 50;
    let mut sum = Duration::ZERO;
    for seed in 0..SEEDS {
        let mut crowd = Crowd::start(Network::new(seed), 10, NodeOptions::default(), Duration::ZERO);
        assert!(crowd.match_all(Duration::from_secs(1)).is_some());
        crowd.network.faults = Faults::loss(200);
        let (qos, topic) = (Qos::default().reliable(), TopicSpec::new("Square", true));
        crowd.writers.push(crowd.network.create_writer(0, 99, &topic, &qos));
        sum.0 += crowd.match_all(Duration::from_secs(10)).expect("all know it").0;
    }
    let mean = Duration(sum.0 / SEEDS as i64);
    println!("a late writer and nine readers, loss 200: matched after {mean} in the mean");
    assert!(mean < Duration::from_millis(60), "{mean}");
}
