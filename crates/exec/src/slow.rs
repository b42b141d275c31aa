//! Which readers hold a writer back, and what is known of them: for an application that asks, and for the text
//! of a write that has timed out. Costs nothing while nobody asks.

use std::fmt;

use taut_base::{Duration, Error, Guid, Locator, Time, Timestamp};
use taut_rtps::{Lagging, Participant};

use crate::clock::{monotonic_now, wall_clock_now};
use crate::executor::Executor;
use crate::outlet::Outlet;

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
        let locator = self.locator.map(|locator| locator.to_string()).unwrap_or_default();
        let places = [self.process.escape_debug().to_string(), locator];
        let places: Vec<String> = places.into_iter().filter(|place| !place.is_empty()).collect();
        if !places.is_empty() {
            write!(f, " ({})", places.join(", "))?;
        }
        let samples = if self.samples_behind == 1 { "sample" } else { "samples" };
        write!(f, " is {} {samples} behind", self.samples_behind)?;
        if let Some(since) = self.behind_for {
            write!(f, " since {}", seconds(since))?;
        }
        if let Some(ago) = self.last_answer {
            write!(f, ", last answered {} ago", seconds(ago))?;
        } else if self.locator.is_some() {
            write!(f, ", has not answered")?;
        }
        if self.sent_again > 0 {
            write!(f, ", was sent {} again", self.sent_again)?;
        }
        Ok(())
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.0 as f64 / 1e9)
}

impl SlowReader {
    /// What is known of who lags; the figures are still to come.
    fn of(core: &Participant, guid: Guid, joined: bool) -> SlowReader {
        let peer = core.database().peer(guid.prefix).map(|peer| &peer.data);
        let is_own = guid.prefix == core.guid().prefix;
        let properties = match peer {
            Some(peer) => &peer.properties,
            None if is_own => &core.config().properties,
            None => &Vec::new(),
        };
        let own_locators =
            core.endpoint(guid).map(|data| data.unicast_locators.as_slice()).unwrap_or_default();
        let locators = peer.map(|peer| peer.default_unicast.as_slice()).unwrap_or_default();
        let locator = own_locators.iter().chain(locators).next().copied().filter(|_| !is_own && !joined);
        let name = peer.map(|peer| &peer.entity_name).or(is_own.then_some(&core.config().entity_name));
        SlowReader {
            guid,
            participant_name: name.cloned().unwrap_or_default(),
            process: process(properties),
            locator,
            samples_behind: 0,
            behind_for: None,
            last_answer: None,
            sent_again: 0,
        }
    }
}

/// As in `planner, process 4242 on robot7`.
fn process(properties: &[(String, String)]) -> String {
    let find = |name: &str| properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let pid = find("taut.pid").map(|pid| format!("process {pid}"));
    let process = [find("taut.process"), pid.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ");
    match find("taut.host") {
        Some(host) if process.is_empty() => format!("on {host}"),
        Some(host) => format!("{process} on {host}"),
        None => process,
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
        let lanes = outlet.lags();
        let mut found: Vec<SlowReader> = self.inner.look(|participant, _| {
            let core = participant.core();
            let lags = core.writer(outlet.index).map(taut_rtps::Writer::lags).unwrap_or_default();
            let by_network = lags.into_iter().filter_map(|lag| {
                let guid = match lag.reader {
                    Lagging::Remote(guid) => guid,
                    Lagging::Local(index) => core.reader(index)?.guid,
                };
                let joined = lanes.iter().any(|lane| lane.reader == guid);
                let mut slow = SlowReader::of(core, guid, joined);
                slow.samples_behind = lag.behind;
                slow.behind_for = lag.since.map(|since| ago(now, since));
                slow.last_answer = lag.heard.map(|heard| ago(now, heard));
                slow.sent_again = lag.sent_again;
                Some(slow)
            });
            let mut found: Vec<SlowReader> = by_network.collect();
            for lane in lanes.iter().filter(|lane| lane.unread > 0) {
                let behind_for = lane.since.and_then(|since| wall_ago(wall, since));
                match found.iter_mut().find(|slow| slow.guid == lane.reader) {
                    Some(slow) => {
                        slow.samples_behind = slow.samples_behind.max(lane.unread);
                        slow.behind_for = slow.behind_for.max(behind_for);
                    }
                    None => {
                        let mut slow = SlowReader::of(core, lane.reader, true);
                        (slow.samples_behind, slow.behind_for) = (lane.unread, behind_for);
                        found.push(slow);
                    }
                }
            }
            found
        });
        found.sort_by_key(|slow| std::cmp::Reverse((slow.samples_behind, slow.behind_for)));
        found
    }

    /// A wait for readers has ended in vain: names the furthest behind.
    #[cold]
    pub(crate) fn name_slow_reader(&self, outlet: &Outlet) -> Error {
        timed_out(&self.slow_readers(outlet))
    }

    /// The same for a write: the writer's status tells of it, too.
    #[cold]
    pub(crate) fn time_out(&self, outlet: &Outlet) -> Error {
        let slow = self.slow_readers(outlet);
        if let Some(first) = slow.first() {
            self.with(|participant, _| participant.note_slow_reader(outlet.index, first.guid));
        }
        timed_out(&slow)
    }
}

fn timed_out(slow: &[SlowReader]) -> Error {
    Error::Timeout(match slow.split_first() {
        None => String::new(),
        Some((first, [])) => first.to_string(),
        Some((first, others)) => {
            let readers = if others.len() == 1 { "reader is" } else { "readers are" };
            format!("{first}; {} more {readers} behind", others.len())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

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
    fn a_timestamp_ahead_says_nothing() {
        let at = |seconds| Timestamp { seconds, fraction: 1 << 31 };
        assert_eq!(wall_ago(at(7), at(5)), Some(Duration::from_secs(2)));
        assert_eq!(wall_ago(at(5), at(7)), None);
    }
}
