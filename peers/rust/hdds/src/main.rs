//! The adapter of `taut perf` for HDDS: the contract of `peers/README.md` over its public interface.
//!
//! `listener` answers in `on_data_available`; `waitset` waits on a WaitSet and takes; `spin` takes without
//! waiting, though HDDS's own threads sleep all the same.
#![forbid(unsafe_code)]

mod called;
mod ends;
mod entities;
mod line;
mod types;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use hdds::TransportMode;
use serde_json::{Value, json};
use taut_perf_kit::{Control, Options, Role, Stop, coding, local, roles};

use line::HddsLine;
use types::*;

/// The one interface HDDS is to use. Left alone it uses all but loopback.
const INTERFACE: &str = "HDDS_INTERFACE";

/// What HDDS's documentation asks for where several processes of one machine share its ports.
const SHARED_PORTS: (&str, &str) = ("HDDS_REUSEPORT", "1");

fn main() -> ExitCode {
    if std::env::var_os(INTERFACE).is_none() {
        return with_environment();
    }
    let info = json!({
        "peer": "hdds",
        "version": hdds::VERSION,
        "transports": ["thread", "intra", "udp"],
        "roles": ["ping", "pong", "pub", "sub", "local", "cdr", "entities", "node"],
        "types": ["bytes", "plain", "simple", "complex"],
        "waits": ["listener", "waitset", "spin"],
        "variants": [],
        "multicast": false,
        "loan": false,
        "daemon": false,
        "note": "plain up to 16,384 B. Arrays and sequences of structs are beyond its derive and written by \
                 hand over its trait. Its DataWriter has no wait_for_acknowledgments: a reliable pub stops \
                 without it. The shared memory that its documentation names is not reached by its writers. \
                 Within a process readers are bound to writers with bind_to_writer. Set: HDDS_INTERFACE, without \
                 which it leaves out loopback, and HDDS_REUSEPORT=1, as it asks for on one machine",
    });
    taut_perf_kit::adapter(&info, play)
}

/// Becomes the same program with the environment that HDDS is configured by: there is no other way to
/// name an interface, and a program must not change its own environment while it has threads.
fn with_environment() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let given = words.windows(2).find(|pair| pair[0] == "--address").map(|pair| pair[1].as_str());
    let failed = std::env::current_exe().map(|program| {
        let mut command = Command::new(program);
        command.args(&words).env(INTERFACE, given.unwrap_or("127.0.0.1"));
        command.env(SHARED_PORTS.0, SHARED_PORTS.1).exec()
    });
    eprintln!("cannot start again: {failed:?}");
    ExitCode::FAILURE
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
        ("bytes", 28..) => with_type::<Sample>(options, control),
        ("simple", 4..) => with_type::<Simple>(options, control),
        ("complex", ..) => with_type::<Complex>(options, control),
        ("plain", 16) => with_type::<Plain16>(options, control),
        ("plain", 64) => with_type::<Plain64>(options, control),
        ("plain", 256) => with_type::<Plain256>(options, control),
        ("plain", 512) => with_type::<Plain512>(options, control),
        ("plain", 1_024) => with_type::<Plain1024>(options, control),
        ("plain", 4_096) => with_type::<Plain4096>(options, control),
        ("plain", 8_192) => with_type::<Plain8192>(options, control),
        ("plain", 16_384) => with_type::<Plain16384>(options, control),
        (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
    }
}

fn with_type<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let listens = matches!(options.wait.as_str(), "listener" | "block");
    match options.role {
        Role::Ping if listens => called::ping::<T>(options, control),
        Role::Pong if listens => called::pong::<T>(options, control),
        Role::Sub if listens => called::subscribe::<T>(options, control),
        Role::Ping => {
            let mut line = HddsLine::<T, T::Answer>::open(options, Some("perf_ping"), Some("perf_pong"))?;
            line.wait_matched(options)?;
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = HddsLine::<T::Answer, T>::open(options, Some("perf_pong"), Some("perf_ping"))?;
            roles::pong(&mut line, options, control, T::answer)
        }
        Role::Pub => {
            let mut line = HddsLine::<T, Ack>::open(options, Some("perf_data"), None)?;
            line.wait_matched(options)?;
            roles::publish(&mut line, options, control, |_| Ok(()))
        }
        Role::Sub => {
            let mut line = HddsLine::<Ack, T>::open(options, None, Some("perf_data"))?;
            roles::subscribe(&mut line, options, control)
        }
        Role::Local => within::<T>(options, control),
        Role::Cdr => encoded::<T>(options, control),
        role => Err(Stop::Absent(format!("no role {role:?}"))),
    }
}

/// Both ends in this process: one line that talks to itself, or two in two threads.
fn within<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let participant = ends::participant(options, TransportMode::IntraProcess)?;
    if options.transport == "thread" {
        let mut line = HddsLine::<T, T>::of(participant, options, Some("perf_ping"), Some("perf_ping"))?;
        line.bind(&line);
        return local::thread(&mut line, options, control);
    }
    let (ping, pong) = (Some("perf_ping"), Some("perf_pong"));
    let mut line = HddsLine::<T, T::Answer>::of(participant.clone(), options, ping, pong)?;
    let mut other = HddsLine::<T::Answer, T>::of(participant, options, pong, ping)?;
    other.bind(&line);
    line.bind(&other);
    let answering = options.clone();
    // It ends with the process.
    std::thread::spawn(move || match local::answer(&mut other, &answering, T::answer) {
        Stop::Failed(reason) | Stop::Absent(reason) => eprintln!("the answering thread: {reason}"),
    });
    roles::ping(&mut line, options, control)
}

/// What its trait makes of the type, into a buffer that is kept.
fn encoded<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let room = options.size + 64;
    let encode = |sample: &T, buffer: &mut Vec<u8>| {
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        sample.encode_cdr2(buffer)?;
        Ok(())
    };
    coding::cdr(options, control, encode, |bytes| Ok(T::decode_cdr2(bytes)?))
}
