//! Which readers hold a writer back, and what is known of them: for an application that asks, and for the text
//! of a write that has timed out, or that would in vain. Costs nothing while nobody asks.

use std::fmt::{self, Write};
use std::sync::Arc;

use taut_base::{Duration, Error, ErrorText, Guid, Locator, Result, Time, Timestamp};
use taut_qos::{DataWriterQos, DurabilityKind, History};
use taut_rtps::discovery::push_process;
use taut_rtps::{Lag, Lagging, Limit, NewChange, Participant, WriterIndex};

use crate::clock::{monotonic_now, wall_clock_now};
use crate::core::Core;
use crate::executor::Executor;
use crate::write::outlet::{LaneLag, Outlet};

/// A reliable reader that does not have all that a writer has written.
///
/// *Source*: not of DCPS 1.4, which has no word for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowReader {
    /// The reader.
    pub guid: Guid,
    /// The name of its participant, if that has one.
    pub participant_name: String,
    /// The name of its process and its number, and its host, as its participant says.
    pub process: String,
    /// Where its samples go; `None` if it is of this participant.
    pub locator: Option<Locator>,
    /// How many samples it has not acknowledged or, on this machine, not taken over.
    pub samples_behind: u64,
    /// How long ago the first of them was written that the writer still holds. For a reader that shares memory
    /// with the writer, by the sample's source timestamp.
    pub behind_for: Option<Duration>,
    /// How long ago it last acknowledged anything or asked for anything. `None`: never, or it shares memory with
    /// the writer and need not.
    pub last_answer: Option<Duration>,
    /// How many samples, or fragments of large ones, were sent to it alone: lost on the way, or history.
    pub sent_again: u64,
}

impl fmt::Display for SlowReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reader {}", self.guid)?;
        if !self.participant_name.is_empty() {
            // What a peer says of itself comes escaped.
            write!(f, " of {:?}", self.participant_name)?;
        }
        let process = self.process.escape_debug();
        match self.locator {
            Some(locator) if self.process.is_empty() => write!(f, " ({locator})")?,
            Some(locator) => write!(f, " ({process}, {locator})")?,
            None if self.process.is_empty() => {}
            None => write!(f, " ({process})")?,
        }
        let samples = if self.samples_behind == 1 { "sample" } else { "samples" };
        write!(f, " is {} {samples} behind", self.samples_behind)?;
        if let Some(since) = self.behind_for {
            write!(f, " since {:.3} s", seconds(since))?;
        }
        if let Some(ago) = self.last_answer {
            write!(f, ", last answered {:.3} s ago", seconds(ago))?;
        } else if self.locator.is_some() {
            write!(f, ", has not answered")?;
        }
        if self.sent_again > 0 {
            write!(f, ", was sent {} again", self.sent_again)?;
        }
        Ok(())
    }
}

fn seconds(time: Duration) -> f64 {
    time.0 as f64 / 1e9
}

/// How far a reader is behind, before anybody asks for its name.
#[derive(Clone, Copy)]
struct Behind {
    guid: Guid,
    /// It is in the lane.
    joined: bool,
    samples: u64,
    since: Option<Duration>,
    last_answer: Option<Duration>,
    sent_again: u64,
    /// It is taking a history: others are waited for first.
    is_joining: bool,
}

impl Behind {
    /// What puts one before another: how far it is behind, and for who waits with a write, whether that is for this reader.
    fn how_far(&self, writes: bool) -> (bool, u64, Option<Duration>) {
        (!(writes && self.is_joining), self.samples, self.since)
    }

