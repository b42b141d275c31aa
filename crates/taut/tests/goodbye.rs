//! What readers see of the instances of a writer that is deleted. DCPS 1.4 §2.2.3.21.

use std::collections::BTreeMap;
use std::time::Instant;

use taut::qos::ResourceLimits;
use taut::{
    Config, DataReader, DataWriter, DdsType, DomainParticipant, Driver, Duration, Error, InstanceState, Qos,
    Selection, cdr::bytemuck,
};

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(final)]
struct Reading {
    #[dds(key)]
    id: u32,
    value: u32,
}

#[derive(DdsType)]
#[dds(final)]
struct Row {
    #[dds(key)]
    id: u32,
    cells: Vec<Cell>,
}

#[derive(DdsType, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[bytemuck(crate = "taut::cdr::bytemuck")]
#[dds(final, plain)]
#[repr(C)]
struct Cell {
    value: u32,
}

const SOON: Duration = Duration::from_secs(20);

type Ends = (DataWriter<Reading>, DataReader<Reading>);

fn pair(domain_id: u32, local: bool, qos: &Qos) -> ([DomainParticipant; 2], Ends) {
    let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
    let both = [(); 2].map(|()| DomainParticipant::with_config(&config).unwrap());
    let [w, r] = both.each_ref().map(|of| of.topic::<Reading>("Readings").unwrap());
    let (writer, reader) = (w.writer(qos.clone()).unwrap(), r.reader(qos.clone()).unwrap());
    writer.wait_matched(SOON).unwrap();
    reader.wait_matched(SOON).unwrap();
    (both, (writer, reader))
}

/// Takes until the writer has gone. Returns the last state of each instance, by its key or the order in which it came, and
/// how many samples of it had no data.
fn states_after(writer: DataWriter<Reading>, reader: &DataReader<Reading>) -> Vec<(InstanceState, usize)> {
    drop(writer);
    let (mut states, begun) = (BTreeMap::new(), Instant::now());
    loop {
        let gone = reader.subscription_matched_status().current_count == 0;
        while let Some(sample) = reader.take_next().unwrap() {
            let state = states.entry(sample.info.instance_handle).or_insert((InstanceState::Alive, 0));
            *state = (sample.info.instance_state, state.1 + usize::from(sample.data.is_none()));
        }
        if gone {
            return states.into_values().collect();
        }
        assert!(begun.elapsed() < SOON.into(), "it stays matched");
        std::thread::yield_now();
    }
}

fn write(writer: &DataWriter<Reading>, ids: std::ops::Range<u32>) {
    ids.for_each(|id| writer.write(&Reading { id, value: 7 }).unwrap());
}

#[test]
fn a_writer_that_is_deleted_disposes_of_its_instances() {
    for (domain_id, local) in [(57, true), (58, false)] {
        for qos in
            [Qos::default().reliable(), Qos::default().reliable().keep_all(), Qos::default().best_effort()]
        {
            let (_both, (writer, reader)) = pair(domain_id, local, &qos);
            write(&writer, 1..4);
            // Nobody waits until they are there for who does not repair.
            while reader.read_with(&Selection::ANY).unwrap().len() < 3 {
                std::thread::yield_now();
            }
            let states = states_after(writer, &reader);
            assert_eq!(states, [(InstanceState::NotAliveDisposed, 1); 3], "local {local}, {qos:?}");
        }
    }
}

#[test]
fn what_a_deleted_writer_does_not_dispose_of_has_no_writers() {
    for (domain_id, local) in [(59, true), (60, false)] {
        let qos = Qos::default().reliable().autodispose_unregistered_instances(false);
        let (_both, (writer, reader)) = pair(domain_id, local, &qos);
        write(&writer, 1..4);
        writer.dispose(&Reading { id: 2, value: 0 }).unwrap();
        let states = states_after(writer, &reader);
        let ended = |state| states.iter().filter(|found| **found == (state, 1)).count();
        assert_eq!(
            (ended(InstanceState::NotAliveNoWriters), ended(InstanceState::NotAliveDisposed), states.len()),
            (2, 1, 3),
            "{states:?}"
        );
    }
}

