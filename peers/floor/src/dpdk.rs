//! The transport `dpdk`: bare DPDK over memif, memory that two processes share, with frames of a type of our own. One
//! pair of processes. Who answers makes the socket that they find each other by; it is a file, as each may be in a
//! network of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use taut_dpdk::{BURST, Burst, Device, DeviceConfig, Eal, EalConfig, Error};
use taut_perf_kit::clock::{left, now_ns};
use taut_perf_kit::{Control, Options, Role, Stop};

use crate::udp::{ACTIVE, GREET_AGAIN, MEET, PASSIVE, first_port};
use crate::wire::Wire;
use crate::xdp::frame::{BROADCAST, Ends, Framing};

/// A send that finds the memory full tries for so long.
const SEND_WITHIN: Duration = Duration::from_secs(1);

/// Between looks at the clock while nothing comes; each takes as long as a few looks at the memory.
const LOOKS: u32 = 16;

const FRAMING: Framing = Framing::Own;

/// One end of the memory.
pub struct Dpdk {
    port: Device,
    ends: Ends,
    /// The socket that we made.
    socket: Option<PathBuf>,
    out: Burst,
    come: Burst,
    batch: usize,
    spin: bool,
}

impl Dpdk {
    /// The end of this role, with the other one if it starts traffic.
    pub fn open(options: &Options, control: &Control) -> Result<Dpdk, Stop> {
        if options.remotes > 1 || options.index > 0 {
            return Err(Stop::Absent("memif has two ends: one to one only".to_string()));
        }
        let eal = Eal::start(&EalConfig::default()).map_err(|error| Stop::Absent(error.to_string()))?;
        let socket = std::env::temp_dir().join(format!("taut-perf-floor-{}.memif", options.domain));
        let passive = matches!(options.role, Role::Pong | Role::Sub);
        let port = if passive { serve(eal, &socket, control)? } else { meet(eal, &socket)? };
        let first = first_port(options.domain);
        let (own, other) = if passive { (PASSIVE, ACTIVE) } else { (ACTIVE, PASSIVE) };
        let ends = Ends {
            // There is nobody else.
            to_mac: BROADCAST,
            from_mac: port.mac(),
            to: (options.remote.parse()?, first + other),
            from: (options.address.parse()?, first + own),
        };
        let batch = if options.role == Role::Pub { BURST } else { 1 };
        let socket = passive.then_some(socket);
        let (out, come) = (Burst::new(), Burst::new());
        Ok(Dpdk { port, ends, socket, out, come, batch, spin: options.spin() })
    }

    /// The next piece, if one is there.
    fn take(&mut self, head: &mut [u8], body: &mut [u8]) -> Option<usize> {
        if self.come.is_empty() && self.port.receive(0, &mut self.come) == 0 {
            return None;
        }
        let frame = self.come.pop()?;
        self.forget_socket();
        let (header, piece) = frame.bytes().split_at_checked(FRAMING.header())?;
        let (_, len) = FRAMING.read(header);
        // A frame may be padded, but not be shorter than it says.
        let piece = piece.get(..len).unwrap_or(piece);
        let (first, rest) = piece.split_at(head.len().min(piece.len()));
        head[..first.len()].copy_from_slice(first);
        let fits = rest.len().min(body.len());
        body[..fits].copy_from_slice(&rest[..fits]);
        Some(first.len() + fits)
    }

    /// They have found each other: what is left of the socket would only stay behind.
    fn forget_socket(&mut self) {
        if let Some(socket) = self.socket.take() {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Wire for Dpdk {
    fn room(&self) -> usize {
        FRAMING.room()
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> Result<(), Stop> {
        let len = head.len() + body.len();
        let frame = self.port.frame();
        let full = || Stop::Failed(format!("no frame for {len} B"));
        let mut frame = frame.ok_or_else(full)?;
        let bytes = frame.append(FRAMING.header() + len).ok_or_else(full)?;
        let (header, piece) = bytes.split_at_mut(FRAMING.header());
        FRAMING.write(header, &self.ends, len);
        let (first, rest) = piece.split_at_mut(head.len());
        first.copy_from_slice(head);
        rest.copy_from_slice(body);
        self.out.push(frame).map_err(|_| Stop::Failed("a burst that was not sent".to_string()))?;
        if self.out.len() >= self.batch { self.push() } else { Ok(()) }
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.port.send(0, &mut self.out);
        if self.out.is_empty() {
            return Ok(());
        }
        let end_ns = now_ns() + SEND_WITHIN.as_nanos() as u64;
        while !self.out.is_empty() {
            self.port.send(0, &mut self.out);
            if now_ns() > end_ns {
                return Err(Stop::Failed(format!("nobody has taken what was sent for {SEND_WITHIN:?}")));
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        head: &mut [u8],
        body: &mut [u8],
        at_most: Duration,
    ) -> Result<Option<usize>, Stop> {
        let taken = self.take(head, body);
        if taken.is_some() || self.spin || at_most.is_zero() {
            return Ok(taken);
        }
        let end_ns = now_ns() + at_most.as_nanos() as u64;
        loop {
            for _ in 0..LOOKS {
                let taken = self.take(head, body);
                if taken.is_some() {
                    return Ok(taken);
                }
            }
            if left(end_ns).is_zero() {
                return Ok(None);
            }
        }
    }

    /// There is no other way. But a case that does not ask for it is another one.
    fn wait(&self, options: &Options) -> &'static str {
        if options.spin() { "spin" } else { "poll" }
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        let statistics = self.port.statistics();
        if statistics.rx_no_frame + statistics.rx_split + statistics.tx_errors > 0 {
            eprintln!("floor: {statistics:?}");
        }
    }
}

/// Makes the socket, for the other one to come.
fn serve(eal: Eal, socket: &Path, control: &Control) -> Result<Device, Stop> {
    // One that was killed may have left it.
    let _ = std::fs::remove_file(socket);
    let left_behind = socket.to_owned();
    control.at_loss(move || drop(std::fs::remove_file(&left_behind)));
    Ok(Device::open(eal, &device("server", socket), &DeviceConfig::default())?)
}

/// Connects to it as soon as it is there.
fn meet(eal: Eal, socket: &Path) -> Result<Device, Stop> {
    let end_ns = now_ns() + MEET.as_nanos() as u64;
    loop {
        match Device::open(eal, &device("client", socket), &DeviceConfig::default()) {
            Err(Error::DeviceNotStarted { .. }) if now_ns() < end_ns => std::thread::sleep(GREET_AGAIN),
            found => return Ok(found?),
        }
    }
}

fn device(role: &str, socket: &Path) -> String {
    format!("net_memif0,role={role},socket-abstract=no,socket={}", socket.display())
}
