//! What every port of frames does with datagrams, whoever moves the frames: finds the way, writes, reads, counts, and
//! sorts what has come.

use std::collections::VecDeque;

use taut_base::Locator;
use taut_mem::{Bytes, Chunks, Pool, Wrap, gather};
use taut_port::{Frame, Traffic};

use crate::header::Station;
use crate::layer::{Datagram, Layer, NoRoute, Refused, Route};

/// Bytes of a buffer that a datagram is received into: those of the largest frame that is taken.
const SLOT: usize = 4_096;
/// How many buffers are remembered: those of the fragments of a large sample or two. More pins memory after a burst,
/// fewer allocates.
const KEEP: usize = 1_024;
/// How much of discovery waits until samples have been taken, where both come by the same queue. What comes then is
/// dropped, and announced or asked for again. Higher takes memory and time when it is taken, lower takes a domain of
/// many participants longer to meet.
const ASIDE: usize = 256;

/// Frames that payloads lie in, of writers and of readers: those of the histories and caches of some streams. What finds
/// none is copied. More costs memory.
pub const LENT: u32 = 4_096;

/// What a port has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Bytes of their payloads.
    pub bytes_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Bytes of their payloads.
    pub bytes_out: u64,
    /// System calls that woke the kernel: to send, and to receive into frames that it had run out of.
    pub kicks: u64,
    /// Datagrams left to the kernel: no way was known, or they were too long for a frame.
    pub left_to_kernel: u64,
    /// Datagrams dropped because no more frames were taken.
    pub dropped_full: u64,
    /// Datagrams of discovery dropped because too many waited.
    pub dropped_aside: u64,
    /// Calls that failed: the interface is down or gone.
    pub errors: u64,
    /// Frames that end too early or say another length than they have.
    pub malformed: u64,
    /// Frames for another station, address or network.
    pub not_ours: u64,
    /// Frames with a wrong checksum.
    pub damaged: u64,
    /// Frames for the layer itself, as questions of ARP are, with an address of our own.
    pub control: u64,
    /// Frames with a part of a datagram, of IP, with an address of our own.
    pub parts: u64,
    /// Datagrams dropped because some of their parts did not come in time, or in order enough.
    pub dropped_parts: u64,
    /// Frames in which another station has that address.
    pub conflicts: u64,
    /// Datagrams dropped because the station they go to was not known yet, with an address of our own.
    pub dropped_unknown: u64,
    /// Frames that came by the queue of what is critical, where a device of DPDK has one.
    pub critical_in: u64,
    /// Frames that were dropped before they could be taken, as a ring was full or empty.
    pub receive_overflow: u64,
    /// Frames that nobody has, now: those that there are to write into, and to receive into instead of those that are
    /// lent; 0 where none are lent.
    pub frames_free: u64,
    /// Datagrams that were sent from where their payload had been written.
    pub in_place_out: u64,
    /// Payloads of writers that were copied: there was no chunk for them, they are longer than one, their type is
    /// encoded, or they were lent to readers on this machine, too; and datagrams that were copied out of a chunk, which
    /// was being sent already, or whose payload is longer than a frame. Payloads of at most 68 bytes, and those that
    /// share the datagram of another one, do not count.
    pub copied_out: u64,
    /// Datagrams of samples that were handed on where they had been received.
    pub in_place_in: u64,
    /// Datagrams of samples that were copied, as readers hold so many frames that none could take the place of theirs, the
    /// port lends none, or it came in pieces. Those of at most 68 bytes do not count.
    pub copied_in: u64,
}

/// What has become of a datagram that was to be put into a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// It will be sent, as a copy.
    Taken,
    /// It will be sent from where its payload lies.
    InPlace,
    /// It will be sent as a copy, although its payload lay where it could be sent from.
    CopiedAgain,
    /// There is no frame, or nobody takes it now: it is lost, as on any network.
    Full,
    /// The device fails.
    Failed,
}

impl Put {
    /// It will be sent, from its place or as a copy; `is_lent`: its payload lies in one of the port's chunks.
    #[inline]
    pub fn sent(is_lent: bool, in_place: bool) -> Put {
        match (is_lent, in_place) {
            (_, true) => Put::InPlace,
            (true, false) => Put::CopiedAgain,
            (false, false) => Put::Taken,
        }
    }
}

