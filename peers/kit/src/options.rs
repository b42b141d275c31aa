//! The command line of an adapter: a role, then pairs of options, those that are unknown ignored.
//!
//! Read by hand: a parser that can explain itself to people takes more memory than a participant, and would
//! be part of what is measured.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::Value;

/// What the process is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the roles are those of peers/README.md")]
pub enum Role {
    Info,
    Ping,
    Pong,
    Pub,
    Sub,
    Crowd,
    Local,
    Cdr,
    Entities,
    Node,
    Daemon,
    Flood,
    Sink,
}

impl Role {
    fn named(word: &str) -> Option<Role> {
        Some(match word {
            "info" => Role::Info,
            "ping" => Role::Ping,
            "pong" => Role::Pong,
            "pub" => Role::Pub,
            "sub" => Role::Sub,
            "crowd" => Role::Crowd,
            "local" => Role::Local,
            "cdr" => Role::Cdr,
            "entities" => Role::Entities,
            "node" => Role::Node,
            "daemon" => Role::Daemon,
            "flood" => Role::Flood,
            "sink" => Role::Sink,
            _ => return None,
        })
    }
}

/// All options of `peers/README.md`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the options are those of peers/README.md")]
pub struct Options {
    pub role: Role,
    pub transport: String,
    pub variant: String,
    pub domain: u32,
    pub interface: String,
    pub address: String,
    pub remote: String,
    pub reliability: String,
    pub history: String,
    pub multicast: String,
    pub wait: String,
    pub kind: String,
    pub size: usize,
    pub loan: String,
    pub warmup: u64,
    pub count: u64,
    pub duration_ms: u64,
    pub period_ns: u64,
    pub burst: u64,
    pub interval_ns: u64,
    pub remotes: usize,
    pub index: usize,
    pub nodes: usize,
    pub endpoints: usize,
    pub threads: usize,
    pub connections: usize,
    pub rate_mbit: u64,
    pub samples: PathBuf,
}

impl Options {
    /// Reads a role and pairs of options; a later pair of a name counts.
    ///
    /// # Errors
    ///
    /// What makes no sense: no role, a word that is none, a number that is none.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let mut words = words.into_iter();
        let role = words.next().ok_or("no role")?;
        let role = Role::named(&role).ok_or_else(|| format!("no role {role}"))?;
        let mut options = Options::of(role);
        while let Some(key) = words.next() {
            let value = words.next().unwrap_or_default();
            options.set(&key, value)?;
        }
        Ok(options)
    }

    fn of(role: Role) -> Options {
        Options {
            role,
            transport: "udp".into(),
            variant: String::new(),
            domain: 1,
            interface: "lo".into(),
            address: "127.0.0.1".into(),
            remote: "127.0.0.1".into(),
            reliability: "reliable".into(),
            history: "keep-last:1".into(),
            multicast: "no".into(),
            wait: "block".into(),
            kind: "bytes".into(),
            size: 64,
            loan: "no".into(),
            warmup: 0,
            count: 1_000,
            duration_ms: 0,
            period_ns: 0,
            burst: 0,
            interval_ns: 0,
            remotes: 1,
            index: 0,
            nodes: 1,
            endpoints: 1,
            threads: 1,
            connections: 1,
            rate_mbit: 0,
            samples: PathBuf::new(),
        }
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), String> {
        match key {
            "--transport" => self.transport = value,
            "--variant" => self.variant = value,
            "--domain" => self.domain = number(key, &value)?,
            "--interface" => self.interface = value,
            "--address" => self.address = value,
            "--remote" => self.remote = value,
            "--reliability" => self.reliability = value,
            "--history" => self.history = value,
            "--multicast" => self.multicast = value,
            "--wait" => self.wait = value,
            "--type" => self.kind = value,
            "--size" => self.size = number(key, &value)?,
            "--loan" => self.loan = value,
            "--warmup" => self.warmup = number(key, &value)?,
            "--count" => self.count = number(key, &value)?,
            "--duration-ms" => self.duration_ms = number(key, &value)?,
            "--period-ns" => self.period_ns = number(key, &value)?,
            "--burst" => self.burst = number(key, &value)?,
            "--interval-ns" => self.interval_ns = number(key, &value)?,
            "--remotes" => self.remotes = number(key, &value)?,
            "--index" => self.index = number(key, &value)?,
            "--nodes" => self.nodes = number(key, &value)?,
            "--endpoints" => self.endpoints = number(key, &value)?,
            "--threads" => self.threads = number::<usize>(key, &value)?.max(1),
            "--connections" => self.connections = number(key, &value)?,
            "--rate-mbit" => self.rate_mbit = number(key, &value)?,
            "--samples" => self.samples = value.into(),
            _ => {}
        }
        Ok(())
    }

    /// Is it to be reliable?
    pub fn reliable(&self) -> bool {
        self.reliability == "reliable"
    }

    /// The depth of KEEP_LAST; `None` is KEEP_ALL.
    pub fn depth(&self) -> Option<usize> {
        self.history.strip_prefix("keep-last:").map(|depth| depth.parse().unwrap_or(1))
    }

    /// Is it to wait without sleeping?
    pub fn spin(&self) -> bool {
        self.wait == "spin"
    }

    /// Are samples to be borrowed?
    pub fn loan(&self) -> bool {
        self.loan == "yes"
    }

    /// Is data to go by multicast?
    pub fn multicast(&self) -> bool {
        self.multicast == "yes"
    }

    /// All samples of a run, warm-up included.
    pub fn total(&self) -> u64 {
        self.warmup + self.count
    }
}

fn number<T: FromStr<Err: std::fmt::Display>>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{key} {value}: {error}"))
}

/// Reads the command line of this process; prints what is wrong and exits with 2 if it makes no sense.
pub(crate) fn parse(info: &Value) -> Options {
    Options::read(std::env::args().skip(1)).unwrap_or_else(|wrong| {
        eprintln!("This is the adapter {} of taut perf; see peers/README.md: {wrong}", info["peer"]);
        std::process::exit(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        Options::read(line.split_whitespace().map(String::from))
    }

    #[test]
    fn options_are_pairs_and_unknown_ones_are_ignored() {
        let options = read("sub --type plain --new-one 8 --size 256 --samples a/b --size 512").unwrap();
        assert_eq!((options.role, options.kind.as_str(), options.size), (Role::Sub, "plain", 512));
        assert_eq!((options.samples, options.count), (PathBuf::from("a/b"), 1_000));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        assert_eq!(read("").unwrap_err(), "no role");
        assert_eq!(read("pobg").unwrap_err(), "no role pobg");
        assert!(read("pub --size -3").unwrap_err().starts_with("--size -3: "));
        assert!(read("pub --size").unwrap_err().starts_with("--size : "));
    }
}
