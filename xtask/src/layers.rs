//! The floors: who may use whom. `layers.toml` is the list, this is its meaning.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use crate::purity::Impurity;
use crate::report::Finding;
use crate::workspace::{Member, Use, Workspace};

/// Where the list is.
pub const FILE: &str = "layers.toml";

/// A crate beside the floors.
#[derive(Debug)]
struct Beside {
    uses: Vec<String>,
    used_by: Vec<String>,
}

/// The content of `layers.toml`.
#[derive(Debug)]
pub struct Layers {
    floors: BTreeMap<String, i64>,
    only: BTreeMap<String, Vec<String>>,
    beside: BTreeMap<String, Beside>,
    pure_below: i64,
    allow: Vec<(String, Vec<String>)>,
    unsafe_crates: Vec<String>,
}

impl Layers {
    /// Reads the list; an unknown key is an error, for it would check nothing.
    pub fn parse(table: &Table) -> Result<Layers, String> {
        known_keys(table, &["floors", "only", "beside", "purity", "unsafe"])?;
        let mut floors = BTreeMap::new();
        for (name, floor) in section(table, "floors")? {
            let floor =
                floor.as_integer().ok_or_else(|| format!("{FILE}: the floor of {name} is no number"))?;
            floors.insert(name.clone(), floor);
        }
        let mut only = BTreeMap::new();
        for (name, list) in section(table, "only")? {
            only.insert(name.clone(), strings(Some(list), name)?);
        }
        let mut beside = BTreeMap::new();
        for (name, entry) in section(table, "beside")? {
            let entry = entry.as_table().ok_or_else(|| format!("{FILE}: beside.{name} is no table"))?;
            known_keys(entry, &["uses", "used_by"])?;
            let (uses, used_by) = (strings(entry.get("uses"), name)?, strings(entry.get("used_by"), name)?);
            beside.insert(name.clone(), Beside { uses, used_by });
        }
        let purity = section(table, "purity")?;
        known_keys(purity, &["below", "allow"])?;
        let below = purity.get("below").and_then(Value::as_integer);
        let mut allow = Vec::new();
        for (pattern, list) in section(purity, "allow")? {
            let names = strings(Some(list), pattern)?;
            if let Some(name) =
                names.iter().find(|name| Impurity::ALL.iter().all(|what| what.name() != *name))
            {
                return Err(format!("{FILE}: purity.allow.{pattern}: {name} is nothing that is checked"));
            }
            allow.push((pattern.clone(), names));
        }
        Ok(Layers {
            floors,
            only,
            beside,
            pure_below: below.ok_or_else(|| format!("{FILE}: purity.below is missing"))?,
            allow,
            unsafe_crates: strings(section(table, "unsafe")?.get("crates"), "unsafe.crates")?,
        })
    }

    /// The floor of a crate, `None` beside the floors.
    pub fn floor(&self, name: &str) -> Option<i64> {
        self.floors.get(name).copied()
    }

    /// Must the crate be pure?
    pub fn is_pure(&self, name: &str) -> bool {
        self.floor(name).is_some_and(|floor| floor < self.pure_below)
    }

    /// May a crate below the border use it all the same?
    pub fn allows(&self, name: &str, what: Impurity) -> bool {
        self.allow
            .iter()
            .any(|(pattern, list)| matches(pattern, name) && list.iter().any(|n| n == what.name()))
    }

    /// May the crate contain unsafe code?
    pub fn allows_unsafe(&self, name: &str) -> bool {
        self.unsafe_crates.iter().any(|pattern| matches(pattern, name))
    }

    /// Every member has a place, and uses only what its place lets it see.
    pub fn check(&self, workspace: &Workspace) -> Vec<Finding> {
        let mut findings = Vec::new();
        for member in &workspace.members {
            let path = member.directory.join("Cargo.toml");
            if !self.floors.contains_key(&member.name) && !self.beside.contains_key(&member.name) {
                findings.push(Finding::error(&path, 0, format!("{} has no place in {FILE}", member.name)));
                continue;
            }
            for dependency in member.dependencies.iter().filter(|d| workspace.has(&d.name)) {
                if let Err(why) = self.may_use(member, &dependency.name, dependency.for_what) {
                    let message = format!("{} must not use {}: {why}", member.name, dependency.name);
                    findings.push(Finding::error(&path, 0, message));
                }
            }
        }
        for name in self.floors.keys().chain(self.beside.keys()).filter(|name| !workspace.has(name)) {
            findings.push(Finding::warning(
                Path::new(FILE),
                0,
                format!("{name} is no member of the workspace"),
            ));
        }
        findings
    }

