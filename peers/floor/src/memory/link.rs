//! Rings between threads and between processes: who makes them, how they are handed over, how many slots
//! they have.
//!
//! Between processes, who starts traffic makes the rings and looks for the others; they take them when
//! they come.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rustix::event::{EventfdFlags, eventfd};
use taut_perf_kit::{Options, Role, Stop};

use super::Region;
use super::handover::{Handed, confirm, give, listen, take};
use super::ring::{Bell, Reader, Writer, create};
use crate::wire::Wire;

/// Slots of a round trip: one is on its way, a few more are late; few enough to stay in the cache.
const TURNS: usize = 8;

/// Slots of a stream, or of an open loop: they hold what comes while a reader is woken.
const STREAM: usize = 1_024;

/// The most memory of one ring; large samples have fewer slots.
const MOST_BYTES: usize = 64 << 20;

/// How the variant and the wait make a ring ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Poll { polite: bool },
    Futex,
    Event,
}

impl Way {
    fn of(options: &Options) -> Way {
        match (options.variant.as_str(), options.transport.as_str()) {
            ("futex", _) => Way::Futex,
            ("eventfd", _) => Way::Event,
            ("", "shm" | "intra") if !options.spin() => Way::Futex,
            // The variant cacheline shows what looking costs.
            _ => Way::Poll { polite: !options.spin() },
        }
    }

    fn spins(self) -> bool {
        matches!(self, Way::Poll { .. })
    }

    fn bell(self, events: Vec<OwnedFd>) -> Bell {
        match self {
            Way::Poll { polite } => Bell::Poll { polite },
            Way::Futex => Bell::Futex,
            Way::Event => Bell::Event(events),
        }
    }

    /// An eventfd for both sides, where that is the way.
    fn event(self) -> Result<(Vec<OwnedFd>, Vec<OwnedFd>), Stop> {
        if self != Way::Event {
            return Ok((Vec::new(), Vec::new()));
        }
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok((vec![event.try_clone()?], vec![event]))
    }
}

/// The ends of the rings that this side holds.
pub struct Ends {
    writer: Option<Writer>,
    reader: Option<Reader>,
    waiting: Option<UnixListener>,
    way: Way,
    spins: bool,
}

fn slots(options: &Options, len: usize) -> usize {
    // Only in the open loop more than one round trip is under way.
    let stream = matches!(options.role, Role::Pub | Role::Sub) || options.period_ns > 0;
    let most = if stream { STREAM } else { TURNS };
    (MOST_BYTES / len.max(1)).clamp(2, most)
}

impl Ends {
    /// Both ends of one ring, for one thread.
    pub fn own(options: &Options, len: usize) -> Result<Ends, Stop> {
        let (region, _) = create(slots(options, len), len, 1)?;
        // One thread never waits: what was asked for holds.
        let (way, spins) = (Way::Poll { polite: false }, options.spin());
        let writer = Writer::new(Arc::clone(&region), way.bell(Vec::new()));
        let reader = Reader::new(region, 0, way.bell(Vec::new()));
        Ok(Ends { writer: Some(writer), reader: Some(reader), waiting: None, way, spins })
    }

    /// Two rings between two threads: the ends of who asks, and of who answers.
    pub fn pair(options: &Options, len: usize) -> Result<(Ends, Ends), Stop> {
        let way = Way::of(options);
        let ring = || -> Result<(Writer, Reader), Stop> {
            let (region, _) = create(slots(options, len), len, 1)?;
            let (write, read) = way.event()?;
            let writer = Writer::new(Arc::clone(&region), way.bell(write));
            Ok((writer, Reader::new(region, 0, way.bell(read))))
        };
        let ((asks, heard), (answers, told)) = (ring()?, ring()?);
        let side = |writer, reader| Ends {
            writer: Some(writer),
            reader: Some(reader),
            waiting: None,
            way,
            spins: way.spins(),
        };
        Ok((side(asks, told), side(answers, heard)))
    }

    /// The side of this role; matched if it is one that starts traffic.
    pub fn open(options: &Options, len: usize) -> Result<Ends, Stop> {
        let way = Way::of(options);
        match options.role {
            Role::Ping => Ends::ping(options, len, way),
            Role::Pub => Ends::publisher(options, len, way),
            _ => Ok(Ends {
                writer: None,
                reader: None,
                waiting: Some(listen(options)?),
                way,
                spins: way.spins(),
            }),
        }
    }

