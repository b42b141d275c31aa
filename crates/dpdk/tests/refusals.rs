//! What is refused says so in one sentence with the remedy, and can be tried again.

mod common;

use std::process::Stdio;

use common::{CHILD, await_link, config, eal, memif, open, start};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use taut_dpdk::{Device, DeviceConfig, Eal, EalConfig, Error, Memory};
use tempfile::TempDir;

/// The error, after a look that it is one sentence that names the remedy.
fn refused<T>(result: Result<T, Error>, remedy: &str) -> Error {
    let error = result.err().expect("it is refused");
    let text = error.to_string();
    assert!(text.contains(remedy) && !text.contains('\n'), "{text}");
    println!("{text}");
    error
}

#[test]
fn no_such_driver() {
    for device in ["net_nonsense0", "nonsense", "net_nonsense0,role=server"] {
        let error = refused(open(device), "no driver of DPDK knows");
        assert_eq!(error, Error::NoDriver { device: device.into() });
    }
}

#[test]
fn no_such_card() {
    let error = refused(open("0000:ff:1f.7"), "dpdk-devbind.py -b vfio-pci");
    assert_eq!(error, Error::NoDevice { device: "0000:ff:1f.7".into() });
}

#[test]
fn what_no_name_can_be() {
    for device in ["", ",role=server", &"n".repeat(64), &format!("net_memif1,socket={}", "n".repeat(1_024))] {
        assert!(matches!(refused(open(device), "change"), Error::BadParameter(_)));
    }
    assert!(matches!(refused(open("net_memif1,secret=\0"), "leave it out"), Error::BadParameter(_)));
}

#[test]
fn a_driver_that_wants_frames_in_other_memory() {
    let error = refused(open("net_af_xdp1,iface=lo"), "use AF_XDP without DPDK (`xdp_interface`)");
    assert!(matches!(error, Error::BadParameter(_)), "{error:?}");
}

#[test]
fn arguments_that_the_driver_does_not_take() {
    let directory = TempDir::new().unwrap();
    let good = memif(2, "server", &directory.path().join("socket"));
    for bad in [
        "net_memif2,role=nobody".to_string(),
        "net_memif2,role=server,rsize=99".to_string(),
        memif(2, "server", &directory.path().join("no/such/place")),
        "net_af_packet2".to_string(),
        "net_af_packet2,iface=taut-none".to_string(),
    ] {
        let error = refused(open(&bad), "correct its arguments");
        assert!(matches!(error, Error::DeviceRefused { .. }), "{error:?}");
        // The name is as free as it was.
        drop(open(&good).unwrap());
    }
}

#[test]
fn a_client_without_a_server() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let error = refused(open(&memif(3, "client", &socket)), "start its other end first");
    assert!(matches!(error, Error::DeviceNotStarted { .. }), "{error:?}");
    let server = open(&memif(4, "server", &socket)).unwrap();
    drop(open(&memif(3, "client", &socket)).unwrap());
    drop(server);
}

/// The role's former name, which the driver takes still.
#[test]
fn a_server_that_is_called_master() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let server = open(&memif(10, "master", &socket)).unwrap();
    let _client = open(&memif(11, "slave", &socket)).unwrap();
    await_link(&server);
}

#[test]
fn a_client_that_the_server_does_not_want() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let server = open(&format!("{},id=1,secret=a", memif(8, "server", &socket))).unwrap();
    for other in ["id=2,secret=a", "id=1,secret=b", "id=1"] {
        let client = open(&format!("{},{other}", memif(9, "client", &socket)));
        let error = refused(client, "correct its arguments");
        assert!(matches!(error, Error::DeviceNotStarted { .. }), "{error:?}");
    }
    let client = open(&format!("{},id=1,secret=a", memif(9, "client", &socket))).unwrap();
    assert!(client.link().is_up);
    await_link(&server);
}

#[test]
fn a_device_that_is_open() {
    let directory = TempDir::new().unwrap();
    let device = memif(5, "server", &directory.path().join("socket"));
    let port = open(&device).unwrap();
    let error = refused(open(&device), "close it first");
    assert_eq!(error, Error::DeviceTaken { device: "net_memif5".into() });
    drop(port);
    drop(open(&device).unwrap());
}

#[test]
fn queues_and_an_mtu_that_cannot_be() {
    let directory = TempDir::new().unwrap();
    let device = memif(6, "server", &directory.path().join("socket"));
    let with = |config: DeviceConfig| Device::open(eal(), &device, &config);
    for (rx_queues, tx_queues) in [(0, 1), (1, 0), (u16::MAX, 1), (1, u16::MAX)] {
        let error =
            refused(with(DeviceConfig { rx_queues, tx_queues, ..DeviceConfig::default() }), "choose no more");
        assert!(matches!(error, Error::TooFewQueues { .. }), "{error:?}");
    }
    for mtu in [1, u16::MAX] {
        let error =
            refused(with(DeviceConfig { mtu: Some(mtu), ..DeviceConfig::default() }), "choose another");
        assert!(matches!(error, Error::BadMtu { .. }), "{error:?}");
    }
    assert_eq!(with(DeviceConfig { mtu: Some(1_400), ..DeviceConfig::default() }).unwrap().mtu(), 1_400);
}

