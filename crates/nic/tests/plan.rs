//! The planner against NICs that were written down: the whole plan is the expected text.
//!
//! `UPDATE_PLANS=1` writes the plans that there are now; what has changed in them is then to be read.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

mod common;

use common::{config, facts, identity, of_namespace};
use taut_nic::{
    Able, Change, Channels, Facts, Feature, Features, Frames, Identity, Machine, NicConfig, Outcome, Record,
    Recorded, apply, plan, undo,
};

const FILE: &str = "critical_queues = [3]\ncpus = [3]\ndomains = [0]\nparticipants = 2\npcp = 6\n";

/// The plan must be the text of the file.
fn check(facts: &Facts, lines: &str, name: &str) {
    let page = plan(&config(facts, lines), facts).unwrap().page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans").join(name);
    if std::env::var_os("UPDATE_PLANS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(page, std::fs::read_to_string(&path).unwrap(), "{}", path.display());
}

#[test]
fn an_i226() {
    check(&facts("i226.json"), FILE, "i226.txt");
}

/// The lowest priorities go first nowhere.
#[test]
fn what_a_priority_gains() {
    let tag = |lines: &str| {
        let facts = facts("i226.json");
        let steps = plan(&config(&facts, lines), &facts).unwrap().steps.into_iter();
        steps.filter(|step| step.item == "VLAN tag").map(|step| (step.gains, step.lost)).next().unwrap()
    };
    for lines in ["pcp = 0", "vlan = 0", "vlan = 5", "vlan = 5\npcp = 0"] {
        assert!(tag(lines).0.starts_with("none by its priority"), "{lines}");
    }
    assert_eq!(tag("vlan = 5").1, "", "others have PCP 0, too");
    assert!(tag("pcp = 0").1.starts_with("what leaves by a UDP socket has none"));
    assert!(tag("pcp = 1").0.starts_with("none: switches on the way serve PCP 1 last"));
    let (gains, lost) = tag("vlan = 5\npcp = 6");
    assert_eq!(gains, "switches on the way serve them before what has a lower priority, or no tag");
    assert!(lost.starts_with("what leaves by a UDP socket has PCP 0"), "{lost}");
}

#[test]
fn an_i226_with_a_schedule() {
    let lines = format!("{FILE}schedule = [\"critical 300us\", \"others 700us\"]\n");
    check(&facts("i226.json"), &lines, "i226-schedule.txt");
}

#[test]
fn an_i210() {
    check(&facts("i210.json"), FILE, "i210.txt");
}

/// The rule is about the priority, whatever the VLAN; the settings name the interface of that.
#[test]
fn an_i226_in_a_vlan() {
    check(&facts("i226.json"), &format!("{FILE}vlan = 5\n"), "i226-vlan.txt");
}

/// One participant has all queues: netd would open its interface behind the driver.
#[test]
fn a_vlan_is_for_one_participant() {
    let mut nic = facts("i226.json");
    nic.driver = "ixgbe".to_owned();
    let told = |lines: &str| {
        let steps = plan(&config(&nic, &format!("critical_queues = [2, 3]\ndomains = [0]\n{lines}")), &nic);
        let steps = steps.unwrap().steps.into_iter().filter(|step| step.item.starts_with("settings"));
        steps.map(|step| step.then).collect::<Vec<_>>()
    };
    assert_eq!(told("").len(), 2);
    assert_eq!(told("vlan = 5"), ["xdp_interface = \"enp2s0.5\"; xdp_queues = [2, 3]"]);
}

/// Its rules see the type of a frame.
#[test]
fn an_i226_without_ip() {
    check(&facts("i226.json"), "critical_queues = [3]\nlayer = 2\n", "i226-without-ip.txt");
}

#[test]
fn a_nic_that_can_do_nothing() {
    check(
        &facts("nothing.json"),
        "cpus = [1]\ndomains = [0]\nschedule = [\"critical 1ms\"]\n",
        "nothing.txt",
    );
}

/// Nor can a participant have XDP there: loopback has an MTU of 65,536 B.
#[test]
fn settings_that_no_participant_takes_are_not_told() {
    let settings = |mtu| {
        let facts = Facts { mtu, ..facts("nothing.json") };
        let steps = plan(&config(&facts, "domains = [0]"), &facts).unwrap().steps;
        steps.into_iter().find(|step| step.item == "settings of Taut").unwrap()
    };
    let why = "XDP takes an MTU of 61326 B at most, and dummy0 has 65536";
    assert_eq!(settings(Some(65_536)).able, Able::Cannot(why.to_owned()));
    for mtu in [None, Some(1_500), Some(61_326)] {
        assert_eq!(settings(mtu).able, Able::Told);
    }
}

/// A NIC whose rules see ports, without mqprio in the kernel.
#[test]
fn ports_are_steered_where_rules_see_them() {
    let facts = Facts { driver: "ixgbe".to_owned(), kinds: vec!["mq".to_owned()], ..facts("i226.json") };
    check(&facts, "domains = [1]\nparticipants = 1\nports = [9000]\ncritical_queues = [2, 3]\n", "ports.txt");
}

/// A second rule for a port would take a place of the table, and could name another queue.
#[test]
fn a_port_that_is_named_twice_has_one_rule() {
    let facts = Facts { driver: "ixgbe".to_owned(), ..facts("i226.json") };
    let rules = |lines: &str| {
        let lines = format!("participants = 1\ncritical_queues = [2, 3]\n{lines}");
        let steps = plan(&config(&facts, &lines), &facts).unwrap().steps.into_iter();
        let rules = steps.filter_map(|step| match step.able {
            Able::Change(Change::Rule { rule: Some((Frames::UdpPort(port), queue)), .. }) => {
                Some((port, queue))
            }
            _ => None,
        });
        rules.collect::<Vec<_>>()
    };
    assert_eq!(rules("domains = [1, 1]"), [(7_651, 2), (7_661, 2)]);
    // The participant's port stays with its queue, and what is named besides takes its turn.
    assert_eq!(rules("domains = [1]\nports = [9000, 7661, 9000]"), [(7_651, 2), (7_661, 2), (9_000, 2)]);
}

/// Each port has a rule for each version of IP, if that is wanted and the NIC's rules see both.
#[test]
fn ports_are_steered_over_ipv6() {
    let lines = "domains = [1]\nparticipants = 1\ncritical_queues = [3]\nipv6 = true\n";
    let of = |driver: &str| Facts { driver: driver.to_owned(), ..facts("i226.json") };
    check(&of("i40e"), lines, "ports-ipv6.txt");
    let cannot = |driver: &str| {
        let facts = of(driver);
        let steps = plan(&config(&facts, lines), &facts).unwrap().steps.into_iter();
        let cannot = steps.filter(|step| matches!(step.able, Able::Cannot(_)));
        cannot.map(|step| step.item).filter(|item| item.starts_with("UDP")).collect::<Vec<_>>()
    };
    let only_ipv4 = config(&of("i40e"), &lines.replace("true", "false"));
    let steps = plan(&only_ipv4, &of("i40e")).unwrap().steps;
    let ports: Vec<_> = steps.iter().filter(|step| step.item.starts_with("UDP")).collect();
    let lost = "the NIC's hash spreads those over IPv6: `ipv6 = true` in the file steers them";
    assert!(ports.len() == 2 && ports.iter().all(|step| step.lost == lost), "{ports:?}");
    assert_eq!(cannot("i40e"), [""; 0]);
    assert_eq!(cannot("ixgbe"), ["UDP ports 7651, 7661 over IPv6"]);
    assert_eq!(cannot("igc"), ["UDP ports 7651, 7661"]);
}

/// What is steered to a queue is for the participant that has it.
#[test]
fn each_participant_has_queues_of_its_own() {
    let facts = Facts { driver: "ixgbe".to_owned(), ..facts("i226.json") };
    check(&facts, "domains = [1]\nparticipants = 2\ncritical_queues = [2, 3]\n", "participants.txt");
    let settings = |driver: &str, lines: &str| {
        let facts = Facts { driver: driver.to_owned(), ..facts.clone() };
        let mut steps = plan(&config(&facts, lines), &facts).unwrap().steps;
        steps.retain(|step| step.item.starts_with("settings of Taut"));
        let told = steps.iter().map(|step| {
            let queues = step.then.split("; ").find_map(|line| line.strip_prefix("xdp_queues = "));
            let whose = step.item.strip_prefix("settings of Taut").unwrap().replace(" for participant", "");
            format!("{queues}{whose}", queues = queues.unwrap())
        });
        told.collect::<Vec<_>>()
    };
    let queues = "critical_queues = [1, 2, 3]";
    let of = |lines: &str| settings("ixgbe", &format!("{queues}\n{lines}"));
    assert_eq!(of("domains = [0]\nparticipants = 1"), ["[1, 2, 3]"]);
    assert_eq!(of("domains = [0]\nparticipants = 2"), ["[1, 3] 0", "[2] 1"]);
    assert_eq!(of("domains = [0]"), ["[1] 0", "[2] 1", "[3] 2"]);
    assert_eq!(
        of("domains = [0, 7]\nparticipants = 2"),
        ["[1] 0 of domain 0", "[2] 1 of domain 0", "[3] 0 of domain 7"]
    );
    // One rule brings all that is critical to one queue.
    assert_eq!(of("layer = 2"), ["[1, 2, 3]"]);
    assert_eq!(settings("igc", &format!("{queues}\ndomains = [0]\npcp = 6")), ["[1, 2, 3]"]);
}

/// Many drivers refuse rules until the feature is on; igb and igc take them before.
#[test]
fn the_switch_for_rules() {
    let file = "domains = [0]\nparticipants = 1\npcp = 6";
    let of = |driver: &str, ntuple: Option<(bool, bool)>, rules: bool| {
        let ntuple = ntuple.map(|(on, fixed)| Feature { on, fixed });
        let (driver, features) = (driver.to_owned(), Features { ntuple });
        let mut facts = Facts { driver, features, ..facts("i226.json") };
        if !rules {
            facts.rules = Err("ioctl ETHTOOL_GRXCLSRLALL: the driver has no such setting".to_owned());
        }
        let steps = plan(&config(&facts, file), &facts).unwrap().steps;
        let at = |name: &str| steps.iter().position(|step| step.item.starts_with(name));
        assert!(at("ntuple").is_none_or(|step| step < at("UDP port").unwrap()), "{steps:?}");
        at("ntuple").map(|step| steps[step].able.clone())
    };
    let (off, on, never, always) = ((false, false), (true, false), (false, true), (true, true));
    assert_eq!(of("ixgbe", Some(off), true), Some(Able::Change(Change::Ntuple(true))));
    assert_eq!(of("ixgbe", Some(off), false), Some(Able::Change(Change::Ntuple(true))));
    for so in [on, always] {
        assert_eq!(of("ixgbe", Some(so), true), Some(Able::AsPlanned));
        assert_eq!(of("ixgbe", Some(so), false), None);
    }
    assert!(matches!(of("mlx4_en", Some(never), true), Some(Able::Cannot(_))));
    assert_eq!(of("veth", Some(never), false), None);
    assert_eq!(of("ixgbe", None, true), None);
    assert_eq!(of("igc", Some(off), true), None);
}

/// With the switch all rules would go, also those that somebody has made meanwhile.
#[test]
fn the_switch_goes_back_unless_others_have_rules() {
    for theirs in [false, true] {
        let mut bench = Bench::new("i226.json");
        bench.machine.facts.driver = "ixgbe".to_owned();
        let made = bench.apply();
        assert!(made.iter().all(|outcome| !matches!(outcome, Outcome::Failed(_))), "{made:?}");
        assert!(bench.machine.facts.features.ntuple.unwrap().on);
        let rule = Change::Rule { location: 0, rule: Some((Frames::UdpPort(53), 0)) };
        if theirs {
            bench.machine.change(&rule).unwrap();
        }
        let left: Vec<_> = bench.undo().into_iter().filter(|(_, left)| left.is_some()).collect();
        let why = "1 rules of somebody else's would go with it".to_owned();
        let wanted = if theirs { vec![("ntuple".to_owned(), Some(why))] } else { Vec::new() };
        assert_eq!((left, bench.machine.facts.features.ntuple.unwrap().on), (wanted, theirs));
    }
}

/// What comes with queues that are not there yet is done after them.
#[test]
fn a_nic_with_one_queue_of_four() {
    let mut facts = facts("i210.json");
    facts.channels.as_mut().unwrap().combined = 1;
    facts.xps.as_mut().unwrap().truncate(1);
    facts.interrupts.retain(|interrupt| interrupt.queue.is_none_or(|queue| queue == 0));
    check(&facts, FILE, "i210-one-queue.txt");
}

#[test]
fn each_class_has_a_row_of_queues() {
    let facts = facts("i226.json");
    let qdisc = |queues: &str| {
        let plan = plan(&config(&facts, &format!("critical_queues = {queues}")), &facts).unwrap();
        plan.steps.into_iter().find(|step| step.item == "qdisc").unwrap().then
    };
    assert_eq!(qdisc("[0]"), "mqprio, priority 6 to queue 0, all others to queues 1-3");
    assert_eq!(qdisc("[1]"), "mqprio, priority 6 to queue 1, all others to queues 2-3");
    assert_eq!(qdisc("[3, 2]"), "mqprio, priority 6 to queues 2-3, all others to queues 0-1");
    for no_row in ["[0, 2]", "[0, 1, 2, 3]"] {
        assert_eq!(qdisc(no_row), "mq with a pfifo for each of 4 queues");
    }
}

/// Nothing serves a single queue better than what is there; pfifo_fast knows priorities 6 and 7.
#[test]
fn one_queue() {
    let mut facts = facts("i210.json");
    let channels = facts.channels.as_mut().unwrap();
    (channels.combined, channels.combined_max) = (1, 1);
    facts.kinds.clear();
    facts.qdiscs.as_mut().unwrap().root = "pfifo_fast".to_owned();
    for (priority, lost) in [(4, "critical frames wait behind others in the kernel"), (6, "")] {
        let plan = plan(&config(&facts, &format!("priorities = [{priority}]")), &facts).unwrap();
        let step = plan.steps.into_iter().find(|step| step.item == "qdisc").unwrap();
        assert_eq!((step.able, step.lost.as_str()), (Able::AsPlanned, lost));
    }
}

/// Others are kept out of the critical queues, unless nothing would come to these then.
#[test]
fn what_no_rule_steers() {
    let nic = facts("i226.json");
    let spread = |facts: &Facts, lines: &str| {
        let plan = plan(&config(facts, lines), facts).unwrap();
        plan.steps.into_iter().find(|step| step.item == "all others (RSS)").unwrap()
    };
    let Able::Change(Change::Spread(table)) = spread(&nic, "critical_queues = [1]\npcp = 6").able else {
        panic!("it can be done");
    };
    assert_eq!((table.len(), &table[..4]), (128, &[0, 2, 3, 0][..]));
    let so = Facts { spread: Ok(table), ..nic.clone() };
    assert_eq!(spread(&so, "critical_queues = [1]\npcp = 6").able, Able::AsPlanned);
    for (lines, wanted) in [
        ("domains = [0]", "no rule brings anything to the critical queue, which would be left empty"),
        ("critical_queues = [0, 1, 2, 3]\npcp = 6", "no queue is left for all others: ask for more queues"),
    ] {
        let step = spread(&nic, lines);
        assert_eq!(step.able, Able::Cannot(wanted.to_owned()));
        assert!(step.lost.starts_with("others come to the critical queue, too"), "{step:?}");
    }
}

#[test]
fn a_spread_that_somebody_has_made_comes_back() {
    let mut bench = Bench::new("i210.json");
    let theirs: Vec<u32> = (0..128).map(|at| if at < 90 { 0 } else { 3 }).collect();
    bench.machine.facts.spread = Ok(theirs.clone());
    bench.apply();
    let ours = bench.machine.facts.spread.clone().unwrap();
    assert!(ours.iter().all(|queue| *queue < 3) && ours.contains(&2), "{ours:?}");
    bench.undo();
    assert_eq!(bench.machine.facts.spread, Ok(theirs));
}

/// A rule that is there may be ours, and goes with all else that was done for it.
#[test]
fn frames_that_a_rule_sends_elsewhere() {
    let mut bench = Bench::new("i226.json");
    bench.apply();
    let others = config(&bench.machine.facts, &FILE.replace("[3]\nc", "[2]\nc"));
    let steps = plan(&others, &bench.machine.facts).unwrap().steps;
    let step = steps.into_iter().find(|step| step.item.starts_with("VLAN tag")).unwrap();
    let Able::Cannot(why) = step.able else { panic!("{step:?}") };
    assert_eq!(
        why,
        "rule 64 sends them to queue 3: take back first what `taut nic apply` has done (`taut nic undo enp2s0`), or \
         remove the rule if it is somebody else's (`ethtool -N enp2s0 delete 64`)"
    );
    bench.undo();
    let again = plan(&others, &bench.machine.facts).unwrap();
    assert!(again.steps.iter().any(|step| step.then == "queue 2 by rule 64"), "{}", again.page());
}

/// The kernel refuses fewer queues than a table names, so undo has it spread as before first.
#[test]
fn other_queues_are_spread_over_anew() {
    let mut bench = Bench::new("i226.json");
    bench.machine.change(&Change::Channels { combined: 2, rx: 0, tx: 0 }).unwrap();
    bench.apply();
    let seen: Vec<u32> = bench.machine.facts.spread.clone().unwrap();
    assert!([0, 1, 2].iter().all(|queue| seen.contains(queue)) && !seen.contains(&3), "{seen:?}");
    let at = |item: &str| bench.records.iter().position(|record| record.item == item).unwrap();
    let record = &bench.records[at("all others (RSS)")];
    assert_eq!(record.before, Change::Spread(Vec::new()));
    assert!(at("channels") < at("all others (RSS)"));
    bench.undo();
    assert_eq!(bench.machine.facts.spread.as_ref().unwrap()[63..65], [0, 1]);
}

/// Facts are a file: what stands there is not counted up to.
#[test]
fn facts_of_no_nic() {
    let most = u32::MAX;
    for told in [
        Channels { combined: most, combined_max: most, ..Channels::default() },
        Channels { combined: 4, combined_max: 4, rx: most, rx_max: most, ..Channels::default() },
        Channels { rx: 1, rx_max: 1, tx: 4_097, tx_max: most, ..Channels::default() },
    ] {
        let facts = Facts { channels: Ok(told), ..facts("i226.json") };
        let error = plan(&config(&facts, "cpus = [3]\ndomains = [0]\n"), &facts).unwrap_err();
        assert!(error.starts_with("the facts say that enp2s0 has 4"), "{error}");
        assert!(error.ends_with("take them again (`taut nic facts enp2s0`)"), "{error}");
    }
}

#[test]
fn what_the_file_asks_and_the_nic_has_not() {
    let facts = facts("i226.json");
    let told = |lines: &str| plan(&config(&facts, lines), &facts).unwrap_err();
    assert_eq!(told("queues = 5"), "queues = 5, and enp2s0 has 4 at most: ask for fewer");
    assert_eq!(
        told("critical_queues = [4]"),
        "critical_queues names queue 4, and enp2s0 has queues 0 to 3: name one of these"
    );
    assert_eq!(told("cpus = [9]"), "cpus names processor 9, and 0-3 are online: name some of these");
}

/// The interface that all are about.
/// A machine and its records.
struct Bench {
    machine: Recorded,
    config: NicConfig,
    records: Vec<Record>,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let facts = facts(name);
        let config = config(&facts, FILE);
        Bench { machine: Recorded::new(facts), config, records: Vec::new() }
    }

    fn apply(&mut self) -> Vec<Outcome> {
        let outcomes =
            apply(&mut self.machine, &self.config, &identity("net:[1]"), &mut self.records, &mut |_| Ok(()));
        outcomes.unwrap().into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// The steps, and why they were left.
    fn undo(&mut self) -> Vec<(String, Option<String>)> {
        let all = undo(&mut self.machine, &identity("net:[1]"), &mut self.records, &mut |_| Ok(()));
        all.unwrap().into_iter().map(|taken| (taken.item, taken.left)).collect()
    }
}

#[test]
fn what_was_applied_is_as_planned_and_is_taken_back() {
    for name in ["i226.json", "i210.json"] {
        let mut bench = Bench::new(name);
        bench.apply();
        let again = plan(&bench.config, &bench.machine.facts).unwrap();
        assert_eq!(again.changes(), 0, "{}", again.page());
        let records = bench.records.clone();
        assert!(bench.apply().iter().all(|outcome| *outcome == Outcome::Left), "there is nothing to do");
        assert_eq!(bench.records, records);
        let made: Vec<String> = records.iter().map(|record| record.item.clone()).collect();
        let taken = bench.undo();
        assert!(taken.iter().all(|(_, left)| left.is_none()));
        assert!(taken.iter().map(|(item, _)| item).eq(made.iter().rev()), "in reverse order: {taken:?}");
        let mut before = facts(name);
        before.qdiscs.as_mut().unwrap().leaves.clear();
        assert_eq!((bench.machine.facts, bench.records), (before, Vec::new()));
    }
}

/// Whichever step fails, those before it are taken back, and those behind it were not tried.
#[test]
fn a_step_that_fails() {
    let steps = {
        let mut bench = Bench::new("i226.json");
        bench.apply();
        bench.records.len()
    };
    assert!(steps > 5);
    for made in 0..steps {
        let mut bench = Bench::new("i226.json");
        bench.machine.refuses_after = Some(made);
        let outcomes = bench.apply();
        assert!(matches!(outcomes.last(), Some(Outcome::Failed(why)) if why == "it refuses; ask for less"));
        assert_eq!(bench.records.len(), made);
        bench.machine.refuses_after = None;
        bench.undo();
        let mut before = facts("i226.json");
        if bench.machine.facts.qdiscs != before.qdiscs {
            before.qdiscs.as_mut().unwrap().leaves.clear();
        }
        assert_eq!(bench.machine.facts, before, "{made} steps made");
    }
}

#[test]
fn nothing_is_changed_without_a_record() {
    let mut bench = Bench::new("i226.json");
    let mut full = |_: &[Record]| Err("no room; make some".to_owned());
    let outcomes =
        apply(&mut bench.machine, &bench.config, &identity("net:[1]"), &mut bench.records, &mut full)
            .unwrap();
    assert_eq!(outcomes.last().unwrap().1, Outcome::Failed("no room; make some".to_owned()));
    assert_eq!((bench.machine.facts, bench.records), (facts("i226.json"), Vec::new()));
}

#[test]
fn what_somebody_else_has_set_since_stays() {
    let mut bench = Bench::new("i226.json");
    bench.apply();
    bench.machine.change(&Change::Ring(512)).unwrap();
    let left: Vec<String> = bench.undo().into_iter().filter_map(|(_, left)| left).collect();
    assert_eq!(left, ["somebody has set it to 512 frames since"]);
    assert_eq!(bench.machine.facts.ring.unwrap().rx, 512);
}

/// A process that was killed has made the discipline at the root, and not yet all below it.
#[test]
fn a_discipline_that_was_begun_is_taken_back() {
    let mut bench = Bench::new("i226.json");
    bench.machine.facts.kinds = vec!["mq".to_owned()];
    bench.apply();
    bench.machine.facts.qdiscs.as_mut().unwrap().leaves.truncate(1);
    assert!(bench.undo().iter().all(|(_, left)| left.is_none()));
    assert_eq!(bench.machine.facts.qdiscs.unwrap().handle, 0);
}

#[test]
fn a_second_apply_keeps_what_was_first() {
    let mut bench = Bench::new("i226.json");
    for frames in [512, 1_024] {
        bench.config.ring = Some(frames);
        bench.apply();
        assert_eq!(bench.machine.facts.ring.as_ref().unwrap().rx, frames);
    }
    bench.undo();
    assert_eq!(bench.machine.facts.ring.unwrap().rx, 256);
}

/// A NIC and the records on its disk.
type Moment = (Facts, Vec<Record>);

/// Both as they were at each moment at which a process may be killed.
#[derive(Clone)]
struct Moments(Rc<RefCell<Vec<Moment>>>);

/// Its machine.
struct Filmed {
    nic: Recorded,
    moments: Moments,
}

impl Machine for Filmed {
    fn facts(&mut self) -> Result<Facts, String> {
        self.nic.facts()
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        self.nic.change(change)?;
        let records = self.moments.0.borrow().last().unwrap().1.clone();
        self.moments.0.borrow_mut().push((self.nic.facts.clone(), records));
        Ok(())
    }
}

/// The moments of an apply that begins at one, that first.
fn moments((facts, records): &Moment, lines: &str) -> Vec<Moment> {
    let moments = Moments(Rc::new(RefCell::new(vec![(facts.clone(), records.clone())])));
    let mut machine = Filmed { nic: Recorded::new(facts.clone()), moments: moments.clone() };
    let mut records = records.clone();
    let mut save = |records: &[Record]| {
        let facts = moments.0.borrow().last().unwrap().0.clone();
        moments.0.borrow_mut().push((facts, records.to_vec()));
        Ok(())
    };
    let config = config(facts, lines);
    let outcomes = apply(&mut machine, &config, &identity("net:[1]"), &mut records, &mut save).unwrap();
    assert!(outcomes.iter().all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_))), "{outcomes:?}");
    moments.0.take()
}

