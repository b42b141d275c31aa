//! A message whose descriptors find no place, in a process of its own: the limit of open files is for all threads.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use taut_port_xdp::netd::{CROWDED, Connection, Granted, Layout, Message, Received};

#[test]
fn what_finds_no_place_is_not_taken_for_too_much() {
    let (own, other) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let [own, other] = [own, other].map(Connection::of);
    let null = File::open("/dev/null").unwrap();
    let granted = Message::Queue(Granted { queue: 0, layout: Layout::of(1_500) });
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let free = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    for places in 0..=2 {
        other.send(&granted, &[null.as_fd(); 2]).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, free + places, hard).unwrap();
        let received = own.receive();
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        match received {
            Received::Crowded(fds) => assert!(fds.len() as u64 == places && places < 2),
            Received::Message(_, fds) => assert!(fds.len() == 2 && places == 2),
            other => panic!("{other:?}"),
        }
    }
    assert!(CROWDED.ends_with("raise the limit of open files (`ulimit -n`)"));
}
