//! Queues, rings, coalescing and clocks: the generic netlink family `ethtool`.
//! Documentation/networking/ethtool-netlink.rst of Linux; numbers of linux/ethtool_netlink.h.

use nix::errno::Errno;
use nix::sys::socket::SockProtocol;
use taut_netlink::{Attributes, Socket, attribute, attributes, half, text, word};

use super::refused;
use crate::change::shown_coalescing;
use crate::facts::{Channels, Coalescing, Feature, Ring, Seen};

/// The family that knows all others, and its one request.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const FEATURES: Message = Message { get: 11, set: 12, name: "FEATURES" };
const RINGS: Message = Message { get: 15, set: 16, name: "RINGS" };
const CHANNELS: Message = Message { get: 17, set: 18, name: "CHANNELS" };
const COALESCE: Message = Message { get: 19, set: 20, name: "COALESCE" };
const TSINFO: Message = Message { get: 25, set: 0, name: "TSINFO" };

/// The attribute that names the interface, and its index within.
const HEADER: u16 = 1;
const INDEX: u16 = 1;
/// Of FEATURES: sets of what can be switched, what is wanted, what is on, and what is never switched.
const SWITCHABLE: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
const NEVER: u16 = 5;
/// Of a set: only what is in it is listed; the list. Of an element of the list: its name; it is in the set.
const NO_MASK: u16 = 1;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;
/// Of CHANNELS.
const RX_CHANNELS_MAX: u16 = 2;
const TX_CHANNELS_MAX: u16 = 3;
const COMBINED_MAX: u16 = 5;
const RX_CHANNELS: u16 = 6;
const TX_CHANNELS: u16 = 7;
const COMBINED: u16 = 9;
/// Of RINGS.
const RX_RING_MAX: u16 = 2;
const RX_RING: u16 = 6;
/// Of COALESCE.
const RX_USECS: u16 = 2;
const ADAPTIVE_RX: u16 = 11;
/// Of TSINFO.
const PHC_INDEX: u16 = 5;
/// genlmsghdr: command, version, and two bytes of nothing.
const GENERIC: usize = 4;

struct Message {
    get: u8,
    set: u8,
    name: &'static str,
}

/// The family, for one interface.
pub struct Ethtool {
    socket: Socket,
    family: u16,
    index: u32,
}

impl Ethtool {
    /// *Errors*: a sentence, where this kernel has no such family.
    pub fn open(index: u32) -> Seen<Ethtool> {
        let opened = Socket::open(SockProtocol::NetlinkGeneric).and_then(|mut socket| {
            let body = generic(GET_FAMILY, &Attributes::default().with_text(FAMILY_NAME, "ethtool"));
            let answers = socket.request(CONTROL, 0, &body)?;
            let family = answers.first().and_then(|answer| answer.get(GENERIC..));
            let family = family.and_then(|answer| half(attribute(answer, FAMILY_ID)?, 0));
            Ok(Ethtool { socket, family: family.ok_or(Errno::ENOENT)?, index })
        });
        opened.map_err(|error| refused("netlink CTRL_CMD_GETFAMILY ethtool", error))
    }

    fn header(&self) -> Attributes {
        Attributes::default().with_nested(HEADER, &Attributes::default().with_word(INDEX, self.index))
    }

    /// The attributes that the kernel answers with.
    fn get(&mut self, message: &Message) -> Seen<Vec<u8>> {
        let body = generic(message.get, &self.header());
        let answers = self.socket.request(self.family, 0, &body);
        let answer = answers.and_then(|answers| {
            let answer = answers.into_iter().next().ok_or(Errno::EOPNOTSUPP)?;
            answer.get(GENERIC..).map(<[u8]>::to_vec).ok_or(Errno::EBADMSG)
        });
        answer.map_err(|error| refused(&format!("netlink ETHTOOL_MSG_{}_GET", message.name), error))
    }

