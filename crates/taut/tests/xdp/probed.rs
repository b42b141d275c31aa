//! How AF_XDP uses an interface is told.

use std::sync::Mutex;

use taut::{XdpAttachMode, XdpBindMode, XdpMode, XdpProbed, XdpQueueCounts};
use taut_testbed::{End, with_pair};

use crate::{participant, set_mtu};

/// What the process has warned of.
struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl log::Log for Warnings {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// An MTU that veth takes in generic mode only, and which no other test has: its warning is known by it.
const TOO_LARGE: usize = 3_801;

#[test]
fn the_mode_is_told_and_a_slower_one_that_nobody_chose_is_warned_of() {
    with_pair("the_mode_is_told", ["", ""], |pair| {
        let _ = log::set_logger(&WARNINGS);
        log::set_max_level(log::LevelFilter::Warn);
        // veth moves no frames without a copy.
        let queues = vec![XdpQueueCounts::default()];
        let probed = |attached| XdpProbed {
            attached,
            why_not_native: None,
            bound: XdpBindMode::Copy,
            queues: queues.clone(),
        };
        let of = |mode| participant(pair, End::A, mode).stats().xdp;
        assert_eq!(of(None), None);
        for mode in [XdpMode::Auto, XdpMode::Native] {
            assert_eq!(of(Some(mode)), Some(probed(XdpAttachMode::Native)));
            pair.await_no_program(End::A);
        }
        set_mtu(pair, TOO_LARGE);
        let warnings = || {
            let warnings = WARNINGS.0.lock().unwrap();
            warnings.iter().filter(|text| text.contains(&TOO_LARGE.to_string())).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of(Some(XdpMode::Generic)), Some(probed(XdpAttachMode::Generic)));
        assert_eq!(warnings(), Vec::<String>::new(), "it was chosen");
        pair.await_no_program(End::A);
        let fallen_back = of(Some(XdpMode::Auto)).unwrap();
        let why = fallen_back.why_not_native.clone().unwrap();
        assert!(why.contains("is too large for native XDP on xa"), "{why}");
        assert_eq!(XdpProbed { why_not_native: None, ..fallen_back }, probed(XdpAttachMode::Generic));
        let [warning] = &warnings()[..] else { panic!("{:?}", warnings()) };
        assert!(
            warning.starts_with("XDP on xa queue 0, generic, copied") && warning.contains(&why),
            "{warning}"
        );
    });
}
