//! The adapter of `taut perf` for Zenoh: the contract of `peers/README.md` over its peers, without a
//! router.
//!
//! `listener` answers in the callback of a subscriber; `waitset` is a subscriber's channel, on which a
//! thread waits. The threads that read its links always sleep, so there is no `spin` between processes.

mod ends;
mod entities;
mod session;

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use taut_perf_kit::called::{Counting, Pinging, Ponging};
use taut_perf_kit::packed::{Bytes, Layout, Plain, Seen};
use taut_perf_kit::{Control, Options, Role, Stop, local, roles};

use ends::{ChannelLine, Writer};
use session::Domain;

fn main() -> ExitCode {
    let info = json!({
        "peer": "zenoh",
        "version": "1.10.2",
        "transports": ["thread", "intra", "shm", "udp"],
        "roles": ["ping", "pong", "pub", "sub", "local", "entities", "node"],
        "types": ["bytes", "plain"],
        "waits": ["listener", "waitset", "spin"],
        "variants": ["udp", "express"],
        "multicast": false,
        "loan": true,
        "daemon": false,
        "note": "the transport udp is its default, TCP between peers; the variant udp is its UDP link, which \
                 resends nothing; express sends each sample without waiting for more. reliable is reliability \
                 reliable and congestion control block, best effort is best effort and drop; there is no \
                 history and no acknowledgement. Found by multicast scouting, which waits 500 ms when a \
                 session opens. shm without loans puts samples of 3,072 B and more into shared memory by \
                 itself; with loans each is allocated there. spin within a process only",
    });
    taut_perf_kit::adapter(&info, play)
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    absent(options)?;
    match options.role {
        Role::Entities => entities::steps(options, control),
        Role::Node => entities::node(options, control),
        Role::Cdr | Role::Daemon | Role::Flood | Role::Sink => Err(Stop::Absent("no such role".into())),
        _ => match (options.kind.as_str(), options.size) {
            ("bytes", 28..) => by_role::<Bytes>(options, control),
            ("plain", 16 | 24..) => by_role::<Plain>(options, control),
            (kind, size) => Err(Stop::Absent(format!("no type {kind} of {size} B"))),
        },
    }
}

fn absent(options: &Options) -> Result<(), Stop> {
    let places = if options.role == Role::Local { ["thread", "intra"] } else { ["shm", "udp"] };
    let transport = options.transport.as_str();
    let reason = if !places.contains(&transport) {
        format!("no transport {transport} for this role")
    } else if options.loan() && (transport != "shm" || options.kind != "plain") {
        "loans are of type plain, in shared memory".into()
    } else if options.spin() && options.role != Role::Local {
        "the threads that read its links sleep".into()
    } else if !["", "udp", "express"].contains(&options.variant.as_str()) {
        format!("no variant {}", options.variant)
    } else if options.variant == "udp" && transport != "udp" {
        "the variant udp is of the transport udp".into()
    } else {
        return Ok(());
    };
    Err(Stop::Absent(reason))
}

fn by_role<L: Layout>(options: &Options, control: &Control) -> Result<Value, Stop> {
    let domain = Domain::open(options)?;
    match options.role {
        Role::Local => within::<L>(&domain, options, control),
        Role::Pub => {
            let writer = Writer::<L>::new(&domain, "perf_data", options)?;
            domain.wait_for(options.remotes, writer.publisher())?;
            let mut line = ChannelLine::<L>::new(Some(writer), None, options);
            roles::publish(&mut line, options, control, |_| Ok(()))
        }
        _ if options.wait == "waitset" => waiting::<L>(&domain, options, control),
        Role::Ping => ping::<L>(&domain, options, control),
        Role::Pong => pong::<L>(&domain, options, control),
        _ => {
            let counting = Arc::new(Counting::new(options));
            let (told, size) = (Arc::clone(&counting), options.size);
            let _subscriber = domain.listen("perf_data", move |sample| {
                told.take(&Seen::look::<L>(&sample.payload().to_bytes(), size));
            })?;
            let _token = domain.announce(options)?;
            counting.run(options, control)
        }
    }
}

/// The roles of two processes whose data comes by a channel.
fn waiting<L: Layout>(domain: &Domain, options: &Options, control: &Control) -> Result<Value, Stop> {
    match options.role {
        Role::Ping => {
            let mut line = ChannelLine::<L>::between(domain, "perf_ping", "perf_pong", options)?;
            let writer = line.writer()?;
            domain.wait_for(options.remotes, writer.publisher())?;
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = ChannelLine::<L>::between(domain, "perf_pong", "perf_ping", options)?;
            domain.announce_when_matched(line.writer()?.publisher(), options)?;
            roles::pong(&mut line, options, control, |sample| sample)
        }
        _ => {
            let mut line = ChannelLine::<L>::new(None, Some(domain.channel("perf_data")?), options);
            let _token = domain.announce(options)?;
            roles::subscribe(&mut line, options, control)
        }
    }
}

fn ping<L: Layout>(domain: &Domain, options: &Options, control: &Control) -> Result<Value, Stop> {
    let writer = Arc::new(Writer::<L>::new(domain, "perf_ping", options)?);
    let pinging = Arc::new(Pinging::new(options));
    let (told, out, size) = (Arc::clone(&pinging), Arc::clone(&writer), options.size);
    let _subscriber = domain.listen("perf_pong", move |sample| {
        let answer = Seen::look::<L>(&sample.payload().to_bytes(), size);
        if let Some(stamp) = told.answer(&answer) {
            // A write that fails is a sample that is lost, and counts as that.
            let _ = out.put(stamp);
        }
    })?;
    domain.wait_for(options.remotes, writer.publisher())?;
    pinging.run(options, control, |stamp| writer.put(stamp))
}

fn pong<L: Layout>(domain: &Domain, options: &Options, control: &Control) -> Result<Value, Stop> {
    let writer = Arc::new(Writer::<L>::new(domain, "perf_pong", options)?);
    let ponging = Arc::new(Ponging::new(options));
    let (told, out, size) = (Arc::clone(&ponging), Arc::clone(&writer), options.size);
    let _subscriber = domain.listen("perf_ping", move |sample| {
        let payload = sample.payload().to_bytes();
        let stamp = told.take(&Seen::look::<L>(&payload, size));
        // A write that fails is an answer that is lost: ping counts it.
        let _ = out.answer(payload, stamp);
    })?;
    domain.announce_when_matched(writer.publisher(), options)?;
    ponging.run(control)
}

/// The role `local`: all within one session.
fn within<L: Layout>(domain: &Domain, options: &Options, control: &Control) -> Result<Value, Stop> {
    if options.transport == "thread" {
        let mut line = ChannelLine::<L>::between(domain, "perf_ping", "perf_ping", options)?;
        return local::thread(&mut line, options, control);
    }
    let mut theirs = ChannelLine::<L>::between(domain, "perf_pong", "perf_ping", options)?;
    let mut line = ChannelLine::<L>::between(domain, "perf_ping", "perf_pong", options)?;
    let given = options.clone();
    // It ends with the process; if it cannot answer, the missing answers tell.
    std::thread::spawn(move || local::answer(&mut theirs, &given, |sample| sample));
    roles::ping(&mut line, options, control)
}
