//! The adapters that are there, those that are not, and what each says of itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::contract::Info;
use crate::process::{Output, Process};
use crate::report::peers;
use crate::session::{CHATTER_MOST, LOOK};
use crate::{Stop, Wrong};

/// The environment variable that names directories with adapters.
pub const DIRECTORIES: &str = "TAUT_PERF_PEERS";

/// The peers that an adapter is known for: built by `make peers`, or by a recipe in `peers/`.
pub const KNOWN: [&str; 16] = [
    "taut",
    "floor",
    "cyclonedds",
    "cyclonedds11",
    "fastdds",
    "hdds",
    "rustdds",
    "dust_dds",
    "iceoryx2",
    "zenoh",
    "mqtt",
    "zeromq",
    "grpc",
    "opendds",
    "connext",
    "cyclonedds-xdp",
];

/// Who is measured if nobody is named.
const DEFAULT: [&str; 4] = ["taut", "floor", "cyclonedds", "fastdds"];

/// Who is asked for each line of each study where the others are asked for a few: those whom the studies compare, and
/// the floor.
pub const NEAR: [&str; 5] = ["taut", FLOOR, "cyclonedds", "cyclonedds11", "fastdds"];

/// Why the others have no such line.
pub fn not_asked() -> String {
    format!("`taut perf all` asks only {} for it", NEAR.map(peers::name).join(", "))
}

/// Who is compared with by default in the table: of times the physical limit.
pub const FLOOR: &str = "floor";

/// `info` only prints a line; who loads a runtime first may take a second on a busy machine.
const INFO_LIMIT: Duration = Duration::from_secs(10);

/// An adapter, or a variant of it, that can be measured.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `adapter` or `adapter:variant`.
    pub name: String,
    /// The variant; empty for none.
    pub variant: String,
    /// The program.
    pub program: PathBuf,
    /// What it says of itself.
    pub info: Info,
}

/// One that is asked for.
#[derive(Clone, Debug)]
pub enum Entry {
    /// It is there.
    Found(Box<Peer>),
    /// It is not built, or has no such variant.
    Absent(String, String),
    /// It is there and does not answer.
    Failed(String, String),
}

impl Entry {
    /// Its name on the command line.
    pub fn name(&self) -> &str {
        match self {
            Entry::Found(peer) => &peer.name,
            Entry::Absent(name, _) | Entry::Failed(name, _) => name,
        }
    }
}

/// The adapters that were found, by name.
pub struct Catalog {
    programs: BTreeMap<String, PathBuf>,
    directories: Vec<PathBuf>,
    stop: Stop,
}

