//! Which interfaces there are, and which of them a participant uses.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

use nix::net::if_::InterfaceFlags;
use taut_base::{Error, Result};

use crate::config::Ipv6;
use crate::socket::refused;

/// The most addresses one participant uses. More would not fit what peers accept of one
/// participant's locators (16), nor the kernel's memberships of one socket (20 by default).
/// Named interfaces above it are refused; of unnamed ones the first are taken, those that are preferred before others.
pub const MAX_INTERFACES: usize = 16;

/// One address of a network interface that the participant uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name, as `eth0`.
    pub name: String,
    /// The kernel's number of it.
    pub index: u32,
    /// Its address. One of IPv6 is of the link only if the interface has no other.
    pub address: IpAddr,
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
    address: Option<IpAddr>,
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

    /// The name of the interface. An address of IPv4 may have a label, as `eth0:1`, which the kernel tells in its place;
    /// no name has a colon. One that does not begin with the name has got that in front, see [`list`].
    fn interface(&self) -> &str {
        self.name.split(':').next().unwrap_or_default()
    }

    fn is_named(&self, asked: &str) -> bool {
        [&self.name, self.interface()].contains(&asked)
            || self.address.is_some_and(|address| asked.parse() == Ok(address))
    }

    fn usable(&self) -> Option<Interface> {
        let address = self.address.filter(|_| self.is_up())?;
        Some(Interface {
            index: 0,
            name: self.interface().to_owned(),
            address,
            prefix_len: self.prefix_len,
            loopback: self.is_loopback(),
            // Linux does not flag loopback as capable of multicast, and yet carries that of IPv4 there; it has no
            // route to a group of IPv6.
            multicast: match self.is_loopback() {
                true => address.is_ipv4(),
                false => self.flags.contains(InterfaceFlags::IFF_MULTICAST),
            },
        })
    }
}

/// The interfaces that a participant uses, `asked` being names and addresses, or nothing for all that are usable. Where these
/// are more than [`MAX_INTERFACES`], the one called `preferred` is not left out.
///
/// *Errors*: [`Error::BadParameter`] for one that there is not or that cannot be used, [`Error::Error`] where none
/// can; the text has the remedy. *Cost*: a list of all interfaces from the kernel.
///
/// ```
/// use taut_port_udp::Ipv6;
/// let found = taut_port_udp::interfaces(&["lo".into()], "", Ipv6::Off).unwrap();
/// assert!(found.iter().all(|interface| interface.loopback));
/// ```
pub fn interfaces(asked: &[String], preferred: &str, ipv6: Ipv6) -> Result<Vec<Interface>> {
    find(asked, preferred, ipv6).map(|(found, _)| found)
}

/// The interfaces to use, as configured, and whether IPv6 is among what is used.
pub(crate) fn find(asked: &[String], preferred: &str, ipv6: Ipv6) -> Result<(Vec<Interface>, bool)> {
    let all = list()?;
    let v6 = uses_v6(&all, asked, ipv6);
    Ok((number(choose(&of_kinds(all, v6, !asked.is_empty()), asked, preferred)?)?, v6))
}

/// The same once they have changed: of those asked for the ones that are there now.
pub(crate) fn find_again(asked: &[String], preferred: &str, v6: bool) -> Result<Vec<Interface>> {
    let all = of_kinds(list()?, v6, !asked.is_empty());
    let is_there = |wanted: &&String| choose(&all, std::slice::from_ref(*wanted), "").is_ok();
    let there: Vec<String> = asked.iter().filter(is_there).cloned().collect();
    let asked = if there.is_empty() { asked } else { &there };
    number(choose(&all, asked, preferred)?)
}

/// Is IPv6 to be used? See [`Ipv6`]. Every interface that is up has an address of the link: that one calls for IPv6
/// only where the interface was asked for.
fn uses_v6(all: &[Listed], asked: &[String], ipv6: Ipv6) -> bool {
    let v4 = || of_kinds(all.to_vec(), false, false);
    match ipv6 {
        Ipv6::On => true,
        Ipv6::Off => false,
        Ipv6::Auto if asked.is_empty() => {
            let is_far = |listed: &&Listed| listed.usable().is_some_and(|own| !own.loopback);
            let has = |ip: IpAddr| ip.is_ipv6() && !is_of_link(ip);
            v4().iter().filter(is_far).count() == 0
                && all.iter().filter(is_far).any(|listed| listed.address.is_some_and(has))
        }
        Ipv6::Auto => choose(&v4(), asked, "").is_err() && choose(all, asked, "").is_ok(),
    }
}

