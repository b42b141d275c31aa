//! How a port that has lost its interface gets one again: netd has ended, the interface was removed or has another
//! address of Ethernet, or somebody has detached the program.
//!
//! Owns when that is tried, and what was said of it. Nothing here waits while somebody has the port: what may take long
//! is done without it, by [`Try::run`], and netd is heard when it answers. Until then samples go by sockets.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use taut_base::{Duration, Time};
use taut_ethernet::{FrameEnds, Reached};
use taut_xdp::is_up;

use crate::XdpConfig;
use crate::attachment::{self, Attachment, Awaited};
use crate::netd::{Asking, Connection, Netd, SOCKET, connect_at_once, namespace};
use crate::port::{Ground, XdpPort};
use crate::queue::Queue;

/// How often it is looked whether the program is still attached: to detach it tells nobody. Lower makes more system
/// calls, higher has what comes go by sockets for longer before it is tried again.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// When it is tried again after the first time in vain, and doubled with each. Lower makes more system calls, higher is
/// later where netd or the interface is there again at once.
const FIRST: Duration = Duration::from_millis(100);
/// The longest time between two tries, which go on for as long as the port lives. Lower makes more system calls, and a
/// driver may set up its queues anew for each; higher stays with sockets for longer.
const LATEST: Duration = Duration::from_secs(10);
/// What is told of the interface brings a try forward, but to no earlier than this after the last one began, which may
/// itself have the kernel tell something. Lower and tries follow upon each other, higher stays with sockets for longer.
const HEARD: Duration = Duration::from_secs(1);
/// How long netd may take to answer all before it is asked anew; see the same for a port that is opened first.
const ANSWER: Duration = Duration::from_secs(15);

/// How long until the next try, after so many in vain.
fn pause(failed: u32) -> Duration {
    FIRST.times(1 << failed.saturating_sub(1).min(10)).min(LATEST)
}

/// What was lost. To be dropped without the port: the kernel waits for others before a queue is free.
pub struct Left {
    attachment: Attachment,
    _queues: Vec<Queue>,
}

impl Left {
    /// What was watched of it: it is to be watched no longer, as a child that was forked may keep it open.
    pub fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.attachment.watch()
    }
}

/// A request to netd that has come to nothing.
pub struct Refused(Asking);

impl Refused {
    /// What was watched of it; see [`Left::watched`].
    pub fn watched(&self) -> BorrowedFd<'_> {
        self.0.connection().fd()
    }
}

/// What is known of it.
pub(crate) struct Comeback {
    config: XdpConfig,
    /// Where the participant is reached without IP.
    bare: Option<FrameEnds>,
    /// The cookie of the network namespace that the interface is in; `None` where the kernel has none.
    namespace: Option<u64>,
    left: Option<Left>,
    is_by_netd: bool,
    /// What netd answers.
    asking: Option<Asking>,
    /// What it has refused, or was not there to answer any more.
    refused: Option<Asking>,
    failed: u32,
    /// What had been opened was given up, and what was told of its station may have reached nobody.
    is_given_up: bool,
    /// When the last try began.
    last: Time,
    /// When there is something to do: a look, or a try.
    due: Time,
    /// Why tries are in vain, as it was told.
    told: String,
}

impl Comeback {
    pub fn new(config: &XdpConfig, reached: &Reached, is_by_netd: bool) -> Comeback {
        let bare = match reached {
            Reached::Bare(ends) => Some(ends.clone()),
            Reached::Ip(_) | Reached::Own { .. } => None,
        };
        let never = Time(i64::MIN);
        Comeback {
            config: config.clone(),
            bare,
            namespace: namespace().ok(),
            left: None,
            is_by_netd,
            asking: None,
            refused: None,
            failed: 0,
            is_given_up: false,
            last: never,
            due: never,
            told: String::new(),
        }
    }

    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Readable when netd answers.
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.asking.as_ref().map(|asking| asking.connection().fd())
    }

    /// It is looked at again after a while; what netd has opened, by netd.
    pub fn look_later(&mut self, now: Time) {
        self.due = if self.is_by_netd { Time::NEVER } else { now + LOOK };
    }

    /// Something was told of the interface that may help. What was given up it does not: no such news brings descriptors,
    /// and the last try was told of, too.
    pub fn bring_forward(&mut self, now: Time) {
        if self.asking.is_none() && !self.is_given_up {
            self.due = self.due.min(now.max(self.last + HEARD));
        }
    }

    /// Takes what netd answers.
    pub fn hear(&mut self, now: Time) -> Option<String> {
        match self.asking.as_mut()?.hear() {
            Ok(false) => None,
            Ok(true) => {
                self.due = now;
                None
            }
            Err(why) => self.fail(now, why),
        }
    }

    /// The last try was in vain. Returns what to warn of: each reason once.
    fn fail(&mut self, now: Time, why: String) -> Option<String> {
        self.refused = self.asking.take();
        self.failed += 1;
        self.due = now + pause(self.failed);
        if why == self.told {
            return None;
        }
        let line = format!("XDP on {}: not again yet: {why}", self.config.interface);
        self.told = why;
        Some(line)
    }
}

