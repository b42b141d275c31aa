//! Which system calls a round trip past the kernel makes for one who polls: those that the kernel needs to send, and a
//! look at the kernel now and then.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::libc;
use nix::unistd::gettid;
use taut::{Config, DataReader, DataWriter, DomainParticipant, Driver, Stats, XdpMode};
use taut_testbed::calls::{KICK, OF_MARKS, calls_between_marks, mark};
use taut_testbed::{End, Held, LIMIT, with_pair};

use crate::{Blob, config, participant, qos};

/// How the child below is told that it is one.
const CHILD: &str = "TAUT_XDP_CALLS";
/// Of round trips that are not counted: by then samples go past the kernel, and it watches no more what is looked at.
const WARM_UP: u32 = 2_000;
const ROUNDS: u32 = 1_000;
/// The system calls of the marks themselves, and of the statistics between them.
const WITH_MARKS: u64 = 2 * OF_MARKS;
/// Such rounds are played so often: discovery, and the look at the interface that is taken each second, falls into some.
const PLAYS: usize = 8;

struct Pings {
    participant: DomainParticipant,
    writer: DataWriter<Blob>,
    reader: DataReader<Blob>,
}

impl Pings {
    /// So many round trips, without a sleep.
    fn play(&self, rounds: u32) {
        let mut round = 0;
        self.writer.write(&Blob::new(round, 64)).unwrap();
        let goes_on = || {
            while let Some(sample) = self.reader.take_next().unwrap() {
                assert_eq!(sample.data.unwrap(), Blob::new(round, 64));
                round += 1;
                if round == rounds {
                    return false;
                }
                self.writer.write(&Blob::new(round, 64)).unwrap();
            }
            true
        };
        self.participant.poll_while(goes_on).unwrap();
    }
}

/// A child of the test below; nothing when it is run alone.
#[test]
fn polls() {
    if std::env::var(CHILD).is_err() {
        return println!("LEFT OUT: it is a child of another test");
    }
    let config = Config { driver: Driver::Inline, ..config(End::A, Some(XdpMode::Native)) };
    let participant = DomainParticipant::with_config(&config).unwrap();
    let writer = participant.topic::<Blob>("Ping").unwrap().writer(qos()).unwrap();
    let reader = participant.topic::<Blob>("Pong").unwrap().reader(qos()).unwrap();
    writer.wait_matched(LIMIT).unwrap();
    reader.wait_matched(LIMIT).unwrap();
    let pings = Pings { participant, writer, reader };
    println!("\nready {}", gettid());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    pings.play(WARM_UP);
    for _ in 0..PLAYS {
        mark();
        let before = pings.participant.stats();
        let begun = Instant::now();
        pings.play(ROUNDS);
        let elapsed = begun.elapsed();
        mark();
        let after = pings.participant.stats();
        let since = |of: fn(&Stats) -> u64| of(&after) - of(&before);
        let kicks = since(|stats| stats.frames.unwrap().kicks);
        let by_sockets = since(|stats| stats.port.send_calls + stats.port.receive_calls);
        let sent = since(|stats| stats.frames.unwrap().datagrams_out);
        println!("\nrounds {kicks} {by_sockets} {sent} {}", elapsed.as_micros());
    }
}

/// What the child says behind this word.
fn says(lines: &mut impl Iterator<Item = String>, word: &str) -> Vec<u64> {
    let line = lines.find_map(|line| line.strip_prefix(word).map(str::to_owned)).expect("it says so");
    line.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Looks at the calls of a play, of which the child has said so much. Returns how many there are of others, beside those for
/// samples and discovery by sockets.
fn others(calls: &BTreeMap<i64, u64>, said: &[u64]) -> i64 {
    let [kicks, by_sockets, sent, elapsed_us] = said[..] else { panic!("four numbers") };
    println!("{calls:?}; {kicks} kicks, {by_sockets} by sockets, {sent} datagrams, {elapsed_us} us");
    // Where the kernel copies, each flush needs a call; an acknowledgment may have one of its own.
    assert!(sent >= ROUNDS.into() && kicks <= sent, "{kicks} kicks for {sent} datagrams");
    // ASKS_KERNEL of the driver.
    let looks = elapsed_us / 50 + 1;
    let of = |call: i64| calls.get(&call).copied().unwrap_or_default();
    let kicked = of(KICK);
    assert_eq!(kicked, kicks, "calls that kick, and those that are told");
    let looked = of(libc::SYS_epoll_pwait2);
    assert!(looked > 0 && looked <= looks, "{looked} looks, {looks} are due");
    (calls.values().sum::<u64>() - kicked - looked) as i64 - by_sockets as i64
}

#[test]
fn who_polls_calls_the_kernel_to_send_and_to_look_now_and_then() {
    with_pair("who_polls_calls_the_kernel", ["", ""], |pair| {
        pair.enter(End::A);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["calls::polls", "--exact", "--nocapture"]).env(CHILD, "yes");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut child = Held(child);
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map_while(Result::ok);

        let echo = participant(pair, End::B, Some(XdpMode::Native));
        let back = echo.topic::<Blob>("Pong").unwrap().writer(qos()).unwrap();
        let reader = echo.topic::<Blob>("Ping").unwrap().reader(qos()).unwrap();
        reader.on_data_available(move |sample| back.write(&sample.data.unwrap()).unwrap());

        let [thread] = says(&mut lines, "ready ")[..] else { panic!("it says which thread polls") };
        let mut input = child.0.stdin.take().unwrap();
        let plays = calls_between_marks(thread as i64, PLAYS, || input.write_all(b"\n").unwrap());
        let others = plays.iter().map(|calls| others(calls, &says(&mut lines, "rounds ")));
        let least = others.min().unwrap();
        assert!(least <= WITH_MARKS as i64, "{least} others");
        assert!(child.0.wait().unwrap().success());
    });
}