#[test]
fn instances_beyond_the_limit_of_a_writer_are_refused() {
    let limits = ResourceLimits { max_instances: Some(2), ..ResourceLimits::default() };
    for history in [Qos::default().reliable().keep_all(), Qos::default().reliable()] {
        let (_both, (writer, reader)) = pair(63, true, &history.resource_limits(limits));
        write(&writer, 1..3);
        let third = Reading { id: 3, value: 7 };
        let refusals =
            [writer.write(&third), writer.dispose(&third), writer.register_instance(&third).map(drop)];
        for refusal in refusals {
            let Err(Error::OutOfResources(text)) = refusal else { panic!("{refusal:?}") };
            assert!(text.contains("max_instances"), "{text}");
        }
        write(&writer, 1..3);
        writer.unregister_instance(&Reading { id: 1, value: 0 }).unwrap();
        writer.write(&third).expect("there is room again");
        drop((writer, reader));
    }
}

/// What could not be written takes no room of what can be.
#[test]
fn a_write_that_is_refused_registers_nothing() {
    let limits = ResourceLimits { max_samples: Some(1), max_instances: Some(2), ..ResourceLimits::default() };
    let qos = Qos::default().reliable().keep_all().max_blocking_time(Duration::from_millis(1));
    let (_both, (writer, reader)) = pair(65, true, &qos.resource_limits(limits));
    let write = |id| writer.write(&Reading { id, value: 7 });
    // Until the reader is full, and the lane, of which nothing is taken over any more.
    while write(1).is_ok() {}
    while reader.read_with(&Selection::ANY).unwrap().is_empty() {
        std::thread::yield_now();
    }
    while write(1).is_ok() {}
    for id in 2..5 {
        let refused = [write(id), writer.dispose(&Reading { id, value: 7 })];
        assert!(refused.iter().all(|refused| matches!(refused, Err(Error::Timeout(_)))), "{refused:?}");
    }
    writer.register_instance(&Reading { id: 2, value: 0 }).expect("one is registered");
    assert!(matches!(write(3), Err(Error::OutOfResources(_))), "two are, though nothing was written of one");
    drop(reader);
}

