//! The shim, as Rust calls it.
//!
//! Owns the declarations of `shim.c` and no more: what each call needs is stated here, why it has it at each call.

use std::ffi::{c_char, c_int};

/// struct rte_mbuf.
#[repr(C)]
pub(crate) struct RawMbuf {
    _opaque: [u8; 0],
}

/// struct rte_mempool.
#[repr(C)]
pub(crate) struct Mempool {
    _opaque: [u8; 0],
}

/// struct rte_memzone.
#[repr(C)]
pub(crate) struct Memzone {
    _opaque: [u8; 0],
}

/// struct rte_device.
#[repr(C)]
pub(crate) struct RawDevice {
    _opaque: [u8; 0],
}

/// struct taut_dpdk_facts.
#[repr(C)]
pub(crate) struct Facts {
    pub device: *mut RawDevice,
    pub driver: [c_char; 32],
    pub max_rx_queues: u16,
    pub max_tx_queues: u16,
    pub min_mtu: u16,
    pub max_mtu: u16,
    pub kernel_mtu: u16,
}

/// struct taut_dpdk_setup.
#[repr(C)]
pub(crate) struct Setup {
    pub pool: *mut Mempool,
    pub rx_queues: u16,
    pub tx_queues: u16,
    pub rx_descriptors: u16,
    pub tx_descriptors: u16,
    pub takes_tags_off: u8,
}

/// struct taut_dpdk_flow.
#[repr(C)]
pub(crate) struct RawFlow {
    pub udp_port: u16,
    pub is_ipv6: u8,
    pub is_tagged: u8,
    pub priority: u8,
}

/// struct taut_dpdk_pool.
#[repr(C)]
pub(crate) struct RawPool {
    pub pool: *mut Mempool,
    pub memory: *const Memzone,
    pub bytes: *mut u8,
    pub frames: u32,
    pub cache: u32,
    pub stride: u16,
    pub shift: u16,
}

/// struct taut_dpdk_statistics.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Counts {
    pub rx_frames: u64,
    pub rx_bytes: u64,
    pub tx_frames: u64,
    pub tx_bytes: u64,
    pub rx_missed: u64,
    pub rx_errors: u64,
    pub rx_no_frame: u64,
    pub tx_errors: u64,
}

// SAFETY: the declarations are those of `shim.c`, name by name. Beyond valid pointers they ask that
// - DPDK runs (all but `said`, `start` and `first_core`);
// - a port is one that `probe` has given and that is not closed;
// - `probe`, `configure`, `queues`, `guard`, `run`, `close` and `pool` are called by one thread at a time;
// - a queue is one that was set up, of a port that runs, and used by one thread at a time;
// - a frame is the caller's, who gives it away with `free`, and with `tx` if that says so;
// - a pool is not dropped twice, and nobody takes frames from it after that; all are taken when none is in use;
// - a frame that is shared is in no pool, and is not shared yet; from then on it has two owners.
unsafe extern "C" {
    pub fn taut_dpdk_said(into: *mut c_char, room: usize) -> usize;
    pub fn taut_dpdk_start(argc: c_int, argv: *mut *mut c_char, loudness: u32) -> c_int;
    pub fn taut_dpdk_first_core() -> u32;

    pub fn taut_dpdk_probe(devargs: *const c_char, name: *const c_char, port: *mut u16) -> c_int;
    pub fn taut_dpdk_facts(port: u16, facts: *mut Facts) -> c_int;
    pub fn taut_dpdk_configure(port: u16, setup: *mut Setup, mtu: u32) -> c_int;
    pub fn taut_dpdk_queues(port: u16, setup: *const Setup) -> c_int;
    pub fn taut_dpdk_guard(port: u16) -> c_int;
    pub fn taut_dpdk_run(port: u16) -> c_int;
    pub fn taut_dpdk_is_server(device: *const RawDevice) -> c_int;
    pub fn taut_dpdk_settle(port: u16, at_most_ms: u32) -> c_int;
    pub fn taut_dpdk_join_again(port: u16);
    pub fn taut_dpdk_close(port: u16, device: *mut RawDevice, promiscuous: c_int, is_memif: c_int);
    pub fn taut_dpdk_mac(port: u16, mac: *mut u8) -> c_int;
    pub fn taut_dpdk_mtu(port: u16, mtu: *mut u16) -> c_int;
    pub fn taut_dpdk_link(port: u16, mbit_per_s: *mut u32) -> c_int;
    pub fn taut_dpdk_receive_groups(port: u16, socket: *mut c_int) -> c_int;
    pub fn taut_dpdk_steer(port: u16, queue: u16, flow: *const RawFlow, why: *mut *const c_char) -> c_int;
    pub fn taut_dpdk_statistics(port: u16, counts: *mut Counts) -> c_int;

    pub fn taut_dpdk_pool(pool: *mut RawPool, name: *const c_char, port: u16) -> c_int;
    pub fn taut_dpdk_take_all(pool: *const RawPool, frames: *mut *mut RawMbuf) -> c_int;
    pub fn taut_dpdk_drop_pool(pool: *const RawPool, ours: u32);
    pub fn taut_dpdk_share(frame: *mut RawMbuf, start: u16, len: u16);
    pub fn taut_dpdk_is_shared(frame: *const RawMbuf) -> c_int;
    pub fn taut_dpdk_frame(pool: *mut Mempool) -> *mut RawMbuf;
    pub fn taut_dpdk_free(frames: *mut *mut RawMbuf, count: u32);
    pub fn taut_dpdk_bytes(frame: *mut RawMbuf, len: *mut u16) -> *mut u8;
    pub fn taut_dpdk_front(frame: *const RawMbuf) -> u16;
    pub fn taut_dpdk_back(frame: *const RawMbuf) -> u16;
    pub fn taut_dpdk_append(frame: *mut RawMbuf, len: u16) -> *mut u8;
    pub fn taut_dpdk_prepend(frame: *mut RawMbuf, len: u16) -> *mut u8;
    pub fn taut_dpdk_cut(frame: *mut RawMbuf, len: u16);
    pub fn taut_dpdk_rx(port: u16, queue: u16, frames: *mut *mut RawMbuf, room: u16, split: *mut u64) -> u16;
    pub fn taut_dpdk_tx(port: u16, queue: u16, frames: *mut *mut RawMbuf, count: u16) -> u16;
    pub fn taut_dpdk_now_ns() -> u64;
    pub fn taut_dpdk_is_shut(port: u16) -> c_int;
}
