//! Which interfaces there are, and which of them a participant uses.

use std::net::Ipv4Addr;

use nix::net::if_::InterfaceFlags;
use taut_base::{Error, Result};

use crate::socket::refused;

/// The most addresses one participant uses. More would not fit what peers accept of one
/// participant's locators (16), nor the kernel's memberships of one socket (20 by default).
/// Named interfaces above it are refused; of unnamed ones the first are taken.
pub const MAX_INTERFACES: usize = 16;

/// One address of a network interface that the participant uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name, as `eth0`.
    pub name: String,
    /// The kernel's number of it.
    pub index: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of the address that name the network.
    pub prefix_len: u8,
    /// Is it the host itself?
    pub loopback: bool,
    /// Is multicast used on it?
    pub multicast: bool,
}

/// An interface as the kernel lists it: once for each address, at least once.
#[derive(Clone, Debug)]
struct Listed {
    name: String,
    address: Option<Ipv4Addr>,
    prefix_len: u8,
    flags: InterfaceFlags,
}

impl Listed {
    fn is_up(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_UP)
    }

    fn is_loopback(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    }

    fn is_named(&self, asked: &str) -> bool {
        self.name == asked || self.address.is_some_and(|address| asked.parse() == Ok(address))
    }

    fn usable(&self) -> Option<Interface> {
        let address = self.address.filter(|_| self.is_up())?;
        Some(Interface {
            index: 0,
            name: self.name.clone(),
            address,
            prefix_len: self.prefix_len,
            loopback: self.is_loopback(),
            // Linux does not flag loopback as capable of multicast, and yet carries it there.
            multicast: self.is_loopback() || self.flags.contains(InterfaceFlags::IFF_MULTICAST),
        })
    }
}

/// The interfaces that a participant uses, `asked` being names and addresses, or nothing for all that are usable.
///
/// *Errors*: [`Error::BadParameter`] for one that there is not or that cannot be used, [`Error::Error`] where none
/// can; the text has the remedy. *Cost*: a list of all interfaces from the kernel.
///
/// ```
/// assert!(taut_port_udp::interfaces(&["lo".into()]).unwrap().iter().all(|interface| interface.loopback));
/// ```
pub fn interfaces(asked: &[String]) -> Result<Vec<Interface>> {
    let mut chosen = choose(&list()?, asked)?;
    for interface in &mut chosen {
        interface.index = nix::net::if_::if_nametoindex(interface.name.as_str())
            .map_err(|errno| refused(format!("if_nametoindex {}", interface.name), errno.into()))?;
    }
    Ok(chosen)
}

fn list() -> Result<Vec<Listed>> {
    let all = nix::ifaddrs::getifaddrs().map_err(|errno| refused("getifaddrs".into(), errno.into()))?;
    let ip = |address: Option<nix::sys::socket::SockaddrStorage>| {
        address.and_then(|address| address.as_sockaddr_in().map(|v4| v4.ip()))
    };
    Ok(all
        .map(|entry| Listed {
            address: ip(entry.address),
            prefix_len: ip(entry.netmask).map_or(32, |mask| mask.to_bits().leading_ones() as u8),
            name: entry.interface_name,
            flags: entry.flags,
        })
        .collect())
}

fn choose(all: &[Listed], asked: &[String]) -> Result<Vec<Interface>> {
    if asked.is_empty() {
        return choose_usable(all);
    }
    let mut chosen = Vec::new();
    for wanted in asked {
        let matching: Vec<&Listed> = all.iter().filter(|listed| listed.is_named(wanted)).collect();
        let usable: Vec<Interface> = matching.iter().filter_map(|listed| listed.usable()).collect();
        if usable.is_empty() {
            return Err(unusable(all, &matching, wanted));
        }
        for interface in usable {
            if !chosen.contains(&interface) {
                chosen.push(interface);
            }
        }
    }
    if chosen.len() > MAX_INTERFACES {
        return Err(Error::BadParameter(format!(
            "{} addresses of interfaces were asked for: name at most {MAX_INTERFACES}",
            chosen.len()
        )));
    }
    Ok(chosen)
}

