//! Where the latency of one sample went: what both sides of the wire agree on.
//!
//! A participant that wants to know has its writers put [`Stamps`] into the inline QoS of each change, and announces
//! so by a property that names its clock, as it has no vendor id to be known by. Its readers look for them in changes
//! of participants that announce it, and of no others. Owns no time: that comes as an argument.

use taut_base::{GuidPrefix, SequenceNumber, Time};
use taut_wire::{ParameterList, Stamps, WireError};

use crate::history_cache::CacheChange;
use crate::participant::{Config, Participant};

/// The name of the property.
pub const ANATOMY_PROPERTY: &str = "taut.anatomy";

/// What the parameter looks like, in front of the clock's name in the property's value.
const VERSION: &str = "1 ";

/// Changes of a writer whose times are remembered until they are sent, or sent again. Lower and what waits behind
/// more others is sent without them, higher only costs memory. A power of two.
const CALLS: usize = 1_024;

/// That a participant wants to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anatomy {
    /// How many samples each reader remembers.
    pub samples: usize,
    /// What is the same for all participants whose monotonic clock is the same one; empty if that is not known.
    pub clock: String,
}

/// The clock of somebody's stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// That of this participant.
    Own,
    /// Another one, whose times cannot be compared with those of this participant.
    Other,
}

/// When a change was written and came, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// `write` was called.
    pub written: Time,
    /// The writer's protocol had it.
    pub queued: Time,
    /// It was put into its datagram; `None` if there was none.
    pub sent: Option<Time>,
    /// The datagram was read; `None` if there was none, or not the last one yet.
    pub received: Option<Time>,
    /// The clock of the first three.
    pub clock: Clock,
}

impl Anatomy {
    /// What is announced.
    pub(crate) fn property(&self) -> (String, String) {
        (ANATOMY_PROPERTY.to_owned(), format!("{VERSION}{}", self.clock))
    }

    /// Whose clock does somebody with these properties tell? `None` if it announces nothing that is understood.
    fn clock_of(&self, properties: &[(String, String)]) -> Option<Clock> {
        let (_, value) = properties.iter().find(|(name, _)| name == ANATOMY_PROPERTY)?;
        let clock = value.strip_prefix(VERSION)?;
        Some(if !clock.is_empty() && *clock == self.clock { Clock::Own } else { Clock::Other })
    }
}

impl Config {
    /// The same, complete with what its wish for [`Config::anatomy`] announces.
    pub(crate) fn announcing_anatomy(mut self) -> Config {
        self.properties.extend(self.anatomy.iter().map(Anatomy::property));
        self
    }
}

impl Participant {
    /// Whose clock do the stamps of a participant tell? `None` if its stamps are not to be read, or this one does not
    /// want to.
    pub fn clock_of(&self, prefix: GuidPrefix) -> Option<Clock> {
        let anatomy = self.config.anatomy.as_ref()?;
        if prefix == self.config.guid_prefix {
            return Some(Clock::Own);
        }
        anatomy.clock_of(&self.database.peer(prefix)?.data.properties)
    }
}

/// The passage of a change that came in a datagram. `is_whole`: there is no further one of it.
/// *Errors*: those of [`Stamps::find`]; stamps of this clock that are still to come.
pub(crate) fn read_stamps(
    now: Time,
    clock: Clock,
    list: ParameterList<'_>,
    is_whole: bool,
) -> Result<Option<Passage>, WireError> {
    let Some(Stamps { written, queued, sent }) = Stamps::find(list)? else {
        return Ok(None);
    };
    if clock == Clock::Own && sent > now {
        return Err(WireError::BadParameter);
    }
    Ok(Some(Passage { written, queued, sent: Some(sent), received: is_whole.then_some(now), clock }))
}

/// When the last changes of a writer were written.
pub(crate) struct Calls {
    times: Vec<(SequenceNumber, Time)>,
}

impl Calls {
    pub fn new() -> Calls {
        Calls { times: vec![(SequenceNumber::ZERO, Time::default()); CALLS] }
    }

    fn place(number: SequenceNumber) -> usize {
        (number.0.cast_unsigned() as usize) & CALLS.saturating_sub(1)
    }

    /// A change was written then.
    #[cold]
    pub fn note(&mut self, number: SequenceNumber, called: Time) {
        if let Some(slot) = self.times.get_mut(Calls::place(number)) {
            *slot = (number, called);
        }
    }

    /// The stamps of a change that is sent now; `None` if nobody has said when it was written, or too many have been
    /// since.
    #[cold]
    pub fn stamps(&self, change: &CacheChange, now: Time) -> Option<Stamps> {
        let (number, written) = *self.times.get(Calls::place(change.sequence_number))?;
        if number != change.sequence_number || written <= Time::default() {
            return None;
        }
        // Who held the token may have read the clock before.
        let queued = change.time.max(written);
        Some(Stamps { written, queued, sent: now.max(queued) })
    }

    /// The same for a change that reaches its reader without a datagram.
    #[cold]
    pub fn passage(&self, change: &CacheChange) -> Option<Passage> {
        let Stamps { written, queued, .. } = self.stamps(change, change.time)?;
        Some(Passage { written, queued, sent: None, received: None, clock: Clock::Own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(value: &str) -> Vec<(String, String)> {
        vec![("taut.version".into(), "1".into()), (ANATOMY_PROPERTY.into(), value.into())]
    }

    #[test]
    fn a_clock_is_known_by_its_name() {
        let own = Anatomy { samples: 1, clock: "here".into() };
        let clock_of = |properties: &[(String, String)]| own.clock_of(properties);
        assert_eq!(clock_of(&[own.property()]), Some(Clock::Own));
        assert_eq!(clock_of(&properties("1 there")), Some(Clock::Other));
        assert_eq!(clock_of(&properties("2 here")), None, "of a later layout nothing is known");
        assert_eq!(clock_of(&properties("1")), None);
        assert_eq!(clock_of(&[]), None);
        let nameless = Anatomy { samples: 1, clock: String::new() };
        assert_eq!(nameless.clock_of(&[nameless.property()]), Some(Clock::Other));
    }
}
