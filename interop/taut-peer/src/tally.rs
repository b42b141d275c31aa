//! What arrived, in which order, and the JSON lines that say so.

use std::collections::{BTreeMap, BTreeSet};

use taut::InstanceState;

use crate::options::{Final, Options};
use crate::types::Sample;
use crate::{COMPLETE, TIMED_OUT};

/// Prints a line with a count.
pub fn emit_count(event: &str, count: u64) {
    println!(r#"{{"event":"{event}","count":{count}}}"#);
}

/// Prints whether all was acknowledged.
pub fn emit_acknowledged(all: bool) {
    println!(r#"{{"event":"acknowledged","all":{all}}}"#);
}

/// Prints `matched` and `unmatched` when the count changes.
#[derive(Default)]
pub struct Matched {
    pub count: usize,
    /// It has fallen once.
    pub left: bool,
}

impl Matched {
    pub fn update(&mut self, count: u32) {
        let count = count as usize;
        if count != self.count {
            self.left |= count < self.count;
            emit_count(if count > self.count { "matched" } else { "unmatched" }, count as u64);
            self.count = count;
        }
    }
}

/// The tally of one subscriber.
pub struct Tally<'a> {
    options: &'a Options,
    seen: BTreeSet<u32>,
    last: BTreeMap<u32, u32>,
    disposed: BTreeSet<u32>,
    no_writers: BTreeSet<u32>,
    received: u64,
    out_of_order: u64,
    duplicates: u64,
    corrupt: u64,
}

impl<'a> Tally<'a> {
    pub fn new(options: &'a Options) -> Tally<'a> {
        Tally {
            options,
            seen: BTreeSet::new(),
            last: BTreeMap::new(),
            disposed: BTreeSet::new(),
            no_writers: BTreeSet::new(),
            received: 0,
            out_of_order: 0,
            duplicates: 0,
            corrupt: 0,
        }
    }

    /// One sample that was taken.
    pub fn count<T: Sample>(&mut self, sample: &taut::Sample<T>) {
        let state = sample.info.instance_state;
        let Some(data) = &sample.data else {
            return self.state(sample.key.as_ref().and_then(T::id), state);
        };
        self.data(data);
        // An instance that has ended says so on its last valid sample when that one has not been taken
        // yet; no separate invalid sample follows then.
        if sample.info.sample_rank == 0 && T::HAS_KEY {
            self.state(data.id(), state);
        }
    }

    fn data<T: Sample>(&mut self, data: &T) {
        let (id, content) = (data.id(), data.content(self.options));
        let right = content.right && content.seq.is_some_and(|seq| id == Some(self.options.id(seq)));
        let seq = content.seq.unwrap_or(u32::MAX);
        self.received += 1;
        if !self.options.quiet {
            let (id, size) = (id.unwrap_or(u32::MAX), content.size);
            println!(r#"{{"event":"sample","seq":{seq},"id":{id},"size":{size},"valid":true,"ok":{right}}}"#);
        }
        if !right {
            self.corrupt += 1;
        } else if !self.seen.insert(seq) {
            self.duplicates += 1;
        } else {
            let before = self.last.insert(id.unwrap_or(0), seq);
            self.out_of_order += u64::from(before.is_some_and(|before| before > seq));
        }
    }

    fn state(&mut self, id: Option<u32>, state: InstanceState) {
        let (name, ended) = match state {
            InstanceState::Alive => return,
            InstanceState::NotAliveDisposed => ("disposed", &mut self.disposed),
            InstanceState::NotAliveNoWriters => ("no_writers", &mut self.no_writers),
        };
        if !self.options.quiet {
            println!(r#"{{"event":"instance","id":{},"state":"{name}"}}"#, id.unwrap_or(u32::MAX));
        }
        match id.filter(|id| *id < self.options.instances) {
            Some(id) => drop(ended.insert(id)),
            None => self.corrupt += 1,
        }
    }

    /// Has everything come that was asked for?
    pub fn is_complete(&self) -> bool {
        let instances = self.options.instances as usize;
        self.seen.len() >= self.options.count as usize
            && match self.options.expect_final {
                Final::None => true,
                Final::Dispose => self.disposed.len() == instances,
                Final::Unregister => self.no_writers.len() == instances,
            }
    }

    /// Prints the summary and gives the exit code.
    pub fn finish(&self) -> u8 {
        let Tally { received, out_of_order, duplicates, corrupt, .. } = self;
        println!(
            r#"{{"event":"summary","received":{received},"distinct":{},"out_of_order":{out_of_order},"duplicates":{duplicates},"corrupt":{corrupt},"disposed":{},"no_writers":{}}}"#,
            self.seen.len(),
            self.disposed.len(),
            self.no_writers.len(),
        );
        if self.is_complete() { COMPLETE } else { TIMED_OUT }
    }
}
