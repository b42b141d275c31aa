//! Memory of the whole process, kept and taken beforehand. It starts itself again: what it asks for is the process's.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use taut::{Config, DdsType, DomainParticipant, Duration, Qos};

/// What the process is to do that this one starts.
const ROLE: &str = "TAUT_TEST_LOCKS";
/// Samples that come first, with which the heap and the stack of this thread grow.
const WARM: u32 = 100;
/// Samples that are counted.
const SAMPLES: u32 = 10_000;
/// Processes that are tried. In one whose threads were kept waiting for long, more waits for readers that are late than did
/// in [`WARM`] samples, and memory grows for that: none is so often.
const TRIES: usize = 4;
const SOON: Duration = Duration::from_secs(10);

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

fn config(domain_id: u32, local: bool, lock_process: bool) -> Config {
    Config { domain_id, local, lock_process, interfaces: vec!["lo".into()], ..Config::default() }
}

/// Pages that this process has waited for.
fn faults() -> i64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    usage.minor_page_faults() + usage.major_page_faults()
}

/// Page faults while samples go from a writer to a reader, by a thread of the program that waits for each.
fn faults_of_samples(domain_id: u32, local: bool, lock_process: bool) -> i64 {
    let new = || DomainParticipant::with_config(&config(domain_id, local, lock_process)).unwrap();
    let (here, there) = (new(), new());
    let qos = Qos::default().reliable().keep_last(16);
    let writer = here.topic::<Number>("Pages").unwrap().writer(qos.clone()).unwrap();
    let reader = there.topic::<Number>("Pages").unwrap().reader(qos).unwrap();
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    let mut before = 0;
    for value in 0..WARM + SAMPLES {
        if value == WARM {
            before = faults();
        }
        writer.write(&Number { value }).unwrap();
        reader.wait(SOON).unwrap();
        while reader.take_next().unwrap().is_some() {}
    }
    faults() - before
}

/// Does nothing unless it was started as the process that locks.
#[test]
fn the_process_that_locks() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.as_str() {
        "faults" => {
            for lock in [false, true] {
                for local in [true, false] {
                    let faults = faults_of_samples(72, local, lock);
                    println!("local {local}, locked {lock}: {faults} page faults");
                }
            }
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            println!("{}", status.lines().find(|line| line.starts_with("VmLck")).unwrap());
        }
        _ => match DomainParticipant::with_config(&config(73, true, true)) {
            Ok(_) => println!("granted"),
            Err(error) => println!("refused: {error}"),
        },
    }
}

/// What a process says that was started by `before` and does this.
fn told(before: &[&str], role: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "the_process_that_locks", "--nocapture", "--quiet"];
    let mut words = before.iter().map(Into::into).chain([program.into_os_string()]);
    let mut command = Command::new(words.next().unwrap());
    let output = command.args(words).args(arguments).env(ROLE, role).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn no_sample_waits_for_a_page() {
    if !is_root() {
        return println!("not tested: it needs CAP_IPC_LOCK");
    }
    let ways = ["local true, locked true: 0 page", "local false, locked true: 0 page"];
    let tries: Vec<String> = (0..TRIES).map(|_| told(&[], "faults")).collect();
    let told = tries.iter().find(|told| ways.iter().all(|way| told.contains(way)));
    let told = told.unwrap_or_else(|| panic!("{tries:#?}"));
    println!("{told}");
    assert!(!told.contains("local true, locked false: 0 page"), "it makes no difference: {told}");
    assert!(!told.contains("VmLck:\t       0 kB"), "{told}");
}

#[test]
fn without_the_privilege_it_is_said_how_to_get_it() {
    let limit = ["prlimit", "--memlock=65536:65536"];
    let without = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"];
    let before: Vec<&str> = limit.into_iter().chain(without.into_iter().filter(|_| is_root())).collect();
    let told = told(&before, "start");
    for part in ["refused: ", "mlockall: ", "swapped out", "ulimit -l unlimited", "CAP_IPC_LOCK"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    if is_root() {
        let told = self::told(&[], "start");
        assert!(told.contains("granted"), "{told}");
    }
}
