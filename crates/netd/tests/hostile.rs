//! Clients that break the rules, lie, or do nothing: none of them keeps netd from the others.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

mod common;

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg};
use taut_port_xdp::netd::{Connection, Message, Received, pass_rights};
use taut_testbed::{End, LIMIT, await_that, ip, while_none_starts, with_pair};

use common::{PORT, Running, bound, comes_by_the_kernel, dropped, granted, next, receive, refusal, take};

fn send_bytes(client: &Connection, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(100))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    sendmsg(client.fd(), &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// How many descriptors of this process are of the same socket, which nobody else has.
fn how_often_open(socket: &UnixDatagram) -> usize {
    let own = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|path| path == own)).count()
}

#[test]
fn who_breaks_the_rules_is_dropped() {
    with_pair("who_breaks_the_rules_is_dropped", ["numrxqueues 2 numtxqueues 2"; 2], |pair| {
        let netd = Running::start(pair, "rules");
        netd.serves(0);
        let (other, socket) =
            (UnixDatagram::unbound().unwrap(), UdpSocket::bind(("0.0.0.0", PORT + 2)).unwrap());
        let whole = take(0).encode();
        let longer = [0x5a; 20_000];
        let hundred = vec![other.as_fd(); 100];
        let cases: Vec<(&[u8], &[BorrowedFd<'_>])> = vec![
            (b"GET / HTTP/1.1\r\n\r\n", &[]),
            (&[0], &[]),
            (&whole[..5], &hundred[..1]),
            (&longer, &[]),
            (&whole, &[]),
            (&whole, &hundred),
            (&whole, &hundred[..3]),
            (&whole, &hundred[..1]),
            (&whole, &hundred[..2]),
        ];
        for round in 0..20 {
            for (bytes, fds) in &cases {
                let client = netd.connect();
                send_bytes(&client, bytes, fds);
                assert!(dropped(&client).contains("dropped: "), "{round}");
                // Who keeps too many of them waiting to be closed is refused.
                await_that("nothing of it is left open", || how_often_open(&other) == 1);
            }
            for message in [Message::Receive { ends: Vec::new() }, Message::Receiving] {
                let client = netd.connect();
                client.send(&message, &[]).unwrap();
                assert!(dropped(&client).contains("out of turn"));
            }
        }
        // To have a queue and ask for another one is out of turn.
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        client.send(&take(1), &[socket.as_fd()]).unwrap();
        assert!(dropped(&client).contains("Take out of turn"));
        netd.serves(1);
        let counts = netd.end();
        assert_eq!((counts.hostile, counts.granted), (20 * 11 + 1, 3), "{counts:?}");
        assert!(counts.untold > 100, "{counts:?}");
    });
}

#[test]
fn who_asks_for_what_is_not_its_own() {
    with_pair("who_asks_for_what_is_not_its_own", ["", ""], |pair| {
        let netd = Running::start(pair, "own");
        let ask = |socket: &UdpSocket| {
            let client = netd.connect();
            client.send(&take(0), &[socket.as_fd()]).unwrap();
            refusal(&client)
        };
        pair.enter(End::B);
        let elsewhere = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
        pair.enter(End::A);
        assert!(ask(&elsewhere).contains("another network namespace"));
        let discovery = UdpSocket::bind(("0.0.0.0", PORT - 1)).unwrap();
        assert!(ask(&discovery).contains("port 7410 is that of no participant"));
        let of_domain_1 = UdpSocket::bind(("0.0.0.0", 7_661)).unwrap();
        assert!(ask(&of_domain_1).contains("has domain 1"));
        let unbound: OwnedFd =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
                .unwrap();
        assert!(ask(&unbound.into()).contains("bound to no port"));

        // It has a queue, and wants what is not shown.
        let own = bound(0);
        let client = netd.connect();
        let (messages, fds) = granted(&client, &own, 0);
        assert_eq!((messages.len(), fds.len()), (2, 2));
        let receive = |end: &str| {
            let end: SocketAddr = end.parse().unwrap();
            client.send(&Message::Receive { ends: vec![end] }, &[]).unwrap();
            next(&client).unwrap().0
        };
        let refused = |end: &str, part: &str| match receive(end) {
            Message::Refused { why } => assert!(why.contains(part), "{why}"),
            other => panic!("{end}: {other:?}"),
        };
        refused("10.88.0.2:7411", "xa has no address 10.88.0.2");
        refused("10.88.0.1:7413", "10.88.0.1:7413 is not shown");
        refused("127.0.0.1:7411", "xa has no address 127.0.0.1");
        refused("239.255.0.1:7411", "xa has no address");
        assert_eq!(receive("10.88.0.1:7411"), Message::Receiving);
        ip("addr add 10.88.0.7/24 dev xa");
        refused("10.88.0.7:7411", "is not shown");
        assert_eq!(receive("10.88.0.1:7411"), Message::Receiving);
        drop(client);
    });
}

/// Who says nothing when its address has moved to another interface gets nothing there past the kernel any more.
#[test]
fn who_keeps_an_address_that_has_moved() {
    with_pair("who_keeps_an_address_that_has_moved", ["", ""], |pair| {
        let netd = Running::start(pair, "moved");
        let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(receive(&client, &["10.88.0.1"]), Message::Receiving);
        pair.enter(End::B);
        let sender = UdpSocket::bind(("10.88.0.2", PORT)).unwrap();
        pair.enter(End::A);
        let comes_by_the_kernel = || comes_by_the_kernel(&sender, &socket, "10.88.0.1");
        await_that("it goes past the kernel", || !comes_by_the_kernel());
        ip("addr del 10.88.0.1/24 dev xa");
        ip("addr add 10.88.0.1/32 dev lo");
        ip("route add 10.88.0.0/24 dev xa");
        await_that("it goes by the kernel", comes_by_the_kernel);
        // When it is back nobody has anything new to say either.
        ip("addr del 10.88.0.1/32 dev lo");
        ip("addr add 10.88.0.1/24 dev xa");
        await_that("it goes past the kernel again", || !comes_by_the_kernel());
        assert!(matches!(client.receive(), Received::Empty), "it is served still");
        assert_eq!(netd.end().hostile, 0);
    });
}

/// Nobody has anything new to say when the interface has got an address that was asked for too early.
#[test]
fn who_asks_for_an_address_before_it_is_there() {
    with_pair("an_address_before_it_is_there", ["", ""], |pair| {
        let netd = Running::start(pair, "early");
        let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        let answer = receive(&client, &["10.88.0.7", "10.88.0.1"]);
        assert!(
            matches!(&answer, Message::Refused { why } if why.contains("no address 10.88.0.7")),
            "{answer:?}"
        );
        pair.enter(End::B);
        let sender = UdpSocket::bind(("10.88.0.2", PORT)).unwrap();
        pair.enter(End::A);
        let comes_by_the_kernel = |to| comes_by_the_kernel(&sender, &socket, to);
        await_that("what is there goes past the kernel", || !comes_by_the_kernel("10.88.0.1"));
        ip("addr add 10.88.0.7/24 dev xa");
        await_that("it goes past the kernel", || !comes_by_the_kernel("10.88.0.7"));
        // Who no longer wants it does not get it.
        assert_eq!(receive(&client, &["10.88.0.1"]), Message::Receiving);
        await_that("it goes by the kernel", || comes_by_the_kernel("10.88.0.7"));
        assert_eq!(netd.end().hostile, 0);
    });
}

/// A socket to which the kernel gave a port can give it up, and somebody else have it.
#[test]
fn who_gives_its_port_up() {
    with_pair("who_gives_its_port_up", ["", ""], |pair| {
        pair.enter(End::A);
        std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", format!("{PORT} {PORT}")).unwrap();
        let netd = Running::start(pair, "up");
        let socket: OwnedFd =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
                .unwrap();
        let socket = UdpSocket::from(socket);
        socket.connect(("10.88.0.2", 9)).unwrap();
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(matches!(client.receive_within(Duration::from_millis(1_500)), Received::Empty));
        rustix::net::connect_unspec(&socket).unwrap();
        assert!(dropped(&client).contains("given up the port"));
        assert_eq!(netd.end().hostile, 1);
    });
}

#[test]
fn who_does_nothing_is_dropped() {
    with_pair("who_does_nothing_is_dropped", ["", ""], |pair| {
        let netd = Running::start(pair, "nothing");
        let idle: Vec<Connection> = (0..64).map(|_| netd.connect()).collect();
        let one_more = Connection::connect(&netd.path).unwrap();
        assert!(refusal(&one_more).contains("64 of a user at most"));
        assert!(next(&one_more).is_none());
        for client in &idle {
            assert!(dropped(client).contains("does not say what it wants"), "after two seconds");
        }
        netd.serves(0);
        let turns = netd.turns.load(Ordering::Relaxed);
        let counts = netd.end();
        assert_eq!((counts.stalled, counts.refused), (64, 1), "{counts:?}");
        assert!(turns < 5_000, "it sleeps meanwhile: {turns}");
    });
}

/// What one asks again and again is answered so often and no more, and netd sleeps meanwhile.
#[test]
fn who_asks_again_and_again_waits() {
    with_pair("who_asks_again_and_again_waits", ["numrxqueues 2 numtxqueues 2"; 2], |pair| {
        let netd = Running::start(pair, "again");
        let socket = bound(1);
        let client = netd.connect();
        let (messages, fds) = granted(&client, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        let begun = Instant::now();
        let turns = netd.turns.load(Ordering::Relaxed);
        let ask = || (0..30).for_each(|_| client.send(&Message::Receive { ends: Vec::new() }, &[]).unwrap());
        ask();
        netd.serves(1);
        for _ in 0..30 {
            assert_eq!(next(&client).map(|(message, _)| message), Some(Message::Receiving));
        }
        assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
        let turns = netd.turns.load(Ordering::Relaxed) - turns;
        assert!(turns < 5_000, "it sleeps meanwhile: {turns}");
        // That it has gone is heard at once.
        ask();
        drop((client, fds));
        netd.serves(0);
        assert_eq!(netd.end().hostile, 0);
    });
}

/// Nor does a connection for each of them help; whoever is not heard meanwhile is not late.
#[test]
fn who_asks_by_ever_new_connections_waits() {
    with_pair("who_asks_by_ever_new_connections_waits", ["numrxqueues 2 numtxqueues 2"; 2], |pair| {
        let netd = Running::start(pair, "new");
        let unbound = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        let begun = Instant::now();
        let ask = |_| {
            let client = netd.connect();
            client.send(&take(0), &[unbound.as_fd()]).unwrap();
            client
        };
        let clients: Vec<Connection> = (0..45).map(ask).collect();
        for client in &clients {
            assert!(refusal(client).contains("bound to no port"));
        }
        assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
        netd.serves(0);
        let counts = netd.end();
        assert_eq!((counts.refused, counts.stalled), (45, 0), "{counts:?}");
    });
}

/// Who closes this waits, until the other one is closed: it has sent what nobody reads, and asked to. For longer than any
/// test does for what comes.
fn slow_to_close(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&stream, Some(3 * LIMIT)).unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.write(&[0; 65_536]).is_ok() {}
    (stream, other)
}

#[test]
fn what_waits_to_be_closed_holds_up_nobody() {
    with_pair("what_waits_to_be_closed_holds_up_nobody", ["", ""], |pair| {
        let netd = Running::start(pair, "close");
        // A child of another test that has the socket, too, would be the last to close it.
        while_none_starts(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (stream, _other) = slow_to_close(&listener);
            let client = netd.connect();
            netd.is_last_to_close(stream, &client);
            netd.serves(0);
            assert!(dropped(&client).contains("no socket of UDP"));
            assert_eq!(netd.end().hostile, 1);
        });
    });
}

