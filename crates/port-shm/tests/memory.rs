//! Memory under seals: what its owner and its peers can no longer do, and what is refused of others.

mod common;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use common::{
    Role, await_accept, await_message, is_root, left_out, parse_prefix, role, say, send_welcome,
    unused_prefix,
};
use rustix::fs::{
    CWD, FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate,
    memfd_create, open, openat,
};
use rustix::io::{Errno, dup, pwrite};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect};
use taut_base::Error;
use taut_mem::lane::{Lane, LaneWriter};
use taut_port_shm::{Connection, Listener, Memory, Message, Refusal, Waker, host_id, lock_process, map};

const LEN: usize = 64 * 1024;

#[test]
fn child() {
    let Some(role) = role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["attack", prefix] => attack(prefix),
        ["commit", procs] => commit_until_refused(procs),
        ["prefault", procs] => prefault_half(procs),
        ["locked"] => locked(),
        ["below"] => below(),
        ["limited"] => limited(),
        ["many"] => many(),
        ["undescribed"] => without_descriptors(),
        _ => panic!("no role {role:?}"),
    }
}

/// Whatever could move the memory under somebody's feet, and what the kernel says to it.
fn attempts(fd: BorrowedFd<'_>) -> Vec<(&'static str, Result<(), Errno>)> {
    let map = |fd: BorrowedFd<'_>, access| {
        // SAFETY: the kernel chooses the address, and nobody looks there.
        unsafe { mmap(std::ptr::null_mut(), LEN, access, MapFlags::SHARED, fd, 0) }
    };
    let both = ProtFlags::READ | ProtFlags::WRITE;
    let again = open(format!("/proc/self/fd/{}", fd.as_raw_fd()), OFlags::RDWR, Mode::empty());
    let shown = map(fd, ProtFlags::READ).expect("it can be read");
    // SAFETY: nobody looks at the mapping.
    let upgraded = unsafe { mprotect(shown, LEN, MprotectFlags::READ | MprotectFlags::WRITE) };
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    vec![
        ("shrink", ftruncate(fd, 4096)),
        ("grow", ftruncate(fd, 2 * LEN as u64)),
        ("grow by fallocate", fallocate(fd, FallocateFlags::empty(), 0, 2 * LEN as u64)),
        ("punch a hole", fallocate(fd, hole, 0, 4096)),
        ("write", pwrite(fd, b"x", 0).map(drop)),
        ("map writable", map(fd, both).map(drop)),
        ("make a mapping writable", upgraded),
        ("open again and map writable", again.and_then(|fd| map(fd.as_fd(), both)).map(drop)),
        ("seal", fcntl_add_seals(fd, SealFlags::WRITE)),
    ]
}

fn assert_all_refused(who: &str, results: &[(&str, Result<(), Errno>)]) {
    for (what, result) in results {
        assert!(matches!(result, Err(Errno::PERM | Errno::ACCESS)), "{who} can {what}: {result:?}");
    }
}

#[test]
fn the_owner_has_given_up_what_could_hurt() {
    let memory = Memory::create("seals", LEN).unwrap();
    memory.commit(0, LEN).unwrap();
    let lane = Lane::create(memory.region(), 16);
    assert_all_refused("the owner", &attempts(memory.fd()));
    let mut writer = LaneWriter::new(Arc::new(lane), Box::new(|_, _| true));
    writer.push(&[1; 5], b"through the mapping it has").expect("its own mapping still writes");
}

#[test]
fn a_peer_can_only_read() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut child = Role::start(format!("attack {prefix}"));
    let connection = await_accept(&mut listener);
    let (memory, waker) = (Memory::create("seals", LEN).unwrap(), Waker::new().unwrap());
    let hello = Message::Hello { host_id: host_id().unwrap(), prefix, hears_end: true };
    send_welcome(&connection, &hello, &[memory.fd(), waker.fd()]);
    assert_eq!(child.hear(), "all refused");
}

