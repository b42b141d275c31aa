//! A NIC of which only the facts are there: for plans of another machine, and for tests.

use crate::apply::Machine;
use crate::change::{Change, Qdisc};
use crate::facts::{Facts, Qdiscs, Rule};

/// A machine that is its facts.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The facts as they are after the changes so far.
    pub facts: Facts,
    /// How many changes it makes before it refuses one.
    pub refuses_after: Option<usize>,
}

impl Recorded {
    /// A machine that makes every change.
    ///
    /// ```
    /// let facts = serde_json::from_str(include_str!("../facts/i210.json")).unwrap();
    /// let mut machine = taut_nic::Recorded::new(facts);
    /// taut_nic::Machine::change(&mut machine, &taut_nic::Change::Ring(512)).unwrap();
    /// assert_eq!(machine.facts.ring.unwrap().rx, 512);
    /// ```
    pub fn new(facts: Facts) -> Recorded {
        Recorded { facts, refuses_after: None }
    }

    /// The spread that a driver begins with: as the source of igb and igc has it, a row for each queue.
    fn even(entries: usize, queues: u32) -> Vec<u32> {
        (0..entries).map(|at| (at * queues as usize / entries.max(1)) as u32).collect()
    }

    /// The disciplines as they are after this one was set.
    fn qdiscs(qdisc: &Qdisc) -> Qdiscs {
        if *qdisc == Qdisc::Default {
            return Qdiscs { root: "mq".to_owned(), handle: 0, leaves: Vec::new() };
        }
        let leaves = (0..qdisc.leaves()).map(|queue| (queue, "pfifo".to_owned())).collect();
        Qdiscs { root: qdisc.kind().to_owned(), handle: qdisc.handle(), leaves }
    }
}

impl Machine for Recorded {
    fn facts(&mut self) -> Result<Facts, String> {
        Ok(self.facts.clone())
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        match &mut self.refuses_after {
            Some(0) => return Err("it refuses; ask for less".to_owned()),
            Some(left) => *left -= 1,
            None => {}
        }
        let absent = || "there is no such setting".to_owned();
        match change {
            Change::Channels { combined, rx, tx } => {
                let channels = self.facts.channels.as_mut().map_err(|why| why.clone())?;
                (channels.combined, channels.rx, channels.tx) = (*combined, *rx, *tx);
                if let Ok(xps) = &mut self.facts.xps {
                    xps.resize((combined + tx) as usize, Vec::new());
                }
                // A driver spreads anew over other queues.
                if let Ok(table) = &mut self.facts.spread {
                    *table = Recorded::even(table.len(), combined + rx);
                }
            }
            Change::Ring(frames) => self.facts.ring.as_mut().map_err(|why| why.clone())?.rx = *frames,
            Change::Coalescing(coalescing) => self.facts.coalescing = Ok(*coalescing),
            Change::Ntuple(on) => self.facts.features.ntuple.as_mut().ok_or_else(absent)?.on = *on,
            Change::Rule { location, rule } => {
                let rules = &mut self.facts.rules.as_mut().map_err(|why| why.clone())?.rules;
                rules.retain(|other| other.location != *location);
                rules.extend(rule.map(|(frames, queue)| Rule { location: *location, queue, frames }));
            }
            Change::Spread(wanted) => {
                let queues = self.facts.rx_queues().unwrap_or(1);
                let table = self.facts.spread.as_mut().map_err(|why| why.clone())?;
                *table = if wanted.is_empty() { Recorded::even(table.len(), queues) } else { wanted.clone() };
            }
            Change::Qdisc(qdisc) => self.facts.qdiscs = Ok(Recorded::qdiscs(qdisc)),
            Change::Xps { queue, cpus } => {
                let queues = self.facts.xps.as_mut().map_err(|why| why.clone())?;
                queues.get_mut(*queue as usize).ok_or_else(absent)?.clone_from(cpus);
            }
            Change::Interrupt { number, cpus } => {
                let mut all = self.facts.interrupts.iter_mut();
                let found = all.find(|interrupt| interrupt.number == *number).ok_or_else(absent)?;
                found.cpus.clone_from(cpus);
            }
        }
        Ok(())
    }
}
