//! Lanes between two processes, from the offer to the end of either of them.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use common::{
    LIMIT, Role, await_accept, await_events, await_message, await_that, hear, pair, parse_prefix, role, say,
    send_welcome, unused_prefix,
};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use rustix::event::PollFlags;
use taut_mem::Bytes;
use taut_mem::lane::{Entry, FEEDBACK_LEN, Feedback, Lane, LaneReader, LaneWriter, Next, Peer, Slot};
use taut_port_shm::{Connection, Listener, Memory, Message, fork_word, map};

const CELLS: usize = 64;
/// Much, so that it is seen in what the machine says about shared memory.
const ARENA: usize = 96 << 20;
/// Half of it: other programs of the machine may use a little at the same time.
const SEEN: u64 = ARENA as u64 / 2;
const BIG: usize = 5 << 20;
const MAX_LEN: u64 = 1 << 30;

#[test]
fn child() {
    let Some(role) = role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["read", prefix] => read(&connect(prefix)),
        ["write", prefix] => write(&connect(prefix)),
        _ => panic!("no role {role:?}"),
    }
}

/// A writer whose lane is in memory that can be passed on.
fn connect(prefix: &str) -> Connection {
    let connection = Connection::connect(parse_prefix(prefix), None).unwrap();
    connection.welcome();
    connection
}

fn writer() -> (Memory, LaneWriter) {
    let memory = Memory::create("lane", Lane::size(CELLS, ARENA)).unwrap();
    memory.commit(0, Lane::size(CELLS, 0)).unwrap();
    let lane = Arc::new(Lane::create(memory.region(), CELLS));
    let shared = memory.clone();
    let writer = LaneWriter::new(lane, Box::new(move |at, len| shared.commit(at, len).is_ok()));
    (memory, writer)
}

/// The writer's side: offers the lane, and waits for the reader's feedback.
fn offer(connection: &Connection, memory: &Memory, writer: &mut LaneWriter) {
    let (of, to) = pair();
    send_welcome(connection, &Message::Offer { writer: of, reader: to, number: 1 }, &[memory.fd()]);
    let (message, fds) = await_message(connection);
    assert_eq!(message, Message::Accept { writer: of, reader: to, number: 1 });
    let feedback = map(fds.into_iter().next().unwrap(), FEEDBACK_LEN as u64).unwrap();
    let feedback = Arc::new(Feedback::new(feedback).unwrap());
    writer.set_peers(vec![Peer { feedback, reliable: true }]);
}

/// The reader's side: attaches to the lane that it is offered.
fn attach(connection: &Connection) -> LaneReader {
    let (message, fds) = await_message(connection);
    let Message::Offer { writer, reader, number } = message else { panic!("no offer: {message:?}") };
    let region = map(fds.into_iter().next().unwrap(), MAX_LEN).unwrap();
    let lane = Arc::new(Lane::open(region).expect("there is a lane"));
    let memory = Memory::create("feedback", FEEDBACK_LEN).unwrap();
    memory.commit(0, FEEDBACK_LEN).unwrap();
    let feedback = Arc::new(Feedback::new(memory.region()).unwrap());
    let attached = LaneReader::attach(lane, feedback, false);
    send_welcome(connection, &Message::Accept { writer, reader, number }, &[memory.fd()]);
    attached
}

fn push_big(writer: &mut LaneWriter, number: u64) {
    let mut claimed = None;
    await_that("a reader gives a slot back", || {
        claimed = writer.claim(BIG);
        claimed.is_some()
    });
    let mut slot = claimed.unwrap();
    slot[..BIG].fill(number as u8);
    assert!(writer.push_slot(&[number; 5], slot, BIG).is_ok());
}

/// All slots that are left, so that the lane has what it can have: how much it had before depends on how soon its reader
/// gave slots back.
fn claim_all(writer: &mut LaneWriter) -> Vec<Slot> {
    std::iter::from_fn(|| writer.claim(BIG)).take(100).collect()
}

/// The next sample, which is on its way.
fn take(reader: &mut LaneReader) -> (u64, Bytes) {
    let mut taken = None;
    await_that("a sample comes", || {
        let mut entry = Entry::default();
        match reader.poll(&mut entry) {
            Next::Sample { lost: 0 } => {
                taken = Some((entry.meta[0], entry.payload.into()));
                true
            }
            Next::Empty => false,
            other => panic!("{other:?}"),
        }
    });
    reader.publish();
    taken.unwrap()
}

