//! Where the processes of a trial meet: loopback, or a link between two networks.
//!
//! The link is a veth pair to a second network namespace, which a small process holds; both go with the
//! run's own namespace.

use std::ffi::OsString;
use std::sync::mpsc::sync_channel;

use crate::namespace::{run, run_words};
use crate::process::Process;

/// The interface of each end of the link; its addresses. 198.18.0.0/15 is for benchmarks (RFC 2544).
const INTERFACES: [&str; 2] = ["perf0", "perf1"];
const ADDRESSES: [&str; 2] = ["198.18.0.1", "198.18.0.2"];

/// The end that a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of `ping` and `pub`.
    Near,
    /// That of `pong` and `sub`.
    Far,
}

/// Where processes meet.
pub enum Network {
    /// One loopback interface.
    Loopback,
    /// Two networks and the process that holds the second one.
    Link(Process),
}

impl Network {
    /// Makes the link. Each of its ends has so many queues, and the driver serves each by itself; and this MTU.
    pub fn link(queues: u32, mtu: u32) -> Result<Network, String> {
        let (sender, _) = sync_channel(1);
        // It ends when its stdin does, as everything here.
        let holder = ["unshare", "--net", "cat"].map(OsString::from);
        let holder = Process::spawn(&holder, 0, sender).map_err(|error| format!("unshare: {error}"))?;
        let inside = format!("nsenter --net=/proc/{}/ns/net", holder.id());
        wait_until_apart(holder.id())?;
        let [near, far] = INTERFACES;
        let of = format!("mtu {mtu} numtxqueues {queues} numrxqueues {queues}");
        let mut commands = vec![
            format!("ip link add {near} {of} type veth peer name {far} {of} netns {}", holder.id()),
            format!("{inside} ip link set lo up"),
        ];
        for (prefix, end) in [(String::new(), 0), (inside + " ", 1)] {
            let (interface, address) = (INTERFACES[end], ADDRESSES[end]);
            commands.push(format!("{prefix}ip address add {address}/24 dev {interface}"));
            commands.push(format!("{prefix}ip link set {interface} up multicast on"));
            commands.push(format!("{prefix}ip route replace 224.0.0.0/4 dev {interface}"));
        }
        for command in commands {
            run(&command).map_err(|reason| format!("{command}: {reason}"))?;
        }
        Ok(Network::Link(holder))
    }

    /// What a process at this end is told.
    pub fn options(&self, side: Side) -> Vec<(&'static str, String)> {
        let (own, other) = if side == Side::Near { (0, 1) } else { (1, 0) };
        let (interface, address, remote) = match self {
            Network::Loopback => ("lo", "127.0.0.1", "127.0.0.1"),
            Network::Link(_) => (INTERFACES[own], ADDRESSES[own], ADDRESSES[other]),
        };
        vec![
            ("interface", interface.to_string()),
            ("address", address.to_string()),
            ("remote", remote.to_string()),
        ]
    }

    /// The interface of the near end.
    pub fn interface(&self) -> &'static str {
        match self {
            Network::Loopback => "lo",
            Network::Link(_) => INTERFACES[0],
        }
    }

    /// The words before a program that runs at this end.
    pub fn prefix(&self, side: Side) -> Vec<OsString> {
        match self {
            Network::Link(holder) if side == Side::Far => {
                vec!["nsenter".into(), format!("--net=/proc/{}/ns/net", holder.id()).into()]
            }
            _ => Vec::new(),
        }
    }

    /// From now on so many of 1,000 packets of UDP are lost on their way in at each end. What one call has sent
    /// is then cut into packets before it is on the link, as on a wire, so that each is lost by itself.
    pub fn lose(&self, permille: u32) -> Result<(), String> {
        self.at_both_ends("nft add table netdev perf")?;
        self.at_both_ends("nft delete table netdev perf")?;
        self.at_both_ends(&format!(
            "ip link set DEV gso_max_segs {}",
            if permille > 0 { 1 } else { 65_535 }
        ))?;
        if permille > 0 {
            self.at_both_ends("nft add table netdev perf")?;
            let hook = "{ type filter hook ingress device DEV priority 0; }";
            self.at_both_ends(&format!("nft add chain netdev perf in {hook}"))?;
            let share = format!("numgen random mod 1000 < {permille}");
            self.at_both_ends(&format!("nft add rule netdev perf in ip protocol udp {share} drop"))?;
        }
        Ok(())
    }

    /// Has what a processor sends go by a queue of its own at each end.
    pub fn queue_for_each_cpu(&self) -> Result<(), String> {
        // What the run sees of /sys is of the network that it was started in.
        let set = "cd /sys/class/net/DEV/queues; at=0; \
                   for queue in tx-*; do printf %x $((1 << at)) > $queue/xps_cpus; at=$((at + 1)); done";
        let script = format!("mount -t sysfs sysfs /sys && {set}");
        self.each_end(&["unshare", "--mount", "sh", "-ec", &script])
    }

    /// Runs a command of the system at each end, `DEV` in it replaced by the end's interface.
    pub fn at_both_ends(&self, command: &str) -> Result<(), String> {
        self.each_end(&command.split_whitespace().collect::<Vec<_>>())
    }

    fn each_end(&self, words: &[&str]) -> Result<(), String> {
        for (side, interface) in [(Side::Near, INTERFACES[0]), (Side::Far, INTERFACES[1])] {
            let mut command = self.prefix(side);
            command.extend(words.iter().map(|word| word.replace("DEV", interface).into()));
            run_words(&command).map_err(|reason| {
                let shown: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
                format!("{}: {reason}", shown.join(" "))
            })?;
        }
        Ok(())
    }
}

impl Drop for Network {
    /// Its name is free at once: with the second network the kernel would take it away later.
    fn drop(&mut self) {
        if let Network::Link(_) = self {
            let _ = run(&format!("ip link delete {}", INTERFACES[0]));
        }
    }
}

/// Waits until the holder is in a network of its own, a moment after its start.
fn wait_until_apart(pid: u32) -> Result<(), String> {
    let own = std::fs::read_link("/proc/self/ns/net").map_err(|error| error.to_string())?;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while std::time::Instant::now() < end {
        if std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|other| other != own) {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Err("the holder of the second network did not start".to_string())
}
