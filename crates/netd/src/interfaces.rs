//! The interfaces that participants have queues of, each with our program for as long as anybody uses it.

use std::net::IpAddr;

use taut_netlink::{DUMP, Socket, attribute, link_names, word};
use taut_xdp::{AttachMode, Error, Interface, Link, Mode, Program};

// linux/rtnetlink.h and linux/if_addr.h
const GET_ADDRESS: u16 = 22;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// Bytes of ifaddrmsg, which is before the attributes.
const FIXED: usize = 8;
/// Where the number of the interface is in it.
const INDEX_AT: usize = 4;

/// The interfaces with our program.
#[derive(Default)]
pub(crate) struct Interfaces {
    opened: Vec<(u64, Link)>,
    next: u64,
}

impl Interfaces {
    /// Attaches our program of this layer, if it is not there. Returns what the interface is known by from now on: its name
    /// may be another one's later.
    ///
    /// *Errors*: one sentence: it cannot be attached, or is there in another way.
    pub fn open(
        &mut self,
        interface: &Interface,
        layer: Mode,
        wanted: Option<AttachMode>,
        is_used: impl Fn(u64) -> bool,
    ) -> Result<u64, String> {
        let is_other_mode = |link: &Link| wanted.is_some_and(|mode| mode != link.attached());
        // Who had it with the other layer, or in the other mode, may just have gone.
        self.opened.retain(|(id, link)| {
            let is_other = link.program().mode() != layer || is_other_mode(link);
            link.interface().index != interface.index || !is_other || is_used(*id)
        });
        // Its name and its address of Ethernet may be others than they were.
        if let Some((id, link)) = self.opened.iter().find(|(_, link)| is_on(link, interface)) {
            let name = &interface.name;
            if layer != link.program().mode() {
                return Err(format!(
                    "others use {name} over IP, and an interface has one program: do so as well (xdp_layer = 3), or end \
                     them first"
                ));
            }
            if is_other_mode(link) {
                let mode = if link.attached() == AttachMode::Native { "native" } else { "generic" };
                return Err(format!(
                    "others use {name}, where the program is {mode}: ask for that (xdp_mode), or end them first"
                ));
            }
            return Ok(*id);
        }
        // netd itself cannot be the remedy.
        let text = |error: Error| error.without_netd().to_string();
        let program = Program::load(layer, interface.mtu).map_err(text)?;
        let link = Link::attach(program, interface, wanted).map_err(text)?;
        self.next += 1;
        self.opened.push((self.next, link));
        Ok(self.next)
    }

    /// Is our program, of which this is the number, attached to this interface?
    pub fn is_on(&self, id: u64, interface: &Interface) -> bool {
        self.link(id).is_some_and(|link| is_on(link, interface))
    }

    pub fn link(&self, id: u64) -> Option<&Link> {
        self.opened.iter().find(|(of, _)| *of == id).map(|(_, link)| link)
    }

    /// Detaches the program of those that nobody uses.
    pub fn keep(&mut self, is_used: impl Fn(u64) -> bool) {
        self.opened.retain(|(id, _)| is_used(*id));
    }
}

/// Whoever has one that was detached is about to be told.
fn is_on(link: &Link, interface: &Interface) -> bool {
    link.interface().index == interface.index && link.is_attached()
}

/// The addresses that the interfaces have, by the indices of these: a name may be another one's by now, and an address be
/// listed by a label that is none.
pub(crate) struct Addresses(Vec<(u32, IpAddr)>);

impl Addresses {
    /// Those of now.
    ///
    /// *Errors*: one sentence: the kernel cannot tell.
    pub fn read() -> Result<Addresses, String> {
        let refused = |errno| format!("the addresses of the interfaces: {errno}");
        let mut kernel = Socket::of_routes().map_err(refused)?;
        let found = kernel.request(GET_ADDRESS, DUMP, &[0; FIXED]).map_err(refused)?;
        Ok(Addresses(found.iter().filter_map(|message| address(message)).collect()))
    }

    /// Does an interface have this address?
    pub fn has(&self, interface: u32, ip: IpAddr) -> bool {
        self.0.contains(&(interface, ip))
    }
}

/// All names of the interface that is called so; none where the kernel does not tell.
pub(crate) fn names(interface: &str) -> Vec<String> {
    told_names(|kernel| kernel.link_named(interface))
}

/// The same of the interface of this index, its first name first.
pub(crate) fn names_of(index: u32) -> Vec<String> {
    told_names(|kernel| kernel.link(index))
}

fn told_names(ask: impl FnOnce(&mut Socket) -> taut_netlink::Result<Vec<u8>>) -> Vec<String> {
    let said = Socket::of_routes().and_then(|mut kernel| ask(&mut kernel));
    said.map(|said| link_names(&said)).unwrap_or_default()
}

/// The address that a message is about, and its interface.
fn address(message: &[u8]) -> Option<(u32, IpAddr)> {
    let attributes = message.get(FIXED..)?;
    // The other one is that of the other end where there are two.
    let own = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS))?;
    let v4 = <[u8; 4]>::try_from(own).ok().map(IpAddr::from);
    let ip = v4.or_else(|| <[u8; 16]>::try_from(own).ok().map(IpAddr::from))?;
    Some((word(message, INDEX_AT)?, ip))
}

#[cfg(test)]
mod tests {
    use taut_netlink::{Attributes, CREATE};
    use taut_testbed::{End, with_pair};

    use super::*;

    /// As `Label=` of systemd.network(5) gives it: iproute2 has it begin with the name of the interface.
    #[test]
    fn an_address_with_any_label() {
        with_pair("an_address_with_any_label", ["", ""], |pair| {
            pair.enter(End::A);
            let (index, address) = (Interface::named("xa").unwrap().index, [10, 0, 0, 1]);
            let attributes = Attributes::default()
                .with(IFA_LOCAL, &address)
                .with(IFA_ADDRESS, &address)
                .with_text(3, "public");
            let body = [&[taut_netlink::IPV4, 24, 0, 0][..], &index.to_ne_bytes(), &attributes.0].concat();
            Socket::of_routes().unwrap().request(20, CREATE, &body).unwrap();
            let all = Addresses::read().unwrap();
            assert!(all.has(index, IpAddr::from(address)) && all.has(index, IpAddr::from(End::A.ipv4())));
            assert!(
                !all.has(index, IpAddr::from(End::B.ipv4())) && !all.has(index + 1, IpAddr::from(address))
            );
        });
    }
}