/// Without the addresses of IPv6 if that is not used, and otherwise without those of the link where an interface has
/// others or was not asked for; IPv4 comes first.
fn of_kinds(mut all: Vec<Listed>, uses_v6: bool, asked: bool) -> Vec<Listed> {
    let is_wide = |listed: &Listed| listed.address.is_some_and(|ip| ip.is_ipv6() && !is_of_link(ip));
    let wide: Vec<String> = all.iter().filter(|of| is_wide(of)).map(|of| of.name.clone()).collect();
    for listed in &mut all {
        let is_left_out = |ip: &IpAddr| {
            ip.is_ipv6() && (!uses_v6 || is_of_link(*ip) && (!asked || wide.contains(&listed.name)))
        };
        listed.address = listed.address.filter(|ip| !is_left_out(ip));
    }
    let (v6, mut all): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|listed| listed.address.is_some_and(|ip| ip.is_ipv6()));
    all.extend(v6);
    all
}

/// Is it an address that means something on one link only?
pub(crate) fn is_of_link(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// Gives them their numbers. An address of IPv6 that cannot be used yet, as the kernel still asks whether another
/// host has it, is left out: the kernel tells when it can.
///
/// *Errors*: whatever else the system refuses.
fn number(mut chosen: Vec<Interface>) -> Result<Vec<Interface>> {
    for interface in &mut chosen {
        interface.index = nix::net::if_::if_nametoindex(interface.name.as_str())
            .map_err(|errno| refused(format!("if_nametoindex {}", interface.name), errno.into()))?;
    }
    let mut usable = Vec::new();
    for own in chosen {
        if own.address.is_ipv4() || is_ready(&own)? {
            usable.push(own);
        }
    }
    Ok(usable)
}

/// Can the address be used yet?
fn is_ready(own: &Interface) -> Result<bool> {
    match UdpSocket::bind(own.socket_addr()) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(false),
        // As no descriptor is left: that says nothing of the address.
        Err(error) => Err(refused(format!("bind {}", own.socket_addr()), error)),
    }
}

impl Interface {
    /// Port 0 of its address, with the link if it is one of that.
    pub(crate) fn socket_addr(&self) -> SocketAddr {
        match self.address {
            IpAddr::V6(v6) if is_of_link(self.address) => SocketAddrV6::new(v6, 0, 0, self.index).into(),
            address => SocketAddr::new(address, 0),
        }
    }
}

fn list() -> Result<Vec<Listed>> {
    let all = nix::ifaddrs::getifaddrs().map_err(|errno| refused("getifaddrs".into(), errno.into()))?;
    let ip = |address: Option<nix::sys::socket::SockaddrStorage>| -> Option<IpAddr> {
        let address = address?;
        let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
    };
    let bits = |mask: IpAddr| match mask {
        IpAddr::V4(v4) => v4.to_bits().leading_ones(),
        IpAddr::V6(v6) => v6.to_bits().leading_ones(),
    };
    let mut all: Vec<Listed> = all
        .map(|entry| Listed {
            address: ip(entry.address),
            prefix_len: ip(entry.netmask).map_or(u8::MAX, |mask| bits(mask) as u8),
            name: entry.interface_name,
            flags: entry.flags,
        })
        .collect();
    // Each interface is listed without an address of IP, too, by its name.
    let names: BTreeSet<String> =
        all.iter().filter(|of| of.address.is_none()).map(|of| of.name.clone()).collect();
    let is_label = |of: &Listed| !names.is_empty() && !names.contains(of.interface());
    if all.iter().any(is_label) {
        let labelled = labelled();
        for of in all.iter_mut().filter(|of| is_label(of)) {
            let own = labelled.iter().find(|own| (Some(own.0), &own.1) == (of.address, &of.name));
            if let Some((.., name)) = own {
                of.name = format!("{name}:{}", of.name);
            }
        }
    }
    Ok(all)
}