/// A datagram that can be written into a frame.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    route: Route,
    own: &'a Station,
    mark: u8,
    parts: &'a [&'a [u8]],
}

impl<'a> Outgoing<'a> {
    /// Writes it; see [`Route::write`].
    #[inline]
    pub fn write(&self, frame: &mut [u8]) -> Option<usize> {
        self.route.write(frame, self.own, self.mark, self.parts)
    }

    /// It around the part that lies in one of these chunks; `None` if none does.
    #[inline]
    pub fn wrap(&self, chunks: &Chunks) -> Option<Wrap<'a>> {
        let at = self.parts.iter().position(|part| chunks.has(part))?;
        let (before, [payload, after @ ..]) = self.parts.split_at_checked(at)? else { return None };
        Some(Wrap { before, payload, after, header_len: self.route.header_len(self.own) })
    }

    /// Writes the headers for the datagram in one piece into a place of their length; see [`Route::header`].
    #[inline]
    pub fn write_header(&self, datagram: &[u8], place: &mut [u8]) -> Option<()> {
        let header = self.route.header(self.own, self.mark, datagram)?;
        gather(place, &[header.bytes()]);
        Some(())
    }
}

/// Datagrams to frames, and frames to datagrams.
pub struct Carrier {
    station: Station,
    /// Bytes of the longest frame that there is room for, here and at others that have the same MTU.
    room: usize,
    /// The same of the longest that the network takes, too.
    longest: usize,
    layer: Layer,
    mark: u8,
    pool: Pool,
    /// Discovery that came with samples.
    aside: VecDeque<Frame>,
    /// The counts. Those of the device are its port's to fill in.
    pub stats: Stats,
}

