//! What an interface is like that a participant is to have by XDP.

use taut_netlink::{Result, Socket, attribute, word};
use taut_xdp::{ChunkSize, Error, Interface, Vlan, is_up, takes_tags_off};

use super::refused;

/// linux/rtnetlink.h and linux/if_link.h: the message, where it has the interface's index, what of XDP is told of it,
/// and whether and which program is attached.
const GET_LINK: u16 = 18;
const MESSAGE: usize = 16;
const INDEX_AT: usize = 4;
const XDP: u16 = 43;
const ATTACHED: u16 = 2;
const PROGRAM: u16 = 4;

/// An interface, as XDP finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Is it up?
    pub is_up: bool,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// How many queues it has, of the direction that has more: those have numbers; `None` where the driver does not say.
    pub queues: Option<u32>,
    /// The number of the program that is attached, if one is: there can be no other.
    pub program: Option<u32>,
    /// Does it take the tags of VLANs off frames before a program sees them?
    pub takes_tags_off: bool,
    /// If it is of a VLAN, the name of the interface by which its frames come with tags, or a sentence that says why there
    /// is none for a program.
    pub parent: Option<std::result::Result<String, String>>,
}

impl Device {
    /// The interface of this name in the network of this thread; `None` if there is none.
    ///
    /// *Errors*: a sentence, where the kernel does not tell. *Cost*: some twenty system calls, or forty for one of a VLAN.
    ///
    /// ```
    /// assert!(taut_nic::Device::named("lo").unwrap().is_some());
    /// assert_eq!(taut_nic::Device::named("none7"), Ok(None));
    /// ```
    pub fn named(name: &str) -> std::result::Result<Option<Device>, String> {
        let interface = match Interface::named(name) {
            Ok(interface) => interface,
            Err(Error::NoInterface { .. }) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let vlan = Vlan::of(&interface).map_err(|error| error.to_string())?;
        Ok(Some(Device {
            is_up: is_up(name).is_ok(),
            mtu: interface.mtu,
            queues: interface.rx_queues.max(interface.tx_queues),
            program: program(interface.index).map_err(|error| refused("netlink RTM_GETLINK", error))?,
            takes_tags_off: takes_tags_off(name),
            parent: vlan.map(|vlan| vlan.map(|vlan| vlan.parent.name)),
        }))
    }

    /// The largest MTU whose frames a participant takes; with frames in several chunks, which Linux has from 6.6 on, or
    /// without.
    ///
    /// ```
    /// assert_eq!([false, true].map(taut_nic::Device::largest_mtu), [3_816, 61_326]);
    /// ```
    pub fn largest_mtu(in_chunks: bool) -> u32 {
        let largest = ChunkSize::B4096;
        if in_chunks { largest.largest_mtu_in_pieces() } else { largest.largest_mtu() }
    }
}

fn program(index: u32) -> Result<Option<u32>> {
    let mut message = [0; MESSAGE];
    message[INDEX_AT..INDEX_AT + 4].copy_from_slice(&index.to_ne_bytes());
    let answers = Socket::of_routes()?.request(GET_LINK, 0, &message)?;
    let of_xdp = answers.first().and_then(|answer| attribute(answer.get(MESSAGE..)?, XDP));
    let attached = of_xdp.filter(|told| attribute(told, ATTACHED).is_some_and(|mode| mode != [0]));
    // Where there is one for each mode, their numbers stand elsewhere.
    Ok(attached.map(|told| attribute(told, PROGRAM).and_then(|id| word(id, 0)).unwrap_or(0)))
}
