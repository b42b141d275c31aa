//! Two processes find each other, pass memory, and notice at once when one of them ends.

mod common;

use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{
    LIMIT, Role, await_accept, await_events, await_message, await_ready, await_that, descriptors, hear,
    is_root, pair, parse_prefix, role, say, send_welcome, unused_prefix,
};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{ForkResult, Gid, Uid, fork, setgroups, setresgid, setresuid};
use rustix::event::PollFlags;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};
use taut_base::{Error, GuidPrefix};
use taut_mem::lane::Bell;
use taut_port_shm::{
    Admitted, ConnectError, Connection, Listener, Memory, Message, Policy, Received, SendError, Waker,
    host_id, map,
};

const PAGE: usize = 4096;

#[test]
fn child() {
    let Some(role) = role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["greet", prefix] => greet(prefix),
        ["fork", prefix] => connect_and_fork(prefix),
        ["listen", prefix, directory] => listen(prefix, Path::new(directory)),
        ["stranger", prefix, gid, group, directory] => stranger(prefix, gid, group, directory),
        ["strange_listener", prefix] => strange_listener(prefix),
        ["cycles"] => cycles(),
        ["exhausted"] => exhausted(),
        ["full"] => full(),
        ["crowded"] => crowded(),
        _ => panic!("no role {role:?}"),
    }
}

/// The bell and the waker of a participant.
fn belongings() -> (Memory, Waker) {
    let memory = Memory::create("bell", PAGE).unwrap();
    memory.commit(0, PAGE).unwrap();
    (memory, Waker::new().unwrap())
}

fn hello(prefix: GuidPrefix) -> Message {
    Message::Hello { host_id: host_id().unwrap(), prefix, hears_end: true }
}

fn connect(prefix: GuidPrefix) -> Connection {
    let connection = Connection::connect(prefix, None).expect("the parent listens");
    connection.welcome();
    connection
}

#[test]
fn hello_there_and_back_with_memory_and_wakers() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    assert!(listener.accept().unwrap().is_none(), "nobody yet, and no wait");
    let mut child = Role::start(format!("greet {prefix}"));
    let connection = await_accept(&mut listener);
    let peer = connection.peer().unwrap();
    assert_eq!(peer.pid, Some(child.pid()));
    assert_eq!(Policy::default().admit(&peer), Ok(Admitted::Trusted));

    let (message, fds) = await_message(&connection);
    assert_eq!(message, hello(GuidPrefix([0xc; 12])));
    let [memory, waker] = fds.try_into().expect("two descriptors");
    let bell = Bell::new(map(memory, PAGE as u64).unwrap()).unwrap();
    assert_eq!(bell.armed(), Some(1), "as the child has armed it");
    let (own_memory, own_waker) = belongings();
    send_welcome(&connection, &hello(prefix), &[own_memory.fd(), own_waker.fd()]);
    assert!(await_ready(own_waker.fd(), LIMIT) && own_waker.clear(), "the child has rung");
    assert!(matches!(connection.receive(), Received::Empty));
    Waker::from_fd(waker).unwrap().ring();
    assert_eq!(child.hear(), "woken");
    assert!(await_events(connection.fd(), LIMIT).contains(PollFlags::HUP));
    assert!(matches!(connection.receive(), Received::Gone));
    let (writer, reader) = pair();
    assert_eq!(connection.send(&Message::End { writer, reader }, &[]), Err(SendError::Gone));
}

fn greet(prefix: &str) {
    let connection = connect(parse_prefix(prefix));
    let (memory, waker) = belongings();
    Bell::new(memory.region()).unwrap().arm();
    send_welcome(&connection, &hello(GuidPrefix([0xc; 12])), &[memory.fd(), waker.fd()]);
    let (message, fds) = await_message(&connection);
    assert_eq!(message, hello(parse_prefix(prefix)));
    let [_, parents] = fds.try_into().expect("two descriptors");
    Waker::from_fd(parents).unwrap().ring();
    assert!(await_ready(waker.fd(), LIMIT) && waker.clear());
    say("woken");
}

