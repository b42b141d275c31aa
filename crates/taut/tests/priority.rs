//! TRANSPORT_PRIORITY on the network: the marks of datagrams, heard by somebody who only listens.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use socket2::{Domain, Socket, Type};
use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

const DOMAIN: u32 = 75;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// Where samples to several participants go: RTPS 2.5 §9.6.2.3, with PB 7400, DG 250, d2 1.
const PORT: u16 = 7_400 + 250 * DOMAIN as u16 + 1;
const SOON: Duration = Duration::from_secs(10);
const SAMPLES: usize = 50;

#[derive(DdsType)]
#[dds(final)]
struct Text {
    text: String,
}

/// Hears what goes to the group, with its marks.
fn listener() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&SocketAddrV4::new(GROUP, PORT).into()).unwrap();
    socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST).unwrap();
    socket.set_recv_tos_v4(true).unwrap();
    socket.set_read_timeout(Some(SOON.into())).unwrap();
    socket
}

/// The next datagram and its code point.
fn hear(socket: &Socket) -> (Vec<u8>, u8) {
    let (mut bytes, mut space) = (vec![0; 65_536], nix::cmsg_space!(u8));
    let (len, mark) = {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty());
        let message = message.expect("nothing more comes");
        let mark = message.cmsgs().unwrap().find_map(|said| match said {
            ControlMessageOwned::Ipv4Tos(tos) => Some(tos >> 2),
            _ => None,
        });
        (message.bytes, mark.unwrap())
    };
    bytes.truncate(len);
    (bytes, mark)
}

#[test]
fn samples_carry_the_mark_of_their_writers_priority() {
    let config = Config { domain_id: DOMAIN, local: false, dscp: 8, ..Config::default() };
    let config = Config { interfaces: vec!["lo".into()], ..config };
    let new = || DomainParticipant::with_config(&config).unwrap();
    let (writes, readers) = (new(), [new(), new()]);
    let qos = |priority| Qos::default().best_effort().transport_priority(priority);
    // What is written, the priority of its writer, and its mark.
    let kinds = [("LOW", -1, 8), ("USUAL", 0, 8), ("QUICK", 1, 18), ("URGENT", 200, 46)];
    let mut ends = Vec::new();
    for (text, priority, _) in kinds {
        let writer = writes.topic::<Text>(text).unwrap().writer(qos(priority)).unwrap();
        let reads = readers.each_ref().map(|one| one.topic::<Text>(text).unwrap().reader(qos(0)).unwrap());
        writer.wait_matched_count(2, SOON).unwrap();
        ends.push((writer, reads));
    }
    let listener = listener();
    for _ in 0..SAMPLES {
        for ((text, ..), (writer, _)) in kinds.iter().zip(&ends) {
            writer.write(&Text { text: format!("sample {text}") }).unwrap();
        }
    }
    let mut heard = [0; 4];
    while heard != [SAMPLES; 4] {
        let (bytes, mark) = hear(&listener);
        let count = |text: &str| {
            let wanted = format!("sample {text}\0");
            bytes.windows(wanted.len()).filter(|part| *part == wanted.as_bytes()).count()
        };
        let counts = kinds.map(|(text, ..)| count(text));
        assert!(counts.iter().filter(|count| **count > 0).count() <= 1, "they share a datagram: {counts:?}");
        for ((heard, count), (text, _, wanted)) in heard.iter_mut().zip(counts).zip(kinds) {
            assert!(count == 0 || mark == wanted, "{text}: {mark} instead of {wanted}");
            *heard += count;
        }
    }
}
