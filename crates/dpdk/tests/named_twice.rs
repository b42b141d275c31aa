//! A device that is among the arguments of DPDK, which this process has to be started with.

mod common;

use common::{await_link, memif};
use taut_dpdk::{Device, DeviceConfig, Eal, EalConfig};
use tempfile::TempDir;

#[test]
fn a_server_that_dpdk_has_opened() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let arguments = vec![format!("--vdev={}", memif(0, "server", &socket))];
    let eal = Eal::start(&EalConfig { arguments, ..EalConfig::default() }).unwrap();
    let open = |device: &str| Device::open(eal, device, &DeviceConfig::default()).unwrap();
    let server = open("net_memif0");
    let _client = open(&memif(1, "client", &socket));
    await_link(&server);
}
