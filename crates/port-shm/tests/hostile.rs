//! A peer that sends whatever it likes: every packet is a reason, and no descriptor stays open.

mod common;

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use common::{Role, descriptors, role, say, unused_prefix};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, sendmsg, socket_with,
};
use taut_base::Rng;
use taut_port_shm::{Connection, Hostile, Listener, Malformed, Received, Waker};

/// More descriptors than the kernel passes in one packet are none.
const MOST: usize = 64;

#[test]
fn child() {
    let Some(role) = role() else { return };
    match role.first().map(String::as_str) {
        Some("packets") => packets(),
        Some("noise") => noise(),
        _ => panic!("no role {role:?}"),
    }
}

#[test]
fn each_wrong_packet_has_its_reason_and_leaves_no_descriptor() {
    Role::alone("packets");
}

#[test]
fn noise_is_never_more_than_a_reason() {
    Role::alone("noise");
}

/// Both ends of a connection, ours and one that is only a socket.
fn ends(listener: &mut Listener, name: &str) -> (Connection, OwnedFd) {
    let raw = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    connect(&raw, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    let connection = listener.accept().unwrap().expect("it waits");
    connection.welcome();
    (connection, raw)
}

fn send(raw: &OwnedFd, bytes: &[u8], count: usize) {
    try_send(raw, bytes, count).unwrap();
}

fn try_send(raw: &OwnedFd, bytes: &[u8], count: usize) -> Result<(), Errno> {
    let waker = Waker::new().unwrap();
    let fds = vec![waker.fd(); count];
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if count > 0 {
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    }
    sendmsg(raw, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).map(drop)
}

/// What somebody has passed is closed by whoever accepts, which may take as long as the passed one likes.
#[test]
fn who_is_not_welcome_passes_nothing() {
    if !can_refuse() {
        return println!("LEFT OUT: Linux before 6.16 has no SO_PASSRIGHTS");
    }
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let raw = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    connect(&raw, &SocketAddrUnix::new_abstract_name(format!("taut-shm/{prefix}").as_bytes()).unwrap())
        .unwrap();
    assert_eq!(try_send(&raw, b"x", 1), Err(Errno::PERM), "in the queue of who listens");
    let connection = listener.accept().unwrap().expect("it waits");
    assert_eq!(try_send(&raw, b"x", 1), Err(Errno::PERM), "nobody has looked who it is");
    assert!(matches!(connection.receive(), Received::Empty));
    connection.welcome();
    assert_eq!(try_send(&raw, b"x", 1), Ok(()));
}

/// Can it be chosen who passes descriptors? Linux 6.16.
fn can_refuse() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 16)
}

fn packets() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let (connection, raw) = ends(&mut listener, &format!("taut-shm/{prefix}"));
    let open = descriptors();
    let mut hello = vec![3, 1];
    hello.extend([0; 29]);
    let cases: [(&[u8], usize, Hostile); 9] = [
        (&[3], 0, Hostile::Malformed(Malformed::Length(1))),
        (&[1, 1], 4, Hostile::Malformed(Malformed::Version(1))),
        (&[3, 77], 1, Hostile::Malformed(Malformed::Kind(77))),
        (&hello[..30], 2, Hostile::Malformed(Malformed::Length(30))),
        (&[2; 4096], 2, Hostile::TooLong),
        (&hello, 0, Hostile::Descriptors { expected: 2, found: 0 }),
        (&hello, 3, Hostile::Descriptors { expected: 2, found: 3 }),
        (&[3, 6], 1, Hostile::Descriptors { expected: 0, found: 1 }),
        (&hello, MOST, Hostile::DescriptorsCut),
    ];
    for (bytes, count, reason) in cases {
        send(&raw, bytes, count);
        match connection.receive() {
            Received::Hostile(found) => assert_eq!(found, reason),
            other => panic!("{reason}: {other:?}"),
        }
        assert_eq!(descriptors(), open, "{reason}");
    }
    send(&raw, &hello, 2);
    assert!(matches!(connection.receive(), Received::Message(..)), "an honest one still comes through");
    send(&raw, &[], 4);
    assert!(matches!(connection.receive(), Received::Gone), "an empty packet is as good as an end");
    assert_eq!(descriptors(), open);
    say("done");
}

fn noise() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let (connection, raw) = ends(&mut listener, &format!("taut-shm/{prefix}"));
    let open = descriptors();
    let seed = 41;
    let mut rng = Rng::new(seed);
    let (mut messages, mut hostile) = (0, 0);
    for round in 0..20_000 {
        let len = 1 + (rng.next_u64() % 60) as usize;
        let mut bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        if !rng.next_u64().is_multiple_of(4) {
            bytes[0] = 3;
            bytes.iter_mut().skip(1).take(1).for_each(|kind| *kind %= 8);
        }
        let length = [2, 31, 34, 42, 35, 34, 2][(rng.next_u64() % 7) as usize];
        if rng.next_u64().is_multiple_of(2) {
            bytes.resize(length, 0);
        }
        send(&raw, &bytes, (rng.next_u64() % 7) as usize);
        match connection.receive() {
            Received::Message(message, fds) => {
                assert_eq!(message.descriptors(), fds.len(), "seed {seed} round {round}");
                messages += 1;
            }
            Received::Hostile(_) => hostile += 1,
            other => panic!("seed {seed} round {round}: {other:?}"),
        }
    }
    assert_eq!(descriptors(), open);
    assert!(messages > 100 && hostile > 1_000, "{messages} messages, {hostile} refused");
    say("done");
}
