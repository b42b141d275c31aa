//! The processes of one trial, from the first start to the last exit, by the contract.
//!
//! Every wait has a limit and looks at Ctrl-C. Whatever goes wrong with one process (it ends, says
//! `failed`, says what is not in the contract, says nothing) ends the trial with the reason in words, and
//! dropping the session ends all of them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::accounting::Accounts;
use crate::args::{Pin, name};
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::Event;
use crate::network::Side;
use crate::process::{Ending, Output, Process};

/// Until `ready`, which includes matching. The slowest peer needs 4 s when the machine is free; a lower
/// limit fails it beside others, a higher one is lost whenever a peer does not find its partner.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Added for each process that runs already: they share two cores.
const READY_EACH: Duration = Duration::from_millis(500);

/// From the second `go` or `end` to `done`: a subscriber drains, then a file of samples is written.
const DONE_LIMIT: Duration = Duration::from_secs(15);

/// From `done` to the exit: entities are deleted, threads joined. Shorter than a user's patience.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// How long a process that is abandoned has to leave by itself. Lower, a daemon's files stay behind; higher, each
/// hanging process costs so much more.
const ABANDON_LIMIT: Duration = Duration::from_secs(1);

/// Between two looks at Ctrl-C: not noticed by the user, and 20 wake-ups a second are not noticed by what
/// is measured.
pub const LOOK: Duration = Duration::from_millis(50);

/// Lines that wait to be read. A peer has a handful at a time; the bound stops one that prints for ever.
const LINES_WAITING: usize = 1_024;

/// Lines of stdout outside of the contract that are borne, for libraries that greet.
pub const CHATTER_MOST: usize = 1_000;

/// Events of a process that nobody has waited for yet. A role of the contract has a handful; the bound stops one that says
/// the same for ever.
const EVENTS_MOST: usize = 1_000;

/// How a trial ends that has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no such path, type, size or wait.
    Absent(String),
    /// It should have worked.
    Failed(String),
    /// The same, and it took all the time that it had to show that it does not.
    Hung(String),
    /// The user has asked to end.
    Stopped,
}

impl Trouble {
    /// A failure in these words.
    pub fn failed(reason: impl Into<String>) -> Trouble {
        Trouble::Failed(reason.into())
    }

    /// A failure of a part of it, which these words name.
    #[must_use]
    pub fn of(self, part: &str) -> Trouble {
        match self {
            Trouble::Failed(reason) => Trouble::Failed(format!("{part}: {reason}")),
            Trouble::Hung(reason) => Trouble::Hung(format!("{part}: {reason}")),
            other => other,
        }
    }
}

/// A role and the figures of its `done`.
pub type Told = (String, Map<String, Value>);

/// A process of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(usize);

/// What a process is to do, beside what all of the case do.
pub struct Start<'a> {
    /// Its role.
    pub role: &'a str,
    /// Which CPU it gets when processes are pinned apart.
    pub cpu: usize,
    /// Which end of the network it is at.
    pub side: Side,
    /// Options of its own, in place of the case's.
    pub options: Vec<(&'static str, String)>,
}

impl<'a> Start<'a> {
    /// At the near end, on the first CPU.
    pub fn near(role: &'a str) -> Start<'a> {
        Start { role, cpu: 0, side: Side::Near, options: Vec::new() }
    }

    /// At the far end, on the second CPU.
    pub fn far(role: &'a str) -> Start<'a> {
        Start { role, cpu: 1, side: Side::Far, options: Vec::new() }
    }

    /// With an option.
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Start<'a> {
        self.options.push((key, value.to_string()));
        self
    }
}

struct Member {
    process: Process,
    role: String,
    events: VecDeque<Event>,
    is_done: bool,
    chatter: usize,
}

/// The processes of a trial.
pub struct Session<'a> {
    bench: &'a Bench,
    peer: &'a Peer,
    case: &'a Case,
    domain: u32,
    members: Vec<Member>,
    /// Daemons and generators: they run until the end.
    beside: Vec<Id>,
    sender: SyncSender<(usize, Output)>,
    lines: Receiver<(usize, Output)>,
}

