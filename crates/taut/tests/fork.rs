//! The child of a fork that goes on with its parent's participant: it is told so, waits for nobody, and its parent notices
//! nothing of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use futures_executor::block_on;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};
use taut::cdr::bytemuck::{Pod, Zeroable};
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, PublisherQos, Qos,
};
use taut_exec::{Executor, ExecutorConfig};

const LIMIT: Duration = Duration::from_secs(20);
/// How long a child may take before it is taken to wait for ever.
const CHILD_LIMIT_SECONDS: u32 = 20;

/// Longer than what fits into the cell of a lane.
#[derive(DdsType)]
#[dds(final)]
struct Note {
    n: u32,
    text: String,
}

fn note(n: u32) -> Note {
    Note { n, text: "x".repeat(1_000) }
}

#[derive(DdsType, Clone, Copy, Pod, Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Large {
    words: [u64; 128],
}

/// Runs `child` in a child; it returns what of it was not so.
fn in_child(child: impl FnOnce() -> Vec<&'static str>) {
    // SAFETY: what the child calls takes locks, and is to find out that it may not before it does; the allocator's are free
    // after a fork. It ends without what is run at the end of a process.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Child => {
            alarm::set(CHILD_LIMIT_SECONDS);
            let wrong = catch_unwind(AssertUnwindSafe(child)).unwrap_or_else(|_| vec!["it panicked"]);
            for what in &wrong {
                eprintln!("in the child: {what}");
            }
            // SAFETY: ends the process.
            unsafe { nix::libc::_exit(i32::from(!wrong.is_empty())) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
}

fn is_told<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::IllegalOperation(text)) if text.contains("forked"))
}

/// Of a call that returns no error.
fn panics<T>(call: impl FnOnce() -> T) -> bool {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { return false };
    panic.downcast_ref::<String>().is_some_and(|text| text.contains("forked"))
}

/// The names of what is not so.
fn wrong(all: &[(&'static str, bool)]) -> Vec<&'static str> {
    all.iter().filter(|(_, holds)| !holds).map(|(what, _)| *what).collect()
}

fn config(domain_id: u32, local: bool, driver: Driver) -> Config {
    Config { domain_id, interfaces: vec!["lo".into()], local, driver, ..Config::default() }
}

fn open(domain_id: u32, local: bool) -> DomainParticipant {
    DomainParticipant::with_config(&config(domain_id, local, Driver::default())).unwrap()
}

fn next(reader: &DataReader<Note>) -> u32 {
    reader.wait(LIMIT).unwrap();
    reader.take_next().unwrap().unwrap().data.unwrap().n
}

/// What a child writes comes to nobody, and takes no number from its parent.
fn writes_nothing(domain_id: u32, local: bool) {
    let (ours, theirs) = (open(domain_id, local), open(domain_id, local));
    let qos = Qos::default().reliable().keep_all();
    let writer: DataWriter<Note> = ours.topic("Notes").unwrap().writer(qos.clone()).unwrap();
    let reader: DataReader<Note> = theirs.topic("Notes").unwrap().reader(qos).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    writer.write(&note(1)).unwrap();
    writer.write(&note(2)).unwrap();
    assert_eq!(next(&reader), 1);
    in_child(|| {
        wrong(&[
            ("write", is_told(writer.write(&note(7)))),
            ("try_write", is_told(writer.try_write(&note(8)))),
            ("take_next", is_told(reader.take_next())),
            ("take", is_told(reader.take())),
            ("read", is_told(reader.read())),
            ("wait", is_told(reader.wait(Duration::ZERO))),
        ])
    });
    assert_eq!(next(&reader), 2, "the child has taken it");
    writer.write(&note(3)).unwrap();
    assert_eq!(next(&reader), 3);
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    assert!(reader.take_next().unwrap().is_none());
}

#[test]
fn a_child_writes_nothing_into_a_lane() {
    writes_nothing(105, true);
}

#[test]
fn a_child_writes_nothing_to_the_network() {
    writes_nothing(106, false);
}

#[test]
fn each_call_of_a_child_says_that_it_is_forked() {
    let participant = open(107, true);
    let inline = DomainParticipant::with_config(&config(108, true, Driver::Inline)).unwrap();
    let topic = participant.topic::<Note>("Calls").unwrap();
    let (writer, reader) = (topic.writer(Qos::default()).unwrap(), topic.reader(Qos::default()).unwrap());
    let large = participant.topic::<Large>("Large").unwrap();
    let (lender, viewer) = (large.writer(Qos::default()).unwrap(), large.reader(Qos::default()).unwrap());
    lender.wait_matched(LIMIT).unwrap();
    let loan = lender.loan().unwrap();
    let dropped = lender.loan().unwrap();
    let publisher = participant.publisher(PublisherQos::default());
    publisher.suspend_publications();
    let mut stream = reader.samples();
    in_child(|| {
        drop(dropped);
        let mut all = vec![
            ("writer", is_told(topic.writer(Qos::default()))),
            ("reader", is_told(topic.reader(Qos::default()))),
            ("loan", is_told(lender.loan())),
            ("a loan's write", is_told(loan.write())),
            ("view", is_told(viewer.take_view())),
            ("wait_matched", is_told(writer.wait_matched(Duration::ZERO))),
            ("wait_for_acknowledgments", is_told(writer.wait_for_acknowledgments(Duration::ZERO))),
            ("resume_publications", is_told(publisher.resume_publications())),
            ("run_once", is_told(inline.run_once(Duration::ZERO))),
            ("poll_while", is_told(inline.poll_while(|| false))),
            ("stats", panics(|| participant.stats())),
            ("assert_liveliness", panics(|| participant.assert_liveliness())),
            ("status", panics(|| writer.publication_matched_status())),
            ("set_listener", panics(|| writer.set_listener(|_| ()))),
        ];
        let is_over = block_on(std::future::poll_fn(|context| {
            futures_core::Stream::poll_next(std::pin::Pin::new(&mut stream), context)
        }));
        all.push(("a stream ends", is_over.is_none()));
        wrong(&all)
    });
    publisher.resume_publications().unwrap();
}

/// A thread of the parent's has the token at the fork, and is not there to give it back.
#[test]
fn a_child_waits_for_no_token_of_its_parents() {
    let executor = config(109, true, Driver::Inline);
    let udp = taut_port_udp::UdpConfig {
        domain_id: executor.domain_id,
        interfaces: executor.interfaces,
        ..Default::default()
    };
    let executor =
        Executor::start(&ExecutorConfig { udp, driver: Driver::Inline, ..Default::default() }).unwrap();
    std::thread::scope(|scope| {
        let executor = &executor;
        let ((has, wait_until_held), (end, wait_for_end)) = (mpsc::channel(), mpsc::channel::<()>());
        scope.spawn(move || {
            executor.with(|_, _| {
                has.send(()).unwrap();
                // Whatever becomes of the child.
                let _ = wait_for_end.recv();
            });
        });
        wait_until_held.recv().unwrap();
        in_child(|| {
            wrong(&[
                ("with", panics(|| executor.with(|_, _| ()))),
                ("look", panics(|| executor.look(|_, _| ()))),
                ("stats", panics(|| executor.stats())),
                ("may_wait", is_told(executor.may_wait())),
            ])
        });
        drop(end);
    });
}
