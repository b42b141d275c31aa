//! What is refused says so in one sentence, and leaves nothing attached.

mod common;

use std::ffi::{c_int, c_long};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use common::interface;
use common::station::{RINGS, Station, link, umem};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use taut_testbed::{End, Pair, await_that, ip, with_pair};
use taut_xdp::{
    AttachMode, BindMode, ChunkSize, Descriptor, Error, Handover, Interface, Link, MAX_DESTINATIONS, Mode,
    Program, Rings, Socket, Umem,
};

/// The error, after a look that it names the remedy, that no program is attached and that the kernel has what comes.
fn refused<T>(pair: &Pair, end: End, result: Result<T, Error>, remedy: &str) -> Error {
    let error = result.err().expect("it is refused");
    let text = error.to_string();
    assert!(text.contains(remedy) && !text.contains('\n'), "{text}");
    pair.await_kernels(end);
    error
}

fn attach(pair: &Pair, end: End, wanted: Option<AttachMode>) -> Result<Link, Error> {
    let interface = interface(pair, end);
    Link::attach(Program::load(Mode::L3, 1_500).expect("it loads"), &interface, wanted)
}

/// Attaches and opens, as a port would; the link goes with the error.
fn open(
    pair: &Pair,
    end: End,
    queue: u32,
    rings: &Rings,
    wanted: Option<BindMode>,
) -> Result<(Link, Socket), Error> {
    let link = attach(pair, end, None)?;
    let socket = Socket::open(&link, queue, umem(), rings, wanted, true)?;
    Ok((link, socket))
}

#[test]
fn no_such_interface() {
    with_pair("no_such_interface", ["", ""], |pair| {
        let gone = interface(pair, End::A);
        ip("link del xa");
        let error = Interface::named("xa").unwrap_err();
        assert_eq!(error, Error::NoInterface { interface: "xa".into() });
        for wanted in [None, Some(AttachMode::Generic)] {
            let error = Link::attach(Program::load(Mode::L2, 1_500).unwrap(), &gone, wanted).err().unwrap();
            assert_eq!(error, Error::NoInterface { interface: "xa".into() });
        }
    });
}

#[test]
fn the_interface_goes_away() {
    with_pair("the_interface_goes_away", ["", ""], |pair| {
        let link = attach(pair, End::A, None).unwrap();
        let mut socket = Socket::open(&link, 0, umem(), &RINGS, None, true).unwrap();
        link.add(&socket).unwrap();
        ip("link del xa");
        assert_eq!(socket.kick(), Err(Error::NoInterface { interface: "xa".into() }));
        assert_eq!(socket.wait(Duration::from_millis(1)), Ok(false));
        assert_eq!(socket.rx.peek(1).len(), 0);
        assert!(socket.statistics().is_ok());
        // What takes its name and place is not attached to.
        ip("link add xa type veth peer name xc");
        drop((link, socket));
        assert!(!pair.has_program(End::A));
    });
}

#[test]
fn no_such_queue() {
    with_pair("no_such_queue", ["", ""], |pair| {
        let found = open(pair, End::A, 1, &RINGS, None);
        let error = refused(pair, End::A, found, "choose one below 1");
        assert_eq!(error, Error::NoQueue { interface: "xa".into(), queue: 1, queues: Some(1) });
    });
}

#[test]
fn no_xdp_of_this_kind() {
    with_pair("no_xdp_of_this_kind", ["", ""], |pair| {
        pair.enter(End::A);
        let lo = Interface::named("lo").unwrap();
        let program = || Program::load(Mode::L3, 1_500).unwrap();
        let error = Link::attach(program(), &lo, Some(AttachMode::Native)).err().unwrap();
        assert_eq!(error, Error::NoXdp { interface: "lo".into(), what: "native XDP" });
        let link = Link::attach(program(), &lo, None).unwrap();
        assert_eq!((link.attached(), link.why_not_native()), (AttachMode::Generic, Some(&error)));
        let found = open(pair, End::A, 0, &RINGS, Some(BindMode::ZeroCopy));
        let error = refused(pair, End::A, found, "choose another mode");
        assert!(matches!(error, Error::NoXdp { .. }), "{error:?}");
    });
}

