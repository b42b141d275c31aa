//! The end of a writer: how long it waits for its readers, and for whose no longer, as their participant is silent.
//!
//! A participant that has ended without a word is believed in until its lease is over. A program that ends meanwhile is to
//! wait for it once, not once with each of its writers.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::{Duration, Guid, GuidPrefix, Time};
use taut_dcps::DomainParticipant;
use taut_lock::Mutex;
use taut_rtps::{Lag, Lagging, TxClass, Writer, WriterIndex};

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

/// Who is silent, and since when that is known. No more than a participant may know of.
#[derive(Default)]
pub(crate) struct Silent(Mutex<BTreeMap<GuidPrefix, Time>>);

impl Silent {
    /// Has a writer nobody to wait for: have all who are not silent acknowledged what it has written?
    fn is_enough(&self, participant: &DomainParticipant, now: Time, index: WriterIndex) -> bool {
        let silent = self.0.lock();
        // Asked of each once, however many of its readers there are.
        let mut known = BTreeMap::new();
        let mut is_silent = |guid: Guid| {
            let noted = silent.get(&guid.prefix).filter(|noted| now < **noted + FOR);
            let has_not = |noted: &Time| has_not_answered(participant, guid.prefix, *noted);
            *known.entry(guid.prefix).or_insert_with(|| noted.is_some_and(has_not))
        };
        lags(participant, index).all(|lag| remote(&lag).is_some_and(&mut is_silent))
    }

    /// One has waited in vain since then: who has not answered meanwhile, whichever writer of the application, is
    /// silent.
    fn note(&self, participant: &DomainParticipant, now: Time, index: WriterIndex, since: Time) {
        if now < since + AFTER {
            return;
        }
        let mut silent = self.0.lock();
        silent.retain(|_, noted| now < *noted + FOR);
        let prefixes: BTreeSet<GuidPrefix> =
            lags(participant, index).filter_map(|lag| Some(remote(&lag)?.prefix)).collect();
        let found = prefixes.into_iter().filter(|prefix| has_not_answered(participant, *prefix, since));
        silent.extend(found.map(|prefix| (prefix, now)));
    }
}

