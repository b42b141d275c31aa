//! A program that was built without the feature `dpdk` refuses a device of DPDK, and says what to do.
#![cfg(not(feature = "dpdk"))]

use taut::{Config, DomainParticipant, Error};

#[test]
fn a_device_is_refused() {
    let config =
        Config { dpdk_device: "net_null0".into(), interfaces: vec!["lo".into()], ..Config::default() };
    let error = DomainParticipant::with_config(&config).map(drop).unwrap_err();
    assert!(matches!(error, Error::BadParameter(_)), "{error:?}");
    let text = error.to_string();
    for words in ["dpdk_device is net_null0", "built without DPDK", "the feature `dpdk`", "xdp_interface"] {
        assert!(text.contains(words) && !text.contains('\n'), "{text}");
    }
}
