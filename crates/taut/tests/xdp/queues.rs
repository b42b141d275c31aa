//! Several queues of one interface.

use taut::{Config, DdsType, DomainParticipant, XdpMode};
use taut_testbed::{End, LIMIT, Pair, await_that, with_pair};

use crate::{SIZES, Stream, config, participant, qos};

fn with_queues(pair: &Pair, end: End, queues: &[u32]) -> DomainParticipant {
    pair.enter(end);
    let config = Config { xdp_queues: queues.to_vec(), ..config(end, Some(XdpMode::Native)) };
    DomainParticipant::with_config(&config).unwrap()
}

/// What a queue of veth sends comes by the queue of the same number.
#[test]
fn frames_come_by_all_of_them_and_go_by_the_first() {
    let words = "numrxqueues 2 numtxqueues 2";
    with_pair("frames_come_by_all_of_them_and_go_by_the_first", [words, words], |pair| {
        for queue in [1, 0] {
            let near = with_queues(pair, End::A, &[queue]);
            let far = with_queues(pair, End::B, &[0, 1]);
            let mut stream = Stream::new([near, far]);
            stream.is_past_kernel(0);
            stream.is_past_kernel(1);
            stream.answers_go_past_kernel();
            stream.carries(&SIZES);
            stream.writer.wait_for_acknowledgments(LIMIT).unwrap();
            let [near, far] = stream.participants.each_ref().map(|of| of.stats().frames.unwrap());
            assert!(far.bytes_in >= SIZES.iter().sum::<usize>() as u64, "queue {queue}: {far:?}");
            assert_eq!([far.malformed, far.damaged, far.errors], [0; 3], "queue {queue}: {far:?}");
            // The answers come by queue 0: who has not got it has them from its sockets.
            assert_eq!(near.datagrams_in > 0, queue == 0, "queue {queue}: {near:?}");
            drop(stream);
            End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
        }
    });
}

/// A sample of a plain type, which is written into the frame that is sent.
#[derive(DdsType, Clone, Copy, taut::cdr::bytemuck::Pod, taut::cdr::bytemuck::Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Block {
    numbers: [u64; 128],
}

/// Samples of each writer. A few may take the kernel's way, for which the kernel looks after a neighbour.
const SAMPLES: u64 = 1_000;
const BY_KERNEL: u64 = 10;

/// Frames of other writers.
const STRAYS: u64 = 10;

/// Frames that each queue has sent.
fn sent(of: &DomainParticipant) -> Vec<(u32, u64)> {
    of.stats().xdp.unwrap().queues.iter().map(|of| (of.queue, of.frames_out)).collect()
}

/// A writer of each priority sends by the queue at the place that is given for it, and by no other.
fn goes_by(queues: &'static [u32], dscp: u8, places: &'static [(i32, usize)]) {
    let words = "numrxqueues 3 numtxqueues 3";
    with_pair("what_is_urgent_goes_by_a_queue_of_its_own", [words, words], move |pair| {
        pair.enter(End::A);
        let xdp_queues = queues.to_vec();
        let config = Config { xdp_queues, dscp, ..config(End::A, Some(XdpMode::Native)) };
        let near = DomainParticipant::with_config(&config).unwrap();
        let far = participant(pair, End::B, None);
        for (priority, place) in places {
            let qos = || qos().transport_priority(*priority);
            let name = format!("Block{priority}");
            let writer = near.topic::<Block>(&name).unwrap().writer(qos()).unwrap();
            let reader = far.topic::<Block>(&name).unwrap().reader(qos()).unwrap();
            writer.wait_matched(LIMIT).unwrap();
            let write = || {
                let mut loan = writer.loan().unwrap();
                loan.numbers = [7; 128];
                loan.write().unwrap();
            };
            await_that("its samples go past the kernel", || {
                let before = near.stats().frames.unwrap().datagrams_out;
                write();
                near.stats().frames.unwrap().datagrams_out > before
            });
            let (before, frames_before) = (sent(&near), near.stats().frames.unwrap());
            for _ in 0..SAMPLES {
                write();
                drop(reader.take_view());
            }
            let went = || -> Vec<u64> {
                before.iter().zip(&sent(&near)).map(|(before, after)| after.1 - before.1).collect()
            };
            // What of the writer before comes after its acknowledgements is not of the samples.
            writer.wait_for_acknowledgments(LIMIT).unwrap();
            let (went, frames) = (went(), near.stats().frames.unwrap());
            let told = format!("priority {priority}: {went:?}, {frames:?}");
            assert!(went[*place] >= SAMPLES - BY_KERNEL, "{told}");
            assert!(went.iter().sum::<u64>() - went[*place] <= STRAYS, "{told}");
            // It lies in a frame of that queue.
            assert!(frames.in_place_out - frames_before.in_place_out >= SAMPLES - BY_KERNEL, "{told}");
        }
        assert!(sent(&near).iter().map(|(queue, _)| queue).eq(queues));
    });
}

#[test]
fn what_is_urgent_goes_by_a_queue_of_its_own() {
    goes_by(&[0, 2], 0, &[(0, 0), (99, 0), (100, 1), (i32::MAX, 1), (-1, 0)]);
    goes_by(&[2, 0, 1], 0, &[(0, 0), (1, 1), (99, 1), (100, 2)]);
    goes_by(&[1], 0, &[(100, 0), (0, 0)]);
    // All that such a participant sends is so, from the first on.
    goes_by(&[0, 1], 46, &[(0, 1), (100, 1), (10, 0)]);
}
