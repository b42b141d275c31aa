//! Which frames come by which queue, where the device chooses.

use std::ffi::CStr;
use std::fmt;
use std::ptr;

use crate::eal::{control, said};
use crate::ffi::{self, RawFlow};
use crate::{Device, Error};

/// What frames are known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The port of UDP that they go to.
    UdpPort {
        /// The port.
        port: u16,
        /// Over IPv6, or over IPv4?
        is_ipv6: bool,
        /// Is a tag of 802.1Q before that? Some drivers look behind one in any case and take no rule that says so.
        is_tagged: bool,
    },
    /// The priority in their tag (PCP). *Range*: 0 to 7.
    Priority(u8),
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flow::UdpPort { port, is_ipv6, is_tagged } => {
                let ip = if *is_ipv6 { " over IPv6" } else { "" };
                write!(f, "UDP port {port}{ip}{}", if *is_tagged { " behind a tag" } else { "" })
            }
            Flow::Priority(priority) => write!(f, "priority {priority} in a tag"),
        }
    }
}

impl Device {
    /// Has what comes and is known by this come by that queue, until the device is closed. What nothing is said of comes by
    /// the first one.
    ///
    /// *Errors*: [`Error::NotSteered`] where the driver has no such rule; virtual ones mostly have none at all. *Cost*: the
    /// driver's; it may speak with the card's firmware.
    pub fn steer(&mut self, flow: Flow, queue: u16) -> Result<(), Error> {
        let raw = match flow {
            Flow::UdpPort { port, is_ipv6, is_tagged } => {
                RawFlow { udp_port: port, is_ipv6: is_ipv6.into(), is_tagged: is_tagged.into(), priority: 0 }
            }
            Flow::Priority(priority) => {
                RawFlow { udp_port: 0, is_ipv6: 0, is_tagged: 1, priority: priority & 7 }
            }
        };
        let mut why = ptr::null();
        let _control = control();
        said();
        // SAFETY: the device's port is one that was opened and is not closed; there is room for a pointer.
        let result = unsafe { ffi::taut_dpdk_steer(self.number(), queue, &raw, &mut why) };
        if result == 0 {
            return Ok(());
        }
        // SAFETY: a text of DPDK's or its driver's that ends in a zero and stays.
        let text = (!why.is_null()).then(|| unsafe { CStr::from_ptr(why) }.to_string_lossy().into_owned());
        let (device, flow) = (self.name().to_owned(), flow.to_string());
        Err(Error::NotSteered { device, flow, said: text.unwrap_or_else(said), errno: -result })
    }
}
