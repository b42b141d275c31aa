//! A count of news, which threads wait for to change. It has no lock: who tells waits for nobody.

use std::num::NonZeroU32;
use std::time::Instant;

use crate::sync::{AtomicU32, Ordering, sleep_at, wake};

/// What news are of, or what a thread waits for: one that waits for what there is no news of sleeps on. Readers share bits, so
/// few of those that wait for others are woken in vain.
#[derive(Clone, Copy)]
pub(crate) struct Topics(NonZeroU32);

/// Each reader has one of so many bits.
const READERS: u32 = 30;
const OTHERS: u32 = 1 << READERS;
const ROLE: u32 = OTHERS << 1;

impl Topics {
    /// All there is.
    pub const ALL: Topics = Topics(NonZeroU32::MAX);
    /// All but that the role is free.
    pub const ANY_ENTITY: Topics = Topics::new(!ROLE);
    /// All but what single readers are told of.
    pub const OTHERS: Topics = Topics::new(OTHERS);
    /// The role is free, for one of those that wait for it.
    pub const ROLE: Topics = Topics::new(ROLE);

    const fn new(bits: u32) -> Topics {
        match NonZeroU32::new(bits) {
            Some(bits) => Topics(bits),
            None => Topics::ALL,
        }
    }

    /// Those of one reader.
    pub const fn of_reader(index: u32) -> Topics {
        Topics::new(1 << (index % READERS))
    }

    /// Both together.
    pub fn and(self, other: Topics) -> Topics {
        Topics(self.0 | other.0)
    }
}

/// See above.
#[derive(Default)]
pub(crate) struct News(AtomicU32);

impl News {
    /// How many there were.
    pub fn seen(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// There is one more, for all that wait for one of these. *Cost*: a system call.
    pub fn tell(&self, of: Topics) {
        self.tell_some(of, i32::MAX.cast_unsigned());
    }

    /// The same for one of them.
    pub fn tell_one(&self, of: Topics) {
        self.tell_some(of, 1);
    }

    fn tell_some(&self, of: Topics, most: u32) {
        self.0.fetch_add(1, Ordering::SeqCst);
        wake(&self.0, most, of.0);
    }

    /// Sleeps if there are none after `seen`, until there are such or for no reason; `false` if it is past `until`.
    pub fn wait(&self, seen: u32, until: Option<Instant>, of: Topics) -> bool {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        sleep_at(&self.0, seen, left, of.0);
        true
    }
}
