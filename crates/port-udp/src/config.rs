//! What a caller may choose, and the port numbers that follow. RTPS 2.5 §9.6.1.1-§9.6.1.3.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use taut_base::{Error, Result};

/// The group of discovery and of user multicast. RTPS 2.5 §9.6.1.4.1.
pub const DEFAULT_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// The same over IPv6, of which RTPS 2.5 says nothing: the group of Cyclone DDS, ff02::ffff:239.255.0.1. It is of
/// the link: routers do not pass it on, as they do not pass on that of IPv4.
pub const DEFAULT_GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);

/// That of Fast DDS, where its participants over IPv6 meet. Only discovery uses it.
pub const OTHER_GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0xffff, 0xefff, 1);

/// The last participant index: 120 pairs of unicast ports fill what is left below the ports of
/// the next domain (`d1 + PG * 119 + 1 < DG`). Higher, and two domains would share ports.
pub(crate) const LAST_PARTICIPANT_INDEX: u32 = 119;

/// The domains whose ports are held against a critical one: all that there are with the default mapping.
const DOMAINS: u32 = 233;
/// How many ports are looked at for one to advise. With the default mapping the first is free.
const LOOKS: u16 = 16;

/// Whether multicast is used at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Multicast {
    /// On every chosen interface that can.
    #[default]
    Auto,
    /// Neither joined nor sent: peers are found by their addresses.
    Never,
}

/// Whether IPv6 is used beside IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ipv6 {
    /// Where there is no IPv4 when the port is opened: no interface beside loopback has an address of it, or one
    /// that was asked for has not.
    #[default]
    Auto,
    /// On every chosen interface that has an address of it.
    On,
    /// Never.
    Off,
}

/// What a UDP port is opened with.
///
/// ```
/// use taut_port_udp::UdpConfig;
/// let config = UdpConfig { domain_id: 7, interfaces: vec!["lo".into()], ..UdpConfig::default() };
/// assert_eq!(config.ports.metatraffic_multicast(7).unwrap(), 9150);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpConfig {
    /// *Range*: 0 to 232 with the default port mapping.
    pub domain_id: u32,
    /// The participant index that decides the unicast ports; `None` takes the first that is free,
    /// and ports of the kernel's choice once all are taken. *Range*: 0 to 119.
    pub participant_index: Option<u32>,
    /// The port of what is critical, beside those that follow from the domain and the index; `None`: there is none. One
    /// participant of a host can have it.
    pub critical_port: Option<NonZeroU16>,
    /// Names or addresses of interfaces; empty for all that are usable.
    pub interfaces: Vec<String>,
    /// The name of one that is not left out where more are usable than can be used; empty: there is none.
    pub preferred_interface: String,
    /// Whether to use IPv6.
    pub ipv6: Ipv6,
    /// Whether to use multicast.
    pub multicast: Multicast,
    /// How port numbers follow from the domain and the participant index.
    pub ports: PortMapping,
    /// Bytes to ask the kernel for, for each receiving socket. Too little loses the bursts of
    /// discovery; `net.core.rmem_max` caps it, unless the process has CAP_NET_ADMIN. See [`crate::UdpPort::receive_buffer`].
    pub receive_buffer: usize,
    /// Bytes to ask the kernel for, for each sending socket; `net.core.wmem_max` caps it.
    pub send_buffer: usize,
    /// How many routers a multicast datagram may pass, plus one. *Range*: 0 (this host) to 255.
    pub ttl: u8,
    /// The differentiated services code point of everything sent, but for what `priority_marks` says. *Range*: 0 to
    /// 63.
    pub dscp: u8,
    /// From which TRANSPORT_PRIORITY on, above 0, which code point instead. See [`crate::MARKS`].
    pub priority_marks: Vec<(i32, u8)>,
}

impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig {
            domain_id: 0,
            participant_index: None,
            critical_port: None,
            interfaces: Vec::new(),
            preferred_interface: String::new(),
            ipv6: Ipv6::Auto,
            multicast: Multicast::Auto,
            ports: PortMapping::default(),
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            ttl: 1,
            dscp: 0,
            priority_marks: crate::MARKS.to_vec(),
        }
    }
}