impl Carrier {
    /// For this station and layer. A frame has room for `room` bytes, and the network for a payload of Ethernet of `mtu`
    /// bytes.
    pub fn new(station: Station, mut layer: Layer, room: usize, mtu: usize) -> Carrier {
        if let Some(own) = layer.own_mut() {
            own.set_tag(station.tag);
        }
        let longest = room.min(mtu.saturating_add(station.header_len()));
        Carrier {
            room: longest,
            longest,
            station,
            layer,
            mark: 0,
            pool: Pool::new(SLOT, KEEP),
            aside: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// What frames begin with.
    pub fn station(&self) -> &Station {
        &self.station
    }

    /// The layer.
    pub fn layer(&self) -> &Layer {
        &self.layer
    }

    /// The layer, to be told what the kernel tells.
    pub fn layer_mut(&mut self) -> &mut Layer {
        &mut self.layer
    }

    /// The network takes payloads of Ethernet of `mtu` bytes from now on; what was too long at first is so for good.
    /// Returns whether that changes anything.
    pub fn set_mtu(&mut self, mtu: usize) -> bool {
        let longest = self.room.min(mtu.saturating_add(self.station.header_len()));
        std::mem::replace(&mut self.longest, longest) != longest
    }

    /// Takes the place of one whose device has gone: its counts go on, what it has put aside is here, and what is sent has
    /// the same differentiated services code point.
    pub fn succeed(&mut self, old: Carrier) {
        (self.stats, self.aside, self.mark) = (old.stats, old.aside, old.mark);
    }

    /// What is sent from now on has this differentiated services code point.
    pub fn set_mark(&mut self, mark: u8) {
        self.mark = mark;
    }

    /// What is sent from now on has this priority in its tag, if frames have one. *Range*: 0 to 7.
    #[inline]
    pub fn set_priority(&mut self, priority: u8) {
        if let Some(tag) = &mut self.station.tag {
            tag.priority = priority;
        }
    }

    /// The bytes of the longest frame.
    #[inline]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The payload of the largest datagram to a destination that goes by frames alone, in bytes.
    pub fn path_size(&self, to: &Locator) -> Option<usize> {
        self.layer.path_size(to, &self.station, self.longest)
    }

    /// Has `put` take a datagram. `false` if it is to go another way: there is none for it by frames, or it is too long.
    ///
    /// *Cost*: what `put` costs.
    #[inline]
    pub fn send(&mut self, to: &Locator, parts: &[&[u8]], put: impl FnOnce(&Outgoing<'_>) -> Put) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let (own, longest) = (&self.station, self.longest);
        let fits = |route: &Route| route.header_len(own) + len <= longest.min(route.longest(own));
        let route = match self.layer.route(to) {
            Ok(route) if fits(&route) => route,
            // Nobody else has a way to it.
            Err(NoRoute::Unknown) => {
                self.stats.dropped_unknown += 1;
                return true;
            }
            _ => {
                self.stats.left_to_kernel += 1;
                return false;
            }
        };
        let stats = &mut self.stats;
        match put(&Outgoing { route, own, mark: self.mark, parts }) {
            Put::Taken => {}
            Put::InPlace => stats.in_place_out += 1,
            Put::CopiedAgain => stats.copied_out += 1,
            Put::Full => {
                stats.dropped_full += 1;
                return true;
            }
            Put::Failed => {
                stats.errors += 1;
                return false;
            }
        }
        stats.datagrams_out += 1;
        stats.bytes_out += len as u64;
        true
    }

    /// Takes a frame that has come, and returns what is in it of samples. Discovery is put aside, what is neither is
    /// counted. `keep` gives a view of the payload where it lies, if the frame can be done without.
    ///
    /// *Cost*: a copy of the payload if it is not kept, or at most 68 bytes long; of one that came in parts a second, and
    /// an allocation.
    #[inline]
    pub fn take(&mut self, frame: &[u8], keep: impl FnOnce(&[u8]) -> Option<Bytes>) -> Option<Frame> {
        self.taken(frame, keep, |stats| &mut stats.in_place_in)
    }

    /// The same of a frame that had to be copied before it could be read, and lies where it can stay.
    pub fn take_copy(&mut self, frame: &Bytes) -> Option<Frame> {
        self.taken(frame, |payload| frame.slice_of(payload), |stats| &mut stats.copied_in)
    }

    #[inline]
    fn taken(
        &mut self,
        frame: &[u8],
        keep: impl FnOnce(&[u8]) -> Option<Bytes>,
        kept_count: impl FnOnce(&mut Stats) -> &mut u64,
    ) -> Option<Frame> {
        let Carrier { station, layer, pool, aside, stats, .. } = self;
        let Datagram { from: source, traffic, payload } = match layer.read(frame, station) {
            Ok(datagram) => datagram,
            Err(refused) => {
                stats.count(refused);
                return None;
            }
        };
        let is_meta = traffic != Traffic::User;
        if is_meta && aside.len() >= ASIDE {
            stats.dropped_aside += 1;
            return None;
        }
        stats.datagrams_in += 1;
        stats.bytes_in += payload.len() as u64;
        if is_meta {
            aside.push_back(Frame { source, traffic, bytes: copy(pool, payload) });
            return None;
        }
        let bytes = if let Some(short) = Bytes::short(payload) {
            short
        } else if let Some(kept) = keep(payload) {
            *kept_count(stats) += 1;
            kept
        } else {
            stats.copied_in += 1;
            copy(pool, payload)
        };
        Some(Frame { source, traffic, bytes })
    }

    /// Is there discovery that was put aside?
    #[inline]
    pub fn has_aside(&self) -> bool {
        !self.aside.is_empty()
    }

    /// Gives at most `budget` datagrams that were put aside to `sink`. Returns how many.
    pub fn take_aside(&mut self, budget: usize, sink: &mut dyn FnMut(&Frame)) -> usize {
        let count = budget.min(self.aside.len());
        self.aside.drain(..count).for_each(|frame| sink(&frame));
        count
    }
}

fn copy(pool: &mut Pool, payload: &[u8]) -> Bytes {
    if payload.len() > SLOT {
        // It came in parts: no frame is so long.
        return Bytes::copy_from(payload);
    }
    let mut slot = pool.claim();
    slot.clear();
    slot.extend_from_slice(payload);
    pool.share(slot)
}

impl Stats {
    fn count(&mut self, refused: Refused) {
        *match refused {
            Refused::Malformed => &mut self.malformed,
            Refused::NotOurs => &mut self.not_ours,
            Refused::Damaged => &mut self.damaged,
            Refused::Control => &mut self.control,
            Refused::Part => &mut self.parts,
            Refused::Conflict => &mut self.conflicts,
        } += 1;
    }
}
