//! The address of a device that the kernel does not have: what is written, and what it cannot be.

use std::net::IpAddr;

use taut_base::{Error, Result};
use taut_ethernet::OwnAddress;

/// An address with the length of its network's prefix, as `10.0.0.2/24` or `fd00::2/64`.
pub(super) fn parse(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix_len) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 30 } else { 126 };
    Some((address, prefix_len.parse().ok().filter(|len| (1..=longest).contains(len))?))
}

/// What the settings `dpdk_address` and `dpdk_gateway` say of this device.
///
/// *Errors*: [`Error::BadParameter`] for what no host has, with the remedy.
pub(super) fn read(device: &str, address: &str, gateway: &str) -> Result<Option<OwnAddress>> {
    let refused = |text: String| Err(Error::BadParameter(text));
    if address.is_empty() {
        if gateway.is_empty() {
            return Ok(None);
        }
        return refused(format!(
            "dpdk_gateway is {gateway}, and there is no dpdk_address: a router is for who has an address; give one, as \
             10.0.0.2/24"
        ));
    }
    if device.is_empty() {
        return refused(format!(
            "dpdk_address is {address}, and there is no dpdk_device to have it: name one, or leave the address out"
        ));
    }
    let Some((ip, prefix_len)) = parse(address) else {
        return refused(format!(
            "dpdk_address: {address} is none; write an address of IPv4 and the length of its network's prefix from 1 \
             to 30, as 10.0.0.2/24, or one of IPv6 and a length from 1 to 126, as fd00::2/64"
        ));
    };
    let mut own = OwnAddress { address: ip, prefix_len, gateway: None };
    if !own.is_near(ip) || !is_of_host(ip) {
        return refused(format!(
            "dpdk_address: no host has {address}, which stands for a group, a whole network or the host itself; \
             choose an address between the first and the last of the network"
        ));
    }
    if !gateway.is_empty() {
        let is_router = |router: &IpAddr| *router != ip && (own.is_near(*router) || is_of_link(ip, *router));
        let router = gateway.parse().ok().filter(is_router);
        if router.is_none() {
            return refused(format!(
                "dpdk_gateway: {gateway} is no other host of the network of {address}; give the address that the \
                 router has there, or none"
            ));
        }
        own.gateway = router;
    }
    Ok(Some(own))
}

/// Can a host have it on a network?
fn is_of_host(ip: IpAddr) -> bool {
    let is_kind = match ip {
        IpAddr::V4(v4) => v4.octets()[0] != 0,
        // Addresses of IPv4 are written so, too, and no network has them.
        IpAddr::V6(v6) => v6.segments()[..5] != [0; 5],
    };
    is_kind && !ip.is_multicast() && !ip.is_loopback()
}

/// Routers of IPv6 say the address of the link of theirs, whatever networks are there.
fn is_of_link(own: IpAddr, router: IpAddr) -> bool {
    own.is_ipv6() && matches!(router, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(device: &str, address: &str, gateway: &str) -> String {
        read(device, address, gateway).unwrap_err().to_string()
    }

    #[test]
    fn an_address_and_a_router() {
        assert_eq!(read("net_x", "", "").unwrap(), None);
        for (address, prefix_len, router) in [
            ("10.0.0.2", 24, "10.0.0.1"),
            ("fd00::2", 64, "fd00::1"),
            ("fd00::2", 64, "fe80::1"),
            ("fe80::2", 64, "fe80::1"),
            ("2001:db8::2", 126, "2001:db8::1"),
        ] {
            let own = OwnAddress { address: address.parse().unwrap(), prefix_len, gateway: None };
            let address = format!("{address}/{prefix_len}");
            assert_eq!(read("net_x", &address, "").unwrap(), Some(own));
            let routed = OwnAddress { gateway: router.parse().ok(), ..own };
            assert_eq!(read("net_x", &address, router).unwrap(), Some(routed));
        }
    }

    #[test]
    fn what_no_host_has_is_refused_with_the_remedy() {
        for address in [
            "10.0.0.2",
            "10.0.0.2/0",
            "10.0.0.2/31",
            "10.0.0.2/33",
            "10.0.0/24",
            "fd00::2",
            "fd00::2/0",
            "fd00::2/127",
            "fd00::2%eth0/64",
            "/24",
        ] {
            let text = refusal("net_x", address, "");
            assert!(text.contains("as 10.0.0.2/24"), "{address}: {text}");
        }
        for address in [
            "10.0.0.0/24",
            "10.0.0.255/24",
            "127.0.0.1/8",
            "239.255.0.1/24",
            "0.1.2.3/8",
            "fd00::/64",
            "::1/64",
            "::/64",
            "ff02::1/64",
            "::ffff:10.0.0.2/120",
        ] {
            let text = refusal("net_x", address, "");
            assert!(text.contains("choose an address"), "{address}: {text}");
        }
        for gateway in ["10.0.0.2", "10.0.1.1", "10.0.0.0", "10.0.0.255", "router", "fd00::1"] {
            let text = refusal("net_x", "10.0.0.2/24", gateway);
            assert!(text.contains("or none"), "{gateway}: {text}");
        }
        for gateway in ["fd00::2", "fd00:1::1", "fd00::", "10.0.0.1"] {
            let text = refusal("net_x", "fd00::2/64", gateway);
            assert!(text.contains("or none"), "{gateway}: {text}");
        }
        assert!(refusal("", "10.0.0.2/24", "").contains("name one"));
        assert!(refusal("net_x", "", "10.0.0.1").contains("give one"));
    }
}
