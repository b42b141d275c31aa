//! Critical endpoints past the kernel, and all else by sockets.

use taut::{Config, DataReader, DataWriter, DomainParticipant, FrameStats, XdpMode};
use taut_testbed::{End, LIMIT, await_that, with_pair};

use crate::{Blob, config, participant, qos};

/// One that no participant of domain 0 has by itself.
const PORT: u16 = 7_402;
const SAMPLES: u64 = 200;
/// What of the samples before is still on its way, and what goes by the kernel so that it looks after the neighbour.
const STRAYS: u64 = 5;

/// What goes one way between two participants with some priority.
struct Way {
    writer: DataWriter<Blob>,
    reader: DataReader<Blob>,
    next: u32,
}

impl Way {
    fn new(name: &str, writes: &DomainParticipant, reads: &DomainParticipant, priority: i32) -> Way {
        let (name, qos) = (format!("{name}{priority}"), || qos().transport_priority(priority));
        let writer = writes.topic::<Blob>(&name).unwrap().writer(qos()).unwrap();
        let reader = reads.topic::<Blob>(&name).unwrap().reader(qos()).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        Way { writer, reader, next: 0 }
    }

    fn carries(&mut self, len: usize) {
        let blob = Blob::new(self.next, len);
        self.next += 1;
        self.writer.write(&blob).unwrap();
        self.reader.wait(LIMIT).unwrap();
        assert_eq!(self.reader.take_next().unwrap().unwrap().data, Some(blob));
        self.writer.wait_for_acknowledgments(LIMIT).unwrap();
    }

    /// Datagrams past the kernel, in and out, while samples are carried.
    fn past_kernel(&mut self, own: &DomainParticipant) -> (u64, u64) {
        let counts = |stats: FrameStats| (stats.datagrams_in, stats.datagrams_out);
        let before = counts(own.stats().frames.unwrap());
        (0..SAMPLES).for_each(|_| self.carries(1_000));
        let after = counts(own.stats().frames.unwrap());
        (after.0 - before.0, after.1 - before.1)
    }
}

/// The peer has sockets, and knows nothing of it.
#[test]
fn only_what_is_critical_goes_past_the_kernel() {
    with_pair("only_what_is_critical_goes_past_the_kernel", ["", ""], |pair| {
        let far = participant(pair, End::B, None);
        pair.enter(End::A);
        let critical =
            Config { critical_port: PORT, xdp_only_critical: true, ..config(End::A, Some(XdpMode::Native)) };
        let own = DomainParticipant::with_config(&critical).unwrap();
        let mut out = [99, 100].map(|priority| Way::new("Out", &own, &far, priority));
        let mut into = [99, 100].map(|priority| Way::new("In", &far, &own, priority));
        await_that("the way to the peer is known", || {
            let before = own.stats().frames.unwrap().datagrams_out;
            out[1].carries(10);
            own.stats().frames.unwrap().datagrams_out > before
        });
        for (ways, name) in [(&mut out, "out"), (&mut into, "in")] {
            let (came, went) = ways[0].past_kernel(&own);
            assert!(came <= STRAYS && went <= STRAYS, "{name}, by sockets: {came}, {went}");
        }
        let (acknowledged, sent) = out[1].past_kernel(&own);
        assert!(sent >= SAMPLES - STRAYS && acknowledged >= SAMPLES, "out: {sent}, {acknowledged}");
        let (received, answered) = into[1].past_kernel(&own);
        // Acknowledgements have the priority of the participant.
        assert!(received >= SAMPLES && answered <= STRAYS, "in: {received}, {answered}");
        // Fragments, and what is larger than the interface takes.
        (0..3).for_each(|_| out.iter_mut().chain(&mut into).for_each(|way| way.carries(100_000)));
    });
}
