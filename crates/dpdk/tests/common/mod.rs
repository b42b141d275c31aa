//! What the tests share: DPDK in this process, devices, frames that are known again, children.
#![allow(dead_code, reason = "each binary uses its part")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use taut_dpdk::{Burst, Device, DeviceConfig, Eal, EalConfig, Error, Mbuf, Memory};
use taut_testbed::{LIMIT, await_that};

/// Tells a process that it is the child of a test, and what it is to do.
pub const CHILD: &str = "TAUT_DPDK_CHILD";

/// DPDK, as all tests of this process have it.
pub fn eal() -> Eal {
    Eal::start(&config()).expect("DPDK starts")
}

/// With memory for the devices of several tests.
pub fn config() -> EalConfig {
    EalConfig { memory: Memory::Ordinary { mib: 256 }, ..EalConfig::default() }
}

pub fn open(device: &str) -> Result<Device, Error> {
    Device::open(eal(), device, &DeviceConfig::default())
}

/// One end of memif, by a socket that is a file.
pub fn memif(number: u32, role: &str, socket: &Path) -> String {
    format!("net_memif{number},role={role},socket-abstract=no,socket={}", socket.display())
}

/// A frame to nobody, known by a number.
pub fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5].to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..len).map(|at| (at as u32 ^ number) as u8));
    bytes
}

/// The number of such a frame, which is whole.
pub fn number_of(bytes: &[u8]) -> Option<u32> {
    if bytes.get(12..14)? != [0x88, 0xb5] {
        return None;
    }
    let number = u32::from_be_bytes(bytes.get(14..18)?.try_into().ok()?);
    assert_eq!(bytes, frame(number, bytes.len()), "it is as it was sent");
    Some(number)
}

/// In a frame of DPDK's.
pub fn filled(device: &Device, bytes: &[u8]) -> Mbuf {
    let mut frame = device.frame().expect("not all are in use");
    frame.append(bytes.len()).expect("there is room").copy_from_slice(bytes);
    frame
}

/// Sends all, in bursts.
pub fn send(device: &mut Device, frames: impl IntoIterator<Item = Vec<u8>>) {
    let mut burst = Burst::new();
    for bytes in frames {
        let frame = filled(device, &bytes);
        burst.push(frame).expect("there is room");
        if burst.room() == 0 {
            flush(device, &mut burst);
        }
    }
    flush(device, &mut burst);
}

pub fn flush(device: &mut Device, burst: &mut Burst) {
    await_that("the driver takes all", || {
        device.send(0, burst);
        burst.is_empty()
    });
}

pub fn await_link(device: &Device) {
    await_that("the link is up", || device.link().is_up);
}

/// Ended with the test, however that ends.
pub struct Held {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// Runs that test of this program in a process of its own, as a child that is to do this.
pub fn start(test: &str, what: &str, stderr: Stdio) -> Held {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).env(CHILD, what);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("piped"));
    Held { child, lines }
}

impl Held {
    /// Reads until the child says this; a child that ends is done with talking.
    pub fn await_line(&mut self, expected: &str) {
        let mut line = String::new();
        while line.trim_end() != expected {
            line.clear();
            assert_ne!(
                self.lines.read_line(&mut line).expect("text"),
                0,
                "it ended before it said {expected}"
            );
        }
    }

    /// All that the child still says, once it has ended well.
    pub fn output(mut self) -> String {
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            assert!(Instant::now() < end, "the child has not ended within {LIMIT:?}");
            std::thread::yield_now();
        };
        let mut said = String::new();
        self.lines.read_to_string(&mut said).expect("text");
        assert!(status.success(), "{status}: {said}");
        said
    }

    /// Returns before it is dead.
    pub fn send_kill(&mut self) {
        self.child.kill().expect("our own child");
    }

    pub fn kill(&mut self) {
        self.send_kill();
        self.child.wait().expect("our own child");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
