//! What is critical by a queue of its own: who goes by it, and how it comes to it.

use std::fmt;
use std::net::IpAddr;

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
    /// Has a device steer frames with such a tag, to an address or without IP.
    pub(crate) fn of(
        device: &mut Device,
        critical: &Critical,
        tag: Option<Tag>,
        to: Option<IpAddr>,
    ) -> Steering {
        if device.driver() == MEMIF {
            return Steering::Sender;
        }
        let mut refused = Vec::new();
        for flow in flows(critical, tag, to) {
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
fn flows(critical: &Critical, tag: Option<Tag>, to: Option<IpAddr>) -> Vec<Flow> {
    let tags = [true, false].into_iter().filter(|is_tagged| !is_tagged || tag.is_some());
    let ports = to.into_iter().flat_map(|to| {
        let is_ipv6 = to.is_ipv6();
        tags.clone().map(move |is_tagged| Flow::UdpPort { port: critical.port, is_ipv6, is_tagged })
    });
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
        let of = |priority, tag, to| flows(&Critical { port: 7_402, priority }, tag, to);
        let port = |is_ipv6, is_tagged| Flow::UdpPort { port: 7_402, is_ipv6, is_tagged };
        let tag = Tag::of(5, Some(0));
        for (to, is_ipv6) in [(Some([10, 0, 0, 2].into()), false), (Some([0xfd; 16].into()), true)] {
            assert_eq!(of(0, None, to), [port(is_ipv6, false)]);
            assert_eq!(of(6, tag, to), [port(is_ipv6, true), port(is_ipv6, false), Flow::Priority(6)]);
        }
        assert_eq!((of(6, tag, None), of(0, tag, None)), (vec![Flow::Priority(6)], vec![]));
        assert_eq!((of(6, None, None), of(0, None, None)), (vec![], vec![]));
    }

    #[test]
    fn only_what_waits_for_nothing_goes_by_its_queue() {
        assert_eq!([0, 2, 4, 5, 6, 7].map(sends_by), [0, 0, 0, 0, 1, 1]);
    }
}
