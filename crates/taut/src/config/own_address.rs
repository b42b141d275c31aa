//! The address of a device that the kernel does not have: what is written, and what it cannot be.

use std::net::Ipv4Addr;

use taut_base::{Error, Result};
use taut_ethernet::OwnAddress;

/// An address with the length of its network's prefix, as `10.0.0.2/24`.
pub(super) fn parse(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, prefix_len) = text.split_once('/')?;
    Some((address.parse().ok()?, prefix_len.parse().ok().filter(|len| (1..=30).contains(len))?))
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
             to 30, as 10.0.0.2/24"
        ));
    };
    let mut own = OwnAddress { address: ip, prefix_len, gateway: None };
    if !own.is_near(ip) || ip.is_multicast() || ip.is_loopback() || ip.octets()[0] == 0 {
        return refused(format!(
            "dpdk_address: no host has {address}, which stands for a group, a whole network or the host itself; \
             choose an address between the first and the last of the network"
        ));
    }
    if !gateway.is_empty() {
        let router = gateway.parse().ok().filter(|router| own.is_near(*router) && *router != ip);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(device: &str, address: &str, gateway: &str) -> String {
        read(device, address, gateway).unwrap_err().to_string()
    }

    #[test]
    fn an_address_and_a_router() {
        assert_eq!(read("net_x", "", "").unwrap(), None);
        let own = OwnAddress { address: Ipv4Addr::new(10, 0, 0, 2), prefix_len: 24, gateway: None };
        assert_eq!(read("net_x", "10.0.0.2/24", "").unwrap(), Some(own));
        let routed = OwnAddress { gateway: Some(Ipv4Addr::new(10, 0, 0, 1)), ..own };
        assert_eq!(read("net_x", "10.0.0.2/24", "10.0.0.1").unwrap(), Some(routed));
    }

    #[test]
    fn what_no_host_has_is_refused_with_the_remedy() {
        for address in
            ["10.0.0.2", "10.0.0.2/0", "10.0.0.2/31", "10.0.0.2/33", "10.0.0/24", "fd00::2/64", "/24"]
        {
            let text = refusal("net_x", address, "");
            assert!(text.contains("as 10.0.0.2/24"), "{address}: {text}");
        }
        for address in ["10.0.0.0/24", "10.0.0.255/24", "127.0.0.1/8", "239.255.0.1/24", "0.1.2.3/8"] {
            let text = refusal("net_x", address, "");
            assert!(text.contains("choose an address"), "{address}: {text}");
        }
        for gateway in ["10.0.0.2", "10.0.1.1", "10.0.0.0", "10.0.0.255", "router", "fd00::1"] {
            let text = refusal("net_x", "10.0.0.2/24", gateway);
            assert!(text.contains("or none"), "{gateway}: {text}");
        }
        assert!(refusal("", "10.0.0.2/24", "").contains("name one"));
        assert!(refusal("net_x", "", "10.0.0.1").contains("give one"));
    }
}