/// A try to open the interface anew.
pub struct Try {
    config: XdpConfig,
    reached: Reached,
    /// Or why there are none: that is told as any other reason why it is in vain.
    sockets: std::io::Result<Vec<OwnedFd>>,
    namespace: Option<u64>,
    is_by_netd: bool,
    answered: Option<Asking>,
    awaited: Awaited,
}

/// What has come of a try.
pub struct Tried(Result<Done, String>);

enum Done {
    /// netd answers later.
    Asks(Box<Asking>),
    Opened(Box<XdpPort>),
    /// This thread is in another network namespace.
    Elsewhere,
}

impl Try {
    /// Tries. *Cost*: some ten system calls; 28 MiB for each queue once it can be had. The first try after a loss waits for
    /// the queues as long as when a port is opened, later ones for nothing.
    pub fn run(self) -> Tried {
        Tried(self.tried())
    }

    fn tried(mut self) -> Result<Done, String> {
        let answered = self.answered.take();
        let sockets = self.sockets.as_ref();
        let sockets =
            sockets.map_err(|error| format!("dup: {error}; raise the limit of open files (`ulimit -n`)"))?;
        if self.namespace.is_some_and(|of| namespace() != Ok(of)) {
            return Ok(Done::Elsewhere);
        }
        let text = |error: taut_xdp::Error| error.to_string();
        is_up(&self.config.interface).map_err(text)?;
        let ground = Ground::lay(&self.config, self.reached.clone()).map_err(|error| error.to_string())?;
        let (attachment, queues) = match answered {
            Some(asking) => attachment::adopt(asking, &ground)?,
            None => {
                if let Some(connection) = self.connect()? {
                    let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
                    let asking = attachment::ask(connection, &self.config, &ground, &sockets)?;
                    return Ok(Done::Asks(Box::new(asking)));
                }
                attachment::own(&self.config, &ground, self.awaited)?
            }
        };
        let port = XdpPort::with(&self.config, &self.reached, ground, attachment, queues);
        Ok(Done::Opened(Box::new(port)))
    }

    /// To netd, if it is asked: who had it open the interface may not open it, or is to leave it to the next one.
    fn connect(&self) -> Result<Option<Connection>, String> {
        match &self.config.netd {
            Netd::Auto if self.is_by_netd => connect_at_once(&Netd::At(SOCKET.into())),
            choice => connect_at_once(choice),
        }
    }
}

/// How it goes on after a try.
#[derive(Default)]
pub struct Resumed {
    /// Frames come and go again, by other descriptors than before.
    pub is_back: bool,
    /// By another address of Ethernet than before, or than peers have been told by what goes by frames.
    pub is_moved: bool,
    /// To be warned of.
    pub warning: Option<String>,
}

impl XdpPort {
    /// Nothing goes by frames from now on. Returns what to warn of.
    pub(crate) fn lose(&mut self, now: Time, why: &str) -> Option<String> {
        let attachment = self.attachment.take()?;
        self.carrier.stats = taut_ethernet::Stats { frames_free: 0, ..self.stats() };
        let queues = std::mem::take(&mut self.queues);
        queues.iter().for_each(|queue| queue.chunks().end());
        let Comeback { left, failed, due, told, .. } = &mut self.comeback;
        *left = Some(Left { attachment, _queues: queues });
        (*failed, *due) = (0, now);
        told.clear();
        let instead = match self.comeback.bare {
            None => "samples go by sockets until it can be had again",
            Some(_) => "nobody is reached there until it can be had again",
        };
        Some(format!("XDP on {}: {why}: {instead}", self.interface.name))
    }

    /// Is it time for a try, or something to be dropped? Then call [`XdpPort::take_left`] and [`XdpPort::next_try`].
    #[inline]
    pub fn is_to_try(&self, now: Time) -> bool {
        self.attachment.is_none() && self.comeback.due <= now
    }

