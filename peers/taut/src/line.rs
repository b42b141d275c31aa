//! A writer and a reader of Taut as a [`Line`]: values, and plain memory of any size.

use std::any::Any;
use std::path::PathBuf;
use std::time::Duration;

use bytemuck::allocation::zeroed_box;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Error, Plain, Publisher,
    PublisherQos, Qos, XdpLayer,
};
use taut_perf_kit::{Line, Options, Payload, Role, Stamp, Stop};

use crate::types::Type;

/// How long discovery may take: a hundred times what it takes on a loaded machine.
pub const MATCH_WITHIN: Duration = Duration::from_secs(20);

/// What a reliable writer may wait for its readers: the contract's limit after the last sample, and longer
/// than any machine stalls before it.
const BLOCK_AT_MOST: Duration = Duration::from_secs(5);
/// The variant whose writer says where a burst begins and ends.
pub const SUSPENDED: &str = "suspended";
/// How often who drives itself looks in one call. Lower asks more often whether the run has ended or the next is to be sent, higher comes late to that.
const LOOKS: usize = 8;

/// A participant.
pub struct Domain(pub DomainParticipant);

/// Does the thread that waits do all the work, asleep at the sockets meanwhile?
fn inline(options: &Options) -> bool {
    options.wait == "inline"
}

/// How a line waits, for `ready`.
fn wait(options: &Options) -> &'static str {
    match () {
        () if inline(options) => "inline",
        () if options.spin() => "spin",
        () => "waitset",
    }
}

/// Are the paths of one machine turned off?
fn is_network(options: &Options) -> bool {
    matches!(options.transport.as_str(), "udp" | "xdp" | "xdp-l2" | "dpdk")
}

/// The settings that the options ask for.
pub fn config(options: &Options) -> Config {
    let is_dpdk = options.transport == "dpdk";
    let is_bare = is_dpdk || options.transport == "xdp-l2";
    let is_xdp = matches!(options.transport.as_str(), "xdp" | "xdp-l2");
    Config {
        domain_id: options.domain,
        // Without IP the sockets are for peers on this host.
        interfaces: if is_bare { Vec::new() } else { vec![options.interface.clone()] },
        data_multicast: options.multicast(),
        // Who spins on shared memory leaves discovery to the background thread.
        driver: if inline(options) || options.spin() && is_network(options) {
            Driver::Inline
        } else {
            Driver::Threaded
        },
        local: !is_network(options),
        xdp_interface: if is_xdp { options.interface.clone() } else { String::new() },
        xdp_layer: if is_bare { XdpLayer::Bare } else { XdpLayer::Ip },
        dpdk_device: if is_dpdk { memif(options) } else { String::new() },
        ..Config::default()
    }
}

/// Where two processes meet for the transport dpdk. A file, as each is in a network of its own.
pub fn meeting_place(options: &Options) -> PathBuf {
    std::env::temp_dir().join(format!("taut-perf-{}.memif", options.domain))
}

/// Does this one make the place, and the other one come to it?
pub fn makes_place(options: &Options) -> bool {
    options.transport == "dpdk" && matches!(options.role, Role::Pong | Role::Sub)
}

/// Memory that two processes share, as a device of DPDK.
fn memif(options: &Options) -> String {
    let role = if makes_place(options) { "server" } else { "client" };
    format!("net_memif0,role={role},socket={},socket-abstract=no", meeting_place(options).display())
}

/// The QoS that the options ask for.
pub fn qos(options: &Options) -> Qos {
    let qos = Qos::default().volatile();
    let qos =
        if options.reliable() { qos.reliable().max_blocking_time(BLOCK_AT_MOST) } else { qos.best_effort() };
    match options.depth() {
        Some(depth) => qos.keep_last(depth as u32),
        None => qos.keep_all(),
    }
}

/// A writer and a reader of one participant, or one of them.
pub struct Ends<Out: DdsType, In: DdsType> {
    participant: DomainParticipant,
    /// Of the writer, suspended while it has not said that a burst is over.
    publisher: Option<Publisher>,
    writer: Option<DataWriter<Out>>,
    reader: Option<DataReader<In>>,
    /// It drives the participant itself while it looks for samples.
    drives: bool,
    spin: bool,
}