    fn set(&mut self, message: &Message, attributes: Attributes) -> Result<(), String> {
        let body = generic(message.set, &attributes);
        let answers = self.socket.request(self.family, 0, &body);
        let call = format!("netlink ETHTOOL_MSG_{}_SET", message.name);
        answers.map(drop).map_err(|error| match error {
            // As many as are used past the kernel are to stay, and nothing else tells these from numbers that cannot be.
            Errno::EINVAL if message.set == CHANNELS.set => {
                format!(
                    "{call}: {}; end what has a program of XDP there, undo what sends frames to a queue that would go (rules, \
                     the hash: `taut nic undo`), or ask for another",
                    error.desc()
                )
            }
            _ => refused(&call, error),
        })
    }

    pub fn channels(&mut self) -> Seen<Channels> {
        let answer = self.get(&CHANNELS)?;
        let number = |kind| number(&answer, kind).unwrap_or(0);
        Ok(Channels {
            rx_max: number(RX_CHANNELS_MAX),
            tx_max: number(TX_CHANNELS_MAX),
            combined_max: number(COMBINED_MAX),
            rx: number(RX_CHANNELS),
            tx: number(TX_CHANNELS),
            combined: number(COMBINED),
        })
    }

    /// Sets the numbers of those kinds that the NIC has.
    pub fn set_channels(&mut self, combined: u32, rx: u32, tx: u32) -> Result<(), String> {
        let now = self.channels()?;
        let kinds = [
            (RX_CHANNELS, rx, now.rx_max, now.rx),
            (TX_CHANNELS, tx, now.tx_max, now.tx),
            (COMBINED, combined, now.combined_max, now.combined),
        ];
        let changed = kinds.iter().filter(|(_, wanted, most, now)| *most > 0 && wanted != now);
        let attributes =
            changed.fold(self.header(), |all, (kind, wanted, _, _)| all.with_word(*kind, *wanted));
        self.set(&CHANNELS, attributes)
    }

    pub fn ring(&mut self) -> Seen<Ring> {
        let answer = self.get(&RINGS)?;
        let none = "netlink ETHTOOL_MSG_RINGS_GET: it tells no receive ring";
        match (number(&answer, RX_RING), number(&answer, RX_RING_MAX)) {
            (Some(rx), Some(rx_max)) => Ok(Ring { rx, rx_max }),
            _ => Err(none.to_owned()),
        }
    }

    pub fn set_ring(&mut self, frames: u32) -> Result<(), String> {
        self.set(&RINGS, self.header().with_word(RX_RING, frames))
    }

    pub fn coalescing(&mut self) -> Seen<Coalescing> {
        let answer = self.get(&COALESCE)?;
        let adaptive_rx = attribute(&answer, ADAPTIVE_RX).and_then(|value| value.first()).map(|on| *on != 0);
        Ok(Coalescing { rx_usecs: number(&answer, RX_USECS), adaptive_rx })
    }

    /// Sets what is not `None`, all of it or nothing.
    pub fn set_coalescing(&mut self, wanted: &Coalescing) -> Result<(), String> {
        match requests(wanted).as_slice() {
            [one] => self.set_coalescing_at_once(one),
            more => {
                let before = self.coalescing()?;
                in_turn(more, &before, |one| self.set_coalescing_at_once(one))
            }
        }
    }

    fn set_coalescing_at_once(&mut self, wanted: &Coalescing) -> Result<(), String> {
        let mut attributes = self.header();
        if let Some(usecs) = wanted.rx_usecs {
            attributes = attributes.with_word(RX_USECS, usecs);
        }
        if let Some(adaptive) = wanted.adaptive_rx {
            attributes = attributes.with(ADAPTIVE_RX, &[u8::from(adaptive)]);
        }
        self.set(&COALESCE, attributes)
    }

    /// A switch of the driver; `None` if this kernel has none of that name.
    pub fn feature(&mut self, name: &str) -> Option<Feature> {
        let answer = self.get(&FEATURES).ok()?;
        // All that the kernel knows are listed here, in the set or not.
        let switchable = in_set(&answer, SWITCHABLE, name)?;
        let has = |kind| in_set(&answer, kind, name) == Some(true);
        Some(Feature { on: has(ACTIVE), fixed: !switchable || has(NEVER) })
    }

