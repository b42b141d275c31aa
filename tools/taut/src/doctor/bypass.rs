//! What it takes to go past the kernel's stack by XDP: privileges, memory that may be locked, and a fit interface; and by
//! DPDK, as far as that can be told.

mod device;
mod dpdk;
mod vlan;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind::ConnectionRefused, ErrorKind::NotFound};

use taut::{Config, XdpLayer, XdpMode, XdpNetd};
use taut_nic::Device;

use super::finding::{Finding, Lasts, Mend};
use super::memory::{has, lockable, memlock};
use super::system::{System, bytes};

pub use dpdk::check as check_dpdk;

/// Bits in a set of capabilities (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;

/// Frames of a queue: 14,336 chunks. A test of the command holds it against what a participant asks for.
const FRAMES: u64 = 28 << 20;
/// The largest MTU whose frames fit chunks of 2,048 bytes; above it they have twice as many.
const SMALL_MTU: u64 = 1_768;

/// What the configuration asks for.
pub struct Asked {
    interface: String,
    queues: Vec<u32>,
    layer: XdpLayer,
    mode: XdpMode,
    /// Where it asks netd.
    netd: Option<String>,
    /// Does that answer there?
    answers: bool,
}

impl Asked {
    /// `None` if nothing goes past the kernel by XDP.
    pub fn by(config: &Config, system: &System) -> Option<Asked> {
        if config.xdp_interface.is_empty() {
            return None;
        }
        let place = match &config.xdp_netd {
            XdpNetd::At(path) => Some(path.display().to_string()),
            XdpNetd::Auto => Some(taut_netd::SOCKET.to_owned()),
            XdpNetd::Never => None,
        };
        let found = place.as_deref().map(|place| system.look_for_netd(place));
        let answers = matches!(found, Some(Ok(())));
        let nobody = |error: io::Error| matches!(error.kind(), NotFound | ConnectionRefused);
        // A participant that nobody has named a place to does without.
        let without = config.xdp_netd == XdpNetd::Auto && found.is_some_and(|found| found.is_err_and(nobody));
        let netd = place.filter(|_| !without);
        let queues = if config.xdp_queues.is_empty() { vec![0] } else { config.xdp_queues.clone() };
        let interface = config.xdp_interface.clone();
        Some(Asked { interface, queues, layer: config.xdp_layer, mode: config.xdp_mode, netd, answers })
    }
}

/// What is found of the interface; `used` are the names of those that the participant has addresses of.
pub fn check_device(system: &System, asked: Option<&Asked>, used: &BTreeSet<&str>) -> Vec<Finding> {
    let Some(asked) = asked else { return Vec::new() };
    let device = Device::named(&asked.interface);
    // The kernel knows one by other names, too, and lists it by the first.
    let index = |name: &str| nix::net::if_::if_nametoindex(name).ok();
    let own = index(&asked.interface);
    let is_same = |name: &&str| *name == asked.interface || own.is_some() && index(name) == own;
    device::check(system, asked, &device, used.iter().any(is_same))
}

/// What is found of this process.
pub fn check(system: &System, asked: Option<&Asked>) -> Vec<Finding> {
    let Some(asked) = asked else { return Vec::new() };
    vec![privileges(system, asked), memory(system, asked)]
}