#[test]
fn programs_that_are_started_inherit_nothing() {
    use rustix::io::{FdFlags, fcntl_getfd};
    let prefix = unused_prefix();
    let directory = tempfile::tempdir().unwrap();
    let by_path = Listener::bind(prefix, Some(directory.path())).unwrap();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let near = connect(prefix);
    let far = await_accept(&mut listener);
    let peer = far.peer().unwrap();
    let (memory, waker) = belongings();
    near.send(&hello(prefix), &[memory.fd(), waker.fd()]).unwrap();
    let (_, received) = await_message(&far);
    let own =
        [by_path.fd(), listener.fd(), near.fd(), far.fd(), memory.fd(), waker.fd(), peer.pidfd().unwrap()];
    for (n, fd) in own.into_iter().chain(received.iter().map(AsFd::as_fd)).enumerate() {
        assert_eq!(fcntl_getfd(fd), Ok(FdFlags::CLOEXEC), "number {n}");
    }
}

#[test]
fn a_killed_peer_hangs_up_at_once() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut child = Role::start(format!("listen {prefix} @"));
    assert_eq!(child.hear(), "name taken", "no two listen under one name");
    let connection = await_accept(&mut listener);
    let peer = connection.peer().unwrap();
    let pidfd = peer.pidfd().expect("this kernel has them");
    assert!(!await_ready(connection.fd(), Duration::ZERO) && !await_ready(pidfd, Duration::ZERO));
    let killed = Instant::now();
    child.kill();
    assert!(await_events(connection.fd(), LIMIT).contains(PollFlags::HUP));
    println!("hung up after {:?}", killed.elapsed());
    assert!(await_ready(pidfd, LIMIT));
    println!("pidfd told after {:?}", killed.elapsed());
    assert!(matches!(connection.receive(), Received::Gone));
}

#[test]
fn the_pidfd_tells_when_a_forked_child_keeps_the_socket() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut child = Role::start(format!("fork {prefix}"));
    assert_eq!(child.hear(), "forked");
    let connection = await_accept(&mut listener);
    let peer = connection.peer().unwrap();
    child.kill();
    assert!(await_ready(peer.pidfd().expect("this kernel has them"), LIMIT));
    assert!(!await_ready(connection.fd(), Duration::ZERO), "the grandchild holds the other end");
    drop(child);
    assert!(await_events(connection.fd(), LIMIT).contains(PollFlags::HUP), "it ends with its input");
}

fn connect_and_fork(prefix: &str) {
    let _connection = connect(parse_prefix(prefix));
    // SAFETY: the grandchild reads its input and exits: it takes no lock that another thread could hold.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            let mut byte = [0; 1];
            while rustix::io::read(rustix::stdio::stdin(), &mut byte[..]).is_ok_and(|count| count > 0) {}
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { .. } => {
            say("forked");
            hear();
        }
    }
}

/// Listens until it is killed. In place of the directory `@`: its name is taken, so it connects.
fn listen(prefix: &str, directory: &Path) {
    let prefix = parse_prefix(prefix);
    if directory == Path::new("@") {
        assert!(matches!(Listener::bind(prefix, None), Err(Error::Error(_))));
        let _connection = connect(prefix);
        say("name taken");
        hear();
        return;
    }
    let _listener = Listener::bind(prefix, Some(directory)).unwrap();
    say("listens");
    hear();
}

#[test]
fn ten_thousand_connections_leave_nothing() {
    Role::alone("cycles");
}

fn cycles() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut cycle = || {
        let near = connect(prefix);
        let far = listener.accept().unwrap().expect("it waits");
        far.welcome();
        assert_eq!(Policy::default().admit(&far.peer().unwrap()), Ok(Admitted::Trusted));
        for (from, to) in [(&near, &far), (&far, &near)] {
            let (memory, waker) = belongings();
            from.send(&hello(prefix), &[memory.fd(), waker.fd()]).unwrap();
            let (_, fds) = await_message(to);
            let [memory, waker] = fds.try_into().expect("two descriptors");
            map(memory, PAGE as u64).unwrap();
            Waker::from_fd(waker).unwrap().ring();
        }
    };
    (0..1_000).for_each(|_| cycle());
    let before = (descriptors(), resident());
    (0..9_000).for_each(|_| cycle());
    let after = (descriptors(), resident());
    assert_eq!(after.0, before.0, "descriptors");
    assert!(after.1 <= before.1 + 64, "resident pages: {} before, {} after", before.1, after.1);
    println!("after 1,000: {before:?}, after 10,000: {after:?}");
    say("done");
}

