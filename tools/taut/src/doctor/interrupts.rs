//! Where the interrupts of the interfaces in use are handled, and who moves them about.

use std::collections::BTreeMap;

use taut_nic::Change;

use super::finding::{Finding, Lasts, Mend, Write};
use super::multicast::Link;
use super::system::{System, cpu_list, cpu_ranges};
use crate::store;

/// All checks of this module; `cpus` are the driver's by the configuration, `links` are of the interfaces in use.
pub fn check(system: &System, links: &[Link], cpus: &[usize]) -> Vec<Finding> {
    let interfaces: BTreeMap<&str, u32> = links.iter().map(|link| (link.name.as_str(), link.index)).collect();
    vec![affinity(system, &interfaces, cpus), balancer(system, cpus)]
}

/// The numbers of the interrupts of an interface that /sys shows: those of its device, else those that bear its name.
/// /proc/interrupts is the machine's in every network namespace, so the name alone does not tell whose they are.
fn interrupts_of(system: &System, interface: &str) -> Vec<String> {
    let device = format!("/sys/class/net/{interface}/device");
    // Of a virtual device they belong to the bus device that it hangs on.
    for directory in ["msi_irqs", "../msi_irqs"] {
        if let Ok(numbers) = system.names(&format!("{device}/{directory}"))
            && !numbers.is_empty()
        {
            return numbers;
        }
    }
    let table = system.text("/proc/interrupts").unwrap_or_default();
    let named = |line: &&str| {
        let words = line.split_whitespace();
        words.flat_map(|word| word.split([',', '-'])).any(|word| word == interface)
    };
    let number = |line: &str| line.split_once(':').map(|(number, _)| number.trim().to_owned());
    table.lines().filter(named).filter_map(number).collect()
}

/// The processors on which the next interrupt of this number is handled. It is moved when it comes: until then the kernel
/// tells of the one before.
fn handled_on(system: &System, interrupt: &str) -> Option<String> {
    let of = |name: &str| system.text(&format!("/proc/irq/{interrupt}/{name}")).ok();
    let (handled, asked) = (of("effective_affinity_list")?, of("smp_affinity_list"));
    let may = |asked: &String| cpu_list(&handled).iter().any(|cpu| cpu_list(asked).contains(cpu));
    Some(asked.filter(|asked| !may(asked)).unwrap_or(handled))
}

/// The interrupts that `taut nic apply` has given to processors of the driver alone, where they still are: those of
/// critical queues are to be handled where the program runs.
fn set_up(system: &System, cpus: &[usize]) -> Vec<String> {
    let records = system.text(&store::of_root("nic")).unwrap_or_default();
    let records: Vec<taut_nic::Record> = serde_json::from_str(&records).unwrap_or_default();
    let of = |record: taut_nic::Record| {
        let Change::Interrupt { number, cpus: written } = record.written else { return None };
        let asked = cpu_list(&system.text(&format!("/proc/irq/{number}/smp_affinity_list")).ok()?);
        let is_ours = asked.iter().map(|cpu| *cpu as u32).eq(written);
        (is_ours && asked.iter().all(|cpu| cpus.contains(cpu))).then(|| number.to_string())
    };
    records.into_iter().filter_map(of).collect()
}

