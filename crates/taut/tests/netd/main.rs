//! Participants without privileges past the kernel's stack, by a netd that has them.
//!
//! Needs root, to take it from others. Without it the tests say that they are left out; with `CI=true` that is a
//! failure. A netd and its participants are processes of their own: this program, run again as one of two children.

mod bare;
mod forked;

use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Qos, XdpAttachMode, XdpBindMode,
    XdpLayer, XdpMode, XdpNetd,
};
use taut_netd::{Policy, Server, keep_least_privileges};
use taut_testbed::vlan::{make, with_vlans};
use taut_testbed::{End, LIMIT, Pair, await_that, has_program, ip, with_pair};

/// A user that nothing else belongs to.
const USER: u32 = 47_110;
const OTHER: u32 = 47_111;
/// A critical port, which no participant of domain 0 has by itself.
const CRITICAL: u16 = 7_402;

/// What goes there and back; on its way back with what the participant has done past the kernel, and how often it has
/// followed the network's changes.
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(final)]
struct Ball {
    number: u32,
    datagrams_in: u64,
    datagrams_out: u64,
    copied_in: u64,
    /// Those of the queue that it has now; 0 without one.
    frames: u64,
    /// Those of them that each queue has received.
    frames_in: Vec<u64>,
    changes: u64,
    /// How often it has asked the kernel what there is to do.
    waits: u64,
    bytes: Vec<u8>,
}

/// How long nothing is played, so that who does not sleep is found out.
const QUIET: Duration = Duration::from_secs(1);
/// The number of a ball that ends the participant.
const LAST: u32 = u32::MAX;

/// How the children are told what they are: the socket of a netd; that and what a participant wants.
const SERVES: &str = "TAUT_NETD_SERVES";
const PLAYS: &str = "TAUT_NETD_PLAYS";

/// A child of the tests below: a netd with the privileges of `taut netd`, until it is killed. It goes by its rules as they
/// are from time to time.
#[test]
fn serves() {
    let Ok(path) = std::env::var(SERVES) else { return println!("LEFT OUT: it is a child of other tests") };
    let path = PathBuf::from(path);
    let read = || std::fs::read_to_string(path.with_extension("toml")).unwrap();
    let mut rules = read();
    let policy = |rules: &str| Policy::parse(rules, "netd.toml").unwrap();
    let mut server = Server::open(policy(&rules), &path).unwrap();
    keep_least_privileges().unwrap();
    println!("\nready");
    loop {
        server.turn(Duration::from_millis(10)).unwrap();
        let now = read();
        if now != rules {
            rules = now;
            server.set_policy(policy(&rules));
        }
    }
}

/// A child of the tests below: a participant of an ordinary user, which sends back what it gets until it is killed.
#[test]
fn plays() {
    let Ok(told) = std::env::var(PLAYS) else { return println!("LEFT OUT: it is a child of other tests") };
    let [path, user, interface, queues, domain, how] =
        told.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let user: u32 = user.parse().unwrap();
    setgroups(&[]).unwrap();
    setresgid(Gid::from_raw(user), Gid::from_raw(user), Gid::from_raw(user)).unwrap();
    setresuid(Uid::from_raw(user), Uid::from_raw(user), Uid::from_raw(user)).unwrap();
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    assert!(
        status.contains("CapEff:\t0000000000000000") && status.contains("CapPrm:\t0000000000000000"),
        "{status}"
    );
    let xdp_queues: Vec<u32> = queues.split(',').map(|queue| queue.parse().unwrap()).collect();
    let queue = xdp_queues[0];
    let config = Config {
        domain_id: domain.parse().unwrap(),
        interfaces: if how == "bare" { Vec::new() } else { vec![interface.to_owned()] },
        local: false,
        report: false,
        xdp_interface: interface.to_owned(),
        xdp_layer: if how == "bare" { XdpLayer::Bare } else { XdpLayer::Ip },
        xdp_queues,
        xdp_mode: match how {
            "generic" => XdpMode::Generic,
            "native" => XdpMode::Native,
            _ => XdpMode::Auto,
        },
        xdp_netd: XdpNetd::At(path.into()),
        driver: if how == "polls" { Driver::Polling } else { Driver::Threaded },
        // Looks before a sleep ask the kernel, too, the more the busier the machine is.
        spin: taut::Duration::ZERO,
        critical_port: if how == "critical" { CRITICAL } else { 0 },
        xdp_only_critical: how == "critical",
        ..Config::default()
    };
    let participant = match DomainParticipant::with_config(&config) {
        Ok(participant) => participant,
        Err(error) => return println!("\nrefused {error}"),
    };
    let probed = participant.stats().xdp.expect("netd tells how it uses the interface");
    let attached = if how == "behind" { XdpAttachMode::Generic } else { XdpAttachMode::Native };
    assert_eq!((probed.attached, probed.bound), (attached, XdpBindMode::Copy), "{probed:?}");
    let why = format!("`taut netd` opens {interface} behind its driver only, as it is of a VLAN");
    assert_eq!(probed.why_not_native.is_some_and(|told| told.starts_with(&why)), how == "behind");
    let priority = if how == "critical" { 100 } else { 0 };
    let (reader, writer) = ends(&participant, priority, &format!("There{queue}"), &format!("Back{queue}"));
    println!("\nready");
    sends_back(&participant, &reader, &writer);
    drop((reader, writer, participant));
    println!("\nended");
    loop {
        std::thread::park();
    }
}

