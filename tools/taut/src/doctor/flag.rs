//! The flag of an interface that says that it carries multicast: rtnetlink(7).
//!
//! No other flag is written, and the interface is known by its index: of the same name there may be another one by now.

use serde::{Deserialize, Serialize};
use taut_netlink::{Errno, Socket, word};

use super::addition::remedy;

// linux/rtnetlink.h
const NEW: u16 = 16;
const GET: u16 = 18;
/// Where the flags are in ifinfomsg.
const FLAGS_AT: usize = 8;
/// IFF_MULTICAST (linux/if.h).
const MULTICAST: u32 = 0x1000;

/// That flag of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flag {
    pub interface: String,
    pub index: u32,
}

impl Flag {
    /// What it is called, as `ip link` shows it.
    pub const NAME: &str = "MULTICAST";

    /// Sets it.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn add(&self) -> Result<(), String> {
        self.request(NEW, MULTICAST, MULTICAST).map(drop).map_err(|errno| self.refusal("RTM_NEWLINK", errno))
    }

    /// Takes it away. Returns whether it was there.
    ///
    /// *Errors*: a sentence with the remedy.
    pub fn remove(&self) -> Result<bool, String> {
        match self.request(GET, 0, 0) {
            Ok(flags) if flags & MULTICAST != 0 => {}
            // With its interface it has gone, too.
            Ok(_) | Err(Errno::ENODEV) => return Ok(false),
            Err(errno) => return Err(self.refusal("RTM_GETLINK", errno)),
        }
        self.request(NEW, 0, MULTICAST).map_err(|errno| self.refusal("RTM_NEWLINK", errno))?;
        Ok(true)
    }

    /// Returns the flags that are told; `flags` are to be set of those in `change`.
    fn request(&self, kind: u16, flags: u32, change: u32) -> Result<u32, Errno> {
        // ifinfomsg: family, kind of device; index, flags, which of them are meant.
        let message: Vec<u8> =
            [0, self.index, flags, change].into_iter().flat_map(u32::to_ne_bytes).collect();
        let answers = Socket::of_routes()?.request(kind, 0, &message)?;
        Ok(answers.first().and_then(|answer| word(answer, FLAGS_AT)).unwrap_or(0))
    }

    fn refusal(&self, call: &str, errno: Errno) -> String {
        format!("{call} {} of {}: {errno}; {}", Flag::NAME, self.interface, remedy(errno))
    }
}
