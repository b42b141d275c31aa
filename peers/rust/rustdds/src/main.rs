//! The adapter of `taut perf` for RustDDS: the contract of `peers/README.md` over its public interface.
//!
//! It has neither listeners nor wait sets: `waitset`, its blocking way, waits for the asynchronous stream
//! of samples with a parked thread; `spin` polls that stream.
#![forbid(unsafe_code)]

mod ends;
mod entities;
mod line;
mod types;
mod wait;

use std::process::ExitCode;

use byteorder::LittleEndian;
use rustdds::cdr_encoding::{from_bytes, to_writer};
use serde_json::{Value, json};
use taut_perf_kit::{Control, Options, Role, Stop, coding, roles};

use line::RustDdsLine;
use types::*;

/// The library tells it nowhere; the manifest pins it.
const VERSION: &str = "0.15.1";

fn main() -> ExitCode {
    let info = json!({
        "peer": "rustdds",
        "version": VERSION,
        "transports": ["udp"],
        "roles": ["ping", "pong", "pub", "sub", "cdr", "entities", "node"],
        "types": ["bytes", "simple", "complex"],
        "waits": ["waitset", "spin"],
        "variants": [],
        "multicast": false,
        "loan": false,
        "daemon": false,
        "note": "Its blocking wait is an asynchronous stream, polled by a thread that parks. Sequences of \
                 bytes go by serde_bytes. Its write takes the sample, so each is cloned. Within a process \
                 all goes through UDP: no thread, no intra. No plain: serde has arrays up to 32 elements. \
                 keep-all holds 4,096 samples; its default of 64 loses what it has acknowledged",
    });
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    if options.role != Role::Cdr && options.transport != "udp" {
        return Err(Stop::Absent(format!("no transport {} for this role", options.transport)));
    }
    if options.loan() {
        return Err(Stop::Absent("no loans".into()));
    }
    if options.wait == "listener" {
        return Err(Stop::Absent("no data listeners".into()));
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
        (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
    }
}

fn with_type<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let (ping, pong, data) = (Some("perf_ping"), Some("perf_pong"), Some("perf_data"));
    match options.role {
        Role::Ping => {
            let mut line = RustDdsLine::<T, T::Answer>::open(options, ping, pong, true)?;
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = RustDdsLine::<T::Answer, T>::open(options, pong, ping, false)?;
            roles::pong(&mut line, options, control, T::answer)
        }
        Role::Pub => {
            let mut line = RustDdsLine::<T, Ack>::open(options, data, None, true)?;
            roles::publish(&mut line, options, control, RustDdsLine::flush)
        }
        Role::Sub => {
            let mut line = RustDdsLine::<Ack, T>::open(options, None, data, false)?;
            roles::subscribe(&mut line, options, control)
        }
        Role::Cdr => encoded::<T>(options, control),
        role => Err(Stop::Absent(format!("no role {role:?}"))),
    }
}

/// The encoding that its writers and readers use, into a buffer that is kept.
fn encoded<T: Type>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let encode = |sample: &T, buffer: &mut Vec<u8>| {
        buffer.clear();
        Ok(to_writer::<T, LittleEndian, _>(buffer, sample)?)
    };
    coding::cdr(options, control, encode, |bytes| Ok(from_bytes::<T, LittleEndian>(bytes)?.0))
}