/// Of `interfaces`, by their names and numbers.
fn affinity(system: &System, interfaces: &BTreeMap<&str, u32>, cpus: &[usize]) -> Finding {
    let name = "interrupts";
    let (mut seen, mut unseen, mut disturbing) = (Vec::new(), Vec::new(), Vec::new());
    let set_up = set_up(system, cpus);
    for (interface, index) in interfaces {
        if let Err(why) = system.shows_interface(interface, *index) {
            unseen.push(why);
            continue;
        }
        for interrupt in interrupts_of(system, interface) {
            let Some(handled) = handled_on(system, &interrupt) else { continue };
            let is_there = cpu_list(&handled).iter().any(|cpu| cpus.contains(cpu));
            if is_there && !set_up.contains(&interrupt) {
                disturbing.push(interrupt.clone());
            }
            seen.push(format!("{interface} {interrupt} on {handled}"));
        }
    }
    if disturbing.is_empty() {
        return match unseen.first() {
            Some(why) => Finding::not_looked(name, why),
            None if seen.is_empty() => Finding::good(name, "the interfaces in use have none"),
            None => Finding::good(name, seen.join(", ")),
        };
    }
    let seen = seen.join(", ");
    let cost = format!(
        "they are handled on processors of driver_cpus ({cpus:?}), and the driver waits for as long as a burst of \
         them takes"
    );
    let Some(others) = elsewhere(system, cpus) else {
        let command = "leave a processor out of driver_cpus for them";
        return Finding::worth_changing(name, seen, cost).mend(Mend::by_hand(command, Lasts::ForGood, ""));
    };
    let files = disturbing.iter().map(|interrupt| format!("/proc/irq/{interrupt}/smp_affinity_list"));
    let files: Vec<String> = files.collect();
    let command = format!("echo {others} | tee {}", files.join(" "));
    let to_others = |path| Write { path, value: others.clone(), of_namespace: false };
    let mend = Mend::writes(command, files.into_iter().map(to_others).collect());
    Finding::worth_changing(name, seen, cost).mend(mend)
}

/// The processors that are not the driver's, as the kernel writes them; `None` if there are none.
fn elsewhere(system: &System, cpus: &[usize]) -> Option<String> {
    let online = system.text("/sys/devices/system/cpu/online").unwrap_or_default();
    let others: Vec<usize> = cpu_list(&online).into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
    (!others.is_empty()).then(|| cpu_ranges(&others))
}

