//! What writes samples, and what takes them from a channel.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use taut_perf_kit::packed::{self, Layout, Seen};
use taut_perf_kit::{Line, Options, Payload, Stamp, Stop};
use zenoh::Wait;
use zenoh::handlers::FifoChannelHandler;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::sample::Sample;
use zenoh::shm::{GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder};

use crate::session::{Domain, wrong};

/// Samples that may be on their way at once; fewer, and a writer waits for readers that are a little late.
const LOANED: usize = 64;

/// No more memory than this for them, except that two always fit.
const LOANED_BYTES: usize = 64 << 20;

/// A sample that cannot be borrowed for so long is refused.
const BORROW_WITHIN: Duration = Duration::from_secs(1);

/// Between two looks for memory: readers give it back without saying so.
const BORROW_LOOK: Duration = Duration::from_micros(50);

type Pool = ShmProvider<PosixShmProviderBackend>;

/// Writes to a topic.
pub struct Writer<L> {
    publisher: Publisher<'static>,
    /// A sample is made of it: Zenoh takes over what it sends.
    blank: Vec<u8>,
    pool: Option<Pool>,
    layout: PhantomData<L>,
}

impl<L: Layout> Writer<L> {
    /// A publisher with the quality of the options.
    pub fn new(domain: &Domain, topic: &str, options: &Options) -> Result<Writer<L>, Stop> {
        let (reliability, congestion) = if options.reliable() {
            (Reliability::Reliable, CongestionControl::Block)
        } else {
            (Reliability::BestEffort, CongestionControl::Drop)
        };
        let publisher = domain
            .session()
            .declare_publisher(topic.to_string())
            .reliability(reliability)
            .congestion_control(congestion)
            .express(options.variant == "express")
            .wait()
            .map_err(wrong)?;
        let pool = options.loan().then(|| pool(options.size)).transpose()?;
        Ok(Writer { publisher, blank: packed::blank::<L>(options.size), pool, layout: PhantomData })
    }

    /// Its publisher.
    pub fn publisher(&self) -> &Publisher<'static> {
        &self.publisher
    }

    /// Writes a new sample.
    pub fn put(&self, stamp: Stamp) -> Result<(), Stop> {
        self.answer(Cow::Borrowed(&self.blank), stamp)
    }

    /// Writes a sample that is this one with another stamp.
    pub fn answer(&self, sample: Cow<'_, [u8]>, stamp: Stamp) -> Result<(), Stop> {
        if let Some(pool) = &self.pool {
            let mut sample = borrow(pool, self.blank.len())?;
            packed::set_stamp::<L>(&mut sample, stamp);
            return self.publisher.put(sample).wait().map_err(wrong);
        }
        let mut sample = sample.into_owned();
        packed::set_stamp::<L>(&mut sample, stamp);
        self.publisher.put(sample).wait().map_err(wrong)
    }
}

fn pool(size: usize) -> Result<Pool, Stop> {
    let samples = (LOANED_BYTES / size.max(1)).clamp(2, LOANED);
    // Beside the samples it keeps its own lists in it.
    ShmProviderBuilder::default_backend(samples * size + (1 << 16)).wait().map_err(wrong)
}

fn borrow(pool: &Pool, size: usize) -> Result<zenoh::shm::ZShmMut, Stop> {
    let end = Instant::now() + BORROW_WITHIN;
    loop {
        match pool.alloc(size).with_policy::<GarbageCollect>().wait() {
            Ok(sample) => return Ok(sample),
            Err(error) if Instant::now() >= end => return Err(wrong(format!("{error:?}"))),
            Err(_) => std::thread::sleep(BORROW_LOOK),
        }
    }
}

type Channel = Subscriber<FifoChannelHandler<Sample>>;

/// A writer and a channel, each where the role has one.
pub struct ChannelLine<L> {
    writer: Option<Writer<L>>,
    channel: Option<Channel>,
    size: usize,
}

impl<L: Layout> ChannelLine<L> {
    /// Of these ends.
    pub fn new(writer: Option<Writer<L>>, channel: Option<Channel>, options: &Options) -> ChannelLine<L> {
        ChannelLine { writer, channel, size: options.size }
    }

    /// Writes to one topic and takes from another.
    pub fn between(
        domain: &Domain,
        out: &str,
        inward: &str,
        options: &Options,
    ) -> Result<ChannelLine<L>, Stop> {
        let channel = domain.channel(inward)?;
        Ok(ChannelLine::new(Some(Writer::new(domain, out, options)?), Some(channel), options))
    }

    /// Its writer.
    pub fn writer(&self) -> Result<&Writer<L>, Stop> {
        self.writer.as_ref().ok_or_else(|| wrong("nothing to write to"))
    }
}

impl<L: Layout> Line for ChannelLine<L> {
    type Out = Seen;
    type In = Seen;

    fn send(&mut self, sample: &Seen) -> Result<(), Stop> {
        self.writer()?.put(sample.stamp())
    }

    fn receive(&mut self, at_most: Duration) -> Result<Option<Seen>, Stop> {
        let channel = self.channel.as_ref().ok_or_else(|| wrong("nothing to take from"))?;
        // Waiting for no time at all would still ask the clock.
        let taken = if at_most.is_zero() { channel.try_recv() } else { channel.recv_timeout(at_most) };
        let taken = taken.map_err(wrong)?;
        Ok(taken.map(|sample| Seen::look::<L>(&sample.payload().to_bytes(), self.size)))
    }
}
