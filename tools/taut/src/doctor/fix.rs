//! `--fix` and `--undo`: values that are written, and what they were before.
//!
//! Before a value is written it is recorded in a file that a reboot takes away, as it does the value. Writes below
//! [`PLACES`] only; whatever the file says, nothing else is touched. One process at a time holds the file.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::finding::Write;
use super::system::System;
use crate::failure::Failure;
use crate::store::{Store, is_root};

/// What was done to a file of the kernel, or why nothing was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    pub path: String,
    /// The value before.
    pub from: String,
    pub to: String,
    /// Why it was left as it is; `None` if it was changed.
    pub left: Option<String>,
    /// Did the system refuse it?
    pub refused: bool,
}

/// A value that was written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Record {
    path: String,
    before: String,
    written: String,
    /// The network namespace that it belongs to; `None`: the machine.
    namespace: Option<String>,
}

/// The records of this machine, held by one process.
pub struct Ledger {
    store: Store,
    records: Vec<Record>,
    /// The network namespace of this process.
    namespace: String,
}

impl Ledger {
    /// *Errors*: as [`Store::open`].
    pub fn open(directory: PathBuf, namespace: String) -> Result<Ledger, Failure> {
        let (store, records) = Store::open(directory, "doctor")?;
        Ok(Ledger { store, records, namespace })
    }

    /// Does a record belong to this value, as this process sees it?
    fn is_of(&self, record: &Record, path: &str) -> bool {
        record.path == path && record.namespace.as_ref().is_none_or(|namespace| *namespace == self.namespace)
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
        let earlier = old.iter().find(|record| self.is_of(record, &write.path) && record.written == from);
        let record = Record {
            path: write.path.clone(),
            // What we wrote ourselves is not what was before.
            before: earlier.map_or_else(|| from.clone(), |earlier| earlier.before.clone()),
            written: write.value.clone(),
            namespace: write.of_namespace.then(|| self.namespace.clone()),
        };
        let kept = old.iter().filter(|record| !self.is_of(record, &write.path)).cloned();
        self.records = kept.chain([record]).collect();
        let written = self.store.save(&self.records).and_then(|()| {
            system.write(&write.path, &write.value).map_err(|error| refusal(&write.path, &error))
        });
        if let Err(why) = written {
            self.records = old;
            // The record of a value that was not written does no harm: --undo finds another one there.
            let _ = self.store.save(&self.records);
            return Change::refused(&write.path, &from, &write.value, why);
        }
        Change::done(&write.path, &from, &write.value)
    }

    /// Puts back what was before where it is still what was written, and forgets it. Values of other network
    /// namespaces stay, and their records.
    ///
    /// *Errors*: [`Failure::System`] if the records cannot be written.
    pub fn undo(&mut self, system: &System) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        // What was written last is taken back first.
        for record in self.records.clone().into_iter().rev() {
            let change = self.take_back(system, &record);
            let elsewhere = !self.is_of(&record, &record.path);
            if !change.refused && !elsewhere {
                self.records.retain(|other| *other != record);
            }
            changes.push(change);
        }
        self.store.save(&self.records).map_err(Failure::System)?;
        Ok(changes)
    }

    fn take_back(&self, system: &System, record: &Record) -> Change {
        let left = |why: String| Change {
            left: Some(why),
            ..Change::done(&record.path, &record.written, &record.before)
        };
        if !self.is_of(record, &record.path) {
            let namespace = record.namespace.as_deref().unwrap_or_default();
            return left(format!("it belongs to the network namespace {namespace}: undo it there"));
        }
        if !is_allowed(&record.path) {
            return left(not_allowed());
        }
        match system.value(&record.path) {
            Ok(value) if value == record.written => {}
            Ok(value) => return left(format!("somebody has set it to {value} since")),
            Err(unseen) if unseen.is_absent() => return left("it is gone".to_owned()),
            Err(unseen) => {
                return Change::refused(&record.path, &record.written, &record.before, unseen.to_string());
            }
        }
        match system.write(&record.path, &record.before) {
            Ok(()) => Change::done(&record.path, &record.written, &record.before),
            Err(error) => {
                let why = refusal(&record.path, &error);
                Change::refused(&record.path, &record.written, &record.before, why)
            }
        }
    }
}

impl Change {
    fn done(path: &str, from: &str, to: &str) -> Change {
        Change { path: path.to_owned(), from: from.to_owned(), to: to.to_owned(), left: None, refused: false }
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
mod tests {
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
            Ledger::open(self.tree.path().join("run/taut"), namespace.to_owned()).unwrap()
        }

        fn value(&self, path: &str) -> String {
            self.system.value(path).unwrap()
        }

        fn records(&self) -> bool {
            self.tree.path().join("run/taut/doctor.json").exists()
        }
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
    fn one_at_a_time() {
        let machine = Machine::new();
        let _held = machine.ledger("net:[1]");
        let second = Ledger::open(machine.tree.path().join("run/taut"), "net:[1]".to_owned());
        assert!(second.is_err_and(|failure| failure.to_string().contains("another taut doctor is at work")));
    }
}
