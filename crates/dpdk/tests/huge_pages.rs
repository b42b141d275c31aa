//! DPDK's memory in huge pages.
//!
//! Needs root, to reserve some. Without it, or where the kernel has no room for them, the test says that it is left out; with
//! `CI=true` that is a failure.

mod common;

use std::fs;

use common::{await_link, frame, memif, number_of, send};
use taut_dpdk::{Burst, Device, DeviceConfig, Eal, EalConfig, Memory};
use taut_testbed::{await_that, left_out};
use tempfile::TempDir;

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
/// Of 2 MiB: for two devices at an MTU of 1,500, of 32 MiB each, and what DPDK has beside them.
const NEEDED: u64 = 96;

fn number(path: &str) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Huge pages that are given back with the test.
struct Reserved(u64);

impl Reserved {
    fn more() -> Option<Reserved> {
        let reserved = Reserved(number(RESERVED));
        let _ = fs::write(RESERVED, (reserved.0 + NEEDED).to_string());
        (number(FREE) >= NEEDED).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let _ = fs::write(RESERVED, self.0.to_string());
    }
}

#[test]
fn frames_in_huge_pages() {
    let Some(_reserved) = Reserved::more() else {
        return left_out("frames_in_huge_pages", "no huge pages can be had (vm.nr_hugepages)");
    };
    let before = number(FREE);
    let eal = Eal::start(&EalConfig { memory: Memory::Huge, ..EalConfig::default() }).expect("DPDK starts");
    let (directory, config) = (TempDir::new().unwrap(), DeviceConfig::default());
    let socket = directory.path().join("socket");
    let open = |number, role| Device::open(eal, &memif(number, role, &socket), &config).expect("a device");
    let (mut server, mut client) = (open(0, "server"), open(1, "client"));
    [&server, &client].into_iter().for_each(await_link);
    let (mut came, mut next) = (Burst::new(), 0);
    send(&mut client, (0..1_000).map(|number| frame(number, 60 + number as usize % 1_400)));
    await_that("all come", || {
        server.receive(0, &mut came);
        for bytes in came.iter() {
            assert_eq!(number_of(bytes), Some(next));
            next += 1;
        }
        came.clear();
        next == 1_000
    });
    // Those of each device have more than 3,000 frames of 2 KiB at least.
    assert!(number(FREE) + 2 * 3 <= before, "the frames are in them: {} of {before} are free", number(FREE));
}
