//! What a command line asks for that would change nothing, or would have a line say what it is not: it is refused, with
//! what to do instead.

use crate::args::{Options, Transport, name};
use crate::workload::local;

/// Options that few workloads have a use for, and those that have, beside `all` and `smoke`.
const OF_SOME: [(&str, &[&str]); 2] =
    [("--nodes", &["fanout", "discovery"]), ("--endpoints", &["discovery"])];

/// Options that most workloads have a use for, and those that have none.
const OF_MOST: [(&str, &[&str]); 5] = [
    ("--rate", &["bursts"]),
    ("--transport", &["cdr"]),
    ("--link", WITHOUT_LINK),
    ("--mtu", WITHOUT_LINK),
    ("--loss", WITHOUT_LINK),
];

/// Those of one process, and of processes at one end.
const WITHOUT_LINK: &[&str] = &["cdr", "memory", "discovery"];

/// Those that are over a link in any case.
const OVER_LINK: [&str; 2] = ["interference", "bypass"];

/// Those that have some of each workload: what one of them has no use for another has.
const OF_EACH: [&str; 2] = ["all", "smoke"];

impl Options {
    /// What was given and would change nothing, with who would take it.
    pub(crate) fn unused(&self, workload: &str) -> Option<String> {
        let of_each = OF_EACH.contains(&workload);
        let of_some = OF_SOME.iter().find(|(option, users)| self.has(option) && !users.contains(&workload));
        if let Some((option, users)) = of_some.filter(|_| !of_each) {
            let users = users.join(" or ");
            return Some(format!("{workload} has no use for {option}: leave it out, or measure {users}"));
        }
        let of_most = OF_MOST.iter().find(|(option, others)| self.has(option) && others.contains(&workload));
        if let Some((option, _)) = of_most {
            return Some(format!("{workload} has no use for {option}: leave it out, or measure latency"));
        }
        self.without_network(workload)
    }

    /// The link that no transport goes over.
    fn without_network(&self, workload: &str) -> Option<String> {
        let transports = match workload {
            "local" if self.transport.is_empty() => &local::TRANSPORTS[..],
            _ => &self.transport[..],
        };
        let names = |takes: fn(Transport) -> bool| -> Vec<String> {
            transports.iter().filter(|transport| !takes(**transport)).map(name).collect()
        };
        let without = names(Transport::has_network);
        if OVER_LINK.contains(&workload) && !without.is_empty() {
            let names = without.join(",");
            return Some(format!(
                "{workload} is over a link and has no use for --transport {names}: leave it out, or measure latency"
            ));
        }
        let without_loss = names(Transport::is_lossy);
        let links = [("--link", &without), ("--mtu", &without), ("--loss", &without_loss)];
        let takes_none = |without: &[String]| !without.is_empty() && without.len() == transports.len();
        let (option, names) =
            links.into_iter().find(|(option, without)| self.has(option) && takes_none(without))?;
        let (names, have) = (names.join(" and "), if names.len() == 1 { "has" } else { "have" });
        Some(format!("{names} {have} no use for {option}: leave it out, or name --transport udp"))
    }

