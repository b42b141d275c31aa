//! What is heard and said at an address of IPv4: ARP, IGMP, and answers to `ping`. RFC 826, RFC 5227, RFC 2236, RFC 792.

use std::net::{IpAddr, Ipv4Addr};

use super::OwnIp;
use crate::arp::{self, Arp};
use crate::header::{Header, Mac, Opened, Station};
use crate::ipv4::{self, Packet};
use crate::layer::Refused;
use crate::short::LONGEST;
use crate::{igmp, udp};

/// The frame that asks for the station of an address: that one alone, or all.
pub(super) fn question(own: &Station, sender: Ipv4Addr, target: Ipv4Addr, mac: Option<Mac>) -> Header {
    let question = Arp { is_request: true, sender, sender_mac: own.mac, target, target_mac: [0; 6] };
    question.frame(own, mac.unwrap_or(arp::BROADCAST))
}

impl OwnIp {
    /// What is no datagram.
    pub(super) fn hear_v4(&mut self, own: Ipv4Addr, opened: &Opened<'_>) -> Result<(), Refused> {
        match opened.kind {
            arp::TYPE => self.hear_arp(own, opened),
            udp::TYPE_IPV4 => Packet::read(opened.content).and_then(|packet| match packet.protocol {
                igmp::PROTOCOL => self.hear_igmp(&packet),
                ipv4::ICMP if opened.to == self.station.mac => self.hear_echo(own, opened, &packet),
                _ => Err(Refused::NotOurs),
            }),
            _ => Err(Refused::NotOurs),
        }
    }

    fn hear_arp(&mut self, own: Ipv4Addr, opened: &Opened<'_>) -> Result<(), Refused> {
        if opened.to != self.station.mac && opened.to != arp::BROADCAST {
            return Err(Refused::NotOurs);
        }
        let said = Arp::read(opened.content)?;
        if said.sender == own {
            return Err(self.dispute(said.sender_mac));
        }
        let (sender, is_for_us) = (IpAddr::V4(said.sender), said.target == own);
        if said.is_request && is_for_us {
            // Who only looks whether an address is free has none yet (RFC 5227 §2.1.1): it is told, and not known.
            if self.own.is_neighbour(sender) {
                self.hops.heard(sender, said.sender_mac);
            }
            let answer = Arp {
                is_request: false,
                sender: own,
                sender_mac: self.station.mac,
                target: said.sender,
                target_mac: said.sender_mac,
            };
            self.waiting.put(answer.frame(&self.station, said.sender_mac).bytes());
            return Ok(());
        }
        let is_answer = !said.is_request && is_for_us && opened.to == self.station.mac;
        if is_answer && self.hops.answered(sender, said.sender_mac) {
            return Ok(());
        }
        self.hops.doubted(sender, said.sender_mac);
        Err(Refused::NotOurs)
    }

    fn hear_igmp(&mut self, packet: &Packet<'_>) -> Result<(), Refused> {
        let query = igmp::read(packet.content)?;
        // From another network nobody asks (RFC 2236 §9).
        if packet.hops != 1 {
            return Err(Refused::NotOurs);
        }
        self.hear_query(&query, packet.to.into(), igmp::ALL_HOSTS.into())
    }

    /// Answers `ping`. RFC 792, RFC 1122 §3.2.2.6.
    fn hear_echo(&mut self, own: Ipv4Addr, opened: &Opened<'_>, packet: &Packet<'_>) -> Result<(), Refused> {
        if packet.to != own || !self.is_plausible(packet.from.into()) || packet.has_options {
            return Err(Refused::NotOurs);
        }
        let mut bytes = [0; LONGEST];
        let header = Header::new(&self.station, opened.from, udp::TYPE_IPV4);
        let len = ipv4::echo(&mut bytes, header.bytes(), packet)?;
        self.waiting.put_echo(bytes.get(..len).unwrap_or_default());
        Ok(())
    }
}
