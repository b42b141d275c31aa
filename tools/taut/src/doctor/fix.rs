//! `--fix` and `--undo`: values that are written, and what they were before; what is added.
//!
//! Before a value is written or something added it is recorded in a file that a reboot takes away, as it does both. Writes
//! below [`PLACES`] only, and takes away what bears the sign of `taut doctor`; whatever the file says, nothing else is
//! touched. One process at a time holds the file.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use taut_nic::Namespace;

use super::addition::Addition;
use super::finding::Write;
use super::system::System;
use crate::failure::Failure;
use crate::store::{Store, is_root, may_forget};

/// What was done to a file of the kernel or to its routes and rules, or why nothing was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// The file, or where what was added belongs.
    pub path: String,
    /// The value before; [`NOTHING`] where something was added.
    pub from: String,
    pub to: String,
    /// Why it was left as it is; `None` if it was changed.
    pub left: Option<String>,
    /// Did the system refuse it?
    pub refused: bool,
}

/// What there was before something was added, and what there is once it was taken away.
const NOTHING: &str = "none";

/// What takes it back.
const UNDO: &str = "taut doctor --undo";

/// What was done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Record {
    Written(Written),
    Added(Added),
}

/// What was added, and the network namespace that it is in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Added {
    added: Addition,
    #[serde(flatten)]
    namespace: Namespace,
}

/// A value that was written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Written {
    path: String,
    before: String,
    written: String,
    /// The network namespace that it belongs to; `None`: the machine.
    #[serde(flatten)]
    namespace: Option<Namespace>,
    /// What there was just before, until it is known to be written; `None` too in records of a version that kept it not.
    replaced: Option<String>,
}

impl Written {
    /// Is this value ours: what was written, or what was to be replaced when a process ended before it was?
    fn is_ours(&self, value: &str) -> bool {
        self.written == value || self.replaced.as_deref() == Some(value)
    }
}

impl Record {
    /// The network namespace that it is of; `None`: the machine.
    fn namespace(&self) -> Option<&Namespace> {
        match self {
            Record::Written(written) => written.namespace.as_ref(),
            Record::Added(added) => Some(&added.namespace),
        }
    }
}

/// The records of this machine, held by one process.
pub struct Ledger {
    store: Store,
    records: Vec<Record>,
    /// The network namespace of this process.
    namespace: Namespace,
}

impl Ledger {
    /// *Errors*: as [`Store::open`].
    pub fn open(directory: PathBuf, namespace: Namespace) -> Result<Ledger, Failure> {
        Ok(Ledger::new(Store::open(directory, "doctor")?, namespace))
    }

    /// The same for what takes back ([`Store::open_existing`]).
    ///
    /// *Errors*: as [`Store::open`].
    pub fn open_existing(directory: PathBuf, namespace: Namespace) -> Result<Ledger, Failure> {
        Ok(Ledger::new(Store::open_existing(directory, "doctor")?, namespace))
    }

    /// What is recorded of a namespace that has lost its name to this one is gone with it, and is no record any more.
    fn new((store, mut records): (Store, Vec<Record>), namespace: Namespace) -> Ledger {
        records.retain(|record| !record.namespace().is_some_and(|of| of.is_gone_by(&namespace)));
        Ledger { store, records, namespace }
    }

