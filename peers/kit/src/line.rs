//! What an adapter brings: samples, and a way to send and to wait for them.

use std::time::Duration;

use crate::{Options, Stop};

/// What identifies a sample on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Its number, warm-up included.
    pub seq: u64,
    /// Just before its write.
    pub sent_ns: u64,
    /// When pong took it; 0 if not known.
    pub seen_ns: u64,
}

/// A sample as the middleware's own type.
pub trait Payload {
    /// One of this size, its data filled.
    fn sized(size: usize) -> Self;
    /// Its stamp; what the type does not carry is 0.
    fn stamp(&self) -> Stamp;
    /// Sets the stamp, as far as the type carries it, and the first and last byte of its data.
    fn set_stamp(&mut self, stamp: Stamp);
    /// Are the length and the ends of its data what they were?
    fn intact(&self, size: usize) -> bool;
}

/// Sends the low byte of `seq` at both ends of `data`.
pub fn mark(data: &mut [u8], seq: u64) {
    if let Some(last) = data.last_mut() {
        *last = seq as u8;
        data[0] = seq as u8;
    }
}

/// Is `data` as long as it was, with both ends marked?
pub fn marked(data: &[u8], len: usize, seq: u64) -> bool {
    let ends = data.first().into_iter().chain(data.last());
    data.len() == len && ends.into_iter().all(|byte| *byte == seq as u8)
}

/// The answer to `simple` and `complex`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The number of what is answered.
    pub index: i32,
}

/// A writer and a reader that are matched with those of the other process.
pub trait Line {
    /// What it sends.
    type Out: Payload;
    /// What it receives.
    type In: Payload;

    /// Writes a sample.
    fn send(&mut self, sample: &Self::Out) -> Result<(), Stop>;

    /// The next sample, waited for at most so long; zero only looks.
    fn receive(&mut self, at_most: Duration) -> Result<Option<Self::In>, Stop>;

    /// What was received and is not needed any more: its memory may serve the next one.
    fn give_back(&mut self, _: Self::In) {}

    /// The same of an answer that was sent, which may be the sample that it answers.
    fn give_back_answer(&mut self, _: Self::Out) {}

    /// Sends what was held back to go with more; called before a pause and after the last sample.
    fn push(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// How it waits, for `ready`.
    fn wait(&self, options: &Options) -> &'static str {
        if options.spin() { "spin" } else { "waitset" }
    }
}
