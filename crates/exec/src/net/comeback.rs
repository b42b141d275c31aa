//! A port of frames that has lost its interface: who drives opens it anew.
//!
//! What may take long is done without the token: writers and readers go on by sockets, and no sample waits for company.
//! Only what comes waits meanwhile, as it does for any step of the driver.

use log::Level;
use taut_lock::MutexGuard;
use taut_port_xdp::Left;
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

    #[cold]
    fn open_again(&self, core: &mut MutexGuard<'_, Core>) {
        let now = core.now;
        let Core { port, .. } = &mut **core;
        let Some(lost) = port.frames.as_mut().and_then(|frames| frames.lost(now)) else { return };
        let left = lost.take_left();
        // What is closed a child that was forked may keep open. Then it would be found for ever, and could not be left out.
        lost.watched().chain(left.iter().flat_map(Left::watched)).for_each(|fd| self.watch.remove(fd));
        if left.is_some() {
            // All that keeps a queue has to go before it can be had again.
            self.watch.forget_queues();
            self.look_at_queues(Vec::new());
        }
        let ends = ends_of(&port.udp, port.only_critical, lost.interface());
        let next = lost.next_try(now, ends, &of_users(&port.udp));
        let tried = self.away_from(core, || {
            drop(left);
            next.run()
        });
        core.read_clock();
        self.go_on_after(core, tried);
    }

    fn go_on_after(&self, core: &mut MutexGuard<'_, Core>, tried: taut_port_xdp::Tried) {
        let (now, before) = (core.now, core.port.addresses());
        let Some(Frames::Xdp(xdp)) = core.port.frames.as_mut() else { return };
        let resumed = xdp.resume(now, tried);
        if !resumed.is_back {
            for fd in xdp.watched() {
                // What cannot be watched now is with the next try.
                let _ = self.watch.add(fd, HOSTS);
            }
        }
        if let Some(line) = resumed.warning {
            core.log(Level::Warn, line);
        }
        if resumed.is_back {
            self.use_frames(core, &before, resumed.is_moved);
        }
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
            // Who polls finds what comes all the same.
            Err(error) => core.log(Level::Warn, format!("XDP on {described}: {error}")),
        }
    }

    fn look_at_queues(&self, queues: Vec<taut_port_xdp::Glance>) {
        if let Some(hand) = &self.hand {
            hand.lock().look_at(queues);
        }
    }
}
