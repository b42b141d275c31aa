//! Without IP: two participants at the ends of a cable that neither have a privilege nor an address.

use std::thread;

use taut::{Config, DomainParticipant, XdpLayer, XdpNetd};
use taut_testbed::{End, Pair, await_that, give_up_privileges, ip, with_pair};

use crate::{Game, Netd, OTHER, USER, rule};

const TWO_QUEUES: [&str; 2] = ["numrxqueues 2 numtxqueues 2", "numrxqueues 2 numtxqueues 1"];

/// For all frames without IP.
fn of_frames(user: u32, queues: &str) -> String {
    rule(user, queues, "").replace("domains = [0]", "layer = 2")
}

/// No address of IP anywhere but on loopback, and a netd at each end: that of the player with these rules, and that of the game.
fn netds(pair: &Pair, name: &str, rules: &str) -> [Netd; 2] {
    for end in End::BOTH {
        pair.enter(end);
        ip(&format!("addr flush dev {}", end.name()));
    }
    let far = of_frames(0, "[0]").replace("\"xa\"", "\"xb\"");
    let far = Netd::start_at(pair, End::B, &format!("{name}-far"), &far);
    [Netd::start(pair, name, rules), far]
}

/// The other side, which is root without any of its privileges.
fn game(pair: &Pair, far: &Netd) -> Game {
    let config = Config {
        interfaces: Vec::new(),
        local: false,
        report: false,
        xdp_interface: "xb".into(),
        xdp_layer: XdpLayer::Bare,
        xdp_netd: XdpNetd::At(far.path.clone()),
        ..Config::default()
    };
    let participant = thread::scope(|scope| {
        let made = scope.spawn(|| {
            pair.enter(End::B);
            give_up_privileges();
            let own = Config { xdp_netd: XdpNetd::Never, ..config.clone() };
            let told = DomainParticipant::with_config(&own).map(drop).unwrap_err().to_string();
            assert!(told.contains("it lacks") && told.contains("or have `taut netd` do it"), "{told}");
            DomainParticipant::with_config(&config).unwrap()
        });
        made.join().unwrap()
    });
    Game::of(participant, 0)
}

fn player(netd: &Netd, pair: &Pair, user: u32, queues: &str) -> crate::Held {
    netd.player_that(pair, user, "xa", queues, 0, "bare")
}

#[test]
fn two_ordinary_users() {
    with_pair("two_ordinary_users", ["", ""], |pair| {
        let [netd, far] = netds(pair, "bare", &of_frames(USER, "[0]"));
        let mut held = player(&netd, pair, USER, "0");
        assert_eq!(held.says(), "ready");
        let mut game = game(pair, &far);
        let before = game.play(1);
        for len in [0, 1, 1_400, 9_000, 70_000, 1 << 20].into_iter().chain([64; 500]) {
            game.play(len);
        }
        let after = game.play(1);
        assert!(after.0 > before.0 + 1_000 && after.1 > before.1 + 1_000, "{before:?} {after:?}");
        let stats = game.participant.stats();
        let frames = stats.frames.unwrap();
        let wrong =
            [frames.malformed, frames.not_ours, frames.errors, frames.dropped_aside, frames.copied_in];
        assert_eq!(wrong, [0; 5], "{frames:?}");
        assert!(stats.port.bytes_out < 100_000, "{} B by sockets", stats.port.bytes_out);
        assert!(End::BOTH.into_iter().all(|end| pair.has_program(end)));
        drop((game, held));
        End::BOTH.into_iter().for_each(|end| pair.await_no_program(end));
    });
}

/// And what the next one is refused by: the interface has one participant without IP, whoever has which queue.
#[test]
fn a_participant_is_killed_without_ip() {
    with_pair("a_participant_is_killed_without_ip", TWO_QUEUES, |pair| {
        let rules = of_frames(USER, "[0, 1]") + &of_frames(OTHER, "[0, 1]");
        let [netd, far] = netds(pair, "bare-killed", &rules);
        for user in [USER, OTHER, USER] {
            let mut held = player(&netd, pair, user, "0");
            assert_eq!(held.says(), "ready");
            game(pair, &far).play(1_000);
            for (of, queue) in [(USER, "0"), (OTHER, "1")] {
                let told = player(&netd, pair, of, queue).says();
                let part =
                    format!("of user {user} has xa without IP, where an interface has one participant");
                assert!(told.starts_with("refused ") && told.contains(&part), "{told}");
            }
            held.kill();
            // The next one has the queue at once.
        }
        pair.await_no_program(End::A);
    });
}

/// Nobody is reached meanwhile, as there are no sockets to go by.
#[test]
fn netd_is_killed_without_ip() {
    with_pair("netd_is_killed_without_ip", ["", ""], |pair| {
        let [mut netd, far] = netds(pair, "bare-gone", &of_frames(USER, "[0]"));
        let mut held = player(&netd, pair, USER, "0");
        assert_eq!(held.says(), "ready");
        let mut game = game(pair, &far);
        for _ in 0..3 {
            assert!(game.ball(1_000).frames > 0);
            netd.held.take().unwrap().kill();
            pair.await_no_program(End::A);
            netd.again(pair);
            for len in [0, 1, 1_400, 70_000].into_iter().chain([64; 100]) {
                game.play(len);
            }
        }
        // The same with other rules, and with those it had.
        netd.set_rules(&rule(USER, "[0]", ""));
        pair.await_no_program(End::A);
        netd.set_rules(&of_frames(USER, "[0]"));
        game.play(1_000);
        held.kill();
        pair.await_no_program(End::A);
    });
}

/// Rules of one layer allow nothing of the other, and an interface has one program.
#[test]
fn the_layer_that_others_have() {
    with_pair("the_layer_that_others_have", TWO_QUEUES, |pair| {
        let [first, second] = [of_frames(USER, "[0]"), rule(OTHER, "[1]", "")];
        let netd = Netd::start(pair, "layers", &(first + &second));
        let refused = |user, queue, how, part: &str| {
            let told = netd.player_that(pair, user, "xa", queue, 0, how).says();
            assert!(told.starts_with("refused ") && told.contains(part), "{told}");
        };
        refused(USER, "0", "sleeps", "for user 47110 on xa is for UDP over IP: add an `[[allow]]`");
        refused(OTHER, "1", "bare", "for user 47111 on xa is for frames without IP: add an `[[allow]]`");
        refused(USER, "1", "bare", "for user 47110 on xa has queue 1");
        assert!(!pair.has_program(End::A));
        let mut over_ip = netd.player(pair, OTHER, "xa", 1, 0);
        assert_eq!(over_ip.says(), "ready");
        refused(USER, "0", "bare", "others use xa over IP, and an interface has one program");
        over_ip.kill();
        await_that("it is free", || {
            let mut bare = player(&netd, pair, USER, "0");
            let is_ready = bare.says() == "ready";
            if is_ready {
                refused(OTHER, "1", "sleeps", "of user 47110 has xa without IP");
            }
            is_ready
        });
    });
}
