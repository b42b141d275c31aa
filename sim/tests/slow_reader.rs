//! A reader that does not keep up costs one that does nothing: its samples all come, and as soon as if it were alone.

use taut_base::Duration;
use taut_qos::Qos;
use taut_rtps::MulticastChoice;
use taut_sim::{Network, NodeOptions, SimReader, SimWriter, Taken, TopicSpec};

/// What the reader that keeps up needs for a datagram, with room for more than a large sample.
const QUICK: Duration = Duration::from_micros(5);
/// What the other one needs, with room for eight.
const SLOW: Duration = Duration::from_millis(1);
/// So much longer a sample may be under way to the first beside the second: it has four datagrams to handle that
/// concern the other, if both hear what goes to a group.
const BESIDE: Duration = Duration::from_micros(20);

/// What is written, and how.
#[derive(Clone, Copy, Debug)]
struct Stream {
    multicast: MulticastChoice,
    is_reliable: bool,
    depth: u32,
    size: u32,
    path_size: usize,
    interval: Duration,
    count: u64,
}

/// A writer, a reader that keeps up, and perhaps one that does not.
struct Group {
    network: Network,
    writer: SimWriter,
    readers: Vec<SimReader>,
}

impl Group {
    fn new(stream: Stream, has_slow: bool) -> Group {
        let Stream { multicast, path_size, .. } = stream;
        let options = NodeOptions { multicast, path_size, ..NodeOptions::default() };
        let quick = NodeOptions { service: QUICK, receive_buffer: 1_100, ..options };
        let slow = NodeOptions { service: SLOW, receive_buffer: 8, ..options };
        let mut network = Network::new(1);
        for options in [options, quick].into_iter().chain(has_slow.then_some(slow)) {
            let node = network.add(options);
            network.start(node);
        }
        let topic = TopicSpec::new("Square", true);
        let qos = if stream.is_reliable { Qos::default().reliable() } else { Qos::default().best_effort() };
        let qos = qos.keep_last(stream.depth);
        let writer = network.create_writer(0, 1, &topic, &qos);
        let nodes = 1..network.nodes.len();
        let readers: Vec<SimReader> = nodes.map(|node| network.create_reader(node, &topic, &qos)).collect();
        network.run_for(Duration::from_secs(10));
        assert!(readers.iter().all(|reader| network.is_matched(&writer, reader) == (true, true)));
        Group { network, writer, readers }
    }

    /// Writes a sample and takes until the next is due. How long this one is under way to the first reader, and how
    /// many the second has got meanwhile.
    fn exchange(&mut self, stream: Stream, number: u64) -> (Duration, usize) {
        let written = self.network.now();
        self.network.write(&mut self.writer, 1, stream.size).unwrap();
        let (end, mut took, mut of_slow) = (written + stream.interval, None, 0);
        loop {
            let taken = self.network.take(&self.readers[0], usize::MAX);
            if !taken.is_empty() {
                assert_eq!(taken.iter().map(Taken::number).collect::<Vec<_>>(), [number], "{stream:?}");
                took = Some(self.network.now().since(written));
            }
            if let Some(slow) = self.readers.get(1) {
                of_slow += self.network.take(slow, usize::MAX).len();
            }
            if !self.network.step(end) {
                break;
            }
        }
        self.network.run_to(end);
        (took.unwrap_or_else(|| panic!("{stream:?}: {number} did not come before the next")), of_slow)
    }
}

/// The longest that a sample is under way to the reader that keeps up, and how many another one has got.
fn run(stream: Stream, has_slow: bool) -> (Duration, usize) {
    let mut group = Group::new(stream, has_slow);
    let before = group.network.nodes[0].sent;
    let (mut longest, mut of_slow) = (Duration::ZERO, 0);
    for number in 1..=stream.count {
        let (took, more) = group.exchange(stream, number);
        longest = longest.max(took);
        of_slow += more;
    }
    if !stream.is_reliable {
        let sent = group.network.nodes[0].sent.since(&before);
        let fragments = u64::from(stream.size).div_ceil(1_352).max(1);
        let ways = if stream.multicast == MulticastChoice::Never { group.readers.len() as u64 } else { 1 };
        assert!(sent.data + sent.data_frag <= ways * stream.count * fragments, "{stream:?}: {sent:?}");
    }
    (longest, of_slow)
}

/// Is it reliable, and how much does KEEP_LAST keep?
const WAYS: [(bool, u32); 3] = [(false, 1), (true, 1), (true, 16)];

