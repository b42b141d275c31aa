//! Participants, writers and readers of HDDS as the options ask for them, and when they are matched.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdds::dds::listener::{
    DataReaderListener, DataWriterListener, PublicationMatchedStatus, SubscriptionMatchedStatus,
};
use hdds::{DataReader, DataWriter, DdsTrait, Participant, QoS, TransportMode};
use taut_perf_kit::{Options, Stop};

/// A hundred times what its discovery takes on an idle machine. Seen: of two participants that start at
/// the same time, one may never learn of the other's endpoints; then more waiting does not help.
pub const MATCH_WITHIN: Duration = Duration::from_secs(20);

/// A participant on the network, or one that stays in the process.
pub fn participant(options: &Options, mode: TransportMode) -> Result<Arc<Participant>, Stop> {
    Ok(Participant::builder("perf").domain_id(options.domain).with_transport(mode).build()?)
}

/// The QoS that the options ask for; durability is VOLATILE by default.
pub fn qos(options: &Options) -> QoS {
    let qos = if options.reliable() { QoS::reliable() } else { QoS::best_effort() };
    match options.depth() {
        Some(depth) => qos.keep_last(depth as u32),
        None => qos.keep_all(),
    }
}

/// How many others an end is matched with. HDDS tells it to listeners only.
#[derive(Clone, Default)]
pub struct Matches(Arc<(Mutex<u32>, Condvar)>);

impl Matches {
    /// Waits until there are as many as that; how many there are in the end.
    pub fn wait(&self, count: usize, at_most: Duration) -> usize {
        let (matched, changed) = &*self.0;
        let guard = matched.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(guard, at_most, |matched| (*matched as usize) < count);
        *waited.unwrap_or_else(PoisonError::into_inner).0 as usize
    }

    fn set(&self, count: u32) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = count;
        self.0.1.notify_all();
    }
}

impl<T: DdsTrait> DataWriterListener<T> for Matches {
    fn on_publication_matched(&self, status: PublicationMatchedStatus) {
        self.set(status.current_count);
    }
}

/// What a reader tells: its matches, and its data if somebody listens.
struct Told<F> {
    matches: Matches,
    data: F,
}

impl<T: DdsTrait, F: Fn(&T) + Send + Sync> DataReaderListener<T> for Told<F> {
    fn on_data_available(&self, sample: &T) {
        (self.data)(sample);
    }

    fn on_subscription_matched(&self, status: SubscriptionMatchedStatus) {
        self.matches.set(status.current_count);
    }
}

/// A writer and its matches.
pub fn writer<T: DdsTrait>(
    participant: &Arc<Participant>,
    topic: &str,
    options: &Options,
) -> Result<(DataWriter<T>, Matches), Stop> {
    let matches = Matches::default();
    let builder = participant.topic::<T>(topic)?.writer().qos(qos(options));
    Ok((builder.with_listener(Arc::new(matches.clone())).build()?, matches))
}

/// A reader, whose data is also given to `data` as it comes, and its matches.
pub fn reader<T: DdsTrait>(
    participant: &Arc<Participant>,
    topic: &str,
    options: &Options,
    data: impl Fn(&T) + Send + Sync + 'static,
) -> Result<(DataReader<T>, Matches), Stop> {
    let matches = Matches::default();
    let told = Told { matches: matches.clone(), data };
    let builder = participant.topic::<T>(topic)?.reader().qos(qos(options));
    Ok((builder.with_listener(Arc::new(told)).build()?, matches))
}

/// Waits until both ends are matched with all others, as far as they exist.
pub fn wait_matched(
    writes: Option<&Matches>,
    reads: Option<&Matches>,
    options: &Options,
) -> Result<(), Stop> {
    let end = Instant::now() + MATCH_WITHIN;
    for (matches, kind) in [(writes, "writer"), (reads, "reader")] {
        let Some(matches) = matches else { continue };
        let found = matches.wait(options.remotes, end.saturating_duration_since(Instant::now()));
        if found < options.remotes {
            let seen = format!("the {kind} is matched with {found} of {}", options.remotes);
            return Err(Stop::Failed(format!("after {} s {seen}", MATCH_WITHIN.as_secs())));
        }
    }
    Ok(())
}
