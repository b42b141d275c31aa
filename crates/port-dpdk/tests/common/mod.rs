//! What tests of ports share: where these are reached, and the other end of their cable.
#![allow(dead_code, reason = "each binary uses its part")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use taut_base::{Duration, Locator, Time};
use taut_dpdk::{Burst, Device, DeviceConfig, Eal, EalConfig};
use taut_ethernet::{FrameEnds, OwnAddress, Reached, Stats};
use taut_port_dpdk::{DpdkConfig, DpdkPort, Incoming};
use taut_testbed::await_that;
use tempfile::TempDir;

pub const PORT: u16 = 7_411;
pub const CRITICAL_PORT: u16 = 7_402;
pub const META: u16 = 7_410;
pub const OURS: [u8; 4] = [10, 0, 0, 2];
pub const PEER: [u8; 4] = [10, 0, 0, 1];
pub const GROUP: [u8; 4] = [239, 255, 0, 1];
const GROUP_PORT: u16 = 7_400;

/// One at a time: DPDK's memory is that of a few devices.
static ALONE: Mutex<()> = Mutex::new(());

/// Where a port is reached without IP.
pub fn bare() -> Reached {
    let own = |port| Locator::ethernet([0; 6], port);
    Reached::Bare(FrameEnds { user: vec![own(PORT), own(CRITICAL_PORT)], metatraffic: vec![own(META)] })
}

/// The same at an address of its own.
pub fn own() -> Reached {
    let end = |address: [u8; 4], port| Locator::udp_v4(address.into(), port);
    let own = OwnAddress { address: OURS.into(), prefix_len: 24, gateway: None };
    let ends = FrameEnds {
        user: vec![end(OURS, PORT), end(OURS, CRITICAL_PORT)],
        metatraffic: vec![end(OURS, META), end(GROUP, GROUP_PORT)],
    };
    Reached::Own { own, ends, sockets: Vec::new() }
}

/// Ends of memif, alone in this process. Devices of a process have numbers of their own.
pub struct Cable {
    number: u32,
    directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Cable {
    pub fn new(number: u32) -> Cable {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Cable { number, directory: TempDir::new().unwrap(), _alone: alone }
    }

    /// The name of the first end, and of the second one, which is opened after it.
    pub fn names(&self) -> [String; 2] {
        let socket = self.directory.path().join("socket");
        [(self.number, "server"), (self.number + 1, "client")].map(|(number, role)| {
            format!("net_memif{number},role={role},socket-abstract=no,socket={}", socket.display())
        })
    }
}

/// A port, and what looks for its frames.
pub struct Ported {
    pub port: DpdkPort,
    pub incoming: Incoming,
}

impl Ported {
    pub fn open(device: String, config: DpdkConfig, reached: Reached) -> Ported {
        let mut port = DpdkPort::open(&DpdkConfig { device, ..config }, reached).unwrap();
        let incoming = port.incoming().unwrap();
        assert!(port.incoming().is_none(), "there is one");
        Ported { port, incoming }
    }

    /// Waits until what it sends, without IP, comes to the other end.
    pub fn link(&mut self, wire: &mut Wire) {
        let mut come = 0;
        await_that("the port sees the link", || {
            self.send(&Locator::ethernet([2; 6], 1), b"RTPS");
            come += wire.come(0).len();
            come > 0
        });
        // What is still on its way.
        let Stats { datagrams_out, dropped_full, .. } = self.port.stats();
        wire.said(0, (datagrams_out - dropped_full) as usize - come);
    }

    /// Sends a datagram at once.
    pub fn send(&mut self, to: &Locator, payload: &[u8]) {
        assert!(self.port.send(to, &[payload]));
        self.port.flush();
    }

    /// The payloads of samples that one call takes, with how many frames it took.
    pub fn receive(&mut self, budget: usize) -> (Vec<Vec<u8>>, usize) {
        let mut got = Vec::new();
        let Ported { port, incoming } = self;
        let taken = port.receive(incoming, budget, &mut |frame| got.push(frame.bytes.to_vec()));
        (got, taken)
    }

    /// The same of so many frames, in as many calls as it takes.
    pub fn receive_all(&mut self, frames: usize) -> Vec<Vec<u8>> {
        let (mut got, mut taken) = (Vec::new(), 0);
        await_that("all frames come", || {
            let (more, count) = self.receive(64);
            got.extend(more);
            taken += count;
            taken >= frames
        });
        assert_eq!(taken, frames);
        got
    }
}

/// The bare other end of a port's cable.
pub struct Wire(pub Device);

impl Wire {
    pub fn open(device: &str, config: &DeviceConfig) -> Wire {
        let eal = Eal::start(&EalConfig::default()).unwrap();
        let wire = Device::open(eal, device, config).unwrap();
        await_that("the link is up", || wire.link().is_up);
        Wire(wire)
    }

    pub fn send(&mut self, queue: u16, frames: &[Vec<u8>]) {
        let mut burst = Burst::new();
        for bytes in frames {
            let mut frame = self.0.frame().unwrap();
            frame.append(bytes.len()).unwrap().copy_from_slice(bytes);
            burst.push(frame).unwrap();
            await_that("the driver takes it", || self.0.send(queue, &mut burst) == 1);
        }
    }

    /// A burst that has come by a queue.
    pub fn come(&mut self, queue: u16) -> Vec<Vec<u8>> {
        let mut burst = Burst::new();
        self.0.receive(queue, &mut burst);
        burst.iter().map(<[u8]>::to_vec).collect()
    }

    /// So many frames that come by a queue.
    pub fn said(&mut self, queue: u16, count: usize) -> Vec<Vec<u8>> {
        let mut said = Vec::new();
        await_that("frames come", || {
            said.extend(self.come(queue));
            said.len() >= count
        });
        assert_eq!(said.len(), count, "{said:02x?}");
        said
    }
}

/// The layer's own frames, once it knows that somebody is there.
pub fn announced(port: &mut DpdkPort, wire: &mut Wire, count: usize) -> Vec<Vec<u8>> {
    let (mut now, mut said) = (Time(1), Vec::new());
    await_that("the port says who it is", || {
        now = now + Duration::from_millis(50);
        port.on_timeout(now);
        said.extend(wire.come(0));
        said.len() >= count
    });
    assert_eq!(said.len(), count, "{said:02x?}");
    said
}
