//! Two network namespaces with a veth pair between them, for the tests of what needs a network interface.
//!
//! Needs root. Without it tests say that they are left out; with `CI=true` that is a failure.

pub mod calls;
mod feature;
pub mod frame;
mod refusal;
pub mod vlan;

use std::fmt::Display;
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use taut_xdp::{Error, Mode, Program};

pub use feature::set_feature;
pub use refusal::{Argument, refuse};

/// Nothing here takes longer.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Where the first participant of a host in domain 0 has the messages of its users. RTPS 2.5 §9.6.2.3.
const PORT: u16 = 7_411;

/// One end of the pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The first.
    A,
    /// The second.
    B,
}

impl End {
    /// Both.
    pub const BOTH: [End; 2] = [End::A, End::B];

    /// The name of its interface.
    pub fn name(self) -> &'static str {
        ["xa", "xb"][self as usize]
    }

    /// Its address of IPv4.
    pub fn ipv4(self) -> [u8; 4] {
        [10, 88, 0, 1 + self as u8]
    }

    /// The other one.
    pub fn other(self) -> End {
        if self == End::A { End::B } else { End::A }
    }
}

/// The pair; it goes with its namespaces, which go with the last thread, process and descriptor in them.
pub struct Pair {
    namespaces: [File; 2],
    /// That of the switch.
    middle: Option<File>,
}

/// Why there can be no pair here, or no program of XDP on it.
fn obstacle() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root for network namespaces".into());
    }
    // Root of a user namespace loads none.
    let refused = Program::load(Mode::L3, 1_500).err();
    refused.filter(|error| matches!(error, Error::NotAllowed { .. })).map(|error| error.to_string())
}

/// Says that a test is left out, and why; with `CI=true` that is a failure.
pub fn left_out(name: &str, why: impl Display) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{name}: {why}");
    println!("LEFT OUT: {name}: {why}");
}

