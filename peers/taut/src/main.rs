//! The adapter of `taut perf` for Taut: the contract of `peers/README.md` over the public interface.
//!
//! `listener` answers in the callback, on the background thread that drives; `waitset`, which is the best
//! of the blocking ways and so `block`, waits on the thread that takes; `inline` does so without a background
//! thread; `spin` drives without sleeping and creates no thread.
#![forbid(unsafe_code)]

mod called;
mod cdr;
mod entities;
mod line;
mod local;
mod settings;
mod types;

use std::process::ExitCode;

use serde_json::{Value, json};
use taut::{DdsType, Plain};
use taut_mem::CountingAllocator;
use taut_perf_kit::{Control, Options, Payload, Role, Stop, roles};

use line::Lines;
use settings::{AHEAD, Domain, SUSPENDED};
use types::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What was built.
const TRANSPORTS: &[&str] = if cfg!(feature = "dpdk") {
    &["thread", "intra", "shm", "udp", "xdp", "xdp-l2", "dpdk"]
} else {
    &["thread", "intra", "shm", "udp", "xdp", "xdp-l2"]
};

/// What is linked for them only.
const BUILT_WITH: &[&str] = if cfg!(feature = "dpdk") { &["dpdk"] } else { &[] };

fn main() -> ExitCode {
    let info = json!({
        "peer": "taut",
        "version": env!("CARGO_PKG_VERSION"),
        "transports": TRANSPORTS,
        "roles": ["ping", "pong", "pub", "sub", "crowd", "local", "cdr", "entities", "node"],
        "types": ["bytes", "plain", "simple", "complex"],
        "waits": ["listener", "waitset", "spin", "inline"],
        "variants": [SUSPENDED, AHEAD],
        "multicast": true,
        "loan": true,
        "daemon": false,
        "built_with": BUILT_WITH,
        "note": "who waits looks for up to 20 us before it sleeps, 60 where waits follow each other, as by default; \
                 ahead: and from 100 us before until 100 us after each that is expected, where they come at a steady interval; \
                 all transports from udp on with the paths of one machine turned off; dpdk, if it was built with it: memif, one to one, polls always",
    });
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    let places = match options.role {
        Role::Local => ["thread", "intra"].as_slice(),
        Role::Ping | Role::Pong | Role::Pub | Role::Sub | Role::Crowd => &TRANSPORTS[2..],
        _ => &["udp"],
    };
    if options.role != Role::Cdr && !places.contains(&options.transport.as_str()) {
        return Err(Stop::Absent(format!("no transport {} for this role", options.transport)));
    }
    let has_bursts = options.role == Role::Sub || options.role == Role::Pub && options.burst > 0;
    if options.variant == SUSPENDED && !has_bursts {
        return Err(Stop::Absent("publications are suspended for bursts".into()));
    }
    let has_rhythm = options.role == Role::Pong || options.role == Role::Ping && options.period_ns > 0;
    if options.variant == AHEAD && (!has_rhythm || options.spin()) {
        return Err(Stop::Absent(
            "only what comes at a steady interval is expected, by who may sleep".into(),
        ));
    }
    if options.loan() && options.kind != "plain" {
        return Err(Stop::Absent("loans are for type plain".into()));
    }
    match options.role {
        Role::Entities => entities::steps(options, control),
        Role::Node => entities::node(options, control),
        _ => by_type(options, control),
    }
}

