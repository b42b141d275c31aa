//! Frames over a veth pair, through two sockets, beside the kernel's own traffic.

mod common;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use common::interface;
use common::station::{PORT, Station, link};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, connect, ipproto, recv, send, socket};
use taut_testbed::frame::{Udp, message, prioritized};
use taut_testbed::{End, LIMIT, Pair, await_that, ip, with_pair};
use taut_xdp::{AttachMode, BindMode, ChunkSize, Link, Mode, Statistics};

/// Frames with numbered messages of many lengths, from one end to the other.
fn frames(pair: &Pair, from: End, mode: Mode, numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let udp = Udp {
        to_mac: interface(pair, from.other()).mac,
        from_mac: interface(pair, from).mac,
        from: from.ipv4(),
        to: from.other().ipv4(),
        port: PORT,
    };
    let frame = |number: u32| {
        let message = message(number, 12 + (number as usize * 37) % 1_400);
        let plain = if mode == Mode::L3 { udp.ipv4(&message) } else { udp.l2(&message) };
        if number.is_multiple_of(5) { prioritized(&plain) } else { plain }
    };
    numbers.map(frame).collect()
}

fn both_ways(pair: &Pair, mode: Mode, attached: AttachMode) {
    let links = End::BOTH.map(|end| link(pair, end, mode, Some(attached)));
    let mut stations = End::BOTH.map(|end| {
        pair.enter(end);
        Station::open(&links[end as usize], 0)
    });
    assert!(links.iter().all(|link| link.attached() == attached));
    assert!(stations.iter().all(|station| station.socket.bound() == BindMode::Copy));
    let mut first = 0;
    // Further than the rings reach, and through all of the UMEM.
    for round in 0..100 {
        let numbers = first..first + 1 + (round * 13) % 64;
        first = numbers.end;
        for end in End::BOTH {
            let sent = frames(pair, end, mode, numbers.clone());
            stations[end as usize].send(&sent);
            let received = stations[end.other() as usize].await_frames(sent.len());
            assert!(received == sent, "{mode:?} {attached:?}: other bytes, or another order");
        }
    }
    for mut station in stations {
        await_that("all frames are back", || station.has_all());
        assert!(station.socket.tx.needs_wakeup() && !station.socket.fill.needs_wakeup());
        let statistics = station.socket.statistics().unwrap();
        let nothing = Statistics { tx_ring_empty: statistics.tx_ring_empty, ..Statistics::default() };
        assert_eq!(statistics, nothing);
    }
}

#[test]
fn l3_native() {
    with_pair("l3_native", ["", ""], |pair| both_ways(pair, Mode::L3, AttachMode::Native));
}

#[test]
fn l3_generic() {
    with_pair("l3_generic", ["", ""], |pair| both_ways(pair, Mode::L3, AttachMode::Generic));
}

#[test]
fn l2_native() {
    with_pair("l2_native", ["", ""], |pair| both_ways(pair, Mode::L2, AttachMode::Native));
}

#[test]
fn l2_generic() {
    with_pair("l2_generic", ["", ""], |pair| both_ways(pair, Mode::L2, AttachMode::Generic));
}

fn kernel_socket(pair: &Pair, end: End, port: u16) -> UdpSocket {
    pair.enter(end);
    let socket = UdpSocket::bind((Ipv4Addr::from(end.ipv4()), port)).expect("it binds");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    socket
}

/// The kernel at the other end answers an echo request.
fn ping(pair: &Pair, from: End) {
    pair.enter(from);
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).expect("root");
    connect(&socket, &SocketAddr::from((from.other().ipv4(), 0))).expect("a route");
    // Type 8, its checksum, identifier 0x7461, number 1.
    let request = [8, 0, 0x83, 0x9d, 0x74, 0x61, 0, 1];
    send(&socket, &request, SendFlags::empty()).expect("it is sent");
    let limit = Timespec { tv_sec: LIMIT.as_secs() as i64, tv_nsec: 0 };
    loop {
        let readable = poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&limit));
        assert_eq!(readable, Ok(1), "no echo reply");
        let mut packet = [0; 64];
        let (len, _) = recv(&socket, &mut packet[..], RecvFlags::empty()).expect("it is there");
        if packet[20..len].starts_with(&[0, 0]) && packet[24..28] == request[4..] {
            return;
        }
    }
}

fn await_kernel(socket: &UdpSocket, expected: &[u8]) {
    let mut bytes = [0; 256];
    let len = socket.recv(&mut bytes).expect("the kernel has it");
    assert_eq!(&bytes[..len], expected);
}