impl<'a> Session<'a> {
    /// Begins a trial in a domain of its own, with the peer's daemon if it needs one.
    pub fn begin(bench: &'a Bench, peer: &'a Peer, case: &'a Case) -> Result<Session<'a>, Trouble> {
        if let Some(priority) = case.fifo {
            bench.check_fifo(priority)?;
        }
        let (sender, lines) = sync_channel(LINES_WAITING);
        let domain = bench.next_domain();
        let mut session =
            Session { bench, peer, case, domain, members: Vec::new(), beside: Vec::new(), sender, lines };
        if peer.info.daemon {
            let daemon = session.start(Start::near("daemon"))?;
            session.ready(daemon)?;
            session.keep(daemon);
        }
        Ok(session)
    }

    /// The number of its domain.
    pub fn domain(&self) -> u32 {
        self.domain
    }

    /// Lets a process run until [`Session::finish`].
    pub fn keep(&mut self, id: Id) {
        self.beside.push(id);
    }

    /// The file that a process of this session may leave its times in.
    pub fn samples_file(&self, index: usize) -> PathBuf {
        self.bench.scratch().join(format!("samples-{}-{index}", self.domain))
    }

    /// Starts a process.
    pub fn start(&mut self, start: Start) -> Result<Id, Trouble> {
        let (role, cpu, side) = (start.role, start.cpu, start.side);
        let program = self.peer.program.clone().into_os_string();
        let mut options = self.case.options();
        options.retain(|(key, _)| *key != "wait");
        options.push(("wait", name(&self.case.wait_of(self.peer))));
        options.push(("variant", self.peer.variant.clone()));
        options.push(("domain", self.domain.to_string()));
        options.extend(self.bench.network(self.case)?.options(side));
        options.retain(|(key, _)| start.options.iter().all(|(own, _)| own != key));
        options.extend(start.options);
        self.spawn(program, role, cpu, side, &options)
    }

    /// Starts a program that keeps the contract, with these options only.
    pub fn spawn(
        &mut self,
        program: OsString,
        role: &str,
        cpu: usize,
        side: Side,
        options: &[(&'static str, String)],
    ) -> Result<Id, Trouble> {
        let mut command = self.bench.network(self.case)?.prefix(side);
        command.extend(self.scheduling(role, cpu));
        command.push(program);
        command.push(role.into());
        for (key, value) in options {
            command.push(format!("--{key}").into());
            command.push(value.into());
        }
        let index = self.members.len();
        let process = Process::spawn(&command, index, self.sender.clone())
            .map_err(|error| Trouble::Failed(format!("{role} cannot start: {error}")))?;
        self.members.push(Member {
            process,
            role: role.to_string(),
            events: VecDeque::new(),
            is_done: false,
            chatter: 0,
        });
        Ok(Id(index))
    }

    /// The words before the program that give it its CPU and its priority.
    fn scheduling(&self, role: &str, cpu: usize) -> Vec<OsString> {
        let mut words = Vec::new();
        let generator = is_generator(role);
        let core = |number| self.bench.core(number);
        let cpus = match self.case.pin {
            _ if generator => self.case.flood_cpu.map(|cpu| core(cpu).to_string()),
            Pin::None => None,
            Pin::Same => Some(core(0).to_string()),
            // Two threads in one process: the system gives each its own while both are busy.
            Pin::Split if role == "local" => Some(format!("{},{}", core(0), core(1))),
            Pin::Split => Some(core(cpu).to_string()),
        };
        if let Some(priority) = self.case.fifo.filter(|_| !generator) {
            words.extend(["chrt".to_string(), "-f".to_string(), priority.to_string()]);
        }
        if let Some(cpus) = cpus {
            words.extend(["taskset".to_string(), "-c".to_string(), cpus]);
        }
        words.into_iter().map(OsString::from).collect()
    }

    /// Writes a word to a process.
    pub fn say(&mut self, id: Id, word: &str) {
        self.members[id.0].process.say(word);
    }

    /// Waits for `ready`; how the process really waits.
    pub fn ready(&mut self, id: Id) -> Result<String, Trouble> {
        let limit = READY_LIMIT + READY_EACH * self.members.len() as u32;
        match self.expect(id, "ready", limit)? {
            Event::Ready(wait) if wait.is_empty() => Ok(name(&self.case.wait_of(self.peer))),
            Event::Ready(wait) => Ok(wait),
            other => Err(self.blame(id, &format!("said {} for ready", other.name()))),
        }
    }

    /// Waits for `done`; its figures.
    pub fn done(&mut self, id: Id) -> Result<Map<String, Value>, Trouble> {
        match self.expect(id, "done", DONE_LIMIT)? {
            Event::Done(figures) => Ok(figures),
            other => Err(self.blame(id, &format!("said {} for done", other.name()))),
        }
    }

    /// Waits for an event of this name.
    pub fn expect(&mut self, id: Id, wanted: &str, limit: Duration) -> Result<Event, Trouble> {
        self.await_event(id, &[wanted], limit, &mut |_| {})
    }

    /// Waits for an event of one of these names.
    pub fn expect_any(&mut self, id: Id, wanted: &[&str], limit: Duration) -> Result<Event, Trouble> {
        self.await_event(id, wanted, limit, &mut |_| {})
    }

    /// Waits for an event of this name, and calls `look` some twenty times a second meanwhile.
    pub fn expect_with(
        &mut self,
        id: Id,
        wanted: &str,
        limit: Duration,
        look: &mut dyn FnMut(&Session),
    ) -> Result<Event, Trouble> {
        self.await_event(id, &[wanted], limit, look)
    }

    /// Lets all run for so long; what they say waits.
    pub fn let_run(&mut self, span: Duration) -> Result<(), Trouble> {
        let end = Instant::now() + span;
        while self.listen(end)? {}
        Ok(())
    }

    fn await_event(
        &mut self,
        id: Id,
        wanted: &[&str],
        limit: Duration,
        look: &mut dyn FnMut(&Session),
    ) -> Result<Event, Trouble> {
        let end = Instant::now() + limit;
        let mut has_time = true;
        loop {
            if let Some(event) = self.members[id.0].events.pop_front() {
                if wanted.contains(&event.name()) {
                    return Ok(event);
                }
                return Err(
                    self.blame(id, &format!("said {} where {} is due", event.name(), wanted.join(" or ")))
                );
            }
            if !has_time {
                let reason = format!("no {} within {:.0} s", wanted.join(" or "), limit.as_secs_f64());
                return Err(Trouble::Hung(self.told(id, &reason)));
            }
            look(self);
            has_time = self.listen(end)?;
        }
    }

    /// Takes one line of any process, or none for a while. Is there time left? However much they print, it ends.
    fn listen(&mut self, end: Instant) -> Result<bool, Trouble> {
        if (self.bench.stop.requested)() {
            return Err(Trouble::Stopped);
        }
        let left = end.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left.min(LOOK)) {
            Ok((index, output)) => self.hear(Id(index), output)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        }
        Ok(!left.is_zero())
    }

    fn hear(&mut self, id: Id, output: Output) -> Result<(), Trouble> {
        let member = &mut self.members[id.0];
        let line = match output {
            Output::Line(line) => line,
            Output::TooLong => return Err(self.blame(id, "printed a line that is too long")),
            Output::Closed if member.is_done => return Ok(()),
            Output::Closed => return Err(self.blame_end(id)),
        };
        if !line.starts_with('{') {
            member.process.note(&line);
            member.chatter += 1;
            if member.chatter > CHATTER_MOST {
                return Err(self.blame(id, "printed without end what is not in the contract"));
            }
            return Ok(());
        }
        match Event::parse(&line) {
            Ok(Event::Absent(reason)) => Err(Trouble::Absent(reason)),
            Ok(Event::Failed(reason)) => Err(self.blame(id, &reason)),
            Ok(event) => {
                member.is_done |= event.name() == "done";
                member.events.push_back(event);
                if member.events.len() > EVENTS_MOST {
                    return Err(self.blame(id, "said without end what nobody has asked for"));
                }
                Ok(())
            }
            Err(error) => {
                Err(self.blame(id, &format!("printed a line that is not in the contract: {error}")))
            }
        }
    }

    /// The accounts of all processes of the peer at this moment.
    pub fn accounts(&self) -> Accounts {
        Accounts::read(self.pids())
    }

    /// The numbers of all processes of the peer.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        let own = self.members.iter().filter(|member| !is_generator(&member.role));
        own.map(|member| member.process.id())
    }

    /// The process's number.
    pub fn pid(&self, id: Id) -> u32 {
        self.members[id.0].process.id()
    }

    /// Ends what runs beside; the figures of each, by its role.
    pub fn end_beside(&mut self) -> Result<Vec<Told>, Trouble> {
        let mut figures = Vec::new();
        while let Some(id) = self.beside.pop() {
            self.say(id, "end");
            figures.push((self.members[id.0].role.clone(), self.done(id)?));
        }
        Ok(figures)
    }

    /// Ends what runs beside and waits for the exits; `Some` says which process ended badly after its `done`.
    pub fn finish(mut self) -> Result<Option<String>, Trouble> {
        self.end_beside()?;
        let end = Instant::now() + EXIT_LIMIT;
        for member in &self.members {
            loop {
                match member.process.ended() {
                    Some(Ending::Code(0)) => break,
                    Some(ending) => {
                        let reason = format!("{} {ending} after done", member.role);
                        return Ok(Some(with_tail(reason, &member.process)));
                    }
                    None if Instant::now() > end => {
                        return Ok(Some(format!("{} did not exit after done", member.role)));
                    }
                    None if (self.bench.stop.requested)() => return Err(Trouble::Stopped),
                    None => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        }
        Ok(None)
    }

    fn blame(&self, id: Id, reason: &str) -> Trouble {
        Trouble::Failed(self.told(id, reason))
    }

    fn told(&self, id: Id, reason: &str) -> String {
        let member = &self.members[id.0];
        with_tail(format!("{}: {reason}", member.role), &member.process)
    }

    /// Why a process closed its stdout before `done`.
    fn blame_end(&self, id: Id) -> Trouble {
        let end = Instant::now() + Duration::from_secs(1);
        loop {
            match self.members[id.0].process.ended() {
                Some(ending) => return self.blame(id, &format!("{ending} before done")),
                None if Instant::now() > end => return self.blame(id, "closed its stdout before done"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

/// A daemon takes its own child and its files with it when it is abandoned; who does not is killed.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(|member| member.process.abandon());
        let end = Instant::now() + ABANDON_LIMIT;
        let running = |member: &Member| member.process.ended().is_none();
        while self.members.iter().any(running) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The roles of the flood, which are those of the floor's adapter only.
fn is_generator(role: &str) -> bool {
    matches!(role, "flood" | "sink")
}

fn with_tail(reason: String, process: &Process) -> String {
    let tail = process.tail();
    if tail.is_empty() { reason } else { format!("{reason} [{tail}]") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Transport;
    use crate::catalog::tests::{script, within_a_minute};
    use crate::catalog::{Catalog, Peer};
    use crate::contract::Info;
    use crate::workload::Round;
    use crate::{Stop, workload};

    struct Idle;

    impl workload::Work for Idle {
        fn roles(&self) -> &'static [&'static str] {
            &[]
        }

        fn round(&self, _: &Bench, _: &Peer, _: &Case) -> Result<Round, Trouble> {
            Err(Trouble::Stopped)
        }
    }

    /// What comes of a trial with these programs, by their names.
    fn trial<T: Send + 'static>(
        programs: &'static [&'static str],
        run: impl FnOnce(&mut Session, &[Id]) -> T + Send + 'static,
    ) -> T {
        within_a_minute(move || {
            let directory = tempfile::tempdir().unwrap();
            let stop = Stop { requested: || false, request: || () };
            let catalog = Catalog::search(&[], stop).unwrap();
            let bench = Bench::new(stop, catalog, directory.path().into(), 1).unwrap();
            let case = Case::new("idle", Some(Transport::Udp), 64, Box::new(Idle));
            let (name, variant, program) = (String::new(), String::new(), PathBuf::new());
            let peer = Peer { name, variant, program, info: Info::default() };
            let mut session = Session::begin(&bench, &peer, &case).unwrap();
            let mut ids = Vec::new();
            for (number, does) in programs.iter().enumerate() {
                let program = script(directory.path(), &number.to_string(), does).into_os_string();
                ids.push(session.spawn(program, "pub", number, Side::Near, &[]).unwrap());
            }
            run(&mut session, &ids)
        })
    }

    const STOPS: &str = r#"while :; do echo '{"event":"stop"}'; done"#;
    const CHATS: &str = "while :; do echo hello; done";
    const SILENT: &str = "read word";
    const LONG: Duration = Duration::from_secs(600);

    fn is_told(outcome: &Result<impl std::fmt::Debug, Trouble>, told: &str) -> bool {
        matches!(outcome, Err(Trouble::Failed(reason)) if reason.contains(told))
    }

    /// So many lines of a process that wait to be read.
    fn say_stop(session: &Session, id: Id, times: usize) {
        for _ in 0..times {
            session.sender.send((id.0, Output::Line(r#"{"event":"stop"}"#.to_string()))).unwrap();
        }
    }

    #[test]
    fn the_time_is_over_however_much_they_say() {
        let ran = trial(&[SILENT], |session, ids| {
            say_stop(session, ids[0], 5);
            (session.let_run(Duration::ZERO), session.members[0].events.len())
        });
        assert_eq!(ran, (Ok(()), 1), "one look when its time is over");
        let (awaited, looks) = trial(&[SILENT, SILENT], |session, ids| {
            say_stop(session, ids[1], 5);
            (session.expect(ids[0], "ready", Duration::ZERO), session.members[1].events.len())
        });
        let has_hung = matches!(&awaited, Err(Trouble::Hung(told)) if told.contains("no ready within 0 s"));
        assert!(has_hung && looks == 1, "{awaited:?} after {looks} looks");
    }

    #[test]
    fn who_says_something_without_end_is_blamed() {
        for (does, told) in [
            (&[SILENT, STOPS], "said without end what nobody has asked for"),
            (&[SILENT, CHATS], "printed without end what is not in the contract"),
        ] {
            let blamed = trial(does, |session, ids| session.expect(ids[0], "ready", LONG));
            assert!(is_told(&blamed, told), "{blamed:?}");
            let blamed = trial(does, |session, _| session.let_run(LONG));
            assert!(is_told(&blamed, told), "{blamed:?}");
        }
    }

    #[test]
    fn what_came_with_the_last_look_counts() {
        let awaited = trial(&[SILENT], |session, ids| {
            say_stop(session, ids[0], 1);
            session.expect(ids[0], "stop", Duration::ZERO)
        });
        assert_eq!(awaited, Ok(Event::Stop));
    }
}