fn attack(prefix: &str) {
    let connection = Connection::connect(parse_prefix(prefix), None).expect("the parent listens");
    connection.welcome();
    let (_, fds) = await_message(&connection);
    assert_all_refused("the peer", &attempts(fds[0].as_fd()));
    say("all refused");
}

/// A memfd of `len` bytes under `seals`.
fn memfd(len: u64, seals: SealFlags) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, len).unwrap();
    fcntl_add_seals(&fd, seals).unwrap();
    fd
}

#[test]
fn foreign_descriptors_are_refused_with_their_reason() {
    const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::FUTURE_WRITE);
    let max = 1 << 20;
    let refused = |fd: OwnedFd| map(fd, max).err();
    assert_eq!(
        map(memfd(max, SEALS), max).map(|region| (region.len(), region.is_writable())).ok(),
        Some((1 << 20, false))
    );
    assert_eq!(refused(memfd(max + 4096, SEALS)), Some(Refusal::TooLong { len: max + 4096 }));
    let most = i64::MAX as u64 / 4096 * 4096;
    assert_eq!(refused(memfd(most, SEALS)), Some(Refusal::TooLong { len: most }), "8 EiB, all of it a hole");
    assert_eq!(refused(memfd(0, SEALS)), Some(Refusal::Empty));
    assert_eq!(refused(memfd(5000, SEALS)), Some(Refusal::TornPage { len: 5000 }));
    for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::FUTURE_WRITE] {
        assert_eq!(refused(memfd(4096, SEALS.difference(missing))), Some(Refusal::Unsealed), "{missing:?}");
    }
    let never = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    assert_eq!(refused(never), Some(Refusal::Unsealed), "cannot be sealed at all");
    let huge = memfd_create("test", MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB);
    let huge = huge.unwrap();
    ftruncate(&huge, 2 << 20).unwrap();
    fcntl_add_seals(&huge, SEALS).unwrap();
    assert_eq!(refused(huge), Some(Refusal::ForeignFileSystem));

    let directory = openat(CWD, "/", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    let waker = dup(Waker::new().unwrap().fd()).unwrap();
    let file = OwnedFd::from(tempfile::tempfile().unwrap());
    let by_path = open("/proc/self/exe", OFlags::PATH, Mode::empty()).unwrap();
    let (reading, writing) = std::io::pipe().unwrap();
    for (what, fd) in [
        ("a directory", directory),
        ("a socket", socket.into()),
        ("an eventfd", waker),
        ("one end of a pipe", reading.into()),
        ("the other end", writing.into()),
        ("a path", by_path),
    ] {
        assert_eq!(refused(fd), Some(Refusal::NotMemory), "{what}");
    }
    let kind = refused(file);
    assert!(matches!(kind, Some(Refusal::NotMemory | Refusal::Unsealed)), "a file of /tmp: {kind:?}");
    assert!(Refusal::Unsealed.to_string().contains("not sealed"));
}

/// In a process of its own: they are counted for all of its threads.
#[test]
fn others_take_so_many_mappings_of_a_process_and_no_more() {
    Role::alone("many");
}

fn many() {
    const MOST: usize = 16_384;
    let memory = Memory::create("many", 4096).unwrap();
    let another = || map(dup(memory.fd()).unwrap(), 4096);
    let mut all: Vec<_> = (0..MOST).map(|_| another().expect("there is room")).collect();
    let refused = another().err();
    assert!(refused == Some(Refusal::TooMany) && Refusal::TooMany.is_own_want());
    assert!(Memory::create("own", 4096).is_ok(), "what is its own does not count");
    all.pop();
    assert!(another().is_ok());
    say("done");
}

