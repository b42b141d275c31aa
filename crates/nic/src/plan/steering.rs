//! Which frames go to which receive queue.

use std::collections::BTreeSet;

use taut_ethernet::ETHERTYPE;
use taut_port_udp::PortMapping;

use super::queues::after_channels;
use super::{Able, Step, Wanted};
use crate::change::Change;
use crate::facts::{Frames, Rules, counted};

/// Drivers whose rules see the Ethernet header only: addresses, EtherType, the priority of the VLAN tag.
/// igb_ethtool.c and igc_ethtool.c of Linux refuse every flow type but ETHER_FLOW.
const ETHERNET_ONLY: [&str; 2] = ["igb", "igc"];

/// Drivers whose rules see UDP over IPv4 only: ixgbe_flowspec_to_flow_type and txgbe_flowspec_to_flow_type of Linux know
/// no flow of IPv6.
const IPV4_ONLY: [&str; 2] = ["ixgbe", "txgbe"];

/// Drivers whose rules see no type of a frame: those two functions know no ETHER_FLOW, i40e_check_fdir_input_set neither.
const IP_ONLY: [&str; 3] = ["ixgbe", "txgbe", "i40e"];

/// Drivers that take rules whether `ntuple` is on or off: igb_add_ethtool_nfc_entry and igc_ethtool_add_nfc_rule of Linux
/// ask whether the NIC has the feature. To switch it would take the link down for nothing.
const NO_SWITCH: [&str; 2] = ["igb", "igc"];

/// Drivers, by the beginning of their names, that choose the place of a rule themselves: bnxt_srxclsrlins,
/// efx_ethtool_set_class_rule and virtnet_ff's validate_flow_input of Linux refuse one that is named. That drivers take
/// such rules, too, is no sign of it.
const CHOOSES_PLACES: [&str; 3] = ["bnxt_en", "sfc", "virtio_net"];

/// What steering gains.
const GAINS: &str = "they come to the critical queue, whatever else arrives";
/// What is lost without it.
const LOST: &str = "the NIC's hash spreads them over all queues, where they wait behind others";