#[test]
fn a_loan_registers_an_instance_when_it_is_written() {
    let config = Config { domain_id: 66, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Row>("Rows").unwrap();
    let limits = ResourceLimits { max_instances: Some(1), ..ResourceLimits::default() };
    let writer = topic.writer(Qos::default().resource_limits(limits)).unwrap();
    let lend = |id| writer.loan_sequence::<Cell>(&Row { id, cells: Vec::new() }, 3).unwrap();
    let [first, second] = [1, 2].map(lend);
    drop(lend(3));
    second.write().unwrap();
    assert!(matches!(first.write(), Err(Error::OutOfResources(_))));
    assert!(writer.unregister_instance(&Row { id: 1, cells: Vec::new() }).is_err());
    writer.unregister_instance(&Row { id: 2, cells: Vec::new() }).unwrap();
    lend(3).write().unwrap();
}

#[test]
fn only_who_has_registered_an_instance_unregisters_it() {
    let config = Config { domain_id: 64, interfaces: vec!["lo".into()], ..Config::default() };
    let topic = DomainParticipant::with_config(&config).unwrap().topic::<Reading>("Readings").unwrap();
    let reader = topic.reader(Qos::default().reliable().keep_all()).unwrap();
    let [owner, other] = [(); 2].map(|()| topic.writer(Qos::default().reliable()).unwrap());
    let one = Reading { id: 1, value: 7 };
    owner.write(&one).unwrap();
    let Err(Error::PreconditionNotMet(text)) = other.unregister_instance(&one) else { panic!("not its own") };
    assert!(text.contains("dispose"), "{text}");
    // Whoever had the token has delivered it, maybe later than the write returned.
    reader.wait(SOON).unwrap();
    let taken = reader.take().unwrap();
    let states: Vec<_> = taken.iter().map(|s| (s.data.is_some(), s.info.instance_state)).collect();
    assert_eq!(states, [(true, InstanceState::Alive)]);
    other.register_instance(&one).unwrap();
    other.unregister_instance(&one).unwrap();
    assert!(other.unregister_instance(&one).is_err(), "it is its own no longer");
}

/// The other participant is silent, as one whose machine was switched off: a program that ends waits for it once.
#[test]
fn writers_that_go_wait_once_for_who_is_silent() {
    let of = |driver| {
        let config = Config {
            domain_id: 59,
            interfaces: vec!["lo".into()],
            local: false,
            driver,
            ..Config::default()
        };
        DomainParticipant::with_config(&config).unwrap()
    };
    let (one, other) = (of(Driver::Threaded), of(Driver::Inline));
    let blocks_for = Duration::from_secs(1);
    let qos = || Qos::default().reliable().max_blocking_time(blocks_for);
    let names: Vec<String> = (0..8).map(|n| format!("Silent {n}")).collect();
    let writers: Vec<DataWriter<Reading>> =
        names.iter().map(|name| one.topic(name).unwrap().writer(qos()).unwrap()).collect();
    let _readers: Vec<DataReader<Reading>> =
        names.iter().map(|name| other.topic(name).unwrap().reader(qos()).unwrap()).collect();
    let begun = Instant::now();
    while writers.iter().any(|writer| writer.publication_matched_status().current_count == 0) {
        other.run_once(Duration::from_millis(1)).unwrap();
        assert!(begun.elapsed() < SOON.into(), "they do not match");
    }
    // From here on nobody drives it.
    writers.iter().for_each(|writer| write(writer, 0..1));
    let begun = Instant::now();
    drop(writers);
    let took = Duration::from(begun.elapsed());
    assert!(took >= blocks_for && took < blocks_for.times(4), "{took}");
}

/// Writes samples of an instance until a write gives up. Returns how many were accepted.
fn fill(writer: &DataWriter<Reading>, id: u32) -> usize {
    let accepted = |value: &u32| match writer.write(&Reading { id, value: *value }) {
        Ok(()) => true,
        Err(Error::Timeout(_)) => false,
        Err(error) => panic!("{error}"),
    };
    (0..1_000).take_while(accepted).count()
}

#[test]
fn a_keep_all_writer_holds_no_more_samples_of_an_instance_than_it_may() {
    let limits = |samples, of_one| ResourceLimits {
        max_samples: samples,
        max_instances: None,
        max_samples_per_instance: of_one,
    };
    for (domain_id, local) in [(103, true), (104, false)] {
        let config = Config { domain_id, interfaces: vec!["lo".into()], local, ..Config::default() };
        let [w, r] = [(); 2].map(|()| DomainParticipant::with_config(&config).unwrap());
        let qos = || Qos::default().reliable().keep_all().max_blocking_time(Duration::from_millis(100));
        let writer =
            w.topic("Readings").unwrap().writer(qos().resource_limits(limits(None, Some(2)))).unwrap();
        let reader =
            r.topic("Readings").unwrap().reader(qos().resource_limits(limits(Some(1), None))).unwrap();
        writer.wait_matched(SOON).unwrap();
        reader.wait_matched(SOON).unwrap();
        // The reader has room for one.
        let first = fill(&writer, 1);
        assert!((2..=3).contains(&first), "{first}, local {local}");
        assert_eq!((fill(&writer, 2), fill(&writer, 3)), (2, 2), "local {local}");
        let mut values = Vec::new();
        while values.len() < first + 4 {
            reader.wait(SOON).unwrap();
            values.extend(
                reader
                    .take()
                    .unwrap()
                    .into_iter()
                    .map(|sample: taut::Sample<Reading>| sample.data.unwrap().id),
            );
        }
        assert!(values.is_sorted(), "{values:?}");
        writer.write(&Reading { id: 1, value: 0 }).expect("there is room again");
    }
}