#[test]
fn an_mtu_beyond_a_page_is_no_obstacle() {
    with_pair("an_mtu_beyond_a_page_is_no_obstacle", ["", ""], |pair| {
        // That of the far end counts, too.
        for (near, far) in [(1_500, 9_000), (3_520, 3_520), (9_000, 1_500), (9_000, 9_000)] {
            for (end, mtu) in End::BOTH.into_iter().zip([near, far]) {
                pair.enter(end);
                ip(&format!("link set {} mtu {mtu}", end.name()));
            }
            let link = attach(pair, End::A, Some(AttachMode::Native)).unwrap();
            assert!(Socket::open(&link, 0, umem(), &RINGS, None, true).is_ok(), "{near} {far}");
            drop(link);
            pair.await_no_program(End::A);
        }
    });
}

#[test]
fn an_mtu_whose_frames_would_lie_in_too_many_chunks() {
    with_pair("an_mtu_whose_frames_would_lie_in_too_many_chunks", ["", ""], |pair| {
        for (mtu, size, largest, remedy) in [
            (30_000, ChunkSize::B2048, 28_558, "lower it to 28558 B, or choose larger chunks"),
            (65_535, ChunkSize::B4096, 61_326, "lower it to 61326 B"),
        ] {
            for end in End::BOTH {
                pair.enter(end);
                ip(&format!("link set {} mtu {mtu}", end.name()));
            }
            let open = |size| {
                let interface = interface(pair, End::A);
                let link = Link::attach(Program::load(Mode::L3, mtu).unwrap(), &interface, None)?;
                Socket::open(&link, 0, Arc::new(Umem::create(64, size)?), &RINGS, None, true)
            };
            let error = refused(pair, End::A, open(size), remedy);
            assert_eq!(error, Error::ChunkTooSmall { interface: "xa".into(), mtu, largest });
            assert_eq!(open(ChunkSize::B4096).is_ok(), mtu < 61_326);
            pair.await_no_program(End::A);
        }
    });
}

#[test]
fn fewer_receive_queues_than_the_peer_sends_with() {
    let words = ["numrxqueues 2 numtxqueues 1", "numrxqueues 1 numtxqueues 4"];
    with_pair("fewer_receive_queues_than_the_peer_sends_with", words, |pair| {
        let expected = Error::TooFewRxQueues { interface: "xa".into(), rx_queues: Some(2) };
        let native = attach(pair, End::A, Some(AttachMode::Native));
        assert_eq!(refused(pair, End::A, native, "ethtool -L"), expected);
        let link = attach(pair, End::A, None).unwrap();
        assert_eq!((link.attached(), link.why_not_native()), (AttachMode::Generic, Some(&expected)));
    });
}

#[test]
fn another_program_is_attached() {
    with_pair("another_program_is_attached", ["", ""], |pair| {
        for first in [AttachMode::Native, AttachMode::Generic] {
            let link = attach(pair, End::A, Some(first)).unwrap();
            for second in [None, Some(AttachMode::Native), Some(AttachMode::Generic)] {
                let error = attach(pair, End::A, second).err().unwrap();
                assert_eq!(error, Error::ProgramAttached { interface: "xa".into() }, "{first:?} {second:?}");
            }
            assert!(pair.has_program(End::A), "the first one stays");
            drop(link);
            pair.await_no_program(End::A);
        }
    });
}

