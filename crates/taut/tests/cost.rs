//! What a sample costs on each path once all is warm: allocations, system calls, tokens, locks. One test in a binary
//! of its own, since it counts the allocations of the whole process. `docs/write-to-take.md` shows the table.

use std::cell::RefCell;
use std::process::{Child, Command};

use taut::{Config, DataReader, DataWriter, DdsType, DomainParticipant, Duration, Qos};
use taut_mem::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// With members that have memory of their own.
#[derive(DdsType)]
#[dds(final)]
struct Reading {
    seq: u64,
    sensor: String,
    numbers: Vec<u64>,
}

fn reading() -> Reading {
    Reading { seq: 0, sensor: "boiler 3".into(), numbers: vec![1; 3] }
}

const DOMAIN: u32 = 63;
/// The announcements in quick succession at the start are over by then.
const WARM_UP: std::time::Duration = std::time::Duration::from_secs(1);
const ROUNDS: u64 = 10_000;
const LAST: u64 = u64::MAX;
const SOON: Duration = Duration::from_secs(10);

struct Side {
    participant: DomainParticipant,
    writer: DataWriter<Reading>,
    reader: DataReader<Reading>,
    out: RefCell<Reading>,
    taken: RefCell<Reading>,
}

/// The way of a sample.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Path {
    Thread,
    Process,
    OtherProcess,
    Udp,
}

/// Set in the process that answers: it plays the other side of the path to another process.
const ECHO: &str = "TAUT_COST_ECHO";

/// What a round trip costs this side's participant; the allocations are those of both sides, if both are
/// in this process.
#[derive(Debug)]
struct Cost {
    allocations: f64,
    sends: f64,
    receives: f64,
    tokens: f64,
    /// System calls to wait, or to look for what is there.
    waits: f64,
    /// Locks of this process that were found taken.
    contended: f64,
}

impl Side {
    fn new(path: Path, writes: &str, reads: &str) -> Side {
        let (domain_id, local) = (DOMAIN + path as u32, path != Path::Udp);
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let participant = DomainParticipant::with_config(&config).unwrap();
        let writer = participant.topic(writes).unwrap().writer(Qos::default().reliable()).unwrap();
        let reader = participant.topic(reads).unwrap().reader(Qos::default().reliable()).unwrap();
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        let (out, taken) = (RefCell::new(reading()), RefCell::new(reading()));
        Side { participant, writer, reader, out, taken }
    }

    /// Waits for a sample and gives its number.
    fn receive(&self) -> u64 {
        loop {
            let mut taken = self.taken.borrow_mut();
            match self.reader.take_into(&mut taken).unwrap() {
                Some(_) => return taken.seq,
                None => self.reader.wait(SOON).unwrap(),
            }
        }
    }

    fn round_trip(&self, seq: u64) {
        self.out.borrow_mut().seq = seq;
        self.writer.write(&self.out.borrow()).unwrap();
        assert_eq!(self.receive(), seq);
    }
}

fn echo(path: Path) {
    let side = Side::new(path, "Pong", "Ping");
    loop {
        let seq = side.receive();
        side.writer.write(&side.taken.borrow()).unwrap();
        if seq == LAST {
            return side.writer.wait_for_acknowledgments(SOON).unwrap();
        }
    }
}

/// A process that is ended if it is left over.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who answers.
enum Answerer {
    Itself,
    Thread(std::thread::JoinHandle<()>),
    Process(Ended),
}

impl Answerer {
    fn start(path: Path) -> Answerer {
        match path {
            Path::Thread => Answerer::Itself,
            Path::Process | Path::Udp => Answerer::Thread(std::thread::spawn(move || echo(path))),
            Path::OtherProcess => {
                let program = std::env::current_exe().unwrap();
                Answerer::Process(Ended(Command::new(program).env(ECHO, "1").spawn().unwrap()))
            }
        }
    }

    fn join(self) {
        match self {
            Answerer::Itself => {}
            Answerer::Thread(thread) => thread.join().unwrap(),
            Answerer::Process(mut process) => assert!(process.0.wait().unwrap().success()),
        }
    }
}

fn measure(path: Path) -> Cost {
    let pong = Answerer::start(path);
    let side =
        if path == Path::Thread { Side::new(path, "Ping", "Ping") } else { Side::new(path, "Ping", "Pong") };
    let start = std::time::Instant::now();
    while start.elapsed() < WARM_UP {
        side.round_trip(0);
    }
    let (before, allocations_before) = (side.participant.stats(), CountingAllocator::of_process());
    (1..=ROUNDS).for_each(|seq| side.round_trip(seq));
    let (after, allocations) = (side.participant.stats(), CountingAllocator::of_process());
    side.round_trip(LAST);
    pong.join();
    assert_eq!(after.panics, 0);
    let per_round = |now: u64, then: u64| (now - then) as f64 / ROUNDS as f64;
    Cost {
        allocations: per_round(allocations, allocations_before),
        sends: per_round(after.port.send_calls, before.port.send_calls),
        receives: per_round(after.port.receive_calls, before.port.receive_calls),
        tokens: per_round(after.tokens, before.tokens),
        waits: per_round(after.waits, before.waits),
        contended: per_round(after.lock_waits, before.lock_waits),
    }
}

#[test]
fn a_warm_round_trip_allocates_nothing_and_goes_no_further_than_it_must() {
    if std::env::var_os(ECHO).is_some() {
        return echo(Path::OtherProcess);
    }
    for path in [Path::Thread, Path::Process, Path::OtherProcess, Path::Udp] {
        let cost = measure(path);
        println!("{path:?}, per round trip: {cost:?}");
        // An announcement every few seconds may fall into the rounds; a sample causes none.
        assert!(cost.allocations < 0.02, "{path:?}: {cost:?}");
        // Nor is a lock found taken, unless the system stops its holder at the wrong moment.
        assert!(cost.contended < 0.02, "{path:?}: {cost:?}");
        let (datagrams, tokens, waits) = match path {
            Path::Thread | Path::Process => (0.1, 0.1, 0.1),
            // A wait at the port: look and sleep, look again. A look asks the kernel, as often as it goes on.
            Path::OtherProcess => (0.1, 2.5, f64::INFINITY),
            // The write; a wait at the port.
            Path::Udp => (1.1, 3.5, f64::INFINITY),
        };
        assert!(cost.sends < datagrams && cost.receives < datagrams, "{path:?}: {cost:?}");
        assert!(cost.tokens < tokens && cost.waits < waits, "{path:?}: {cost:?}");
    }
}
