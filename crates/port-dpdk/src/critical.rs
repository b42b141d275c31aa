//! What is critical by a queue of its own: who goes by it, and how it comes to it.

use std::fmt;

use taut_dpdk::{Device, Flow};
use taut_ethernet::Tag;

/// The queues each way: one for what is critical, and one for all else.
pub(crate) const QUEUES: usize = 2;
/// The place of the former.
pub(crate) const CRITICAL: usize = 1;
/// From this priority on (SO_PRIORITY) nothing is to wait behind anything else: that of DSCP 46.
const FIRST_OF_ALL: i32 = 6;
/// The driver whose queues have one at the other end each.
const MEMIF: &str = "net_memif";

/// What critical frames are known by, for devices that tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Critical {
    /// The port of UDP that they go to.
    pub port: u16,
    /// The priority in their tag, if they have one; 0: that of all others.
    pub priority: u8,
}

/// How critical frames come to their queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Steering {
    /// By what they are sent by: the other end's queue of that number.
    Sender,
    /// The device tells them by this.
    Rule(Flow),
    /// They do not, for these reasons: the device puts them where it likes.
    None(String),
}

impl Steering {
    /// Has a device steer frames with such a tag, over IP or without.
    pub(crate) fn of(device: &mut Device, critical: &Critical, tag: Option<Tag>, is_ip: bool) -> Steering {
        if device.driver() == MEMIF {
            return Steering::Sender;
        }
        let mut refused = Vec::new();
        for flow in flows(critical, tag, is_ip) {
            match device.steer(flow, CRITICAL as u16) {
                Ok(()) => return Steering::Rule(flow),
                Err(error) => refused.push(error.to_string()),
            }
        }
        if refused.is_empty() {
            refused.push(
                "without IP cards know frames by the priority in their tag alone: give what is critical one (dpdk_priority_pcp)"
                    .into(),
            );
        }
        Steering::None(refused.join("; "))
    }
}

impl fmt::Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Steering::Sender => write!(f, "{CRITICAL}, as it is sent"),
            Steering::Rule(flow) => write!(f, "{CRITICAL}, known by {flow}"),
            Steering::None(why) => write!(f, "{CRITICAL} when it is sent only ({why})"),
        }
    }
}

/// What to try, what tells best first: peers of other vendors have the port, and tags of their own.
fn flows(critical: &Critical, tag: Option<Tag>, is_ip: bool) -> Vec<Flow> {
    let port = |is_tagged| Flow::UdpPort { port: critical.port, is_tagged };
    let ports = tag.map(|_| port(true)).into_iter().chain([port(false)]).filter(|_| is_ip);
    let priority = tag.filter(|_| critical.priority > 0).map(|_| Flow::Priority(critical.priority));
    ports.chain(priority).collect()
}

/// The place of the queue that sends what has this priority (SO_PRIORITY).
pub(crate) fn sends_by(priority: i32) -> usize {
    if priority >= FIRST_OF_ALL { CRITICAL } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cards_are_asked_to_tell_by() {
        let of = |priority, tag, is_ip| flows(&Critical { port: 7_402, priority }, tag, is_ip);
        let port = |is_tagged| Flow::UdpPort { port: 7_402, is_tagged };
        let tag = Tag::of(5, Some(0));
        assert_eq!(of(0, None, true), [port(false)]);
        assert_eq!(of(6, tag, true), [port(true), port(false), Flow::Priority(6)]);
        assert_eq!((of(6, tag, false), of(0, tag, false)), (vec![Flow::Priority(6)], vec![]));
        assert_eq!((of(6, None, false), of(0, None, false)), (vec![], vec![]));
    }

    #[test]
    fn only_what_waits_for_nothing_goes_by_its_queue() {
        assert_eq!([0, 2, 4, 5, 6, 7].map(sends_by), [0, 0, 0, 0, 1, 1]);
    }
}
