//! A device of any driver, with its queues and the memory of its frames. DPDK has a number for it and calls that a
//! port.
//!
//! Owns the device from its name to its end. Frames go in and out by it as they are: who they are for and what is in
//! them is the caller's business, and so is looking again when nothing has come.

use std::ffi::CStr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use taut_mem::{Bytes, Chunks, Wrap};

use crate::eal::{Eal, c_string, control, said};
use crate::ffi::{self, Counts, Facts, Setup};
use crate::lend::Lending;
use crate::pool::{Pool, Wanted};
use crate::port::{Port, RxQueues};
use crate::{BURST, Burst, Error, Mbuf};

/// Ethernet with two tags.
const HEADER: u16 = 22;
/// More than that is left free before a payload that is written into a frame, so that headers fit in, less DPDK's own
/// headroom, and behind it. Less has the longest payloads of a long MTU copied.
const AROUND: u16 = 192;
/// As much room as drivers expect of a frame at least, the headroom that DPDK adds not counted (rte_mbuf.h).
const LEAST_ROOM: u16 = 2_048;
/// The room of a frame and its headroom are counted in 16 bits.
const MOST_MTU: u16 = 65_000;
/// What drivers take if nothing else is said, in bytes (RTE_ETHER_MTU).
const ETHERNET_MTU: u16 = 1_500;
/// The longest name of a device, with a zero (rte_dev.h).
const NAME: usize = 64;
/// More is likely a mistake, and DPDK counts them in 31 bits: they are 10 GB.
const MOST_SPARE: u32 = 1 << 22;
/// So long may a name with its arguments be: a path, and a few numbers.
const MOST_DEVICE: usize = 1_024;

/// The driver over AF_XDP. It tells the kernel that frames are the elements of a pool, one behind the other, and the bytes
/// of ours are outside of theirs.
const AF_XDP: &str = "net_af_xdp";
/// The driver over packet sockets. As that over libpcap it opens all of its queues, whether they are set up or not.
const AF_PACKET: &str = "net_af_packet";
/// The driver over libpcap.
const PCAP: &str = "net_pcap";
/// The driver of a ring in this process.
const RING: &str = "net_ring";
/// The driver of memory that two processes share.
const MEMIF: &str = "net_memif";
/// How long a client of memif waits to be greeted, which takes the server's thread a millisecond or two. Less and it
/// may leave too early on a busy machine; more and a server that hangs, or that was not quite there, holds it up.
const GREETED_WITHIN_MS: u32 = 500;

/// What a device is opened with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// Queues to receive by. Who hashes frames to them is the driver.
    pub rx_queues: u16,
    /// Queues to send by.
    pub tx_queues: u16,
    /// Frames that each queue receives into before they are looked for. The driver may round. Fewer are lost sooner
    /// while nobody looks; more cost memory.
    pub rx_descriptors: u16,
    /// Frames that each queue takes before they are sent. The driver may round.
    pub tx_descriptors: u16,
    /// Frames beside those in the queues, for who writes or keeps some. *Range*: up to 4,194,304.
    pub spare_frames: u32,
    /// Frames that payloads may lie in beside those: views of what has come, and what is written where it is sent from;
    /// see [`Device::chunks`]. *Range*: up to 4,194,304.
    pub lent_frames: u32,
    /// Where the bytes of a frame that has come begin, as many bytes behind a multiple of eight; a driver may choose
    /// otherwise. *Range*: 0 to 7.
    pub shift: u16,
    /// The MTU in bytes, Ethernet's header not counted; `None`: as the driver has it, or the kernel's interface that it
    /// sends by if that takes less.
    pub mtu: Option<u16>,
}

impl Default for DeviceConfig {
    fn default() -> DeviceConfig {
        DeviceConfig {
            rx_queues: 1,
            tx_queues: 1,
            rx_descriptors: 1_024,
            tx_descriptors: 1_024,
            spare_frames: 1_024,
            lent_frames: 0,
            shift: 0,
            mtu: None,
        }
    }
}

/// Whether there is somebody at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Is there?
    pub is_up: bool,
    /// In Mbit/s, as the driver says; virtual ones say anything.
    pub mbit_per_s: u32,
}

/// What the device and its driver have counted since it was opened. Drivers leave out what they do not count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Frames received.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that came while the queue was full.
    pub rx_missed: u64,
    /// Frames that came damaged.
    pub rx_errors: u64,
    /// Frames that came while all of ours were in use.
    pub rx_no_frame: u64,
    /// Frames that came in pieces and did not fit one: they are longer than the MTU.
    pub rx_split: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
}

