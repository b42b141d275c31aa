//! Does what is planned, with a record before each step, and takes it back in reverse order.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::change::{Change, xps_item};
use crate::config::NicConfig;
use crate::facts::Facts;
use crate::namespace::Namespace;
use crate::plan::{Able, Step, plan};

/// A NIC that can be looked at and changed.
pub trait Machine {
    /// What it is like now.
    ///
    /// *Errors*: a sentence with the call and the remedy.
    fn facts(&mut self) -> Result<Facts, String>;

    /// Makes a change, wholly or not at all.
    ///
    /// *Errors*: a sentence with the call and the remedy.
    fn change(&mut self, change: &Change) -> Result<(), String>;
}

/// Which interface it is, whatever its name will be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its name now.
    pub interface: String,
    /// Its index: a rename leaves it, and the kernel gives it to no other before it has counted round.
    pub index: u32,
    /// The network namespace that it is in.
    pub namespace: Namespace,
}

/// A change that was made, or was about to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The network interface, by the name that it had.
    pub interface: String,
    /// Its index; `None` in records of a version that kept none, whose name has to do.
    pub index: Option<u32>,
    /// The network namespace that it is in.
    #[serde(flatten)]
    pub namespace: Namespace,
    /// The step, by its name.
    pub item: String,
    /// What leads back.
    pub before: Change,
    /// What was made.
    pub written: Change,
    /// What there was just before, until it is known to be made; `None` too in records of a version that kept it not.
    pub replaced: Option<Change>,
}

impl Record {
    /// Is it about this interface, as far as can be told? Indices are those of one namespace.
    fn is_of(&self, identity: &Identity) -> bool {
        match self.index {
            Some(index) if self.namespace.is(&identity.namespace) => index == identity.index,
            _ => self.interface == identity.interface,
        }
    }

    /// Is it about this interface, and in its namespace?
    ///
    /// ```
    /// use taut_nic::{Change, Identity, Namespace, Record};
    ///
    /// let namespace = Namespace { name: "net:[1]".into(), cookie: Some(3) };
    /// let identity = Identity { interface: "eth0".into(), index: 2, namespace: namespace.clone() };
    /// let (item, before, written) = ("receive ring".into(), Change::Ring(256), Change::Ring(4_096));
    /// let interface = "eth9".into();
    /// let record = Record { interface, index: Some(2), namespace, item, before, written, replaced: None };
    /// assert!(record.is_here(&identity), "it has got another name since");
    /// ```
    pub fn is_here(&self, identity: &Identity) -> bool {
        self.namespace.is(&identity.namespace) && self.is_of(identity)
    }

    /// What of ours is there: what was written, or what was to be replaced when a process ended before it was. One that
    /// ended before it had seen what the driver made of a length has left that, too.
    fn found(&self, facts: &Facts) -> Option<Change> {
        let ours = || [Some(&self.written), self.replaced.as_ref()].into_iter().flatten();
        let found = ours().find(|change| change.holds(facts));
        let found = found.or(ours().find(|change| change.is_begun(facts))).cloned();
        found.or_else(|| self.written.rounded(facts, self.replaced.as_ref()?))
    }
}

/// What became of a step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// There was nothing to do, or nothing that could be done: [`Step::able`] says which.
    Left,
    /// It failed; the steps behind it were not tried.
    Failed(String),
}

/// What became of a record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Taken {
    /// The step.
    pub item: String,
    /// What it was.
    pub from: String,
    /// What it is now.
    pub to: String,
    /// Why it is as it was; `None`: it was taken back.
    pub left: Option<String>,
    /// Did the system refuse it? Then its record stays.
    pub refused: bool,
}

/// Keeps the records where a process that ends at any moment leaves them.
type Save<'a> = &'a mut dyn FnMut(&[Record]) -> Result<(), String>;

