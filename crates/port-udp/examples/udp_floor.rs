//! What the port costs over bare sockets: round trips of 64 bytes between two threads on one CPU.
//!
//! `cargo run --release -p taut-port-udp --example udp_floor [ROUNDS]`
//!
//! Three pairs take turns in blocks, so that a disturbance of the machine meets all of them:
//! bare sockets that block in `recvfrom`; bare sockets that wait in `epoll_wait`; two ports that
//! wait in `epoll_wait`. The last two make the same three syscalls on each side of a round.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::unistd::Pid;
use taut_base::Locator;
use taut_port::Port;
use taut_port_udp::{UdpConfig, UdpPort};

const SIZE: usize = 64;
const BLOCK: usize = 1_000;
const PATIENCE_MS: u16 = 2_000;

/// One end of a ping-pong. Sending and waiting panic when the far end is gone.
trait End: Send {
    fn send(&mut self, payload: &[u8; SIZE]);
    fn wait(&mut self) -> [u8; SIZE];
}

struct Blocking(UdpSocket, std::net::SocketAddr);

impl End for Blocking {
    fn send(&mut self, payload: &[u8; SIZE]) {
        self.0.send_to(payload, self.1).expect("send");
    }

    fn wait(&mut self) -> [u8; SIZE] {
        let mut buffer = [0; SIZE];
        self.0.recv_from(&mut buffer).expect("receive");
        buffer
    }
}

struct Polled(Blocking, Epoll);

impl End for Polled {
    fn send(&mut self, payload: &[u8; SIZE]) {
        self.0.send(payload);
    }

    fn wait(&mut self) -> [u8; SIZE] {
        wait_readable(&self.1);
        self.0.wait()
    }
}

struct Ported(UdpPort, Locator, Epoll);

impl End for Ported {
    fn send(&mut self, payload: &[u8; SIZE]) {
        let (front, back) = payload.split_at(20);
        self.0.send(&[self.1], &[front, back]);
    }

    fn wait(&mut self) -> [u8; SIZE] {
        let mut received = None;
        while received.is_none() {
            let index = wait_readable(&self.2);
            self.0.receive_from(index, 32, &mut |frame| received = (*frame.bytes).try_into().ok());
        }
        received.expect("just received")
    }
}

fn wait_readable(epoll: &Epoll) -> usize {
    let mut events = [EpollEvent::empty(); 4];
    let count = epoll.wait(&mut events, EpollTimeout::from(PATIENCE_MS)).expect("epoll_wait");
    assert!(count > 0, "a datagram was lost");
    events[0].data() as usize
}

fn watch<'a>(sources: impl Iterator<Item = (usize, std::os::fd::BorrowedFd<'a>)>) -> Epoll {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).expect("epoll");
    for (index, fd) in sources {
        epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, index as u64)).expect("epoll_ctl");
    }
    epoll
}

fn blocking_pair() -> [Blocking; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("bind"));
    let [a, b] = [&sockets[0], &sockets[1]].map(|s| s.local_addr().expect("address"));
    let [first, second] = sockets;
    [Blocking(first, b), Blocking(second, a)]
}

fn polled_pair() -> [Polled; 2] {
    blocking_pair().map(|end| {
        end.0.set_nonblocking(true).expect("non-blocking");
        let epoll = watch([(0, end.0.as_fd())].into_iter());
        Polled(end, epoll)
    })
}

fn ported_pair() -> [Ported; 2] {
    let config = UdpConfig { domain_id: 99, interfaces: vec!["lo".into()], ..UdpConfig::default() };
    let ports = [(); 2].map(|()| UdpPort::open(&config).expect("port"));
    let [a, b] = [&ports[0], &ports[1]].map(|port| port.user_unicast()[0]);
    let [first, second] = ports;
    [(first, b), (second, a)].map(|(port, peer)| {
        let epoll = watch(port.fds().map(|source| (source.index, source.fd)));
        Ported(port, peer, epoll)
    })
}

fn pin() {
    let mut cpus = CpuSet::new();
    cpus.set(0).expect("CPU 0");
    sched_setaffinity(Pid::from_raw(0), &cpus).expect("pinning");
}

/// The near end of a pair whose far end echoes in a thread on the same CPU.
fn echoed<E: End + 'static>([near, mut far]: [E; 2]) -> Box<dyn End> {
    thread::spawn(move || {
        pin();
        loop {
            let payload = far.wait();
            far.send(&payload);
            if payload[0] == u8::MAX {
                return;
            }
        }
    });
    Box::new(near)
}

type Open = fn() -> Box<dyn End>;

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200_000usize);
    pin();
    let kinds: [(&str, Open); 3] = [
        ("bare, blocking recvfrom", || echoed(blocking_pair())),
        ("bare, epoll_wait + recvfrom", || echoed(polled_pair())),
        ("port, epoll_wait + receive_from", || echoed(ported_pair())),
    ];
    let mut times: [Vec<u64>; 3] = Default::default();
    for block in 0..=rounds.div_ceil(BLOCK) {
        for ((_, open), times) in kinds.iter().zip(&mut times) {
            let mut end = open();
            for round in 0..=BLOCK {
                let payload = [if round == BLOCK { u8::MAX } else { 0 }; SIZE];
                let start = Instant::now();
                end.send(&payload);
                assert_eq!(end.wait(), payload);
                // The first block and the first rounds of each only warm up.
                if block > 0 && round > BLOCK / 10 {
                    times.push(start.elapsed().as_nanos() as u64);
                }
            }
        }
    }
    println!("round trips of {SIZE} B, two threads on CPU 0, {} of each", times[0].len());
    times.iter_mut().for_each(|times| times.sort_unstable());
    let base = times[1][times[1].len() / 2];
    for ((name, _), times) in kinds.iter().zip(&times) {
        let at = |per_mille: usize| times[times.len() * per_mille / 1_000];
        let ratio = at(500) as f64 / base as f64;
        println!("{name:32} p50 {:6} ns  p99 {:6} ns  p50 x{ratio:.3}", at(500), at(990));
    }
}
