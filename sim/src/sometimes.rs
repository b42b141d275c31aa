//! Rare branches and how many seeds reached them: a test that never gets somewhere says nothing about it.

use std::collections::BTreeMap;

/// Every branch that a thousand seeds must reach at least once.
pub const EXPECTED: &[&str] = &[
    "bad_fragments",
    "calm",
    "class: foreign prefix",
    "class: stolen prefix",
    "crash",
    "cut one way",
    "cut both ways",
    "deadline missed",
    "dispose",
    "dispose and unregister",
    "duplicates",
    "endpoint deleted",
    "expired",
    "filtered",
    "foreign_guid",
    "fragments",
    "gap",
    "incompatible QoS",
    "initial peers only",
    "late joiner over 256 samples",
    "leave",
    "lease expired",
    "liveliness lost",
    "malformed",
    "match again",
    "matched in steps",
    "move",
    "nack_frag",
    "not_for_us",
    "other partition",
    "ownership taken over",
    "pause",
    "purged",
    "reader in the writer's participant",
    "reflected",
    "refused_by_cache",
    "restart under a new name",
    "restart under the old name",
    "separated",
    "slow start",
    "unmatched_reader",
    "unmatched_writer",
    "unregister",
    "writer full",
];

/// Branches that were reached.
#[derive(Clone, Default, Debug)]
pub struct Sometimes(BTreeMap<String, u64>);

impl Sometimes {
    /// A branch was reached.
    pub fn hit(&mut self, branch: &str) {
        self.hit_if(true, branch);
    }

    /// A branch was reached if `reached`.
    pub fn hit_if(&mut self, reached: bool, branch: &str) {
        if reached {
            match self.0.get_mut(branch) {
                Some(count) => *count += 1,
                None => drop(self.0.insert(branch.to_owned(), 1)),
            }
        }
    }

    /// Adds what one seed reached; each branch counts once.
    pub fn add_seed(&mut self, seed: &Sometimes) {
        seed.0.keys().for_each(|branch| self.hit(branch));
    }

    /// Each branch with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(branch, count)| (branch.as_str(), *count))
    }

    /// What was expected and not reached.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> + '_ {
        EXPECTED.iter().copied().filter(|branch| !self.0.contains_key(*branch))
    }
}
