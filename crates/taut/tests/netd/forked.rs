//! Children that were forked keep open what the participant of their parent closes: what epoll finds is of no use then, and
//! nobody is to look at it again and again.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept, bind, listen, socket};
use nix::unistd::close;
use taut_testbed::{End, await_that, copies_of, with_pair};

use crate::{Game, Netd, QUIET, USER, rule};

/// The driver of the player sleeps.
fn finds_nothing(game: &mut Game) {
    let before = game.ball(100).waits;
    assert!(game.reader.wait(QUIET).is_err(), "nothing is under way");
    let waits = game.ball(100).waits - before;
    assert!(waits < 1_000, "{waits} times something was found that is nothing");
}

/// It keeps open what the participant closes: the connection to netd, and the queue.
#[test]
fn a_child_of_the_participants_process() {
    with_pair("a_child_of_the_participants_process", ["", ""], |pair| {
        let mut netd = Netd::start(pair, "child", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        let copies = copies_of(player.child.id());
        netd.held.take().unwrap().kill();
        await_that("it is noticed", || game.ball(100).frames == 0);
        finds_nothing(&mut game);
        drop(copies);
        netd.again(pair);
        game.is_past_kernel();
        assert!(game.ball(100).frames > 0);
        let _copies = copies_of(player.child.id());
        game.end();
        assert_eq!(player.says(), "ended");
        pair.await_no_program(End::A);
    });
}

/// The next connection to a socket that does not block.
fn accepted(of: &OwnedFd) -> RawFd {
    let mut accepted = None;
    await_that("netd is asked", || {
        accepted = accept(of.as_raw_fd()).ok();
        accepted.is_some()
    });
    accepted.unwrap()
}

/// It keeps open the connection to a netd that hangs up before it has answered.
#[test]
fn a_child_while_netd_is_asked() {
    with_pair("a_child_while_netd_is_asked", ["", ""], |pair| {
        let mut netd = Netd::start(pair, "asked", &rule(USER, "[0]", ""));
        let mut player = netd.player(pair, USER, "xa", 0, 0);
        assert_eq!(player.says(), "ready");
        let mut game = Game::new(pair, 0);
        game.is_past_kernel();
        netd.held.take().unwrap().kill();
        std::fs::remove_file(&netd.path).unwrap();
        // A netd that accepts and says nothing.
        let (kind, flags) = (SockType::SeqPacket, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK);
        let silent = socket(AddressFamily::Unix, kind, flags, None).unwrap();
        bind(silent.as_raw_fd(), &UnixAddr::new(&netd.path).unwrap()).unwrap();
        std::fs::set_permissions(&netd.path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        listen(&silent, Backlog::new(8).unwrap()).unwrap();
        let asked = accepted(&silent);
        let copies = copies_of(player.child.id());
        close(asked).unwrap();
        // It is tried again once it is known that this one was in vain.
        let again = accepted(&silent);
        finds_nothing(&mut game);
        drop(copies);
        close(again).unwrap();
        std::fs::remove_file(&netd.path).unwrap();
        drop(silent);
        netd.again(pair);
        game.is_past_kernel();
    });
}
