//! Whether the interface is one that a participant can have by XDP: it is there and up, it or the parent of its VLAN has the
//! queues and no other program on it or above, is no bond, and its frames fit. What only trying tells is not told: whether its
//! driver has XDP, or a socket has the queue.

use taut::{XdpLayer, XdpMode};
use taut_nic::Device;
use taut_perf::words::counted;

use super::super::finding::{Finding, Lasts, Mend};
use super::super::system::System;
use super::Asked;
use super::vlan::{Place, place};

/// The first kernel that takes frames in several chunks.
const CHUNKS_SINCE: (u32, u32) = (6, 6);

/// All checks of this module; `used` says whether the participant uses an address of the interface.
pub fn check(
    system: &System,
    asked: &Asked,
    device: &Result<Option<Device>, String>,
    used: bool,
) -> Vec<Finding> {
    let name = "interface of XDP";
    let device = match device {
        Ok(Some(device)) => device,
        Ok(None) => {
            let seen = format!("there is no {} here", asked.interface);
            let cost = "no participant can be made, as `xdp_interface` names it";
            let mend = Mend::by_hand("ip link   # xdp_interface is to name one of these", Lasts::ForGood, "");
            return vec![Finding::harmful(name, seen, cost).mend(mend)];
        }
        Err(error) => return vec![Finding::not_looked(name, error)],
    };
    let (place, vlan) = place(asked, device, Device::named);
    let found = [interface(name, asked, device, used)].into_iter().chain(vlan);
    let found = found.chain([queues(asked, &place), mtu(system, asked, &place), programs(asked, &place)]);
    found.chain(bond(system, asked, &place)).chain(above(system, asked, &place, Device::named)).collect()
}

fn interface(name: &str, asked: &Asked, device: &Device, used: bool) -> Finding {
    let interface = &asked.interface;
    let cost = format!("XDP on {interface} is refused: no participant can be made");
    if !device.is_up {
        let up = Mend::by_hand(
            format!("ip link set {interface} up"),
            Lasts::UntilReboot,
            format!("ip link set {interface} down"),
        );
        let cost = match asked.layer {
            XdpLayer::Ip => cost,
            XdpLayer::Bare => "nobody is reached there until it is up".to_owned(),
        };
        return Finding::harmful(name, format!("{interface} is down"), cost).mend(up);
    }
    if !used && asked.layer == XdpLayer::Ip {
        let seen = format!("{interface} has no address that the participant uses");
        let address = format!("ip address add ADDRESS/24 dev {interface}   # or name it in `interface`");
        let undo = format!("ip address del ADDRESS/24 dev {interface}");
        return Finding::harmful(name, seen, cost).mend(Mend::by_hand(address, Lasts::UntilReboot, undo));
    }
    Finding::good(name, format!("{interface} is up"))
}

fn queues(asked: &Asked, Place { name: interface, device }: &Place) -> Finding {
    let name = "queues of XDP";
    let last = asked.queues.iter().max().copied().unwrap_or(0);
    // Every interface has the first one.
    let Some(count) = device.queues.or((last == 0).then_some(1)) else {
        return Finding::not_looked(name, format!("the driver of {interface} does not say how many it has"));
    };
    let named = asked.queues.len().max(1);
    if last < count && asked.layer == XdpLayer::Bare && named < count as usize {
        let seen = format!("xdp_queues names {named} of the {count} of {interface}");
        let cost = "what comes by the others is lost, as without IP no socket has it".to_owned();
        let all = Vec::from_iter((0..count).map(|number| number.to_string())).join(", ");
        let name_all = format!("xdp_queues = [{all}]   # in taut.toml");
        return Finding::harmful(name, seen, cost).mend(Mend::by_hand(name_all, Lasts::ForGood, ""));
    }
    if last < count {
        return Finding::good(name, format!("{interface} has {}", counted(count as usize, "queue")));
    }
    let seen = format!(
        "xdp_queues names queue {last}, and {interface} has {}, from 0 on",
        counted(count as usize, "queue")
    );
    let cost = format!("XDP on {} is refused: no participant can be made", asked.interface);
    // Which kind it has, the sum of both kinds does not tell.
    let set = |count: u32| format!("ethtool -L {interface} combined {count}   # or rx {count} tx {count}");
    let command = format!("{}; or name other queues", set(last.saturating_add(1)));
    let mend = Mend::by_hand(command, Lasts::UntilReboot, set(count));
    Finding::harmful(name, seen, cost).mend(mend)
}

