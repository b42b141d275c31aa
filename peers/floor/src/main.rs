//! The adapter `floor` of `taut perf`: what the machine itself can do, to stand beside every number of a
//! middleware. No discovery, no history, no repair: each transport is the bare mechanism of the kernel or
//! of memory, behind the same contract (`peers/README.md`) and the same loops as everybody else.

mod alone;
#[cfg(feature = "dpdk")]
mod dpdk;
mod flood;
mod memory;
mod sample;
mod udp;
mod wire;
mod xdp;

use std::process::ExitCode;

use serde_json::{Value, json};
use taut_perf_kit::{Control, Options, Role, Stop, adapter, local, roles};

use memory::lent::{Lent, LentLine};
use memory::link::Ends;
use sample::{Bytes, Fields, Index, Numbered, Plain, Sample};
use udp::Udp;
use wire::{Wire, WireLine};
use xdp::Xdp;

fn main() -> ExitCode {
    adapter(&info(), play)
}

/// What was built.
const TRANSPORTS: &[&str] = if cfg!(feature = "dpdk") {
    &["thread", "intra", "shm", "udp", "xdp", "xdp-l2", "dpdk"]
} else {
    &["thread", "intra", "shm", "udp", "xdp", "xdp-l2"]
};

/// What is linked for them only.
const BUILT_WITH: &[&str] = if cfg!(feature = "dpdk") { &["dpdk"] } else { &[] };

fn info() -> Value {
    json!({
        "peer": "floor",
        "version": env!("CARGO_PKG_VERSION"),
        "transports": TRANSPORTS,
        "roles": ["ping", "pong", "pub", "sub", "local", "cdr", "entities", "flood", "sink"],
        "types": ["bytes", "simple", "complex", "plain"],
        "waits": ["block", "listener", "waitset", "spin"],
        "variants": ["sendmmsg", "gso", "futex", "eventfd", "cacheline"],
        "multicast": true,
        "loan": true,
        "daemon": false,
        "built_with": BUILT_WITH,
        "note": "Bare system calls and bare memory: nothing is repaired, losses are counted. udp: connected \
                 sockets, receive buffer of 16 MiB where root allows it; variants sendmmsg and gso for pub and \
                 sub. shm and intra: a ring in a memfd, block is a futex. listener and \
                 waitset are the same blocking call. Variants futex, eventfd, cacheline are for shm and intra; the last is \
                 polled, with block the core is given away after 1 us. simple and \
                 complex are the same number of bytes without structure, cdr is memcpy. xdp, xdp-l2: \
                 copy mode, native, one to one. dpdk, if it was built with it: memif, one to one, polls always.",
    })
}

fn play(options: &Options, control: &Control) -> Result<Value, Stop> {
    fits(options)?;
    match options.role {
        Role::Flood => return flood::flood(options, control),
        Role::Sink => return flood::sink(options, control),
        Role::Entities => return Ok(alone::entities(control)),
        _ => {}
    }
    match options.kind.as_str() {
        "bytes" => with_type::<Bytes, Bytes>(options, control),
        "plain" => with_type::<Plain, Plain>(options, control),
        "simple" | "complex" => with_type::<Numbered, Index>(options, control),
        other => Err(Stop::Absent(format!("no type {other}"))),
    }
}

/// Is there such a way at all?
fn fits(options: &Options) -> Result<(), Stop> {
    let transport = options.transport.as_str();
    let known = match options.variant.as_str() {
        "" => true,
        // What they are for: several samples in one call.
        "sendmmsg" | "gso" => {
            // One that is paced would leave within the next one's wait.
            let paced = matches!(options.role, Role::Pub) && options.period_ns > 0;
            transport == "udp" && matches!(options.role, Role::Pub | Role::Sub) && !paced
        }
        "futex" | "eventfd" => matches!(transport, "intra" | "shm"),
        // One line has room for the numbers and a little more.
        "cacheline" => matches!(transport, "intra" | "shm") && options.size <= 64,
        _ => false,
    };
    let in_memory = matches!(transport, "thread" | "intra" | "shm");
    if !known {
        let variant = &options.variant;
        return Err(Stop::Absent(format!(
            "{variant} is not for this role over {transport}, or not for this size"
        )));
    }
    if options.spin() && matches!(options.variant.as_str(), "futex" | "eventfd") {
        return Err(Stop::Absent(format!("{} sleeps", options.variant)));
    }
    if options.loan() && !(in_memory && options.kind == "plain") {
        return Err(Stop::Absent("loans are for type plain in memory".to_string()));
    }
    Ok(())
}