    /// Calls with each reliable reader that does not have all that was written.
    fn each(core: &Participant, outlet: &Outlet, now: Time, wall: Timestamp, mut call: impl FnMut(Behind)) {
        let lags = || core.writer(outlet.index).into_iter().flat_map(taut_rtps::Writer::lags);
        let guid_of = |lag: &Lag| match lag.reader {
            Lagging::Remote(guid) => Some(guid),
            Lagging::Local(index) => core.reader(index).map(|reader| reader.guid),
        };
        let since_of = |lane: &LaneLag| lane.since.and_then(|since| wall_ago(wall, since));
        for (guid, lag) in lags().filter_map(|lag| Some((guid_of(&lag)?, lag))) {
            let mut behind = Behind {
                guid,
                joined: false,
                samples: lag.behind,
                since: lag.since.map(|since| ago(now, since)),
                last_answer: lag.heard.map(|heard| ago(now, heard)),
                sent_again: lag.sent_again,
                is_joining: lag.is_joining,
            };
            outlet.each_lag(|lane| {
                if lane.reader == guid {
                    behind.joined = true;
                    behind.samples = behind.samples.max(lane.unread);
                    behind.since = behind.since.max(since_of(&lane));
                }
            });
            call(behind);
        }
        outlet.each_lag(|lane| {
            let (guid, samples, since) = (lane.reader, lane.unread, since_of(&lane));
            if samples > 0 && !lags().any(|lag| guid_of(&lag) == Some(guid)) {
                call(Behind {
                    guid,
                    joined: true,
                    samples,
                    since,
                    last_answer: None,
                    sent_again: 0,
                    is_joining: false,
                });
            }
        });
    }
}

impl SlowReader {
    /// Of nobody.
    fn none() -> SlowReader {
        SlowReader {
            guid: Guid::UNKNOWN,
            participant_name: String::new(),
            process: String::new(),
            locator: None,
            samples_behind: 0,
            behind_for: None,
            last_answer: None,
            sent_again: 0,
        }
    }

    /// Becomes what is known of this one. *Cost*: no allocation if its strings have room.
    fn set(&mut self, core: &Participant, behind: &Behind) {
        let guid = behind.guid;
        let peer = core.database().peer(guid.prefix).map(|peer| &peer.data);
        let is_own = guid.prefix == core.guid().prefix;
        let (name, properties) = match peer {
            Some(peer) => (peer.entity_name.as_str(), peer.properties.as_slice()),
            None if is_own => (core.config().entity_name.as_str(), core.config().properties.as_slice()),
            None => ("", [].as_slice()),
        };
        let own_locators =
            core.endpoint(guid).map(|data| data.unicast_locators.as_slice()).unwrap_or_default();
        let locators = peer.map(|peer| peer.default_unicast.as_slice()).unwrap_or_default();
        let locator = own_locators.iter().chain(locators).next().copied();
        self.guid = guid;
        self.participant_name.clear();
        self.participant_name.push_str(name);
        self.process.clear();
        push_process(&mut self.process, properties);
        self.locator = locator.filter(|_| !is_own && !behind.joined);
        self.samples_behind = behind.samples;
        self.behind_for = behind.since;
        self.last_answer = behind.last_answer;
        self.sent_again = behind.sent_again;
    }
}

/// How long ago that was; never less than nothing.
fn ago(now: Time, then: Time) -> Duration {
    now.since(then).max(Duration::ZERO)
}

fn wall_ago(now: Timestamp, then: Timestamp) -> Option<Duration> {
    const NANOS: u128 = 1_000_000_000;
    let nanos = (u128::from(now.to_bits().checked_sub(then.to_bits())?) * NANOS) >> 32;
    i64::try_from(nanos).ok().map(Duration)
}

impl Executor {
    /// The reliable readers that do not have all that was written, furthest behind first.
    ///
    /// *Cost*: the token, and a look at each reader; not for the data path.
    pub fn slow_readers(&self, outlet: &Outlet) -> Vec<SlowReader> {
        let (now, wall) = (monotonic_now(), wall_clock_now());
        let found = self.look(|participant, _| {
            let (core, mut found) = (participant.core(), Vec::new());
            Behind::each(core, outlet, now, wall, |behind| {
                let mut slow = SlowReader::none();
                slow.set(core, &behind);
                found.push(slow);
            });
            found
        });
        let mut found = found.unwrap_or_default();
        found.sort_unstable_by_key(|slow| std::cmp::Reverse((slow.samples_behind, slow.behind_for)));
        found
    }

