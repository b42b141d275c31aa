//! The program `perf/gate` under callgrind: instructions per operation of each path.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use toml::Table;

use crate::programs::{build, text_of, valgrind};
use crate::workspace::read_toml;

/// Paths with their instructions per operation, in the program's order.
pub type Counts = Vec<(String, f64)>;

/// The program.
const PACKAGE: &str = "taut-gate";
/// Callgrind counts below this function only, and each call of it by itself, see `perf/gate/src/rounds.rs`.
const COUNTED: &str = "taut_gate::rounds::counted_rounds";
/// A run takes a second or two. Lower stops one on a busy machine, higher makes a hang look like work.
const RUN_LIMIT_SECONDS: &str = "120";
/// The C library chooses its memcpy by the processor, and one of them (`rep movsb`) counts an
/// instruction a byte. Without these the same is chosen on every x86-64 machine.
const TUNABLES: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-ERMS";

/// The built program, ready to be run.
pub struct Gate {
    root: PathBuf,
    program: PathBuf,
    valgrind: PathBuf,
    /// Runs a command in a network of its own; empty where the system has none.
    around: Vec<PathBuf>,
}

/// One path as the program lists it.
struct Task {
    name: String,
    rounds: [String; 2],
}

impl Gate {
    /// Finds Valgrind and builds the program as it is shipped: profile `release`.
    pub fn build(root: &Path) -> Result<Gate, String> {
        let valgrind = valgrind().map_err(|error| format!("bench-gate: {error}"))?;
        let program = build(root, PACKAGE).map_err(|error| format!("bench-gate: {error}"))?;
        let netns = root.join("scripts/in-netns.sh");
        let has_netns = Command::new(&netns).arg("--check").output().is_ok_and(|out| out.status.success());
        let around = if has_netns { vec![netns] } else { Vec::new() };
        Ok(Gate { root: root.to_path_buf(), program, valgrind, around })
    }

    /// What the counts depend on besides our code.
    pub fn tools(&self) -> Result<BTreeMap<String, String>, String> {
        let rustc = text_of(Command::new("rustc").arg("--version"))?;
        let libc = text_of(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
        let valgrind = text_of(Command::new(&self.valgrind).arg("--version"))?;
        let flags = env::var("RUSTFLAGS").unwrap_or_default();
        let tools = [
            ("rustc", rustc.as_str()),
            ("libc", &libc),
            ("valgrind", &valgrind),
            ("profile", &profile(&read_toml(&self.root.join("Cargo.toml"))?)),
            ("rustflags", &flags),
        ];
        Ok(tools.into_iter().map(|(name, value)| (name.to_string(), value.trim().to_string())).collect())
    }

    /// The target that the program is built for.
    pub fn target(&self) -> Result<String, String> {
        let text = text_of(Command::new("rustc").arg("-vV"))?;
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_string).ok_or_else(|| "bench-gate: `rustc -vV` names no host".to_string())
    }

    /// Measures all paths.
    pub fn measure(&self) -> Result<Counts, String> {
        self.measure_some(|_| true)
    }

    /// Measures the paths whose names are wanted, as many at a time as the machine has processors.
    pub fn measure_some(&self, wanted: impl Fn(&str) -> bool) -> Result<Counts, String> {
        let list = text_of(Command::new(&self.program).arg("list"))?;
        let mut tasks = list.lines().map(Task::parse).collect::<Result<Vec<Task>, String>>()?;
        tasks.retain(|task| wanted(&task.name));
        let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = || loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(at) else { return };
            let result = self.measure_one(task);
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(at, result);
        };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        tasks.into_iter().zip(results.into_values()).map(|(task, count)| Ok((task.name, count?))).collect()
    }

    /// A short and a long run: what is the same in both falls out of the difference.
    fn measure_one(&self, task: &Task) -> Result<f64, String> {
        let [short, long] = &task.rounds;
        let (short, long) = (self.count(&task.name, short)?, self.count(&task.name, long)?);
        per_operation(short, long).ok_or_else(|| {
            let what = "counted nothing: is counted_rounds in perf/gate inlined?";
            format!("bench-gate: {}: {what} ({short:?}, {long:?})", task.name)
        })
    }

    /// Instructions and operations of one run. Nothing but the arguments is handed over, as the size of
    /// the environment moves the stack, and that moves counts.
    fn count(&self, path: &str, rounds: &str) -> Result<Run, String> {
        let directory = self.program.parent().unwrap_or(&self.root);
        let out = directory.join(format!("{PACKAGE}-{}-{rounds}.callgrind", path.replace('/', "-")));
        let mut option = std::ffi::OsString::from("--callgrind-out-file=");
        option.push(&out);
        let program = Path::new(".").join(self.program.file_name().unwrap_or_default());
        let mut command = Command::new("timeout");
        command.current_dir(directory).args(["--kill-after=5", RUN_LIMIT_SECONDS]).args(&self.around);
        command.args(["env", "-i", TUNABLES]).arg(&self.valgrind).args(["--quiet", "--tool=callgrind"]);
        command.arg(format!("--toggle-collect={COUNTED}")).arg(format!("--dump-after={COUNTED}"));
        command.args(["--combine-dumps=yes", "--dump-line=no"]).arg(option).arg(program).args([path, rounds]);
        let text = text_of(&mut command).map_err(|error| format!("bench-gate: {path}: {error}"))?;
        let counted = fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        let _ = fs::remove_file(&out);
        let operations = numbers_after(&text, "operations ").next();
        let run = operations.map(|operations| Run::of(numbers_after(&counted, "totals: "), operations));
        run.ok_or_else(|| format!("bench-gate: {path}: it has not told how many operations it did"))
    }
}