/// Whenever an apply over an earlier one is killed, and one over that again, what was first comes back.
#[test]
fn a_second_apply_that_is_killed_keeps_what_was_first() {
    let lines = |ring: u32, cpu: u32| {
        format!("critical_queues = [3]\ncpus = [{cpu}]\npriorities = [{cpu}]\npcp = 6\nring = {ring}\n")
    };
    let mut before = facts("i226.json");
    before.qdiscs.as_mut().unwrap().leaves.clear();
    let first = moments(&(before.clone(), Vec::new()), &lines(512, 3));
    let second = moments(first.last().unwrap(), &lines(1_024, 2));
    let changes = second.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(changes >= 4, "the ring, the qdisc, XPS and the interrupt");
    for killed in &second {
        for (facts, mut records) in moments(killed, &lines(2_048, 1)) {
            let mut machine = Recorded::new(facts);
            let all = undo(&mut machine, &identity("net:[1]"), &mut records, &mut |_| Ok(())).unwrap();
            assert_eq!((machine.facts, records), (before.clone(), Vec::new()), "{all:#?}");
        }
    }
}

/// What has been replaced is somebody else's choice once the change is known to be made.
#[test]
fn what_was_replaced_is_ours_until_the_change_is_made() {
    let mut bench = Bench::new("i226.json");
    for frames in [512, 1_024] {
        bench.config.ring = Some(frames);
        bench.apply();
    }
    bench.machine.change(&Change::Ring(512)).unwrap();
    let left: Vec<String> = bench.undo().into_iter().filter_map(|(_, left)| left).collect();
    assert_eq!(left, ["somebody has set it to 512 frames since"]);
}

