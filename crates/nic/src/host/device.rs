//! What an interface is like that a participant is to have by XDP.

use taut_xdp::{ChunkSize, Error, Interface, Vlan, is_up, program_of, takes_tags_off};

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
            program: program_of(interface.index).map_err(|error| error.to_string())?,
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