    /// A write of a KEEP_ALL writer finds no room: may readers make some?
    ///
    /// *Errors*: [`Error::OutOfResources`] if whatever they acknowledge makes none. *Cost*: the token, for a writer that keeps
    /// a limited number of samples for good.
    pub(crate) fn may_gain_room(&self, outlet: &Outlet, write: &NewChange) -> Result<()> {
        if outlet.blame.keeps_for_good { self.may_gain_of_history(outlet.index, write) } else { Ok(()) }
    }

    #[cold]
    fn may_gain_of_history(&self, index: WriterIndex, write: &NewChange) -> Result<()> {
        let writer = |core: &mut Core| core.participant.core().writer(index).map(|of| of.never_takes(write));
        if self.inner.peek(writer) == Some(true) { Err(Error::OutOfResources(FULL.into())) } else { Ok(()) }
    }

    /// A wait for readers has ended in vain: names the furthest behind.
    #[cold]
    pub(crate) fn name_slow_reader(&self, outlet: &mut Outlet) -> Error {
        self.blame(outlet, false)
    }

    /// The same for a write, with the limit that the writer has come to: its status tells of it, too.
    #[cold]
    pub(crate) fn time_out(&self, outlet: &mut Outlet) -> Error {
        self.blame(outlet, true)
    }

    /// *Cost*: as [`Executor::slow_readers`]; allocates only if the last error of the writer is still kept, or the
    /// names are longer than ever before.
    fn blame(&self, outlet: &mut Outlet, tells: bool) -> Error {
        let (now, wall) = (monotonic_now(), wall_clock_now());
        let mut blame = std::mem::take(&mut outlet.blame);
        let lane_limit = outlet.lane_limit();
        let error = self.inner.look(|participant, _| {
            let (mut furthest, mut others) = (None::<Behind>, 0_usize);
            Behind::each(participant.core(), outlet, now, wall, |behind| {
                others += usize::from(furthest.is_some());
                if furthest.is_none_or(|known| behind.how_far(tells) > known.how_far(tells)) {
                    furthest = Some(behind);
                }
            });
            let Some(furthest) = furthest else { return Error::Timeout(NOBODY) };
            blame.slow.set(participant.core(), &furthest);
            if !tells {
                return blame.error(others, None);
            }
            participant.note_slow_reader(outlet.index, furthest.guid);
            let limit = || participant.core().writer(outlet.index)?.limit();
            blame.error(others, lane_limit.or_else(limit))
        });
        outlet.blame = blame;
        error
    }
}

/// What a write says whose history has all that it may, and gives up none of it.
const FULL: &str = "RESOURCE_LIMITS max_samples or max_samples_per_instance is reached, and with TRANSIENT_LOCAL and KEEP_ALL \
                    the writer keeps what it has for readers to come: raise the limit, or set LIFESPAN or KEEP_LAST";

/// What a wait says that ends as the last reader has caught up.
const NOBODY: ErrorText = ErrorText::Fixed(
    "no reader lacks a sample by now; DataWriter::slow_readers() tells which ones do while a call waits",
);

/// Room for a name of a participant or a process, and for a text with both. Lower and a write that gives up allocates for
/// the first long name; higher and each KEEP_ALL writer takes more memory.
const NAME: usize = 128;
const TEXT: usize = 512;

/// What a writer keeps to name a slow reader without an allocation.
pub(crate) struct Blame {
    slow: SlowReader,
    text: Option<Arc<String>>,
    /// It may be nobody's fault: the writer keeps a limited number of samples, and all of them for good.
    keeps_for_good: bool,
}

impl Default for Blame {
    fn default() -> Blame {
        Blame { slow: SlowReader::none(), text: None, keeps_for_good: false }
    }
}