/// A driver whose rings are powers of two long, and which takes the next one for any other.
struct Rounding(Recorded);

impl Machine for Rounding {
    fn facts(&mut self) -> Result<Facts, String> {
        self.0.facts()
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        match change {
            Change::Ring(frames) => self.0.change(&Change::Ring(frames.next_power_of_two())),
            other => self.0.change(other),
        }
    }
}

#[test]
fn a_ring_that_the_driver_has_rounded_is_taken_back() {
    let facts = facts("i226.json");
    let config = config(&facts, "ring = 1000\ndomains = [0]\n");
    let (mut machine, here) = (Rounding(Recorded::new(facts)), identity("net:[1]"));
    let mut records = Vec::new();
    for _ in 0..2 {
        apply(&mut machine, &config, &here, &mut records, &mut |_| Ok(())).unwrap();
        assert_eq!(machine.facts().unwrap().ring.unwrap().rx, 1_024);
    }
    let all = undo(&mut machine, &here, &mut records, &mut |_| Ok(())).unwrap();
    assert!(all.iter().all(|taken| taken.left.is_none()), "{all:?}");
    assert_eq!(machine.facts().unwrap().ring.unwrap().rx, 256);
    assert_eq!(records, []);
}

/// A process that was killed before it had seen what the driver made of a length: that is ours, another is not.
#[test]
fn a_ring_that_was_rounded_and_not_recorded() {
    let facts = facts("i226.json");
    let here = identity("net:[1]");
    let (mut disk, mut records) = (Vec::new(), Vec::new());
    let mut save = |records: &[Record]| {
        disk.push(records.to_vec());
        Ok(())
    };
    let config = config(&facts, "ring = 1000\ndomains = [0]\n");
    apply(&mut Rounding(Recorded::new(facts.clone())), &config, &here, &mut records, &mut save).unwrap();
    let is_under_way = |record: &Record| record.written == Change::Ring(1_000) && record.replaced.is_some();
    let at = disk.iter().position(|records| records.iter().any(is_under_way)).unwrap();
    for (length, then) in [(1_024, 256), (512, 256), (1_000, 256), (1_032, 1_032), (504, 504)] {
        let mut machine = Recorded::new(facts.clone());
        machine.change(&Change::Ring(length)).unwrap();
        let mut killed = disk[at].clone();
        undo(&mut machine, &here, &mut killed, &mut |_| Ok(())).unwrap();
        assert_eq!((machine.facts.ring.unwrap().rx, killed), (then, Vec::new()), "{length}");
    }
    let mut machine = Recorded::new(facts);
    machine.change(&Change::Ring(1_024)).unwrap();
    let mut killed = disk[at].clone();
    let again = NicConfig { ring: Some(2_048), ..config };
    apply(&mut machine, &again, &here, &mut killed, &mut |_| Ok(())).unwrap();
    undo(&mut machine, &here, &mut killed, &mut |_| Ok(())).unwrap();
    assert_eq!(machine.facts.ring.as_ref().unwrap().rx, 256, "an apply over it keeps what was first");
}

