//! The adapter of `taut perf` for iceoryx2: the contract of `peers/README.md` over its typed services.
//!
//! Data goes through publish-subscribe services, each with an event service of the same name that wakes
//! who waits; with `spin` there is no event and who waits looks. `shm` is its service between processes,
//! `thread` and `intra` are its service within one.

mod entities;
mod kind;
mod line;
mod place;

use std::process::ExitCode;
use std::sync::mpsc::Sender;

use iceoryx2::prelude::{LogLevel, Node, ipc, local, set_log_level};
use serde_json::{Value, json};
use taut_perf_kit::{Control, Options, Role, Stop, roles};

use kind::*;
use line::IceoryxLine;

fn main() -> ExitCode {
    let info = json!({
        "peer": "iceoryx2",
        "version": "0.10.0",
        "transports": ["thread", "intra", "shm"],
        "roles": ["ping", "pong", "pub", "sub", "local", "entities", "node"],
        "types": ["bytes", "plain"],
        "waits": ["waitset", "spin"],
        "variants": [],
        "multicast": false,
        "loan": true,
        "daemon": false,
        "note": "waitset is the listener of an event service that is notified after each write. Without loans \
                 a sample is copied into shared memory and out of it. bytes is a slice. keep-all is a buffer of \
                 4 to 1,024 samples, 64 MiB at most, without overflow; a full one is written to again and again. \
                 keep-last overflows. A write has arrived when it returns: there is nothing to acknowledge",
    });
    // It writes to stdout, which belongs to the driver, unless it has nothing to say.
    set_log_level(LogLevel::Fatal);
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    let within = options.role == Role::Local;
    if ["thread", "intra"].contains(&options.transport.as_str()) != within
        || !["thread", "intra", "shm"].contains(&options.transport.as_str())
    {
        return Err(Stop::Absent(format!("no transport {} for this role", options.transport)));
    }
    if options.wait == "listener" {
        return Err(Stop::Absent("nobody is called back when data comes".into()));
    }
    match options.role {
        Role::Entities => entities::steps(options, control),
        Role::Node => entities::node(options, control),
        Role::Cdr | Role::Daemon | Role::Flood | Role::Sink => Err(Stop::Absent("no such role".into())),
        _ => by_type(options, control),
    }
}

fn by_type(options: &Options, control: &Control) -> Result<Value, Stop> {
    match (options.kind.as_str(), options.size) {
        ("bytes", 28..) if !options.loan() => by_role::<Slices>(options, control),
        ("bytes", 28..) => Err(Stop::Absent("loans are of type plain".into())),
        ("plain", 16) => by_role::<Typed<Plain16>>(options, control),
        ("plain", 64) => by_role::<Typed<Plain<40>>>(options, control),
        ("plain", 256) => by_role::<Typed<Plain<232>>>(options, control),
        ("plain", 512) => by_role::<Typed<Plain<488>>>(options, control),
        ("plain", 1_024) => by_role::<Typed<Plain<1_000>>>(options, control),
        ("plain", 4_096) => by_role::<Typed<Plain<4_072>>>(options, control),
        ("plain", 8_192) => by_role::<Typed<Plain<8_168>>>(options, control),
        ("plain", 16_384) => by_role::<Typed<Plain<16_360>>>(options, control),
        ("plain", 65_536) => by_role::<Typed<Plain<65_512>>>(options, control),
        ("plain", 1_048_576) => by_role::<Typed<Plain<1_048_552>>>(options, control),
        ("plain", 2_097_152) => by_role::<Typed<Plain<2_097_128>>>(options, control),
        ("plain", 4_194_304) => by_role::<Typed<Plain<4_194_280>>>(options, control),
        ("plain", 8_388_608) => by_role::<Typed<Plain<8_388_584>>>(options, control),
        (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
    }
}

fn by_role<K: Kind>(options: &Options, control: &Control) -> Result<Value, Stop> {
    if options.role == Role::Local {
        return local::<K>(options, control);
    }
    let node = place::node::<ipc::Service>(options, control)?;
    let done = between::<K>(&node, options, control)?;
    place::leave(node, options)?;
    Ok(done)
}

fn between<K: Kind>(node: &Node<ipc::Service>, options: &Options, control: &Control) -> Result<Value, Stop> {
    let mut line = IceoryxLine::<_, K>::new(node, options);
    match options.role {
        Role::Ping => {
            line.write_to("perf_ping")?;
            line.take_from("perf_pong")?;
            line.wait_matched(options.remotes)?;
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            line.write_to("perf_pong")?;
            line.take_from("perf_ping")?;
            roles::pong(&mut line, options, control, |sample| sample)
        }
        Role::Pub => {
            line.write_to("perf_data")?;
            line.wait_matched(options.remotes)?;
            roles::publish(&mut line, options, control, |_| Ok(()))
        }
        _ => {
            line.take_from("perf_data")?;
            roles::subscribe(&mut line, options, control)
        }
    }
}

fn local<K: Kind>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let node = place::node::<local::Service>(options, control)?;
    let done = within::<K>(&node, options, control)?;
    // The other thread of `intra` never leaves, and there is no other process.
    place::clear(options)?;
    Ok(done)
}

fn within<K: Kind>(node: &Node<local::Service>, options: &Options, control: &Control) -> Result<Value, Stop> {
    let mut line = IceoryxLine::<_, K>::new(node, options);
    line.write_to("perf_ping")?;
    if options.transport == "thread" {
        line.take_from("perf_ping")?;
        return taut_perf_kit::local::thread(&mut line, options, control);
    }
    line.take_from("perf_pong")?;
    let theirs = options.clone();
    let (told, ready) = std::sync::mpsc::channel();
    // Services within a process are found by all of its nodes. The thread ends with the process.
    std::thread::spawn(move || {
        let stop = answer::<K>(&theirs, &told).unwrap_or_else(|stop| stop);
        // Who waits for it has gone if it was ready before: then the missing answers tell.
        let _ = told.send(Err(stop));
    });
    ready.recv().map_err(place::wrong)??;
    roles::ping(&mut line, options, control)
}

fn answer<K: Kind>(options: &Options, told: &Sender<Result<(), Stop>>) -> Result<Stop, Stop> {
    let node = place::another::<local::Service>(options)?;
    let mut line = IceoryxLine::<_, K>::new(&node, options);
    line.write_to("perf_pong")?;
    line.take_from("perf_ping")?;
    told.send(Ok(()))?;
    Ok(taut_perf_kit::local::answer(&mut line, options, |sample| sample))
}
