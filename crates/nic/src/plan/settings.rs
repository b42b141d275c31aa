//! What participants have to be told so that they use the critical queues.

use super::{Able, Step, Wanted};
use crate::host::Device;

const ITEM: &str = "settings of Taut";
const GAINS: &str = "a participant has the critical queue, past the kernel's stack";

/// Who has which of the critical queues.
struct Owner {
    /// Its domain, and its number among those of this host in it; `None`: whichever there is.
    participant: Option<(u32, u32)>,
    /// The queues.
    queues: Vec<u32>,
}

/// What a priority in the tag of a VLAN gains with switches that nobody has told otherwise (IEEE 802.1Q §8.6.6).
pub(super) fn gain_of(pcp: u16) -> &'static str {
    match pcp {
        0 => "none by its priority: switches on the way serve PCP 0 as what has no tag; 6 goes before that",
        1 => "none: switches on the way serve PCP 1 last, behind what has no tag; 6 goes before that",
        _ => "switches on the way serve them before what has a lower priority, or no tag",
    }
}

impl Wanted<'_> {
    /// What the configuration of each participant has to say so that it uses all this.
    pub(super) fn settings(&self) -> Vec<Step> {
        let (interface, largest) = (&self.facts.interface, Device::largest_mtu(true));
        if let Some(mtu) = self.facts.mtu.filter(|mtu| *mtu > largest) {
            let why = format!("XDP takes an MTU of {largest} B at most, and {interface} has {mtu}");
            return vec![Step::cannot(
                ITEM,
                "xdp_interface",
                GAINS,
                &why,
                "frames go through the kernel's stack",
            )];
        }
        self.owners().into_iter().map(|owner| self.settings_of(&owner)).collect()
    }

    fn settings_of(&self, owner: &Owner) -> Step {
        let mut settings = vec![format!("xdp_interface = {:?}", self.config.used_interface())];
        if self.config.without_ip {
            settings.push("xdp_layer = 2".to_owned());
        }
        settings.push(format!("xdp_queues = {:?}", owner.queues));
        if let ([], [port], false) =
            (&self.config.domains[..], &self.config.ports[..], self.config.without_ip)
        {
            settings.push(format!("critical_port = {port}; xdp_only_critical = true"));
        }
        settings.extend(self.config.pcp.map(|pcp| format!("xdp_pcp = {pcp}")));
        if !self.config.cpus.is_empty() {
            settings.push(format!("driver_cpus = {:?}", self.config.cpus));
        }
        let mut item = ITEM.to_owned();
        let mut lost = String::new();
        if let Some((domain_id, number)) = owner.participant {
            item += &format!(" for participant {number}");
            if self.config.domains.len() > 1 {
                item += &format!(" of domain {domain_id}");
            }
            "participants have their numbers in the order in which they start, and share the interface by `taut netd`"
                .clone_into(&mut lost);
        }
        Step {
            item,
            now: String::new(),
            then: settings.join("; "),
            gains: GAINS.to_owned(),
            able: Able::Told,
            lost,
        }
    }

    /// Participants that have critical queues of their own, and which: as many as there are queues, in the order of
    /// domains and of their numbers; queues that are left go round again. One has them all where no ports are steered, and
    /// in a VLAN, whose interface netd opens behind the driver only.
    fn owners(&self) -> Vec<Owner> {
        let domains = if self.config.without_ip { &[][..] } else { &self.config.domains };
        let numbers = |domain: &u32| (0..self.config.participants).map(|number| (*domain, number)).collect();
        let all: Vec<(u32, u32)> = domains.iter().flat_map::<Vec<_>, _>(numbers).collect();
        let count = all.len().min(self.critical.len());
        if count < 2 || self.facts.rules.is_err() || !self.sees_ports() || self.config.vlan > 0 {
            return vec![Owner { participant: None, queues: self.critical.clone() }];
        }
        let of = |(first, participant)| Owner {
            participant: Some(participant),
            queues: self.critical.iter().skip(first).step_by(count).copied().collect(),
        };
        all.into_iter().take(count).enumerate().map(of).collect()
    }
}