impl<Out: DdsType, In: DdsType> Ends<Out, In> {
    fn open(
        participant: DomainParticipant,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<Self, Stop> {
        let publisher =
            (options.variant == SUSPENDED).then(|| participant.publisher(PublisherQos::default()));
        let open_writer = |name| {
            let topic = participant.topic::<Out>(name)?;
            publisher.as_ref().map_or_else(
                || topic.writer(qos(options)),
                |publisher| publisher.writer(&topic, qos(options).writer),
            )
        };
        let writer = writes.map(open_writer).transpose()?;
        if let Some(publisher) = &publisher {
            publisher.suspend_publications();
        }
        let reader = reads.map(|name| participant.topic::<In>(name)?.reader(qos(options))).transpose()?;
        let spin = options.spin();
        Ok(Ends { participant, publisher, writer, reader, drives: spin && is_network(options), spin })
    }

    fn writer(&self) -> Result<&DataWriter<Out>, Stop> {
        self.writer.as_ref().ok_or_else(|| Stop::Failed("this role does not write".into()))
    }

    /// The next that `take` finds, waited for at most so long.
    fn next<X>(
        &self,
        at_most: Duration,
        mut take: impl FnMut(&DataReader<In>) -> taut::Result<Option<X>>,
    ) -> Result<Option<X>, Stop> {
        let reader = self.reader.as_ref().ok_or_else(|| Stop::Failed("this role does not read".into()))?;
        loop {
            if let Some(found) = take(reader)? {
                return Ok(Some(found));
            }
            if self.drives {
                for _ in 0..LOOKS {
                    self.participant.run_once(taut::Duration::ZERO)?;
                    if let Some(found) = take(reader)? {
                        return Ok(Some(found));
                    }
                }
                return Ok(None);
            }
            if self.spin {
                return Ok(None);
            }
            match reader.wait(at_most) {
                Ok(()) => {}
                Err(Error::Timeout(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A line over a participant of Taut.
pub trait Opened: Line {
    /// Waits until both directions are matched with so many others.
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop>;

    /// Waits until all that was written is acknowledged.
    fn flush(&mut self) -> Result<(), Stop>;
}

/// A line whose type is known to who opened it. The loops of the roles are there once for all plain types: a
/// program of one user has one or two types, and what it takes of memory is to be told, too.
pub type AnyLine<Out, In> = Box<dyn Opened<Out = Out, In = In> + Send>;

impl<Out: Payload, In: Payload> Line for AnyLine<Out, In> {
    type Out = Out;
    type In = In;

    fn wait(&self, options: &Options) -> &'static str {
        (**self).wait(options)
    }

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        (**self).send(sample)
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        (**self).receive(at_most)
    }

    fn push(&mut self) -> Result<(), Stop> {
        (**self).push()
    }

    fn give_back(&mut self, taken: In) {
        (**self).give_back(taken);
    }

    fn give_back_answer(&mut self, answer: Out) {
        (**self).give_back_answer(answer);
    }
}

/// Opens a line with the ends that a role has: what it writes and what it reads.
type Open<Out, In> =
    fn(DomainParticipant, &Options, Option<&str>, Option<&str>) -> Result<AnyLine<Out, In>, Stop>;

/// How lines of a type are opened.
pub struct Lines<T, A> {
    /// To oneself, or with one end only.
    pub one: Open<T, T>,
    /// To who answers.
    pub there: Open<T, A>,
    /// Of who answers.
    pub back: Open<A, T>,
    pub answer: fn(T) -> A,
}

impl<T: Type> Lines<T, T::Answer> {
    pub fn of_values() -> Self {
        Lines { one: ValueLine::open, there: ValueLine::open, back: ValueLine::open, answer: T::answer }
    }
}

impl Lines<Mark, Mark> {
    pub fn of_plain<T: DdsType + Plain + Payload + Send + Sync + 'static>() -> Self {
        let open = PlainLine::<T>::open;
        Lines { one: open, there: open, back: open, answer: |mark| mark }
    }
}

impl<Out: DdsType, In: DdsType> Ends<Out, In> {
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        if let Some(writer) = &self.writer {
            writer.wait_matched_count(remotes, MATCH_WITHIN)?;
        }
        if let Some(reader) = &self.reader {
            reader.wait_matched_count(remotes, MATCH_WITHIN)?;
        }
        Ok(())
    }

    /// A burst is over, and the next is to wait for its end.
    fn push(&self) -> Result<(), Stop> {
        if let Some(publisher) = &self.publisher {
            publisher.resume_publications()?;
            publisher.suspend_publications();
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Stop> {
        match &self.writer {
            Some(writer) => Ok(writer.wait_for_acknowledgments(BLOCK_AT_MOST)?),
            None => Ok(()),
        }
    }
}

/// Samples as values.
pub struct ValueLine<Out: DdsType, In: DdsType> {
    ends: Ends<Out, In>,
    /// What the next one is decoded into: its strings and sequences keep their memory.
    into: Option<In>,
}

impl<Out, In> ValueLine<Out, In>
where
    Out: DdsType + Payload + Send + Sync + 'static,
    In: DdsType + Payload + Send + Sync + 'static,
{
    fn open(
        participant: DomainParticipant,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<AnyLine<Out, In>, Stop> {
        Ok(Box::new(ValueLine { ends: Ends::open(participant, options, writes, reads)?, into: None }))
    }
}

impl<Out: DdsType + Payload + 'static, In: DdsType + Payload + 'static> Opened for ValueLine<Out, In> {
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        self.ends.wait_matched(remotes)
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.ends.flush()
    }
}

impl<Out: DdsType + Payload + 'static, In: DdsType + Payload + 'static> Line for ValueLine<Out, In> {
    type Out = Out;
    type In = In;

    fn wait(&self, options: &Options) -> &'static str {
        wait(options)
    }

    fn send(&mut self, sample: &Out) -> Result<(), Stop> {
        Ok(self.ends.writer()?.write(sample)?)
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.ends.push()
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<In>, Stop> {
        let ValueLine { ends, into } = self;
        let into = into.get_or_insert_with(|| In::sized(0));
        let found =
            ends.next(at_most, |reader| Ok(reader.take_into(into)?.filter(|info| info.valid_data)))?;
        Ok(found.and_then(|_| self.into.take()))
    }

    fn give_back(&mut self, taken: In) {
        self.into = Some(taken);
    }

    fn give_back_answer(&mut self, answer: Out) {
        // What answers itself is of the type that is received.
        let answer: &mut dyn Any = &mut Some(answer);
        if let Some(taken) = answer.downcast_mut::<Option<In>>() {
            self.into = taken.take();
        }
    }
}

/// What a plain sample is known by, apart from its memory.
#[derive(Default)]
pub struct Mark {
    stamp: Stamp,
    intact: bool,
}

impl Payload for Mark {
    fn sized(_size: usize) -> Self {
        Mark::default()
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }

    fn intact(&self, _size: usize) -> bool {
        self.intact
    }
}

/// Plain samples of any size: copied from and into memory of this program, or written and looked at in place.
pub struct PlainLine<T: DdsType + Plain> {
    ends: Ends<T, T>,
    out: Box<T>,
    into: Box<T>,
    loan: bool,
    size: usize,
}

impl<T: DdsType + Plain + Payload + Send + Sync + 'static> PlainLine<T> {
    fn open(
        participant: DomainParticipant,
        options: &Options,
        writes: Option<&str>,
        reads: Option<&str>,
    ) -> Result<AnyLine<Mark, Mark>, Stop> {
        let ends = Ends::open(participant, options, writes, reads)?;
        let (out, into) = (zeroed_box(), zeroed_box());
        Ok(Box::new(PlainLine::<T> { ends, out, into, loan: options.loan(), size: options.size }))
    }
}

impl<T: DdsType + Plain + Payload> Opened for PlainLine<T> {
    fn wait_matched(&self, remotes: usize) -> Result<(), Stop> {
        self.ends.wait_matched(remotes)
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.ends.flush()
    }
}

impl<T: DdsType + Plain + Payload> Line for PlainLine<T> {
    type Out = Mark;
    type In = Mark;

    fn wait(&self, options: &Options) -> &'static str {
        wait(options)
    }

    fn send(&mut self, sample: &Mark) -> Result<(), Stop> {
        let writer = self.ends.writer()?;
        if self.loan {
            let mut loan = writer.loan()?;
            loan.set_stamp(sample.stamp);
            return Ok(loan.write()?);
        }
        self.out.set_stamp(sample.stamp);
        Ok(writer.write(&self.out)?)
    }

    fn push(&mut self) -> Result<(), Stop> {
        self.ends.push()
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<Mark>, Stop> {
        let PlainLine { ends, into, loan, size, .. } = self;
        let mark = |value: &T| Mark { stamp: value.stamp(), intact: value.intact(*size) };
        if *loan {
            return ends
                .next(at_most, |reader| Ok(reader.take_view()?.and_then(|view| view.data().map(mark))));
        }
        ends.next(at_most, |reader| {
            let info = reader.take_into(into)?;
            Ok(info.filter(|info| info.valid_data).map(|_| mark(into)))
        })
    }
}