    /// The network namespace that a record is of, if it is another one.
    fn elsewhere<'a>(&self, record: &'a Record) -> Option<&'a Namespace> {
        record.namespace().filter(|namespace| !namespace.is(&self.namespace))
    }

    /// Does a record belong to this value, as this process sees it?
    fn is_of(&self, record: &Record, path: &str) -> bool {
        matches!(record, Record::Written(written) if written.path == path) && self.elsewhere(record).is_none()
    }

    /// Gives a file its value and records what it was.
    pub fn apply(&mut self, system: &System, write: &Write) -> Change {
        let from = match system.value(&write.path) {
            Ok(value) => value,
            Err(unseen) => return Change::refused(&write.path, "", &write.value, unseen.to_string()),
        };
        if !is_allowed(&write.path) {
            return Change::refused(&write.path, &from, &write.value, not_allowed());
        }
        let old = self.records.clone();
        let written = self.record(&from, write).and_then(|()| {
            system.write(&write.path, &write.value).map_err(|error| refusal(&write.path, &error))
        });
        if let Err(why) = written {
            self.records = old;
            // The record of a value that was not written does no harm: --undo finds what it was to replace.
            let _ = self.store.save(&self.records);
            return Change::refused(&write.path, &from, &write.value, why);
        }
        // The kernel may have made something else of it: --undo is to know that as ours.
        let now = system.value(&write.path).unwrap_or_else(|_| write.value.clone());
        self.conclude(&now);
        Change::done(&write.path, &from, &now)
    }

    /// Records a value that is about to be written over `from`. A process that ends before it is leaves `from`.
    fn record(&mut self, from: &str, write: &Write) -> Result<(), String> {
        let before = self.records.iter().find_map(|record| match record {
            Record::Written(earlier) if self.is_of(record, &write.path) && earlier.is_ours(from) => {
                Some(earlier.before.clone())
            }
            _ => None,
        });
        let record = Record::Written(Written {
            path: write.path.clone(),
            // What we wrote ourselves is not what was before.
            before: before.unwrap_or_else(|| from.to_owned()),
            written: write.value.clone(),
            namespace: write.of_namespace.then(|| self.namespace.clone()),
            replaced: Some(from.to_owned()),
        });
        let kept = self.records.iter().filter(|record| !self.is_of(record, &write.path)).cloned();
        self.records = kept.chain([record]).collect();
        self.store.save(&self.records)
    }

    /// Records that what was recorded last is written: what it has replaced is somebody else's choice from now on.
    fn conclude(&mut self, now: &str) {
        if let Some(Record::Written(last)) = self.records.last_mut() {
            last.replaced = None;
            now.clone_into(&mut last.written);
        }
        // Should it fail, the record from before leads back as well, unless the kernel has another value now.
        let _ = self.store.save(&self.records);
    }

    /// Records something and adds it.
    pub fn add(&mut self, addition: &Addition) -> Change {
        let old = self.records.clone();
        let record = Record::Added(Added { added: addition.clone(), namespace: self.namespace.clone() });
        let same = |other: &Record| {
            let is_it = matches!(other, Record::Added(earlier) if earlier.added == *addition);
            is_it && self.elsewhere(other).is_none()
        };
        let kept = self.records.iter().filter(|other| !same(other)).cloned();
        self.records = kept.chain([record]).collect();
        let (place, says) = (addition.place(), addition.says());
        match self.store.save(&self.records).and_then(|()| addition.add()) {
            Ok(()) => Change::done(&place, NOTHING, &says),
            Err(why) => {
                self.records = old;
                // The record of what was not added does no harm: --undo does not find it.
                let _ = self.store.save(&self.records);
                Change::refused(&place, NOTHING, &says, why)
            }
        }
    }

    /// Puts back what was before where it is still what was written, takes away what was added, and forgets both. What is
    /// of other network namespaces stays, and its records.
    ///
    /// *Errors*: [`Failure::System`] if the records cannot be written.
    pub fn undo(&mut self, system: &System) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        // What was written last is taken back first.
        for record in self.records.clone().into_iter().rev() {
            let elsewhere = self.elsewhere(&record);
            let change = match &record {
                Record::Written(written) => take_back(system, written, elsewhere),
                Record::Added(Added { added, .. }) => take_away(added, elsewhere),
            };
            if !change.refused && elsewhere.is_none() {
                self.records.retain(|other| *other != record);
            }
            // Each by itself: a process that ends leaves no record of what somebody may set anew.
            self.store.save(&self.records).map_err(Failure::System)?;
            changes.push(change);
        }
        self.store.save(&self.records).map_err(Failure::System)?;
        Ok(changes)
    }

    /// Forgets what is recorded of a network namespace that is gone, by its name.
    ///
    /// *Errors*: [`Failure::Wrong`] for the own one and what is none, [`Failure::System`] if the records cannot be written.
    pub fn forget(&mut self, name: &str) -> Result<Vec<Change>, Failure> {
        may_forget(name, &self.namespace)?;
        let is_told = |record: &Record| record.namespace().is_some_and(|of| of.name == name);
        let (told, kept): (Vec<_>, Vec<_>) = self.records.drain(..).partition(is_told);
        self.records = kept;
        self.store.save(&self.records).map_err(Failure::System)?;
        let why = format!("forgotten, as it belongs to the network namespace {name}");
        let forgotten = |record: &Record| match record {
            Record::Written(Written { path, before, written, .. }) => {
                Change::left(path, written, before, &why)
            }
            Record::Added(Added { added, .. }) => Change::left(&added.place(), &added.says(), NOTHING, &why),
        };
        Ok(told.iter().map(forgotten).collect())
    }
}