#[test]
fn more_frames_than_there_is_memory_for() {
    let directory = TempDir::new().unwrap();
    let device = memif(7, "server", &directory.path().join("socket"));
    for (spare_frames, remedy) in
        [(1 << 18, "give it more"), (1 << 22, "give it more"), (u32::MAX, "choose 4194304")]
    {
        let config = DeviceConfig { spare_frames, ..DeviceConfig::default() };
        let error = refused(Device::open(eal(), &device, &config), remedy);
        assert!(matches!(error, Error::NoMemory { .. } | Error::BadParameter(_)), "{error:?}");
    }
    drop(open(&device).unwrap());
}

#[test]
fn dpdk_with_other_settings() {
    eal();
    assert!(Eal::start(&config()).is_ok(), "the same");
    let other = EalConfig { memory: Memory::Ordinary { mib: 128 }, ..EalConfig::default() };
    assert_eq!(refused(Eal::start(&other), "the same settings"), Error::OtherSettings);
    let cards = EalConfig { devices: vec!["0000:ff:1f.7".into()], ..config() };
    assert_eq!(refused(Eal::start(&cards), "the same settings"), Error::OtherSettings, "there is no bus");
}

const NO_HUGE_PAGES: &str = "no huge pages";
/// In MiB: a petabyte.
const MORE_THAN_THERE_ARE: &str = "1073741824";

/// Where the kernel says which huge pages there are.
const SIZES: &str = "/sys/kernel/mm/hugepages";

fn has_free_huge_pages() -> bool {
    let free = |size: std::fs::DirEntry| std::fs::read_to_string(size.path().join("free_hugepages")).ok();
    let sizes = std::fs::read_dir(SIZES).into_iter().flatten().flatten();
    sizes.filter_map(free).any(|count| count.trim() != "0")
}

/// Has this thread, and those that it starts, see none, though there are some. Needs root then.
fn hide_huge_pages() {
    if has_free_huge_pages() {
        unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace, which needs root");
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("it is private");
        mount(Some("none"), SIZES, Some("tmpfs"), MsFlags::empty(), none).expect("nothing in its place");
    }
    assert!(!has_free_huge_pages());
}

/// What DPDK refuses to start with, each in a process of its own.
fn starts(what: &str) -> (EalConfig, &'static str) {
    let with = |arguments: &[&str]| EalConfig {
        arguments: arguments.iter().map(|word| word.to_string()).collect(),
        ..EalConfig::default()
    };
    match what {
        "nonsense" => (with(&["--nonsense"]), "correct those that are yours"),
        "a driver that is not there" => {
            (with(&["-d", "/nonsense/driver.so"]), "correct those that are yours")
        }
        "a core that is not there" => {
            (EalConfig { core: Some(9_999), ..EalConfig::default() }, "correct those")
        }
        NO_HUGE_PAGES => {
            hide_huge_pages();
            (EalConfig { memory: Memory::Huge, ..EalConfig::default() }, "vm.nr_hugepages")
        }
        "too few huge pages" => {
            (EalConfig { memory: Memory::Huge, ..with(&["-m", MORE_THAN_THERE_ARE]) }, "vm.nr_hugepages")
        }
        _ => panic!("no start {what}"),
    }
}

/// The child of the tests below; nothing when it is run alone.
#[test]
fn does_not_start() {
    let Ok(what) = std::env::var(CHILD) else {
        return println!("LEFT OUT: it is a child of the other tests");
    };
    let (config, remedy) = starts(&what);
    let error = refused(Eal::start(&config), remedy);
    if config.memory == Memory::Huge {
        assert!(matches!(error, Error::NoHugePages { .. }), "{error:?}");
    }
    let again = refused(Eal::start(&EalConfig::default()), "start the process again");
    assert_eq!(again, Error::FailedBefore);
}

fn is_refused(what: &str) {
    let output = start("does_not_start", what, Stdio::null()).output();
    assert!(!output.contains("Usage") && !output.contains("EAL common options"), "{output}");
}

#[test]
fn an_argument_that_is_nonsense() {
    is_refused("nonsense");
}

#[test]
fn a_driver_that_is_not_there() {
    is_refused("a driver that is not there");
}

#[test]
fn a_core_that_is_not_there() {
    is_refused("a core that is not there");
}

#[test]
fn no_huge_pages() {
    is_refused(NO_HUGE_PAGES);
}

#[test]
fn fewer_huge_pages_than_are_asked_for() {
    is_refused("too few huge pages");
}