    /// What was lost, once.
    pub fn take_left(&mut self) -> Option<Left> {
        self.comeback.left.take()
    }

    /// What netd has refused since the last call.
    pub fn take_refused(&mut self) -> Option<Refused> {
        self.comeback.refused.take().map(Refused)
    }

    /// What to try now, without the port. `ends` are those that the interface has by now, and `sockets` where the user's
    /// samples are received. *Cost*: a system call for each socket.
    pub fn next_try(&mut self, now: Time, ends: Vec<SocketAddr>, sockets: &[BorrowedFd<'_>]) -> Try {
        let Comeback { config, bare, namespace, is_by_netd, asking, last, due, failed, .. } =
            &mut self.comeback;
        // Until its end is known there is no other.
        *due = Time::NEVER;
        let answered = asking.take_if(|asking| asking.is_answered());
        if answered.is_none() {
            // It has not answered in time, if it was asked.
            (*asking, *last) = (None, now);
        }
        let sockets = sockets.iter().map(BorrowedFd::try_clone_to_owned).collect();
        let reached = bare.clone().map_or(Reached::Ip(ends), Reached::Bare);
        // Who is tried for in vain may have it for as long as the port lives, and what comes waits for the try.
        let awaited = if *failed == 0 { Awaited::Queues } else { Awaited::Nothing };
        let (config, namespace, is_by_netd) = (config.clone(), *namespace, *is_by_netd);
        Try { config, reached, sockets, namespace, is_by_netd, answered, awaited }
    }

    /// What has come of the try.
    pub fn resume(&mut self, now: Time, Tried(tried): Tried) -> Resumed {
        match tried {
            Ok(Done::Asks(asking)) => {
                (self.comeback.asking, self.comeback.due) = (Some(*asking), now + ANSWER);
                Resumed::default()
            }
            Ok(Done::Opened(port)) => {
                let is_moved = port.interface.mac != self.interface.mac || self.comeback.is_given_up;
                self.succeed_by(*port);
                self.comeback.look_later(now);
                Resumed { is_back: true, is_moved, ..Resumed::default() }
            }
            Ok(Done::Elsewhere) => {
                self.comeback.due = now + LOOK;
                Resumed::default()
            }
            Err(why) => Resumed { warning: self.comeback.fail(now, why), ..Resumed::default() },
        }
    }

    /// Nothing can be heard of what the last try has opened: that was in vain. Returns what to warn of; what is left is to
    /// be dropped at once.
    pub fn give_up(&mut self, now: Time, why: String) -> Option<String> {
        let Comeback { failed, told, .. } = &mut self.comeback;
        let (failed, told) = (*failed, std::mem::take(told));
        self.lose(now, &why)?;
        (self.comeback.failed, self.comeback.told, self.comeback.is_given_up) = (failed, told, true);
        self.comeback.fail(now, why)
    }

    /// Another one takes the place of this one.
    fn succeed_by(&mut self, next: XdpPort) {
        let old = std::mem::replace(self, next);
        self.carrier.succeed(old.carrier);
        self.sends_by = old.sends_by.min(self.queues.len().saturating_sub(1));
        let Comeback { failed, last, told, .. } = old.comeback;
        // Until all that tells of it is watched.
        (self.comeback.failed, self.comeback.last, self.comeback.told) = (failed, last, told);
        old.chunks.iter().zip(&self.chunks).for_each(|(old, new)| old.go_on_with(new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_grow_rare_and_go_on() {
        let pauses: Vec<i64> = (1..=9).map(|failed| pause(failed).0 / 1_000_000).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!(pause(u32::MAX), LATEST);
    }

    #[test]
    fn what_is_told_brings_a_try_forward_but_not_to_the_last() {
        let reached = Reached::Ip(Vec::new());
        let mut comeback = Comeback::new(&XdpConfig::default(), &reached, false);
        let start = Time(1_000_000_000_000);
        comeback.last = start;
        assert!(comeback.fail(start, "why".into()).is_some_and(|line| line.ends_with("why")));
        (0..10).for_each(|_| assert_eq!(comeback.fail(start, "why".into()), None, "told once"));
        assert_eq!(comeback.due, start + LATEST);
        comeback.bring_forward(start);
        assert_eq!(comeback.due, start + HEARD);
        comeback.bring_forward(start + HEARD + FIRST);
        assert_eq!(comeback.due, start + HEARD, "no later");
        comeback.due = start + LATEST;
        comeback.bring_forward(start + HEARD + FIRST);
        assert_eq!(comeback.due, start + HEARD + FIRST);
    }
}
