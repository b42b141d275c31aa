//! The end of a writer: how long it waits for its readers, and for whose no longer, as their participant is silent.
//!
//! A participant that has ended without a word is believed in until its lease is over. A program that ends meanwhile is to
//! wait for it once, not once with each of its writers.

use std::collections::BTreeMap;

use taut_base::{Duration, Guid, GuidPrefix, Time};
use taut_dcps::DomainParticipant;
use taut_lock::Mutex;
use taut_rtps::{Lag, Lagging, Writer, WriterIndex};

use crate::clock::monotonic_now;
use crate::executor::Executor;
use crate::write::outlet::Outlet;

/// For how long nobody waits for a participant that has left a writer that went without any answer. Lower and a program
/// that ends with many writers waits for it again and again; higher and one that was out of reach for a moment loses the
/// last samples of writers that go then.
const FOR: Duration = Duration::from_secs(1);

/// Who has not answered for so long, the default of max_blocking_time, is silent. Lower and one is that is only slow, higher
/// and a program with many writers that block for less waits for each. DCPS 1.4 §2.2.3.14.
const AFTER: Duration = Duration::from_millis(100);

/// Who is silent, and until when that is believed. No more than a participant may know of.
#[derive(Default)]
pub(crate) struct Silent(Mutex<BTreeMap<GuidPrefix, Time>>);

impl Silent {
    /// Has a writer nobody to wait for: have all who are not silent acknowledged what it has written?
    fn is_enough(&self, participant: &DomainParticipant, now: Time, index: WriterIndex) -> bool {
        let silent = self.0.lock();
        let is_silent = |guid: Guid| silent.get(&guid.prefix).is_some_and(|until| now < *until);
        lags(participant, index).all(|lag| remote(&lag).is_some_and(is_silent))
    }

    /// One has waited in vain since then: who has not answered meanwhile is silent.
    fn note(&self, participant: &DomainParticipant, now: Time, index: WriterIndex, since: Time) {
        if now < since + AFTER {
            return;
        }
        let mut silent = self.0.lock();
        silent.retain(|_, until| now < *until);
        let unheard = lags(participant, index).filter(|lag| lag.heard.is_none_or(|heard| heard < since));
        silent.extend(unheard.filter_map(|lag| Some((remote(&lag)?.prefix, now + FOR))));
    }
}

fn lags(participant: &DomainParticipant, index: WriterIndex) -> impl Iterator<Item = Lag> {
    participant.core().writer(index).into_iter().flat_map(Writer::lags)
}

fn remote(lag: &Lag) -> Option<Guid> {
    match lag.reader {
        Lagging::Remote(guid) => Some(guid),
        Lagging::Local(_) => None,
    }
}

impl Executor {
    /// Gives the reliable readers of a writer that goes until then to acknowledge. Who has not by then is gone or too slow:
    /// the writer goes all the same.
    pub fn await_last_acknowledgments(&self, outlet: &mut Outlet, until: Time) {
        if self.may_wait().is_err() {
            return;
        }
        let (inner, index, since) = (&self.inner, outlet.index, monotonic_now());
        inner.with(|participant, now| participant.ask_for_acknowledgements(now, index));
        let enough = inner.wait(Some(until), |participant, now| {
            inner.silent.is_enough(participant, now, index).then_some(())
        });
        match enough {
            Some(()) => drop(self.wait_for_readers(outlet, Some(until), Outlet::is_read)),
            None => inner.look(|participant, now| inner.silent.note(participant, now, index, since)),
        }
    }
}
