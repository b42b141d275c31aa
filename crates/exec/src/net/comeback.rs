//! A port of frames that has lost its interface: who drives opens it anew.
//!
//! What may take long is done without the token: writers and readers go on by sockets, and no sample waits for company.
//! Only what comes waits meanwhile, as it does for any step of the driver.

use log::Level;
use taut_base::Error;
use taut_lock::MutexGuard;
use taut_port_xdp::{Left, XdpPort};
use taut_rtps::Addresses;

use crate::core::Core;
use crate::executor::Inner;
use crate::net::frames::{Frames, ends_of, of_users};
use crate::net::network::HOSTS;

impl Inner {
    /// Does what is to be done about an interface that is lost, if it is time. The caller has the role.
    pub fn come_back(&self, core: &mut MutexGuard<'_, Core>) {
        let now = core.now;
        if core.port.frames.as_mut().is_some_and(|frames| frames.lost(now).is_some()) {
            self.open_again(core);
        }
    }

    /// What netd has refused is watched no longer.
    pub fn leave_refused(&self, core: &mut Core) {
        let Some(Frames::Xdp(xdp)) = core.port.frames.as_mut() else { return };
        if let Some(refused) = xdp.take_refused() {
            // What is closed a child that was forked may keep open. Then it would be found for ever, and could not be left out.
            self.watch.remove(refused.watched());
        }
    }

    #[cold]
    fn open_again(&self, core: &mut MutexGuard<'_, Core>) {
        let now = core.now;
        let Core { port, .. } = &mut **core;
        let Some(lost) = port.frames.as_mut().and_then(|frames| frames.lost(now)) else { return };
        let left = self.leave_interface(lost);
        let ends = ends_of(&port.udp, port.only_critical, lost.interface());
        let next = lost.next_try(now, ends, &of_users(&port.udp));
        let tried = self.away_from(core, || {
            drop(left);
            next.run()
        });
        core.read_clock();
        self.go_on_after(core, tried);
    }

    /// What was lost, which nothing of this executor keeps or watches any more. All that keeps a queue has to go before it
    /// can be had again.
    fn leave_interface(&self, lost: &mut XdpPort) -> Option<Left> {
        let left = lost.take_left();
        // See above: a child.
        lost.watched().chain(left.iter().flat_map(Left::watched)).for_each(|fd| self.watch.remove(fd));
        if left.is_some() {
            self.watch.forget_queues();
            self.look_at_queues(Vec::new());
        }
        left
    }

    fn go_on_after(&self, core: &mut MutexGuard<'_, Core>, tried: taut_port_xdp::Tried) {
        let (now, before) = (core.now, core.port.addresses());
        let Some(Frames::Xdp(xdp)) = core.port.frames.as_mut() else { return };
        let resumed = xdp.resume(now, tried);
        if !resumed.is_back {
            self.watch_for_next(xdp);
        }
        if let Some(line) = resumed.warning {
            core.log(Level::Warn, line);
        }
        if resumed.is_back {
            self.use_frames(core, &before, resumed.is_moved);
        }
    }

    /// Hears what brings the next try forward.
    fn watch_for_next(&self, lost: &XdpPort) {
        for fd in lost.watched() {
            // What cannot be watched now is with the next try.
            let _ = self.watch.add(fd, HOSTS);
        }
    }

    /// What was opened cannot be watched: it would hear nothing, and keep all others from hearing it.
    #[cold]
    fn give_up(&self, core: &mut MutexGuard<'_, Core>, error: &Error) {
        let now = core.now;
        let Some(Frames::Xdp(xdp)) = core.port.frames.as_mut() else { return };
        let warning = xdp.give_up(now, error.to_string());
        let left = self.leave_interface(xdp);
        self.watch_for_next(xdp);
        if let Some(line) = warning {
            core.log(Level::Warn, line);
        }
        self.away_from(core, || drop(left));
        core.read_clock();
    }

    /// Frames come and go again, which they did at these addresses before; by another station if it has moved.
    fn use_frames(&self, core: &mut MutexGuard<'_, Core>, before: &Addresses, is_moved: bool) {
        let now = core.now;
        let Core { port, participant, .. } = &mut **core;
        // Addresses may have changed meanwhile.
        port.follow_by_frames(now);
        let Some(frames) = &mut port.frames else { return };
        self.look_at_queues(frames.looks());
        let watched = self.watch.watch_frames(frames);
        let described = frames.describe().unwrap_or_default();
        port.udp.forget_paths();
        let addresses = port.addresses();
        if addresses != *before {
            // Without IP those are of the station, and that is another one.
            participant.set_addresses(now, addresses);
        } else if is_moved {
            // The peers' kernels hear of another station by being asked for the peers' own, for what is told now.
            participant.announce(now);
        }
        match watched {
            Ok(()) => core.log(Level::Info, format!("XDP on {described}: again")),
            Err(error) => self.give_up(core, &error),
        }
    }

    fn look_at_queues(&self, queues: Vec<taut_port_xdp::Glance>) {
        if let Some(hand) = &self.hand {
            hand.lock().look_at(queues);
        }
    }
}
