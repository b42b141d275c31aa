//! What goes with a change beside what it is about, and comes back with it.

mod common;

use common::{config, facts, identity};
use taut_nic::{Change, Facts, Machine, Outcome, Qdisc, Recorded, apply, undo};

/// The kernel forgets the processors of queues that go, and has the queues back without any.
#[test]
fn what_queues_had_that_go_comes_back_with_them() {
    let mut facts = facts("i226.json");
    facts.xps = Ok(vec![vec![1], Vec::new(), vec![2, 3], Vec::new()]);
    let (config, here) = (config(&facts, "queues = 2\n"), identity("net:[1]"));
    let (mut machine, mut records) = (Recorded::new(facts.clone()), Vec::new());
    for _ in 0..2 {
        apply(&mut machine, &config, &here, &mut records, &mut |_| Ok(())).unwrap();
        assert_eq!(machine.facts.xps.as_ref().unwrap().len(), 2);
    }
    let all = undo(&mut machine, &here, &mut records, &mut |_| Ok(())).unwrap();
    assert!(all.iter().all(|taken| taken.left.is_none()), "{all:?}");
    assert_eq!((machine.facts.xps, records), (facts.xps, Vec::new()));
}

/// A machine that makes queueing disciplines, and then says that it could not.
struct Half(Recorded);

impl Machine for Half {
    fn facts(&mut self) -> Result<Facts, String> {
        self.0.facts()
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        self.0.change(change)?;
        let is_first = matches!(change, Change::Qdisc(wanted) if *wanted != Qdisc::Default);
        if is_first { Err("XPS cannot be written back".into()) } else { Ok(()) }
    }
}

#[test]
fn a_change_that_was_made_though_it_failed_is_taken_back() {
    let facts = facts("i226.json");
    let (config, here) = (
        config(&facts, "critical_queues = [3]\ncpus = [3]\ndomains = [0]\nparticipants = 2\npcp = 6\n"),
        identity("net:[1]"),
    );
    let (mut machine, mut records) = (Half(Recorded::new(facts.clone())), Vec::new());
    let outcomes = apply(&mut machine, &config, &here, &mut records, &mut |_| Ok(())).unwrap();
    assert!(matches!(outcomes.last(), Some((_, Outcome::Failed(_)))), "{outcomes:?}");
    assert_ne!(machine.0.facts.qdiscs, facts.qdiscs);
    undo(&mut machine, &here, &mut records, &mut |_| Ok(())).unwrap();
    assert_eq!(machine.0.facts.qdiscs.unwrap().root, "mq");
    assert_eq!(records, []);
}
