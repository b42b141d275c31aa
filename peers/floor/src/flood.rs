//! The roles `flood` and `sink`: traffic of other programs on the same path, for the workload
//! `interference`. Many sockets to one port, without greeting, without order.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use serde_json::{Value, json};
use taut_perf_kit::clock::{now_ns, wait_until};
use taut_perf_kit::{Control, Options, Stop};

use crate::udp::setup::bound;
use crate::udp::{DATAGRAM, first_port};

/// The port of the sink, from the first of the domain: the last one, which no other role takes.
const SINK: u16 = 49;

/// The rate is kept in steps of this length: shorter ones are below what a sleep can do, longer ones make
/// bursts that a queue notices.
const STEP_NS: u64 = 1_000_000;

/// What was missed while the flood was pre-empted is made up for as far as this many steps; more would
/// become a burst of its own.
const BEHIND: u64 = 10;

/// A blocked call comes back this often to see whether it is to end.
const TICK: Duration = Duration::from_millis(50);

/// So many are sent between two looks at the driver's word.
const LOOK_EVERY: u64 = 64;

/// Sends until it is to end.
pub fn flood(options: &Options, control: &Control) -> Result<Value, Stop> {
    if options.size > DATAGRAM {
        return Err(Stop::Absent(format!("no datagram is longer than {DATAGRAM}")));
    }
    let own: Ipv4Addr = options.address.parse()?;
    let sink = SocketAddrV4::new(options.remote.parse()?, first_port(options.domain) + SINK);
    let mut sockets = Vec::new();
    for _ in 0..options.connections.max(1) {
        let socket = UdpSocket::bind(SocketAddrV4::new(own, 0))?;
        socket.connect(sink)?;
        socket.set_write_timeout(Some(TICK))?;
        sockets.push(socket);
    }
    let bytes = vec![0x5a; options.size];
    control.ready("block");
    let (mut sent, mut refused) = (0u64, 0u64);
    let mut bucket = Bucket::new(options.rate_mbit, now_ns());
    for (turn, socket) in sockets.iter().cycle().enumerate() {
        if (turn as u64).is_multiple_of(LOOK_EVERY) && control.ended() {
            break;
        }
        while let Some(then_ns) = bucket.take(options.size as u64, now_ns()) {
            if control.ended() {
                break;
            }
            wait_until(then_ns, false);
        }
        // Without a sink each second one is refused: the flood goes on.
        match socket.send(&bytes) {
            Ok(_) => sent += 1,
            Err(_) => refused += 1,
        }
    }
    Ok(json!({"sent": sent, "bytes": sent * options.size as u64, "refused": refused}))
}

/// Receives until it is to end.
pub fn sink(options: &Options, control: &Control) -> Result<Value, Stop> {
    let socket = bound(options.address.parse()?, first_port(options.domain) + SINK)?;
    socket.set_read_timeout(Some(TICK))?;
    let mut bytes = vec![0; DATAGRAM];
    let (mut received, mut total) = (0u64, 0u64);
    let (mut first_ns, mut last_ns) = (0, 0);
    control.serving("block");
    while !control.ended() {
        if let Ok(len) = socket.recv(&mut bytes) {
            received += 1;
            total += len as u64;
            last_ns = now_ns();
            first_ns = if received == 1 { last_ns } else { first_ns };
        }
    }
    Ok(json!({"received": received, "bytes": total, "first_ns": first_ns, "last_ns": last_ns}))
}

/// How much may be sent by now.
struct Bucket {
    /// Bytes a step; 0 is no limit.
    step: u64,
    held: u64,
    next_ns: u64,
}

impl Bucket {
    fn new(rate_mbit: u64, now_ns: u64) -> Bucket {
        Bucket { step: rate_mbit * 125, held: 0, next_ns: now_ns }
    }

    /// Takes so many bytes; if they are not there, when to ask again.
    fn take(&mut self, bytes: u64, now_ns: u64) -> Option<u64> {
        if self.step == 0 {
            return None;
        }
        // A step may be less than one datagram.
        let most = (self.step * BEHIND).max(bytes);
        if now_ns >= self.next_ns {
            let steps = (now_ns - self.next_ns) / STEP_NS + 1;
            self.held = self.held.saturating_add(steps.saturating_mul(self.step)).min(most);
            self.next_ns += steps * STEP_NS;
        }
        if self.held < bytes {
            return Some(self.next_ns);
        }
        self.held -= bytes;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leaves within a second when the flood sleeps as it is told, and wakes so much later.
    fn bytes_in_a_second(rate_mbit: u64, size: u64, wakes_late_ns: u64) -> u64 {
        let (mut bucket, mut now_ns, mut sent) = (Bucket::new(rate_mbit, 0), 0, 0);
        while now_ns < 1_000_000_000 {
            match bucket.take(size, now_ns) {
                None => sent += size,
                Some(then_ns) => now_ns = then_ns + wakes_late_ns,
            }
        }
        sent
    }

    #[test]
    fn the_rate_is_kept() {
        for (rate_mbit, size, late_ns) in
            [(100, 1_000, 0), (1, 1_000, 0), (1_000, 60_000, 90_000), (8, 65_507, 0)]
        {
            let sent = bytes_in_a_second(rate_mbit, size, late_ns);
            let asked = rate_mbit * 125_000;
            assert!(sent.abs_diff(asked) <= size + rate_mbit * 125, "{rate_mbit} Mbit/s: {sent} of {asked}");
        }
        // Who always wakes 50 steps late sends no more than the bucket holds.
        assert!(bytes_in_a_second(100, 1_000, 50 * STEP_NS) <= 12_500_000 * 10 / 50 + 125_000);
    }
}