/// Does the steps that can be done, and ends with the first that fails. Each is planned anew on what is then: a NIC
/// with other queues has other interrupts.
///
/// *Errors*: what hinders the plan as a whole; nothing was changed then that is not recorded.
/// *Cost*: a look at the NIC for each step.
pub fn apply(
    machine: &mut impl Machine,
    config: &NicConfig,
    identity: &Identity,
    records: &mut Vec<Record>,
    save: Save,
) -> Result<Vec<(Step, Outcome)>, String> {
    let mut tried = BTreeSet::new();
    let mut outcomes = Vec::new();
    loop {
        let facts = machine.facts()?;
        let steps = plan(config, &facts)?.steps;
        let next = steps.into_iter().find(|step| !tried.contains(&step.item));
        let Some(step) = next else { return Ok(outcomes) };
        tried.insert(step.item.clone());
        let outcome = match &step.able {
            Able::Change(change) => {
                let record = record(&facts, identity, &step.item, change, records);
                match record.and_then(|record| make(machine, &facts, identity, record, records, save)) {
                    Ok(()) => Outcome::Done,
                    Err(why) => Outcome::Failed(why),
                }
            }
            _ => Outcome::Left,
        };
        let failed = matches!(outcome, Outcome::Failed(_));
        outcomes.push((step, outcome));
        if failed {
            return Ok(outcomes);
        }
    }
}

/// What has to be kept of a change that is about to be made.
fn record(
    facts: &Facts,
    identity: &Identity,
    item: &str,
    change: &Change,
    records: &[Record],
) -> Result<Record, String> {
    let here = |earlier: &&Record| earlier.is_here(identity) && earlier.item == item;
    let earlier = records.iter().filter(here).find_map(|earlier| Some((earlier, earlier.found(facts)?)));
    // What we wrote ourselves is not what was before.
    let (before, replaced) = match earlier {
        Some((earlier, found)) => (earlier.before.clone(), found),
        None => {
            let now = change.inverse(facts)?;
            (now.clone(), now)
        }
    };
    Ok(Record {
        interface: identity.interface.clone(),
        index: Some(identity.index),
        namespace: identity.namespace.clone(),
        item: item.to_owned(),
        before,
        written: change.clone(),
        replaced: Some(replaced),
    })
}

/// What a change may take away besides: other queues, and other classes of them, have no processors of their own. The
/// kernel forgets them with a queue that goes, and has them back with none.
fn taken_away(facts: &Facts, record: &Record, records: &[Record], identity: &Identity) -> Vec<Record> {
    if !matches!(record.written, Change::Channels { .. } | Change::Qdisc(_)) {
        return Vec::new();
    }
    let had =
        (0..).zip(facts.xps.as_ref().map_or(&[][..], Vec::as_slice)).filter(|(_, cpus)| !cpus.is_empty());
    let of_queue = |(queue, cpus): (u32, &Vec<u32>)| Record {
        item: xps_item(queue),
        before: Change::Xps { queue, cpus: cpus.clone() },
        written: Change::Xps { queue, cpus: Vec::new() },
        replaced: None,
        ..record.clone()
    };
    let is_known =
        |one: &Record| records.iter().any(|other| other.is_here(identity) && other.item == one.item);
    had.map(of_queue).filter(|one| !is_known(one)).collect()
}

fn make(
    machine: &mut impl Machine,
    facts: &Facts,
    identity: &Identity,
    record: Record,
    records: &mut Vec<Record>,
    save: Save,
) -> Result<(), String> {
    let old = records.clone();
    let same = |other: &Record| other.is_here(identity) && other.item == record.item;
    // One that is there keeps its place: what was made after it goes before it, as with queues the rules that name them. They
    // may have been made before there was anything to change of the queues.
    let names_queues = |other: &Record| {
        other.is_here(identity) && matches!(other.written, Change::Rule { .. } | Change::Spread(_))
    };
    let is_of_queues = matches!(record.written, Change::Channels { .. });
    let first_behind = || is_of_queues.then(|| records.iter().position(names_queues)).flatten();
    let place = records.iter().position(same).or_else(first_behind).unwrap_or(records.len());
    records.retain(|other| !same(other));
    let besides = taken_away(facts, &record, records, identity);
    // Before it, so that they are taken back after it.
    records.splice(place..place, besides.iter().chain([&record]).cloned());
    let made = save(records).and_then(|()| machine.change(&record.written));
    let now = (made.is_err() || !besides.is_empty()).then(|| machine.facts());
    let is_there = |change: &Change| matches!(&now, Some(Ok(facts)) if change.holds(facts));
    if made.is_err() && (!is_there(&record.written) || record.replaced.as_ref().is_some_and(is_there)) {
        *records = old;
        // The record of a change that was not made does no harm: undo finds another one there.
        let _ = save(records);
        return made;
    }
    records.retain(|one| !besides.contains(one) || !is_there(&one.before));
    if made.is_err() {
        // All but what belongs to it was made: undo is to know.
        save(records)?;
        return made;
    }
    if let Some(own) = records.iter_mut().find(|one| same(one)) {
        own.replaced = None;
        if let Some(written) = rounded(machine, &record.written) {
            own.written = written;
        }
    }
    save(records)
}

