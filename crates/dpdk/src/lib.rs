//! Bare DPDK 22.11: what of it a port needs, one small file for each concept.
//!
//! Owns the start of DPDK in this process (`Eal`), devices with their queues and their memory (`Device`, `RxQueues`),
//! and frames (`Mbuf`) and bursts of them (`Burst`), which are freed when they are dropped. Payloads of frames can be lent
//! (`taut_mem::Chunks`). Knows nothing of RTPS, writes
//! no header, has no thread and looks at no clock. The port above it is the only caller.
//!
//! All of it is there with the feature `dpdk` only, which needs libdpdk; without it [`available`] says so.
//!
//! # The rules
//! * **DPDK runs once in a process**, and for as long as it does. Who asks for it again with the same settings gets
//!   the same; it is for nobody else's use.
//! * **Nothing outlives its owner.** A device that is dropped is stopped, closed and given back. A frame may live longer:
//!   then the memory that it comes from is never given back.
//! * **A queue is used by one thread at a time**, which `&mut` sees to: those to receive by, `RxQueues`, by one, and those
//!   to send by, with all else of the device, by another one if need be.
//! * **It polls.** Whether something has come is known by looking; nothing here waits but opening a device.
//! * **What DPDK says is told**: it is part of the error, and never goes to the standard output stream.
//!
//! # memif
//! Its driver is for peers that are trusted, as it believes what they write into the memory that is shared. It has no
//! lock between the thread that hears of a peer and those that look for frames: so the former is let work for some
//! 10 us in 50 ms only, in which a look finds nothing and nothing is taken to be sent. A peer that leaves is noticed
//! that much later. What is not gone around: a client that is killed in the millisecond in which it connects ends the
//! process of the server.
#![cfg_attr(not(feature = "dpdk"), forbid(unsafe_code))]

#[cfg(feature = "dpdk")]
mod burst;
#[cfg(feature = "dpdk")]
mod device;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod error;
#[cfg(feature = "dpdk")]
mod ffi;
#[cfg(feature = "dpdk")]
mod flow;
#[cfg(feature = "dpdk")]
mod lend;
#[cfg(feature = "dpdk")]
mod mbuf;
#[cfg(feature = "dpdk")]
mod pool;
#[cfg(feature = "dpdk")]
mod port;

#[cfg(feature = "dpdk")]
pub use burst::{BURST, Burst};
#[cfg(feature = "dpdk")]
pub use device::{Device, DeviceConfig, Link, Statistics};
#[cfg(feature = "dpdk")]
pub use eal::{Eal, EalConfig, Loudness, Memory};
#[cfg(feature = "dpdk")]
pub use error::Error;
#[cfg(feature = "dpdk")]
pub use flow::Flow;
#[cfg(feature = "dpdk")]
pub use mbuf::Mbuf;
#[cfg(feature = "dpdk")]
pub use port::RxQueues;

/// Was this built with DPDK?
///
/// ```
/// if !taut_dpdk::available() {
///     println!("built without DPDK: build with `--features dpdk`");
/// }
/// ```
pub const fn available() -> bool {
    cfg!(feature = "dpdk")
}
