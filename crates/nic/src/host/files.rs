//! What the kernel tells and takes by files: XPS, interrupts, processors, and which queueing disciplines it has.

use std::collections::BTreeSet;
use std::{fs, io};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;

use super::{refused, wrong};
use crate::facts::{Interrupt, Seen, list};

/// Where the interfaces are.
const NET: &str = "/sys/class/net";

/// Bytes of an address of Ethernet. Those of other kinds are compared by none.
const ETHERNET: usize = 6;

/// The disciplines that a plan may name, with a function that is in the kernel's table of symbols if they are in it.
const KINDS: [(&str, &str); 4] =
    [("pfifo", "fifo_init"), ("mq", "mq_init"), ("mqprio", "mqprio_init"), ("taprio", "taprio_init")];

/// Is /sys that of the network namespace of this process? It is if it has the same interfaces: names and numbers are alike
/// in many, their addresses are not.
///
/// *Errors*: a sentence with the remedy; then its files are those of other interfaces.
pub fn is_ours() -> Result<(), String> {
    let elsewhere = "/sys is that of another network namespace: run it by `ip netns exec`, or \
                     `mount -t sysfs sysfs /sys`";
    let here = getifaddrs().map_err(|error| refused("getifaddrs", error))?;
    let here = here.filter_map(|one| {
        let link = *one.address.as_ref()?.as_link_addr()?;
        let address = link.addr().filter(|_| link.halen() == ETHERNET).map(hex).unwrap_or_default();
        Some((one.interface_name, link.ifindex(), address))
    });
    let here: BTreeSet<(String, usize, String)> = here.collect();
    let listed = fs::read_dir(NET).map_err(|error| wrong("readdir", NET, &error))?;
    let listed = listed.flatten().map(|one| one.file_name().to_string_lossy().into_owned());
    // What has no index is no interface: a file of the bonding driver.
    let indexed = listed.filter_map(|name| {
        let text = |file| fs::read_to_string(format!("{NET}/{name}/{file}")).ok();
        let index = text("ifindex")?.trim().parse().ok()?;
        let address = text("address").filter(|_| text("addr_len").is_some_and(|len| len.trim() == "6"));
        Some((name, index, address.unwrap_or_default().trim().to_owned()))
    });
    if indexed.collect::<BTreeSet<_>>() == here { Ok(()) } else { Err(elsewhere.to_owned()) }
}

/// An address as the kernel writes it.
fn hex(address: [u8; ETHERNET]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// The processors that are online.
pub fn cpus() -> Vec<u32> {
    numbers(&fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default())
}

/// The processors of each transmit queue.
pub fn xps(interface: &str) -> Seen<Vec<Vec<u32>>> {
    let mut queues = Vec::new();
    let directory = format!("{NET}/{interface}/queues");
    let names = fs::read_dir(&directory).map_err(|error| wrong("readdir", &directory, &error))?;
    let count = names.flatten().filter(|name| name.file_name().to_string_lossy().starts_with("tx-")).count();
    for queue in 0..count {
        let path = xps_path(interface, queue);
        queues.push(of_xps(fs::read_to_string(&path)).map_err(|error| wrong("read", &path, &error))?);
    }
    Ok(queues)
}

/// What the file of a queue says. One that mqprio has given to no class has no processors, and says that it is not valid.
fn of_xps(read: io::Result<String>) -> io::Result<Vec<u32>> {
    match read {
        Err(error) if is_in_no_class(&error) => Ok(Vec::new()),
        read => read.map(|text| of_mask(&text)),
    }
}

fn is_in_no_class(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EINVAL as i32)
}

pub fn set_xps(interface: &str, queue: u32, cpus: &[u32]) -> Result<(), String> {
    let path = xps_path(interface, queue as usize);
    fs::write(&path, mask(cpus)).map_err(|error| wrong("write", &path, &error))
}

/// The same of a queue that had them before, if it may still have any.
pub fn restore_xps(interface: &str, queue: u32, cpus: &[u32]) -> Result<(), String> {
    let path = xps_path(interface, queue as usize);
    match fs::write(&path, mask(cpus)) {
        Err(error) if is_in_no_class(&error) => Ok(()),
        written => written.map_err(|error| wrong("write", &path, &error)),
    }
}

fn xps_path(interface: &str, queue: usize) -> String {
    format!("{NET}/{interface}/queues/tx-{queue}/xps_cpus")
}

/// The interrupts of a device, by their names in /proc/interrupts.
pub fn interrupts(interface: &str) -> Vec<Interrupt> {
    let table = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let known: BTreeSet<u32> = fs::read_dir(format!("{NET}/{interface}/device/msi_irqs"))
        .map(|names| {
            names.flatten().filter_map(|name| name.file_name().to_string_lossy().parse().ok()).collect()
        })
        .unwrap_or_default();
    let mut found = of_table(&table, interface, &known);
    for interrupt in &mut found {
        let path = affinity_path(interrupt.number);
        interrupt.cpus = numbers(&fs::read_to_string(path).unwrap_or_default());
    }
    found
}