/// Pages in memory.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn another_user_is_refused_with_a_sentence() {
    if !is_root("another_user_is_refused_with_a_sentence") {
        return;
    }
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let child = Role::start(format!("stranger {prefix} 5555 777 @"));
    let peer = await_accept(&mut listener).peer().unwrap();
    let sentence = Policy::default().admit(&peer).unwrap_err().to_string();
    let pid = child.pid();
    let expected = format!(
        "process {pid} is of user 12345, this one of user 0: run both as one user, or allow group 5555"
    );
    assert_eq!(sentence, expected);
    for gid in [5555, 777] {
        let policy = Policy { allowed_gids: vec![1, gid] };
        assert_eq!(policy.admit(&peer), Ok(Admitted::Untrusted), "group {gid}");
    }
}

fn become_stranger(gid: u32, groups: &[Gid]) {
    let (gid, uid) = (Gid::from_raw(gid), Uid::from_raw(12_345));
    setgroups(groups).unwrap();
    setresgid(gid, gid, gid).unwrap();
    setresuid(uid, uid, uid).unwrap();
}

fn stranger(prefix: &str, gid: &str, group: &str, directory: &str) {
    become_stranger(gid.parse().unwrap(), &[Gid::from_raw(group.parse().unwrap())]);
    let directory = Some(Path::new(directory)).filter(|directory| *directory != Path::new("@"));
    let _connection = Connection::connect(parse_prefix(prefix), directory).expect("the parent listens");
    hear();
}

#[test]
fn whoever_reaches_the_directory_may_connect() {
    if !is_root("whoever_reaches_the_directory_may_connect") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, Some(directory.path())).unwrap();
    let _child = Role::start(format!("stranger {prefix} 5555 777 {}", directory.path().display()));
    let peer = await_accept(&mut listener).peer().unwrap();
    assert_eq!(Policy { allowed_gids: vec![5555] }.admit(&peer), Ok(Admitted::Untrusted));
}

#[test]
fn who_listens_under_the_name_is_looked_at_too() {
    if !is_root("who_listens_under_the_name_is_looked_at_too") {
        return;
    }
    let prefix = unused_prefix();
    let mut child = Role::start(format!("strange_listener {prefix}"));
    assert_eq!(child.hear(), "listens");
    let peer = connect(prefix).peer().unwrap();
    assert_eq!((peer.pid, peer.uid), (Some(child.pid()), 12_345));
    assert!(Policy::default().admit(&peer).is_err());
}

fn strange_listener(prefix: &str) {
    become_stranger(5555, &[]);
    let _listener = Listener::bind(parse_prefix(prefix), None).unwrap();
    say("listens");
    hear();
}

#[test]
fn a_path_outlives_its_process_until_somebody_else_binds() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let names = || std::fs::read_dir(at).unwrap().count();
    let [dead, same, live] = std::array::from_fn(|_| unused_prefix());
    let mut children = [dead, same].map(|prefix| Role::start(format!("listen {prefix} {}", at.display())));
    for (child, prefix) in children.iter_mut().zip([dead, same]) {
        assert_eq!(child.hear(), "listens");
        Connection::connect(prefix, Some(at)).expect("it listens");
    }
    for child in &mut children {
        child.kill();
        child.end();
    }
    assert_eq!(names(), 2, "what the two have left");
    assert_eq!(Connection::connect(dead, Some(at)).err(), Some(ConnectError::Nobody));
    std::fs::write(at.join("taut-notes.sock"), "not a socket").unwrap();

    let first = Listener::bind(same, Some(at)).expect("the name of a dead process is free");
    assert_eq!(names(), 2, "its own name and the file that is none");
    let second = Listener::bind(live, Some(at)).unwrap();
    assert_eq!(names(), 3, "a name that lives stays");
    let taken = Listener::bind(live, Some(at)).unwrap_err().to_string();
    assert!(taken.contains("another participant has this name"), "{taken}");
    Connection::connect(same, Some(at)).expect("the first still listens");
    assert!(!await_ready(second.fd(), Duration::ZERO), "nobody has disturbed it");
    let path = std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    let of_first = path.into_iter().find(|path| path.to_string_lossy().contains(&same.to_string())).unwrap();
    drop((first, second));
    assert_eq!(names(), 1, "each has removed its own");

    leave_half_made(&of_first);
    drop(Listener::bind(same, Some(at)).expect("a half-made name is free too"));
    assert_eq!(names(), 1);
    assert_eq!(Connection::connect(live, Some(at)).err(), Some(ConnectError::Nobody));
}

