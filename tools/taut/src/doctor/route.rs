//! The route to the groups of discovery, for programs that do not name the interface: rtnetlink(7).

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use taut_netlink::{Attributes, CREATE, EXCLUSIVE, Errno, IPV4, Socket};

use super::addition::remedy;

// linux/rtnetlink.h
const NEW: u16 = 24;
const DELETE: u16 = 25;
const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
const MAIN: u8 = 254;
const ON_LINK: u8 = 253;
const UNICAST: u8 = 1;
/// Who has made it, as routes are marked: a number that no routing program has in /etc/iproute2/rt_protos, by which
/// --undo knows its own. `ip route` shows it as `proto 74`.
const OURS: u8 = 74;

/// The groups that stay at a site (RFC 2365 §6.1), those of all domains among them. Wider and other programs' groups go by
/// this interface, too.
const GROUPS: (Ipv4Addr, u8) = (Ipv4Addr::new(239, 255, 0, 0), 16);

/// A route to the groups by an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Route {
    pub interface: String,
    pub index: u32,
}

impl Route {
    /// Where it leads.
    pub fn destination() -> String {
        format!("{}/{}", GROUPS.0, GROUPS.1)
    }

    /// Adds it.
    ///
    /// *Errors*: a sentence with the remedy: no privilege, an interface that is down, another route to there.
    pub fn add(&self) -> Result<(), String> {
        self.request(NEW, CREATE | EXCLUSIVE).map_err(|errno| self.refusal("RTM_NEWROUTE", errno))
    }

    /// Takes it away, and no other one. Returns whether it was there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn remove(&self) -> Result<bool, String> {
        match self.request(DELETE, 0) {
            Ok(()) => Ok(true),
            // With its interface it has gone, too.
            Err(Errno::ESRCH | Errno::ENODEV) => Ok(false),
            Err(errno) => Err(self.refusal("RTM_DELROUTE", errno)),
        }
    }

    fn request(&self, kind: u16, flags: u16) -> Result<(), Errno> {
        let (to, len) = GROUPS;
        // rtmsg: family, bits of destination and source, type of service, table, who, how far, kind; flags.
        let message = [&[IPV4, len, 0, 0, MAIN, OURS, ON_LINK, UNICAST][..], &[0; 4]].concat();
        let attributes =
            Attributes::default().with(DESTINATION, &to.octets()).with_word(INTERFACE, self.index);
        Socket::of_routes()?.request(kind, flags, &[message, attributes.0].concat()).map(drop)
    }

    fn refusal(&self, call: &str, errno: Errno) -> String {
        let name = &self.interface;
        let remedy = match errno {
            Errno::ENETDOWN => format!("`ip link set {name} up` first"),
            Errno::EEXIST => {
                format!("there is another route to it: `ip route show {}`", Route::destination())
            }
            other => remedy(other).to_owned(),
        };
        format!("{call} {} by {name}: {errno}; {remedy}", Route::destination())
    }
}
