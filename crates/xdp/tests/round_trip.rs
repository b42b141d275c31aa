//! How long a round trip of 64 B takes: bare AF_XDP beside UDP, both polling, over the same veth pair.
//!
//! Asserts that all came back; the times are printed for who runs it with `--nocapture`.

mod common;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::interface;
use common::station::{PORT, Station, link};
use taut_testbed::frame::{Udp, message};
use taut_testbed::{End, Pair, with_pair};
use taut_xdp::{AttachMode, Descriptor, Mode};

const ROUND_TRIPS: usize = 20_000;
/// Where other programs have the processors each takes turns with them: it makes fewer then.
const ENOUGH: Duration = Duration::from_secs(5);
const SIZE: usize = 64;
/// Nothing has come for so many looks: another thread may have the processor.
const LOOKS: u32 = 10_000;
/// A round trip that takes longer is lost.
const LOST: Duration = Duration::from_secs(10);

/// Looks until something is there, and gives the processor away now and then.
fn poll<T>(mut look: impl FnMut() -> Option<T>, ended: &AtomicBool) -> Option<T> {
    let end = Instant::now() + LOST;
    loop {
        for _ in 0..LOOKS {
            if let Some(found) = look() {
                return Some(found);
            }
        }
        if ended.load(Ordering::Relaxed) || Instant::now() > end {
            return None;
        }
        thread::yield_now();
    }
}

/// Runs `echo` in a thread at one end, and `trip` so many times here at the other; the times of the trips.
fn measure(
    pair: &Pair,
    echo: impl FnOnce(&AtomicBool, &Barrier) + Send,
    trip: impl FnOnce(&AtomicBool) -> Vec<Duration>,
) -> Vec<Duration> {
    let (ended, ready) = (AtomicBool::new(false), Barrier::new(2));
    thread::scope(|scope| {
        let echoes = scope.spawn(|| {
            pair.enter(End::B);
            echo(&ended, &ready);
        });
        ready.wait();
        pair.enter(End::A);
        let times = trip(&ended);
        ended.store(true, Ordering::Relaxed);
        echoes.join().expect("the echo");
        times
    })
}

fn trips(mut trip: impl FnMut() -> bool) -> Vec<Duration> {
    let begun = Instant::now();
    let time = |_| {
        let start = Instant::now();
        assert!(trip(), "one was lost");
        start.elapsed()
    };
    (0..ROUND_TRIPS).map(time).take_while(|_| begun.elapsed() < ENOUGH).collect()
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize].as_nanos() as f64 / 1e3;
    println!(
        "{what}, {} times: p50 {:.2} us, p99 {:.2} us, max {:.0} us",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// Sends the oldest received frame back with its ends exchanged: no byte of the payload is touched.
fn send_back(station: &mut Station, turn: impl Fn(&mut [u8])) -> Option<()> {
    let mut received = station.socket.rx.peek(1);
    let Descriptor { address, len, .. } = received.next()?;
    received.release();
    let umem = station.umem();
    // SAFETY: a received frame is this station's until it is in a ring again.
    let bytes = unsafe { umem.bytes_mut(address, len) };
    turn(bytes.expect("it is inside"));
    let mut tx = station.socket.tx.reserve(1);
    assert!(tx.put(Descriptor { address, len, options: 0 }));
    tx.submit();
    station.socket.kick().expect("it is up");
    station.reclaim();
    station.refill();
    Some(())
}

/// From there to here, or back: both sides have the same port.
fn exchange_ends(frame: &mut [u8]) {
    let (to, from) = frame.split_at_mut(6);
    to.swap_with_slice(&mut from[..6]);
    if frame[12..14] == [0x08, 0x00] {
        let (from, to) = frame[26..34].split_at_mut(4);
        from.swap_with_slice(to);
    }
}

fn bare(pair: &Pair, mode: Mode, attached: AttachMode) -> Vec<Duration> {
    let links = End::BOTH.map(|end| link(pair, end, mode, Some(attached)));
    let udp = Udp {
        to_mac: interface(pair, End::B).mac,
        from_mac: interface(pair, End::A).mac,
        from: End::A.ipv4(),
        to: End::B.ipv4(),
        port: PORT,
    };
    let message = message(1, SIZE);
    let frame = if mode == Mode::L3 { udp.ipv4(&message) } else { udp.l2(&message) };
    let echo = |ended: &AtomicBool, ready: &Barrier| {
        let mut station = Station::open(&links[1], 0);
        ready.wait();
        while poll(|| send_back(&mut station, exchange_ends), ended).is_some() {}
    };
    measure(pair, echo, |ended| {
        let mut station = Station::open(&links[0], 0);
        station.send(&[frame]);
        trips(|| poll(|| send_back(&mut station, exchange_ends), ended).is_some())
    })
}

fn udp(pair: &Pair) -> Vec<Duration> {
    let open = |end: End| {
        pair.enter(end);
        let socket = UdpSocket::bind((Ipv4Addr::from(end.ipv4()), PORT)).expect("it binds");
        socket.set_nonblocking(true).expect("it polls");
        socket.connect((Ipv4Addr::from(end.other().ipv4()), PORT)).expect("a route");
        socket
    };
    let (a, b) = (open(End::A), open(End::B));
    let receive = |socket: &UdpSocket, bytes: &mut [u8]| match socket.recv(bytes) {
        Ok(len) => Some(len),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    };
    let echo = |ended: &AtomicBool, ready: &Barrier| {
        ready.wait();
        let mut bytes = [0; SIZE];
        while let Some(len) = poll(|| receive(&b, &mut bytes), ended) {
            b.send(&bytes[..len]).expect("it is sent");
        }
    };
    let message = message(1, SIZE);
    measure(pair, echo, |ended| {
        trips(|| {
            a.send(&message).expect("it is sent");
            poll(|| receive(&a, &mut [0; SIZE]), ended) == Some(SIZE)
        })
    })
}

#[test]
fn bare_beside_udp() {
    with_pair("bare_beside_udp", ["", ""], |pair| {
        tell("UDP", udp(pair));
        tell("AF_XDP native, L3", bare(pair, Mode::L3, AttachMode::Native));
        tell("AF_XDP generic, L3", bare(pair, Mode::L3, AttachMode::Generic));
        tell("AF_XDP native, L2", bare(pair, Mode::L2, AttachMode::Native));
        tell("AF_XDP generic, L2", bare(pair, Mode::L2, AttachMode::Generic));
        tell("UDP again", udp(pair));
    });
}