fn has_not_answered(participant: &DomainParticipant, prefix: GuidPrefix, since: Time) -> bool {
    participant.core().last_answer(prefix).is_none_or(|at| at < since)
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

    /// Gives a writer that goes until then to send what it has written, if there are readers that acknowledge nothing: to them it
    /// is not sent again, and for others it has waited already.
    pub fn await_sent(&self, index: WriterIndex, until: Time) {
        let is_sent = |participant: &DomainParticipant| {
            participant.core().writer(index).is_none_or(|writer| !writer.has_unsent())
        };
        // Each call sends a step of what there is to send: most often all was sent, or is by the first.
        let mut more = true;
        while more {
            self.inner.with(|participant, _| participant.note_going(index));
            let (sent, has_work) = self
                .inner
                .peek(|core| (is_sent(&core.participant), core.participant.has_work(TxClass::Data)));
            if sent || monotonic_now() >= until {
                return;
            }
            more = has_work;
        }
        // What is left is paced. Within a listener nobody sends it.
        if self.may_wait().is_ok() {
            self.inner.wait(Some(until), |participant, _| is_sent(participant).then_some(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use taut_dcps::Write;
    use taut_qos::{DataReaderQos, DataWriterQos, PublisherQos, ReliabilityKind, SubscriberQos};
    use taut_rtps::MaxRate;

    use super::*;
    use crate::executor_tests::{config, endpoint, new_write, own_domain};
    use crate::{Driver, ExecutorConfig};

    const LIMIT: Duration = Duration::from_secs(20);

    /// Another thread polls meanwhile, and paces what it sends.
    #[test]
    fn who_goes_is_told_when_all_is_sent() {
        let domain_id = own_domain();
        let max_rate = Some(MaxRate { bytes_per_second: 20_000, burst: 1_000 });
        // That one is gone would be told, too.
        let stays = ExecutorConfig { lease_duration: LIMIT.times(100), ..config(domain_id, false) };
        let polls = ExecutorConfig { driver: Driver::Polling, max_rate, ..stays.clone() };
        let [one, other] = [polls, stays].map(|config| Executor::start(&config).unwrap());
        let (index, _) =
            one.create_writer(endpoint::<_, PublisherQos>(DataWriterQos::default().keep_all())).unwrap();
        other.create_reader(endpoint::<_, SubscriberQos>(DataReaderQos::default())).unwrap();
        let has_unsent = || one.inner.look(|of, _| of.core().writer(index).is_some_and(Writer::has_unsent));
        let matched =
            || one.inner.look(|of, _| of.writer(index).map(|of| of.publication_matched.current_count));
        drive(&[&other], || matched() == Some(1));
        for _ in 0..4 {
            let mut write = Write { payload: vec![0; 1_000].into(), ..new_write() };
            one.inner.with(|of, now| of.write(now, index, &mut write).map(drop).unwrap());
        }
        let until = monotonic_now() + LIMIT;
        one.await_sent(index, until);
        assert!(monotonic_now() < until && !has_unsent());
    }

    /// Drives them until it is so.
    fn drive(executors: &[&Executor], is_so: impl Fn() -> bool) {
        let limit = monotonic_now() + LIMIT;
        while !is_so() {
            for executor in executors {
                executor.run_once_for(Duration::from_millis(1)).unwrap();
            }
            assert!(monotonic_now() < limit, "it does not come to that");
        }
    }

    /// Two executors, and two writers of the first that are matched with a reader of the other.
    fn matched() -> ([Executor; 2], [WriterIndex; 2]) {
        let domain_id = own_domain();
        let [one, other] = [(); 2].map(|()| Executor::start(&config(domain_id, false)).unwrap());
        let [first, second] = [(); 2].map(|()| {
            let writes = endpoint::<_, PublisherQos>(DataWriterQos::default());
            one.inner.with(|participant, now| participant.create_writer(now, writes))
        });
        let mut reads = DataReaderQos::default().keep_all();
        reads.reliability.kind = ReliabilityKind::Reliable;
        let reader = other
            .inner
            .with(|participant, now| participant.create_reader(now, endpoint::<_, SubscriberQos>(reads)));
        let matched =
            |index| one.inner.look(|of, _| of.writer(index).map(|of| of.publication_matched.current_count));
        drive(&[&one, &other], || {
            let reads =
                other.inner.look(|of, _| of.reader(reader).map(|of| of.subscription_matched.current_count));
            reads == Some(2) && [first, second].map(matched) == [Some(1); 2]
        });
        ([one, other], [first, second])
    }

    /// Has one make one more writer, and drives both until the other knows of it, for so long that who answers nothing else
    /// is silent.
    fn announce_another(one: &Executor, other: &Executor) {
        let until = monotonic_now() + AFTER;
        let mut elsewhere = endpoint::<_, PublisherQos>(DataWriterQos::default());
        elsewhere.topic_name = "Others".into();
        let third = one.inner.with(|of, now| of.create_writer(now, elsewhere));
        let guid = one.inner.look(|of, _| of.core().writer(third).unwrap().guid);
        drive(&[one, other], || {
            monotonic_now() > until && other.inner.look(|of, _| of.core().endpoint(guid).is_some())
        });
    }

    #[test]
    fn who_only_answers_discovery_is_silent() {
        let ([one, other], [first, second]) = matched();
        let has_all =
            || one.inner.look(|of, _| [first, second].iter().all(|index| lags(of, *index).count() == 0));
        let write =
            |index| one.inner.with(|of, now| of.write(now, index, &mut new_write()).map(drop).unwrap());
        [first, second].into_iter().for_each(write);
        drive(&[&one, &other], has_all);

        let limit = monotonic_now() + LIMIT;
        let since = loop {
            let since = monotonic_now();
            announce_another(&one, &other);
            let answered = one.inner.look(|of, _| !has_not_answered(of, other.inner.prefix, since));
            if !answered {
                break since;
            }
            // To what it was asked before it may answer once more.
            assert!(monotonic_now() < limit, "it has answered the application");
        };
        [first, second].into_iter().for_each(write);
        assert!(one.inner.look(|of, now| {
            one.inner.silent.note(of, now, first, since);
            one.inner.silent.is_enough(of, now, second)
        }));
    }

    #[test]
    fn who_answers_any_writer_is_not_silent() {
        let ([one, other], [first, second]) = matched();
        let write =
            |index| one.inner.with(|of, now| of.write(now, index, &mut new_write()).map(drop).unwrap());
        let has_all = |index| one.inner.look(|of, _| lags(of, index).count() == 0);
        let note = |since| {
            one.inner.look(|of, now| {
                one.inner.silent.note(of, now, first, since);
                now
            })
        };
        // As of when it was noted, however long the test has taken since.
        let is_enough = |noted| one.inner.look(|of, _| one.inner.silent.is_enough(of, noted, second));
        let wait = || std::thread::sleep(AFTER.into());

        let since = monotonic_now();
        write(second);
        drive(&[&one, &other], || has_all(second));
        wait();
        one.run_once_for(AFTER).unwrap();
        write(first);
        write(second);
        let noted = note(since);
        assert!(!is_enough(noted), "it has answered the other writer");

        let since = monotonic_now();
        wait();
        let noted = note(since);
        assert!(is_enough(noted), "it has answered none since");
        drive(&[&one, &other], || has_all(second));
        write(second);
        assert!(!is_enough(noted), "it has answered again");
    }
}