impl Wanted<'_> {
    /// A step for each UDP port or for the type of frames without IP, and one for the priority of the VLAN tag.
    pub(super) fn steering(&self) -> Result<Vec<Step>, String> {
        let frames = self.frames()?;
        let target = counted("queue", &self.critical);
        let table = match &self.facts.rules {
            Ok(table) => table,
            Err(why) => return Ok(vec![Step::cannot(names(&frames), target, GAINS, why, LOST)]),
        };
        let (possible, not): (Vec<_>, Vec<_>) =
            frames.into_iter().partition(|(frames, _)| self.sees_instead(frames).is_none());
        let mut steps = Vec::new();
        for alike in not.chunk_by(|a, b| self.sees_instead(&a.0) == self.sees_instead(&b.0)) {
            let see = self.sees_instead(&alike[0].0).unwrap_or_default();
            let why = format!("rules of {} see {see}", self.facts.driver);
            let lost = if !self.sees_ports() && possible.is_empty() {
                format!("{LOST}; with `pcp` in the file their VLAN tag can steer them")
            } else if !self.sees_ports() {
                format!("without a tag {LOST}")
            } else if matches!(alike, [(Frames::Pcp(_), _)]) && !possible.is_empty() {
                String::new()
            } else {
                LOST.to_owned()
            };
            steps.push(Step::cannot(names(alike), target.clone(), GAINS, &why, &lost));
        }
        let mut taken: Vec<u32> = table.rules.iter().map(|rule| rule.location).collect();
        for (frames, queue) in possible {
            steps.push(self.rule(frames, queue, table, &mut taken));
        }
        Ok(steps)
    }

    /// Can a rule of this NIC be about a UDP port?
    pub(super) fn sees_ports(&self) -> bool {
        !ETHERNET_ONLY.contains(&self.facts.driver.as_str())
    }

    /// What rules of this NIC see, where they cannot be about these frames. Where they see ports the tag needs no rule, and
    /// drivers take none of its priority alone: mlx5's validate_vlan wants all of the VLAN's number and no more,
    /// ice_fdir_vlan_valid and hclge_fd_check_ext_tuple refuse a value that is no such number.
    fn sees_instead(&self, frames: &Frames) -> Option<&'static str> {
        match frames {
            Frames::UdpPort(_) | Frames::Udp6Port(_) if !self.sees_ports() => {
                Some("Ethernet headers only, no UDP ports")
            }
            Frames::Udp6Port(_) if !self.sees_ipv6() => Some("IPv4 only"),
            Frames::EtherType(_) if IP_ONLY.contains(&self.facts.driver.as_str()) => Some("IP only"),
            Frames::Pcp(_) if self.sees_ports() => Some("no priority of a tag alone, as far as is known"),
            _ => None,
        }
    }

    fn sees_ipv6(&self) -> bool {
        !IPV4_ONLY.contains(&self.facts.driver.as_str())
    }

    /// What a rule about these frames leaves out.
    fn left_out(&self, frames: &Frames) -> String {
        let instead = match frames {
            Frames::UdpPort(_) if !self.sees_ipv6() => {
                format!("rules of {} see IPv4 only", self.facts.driver)
            }
            Frames::UdpPort(_) if !self.config.ipv6 => "`ipv6 = true` in the file steers them".to_owned(),
            _ => return String::new(),
        };
        format!("the NIC's hash spreads those over IPv6: {instead}")
    }

    /// The step that has the driver take rules, if there are any; `steering` are the steps to them.
    pub(super) fn ntuple(&self, steering: &[Step]) -> Option<Step> {
        let feature = self.facts.features.ntuple?;
        let off = !feature.on && !feature.fixed;
        // A driver may not even tell its table while it takes no rules.
        let wanted = steering.iter().any(steers) || (self.facts.rules.is_err() && off);
        if !wanted || NO_SWITCH.contains(&self.facts.driver.as_str()) {
            return None;
        }
        let gains = "the driver takes rules, which many refuse without it";
        if feature.fixed && !feature.on {
            let lost = "if its rules need it, the first one fails";
            return Some(Step::cannot("ntuple", "on", gains, "the driver has it off for ever", lost));
        }
        let now = Change::Ntuple(feature.on).shown();
        let step = Step::to("ntuple", now, Change::Ntuple(true), self.facts, gains);
        let lost = if off { "some drivers take the link down for a moment" } else { "" };
        Some(Step { lost: lost.to_owned(), ..step })
    }

    /// The step that keeps what no rule steers out of the critical queues; `steering` are the steps to rules.
    pub(super) fn spread(&self, steering: &[Step]) -> Step {
        let item = "all others (RSS)";
        let gains = "what no rule steers stays out of the critical queue";
        let lost = "others come to the critical queue, too, and critical frames wait behind them";
        let others: Vec<u32> = (0..self.queues).filter(|queue| !self.critical.contains(queue)).collect();
        let then = if others.is_empty() { "other queues".to_owned() } else { counted("queue", &others) };
        let cannot = |why: &str| Step::cannot(item, then.clone(), gains, why, lost);
        let table = match &self.facts.spread {
            Ok(table) => table,
            Err(why) => return cannot(why),
        };
        if others.is_empty() {
            return cannot("no queue is left for all others: ask for more queues");
        }
        if !steering.iter().any(steers) {
            return cannot("no rule brings anything to the critical queue, which would be left empty");
        }
        let wanted: Vec<u32> = others.iter().copied().cycle().take(table.len()).collect();
        let change = Change::Spread(wanted);
        if self.facts.rx_queues().is_some_and(|now| now != self.queues) {
            return after_channels(item.to_owned(), &change, gains);
        }
        let now = change.inverse(self.facts).map(|now| now.shown()).unwrap_or_default();
        Step::to(item, now, change, self.facts, gains)
    }

    /// What is critical, and the queue for it: the ports of samples of the domains, as a participant computes them, and
    /// those of the file. Participants take turns at the queues; what is for all of them comes to the first.
    fn frames(&self) -> Result<Vec<(Frames, u32)>, String> {
        let mapping = PortMapping::default();
        let mut frames = Vec::new();
        let ipv6 = self.config.ipv6;
        // One that is named again has its rule.
        let mut named = BTreeSet::new();
        let mut port = |port: u16, queue: u32| {
            if !named.insert(port) {
                return;
            }
            frames.push((Frames::UdpPort(port), queue));
            frames.extend(ipv6.then_some((Frames::Udp6Port(port), queue)));
        };
        let first = self.turn(0);
        let domains = if self.config.without_ip { &[][..] } else { &self.config.domains };
        let mut turn = 0;
        for domain_id in domains {
            let none = || format!("domain {domain_id} has no ports: choose one from 0 to 232");
            let multicast = mapping.user_multicast(*domain_id).ok_or_else(none)?;
            port(multicast, first);
            for participant in 0..self.config.participants {
                if let Some((_, user)) = mapping.unicast(*domain_id, participant) {
                    port(user, self.turn(turn));
                }
                turn += 1;
            }
        }
        for (turn, besides) in self.config.ports.iter().enumerate() {
            port(*besides, self.turn(turn));
        }
        frames.extend(self.config.without_ip.then_some((Frames::EtherType(ETHERTYPE), first)));
        frames.extend(self.config.pcp.map(|pcp| (Frames::Pcp(pcp), first)));
        Ok(frames)
    }

    /// The critical queue whose turn it is.
    fn turn(&self, turn: usize) -> u32 {
        self.critical.get(turn % self.critical.len().max(1)).copied().unwrap_or(0)
    }

    /// The rule for these frames, at the last free place: the first ones are left to whoever wants to win.
    fn rule(&self, frames: Frames, queue: u32, table: &Rules, taken: &mut Vec<u32>) -> Step {
        let target = format!("queue {queue}");
        let queue = u64::from(queue);
        if let Some(found) = table.rules.iter().find(|rule| rule.frames == frames) {
            let rule = Some((frames, queue));
            let now = format!("queue {} by rule {}", found.queue, found.location);
            let step = Step::to(
                name(&frames),
                now,
                Change::Rule { location: found.location, rule },
                self.facts,
                GAINS,
            );
            if found.queue == queue {
                return Step { lost: self.left_out(&frames), ..step };
            }
            let (at, interface) = (found.location, &self.facts.interface);
            let why = format!(
                "rule {at} sends them to queue {}: take back first what `taut nic apply` has done (`taut nic undo \
                 {interface}`), or remove the rule if it is somebody else's (`ethtool -N {interface} delete {at}`)",
                found.queue
            );
            return Step { able: Able::Cannot(why), lost: LOST.to_owned(), ..step };
        }
        if CHOOSES_PLACES.iter().any(|driver| self.facts.driver.starts_with(driver)) {
            let why = "its driver chooses the place of a rule itself, where undo would not find it";
            return Step::cannot(name(&frames), target, GAINS, why, LOST);
        }
        let Some(location) = (0..table.size).rev().find(|place| !taken.contains(place)) else {
            let why =
                format!("its table of {} rules is full: ask for fewer ports or participants", table.size);
            return Step::cannot(name(&frames), target, GAINS, &why, LOST);
        };
        taken.push(location);
        let change = Change::Rule { location, rule: Some((frames, queue)) };
        let step = Step::to(name(&frames), "any queue", change, self.facts, GAINS);
        Step { lost: self.left_out(&frames), ..step }
    }
}