fn choose_usable(all: &[Listed]) -> Result<Vec<Interface>> {
    let usable: Vec<Interface> = all.iter().filter_map(Listed::usable).collect();
    let (loopback, mut chosen): (Vec<_>, Vec<_>) = usable.into_iter().partition(|i| i.loopback);
    if chosen.is_empty() {
        chosen = loopback;
    }
    if chosen.is_empty() {
        return Err(Error::Error(format!(
            "no usable network interface: none is up and has an IPv4 address ({}); `ip link set lo up` is \
             enough for participants of this host",
            names(all)
        )));
    }
    chosen.truncate(MAX_INTERFACES);
    Ok(chosen)
}

fn unusable(all: &[Listed], matching: &[&Listed], wanted: &str) -> Error {
    Error::BadParameter(match matching.first() {
        None => format!("there is no network interface or address {wanted}: choose of {}", names(all)),
        Some(found) if !found.is_up() => {
            format!("network interface {wanted} is down: `ip link set {} up`, or choose another", found.name)
        }
        Some(found) => format!(
            "network interface {wanted} has no IPv4 address: `ip addr add ADDRESS dev {}`, or choose another",
            found.name
        ),
    })
}

/// Every interface once, with its IPv4 addresses.
fn names(all: &[Listed]) -> String {
    let mut names: Vec<String> = Vec::new();
    for listed in all {
        let name = match listed.address {
            Some(address) => format!("{} ({address})", listed.name),
            None if all.iter().any(|l| l.name == listed.name && l.address.is_some()) => continue,
            None => listed.name.clone(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "there is none".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, address: Option<[u8; 4]>, flags: InterfaceFlags) -> Listed {
        Listed { name: name.into(), address: address.map(Ipv4Addr::from), prefix_len: 24, flags }
    }

    fn host() -> Vec<Listed> {
        let (up, loopback) = (InterfaceFlags::IFF_UP, InterfaceFlags::IFF_LOOPBACK);
        let multicast = InterfaceFlags::IFF_MULTICAST;
        vec![
            listed("lo", None, up | loopback),
            listed("lo", Some([127, 0, 0, 1]), up | loopback),
            listed("eth0", Some([192, 0, 2, 2]), up | multicast),
            listed("tun0", Some([198, 51, 100, 1]), up),
            listed("down0", Some([198, 51, 100, 9]), multicast),
            listed("bare0", None, up | multicast),
        ]
    }

    fn chosen(all: &[Listed], asked: &[&str]) -> Vec<(String, bool)> {
        let asked: Vec<String> = asked.iter().map(|s| s.to_string()).collect();
        choose(all, &asked).unwrap().into_iter().map(|i| (i.name, i.multicast)).collect()
    }

    #[test]
    fn all_that_are_usable_or_loopback() {
        assert_eq!(chosen(&host(), &[]), [("eth0".into(), true), ("tun0".into(), false)]);
        assert_eq!(chosen(&host()[..2], &[]), [("lo".into(), true)]);
        let text = choose(&host()[4..], &[]).unwrap_err().to_string();
        assert!(text.contains("no usable") && text.contains("down0 (198.51.100.9), bare0"), "{text}");
    }

    #[test]
    fn by_name_or_address() {
        assert_eq!(chosen(&host(), &["127.0.0.1", "lo"]), [("lo".into(), true)]);
        assert_eq!(chosen(&host(), &["tun0", "192.0.2.2"]), [("tun0".into(), false), ("eth0".into(), true)]);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let text = |asked: &str| choose(&host(), &[asked.into()]).unwrap_err().to_string();
        assert!(text("eth7").contains("choose of lo (127.0.0.1), eth0 (192.0.2.2)"), "{}", text("eth7"));
        assert!(text("down0").contains("ip link set down0 up"));
        assert!(text("198.51.100.9").contains("ip link set down0 up"));
        assert!(text("bare0").contains("no IPv4 address"));
    }

    #[test]
    fn more_than_peers_accept() {
        let up = InterfaceFlags::IFF_UP;
        let many: Vec<Listed> = (0..20).map(|n| listed("eth0", Some([10, 0, 0, n]), up)).collect();
        assert_eq!(choose(&many, &[]).unwrap().len(), MAX_INTERFACES);
        assert!(choose(&many, &["eth0".into()]).unwrap_err().to_string().contains("at most 16"));
    }
}