/// `S` goes out, `A` is the answer to it.
fn with_type<S: Fields, A: Fields>(options: &Options, control: &Control) -> Result<Value, Stop> {
    if options.role == Role::Cdr {
        return alone::cdr(options, control, S::wire_len(options.size));
    }
    let len = S::wire_len(options.size).max(A::wire_len(options.size));
    let bare = options.variant == "cacheline";
    match (options.transport.as_str(), options.role) {
        ("udp", Role::Ping | Role::Pong | Role::Pub | Role::Sub) => {
            over::<_, S, A>(|out, into| Udp::open(options, out, into), options, control)
        }
        ("xdp" | "xdp-l2", Role::Ping | Role::Pong | Role::Pub | Role::Sub) => {
            over::<_, S, A>(|_, _| Xdp::open(options), options, control)
        }
        #[cfg(feature = "dpdk")]
        ("dpdk", Role::Ping | Role::Pong | Role::Pub | Role::Sub) => {
            over::<_, S, A>(|_, _| dpdk::Dpdk::open(options, control), options, control)
        }
        ("shm", Role::Ping | Role::Pong | Role::Pub | Role::Sub) if bare || options.loan() => {
            let mut line = LentLine::new(Ends::open(options, len)?, bare);
            match options.role {
                Role::Ping => roles::ping(&mut line, options, control),
                Role::Pong => roles::pong(&mut line, options, control, |sample| sample),
                Role::Pub => roles::publish(&mut line, options, control, |_| Ok(())),
                _ => roles::subscribe(&mut line, options, control),
            }
        }
        ("shm", Role::Ping | Role::Pong | Role::Pub | Role::Sub) => {
            over::<_, S, A>(|_, _| Ends::open(options, len), options, control)
        }
        ("thread", Role::Local) if options.loan() => {
            local::thread(&mut LentLine::new(Ends::own(options, len)?, false), options, control)
        }
        ("thread", Role::Local) => {
            let mut line = WireLine::<_, S, S>::new(Ends::own(options, len)?, options);
            local::thread(&mut line, options, control)
        }
        ("intra", Role::Local) => two_threads::<S, A>(options, control, len),
        (transport, role) => Err(Stop::Absent(format!("no role {role:?} over {transport}"))),
    }
}

/// The roles that talk to another process over this wire.
fn over<W: Wire, S: Fields, A: Fields>(
    open: impl FnOnce(usize, usize) -> Result<W, Stop>,
    options: &Options,
    control: &Control,
) -> Result<Value, Stop> {
    let (sample, answer) = (S::wire_len(options.size), A::wire_len(options.size));
    match options.role {
        Role::Ping => {
            let mut line = WireLine::<_, S, A>::new(open(sample, answer)?, options);
            roles::ping(&mut line, options, control)
        }
        Role::Pong => {
            let mut line = WireLine::<_, A, S>::new(open(answer, sample)?, options);
            roles::pong(&mut line, options, control, |sample: Sample<S>| sample.into_answer(options.size))
        }
        Role::Pub => {
            let mut line = WireLine::<_, S, S>::new(open(sample, sample)?, options);
            roles::publish(&mut line, options, control, |_| Ok(()))
        }
        _ => {
            let mut line = WireLine::<_, S, S>::new(open(sample, sample)?, options);
            roles::subscribe(&mut line, options, control)
        }
    }
}

/// `local` over `intra`: a thread asks and another answers. The other goes with the process.
fn two_threads<S: Fields, A: Fields>(
    options: &Options,
    control: &Control,
    len: usize,
) -> Result<Value, Stop> {
    let (asks, answers) = Ends::pair(options, len)?;
    let bare = options.variant == "cacheline";
    let theirs = options.clone();
    if bare || options.loan() {
        std::thread::spawn(move || {
            report(local::answer(&mut LentLine::new(answers, bare), &theirs, |sample: Lent| sample));
        });
        return roles::ping(&mut LentLine::new(asks, bare), options, control);
    }
    std::thread::spawn(move || {
        let mut line = WireLine::<_, A, S>::new(answers, &theirs);
        report(local::answer(&mut line, &theirs, |sample: Sample<S>| sample.into_answer(theirs.size)));
    });
    roles::ping(&mut WireLine::<_, S, A>::new(asks, options), options, control)
}

/// Why the answering thread stopped: the asking one counts its samples as lost.
fn report(stop: Stop) {
    eprintln!("floor: the other thread stopped: {stop:?}");
}