/// What nobody has received when its connection is closed is closed with it.
#[test]
fn what_waits_unread_to_be_closed_holds_up_nobody() {
    with_pair("what_waits_unread_to_be_closed_holds_up_nobody", ["", ""], |pair| {
        let netd = Running::start(pair, "unread");
        // A child of another test that has the socket, too, would be the last to close it.
        while_none_starts(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (stream, _other) = slow_to_close(&listener);
            let client = netd.connect();
            netd.while_held(|| {
                // The first is hostile, and ends the connection with the second in it.
                send_bytes(&client, b"GET / HTTP/1.1\r\n\r\n", &[]);
                send_bytes(&client, b"x", &[stream.as_fd()]);
            });
            drop(stream);
            netd.serves(0);
            assert!(dropped(&client).contains("dropped: "), "it is told at once");
            assert_eq!(netd.end().hostile, 1);
        });
    });
}

/// Those who had connected before too much of their user's waited cannot pass more.
#[test]
fn how_many_descriptors_of_a_user_wait() {
    with_pair("how_many_descriptors_of_a_user_wait", ["", ""], |pair| {
        let netd = Running::start(pair, "wait");
        // A child of another test that has the socket, too, would be the last to close it.
        while_none_starts(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (stream, _other) = slow_to_close(&listener);
            let clients: Vec<Connection> = (0..4).map(|_| netd.connect()).collect();
            netd.is_last_to_close(stream, &clients[0]);
            while let Some((message, _)) = next(&clients[0]) {
                assert!(matches!(message, Message::Refused { .. }), "{message:?}");
            }
            let other = UnixDatagram::unbound().unwrap();
            for client in &clients[1..3] {
                send_bytes(client, b"x", &vec![other.as_fd(); 100]);
                while next(client).is_some() {}
            }
            assert!(how_often_open(&other) > 100, "they wait behind the first");
            send_bytes(&clients[3], b"x", &vec![other.as_fd(); 100]);
            assert!(refusal(&clients[3]).contains("still being closed"));
            assert_eq!(netd.end().hostile, 3);
        });
    });
}

