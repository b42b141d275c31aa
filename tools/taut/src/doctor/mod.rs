//! `taut doctor`: what of this machine keeps a DDS from its bound on latency, or from being found, and how to mend
//! that.
//!
//! Looks at files of the kernel, at the rules of the firewall, and tries what can be tried. Each check is a function
//! of what was read. Changes nothing unless asked to; then values in /proc/sys, /proc/irq and /sys, a route to the groups
//! of discovery, the flag of an interface for multicast and rules of nftables that accept the ports of a domain. It runs `nft` for those, and no other program.

mod addition;
mod bypass;
mod finding;
mod firewall;
mod fix;
mod flag;
mod groups;
mod interrupts;
mod measure;
mod memory;
mod multicast;
mod power;
mod probe;
mod route;
mod scheduling;
mod sockets;
mod still;
mod system;
mod text;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use taut::Config;
use taut_perf::words::counted;

use crate::args::{DoctorArguments, Network};
use crate::failure::{End, Failure};
use crate::output;
use crate::store;
use finding::{Finding, Lasts, Mend, State};
use fix::{Change, Ledger};
use multicast::Link;
use system::System;

/// The exit code for a machine on which something is harmful: its set-up is wrong.
const HARMFUL: u8 = 2;

/// Findings with the family that each belongs to.
type Findings = Vec<(&'static str, Finding)>;

/// Runs the command.
pub fn run(network: &Network, options: &DoctorArguments) -> Result<End, Failure> {
    let system = System::host();
    if options.undo {
        return undo(&system, options);
    }
    let config = network.config()?;
    let (links, mut findings) = look(&system, &config, options.measure);
    let mut changes = Vec::new();
    if options.fix {
        changes = apply(&system, &findings)?;
        if changes.is_empty() && !options.json {
            output::line("nothing that --fix could mend")?;
        }
        print_changes(&changes, options.json)?;
        findings = look(&system, &config, options.measure).1;
    }
    if options.json {
        for (family, finding) in &findings {
            output::json(&object(family, finding))?;
        }
    } else {
        if options.fix {
            output::line("")?;
        }
        let page = text::page(config.domain_id, &in_use(&links), &findings, text::Look::of_stdout());
        output::line(page.trim_end())?;
    }
    ended(&changes, &findings)
}

/// Takes back what --fix has changed, and forgets before that what it is told to.
fn undo(system: &System, options: &DoctorArguments) -> Result<End, Failure> {
    let mut ledger = Ledger::open_existing(store::directory("taut doctor --undo")?, store::namespace()?)?;
    let mut changes = options.forget.as_deref().map_or(Ok(Vec::new()), |name| ledger.forget(name))?;
    if let Some(name) = options.forget.as_deref().filter(|_| changes.is_empty() && !options.json) {
        output::line(&format!("nothing is recorded of {name}"))?;
    }
    // That is done, whatever comes of the rest.
    print_changes(&changes, options.json)?;
    let undone = ledger.undo(system)?;
    print_changes(&undone, options.json)?;
    changes.extend(undone);
    if changes.is_empty() && !store::is_root() && store::has_of_root("doctor") {
        return Err(Failure::Wrong(
            "nothing that you have changed; what root has, root takes back: `sudo taut doctor --undo`".into(),
        ));
    }
    if changes.is_empty() && !options.json {
        output::line("nothing to undo")?;
    }
    ended(&changes, &[])
}

/// 1 if the system refused a change, 2 if something harmful is left.
fn ended(changes: &[Change], findings: &[(&'static str, Finding)]) -> Result<End, Failure> {
    let refused = changes.iter().filter(|change| change.refused).count();
    if refused > 0 {
        return Err(Failure::System(format!(
            "{refused} of {} could not be changed",
            counted(changes.len(), "value")
        )));
    }
    let harmful = findings.iter().any(|(_, finding)| finding.state == State::Harmful);
    Ok(if harmful { End::Code(HARMFUL) } else { End::Done })
}

/// All checks, in the order of their families.
fn look(system: &System, config: &Config, measure: bool) -> (Vec<Link>, Findings) {
    let (links, none) = match config.network_interfaces() {
        Ok(interfaces) => (probe::links(&interfaces), None),
        Err(error) => {
            let cost = "no participant can be made";
            (Vec::new(), Some(Finding::harmful("network interfaces", error.to_string(), cost)))
        }
    };
    let v6 = links.iter().any(|link| link.address.is_ipv6());
    let names: BTreeSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let cpus = &config.driver_cpus;
    let priority = config.driver_priority.max(1);
    let tried = scheduling::Tried {
        priority,
        fifo: measure::fifo(priority),
        cpus: measure::cpus(cpus),
        stall: measure.then(measure::stall),
        clock_ns: measure::clock_ns(),
    };
    let still = measure.then(|| still::look(cpus));
    let rules = firewall::rules();
    let rules = rules.as_ref().map_err(String::as_str);
    let asked_ports = firewall::Ports {
        first: probe::first_port(config.domain_id),
        critical: config.critical_port,
        multicast: config.multicast,
    };
    let locks = memory::Locks { lanes: config.lock_memory, process: config.lock_process };
    let directory = config.local_directory.as_deref().filter(|_| config.local);
    let deadline = config.driver_deadline.map(measure::deadline);
    let asked = bypass::Asked::by(config, system);
    let families = [
        ("multicast", none.into_iter().collect()),
        ("multicast", multicast::check(system, &links, config.multicast, &config.initial_peers)),
        ("firewall", firewall::check(system, rules, &links, &asked_ports)),
        ("self-test", probe::check(&links, config.domain_id, config.multicast)),
        ("sockets", sockets::check(system, config.receive_buffer as u64, v6)),
        ("scheduling", scheduling::check(system, config.driver_priority, cpus, &tried)),
        ("scheduling", scheduling::deadline(system, deadline).into_iter().collect()),
        ("scheduling", still::check(system, still).into_iter().collect()),
        ("power", power::check(system, &measure::waking())),
        ("interrupts", interrupts::check(system, &links, cpus)),
        ("groups", groups::check(system)),
        ("bypass", bypass::check_device(system, asked.as_ref(), &names)),
        ("bypass", bypass::check(system, asked.as_ref())),
        ("bypass", bypass::check_dpdk(system, config, cfg!(feature = "dpdk"))),
        ("memory", memory::check(system, locks, config.prefault)),
        ("memory", directory.map(memory::local_directory).into_iter().collect()),
    ];
    let findings = families.into_iter().flat_map(|(family, findings)| {
        let named = move |finding| (family, finding);
        findings.into_iter().map(named).collect::<Vec<_>>()
    });
    (links, findings.collect())
}

/// The interfaces with their addresses.
fn in_use(links: &[Link]) -> String {
    let shown: Vec<String> = links.iter().map(|link| format!("{} ({})", link.name, link.address)).collect();
    if shown.is_empty() { "no interface".to_owned() } else { shown.join(", ") }
}

/// Writes and adds what the findings ask for.
fn apply(system: &System, findings: &Findings) -> Result<Vec<Change>, Failure> {
    let mends = findings.iter().filter_map(|(_, finding)| finding.mend.as_ref());
    let mends: Vec<&Mend> = mends.filter(|mend| mend.is_by_fix()).collect();
    if mends.is_empty() {
        return Ok(Vec::new());
    }
    let mut ledger = Ledger::open(store::directory("taut doctor --fix")?, store::namespace()?)?;
    let (mut changes, mut added) = (Vec::new(), Vec::new());
    for mend in mends {
        changes.extend(mend.writes.iter().map(|write| ledger.apply(system, write)));
        // Two chains may lead to what drops.
        if let Some(addition) = mend.adds.as_ref().filter(|addition| !added.contains(addition)) {
            changes.push(ledger.add(addition));
            added.push(addition);
        }
    }
    Ok(changes)
}

fn print_changes(changes: &[Change], json: bool) -> Result<(), Failure> {
    if json {
        for change in changes {
            output::json(&json!({
                "kind": "change",
                "path": change.path,
                "from": change.from,
                "to": change.to,
                "left": change.left,
            }))?;
        }
        return Ok(());
    }
    for line in text::changes(changes) {
        output::line(&line)?;
    }
    Ok(())
}

fn object(family: &str, finding: &Finding) -> Value {
    let mend = finding.mend.as_ref().map(|mend| {
        json!({
            "command": mend.command,
            "fix": mend.is_by_fix(),
            "survives_reboot": mend.lasts != Lasts::UntilReboot,
            "can_be_undone": mend.can_be_undone(),
            "undo": mend.undo(),
        })
    });
    json!({
        "kind": "finding",
        "family": family,
        "name": finding.name,
        "state": finding.state.name(),
        "seen": finding.seen,
        "cost": finding.cost,
        "mend": mend,
    })
}