/// Each way of a stream, alone and beside a reader that does not keep up.
fn compare(ways: &[(bool, u32)], size: u32, path_size: usize, interval: Duration, count: u64) {
    for multicast in [MulticastChoice::Never, MulticastChoice::Always] {
        for &(is_reliable, depth) in ways {
            let stream = Stream { multicast, is_reliable, depth, size, path_size, interval, count };
            let (alone, _) = run(stream, false);
            let (beside, of_slow) = run(stream, true);
            println!("{stream:?}: {alone}, beside the slow one, which got {of_slow}, {beside}");
            assert!(beside.0 <= alone.0 + BESIDE.0, "{stream:?}: {beside} instead of {alone}");
            assert!(of_slow as u64 <= count / 2, "{stream:?}: the slow one keeps up, with {of_slow}");
        }
    }
}

#[test]
fn small_samples_do_not_wait_for_a_slow_reader() {
    compare(&WAYS, 100, 1_472, Duration::from_micros(200), 2_000);
}

#[test]
fn samples_of_1_mib_do_not_wait_for_a_slow_reader() {
    compare(&WAYS, 1 << 20, 1_472, Duration::from_millis(5), 40);
}

#[test]
fn samples_of_1_mib_in_large_datagrams_do_not_wait_for_a_slow_reader() {
    compare(&WAYS, 1 << 20, usize::MAX, Duration::from_millis(2), 40);
}

/// More than a reader is sent without an answer: the writer asks how far they are, and goes by the one that is ahead.
/// Without answers it would be more than the quick one has room for.
#[test]
fn samples_of_4_mib_do_not_wait_for_a_slow_reader() {
    compare(&WAYS[1..], 4 << 20, 1_472, Duration::from_millis(25), 20);
}

/// What a reader gets that has all its time for it, of a writer that is five times as quick, and how many datagrams it
/// has handled for that.
fn progress(multicast: MulticastChoice, depth: u32, size: u32, receive_buffer: usize) -> (u64, u64) {
    let options = NodeOptions { multicast, path_size: 1_472, ..NodeOptions::default() };
    let mut network = Network::new(1);
    for options in [options, NodeOptions { service: SLOW, receive_buffer, ..options }] {
        let node = network.add(options);
        network.start(node);
    }
    let topic = TopicSpec::new("Square", true);
    let qos = Qos::default().reliable().keep_last(depth);
    let mut writer = network.create_writer(0, 1, &topic, &qos);
    let reader = network.create_reader(1, &topic, &qos);
    network.run_for(Duration::from_secs(10));
    assert_eq!(network.is_matched(&writer, &reader), (true, true));
    let (handled, mut taken) = (network.nodes[1].received, 0);
    for _ in 0..5_000 {
        network.write(&mut writer, 1, size).unwrap();
        network.run_for(Duration::from_micros(200));
        taken += network.take(&reader, usize::MAX).len() as u64;
    }
    (taken, network.nodes[1].received - handled)
}

/// It asks for what it misses. What is gone by the time that the question is handled is answered with a GAP: if each datagram
/// led to such an answer, the answers would fill its buffer, and no sample would find room.
#[test]
fn a_slow_reader_gets_what_it_can_take_whatever_is_kept() {
    for multicast in [MulticastChoice::Never, MulticastChoice::Always] {
        for depth in [1, 2, 16, 64, 256, 1_000] {
            for (size, receive_buffer) in [(100, 8), (100, 64), (1_300, 8), (1_300, 64)] {
                let (taken, handled) = progress(multicast, depth, size, receive_buffer);
                let what = format!("KEEP_LAST {depth} of {size} B, room for {receive_buffer}");
                println!("{what}: {taken} samples of {handled} datagrams");
                assert!(taken * 5 >= handled * 3, "{what}: {taken} samples of {handled} datagrams");
            }
        }
    }
}

/// A writer of 1 MiB each 2 ms with KEEP_LAST, and a reader that needs 10 ms for as much, perhaps beside a quick one.
#[derive(Clone, Copy, Debug)]
struct Large {
    multicast: MulticastChoice,
    has_quick: bool,
    depth: u32,
    path_size: usize,
    receive_buffer: usize,
}

/// Samples that the slow one has time for.
const TIME_FOR: u64 = 20;
const WRITTEN: u64 = 5 * TIME_FOR;

impl Large {
    fn fragments(&self) -> u64 {
        if self.path_size == usize::MAX { 17 } else { 776 }
    }