impl UdpConfig {
    /// Are these in their ranges, and do they go together? Opens nothing; a port asks this of what it is opened with.
    ///
    /// *Errors*: [`Error::BadParameter`]; the text has the remedy.
    ///
    /// ```
    /// let config = taut_port_udp::UdpConfig { domain_id: 233, ..taut_port_udp::UdpConfig::default() };
    /// assert!(config.check().unwrap_err().to_string().contains("0 to 232"));
    /// ```
    pub fn check(&self) -> Result<()> {
        self.ports.check_domain(self.domain_id)?;
        if let Some(index) = self.participant_index
            && (index > LAST_PARTICIPANT_INDEX || self.ports.unicast(self.domain_id, index).is_none())
        {
            return Err(Error::BadParameter(format!(
                "participant index {index} is too big for domain {}: choose one from 0 to {}, or none to take \
                 the first that is free",
                self.domain_id,
                self.ports.last_index(self.domain_id),
            )));
        }
        let owner = self.critical_port.and_then(|port| Some((port, self.ports.domain_of(port.get())?)));
        if let Some((port, owner)) = owner {
            return Err(Error::BadParameter(format!(
                "critical port {port} is one of those that participants of domain {owner} have by the standard: choose another, as {}",
                self.ports.free(self.domain_id).unwrap_or(7_399),
            )));
        }
        if self.dscp > 63 {
            return Err(Error::BadParameter(format!(
                "DSCP {} is too big: choose one from 0 to 63",
                self.dscp
            )));
        }
        crate::mark::check(&self.priority_marks)
    }
}

/// The parameters of the port numbers. RTPS 2.5 §9.6.1.1, table 9.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortMapping {
    /// PB, the port base.
    pub port_base: u16,
    /// DG, the gain of the domain id.
    pub domain_gain: u16,
    /// PG, the gain of the participant index.
    pub participant_gain: u16,
    /// Offset of metatraffic multicast.
    pub d0: u16,
    /// Offset of metatraffic unicast.
    pub d1: u16,
    /// Offset of user multicast.
    pub d2: u16,
    /// Offset of user unicast.
    pub d3: u16,
}

impl Default for PortMapping {
    fn default() -> PortMapping {
        PortMapping { port_base: 7400, domain_gain: 250, participant_gain: 2, d0: 0, d1: 10, d2: 1, d3: 11 }
    }
}

impl PortMapping {
    /// `None` if it is not a port number.
    fn port(&self, domain_id: u32, offset: u16, index: u32) -> Option<u16> {
        let domain = u64::from(self.domain_gain).checked_mul(u64::from(domain_id))?;
        let participant = u64::from(self.participant_gain).checked_mul(u64::from(index))?;
        let port = u64::from(self.port_base)
            .checked_add(domain)?
            .checked_add(u64::from(offset))?
            .checked_add(participant)?;
        u16::try_from(port).ok().filter(|port| *port != 0)
    }

    /// PB + DG * domainId + d0, or `None` above 65,535.
    pub fn metatraffic_multicast(&self, domain_id: u32) -> Option<u16> {
        self.port(domain_id, self.d0, 0)
    }

    /// PB + DG * domainId + d2, or `None` above 65,535.
    pub fn user_multicast(&self, domain_id: u32) -> Option<u16> {
        self.port(domain_id, self.d2, 0)
    }

    /// Metatraffic and user unicast: PB + DG * domainId + PG * participantId + d1 and d3, or
    /// `None` if one of them is above 65,535.
    pub fn unicast(&self, domain_id: u32, index: u32) -> Option<(u16, u16)> {
        Some((self.port(domain_id, self.d1, index)?, self.port(domain_id, self.d3, index)?))
    }