/// Sends balls back until the last one.
fn sends_back(participant: &DomainParticipant, reader: &DataReader<Ball>, writer: &DataWriter<Ball>) {
    loop {
        if reader.wait(LIMIT).is_err() {
            continue;
        }
        for mut ball in reader.take().unwrap().into_iter().filter_map(|sample| sample.data) {
            if ball.number == LAST {
                return;
            }
            let stats = participant.stats();
            let frames = stats.frames.unwrap();
            let is_lent = frames.in_place_in > 0 || frames.datagrams_in < 100;
            assert!(is_lent, "frames that another process has made are lent, too: {frames:?}");
            (ball.datagrams_in, ball.datagrams_out) = (frames.datagrams_in, frames.datagrams_out);
            ball.copied_in = frames.copied_in;
            let queues = stats.xdp.map(|probed| probed.queues).unwrap_or_default();
            ball.frames_in = queues.iter().map(|of| of.frames_in).collect();
            ball.frames = queues.iter().map(|of| of.frames_in + of.frames_out).sum();
            (ball.changes, ball.waits) = (stats.port.changes_followed, stats.waits);
            writer.write(&ball).unwrap();
        }
    }
}

fn ends(
    participant: &DomainParticipant,
    priority: i32,
    from: &str,
    to: &str,
) -> (DataReader<Ball>, DataWriter<Ball>) {
    let qos = || Qos::default().reliable().keep_all().max_blocking_time(LIMIT).transport_priority(priority);
    let reader = participant.topic::<Ball>(from).unwrap().reader(qos()).unwrap();
    (reader, participant.topic::<Ball>(to).unwrap().writer(qos()).unwrap())
}

/// A child, which is killed with the test, however that ends.
struct Held {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Held {
    fn start(test: &str, variable: &str, told: &str) -> Held {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(variable, told).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Held { child, lines }
    }

    /// What it says of itself: `ready`, or why not, and `ended`.
    fn says(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let is_said = |line: &String| ["ready", "ended"].contains(&&**line) || line.starts_with("refused ");
        lines.find(is_said).expect("the child says something")
    }

    /// By SIGKILL.
    fn kill(self) {}
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A netd at one end, and the place of its socket.
struct Netd {
    path: PathBuf,
    end: End,
    held: Option<Held>,
}

impl Netd {
    /// At the first end.
    fn start(pair: &Pair, name: &str, rules: &str) -> Netd {
        Netd::start_at(pair, End::A, name, rules)
    }

    fn start_at(pair: &Pair, end: End, name: &str, rules: &str) -> Netd {
        let path =
            std::env::temp_dir().join(format!("taut-netd-{}-{name}", std::process::id())).join("netd.sock");
        let directory = path.parent().unwrap();
        std::fs::create_dir_all(directory).unwrap();
        std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(path.with_extension("toml"), rules).unwrap();
        let mut netd = Netd { path, end, held: None };
        netd.again(pair);
        netd
    }

    fn again(&mut self, pair: &Pair) {
        pair.enter(self.end);
        let mut held = Held::start("serves", SERVES, self.path.to_str().unwrap());
        assert_eq!(held.says(), "ready");
        self.held = Some(held);
    }

