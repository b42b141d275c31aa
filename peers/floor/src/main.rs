//! The adapter `floor` of `taut perf`: what the machine itself can do, to stand beside every number of a
//! middleware. No discovery, no history, no repair: each transport is the bare mechanism of the kernel or
//! of memory, behind the same contract (`peers/README.md`) and the same loops as everybody else.

mod sample;
mod udp;
mod wire;

use std::process::ExitCode;

use serde_json::{Value, json};
use taut_perf_kit::{Control, Options, Role, Stop, adapter, roles};

use sample::{Bytes, Fields, Index, Numbered, Plain, Sample};
use udp::Udp;
use wire::WireLine;

fn main() -> ExitCode {
    adapter(&info(), play)
}

fn info() -> Value {
    json!({
        "peer": "floor",
        "version": env!("CARGO_PKG_VERSION"),
        "transports": ["udp"],
        "roles": ["ping", "pong", "pub", "sub", "flood", "sink"],
        "types": ["bytes", "simple", "complex", "plain"],
        "waits": ["block", "spin"],
        "variants": ["sendmmsg", "gso"],
        "multicast": true,
        "loan": false,
        "daemon": false,
        "note": "Bare system calls and bare memory: nothing is repaired, losses are counted. udp: connected \
                 sockets, receive buffer of 16 MiB where root allows it. simple and complex are the same \
                 number of bytes without structure.",
    })
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    match options.kind.as_str() {
        "bytes" => two_processes::<Bytes, Bytes>(options, control),
        "plain" => two_processes::<Plain, Plain>(options, control),
        "simple" | "complex" => two_processes::<Numbered, Index>(options, control),
        other => Err(Stop::Absent(format!("no type {other}"))),
    }
}

/// The roles that talk to another process: `S` goes out, `A` is the answer to it.
fn two_processes<S: Fields, A: Fields>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let (sample, answer) = (S::wire_len(options.size), A::wire_len(options.size));
    match (options.transport.as_str(), options.role) {
        ("udp", Role::Ping) => {
            let mut line = WireLine::<_, S, A>::new(Udp::open(options, sample, answer)?, options);
            roles::ping(&mut line, options, control)
        }
        ("udp", Role::Pong) => {
            let mut line = WireLine::<_, A, S>::new(Udp::open(options, answer, sample)?, options);
            roles::pong(&mut line, options, control, |sample: Sample<S>| sample.into_answer(options.size))
        }
        ("udp", Role::Pub) => {
            let mut line = WireLine::<_, S, S>::new(Udp::open(options, sample, sample)?, options);
            roles::publish(&mut line, options, control, |_| Ok(()))
        }
        ("udp", Role::Sub) => {
            let mut line = WireLine::<_, S, S>::new(Udp::open(options, sample, sample)?, options);
            roles::subscribe(&mut line, options, control)
        }
        (transport, role) => Err(Stop::Absent(format!("no role {role:?} over {transport}"))),
    }
}