/// As long as a process that another thread forks may have it open.
#[test]
fn a_program_that_is_about_to_go_is_waited_for() {
    with_pair("a_program_that_is_about_to_go_is_waited_for", ["", ""], |pair| {
        for (first, second) in
            [(AttachMode::Native, AttachMode::Native), (AttachMode::Generic, AttachMode::Native)]
        {
            let link = attach(pair, End::A, Some(first)).unwrap();
            let goes = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                drop(link);
            });
            let program = Program::load(Mode::L3, 1_500).unwrap();
            let link = Link::attach_patiently(program, &interface(pair, End::A), Some(second));
            assert!(link.is_ok(), "{first:?} {second:?}: {:?}", link.err());
            goes.join().unwrap();
        }
    });
}

/// The kernel takes no program below another one: here that of a bridge, as that of an interface of a VLAN elsewhere.
#[test]
fn another_program_is_above() {
    with_pair("another_program_is_above", ["", ""], |pair| {
        pair.enter(End::A);
        ip("link add above type bridge");
        ip("link set xa master above");
        let above = Interface::named("above").unwrap();
        let link =
            Link::attach(Program::load(Mode::L3, 1_500).unwrap(), &above, Some(AttachMode::Generic)).unwrap();
        for mode in [None, Some(AttachMode::Native), Some(AttachMode::Generic)] {
            let error = attach(pair, End::A, mode).err().unwrap();
            assert_eq!(error, Error::ProgramAbove { interface: "xa".into() }, "{mode:?}");
            assert!(error.to_string().contains("attached to an interface on xa"), "{error}");
        }
        drop(link);
        assert!(attach(pair, End::A, None).is_ok());
    });
}

#[test]
fn another_socket_has_the_queue() {
    with_pair("another_socket_has_the_queue", ["", ""], |pair| {
        let link = attach(pair, End::A, None).unwrap();
        let first = Station::open(&link, 0);
        let second = Socket::open(&link, 0, umem(), &RINGS, None, true).err().unwrap();
        assert_eq!(second, Error::QueueTaken { interface: "xa".into(), queue: 0 });
        drop(first);
        // Not yet free, but on its way to be. Where the machine stands still it may take longer than that is waited for, but
        // not each time.
        let is_waited_for = || {
            await_that("it is free", || Socket::open(&link, 0, umem(), &RINGS, None, false).is_ok());
            Socket::open(&link, 0, umem(), &RINGS, None, true).is_ok()
        };
        assert!((0..10).any(|_| is_waited_for()));
    });
}

#[test]
fn the_interface_is_down() {
    with_pair("the_interface_is_down", ["", ""], |pair| {
        let link = attach(pair, End::A, None).unwrap();
        ip("link set xa down");
        let mut socket = Socket::open(&link, 0, umem(), &RINGS, None, true).unwrap();
        let mut tx = socket.tx.reserve(1);
        assert!(tx.put(Descriptor { address: 0, len: 60, options: 0 }));
        tx.submit();
        let error = socket.kick().unwrap_err();
        assert_eq!(error, Error::InterfaceDown { interface: "xa".into() });
        assert!(error.to_string().contains("ip link set xa up"), "{error}");
        ip("link set xa up");
        assert_eq!(socket.kick(), Ok(true), "the kernel sends again");
        await_that("the frame leaves", || {
            socket.kick().unwrap();
            socket.tx.pending() == 0
        });
    });
}

#[test]
fn a_socket_of_another_interface() {
    with_pair("a_socket_of_another_interface", ["index 40", "index 40"], |pair| {
        let links = End::BOTH.map(|end| link(pair, end, Mode::L3, None));
        pair.enter(End::B);
        let there = Socket::open(&links[1], 0, umem(), &RINGS, None, true).unwrap();
        assert_eq!(links[0].interface().index, links[1].interface().index, "each in its namespace");
        assert_eq!(links[0].add(&there), Err(Error::OtherInterface { interface: "xa".into() }));
        assert_eq!(links[1].add(&there), Ok(()));
    });
}

