//! More participants of one interface than it has queues.

use taut::{DomainParticipant, XdpMode};
use taut_testbed::{End, LIMIT, await_that, with_pair};

use crate::{SIZES, Stream, config, participant, qos};

/// The second one is refused, is told what to do, and does it: it goes by sockets, and the first one past the kernel as
/// before.
#[test]
fn a_second_one_goes_by_sockets() {
    with_pair("a_second_one_goes_by_sockets", ["", ""], |pair| {
        let first = participant(pair, End::A, Some(XdpMode::Native));
        let mut stream = Stream::new([first, participant(pair, End::B, None)]);
        stream.is_past_kernel(0);
        pair.enter(End::A);
        let text = DomainParticipant::with_config(&config(End::A, Some(XdpMode::Native)));
        let text = text.map(drop).unwrap_err().to_string();
        for part in ["another XDP program is attached to xa", "`taut netd`", "or stay with UDP"] {
            assert!(text.contains(part), "{text}");
        }
        let second = participant(pair, End::A, None);
        assert_eq!((second.stats().xdp, second.stats().frames), (None, None));
        let writer = second.topic("Other").unwrap().writer(qos()).unwrap();
        let reader = stream.participants[1].topic("Other").unwrap().reader(qos()).unwrap();
        writer.wait_matched(LIMIT).unwrap();
        for (number, len) in (0..).zip(SIZES) {
            let blob = crate::Blob::new(number, len);
            writer.write(&blob).unwrap();
            await_that("it comes by sockets", || {
                reader.take().unwrap().iter().any(|sample| sample.data.as_ref() == Some(&blob))
            });
            stream.carries(&SIZES);
        }
        stream.is_past_kernel(0);
        assert!(pair.has_program(End::A));
    });
}
