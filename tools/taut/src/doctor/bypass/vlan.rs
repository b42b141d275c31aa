//! An interface of a VLAN: whether a participant can be in the driver of its parent, where frames have their tags, or comes
//! to be behind the driver, on the interface itself.

use taut::{XdpLayer, XdpMode};
use taut_nic::Device;

use super::super::finding::{Finding, Lasts, Mend};
use super::Asked;

/// The interface that the program is attached to, by its name.
pub struct Place {
    pub name: String,
    pub device: Device,
}

/// Where that is, and what is found if the interface is of a VLAN. `look` finds a parent.
pub fn place(
    asked: &Asked,
    device: &Device,
    look: impl FnOnce(&str) -> Result<Option<Device>, String>,
) -> (Place, Option<Finding>) {
    let itself = Place { name: asked.interface.clone(), device: device.clone() };
    // Without IP a program on the interface itself is in the way as well.
    let is_taken = asked.layer == XdpLayer::Bare && device.program.is_some();
    let is_native = asked.mode != XdpMode::Generic && !is_taken;
    let Some(told) = device.parent.as_ref().filter(|_| is_native) else {
        return (itself, None);
    };
    if asked.netd.is_some() {
        let without =
            Mend::by_hand("xdp_netd = \"off\"   # and be root", Lasts::ForGood, "xdp_netd = \"auto\"");
        let seen = format!("`taut netd` opens {} behind its driver only", asked.interface);
        let found = Some(behind(asked, seen, Some(without)));
        // Who has the parent may take what would come.
        let name = told.as_ref().ok().filter(|_| asked.layer == XdpLayer::Bare);
        let taken = name.and_then(|name| {
            let device = look(name).ok().flatten().filter(|device| device.program.is_some())?;
            Some(Place { name: name.clone(), device })
        });
        return (taken.unwrap_or(itself), found);
    }
    let parent = told.clone().and_then(|name| match look(&name)? {
        Some(device) => Ok(Place { name, device }),
        None => Err(format!("there is no {name} here")),
    });
    let parent = match parent {
        Ok(parent) => parent,
        Err(why) => return (itself, Some(behind(asked, why, None))),
    };
    let name = &parent.name;
    if parent.device.takes_tags_off {
        let set = |to: &str| format!("ethtool -K {name} rxvlan {to}");
        let leave = Mend::by_hand(set("off"), Lasts::UntilReboot, set("on"));
        let seen = format!("{name} takes the tags off before a program sees them");
        // Who has the parent may take what would come without a tag.
        let is_in_the_way = asked.layer == XdpLayer::Bare && parent.device.program.is_some();
        let found = Some(behind(asked, seen, Some(leave)));
        return (if is_in_the_way { parent } else { itself }, found);
    }
    let found =
        Finding::good(NAME, format!("{} is on {name}, which leaves the tags in frames", asked.interface));
    (parent, Some(found))
}

const NAME: &str = "VLAN of XDP";

/// It is not in the driver, or refused if it is to be there.
fn behind(asked: &Asked, seen: String, mend: Option<Mend>) -> Finding {
    let interface = &asked.interface;
    let auto = || Mend::by_hand("xdp_mode = \"auto\"", Lasts::ForGood, "xdp_mode = \"native\"");
    if asked.mode == XdpMode::Native {
        let cost = format!("native XDP on {interface} is refused: no participant can be made");
        return Finding::harmful(NAME, seen, cost).mend(mend.unwrap_or_else(auto));
    }
    let cost = format!("XDP on {interface} is behind its driver, and `xdp_pcp` has no effect");
    let found = Finding::worth_changing(NAME, seen, cost);
    match mend {
        Some(mend) => found.mend(mend),
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::State;
    use super::*;

    fn asked(mode: XdpMode, netd: Option<&str>) -> Asked {
        Asked {
            interface: "eth0.5".to_owned(),
            queues: vec![0],
            layer: XdpLayer::Ip,
            mode,
            netd: netd.map(str::to_owned),
            answers: netd.is_some(),
        }
    }

    fn device(parent: Option<Result<String, String>>, takes_tags_off: bool) -> Device {
        Device { is_up: true, mtu: 1_500, queues: Some(4), program: None, takes_tags_off, parent }
    }

    /// What takes the tags off may be somebody's, who is in the way without IP.
    #[test]
    fn a_parent_that_somebody_has_is_looked_at_without_ip() {
        let own = device(Some(Ok("eth0".to_owned())), false);
        for (layer, program, place) in [
            (XdpLayer::Bare, Some(7), "eth0"),
            (XdpLayer::Bare, None, "eth0.5"),
            (XdpLayer::Ip, Some(7), "eth0.5"),
        ] {
            let asked = Asked { layer, ..asked(XdpMode::Auto, None) };
            let parent = || Device { program, ..device(None, true) };
            let found = found(&asked, &own, Some(parent()));
            let told = Some((State::WorthChanging, "ethtool -K eth0 rxvlan off".to_owned()));
            assert_eq!(found, (place.to_owned(), told), "{layer:?} {program:?}");
            let asked = Asked { netd: Some("/run/taut/netd.sock".to_owned()), answers: true, ..asked };
            assert_eq!(self::found(&asked, &own, Some(parent())).0, place, "by netd as well");
        }
    }

    /// The place, and the state of what was found with the command that mends it.
    fn found(asked: &Asked, own: &Device, parent: Option<Device>) -> (String, Option<(State, String)>) {
        let (place, found) = place(asked, own, |name| {
            assert_eq!(name, "eth0");
            Ok(parent)
        });
        let told = |found: Finding| (found.state, found.mend.map(|mend| mend.command).unwrap_or_default());
        (place.name, found.map(told))
    }

    #[test]
    fn a_parent_that_leaves_the_tags_is_looked_at() {
        let own = device(Some(Ok("eth0".to_owned())), false);
        for mode in [XdpMode::Auto, XdpMode::Native] {
            let found = found(&asked(mode, None), &own, Some(device(None, false)));
            assert_eq!(found, ("eth0".to_owned(), Some((State::Good, String::new()))));
        }
        let behind = found(&asked(XdpMode::Generic, None), &own, Some(device(None, false)));
        assert_eq!(behind, ("eth0.5".to_owned(), None));
        let taken = Device { program: Some(7), ..own.clone() };
        let bare = Asked { layer: XdpLayer::Bare, ..asked(XdpMode::Auto, None) };
        assert_eq!(found(&bare, &taken, Some(device(None, false))), ("eth0.5".to_owned(), None));
        let plain = found(&asked(XdpMode::Auto, None), &device(None, true), None);
        assert_eq!(plain, ("eth0.5".to_owned(), None), "it has no tags to take off");
    }

    #[test]
    fn what_keeps_it_behind_the_driver() {
        let (own, hidden) =
            (device(Some(Ok("eth0".to_owned())), false), device(Some(Err("why".to_owned())), false));
        let takes_off = || Some(device(None, true));
        for (mode, state) in [(XdpMode::Auto, State::WorthChanging), (XdpMode::Native, State::Harmful)] {
            let of = |own, netd, parent, command: &str| {
                let found = found(&asked(mode, netd), own, parent);
                assert_eq!(found, ("eth0.5".to_owned(), Some((state, command.to_owned()))));
            };
            of(&own, None, takes_off(), "ethtool -K eth0 rxvlan off");
            of(&own, Some("/run/taut/netd.sock"), takes_off(), "xdp_netd = \"off\"   # and be root");
            let command = if mode == XdpMode::Native { "xdp_mode = \"auto\"" } else { "" };
            of(&hidden, None, None, command);
            of(&own, None, None, command);
        }
    }
}
