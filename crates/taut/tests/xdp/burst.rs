//! How much of a burst leaves together.

use std::time::Instant;

use taut::{DomainParticipant, PublisherQos, XdpMode};
use taut_testbed::{End, LIMIT, with_pair};

use crate::{Blob, Stream, participant, qos};

/// Each is a frame of its own: more than wait for each other, and fewer than fill the largest datagram.
const COUNT: u32 = 28;

fn sent(by: &DomainParticipant) -> u64 {
    by.stats().frames.unwrap().datagrams_out
}

/// The first of them are on their way before all are written, so that who receives them does not fall asleep meanwhile.
#[test]
fn a_burst_leaves_in_short_rows_of_frames() {
    with_pair("a_burst_leaves_in_short_rows", ["", ""], |pair| {
        let mut stream = Stream::new(End::BOTH.map(|end| participant(pair, end, Some(XdpMode::Native))));
        stream.is_past_kernel(0);
        let publisher = stream.participants[0].publisher(PublisherQos::default());
        let topic = stream.participants[0].topic::<Blob>("Blob").unwrap();
        stream.writer = publisher.writer(&topic, qos().writer).unwrap();
        stream.writer.wait_matched(LIMIT).unwrap();
        let until = Instant::now() + LIMIT;
        loop {
            publisher.suspend_publications();
            let before = sent(&stream.participants[0]);
            (0..COUNT).for_each(|number| stream.writer.write(&Blob::new(number, 1_024)).unwrap());
            let waited = sent(&stream.participants[0]) - before;
            publisher.resume_publications().unwrap();
            let resumed = sent(&stream.participants[0]) - before;
            for number in 0..COUNT {
                stream.reader.wait(LIMIT).unwrap();
                let sample = stream.reader.take_next().unwrap().and_then(|sample| sample.data);
                assert_eq!(sample, Some(Blob::new(number, 1_024)));
            }
            if (10..COUNT.into()).contains(&waited) && resumed >= COUNT.into() {
                break;
            }
            // Nothing waits while nobody drives: the thread that does leaves that to who takes samples, for a while.
            assert!(Instant::now() < until, "{waited} and {resumed}");
        }
    });
}