/// A driver makes its least length of one that is too short. That is not above what was there, nor above the most that
/// drivers have as their least.
#[test]
fn a_ring_that_was_too_short_and_not_recorded() {
    for (was, length, then) in
        [(1_024, 64, 1_024), (1_024, 256, 1_024), (128, 64, 128), (1_024, 264, 264), (128, 136, 136)]
    {
        let mut facts = facts("i226.json");
        facts.ring.as_mut().unwrap().rx = was;
        let record = Record {
            interface: "enp2s0".to_owned(),
            index: None,
            namespace: of_namespace("net:[1]", None),
            item: "receive ring".to_owned(),
            before: Change::Ring(was),
            written: Change::Ring(10),
            replaced: Some(Change::Ring(was)),
        };
        let mut machine = Recorded::new(facts);
        machine.change(&Change::Ring(length)).unwrap();
        let mut records = vec![record];
        undo(&mut machine, &identity("net:[1]"), &mut records, &mut |_| Ok(())).unwrap();
        assert_eq!((machine.facts.ring.unwrap().rx, records), (then, Vec::new()), "{length} over {was}");
    }
}

/// A driver whose timer cannot be off.
struct Waiting(Recorded);

impl Machine for Waiting {
    fn facts(&mut self) -> Result<Facts, String> {
        self.0.facts()
    }