impl Blame {
    /// Only KEEP_ALL waits for readers in a write.
    pub fn new(qos: &DataWriterQos) -> Blame {
        let mut blame = Blame::default();
        if qos.history == History::KeepAll {
            blame.slow.participant_name.reserve(NAME);
            blame.slow.process.reserve(NAME);
            blame.text = Some(Arc::new(String::with_capacity(TEXT)));
            let limits = &qos.resource_limits;
            let is_limited = limits.max_samples.or(limits.max_samples_per_instance).is_some();
            let is_durable = qos.durability != DurabilityKind::Volatile;
            blame.keeps_for_good = is_limited && is_durable && qos.lifespan.is_infinite();
        }
        blame
    }

    fn error(&mut self, others: usize, limit: Option<Limit>) -> Error {
        let mut kept = self.text.take().unwrap_or_default();
        if Arc::get_mut(&mut kept).is_none() {
            kept = Arc::new(String::with_capacity(TEXT));
        }
        if let Some(text) = Arc::get_mut(&mut kept) {
            text.clear();
            let slow = write!(text, "{}", self.slow);
            let limit = limit.map_or(Ok(()), |limit| write!(text, " ({limit})"));
            let others = match others {
                0 => Ok(()),
                1 => write!(text, "; 1 more reader is behind"),
                _ => write!(text, "; {others} more readers are behind"),
            };
            debug_assert_eq!(slow.and(limit).and(others), Ok(()), "a string takes all");
        }
        self.text = Some(Arc::clone(&kept));
        Error::Timeout(ErrorText::Kept(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor_tests::executor_with_lanes;
    use std::net::Ipv4Addr;

    fn process(properties: &[(String, String)]) -> String {
        let mut text = String::new();
        push_process(&mut text, properties);
        text
    }

    #[test]
    fn the_text_names_who_where_how_far_and_since_when() {
        let properties = [("taut.host", "robot7"), ("taut.process", "planner"), ("taut.pid", "42")]
            .map(|(k, v)| (k.into(), v.into()));
        let mut slow = SlowReader {
            guid: Guid::UNKNOWN,
            participant_name: "a\u{1b}b".into(),
            process: process(&properties),
            locator: Some(Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 7), 7411)),
            samples_behind: 20,
            behind_for: Some(Duration::from_millis(2_310)),
            last_answer: None,
            sent_again: 0,
        };
        let text = slow.to_string();
        let end = " of \"a\\u{1b}b\" (planner, process 42 on robot7, udp/10.0.0.7:7411) is 20 samples behind \
                   since 2.310 s, has not answered";
        assert!(text.ends_with(end), "{text}");
        (slow.samples_behind, slow.last_answer, slow.sent_again) = (1, Some(Duration::from_millis(9)), 3);
        let end = " is 1 sample behind since 2.310 s, last answered 0.009 s ago, was sent 3 again";
        assert!(slow.to_string().ends_with(end), "{slow}");
        assert_eq!(process(&properties[..1]), "on robot7");
        assert_eq!(process(&[]), "");
    }

    #[test]
    fn a_write_waits_for_no_late_joiner_before_others() {
        let behind = |is_joining, samples| Behind {
            guid: Guid::UNKNOWN,
            joined: false,
            samples,
            since: None,
            last_answer: None,
            sent_again: 0,
            is_joining,
        };
        let (late, slow, slower) = (behind(true, 20_000), behind(false, 500), behind(false, 4_096));
        for (writes, order) in [(true, [late, slow, slower]), (false, [slow, slower, late])] {
            assert!(order.is_sorted_by_key(|of| of.how_far(writes)), "{writes}");
        }
    }

    #[test]
    fn who_waits_until_the_last_reader_has_caught_up_is_told_where_to_look() {
        let (executor, writer, _) = executor_with_lanes();
        let mut outlet = executor.outlet(writer, &DataWriterQos::default()).unwrap();
        for error in [executor.name_slow_reader(&mut outlet), executor.time_out(&mut outlet)] {
            assert!(
                matches!(&error, Error::Timeout(text) if text.contains("slow_readers() tells")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_timestamp_ahead_says_nothing() {
        let at = |seconds| Timestamp { seconds, fraction: 1 << 31 };
        assert_eq!(wall_ago(at(7), at(5)), Some(Duration::from_secs(2)));
        assert_eq!(wall_ago(at(5), at(7)), None);
    }
}