#[test]
fn commits_stay_inside() {
    let memory = Memory::create("inside", LEN - 1).unwrap();
    assert_eq!(memory.len(), LEN, "whole pages");
    memory.commit(LEN - 4096, 4096).unwrap();
    memory.commit(LEN - 4096, 4096).expect("again is harmless");
    memory.prefault(100, 5000).unwrap();
    for (at, len) in [(LEN, 1), (0, LEN + 1), (usize::MAX, 2)] {
        let refused = memory.commit(at, len);
        assert!(matches!(refused, Err(Error::BadParameter(_))), "{at} {len}: {refused:?}");
    }
    assert!(matches!(Memory::create("none", 0), Err(Error::BadParameter(_))));
    assert!(matches!(Memory::create("most", usize::MAX), Err(Error::BadParameter(_))));
}

#[test]
fn pages_come_by_commit_and_go_with_the_memory() {
    let memory = Memory::create("sparse", 1 << 30).unwrap();
    let taken = || rustix::fs::fstat(memory.fd()).unwrap().st_blocks * 512;
    assert_eq!(taken(), 0, "a gibibyte of promise");
    memory.commit(8 << 20, 3 << 20).unwrap();
    assert_eq!(taken(), 3 << 20);
}

#[test]
fn huge_pages_or_what_to_set() {
    let switch =
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
    let given =
        ["[advise]", "[always]", "[within_size]", "[force]"].iter().any(|state| switch.contains(state));
    match Memory::create("huge", 4 << 20).unwrap().advise_huge() {
        Ok(()) => assert!(given, "{switch}"),
        Err(error) => {
            assert!(!given && error.to_string().contains("echo advise >"), "{switch}: {error}");
        }
    }
}

/// What both ways of locking give.
const KEEPS: &str = "from being swapped out, so that no thread waits for the disk";

#[test]
fn locking_names_its_gain_and_its_remedy() {
    Role::alone("locked");
}

fn locked() {
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_MEMLOCK, LEN as u64, LEN as u64).unwrap();
    let fits = Memory::create("fits", LEN / 2).unwrap();
    fits.lock().expect("within the limit");
    assert_eq!(
        rustix::fs::fstat(fits.fd()).unwrap().st_blocks,
        0,
        "it locks what is there, and takes nothing"
    );
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(12_345)).unwrap();
    }
    let refused = Memory::create("does not", 4 * LEN).unwrap().lock();
    let text = refused.expect_err("beyond the limit").to_string();
    for part in ["mlock taut-does not, 262144 B: ", KEEPS, "ulimit -l unlimited", "CAP_IPC_LOCK"] {
        assert!(text.contains(part), "{text}");
    }
    say("done");
}

#[test]
fn a_process_that_is_below_its_limit_yet_is_not_locked() {
    // A thread of few addresses: those of another stack and arena would be beyond the limit.
    let mut child = Role::start_with("below", &[("MALLOC_ARENA_MAX", "1"), ("RUST_MIN_STACK", "262144")]);
    assert_eq!(child.hear(), "done");
}

/// Locked it would end with the first memory that it asks for beyond the limit.
fn below() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_MEMLOCK).unwrap();
    setrlimit(Resource::RLIMIT_MEMLOCK, hard.min(8 << 20), hard).unwrap();
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(12_345)).unwrap();
    }
    let text = lock_process().expect_err("it may ask for more than it may lock").to_string();
    for part in ["mlockall: ", KEEPS, "ulimit -l unlimited", "CAP_IPC_LOCK"] {
        assert!(text.contains(part), "{text}");
    }
    std::hint::black_box(vec![1_u8; 16 << 20]);
    say("done");
}

#[test]
fn a_host_without_a_descriptor_to_ask_for_it_is_told_the_limit() {
    Role::alone("undescribed");
}

fn without_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
    let text = host_id().expect_err("there is none").to_string();
    assert!(text.contains("boot_id: Too many open files") && text.contains("`ulimit -n`"), "{text}");
    assert!(!text.contains("mount"), "{text}");
    say("done");
}

#[test]
fn a_limit_of_file_sizes_is_told_and_kills_nobody() {
    Role::alone("limited");
}

