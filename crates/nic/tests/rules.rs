//! Which rules are planned for whose driver.

mod common;

use common::{config, facts, identity};
use taut_nic::{Able, Change, Facts, Frames, Recorded, apply, plan};

/// A rule that the driver refuses would be the last step: what it does not take is not tried.
#[test]
fn rules_that_drivers_refuse() {
    let steps = |driver: &str, lines: &str| {
        let facts = Facts { driver: driver.to_owned(), ..facts("i226.json") };
        plan(&config(&facts, lines), &facts).unwrap().steps
    };
    let rules = |driver: &str, lines: &str| {
        let steps = steps(driver, lines).into_iter();
        let frames = steps.filter_map(|step| match step.able {
            Able::Change(Change::Rule { rule, .. }) => rule.map(|(frames, _)| frames),
            _ => None,
        });
        frames.collect::<Vec<_>>()
    };
    let over_ip = "domains = [0]\nparticipants = 1\npcp = 6";
    let ports = [Frames::UdpPort(7_401), Frames::UdpPort(7_411)];
    let (tag, bare) = (Frames::Pcp(6), Frames::EtherType(0x88b5));
    for (driver, takes_types) in
        [("ixgbe", false), ("txgbe", false), ("i40e", false), ("ice", true), ("mlx5_core", true)]
    {
        assert_eq!(rules(driver, over_ip), ports, "{driver}");
        let types = if takes_types { vec![bare] } else { Vec::new() };
        assert_eq!(rules(driver, "layer = 2\npcp = 6"), types, "{driver}");
        let lost = |lines| {
            let mut steps = steps(driver, lines).into_iter();
            let step = steps.find(|step| step.item.ends_with("VLAN tag with PCP 6")).unwrap();
            assert!(
                matches!(&step.able, Able::Cannot(why) if why.contains("no priority of a tag")),
                "{step:?}"
            );
            step.lost
        };
        assert_eq!(lost(over_ip), "", "ports are steered");
        assert_eq!(lost("layer = 2\npcp = 6").is_empty(), takes_types, "{driver}");
        // All else is done.
        let facts = Facts { driver: driver.to_owned(), ..facts("i226.json") };
        let (config, mut machine) = (config(&facts, over_ip), Recorded::new(facts));
        apply(&mut machine, &config, &identity("net:[1]"), &mut Vec::new(), &mut |_| Ok(())).unwrap();
        assert!(machine.facts.spread.as_ref().unwrap().iter().all(|queue| *queue < 3), "{driver}");
    }
    for driver in ["igb", "igc"] {
        assert_eq!(
            (rules(driver, over_ip), rules(driver, "layer = 2\npcp = 6")),
            (vec![tag], vec![bare, tag])
        );
    }
}
