//! What all trials of a run share: the adapters, the networks, the numbers of domains, a place for files.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::args::Pin;
use crate::case::Case;
use crate::catalog::Catalog;
use crate::namespace::run;
use crate::network::Network;
use crate::session::Trouble;
use crate::{Stop, Wrong};

/// The highest domain of the contract: ports of the specification stay below 65,536 with it.
const DOMAIN_LAST: u32 = 200;

/// The cores that this process may run on: who started it may want some of them kept free.
fn cores() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return vec![0] };
    (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect()
}

/// The means of a run.
pub struct Bench {
    /// Ctrl-C.
    pub stop: Stop,
    /// The adapters.
    pub catalog: Catalog,
    scratch: TempDir,
    domain_base: u32,
    domain: Cell<u32>,
    cores: Vec<usize>,
    loopback: Rc<Network>,
    link: RefCell<Option<Link>>,
    fifo: RefCell<BTreeMap<u8, Result<(), String>>>,
}

impl Bench {
    /// With a directory of its own below `scratch`.
    pub fn new(stop: Stop, catalog: Catalog, scratch: PathBuf, domain_base: u32) -> Result<Bench, Wrong> {
        let scratch = tempfile::Builder::new()
            .prefix("taut-perf-")
            .tempdir_in(&scratch)
            .map_err(|error| Wrong(format!("{}: {error}; make room there", scratch.display())))?;
        Ok(Bench {
            stop,
            catalog,
            scratch,
            domain_base,
            domain: Cell::new(domain_base),
            cores: cores(),
            loopback: Rc::new(Network::Loopback),
            link: RefCell::new(None),
            fifo: RefCell::default(),
        })
    }

    /// Where files of samples go.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A domain that the last trials did not use: what they left in queues reaches nobody.
    pub fn next_domain(&self) -> u32 {
        let domain = self.domain.get();
        self.domain.set(if domain >= DOMAIN_LAST { self.domain_base } else { domain + 1 });
        domain
    }

    /// The core of this number among those that the run was given; from the first again behind the last.
    pub fn core(&self, number: usize) -> usize {
        self.cores.get(number % self.cores.len().max(1)).copied().unwrap_or(0)
    }

    /// Leaves the first core to the processes of a case that are pinned to it. What is not pinned inherits the
    /// driver's cores, which are all that the run was given then.
    pub fn step_aside(&self, case: &Case) -> Result<(), String> {
        let first = usize::from(case.pin == Pin::Same && self.cores.len() > 1);
        let mut cores = CpuSet::new();
        for core in self.cores.iter().skip(first) {
            cores.set(*core).map_err(|error| format!("core {core}: {error}"))?;
        }
        // Refused where the set has become smaller meanwhile: then the driver stays where it is.
        let _ = sched_setaffinity(Pid::from_raw(0), &cores);
        Ok(())
    }

    /// May processes run with this priority of SCHED_FIFO here? Asked once for each: a limit allows the lower ones.
    pub fn check_fifo(&self, priority: u8) -> Result<(), Trouble> {
        let mut known = self.fifo.borrow_mut();
        let allowed = known.entry(priority).or_insert_with(|| run(&format!("chrt -f {priority} true")));
        allowed.clone().map_err(|reason| Trouble::Absent(no_fifo(priority, &reason)))
    }

    /// The network of a case. There is one link at a time, with the queues and the MTU that the case wants.
    pub fn network(&self, case: &Case) -> Result<Rc<Network>, Trouble> {
        if !case.needs_link() {
            return Ok(self.loopback.clone());
        }
        let mut kept = self.link.borrow_mut();
        let before = kept.take_if(|link| (link.queues, link.mtu) != (case.queues, case.mtu));
        drop(before);
        let link = kept.get_or_insert_with(|| Link {
            queues: case.queues,
            mtu: case.mtu,
            loss_permille: Some(0),
            network: Network::link(case.queues, case.mtu).map(Rc::new),
        });
        let network = link
            .network
            .as_ref()
            .map_err(|reason| Trouble::Absent(format!("no link between two networks: {reason}")))?;
        make_so(&mut link.loss_permille, case.loss_permille, |permille| network.lose(permille))
            .map_err(|reason| Trouble::Absent(format!("no loss: {reason}")))?;
        Ok(network.clone())
    }
}

/// Makes something as it is wanted, unless it is known to be so. After a failure nobody knows what it is.
fn make_so<T: Copy + PartialEq>(
    known: &mut Option<T>,
    wanted: T,
    make: impl FnOnce(T) -> Result<(), String>,
) -> Result<(), String> {
    if *known != Some(wanted) {
        *known = None;
        make(wanted)?;
        *known = Some(wanted);
    }
    Ok(())
}

/// Why nothing runs with this priority, and what allows it.
fn no_fifo(priority: u8, reason: &str) -> String {
    format!(
        "no SCHED_FIFO here: {reason}: run it as root, or allow it by `ulimit -r {priority}` (LimitRTPRIO={priority} \
         for a service)"
    )
}

/// The link that was needed last, or why there is none.
struct Link {
    queues: u32,
    mtu: u32,
    /// What it loses; `None` after it could not be made to.
    loss_permille: Option<u32>,
    network: Result<Rc<Network>, String>,
}

#[cfg(test)]
mod tests {
    use super::make_so;

    #[test]
    fn what_could_not_be_made_so_is_tried_again_by_the_next() {
        let mut known = Some(0);
        for _ in 0..2 {
            assert!(make_so(&mut known, 10, |_| Err("no nft".into())).is_err(), "of each peer");
        }
        let mut made = Vec::new();
        for wanted in [0, 10, 10, 0] {
            let make = |now| {
                made.push(now);
                Ok(())
            };
            make_so(&mut known, wanted, make).unwrap();
        }
        assert_eq!(made, [0, 10, 0], "what may be half made is taken back");
    }
}
