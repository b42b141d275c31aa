//! Many participants that start at once: all find all, and the traffic stays in proportion.

use taut_base::Duration;
use taut_qos::Qos;
use taut_sim::{Faults, Network, NodeOptions, SimReader, SimWriter, Tally, TopicSpec};

struct Crowd {
    network: Network,
    writers: Vec<SimWriter>,
    readers: Vec<SimReader>,
}

impl Crowd {
    /// Each participant has two writers and two readers, of two of the topics.
    fn new(seed: u64, count: usize, options: NodeOptions, loss: u64) -> Crowd {
        let mut network = Network::new(seed);
        network.faults = Faults::loss(loss);
        let mut crowd = Crowd { network, writers: Vec::new(), readers: Vec::new() };
        for _ in 0..count {
            crowd.network.add(options);
        }
        let qos = Qos::default().reliable().transient_local();
        for node in 0..count {
            crowd.network.start(node);
            for n in 0..2 {
                let topic = TopicSpec::new(&format!("topic {}", (node + n) % 10), true);
                let tag = crowd.writers.len() as u64 + 1;
                crowd.writers.push(crowd.network.create_writer(node, tag, &topic, &qos));
                crowd.readers.push(crowd.network.create_reader(node, &topic, &qos));
            }
            crowd.network.run_for(Duration::from_millis(1));
        }
        crowd
    }

    /// Every participant knows every other and all its endpoints.
    fn is_complete(&self) -> bool {
        let count = self.network.nodes.len();
        (0..count).all(|node| {
            let database = self.network.participant(node).unwrap().core().database();
            database.peers().count() == count - 1 && database.endpoints().count() == 4 * (count - 1)
        })
    }

    fn run_until_complete(&mut self, limit: Duration) -> Option<Duration> {
        let start = self.network.now();
        while self.network.now().since(start) < limit {
            if self.is_complete() {
                return Some(self.network.now().since(start));
            }
            self.network.run_for(Duration::from_millis(50));
        }
        None
    }

    fn sent_in(&mut self, span: Duration) -> Tally {
        let before = self.network.sent();
        self.network.run_for(span);
        self.network.sent().since(&before)
    }
}

#[test]
fn all_find_all_and_all_match() {
    for (count, loss) in [(50, 0), (50, 200), (20, 400)] {
        let mut crowd = Crowd::new(1, count, NodeOptions::default(), loss);
        let took = crowd.run_until_complete(Duration::from_secs(60));
        let took = took.unwrap_or_else(|| panic!("{count} participants, loss {loss}: some stay blind"));
        println!("{count} participants, loss {loss}: complete after {took}; sent {:?}", crowd.network.sent());
        crowd.network.run_for(Duration::from_secs(3));
        for writer in &crowd.writers {
            let topic = crowd.network.participant(writer.node).unwrap().core().topic_of(writer.guid.entity);
            for reader in &crowd.readers {
                let other =
                    crowd.network.participant(reader.node).unwrap().core().topic_of(reader.guid.entity);
                let same = topic == other;
                assert_eq!(crowd.network.is_matched(writer, reader), (same, same));
            }
        }
    }
}

#[test]
fn nobody_stays_blind_with_small_receive_buffers() {
    // 256 datagrams is what 212,992 bytes hold of the kernel's account at about 800 bytes each.
    let service = Duration::from_micros(20);
    let options = NodeOptions { service, receive_buffer: 256, ..NodeOptions::default() };
    let mut crowd = Crowd::new(2, 50, options, 0);
    let took = crowd.run_until_complete(Duration::from_secs(30));
    println!("50 participants with small buffers: complete after {took:?}");
    assert!(took.is_some_and(|took| took < Duration::from_secs(5)));
}

#[test]
fn idle_traffic_grows_with_the_number_of_participants_only() {
    let mut per_participant = Vec::new();
    for count in [10, 20, 40] {
        let mut crowd = Crowd::new(3, count, NodeOptions::default(), 0);
        assert!(crowd.run_until_complete(Duration::from_secs(30)).is_some());
        crowd.network.run_for(Duration::from_secs(5));
        let sent = crowd.sent_in(Duration::from_secs(30));
        println!("{count} participants, 30 s idle: {sent:?}");
        assert_eq!((sent.user_traffic(), sent.sedp), (0, 0));
        per_participant.push(sent.datagrams / count as u64);
    }
    assert!(per_participant.iter().all(|sent| *sent <= 11), "one multicast announcement each 3 s");
}
