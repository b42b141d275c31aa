//! The adapter of `taut perf` for Taut: the contract of `peers/README.md` over the public interface.
//!
//! `listener` answers in the callback, on the background thread that drives; `waitset`, which is the best
//! of the blocking ways and so `block`, waits on the thread that takes; `spin` drives without sleeping and
//! creates no thread.
#![forbid(unsafe_code)]

mod called;
mod cdr;
mod entities;
mod line;
mod local;
mod types;

use std::process::ExitCode;

use serde_json::{Value, json};
use taut_mem::CountingAllocator;
use taut_perf_kit::{Control, Options, Role, Stop, roles};

use line::{Domain, TautLine};
use types::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    let info = json!({
        "peer": "taut",
        "version": env!("CARGO_PKG_VERSION"),
        "transports": ["thread", "intra", "udp"],
        "roles": ["ping", "pong", "pub", "sub", "local", "cdr", "entities", "node"],
        "types": ["bytes", "plain", "simple", "complex"],
        "waits": ["listener", "waitset", "spin"],
        "variants": [],
        "multicast": true,
        "loan": false,
        "daemon": false,
        "note": "plain up to 65,536 B. Within a process data does not leave it",
    });
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    let places = if options.role == Role::Local { ["thread", "intra"].as_slice() } else { &["udp"] };
    if options.role != Role::Cdr && !places.contains(&options.transport.as_str()) {
        return Err(Stop::Absent(format!("no transport {} for this role", options.transport)));
    }
    if options.loan() {
        return Err(Stop::Absent("no loans".into()));
    }
    match options.role {
        Role::Entities => entities::steps(options, control),
        Role::Node => entities::node(options, control),
        _ => by_type(options, control),
    }
}

fn by_type(options: &Options, control: &Control) -> Result<Value, Stop> {
    match (options.kind.as_str(), options.size) {
        ("bytes", 28..) => with_type::<Bytes>(options, control),
        ("simple", _) => with_type::<Simple>(options, control),
        ("complex", _) => with_type::<Complex>(options, control),
        ("plain", 16) => with_type::<Plain16>(options, control),
        ("plain", 64) => with_type::<Plain64>(options, control),
        ("plain", 256) => with_type::<Plain256>(options, control),
        ("plain", 1_024) => with_type::<Plain1024>(options, control),
        ("plain", 4_096) => with_type::<Plain4096>(options, control),
        ("plain", 8_192) => with_type::<Plain8192>(options, control),
        ("plain", 16_384) => with_type::<Plain16384>(options, control),
        ("plain", 65_536) => with_type::<Plain65536>(options, control),
        (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
    }
}

fn with_type<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let listens = options.wait == "listener";
    match options.role {
        Role::Ping if listens => called::ping::<T>(options, control),
        Role::Pong if listens => called::pong::<T>(options, control),
        Role::Sub if listens => called::subscribe::<T>(options, control),
        Role::Ping => {
            let mut line = TautLine::<T, T::Answer>::new(options, "perf_ping", "perf_pong")?;
            line.wait_matched(options)?;
            control.count_allocations(CountingAllocator::of_process);
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = TautLine::<T::Answer, T>::new(options, "perf_pong", "perf_ping")?;
            roles::pong(&mut line, options, control, T::answer)
        }
        Role::Pub => {
            let mut line = TautLine::<T, Ack>::sender(options)?;
            line.wait_matched(options)?;
            control.count_allocations(CountingAllocator::of_process);
            roles::publish(&mut line, options, control, TautLine::flush)
        }
        Role::Sub => roles::subscribe(&mut TautLine::<Ack, T>::receiver(options)?, options, control),
        Role::Local => {
            control.count_allocations(CountingAllocator::of_process);
            local::local::<T>(options, control)
        }
        Role::Cdr => cdr::cdr::<T>(options, control),
        role => Err(Stop::Absent(format!("no role {role:?}"))),
    }
}

impl Domain {
    /// Failing to make an entity is a failure of the trial.
    fn open(options: &Options) -> Result<Domain, Stop> {
        Ok(Domain(taut::DomainParticipant::with_config(&line::config(options))?))
    }
}
