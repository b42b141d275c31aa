//! Datagrams in frames of Ethernet that a driver of DPDK moves, without the kernel: without IP, or over IP at an address
//! that the kernel does not have.
//!
//! Nothing tells that a frame has come: whoever wants to know looks, so a participant with this port never sleeps. What
//! looks, `Incoming`, is a value of its own: another thread may send meanwhile.
//!
//! Built with the feature `dpdk` only.
#![forbid(unsafe_code)]
#![cfg(feature = "dpdk")]

mod critical;

use std::sync::Arc;

use taut_base::{Duration, Error, Locator, Result, Time};
use taut_dpdk::{Burst, Device, DeviceConfig, Eal, EalConfig, Memory, RxQueues};
use taut_ethernet::{Carrier, LENT, Layer, OwnIp, Put, Reached, Station, Stats, Tag, shift_with_tag};
use taut_mem::Chunks;
use taut_port::Frame;

use critical::{CRITICAL, QUEUES};
pub use critical::{Critical, Steering};

/// How often in a row frames are given to a device that takes none, between looks at the clock and at the link. Higher holds
/// up what else there is to do while nobody is at the other end, lower looks more often.
const TRIES: u32 = 1_000;

/// For how long one burst while somebody is there whose ring is full. Lower drops more of what is faster than they are, higher
/// holds up what else there is to do. One who has taken nothing for so long is not waited for again before they take something.
const PATIENCE: Duration = Duration::from_millis(2);

/// The same while nobody can send by the device, as memif's driver hears of the other end: each 50 ms, for as long as its
/// thread needs to get a processor. Lower drops frames where that is taken, higher holds up who has another way.
const HEARING: Duration = Duration::from_millis(20);

/// After so many takes of nothing but what is critical a burst of the others is taken: without discovery, and answers to who
/// asks for addresses, nobody stays. Lower has a critical sample wait behind such a burst more often, higher leaves the others
/// waiting for longer while somebody sends more to the critical port than is taken.
const IN_A_ROW: u32 = 16;

/// What a port is opened with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DpdkConfig {
    /// The device and the arguments of its driver, as `net_memif0,role=server,socket=/run/a.sock`, or its address on the
    /// PCI bus.
    pub device: String,
    /// Is DPDK's memory in huge pages? Cards need them mostly.
    pub huge_pages: bool,
    /// Further arguments for DPDK, as it documents them.
    pub arguments: Vec<String>,
    /// The tag that frames carry, if they carry one, with its priority until [`DpdkPort::set_mark`] says another. Of what
    /// comes only frames of the same network are taken.
    pub tag: Option<Tag>,
    /// What is critical has a queue of its own, to receive and to send by; `None`: there is one queue each way.
    pub critical: Option<Critical>,
}

/// Looks for frames without the port; see [`DpdkPort::incoming`].
///
/// Nobody else can, so that it may be in the hands of one thread while another one sends by the port.
pub struct Incoming {
    /// In hand, of each queue. Ends before what it has come by.
    come: [Burst; QUEUES],
    queues: RxQueues,
    /// Is there one of what is critical?
    has_critical: bool,
}

impl Incoming {
    /// Has something come? What has stays in hand until [`DpdkPort::receive`] takes it.
    ///
    /// *Cost*: a look of the driver's for 32 frames by each queue, if none is in hand.
    #[inline]
    pub fn look(&mut self) -> bool {
        self.next().is_some()
    }

    /// The place of the queue whose turn it is of those that something has come by: that of what is critical first.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self.has_critical && self.is_any(CRITICAL) {
            true => Some(CRITICAL),
            false => self.is_any(0).then_some(0),
        }
    }

    /// Is something in hand of the queue at this place, or has come by it?
    #[inline]
    fn is_any(&mut self, place: usize) -> bool {
        let Incoming { come, queues, .. } = self;
        !come[place].is_empty() || queues.receive(place as u16, &mut come[place]) > 0
    }
}

/// Frames to and from the stations of one device.
pub struct DpdkPort {
    /// To be sent with the next flush, by each queue. Ends before the device, whose memory would not be given back else.
    out: [Burst; QUEUES],
    /// The place of the one that what is written now goes by.
    sends_by: usize,
    device: Device,
    carrier: Carrier,
    /// How what is critical comes to its queue, if it has one.
    steering: Option<Steering>,
    /// Frames that came by that queue.
    critical_in: u64,
    /// How often in a row nothing else was taken.
    in_a_row: u32,
    /// Bytes of the longest frame.
    room: usize,
    /// Has the other end been waited for in vain, to take something of this queue?
    is_stuck: [bool; QUEUES],
}

