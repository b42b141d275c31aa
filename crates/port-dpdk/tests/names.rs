//! What devices may be called.

use taut_dpdk::{Eal, EalConfig};
use taut_ethernet::{FrameEnds, Reached};
use taut_port_dpdk::{DpdkConfig, DpdkPort};

fn refused(device: &str) -> String {
    let config = DpdkConfig { device: device.into(), ..DpdkConfig::default() };
    DpdkPort::open(&config, Reached::Bare(FrameEnds::default())).err().expect("it is refused").to_string()
}

/// DPDK's own way to write a device has its bus in front, which is no part of the name.
#[test]
fn a_bus_is_no_part_of_a_name() {
    for (device, name) in [
        ("vdev:net_null0", "net_null0"),
        ("pci:0000:ff:1f.7", "0000:ff:1f.7"),
        ("vdev:net_null0,size=64", "net_null0"),
    ] {
        let told = refused(device);
        assert!(told.contains(&format!("name it without its bus, as {name}")), "{told}");
    }
    for device in ["eth0:1", "::", "0000:ff:1f", "net:null0"] {
        let told = refused(device);
        assert!(told.contains("no driver of DPDK knows"), "{told}");
    }
    // None of them has started DPDK for cards, which looks at all of the machine's: ordinary memory still does.
    Eal::start(&EalConfig::default()).unwrap();
}