/// What a process leaves that is killed between its bind and its rename to this name. Returns where.
fn leave_half_made(name: &Path) -> PathBuf {
    let young = name.with_extension("new");
    drop(UnixListener::bind(&young).unwrap());
    // A child that another test starts just now has it open until it runs its own program.
    let end = Instant::now() + Duration::from_secs(10);
    while UnixStream::connect(&young).is_ok() {
        assert!(Instant::now() < end, "nobody holds it for long");
        std::thread::yield_now();
    }
    young
}

#[test]
fn a_name_that_was_half_made_goes_with_the_next_bind() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let dead = Listener::bind(unused_prefix(), Some(at)).unwrap();
    let name = std::fs::read_dir(at).unwrap().next().unwrap().unwrap().path();
    drop(dead);
    let young = leave_half_made(&name);
    make_old(&young);
    let _live = Listener::bind(unused_prefix(), Some(at)).unwrap();
    assert!(!young.exists(), "nobody else ever has this prefix");
}

/// As if it had been made long ago.
fn make_old(name: &Path) {
    let long_ago = Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = Timestamps { last_access: long_ago, last_modification: long_ago };
    utimensat(CWD, name, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Its socket has it a moment after it is there.
#[test]
fn a_name_that_was_just_made_stays() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let dead = Listener::bind(unused_prefix(), Some(at)).unwrap();
    let young = std::fs::read_dir(at).unwrap().next().unwrap().unwrap().path().with_extension("new");
    drop(dead);
    mknodat(CWD, &young, FileType::Socket, Mode::RWXU, 0).unwrap();
    let _first = Listener::bind(unused_prefix(), Some(at)).unwrap();
    assert!(young.exists(), "its owner is about to listen");
    make_old(&young);
    let _second = Listener::bind(unused_prefix(), Some(at)).unwrap();
    assert!(!young.exists());
}

#[test]
fn a_directory_that_is_none() {
    let missing = Listener::bind(unused_prefix(), Some(Path::new("/no/such"))).unwrap_err().to_string();
    assert!(missing.contains("mount it into this container"), "{missing}");
    let long = format!("/tmp/{}", "long".repeat(30));
    let text = Listener::bind(unused_prefix(), Some(Path::new(&long))).unwrap_err().to_string();
    assert!(text.contains("shorter path"), "{text}");
}

#[test]
fn names_end_at_the_network_namespace_and_paths_do_not() {
    if !is_root("names_end_at_the_network_namespace_and_paths_do_not") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (prefix, at) = (unused_prefix(), directory.path().to_path_buf());
    let _by_name = Listener::bind(prefix, None).unwrap();
    let mut by_path = Listener::bind(prefix, Some(&at)).unwrap();
    let other = std::thread::spawn(move || {
        connect(prefix);
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        assert_eq!(Connection::connect(prefix, None).err(), Some(ConnectError::Nobody));
        let text = ConnectError::Nobody.to_string();
        assert!(text.contains("containers need a directory that both mount"), "{text}");
        let connection = Connection::connect(prefix, Some(&at)).expect("the path is shared");
        let (memory, waker) = belongings();
        send_welcome(&connection, &hello(prefix), &[memory.fd(), waker.fd()]);
        Listener::bind(prefix, None).expect("here the name is free");
    });
    let connection = await_accept(&mut by_path);
    assert_eq!(Policy::default().admit(&connection.peer().unwrap()), Ok(Admitted::Trusted));
    let (_, fds) = await_message(&connection);
    assert_eq!(fds.len(), 2);
    other.join().expect("the other namespace");
}

#[test]
fn without_descriptors_a_peer_is_turned_away() {
    Role::alone("exhausted");
}

fn exhausted() {
    use nix::sys::resource::{Resource, setrlimit};
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let near = connect(prefix);
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    let mut fill = Vec::new();
    while let Ok(fd) = rustix::io::dup(listener.fd()) {
        fill.push(fd);
    }
    // One that could not turn away would be asked again and again.
    drop(fill.pop());
    let without_spare = Listener::bind(unused_prefix(), None).err();
    assert!(matches!(without_spare, Some(Error::OutOfResources(_))), "{without_spare:?}");
    fill.extend(rustix::io::dup(listener.fd()));
    let refused = listener.accept();
    assert!(matches!(refused, Err(Error::OutOfResources(_))), "{refused:?}");
    assert!(!await_ready(listener.fd(), Duration::ZERO), "it is not asked again and again");
    assert!(await_events(near.fd(), LIMIT).contains(PollFlags::HUP), "the peer knows");
    fill.clear();
    let again = connect(prefix);
    let accepted = listener.accept().unwrap().expect("now there is room");
    accepted.welcome();
    let message = hello(prefix);
    while let Ok(fd) = rustix::io::dup(listener.fd()) {
        fill.push(fd);
    }
    again.send(&message, &[again.fd(), again.fd()]).unwrap();
    let received = accepted.receive();
    assert!(matches!(&received, Received::Cut(cut) if *cut == message), "no room for two: {received:?}");
    drop(fill.pop());
    again.send(&message, &[again.fd(), again.fd()]).unwrap();
    let received = accepted.receive();
    assert!(matches!(&received, Received::Cut(cut) if *cut == message), "room for one: {received:?}");
    fill.extend(rustix::io::dup(listener.fd()));
    assert!(rustix::io::dup(listener.fd()).is_err(), "the one that came is closed");
    say("done");
}

#[test]
fn too_many_descriptors_on_their_way_are_told_apart() {
    Role::alone("crowded");
}

fn crowded() {
    use nix::sys::resource::{Resource, setrlimit};
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let near = connect(prefix);
    let far = listener.accept().unwrap().expect("it has connected");
    far.welcome();
    let (memory, waker) = belongings();
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(12_346)).unwrap();
    }
    let mut sent = 0;
    let end = loop {
        match near.send(&hello(prefix), &[memory.fd(), waker.fd()]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(end, SendError::Crowded, "after {sent}");
    let (writer, reader) = pair();
    near.send(&Message::End { writer, reader }, &[]).expect("it has no descriptors");
    while let Received::Message(..) = far.receive() {}
    near.send(&hello(prefix), &[memory.fd(), waker.fd()]).expect("there is room again");
    say("done");
}

#[test]
fn who_does_not_read_fills_up_and_holds_up_nobody() {
    Role::alone("full");
}

fn full() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut waiting = Vec::new();
    let busy = loop {
        match Connection::connect(prefix, None) {
            Ok(connection) => waiting.push(connection),
            Err(error) => break error,
        }
        assert!(waiting.len() < 1_000, "the backlog has an end");
    };
    assert_eq!(busy, ConnectError::Busy);
    let far = listener.accept().unwrap().expect("many wait");
    far.welcome();
    let near = &waiting[0];
    let (memory, waker) = belongings();
    let mut sent = 0;
    let end = loop {
        match near.send(&hello(prefix), &[memory.fd(), waker.fd()]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent < 10_000, "the queue has an end");
    };
    assert!(matches!(end, SendError::Full | SendError::Crowded), "{end:?} after {sent}");
    println!("{} wait to be accepted, {sent} messages to be read: {end}", waiting.len());
    let mut read = 0;
    while let Received::Message(..) = far.receive() {
        read += 1;
    }
    assert_eq!(read, sent);
    near.send(&hello(prefix), &[memory.fd(), waker.fd()]).expect("there is room again");
    let expected = SendError::Descriptors { expected: 2, found: 1 };
    assert_eq!(near.send(&hello(prefix), &[memory.fd()]), Err(expected));
    drop(far);
    await_that("the other end is gone", || {
        near.send(&hello(prefix), &[memory.fd(), waker.fd()]) == Err(SendError::Gone)
    });
    say("done");
}
