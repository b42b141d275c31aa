//! The command line of an adapter: pairs of options, those that are unknown ignored.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde_json::Value;

/// What the process is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "the roles are those of peers/README.md")]
pub enum Role {
    Info,
    Ping,
    Pong,
    Pub,
    Sub,
    Local,
    Cdr,
    Entities,
    Node,
    Daemon,
    Flood,
    Sink,
}

/// All options of `peers/README.md`.
#[derive(Clone, Debug, Parser)]
#[allow(missing_docs, reason = "the options are those of peers/README.md")]
pub struct Options {
    pub role: Role,
    #[arg(long, default_value = "udp")]
    pub transport: String,
    #[arg(long, default_value = "")]
    pub variant: String,
    #[arg(long, default_value_t = 1)]
    pub domain: u32,
    #[arg(long, default_value = "lo")]
    pub interface: String,
    #[arg(long, default_value = "127.0.0.1")]
    pub address: String,
    #[arg(long, default_value = "127.0.0.1")]
    pub remote: String,
    #[arg(long, default_value = "reliable")]
    pub reliability: String,
    #[arg(long, default_value = "keep-last:1")]
    pub history: String,
    #[arg(long, default_value = "no")]
    pub multicast: String,
    #[arg(long, default_value = "block")]
    pub wait: String,
    #[arg(long = "type", default_value = "bytes")]
    pub kind: String,
    #[arg(long, default_value_t = 64)]
    pub size: usize,
    #[arg(long, default_value = "no")]
    pub loan: String,
    #[arg(long, default_value_t = 0)]
    pub warmup: u64,
    #[arg(long, default_value_t = 1_000)]
    pub count: u64,
    #[arg(long, default_value_t = 0)]
    pub duration_ms: u64,
    #[arg(long, default_value_t = 0)]
    pub period_ns: u64,
    #[arg(long, default_value_t = 0)]
    pub burst: u64,
    #[arg(long, default_value_t = 0)]
    pub interval_ns: u64,
    #[arg(long, default_value_t = 1)]
    pub remotes: usize,
    #[arg(long, default_value_t = 0)]
    pub index: usize,
    #[arg(long, default_value_t = 1)]
    pub nodes: usize,
    #[arg(long, default_value_t = 1)]
    pub endpoints: usize,
    #[arg(long, default_value_t = 1)]
    pub connections: usize,
    #[arg(long, default_value_t = 0)]
    pub rate_mbit: u64,
    #[arg(long, default_value = "", value_parser = |text: &str| Ok::<_, String>(PathBuf::from(text)))]
    pub samples: PathBuf,
}

impl Options {
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

/// Reads the command line of this process; prints what is wrong and exits with 2 if it makes no sense.
pub(crate) fn parse(info: &Value) -> Options {
    let mut known = vec!["--help".to_string()];
    let command = <Options as clap::CommandFactory>::command();
    known.extend(command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))));
    let mut words = std::env::args();
    let mut kept: Vec<String> = words.by_ref().take(2).collect();
    while let Some(key) = words.next() {
        let value = words.next();
        if known.contains(&key) {
            kept.push(format!("{key}={}", value.unwrap_or_default()));
        }
    }
    if kept.len() < 2 {
        eprintln!("This is the adapter {} of taut perf; see peers/README.md.", info["peer"]);
    }
    Options::parse_from(kept)
}