    /// Switches it.
    ///
    /// *Errors*: also if the kernel has taken the wish, and things are as they were.
    pub fn set_feature(&mut self, name: &str, on: bool) -> Result<(), String> {
        let named = Attributes::default().with_text(BIT_NAME, name);
        let bit = if on { named.with(BIT_VALUE, &[]) } else { named };
        let bits = Attributes::default().with_nested(BIT, &bit);
        let set = Attributes::default().with_nested(BITS, &bits);
        self.set(&FEATURES, self.header().with_nested(WANTED, &set))?;
        if self.feature(name).is_some_and(|feature| feature.on == on) {
            return Ok(());
        }
        Err(format!(
            "netlink ETHTOOL_MSG_FEATURES_SET: the driver leaves {name} as it was; the kernel's log may say why: \
             `dmesg | tail`"
        ))
    }

    /// The number of the hardware clock.
    pub fn clock(&mut self) -> Option<u32> {
        number(&self.get(&TSINFO).ok()?, PHC_INDEX)
    }
}

/// What is asked for, one after the other, to come to these settings. A time and that the driver changes it by itself are not
/// asked for at once: i40e, ice and iavf refuse that if the time is another one than there is (`__i40e_set_coalesce`,
/// `ice_set_rc_coalesce` and `iavf_set_itr_per_queue` of Linux).
fn requests(wanted: &Coalescing) -> Vec<Coalescing> {
    match *wanted {
        Coalescing { rx_usecs: Some(_), adaptive_rx: Some(true) } => vec![
            Coalescing { adaptive_rx: Some(false), ..*wanted },
            Coalescing { rx_usecs: None, adaptive_rx: Some(true) },
        ],
        _ => vec![*wanted],
    }
}

/// Asks for each of them. If one behind the first is refused, what was `before` is written back.
///
/// *Errors*: that refusal; and that of what was before, where it could not be written back.
fn in_turn(
    all: &[Coalescing],
    before: &Coalescing,
    mut ask: impl FnMut(&Coalescing) -> Result<(), String>,
) -> Result<(), String> {
    for (at, one) in all.iter().enumerate() {
        let Err(why) = ask(one) else { continue };
        if at == 0 {
            return Err(why);
        }
        return match requests(before).iter().try_for_each(ask) {
            Ok(()) => Err(why),
            Err(again) => Err(format!("{why}; {} is not back: {again}", shown_coalescing(before))),
        };
    }
    Ok(())
}

fn generic(command: u8, attributes: &Attributes) -> Vec<u8> {
    [[command, 1, 0, 0].as_slice(), &attributes.0].concat()
}

fn number(attributes: &[u8], kind: u16) -> Option<u32> {
    word(attribute(attributes, kind)?, 0)
}