/// A device that runs.
///
/// Invariant: it is the one of its port; if that runs, it has as many queues as are noted here, and they use the pool.
pub struct Device {
    name: String,
    driver: String,
    port: Arc<Port>,
    /// What receives, unless somebody else has it.
    rx: Option<RxQueues>,
    rx_queues: u16,
    tx_queues: u16,
    frames: Option<Lending>,
}

impl Device {
    /// Opens a device by its name and the arguments of its driver (`net_memif0,role=server,socket=/run/a.sock`,
    /// `net_af_packet0,iface=eth1`), or by its address on the PCI bus, and starts it. The number at the end of a
    /// virtual device's name tells those of one driver apart.
    ///
    /// *Errors*: what the driver refuses; nothing stays open then, and the same name can be tried again. *Cost*:
    /// memory for all frames; a card may take seconds. A client of memif is refused as long as there is no server; one
    /// that does not answer is waited for half a second.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), taut_dpdk::Error> {
    /// use taut_dpdk::{Burst, Eal, EalConfig, Device, DeviceConfig};
    ///
    /// let eal = Eal::start(&EalConfig::default())?;
    /// let mut device = Device::open(eal, "net_af_packet0,iface=eth1", &DeviceConfig::default())?;
    /// let mut burst = Burst::new();
    /// device.receive(0, &mut burst);
    /// for bytes in burst.iter() {
    ///     println!("{} B", bytes.len());
    /// }
    /// let mut frame = device.frame().expect("not all are in use");
    /// frame.append(60).expect("there is room").fill(0xff);
    /// burst.clear();
    /// assert!(burst.push(frame).is_ok());
    /// device.send(0, &mut burst);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(_eal: Eal, name: &str, config: &DeviceConfig) -> Result<Device, Error> {
        if let Some(mtu) = config.mtu.filter(|mtu| *mtu > MOST_MTU) {
            return Err(Error::BadMtu { device: name_of(name).to_string(), mtu, said: String::new() });
        }
        let spare = config.spare_frames.max(config.lent_frames);
        if spare > MOST_SPARE {
            let text = format!("{spare} spare frames are too many: choose {MOST_SPARE} at most");
            return Err(Error::BadParameter(text));
        }
        let (device, result) = {
            let _control = control();
            said();
            let mut device = Device::probe(name, config)?;
            let result = device.set_up(config).and_then(|()| device.start());
            (device, result)
        };
        // If it does not run it ends here, which takes the lock again.
        result.map(|()| device)
    }

    /// Has a driver take the device.
    fn probe(device: &str, config: &DeviceConfig) -> Result<Device, Error> {
        const ENXIO: i32 = 6;
        const EFAULT: i32 = 14;
        const EBUSY: i32 = 16;
        const ENODEV: i32 = 19;
        let name = name_of(device);
        if name.is_empty() || name.len() >= NAME || device.len() > MOST_DEVICE {
            let text = format!(
                "the name of a device of DPDK has 1 to {} bytes, and at most {MOST_DEVICE} with its arguments: \
                 change `{device:.80}`",
                NAME - 1
            );
            return Err(Error::BadParameter(text));
        }
        if name.starts_with(AF_XDP) {
            let text = format!(
                "{name} cannot be used: this driver moves frames that lie in DPDK's own memory, and these lie where \
                 samples are lent from: use AF_XDP without DPDK (`xdp_interface`), or `net_af_packet`"
            );
            return Err(Error::BadParameter(text));
        }
        let (devargs, name) =
            (c_string(with_ends(with_station(device), config))?, c_string(name.to_string())?);
        let mut number = 0;
        // SAFETY: strings that end in a zero, and room for a number; the lock is held.
        let result = unsafe { ffi::taut_dpdk_probe(devargs.as_ptr(), name.as_ptr(), &mut number) };
        let name = name.to_string_lossy().into_owned();
        let device = device.to_string();
        match -result {
            0 => {}
            EBUSY => return Err(Error::DeviceTaken { device: name }),
            EFAULT => return Err(Error::NoDriver { device }),
            ENODEV | ENXIO => return Err(Error::NoDevice { device }),
            errno => return Err(Error::DeviceRefused { device, said: said(), errno }),
        }
        // SAFETY: it was just given to us, as its owner.
        let port = Arc::new(unsafe { Port::own(number) });
        let (driver, rx, rx_queues, tx_queues, frames) = Default::default();
        Ok(Device { name, driver, port, rx, rx_queues, tx_queues, frames })
    }

    /// Sets up its queues and their memory.
    fn set_up(&mut self, config: &DeviceConfig) -> Result<(), Error> {
        let facts = self.facts()?;
        // SAFETY: the shim has ended it with a zero.
        self.driver = unsafe { CStr::from_ptr(facts.driver.as_ptr()) }.to_string_lossy().into_owned();
        // Nobody else has it yet.
        if let Some(port) = Arc::get_mut(&mut self.port) {
            (port.device, port.is_memif) = (facts.device, self.driver == MEMIF);
        }
        let (rx, tx) = (1..=facts.max_rx_queues, 1..=facts.max_tx_queues);
        if !rx.contains(&config.rx_queues) || !tx.contains(&config.tx_queues) {
            let most = (facts.max_rx_queues, facts.max_tx_queues);
            return Err(Error::TooFewQueues { device: self.name.clone(), most });
        }
        let is_spread = [AF_PACKET, PCAP].contains(&self.driver.as_str());
        if is_spread && config.rx_queues < facts.max_rx_queues {
            let (name, has, looked_at) = (&self.name, facts.max_rx_queues, config.rx_queues);
            return Err(Error::BadParameter(format!(
                "{name} has frames come by {has} queues, of which {looked_at} would be looked at, and what comes by others \
                 is lost: leave `qpairs`, or the second `rx_iface`, out of its arguments, or look at both (`dpdk_critical_queue`)"
            )));
        }
        let mut setup = Setup {
            pool: ptr::null_mut(),
            rx_queues: config.rx_queues,
            tx_queues: config.tx_queues,
            rx_descriptors: config.rx_descriptors,
            tx_descriptors: config.tx_descriptors,
            // The kernel gives it tags beside the frames, and it cannot put them back into these, whose bytes are outside
            // of DPDK's own: it says so for each one. The shim can.
            takes_tags_off: (self.driver == AF_PACKET).into(),
        };
        // A driver has Ethernet's, and what is longer than the kernel's interface takes is lost there.
        let narrower = Some(facts.kernel_mtu).filter(|mtu| (1..ETHERNET_MTU).contains(mtu));
        let mtu = config.mtu.or(narrower).unwrap_or_default();
        if mtu > 0 && !(facts.min_mtu..=facts.max_mtu).contains(&mtu) {
            return Err(self.bad_mtu(mtu));
        }
        // SAFETY: the type's invariant; the lock is held.
        let result = unsafe { ffi::taut_dpdk_configure(self.number(), &mut setup, mtu.into()) };
        if result != 0 && mtu > 0 {
            return Err(self.bad_mtu(mtu));
        }
        self.done("rte_eth_dev_configure", result)?;
        let queued = [(setup.rx_queues, setup.rx_descriptors), (setup.tx_queues, setup.tx_descriptors)];
        let queued: u32 = queued.iter().map(|(queues, each)| u32::from(*queues) * u32::from(*each)).sum();
        let frames = queued.saturating_add(config.spare_frames + 2 * BURST as u32);
        let room = self.mtu().min(MOST_MTU).saturating_add(HEADER + AROUND).max(LEAST_ROOM);
        let wanted = Wanted { frames, lent: config.lent_frames, room, shift: config.shift.min(7) };
        let frames = Lending::new(Pool::new(wanted, self.number())?, setup.tx_queues);
        setup.pool = frames.as_ref().map_or(ptr::null_mut(), |frames| frames.pool().as_ptr());
        // From here on the driver may have some of them.
        self.frames = frames;
        // SAFETY: the type's invariant, and that of the pool, which lives until it is closed; the lock is held.
        self.done("rte_eth_rx_queue_setup", unsafe { ffi::taut_dpdk_queues(self.number(), &setup) })?;
        (self.rx_queues, self.tx_queues) = (setup.rx_queues, setup.tx_queues);
        Ok(())
    }

    /// Has it run, and a client of memif be greeted.
    fn start(&mut self) -> Result<(), Error> {
        if self.driver == MEMIF {
            // SAFETY: the type's invariant; the lock is held.
            self.done("rte_eal_alarm_set", unsafe { ffi::taut_dpdk_guard(self.number()) })?;
        }
        // SAFETY: the type's invariant; all queues are set up, and the lock is held.
        let mut result = unsafe { ffi::taut_dpdk_run(self.number()) };
        // SAFETY: the device is that of the port.
        let is_server = || unsafe { ffi::taut_dpdk_is_server(self.port.device) } != 0;
        if result == 0 && self.driver == MEMIF && !is_server() {
            // SAFETY: the type's invariant.
            result = unsafe { ffi::taut_dpdk_settle(self.number(), GREETED_WITHIN_MS) };
            if result == 0 {
                // SAFETY: the same; it is guarded.
                unsafe { ffi::taut_dpdk_join_again(self.number()) }
            }
        }
        if result == 0 {
            // Nobody else has it yet.
            if let Some(port) = Arc::get_mut(&mut self.port) {
                port.rings = if self.driver == RING { self.rx_queues } else { 0 };
            }
            // SAFETY: it runs, and has these queues; this is called once.
            self.rx = Some(unsafe { RxQueues::own(Arc::clone(&self.port), self.rx_queues) });
            return Ok(());
        }
        Err(Error::DeviceNotStarted { device: self.name.clone(), said: said(), errno: -result })
    }

    /// The device's name, without arguments.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its driver's name.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// How many queues there are to receive by, and to send by.
    pub fn queues(&self) -> (u16, u16) {
        (self.rx_queues, self.tx_queues)
    }

    /// Its address of Ethernet.
    pub fn mac(&self) -> [u8; 6] {
        let mut mac = [0; 6];
        // SAFETY: the type's invariant; there is room. It fails for devices that are not there only.
        unsafe { ffi::taut_dpdk_mac(self.number(), mac.as_mut_ptr()) };
        mac
    }

    /// Its MTU in bytes: Ethernet's header not counted.
    pub fn mtu(&self) -> u16 {
        let mut mtu = 0;
        // SAFETY: the type's invariant. It fails for devices that are not there only.
        unsafe { ffi::taut_dpdk_mtu(self.number(), &mut mtu) };
        mtu
    }

    /// Is there somebody at the other end? *Cost*: the driver's; none sleeps.
    pub fn link(&self) -> Link {
        let mut mbit_per_s = 0;
        // SAFETY: the type's invariant.
        let result = unsafe { ffi::taut_dpdk_link(self.number(), &mut mbit_per_s) };
        Link { is_up: result > 0, mbit_per_s }
    }

    /// Receives frames for all groups from now on; where the driver has no such choice, all frames. An interface of the kernel's
    /// is as it was once the device is dropped or the process has ended, however it ends.
    ///
    /// *Errors*: [`Error::Refused`] where it has neither: virtual devices mostly receive all anyway.
    pub fn receive_groups(&mut self) -> Result<(), Error> {
        let _control = control();
        said();
        let mut socket = -1;
        // SAFETY: the type's invariant.
        let result = unsafe { ffi::taut_dpdk_receive_groups(self.number(), &mut socket) };
        if socket >= 0 {
            // SAFETY: it was just opened, and nobody else has it.
            self.port.hold(unsafe { OwnedFd::from_raw_fd(socket) });
        }
        self.port.promiscuous.fetch_or(result > 0, Ordering::Relaxed);
        self.done("rte_eth_allmulticast_enable", result.min(0))
    }

    /// An empty frame to send; `None` if all are in use.
    pub fn frame(&self) -> Option<Mbuf> {
        self.frames.as_ref()?.pool().frame()
    }

    /// The chunks of the frames that are lent: a payload that is written into one is sent from there. They are there for as
    /// long as somebody has them, if the device has gone, too.
    pub fn chunks(&self) -> Option<&Arc<Chunks>> {
        self.frames.as_ref().map(Lending::chunks)
    }

    /// Adds a frame to a burst for this queue around a payload that lies in one of [`Device::chunks`], which is not copied.
    /// `false` if it is to be copied: the payload is being sent already, is not all of what was written, or has no room
    /// around it; or the burst is full. `header` as of [`taut_mem::Outbound::wrap`].
    #[inline]
    pub fn wrap(
        &mut self,
        datagram: Wrap<'_>,
        header: impl FnOnce(&[u8], &mut [u8]) -> Option<()>,
        burst: (u16, &mut Burst),
    ) -> bool {
        self.frames.as_mut().is_some_and(|frames| frames.wrap(burst, datagram, header))
    }

    /// Looks which frames around payloads the driver has done with, which some drivers are only when further ones are
    /// sent by the same queue. *Cost*: a look at the oldest of each, if there is one.
    #[inline]
    pub fn take_back(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.take_back();
        }
    }

    /// Gives the bytes of each frame of a burst to `take`, in their order, with what makes a view of a part of them that
    /// stays where it is; `None` of it if no frame can take the place of this one. The frames are in the burst still, or
    /// others instead.
    #[inline]
    pub fn take_each(
        &self,
        burst: &mut Burst,
        mut take: impl FnMut(&[u8], &mut dyn FnMut(&[u8]) -> Option<Bytes>),
    ) {
        let Some(frames) = &self.frames else { return };
        // SAFETY: the frame is the burst's, which gets the other one for it.
        burst.exchange(|frame| unsafe { frames.take(frame, &mut take) });
    }

    /// What receives by the queues, once: so one thread may look for frames while another one sends. The device is closed
    /// when both have ended.
    pub fn take_rx(&mut self) -> Option<RxQueues> {
        self.rx.take()
    }

    /// The same as [`RxQueues::receive`], for who has not taken that; else none come.
    #[inline]
    pub fn receive(&mut self, queue: u16, burst: &mut Burst) -> usize {
        self.rx.as_mut().map_or(0, |rx| rx.receive(queue, burst))
    }

    /// Sends frames of a burst by a queue, from the first on. Returns how many it took: what it did not take is still
    /// in the burst. It takes none by a queue that is not there.
    ///
    /// *Cost*: as [`RxQueues::receive`]; af_packet's driver sleeps while the kernel takes no frame.
    pub fn send(&mut self, queue: u16, burst: &mut Burst) -> usize {
        if queue >= self.tx_queues || burst.is_empty() {
            return 0;
        }
        burst.send(|frames, count| {
            // SAFETY: the type's invariant: the queue is there, and nobody else uses it while we are borrowed. What
            // it takes is its own then.
            unsafe { ffi::taut_dpdk_tx(self.number(), queue, frames, count) }
        })
    }

    /// The monotonic clock in ns, for who waits until it takes something.
    pub fn now_ns(&self) -> u64 {
        // SAFETY: it only reads the clock.
        unsafe { ffi::taut_dpdk_now_ns() }
    }

    /// Does nobody receive or send for now, as memif's driver hears of its peer? It lasts until DPDK's thread has run.
    pub fn is_shut(&self) -> bool {
        // SAFETY: the type's invariant.
        unsafe { ffi::taut_dpdk_is_shut(self.number()) != 0 }
    }

    /// The counters.
    pub fn statistics(&self) -> Statistics {
        let mut counts = Counts::default();
        // SAFETY: the type's invariant; there is room.
        unsafe { ffi::taut_dpdk_statistics(self.number(), &mut counts) };
        Statistics {
            rx_frames: counts.rx_frames,
            rx_bytes: counts.rx_bytes,
            tx_frames: counts.tx_frames,
            tx_bytes: counts.tx_bytes,
            rx_missed: counts.rx_missed,
            rx_errors: counts.rx_errors,
            rx_no_frame: counts.rx_no_frame,
            rx_split: self.port.split(),
            tx_errors: counts.tx_errors,
        }
    }

    pub(crate) fn number(&self) -> u16 {
        self.port.number()
    }

    fn facts(&self) -> Result<Facts, Error> {
        let mut facts = Facts {
            device: ptr::null_mut(),
            driver: [0; 32],
            max_rx_queues: 0,
            max_tx_queues: 0,
            min_mtu: 0,
            max_mtu: 0,
            kernel_mtu: 0,
        };
        // SAFETY: the type's invariant; there is room.
        let result = unsafe { ffi::taut_dpdk_facts(self.number(), &mut facts) };
        self.done("rte_eth_dev_info_get", result).map(|()| facts)
    }

    fn bad_mtu(&self, mtu: u16) -> Error {
        Error::BadMtu { device: self.name.clone(), mtu, said: said() }
    }

    fn done(&self, call: &str, result: i32) -> Result<(), Error> {
        if result == 0 {
            return Ok(());
        }
        Err(Error::Refused { call: format!("{call} {}", self.name), said: said(), errno: -result })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.port.keep(self.frames.take());
    }
}

/// What stands before a device's arguments.
fn name_of(device: &str) -> &str {
    device.split(',').next().unwrap_or_default()
}

/// A device with its arguments, so that memif's server with several queues lets nobody in who has fewer: its driver would
/// take the queues that are not there to lie where others do, and write there. A secret that is given is the user's own, and
/// both ends have it. Its client is refused by a server with fewer queues than it has.
fn with_ends(device: String, config: &DeviceConfig) -> String {
    let queues = config.rx_queues.max(config.tx_queues);
    let is_open = device.starts_with(MEMIF) && !device.contains(",secret=");
    if queues > 1 && is_open { format!("{device},secret=taut-{queues}-queues") } else { device }
}

/// A device with its arguments, so that the driver over libpcap has the station of its interface: it makes one up else,
/// which is that of any other process's, too, and what two of them say to each other each takes for its own.
fn with_station(device: &str) -> String {
    let makes_one_up = device.starts_with(PCAP) && device.contains(",iface=") && !device.contains("phy_mac=");
    if makes_one_up { format!("{device},phy_mac=1") } else { device.to_string() }
}