impl DpdkPort {
    /// Starts DPDK in this process, unless it runs, and opens the device. Without IP a station of zeros is the device's own.
    ///
    /// *Errors*: what DPDK or the driver refuses, in one sentence with the remedy. *Cost*: a quarter of a second, and the
    /// memory of all frames; a card may take seconds.
    pub fn open(config: &DpdkConfig, reached: Reached) -> Result<DpdkPort> {
        let refused = |error: taut_dpdk::Error| Error::Error(format!("DPDK: {error}"));
        let name = config.device.split(',').next().unwrap_or_default();
        // It is looked for by its name, which has none, once a driver has taken it.
        if let Some((bus @ ("pci" | "vdev"), name)) = name.split_once(':') {
            return Err(Error::BadParameter(format!(
                "DPDK: {bus} is the bus of the device {name}, which finds it by itself: name it without its bus, as {name}"
            )));
        }
        let eal = EalConfig {
            memory: if config.huge_pages { Memory::Huge } else { EalConfig::default().memory },
            devices: if is_card(name) { vec![name.to_owned()] } else { Vec::new() },
            arguments: config.arguments.clone(),
            ..EalConfig::default()
        };
        let eal = Eal::start(&eal).map_err(refused)?;
        // A tag of no network may be missing in what others send.
        let has_tags = config.tag.is_some_and(|tag| tag.network != 0);
        let shift = if has_tags { shift_with_tag(reached.shift()) } else { reached.shift() };
        let queues = if config.critical.is_some() { QUEUES as u16 } else { 1 };
        let frames = DeviceConfig {
            rx_queues: queues,
            tx_queues: queues,
            lent_frames: LENT,
            shift,
            ..DeviceConfig::default()
        };
        let mut device = Device::open(eal, &config.device, &frames).map_err(refused)?;
        // Virtual devices that have no such choice receive all.
        let _ = device.receive_groups();
        let station = Station { mac: device.mac(), tag: config.tag };
        let layer = Layer::open(device.name(), 0, station.mac, reached)?;
        let mtu = usize::from(device.mtu());
        let room = mtu + station.header_len();
        let carrier = Carrier::new(station, layer, room, mtu);
        let to = carrier.layer().own().map(|own| own.address().address);
        let critical = config.critical.as_ref();
        let steering = critical.map(|critical| Steering::of(&mut device, critical, station.tag, to));
        let (out, sends_by, critical_in) = Default::default();
        Ok(DpdkPort {
            device,
            carrier,
            out,
            sends_by,
            steering,
            critical_in,
            in_a_row: 0,
            room,
            is_stuck: Default::default(),
        })
    }

    /// What looks for frames, once.
    pub fn incoming(&mut self) -> Option<Incoming> {
        let queues = self.device.take_rx()?;
        Some(Incoming { come: Default::default(), queues, has_critical: self.steering.is_some() })
    }

    /// What was opened, for people: `net_memif0 (net_memif), MTU 1500, without IP, VLAN 5`.
    pub fn describe(&self) -> String {
        let layer = self.carrier.layer().own().map(|own| (own.address().address, own.address().prefix_len));
        let layer =
            layer.map_or("without IP".into(), |(address, prefix_len)| format!("{address}/{prefix_len}"));
        let vlan = self.carrier.station().tag.filter(|tag| tag.network != 0);
        let vlan = vlan.map(|tag| format!(", VLAN {}", tag.network)).unwrap_or_default();
        let (name, driver, mtu) = (self.device.name(), self.device.driver(), self.device.mtu());
        let critical =
            self.steering.as_ref().map(|steering| format!(", what is critical by queue {steering}"));
        format!("{name} ({driver}), MTU {mtu}, {layer}{vlan}{}", critical.unwrap_or_default())
    }

    /// How what is critical comes to its queue, if it has one.
    pub fn steering(&self) -> Option<&Steering> {
        self.steering.as_ref()
    }

