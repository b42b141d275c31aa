//! Several queues of one interface.

use taut::{Config, DomainParticipant, XdpMode};
use taut_testbed::{End, LIMIT, Pair, with_pair};

use crate::{SIZES, Stream, config};

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
