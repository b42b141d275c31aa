//! How AF_XDP uses an interface is told.

use std::sync::Mutex;

use taut::{
    Config, DomainParticipant, XdpAttachMode, XdpBindMode, XdpLayer, XdpMode, XdpProbed, XdpQueueCounts,
};
use taut_testbed::{End, Pair, ip, with_pair};

use crate::{config, participant};

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

/// From here on, what is warned of and has these words.
fn warnings_with(words: &'static str) -> impl Fn() -> Vec<String> {
    let _ = log::set_logger(&WARNINGS);
    log::set_max_level(log::LevelFilter::Warn);
    move || {
        let warnings = WARNINGS.0.lock().unwrap();
        warnings.iter().filter(|text| text.contains(words)).cloned().collect()
    }
}

/// What is found out in this mode.
fn found(pair: &Pair, mode: Option<XdpMode>) -> Option<XdpProbed> {
    participant(pair, End::A, mode).stats().xdp
}

/// veth moves no frames without a copy.
fn probed(attached: XdpAttachMode) -> XdpProbed {
    let queues = vec![XdpQueueCounts::default()];
    XdpProbed { attached, why_not_native: None, bound: XdpBindMode::Copy, queues }
}

#[test]
fn the_mode_is_told() {
    with_pair("the_mode_is_told", ["", ""], |pair| {
        assert_eq!(found(pair, None), None);
        for mode in [XdpMode::Auto, XdpMode::Native] {
            assert_eq!(found(pair, Some(mode)), Some(probed(XdpAttachMode::Native)));
            pair.await_no_program(End::A);
        }
    });
}

/// As many receive queues as no other test has, and too few: the warning is known by it.
const TOO_FEW: [&str; 2] = ["numrxqueues 5 numtxqueues 1", "numrxqueues 1 numtxqueues 6"];

#[test]
fn a_slower_mode_that_nobody_chose_is_warned_of() {
    with_pair("a_slower_mode_is_warned_of", TOO_FEW, |pair| {
        let warnings = warnings_with("xa has 5 receive queues");
        assert_eq!(found(pair, Some(XdpMode::Generic)), Some(probed(XdpAttachMode::Generic)));
        assert_eq!(warnings(), Vec::<String>::new(), "it was chosen");
        pair.await_no_program(End::A);
        let fallen_back = found(pair, Some(XdpMode::Auto)).unwrap();
        let why = fallen_back.why_not_native.clone().unwrap();
        assert!(why.contains("fewer than its peer has transmit queues"), "{why}");
        assert_eq!(XdpProbed { why_not_native: None, ..fallen_back }, probed(XdpAttachMode::Generic));
        let [warning] = &warnings()[..] else { panic!("{:?}", warnings()) };
        assert!(
            warning.starts_with("XDP on xa queue 0, generic, copied") && warning.contains(&why),
            "{warning}"
        );
    });
}

/// Without IP nothing else is wrong with it.
#[test]
fn an_interface_that_is_down_is_warned_of_once() {
    with_pair("an_interface_that_is_down_is_warned_of", ["", ""], |pair| {
        pair.enter(End::A);
        // Other tests warn of `xa`, too; the pair finds it by that name.
        for words in ["set lo up", "set xa down", "set xa name below", "property add dev below altname xa"] {
            ip(&format!("link {words}"));
        }
        let config = Config {
            interfaces: vec!["lo".into()],
            xdp_interface: "below".into(),
            xdp_layer: XdpLayer::Bare,
            ..config(End::A, Some(XdpMode::Auto))
        };
        let warnings = warnings_with("XDP on below");
        let participant = DomainParticipant::with_config(&config).unwrap();
        let [warning] = &warnings()[..] else { panic!("{:?}", warnings()) };
        assert!(warning.contains("below is down: `ip link set below up`"), "{warning}");
        drop(participant);
        // Else the next one falls back to a slower mode, which it warns of.
        pair.await_no_program(End::A);
        ip("link set below up");
        drop(DomainParticipant::with_config(&config).unwrap());
        assert_eq!(warnings().len(), 1, "{:?}", warnings());
    });
}

/// No socket has what comes by another one.
#[test]
fn a_queue_that_nobody_has_without_ip_is_warned_of() {
    let words = "numrxqueues 3 numtxqueues 3";
    with_pair("a_queue_that_nobody_has_without_ip", [words, words], |pair| {
        pair.enter(End::A);
        for words in ["set lo up", "set xa name threefold", "property add dev threefold altname xa"] {
            ip(&format!("link {words}"));
        }
        let warnings = warnings_with("XDP on threefold");
        for (queues, is_all) in [(vec![0, 1, 2], true), (vec![1], false)] {
            let config = Config {
                interfaces: vec!["lo".into()],
                xdp_interface: "threefold".into(),
                xdp_layer: XdpLayer::Bare,
                xdp_queues: queues,
                ..config(End::A, Some(XdpMode::Generic))
            };
            drop(DomainParticipant::with_config(&config).unwrap());
            pair.await_no_program(End::A);
            assert_eq!(warnings().is_empty(), is_all, "{:?}", warnings());
        }
        let [warning] = &warnings()[..] else { panic!("{:?}", warnings()) };
        assert!(warning.contains("the other 2 receive queues is lost"), "{warning}");
    });
}
