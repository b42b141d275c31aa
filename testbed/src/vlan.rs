//! Interfaces of a VLAN (IEEE 802.1Q), each on one end of the cable.

use std::process::Command;

use crate::{End, Pair, ip, set_feature, starts, with_pair};

/// That of an end: of network 5, unless it was made otherwise.
pub fn name(end: End) -> String {
    format!("{}.5", end.name())
}

/// Makes it, with an address of its own; the thread is at that end.
pub fn make(end: End) {
    let (parent, name) = (end.name(), name(end));
    ip(&format!("link add link {parent} name {name} type vlan id 5"));
    ip(&format!("addr add 10.89.5.{}/24 dev {name}", end.ipv4()[3]));
    ip(&format!("link set {name} up"));
}

/// Has the end leave tags in the frames, as a driver that has no such offload: on a virtual cable the sender takes them
/// off, and not the receiver.
pub fn leave_tags(end: End) {
    for feature in ["rx-vlan-hw-parse", "tx-vlan-hw-insert"] {
        set_feature(end.name(), feature, false);
    }
}

/// Has the kernel count what comes by the interface of that end with each of these tags.
pub fn count_tags(pair: &Pair, end: End, tags: &[String]) {
    pair.enter(end);
    let mut words = format!(
        "add table netdev tags; add chain netdev tags come {{ type filter hook ingress device {} priority 0; }};",
        end.name()
    );
    tags.iter().for_each(|tag| words += &format!("add rule netdev tags come {tag} counter;"));
    assert!(starts(|| Command::new("nft").arg(words).status()).expect("nftables").success());
}

/// The counts, in the same order.
pub fn counted(pair: &Pair, end: End) -> Vec<u64> {
    pair.enter(end);
    let list = || Command::new("nft").args(["list", "table", "netdev", "tags"]).output();
    let listed = starts(list).expect("nftables");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let counts = listed.split("counter packets ").skip(1).filter_map(|rest| rest.split(' ').next());
    counts.map(|count| count.parse().unwrap()).collect()
}

/// Runs `test` with a pair that has one at each end. Left out, with `CI=true` too, where the kernel has no such interfaces.
pub fn with_vlans(name: &str, test: impl FnOnce(&Pair) + Send + 'static) {
    let called = name.to_owned();
    with_pair(name, ["", ""], move |pair| {
        pair.enter(End::A);
        let probe = ["link", "add", "link", "xa", "name", "probe", "type", "vlan", "id", "7"];
        let made = starts(|| Command::new("ip").args(probe).output()).expect("iproute2");
        let told = String::from_utf8_lossy(&made.stderr);
        if told.contains("Unknown device type") {
            return println!(
                "LEFT OUT: {called}: this kernel has no interfaces of VLANs (CONFIG_VLAN_8021Q)"
            );
        }
        assert!(made.status.success(), "{told}");
        ip("link del probe");
        for end in End::BOTH {
            pair.enter(end);
            make(end);
        }
        test(pair);
    });
}