#[test]
fn more_destinations_than_there_is_room_for() {
    with_pair("more_destinations_than_there_is_room_for", ["", ""], |_| {
        let program = Program::load(Mode::L3, 1_500).unwrap();
        let at = |port: u16| SocketAddr::from(([10, 0, 0, 1], port));
        for port in 0..MAX_DESTINATIONS as u16 {
            program.add(at(port), 0).unwrap();
        }
        assert_eq!(program.add(at(5), 0), Ok(()), "it is there already");
        assert_eq!(program.add(at(MAX_DESTINATIONS as u16), 0), Err(Error::TooManyDestinations));
        assert_eq!(program.remove(at(7), 0), Ok(true));
        assert_eq!(program.add(at(MAX_DESTINATIONS as u16), 0), Ok(()));
    });
}

#[test]
fn rings_that_cannot_be() {
    with_pair("rings_that_cannot_be", ["", ""], |pair| {
        let rings = Rings { tx: 100, ..RINGS };
        let found = open(pair, End::A, 0, &rings, None);
        let error = refused(pair, End::A, found, "choose 128");
        assert!(matches!(error, Error::BadParameter(_)), "{error:?}");
    });
}

#[test]
fn what_cannot_be_adopted() {
    with_pair("what_cannot_be_adopted", ["", ""], |pair| {
        let link = attach(pair, End::A, None).unwrap();
        let own = interface(pair, End::A);
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = Socket::adopt(udp.into(), 0, &own, umem(), &RINGS).err().unwrap();
        assert!(error.to_string().contains("is no socket of AF_XDP"), "{error}");
        let frames = (umem().chunks(), umem().chunk_size());
        let passed = Umem::create(frames.0, frames.1).unwrap();
        let made = Handover::new(&link, &own, 0, passed, &RINGS, None).unwrap();
        made.bind(&link).unwrap();
        let [socket, memory] = made.fds().map(|fd| fd.try_clone_to_owned().unwrap());
        drop(made);
        let umem = Arc::new(Umem::adopt(memory, frames.0, frames.1).unwrap());
        let adopt = |rings: &Rings| {
            let socket = socket.try_clone().unwrap();
            Socket::adopt(socket, 0, &own, Arc::clone(&umem), rings)
        };
        let larger = Rings { rx: 2 * RINGS.rx, ..RINGS };
        let error = adopt(&larger).err().unwrap();
        assert!(matches!(error, Error::NoXdp { .. }) && error.to_string().contains("Linux 6.4"), "{error}");
        assert_eq!(adopt(&RINGS).unwrap().queue(), 0);
    });
}

/// Takes all capabilities from this thread, and from no other.
fn become_nobody() {
    let nobody: c_long = 65_534;
    // SAFETY: three numbers.
    let result = unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) };
    assert_eq!(result, 0);
}

/// Numbers of linux/capability.h.
const CAP_NET_ADMIN: c_int = 12;
const CAP_NET_RAW: c_int = 13;
const CAP_IPC_LOCK: c_int = 14;
const CAP_BPF: c_int = 39;

/// Runs it in a thread that has these capabilities only, and so much memory that it may lock.
fn restricted<T: Send>(capabilities: &[c_int], lockable: u64, run: impl FnOnce() -> T + Send) -> T {
    // The limit is the process's, so one at a time. Tests that have CAP_IPC_LOCK do not meet it.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (soft, hard) = getrlimit(Resource::RLIMIT_MEMLOCK).unwrap();
    setrlimit(Resource::RLIMIT_MEMLOCK, lockable, hard.max(lockable)).unwrap();
    let restricted = || {
        keep(capabilities);
        run()
    };
    let result = thread::scope(|scope| scope.spawn(restricted).join());
    setrlimit(Resource::RLIMIT_MEMLOCK, soft, hard).unwrap();
    result.unwrap()
}