fn balancer(system: &System, cpus: &[usize]) -> Finding {
    let name = "irqbalance";
    let processes = match system.names("/proc") {
        Ok(names) => names,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    let runs = processes
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|pid| system.text(&format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "irqbalance"));
    if !runs {
        return Finding::good(name, "does not run");
    }
    if cpus.is_empty() {
        return Finding::good(name, "runs; driver_cpus keeps no processor for the driver");
    }
    let cost = "it moves interrupts to the driver's processors again, whatever was set";
    let mend = Mend::by_hand(
        "systemctl disable --now irqbalance",
        Lasts::ForGood,
        "systemctl enable --now irqbalance",
    );
    Finding::worth_changing(name, "runs", cost).mend(mend)
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::super::fix::tests::mends_and_takes_back;
    use super::super::system::tests::tree;
    use super::*;

    const TABLE: &str = "            CPU0  CPU1\n 24:   0   0   PCI-MSIX-0000:00:01.0  0-edge  eth0-rx-0\n \
                         25:   0   0   PCI-MSIX-0000:00:01.0  1-edge   eth01-rx-0\n";

    fn of_index_2<'a>(names: &[&'a str]) -> BTreeMap<&'a str, u32> {
        names.iter().map(|name| (*name, 2)).collect()
    }

    const ETH0: (&str, &str) = ("/sys/class/net/eth0/ifindex", "2\n");

    /// The interrupts of the machine are moved by nobody who has an interface of the same name in another network.
    #[test]
    fn those_of_another_network() {
        let (_directory, system) = tree(&[
            ETH0,
            ("/sys/class/net/eth0/device/msi_irqs/24", "msix"),
            ("/proc/interrupts", TABLE),
            ("/proc/irq/24/effective_affinity_list", "0\n"),
        ]);
        let of = |index| affinity(&system, &BTreeMap::from([("eth0", index)]), &[0]);
        assert_eq!(of(2).state, State::WorthChanging);
        let found = of(9);
        assert_eq!((found.state, found.mend), (State::NotLooked, None));
        assert!(found.seen.contains("another network namespace"), "{}", found.seen);
        // Nor are those that only a name in the table of the machine tells of.
        let found = affinity(&system, &BTreeMap::from([("eth01", 2)]), &[0]);
        assert_eq!((found.state, found.mend), (State::NotLooked, None));
    }

    #[test]
    fn interrupts_on_the_drivers_processors() {
        let (_directory, system) = tree(&[
            ETH0,
            ("/sys/class/net/lo/ifindex", "2\n"),
            ("/proc/interrupts", TABLE),
            ("/proc/irq/24/effective_affinity_list", "1\n"),
            ("/proc/irq/25/effective_affinity_list", "0\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
        ]);
        let of = |cpus: &[usize]| affinity(&system, &of_index_2(&["eth0"]), cpus);
        assert_eq!((of(&[0]).state, of(&[0]).seen), (State::Good, "eth0 24 on 1".to_owned()));
        let mend = of(&[1, 2]).mend.unwrap();
        assert_eq!(mend.command, "echo 0,3 | tee /proc/irq/24/smp_affinity_list");
        let writes: Vec<_> =
            mend.writes.iter().map(|write| (write.path.as_str(), write.value.as_str())).collect();
        assert_eq!(writes, [("/proc/irq/24/smp_affinity_list", "0,3")]);
        let mend = of(&[0, 1, 2, 3]).mend.unwrap();
        assert!(mend.writes.is_empty() && mend.command.contains("driver_cpus"), "there is nowhere else");
        assert_eq!(affinity(&system, &of_index_2(&["lo"]), &[1]).state, State::Good);
    }

    #[test]
    fn interrupts_that_were_moved_come_back() {
        let files = [
            ETH0,
            ("/sys/class/net/eth01/ifindex", "2\n"),
            ("/proc/interrupts", TABLE),
            ("/proc/irq/24/effective_affinity_list", "1\n"),
            ("/proc/irq/24/smp_affinity_list", "0-1\n"),
            ("/proc/irq/25/effective_affinity_list", "1\n"),
            ("/proc/irq/25/smp_affinity_list", "1\n"),
            ("/sys/devices/system/cpu/online", "0-1\n"),
        ];
        mends_and_takes_back(&files, |system| affinity(system, &of_index_2(&["eth0", "eth01"]), &[1]));
    }

    #[test]
    fn one_that_moves_with_the_next() {
        let (_directory, system) = tree(&[
            ETH0,
            ("/proc/interrupts", TABLE),
            ("/proc/irq/24/effective_affinity_list", "1\n"),
            ("/proc/irq/24/smp_affinity_list", "0-1\n"),
            ("/sys/devices/system/cpu/online", "0-1\n"),
        ]);
        let found = || affinity(&system, &of_index_2(&["eth0"]), &[1]);
        let write = found().mend.unwrap().writes.remove(0);
        system.write(&write.path, &write.value).unwrap();
        assert_eq!((found().state, found().seen), (State::Good, "eth0 24 on 0".to_owned()));
    }

    /// What `taut nic apply` wants there stays, unless somebody has moved it since.
    #[test]
    fn those_of_a_critical_queue() {
        let of = |driver: usize, asked: &str| {
            let records = r#"[{"interface":"eth0","index":2,"namespace":"net:[1]","cookie":null,
                "item":"interrupt of queue 3","before":{"interrupt":{"number":24,"cpus":[0,1,2,3]}},
                "written":{"interrupt":{"number":24,"cpus":[3]}},"replaced":null}]"#;
            let (_directory, system) = tree(&[
                ETH0,
                ("/run/taut/nic.json", records),
                ("/proc/interrupts", TABLE),
                ("/proc/irq/24/effective_affinity_list", "3\n"),
                ("/proc/irq/24/smp_affinity_list", asked),
                ("/sys/devices/system/cpu/online", "0-3\n"),
            ]);
            let found = affinity(&system, &of_index_2(&["eth0"]), &[driver]);
            (found.state, found.mend.is_some())
        };
        assert_eq!(of(3, "3\n"), (State::Good, false));
        assert_eq!(of(3, "0-3\n"), (State::WorthChanging, true));
        assert_eq!(of(2, "3\n"), (State::Good, false), "it is elsewhere");
    }

    #[test]
    fn those_of_the_device_behind_the_interface() {
        let (_directory, system) = tree(&[
            ETH0,
            ("/sys/class/net/eth0/device/msi_irqs/41", "msix"),
            ("/proc/irq/41/effective_affinity_list", "0\n"),
        ]);
        assert_eq!(affinity(&system, &of_index_2(&["eth0"]), &[]).seen, "eth0 41 on 0");
    }

    #[test]
    fn who_moves_them() {
        let (_directory, system) = tree(&[("/proc/17/comm", "irqbalance\n"), ("/proc/sys/a", "")]);
        assert_eq!(balancer(&system, &[]).state, State::Good);
        assert_eq!(balancer(&system, &[1]).state, State::WorthChanging);
    }
}