    fn ping(options: &Options, len: usize, way: Way) -> Result<Ends, Stop> {
        let (there, there_fd) = create(slots(options, len), len, 1)?;
        let (back, back_fd) = create(slots(options, len), len, 1)?;
        let (write_there, read_there) = way.event()?;
        let (write_back, read_back) = way.event()?;
        let mut fds = vec![there_fd.as_fd(), back_fd.as_fd()];
        fds.extend(read_there.iter().chain(&write_back).map(AsFd::as_fd));
        give(options, 0, 2, &fds)?;
        Ok(Ends {
            writer: Some(Writer::new(there, way.bell(write_there))),
            reader: Some(Reader::new(back, 0, way.bell(read_back))),
            waiting: None,
            way,
            spins: way.spins(),
        })
    }

    fn publisher(options: &Options, len: usize, way: Way) -> Result<Ends, Stop> {
        let (region, fd) = create(slots(options, len), len, options.remotes)?;
        let mut events = Vec::new();
        for index in 0..options.remotes {
            let (write, read) = way.event()?;
            let mut fds = vec![fd.as_fd()];
            fds.extend(read.iter().map(AsFd::as_fd));
            give(options, index, 1, &fds)?;
            events.extend(write);
        }
        let writer = Writer::new(region, way.bell(events));
        Ok(Ends { writer: Some(writer), reader: None, waiting: None, way, spins: way.spins() })
    }

    /// The writing end.
    pub fn writer(&mut self) -> Result<&mut Writer, Stop> {
        self.writer.as_mut().ok_or_else(|| Stop::Failed("nobody has connected".to_string()))
    }

    /// The reading end, if the other side has come by then.
    pub fn reader(&mut self, at_most: Duration) -> Result<Option<&mut Reader>, Stop> {
        if let Some(listener) = &self.waiting {
            let mut polled = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut polled, Some(TimeSpec::from_duration(at_most)), None) {
                Ok(0) | Err(nix::Error::EINTR) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let (stream, handed) = take(listener)?;
            self.use_rings(handed)?;
            confirm(stream)?;
            self.waiting = None;
        }
        Ok(self.reader.as_mut())
    }

    fn use_rings(&mut self, handed: Handed) -> Result<(), Stop> {
        let mut fds = handed.fds.into_iter();
        let mut next = || fds.next().ok_or_else(|| Stop::Failed("too few descriptors came".to_string()));
        let there = Arc::new(Region::open(&next()?)?);
        let back = if handed.rings > 1 { Some(Arc::new(Region::open(&next()?)?)) } else { None };
        let event = self.way == Way::Event;
        let read = if event { vec![next()?] } else { Vec::new() };
        let write = if event && back.is_some() { vec![next()?] } else { Vec::new() };
        self.reader = Some(Reader::new(there, handed.index, self.way.bell(read)));
        self.writer = back.map(|back| Writer::new(back, self.way.bell(write)));
        Ok(())
    }

    /// How it waits, for `ready`.
    pub fn waits(&self) -> &'static str {
        if self.spins { "spin" } else { "block" }
    }
}

impl Wire for Ends {
    fn room(&self) -> usize {
        usize::MAX
    }

    fn send(&mut self, _: &[u8], body: &[u8]) -> Result<(), Stop> {
        let writer = self.writer()?;
        let (region, at) = writer.claim()?;
        region.copy_in(at, body);
        writer.publish(body.len())
    }

    fn receive(&mut self, _: &mut [u8], body: &mut [u8], at_most: Duration) -> Result<Option<usize>, Stop> {
        let Some(reader) = self.reader(at_most)? else { return Ok(None) };
        let len = {
            let Some((region, at, len)) = reader.wait(at_most)? else { return Ok(None) };
            let len = len.min(body.len());
            region.copy_out(at, &mut body[..len]);
            len
        };
        reader.release();
        Ok(Some(len))
    }

    fn wait(&self, _: &Options) -> &'static str {
        self.waits()
    }
}
