//! The RTPS protocol: writers, readers, proxies, history, discovery, liveliness. RTPS 2.5 §8.
//!
//! Owns the state of one participant. Must never touch a socket, a clock, a thread, a lock or a
//! random source: time is an argument, randomness comes in with the configuration, bytes go in by
//! [`Participant::on_frame`] and out by [`Participant::poll_transmit`] through a port. The file names
//! are the chapters of the specification. Floor 3 (dcps) calls it.
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod anatomy;
mod answers;
mod beside;
#[cfg(test)]
mod beside_tests;
mod count;
mod counters;
pub mod discovery;
mod event;
mod flow;
pub mod history_cache;
mod intervals;
mod left;
pub mod limits;
mod liveliness;
mod message;
mod participant;
#[cfg(test)]
mod participant_tests;
mod reader;
mod receiver;
mod recent;
mod room;
mod schedule;
mod table;
mod timers;
mod together;
mod writer;

pub use anatomy::{ANATOMY_PROPERTY, Anatomy, Clock, Passage};
pub use counters::Counters;
pub use event::Event;
pub use flow::MaxRate;
pub use history_cache::{CacheChange, ChangeKind, HistoryCache};
pub use intervals::IntervalSet;
pub use participant::{Addresses, Config, EndpointConfig, Interface, Participant, Progress, Sink};
pub use reader::{Offer, Reader, WriterProxy};
pub use schedule::TxClass;
pub use writer::{Full, Lag, Lagging, Limit, Link, MulticastChoice, NewChange, ReaderProxy, Writer};

/// A local writer's place in its participant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriterIndex(pub u32);

/// A local reader's place in its participant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReaderIndex(pub u32);