    fn may_use(&self, member: &Member, used: &str, for_what: Use) -> Result<(), String> {
        let user = member.name.as_str();
        if let Some(beside) = self.beside.get(used) {
            let may = for_what == Use::Tests || beside.used_by.iter().any(|name| name == user);
            return if may { Ok(()) } else { Err(format!("beside.{used}.used_by does not list it")) };
        }
        if let Some(beside) = self.beside.get(user) {
            let may = beside.uses.iter().any(|name| name == used) || for_what == Use::Tests;
            return if may { Ok(()) } else { Err(format!("beside.{user}.uses does not list it")) };
        }
        let (Some(own), Some(other)) = (self.floor(user), self.floor(used)) else {
            return Err(format!("one of them has no place in {FILE}"));
        };
        if other >= own {
            return Err(format!("floor {own} uses lower floors only, not floor {other}"));
        }
        match self.only.get(user) {
            Some(only) if !only.iter().any(|name| name == used) => {
                Err(format!("it may use only {}", only.join(", ")))
            }
            _ => Ok(()),
        }
    }
}

/// A name, or the beginning of one before `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

fn known_keys(table: &Table, known: &[&str]) -> Result<(), String> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{FILE}: unknown key {key}, known are {}", known.join(", "))),
        None => Ok(()),
    }
}

fn section<'a>(table: &'a Table, key: &str) -> Result<&'a Table, String> {
    table.get(key).and_then(Value::as_table).ok_or_else(|| format!("{FILE}: section {key} is missing"))
}

fn strings(value: Option<&Value>, what: &str) -> Result<Vec<String>, String> {
    let list = value.and_then(Value::as_array).ok_or_else(|| format!("{FILE}: {what}: a list is missing"))?;
    let strings: Option<Vec<String>> = list.iter().map(|entry| entry.as_str().map(str::to_string)).collect();
    strings.ok_or_else(|| format!("{FILE}: {what}: not a list of names"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    const LAYERS: &str = "
        [floors]\nbase = 0\nmem = 0\nwire = 1\nport-x = 3\ntop = 5\ntool = 6
        [only]\ntool = ['top']
        [beside.sim]\nuses = ['base']\nused_by = []
        [beside.derive]\nuses = []\nused_by = ['top']
        [purity]\nbelow = 4\n[purity.allow]\n'port-*' = ['socket']
        [unsafe]\ncrates = ['mem', 'port-*']";

    fn layers() -> Layers {
        Layers::parse(&LAYERS.parse().unwrap()).unwrap()
    }

    fn errors(user: &str, used: &str, for_what: Use) -> Vec<String> {
        let member = |name: &str, dependencies| Member {
            name: name.to_string(),
            directory: name.into(),
            dependencies,
            sources: Vec::new(),
            feature_tests: Vec::new(),
        };
        let others = ["base", "mem", "wire", "port-x", "top", "tool", "sim", "derive"];
        let mut members: Vec<Member> =
            others.iter().filter(|name| **name != user).map(|n| member(n, vec![])).collect();
        members.push(member(user, vec![Dependency { name: used.to_string(), for_what }]));
        let workspace = Workspace { members, shared_dependencies: Vec::new() };
        layers().check(&workspace).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lower_floors_only() {
        assert!(errors("wire", "base", Use::Product).is_empty());
        assert_eq!(errors("base", "wire", Use::Product).len(), 1, "a higher floor");
        assert_eq!(errors("mem", "base", Use::Product).len(), 1, "the same floor");
        assert_eq!(errors("mem", "base", Use::Tests).len(), 1, "for tests neither");
        assert!(errors("wire", "serde", Use::Product).is_empty(), "not one of ours");
    }

    #[test]
    fn tools_use_the_public_interface() {
        assert!(errors("tool", "top", Use::Product).is_empty());
        assert_eq!(errors("tool", "wire", Use::Product).len(), 1);
    }

    #[test]
    fn beside_the_floors() {
        assert!(errors("sim", "base", Use::Product).is_empty());
        assert_eq!(errors("sim", "top", Use::Product).len(), 1);
        assert!(errors("top", "derive", Use::Product).is_empty());
        assert_eq!(errors("wire", "derive", Use::Product).len(), 1);
        assert!(errors("wire", "derive", Use::Tests).is_empty());
        assert_eq!(errors("wire", "sim", Use::Product).len(), 1);
    }

    #[test]
    fn a_crate_without_a_place() {
        assert_eq!(errors("new", "base", Use::Product), ["new has no place in layers.toml"]);
    }

    #[test]
    fn exemptions() {
        let layers = layers();
        assert!(
            layers.is_pure("wire")
                && layers.is_pure("port-x")
                && !layers.is_pure("top")
                && !layers.is_pure("sim")
        );
        assert!(layers.allows("port-x", Impurity::Socket) && !layers.allows("port-x", Impurity::Lock));
        assert!(!layers.allows("wire", Impurity::Socket));
        assert!(layers.allows_unsafe("port-x") && !layers.allows_unsafe("wire"));
    }

    #[test]
    fn a_wrong_list_is_refused() {
        for (from, to) in
            [("[floors]", "[flors]"), ("used_by", "usedby"), ("'socket'", "'sockets'"), ("= 0", "= 'a'")]
        {
            let table = LAYERS.replacen(from, to, 1).parse().unwrap();
            assert!(Layers::parse(&table).is_err(), "{to}");
        }
    }
}