/// The child has the same memory to tell the writer what it holds.
#[test]
fn what_the_child_of_a_fork_drops_is_held_by_its_parent() {
    let (_memory, mut writer) = writer();
    let memory = Memory::create("feedback", FEEDBACK_LEN).unwrap();
    memory.commit(0, FEEDBACK_LEN).unwrap();
    let number = fork_word().unwrap();
    number.store(std::process::id(), Relaxed);
    let feedback = Arc::new(Feedback::new(memory.region()).unwrap().of_process(number));
    writer.set_peers(vec![Peer { feedback: Arc::clone(&feedback), reliable: true }]);
    let mut reader = LaneReader::attach(Arc::clone(writer.lane()), Arc::clone(&feedback), false);
    push_big(&mut writer, 1);
    let held = take(&mut reader);
    // SAFETY: the child drops what this thread has, takes no lock that another could hold, and exits.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            drop(held);
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    assert!(feedback.holds_any(), "its parent looks at it still");
    assert_eq!(held.1.len(), BIG);
    drop(held);
    assert!(!feedback.holds_any());
}

/// What the whole machine has in shared memory. Only that it falls tells: what a test before has let go of may be freed
/// a moment later.
fn shared_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Both tests look at the machine's memory: one after the other.
#[test]
fn a_killed_side_leaves_the_other_its_memory_and_the_machine_nothing() {
    a_reader_is_killed();
    a_writer_is_killed();
}

fn a_reader_is_killed() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut child = Role::start(format!("read {prefix}"));
    let connection = await_accept(&mut listener);
    let (memory, mut writer) = writer();
    offer(&connection, &memory, &mut writer);
    writer.push(&[1; 5], b"in the cell").unwrap();
    push_big(&mut writer, 2);
    push_big(&mut writer, 3);
    for said in ["1 11 in the cell", "2 5242880 all 2", "3 5242880 all 3"] {
        assert_eq!(child.hear(), said);
    }
    await_that("the feedback says that all is read", || writer.unread() == 0);
    assert_eq!(child.hear(), "keeps 2");

    // The reader keeps sample 2: its slot is never used again, whatever is written.
    child.say();
    for number in 4..40 {
        push_big(&mut writer, number);
    }
    assert_eq!(child.hear(), "40 and still 2");

    child.kill();
    assert!(await_events(connection.fd(), LIMIT).contains(PollFlags::HUP));
    assert_eq!(writer.unread(), 0, "the dead reader's words are still there");
    push_big(&mut writer, 40);
    assert_eq!(writer.unread(), 1);
    writer.set_peers(Vec::new());
    for number in 41..200 {
        push_big(&mut writer, number);
    }
    let claimed = claim_all(&mut writer);
    let most = shared_memory();
    drop((connection, memory, writer, claimed));
    await_that("all of it goes back", || shared_memory() + SEEN < most);
}

fn read(connection: &Connection) {
    let mut reader = attach(connection);
    let all = |payload: &Bytes, value: u8| payload.iter().all(|byte| *byte == value);
    let (number, first) = take(&mut reader);
    say(format!("{number} {} {}", first.len(), String::from_utf8_lossy(&first)));
    let (number, kept) = take(&mut reader);
    assert!(all(&kept, 2));
    say(format!("{number} {} all 2", kept.len()));
    let (number, next) = take(&mut reader);
    assert!(all(&next, 3));
    say(format!("{number} {} all 3", next.len()));
    drop(next);
    say("keeps 2");
    hear();
    for number in 4..40 {
        let (found, payload) = take(&mut reader);
        assert!(found == number && all(&payload, number as u8), "{found} of {number}");
    }
    assert!(all(&kept, 2));
    say("40 and still 2");
    hear();
}

fn a_writer_is_killed() {
    let prefix = unused_prefix();
    let mut listener = Listener::bind(prefix, None).unwrap();
    let mut child = Role::start(format!("write {prefix}"));
    let connection = await_accept(&mut listener);
    let mut reader = attach(&connection);
    assert_eq!(child.hear(), "written");
    let (first, kept) = take(&mut reader);
    child.kill();
    assert!(await_events(connection.fd(), LIMIT).contains(PollFlags::HUP));
    child.end();
    assert_eq!((first, kept.len()), (1, BIG));
    assert!(kept.iter().all(|byte| *byte == 1), "what was taken stays");
    let (second, payload) = take(&mut reader);
    assert!(second == 2 && payload.iter().all(|byte| *byte == 2), "what was written can still be read");
    assert!(matches!(reader.poll(&mut Entry::default()), Next::Empty), "what was not, does not come");
    assert!(!reader.lane().is_closed(), "it had no time to say good-bye");
    let most = shared_memory();
    drop((connection, reader, payload));
    assert!(kept.iter().all(|byte| *byte == 1), "a sample keeps its memory");
    drop(kept);
    await_that("all of it goes back", || shared_memory() + SEEN < most);
}

fn write(connection: &Connection) {
    let (memory, mut writer) = writer();
    offer(connection, &memory, &mut writer);
    push_big(&mut writer, 1);
    push_big(&mut writer, 2);
    // The first is half written.
    let mut claimed = claim_all(&mut writer);
    claimed[0][..BIG / 2].fill(3);
    say("written");
    hear();
}
