//! Samples that are written and read in the frames of a network interface, between two network namespaces.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure. One after the other, as
//! one of them counts the allocations of the whole process.

use std::sync::Mutex;
use std::time::Instant;

use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, FrameStats, Qos, View, XdpLayer,
    XdpMode,
};
use taut_mem::CountingAllocator;
use taut_testbed::{End, LIMIT, Pair, await_that, ip, with_losses, with_pair};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Of 1 KiB, with values that are to be aligned to eight.
#[derive(DdsType, Clone, Copy, taut::cdr::bytemuck::Pod, taut::cdr::bytemuck::Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Block {
    numbers: [u64; 128],
}

impl Block {
    fn fill(&mut self, number: u64) {
        (0..).zip(&mut self.numbers).for_each(|(at, word)| *word = number << 8 | at);
    }

    /// The number that it was filled with, if nothing in it has changed.
    fn number(&self) -> u64 {
        let number = self.numbers[0] >> 8;
        assert!(
            (0..).zip(self.numbers).all(|(at, word)| word == number << 8 | at),
            "it is as it was written"
        );
        number
    }
}

/// So that no announcement falls into rounds that are counted.
const SELDOM: Duration = Duration::from_secs(600);

/// How many frames of a queue can be lent: fewer than these tests hold.
const LENT: usize = 4_096;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Layer {
    Ip,
    Bare,
    /// Over memif, with an address of IP at each end or without, and in a VLAN or none.
    #[cfg(feature = "dpdk")]
    Dpdk([&'static str; 2], Option<u16>),
}

#[cfg(feature = "dpdk")]
const ADDRESSES: [[&str; 2]; 3] =
    [["10.99.0.1/24", "10.99.0.2/24"], ["fd00:99::1/64", "fd00:99::2/64"], ["", ""]];

/// In a VLAN or none.
#[cfg(feature = "dpdk")]
fn dpdk(vlan: Option<u16>) -> impl Iterator<Item = Layer> {
    ADDRESSES.into_iter().map(move |addresses| Layer::Dpdk(addresses, vlan))
}

static ONE_BY_ONE: Mutex<()> = Mutex::new(());

/// Has no other test of these run meanwhile.
fn alone<R>(test: impl FnOnce() -> R) -> R {
    let _guard = ONE_BY_ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    test()
}

fn participant(pair: &Pair, end: End, layer: Layer, local: bool) -> DomainParticipant {
    pair.enter(end);
    let mut config = Config {
        interfaces: vec![end.name().into()],
        local,
        report: false,
        announcement_period: SELDOM,
        lease_duration: SELDOM.times(3),
        xdp_interface: end.name().to_owned(),
        xdp_mode: XdpMode::Native,
        ..Config::default()
    };
    match layer {
        Layer::Ip => {}
        Layer::Bare => {
            ip(&format!("addr flush dev {}", end.name()));
            (config.interfaces, config.xdp_layer) = (Vec::new(), XdpLayer::Bare);
        }
        #[cfg(feature = "dpdk")]
        Layer::Dpdk([first, second], dpdk_vlan) => {
            let (number, role, address) =
                if end == End::A { (0, "server", first) } else { (1, "client", second) };
            // The server removes it when it ends.
            let socket = std::env::temp_dir().join(format!("taut-in-place-{}", std::process::id()));
            config = Config {
                dpdk_device: format!(
                    "net_memif{number},role={role},socket-abstract=no,socket={}",
                    socket.display()
                ),
                dpdk_address: address.into(),
                dpdk_vlan,
                local,
                report: false,
                announcement_period: SELDOM,
                lease_duration: SELDOM.times(3),
                ..Config::default()
            };
        }
    }
    DomainParticipant::with_config(&config).unwrap()
}

fn qos() -> Qos {
    Qos::default().reliable().keep_all().max_blocking_time(LIMIT)
}

/// A participant at each end, a writer at the first and a reader at the second.
struct Stream {
    near: DomainParticipant,
    far: DomainParticipant,
    writer: DataWriter<Block>,
    reader: DataReader<Block>,
    next: u64,
    /// How many frames are free at each end when nobody has any.
    free: [u64; 2],
}

impl Stream {
    fn new(pair: &Pair, layer: Layer, qos: impl Fn() -> Qos) -> Stream {
        Stream::with_lanes(pair, layer, qos, false)
    }

    /// The first participant may have lanes, to its own readers: both are in one process, and if both had they would not
    /// need the network.
    fn with_lanes(pair: &Pair, layer: Layer, qos: impl Fn() -> Qos, local: bool) -> Stream {
        let near = participant(pair, End::A, layer, local);
        let far = participant(pair, End::B, layer, false);
        let free = [&near, &far].map(free);
        let writer = near.topic("Block").unwrap().writer(qos()).unwrap();
        let reader = far.topic("Block").unwrap().reader(qos()).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        let mut stream = Stream { near, far, writer, reader, next: 0, free };
        // The kernel has to find out the other side's address of Ethernet.
        await_that("samples go past the kernel, both ways", || {
            let before = stream.stats();
            stream.carry();
            let after = stream.stats();
            [0, 1].iter().all(|end| after[*end].datagrams_in > before[*end].datagrams_in)
        });
        stream
    }

    fn stats(&self) -> [FrameStats; 2] {
        [&self.near, &self.far].map(|of| of.stats().frames.unwrap())
    }

    /// Writes one sample in place.
    fn lend(&mut self) {
        let mut loan = self.writer.loan().unwrap();
        loan.fill(self.next);
        loan.write().unwrap();
        self.next += 1;
    }

    /// The next sample.
    fn view(&self) -> View<Block> {
        loop {
            if let Some(view) = self.reader.take_view().unwrap() {
                return view;
            }
            self.reader.wait(LIMIT).unwrap();
        }
    }

    /// Writes a sample in place, and looks at it in place.
    fn carry(&mut self) {
        self.lend();
        assert_eq!(self.view().data().unwrap().number(), self.next - 1);
    }

    /// Waits until nobody has a frame.
    fn has_back(&self) {
        self.writer.wait_for_acknowledgments(LIMIT).unwrap();
        await_that("all frames are free", || [&self.near, &self.far].map(free) == self.free);
    }
}

/// How many frames are free.
fn free(at: &DomainParticipant) -> u64 {
    at.stats().frames.unwrap().frames_free
}

/// Times that allocations are counted.
const TRIES: u64 = 3;

/// How often `work` allocates, by the least of some times: the threads of tests that wait for this one begin meanwhile,
/// and what comes every few seconds falls into one of them.
fn allocations(mut work: impl FnMut()) -> u64 {
    let mut once = || {
        let before = CountingAllocator::of_process();
        work();
        CountingAllocator::of_process() - before
    };
    (0..TRIES).map(|_| once()).min().unwrap()
}

fn without_a_copy(pair: &Pair, layer: Layer) {
    const ROUNDS: u64 = 1_000;
    let mut stream = Stream::new(pair, layer, qos);
    let start = Instant::now();
    // The announcements in quick succession at the start are over by then.
    while start.elapsed().as_millis() < 1_500 {
        stream.carry();
    }
    let before = stream.stats();
    let allocated = allocations(|| (0..ROUNDS).for_each(|_| stream.carry()));
    let after = stream.stats();
    println!("{layer:?}: {allocated} allocations, {before:?} {after:?}");
    let since = |of: fn(&FrameStats) -> u64| [0, 1].map(|end| of(&after[end]) - of(&before[end]));
    assert_eq!(since(|of| of.copied_out), [0; 2]);
    assert_eq!(since(|of| of.copied_in), [0; 2]);
    // One in 20 s goes by the kernel, so that it looks after the way.
    let [out, _] = since(|of| of.in_place_out);
    let [_, into] = since(|of| of.in_place_in);
    let carried = ROUNDS * TRIES;
    assert!(out >= carried - 5 && into >= carried - 5, "{out} sent and {into} received in place");
    assert!(allocated < ROUNDS / 50, "{allocated} allocations");
    // In bursts, of which rows of datagrams are made.
    let mut burst = || {
        let first = stream.next;
        (0..50).for_each(|_| stream.lend());
        (first..first + 50).for_each(|number| assert_eq!(stream.view().data().unwrap().number(), number));
    };
    (0..200).for_each(|_| burst());
    let allocated = allocations(|| (0..200).for_each(|_| burst()));
    println!("{allocated} allocations of 10,000 samples in bursts, {:?}", stream.stats());
    assert!(allocated < 200, "{allocated} allocations");
    stream.has_back();
}

#[test]
fn a_loan_reaches_its_view_without_a_copy() {
    alone(|| with_pair("a_loan", ["", ""], |pair| without_a_copy(pair, Layer::Ip)));
}

#[test]
fn a_loan_reaches_its_view_without_a_copy_and_without_ip() {
    alone(|| with_pair("a_loan_bare", ["", ""], |pair| without_a_copy(pair, Layer::Bare)));
}

#[cfg(feature = "dpdk")]
#[test]
fn a_loan_reaches_its_view_without_a_copy_over_dpdk() {
    let names = ["a_loan_dpdk", "a_loan_dpdk_ipv6", "a_loan_dpdk_bare"];
    let tagged = ["a_loan_vlan", "a_loan_vlan_ipv6", "a_loan_vlan_bare"];
    for (layer, name) in dpdk(None).zip(names).chain(dpdk(Some(5)).zip(tagged)) {
        alone(|| with_pair(name, ["", ""], move |pair| without_a_copy(pair, layer)));
    }
}

#[test]
fn a_value_is_copied_into_its_frame_only() {
    alone(|| {
        with_pair("a_value", ["", ""], |pair| {
            let mut stream = Stream::new(pair, Layer::Ip, qos);
            let before = stream.stats();
            let mut block = Block { numbers: [0; 128] };
            for _ in 0..200 {
                block.fill(stream.next);
                stream.writer.write(&block).unwrap();
                assert_eq!(stream.view().data().unwrap().number(), stream.next);
                stream.next += 1;
            }
            let after = stream.stats();
            assert!(after[0].in_place_out - before[0].in_place_out >= 195, "{before:?} {after:?}");
            assert_eq!(after[0].copied_out, before[0].copied_out);
            stream.has_back();
        });
    });
}

/// What is no plain memory.
#[derive(DdsType)]
#[dds(final)]
struct Line {
    text: String,
}

#[test]
fn a_value_is_encoded_into_its_frame() {
    alone(|| {
        with_pair("encoded", ["", ""], |pair| {
            let stream = Stream::new(pair, Layer::Ip, qos);
            let writer = stream.near.topic::<Line>("Line").unwrap().writer(qos()).unwrap();
            let reader = stream.far.topic::<Line>("Line").unwrap().reader(qos()).unwrap();
            writer.wait_matched(LIMIT).unwrap();
            let before = stream.stats()[0];
            for len in (0..200).map(|round| 600 + round * 83 % 600) {
                writer.write(&Line { text: "x".repeat(len) }).unwrap();
                reader.wait(LIMIT).unwrap();
                assert_eq!(reader.take_next().unwrap().unwrap().data.unwrap().text.len(), len);
            }
            let after = stream.stats()[0];
            assert!(after.in_place_out - before.in_place_out >= 195, "{before:?} {after:?}");
            assert_eq!(after.copied_out - before.copied_out, 1, "the first one's length is not known");
            stream.has_back();
        });
    });
}

fn holds_more_than_there_is(pair: &Pair, layer: Layer) {
    let mut stream = Stream::new(pair, layer, qos);
    let before = stream.stats()[0];
    let mut held = Vec::new();
    let first = stream.next;
    while held.len() < LENT + 1_000 {
        (0..20).for_each(|_| stream.lend());
        held.extend((0..20).map(|_| stream.view()));
    }
    let [sent, full] = stream.stats();
    assert!(full.copied_in > 900, "{full:?}");
    let in_place = sent.in_place_out - before.in_place_out;
    assert!(in_place + 10 > held.len() as u64 && sent.copied_out == before.copied_out, "{before:?} {sent:?}");
    // More than there are frames: each that is not held is received into again.
    (0..3 * LENT).for_each(|_| stream.carry());
    for (number, view) in (first..).zip(&held) {
        assert_eq!(view.data().unwrap().number(), number);
    }
    drop(held);
    stream.has_back();
    let before = stream.stats()[1];
    (0..100).for_each(|_| stream.carry());
    let after = stream.stats()[1];
    assert_eq!(after.copied_in, before.copied_in, "frames are lent again");
}

#[test]
fn a_reader_that_holds_many_samples_loses_none() {
    alone(|| with_pair("holds_many", ["", ""], |pair| holds_more_than_there_is(pair, Layer::Ip)));
}

#[test]
fn a_reader_that_holds_many_samples_loses_none_without_ip() {
    alone(|| with_pair("holds_many_bare", ["", ""], |pair| holds_more_than_there_is(pair, Layer::Bare)));
}

#[cfg(feature = "dpdk")]
#[test]
fn a_reader_that_holds_many_samples_loses_none_over_dpdk() {
    for (layer, name) in dpdk(None).zip(["holds_dpdk", "holds_dpdk_ipv6", "holds_dpdk_bare"]) {
        alone(|| with_pair(name, ["", ""], move |pair| holds_more_than_there_is(pair, layer)));
    }
}

/// A history of more samples than there are frames, which a late reader gets over a cable that may lose some.
fn is_repaired(pair: &Pair, layer: Layer, least_lost: u64) {
    let transient = || qos().transient_local();
    let mut stream = Stream::new(pair, layer, transient);
    let before = stream.stats();
    let first = stream.next;
    while stream.next < first + LENT as u64 + 1_000 {
        (0..100).for_each(|_| stream.lend());
        for number in stream.next - 100..stream.next {
            assert_eq!(stream.view().data().unwrap().number(), number);
        }
    }
    let written = stream.stats();
    assert!(written[0].copied_out - before[0].copied_out > 900, "the history has all frames: {written:?}");
    let late = stream.far.topic::<Block>("Block").unwrap().reader(transient()).unwrap();
    let mut next = 0;
    while next < stream.next {
        late.wait(LIMIT).unwrap();
        while let Some(view) = late.take_view().unwrap() {
            assert_eq!(view.data().unwrap().number(), next);
            next += 1;
        }
    }
    let [sent, got] = stream.stats();
    let (out, into) =
        (sent.datagrams_out - before[0].datagrams_out, got.datagrams_in - before[1].datagrams_in);
    assert!(out.saturating_sub(into) >= least_lost, "some are lost: {sent:?} {got:?}");
    assert!(
        sent.in_place_out - written[0].in_place_out > LENT as u64 / 2,
        "the history is sent from its frames"
    );
    drop(late);
    // With its history all frames come back.
    let topic = stream.near.topic("Other").unwrap();
    stream.writer = topic.writer(qos()).unwrap();
    stream.has_back();
}

#[test]
fn what_a_history_holds_is_repaired() {
    alone(|| with_losses("is_repaired", 20, |pair| is_repaired(pair, Layer::Ip, 200)));
}

#[test]
fn what_a_history_holds_is_repaired_without_ip() {
    alone(|| with_losses("is_repaired_bare", 20, |pair| is_repaired(pair, Layer::Bare, 200)));
}

#[cfg(feature = "dpdk")]
#[test]
fn what_a_history_holds_is_repaired_over_dpdk() {
    for (layer, name) in dpdk(None).zip(["repaired_dpdk", "repaired_dpdk_ipv6", "repaired_dpdk_bare"]) {
        alone(|| with_pair(name, ["", ""], move |pair| is_repaired(pair, layer, 0)));
    }
}

#[derive(DdsType)]
#[dds(final)]
struct Blob {
    number: u32,
    bytes: Vec<u8>,
}

/// The lengths of samples that are each alone in a frame, and of some that are not.
#[test]
fn samples_of_one_frame_of_any_length_are_sent_from_where_they_lie() {
    alone(|| {
        with_pair("lengths", ["", ""], |pair| {
            let stream = Stream::new(pair, Layer::Bare, qos);
            let writer = stream.near.topic::<Blob>("Blob").unwrap().writer(qos()).unwrap();
            let reader = stream.far.topic::<Blob>("Blob").unwrap().reader(qos()).unwrap();
            writer.wait_matched(LIMIT).unwrap();
            for (number, len) in
                (1_u32..).zip([0, 10, 61, 63, 100, 255, 600, 1_015, 1_016, 1_300, 1_500, 3_000, 80_000])
            {
                let before = stream.stats()[0];
                // The number, the length and the bytes.
                let mut loan = writer.loan_bytes(8 + len).unwrap();
                loan[..4].copy_from_slice(&number.to_ne_bytes());
                loan[4..8].copy_from_slice(&(len as u32).to_ne_bytes());
                loan[8..].fill(number as u8);
                loan.write().unwrap();
                reader.wait(LIMIT).unwrap();
                let got = reader.take().unwrap().remove(0).data.unwrap();
                assert!(got.number == number && got.bytes == vec![number as u8; len], "{len} B");
                let after = stream.stats()[0];
                let counts = [after.in_place_out - before.in_place_out, after.copied_out - before.copied_out];
                let expected = match len {
                    ..57 => [0, 0],
                    57..1_400 => [1, 0],
                    // It finds a chunk, but its fragments are copied out of it.
                    1_500 => [0, 2],
                    _ => [0, 1],
                };
                assert_eq!(counts, expected, "{len} B");
            }
            writer.wait_for_acknowledgments(LIMIT).unwrap();
            stream.has_back();
        });
    });
}

/// Readers on this machine look into the lane: what goes over the network is copied once, into a frame. Without lanes
/// readers of the same participant look at the frame.
#[test]
fn a_writer_with_a_reader_on_this_machine_serves_both() {
    alone(|| {
        with_pair("serves_both", ["", ""], |pair| {
            for lanes in [true, false] {
                let mut stream = Stream::with_lanes(pair, Layer::Ip, qos, lanes);
                let own = stream.near.topic::<Block>("Block").unwrap().reader(qos()).unwrap();
                stream.writer.wait_matched_count(2, LIMIT).unwrap();
                let mut copied = |count: u64| {
                    let before = stream.stats()[0].copied_out;
                    for _ in 0..count {
                        stream.carry();
                        own.wait(LIMIT).unwrap();
                        assert_eq!(
                            own.take_view().unwrap().unwrap().data().unwrap().number(),
                            stream.next - 1
                        );
                    }
                    stream.stats()[0].copied_out - before
                };
                // Another thread may have found the match, and be about to lead the reader to the lane.
                await_that("the reader is in the lane", || !lanes || copied(1) == 1);
                assert_eq!(copied(500), if lanes { 500 } else { 0 });
                drop(own);
                stream.carry();
                stream.has_back();
            }
        });
    });
}
