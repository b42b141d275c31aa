//! The stored counts: for each target, what they were counted with and what they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

/// Where they are.
pub const FILE: &str = "docs/results/instructions.json";

/// All targets.
#[derive(Default, Debug)]
pub struct Baselines(BTreeMap<String, Record>);

/// The counts of one target.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Versions and settings that the counts depend on.
    pub tools: BTreeMap<String, String>,
    /// By path. *Units*: instructions per operation.
    pub counts: BTreeMap<String, f64>,
}

impl Record {
    /// What is not as it was, a line each.
    pub fn differences(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let none = "none".to_string();
        let names = self.tools.keys().chain(now.keys().filter(|name| !self.tools.contains_key(*name)));
        names
            .map(|name| (name, self.tools.get(name).unwrap_or(&none), now.get(name).unwrap_or(&none)))
            .filter(|(_, old, new)| old != new)
            .map(|(name, old, new)| format!("{name}: {old}, now {new}"))
            .collect()
    }
}

impl Baselines {
    /// What is stored; nothing if there is no file.
    pub fn load(root: &Path) -> Result<Baselines, String> {
        match fs::read_to_string(root.join(FILE)) {
            Ok(text) => Baselines::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Baselines::default()),
            Err(error) => Err(format!("{FILE}: {error}")),
        }
    }

    fn parse(text: &str) -> Result<Baselines, String> {
        let wrong =
            |what: &str| format!("{FILE}: {what}; take it from the history, or delete and store it anew");
        let all: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let all = all.as_object().ok_or_else(|| wrong("is no object"))?;
        let mut targets = BTreeMap::new();
        for (target, record) in all {
            let part = |name: &str| {
                let part = record.get(name).and_then(Value::as_object);
                part.ok_or_else(|| wrong(&format!("{target} has no {name}")))
            };
            let tools = part("counted_with")?.iter().map(|(name, value)| {
                let value = value.as_str().ok_or_else(|| wrong(&format!("{name} is no text")))?;
                Ok((name.clone(), value.to_string()))
            });
            let counts = part("instructions")?.iter().map(|(name, value)| {
                let value = value.as_f64().filter(|value| *value > 0.0);
                Ok((name.clone(), value.ok_or_else(|| wrong(&format!("{name} is no count")))?))
            });
            let tools = tools.collect::<Result<_, String>>()?;
            let counts = counts.collect::<Result<_, String>>()?;
            targets.insert(target.clone(), Record { tools, counts });
        }
        Ok(Baselines(targets))
    }

    /// The counts of a target.
    pub fn of(&self, target: &str) -> Option<&Record> {
        self.0.get(target)
    }

    /// The counts of all targets.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = &Record> {
        self.0.values()
    }

    /// Replaces the counts of a target.
    pub fn put(&mut self, target: &str, record: Record) {
        self.0.insert(target.to_string(), record);
    }

    /// Writes the file.
    pub fn store(&self, root: &Path) -> Result<(), String> {
        fs::write(root.join(FILE), self.text()).map_err(|error| format!("{FILE}: {error}"))
    }

    fn text(&self) -> String {
        let object = |entries: Vec<(&String, Value)>| {
            Value::Object(entries.into_iter().map(|(name, value)| (name.clone(), value)).collect())
        };
        let record = |record: &Record| {
            let tools =
                record.tools.iter().map(|(name, value)| (name, Value::from(value.as_str()))).collect();
            // A tenth is less than a thousandth of the shortest path.
            let rounded = |count: &f64| Value::from((count * 10.0).round() / 10.0);
            let counts = record.counts.iter().map(|(name, count)| (name, rounded(count))).collect();
            let parts = [("counted_with", object(tools)), ("instructions", object(counts))];
            Value::Object(Map::from_iter(parts.map(|(name, value)| (name.to_string(), value))))
        };
        let all = object(self.0.iter().map(|(target, one)| (target, record(one))).collect());
        format!("{all:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rustc: &str) -> Record {
        Record {
            tools: [("rustc".to_string(), rustc.to_string())].into(),
            counts: [("wire/parse".to_string(), 156.0)].into(),
        }
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let mut baselines = Baselines::default();
        baselines.put("x86_64", record("1.95.0"));
        baselines.put("aarch64", record("1.96.0"));
        let read = Baselines::parse(&baselines.text()).unwrap();
        assert_eq!(read.of("x86_64"), Some(&record("1.95.0")));
        assert_eq!(read.of("aarch64"), Some(&record("1.96.0")));
        assert_eq!(read.of("riscv64"), None);
    }

    #[test]
    fn a_broken_file_is_no_baseline() {
        for text in ["", "[]", "{\"x\": {}}", "{\"x\": {\"counted_with\": {}, \"instructions\": {\"a\": 0}}}"]
        {
            assert!(Baselines::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_difference_of_tools_is_told() {
        let old = record("1.95.0");
        assert!(old.differences(&old.tools).is_empty());
        let now = [("rustc".to_string(), "1.96.0".to_string()), ("libc".to_string(), "2.36".to_string())];
        assert_eq!(old.differences(&now.into()), ["rustc: 1.95.0, now 1.96.0", "libc: none, now 2.36"]);
    }
}
