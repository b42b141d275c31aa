//! What undo does where it cannot look at all, or the system refuses something; what is not done as it could not be undone.

mod common;

use common::{config, facts, identity};
use taut_nic::{Able, Change, Facts, Machine, Outcome, Record, Recorded, Taken, apply, plan, undo};

/// A NIC that is set up by rules of ports as well, and its records.
fn set_up() -> (Facts, Recorded, Vec<Record>) {
    let mut before = facts("i226.json");
    before.driver = "ixgbe".to_owned();
    before.qdiscs.as_mut().unwrap().leaves.clear();
    let config =
        config(&before, "queues = 3\ncritical_queues = [2]\ncpus = [3]\ndomains = [0]\nparticipants = 1\n");
    let (mut machine, mut records) = (Recorded::new(before.clone()), Vec::new());
    apply(&mut machine, &config, &identity("net:[1]"), &mut records, &mut |_| Ok(())).unwrap();
    (before, machine, records)
}

fn take_back(machine: &mut impl Machine, records: &mut Vec<Record>) -> Vec<Taken> {
    undo(machine, &identity("net:[1]"), records, &mut |_| Ok(())).unwrap()
}

/// A NIC of which a part cannot be looked at, and which may refuse to be without a rule.
struct Half {
    nic: Recorded,
    hide: fn(&mut Facts),
    keeps_rules: bool,
}

impl Machine for Half {
    fn facts(&mut self) -> Result<Facts, String> {
        let mut facts = self.nic.facts()?;
        (self.hide)(&mut facts);
        Ok(facts)
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Rule { rule: None, .. } if self.keeps_rules => Err("something uses it".to_owned()),
            other => self.nic.change(other),
        }
    }
}

/// Undoes twice, at first with half of a NIC. Returns what was refused then; in the end all is as it was before.
fn refused_at_first(hide: fn(&mut Facts), keeps_rules: bool) -> Vec<String> {
    let (before, nic, mut records) = set_up();
    let mut half = Half { nic, hide, keeps_rules };
    let taken = take_back(&mut half, &mut records).into_iter();
    let refused: Vec<String> = taken.filter(|taken| taken.refused).map(|taken| taken.item).collect();
    let kept: Vec<String> = records.iter().rev().map(|record| record.item.clone()).collect();
    assert_eq!(refused, kept, "their records stay, and no others");
    take_back(&mut half.nic, &mut records);
    assert_eq!((half.nic.facts, records), (before, Vec::new()), "{refused:?}");
    refused
}

#[test]
fn what_could_not_be_looked_at_is_taken_back_later() {
    fn unseen<T>() -> Result<T, String> {
        Err("nobody may look".to_owned())
    }
    let refused = |hide| refused_at_first(hide, false);
    assert_eq!(refused(|facts| facts.channels = unseen()), ["channels"]);
    assert_eq!(refused(|facts| facts.ring = unseen()), ["receive ring"]);
    assert_eq!(refused(|facts| facts.coalescing = unseen()), ["coalescing"]);
    assert_eq!(refused(|facts| facts.features.ntuple = None), ["ntuple"]);
    assert_eq!(refused(|facts| facts.spread = unseen()), ["all others (RSS)"]);
    assert_eq!(refused(|facts| facts.qdiscs = unseen()), ["qdisc"]);
    let of_rules = refused(|facts| facts.rules = unseen());
    assert_eq!(of_rules, ["UDP port 7411", "UDP port 7401", "ntuple"]);
    // As it is where /sys is that of another network namespace.
    let of_sys = refused(|facts| (facts.xps, facts.interrupts) = (unseen(), Vec::new()));
    assert_eq!(of_sys.len(), 6, "those of three queues: {of_sys:?}");
}

/// The switch that all rules go with stays as long as one of ours does.
#[test]
fn the_switch_waits_for_a_rule_that_is_refused() {
    let refused = refused_at_first(|_| (), true);
    assert_eq!(refused, ["UDP port 7411", "UDP port 7401", "ntuple"]);
}

/// A rule whose place nobody knows could not be taken back.
#[test]
fn drivers_that_choose_the_places_of_rules() {
    for (driver, can) in [("ixgbe", true), ("bnxt_en", false), ("sfc", false), ("sfc_siena", false)] {
        let facts = Facts { driver: driver.to_owned(), ..facts("i226.json") };
        let steps = plan(&config(&facts, "domains = [0]\n"), &facts).unwrap().steps;
        let able = |item| steps.iter().find(|step| step.item == item).unwrap().able.clone();
        match able("UDP port 7401") {
            Able::Change(_) => assert!(can, "{driver}"),
            Able::Cannot(why) => assert!(!can && why.contains("chooses the place"), "{driver}: {why}"),
            other => panic!("{driver}: {other:?}"),
        }
        // Without rules nothing would come to the critical queue.
        assert_eq!(matches!(able("all others (RSS)"), Able::Change(_)), can, "{driver}");
    }
}

/// A driver that refuses to have fewer queues than a rule or the table of the hash names.
struct Strict(Recorded);

impl Machine for Strict {
    fn facts(&mut self) -> Result<Facts, String> {
        self.0.facts()
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        let facts = &self.0.facts;
        let named = facts.rules.as_ref().unwrap().rules.iter().map(|rule| rule.queue as u32);
        let table = facts.spread.as_ref().unwrap();
        // One that was never set, which is even, names none.
        let is_set = Change::Spread(table.clone()).inverse(facts) != Ok(Change::Spread(Vec::new()));
        let named = named.chain(table.iter().copied().filter(|_| is_set));
        match change {
            Change::Channels { combined, .. } if named.max().is_some_and(|last| last >= *combined) => {
                Err("EINVAL".to_owned())
            }
            other => self.0.change(other),
        }
    }
}

/// What was made after it has to go before it, also when it was made anew.
#[test]
fn a_change_that_is_made_again_keeps_its_place() {
    let mut before = facts("i226.json");
    before.channels.as_mut().unwrap().combined_max = 8;
    before.qdiscs.as_mut().unwrap().leaves.clear();
    // The first time there may be nothing to change of the queues.
    for asked in [[(6, 5), (8, 5)], [(4, 3), (8, 3)]] {
        let (mut machine, mut records) = (Strict(Recorded::new(before.clone())), Vec::new());
        for (queues, critical) in asked {
            let config =
                config(&before, &format!("queues = {queues}\ncritical_queues = [{critical}]\npcp = 6\n"));
            let save = &mut |_: &[Record]| Ok(());
            let outcomes = apply(&mut machine, &config, &identity("net:[1]"), &mut records, save).unwrap();
            let failed = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Failed(_));
            assert!(!outcomes.iter().any(failed), "{outcomes:?}");
            assert_eq!(machine.0.facts.rx_queues(), Some(queues));
        }
        let taken = take_back(&mut machine, &mut records);
        assert_eq!((machine.0.facts, records), (before.clone(), Vec::new()), "{taken:#?}");
    }
}
