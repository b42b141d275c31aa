//! The adapter of `taut perf` for gRPC, as tonic: the contract of `peers/README.md` over streaming calls.
//!
//! Pong serves a call that streams both ways, pub one that streams to each subscriber. All data comes in
//! tasks of the runtime, which is the same as being called back.

mod client;
mod codec;
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use taut_perf_kit::called::{Counting, Pinging, Ponging};
use taut_perf_kit::packed::{Bytes, Layout, Packed, Plain, Seen};
use taut_perf_kit::{Control, Options, Payload, Role, Stamp, Stop, roles};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let info = json!({
        "peer": "grpc",
        "version": "0.14.9",
        "transports": ["udp"],
        "roles": ["ping", "pong", "pub", "sub"],
        "types": ["bytes", "plain"],
        "waits": ["listener"],
        "variants": [],
        "multicast": false,
        "loan": false,
        "daemon": false,
        "note": "tonic. The transport udp is HTTP/2 over TCP, without TLS. Messages are packed bytes without the \
                 tags of protobuf. ping and pong share one call that streams both ways; a subscriber is a call \
                 that streams to it. best effort drops where a subscriber's queue of 1,024 samples or 16 MiB is full; there is no history",
    });
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    let reason = if !["ping", "pong", "pub", "sub"].contains(&role(options)) {
        "no such role".to_string()
    } else if options.transport != "udp" {
        format!("no transport {}", options.transport)
    } else if !["block", "listener"].contains(&options.wait.as_str()) {
        format!("no wait {}", options.wait)
    } else if options.loan() {
        "no loans".into()
    } else {
        return match (options.kind.as_str(), options.size) {
            ("bytes", 28..) => by_role::<Bytes>(options, control),
            ("plain", 16 | 24..) => by_role::<Plain>(options, control),
            (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
        };
    };
    Err(Stop::Absent(reason))
}

fn role(options: &Options) -> &'static str {
    match options.role {
        Role::Ping => "ping",
        Role::Pong => "pong",
        Role::Pub => "pub",
        Role::Sub => "sub",
        _ => "",
    }
}

fn by_role<L: Layout>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let runtime = Runtime::new()?;
    match options.role {
        Role::Ping => ping::<L>(&runtime, options, control),
        Role::Pong => {
            let ponging = Arc::new(Ponging::new(options));
            let (told, size) = (Arc::clone(&ponging), options.size);
            let answer = move |bytes: bytes::Bytes| {
                let stamp = told.take(&Seen::look::<L>(&bytes, size));
                let mut sample = Packed::<L>::new(bytes.into())?;
                sample.set_stamp(stamp);
                Some(sample.into_bytes())
            };
            runtime.block_on(server::answer(options, answer))?;
            ponging.run(control)
        }
        Role::Pub => {
            let mut line = runtime.block_on(server::Stream::<L>::open(options))?;
            roles::publish(&mut line, options, control, |line| runtime.block_on(line.close()))
        }
        _ => {
            let counting = Arc::new(Counting::new(options));
            let (told, size) = (Arc::clone(&counting), options.size);
            let take = move |bytes: bytes::Bytes| told.take(&Seen::look::<L>(&bytes, size));
            runtime.spawn(client::subscribe(options.clone(), take));
            counting.run(options, control)
        }
    }
}

fn ping<L: Layout>(runtime: &Runtime, options: &Options, control: &Control) -> Result<Value, Stop> {
    let (out, mut answers) = runtime.block_on(client::exchange(options))?;
    let pinging = Arc::new(Pinging::new(options));
    let (told, next, size) = (Arc::clone(&pinging), out.clone(), options.size);
    runtime.spawn(async move {
        // The end of the call, too, is samples that are lost.
        while let Ok(Some(answer)) = answers.message().await {
            if let Some(stamp) = told.answer(&Seen::look::<L>(&answer, size))
                && next.send(sample::<L>(size, stamp)).await.is_err()
            {
                return;
            }
        }
    });
    pinging.run(options, control, |stamp| Ok(out.blocking_send(sample::<L>(options.size, stamp))?))
}

/// A new sample: what is sent is given away.
fn sample<L: Layout>(size: usize, stamp: Stamp) -> Vec<u8> {
    let mut sample = Packed::<L>::sized(size);
    sample.set_stamp(stamp);
    sample.into_bytes()
}