    /// Other rules from now on, all of them at once.
    fn set_rules(&self, rules: &str) {
        let young = self.path.with_extension("new");
        std::fs::write(&young, rules).unwrap();
        std::fs::rename(young, self.path.with_extension("toml")).unwrap();
    }

    /// A participant of a user, there.
    fn player(&self, pair: &Pair, user: u32, interface: &str, queue: u32, domain: u32) -> Held {
        self.player_that(pair, user, interface, &queue.to_string(), domain, "sleeps")
    }

    /// The same with one queue or several, whose driver polls or sleeps, or that wants generic or native mode, or only what is
    /// critical, or that comes to be behind the driver, or does without IP (*bare*).
    fn player_that(
        &self,
        pair: &Pair,
        user: u32,
        interface: &str,
        queues: &str,
        domain: u32,
        how: &str,
    ) -> Held {
        pair.enter(End::A);
        let path = self.path.display();
        Held::start("plays", PLAYS, &format!("{path} {user} {interface} {queues} {domain} {how}"))
    }
}

impl Drop for Netd {
    fn drop(&mut self) {
        self.held = None;
        let _ = std::fs::remove_dir_all(self.path.parent().unwrap());
    }
}

fn rule(user: u32, queues: &str, more: &str) -> String {
    format!("[[allow]]\nuser = {user}\ninterface = \"xa\"\nqueues = {queues}\ndomains = [0]\n{more}\n")
}

/// The other side of a player, on sockets only if nothing else is said.
struct Game {
    participant: DomainParticipant,
    reader: DataReader<Ball>,
    writer: DataWriter<Ball>,
    number: u32,
    /// Do frames lie in several chunks, so that they are copied?
    in_pieces: bool,
}

impl Game {
    /// With the player whose first queue is this one.
    fn new(pair: &Pair, queue: u32) -> Game {
        Game::with(pair, queue, Config::default())
    }

    /// The same on this interface.
    fn on(pair: &Pair, interface: &str) -> Game {
        Game::with(pair, 0, Config { interfaces: vec![interface.to_owned()], ..Config::default() })
    }

    fn with(pair: &Pair, queue: u32, config: Config) -> Game {
        pair.enter(End::B);
        let config = Config {
            interfaces: if config.interfaces.is_empty() { vec!["xb".into()] } else { config.interfaces },
            local: false,
            report: false,
            xdp_netd: XdpNetd::Never,
            ..config
        };
        Game::of(DomainParticipant::with_config(&config).unwrap(), queue)
    }

    /// By this participant.
    fn of(participant: DomainParticipant, queue: u32) -> Game {
        let (reader, writer) = ends(&participant, 0, &format!("Back{queue}"), &format!("There{queue}"));
        writer.wait_matched(LIMIT).unwrap();
        reader.wait_matched(LIMIT).unwrap();
        Game { participant, reader, writer, number: 0, in_pieces: false }
    }

    /// There and back, of this length; what the player has received and sent past the kernel by then.
    fn play(&mut self, len: usize) -> (u64, u64) {
        let ball = self.ball(len);
        (ball.datagrams_in, ball.datagrams_out)
    }

    /// Has the player end its participant.
    fn end(&mut self) {
        self.writer.write(&Ball { number: LAST, ..Ball::default() }).unwrap();
    }

    fn ball(&mut self, len: usize) -> Ball {
        self.number += 1;
        let bytes: Vec<u8> = (0..len).map(|at| (at as u32 ^ self.number) as u8).collect();
        let ball = Ball { number: self.number, bytes, ..Ball::default() };
        self.writer.write(&ball).unwrap();
        loop {
            self.reader.wait(LIMIT).expect("it comes back");
            let taken = self.reader.take().unwrap();
            let mut balls = taken.into_iter().filter_map(|sample| sample.data);
            if let Some(back) = balls.find(|back| back.number == ball.number) {
                assert!(back.bytes == ball.bytes, "{len} B come back whole");
                assert!(self.in_pieces || back.copied_in == 0, "{} copied", back.copied_in);
                return back;
            }
        }
    }

