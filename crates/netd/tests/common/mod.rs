//! A netd in this process, and what a participant says to it.
#![allow(dead_code, reason = "each binary of tests/ uses its part")]

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use taut_netd::{Counts, Policy, Server};
use taut_port_xdp::netd::{Connection, Message, Received};
use taut_testbed::{End, LIMIT, Pair, await_that};
use taut_xdp::Mode;

pub const PORT: u16 = 7_411;
pub const RULES: &str = "[[allow]]\nuser = 0\ninterface = \"xa\"\nqueues = [0, 1]\ndomains = [0]\n";

/// A netd in a thread of its own, at the first end.
pub struct Running {
    pub path: PathBuf,
    stop: Arc<AtomicBool>,
    /// It is to do nothing, and does nothing.
    held: Arc<[AtomicBool; 2]>,
    pub turns: Arc<AtomicU64>,
    policies: Sender<(Policy, Sender<()>)>,
    thread: Option<JoinHandle<Counts>>,
}

impl Running {
    pub fn start(pair: &Pair, name: &str) -> Running {
        pair.enter(End::A);
        let path = std::env::temp_dir().join(format!("taut-netd-{}-{name}.sock", std::process::id()));
        let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let held = Arc::new([const { AtomicBool::new(false) }; 2]);
        let mut server = Server::open(Policy::parse(RULES, "netd.toml").unwrap(), &path).unwrap();
        let (policies, next_policy) = channel::<(Policy, Sender<()>)>();
        let thread = std::thread::spawn({
            let (stop, turns, held) = (Arc::clone(&stop), Arc::clone(&turns), Arc::clone(&held));
            move || {
                while !stop.load(Ordering::Relaxed) {
                    held[1].store(held[0].load(Ordering::SeqCst), Ordering::SeqCst);
                    if held[1].load(Ordering::SeqCst) {
                        std::thread::yield_now();
                        continue;
                    }
                    if let Ok((policy, done)) = next_policy.try_recv() {
                        server.set_policy(policy);
                        done.send(()).unwrap();
                    }
                    server.turn(Duration::from_millis(10)).unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                }
                server.counts()
            }
        });
        Running { path, stop, held, turns, policies, thread: Some(thread) }
    }

    pub fn connect(&self) -> Connection {
        let client = Connection::connect(&self.path).unwrap();
        assert_eq!(next(&client).map(|(message, _)| message), Some(Message::Welcome));
        client
    }

    /// Has it go by other rules, and returns when it does.
    pub fn set_policy(&self, rules: &str) {
        let (done, is_done) = channel();
        self.policies.send((Policy::parse(rules, "netd.toml").unwrap(), done)).unwrap();
        is_done.recv_timeout(LIMIT).unwrap();
    }

    /// Does something while netd does nothing.
    pub fn while_held<R>(&self, act: impl FnOnce() -> R) -> R {
        self.held[0].store(true, Ordering::SeqCst);
        await_that("it does nothing", || self.held[1].load(Ordering::SeqCst));
        let result = act();
        self.held[0].store(false, Ordering::SeqCst);
        result
    }

    /// Passes a socket of which netd is left with the last descriptor: whoever closes it waits.
    pub fn is_last_to_close(&self, stream: TcpStream, client: &Connection) {
        self.while_held(|| {
            client.send(&take(0), &[stream.as_fd()]).unwrap();
            drop(stream);
        });
    }

    /// Somebody in good order has a queue and receives.
    pub fn serves(&self, queue: u32) {
        let socket = bound(0);
        let client = self.connect();
        let (messages, _fds) = granted(&client, &socket, queue);
        assert!(matches!(messages[..], [Message::Taken { .. }, Message::Queue(_)]), "{messages:?}");
        let ends = vec![socket.local_addr().unwrap()];
        client.send(&Message::Receive { ends }, &[]).unwrap();
        assert_eq!(next(&client).map(|(message, _)| message), Some(Message::Receiving));
    }

    pub fn end(mut self) -> Counts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Its socket has a name, which it takes with it.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

pub fn take(queue: u32) -> Message {
    take_of(Mode::L3, queue)
}

/// The same of a layer.
pub fn take_of(layer: Mode, queue: u32) -> Message {
    Message::Take { interface: "xa".into(), layer, queues: vec![queue], attach: None, bind: None }
}

/// The socket at which the participant of this number receives. netd has one that was there before until it hears of its
/// end.
pub fn bound(number: u16) -> UdpSocket {
    let mut socket = None;
    await_that("the port is free", || {
        socket = UdpSocket::bind(("10.88.0.1", PORT + 2 * number)).ok();
        socket.is_some()
    });
    socket.unwrap()
}

/// Does a message to this address come by the kernel? What goes past it has no frame to go to, and comes nowhere.
pub fn comes_by_the_kernel(sender: &UdpSocket, socket: &UdpSocket, to: &str) -> bool {
    sender.send_to(b"RTPS and what else a message has", (to, PORT)).unwrap();
    std::iter::from_fn(|| is_readable(socket).then(|| socket.recv(&mut [0; 200]).unwrap())).count() > 0
}

/// Has anything come, or does it within a time in which it would have?
fn is_readable(socket: &UdpSocket) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap() > 0
}

/// Has a client ask to receive at these addresses. Returns the answer.
pub fn receive(client: &Connection, addresses: &[&str]) -> Message {
    let ends = addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), PORT)).collect();
    client.send(&Message::Receive { ends }, &[]).unwrap();
    next(client).unwrap().0
}

/// What comes next; nothing once the connection has ended.
pub fn next(client: &Connection) -> Option<(Message, Vec<OwnedFd>)> {
    match client.receive_within(LIMIT) {
        Received::Message(message, fds) => Some((message, fds)),
        Received::Gone => None,
        other => panic!("{other:?}"),
    }
}

/// Why the connection has ended, as the last that it was told.
pub fn dropped(client: &Connection) -> String {
    let why = refusal(client);
    assert!(next(client).is_none(), "it has ended");
    why
}

/// Asks for a queue, and takes what it is answered.
pub fn granted(client: &Connection, socket: &UdpSocket, queue: u32) -> (Vec<Message>, Vec<OwnedFd>) {
    client.send(&take(queue), &[socket.as_fd()]).unwrap();
    answered(client)
}

/// Takes what a request is answered.
pub fn answered(client: &Connection) -> (Vec<Message>, Vec<OwnedFd>) {
    let (mut messages, mut all) = (Vec::new(), Vec::new());
    while messages.len() < 2
        && let Some((message, fds)) = next(client)
    {
        messages.push(message);
        all.extend(fds);
    }
    (messages, all)
}

/// Why a request is refused.
pub fn refusal(client: &Connection) -> String {
    match next(client) {
        Some((Message::Refused { why }, _)) => why,
        other => panic!("{other:?}"),
    }
}
