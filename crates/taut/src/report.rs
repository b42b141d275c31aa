//! What a participant tells of itself while somebody asks: the topic that `taut top` reads.
//!
//! Whoever makes a reader of [`REPORT_TOPIC`] has each participant of the domain write to it, once a second,
//! until the last such reader has gone. The executor says when; here is what.

use std::sync::Arc;
use std::time::Duration;

use taut_base::{EntityId, Guid};
use taut_derive::DdsType;
use taut_exec::{
    Executor, Histogram, JobClass, JobReport, LatencyReport, Reporter, Spread, monotonic_now, to_log,
};

use crate::{DomainParticipant, Qos};

/// The topic of the reports. Its writers are BEST_EFFORT, its type is [`ParticipantReport`].
pub const REPORT_TOPIC: &str = "taut/latency_report";

/// How times are spread. *Units*: ns.
#[derive(DdsType, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[dds(appendable, name = "taut::SpreadReport", crate = ::taut_cdr)]
pub struct SpreadReport {
    /// Half of the times are below.
    pub p50_ns: u64,
    /// 99 of 100 are.
    pub p99_ns: u64,
    /// 999 of 1,000 are.
    pub p999_ns: u64,
    /// The longest of all.
    pub longest_ns: u64,
}

/// What is known of one class of steps. *Units*: ns.
#[derive(DdsType, Clone, PartialEq, Eq, Debug, Default)]
#[dds(appendable, name = "taut::ClassReport", crate = ::taut_cdr)]
pub struct ClassReport {
    /// Its name, as [`JobClass::name`] has it.
    #[dds(bound = 32)]
    pub class: String,
    /// Steps run.
    pub steps: u64,
    /// The most that one of them did, in datagrams or changes.
    pub most: u64,
    /// All of them together took so long.
    pub busy_ns: u64,
    /// The longest since the last report took so long.
    pub recent_longest_ns: u64,
    /// How long steps waited.
    pub waiting: SpreadReport,
    /// How long they ran.
    pub running: SpreadReport,
    /// See [`LatencyReport::bound`].
    pub bound_ns: u64,
}

/// How many steps of a class waited and ran for how long. It cannot grow: the representation of the reports, XCDR1,
/// only knows where the outermost structure ends.
#[derive(DdsType, Clone, PartialEq, Eq, Debug, Default)]
#[dds(final, name = "taut::HistogramReport", crate = ::taut_cdr)]
pub struct HistogramReport {
    /// The name of the class.
    #[dds(bound = 32)]
    pub class: String,
    /// All of them together waited so long. *Units*: ns.
    pub waited_ns: u64,
    /// So many waited no longer than the bound of the same place ([`Histogram::BOUNDS_NS`]: 1, 2, 5 us and so on, up to
    /// 100 ms).
    pub waiting: [u64; 16],
    /// So many ran no longer.
    pub running: [u64; 16],
}

/// Where the time of a participant has gone since it was made, or since [`DomainParticipant::begin_latency_report`], and what
/// it has done.
#[derive(DdsType, Clone, PartialEq, Eq, Debug, Default)]
#[dds(appendable, name = "taut::ParticipantReport", crate = ::taut_cdr)]
pub struct ParticipantReport {
    /// Its GUID.
    #[dds(key)]
    pub participant: [u8; 16],
    /// When this was, on the monotonic clock of its host. *Units*: ns.
    pub monotonic_ns: u64,
    /// The classes, highest first.
    #[dds(bound = 64)]
    pub classes: Vec<ClassReport>,
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Bytes in them.
    pub bytes_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Bytes in them.
    pub bytes_out: u64,
    /// System calls that receive or send.
    pub port_calls: u64,
    /// How often the token was taken.
    pub tokens: u64,
    /// How often it had to be waited for.
    pub contended: u64,
    /// Input that was refused, for all reasons together.
    pub refused: u64,
    /// See [`LatencyReport::steps_ahead`].
    pub steps_ahead: u64,
    /// The times of each class that has run steps; none if the participant is older than they are.
    #[dds(bound = 64)]
    pub histograms: Vec<HistogramReport>,
    /// See [`LatencyReport::listeners`]; 0 if the participant is older than it is.
    pub listeners_ns: u64,
}

impl SpreadReport {
    fn new(spread: &Spread) -> SpreadReport {
        let Spread { p50, p99, p999, longest, .. } = *spread;
        let [p50_ns, p99_ns, p999_ns, longest_ns] = [p50, p99, p999, longest].map(ns);
        SpreadReport { p50_ns, p99_ns, p999_ns, longest_ns }
    }

    fn spread(&self, histogram: Option<Histogram>) -> Spread {
        let times = [self.p50_ns, self.p99_ns, self.p999_ns, self.longest_ns];
        let [p50, p99, p999, longest] = times.map(Duration::from_nanos);
        Spread { p50, p99, p999, longest, histogram }
    }
}