fn assert_kernel_silent(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
    assert_eq!(socket.recv(&mut [0; 256]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
}

/// Only messages to our port come to the station; all else, and those too once it is gone, is the kernel's.
fn beside_the_kernel(pair: &Pair, attached: AttachMode) {
    let link: Link = link(pair, End::B, Mode::L3, Some(attached));
    let mut station = Station::open(&link, 0);
    let sender = kernel_socket(pair, End::A, 0);
    let (ours, others) = (kernel_socket(pair, End::B, PORT), kernel_socket(pair, End::B, PORT + 1));
    let to = |port: u16, bytes: &[u8]| {
        sender.send_to(bytes, (Ipv4Addr::from(End::B.ipv4()), port)).expect("it is sent");
    };
    let rtps = message(7, 100);
    to(PORT + 1, &rtps);
    to(PORT, b"something else");
    to(PORT, &rtps);
    await_kernel(&others, &rtps);
    await_kernel(&ours, b"something else");
    let frame = station.await_frames(1).remove(0);
    assert_eq!((&frame[..6], &frame[42..]), (&interface(pair, End::B).mac[..], &rtps[..]));
    assert_kernel_silent(&ours);
    ping(pair, End::A);
    station.assert_silent();

    let own = (End::B.ipv4(), PORT).into();
    assert_eq!(link.program().remove(own, 0), Ok(true));
    to(PORT, &rtps);
    await_kernel(&ours, &rtps);
    link.program().add(own, 0).unwrap();
    assert_eq!(link.remove(0), Ok(true));
    to(PORT, &rtps);
    await_kernel(&ours, &rtps);
    link.add(&station.socket).unwrap();
    to(PORT, &rtps);
    station.await_frames(1);
    drop(station);
    ours.set_nonblocking(true).expect("it polls");
    await_that("the kernel has the queue again", || {
        to(PORT, &rtps);
        ours.recv(&mut [0; 256]).is_ok()
    });
    drop(link);
    pair.await_no_program(End::B);
}

#[test]
fn the_kernel_keeps_its_traffic_native() {
    with_pair("the_kernel_keeps_its_traffic_native", ["", ""], |pair| {
        beside_the_kernel(pair, AttachMode::Native)
    });
}

#[test]
fn the_kernel_keeps_its_traffic_generic() {
    with_pair("the_kernel_keeps_its_traffic_generic", ["", ""], |pair| {
        beside_the_kernel(pair, AttachMode::Generic)
    });
}

/// Has the kernel cut what is sent by this socket into datagrams of so many bytes (UDP_SEGMENT).
fn cut_rows(socket: &UdpSocket, each: usize) {
    let each = each as libc::c_int;
    // SAFETY: the kernel reads one number of the length that it is told.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const each).cast(),
            size_of_val(&each) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "UDP_SEGMENT");
}

/// Behind a driver that does not cut them rows come as one frame: they are the kernel's, which does.
#[test]
fn rows_that_come_uncut_are_the_kernels() {
    with_pair("rows_that_come_uncut_are_the_kernels", ["", ""], |pair| {
        let link = link(pair, End::B, Mode::L3, Some(AttachMode::Generic));
        let mut station = Station::open(&link, 0);
        let sender = kernel_socket(pair, End::A, 0);
        let receiver = kernel_socket(pair, End::B, PORT);
        // Longer than a chunk, longer than the MTU only, and as long as that.
        for (len, count) in [(1_400, 40), (800, 2), (1_472, 1)] {
            cut_rows(&sender, len);
            let row: Vec<Vec<u8>> = (0..count).map(|number| message(number, len)).collect();
            let to = (Ipv4Addr::from(End::B.ipv4()), PORT);
            let sent = sender.send_to(&row.concat(), to).expect("it is sent");
            assert_eq!(sent, len * count as usize);
            if count == 1 {
                assert_eq!(station.await_frames(1)[0][42..], row[0]);
                continue;
            }
            for sent in &row {
                let mut bytes = [0; 2_048];
                let len = receiver.recv(&mut bytes).expect("the kernel has it");
                assert_eq!(&bytes[..len], sent, "of a row of {count}");
            }
            assert_eq!(station.socket.statistics().unwrap().rx_dropped, 0);
            station.assert_silent();
        }
    });
}

/// A driver that runs the program itself has rows cut before.
#[test]
fn rows_that_come_cut_are_the_stations() {
    with_pair("rows_that_come_cut_are_the_stations", ["", ""], |pair| {
        let link = link(pair, End::B, Mode::L3, Some(AttachMode::Native));
        let mut station = Station::open(&link, 0);
        let sender = kernel_socket(pair, End::A, 0);
        cut_rows(&sender, 1_400);
        let row: Vec<Vec<u8>> = (0..40).map(|number| message(number, 1_400)).collect();
        sender.send_to(&row.concat(), (Ipv4Addr::from(End::B.ipv4()), PORT)).expect("it is sent");
        let frames = station.await_frames(row.len());
        assert!(frames.iter().map(|frame| &frame[42..]).eq(row.iter()));
    });
}

#[test]
fn what_a_station_sends_reaches_a_kernel_socket() {
    with_pair("what_a_station_sends_reaches_a_kernel_socket", ["", ""], |pair| {
        let link = link(pair, End::A, Mode::L3, None);
        let mut station = Station::open(&link, 0);
        let receiver = kernel_socket(pair, End::B, PORT);
        for (number, frame) in (1..).zip(frames(pair, End::A, Mode::L3, 1..5)) {
            station.send(&[frame]);
            await_kernel(&receiver, &message(number, 12 + number as usize * 37));
        }
    });
}

#[test]
fn each_queue_has_its_socket() {
    let queues = "numrxqueues 3 numtxqueues 3";
    with_pair("each_queue_has_its_socket", [queues, queues], |pair| {
        let interface = interface(pair, End::A);
        assert_eq!((interface.rx_queues, interface.tx_queues), (Some(3), Some(3)));
        let links = End::BOTH.map(|end| link(pair, end, Mode::L2, Some(AttachMode::Native)));
        let mut stations = [0, 1].map(|queue| {
            End::BOTH.map(|end| {
                pair.enter(end);
                Station::open(&links[end as usize], queue)
            })
        });
        for (queue, first) in [(1, 0), (0, 100), (1, 200)] {
            let sent = frames(pair, End::A, Mode::L2, first..first + 20);
            let [a, b] = &mut stations[queue];
            a.send(&sent);
            assert!(b.await_frames(20) == sent);
            stations[1 - queue][1].assert_silent();
        }
        let [_, [a1, b1]] = &mut stations;
        assert_eq!((a1.socket.queue(), b1.socket.queue()), (1, 1));
    });
}

/// Frames as long as this MTU, with a tag, are carried in both modes.
fn carries_frames_of(name: &str, mtu: u32) {
    with_pair(name, ["", ""], move |pair| {
        for end in End::BOTH {
            pair.enter(end);
            ip(&format!("link set {} mtu {mtu}", end.name()));
        }
        for attached in [AttachMode::Native, AttachMode::Generic] {
            let links = End::BOTH.map(|end| link(pair, end, Mode::L2, Some(attached)));
            let [mut a, mut b] = End::BOTH.map(|end| {
                pair.enter(end);
                Station::open(&links[end as usize], 0)
            });
            let of = |number| prioritized(&Udp::to_port(PORT).l2(&message(number, mtu as usize)));
            let sent: Vec<_> = (0..40).map(of).collect();
            a.send(&sent);
            assert!(b.await_frames(40) == sent, "{attached:?}");
            await_that("all chunks are back", || [&mut a, &mut b].into_iter().all(Station::has_all));
            drop((a, b, links));
            End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
        }
    });
}

/// Those of the MTU that is said to fit one.
#[test]
fn the_largest_frames_fit_their_chunks() {
    carries_frames_of("the_largest_frames_fit_their_chunks", ChunkSize::B2048.largest_mtu());
}

/// By the fewest chunks, by some, and by as many as the kernel takes.
#[test]
fn longer_frames_lie_in_several_chunks() {
    for mtu in [ChunkSize::B2048.largest_mtu() + 1, 9_000, ChunkSize::B2048.largest_mtu_in_pieces()] {
        carries_frames_of("longer_frames_lie_in_several_chunks", mtu);
    }
}

#[test]
fn what_finds_no_frame_to_fill_is_counted() {
    with_pair("what_finds_no_frame_to_fill_is_counted", ["", ""], |pair| {
        let links = End::BOTH.map(|end| link(pair, end, Mode::L2, None));
        let mut stations = End::BOTH.map(|end| {
            pair.enter(end);
            Station::open(&links[end as usize], 0)
        });
        let sent = frames(pair, End::A, Mode::L2, 0..1_024);
        for part in sent.chunks(64) {
            stations[0].send(part);
        }
        // All of the fill ring is in the RX ring by then.
        await_that("all frames that find room", || stations[1].socket.rx.peek(1_024).len() == 1_024);
        stations[0].send(&sent[..16]);
        await_that("16 frames are lost", || {
            let counts = stations[1].socket.statistics().unwrap();
            counts.fill_ring_empty + counts.rx_ring_full >= 16
        });
        assert!(stations[1].await_frames(1_024) == sent, "those that were there first");
        stations[0].send(&sent[..16]);
        assert!(stations[1].await_frames(16) == sent[..16], "the ring goes on");
    });
}
