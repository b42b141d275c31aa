//! Room for what arrives and for what is sent: socket buffers, the backlog of processors, IP fragments.

use super::finding::{Finding, Mend, sysctl_path};
use super::system::{System, bytes};

/// What Taut asks for each sending socket, in bytes.
const SEND_BUFFER: u64 = 4 << 20;
/// What the kernel counts for a datagram of 64 kB that has arrived, with its own accounts. A buffer below it
/// takes no such datagram behind another one.
const LARGE_DATAGRAM: u64 = 2 * 65_536;
/// The kernel's own default for IP fragments that wait for the rest, in bytes. Lower keeps fewer datagrams that
/// arrive at the same time; higher lets lost fragments hold more memory for half a minute each.
const FRAGMENTS: u64 = 4 << 20;
/// The same once fragments were lost. Lower and fewer losses within half a minute have the kernel take no more fragments
/// at all; higher lets them hold more memory.
const FRAGMENTS_WHERE_LOST: u64 = 64 << 20;
/// What a datagram of 64 kB whose fragments wait for the last one takes, measured with Ethernet's MTU of 1,500.
const WAITING_DATAGRAM: u64 = 182_000;
/// How long the backlog of a processor should be once datagrams were lost there: what a receive buffer of 4 MiB
/// holds of small ones. Higher holds memory that nobody reads in time.
const BACKLOG: u64 = 5_000;

/// All checks of this module; `receive_buffer` is what the configuration asks for, `v6` whether IPv6 is in use.
pub fn check(system: &System, receive_buffer: u64, v6: bool) -> Vec<Finding> {
    let mut findings = vec![
        receive(system, receive_buffer),
        send(system),
        backlog(system),
        fragments(system, &FRAGMENTS_V4),
    ];
    findings.extend(v6.then(|| fragments(system, &FRAGMENTS_V6)));
    findings
}