/// Puts back what a value was before.
fn take_back(system: &System, record: &Written, elsewhere: Option<&Namespace>) -> Change {
    let Written { path, before, written, .. } = record;
    let left = |why: &str| Change::left(path, written, before, why);
    if let Some(namespace) = elsewhere {
        return left(&namespace.left_elsewhere(UNDO));
    }
    if !is_allowed(path) {
        return left(&not_allowed());
    }
    let found = match system.value(path) {
        Ok(value) if value == *before => return left("it is so already"),
        Ok(value) if record.is_ours(&value) => value,
        Ok(value) => return left(&format!("somebody has set it to {value} since")),
        Err(unseen) if unseen.is_absent() => return left("it is gone"),
        Err(unseen) => return Change::refused(path, written, before, unseen.to_string()),
    };
    match system.write(path, before) {
        Ok(()) => Change::done(path, &found, before),
        Err(error) => Change::refused(path, &found, before, refusal(path, &error)),
    }
}

/// Takes away what was added.
fn take_away(added: &Addition, elsewhere: Option<&Namespace>) -> Change {
    let (place, says) = (added.place(), added.says());
    let left = |why: &str| Change::left(&place, &says, NOTHING, why);
    if let Some(namespace) = elsewhere {
        return left(&namespace.left_elsewhere(UNDO));
    }
    match added.remove() {
        Ok(true) => Change::done(&place, &says, NOTHING),
        Ok(false) => left("it is gone"),
        Err(why) => Change::refused(&place, &says, NOTHING, why),
    }
}

impl Change {
    fn done(path: &str, from: &str, to: &str) -> Change {
        Change { path: path.to_owned(), from: from.to_owned(), to: to.to_owned(), left: None, refused: false }
    }

    fn left(path: &str, from: &str, to: &str, why: &str) -> Change {
        Change { left: Some(why.to_owned()), ..Change::done(path, from, to) }
    }

    fn refused(path: &str, from: &str, to: &str, why: String) -> Change {
        Change { left: Some(why), refused: true, ..Change::done(path, from, to) }
    }
}

/// Where settings are: sysctls, interrupts, devices.
const PLACES: [&str; 3] = ["/proc/sys/", "/proc/irq/", "/sys/"];

/// Files of settings only, without a way out of their directories.
fn is_allowed(path: &str) -> bool {
    let below = PLACES.iter().any(|place| path.starts_with(place));
    below && !path.split('/').any(|part| part == "..")
}

fn not_allowed() -> String {
    format!("it is not below {}", PLACES.join(" or "))
}

/// The call, why it was refused, and what to do.
fn refusal(path: &str, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied if !is_root() => "root may: use sudo",
        io::ErrorKind::PermissionDenied if path.starts_with("/proc/sys/net/") => {
            "it belongs to the host's network namespace: `nsenter --net=/proc/1/ns/net taut doctor --fix`"
        }
        io::ErrorKind::ReadOnlyFilesystem => "a container may not: do it on the host",
        _ => "this kernel or machine does not let it be changed",
    };
    format!("write {path}: {error}; {remedy}")
}

#[cfg(test)]
pub mod tests {
    use super::super::finding::{Finding, State};
    use super::super::system::tests::tree;
    use super::*;

