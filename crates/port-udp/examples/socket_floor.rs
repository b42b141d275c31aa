//! The floor of a round trip: two processes with bare blocking sockets, `socket_floor pong &` and
//! `socket_floor ping [SIZE] [COUNT]`, on loopback.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

const PING: &str = "127.0.0.1:7990";
const PONG: &str = "127.0.0.1:7991";

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: usize| args.get(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (size, count) = (number(2, 64), number(3, 10_000));
    let mut buffer = vec![0; 65_536];
    if args.get(1).is_none_or(|role| role != "ping") {
        let socket = UdpSocket::bind(PONG)?;
        loop {
            let (len, from) = socket.recv_from(&mut buffer)?;
            socket.send_to(&buffer[..len], from)?;
        }
    }
    let socket = UdpSocket::bind(PING)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut times = Vec::with_capacity(count);
    while times.len() < count + count / 10 {
        let start = Instant::now();
        socket.send_to(&buffer[..size], PONG)?;
        // Until the far end is there nothing comes back.
        if socket.recv_from(&mut buffer).is_ok() {
            times.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
    }
    times.drain(..count / 10);
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{size} B: p50 {:.1} p99 {:.1} max {:.1} us", at(0.5), at(0.99), at(1.0));
    Ok(())
}