fn mtu(system: &System, asked: &Asked, Place { name: interface, device }: &Place) -> Finding {
    let (name, mtu) = ("MTU of XDP", device.mtu);
    let in_chunks = release(system).is_none_or(|release| release >= CHUNKS_SINCE);
    let largest = Device::largest_mtu(in_chunks);
    let seen = format!("{mtu} B on {interface}, at most {largest}");
    if mtu <= largest {
        return Finding::good(name, seen);
    }
    let cost = format!("XDP on {} is refused: no participant can be made", asked.interface);
    let set = |mtu: u32| format!("ip link set {interface} mtu {mtu}");
    Finding::harmful(name, seen, cost).mend(Mend::by_hand(set(largest), Lasts::UntilReboot, set(mtu)))
}

/// The version of the kernel, as far as it counts here.
fn release(system: &System) -> Option<(u32, u32)> {
    let text = system.text("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn programs(asked: &Asked, Place { name: interface, device }: &Place) -> Finding {
    let name = "program of XDP";
    let Some(number) = device.program else {
        return Finding::good(name, format!("none is attached to {interface}"));
    };
    let seen = format!("program {number} is attached to {interface}");
    if asked.netd.is_some() && *interface == asked.interface {
        return Finding::not_looked(
            name,
            format!("{seen}, and nothing says whether `taut netd` has done it"),
        );
    }
    let end = format!("bpftool net   # end its owner, or `ip link set {interface} xdp off`");
    let by_hand = |command| Mend::by_hand(command, Lasts::ForGood, "");
    let one = "there can be one, a participant's or another";
    if *interface == asked.interface {
        let cost = format!("{one}: no further participant can be made");
        // Without IP netd could not have several share it, either.
        let or_netd = if asked.layer == XdpLayer::Ip { ", or use `taut netd`" } else { "" };
        return Finding::harmful(name, seen, cost).mend(by_hand(format!("{end}{or_netd}")));
    }
    // Without IP it may take all that would come behind the driver.
    if asked.mode == XdpMode::Native || asked.layer == XdpLayer::Bare {
        let cost = format!("{one}, for all VLANs: no further participant can be made");
        return Finding::harmful(name, seen, cost).mend(by_hand(end));
    }
    let cost = format!("{one}, for all VLANs: XDP on {} is behind its driver", asked.interface);
    Finding::worth_changing(name, seen, cost).mend(by_hand(end))
}

/// It has a driver, which is none of its own.
fn bond(system: &System, asked: &Asked, Place { name: interface, .. }: &Place) -> Option<Finding> {
    let name = "driver of XDP";
    let is_bond = system.names(&format!("/sys/class/net/{interface}/bonding")).is_ok();
    if !is_bond || asked.mode == XdpMode::Generic {
        return None;
    }
    let seen = format!(
        "{interface} is a bond: the kernel gives no frame of the interfaces that it is made of to a socket of it"
    );
    if asked.mode == XdpMode::Auto {
        let cost = format!("XDP on {} is behind the driver", asked.interface);
        return Some(Finding::worth_changing(name, seen, cost));
    }
    let cost = format!("native XDP on {} is refused: no participant can be made", asked.interface);
    let auto = Mend::by_hand("xdp_mode = \"auto\"", Lasts::ForGood, "xdp_mode = \"native\"");
    Some(Finding::harmful(name, seen, cost).mend(auto))
}

/// The kernel attaches no program below another. `look` finds an interface.
fn above(
    system: &System,
    asked: &Asked,
    Place { name: interface, device }: &Place,
    look: impl Fn(&str) -> Result<Option<Device>, String>,
) -> Option<Finding> {
    let names =
        system.names(&format!("/sys/class/net/{interface}")).ok().filter(|_| device.program.is_none())?;
    let (above, program) = names.iter().find_map(|name| {
        let above = name.strip_prefix("upper_")?;
        Some((above, look(above).ok()??.program?))
    })?;
    let seen = format!(
        "program {program} is attached to {above}, which is on {interface}: the kernel takes none below"
    );
    let end = format!("bpftool net   # end its owner, or `ip link set {above} xdp off`");
    let mend = Mend::by_hand(end, Lasts::ForGood, "");
    let name = "program above that of XDP";
    let is_behind = asked.mode == XdpMode::Auto && ![interface, above].contains(&asked.interface.as_str());
    if is_behind {
        let cost = format!("XDP on {} is behind its driver", asked.interface);
        return Some(Finding::worth_changing(name, seen, cost).mend(mend));
    }
    let cost = format!("XDP on {} is refused: no participant can be made", asked.interface);
    Some(Finding::harmful(name, seen, cost).mend(mend))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::State;
    use super::super::super::system::tests::tree;
    use super::*;

    fn asked(queues: &[u32]) -> Asked {
        Asked {
            interface: "eth0".to_owned(),
            queues: queues.to_vec(),
            layer: XdpLayer::Ip,
            mode: XdpMode::Auto,
            netd: None,
            answers: false,
        }
    }

    fn device(mtu: u32, queues: Option<u32>) -> Device {
        Device { is_up: true, mtu, queues, program: None, takes_tags_off: true, parent: None }
    }

    /// The states, and what the one that is not good has seen.
    fn found(release: &str, asked: &Asked, device: Device, used: bool) -> Option<(State, String)> {
        let (_directory, system) = tree(&[("/proc/sys/kernel/osrelease", release)]);
        let found = check(&system, asked, &Ok(Some(device)), used);
        assert_eq!(found.len(), 4);
        let mut bad = found.into_iter().filter(|finding| finding.state != State::Good);
        let first = bad.next()?;
        assert_eq!(bad.next(), None);
        assert!(first.state != State::Harmful || first.mend.is_some());
        Some((first.state, first.seen))
    }

    #[test]
    fn queues_that_there_are() {
        let of = |numbers: &[u32], count| found("6.12.0", &asked(numbers), device(1_500, count), true);
        assert_eq!(of(&[0, 3], Some(4)), None);
        let seen = "xdp_queues names queue 4, and eth0 has 4 queues, from 0 on".to_owned();
        assert_eq!(of(&[4, 1], Some(4)), Some((State::Harmful, seen)));
        assert_eq!(of(&[0], None), None);
        let seen = "the driver of eth0 does not say how many it has".to_owned();
        assert_eq!(of(&[1], None), Some((State::NotLooked, seen)));
    }

    #[test]
    fn without_ip_all_queues_are_needed() {
        let of = |numbers: &[u32], count| {
            let asked = Asked { layer: XdpLayer::Bare, ..asked(numbers) };
            found("6.12.0", &asked, device(1_500, count), true)
        };
        assert_eq!([of(&[], Some(1)), of(&[1, 0], Some(2)), of(&[], None)], [None, None, None]);
        let seen = |words: &str| Some((State::Harmful, format!("xdp_queues names {words} of eth0")));
        assert_eq!(of(&[], Some(2)), seen("1 of the 2"));
        assert_eq!(of(&[1, 2], Some(4)), seen("2 of the 4"));
    }

    #[test]
    fn the_largest_mtu_is_that_of_the_kernel() {
        let of = |release: &str, mtu| found(release, &asked(&[0]), device(mtu, Some(1)), true);
        assert_eq!((of("6.6.0-1-amd64", 61_326), of("6.1.0", 3_816), of("", 9_000)), (None, None, None));
        let too_large =
            |largest: u32, mtu: u32| Some((State::Harmful, format!("{mtu} B on eth0, at most {largest}")));
        assert_eq!(of("7.0", 61_327), too_large(61_326, 61_327));
        assert_eq!(of("6.5.13", 3_817), too_large(3_816, 3_817));
    }

    #[test]
    fn a_participant_over_ip_uses_an_address_there() {
        let of = |layer| {
            let asked = Asked { layer, ..asked(&[0]) };
            found("6.12.0", &asked, device(1_500, Some(1)), false)
        };
        let seen = "eth0 has no address that the participant uses".to_owned();
        assert_eq!((of(XdpLayer::Ip), of(XdpLayer::Bare)), (Some((State::Harmful, seen)), None));
    }

    /// Without an address there is none to use; without IP it needs none.
    #[test]
    fn one_that_is_down() {
        let cost = |layer| {
            let device = Device { is_up: false, ..device(1_500, Some(1)) };
            interface("interface of XDP", &Asked { layer, ..asked(&[0]) }, &device, false).cost
        };
        assert_eq!(cost(XdpLayer::Ip), "XDP on eth0 is refused: no participant can be made");
        assert_eq!(cost(XdpLayer::Bare), "nobody is reached there until it is up");
    }

    #[test]
    fn a_program_may_be_that_of_netd() {
        let of = |netd: Option<&str>| {
            let asked = Asked { netd: netd.map(str::to_owned), answers: netd.is_some(), ..asked(&[0]) };
            let device = Device { program: Some(7), ..device(1_500, Some(1)) };
            found("6.12.0", &asked, device, true).unwrap().0
        };
        assert_eq!([of(None), of(Some("/run/taut/netd.sock"))], [State::Harmful, State::NotLooked]);
        for (layer, could_help) in [(XdpLayer::Ip, true), (XdpLayer::Bare, false)] {
            let device = Device { program: Some(7), ..device(1_500, Some(1)) };
            let place = Place { name: "eth0".to_owned(), device };
            let found = programs(&Asked { layer, ..asked(&[0]) }, &place);
            assert_eq!(found.mend.unwrap().command.contains("`taut netd`"), could_help);
        }
    }

    #[test]
    fn a_program_on_the_parent_of_a_vlan() {
        let refused = (State::Harmful, "no further participant can be made");
        for (mode, layer, (state, part)) in [
            (XdpMode::Auto, XdpLayer::Ip, (State::WorthChanging, "XDP on eth0.5 is behind its driver")),
            (XdpMode::Auto, XdpLayer::Bare, refused),
            (XdpMode::Native, XdpLayer::Ip, refused),
        ] {
            // By netd one without IP alone is looked at there.
            let netd = (layer == XdpLayer::Bare).then(|| "/run/taut/netd.sock".to_owned());
            let asked = Asked { interface: "eth0.5".to_owned(), mode, layer, netd, ..asked(&[0]) };
            let device = Device { program: Some(7), ..device(1_500, Some(4)) };
            let found = programs(&asked, &Place { name: "eth0".to_owned(), device });
            assert_eq!((found.state, found.seen.as_str()), (state, "program 7 is attached to eth0"));
            assert!(
                found.cost.ends_with(part) && !found.mend.unwrap().command.contains("netd"),
                "{}",
                found.cost
            );
        }
    }

    /// For each mode the state, and how the cost ends.
    fn of_modes(find: impl Fn(&Asked) -> Option<Finding>) -> [Option<(State, String)>; 3] {
        [XdpMode::Auto, XdpMode::Native, XdpMode::Generic].map(|mode| {
            let found = find(&Asked { mode, ..asked(&[0]) })?;
            assert!(found.state != State::Harmful || found.mend.is_some());
            Some((found.state, found.cost))
        })
    }

    #[test]
    fn a_bond_has_no_driver_of_its_own() {
        let place = || Place { name: "eth0".to_owned(), device: device(1_500, Some(1)) };
        let (_directory, plain) = tree(&[("/sys/class/net/eth0/mtu", "1500")]);
        assert_eq!(of_modes(|asked| bond(&plain, asked, &place())), [None, None, None]);
        let (_directory, bonded) = tree(&[("/sys/class/net/eth0/bonding/mode", "active-backup 1")]);
        let behind = (State::WorthChanging, "XDP on eth0 is behind the driver".to_owned());
        let refused =
            (State::Harmful, "native XDP on eth0 is refused: no participant can be made".to_owned());
        assert_eq!(of_modes(|asked| bond(&bonded, asked, &place())), [Some(behind), Some(refused), None]);
    }

    #[test]
    fn a_program_above_keeps_others_off() {
        let (_directory, system) = tree(&[("/sys/class/net/eth0/upper_eth0.7/mtu", "1500")]);
        let found = |name: &str, program, asked: &Asked| {
            let asked = Asked { interface: name.to_owned(), mode: asked.mode, ..self::asked(&[0]) };
            let place = Place { name: "eth0".to_owned(), device: device(1_500, Some(1)) };
            above(&system, &asked, &place, |above| {
                assert_eq!(above, "eth0.7");
                Ok(Some(Device { program, ..device(1_500, Some(1)) }))
            })
        };
        assert_eq!(of_modes(|asked| found("eth0", None, asked)), [None, None, None]);
        let refused = |name: &str| {
            Some((State::Harmful, format!("XDP on {name} is refused: no participant can be made")))
        };
        assert_eq!(of_modes(|asked| found("eth0", Some(7), asked)), [(); 3].map(|()| refused("eth0")));
        let behind = Some((State::WorthChanging, "XDP on eth0.5 is behind its driver".to_owned()));
        let [auto, native, _] = of_modes(|asked| found("eth0.5", Some(7), asked));
        assert_eq!([auto, native], [behind, refused("eth0.5")]);
        assert_eq!(
            of_modes(|asked| found("eth0.7", Some(7), asked))[0],
            refused("eth0.7"),
            "it has it itself"
        );
    }
}