/// Does the step bring anything to a critical queue?
fn steers(step: &Step) -> bool {
    matches!(step.able, Able::Change(_) | Able::AsPlanned)
}

/// All of them, the ports behind one noun; over IPv6 those that are not there over IPv4.
fn names(all: &[(Frames, u32)]) -> String {
    let (mut v4, mut v6, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (frames, _) in all {
        match frames {
            Frames::UdpPort(port) => v4.push(port.to_string()),
            Frames::Udp6Port(port) => v6.push(port.to_string()),
            _ => others.push(name(frames)),
        }
    }
    v6.retain(|port| !v4.contains(port));
    let ports = |ports: &[String], over: &str| match ports {
        [] => None,
        [port] => Some(format!("UDP port {port}{over}")),
        all => Some(format!("UDP ports {}{over}", all.join(", "))),
    };
    let ports = [ports(&v4, ""), ports(&v6, " over IPv6")].into_iter().flatten();
    ports.chain(others).collect::<Vec<_>>().join(", ")
}

fn name(frames: &Frames) -> String {
    match frames {
        Frames::UdpPort(port) => format!("UDP port {port}"),
        Frames::Udp6Port(port) => format!("UDP port {port} over IPv6"),
        Frames::Pcp(pcp) => format!("VLAN tag with PCP {pcp}"),
        Frames::EtherType(kind) => format!("frames of type {kind:#x}"),
        Frames::Other => "others".to_owned(),
    }
}