fn limited() {
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_FSIZE, LEN as u64, LEN as u64).unwrap();
    let fits = Memory::create("fits", LEN).unwrap();
    fits.commit(0, LEN).expect("within the limit");
    let refused = Memory::create("does not", LEN + 1).expect_err("beyond the limit");
    assert!(matches!(&refused, Error::OutOfResources(text) if text.contains("ulimit -f")), "{refused}");
    say("done");
}

/// What a child of this role says in a memory cgroup of its own; none without root or such a group.
fn said_in_group(test: &str, role: &str) -> Option<String> {
    if !is_root(test) {
        return None;
    }
    let Some(group) = Cgroup::with_limit(role, LIMIT_OF_GROUP) else {
        left_out(test, "no memory cgroup");
        return None;
    };
    let mut child = Role::start(format!("{role} {}/cgroup.procs", group.directory));
    let said = child.hear();
    assert!(child.end().success(), "it goes on");
    Some(said)
}

#[test]
fn a_full_memory_cgroup_refuses_and_kills_nobody() {
    let Some(said) = said_in_group("a_full_memory_cgroup_refuses_and_kills_nobody", "commit") else { return };
    let count: usize = said.split(' ').next().and_then(|n| n.parse().ok()).expect("a count");
    assert!((10..48).contains(&count), "{said}");
    assert!(said.contains("the memory cgroup") && said.contains("memory.max"), "{said}");
}

/// What is there already is not asked for again.
#[test]
fn what_is_prefaulted_is_counted_once() {
    let Some(said) = said_in_group("what_is_prefaulted_is_counted_once", "prefault") else { return };
    assert!(said == "done" || said.contains("Linux 5.14"), "{said}");
}

const LIMIT_OF_GROUP: usize = 48 << 20;

/// Takes half of what the group may have: twice as much would be more than is left of it.
fn prefault_half(procs: &str) {
    std::fs::write(procs, std::process::id().to_string()).expect("the child joins");
    let memory = Memory::create("half", 1 << 30).unwrap();
    let done = memory.prefault(0, LIMIT_OF_GROUP / 2);
    say(done.err().map_or("done".to_owned(), |error| error.to_string()));
}

/// Takes slots of a mebibyte until there are no more, and writes all of each.
fn commit_until_refused(procs: &str) {
    std::fs::write(procs, std::process::id().to_string()).expect("the child joins");
    let memory = Memory::create("filled", 1 << 30).unwrap();
    memory.commit(0, Lane::size(64, 0)).unwrap();
    let lane = Arc::new(Lane::create(memory.region(), 64));
    let (refused, last) = std::sync::mpsc::channel();
    let commit = move |at, len| memory.commit(at, len).map_err(|error| refused.send(error)).is_ok();
    let mut writer = LaneWriter::new(lane, Box::new(commit));
    let mut slots = Vec::new();
    // A slot has headroom, so that one of these takes a mebibyte.
    while let Some(mut slot) = writer.claim((1 << 20) - 192) {
        slot.fill(0x5a);
        slots.push(slot);
        assert!(slots.len() < 1_000, "there is no limit");
    }
    assert!(slots.iter().all(|slot| slot.iter().all(|byte| *byte == 0x5a)));
    say(format!("{} {}", slots.len(), last.try_recv().expect("a reason")));
}

/// A memory cgroup of the test's own, of either version, that goes when it is dropped.
struct Cgroup {
    directory: String,
}

impl Cgroup {
    fn with_limit(name: &str, len: usize) -> Option<Cgroup> {
        let v1 = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
        let v2 = ("/sys/fs/cgroup", "memory.max");
        [v1, v2].into_iter().find_map(|(mount, file)| {
            let directory = format!("{mount}/taut-test-{name}-{}", std::process::id());
            std::fs::create_dir(&directory).ok()?;
            let group = Cgroup { directory };
            std::fs::write(format!("{}/{file}", group.directory), len.to_string()).ok()?;
            Some(group)
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        common::await_that("the cgroup is empty", || std::fs::remove_dir(&self.directory).is_ok());
    }
}
