//! What a participant tells of itself while somebody asks: the topic that `taut top` reads.
//!
//! Whoever makes a reader of [`REPORT_TOPIC`] has each participant of the domain write to it, once a second,
//! until the last such reader has gone. The executor says when; here is what.

use std::sync::Arc;
use std::time::Duration;

use taut_base::{EntityId, Guid};
use taut_derive::DdsType;
use taut_exec::{Executor, JobClass, JobReport, LatencyReport, Reporter, Spread, monotonic_now};

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
    /// The longest that the next one waits.
    pub bound_ns: u64,
}

/// Where the time of a participant has gone, and what it has done since it was made.
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
}

impl SpreadReport {
    fn new(spread: &Spread) -> SpreadReport {
        let Spread { p50, p99, p999, longest } = *spread;
        let [p50_ns, p99_ns, p999_ns, longest_ns] = [p50, p99, p999, longest].map(ns);
        SpreadReport { p50_ns, p99_ns, p999_ns, longest_ns }
    }

    fn spread(&self) -> Spread {
        let times = [self.p50_ns, self.p99_ns, self.p999_ns, self.longest_ns];
        let [p50, p99, p999, longest] = times.map(Duration::from_nanos);
        Spread { p50, p99, p999, longest }
    }
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
        }
    }

    /// The part that [`DomainParticipant::latency_report`] tells; classes that it does not name are those without
    /// steps.
    pub fn latency_report(&self) -> LatencyReport {
        let of = |class: JobClass| {
            let found = self.classes.iter().find(|of| of.class == class.name()).cloned().unwrap_or_default();
            let (waiting, running) = (found.waiting.spread(), found.running.spread());
            let busy = Duration::from_nanos(found.busy_ns);
            let most = usize::try_from(found.most).unwrap_or(usize::MAX);
            JobReport { class, steps: found.steps, most, waiting, running, busy }
        };
        LatencyReport { classes: JobClass::ALL.map(of), steps_ahead: self.steps_ahead }
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
                log::warn!("a report of response times was not written: {error}");
            }
        })),
        Err(error) => {
            log::warn!("response times are not reported: {error}");
            None
        }
    }
}