/// Who is not served cannot have netd close anything.
#[test]
fn who_is_not_welcome_passes_nothing() {
    with_pair("who_is_not_welcome_passes_nothing", ["", ""], |pair| {
        let netd = Running::start(pair, "welcome");
        if pass_rights(Connection::connect(&netd.path).unwrap().fd(), false).is_err() {
            return println!("LEFT OUT: Linux before 6.16 has no SO_PASSRIGHTS");
        }
        let _idle: Vec<Connection> = (0..64).map(|_| netd.connect()).collect();
        let one_more = Connection::connect(&netd.path).unwrap();
        let socket = bound(0);
        let refused = one_more.send(&take(0), &[socket.as_fd()]).unwrap_err();
        // It may be gone already.
        assert!([Errno::PERM, Errno::PIPE, Errno::CONNRESET].contains(&refused), "{refused}");
        assert!(refusal(&one_more).contains("64 of a user at most"));
    });
}

/// Two sockets that share a port show whose it is only if they are one user's.
#[test]
fn who_shares_its_port_with_another_user() {
    with_pair("who_shares_its_port_with_another_user", ["", ""], |pair| {
        let netd = Running::start(pair, "shares");
        let shared = || {
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
            rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
            rustix::net::bind(&socket, &SocketAddr::from(([10, 88, 0, 1], PORT))).unwrap();
            socket
        };
        let own = shared();
        let client = netd.connect();
        let (messages, _fds) = granted(&client, &UdpSocket::from(own.try_clone().unwrap()), 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        // The user of a socket is whom its maker acts as for files.
        let stranger = std::thread::spawn(move || {
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(4_242));
            shared()
        });
        let _stranger = stranger.join().unwrap();
        assert!(dropped(&client).contains("shared with user 4242"));
        let again = netd.connect();
        again.send(&take(0), &[own.as_fd()]).unwrap();
        assert!(refusal(&again).contains("shared with user 4242"));
    });
}

