//! What the pure floors must not touch: clocks, threads, locks, sockets, the environment, randomness.
//!
//! The protocol takes time as an argument, chance from a seed and bytes from a port. That is what lets
//! one core run under every driver and in the simulator; this check keeps it so.

use crate::source::Source;

/// One thing a pure crate does not use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Impurity {
    /// `Instant`, `SystemTime`.
    Clock,
    /// `std::thread`, `spawn`.
    Thread,
    /// `Mutex`, `Condvar` and whatever else may wait inside.
    Lock,
    /// Sockets, and the crates that make system calls.
    Socket,
    /// `std::env`, `std::fs`, `std::process`.
    Environment,
    /// Random sources, and hash maps whose order is one.
    Random,
}

impl Impurity {
    /// In the order of the table.
    pub const ALL: [Impurity; 6] = [
        Impurity::Clock,
        Impurity::Thread,
        Impurity::Lock,
        Impurity::Socket,
        Impurity::Environment,
        Impurity::Random,
    ];

    /// As in the table and in `layers.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Impurity::Clock => "clock",
            Impurity::Thread => "thread",
            Impurity::Lock => "lock",
            Impurity::Socket => "socket",
            Impurity::Environment => "environment",
            Impurity::Random => "random",
        }
    }
}

/// Any mention of these is a use.
const WORDS: [(Impurity, &[&str]); 5] = [
    (Impurity::Clock, &["Instant", "SystemTime", "UNIX_EPOCH", "clock_gettime"]),
    (Impurity::Thread, &["JoinHandle", "spawn", "thread_local", "available_parallelism"]),
    (
        Impurity::Lock,
        &["Mutex", "RwLock", "Condvar", "Barrier", "OnceLock", "LazyLock", "mpsc", "parking_lot"],
    ),
    (
        Impurity::Socket,
        &[
            "UdpSocket",
            "TcpStream",
            "TcpListener",
            "UnixStream",
            "UnixListener",
            "UnixDatagram",
            "ToSocketAddrs",
            "libc",
            "rustix",
            "socket2",
            "nix",
            "mio",
        ],
    ),
    (Impurity::Random, &["RandomState", "getrandom", "fastrand"]),
];

/// Modules of the standard library.
const MODULES: [(Impurity, &str); 4] = [
    (Impurity::Thread, "thread"),
    (Impurity::Environment, "env"),
    (Impurity::Environment, "fs"),
    (Impurity::Environment, "process"),
];

/// One use in the product's code.
#[derive(PartialEq, Eq, Debug)]
pub struct Use {
    /// Of what.
    pub what: Impurity,
    /// The line.
    pub line: usize,
    /// The word that gives it away.
    pub word: String,
}

/// All uses in the file, test code left out.
pub fn uses(source: &Source) -> Vec<Use> {
    let mut uses = Vec::new();
    for (index, token) in source.tokens.iter().enumerate() {
        if source.is_test(index) {
            continue;
        }
        let words =
            WORDS.iter().filter(|(_, words)| words.contains(&token.text.as_str())).map(|(what, _)| *what);
        let others = if is_default_hashed(source, index) || is_rand(source, index) {
            Some(Impurity::Random)
        } else {
            std_module(source, index)
        };
        uses.extend(words.chain(others).map(|what| Use { what, line: token.line, word: token.text.clone() }));
    }
    uses
}

/// The crate `rand`, as the start of a path.
fn is_rand(source: &Source, index: usize) -> bool {
    source.reads(index, &["rand", ":", ":"])
}

/// `std::env`, or `env` in `std::{env, …}`, first level.
fn std_module(source: &Source, index: usize) -> Option<Impurity> {
    let what = MODULES.iter().find(|(_, module)| *module == source.text(index)).map(|(what, _)| *what)?;
    let after_std =
        |at: usize| at.checked_sub(3).is_some_and(|start| source.reads(start, &["std", ":", ":"]));
    if after_std(index) {
        return Some(what);
    }
    let open = (0..index).rev().find(|at| source.close_of(*at).is_some_and(|close| close > index))?;
    let starts_an_entry = matches!(source.text(index - 1), "{" | ",");
    (starts_an_entry && source.text(open) == "{" && after_std(open)).then_some(what)
}