impl Task {
    fn parse(line: &str) -> Result<Task, String> {
        let mut words = line.split_whitespace().map(str::to_string);
        match (words.next(), words.next(), words.next()) {
            (Some(name), Some(short), Some(long)) => Ok(Task { name, rounds: [short, long] }),
            _ => Err(format!("bench-gate: {PACKAGE} lists a path that cannot be read: {line}")),
        }
    }
}

/// What one run has counted.
#[derive(Clone, Copy, Debug)]
struct Run {
    instructions: u64,
    operations: u64,
}

impl Run {
    /// Of what each call counted, all of which do the same. Each counts as the lower quartile, as the clock only adds: what a
    /// busy machine lets fall into most of them does not count.
    fn of(calls: impl Iterator<Item = u64>, operations: u64) -> Run {
        // What follows the last call is written, too, and has counted nothing.
        let mut calls: Vec<u64> = calls.filter(|count| *count > 0).collect();
        calls.sort_unstable();
        let quartile = calls.get(calls.len() / 4).copied().unwrap_or_default();
        Run { instructions: quartile * calls.len() as u64, operations }
    }
}

fn per_operation(short: Run, long: Run) -> Option<f64> {
    let instructions = long.instructions.checked_sub(short.instructions).filter(|more| *more > 0)?;
    let operations = long.operations.checked_sub(short.operations).filter(|more| *more > 0)?;
    Some(instructions as f64 / operations as f64)
}

fn numbers_after<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = u64> + 'a {
    text.lines().filter_map(move |line| line.strip_prefix(key)?.trim().parse().ok())
}

/// The settings of the release profile that decide what the compiler makes of the code.
fn profile(manifest: &Table) -> String {
    let release = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    let setting = |name: &str, default: &str| {
        let value = release.and_then(|release| release.get(name));
        value.map_or(default.to_string(), |value| value.as_str().map_or(value.to_string(), str::to_string))
    };
    // The defaults are cargo's.
    let (level, lto, units) =
        (setting("opt-level", "3"), setting("lto", "false"), setting("codegen-units", "16"));
    format!("opt-level {level}, lto {lto}, codegen-units {units}, panic {}", setting("panic", "unwind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_up_falls_out_of_the_difference() {
        let run = |instructions, operations| Run { instructions, operations };
        assert_eq!(per_operation(run(156_018, 1_000), run(468_018, 3_000)), Some(156.0));
        assert_eq!(per_operation(run(0, 1_000), run(0, 3_000)), None, "nothing was counted");
        assert_eq!(per_operation(run(5, 10), run(9, 10)), None, "nothing was done");
    }

    #[test]
    fn a_timer_in_some_calls_does_not_count() {
        assert_eq!(Run::of([170, 100, 900, 100, 170, 0].into_iter(), 5).instructions, 500);
        assert_eq!(Run::of([156_018, 0].into_iter(), 1_000).instructions, 156_018);
        assert_eq!(Run::of([].into_iter(), 1).instructions, 0);
    }

    #[test]
    fn numbers_are_found_in_what_the_programs_write() {
        let numbers = |text: &str, key| numbers_after(text, key).collect::<Vec<u64>>();
        assert_eq!(numbers("operations 68\n", "operations "), [68]);
        assert_eq!(numbers("events: Ir\nsummary: 7\ntotals: 9\n\ntotals: 0\n", "totals: "), [9, 0]);
        assert!(numbers("", "totals: ").is_empty());
    }

    #[test]
    fn the_profile_is_part_of_what_is_compared() {
        let of = |text: &str| profile(&text.parse().unwrap());
        assert_eq!(of(""), "opt-level 3, lto false, codegen-units 16, panic unwind");
        let own = "[profile.release]\nlto = 'thin'\nopt-level = 2";
        assert_eq!(of(own), "opt-level 2, lto thin, codegen-units 16, panic unwind");
    }
}
