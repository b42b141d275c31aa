//! A publisher and a subscriber, and the events that wake who waits for them.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::prelude::*;
use iceoryx2::service::Service;
use iceoryx2::service::port_factory::event::PortFactory as EventFactory;
use nix::poll::{PollFd, PollFlags, ppoll};
use taut_perf_kit::packed::{self, Seen};
use taut_perf_kit::{Line, Options, Payload, Stop};

use crate::kind::{Factory, Kind, Reader, Writer};
use crate::place::wrong;

/// The other process has as long to come as the driver would wait for it.
pub const MATCH_WITHIN: Duration = Duration::from_secs(30);

/// Between two looks for the other process: iceoryx2 has no event for it that comes by itself.
pub const MATCH_LOOK: Duration = Duration::from_micros(200);

/// A wait of iceoryx2 ends with a tick of the kernel's timer, which may be 10 ms: too late for the pace of
/// an open loop, so shorter waits than this are for its socket.
const COARSE: Duration = Duration::from_millis(20);

/// A service, and that of its events.
type Services<S, K> = (Factory<S, K>, Option<EventFactory<S>>);

/// Whom to write to, and whom to wake by it.
struct Out<S: Service, K: Kind> {
    writer: Writer<S, K>,
    bell: Option<Notifier<S>>,
    service: Factory<S, K>,
    bells: Option<EventFactory<S>>,
}

/// Where to take from, and what to wait for.
struct In<S: Service, K: Kind> {
    reader: Reader<S, K>,
    bell: Option<Listener<S>>,
    service: Factory<S, K>,
}

/// The ends of a process.
pub struct IceoryxLine<'a, S: Service, K: Kind> {
    node: &'a Node<S>,
    out: Option<Out<S, K>>,
    inward: Option<In<S, K>>,
    /// The sample that is copied in and out when nothing is borrowed.
    own: Option<Vec<u8>>,
    size: usize,
    bells: bool,
}

impl<'a, S: Service, K: Kind> IceoryxLine<'a, S, K> {
    /// One without ends. Who looks all the time, or writes and takes in one thread, needs no event.
    pub fn new(node: &'a Node<S>, options: &Options) -> IceoryxLine<'a, S, K> {
        IceoryxLine {
            node,
            out: None,
            inward: None,
            own: (!options.loan()).then(|| packed::blank::<K::Layout>(options.size)),
            size: options.size,
            bells: !options.spin() && options.transport != "thread",
        }
    }

    /// Writes to this service from now on.
    pub fn write_to(&mut self, name: &str) -> Result<(), Stop> {
        let (service, bells) = self.services(name)?;
        let bell =
            bells.as_ref().map(|bells| bells.notifier_builder().create()).transpose().map_err(wrong)?;
        self.out = Some(Out { writer: K::publisher(&service, self.size)?, bell, service, bells });
        Ok(())
    }

    /// Takes from this service from now on.
    pub fn take_from(&mut self, name: &str) -> Result<(), Stop> {
        let (service, bells) = self.services(name)?;
        // The listener first: who counts readers finds it there.
        let bell =
            bells.as_ref().map(|bells| bells.listener_builder().create()).transpose().map_err(wrong)?;
        let reader = service.subscriber_builder().create().map_err(wrong)?;
        self.inward = Some(In { reader, bell, service });
        Ok(())
    }

    fn services(&self, name: &str) -> Result<Services<S, K>, Stop> {
        let name = ServiceName::new(name).map_err(wrong)?;
        let bells = if self.bells {
            Some(self.node.service_builder(&name).event().open_or_create().map_err(wrong)?)
        } else {
            None
        };
        Ok((K::service(self.node, &name)?, bells))
    }

    /// Waits until so many others take what this one writes, and write what it takes.
    pub fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        let end = Instant::now() + MATCH_WITHIN;
        let out = |out: &Out<S, K>| {
            let listeners = out.bells.as_ref().map(|bells| bells.dynamic_config().number_of_listeners());
            out.service.dynamic_config().number_of_subscribers() >= remotes
                && listeners.is_none_or(|listeners| listeners >= remotes)
        };
        let inward = |inward: &In<S, K>| inward.service.dynamic_config().number_of_publishers() >= remotes;
        while !self.out.as_ref().is_none_or(out) || !self.inward.as_ref().is_none_or(inward) {
            if Instant::now() >= end {
                return Err(Stop::Failed(format!("not matched with {remotes} within {MATCH_WITHIN:?}")));
            }
            std::thread::sleep(MATCH_LOOK);
        }
        Ok(())
    }
}

impl<S: Service, K: Kind> Line for IceoryxLine<'_, S, K>
where
    Listener<S>: FileDescriptorBased,
{
    type Out = Seen;
    type In = Seen;

    fn send(&mut self, sample: &Seen) -> Result<(), Stop> {
        let Some(out) = &self.out else { return Err(Stop::Failed("nothing to write to".into())) };
        let stamp = sample.stamp();
        if let Some(own) = &mut self.own {
            packed::set_stamp::<K::Layout>(own, stamp);
            K::write(&out.writer, self.size, |bytes| bytes.copy_from_slice(own))?;
        } else {
            K::write(&out.writer, self.size, |bytes| packed::set_stamp::<K::Layout>(bytes, stamp))?;
        }
        match &out.bell {
            Some(bell) => bell.notify().map(drop).map_err(wrong),
            None => Ok(()),
        }
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<Seen>, Stop> {
        let Some(inward) = &self.inward else { return Err(Stop::Failed("nothing to take from".into())) };
        let (own, size) = (&mut self.own, self.size);
        let mut take = || {
            K::take(&inward.reader, |bytes| match own {
                Some(own) if own.len() == bytes.len() => {
                    own.copy_from_slice(bytes);
                    Seen::look::<K::Layout>(own, size)
                }
                _ => Seen::look::<K::Layout>(bytes, size),
            })
        };
        let taken = take()?;
        let (None, Some(bell)) = (taken, inward.bell.as_ref().filter(|_| !at_most.is_zero())) else {
            return Ok(taken);
        };
        // A late ring for a sample that is already taken wakes without one: then wait for the rest.
        let end = Instant::now() + at_most;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            wait(bell, left)?;
            let taken = take()?;
            if taken.is_some() || Instant::now() >= end {
                return Ok(taken);
            }
        }
    }
}

/// Waits until the bell rings, at most so long, and silences it.
fn wait<S: Service>(bell: &Listener<S>, at_most: Duration) -> Result<(), Stop>
where
    Listener<S>: FileDescriptorBased,
{
    if at_most >= COARSE {
        return bell.timed_wait(|_| {}, at_most).map(drop).map_err(wrong);
    }
    // SAFETY: the descriptor is open as long as the listener, which is borrowed.
    let socket = unsafe { BorrowedFd::borrow_raw(bell.file_descriptor().native_handle()) };
    match ppoll(&mut [PollFd::new(socket, PollFlags::POLLIN)], Some(at_most.into()), None) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Ok(_) => bell.try_wait(|_| {}).map(drop).map_err(wrong),
        Err(error) => Err(wrong(error)),
    }
}