/// The addresses of IPv4 with their labels and the names of their interfaces: whoever gives one may choose any label, as by
/// `Label=` of systemd.network(5). rtnetlink(7).
fn labelled() -> Vec<(IpAddr, String, String)> {
    /// Bytes of ifaddrmsg, and where the number of the interface is.
    const ADDRESS: usize = 8;
    const INDEX_AT: usize = 4;
    let request = [taut_netlink::IPV4, 0, 0, 0, 0, 0, 0, 0];
    let asked = taut_netlink::Socket::of_routes()
        .and_then(|mut socket| socket.request(libc::RTM_GETADDR, taut_netlink::DUMP, &request));
    let read = |body: &Vec<u8>| {
        let attributes = body.get(ADDRESS..)?;
        let own = |kind| taut_netlink::attribute(attributes, kind);
        let address = <[u8; 4]>::try_from(own(libc::IFA_LOCAL)?).ok()?;
        let name = nix::net::if_::if_indextoname(taut_netlink::word(body, INDEX_AT)?).ok()?;
        Some((address.into(), taut_netlink::text(own(libc::IFA_LABEL)?), name.into_string().ok()?))
    };
    asked.unwrap_or_default().iter().filter_map(read).collect()
}

fn choose(all: &[Listed], asked: &[String], preferred: &str) -> Result<Vec<Interface>> {
    if asked.is_empty() {
        return choose_usable(all, preferred);
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

fn choose_usable(all: &[Listed], preferred: &str) -> Result<Vec<Interface>> {
    let usable: Vec<Interface> = all.iter().filter_map(Listed::usable).collect();
    let (loopback, mut chosen): (Vec<_>, Vec<_>) = usable.into_iter().partition(|i| i.loopback);
    if chosen.is_empty() {
        chosen = loopback;
    }
    if chosen.is_empty() {
        // The kernel gives it its address of IPv4 when it comes up, and not again.
        let is_up = all.iter().any(|listed| listed.is_loopback() && listed.is_up());
        let remedy = if is_up { "ip addr add 127.0.0.1/8 dev lo" } else { "ip link set lo up" };
        return Err(Error::Error(format!(
            "no usable network interface: none is up and has an address of a kind that is used ({}); `{remedy}` is enough \
             for participants of this host",
            names(all)
        )));
    }
    if chosen.len() > MAX_INTERFACES {
        chosen.sort_by_key(|own| own.name != preferred);
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
            "network interface {wanted} has no address of a kind that is used: `ip addr add ADDRESS dev {}`, or choose another",
            found.name
        ),
    })
}