    /// Was this option given?
    fn has(&self, option: &str) -> bool {
        match option {
            "--nodes" => !self.nodes.is_empty(),
            "--endpoints" => !self.endpoints.is_empty(),
            "--rate" => self.rate.is_some(),
            "--transport" => !self.transport.is_empty(),
            "--link" => self.link,
            "--mtu" => self.mtu.is_some(),
            "--loss" => self.loss.is_some(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::options;
    use crate::case::Case;
    use crate::workload::{NAMES, cases};

    fn unused(words: &str, workload: &str) -> Option<String> {
        options(words).unused(workload)
    }

    #[test]
    fn what_would_change_nothing_is_refused() {
        let told = "latency has no use for --nodes: leave it out, or measure fanout or discovery";
        assert_eq!(unused("--nodes 2", "latency").as_deref(), Some(told));
        assert!(unused("--endpoints 2", "fanout").is_some() && unused("--rate 9", "bursts").is_some());
        let told = "cdr has no use for --transport: leave it out, or measure latency";
        assert_eq!(unused("--transport udp", "cdr").as_deref(), Some(told));
        for (words, workload) in [("--nodes 2", "fanout"), ("--nodes 2 --endpoints 1", "discovery")] {
            assert_eq!(unused(words, workload), None);
            assert_eq!((unused(words, "all"), unused(words, "smoke")), (None, None));
        }
    }

    #[test]
    fn a_link_is_refused_where_nothing_would_cross_it() {
        for option in ["--link", "--mtu 9000", "--loss 5"] {
            let word = option.split(' ').next().unwrap_or_default();
            let told = |words: &str, workload: &str| {
                let told =
                    unused(&format!("{words} {option}"), workload).unwrap_or_else(|| panic!("{words}"));
                assert!(told.contains(&format!(" no use for {word}: leave it out, or ")), "{told}");
                told
            };
            for workload in WITHOUT_LINK {
                assert!(told("", workload).starts_with(workload));
            }
            for transport in ["shm", "intra", "thread"] {
                let words = format!("--transport {transport}");
                for workload in ["latency", "throughput", "local", "write", "all"] {
                    assert!(told(&words, workload).starts_with(&format!("{transport} has ")));
                }
            }
            assert!(told("", "local").starts_with("thread and intra and shm have "));
            for words in ["", "--transport shm,udp", "--transport udp,xdp"] {
                for workload in ["latency", "interference", "bypass", "all", "smoke"] {
                    let is_refused =
                        workload != "latency" && words.contains("shm") && !OF_EACH.contains(&workload);
                    assert_eq!(
                        unused(&format!("{words} {option}"), workload).is_some(),
                        is_refused,
                        "{workload}"
                    );
                }
            }
        }
        let told = "interference is over a link and has no use for --transport shm,intra: leave it out, or measure latency";
        assert_eq!(unused("--transport shm,udp,intra", "interference").as_deref(), Some(told));
        assert_eq!(unused("--transport shm", "all"), None);
        assert_eq!(unused("--transport xdp --mtu 9000", "latency"), None);
        let told = "xdp and dpdk have no use for --loss: leave it out, or name --transport udp";
        assert_eq!(unused("--transport xdp,dpdk --loss 5", "latency").as_deref(), Some(told));
    }

    #[test]
    fn what_goes_past_the_kernel_is_over_the_link_and_loses_nothing() {
        for transport in ["xdp", "xdp-l2", "dpdk"] {
            let words = format!("--mtu 9000 --loss 5 --transport {transport}");
            for case in cases("latency", &options(&words), 1.0) {
                assert!(case.link && case.label.ends_with("link mtu 9000"), "{transport}: {}", case.label);
                assert_eq!(case.loss_permille, 0, "{transport}");
            }
        }
    }

    /// What is refused is what has no case over a link, and no other.
    #[test]
    fn only_what_crosses_a_network_is_over_a_link() {
        let is_over = |case: &Case| case.link && (case.mtu, case.loss_permille) == (9_000, 50);
        let says = |case: &Case| case.label.contains("link mtu 9000") && case.label.contains("loss 5 %");
        for workload in NAMES {
            for transport in ["thread", "intra", "shm", "udp"] {
                let words = format!("--mtu 9000 --loss 5 --transport {transport}");
                let over: Vec<(bool, bool)> = cases(workload, &options(&words), 1.0)
                    .iter()
                    .map(|case| (is_over(case), says(case)))
                    .collect();
                let has_link = transport == "udp" && !WITHOUT_LINK.contains(&workload);
                let is_all = over.iter().all(|case| *case == (has_link, has_link));
                assert!(is_all, "{workload} {transport}: {over:?}");
                assert_eq!(
                    over.is_empty(),
                    workload == "interference" && !has_link,
                    "{workload} {transport}"
                );
            }
        }
    }
}