/// Leaves this thread these capabilities, and other threads theirs.
fn keep(capabilities: &[c_int]) {
    // Version 3, this thread; then effective, permitted and inheritable capabilities, low and high half.
    let header = [0x2008_0522_u32, 0];
    let mut sets = [0_u32; 6];
    for capability in capabilities {
        let (half, bit) = (capability / 32 * 3, capability % 32);
        sets[half as usize] |= 1 << bit;
        sets[half as usize + 1] |= 1 << bit;
    }
    // SAFETY: a header and the sets of its version.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    assert_eq!(result, 0);
}

#[test]
fn no_privilege() {
    with_pair("no_privilege", ["", ""], |pair| {
        let interface = interface(pair, End::A);
        let link = attach(pair, End::A, None).unwrap();
        become_nobody();
        let needs = |error: &Error, capability: &str| {
            let text = error.to_string();
            assert!(matches!(error, Error::NotAllowed { .. }), "{text}");
            assert!(text.contains(&format!("which takes {capability}")), "{text}");
            let all = "give it all that it lacks, CAP_NET_ADMIN, CAP_BPF, CAP_NET_RAW";
            assert!(text.contains(all), "{text}");
            let without = error.without_netd().to_string();
            assert!(text.contains("`taut netd`") && !without.contains("netd"), "{text} {without}");
        };
        needs(&Program::load(Mode::L3, 1_500).err().unwrap(), "CAP_NET_ADMIN and CAP_BPF");
        needs(&Socket::open(&link, 0, umem(), &RINGS, None, true).err().unwrap(), "CAP_NET_RAW");
        assert_eq!(Interface::named("xa"), Ok(interface), "that anybody may know");
    });
}

/// What a participant has for a queue at an MTU of 1,500: frames to receive, to send and to lend.
const CHUNKS: u32 = 8_192 + 2 * 1_024 + 4_096;
/// As many bytes.
const FRAMES: usize = 28 << 20;
/// What may be locked where nobody has said otherwise (MLOCK_LIMIT of Linux).
const USUAL: u64 = 8 << 20;

/// Opens a queue as a participant does.
fn open_as_participant(interface: &Interface, mode: Mode, chunks: u32) -> Result<(Link, Socket), Error> {
    let link = Link::attach(Program::load(mode, interface.mtu)?, interface, None)?;
    let rings = Rings { tx: 1_024, completion: 1_024, ..Rings::default() };
    let frames = Arc::new(Umem::create(chunks, ChunkSize::B2048)?);
    let socket = Socket::open(&link, 0, frames, &rings, None, true)?;
    Ok((link, socket))
}

/// The verifier allows less to who has neither CAP_PERFMON nor CAP_SYS_ADMIN, which nobody is asked for.
#[test]
fn the_capabilities_that_are_named_are_enough() {
    with_pair("the_capabilities_that_are_named_are_enough", ["", ""], |pair| {
        let interface = interface(pair, End::A);
        for mode in [Mode::L2, Mode::L3] {
            let named = [CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_IPC_LOCK];
            let opened =
                restricted(&named, USUAL, || open_as_participant(&interface, mode, CHUNKS).map(drop));
            assert_eq!(opened, Ok(()), "{mode:?}");
        }
    });
}

/// Without CAP_IPC_LOCK the limit of locked memory counts, and where nobody has raised it a queue takes more.
#[test]
fn the_limit_of_locked_memory() {
    with_pair("the_limit_of_locked_memory", ["", ""], |pair| {
        let interface = interface(pair, End::A);
        let open = |chunks: u32| {
            let others = [CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF];
            restricted(&others, USUAL, || open_as_participant(&interface, Mode::L3, chunks).map(drop))
        };
        let error = refused(pair, End::A, open(CHUNKS), "CAP_IPC_LOCK");
        assert_eq!(error, Error::LockedMemory { bytes: FRAMES, limit: USUAL });
        let without = error.without_netd().to_string();
        assert!(error.to_string().contains("netd") && !without.contains("netd"), "{without}");
        assert!(error.to_string().contains("`ulimit -l unlimited`"), "{error}");
        assert_eq!(open((USUAL / 2_048) as u32), Ok(()), "what the limit holds");
    });
}