    fn change(&mut self, change: &Change) -> Result<(), String> {
        self.0.change(change)?;
        if let (Change::Coalescing(_), Ok(coalescing)) = (change, &mut self.0.facts.coalescing) {
            coalescing.rx_usecs = coalescing.rx_usecs.map(|usecs| usecs.max(2));
        }
        Ok(())
    }
}

#[test]
fn a_timer_that_the_driver_has_rounded_is_taken_back() {
    let facts = facts("i226.json");
    let (before, config) = (facts.coalescing.clone(), config(&facts, "domains = [0]\n"));
    let (mut machine, here) = (Waiting(Recorded::new(facts)), identity("net:[1]"));
    let mut records = Vec::new();
    for _ in 0..2 {
        apply(&mut machine, &config, &here, &mut records, &mut |_| Ok(())).unwrap();
        assert_eq!(machine.facts().unwrap().coalescing.unwrap().rx_usecs, Some(2));
    }
    let all = undo(&mut machine, &here, &mut records, &mut |_| Ok(())).unwrap();
    assert!(all.iter().all(|taken| taken.left.is_none()), "{all:?}");
    assert_eq!(machine.facts().unwrap().coalescing, before);
}

/// What a driver that takes every length has is recorded; the next power of two is somebody else's then.
#[test]
fn a_ring_that_was_not_rounded() {
    let mut bench = Bench::new("i226.json");
    bench.config.ring = Some(1_000);
    bench.apply();
    bench.machine.change(&Change::Ring(1_024)).unwrap();
    let left: Vec<String> = bench.undo().into_iter().filter_map(|(_, left)| left).collect();
    assert_eq!(left, ["somebody has set it to 1024 frames since"]);
}

