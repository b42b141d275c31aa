//! Somebody detaches the program, and another one takes its place: the port has its interface again after that.
//!
//! Needs root. Without it the tests say that they are left out; with `CI=true` that is a failure.

use std::net::SocketAddr;
use std::sync::Arc;

use taut_base::{Duration, Time};
use taut_ethernet::Reached;
use taut_mem::Pool;
use taut_port_xdp::{Netd, Resumed, XdpConfig, XdpPort};
use taut_testbed::{End, Pair, await_that, ip, with_pair};
use taut_xdp::{ChunkSize, Interface, Link, Mode, Program, Rings, Socket, Umem};

const START: Time = Time(1_000_000_000_000);

fn address() -> SocketAddr {
    (End::A.ipv4(), 7_411).into()
}

fn open(pair: &Pair) -> XdpPort {
    pair.enter(End::A);
    let config = XdpConfig { interface: "xa".into(), netd: Netd::Never, ..XdpConfig::default() };
    XdpPort::open(&config, Reached::Ip(vec![address()]), &[]).unwrap()
}

/// Detaches the program of the interface as others may who have the rights (`bpftool link detach`).
fn detach(pair: &Pair) {
    pair.enter(End::A);
    let index = Interface::named("xa").unwrap().index;
    // A link of this process, by a descriptor of it. Other tests have such, too, in other namespaces.
    let shown = std::process::Command::new("ip").args(["-o", "link", "show", "xa"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let program: u32 =
        shown.split_once("prog/xdp id ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let is_ours = |fd: &i32| {
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let has = |line: String| text.lines().any(|found| found == line);
        has(format!("prog_id:\t{program}")) && has(format!("ifindex:\t{index}"))
    };
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    let fds = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let link =
        fds.collect::<Vec<_>>().into_iter().find(is_ours).expect("the link is a descriptor of this process");
    // BPF_LINK_DETACH of linux/bpf.h.
    let attributes = link as u32;
    // SAFETY: the attributes of the command are one number, which the kernel reads.
    let done = unsafe { libc::syscall(libc::SYS_bpf, 34, &raw const attributes, size_of_val(&attributes)) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    assert!(!pair.has_program(End::A));
}

/// What comes of a try, if it is time for one.
fn tries(port: &mut XdpPort, now: Time) -> Option<Resumed> {
    if !port.is_to_try(now) {
        return None;
    }
    drop(port.take_left());
    let next = port.next_try(now, vec![address()], &[]);
    Some(port.resume(now, next.run()))
}

#[test]
fn another_program_takes_the_place_of_ours() {
    with_pair("another_program_takes_the_place_of_ours", ["", ""], |pair| {
        let mut port = open(pair);
        let chunks = Arc::clone(port.chunks(0).unwrap());
        let mut pool = Pool::new(16, 4).over(Some(Arc::clone(&chunks)));
        assert_eq!(port.on_timeout(START), (false, None));
        assert!(port.next_timeout() > START && !port.is_to_try(START));
        detach(pair);
        let other =
            Link::attach(Program::load(Mode::L3, 1_500).unwrap(), &Interface::named("xa").unwrap(), None);
        let other = other.unwrap();
        // Nobody tells of it.
        let mut now = port.next_timeout();
        assert!(now <= START + Duration::from_secs(1));
        let warning = port.on_timeout(now).1.unwrap();
        assert!(
            warning.starts_with("XDP on xa: the program was detached: samples go by sockets"),
            "{warning}"
        );
        assert_eq!(port.probed(), None);
        assert!(!chunks.has(&pool.written(100, |bytes| bytes.fill(1))), "it would be copied again");

        let warning = tries(&mut port, now).unwrap().warning.unwrap();
        assert!(warning.contains("another XDP program is attached to xa"), "{warning}");
        assert!(tries(&mut port, now).is_none(), "not at once");
        for _ in 0..10 {
            now = port.next_timeout();
            let resumed = tries(&mut port, now).unwrap();
            assert!(!resumed.is_back && resumed.warning.is_none(), "it was said");
        }
        assert!(pair.has_program(End::A));
        assert!(other.is_attached(), "nobody has touched it");
        drop(other);
        now = port.next_timeout();
        let begun = std::time::Instant::now();
        assert!(tries(&mut port, now).unwrap().is_back);
        println!("opened anew in {:?}", begun.elapsed());
        assert!(pair.has_program(End::A));
        assert_eq!(port.on_timeout(now + Duration::from_secs(1)), (false, None));
        assert!(port.probed().is_some());
        let written = pool.written(100, |bytes| bytes.fill(1));
        assert!(
            !chunks.has(&written) && port.chunks(0).unwrap().has(&written),
            "written where it is sent from"
        );
        drop(port);
        pair.await_no_program(End::A);
    });
}

/// How long a try takes that is in vain, where others were so before: the shortest of some.
fn in_vain(port: &mut XdpPort) -> std::time::Duration {
    let mut took = (0..5).map(|_| {
        let now = port.next_timeout();
        let begun = std::time::Instant::now();
        assert!(!tries(port, now).unwrap().is_back);
        begun.elapsed()
    });
    took.next();
    took.min().unwrap()
}

/// They may have it for as long as the port lives, and what comes by sockets waits for each try.
#[test]
fn what_others_have_is_not_waited_for() {
    with_pair("what_others_have_is_not_waited_for", ["", ""], |pair| {
        let mut port = open(pair);
        assert_eq!(port.on_timeout(START), (false, None));
        detach(pair);
        let program = Program::load(Mode::L3, 1_500).unwrap();
        let other = Link::attach(program, &Interface::named("xa").unwrap(), None).unwrap();
        assert!(port.on_timeout(port.next_timeout()).1.is_some());
        let took = in_vain(&mut port);
        assert!(took < std::time::Duration::from_millis(100), "another program: {took:?}");

        let umem = Arc::new(Umem::create(64, ChunkSize::B4096).unwrap());
        let rings = Rings { fill: 64, completion: 64, rx: 64, tx: 64 };
        let socket = Socket::open(&other, 0, umem, &rings, None, true).unwrap();
        drop(other);
        let took = in_vain(&mut port);
        assert!(took < std::time::Duration::from_millis(500), "another queue: {took:?}");
        drop(socket);
        await_that("it is back", || {
            let now = port.next_timeout();
            tries(&mut port, now).unwrap().is_back
        });
    });
}

/// As when there is no descriptor left to be woken by: it would have frames that nobody takes.
#[test]
fn what_nothing_can_be_heard_of_is_given_up() {
    with_pair("what_nothing_can_be_heard_of_is_given_up", ["", ""], |pair| {
        let mut port = open(pair);
        let (why, now) = (|| "dup: EMFILE".to_owned(), START);
        let told = port.give_up(now, why()).expect("it is said");
        assert!(told.ends_with("not again yet: dup: EMFILE"), "{told}");
        assert!(
            !port.is_to_try(now) && port.next_timeout() < now + Duration::from_secs(1),
            "there is a pause"
        );
        drop(port.take_left().expect("it is to be dropped at once"));
        assert!(!pair.has_program(End::A));
        // A process that another test starts may keep the queue for a moment.
        let mut now = now;
        await_that("it is back", || {
            now = port.next_timeout();
            let resumed = tries(&mut port, now).unwrap();
            assert!(!resumed.is_back || resumed.is_moved, "what peers were told of it may have been lost");
            resumed.is_back
        });
        assert!(pair.has_program(End::A));
        assert_eq!(port.on_timeout(now), (false, None), "it is as any other then");
    });
}

/// What is opened and detached for a try is told of, too, and brings no descriptor: the pause grows all the same.
#[test]
fn what_is_given_up_is_not_tried_for_what_is_told() {
    with_pair("what_is_given_up_is_not_tried_for_what_is_told", ["", ""], |pair| {
        let (mut port, mut now) = (open(pair), START);
        assert_eq!(port.on_timeout(now), (false, None));
        detach(pair);
        now = port.next_timeout();
        assert!(port.on_timeout(now).1.is_some(), "it is lost");
        let mut pause = Duration(1);
        for _ in 0..5 {
            await_that("it is back", || {
                now = port.next_timeout();
                tries(&mut port, now).unwrap().is_back
            });
            port.give_up(now, "dup: EMFILE".to_owned());
            drop(port.take_left().expect("it was open"));
            let next = port.next_timeout().since(now);
            assert!(next >= pause.times(2).min(Duration::from_secs(10)), "{next}, {pause} before");
            pause = next;
            ip("link set xa txqueuelen 999");
            ip("link set xa txqueuelen 1000");
            for later in [now, now + pause - Duration(1)] {
                port.hear(later);
                port.follow(later, &[address()]);
                assert!(!port.is_to_try(later), "{} after it was given up", later.since(now));
            }
        }
    });
}
