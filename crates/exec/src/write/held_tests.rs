//! Samples that wait for company: for whom they do, and what does not wait with them.

use taut_base::{Duration, Time};
use taut_dcps::Endpoint;
use taut_qos::{DataWriterQos, History};
use taut_rtps::TxClass;

use crate::clock::monotonic_now;
use crate::core::Core;
use crate::driver::holding::Holding;
use crate::driver::role::{Claim, Role};
use crate::executor_tests::{Matched, endpoint, matched, new_write, soon, write};
use crate::write::burst::{Held, LONGEST};
use crate::{Executor, Outlet};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn what_is_left_does_not_wait_with_what_another_writer_may_keep() {
    let Matched { out, writer, writes, .. } = matched(History::KeepAll);
    let patient = DataWriterQos { latency_budget: Duration::INFINITE, ..writes.clone() };
    let (mut patient, mut prompt) =
        (out.outlet(writer, &patient).unwrap(), out.outlet(writer, &writes).unwrap());
    let sent = || out.stats().port.datagrams_out;
    let before = sent();
    // Somebody drives who would send it.
    assert_eq!(out.inner.role.claim(), Claim::Taken);
    write(&out, &mut patient, 1);
    out.inner.peek(|_| write(&out, &mut patient, 2));
    assert_eq!(sent(), before, "both wait");
    out.inner.peek(|_| write(&out, &mut prompt, 3));
    assert_eq!(sent(), before + 1, "all three in one datagram");
    out.inner.role.release(false);
}

#[test]
fn who_is_patient_has_nobody_else_wait_for_a_driver_that_is_not_there() {
    let (holding, role, mut held) = (Holding::default(), Role::default(), Held::NOTHING);
    held.note_patience(true);
    assert!(holding.hold(&mut held, Time(100), &role), "it waits for a call");
    held.note_patience(false);
    assert!(!holding.hold(&mut held, Time(200), &role), "nobody drives");
    role.claim();
    assert!(holding.hold(&mut held, Time(200), &role));
}

/// What `goes_on` does takes as long as it likes, and who has the role looks at nothing meanwhile.
#[test]
fn nothing_waits_for_a_thread_that_is_asked_whether_it_polls_on() {
    let Matched { out, writer, .. } = matched(History::KeepAll);
    let (inner, until) = (&out.inner, monotonic_now() + LIMIT);
    inner.role.claim();
    inner.peek(|core| {
        core.participant.write(core.now, writer, &mut new_write()).unwrap();
        assert!(inner.holding.hold(&mut core.held, until, &inner.role));
    });
    inner.role.release(true);
    let mut asked = 0;
    let goes_on = || {
        asked += 1;
        inner.peek(|core| {
            assert!(!core.participant.has_work(TxClass::Data), "it waits");
            assert!(!inner.holding.hold(&mut core.held, until, &inner.role), "one would wait");
            inner.holding.release(&mut core.held);
        });
        asked < 2
    };
    out.poll_while(goes_on).unwrap();
}

/// An interface that was lost is opened anew, say: that takes as long as its driver likes.
#[test]
fn nothing_waits_for_a_thread_that_is_away_from_driving() {
    let Matched { out, writer, writes, .. } = matched(History::KeepAll);
    let mut outlet = out.outlet(writer, &writes).unwrap();
    let (inner, until) = (&out.inner, monotonic_now() + LIMIT);
    inner.role.claim();
    let holds = |core: &mut Core| inner.holding.hold(&mut core.held, until, &inner.role);
    let mut core = inner.enter();
    let now = core.now;
    core.participant.write(now, writer, &mut new_write()).unwrap();
    assert!(holds(&mut core));
    let meanwhile = || {
        assert!(!inner.writes.is_any(), "one was left to nobody");
        inner.peek(|core| {
            assert!(!core.participant.has_work(TxClass::Data), "it waits");
            assert!(!holds(core), "one would wait");
            inner.holding.release(&mut core.held);
        });
    };
    inner.away_from(&mut core, meanwhile);
    assert!(holds(&mut core), "it is back");
    write(&out, &mut outlet, 7);
    assert!(inner.writes.is_any(), "one is left to who holds the token");
    let away = inner.role.go_away(taut_lock::thread_id());
    inner.away_from(&mut core, meanwhile);
    assert!(!inner.role.is_served(), "it is not back from what it was at before");
    drop(away);
    drop(core);
    inner.role.release(true);
}

/// Has the samples of a writer that may wait for long wait, with somebody who drives. Returns until when.
fn hold_long(out: &Executor, patient: &mut Outlet) -> Time {
    write(out, patient, 1);
    let (until, now) = out.inner.peek(|core| (core.held.until, core.now));
    assert!(until != Time::NEVER && until > now + LONGEST.times(2), "{until:?}");
    until
}

fn patient(out: &Executor, matched: &Matched) -> Outlet {
    out.outlet(
        matched.writer,
        &DataWriterQos { latency_budget: Duration::INFINITE, ..matched.writes.clone() },
    )
    .unwrap()
}

#[test]
fn what_is_left_in_a_burst_waits_no_longer_than_in_one() {
    let here = matched(History::KeepAll);
    let (out, inner) = (&here.out, &here.out.inner);
    let mut patient = patient(out, &here);
    let mut prompt = out.outlet(here.writer, &here.writes).unwrap();
    assert_eq!(inner.role.claim(), Claim::Taken);
    hold_long(out, &mut patient);
    // A burst as no thread that is stopped interrupts it: each write begins when the last has ended.
    while !prompt.burst.goes_on() {
        prompt.burst.begin(Time(0));
        prompt.burst.end(Time(0));
    }
    inner.peek(|core| {
        prompt.burst.end(monotonic_now() + LIMIT);
        prompt.burst.announce(Some(core.now));
        write(out, &mut prompt, 2);
    });
    let (until, now) = inner.peek(|core| (core.held.until, core.now));
    assert!(until == Time::NEVER || until <= now + LONGEST, "{:?}", until.since(now));
    inner.role.release(false);
}

#[test]
fn what_has_to_be_sent_does_not_wait_with_samples_that_wait_for_long() {
    let here = matched(History::KeepAll);
    let (out, inner) = (&here.out, &here.out.inner);
    let mut patient = patient(out, &here);
    let goes = |lowest| inner.peek(|core| core.has_work(lowest));
    let elsewhere = DataWriterQos::default();
    let (other, _) =
        out.create_writer(Endpoint { topic_name: "Others".into(), ..endpoint(elsewhere) }).unwrap();
    out.run_once(soon()).unwrap();
    assert_eq!(inner.role.claim(), Claim::Taken);
    hold_long(out, &mut patient);
    assert!(!goes(TxClass::Discovery));
    inner.peek(|core| core.participant.delete_writer(core.now, other));
    assert!(goes(TxClass::Discovery), "that an endpoint has ended");
    inner.send_held();
    // As the rest of a long sample.
    let mut core = inner.enter();
    let now = core.now;
    core.participant.write(now, here.writer, &mut new_write()).unwrap();
    drop(core);
    write(out, &mut patient, 1);
    assert!(!inner.peek(|core| core.participant.has_work(TxClass::Data)), "it is kept back");
    inner.role.release(false);
}