#[test]
fn each_network_namespace_has_its_own() {
    let mut bench = Bench::new("i226.json");
    bench.apply();
    let count = bench.records.len();
    let all = undo(&mut bench.machine, &identity("net:[2]"), &mut bench.records, &mut |_| Ok(())).unwrap();
    assert!(all.iter().all(|taken| taken.left.as_ref().is_some_and(|why| why.contains("net:[1]"))));
    assert_eq!((all.len(), bench.records.len()), (count, count));
}

/// A namespace that has got the number of one that is gone is another.
#[test]
fn a_namespace_that_has_the_number_of_another() {
    let mut bench = Bench::new("i226.json");
    let of = |cookie| Identity { namespace: of_namespace("net:[1]", cookie), ..identity("net:[1]") };
    let save = &mut |_: &[Record]| Ok(());
    apply(&mut bench.machine, &bench.config, &of(Some(3)), &mut bench.records, save).unwrap();
    let (count, made) = (bench.records.len(), bench.machine.facts.clone());
    let written = serde_json::to_string(&bench.records).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Record>>(&written).unwrap(), bench.records);
    let all = undo(&mut bench.machine, &of(Some(7)), &mut bench.records, save).unwrap();
    let told = |why: &String| why.ends_with("forget it by `taut nic undo enp2s0 --forget 'net:[1]'`");
    assert!(all.iter().all(|taken| taken.left.as_ref().is_some_and(told)), "{all:?}");
    assert_eq!((all.len(), bench.records.len(), &bench.machine.facts), (count, count, &made));
    let all = undo(&mut bench.machine, &of(None), &mut bench.records, save).unwrap();
    assert!(all.iter().all(|taken| taken.left.is_none()) && bench.records.is_empty(), "the name has to do");
}

