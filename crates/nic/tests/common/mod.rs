//! NICs that were written down, and what they are asked.

use std::path::Path;

use taut_nic::{Facts, Identity, Namespace, NicConfig};

pub fn facts(name: &str) -> Facts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("facts").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn config(facts: &Facts, lines: &str) -> NicConfig {
    NicConfig::parse(&format!("interface = {:?}\n{lines}", facts.interface), "nic.toml").unwrap()
}

pub fn identity(namespace: &str) -> Identity {
    Identity { interface: "enp2s0".to_owned(), index: 2, namespace: of_namespace(namespace, None) }
}

pub fn of_namespace(name: &str, cookie: Option<u64>) -> Namespace {
    Namespace { name: name.to_owned(), cookie }
}