pub fn set_interrupt(number: u32, cpus: &[u32]) -> Result<(), String> {
    let path = affinity_path(number);
    fs::write(&path, list(cpus)).map_err(|error| wrong("write", &path, &error))
}

fn affinity_path(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

/// The lines that are about the interface: its name stands in them, or their number is one of the device's. The
/// queue is the number at the end of the name, as in `eth0-TxRx-3` or, behind the name of the driver, `ice-eth0-TxRx-3`;
/// a number that also counts processors before queues cannot be told from it, and no driver writes such.
fn of_table(table: &str, interface: &str, known: &BTreeSet<u32>) -> Vec<Interrupt> {
    let mut found = Vec::new();
    let within = format!("-{interface}-");
    for line in table.lines() {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let Ok(number) = number.trim().parse() else { continue };
        let name = format!("-{}-", rest.split_whitespace().last().unwrap_or_default());
        let tail = name.split_once(&within).map(|(_, tail)| tail.trim_end_matches('-'));
        if tail.is_none() && !known.contains(&number) {
            continue;
        }
        let queue = tail.and_then(|tail| tail.rsplit('-').next()).and_then(|last| last.parse().ok());
        found.push(Interrupt { number, queue, cpus: Vec::new() });
    }
    found
}

/// Those of the disciplines that are in the kernel, or in a module that it would load.
pub fn kinds() -> Vec<String> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let built_in: BTreeSet<&str> =
        symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modules =
        fs::read_to_string(format!("/lib/modules/{}/modules.dep", release.trim())).unwrap_or_default();
    let is_there = |(kind, symbol): &(&str, &str)| {
        built_in.contains(symbol) || modules.lines().any(|line| line.contains(&format!("/sch_{kind}.ko")))
    };
    KINDS.iter().filter(|known| is_there(known)).map(|(kind, _)| (*kind).to_owned()).collect()
}

/// Numbers of a list as `0-2,5`.
fn numbers(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Numbers of the bits of a mask as `ff,00000003`: groups of 32, the highest first.
fn of_mask(text: &str) -> Vec<u32> {
    let groups = text.trim().split(',').rev().map(|group| u32::from_str_radix(group, 16).unwrap_or(0));
    let numbered = (0..).step_by(32).zip(groups);
    numbered
        .flat_map(|(base, bits)| (0..32).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| base + bit))
        .collect()
}

fn mask(numbers: &[u32]) -> String {
    let last = numbers.iter().max().map_or(0, |last| last / 32);
    let group = |group: u32| {
        let bits = numbers.iter().filter(|number| **number / 32 == group);
        format!("{:08x}", bits.fold(0_u32, |all, number| all | 1 << (number % 32)))
    };
    (0..=last).rev().map(group).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_no_class_has_no_processors_and_hides_none_of_the_others() {
        let of = |errno| of_xps(Err(io::Error::from_raw_os_error(errno as i32)));
        assert!(of(Errno::EINVAL).unwrap().is_empty());
        assert!(of(Errno::EACCES).is_err());
        assert_eq!(of_xps(Ok("5\n".into())).unwrap(), [0, 2]);
    }

    #[test]
    fn masks_and_lists() {
        for all in [vec![], vec![0], vec![1, 31, 32, 70]] {
            assert_eq!(of_mask(&mask(&all)), all);
        }
        assert_eq!((mask(&[0, 33]).as_str(), of_mask("3\n")), ("00000002,00000001", vec![0, 1]));
        assert_eq!((numbers("0-2,5\n"), numbers("")), (vec![0, 1, 2, 5], vec![]));
    }

    #[test]
    fn interrupts_of_a_device_and_of_its_queues() {
        let table = "       CPU0  CPU1\n 120:  1  2  PCI-MSIX-0000:02:00.0  0-edge  i40e-enp2s0-TxRx-0\n \
                     121:  1  2  PCI-MSIX-0000:02:00.0  0-edge  ice-enp2s0-TxRx-3\n \
                     122:  1  2  PCI-MSIX-0000:02:00.0  0-edge  ice-enp2s0np1-TxRx-3\n \
                     123:  1  2  PCI-MSIX-0000:02:00.0  0-edge  xenp2s0-TxRx-3\n \
                     124:  1  2  PCI-MSIX-0000:02:00.0  0-edge  enp2s0\n \
                     125:  3  4  PCI-MSIX-0000:02:00.0  1-edge  enp2s0-TxRx-0\n \
                     128:  3  4  PCI-MSIX-0000:02:00.0  4-edge  enp2s0-TxRx-3\n \
                     130:  3  4  PCI-MSIX-0000:03:00.0  4-edge  enp2s01-TxRx-3\n 131: 1 1 edge mlx5\n NMI: 0 0\n";
        let found = of_table(table, "enp2s0", &BTreeSet::from([131]));
        let told: Vec<_> = found.iter().map(|one| (one.number, one.queue)).collect();
        assert_eq!(
            told,
            [(120, Some(0)), (121, Some(3)), (124, None), (125, Some(0)), (128, Some(3)), (131, None)]
        );
    }
}