/// Every interface once, with its addresses.
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
        Listed { name: name.into(), address: address.map(IpAddr::from), prefix_len: 24, flags }
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
        choose(all, &asked, "").unwrap().into_iter().map(|i| (i.name, i.multicast)).collect()
    }

    #[test]
    fn all_that_are_usable_or_loopback() {
        assert_eq!(chosen(&host(), &[]), [("eth0".into(), true), ("tun0".into(), false)]);
        assert_eq!(chosen(&host()[..2], &[]), [("lo".into(), true)]);
        let v6 = listed_v6("lo", "::1", InterfaceFlags::IFF_UP | InterfaceFlags::IFF_LOOPBACK);
        assert_eq!(chosen(&[v6], &[]), [("lo".into(), false)]);
        let text = choose(&host()[4..], &[], "").unwrap_err().to_string();
        assert!(text.contains("no usable") && text.contains("down0 (198.51.100.9), bare0"), "{text}");
    }

    #[test]
    fn by_name_or_address() {
        assert_eq!(chosen(&host(), &["127.0.0.1", "lo"]), [("lo".into(), true)]);
        assert_eq!(chosen(&host(), &["tun0", "192.0.2.2"]), [("tun0".into(), false), ("eth0".into(), true)]);
    }

    /// The kernel tells the label in the place of the name.
    #[test]
    fn an_address_with_a_label_is_of_its_interface() {
        let flags = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST;
        let all = [listed("eth0", None, flags), listed("eth0:1", Some([192, 0, 2, 3]), flags)];
        for asked in [&[][..], &["eth0"], &["eth0:1"], &["192.0.2.3"]] {
            assert_eq!(chosen(&all, asked), [("eth0".into(), true)], "{asked:?}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let text = |asked: &str| choose(&host(), &[asked.into()], "").unwrap_err().to_string();
        assert!(text("eth7").contains("choose of lo (127.0.0.1), eth0 (192.0.2.2)"), "{}", text("eth7"));
        assert!(text("down0").contains("ip link set down0 up"));
        assert!(text("198.51.100.9").contains("ip link set down0 up"));
        assert!(text("bare0").contains("no address of a kind that is used"));
    }

    #[test]
    fn more_than_peers_accept() {
        let up = InterfaceFlags::IFF_UP;
        let many: Vec<Listed> = (0..20).map(|n| listed("eth0", Some([10, 0, 0, n]), up)).collect();
        assert_eq!(choose(&many, &[], "").unwrap().len(), MAX_INTERFACES);
        assert!(choose(&many, &["eth0".into()], "").unwrap_err().to_string().contains("at most 16"));
    }

    #[test]
    fn the_preferred_one_is_not_left_out() {
        let up = InterfaceFlags::IFF_UP;
        let names: Vec<String> = (0..20).map(|number| format!("eth{number}")).collect();
        let many: Vec<Listed> =
            (0..).zip(&names).map(|(n, name)| listed(name, Some([10, 0, n, 1]), up)).collect();
        let chosen = |count: usize, preferred| -> Vec<String> {
            choose(&many[..count], &[], preferred).unwrap().into_iter().map(|own| own.name).collect()
        };
        let (first, last) = (names[..MAX_INTERFACES].to_vec(), names[18..19].to_vec());
        assert_eq!(chosen(20, ""), first);
        assert_eq!(chosen(20, "eth18"), [last, names[..MAX_INTERFACES - 1].to_vec()].concat());
        assert_eq!(chosen(MAX_INTERFACES, "eth15"), first, "where all are used they stay as they are");
    }

    fn listed_v6(name: &str, address: &str, flags: InterfaceFlags) -> Listed {
        Listed { name: name.into(), address: Some(address.parse().unwrap()), prefix_len: 64, flags }
    }

    #[test]
    fn ipv6_where_there_is_nothing_else_or_where_asked() {
        let (up, multicast) = (InterfaceFlags::IFF_UP, InterfaceFlags::IFF_MULTICAST);
        let far = || listed_v6("eth0", "fd00:1::2", up | multicast);
        let link = |name| listed_v6(name, "fe80::2", up | multicast);
        let uses = |all: &[Listed], asked: &[&str], ipv6| {
            uses_v6(all, &asked.iter().map(|s| s.to_string()).collect::<Vec<_>>(), ipv6)
        };
        let both: Vec<Listed> = host().into_iter().chain([far(), link("eth0")]).collect();
        assert!(!uses(&both, &[], Ipv6::Auto) && uses(&both, &[], Ipv6::On));
        assert!(!uses(&both, &["eth0"], Ipv6::Auto) && uses(&both, &["fd00:1::2"], Ipv6::Auto));
        let only = [host()[1].clone(), far(), link("eth0"), link("eth1")];
        assert!(uses(&only, &[], Ipv6::Auto) && !uses(&only, &[], Ipv6::Off));
        assert!(!uses(&only, &["lo"], Ipv6::Auto), "it has IPv4");
        let links = [host()[1].clone(), link("veth1")];
        assert!(!uses(&links, &[], Ipv6::Auto), "every interface has one of the link");
        assert!(uses(&links, &["veth1"], Ipv6::Auto));
    }

    #[test]
    fn addresses_of_the_link_only_where_asked_and_there_are_no_others() {
        let up = InterfaceFlags::IFF_UP;
        let all = vec![
            listed_v6("eth0", "fe80::2", up),
            listed_v6("eth0", "fd00:1::2", up),
            listed_v6("eth1", "fe80::3", up),
            listed("eth2", Some([192, 0, 2, 2]), up),
        ];
        let addresses = |v6, asked: &[&str]| {
            let names: Vec<String> = asked.iter().map(|s| s.to_string()).collect();
            let chosen = choose(&of_kinds(all.clone(), v6, !asked.is_empty()), &names, "").unwrap();
            chosen.into_iter().map(|own| own.address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(addresses(true, &["eth0", "eth1", "eth2"]), ["fd00:1::2", "fe80::3", "192.0.2.2"]);
        assert_eq!(addresses(true, &[]), ["192.0.2.2", "fd00:1::2"]);
        assert_eq!(addresses(false, &[]), ["192.0.2.2"]);
    }
}