impl Catalog {
    /// Looks through the directories; the first program of a name counts.
    pub fn search(given: &[PathBuf], stop: Stop) -> Result<Catalog, Wrong> {
        if let Some(missing) = given.iter().find(|directory| !directory.is_dir()) {
            return Err(Wrong(format!("--peer-dir {}: no such directory", missing.display())));
        }
        let mut directories = given.to_vec();
        if let Some(listed) = std::env::var_os(DIRECTORIES) {
            directories.extend(std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()));
        }
        let program = std::env::current_exe().unwrap_or_default();
        directories.extend(program.parent().map(Path::to_path_buf));
        let here = std::env::current_dir().unwrap_or_default();
        let tops = program.ancestors().chain(here.ancestors());
        directories.extend(tops.map(|top| top.join("peers/build")).find(|build| build.is_dir()));
        let mut programs = BTreeMap::new();
        for file in directories.iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten() {
            let name = file.file_name().to_string_lossy().strip_prefix("perf-peer-").map(str::to_string);
            if let Some(name) = name.filter(|name| !name.contains('.')) {
                programs.entry(name).or_insert(std::path::absolute(file.path()).unwrap_or(file.path()));
            }
        }
        Ok(Catalog { programs, directories, stop })
    }

    /// The names of the adapters.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.programs.keys()
    }

    /// The program of an adapter.
    pub fn program(&self, adapter: &str) -> Option<&PathBuf> {
        self.programs.get(adapter)
    }

    /// Where it has looked.
    pub fn places(&self) -> String {
        let places: Vec<String> = self.directories.iter().map(|path| path.display().to_string()).collect();
        places.join(", ")
    }

    /// Those that are asked for; `all` is everyone with every variant, nobody is the default.
    pub fn choose(&self, wanted: &[String]) -> Result<Vec<Entry>, Wrong> {
        let mut names: Vec<String> = Vec::new();
        if wanted.is_empty() {
            names.extend(
                DEFAULT.iter().filter(|name| self.programs.contains_key(**name)).map(ToString::to_string),
            );
            if names.is_empty() {
                names.extend(self.programs.keys().cloned());
            }
        }
        for word in wanted {
            if word == "all" {
                // Taut first: the table compares with the floor, the eye with the first line.
                names.extend(
                    DEFAULT.iter().filter(|n| self.programs.contains_key(**n)).map(ToString::to_string),
                );
                names.extend(self.programs.keys().cloned());
            } else if !word.is_empty() {
                names.push(word.clone());
            }
        }
        let expand = wanted.iter().any(|word| word == "all");
        let mut entries: Vec<Entry> = Vec::new();
        for name in names {
            if entries.iter().all(|entry| entry.name() != name) {
                entries.extend(self.find(&name, expand)?);
            }
        }
        if entries.iter().all(|entry| matches!(entry, Entry::Absent(..))) {
            return Err(self.nobody(&entries));
        }
        Ok(entries)
    }

    /// Why none of those that are asked for is there.
    fn nobody(&self, entries: &[Entry]) -> Wrong {
        let is_built = |name: &str| self.programs.contains_key(name.split(':').next().unwrap_or_default());
        if !entries.iter().any(|entry| is_built(entry.name())) {
            return Wrong(format!(
                "no adapter is built of those that are asked for: `make peers` builds them, --peer-dir names \
                 their directory; looked in {}",
                self.places()
            ));
        }
        let reason = |entry: &Entry| match entry {
            Entry::Absent(name, reason) => Some(format!("{name}: {reason}")),
            Entry::Found(_) | Entry::Failed(..) => None,
        };
        let reasons: Vec<String> = entries.iter().filter_map(reason).collect();
        let all_built = entries.iter().all(|entry| is_built(entry.name()));
        let builds = if all_built { "" } else { "; `make peers` builds adapters" };
        Wrong(format!("nobody is there of those that are asked for: {}{builds}", reasons.join("; ")))
    }

    /// One by its name; with all its variants if it is asked to expand.
    fn find(&self, name: &str, expand: bool) -> Result<Vec<Entry>, Wrong> {
        let (adapter, variant) = name.split_once(':').unwrap_or((name, ""));
        let Some(program) = self.programs.get(adapter) else {
            // Where nothing is built nobody can tell a wrong name.
            if KNOWN.contains(&adapter) || self.programs.is_empty() {
                let reason = format!("not built: no perf-peer-{adapter} in {}", self.places());
                return Ok(vec![Entry::Absent(name.to_string(), reason)]);
            }
            let found: Vec<&str> = self.programs.keys().map(String::as_str).collect();
            return Err(Wrong(format!("unknown peer {adapter:?}: there are {}", found.join(", "))));
        };
        let info = match ask(program, self.stop) {
            Ok(info) => info,
            Err(reason) => return Ok(vec![Entry::Failed(name.to_string(), reason)]),
        };
        if !variant.is_empty() && !info.variants.iter().any(|known| known == variant) {
            let known = if info.variants.is_empty() {
                "it has none".to_string()
            } else {
                format!("there are {}", info.variants.join(", "))
            };
            let reason = format!("no variant {variant}: {known}");
            return Ok(vec![Entry::Absent(name.to_string(), reason)]);
        }
        let peer = |variant: &str| {
            let name = if variant.is_empty() { adapter.to_string() } else { format!("{adapter}:{variant}") };
            Entry::Found(Box::new(Peer {
                name,
                variant: variant.to_string(),
                program: program.clone(),
                info: info.clone(),
            }))
        };
        let mut entries = vec![peer(variant)];
        if expand && variant.is_empty() {
            entries.extend(info.variants.iter().map(|variant| peer(variant)));
        }
        Ok(entries)
    }
}

/// Runs `info`.
pub fn ask(program: &Path, stop: Stop) -> Result<Info, String> {
    ask_within(program, stop, INFO_LIMIT)
}