    const BUFFER: &str = "/proc/sys/net/core/rmem_max";
    const MEMBERS: &str = "/proc/sys/net/ipv4/igmp_max_memberships";
    const PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    /// A machine whose files keep what is written to them, and a place for records.
    struct Machine {
        system: System,
        tree: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Machine {
            let (tree, system) =
                tree(&[(BUFFER, "212992\n"), (MEMBERS, "1\n"), (PAGES, "[always] madvise never\n")]);
            Machine { system, tree }
        }

        fn ledger(&self, namespace: &str) -> Ledger {
            self.ledger_of(namespace, Some(1))
        }

        fn ledger_of(&self, namespace: &str, cookie: Option<u64>) -> Ledger {
            Ledger::open(self.tree.path().join("run/taut"), named(namespace, cookie)).unwrap()
        }

        fn value(&self, path: &str) -> String {
            self.system.value(path).unwrap()
        }

        fn records(&self) -> bool {
            self.tree.path().join("run/taut/doctor.json").exists()
        }
    }

    /// Does to a machine with these files what `--fix` does about the finding of a check, and takes it back: then the files
    /// are as they were, and what is found of them, too.
    pub fn mends_and_takes_back(files: &[(&str, &str)], check: impl Fn(&System) -> Finding) {
        let (tree, system) = tree(files);
        let machine = Machine { system, tree };
        let found = check(&machine.system);
        assert_eq!(found.state, State::WorthChanging, "{found:?}");
        for write in found.mend.iter().flat_map(|mend| &mend.writes) {
            let change = machine.ledger("net:[1]").apply(&machine.system, write);
            assert_eq!((change.left, &change.to), (None, &write.value), "{}", change.path);
        }
        assert_eq!(check(&machine.system).state, State::Good, "it is mended");
        let changes = machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert!(changes.iter().all(|change| change.left.is_none()), "{changes:?}");
        for (path, before) in files {
            assert_eq!(machine.system.text(path).unwrap(), before.trim(), "{path}");
        }
        assert_eq!(check(&machine.system), found);
        assert!(!machine.records(), "it is forgotten");
    }

    fn named(name: &str, cookie: Option<u64>) -> Namespace {
        Namespace { name: name.to_owned(), cookie }
    }

    fn write(path: &str, value: &str, of_namespace: bool) -> Write {
        Write { path: path.to_owned(), value: value.to_owned(), of_namespace }
    }

    #[test]
    fn what_was_before_comes_back() {
        let machine = Machine::new();
        for (path, value) in [(BUFFER, "4194304"), (PAGES, "madvise")] {
            let change = machine.ledger("net:[1]").apply(&machine.system, &write(path, value, false));
            assert_eq!((change.left, change.to.as_str()), (None, value));
        }
        assert_eq!([machine.value(BUFFER), machine.value(PAGES)], ["4194304", "madvise"]);
        let changes = machine.ledger("net:[2]").undo(&machine.system).unwrap();
        let done: Vec<_> = changes.iter().map(|change| (change.path.as_str(), change.to.as_str())).collect();
        assert_eq!(done, [(PAGES, "always"), (BUFFER, "212992")]);
        assert_eq!([machine.value(BUFFER), machine.value(PAGES)], ["212992", "always"]);
        assert!(!machine.records(), "it is forgotten");
        assert_eq!(machine.ledger("net:[1]").undo(&machine.system).unwrap(), []);
    }