fn privileges(system: &System, asked: &Asked) -> Finding {
    let name = "privileges of XDP";
    match &asked.netd {
        Some(netd) if asked.answers => {
            return Finding::good(name, format!("those of `taut netd` at {netd}"));
        }
        Some(netd) => {
            let cost = format!("XDP on {} is refused: no participant can be made", asked.interface);
            let command =
                format!("taut netd --policy netd.toml --socket {netd}   # or set xdp_netd to \"off\"");
            let mend = Mend::by_hand(command, Lasts::UntilReboot, "");
            return Finding::harmful(name, format!("`taut netd` does not answer at {netd}"), cost).mend(mend);
        }
        None => {}
    }
    let known = [
        ("CAP_NET_ADMIN", has(system, CAP_NET_ADMIN)),
        ("CAP_NET_RAW", has(system, CAP_NET_RAW)),
        ("CAP_BPF", has(system, CAP_BPF) || has(system, CAP_SYS_ADMIN)),
    ];
    let missing: Vec<&str> = known.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Finding::good(name, "this user has CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF");
    }
    let seen = format!("this user has no {}", missing.join(", no "));
    let cost = format!(
        "XDP on {} is refused to a program that `setcap` has given none: no participant can be made",
        asked.interface
    );
    let mend = Mend::by_hand(
        "setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock=ep PROGRAM   # or run `taut netd`",
        Lasts::ForGood,
        "setcap -r PROGRAM",
    );
    Finding::harmful(name, seen, cost).mend(mend)
}

fn memory(system: &System, asked: &Asked) -> Finding {
    let name = "memory of frames";
    if asked.netd.is_some() {
        return Finding::good(name, "counted for `taut netd`");
    }
    let limit = match lockable(system) {
        Ok(Some(limit)) => limit,
        Ok(None) => return Finding::good(name, "unlimited for this user"),
        Err(why) => return Finding::not_looked(name, why),
    };
    let interface = parent(system, asked).unwrap_or_else(|| asked.interface.clone());
    let mtu: u64 = system.number(&format!("/sys/class/net/{interface}/mtu")).unwrap_or(0);
    let of_queue = if mtu > SMALL_MTU { 2 * FRAMES } else { FRAMES };
    let needed = of_queue * asked.queues.len() as u64;
    let seen = format!("mlock: at most {}, frames take {}", bytes(limit), bytes(needed));
    if limit >= needed {
        return Finding::good(name, seen);
    }
    let cost = format!(
        "XDP on {} is refused to a program without CAP_IPC_LOCK: no participant can be made",
        asked.interface
    );
    Finding::harmful(name, seen, cost).mend(memlock())
}