/// An index is what records go by, and not a name that another interface may have by now.
#[test]
fn an_interface_that_is_renamed_keeps_its_records() {
    let mut bench = Bench::new("i226.json");
    bench.apply();
    let count = bench.records.len();
    let undo = |bench: &mut Bench, interface: &str, index| {
        let identity =
            Identity { interface: interface.to_owned(), index, namespace: of_namespace("net:[1]", None) };
        undo(&mut bench.machine, &identity, &mut bench.records, &mut |_| Ok(())).unwrap().len()
    };
    assert_eq!((undo(&mut bench, "enp2s0", 3), bench.records.len()), (0, count));
    assert_eq!((undo(&mut bench, "lan0", 2), bench.records.len()), (count, 0));
}

/// Records of a version that kept less: without an index they are found by their name.
#[test]
fn records_of_an_earlier_version() {
    let mut bench = Bench::new("i226.json");
    bench.apply();
    let mut written = serde_json::to_value(&bench.records).unwrap();
    for record in written.as_array_mut().unwrap() {
        for key in ["index", "replaced", "cookie"] {
            record.as_object_mut().unwrap().remove(key).unwrap();
        }
    }
    bench.records = serde_json::from_value(written).unwrap();
    assert!(bench.undo().iter().all(|(_, left)| left.is_none()));
    assert_eq!(bench.records, Vec::new());
}

