//! The interfaces that participants have queues of, each with our program for as long as anybody uses it.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use taut_xdp::{AttachMode, Error, Interface, Link, Mode, Program};

/// The interfaces with our program.
#[derive(Default)]
pub(crate) struct Interfaces {
    opened: Vec<(u64, Link)>,
    next: u64,
}

impl Interfaces {
    /// Attaches our program, if it is not there. Returns what the interface is known by from now on: its name may be
    /// another one's later.
    pub fn open(&mut self, interface: &Interface, wanted: Option<AttachMode>) -> Result<u64, String> {
        // Its name and its address of Ethernet may be others than they were. Whoever has one that was detached is about to be
        // told.
        let is_same = |link: &Link| link.interface().index == interface.index && link.is_attached();
        if let Some((id, link)) = self.opened.iter().find(|(_, link)| is_same(link)) {
            if wanted.is_some_and(|mode| mode != link.attached()) {
                let name = &interface.name;
                let mode = if link.attached() == AttachMode::Native { "native" } else { "generic" };
                return Err(format!(
                    "others use {name}, where the program is {mode}: ask for that (xdp_mode), or end them first"
                ));
            }
            return Ok(*id);
        }
        // netd itself cannot be the remedy.
        let text = |error: Error| error.without_netd().to_string();
        let program = Program::load(Mode::L3, interface.mtu).map_err(text)?;
        let link = Link::attach(program, interface, wanted).map_err(text)?;
        self.next += 1;
        self.opened.push((self.next, link));
        Ok(self.next)
    }

    pub fn link(&self, id: u64) -> Option<&Link> {
        self.opened.iter().find(|(of, _)| *of == id).map(|(_, link)| link)
    }

    /// Detaches the program of those that nobody uses.
    pub fn keep(&mut self, is_used: impl Fn(u64) -> bool) {
        self.opened.retain(|(id, _)| is_used(*id));
    }
}

/// The addresses that the interfaces have, by the indices of these: a name may be another one's by now.
pub(crate) struct Addresses(Vec<(u32, IpAddr)>);

impl Addresses {
    /// Those of now.
    ///
    /// *Errors*: one sentence: the kernel cannot tell.
    pub fn read() -> Result<Addresses, String> {
        let all = getifaddrs().map_err(|errno| format!("the addresses of the interfaces: {errno}"))?;
        let ip = all.filter_map(|own| {
            let address = own.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
            let ip = v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())));
            Some((if_nametoindex(own.interface_name.as_str()).ok()?, ip?))
        });
        Ok(Addresses(ip.collect()))
    }

    /// Does an interface have this address?
    pub fn has(&self, interface: u32, ip: IpAddr) -> bool {
        self.0.contains(&(interface, ip))
    }
}