    /// What is sent from now on has this differentiated services code point, and `tagged` as the priority in its tag if it
    /// has one; by its priority (SO_PRIORITY) it goes by the queue of what is critical from 6 on, if there is one.
    #[inline]
    pub fn set_mark(&mut self, mark: u8, priority: i32, tagged: u8) {
        self.carrier.set_mark(mark);
        self.carrier.set_priority(tagged);
        self.sends_by = if self.steering.is_some() { critical::sends_by(priority) } else { 0 };
    }

    /// How datagrams become frames.
    #[inline]
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// How datagrams become frames, to be changed.
    #[inline]
    pub fn carrier_mut(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    /// Puts a datagram, to be sent with the next [`DpdkPort::flush`]. `false` if it cannot go by frames.
    ///
    /// *Cost*: a copy, of the headers alone if the payload lies in a chunk.
    #[inline]
    pub fn send(&mut self, to: &Locator, parts: &[&[u8]]) -> bool {
        let by = self.sends_by;
        if self.out[by].room() == 0 {
            self.send_out(by);
        }
        let DpdkPort { device, carrier, out, room, .. } = self;
        let out = &mut out[by];
        carrier.send(to, parts, |datagram| {
            let lent = device.chunks().and_then(|chunks| datagram.wrap(chunks));
            let is_lent = lent.is_some();
            let header = |whole: &[u8], place: &mut [u8]| datagram.write_header(whole, place);
            if lent.is_some_and(|lent| device.wrap(lent, header, (by as u16, &mut *out))) {
                return Put::sent(is_lent, true);
            }
            let Some(mut frame) = device.frame() else { return Put::Full };
            let Some(len) = frame.append(*room).and_then(|place| datagram.write(place)) else {
                return Put::Full;
            };
            frame.truncate(len);
            if out.push(frame).is_ok() { Put::sent(is_lent, false) } else { Put::Full }
        })
    }

    /// Sends what was put, what is critical first, and what the layer itself has to say. What the device does not take is
    /// lost, as on any network.
    #[inline]
    pub fn flush(&mut self) {
        if self.has_to_say() {
            self.say();
        }
        (0..QUEUES).rev().for_each(|place| self.send_out(place));
        self.device.take_back();
    }

    #[inline]
    fn has_to_say(&self) -> bool {
        self.carrier.layer().own().is_some_and(OwnIp::has_to_say)
    }

    #[cold]
    fn say(&mut self) {
        while self.has_to_say() {
            if self.out[0].room() == 0 {
                self.send_out(0);
            }
            let DpdkPort { device, carrier, out: [out, ..], room, .. } = self;
            let (Some(own), Some(mut frame)) = (carrier.layer_mut().own_mut(), device.frame()) else {
                return;
            };
            let Some(len) = frame.append(*room).and_then(|place| own.say(place)) else { return };
            frame.truncate(len);
            carrier.stats.dropped_full += u64::from(out.push(frame).is_err());
        }
    }

    /// Looks for the ways to hosts, if it is time, and for what has been sent.
    pub fn on_timeout(&mut self, now: Time) {
        self.device.take_back();
        let DpdkPort { device, carrier, .. } = self;
        let own = carrier.layer_mut().own_mut().filter(|own| !own.is_linked());
        own.filter(|_| device.link().is_up).into_iter().for_each(OwnIp::set_linked);
        carrier.layer_mut().on_timeout(now);
        if self.has_to_say() {
            self.flush();
        }
    }

    #[inline]
    fn send_out(&mut self, place: usize) {
        let DpdkPort { device, out, is_stuck, .. } = self;
        is_stuck[place] &= device.send(place as u16, &mut out[place]) == 0;
        if !out[place].is_empty() {
            self.send_rest(place);
        }
    }

    /// The device has not taken all at once.
    #[cold]
    fn send_rest(&mut self, place: usize) {
        let DpdkPort { device, carrier, out, is_stuck, .. } = self;
        let (out, is_stuck) = (&mut out[place], &mut is_stuck[place]);
        let begun = device.now_ns();
        let (mut tries, mut was_shut, mut open_since) = (0, false, begun);
        while !out.is_empty() {
            if device.send(place as u16, out) > 0 {
                (tries, *is_stuck) = (0, false);
                continue;
            }
            tries += 1;
            if tries % TRIES != 0 {
                continue;
            }
            let (is_shut, now) = (device.is_shut(), device.now_ns());
            // Once it is open again it is tried for a while, too.
            if (is_shut || was_shut) && now < begun + HEARING.0 as u64 {
                (was_shut, open_since) = (is_shut, now);
                continue;
            }
            if *is_stuck || is_shut || now >= open_since + PATIENCE.0 as u64 || !device.link().is_up {
                *is_stuck |= !is_shut;
                break;
            }
        }
        carrier.stats.dropped_full += out.len() as u64;
        out.clear();
    }

    /// The chunks of frames to send: a payload that was written into one of them is sent from there. They are there for as
    /// long as somebody has them, if the port has gone, too.
    pub fn chunks(&self) -> Option<&Arc<Chunks>> {
        self.device.chunks()
    }

    /// Takes the datagrams of samples that `incoming` has in hand and looks for more, until there are none or as many as
    /// `budget`, after each burst for what is critical first, as long as that is not [`IN_A_ROW`]; what comes of discovery with
    /// them is put aside. Returns how many frames, which may be two bursts more.
    ///
    /// *Cost*: no copy, but of what is at most 68 bytes long and of what comes while readers hold too many frames.
    pub fn receive(&mut self, incoming: &mut Incoming, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        let (mut taken, mut only_critical) = (0, false);
        while taken < budget {
            let Some(place) = incoming.next() else { break };
            only_critical = place == CRITICAL && (taken == 0 || only_critical);
            taken += self.take(place, incoming, sink);
        }
        self.in_a_row = if only_critical { self.in_a_row + 1 } else { 0 };
        if self.in_a_row >= IN_A_ROW && incoming.is_any(0) {
            self.in_a_row = 0;
            taken += self.take(0, incoming, sink);
        }
        self.device.take_back();
        if self.has_to_say() {
            self.flush();
        }
        taken
    }

    /// Takes what is in hand of the queue at this place.
    fn take(&mut self, place: usize, incoming: &mut Incoming, sink: &mut dyn FnMut(&Frame)) -> usize {
        let DpdkPort { device, carrier, .. } = self;
        let come = &mut incoming.come[place];
        device.take_each(come, |frame, keep| {
            carrier.take(frame, |payload| keep(payload)).iter().for_each(&mut *sink);
        });
        let taken = come.len();
        self.critical_in += if place == CRITICAL { taken as u64 } else { 0 };
        come.clear();
        taken
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let of = self.device.statistics();
        let (stats, own) = (self.carrier.stats, self.carrier.layer().own());
        Stats {
            receive_overflow: of.rx_missed + of.rx_no_frame,
            critical_in: self.critical_in,
            dropped_full: stats.dropped_full + own.map_or(0, OwnIp::dropped),
            dropped_parts: own.map_or(0, OwnIp::incomplete),
            frames_free: self.chunks().map_or(0, |chunks| chunks.free() as u64),
            copied_out: stats.copied_out + self.chunks().map_or(0, |chunks| chunks.copied()),
            ..stats
        }
    }
}

/// Is it an address on the PCI bus, as `0000:01:00.0` or without the domain in front? Names of other devices may have
/// colons, too.
fn is_card(name: &str) -> bool {
    let number = |text: &str, most: u32| {
        // A sign is none of DPDK's.
        let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits && u32::from_str_radix(text, 16).is_ok_and(|number| number <= most)
    };
    let (before, function) = name.rsplit_once('.').unwrap_or_default();
    let is_slot = match before.split(':').collect::<Vec<_>>()[..] {
        [domain, bus, device] => number(domain, u32::MAX) && number(bus, 0xff) && number(device, 0x1f),
        [bus, device] => number(bus, 0xff) && number(device, 0x1f),
        _ => false,
    };
    is_slot && number(function, 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_have_addresses() {
        for card in ["0000:01:00.0", "01:00.0", "10000:e1:1f.7"] {
            assert!(is_card(card), "{card}");
        }
        let others = [
            "net_memif0",
            "net_pcap0:1",
            "eth0:1",
            "eth0:1.0",
            "01:00",
            "0000:01:20.0",
            "0000:100:00.0",
            "01:00.8",
            "+1:00.0",
            ":00.0",
            "a:b:c:d.0",
            "",
        ];
        for other in others {
            assert!(!is_card(other), "{other}");
        }
    }
}
