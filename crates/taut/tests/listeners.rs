//! When a listener ends whose place another one takes, or whose reader goes, while another thread is in it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use taut::{Config, DataReader, DdsType, DomainParticipant, Duration, Qos, Topic};

#[derive(DdsType)]
#[dds(final)]
struct Number {
    value: u32,
}

const SOON: std::time::Duration = std::time::Duration::from_secs(30);

#[derive(PartialEq, Debug)]
enum Told {
    Called,
    Returns,
    Dropped,
}

/// What a listener captures.
struct Guard(Sender<Told>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(Told::Dropped);
    }
}

fn topic(domain_id: u32) -> Topic<Number> {
    let config = Config { domain_id, interfaces: vec!["lo".into()], ..Config::default() };
    DomainParticipant::with_config(&config).unwrap().topic("Listened").unwrap()
}

/// One that is called until it is let go. Whoever drives is in it.
fn waits(told: Sender<Told>, goes_on: Receiver<()>) -> impl FnMut() + Send + 'static {
    let guard = Guard(told);
    move || {
        let _ = guard.0.send(Told::Called);
        let _ = goes_on.recv();
        let _ = guard.0.send(Told::Returns);
    }
}

/// `ends` returns while another thread is in the listener that `set` has set.
fn ends_after_its_call(
    domain_id: u32,
    set: impl FnOnce(&DataReader<Number>, Box<dyn FnMut() + Send>),
    ends: impl FnOnce(DataReader<Number>) -> Option<DataReader<Number>>,
) {
    let topic = topic(domain_id);
    let (writer, reader) = (topic.writer(Qos::default()).unwrap(), topic.reader(Qos::default()).unwrap());
    writer.wait_matched(Duration::from(SOON)).unwrap();
    let ((tell, told), (go_on, goes_on)) = (channel(), channel());
    set(&reader, Box::new(waits(tell, goes_on)));
    thread::scope(|scope| {
        // Who writes may be who drives.
        scope.spawn(move || writer.write(&Number { value: 1 }).unwrap());
        assert_eq!(told.recv_timeout(SOON), Ok(Told::Called));
        let left = ends(reader);
        assert!(told.try_recv().is_err(), "what it has captured is there as long as it runs");
        go_on.send(()).unwrap();
        let then = [(); 2].map(|()| told.recv_timeout(SOON));
        assert_eq!(then, [Ok(Told::Returns), Ok(Told::Dropped)]);
        drop(left);
    });
}

fn sets(reader: &DataReader<Number>, mut listener: Box<dyn FnMut() + Send>) {
    reader.set_listener(move |_| listener());
}

#[test]
fn what_a_listener_has_captured_is_dropped_after_its_last_call() {
    ends_after_its_call(196, sets, |reader| {
        drop(reader);
        None
    });
    ends_after_its_call(197, sets, |reader| {
        reader.set_listener(|_| ());
        Some(reader)
    });
    let takes = |reader: &DataReader<Number>, mut listener: Box<dyn FnMut() + Send>| {
        reader.on_data_available(move |_| listener());
    };
    ends_after_its_call(198, takes, |reader| {
        reader.set_listener(|_| ());
        Some(reader)
    });
}
