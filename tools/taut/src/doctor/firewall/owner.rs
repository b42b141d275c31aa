//! Whose the rules of a chain are, and how its owner is told to let ports through.
//!
//! A program that keeps rules of its own does not know of those that others put between them, and undoes them with the next
//! change.

use super::super::finding::{Lasts, Mend};
use super::packet::Direction;
use super::ruleset::Ruleset;

/// The tables of iptables, as far as datagrams pass through them.
const OF_IPTABLES: [&str; 5] = ["filter", "mangle", "raw", "security", "nat"];

/// What a person tells the owner of a chain; `None` if that is nobody in particular.
pub fn mend(ruleset: &Ruleset, chain: &str, (first, last): (u16, u16)) -> Option<Mend> {
    let ([family, table, name], hook) = ruleset.parts(chain)?;
    let is_out = hook == Some(Direction::Out);
    if table == "firewalld" {
        let ports = format!("--add-port={first}-{last}/udp");
        return Some(if is_out {
            Mend::by_hand(
                "firewall-cmd --list-all-policies   # let these ports out there",
                Lasts::UntilReboot,
                "",
            )
        } else {
            let undo = format!("firewall-cmd {}", ports.replace("add", "remove"));
            let command =
                format!("firewall-cmd {ports}   # with --zone=ZONE for an interface of another zone");
            Mend::by_hand(command, Lasts::UntilReboot, undo)
        });
    }
    let (program, ufw) = match family {
        "ip" => ("iptables", "ufw-"),
        "ip6" => ("ip6tables", "ufw6-"),
        _ => return None,
    };
    if !OF_IPTABLES.contains(&table) {
        return None;
    }
    if table == "filter" && ruleset.has_beside(chain, ufw) {
        let rule = format!("allow {}{first}:{last}/udp", if is_out { "out " } else { "" });
        return Some(Mend::by_hand(format!("ufw {rule}"), Lasts::ForGood, format!("ufw delete {rule}")));
    }
    let is_base = ["INPUT", "OUTPUT", "PREROUTING", "POSTROUTING"].contains(&name);
    is_base.then(|| {
        let to = |verb: &str| {
            format!("{program} -t {table} {verb} {name} -p udp --dport {first}:{last} -j ACCEPT")
        };
        Mend::by_hand(to("-I"), Lasts::UntilReboot, to("-D"))
    })
}

/// What a person types where the rules are nobody's in particular.
pub fn by_hand(chain: &str, (first, last): (u16, u16)) -> Mend {
    Mend::by_hand(
        format!("nft insert rule {chain} udp dport {first}-{last} accept"),
        Lasts::UntilReboot,
        format!("nft -a list chain {chain}, then nft delete rule {chain} handle N"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ruleset(family: &str, table: &str, name: &str, hook: &str, more: &[&str]) -> (Ruleset, String) {
        let base = json!({"family": family, "table": table, "name": name, "hook": hook, "policy": "drop"});
        let mut chains = vec![json!({"chain": base})];
        let other = |name: &&str| json!({"chain": {"family": family, "table": table, "name": name}});
        chains.extend(more.iter().map(other));
        (Ruleset::parse(&json!({"nftables": chains})), format!("{family} {table} {name}"))
    }

    #[test]
    fn each_owner_is_told_by_its_own_command() {
        for (family, table, name, hook, more, command, undo) in [
            (
                "inet",
                "firewalld",
                "filter_INPUT",
                "input",
                &[][..],
                "firewall-cmd --add-port=7400-7649/udp   # with --zone=ZONE for an interface of another zone",
                "firewall-cmd --remove-port=7400-7649/udp",
            ),
            (
                "inet",
                "firewalld",
                "filter_OUTPUT",
                "output",
                &[],
                "firewall-cmd --list-all-policies   # let these ports out there",
                "",
            ),
            (
                "ip",
                "filter",
                "INPUT",
                "input",
                &["ufw-before-input"],
                "ufw allow 7400:7649/udp",
                "ufw delete allow 7400:7649/udp",
            ),
            (
                "ip6",
                "filter",
                "OUTPUT",
                "output",
                &["ufw6-before-output"],
                "ufw allow out 7400:7649/udp",
                "ufw delete allow out 7400:7649/udp",
            ),
            (
                "ip",
                "filter",
                "INPUT",
                "input",
                &["f2b-sshd"],
                "iptables -t filter -I INPUT -p udp --dport 7400:7649 -j ACCEPT",
                "iptables -t filter -D INPUT -p udp --dport 7400:7649 -j ACCEPT",
            ),
            (
                "ip6",
                "mangle",
                "PREROUTING",
                "prerouting",
                &[],
                "ip6tables -t mangle -I PREROUTING -p udp --dport 7400:7649 -j ACCEPT",
                "ip6tables -t mangle -D PREROUTING -p udp --dport 7400:7649 -j ACCEPT",
            ),
        ] {
            let (ruleset, chain) = ruleset(family, table, name, hook, more);
            let mend = mend(&ruleset, &chain, (7_400, 7_649)).unwrap();
            assert!(!mend.is_by_fix());
            assert_eq!((mend.command.as_str(), mend.undo.as_str()), (command, undo));
        }
    }

    #[test]
    fn rules_of_nobody_in_particular() {
        for (family, table, name) in
            [("inet", "filter", "INPUT"), ("ip", "mine", "INPUT"), ("ip", "filter", "in")]
        {
            let (ruleset, chain) = ruleset(family, table, name, "input", &[]);
            assert_eq!(mend(&ruleset, &chain, (7_400, 7_649)), None, "{chain}");
        }
    }
}