/// A discipline that a person made stays, for its settings could not be put back.
#[test]
fn a_discipline_of_somebody_else() {
    let mut facts = facts("i226.json");
    facts.qdiscs.as_mut().unwrap().handle = 1 << 16;
    let plan = plan(&config(&facts, FILE), &facts).unwrap();
    let step = plan.steps.iter().find(|step| step.item == "qdisc").unwrap();
    assert!(matches!(&step.able, Able::Cannot(why) if why.contains("mq 1: was made by somebody else")));
}

/// A port without domains is that of a participant's critical topics, and what it has to be told.
#[test]
fn a_critical_port_alone() {
    let facts = Facts { driver: "ixgbe".to_owned(), ..facts("i226.json") };
    let steps = plan(&config(&facts, "ports = [7402]\ncritical_queues = [3]\n"), &facts).unwrap().steps;
    let of = |item: &str| steps.iter().filter(|step| step.item.starts_with(item)).collect::<Vec<_>>();
    let [port] = of("UDP port")[..] else { panic!("one port: {steps:?}") };
    assert_eq!((port.item.as_str(), port.then.as_str()), ("UDP port 7402", "queue 3 by rule 64"));
    let told: Vec<&str> = of("settings of Taut").iter().map(|step| step.then.as_str()).collect();
    let wanted =
        "xdp_interface = \"enp2s0\"; xdp_queues = [3]; critical_port = 7402; xdp_only_critical = true";
    assert_eq!(told, [wanted]);
}