fn by_type(options: &Options, control: &Control) -> Result<Value, Stop> {
    match (options.kind.as_str(), options.size) {
        ("bytes", 28..) => values::<Bytes>(options, control),
        ("simple", _) => values::<Simple>(options, control),
        ("complex", _) => values::<Complex>(options, control),
        ("plain", 16) => plain::<Plain16>(options, control),
        ("plain", 64) => plain::<Plain64>(options, control),
        ("plain", 256) => plain::<Plain256>(options, control),
        ("plain", 512) => plain::<Plain512>(options, control),
        ("plain", 1_024) => plain::<Plain1024>(options, control),
        ("plain", 4_096) => plain::<Plain4096>(options, control),
        ("plain", 8_192) => plain::<Plain8192>(options, control),
        ("plain", 16_384) => plain::<Plain16384>(options, control),
        ("plain", 65_536) => plain::<Plain65536>(options, control),
        ("plain", 1_048_576) => large::<Plain1048576>(options, control),
        ("plain", 2_097_152) => large::<Plain2097152>(options, control),
        ("plain", 4_194_304) => large::<Plain4194304>(options, control),
        ("plain", 8_388_608) => large::<Plain8388608>(options, control),
        (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
    }
}

/// Who listens is handed values; else plain memory is copied once or not at all.
fn plain<T: Type + Plain>(options: &Options, control: &Control) -> Result<Value, Stop> {
    without_line::<T>(options, control)
        .unwrap_or_else(|| with_lines(options, control, &Lines::of_plain::<T>()))
}

/// A plain type that may be too long for the stack.
fn large<T: Payload + DdsType + Plain + Send + Sync + 'static>(
    options: &Options,
    control: &Control,
) -> Result<Value, Stop> {
    if options.wait == "listener" || options.role == Role::Cdr {
        return Err(Stop::Absent(format!("no values of {} B on the stack", options.size)));
    }
    with_lines(options, control, &Lines::of_plain::<T>())
}

fn values<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    without_line::<T>(options, control)
        .unwrap_or_else(|| with_lines(options, control, &Lines::<T, T::Answer>::of_values()))
}

/// The roles without a line: of who listens, and of who only encodes.
fn without_line<T: Type>(options: &Options, control: &Control) -> Option<Result<Value, Stop>> {
    let listens = options.wait == "listener";
    match options.role {
        Role::Ping if listens => Some(called::ping::<T>(options, control)),
        Role::Pong if listens => Some(called::pong::<T>(options, control)),
        Role::Sub if listens => Some(called::subscribe::<T>(options, control)),
        Role::Cdr => Some(cdr::cdr::<T>(options, control)),
        _ => None,
    }
}

/// The roles over lines: to oneself, to who answers, and back.
fn with_lines<T: Payload + 'static, A: Payload + 'static>(
    options: &Options,
    control: &Control,
    lines: &Lines<T, A>,
) -> Result<Value, Stop> {
    let open = || Ok::<_, Stop>(Domain::open(options)?.0);
    match options.role {
        Role::Ping => {
            let mut line = (lines.there)(open()?, options, Some("perf_ping"), Some("perf_pong"))?;
            line.wait_matched(options.remotes)?;
            control.count_allocations(CountingAllocator::of_process);
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = (lines.back)(open()?, options, Some("perf_pong"), Some("perf_ping"))?;
            roles::pong(&mut line, options, control, lines.answer)
        }
        Role::Pub => {
            let mut line = (lines.one)(open()?, options, Some("perf_data"), None)?;
            line.wait_matched(options.remotes)?;
            control.count_allocations(CountingAllocator::of_process);
            roles::publish(&mut line, options, control, |line| line.flush())
        }
        Role::Crowd => {
            let participant = open()?;
            let one = |_| (lines.one)(participant.clone(), options, Some("perf_data"), None);
            let writers = (0..options.threads).map(one).collect::<Result<Vec<_>, Stop>>()?;
            for writer in &writers {
                writer.wait_matched(options.remotes)?;
            }
            control.count_allocations(CountingAllocator::of_process);
            roles::crowd(writers, options, control, |writer| writer.flush())
        }
        Role::Sub => {
            let mut line = (lines.one)(open()?, options, None, Some("perf_data"))?;
            roles::subscribe(&mut line, options, control)
        }
        Role::Local => {
            control.count_allocations(CountingAllocator::of_process);
            local::local(options, control, lines)
        }
        role => Err(Stop::Absent(format!("no role {role:?}"))),
    }
}