    /// How many samples the slow reader has got, and how many were sent for its sake, those for all not counted.
    fn run(self) -> (u64, u64) {
        let Large { multicast, has_quick, depth, path_size, receive_buffer } = self;
        let fragments = self.fragments();
        let options = NodeOptions { multicast, path_size, ..NodeOptions::default() };
        let service = Duration(10_000_000 / i64::try_from(fragments).unwrap());
        let slow = NodeOptions { service, receive_buffer, ..options };
        let quick = NodeOptions { service: Duration(service.0 / 10), receive_buffer: 1_100, ..options };
        let mut network = Network::new(1);
        for options in [options, slow].into_iter().chain(has_quick.then_some(quick)) {
            let node = network.add(options);
            network.start(node);
        }
        let topic = TopicSpec::new("Square", true);
        let qos = Qos::default().reliable().keep_last(depth);
        let mut writer = network.create_writer(0, 1, &topic, &qos);
        let readers: Vec<SimReader> =
            (1..network.nodes.len()).map(|node| network.create_reader(node, &topic, &qos)).collect();
        network.run_for(Duration::from_secs(10));
        assert!(readers.iter().all(|reader| network.is_matched(&writer, reader) == (true, true)));
        let before = network.nodes[0].sent;
        let mut taken = vec![Vec::new(); readers.len()];
        let mut run = |network: &mut Network, span| {
            network.run_for(span);
            for (taken, reader) in taken.iter_mut().zip(&readers) {
                taken.extend(network.take(reader, usize::MAX).iter().map(Taken::number));
            }
            taken[0].len() as u64
        };
        let mut of_slow = 0;
        for _ in 0..WRITTEN {
            network.write(&mut writer, 1, 1 << 20).unwrap();
            of_slow = run(&mut network, Duration::from_millis(2));
        }
        let sent = network.nodes[0].sent.since(&before).data_frag / fragments;
        run(&mut network, Duration::from_secs(2));
        let numbers = 1..=WRITTEN;
        assert!(taken.iter().all(|taken| taken.is_sorted() && taken.last() == Some(&WRITTEN)), "{self:?}");
        assert!(!has_quick || taken[1] == numbers.collect::<Vec<_>>(), "{self:?}: {:?}", taken[1]);
        (of_slow, if has_quick { sent - WRITTEN } else { sent })
    }

    /// The slow reader gets `least` samples at least, for no more than `most` times as many that are sent.
    fn check(self, least: u64, most: u64) {
        let (taken, sent) = self.run();
        println!("{self:?}: {taken} samples of {TIME_FOR}, {sent} sent for that");
        assert!(taken >= least, "{self:?}: {taken} samples of {TIME_FOR}");
        assert!(sent <= taken * most, "{self:?}: {sent} sent for {taken}");
    }
}

/// What it asks for would be gone each time. It is sent one sample after the other instead, each whole, and none of what
/// it could not take.
#[test]
fn a_slow_reader_of_1_mib_gets_most_of_what_it_has_time_for() {
    for (has_quick, multicast) in
        [(false, MulticastChoice::Never), (false, MulticastChoice::Always), (true, MulticastChoice::Never)]
    {
        for depth in [1, 4] {
            for receive_buffer in [90, 250, 1_100] {
                let path_size = 1_472;
                Large { multicast, has_quick, depth, path_size, receive_buffer }.check(TIME_FOR * 2 / 3, 2);
            }
        }
    }
}

/// In large datagrams a buffer holds less than half a sample, or many that wait before what was asked for.
#[test]
fn a_slow_reader_of_1_mib_in_large_datagrams_gets_a_third_of_what_it_has_time_for() {
    for has_quick in [false, true] {
        for depth in [1, 4] {
            for receive_buffer in [8, 64] {
                let (multicast, path_size) = (MulticastChoice::Never, usize::MAX);
                Large { multicast, has_quick, depth, path_size, receive_buffer }.check(TIME_FOR / 3, 7);
            }
        }
    }
}

/// What goes to a group for others takes the places of what it is sent alone.
#[test]
fn a_slow_reader_of_1_mib_in_a_group_gets_some() {
    for depth in [1, 4] {
        for receive_buffer in [90, 250] {
            let (multicast, path_size) = (MulticastChoice::Always, 1_472);
            Large { multicast, has_quick: true, depth, path_size, receive_buffer }.check(2, 4);
        }
    }
}