impl HistogramReport {
    fn new(of: &JobReport) -> HistogramReport {
        let [waiting, running] = [of.waiting, of.running].map(|times| times.histogram.unwrap_or_default());
        HistogramReport {
            class: of.class.name().into(),
            waited_ns: ns(waiting.total),
            waiting: waiting.up_to,
            running: running.up_to,
        }
    }
}

/// Of `count` times; a peer may have sent whatever it likes, and each bound has those of the bounds below.
fn histogram(up_to: [u64; 16], count: u64, total_ns: u64) -> Histogram {
    let mut below = 0;
    let up_to = up_to.map(|times| {
        below = times.clamp(below, count);
        below
    });
    Histogram { up_to, count, total: Duration::from_nanos(total_ns) }
}

impl ParticipantReport {
    /// Of the participant of this executor, as of now.
    fn new(guid: Guid, executor: &Executor) -> ParticipantReport {
        let (latency, recent) = executor.take_latency_report();
        let stats = executor.stats();
        let frames = stats.frames.unwrap_or_default();
        let classes = latency.classes.iter().zip(recent).map(|(of, recent)| ClassReport {
            class: of.class.name().into(),
            steps: of.steps,
            most: of.most as u64,
            busy_ns: ns(of.busy),
            recent_longest_ns: ns(recent),
            waiting: SpreadReport::new(&of.waiting),
            running: SpreadReport::new(&of.running),
            bound_ns: ns(latency.bound(of.class)),
        });
        ParticipantReport {
            participant: guid.to_bytes(),
            monotonic_ns: monotonic_now().0.max(0).unsigned_abs(),
            classes: classes.collect(),
            datagrams_in: stats.port.datagrams_in + frames.datagrams_in,
            bytes_in: stats.port.bytes_in + frames.bytes_in,
            datagrams_out: stats.port.datagrams_out + frames.datagrams_out,
            bytes_out: stats.port.bytes_out + frames.bytes_out,
            port_calls: stats.port.receive_calls + stats.port.send_calls + frames.kicks,
            tokens: stats.tokens,
            contended: stats.contended,
            refused: stats.refused.iter().map(|(_, count)| count).sum(),
            steps_ahead: latency.steps_ahead,
            histograms: latency.classes.iter().filter(|of| of.steps > 0).map(HistogramReport::new).collect(),
            listeners_ns: ns(latency.listeners),
        }
    }

    /// The part that [`DomainParticipant::latency_report`] tells; classes that it does not name are those without
    /// steps.
    pub fn latency_report(&self) -> LatencyReport {
        let of = |class: JobClass| {
            let found = self.classes.iter().find(|of| of.class == class.name()).cloned().unwrap_or_default();
            let (waiting, running) = self.histograms_of(&found).unzip();
            let (waiting, running) = (found.waiting.spread(waiting), found.running.spread(running));
            let busy = Duration::from_nanos(found.busy_ns);
            let most = usize::try_from(found.most).unwrap_or(usize::MAX);
            let bound = Duration::from_nanos(found.bound_ns);
            JobReport { class, steps: found.steps, most, waiting, running, busy, bound }
        };
        let (classes, listeners) = (JobClass::ALL.map(of), Duration::from_nanos(self.listeners_ns));
        LatencyReport { classes, listeners, steps_ahead: self.steps_ahead }
    }

    /// How its steps waited and ran, if that was told.
    fn histograms_of(&self, of: &ClassReport) -> Option<(Histogram, Histogram)> {
        if of.steps == 0 {
            return Some(Default::default());
        }
        let told = self.histograms.iter().find(|told| told.class == of.class)?;
        let waiting = histogram(told.waiting, of.steps, told.waited_ns);
        Some((waiting, histogram(told.running, of.steps, of.busy_ns)))
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Has the participant report to whoever reads [`REPORT_TOPIC`].
pub(crate) fn install(executor: &Executor) {
    executor.report_on(REPORT_TOPIC, reporter);
}

fn reporter(executor: Executor) -> Option<Reporter> {
    let participant = DomainParticipant { executor: Arc::new(executor) };
    let topic = participant.topic::<ParticipantReport>(REPORT_TOPIC);
    // BEST_EFFORT: its end waits for nobody, and a reader that does not keep up holds nothing.
    let writer = topic.and_then(|topic| topic.writer(Qos::default().best_effort().keep_last(1)));
    match writer {
        Ok(writer) => Some(Box::new(move || {
            let guid = Guid::new(writer.guid().prefix, EntityId::PARTICIPANT);
            if let Err(error) = writer.try_write(&ParticipantReport::new(guid, &participant.executor)) {
                to_log(|| log::warn!("a report of response times was not written: {error}"));
            }
        })),
        Err(error) => {
            to_log(|| log::warn!("response times are not reported: {error}"));
            None
        }
    }
}