/// Runs `test` in a thread of its own, with a pair whose ends were made with these words of iproute2.
pub fn with_pair(name: &str, words: [&'static str; 2], test: impl FnOnce(&Pair) + Send + 'static) {
    run(name, move || test(&Pair::new(words)));
}

/// The same with a switch in the middle of the cable, which drops each frame whose number `one_in` divides.
pub fn with_losses(name: &str, one_in: u32, test: impl FnOnce(&Pair) + Send + 'static) {
    run(name, move || test(&Pair::by_switch(one_in)));
}

fn run(name: &str, test: impl FnOnce() + Send + 'static) {
    if let Some(obstacle) = obstacle() {
        return left_out(name, obstacle);
    }
    let run = thread::spawn(test);
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Pair {
    fn new([a, b]: [&str; 2]) -> Pair {
        let pair = Pair { namespaces: [namespace(), namespace()], middle: None };
        let there = path(&pair.namespaces[1]);
        pair.enter(End::A);
        ip(&format!("link add xa {a} type veth peer name xb {b} netns {there}"));
        pair.bring_up();
        pair
    }

    fn by_switch(one_in: u32) -> Pair {
        let pair = Pair { namespaces: [namespace(), namespace()], middle: Some(namespace()) };
        // The thread is in the middle.
        ip("link add switch type bridge");
        for (end, namespace) in End::BOTH.into_iter().zip(&pair.namespaces) {
            let (name, port) = (end.name(), format!("to-{}", end.name()));
            // It takes what the ends may send, which begin with Ethernet's MTU.
            ip(&format!("link add {port} mtu 9000 type veth peer name {name} netns {}", path(namespace)));
            ip(&format!("link set {port} master switch up"));
        }
        ip("link set switch up");
        nft("add table bridge losses");
        nft("add chain bridge losses frames { type filter hook forward priority 0; }");
        nft(&format!("add rule bridge losses frames numgen inc mod {one_in} 0 drop"));
        pair.bring_up();
        pair
    }

    fn bring_up(&self) {
        for end in End::BOTH {
            self.enter(end);
            ip("link set lo up");
            ip(&format!("addr add 10.88.0.{}/24 dev {}", end.ipv4()[3], end.name()));
            ip(&format!("link set {} up", end.name()));
        }
        for end in End::BOTH {
            self.enter(end);
            await_that("the interface comes up", || shown(end.name()).contains("state UP"));
        }
    }

    /// Has this thread, and the threads and processes it starts, be at this end from now on.
    pub fn enter(&self, end: End) {
        setns(&self.namespaces[end as usize], CloneFlags::CLONE_NEWNET).expect("the namespace is there");
    }

    /// Which groups the switch has heard of hosts behind this end, as iproute2 shows them. The thread is at the switch then.
    pub fn groups(&self, end: End) -> Vec<String> {
        let middle = self.middle.as_ref().expect("there is a switch");
        setns(middle, CloneFlags::CLONE_NEWNET).expect("the namespace is there");
        let show = || Command::new("bridge").args(["mdb", "show"]).output();
        let shown = starts(show).expect("iproute2");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let port = format!("to-{}", end.name());
        let of = shown.lines().filter(|line| line.contains(&format!("port {port} ")));
        of.filter_map(|line| line.split_once("grp ")?.1.split(' ').next().map(str::to_owned)).collect()
    }

    /// Is a program of XDP attached at this end? The thread is there then.
    pub fn has_program(&self, end: End) -> bool {
        self.enter(end);
        has_program(end.name())
    }

    /// Waits until no program is attached at this end. A descriptor is not closed for as long as a process that
    /// another test starts, and that has not become its program yet, has a copy.
    pub fn await_no_program(&self, end: End) {
        await_that("no program is attached", || !self.has_program(end));
    }

    /// Waits until the kernel has the interface of this end, and no program: it gets even what a participant would get. The
    /// thread is there then.
    pub fn await_kernels(&self, end: End) {
        self.await_no_program(end);
        self.enter(end.other());
        let far = UdpSocket::bind((Ipv4Addr::from(end.other().ipv4()), 0)).expect("its address");
        self.enter(end);
        let near = UdpSocket::bind((Ipv4Addr::from(end.ipv4()), PORT)).expect("nobody has that port");
        near.set_read_timeout(Some(LIMIT)).expect("a time");
        far.send_to(&frame::message(1, 64), (Ipv4Addr::from(end.ipv4()), PORT)).expect("the way is there");
        assert_eq!(near.recv(&mut [0; 100]).expect("it comes to the kernel"), 64);
    }
}

/// A new one, in which the thread is then.
fn namespace() -> File {
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
    File::open("/proc/thread-self/ns/net").expect("the namespace")
}

/// By which other programs find it.
fn path(namespace: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd())
}

/// Is a program of XDP attached to this interface in this thread's namespace?
pub fn has_program(interface: &str) -> bool {
    shown(interface).contains("prog/xdp")
}

/// Does this interface in this thread's namespace take frames for the group of discovery in domain 0, 239.255.0.1?
pub fn takes_group(interface: &str) -> bool {
    let all = std::fs::read_to_string("/proc/thread-self/net/dev_mcast").expect("the kernel lists groups");
    all.lines().any(|line| line.contains(&format!(" {interface} ")) && line.contains("01005e7f0001"))
}

/// What iproute2 shows of an interface in this thread's namespace.
fn shown(name: &str) -> String {
    let show = || Command::new("ip").args(["-o", "link", "show", name]).output();
    let shown = starts(show).expect("iproute2");
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

/// A process that is ended with the test, however that ends.
pub struct Held(pub Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Copies of all descriptors of a process, as a child has them that it has forked. pidfd_getfd(2).
pub fn copies_of(process: u32) -> Vec<OwnedFd> {
    let pid = Pid::from_raw(process.cast_signed()).expect("a process has a number");
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("the process is there");
    let listed = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors");
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    // One that was closed meanwhile is none.
    numbers.filter_map(|number| pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()).ok()).collect()
}

/// Gives up all privileges of this thread, and of those that it starts; the others keep theirs.
pub fn give_up_privileges() {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).expect("who has some may have none");
}

/// Whoever starts a program reads this.
static STARTS: RwLock<()> = RwLock::new(());

/// Does something while the test bed starts no program in any thread: what is open here a child has, too, until it is its
/// program.
pub fn while_none_starts<R>(act: impl FnOnce() -> R) -> R {
    let _none = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    act()
}

/// Starts a program, of which this is the call.
pub fn starts<R>(program: impl FnOnce() -> R) -> R {
    let _one = STARTS.read().unwrap_or_else(PoisonError::into_inner);
    program()
}

/// Runs iproute2 in this thread's namespace.
pub fn ip(words: &str) {
    let run = || Command::new("ip").args(words.split_whitespace()).status();
    let status = starts(run).expect("iproute2");
    assert!(status.success(), "ip {words}");
}

fn nft(words: &str) {
    let status = starts(|| Command::new("nft").arg(words).status()).expect("nftables");
    assert!(status.success(), "nft {words}");
}

/// Waits until a thread of this process sleeps.
pub fn await_sleep(thread: i32) {
    await_that("the thread sleeps", || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    });
}

/// The threads of this process that have not ended, by their numbers. One that has may be listed for a while: who waits
/// for its end is told before that, and after its `PF_EXITING` is set.
pub fn threads() -> Vec<String> {
    const PF_EXITING: u64 = 4;
    let tasks = std::fs::read_dir("/proc/self/task").expect("each process has threads");
    let names = tasks.filter_map(|task| task.ok()?.file_name().into_string().ok());
    let runs = |task: &String| {
        // Its flags are the seventh field behind the name: proc_pid_stat(5).
        let stat = std::fs::read_to_string(format!("/proc/self/task/{task}/stat")).ok()?;
        let flags = stat.rsplit_once(") ")?.1.split(' ').nth(6)?.parse::<u64>().ok()?;
        Some(flags & PF_EXITING == 0)
    };
    names.filter(|task| runs(task) == Some(true)).collect()
}

/// Those of them that Taut has made.
pub fn threads_of_taut() -> Vec<String> {
    let name = |task: &String| std::fs::read_to_string(format!("/proc/self/task/{task}/comm"));
    threads().into_iter().filter(|task| name(task).is_ok_and(|name| name.trim() == "taut")).collect()
}

/// Looks until it is so.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        thread::yield_now();
    }
}
