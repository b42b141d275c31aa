//! What can be told of DPDK without starting it: the memory that it asks for. Its devices are the participant's to open.

use taut::Config;

use super::super::finding::{Finding, Lasts, Mend};
use super::super::system::{System, Unseen};

/// Where the kernel tells of reserved huge pages, a directory for each size.
const POOLS: &str = "/sys/kernel/mm/hugepages";
/// How many pages to reserve, as DPDK's refusal says it: 1 GiB of the usual size.
const USUAL: u32 = 512;

/// What is found where the configuration names a device; `is_built`: this command is built with DPDK.
pub fn check(system: &System, config: &Config, is_built: bool) -> Vec<Finding> {
    if config.dpdk_device.is_empty() {
        return Vec::new();
    }
    let why = if is_built {
        "a device has one user, and DPDK starts once in a process: the participant says what is refused"
    } else {
        "this command is built without DPDK and makes no such participant; a program needs the feature `dpdk` of the \
         crate taut"
    };
    let device = Finding::not_looked("device of DPDK", format!("{}: {why}", config.dpdk_device));
    let pages = config.dpdk_huge_pages.then(|| huge_pages(system));
    [device].into_iter().chain(pages).collect()
}

/// How many are needed DPDK alone knows; with none it does not start.
fn huge_pages(system: &System) -> Finding {
    let name = "huge pages of DPDK";
    let free = match free(system) {
        Ok(free) => free,
        Err(unseen) => return Finding::not_looked(name, unseen),
    };
    if free > 0 {
        return Finding::good(name, format!("{free} reserved ones are free"));
    }
    let before = system.text("/proc/sys/vm/nr_hugepages").unwrap_or_else(|_| "0".to_owned());
    let command = format!("sysctl -w vm.nr_hugepages={USUAL}   # or dpdk_huge_pages = false");
    let mend = Mend::by_hand(command, Lasts::UntilReboot, format!("sysctl -w vm.nr_hugepages={before}"));
    let cost = "dpdk_huge_pages is refused: no participant can be made";
    Finding::harmful(name, "no reserved one is free", cost).mend(mend)
}

/// Reserved pages of any size that nobody has.
fn free(system: &System) -> Result<u64, Unseen> {
    let pools = system.names(POOLS)?.into_iter();
    pools.map(|pool| system.number::<u64>(&format!("{POOLS}/{pool}/free_hugepages"))).sum()
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::State;
    use super::super::super::system::tests::tree;
    use super::*;

    #[test]
    fn what_dpdk_asks_for() {
        let found = |small: &str, dpdk_huge_pages, is_built| {
            let (_directory, system) = tree(&[
                ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", small),
                ("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0\n"),
                ("/proc/sys/vm/nr_hugepages", "3\n"),
            ]);
            let dpdk_device = "net_null0".to_owned();
            check(&system, &Config { dpdk_device, dpdk_huge_pages, ..Config::default() }, is_built)
        };
        let states = |found: &[Finding]| found.iter().map(|one| one.state).collect::<Vec<_>>();
        assert_eq!(states(&found("0\n", false, true)), [State::NotLooked]);
        assert!(
            found("0\n", false, false)[0].seen.starts_with("net_null0: this command is built without DPDK")
        );
        let none = found("0\n", true, true);
        assert_eq!(states(&none), [State::NotLooked, State::Harmful]);
        let mend = none[1].mend.as_ref().unwrap();
        assert!(mend.command.starts_with("sysctl -w vm.nr_hugepages=512 "), "{mend:?}");
        assert_eq!(mend.undo, "sysctl -w vm.nr_hugepages=3");
        let some = found("7\n", true, true);
        assert_eq!((some[1].state, some[1].seen.as_str()), (State::Good, "7 reserved ones are free"));
        let (_directory, system) = tree(&[]);
        assert!(check(&system, &Config::default(), true).is_empty());
    }
}