    /// Is it one that a participant of the domain may have?
    fn is_of(&self, domain_id: u32, port: u16) -> bool {
        let is_unicast = |index| {
            self.unicast(domain_id, index)
                .is_some_and(|(metatraffic, user)| [metatraffic, user].contains(&port))
        };
        [self.metatraffic_multicast(domain_id), self.user_multicast(domain_id)].contains(&Some(port))
            || (0..=LAST_PARTICIPANT_INDEX).any(is_unicast)
    }

    /// The domain whose participants may have it.
    fn domain_of(&self, port: u16) -> Option<u32> {
        let domains = (0..DOMAINS).take_while(|domain| self.metatraffic_multicast(*domain).is_some());
        domains.into_iter().find(|domain| self.is_of(*domain, port))
    }

    /// The first one behind those of the groups that none has.
    fn free(&self, domain_id: u32) -> Option<u16> {
        let behind = self.user_multicast(domain_id)?.checked_add(1)?;
        (behind..=behind.saturating_add(LOOKS)).find(|port| self.domain_of(*port).is_none())
    }

    fn last_index(&self, domain_id: u32) -> u32 {
        (0..=LAST_PARTICIPANT_INDEX).rev().find(|i| self.unicast(domain_id, *i).is_some()).unwrap_or(0)
    }

    fn check_domain(&self, domain_id: u32) -> Result<()> {
        let fits = |domain| {
            self.metatraffic_multicast(domain).is_some()
                && self.user_multicast(domain).is_some()
                && self.unicast(domain, 0).is_some()
        };
        if fits(domain_id) {
            return Ok(());
        }
        // No mapping with a gain above zero has ports for more domains than there are ports.
        let last = (0..domain_id.min(65_535)).rev().find(|domain| fits(*domain));
        Err(Error::BadParameter(match last {
            Some(last) => format!(
                "domain id {domain_id} is too big: its ports would be above 65535; choose one from 0 to {last}"
            ),
            None => "the port mapping gives no port below 65536: lower its base and offsets".into(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_the_specification() {
        let ports = PortMapping::default();
        assert_eq!(ports.metatraffic_multicast(0), Some(7400));
        assert_eq!(ports.user_multicast(3), Some(8151));
        assert_eq!(ports.unicast(1, 2), Some((7664, 7665)));
        let next_domain = ports.metatraffic_multicast(1).unwrap();
        assert!(ports.unicast(0, LAST_PARTICIPANT_INDEX).unwrap().1 < next_domain);
    }

    #[test]
    fn limits_are_named() {
        let bad = |config: UdpConfig| config.check().unwrap_err().to_string();
        assert!(UdpConfig { domain_id: 232, ..UdpConfig::default() }.check().is_ok());
        let text = bad(UdpConfig { domain_id: 233, ..UdpConfig::default() });
        assert!(text.contains("233 is too big") && text.contains("0 to 232"), "{text}");
        let text = bad(UdpConfig { domain_id: u32::MAX, ..UdpConfig::default() });
        assert!(text.contains("0 to 232"), "{text}");
        let text = bad(UdpConfig { participant_index: Some(120), ..UdpConfig::default() });
        assert!(text.contains("0 to 119"), "{text}");
        let text = bad(UdpConfig { domain_id: 232, participant_index: Some(63), ..UdpConfig::default() });
        assert!(text.contains("0 to 62"), "{text}");
        assert!(bad(UdpConfig { dscp: 64, ..UdpConfig::default() }).contains("0 to 63"));
        for taken in [7_900, 7_901, 7_910, 7_911 + 2 * 119, 7_650, 65_400] {
            let config =
                UdpConfig { critical_port: NonZeroU16::new(taken), domain_id: 2, ..UdpConfig::default() };
            let text = bad(config);
            let owner = format!("of domain {} have by the standard", (taken - 7_400) / 250);
            assert!(text.contains(&owner) && text.contains("choose another, as 7902"), "{text}");
        }
        let config =
            UdpConfig { critical_port: NonZeroU16::new(7_902), domain_id: 2, ..UdpConfig::default() };
        assert!(config.check().is_ok());
    }
}