fn ask_within(program: &Path, stop: Stop, limit: Duration) -> Result<Info, String> {
    let (sender, lines) = sync_channel(16);
    let command: [OsString; 2] = [program.into(), "info".into()];
    let process =
        Process::spawn(&command, 0, sender).map_err(|error| format!("info: cannot start: {error}"))?;
    let end = Instant::now() + limit;
    let told = |reason: String| match process.tail() {
        tail if tail.is_empty() => reason,
        tail => format!("{reason} [{tail}]"),
    };
    let mut chatter = 0;
    while chatter <= CHATTER_MOST {
        // Before each line: of who prints without end there is always one more.
        if (stop.requested)() {
            return Err("info: interrupted".to_string());
        }
        if Instant::now() > end {
            return Err(told(format!("info: no answer within {} s", limit.as_secs())));
        }
        match lines.recv_timeout(LOOK) {
            Ok((_, Output::Line(line))) if line.starts_with('{') => {
                return serde_json::from_str(&line).map_err(|error| told(format!("info: {error}")));
            }
            Ok((_, Output::Line(line))) => {
                process.note(&line);
                chatter += 1;
            }
            Ok((_, Output::TooLong)) => return Err("info: a line that is too long".to_string()),
            Ok((_, Output::Closed)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(told("info: ended without a line of JSON".to_string()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Err(told("info: printed without end what is no JSON".to_string()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An adapter of this name that does this.
    pub fn script(directory: &Path, name: &str, does: &str) -> PathBuf {
        let (text, file) = (directory.join("text"), directory.join(format!("perf-peer-{name}")));
        std::fs::write(&text, format!("#!/bin/sh\n{does}\n")).unwrap();
        // By another process: a child of another test may have what is open here, and what is open to be written does not run.
        let made = std::process::Command::new("install").args(["-m", "755"]).arg(&text).arg(&file).status();
        assert!(made.unwrap().success());
        file
    }

    /// What comes of it within a minute.
    pub fn within_a_minute<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(run()));
        told.recv_timeout(Duration::from_secs(60)).expect("it has an end")
    }

    #[test]
    fn who_prints_without_end_is_given_up() {
        let directory = tempfile::tempdir().unwrap();
        let program = script(directory.path(), "loud", "while :; do echo hello; done");
        let go_on = Stop { requested: || false, request: || () };
        let asked = |stop: Stop, limit: Duration| {
            let program = program.clone();
            within_a_minute(move || ask_within(&program, stop, limit).map(|info| info.peer))
        };
        let told = asked(Stop { requested: || true, ..go_on }, Duration::from_secs(600)).unwrap_err();
        assert_eq!(told, "info: interrupted");
        let told = asked(go_on, Duration::ZERO).unwrap_err();
        assert!(told.starts_with("info: no answer within 0 s"), "{told}");
        let told = asked(go_on, Duration::from_secs(600)).unwrap_err();
        assert!(told.starts_with("info: printed without end what is no JSON [hello"), "{told}");
    }

    #[test]
    fn where_nothing_is_built_it_says_what_builds() {
        let stop = Stop { requested: || false, request: || () };
        let catalog = Catalog { programs: BTreeMap::new(), directories: vec!["here".into()], stop };
        for wanted in [vec![], vec!["all".into()], vec!["hdds".into()], vec!["nobody".into()]] {
            let Err(Wrong(text)) = catalog.choose(&wanted) else { panic!("{wanted:?}") };
            assert!(text.contains("make peers") && text.contains("looked in here"), "{wanted:?}: {text}");
        }
    }

    #[test]
    fn who_names_a_wrong_variant_is_told_those_that_there_are() {
        let directory = tempfile::tempdir().unwrap();
        let adapter = |name: &str, variants: &str| {
            let info = format!(
                r#"{{"peer":"{name}","version":"1","transports":[],"roles":[],"types":[],"waits":[],"variants":[{variants}]}}"#
            );
            (name.to_string(), script(directory.path(), name, &format!("echo '{info}'")))
        };
        let stop = Stop { requested: || false, request: || () };
        let programs = [adapter("taut", r#""suspended","ahead""#), adapter("floor", "")].into();
        let catalog = Catalog { programs, directories: vec!["here".into()], stop };
        let refused = |words: &str| {
            let wanted: Vec<String> = words.split(',').map(str::to_string).collect();
            catalog.choose(&wanted).map_or_else(|Wrong(text)| text, |entries| panic!("{entries:?}"))
        };
        let told = "nobody is there of those that are asked for: taut:foo: no variant foo: there are suspended, ahead";
        assert_eq!(refused("taut:foo"), told);
        let told = refused("floor:foo,hdds");
        assert!(told.contains("floor:foo: no variant foo: it has none; hdds: not built: "), "{told}");
        assert!(told.ends_with("; `make peers` builds adapters"), "{told}");
        assert!(refused("hdds").starts_with("no adapter is built of those that are asked for: "));
    }
}