/// A queue whose socket lives on somewhere is waited for, and others are served meanwhile.
#[test]
fn who_keeps_a_queue_holds_up_nobody_else() {
    with_pair("who_keeps_a_queue_holds_up_nobody_else", ["numrxqueues 2 numtxqueues 2"; 2], |pair| {
        let netd = Running::start(pair, "keeps");
        let socket = bound(1);
        let first = netd.connect();
        let (messages, kept) = granted(&first, &socket, 0);
        assert_eq!(messages.len(), 2, "{messages:?}");
        drop(first);
        await_that("the first one is forgotten", || {
            let probe = netd.connect();
            probe.send(&take(0), &[socket.as_fd()]).unwrap();
            matches!(probe.receive_within(Duration::from_millis(100)), Received::Empty)
        });
        // It is waited for for a second. A machine may stand still for as long, but not each time.
        await_that("others are served meanwhile", || {
            let waits = netd.connect();
            waits.send(&take(0), &[socket.as_fd()]).unwrap();
            netd.serves(1);
            let is_told = PollFd::from_borrowed_fd(waits.fd(), PollFlags::IN);
            let meanwhile = poll(&mut [is_told], Some(&Timespec::default())).unwrap() == 0;
            assert!(refusal(&waits).contains("another socket has queue 0 of xa"));
            meanwhile
        });
        drop(kept);
        netd.serves(0);
    });
}

/// Who had a queue of it is told by the end of the connection, and may ask for one of the next interface of that name.
#[test]
fn an_interface_that_is_removed_is_nobodys() {
    with_pair("an_interface_that_is_removed_is_nobodys", ["", ""], |pair| {
        let running = Running::start(pair, "removed");
        let socket = bound(0);
        let client = running.connect();
        let (messages, _fds) = granted(&client, &socket, 0);
        assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
        ip("link del xa");
        assert!(dropped(&client).contains("the interface was removed"), "netd hangs up");
        drop(socket);
        ip("link add xa type veth peer name xb");
        ip("addr add 10.88.0.1/24 dev xa");
        ip("link set xa up");
        running.serves(0);
        let counts = running.end();
        assert_eq!((counts.granted, counts.refused, counts.hostile, counts.stalled), (2, 0, 0, 0));
    });
}