/// Is the element of that name in a set? `None` if it is not listed.
fn in_set(attributes_of: &[u8], kind: u16, name: &str) -> Option<bool> {
    let set = attribute(attributes_of, kind)?;
    let bits = attributes(attribute(set, BITS)?).map(|(_, bit)| bit);
    let mut named = bits.filter(|bit| attribute(bit, BIT_NAME).map(text).as_deref() == Some(name));
    let bit = named.next()?;
    Some(attribute(set, NO_MASK).is_some() || attribute(bit, BIT_VALUE).is_some())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::net::if_::if_nametoindex;
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// Coalescing of a driver as i40e, ice and iavf are, which knows no automatic timer where it is not `able`.
    struct Driver {
        usecs: u32,
        adaptive: bool,
        able: bool,
    }

    impl Driver {
        fn ask(&mut self, wanted: &Coalescing) -> Result<(), String> {
            let usecs = wanted.rx_usecs.unwrap_or(self.usecs);
            let adaptive = wanted.adaptive_rx.unwrap_or(self.adaptive);
            if adaptive && (usecs != self.usecs || !self.able) {
                return Err(format!("refused {wanted:?}"));
            }
            (self.usecs, self.adaptive) = (usecs, adaptive);
            Ok(())
        }
    }

    fn coalescing(rx_usecs: impl Into<Option<u32>>, adaptive_rx: impl Into<Option<bool>>) -> Coalescing {
        Coalescing { rx_usecs: rx_usecs.into(), adaptive_rx: adaptive_rx.into() }
    }

    #[test]
    fn no_request_has_a_time_for_an_automatic_timer() {
        for rx_usecs in [None, Some(0), Some(50)] {
            for adaptive_rx in [None, Some(false), Some(true)] {
                let wanted = coalescing(rx_usecs, adaptive_rx);
                let requests = requests(&wanted);
                let is_both = |one: &Coalescing| one.rx_usecs.is_some() && one.adaptive_rx == Some(true);
                assert!(!requests.iter().any(is_both), "{requests:?}");
                let all = requests.iter().fold(coalescing(None, None), |all, one| Coalescing {
                    rx_usecs: one.rx_usecs.or(all.rx_usecs),
                    adaptive_rx: one.adaptive_rx.or(all.adaptive_rx),
                });
                assert_eq!(all, wanted);
            }
        }
    }

    #[test]
    fn an_automatic_timer_comes_back_wholly_or_not_at_all() {
        let wanted = coalescing(50, true);
        for (able, then) in [(true, (50, true)), (false, (0, false))] {
            let mut driver = Driver { usecs: 0, adaptive: false, able };
            assert!(driver.ask(&wanted).is_err(), "at once it is refused");
            let made = in_turn(&requests(&wanted), &coalescing(0, false), |one| driver.ask(one));
            assert_eq!((driver.usecs, driver.adaptive), then);
            assert_eq!(made.err(), (!able).then(|| format!("refused {:?}", coalescing(None, true))));
        }
        // What was before is as hard to come by.
        let mut driver = Driver { usecs: 20, adaptive: true, able: true };
        let mut asked = 0;
        let made = in_turn(&requests(&wanted), &coalescing(20, true), |one| {
            asked += 1;
            if asked == 2 { Err("busy".to_owned()) } else { driver.ask(one) }
        });
        assert_eq!((driver.usecs, driver.adaptive, made), (20, true, Err("busy".to_owned())));
    }

    #[test]
    fn what_is_not_back_is_said() {
        let refused = |one: &Coalescing| match one.rx_usecs {
            Some(50) => Ok(()),
            _ => Err("busy".to_owned()),
        };
        let made = in_turn(&requests(&coalescing(50, true)), &coalescing(0, false), refused);
        assert_eq!(made, Err("busy; rx-usecs 0, adaptive-rx off is not back: busy".to_owned()));
    }

    /// In a network that goes with its thread.
    #[test]
    fn a_switch_of_the_driver() {
        let there = std::thread::spawn(|| {
            if unshare(CloneFlags::CLONE_NEWNET).is_err() {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "it needs root");
                println!("LEFT OUT: it needs root, to make a network namespace");
                return;
            }
            let pair = ["link", "add", "nic0", "type", "veth", "peer", "name", "nic1"];
            assert!(Command::new("ip").args(pair).status().unwrap().success());
            let mut ethtool = Ethtool::open(if_nametoindex("nic0").unwrap()).unwrap();
            let checksums = "tx-checksum-ip-generic";
            for on in [false, true] {
                ethtool.set_feature(checksums, on).unwrap();
                assert_eq!(ethtool.feature(checksums), Some(Feature { on, fixed: false }));
            }
            assert_eq!(ethtool.feature("rx-ntuple-filter"), Some(Feature { on: false, fixed: true }));
            let refused = ethtool.set_feature("rx-ntuple-filter", true).unwrap_err();
            assert!(refused.contains("the driver leaves rx-ntuple-filter as it was"), "{refused}");
            assert_eq!(ethtool.feature("no such feature"), None);
        });
        there.join().unwrap();
    }
}