    /// Plays until the player both receives and sends past the kernel.
    fn is_past_kernel(&mut self) {
        let before = self.play(100);
        await_that("samples go past the kernel both ways", || {
            let after = self.play(100);
            after.0 > before.0 && after.1 > before.1
        });
    }
}

#[test]
fn an_ordinary_user() {
    with_pair("an_ordinary_user", ["", ""], |pair| {
        let netd = Netd::start(pair, "ordinary", &rule(USER, "[0]", ""));
        assert!(!pair.has_program(End::A), "nobody is served yet");
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        let before = game.play(1);
        for len in [0, 1, 1_400, 9_000, 70_000, 1 << 20].into_iter().chain([64; 500]) {
            game.play(len);
        }
        let after = game.play(1);
        assert!(after.0 > before.0 + 1_000 && after.1 > before.1 + 1_000, "{before:?} {after:?}");
        assert!(pair.has_program(End::A));
        drop((game, player));
        pair.await_no_program(End::A);
    });
}

/// The rule is for its port, and for nothing else of the domain.
#[test]
fn what_is_critical_may_be_allowed_alone() {
    with_pair("what_is_critical", ["", ""], |pair| {
        let rule = rule(USER, "[0]", "").replace("domains = [0]", &format!("ports = [{CRITICAL}]"));
        let netd = Netd::start(pair, "critical", &rule);
        let mut all = netd.player(pair, USER, "xa", 0, 0);
        let told = all.says();
        assert!(told.starts_with("refused ") && told.contains("has domain 0, whose port 7411"), "{told}");
        drop(all);
        let mut player = netd.player_that(pair, USER, "xa", "0", 0, "critical");
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        let before = game.play(1);
        [0, 1, 1_400, 70_000].into_iter().chain([64; 500]).for_each(|len| {
            game.play(len);
        });
        let after = game.play(1);
        assert!(after.0 > before.0 + 500 && after.1 > before.1 + 500, "{before:?} {after:?}");
    });
}

#[test]
fn an_ordinary_user_whose_frames_are_long() {
    with_pair("frames_are_long", ["", ""], |pair| {
        for end in End::BOTH {
            pair.enter(end);
            ip(&format!("link set {} mtu 9000", end.name()));
        }
        let netd = Netd::start(pair, "long", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        game.in_pieces = true;
        for len in [0, 1, 1_400, 9_000, 70_000, 1 << 20].into_iter().chain([64; 500]) {
            game.play(len);
        }
        let (ball, least) = (game.ball(1), (1_u64 << 20) / 9_000);
        assert!(ball.copied_in >= least, "the longest are: {} of {}", ball.copied_in, ball.datagrams_in);
    });
}

/// The program is on the interface itself: a rule for it gives frames of that network, and the parent is another's.
#[test]
fn the_interface_of_a_vlan() {
    with_vlans("the_interface_of_a_vlan", |pair| {
        let rules = rule(USER, "[0]", "").replace("xa", "xa.5") + &rule(OTHER, "[0]", "");
        let netd = Netd::start(pair, "vlan", &rules);
        let refused = |user, interface, how, part: &str| {
            let told = netd.player_that(pair, user, interface, "0", 0, how).says();
            assert!(told.starts_with("refused ") && told.contains(part), "{told}");
        };
        refused(USER, "xa", "sleeps", "no rule of netd.toml for user 47110 has interface xa:");
        refused(OTHER, "xa.5", "behind", "no rule of netd.toml for user 47111 has interface xa.5:");
        refused(USER, "xa.5", "native", "`taut netd` opens xa.5 behind its driver only, as it is of a VLAN");
        let mut other = netd.player(pair, OTHER, "xa", 0, 0);
        assert_eq!(other.says(), "ready");
        let mut player = netd.player_that(pair, USER, "xa.5", "0", 0, "behind");
        assert_eq!(player.says(), "ready");
        let mut game = Game::on(pair, "xb.5");
        game.is_past_kernel();
        for len in [0, 1, 1_400, 9_000, 70_000, 1 << 20].into_iter().chain([64; 500]) {
            game.play(len);
        }
        drop(game);
        drop(other);
        pair.await_no_program(End::A);
        assert!(has_program("xa.5"));
        let mut game = Game::on(pair, "xb.5");
        game.is_past_kernel();
        pair.enter(End::A);
        ip("link del xa.5");
        make(End::A);
        game.is_past_kernel();
        pair.enter(End::A);
        assert!(has_program("xa.5"));
        player.kill();
        await_that("no program is attached", || !has_program("xa.5"));
    });
}

#[test]
fn what_no_rule_allows() {
    with_pair("what_no_rule_allows", ["", ""], |pair| {
        let netd = Netd::start(pair, "rules", &rule(USER, "[0]", "participants = 1"));
        pair.enter(End::A);
        ip("link add ya type veth peer name yb");
        ip("addr add 10.89.0.1/24 dev ya");
        ip("link set ya up");
        ip("link set yb up");
        let refused = |user, interface, queue, domain, part: &str| {
            let told = netd.player(pair, user, interface, queue, domain).says();
            assert!(told.starts_with("refused ") && told.contains(part), "{told}");
            assert!(!pair.has_program(End::A), "{told}");
        };
        refused(OTHER, "xa", 0, 0, "XDP on xa: no rule of netd.toml is for user 47111: add an `[[allow]]`");
        refused(USER, "ya", 0, 0, "has interface ya");
        refused(USER, "xa", 1, 0, "has queue 1");
        refused(USER, "xa", 0, 3, "has domain 3, whose port 8161");
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let told = netd.player(pair, USER, "xa", 0, 0).says();
        assert!(told.contains("as many participants"), "{told}");
    });
}

#[test]
fn a_participant_is_killed() {
    with_pair("a_participant_is_killed", ["", ""], |pair| {
        let netd = Netd::start(pair, "killed", &(rule(USER, "[0]", "") + &rule(OTHER, "[0]", "")));
        for user in [USER, OTHER, USER] {
            let mut player = netd.player(pair, user, "xa", 0, 0);
            assert_eq!(player.says(), "ready");
            Game::new(pair, 0).is_past_kernel();
            let told = netd.player(pair, USER, "xa", 0, 0).says();
            assert!(told.contains("another participant has queue 0 of xa"), "{told}");
            player.kill();
            // The next one has the queue at once.
        }
        pair.await_no_program(End::A);
    });
}

#[test]
fn netd_is_killed() {
    netd_goes_while_one("sleeps");
}

/// Who polls looks at the queue, which keeps it from the next netd as long as it does.
#[test]
fn netd_is_killed_while_one_polls() {
    netd_goes_while_one("polls");
}

fn netd_goes_while_one(driver: &'static str) {
    with_pair("netd_is_killed", ["", ""], move |pair| {
        let mut netd = Netd::start(pair, &format!("gone-{driver}"), &rule(USER, "[0]", ""));
        let mut player = netd.player_that(pair, USER, "xa", "0", 0, driver);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        for _ in 0..3 {
            netd.held.take().unwrap().kill();
            pair.await_no_program(End::A);
            // The hang-up was there before the next sample is.
            let before = (0..10).map(|_| game.play(100)).last().unwrap();
            (0..100).for_each(|_| assert_eq!(game.play(5_000), before));
            assert_eq!(game.ball(100).frames, 0);
            // The name that it left behind is no obstacle to the next one, which the participant finds.
            netd.again(pair);
            game.is_past_kernel();
            for len in [0, 1, 1_400, 9_000, 70_000, 1 << 20].into_iter().chain([64; 500]) {
                game.play(len);
            }
            assert!(game.ball(100).frames > 1_000);
        }
        player.kill();
        pair.await_no_program(End::A);
    });
}

/// It is refused, and tried again.
#[test]
fn the_next_netd_has_other_rules() {
    with_pair("the_next_netd_has_other_rules", ["", ""], |pair| {
        let mut netd = Netd::start(pair, "other-rules", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        for (rules, is_allowed) in [(rule(OTHER, "[0]", ""), false), (rule(USER, "[0]", ""), true)] {
            netd.held.take().unwrap().kill();
            pair.await_no_program(End::A);
            std::fs::write(netd.path.with_extension("toml"), rules).unwrap();
            netd.again(pair);
            if is_allowed {
                game.is_past_kernel();
                continue;
            }
            let end = Instant::now() + Duration::from_secs(1);
            while Instant::now() < end {
                assert_eq!(game.ball(100).frames, 0);
            }
            assert!(!pair.has_program(End::A));
        }
    });
}

/// One loses its queue and goes on by sockets; the other one notices nothing.
#[test]
fn the_rules_change_meanwhile() {
    let words = ["numrxqueues 2 numtxqueues 2"; 2];
    with_pair("the_rules_change_meanwhile", words, |pair| {
        let [first, second] = [rule(USER, "[0]", ""), rule(OTHER, "[1]", "")];
        let netd = Netd::start(pair, "meanwhile", &(first.clone() + &second));
        let mut players =
            [(USER, 0), (OTHER, 1)].map(|(user, queue)| netd.player(pair, user, "xa", queue, 0));
        players.iter_mut().for_each(|player| assert_eq!(player.says(), "ready"));
        let [mut loses, mut keeps] = [0, 1].map(|queue| Game::new(pair, queue));
        let has = |game: &mut Game| await_that("it has a queue", || game.ball(100).frames > 0);
        has(&mut loses);
        has(&mut keeps);
        let mut before = keeps.ball(100);
        let mut keeps_it = || {
            let after = keeps.ball(100);
            assert!(after.datagrams_out > before.datagrams_out, "{before:?} {after:?}");
            before = after;
        };
        for round in 0..3 {
            netd.set_rules(&second);
            await_that("it has lost its queue", || {
                keeps_it();
                loses.ball(100).frames == 0
            });
            for len in [0, 1_400, 70_000].into_iter().chain([64; 100]) {
                loses.play(len);
                keeps_it();
            }
            assert_eq!(loses.ball(100).frames, 0, "{round}");
            netd.set_rules(&(second.clone() + &first));
            await_that("it has one again", || {
                keeps_it();
                loses.ball(100).frames > 0
            });
        }
    });
}

/// netd has none of the old one, and the participant asks for a queue of the new one.
#[test]
fn the_interface_is_made_anew() {
    with_pair("the_interface_is_made_anew", ["", ""], |pair| {
        let netd = Netd::start(pair, "anew", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        pair.enter(End::B);
        let far = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
        pair.enter(End::A);
        ip("link del xa");
        let far = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&far));
        ip(&format!("link add xa type veth peer name xb netns {far}"));
        for end in End::BOTH {
            pair.enter(end);
            ip(&format!("addr add 10.88.0.{}/24 dev {}", end.ipv4()[3], end.name()));
            ip(&format!("link set {} up", end.name()));
        }
        game.is_past_kernel();
        assert!(game.ball(100).frames > 0 && pair.has_program(End::A));
    });
}

/// Both ask anew, one after the other, while the other one still has its queue.
#[test]
fn the_address_of_ethernet_changes() {
    let words = ["numrxqueues 2 numtxqueues 2"; 2];
    with_pair("the_address_of_ethernet_changes", words, |pair| {
        let netd = Netd::start(pair, "mac", &(rule(USER, "[0]", "") + &rule(OTHER, "[1]", "")));
        let mut players =
            [(USER, 0), (OTHER, 1)].map(|(user, queue)| netd.player(pair, user, "xa", queue, 0));
        players.iter_mut().for_each(|player| assert_eq!(player.says(), "ready"));
        let mut games = [0, 1].map(|queue| Game::new(pair, queue));
        let sent = |game: &mut Game| {
            let before = game.play(100).1;
            await_that("what it sends goes past the kernel", || game.play(100).1 > before + 10);
        };
        games.iter_mut().for_each(sent);
        let before = games.each_mut().map(|game| game.ball(100).frames);
        pair.enter(End::A);
        ip("link set xa address 02:00:00:00:88:01");
        pair.enter(End::B);
        ip("neigh flush dev xb");
        for (game, before) in games.iter_mut().zip(before) {
            // Another queue, which counts from zero.
            await_that("it has followed", || game.ball(100).frames < before);
            sent(game);
            game.play(70_000);
        }
    });
}

/// Nobody listens at a place that was named, and a name without an owner.
#[test]
fn no_netd() {
    with_pair("no_netd", ["", ""], |pair| {
        let mut netd = Netd::start(pair, "none", &rule(USER, "[0]", ""));
        netd.held.take().unwrap().kill();
        let told = netd.player(pair, USER, "xa", 0, 0).says();
        assert!(told.contains("`taut netd` does not answer at") && told.contains("start it there"), "{told}");
    });
}

/// Each queue has its participant, and each message its own, whichever queue it comes by.
#[test]
fn two_participants_of_one_interface() {
    let queues = "numrxqueues 2 numtxqueues 2";
    with_pair("two_participants_of_one_interface", [queues, queues], |pair| {
        let netd = Netd::start(pair, "two", &(rule(USER, "[0]", "") + &rule(OTHER, "[1]", "")));
        let mut players =
            [(USER, 0), (OTHER, 1)].map(|(user, queue)| netd.player(pair, user, "xa", queue, 0));
        players.iter_mut().for_each(|player| assert_eq!(player.says(), "ready"));
        let mut games = [0, 1].map(|queue| Game::new(pair, queue));
        for round in 0..200 {
            for game in &mut games {
                game.play(if round % 10 == 0 { 20_000 } else { 64 });
            }
        }
    });
}

/// What a queue of veth sends comes by the queue of the same number.
#[test]
fn one_participant_with_two_queues() {
    let queues = "numrxqueues 2 numtxqueues 2";
    with_pair("one_participant_with_two_queues", [queues, queues], |pair| {
        let netd = Netd::start(pair, "queues", &(rule(USER, "[0, 1]", "") + &rule(OTHER, "[1]", "")));
        let mut player = netd.player_that(pair, USER, "xa", "0,1", 0, "sleeps");
        assert_eq!(player.says(), "ready");
        let told = netd.player(pair, OTHER, "xa", 1, 0).says();
        assert!(told.contains("another participant has queue 1 of xa"), "{told}");
        for queue in [1, 0] {
            let (xdp_interface, xdp_queues) = ("xb".to_owned(), vec![queue]);
            let mut game = Game::with(pair, 0, Config { xdp_interface, xdp_queues, ..Config::default() });
            game.is_past_kernel();
            let sent = |game: &Game| game.participant.stats().frames.unwrap().datagrams_out;
            await_that("it comes past the kernel of the other end, too", || {
                let before = sent(&game);
                game.play(100);
                sent(&game) > before
            });
            let before = game.ball(100).frames_in;
            for _ in 0..100 {
                game.play(100);
            }
            let after = game.ball(100).frames_in;
            // Now and then one goes by the kernel.
            let queue = queue as usize;
            assert!(after.len() == 2 && after[queue] >= before[queue] + 90, "{queue}: {before:?} {after:?}");
            for len in [0, 1_400, 70_000, 1 << 20] {
                game.play(len);
            }
            drop(game);
            pair.await_no_program(End::B);
        }
        player.kill();
        pair.await_no_program(End::A);
    });
}

#[test]
fn without_ipv4() {
    with_pair("without_ipv4", ["", ""], |pair| {
        for end in End::BOTH {
            pair.enter(end);
            let name = end.name();
            ip(&format!("-4 addr flush dev {name}"));
            ip(&format!("addr add fd00:88::{}/64 dev {name} nodad", end.ipv4()[3]));
            await_that("the address of the link is one alone", || {
                let shown = Command::new("ip").args(["-6", "addr", "show", "dev", name]).output().unwrap();
                !String::from_utf8_lossy(&shown.stdout).contains("tentative")
            });
        }
        let netd = Netd::start(pair, "ipv6", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        let before = game.play(1);
        for len in [0, 1, 1_400, 9_000, 70_000].into_iter().chain([64; 500]) {
            game.play(len);
        }
        let after = game.play(1);
        assert!(after.0 > before.0 + 500 && after.1 > before.1 + 500, "{before:?} {after:?}");
    });
}

/// The program is in one place for all of an interface.
#[test]
fn one_that_wants_another_mode() {
    // What the other end sends comes by the first queue.
    let words = ["numrxqueues 2 numtxqueues 2", "numrxqueues 2 numtxqueues 1"];
    with_pair("one_that_wants_another_mode", words, |pair| {
        let netd = Netd::start(pair, "mode", &(rule(USER, "[0]", "") + &rule(OTHER, "[1]", "")));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let told = netd.player_that(pair, OTHER, "xa", "1", 0, "generic").says();
        let line = "others use xa, where the program is native: ask for that (xdp_mode), or end them first";
        assert!(told.starts_with("refused ") && told.ends_with(line), "{told}");
        Game::new(pair, 0).is_past_kernel();
    });
}

#[test]
fn addresses_change() {
    with_pair("addresses_change", ["", ""], |pair| {
        let netd = Netd::start(pair, "addresses", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        pair.enter(End::A);
        ip("addr del 10.88.0.1/24 dev xa");
        ip("addr add 10.88.0.9/24 dev xa");
        await_that("the participant has followed", || game.ball(100).changes > 0);
        game.is_past_kernel();
    });
}
