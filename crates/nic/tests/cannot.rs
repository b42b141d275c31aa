//! What a plan leaves as it is, as the driver or the kernel would refuse it.

mod common;

use common::{config, facts, identity};
use taut_nic::{Able, Change, Facts, Outcome, Recorded, Step, apply, plan};

fn step(facts: &Facts, lines: &str, item: &str) -> Step {
    let mut steps = plan(&config(facts, lines), facts).unwrap().steps.into_iter();
    steps.find(|step| step.item == item).unwrap()
}

/// A rule whose place nobody knows could not be taken back.
#[test]
fn drivers_that_choose_the_places_of_rules() {
    for (driver, can) in [("ixgbe", true), ("bnxt_en", false), ("sfc", false), ("sfc_siena", false)] {
        let facts = Facts { driver: driver.to_owned(), ..facts("i226.json") };
        let able = |item| step(&facts, "domains = [0]\n", item).able;
        match able("UDP port 7401") {
            Able::Change(_) => assert!(can, "{driver}"),
            Able::Cannot(why) => assert!(!can && why.contains("chooses the place"), "{driver}: {why}"),
            other => panic!("{driver}: {other:?}"),
        }
        // Without rules nothing would come to the critical queue.
        assert_eq!(matches!(able("all others (RSS)"), Able::Change(_)), can, "{driver}");
    }
}

/// The kernel refuses fewer queues than rules or the hash's table name; all else is done.
#[test]
fn queues_that_something_is_received_by() {
    let driver = || "ixgbe".to_owned();
    let (before, four) = (Facts { driver: driver(), ..facts("i226.json") }, "ports = [9000]\n");
    let mut machine = Recorded::new(before.clone());
    let mut records = Vec::new();
    let mut run = |machine: &mut Recorded, lines: &str| {
        let config = config(&before, lines);
        apply(machine, &config, &identity("net:[1]"), &mut records, &mut |_| Ok(())).unwrap()
    };
    run(&mut machine, four);
    let two = format!("{four}queues = 2\nring = 512\n");
    let why = |facts: &Facts| match step(facts, &two, "channels").able {
        Able::Cannot(why) => why,
        other => panic!("{other:?}"),
    };
    let wanted = "rule 64 sends frames to queue 3 that would go: `taut nic undo enp2s0` first";
    assert_eq!(why(&machine.facts), wanted);
    let outcomes = run(&mut machine, &two);
    assert!(outcomes.iter().all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_))), "{outcomes:?}");
    assert_eq!((machine.facts.ring.as_ref().unwrap().rx, machine.facts.rx_queues()), (512, Some(4)));

    // Without the rule the table is in the way; frames that a rule drops are not.
    let rules = &mut machine.facts.rules.as_mut().unwrap().rules;
    rules[0].queue = u64::MAX;
    assert!(why(&machine.facts).starts_with("the hash spreads frames to a queue that would go"));
    machine.facts.spread = before.spread.clone();
    assert!(matches!(step(&machine.facts, &two, "channels").able, Able::Change(Change::Channels { .. })));
}
