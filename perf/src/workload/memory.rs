//! What each entity adds to a process.

use std::time::Duration;

use crate::accounting::holding;
use crate::args::Options;
use crate::bench::Bench;
use crate::case::Case;
use crate::catalog::Peer;
use crate::contract::Event;
use crate::record::Memory;
use crate::session::{Session, Start, Trouble};
use crate::workload::traffic::STARTING_S;
use crate::workload::{Round, Work, transports};

/// Making 100 endpoints: the slowest peer takes 2 s.
const STEP_LIMIT: Duration = Duration::from_secs(20);

/// More steps than the contract has are somebody's endless loop.
const STEPS_MOST: usize = 20;

/// One case.
pub fn cases(options: &Options, _: f64) -> Vec<Case> {
    let case = |transport| Case::new("memory", Some(transport), 0, Box::new(Entities));
    let mut cases: Vec<Case> = transports(options).into_iter().map(case).collect();
    for case in &mut cases {
        // Memory does not depend on the moment: a round tells all.
        (case.rounds, case.pin) = (options.rounds.unwrap_or(1), options.pin);
    }
    cases
}

struct Entities;

impl Work for Entities {
    fn roles(&self) -> &'static [&'static str] {
        &["entities"]
    }

    fn has_type(&self) -> bool {
        false
    }

    fn weighs(&self) -> bool {
        true
    }

    fn has_ends(&self) -> bool {
        false
    }

    fn estimate_s(&self, _: &Case) -> f64 {
        STARTING_S
    }

    fn round(&self, bench: &Bench, peer: &Peer, case: &Case) -> Result<Round, Trouble> {
        let mut session = Session::begin(bench, peer, case)?;
        let owner = session.start(Start::near("entities"))?;
        let wait = session.ready(owner)?;
        let mut before = holding(session.pid(owner));
        let mut memory = vec![Memory {
            entity: "process".to_string(),
            count: 1,
            bytes_each: before.bytes as i64,
            threads: before.threads,
            descriptors: before.descriptors,
        }];
        loop {
            session.say(owner, "go");
            let (entity, count) = match session.expect_any(owner, &["step", "done"], STEP_LIMIT)? {
                Event::Step(entity, count) => (entity, count.max(1)),
                _ => break,
            };
            let after = holding(session.pid(owner));
            memory.push(Memory {
                entity,
                count,
                bytes_each: (after.bytes as i64 - before.bytes as i64) / count as i64,
                threads: after.threads,
                descriptors: after.descriptors,
            });
            before = after;
            if memory.len() > STEPS_MOST {
                return Err(Trouble::failed("entities: steps without end"));
            }
        }
        let flaw = session.finish()?;
        Ok(Round { memory, wait, flaw, ..Round::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::options;
    use crate::contract::Info;

    #[test]
    fn who_is_built_with_more_than_the_product_is_not_weighed() {
        let list = |word: &str| vec![word.to_string()];
        let mut peer =
            Peer { name: "taut".into(), variant: String::new(), program: "/".into(), info: Info::default() };
        (peer.info.transports, peer.info.roles) = (list("udp"), list("entities"));
        let case = cases(&options(""), 1.0).remove(0);
        assert_eq!(case.obstacle(&peer), None);
        peer.info.built_with = list("dpdk");
        let why = "built with dpdk, which would be weighed as its own: build the adapter without";
        assert_eq!(case.obstacle(&peer).as_deref(), Some(why));
    }
}