    #[test]
    fn what_somebody_else_has_set_stays() {
        let machine = Machine::new();
        machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, "4194304", false));
        machine.system.write(BUFFER, "8388608").unwrap();
        let changes = machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(changes[0].left.as_deref(), Some("somebody has set it to 8388608 since"));
        assert_eq!(machine.value(BUFFER), "8388608");
        assert!(!machine.records(), "it is forgotten");
    }

    #[test]
    fn a_second_fix_keeps_the_first_value() {
        let machine = Machine::new();
        machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, "4194304", false));
        machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, "8388608", false));
        machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(machine.value(BUFFER), "212992");
        machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, "4194304", false));
        machine.system.write(BUFFER, "300000").unwrap();
        machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, "4194304", false));
        machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(machine.value(BUFFER), "300000", "what somebody set in between was before");
    }

    /// At the moments behind the record, and behind the value.
    #[test]
    fn a_second_fix_that_is_killed() {
        let (first, second, third) = ("4194304", "8388608", "16777216");
        for is_written in [false, true] {
            for is_fixed_again in [false, true] {
                let machine = Machine::new();
                machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, first, false));
                machine.ledger("net:[1]").record(first, &write(BUFFER, second, false)).unwrap();
                if is_written {
                    machine.system.write(BUFFER, second).unwrap();
                }
                if is_fixed_again {
                    machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, third, false));
                }
                let changes = machine.ledger("net:[1]").undo(&machine.system).unwrap();
                assert_eq!(
                    (machine.value(BUFFER).as_str(), machine.records()),
                    ("212992", false),
                    "{changes:?}"
                );
            }
        }
    }

    #[test]
    fn a_first_fix_that_is_killed() {
        let machine = Machine::new();
        machine.ledger("net:[1]").record("212992", &write(BUFFER, "4194304", false)).unwrap();
        let changes = machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(changes[0].left.as_deref(), Some("it is so already"));
        assert_eq!((machine.value(BUFFER).as_str(), machine.records()), ("212992", false));
    }

    #[test]
    fn what_was_replaced_is_ours_until_it_is() {
        let machine = Machine::new();
        for value in ["4194304", "8388608"] {
            machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, value, false));
        }
        machine.system.write(BUFFER, "4194304").unwrap();
        let changes = machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(changes[0].left.as_deref(), Some("somebody has set it to 4194304 since"));
    }

    #[test]
    fn what_the_kernel_has_made_of_a_value() {
        let machine = Machine::new();
        // Of a list the word in brackets is in force.
        let change =
            machine.ledger("net:[1]").apply(&machine.system, &write(PAGES, "always [madvise]", false));
        assert_eq!((change.left, change.to.as_str()), (None, "madvise"));
        machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(machine.value(PAGES), "always");
    }

    /// Another may have its number; and records of a version that kept no cookie have it alone.
    #[test]
    fn a_namespace_that_is_gone() {
        let machine = Machine::new();
        let fix = |cookie| {
            machine.system.write(MEMBERS, "1").unwrap();
            machine.ledger_of("net:[1]", cookie).apply(&machine.system, &write(MEMBERS, "20", true));
        };
        fix(Some(3));
        assert_eq!(machine.ledger_of("net:[1]", Some(7)).undo(&machine.system).unwrap(), []);
        assert!(machine.value(MEMBERS) == "20" && !machine.records());
        fix(None);
        machine.ledger_of("net:[1]", Some(7)).undo(&machine.system).unwrap();
        assert!(machine.value(MEMBERS) == "1" && !machine.records());
    }

    #[test]
    fn a_record_of_an_earlier_version() {
        let machine = Machine::new();
        let records = format!(
            r#"[{{"path":"{MEMBERS}","before":"5","written":"1","namespace":"net:[1]"}},
            {{"path":"{BUFFER}","before":"7","written":"212992","namespace":null}}]"#
        );
        let ledger = machine.ledger("net:[2]");
        std::fs::write(machine.tree.path().join("run/taut/doctor.json"), records).unwrap();
        drop(ledger);
        machine.ledger("net:[2]").undo(&machine.system).unwrap();
        assert_eq!([machine.value(MEMBERS), machine.value(BUFFER)], ["1", "7"]);
        machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(machine.value(MEMBERS), "5");
    }

    #[test]
    fn what_is_told_to_be_forgotten() {
        let machine = Machine::new();
        machine.ledger("net:[1]").apply(&machine.system, &write(MEMBERS, "20", true));
        machine.ledger("net:[1]").apply(&machine.system, &write(BUFFER, "4194304", false));
        let own = machine.ledger("net:[1]").forget("net:[1]");
        assert!(own.is_err_and(|failure| failure.to_string().contains("undo without --forget")));
        let left = machine.ledger("net:[2]").undo(&machine.system).unwrap();
        let why = left[1].left.as_ref().unwrap();
        assert!(why.ends_with("forget it by `taut doctor --undo --forget 'net:[1]'`"), "{why}");
        assert_eq!(machine.ledger("net:[2]").forget("net:[3]").unwrap(), []);
        let forgotten = machine.ledger("net:[2]").forget("net:[1]").unwrap();
        let why = "forgotten, as it belongs to the network namespace net:[1]";
        assert_eq!(forgotten, [Change::left(MEMBERS, "20", "1", why)]);
        assert!(machine.value(MEMBERS) == "20" && !machine.records());
    }

    #[test]
    fn each_network_namespace_has_its_own() {
        let machine = Machine::new();
        machine.ledger("net:[1]").apply(&machine.system, &write(MEMBERS, "20", true));
        let changes = machine.ledger("net:[2]").undo(&machine.system).unwrap();
        assert!(changes[0].left.as_ref().unwrap().contains("network namespace net:[1]"), "{changes:?}");
        assert!(machine.value(MEMBERS) == "20" && machine.records());
        machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert!(machine.value(MEMBERS) == "1" && !machine.records());
    }

    #[test]
    fn nothing_is_written_without_a_record() {
        let machine = Machine::new();
        let mut ledger = machine.ledger("net:[1]");
        // A directory where the file would be.
        std::fs::create_dir(machine.tree.path().join("run/taut/doctor.json.new")).unwrap();
        let change = ledger.apply(&machine.system, &write(BUFFER, "4194304", false));
        assert!(change.refused && change.left.unwrap().contains("record it in"));
        assert_eq!(machine.value(BUFFER), "212992");
    }

    #[test]
    fn a_refusal_leaves_no_record() {
        let machine = Machine::new();
        let path = "/proc/sys/net/core/none";
        let change = machine.ledger("net:[1]").apply(&machine.system, &write(path, "1", false));
        assert!(change.refused && change.left.unwrap().contains("there is no /proc/sys/net/core/none"));
        assert!(!machine.records());
    }

    #[test]
    fn files_that_are_no_settings() {
        for path in ["/etc/passwd", "/proc/sysrq-trigger", "/sys/../etc/passwd", "proc/sys/a"] {
            assert!(!is_allowed(path), "{path}");
        }
        let machine = Machine::new();
        let place = machine.tree.path().join("etc");
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("passwd"), "ours").unwrap();
        let record = r#"[{"path":"/etc/passwd","before":"theirs","written":"ours","namespace":null}]"#;
        let ledger = machine.ledger("net:[1]");
        std::fs::write(machine.tree.path().join("run/taut/doctor.json"), record).unwrap();
        drop(ledger);
        machine.ledger("net:[1]").undo(&machine.system).unwrap();
        assert_eq!(std::fs::read_to_string(place.join("passwd")).unwrap(), "ours");
    }

    #[test]
    fn what_was_added_in_another_network_stays_there() {
        let machine = Machine::new();
        let ledger = machine.ledger("net:[1]");
        let record = r#"[{"added":{"route":{"interface":"eth0","index":7}},"namespace":"net:[2]"}]"#;
        std::fs::write(machine.tree.path().join("run/taut/doctor.json"), record).unwrap();
        drop(ledger);
        let changes = machine.ledger("net:[1]").undo(&machine.system).unwrap();
        let change = &changes[0];
        assert_eq!((change.path.as_str(), change.from.as_str()), ("routes by eth0", "239.255.0.0/16"));
        assert!(change.left.as_ref().unwrap().contains("network namespace net:[2]") && machine.records());
    }

    #[test]
    fn one_at_a_time() {
        let machine = Machine::new();
        let _held = machine.ledger("net:[1]");
        let second = Ledger::open(machine.tree.path().join("run/taut"), named("net:[1]", None));
        assert!(second.is_err_and(|failure| failure.to_string().contains("another taut doctor is at work")));
    }
}