/// What a change has come to where that is not what was asked for: drivers take the next length of a ring that they can
/// have, or time of a timer, without a word. Undo is to know it as ours.
fn rounded(machine: &mut impl Machine, asked: &Change) -> Option<Change> {
    let (Change::Ring(_) | Change::Coalescing(_)) = asked else { return None };
    let now = asked.inverse(&machine.facts().ok()?).ok()?;
    (now != *asked).then_some(now)
}

/// Takes back what was made of this interface, in reverse order, where it is still as it was made, and forgets it.
///
/// *Errors*: the records cannot be kept, or the NIC cannot be looked at.
pub fn undo(
    machine: &mut impl Machine,
    identity: &Identity,
    records: &mut Vec<Record>,
    save: Save,
) -> Result<Vec<Taken>, String> {
    let mut all = Vec::new();
    for record in records.clone().iter().rev().filter(|record| record.is_of(identity)) {
        let taken = take_back(machine, identity, record, records)?;
        let elsewhere = !record.namespace.is(&identity.namespace);
        if !taken.refused && !elsewhere {
            records.retain(|other| other != record);
            save(records)?;
        }
        all.push(taken);
    }
    Ok(all)
}

/// What is recorded of an interface that is not `here`, in other namespaces: it is left, and how it is forgotten is said.
///
/// ```
/// use taut_nic::{Change, Namespace, Record};
///
/// let of = |name: &str| Namespace { name: name.into(), cookie: None };
/// let (interface, item) = ("eth0".to_owned(), "receive ring".to_owned());
/// let (before, written) = (Change::Ring(256), Change::Ring(4_096));
/// let record = Record { interface, index: Some(2), namespace: of("net:[1]"), item, before, written, replaced: None };
/// let left = taut_nic::left_elsewhere("eth0", &of("net:[2]"), &[record]);
/// assert!(left[0].line().ends_with("`taut nic undo eth0 --forget 'net:[1]'`"));
/// ```
pub fn left_elsewhere(interface: &str, here: &Namespace, records: &[Record]) -> Vec<Taken> {
    let is_left = |record: &&Record| record.interface == interface && !record.namespace.is(here);
    records.iter().rev().filter(is_left).map(|record| record.left_elsewhere(interface)).collect()
}

impl Record {
    fn taken_from(&self, from: &Change, left: Option<String>, refused: bool) -> Taken {
        Taken { item: self.item.clone(), from: from.shown(), to: self.before.shown(), left, refused }
    }

    /// It is of another namespace; `interface` is what the interface is called where that is told.
    fn left_elsewhere(&self, interface: &str) -> Taken {
        let why = self.namespace.left_elsewhere(&format!("taut nic undo {interface}"));
        self.taken_from(&self.written, Some(why), false)
    }
}

/// What nobody could look at is refused: it may be as it was made.
fn take_back(
    machine: &mut impl Machine,
    identity: &Identity,
    record: &Record,
    records: &[Record],
) -> Result<Taken, String> {
    let taken = |left, refused| record.taken_from(&record.written, left, refused);
    if !record.namespace.is(&identity.namespace) {
        return Ok(record.left_elsewhere(&identity.interface));
    }
    let facts = machine.facts()?;
    if record.before.holds(&facts) {
        return Ok(taken(Some("it is so already".to_owned()), false));
    }
    let Some(found) = record.found(&facts) else {
        let why = match record.written.inverse(&facts) {
            Ok(now) => format!("somebody has set it to {} since", now.shown()),
            Err(why) => match record.written.unseen(&facts) {
                Some(unseen) => return Ok(taken(Some(unseen), true)),
                None => why,
            },
        };
        return Ok(taken(Some(why), false));
    };
    let is_rule = |one: &Record| one.is_here(identity) && matches!(one.written, Change::Rule { .. });
    if record.before == Change::Ntuple(false) && records.iter().any(is_rule) {
        return Ok(taken(Some("rules could not be taken back, and would go with it".to_owned()), true));
    }
    if let Some(why) = record.before.takes_away(&facts) {
        return Ok(taken(Some(why), false));
    }
    Ok(match machine.change(&record.before) {
        Ok(()) => record.taken_from(&found, None, false),
        Err(why) => taken(Some(why), true),
    })
}