/// The interface whose frames they are, if that of the configuration is of a VLAN: no frame is shorter there.
fn parent(system: &System, asked: &Asked) -> Option<String> {
    let directory = format!("/sys/class/net/{}", asked.interface);
    let told = system.text(&format!("{directory}/uevent")).ok()?;
    let is_used = asked.mode != XdpMode::Generic && told.lines().any(|line| line == "DEVTYPE=vlan");
    let names = is_used.then(|| system.names(&directory).ok())??;
    names.iter().find_map(|name| name.strip_prefix("lower_").map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    const NONE: &str = "0";
    const LIMITS: &str = "Max locked memory   65536   65536   bytes\n";
    const THREE: &str = "8000003000";
    const FOUR: &str = "8000007000";

    /// What is found with this set of capabilities and this limit.
    fn found(config: &Config, files: &[(&str, &str)], capabilities: &str, limit: &str) -> Vec<Finding> {
        let status = format!("Name:\ttaut\nCapEff:\t{capabilities}\n");
        let limits = format!("Max locked memory   {limit}   {limit}   bytes\n");
        let own = [("/proc/self/status", status.as_str()), ("/proc/self/limits", limits.as_str())];
        let (_directory, system) = tree(&[files, &own].concat());
        check(&system, Asked::by(config, &system).as_ref())
    }

    fn config() -> Config {
        Config { xdp_interface: "eth0".to_owned(), ..Config::default() }
    }

    /// What is found beside a netd that listens at its place, or was killed there, for one that looks for it there or at
    /// the place that is named.
    fn beside_netd(listens: bool, config: &Config) -> Vec<Finding> {
        let files = [("/proc/self/status", "CapEff:\t0\n"), ("/proc/self/limits", LIMITS)];
        let (directory, system) = tree(&files);
        let place = directory.path().join(taut_netd::SOCKET.trim_start_matches('/'));
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let netd = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::SEQPACKET, None).unwrap();
        netd.bind(&socket2::SockAddr::unix(place).unwrap()).unwrap();
        if listens {
            netd.listen(1).unwrap();
        }
        check(&system, Asked::by(config, &system).as_ref())
    }

    fn states(found: &[Finding]) -> Vec<State> {
        found.iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn what_is_not_asked_for_is_not_looked_at() {
        assert!(found(&Config::default(), &[], NONE, "65536").is_empty());
    }

    #[test]
    fn who_has_what_it_takes() {
        let of = |capabilities, limit| states(&found(&config(), &[], capabilities, limit));
        assert_eq!(of(FOUR, "8388608"), [State::Good, State::Good]);
        assert_eq!(of(THREE, "8388608"), [State::Good, State::Harmful]);
        assert_eq!(of(THREE, "29360128"), [State::Good, State::Good]);
        assert_eq!(of(NONE, "unlimited"), [State::Harmful, State::Good]);
        let found = found(&config(), &[], "2000", "8388608");
        assert_eq!(found[0].seen, "this user has no CAP_NET_ADMIN, no CAP_BPF");
        assert_eq!(found[1].seen, "mlock: at most 8 MiB, frames take 28 MiB");
    }

    #[test]
    fn queues_and_larger_frames_take_more() {
        let config = Config { xdp_queues: vec![2, 3], ..config() };
        let found = found(&config, &[("/sys/class/net/eth0/mtu", "3000")], THREE, "8388608");
        assert_eq!(found[1].seen, "mlock: at most 8 MiB, frames take 112 MiB");
    }

    #[test]
    fn frames_of_a_vlan_are_those_of_its_parent() {
        let files = [
            ("/sys/class/net/eth0.5/uevent", "DEVTYPE=vlan\nINTERFACE=eth0.5\nIFINDEX=7\n"),
            ("/sys/class/net/eth0.5/mtu", "1500\n"),
            ("/sys/class/net/eth0.5/lower_eth0", ""),
            ("/sys/class/net/eth0/mtu", "3000\n"),
        ];
        for (xdp_mode, seen) in [(XdpMode::Auto, "56 MiB"), (XdpMode::Generic, "28 MiB")] {
            let config = Config { xdp_interface: "eth0.5".to_owned(), xdp_mode, ..Config::default() };
            let found = found(&config, &files, THREE, "8388608");
            assert_eq!(found[1].seen, format!("mlock: at most 8 MiB, frames take {seen}"));
        }
    }

    #[test]
    fn netd_has_it_for_participants_of_either_layer() {
        for xdp_layer in [XdpLayer::Ip, XdpLayer::Bare] {
            let config = Config { xdp_layer, ..config() };
            assert_eq!(states(&beside_netd(true, &config)), [State::Good, State::Good]);
            let there = Config { xdp_netd: XdpNetd::At(taut_netd::SOCKET.into()), ..config.clone() };
            assert_eq!(states(&beside_netd(true, &there)), [State::Good, State::Good]);
            let found = beside_netd(true, &Config { xdp_netd: XdpNetd::Never, ..config });
            assert_eq!(states(&found), [State::Harmful, State::Harmful]);
            assert!(found[0].mend.as_ref().unwrap().command.contains("`taut netd`"));
        }
    }

    /// A participant does without one that has left its name behind, unless it is to ask nobody else.
    #[test]
    fn a_netd_that_was_killed_has_nothing() {
        let found = beside_netd(false, &config());
        assert_eq!(states(&found), [State::Harmful, State::Harmful]);
        assert_eq!(found[0].seen, "this user has no CAP_NET_ADMIN, no CAP_NET_RAW, no CAP_BPF");
        for (listens, at) in [(false, taut_netd::SOCKET), (true, "/nonexistent/netd.sock")] {
            let found = beside_netd(listens, &Config { xdp_netd: XdpNetd::At(at.into()), ..config() });
            assert_eq!(found[0].state, State::Harmful);
            assert_eq!(found[0].seen, format!("`taut netd` does not answer at {at}"));
            let command = &found[0].mend.as_ref().unwrap().command;
            assert!(command.starts_with(&format!("taut netd --policy netd.toml --socket {at}")), "{command}");
        }
    }
}
