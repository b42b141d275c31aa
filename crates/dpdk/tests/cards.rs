//! Devices of several kinds in one process, which starts DPDK once.

use taut_dpdk::{Device, DeviceConfig, Eal, EalConfig, Error};

fn with_cards(devices: &[&str]) -> EalConfig {
    EalConfig { devices: devices.iter().map(ToString::to_string).collect(), ..EalConfig::default() }
}

/// No bus has such a number that these cards could be on.
#[test]
fn another_device_is_no_other_setting() {
    let none = Eal::start(&with_cards(&["0000:ff:1f.6"])).unwrap();
    assert!(Device::open(none, "0000:ff:1f.6", &DeviceConfig::default()).is_err());
    let second = Eal::start(&with_cards(&["0000:ff:1f.7"])).unwrap();
    let error = Device::open(second, "0000:ff:1f.7", &DeviceConfig::default()).err().unwrap();
    assert_eq!(error, Error::NoDevice { device: "0000:ff:1f.7".into() }, "it was looked for");
    let virtual_ones = Eal::start(&EalConfig::default()).unwrap();
    drop(Device::open(virtual_ones, "net_null0", &DeviceConfig::default()).unwrap());
    let others = EalConfig { arguments: vec!["-n4".into()], ..EalConfig::default() };
    assert_eq!(Eal::start(&others).err(), Some(Error::OtherSettings));
}