fn receive(system: &System, asked: u64) -> Finding {
    let name = "receive buffer";
    let most: u64 = match system.number("/proc/sys/net/core/rmem_max") {
        Ok(most) => most,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let lost = counter(system, "Udp", "RcvbufErrors");
    let seen = match lost {
        Some(lost) if lost > 0 => {
            format!("{} of {} asked for; {lost} datagrams found no room so far", bytes(most), bytes(asked))
        }
        _ => format!("{} of {} asked for", bytes(most), bytes(asked)),
    };
    if most >= asked {
        return Finding::good(name, seen);
    }
    let mend = Mend::sysctl("net.core.rmem_max", asked, true);
    let cost = "what comes while the reader is busy is lost and asked for again, a round trip later; best effort \
                does not get it at all";
    if most < LARGE_DATAGRAM || lost.is_some_and(|lost| lost > 0) {
        return Finding::harmful(name, seen, cost).mend(mend);
    }
    Finding::worth_changing(name, seen, cost).mend(mend)
}

fn send(system: &System) -> Finding {
    let name = "send buffer";
    match system.number::<u64>("/proc/sys/net/core/wmem_max") {
        Err(unseen) => Finding::not_looked(name, unseen),
        Ok(most) if most >= SEND_BUFFER => Finding::good(name, bytes(most)),
        Ok(most) => Finding::worth_changing(
            name,
            format!("{} of {} asked for", bytes(most), bytes(SEND_BUFFER)),
            "a burst above it waits for the network interface, and what is more urgent waits behind it",
        )
        .mend(Mend::sysctl("net.core.wmem_max", SEND_BUFFER, true)),
    }
}

fn backlog(system: &System) -> Finding {
    let name = "backlog of processors";
    let most: u64 = match system.number("/proc/sys/net/core/netdev_max_backlog") {
        Ok(most) => most,
        Err(unseen) if unseen.is_absent() => {
            return Finding::not_looked(
                name,
                "net.core.netdev_max_backlog is in the host's network namespace only",
            );
        }
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let dropped = system.text("/proc/net/softnet_stat").map_or(0, |text| dropped(&text));
    let seen = format!("{most} packets each, {dropped} dropped so far");
    if dropped == 0 || most >= BACKLOG {
        return Finding::good(name, seen);
    }
    let cost = "packets that come faster than a processor takes them are lost before any socket sees them";
    Finding::worth_changing(name, seen, cost).mend(Mend::sysctl("net.core.netdev_max_backlog", BACKLOG, true))
}

/// The second column, in hexadecimal, of each processor's line.
fn dropped(softnet_stat: &str) -> u64 {
    let of_line = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    softnet_stat.lines().filter_map(of_line).sum()
}

/// Where one kind of IP keeps what waits for the rest of a datagram.
struct Fragments {
    name: &'static str,
    setting: &'static str,
    failed: fn(&System) -> Option<u64>,
}

const FRAGMENTS_V4: Fragments = Fragments {
    name: "IP fragments",
    setting: "net.ipv4.ipfrag_high_thresh",
    failed: |system| counter(system, "Ip", "ReasmFails"),
};

const FRAGMENTS_V6: Fragments = Fragments {
    name: "IPv6 fragments",
    setting: "net.ipv6.ip6frag_high_thresh",
    failed: |system| counter_v6(system, "Ip6ReasmFails"),
};

fn fragments(system: &System, of: &Fragments) -> Finding {
    let name = of.name;
    let most: u64 = match system.number(&sysctl_path(of.setting)) {
        Ok(most) => most,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let failed = (of.failed)(system).unwrap_or(0);
    let failures =
        if failed > 0 { format!(", {failed} datagrams not put together so far") } else { String::new() };
    let seen = format!("room for {}{failures}", bytes(most));
    let wanted = if failed > 0 { FRAGMENTS_WHERE_LOST } else { FRAGMENTS };
    if most >= wanted {
        return Finding::good(name, seen);
    }
    let mend = Mend::sysctl(of.setting, wanted, true);
    if most < WAITING_DATAGRAM {
        let cost = "a large sample goes in datagrams of 64 kB, of which not one can be put together";
        return Finding::harmful(name, seen, cost).mend(mend);
    }
    let cost = format!(
        "what has lost a fragment takes its room for half a minute: {} datagrams of 64 kB that do, and no sample that \
         comes in fragments of IP arrives until then, as peers of other vendors send large ones",
        most / WAITING_DATAGRAM
    );
    Finding::worth_changing(name, seen, cost).mend(mend)
}

/// A counter of the network namespace: a line of names, and one of values.
fn counter(system: &System, protocol: &str, name: &str) -> Option<u64> {
    let text = system.text("/proc/net/snmp").ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let at = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

/// The same of IPv6: a line for each.
fn counter_v6(system: &System, name: &str) -> Option<u64> {
    let text = system.text("/proc/net/snmp6").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::system::tests::tree;
    use super::*;

    const SNMP: &str = "Ip: Forwarding ReasmFails\nIp: 1 3\nUdp: InDatagrams RcvbufErrors\nUdp: 9 LOST\n\
                        UdpLite: InDatagrams RcvbufErrors\nUdpLite: 0 77\n";

    fn states(rmem: &str, lost: &str) -> (State, String) {
        let (_directory, system) =
            tree(&[("/proc/sys/net/core/rmem_max", rmem), ("/proc/net/snmp", &SNMP.replace("LOST", lost))]);
        let found = receive(&system, 4 << 20);
        (found.state, found.seen)
    }

    #[test]
    fn too_small_a_receive_buffer_and_what_it_has_lost() {
        assert_eq!(states("4194304", "5").0, State::Good);
        assert_eq!(states("212992", "0"), (State::WorthChanging, "208 KiB of 4 MiB asked for".to_owned()));
        let (state, seen) = states("212992", "5");
        assert!(state == State::Harmful && seen.contains("5 datagrams"), "{seen}");
        assert_eq!(states("65536", "0").0, State::Harmful);
    }

    /// Each network namespace has its own of some of them, and lacks the others: what was set in one is put back there.
    #[test]
    fn what_the_core_of_the_network_is_told_is_of_its_namespace() {
        let (_directory, system) = tree(&[
            ("/proc/sys/net/core/rmem_max", "212992"),
            ("/proc/sys/net/core/wmem_max", "212992"),
            ("/proc/sys/net/core/netdev_max_backlog", "1000"),
            ("/proc/net/snmp", SNMP),
            ("/proc/net/softnet_stat", "00000001 00000007\n"),
        ]);
        for found in [receive(&system, 4 << 20), send(&system), backlog(&system)] {
            let writes = found.mend.expect(&found.seen).writes;
            assert!(writes.iter().all(|write| write.of_namespace) && writes.len() == 1, "{writes:?}");
        }
    }

    #[test]
    fn the_fix_asks_for_what_the_configuration_does() {
        let (_directory, system) = tree(&[("/proc/sys/net/core/rmem_max", "212992")]);
        let mend = receive(&system, 1 << 20).mend.unwrap();
        assert_eq!(mend.command, "sysctl -w net.core.rmem_max=1048576");
        assert_eq!(receive(&system, 1 << 16).state, State::Good);
    }

    #[test]
    fn a_backlog_matters_once_it_was_full() {
        let of = |stat: &str| {
            let (_directory, system) =
                tree(&[("/proc/sys/net/core/netdev_max_backlog", "1000"), ("/proc/net/softnet_stat", stat)]);
            backlog(&system)
        };
        assert_eq!(of("0a 00 01\n0b 00 00\n").state, State::Good);
        let full = of("0a 0000000f 01\n0b 00000010 00\n");
        assert!(full.state == State::WorthChanging && full.seen.contains("31 dropped"), "{full:?}");
        assert_eq!(backlog(&tree(&[]).1).state, State::NotLooked);
    }

    #[test]
    fn room_for_fragments() {
        let of = |most: &str| {
            let files = [("/proc/sys/net/ipv4/ipfrag_high_thresh", most), ("/proc/net/snmp", SNMP)];
            let (_directory, system) = tree(&files);
            fragments(&system, &FRAGMENTS_V4)
        };
        assert_eq!(of("67108864").state, State::Good);
        assert!(of("4194304").cost.contains(": 23 datagrams"));
        assert_eq!(of("100000").state, State::Harmful);
        assert!(of("100000").seen.ends_with("3 datagrams not put together so far"));
        let (_directory, unhurt) = tree(&[("/proc/sys/net/ipv4/ipfrag_high_thresh", "4194304")]);
        assert_eq!(fragments(&unhurt, &FRAGMENTS_V4).state, State::Good);
        let (_directory, system) = tree(&[
            ("/proc/sys/net/ipv6/ip6frag_high_thresh", "100000"),
            ("/proc/net/snmp6", "Ip6ReasmOKs      \t7\nIp6ReasmFails    \t5\n"),
        ]);
        assert!(check(&system, 0, false).iter().all(|finding| finding.name != "IPv6 fragments"));
        let found = check(&system, 0, true).pop().unwrap();
        assert_eq!((found.name.as_str(), found.state), ("IPv6 fragments", State::Harmful));
        assert!(found.seen.ends_with("5 datagrams not put together so far"), "{found:?}");
        assert!(found.mend.unwrap().command.starts_with("sysctl -w net.ipv6.ip6frag_high_thresh="));
    }
}
