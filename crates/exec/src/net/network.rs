//! Interfaces that come, go or change their addresses while the participant runs.
//!
//! The port hears of it and finds out what there is; the core tells the others. This decides when: changes come
//! in groups, an interface that goes down loses its addresses one by one.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};

use log::Level;
use taut_base::{Duration, Error, Time};
use taut_port_udp::UdpConfig;

use crate::core::Core;
use crate::lanes::neighbours::FIRST_SOURCE;

/// The number of the port's watch among the sources.
pub(crate) const NETWORK: u64 = FIRST_SOURCE - 1;

/// The number of what the kernel tells of hosts, and netd of the interface. From here on sources are not the port's.
pub(crate) const HOSTS: u64 = FIRST_SOURCE - 3;

/// How long after the first of a group of changes it is looked what there is. Lower tells the others of
/// addresses that do not last, higher lets samples go astray for longer.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

/// A thread that drives from within another network namespace cannot look: so much later it is seen whether one drives that
/// can. Lower looks in vain more often, higher lets samples go astray for longer.
const ELSEWHERE: Duration = Duration::from_millis(100);

/// What the system refuses to tell, as there are no descriptors left for a moment, is asked for again so much later, as no
/// change tells that there are some. Lower asks in vain more often, higher lets samples go astray for longer.
const AGAIN: Duration = Duration::from_secs(1);

/// From one look at what is not sent to the next. Lower costs timers more, higher tells later.
const UNSENT_LOOK: Duration = Duration::from_secs(1);

/// From one warning of what is not sent to the next, at least. Lower fills the log where a firewall's rule stays, higher
/// leaves another reason untold for longer.
const UNSENT_AGAIN: Duration = Duration::from_secs(60);

/// A process says it once: its participants ask for the same.
static IS_CAPPED_SAID: AtomicBool = AtomicBool::new(false);

/// The network namespace of the calling thread by its number, where the system tells. network_namespaces(7).
pub(crate) fn network() -> Option<u64> {
    std::fs::metadata("/proc/thread-self/ns/net").ok().map(|namespace| namespace.ino())
}

/// Says what to do about receive buffers that the kernel has made smaller than `asked`, in bytes.
pub(crate) fn tell_of_buffers(asked: usize, granted: usize) {
    let Some(text) = capped(asked, granted) else { return };
    // Most systems cap what is asked for when nobody has chosen; only who has chosen is to be warned.
    let level = if asked == UdpConfig::default().receive_buffer { Level::Info } else { Level::Warn };
    // Said before it is: a logger is the user's, who may make a participant for what it is told.
    if !IS_CAPPED_SAID.swap(true, Ordering::Relaxed) {
        log::log!(level, "{text}");
    }
}

fn capped(asked: usize, granted: usize) -> Option<String> {
    (granted < asked).then(|| {
        format!(
            "receive buffers have {granted} bytes instead of {asked}, so that more of a burst may be lost: `sysctl \
             net.core.rmem_max={asked}` as root, or a smaller receive_buffer"
        )
    })
}

impl Core {
    /// Something has changed.
    pub fn hear_network(&mut self) {
        self.port.udp.hear_changes();
        self.is_refused_said = false;
        self.follow_at = self.follow_at.min(self.now + SETTLED_AFTER);
    }

    /// Hosts, or the interface, have changed.
    pub fn hear_hosts(&mut self) {
        if let Some(line) = self.port.hear_hosts(self.now) {
            self.log(Level::Warn, line);
        }
    }

    /// The ports' time has come.
    pub fn time_ports(&mut self) {
        if let Some(line) = self.port.on_timeout(self.now) {
            self.log(Level::Warn, line);
        }
    }

    /// Tells of what the system has not sent, if it is time. Whoever sends has counted it; announcements, which never end, bring
    /// the timers that this is called with.
    pub fn tell_of_unsent(&mut self) {
        if self.unsent_at > self.now {
            return;
        }
        self.port.udp.warn_of_unsent();
        let again = if self.tell_warnings() { UNSENT_AGAIN } else { UNSENT_LOOK };
        self.unsent_at = self.now + again;
    }

    /// Tells what the sockets warn of. Returns whether that is anything.
    fn tell_warnings(&mut self) -> bool {
        let warnings = self.port.udp.take_warnings();
        let is_any = !warnings.is_empty();
        warnings.into_iter().for_each(|line| self.log(Level::Warn, line));
        is_any
    }

    /// Looks what there is now, if it is time, and tells the others.
    pub fn follow_network(&mut self) {
        if self.follow_at > self.now {
            return;
        }
        if self.network.zip(network()).is_some_and(|(own, here)| own != here) {
            // It sees other interfaces.
            self.follow_at = self.now + ELSEWHERE;
            return;
        }
        self.follow_at = Time::NEVER;
        let followed = self.port.follow(self.now);
        self.tell_warnings();
        match followed {
            Ok(true) => {
                let now_at: Vec<String> =
                    self.port.udp.user_unicast().iter().map(ToString::to_string).collect();
                let line = format!("the network has changed: reached at {} now", now_at.join(", "));
                self.log(Level::Info, line);
                self.participant.set_addresses(self.now, self.port.addresses());
            }
            Ok(false) => {}
            Err(error) => {
                // Any other kind is one that a change ends.
                let is_refused = matches!(error, Error::Error(_));
                if is_refused {
                    self.follow_at = self.now + AGAIN;
                }
                let is_said = std::mem::replace(&mut self.is_refused_said, is_refused);
                if !(is_refused && is_said) {
                    self.log(Level::Warn, format!("the network has changed: {error}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capped_buffers_have_a_remedy() {
        assert_eq!(capped(4_096, 4_096), None);
        assert_eq!(capped(4_096, 5_000), None);
        let text = capped(8_192, 4_096).unwrap();
        assert!(text.contains("4096 bytes instead of 8192") && text.contains("rmem_max=8192"), "{text}");
    }
}