/// `HashMap<K, V>`, `HashSet::new()`: the default hasher takes its keys from a random source.
fn is_default_hashed(source: &Source, index: usize) -> bool {
    let hasher_at = match source.text(index) {
        "HashMap" => 2,
        "HashSet" => 1,
        _ => return false,
    };
    let mut next = index + 1;
    if source.reads(next, &[":", ":"]) {
        next += 2;
        if matches!(source.text(next), "new" | "with_capacity" | "from") {
            return true;
        }
    }
    source.text(next) == "<" && commas_in_angles(source, next) < hasher_at
}

/// How many arguments but one stand between `<` at `open` and its `>`.
fn commas_in_angles(source: &Source, open: usize) -> usize {
    let (mut depth, mut commas, mut at) = (0usize, 0, open);
    while at < source.tokens.len() {
        match source.text(at) {
            "<" => depth += 1,
            ">" if source.text(at - 1) == "-" => {}
            ">" if depth <= 1 => break,
            ">" => depth -= 1,
            // A comma before `>` ends the list, it does not begin an argument.
            "," if depth == 1 && source.text(at + 1) != ">" => commas += 1,
            _ => at = source.close_of(at).unwrap_or(at),
        }
        at += 1;
    }
    commas
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn found(text: &str) -> Vec<(Impurity, usize)> {
        let source = Source::parse(Path::new("a.rs"), text).unwrap();
        uses(&source).into_iter().map(|found| (found.what, found.line)).collect()
    }

    #[test]
    fn every_kind_is_seen() {
        use Impurity::*;
        let cases = [
            (Clock, "fn a() { std::time::Instant::now(); }"),
            (Clock, "fn a(t: SystemTime) {}"),
            (Thread, "use std::thread;"),
            (Thread, "fn a(s: &Scope) { s.spawn(|| {}); }"),
            (Lock, "struct A(std::sync::Mutex<u8>);"),
            (Lock, "static A: LazyLock<u8> = LazyLock::new(b);"),
            (Socket, "use std::net::{Ipv4Addr, UdpSocket};"),
            (Socket, "fn a() { rustix::io::close(1); }"),
            (Environment, "fn a() { std::env::var(\"A\"); }"),
            (Environment, "use std::{fmt, fs};"),
            (Random, "fn a() { rand::random() }"),
            (Random, "fn a() { getrandom::fill(b) }"),
            (Random, "struct A { m: HashMap<u8, Vec<(u8, u8)>> }"),
            (Random, "fn a() { let m = HashSet::new(); }"),
            (Random, "fn a(m: HashMap<u8, fn(u8) -> u8,>) {}"),
        ];
        for (what, text) in cases {
            assert!(found(text).contains(&(what, 1)), "{text}: {:?}", found(text));
            let in_test = format!("#[cfg(test)]\nmod tests {{ {text} }}");
            assert_eq!(found(&in_test), [], "test code may");
        }
    }

    #[test]
    fn inside_of_macros_too() {
        assert_eq!(found("macro_rules! m { () => { $crate::f(\nInstant::now()) } }"), [(Impurity::Clock, 2)]);
    }

    #[test]
    fn pure_code_passes() {
        let pure = "use std::net::{IpAddr, Ipv4Addr};\nuse std::time::Duration;\nuse std::sync::Arc;
            /// Uses no Mutex and no Instant.
            struct A { m: HashMap<u8, u8, Fixed>, s: HashSet<u8, Fixed>, b: BTreeMap<u8, u8>, env: u8 }
            const E: &str = env!(\"CARGO_PKG_NAME\");
            fn a(process: u8) { let m: Map = HashMap::default(); let t = \"std::thread\"; }";
        assert_eq!(found(pure), []);
    }
}
