//! How one participant wakes another: its bell says whether it sleeps, its ringer wakes it.

use std::sync::{Arc, Weak};

use taut_mem::lane::Bell;

use crate::executor::Inner;
use crate::lanes::door::Door;
use crate::lanes::neighbours::Neighbour;

/// Wakes a participant's driver, or a thread of this process.
#[derive(Clone)]
pub(crate) struct Ringer {
    pub bell: Arc<Bell>,
    target: Target,
}

#[derive(Clone)]
enum Target {
    /// In this process.
    Here(Weak<Inner>),
    /// The thread that waits at a door.
    Door(Weak<Door>),
    /// In another one.
    There(Weak<Neighbour>),
}

impl Ringer {
    pub fn of(inner: &Arc<Inner>) -> Ringer {
        Ringer { bell: Arc::clone(&inner.bell), target: Target::Here(Arc::downgrade(inner)) }
    }

    /// Wakes a thread that waits for one reader alone.
    pub fn of_door(door: &Arc<Door>) -> Ringer {
        Ringer { bell: Arc::clone(&door.bell), target: Target::Door(Arc::downgrade(door)) }
    }

    /// Is what it wakes in this process?
    pub fn is_here(&self) -> bool {
        !matches!(self.target, Target::There(_))
    }

    /// `None` before its hello.
    pub fn of_neighbour(neighbour: &Arc<Neighbour>) -> Option<Ringer> {
        Some(Ringer { bell: neighbour.bell()?, target: Target::There(Arc::downgrade(neighbour)) })
    }

    /// Wakes whatever waits there, whether its bell is armed or not. `false`: it was not told, and may sleep on.
    pub fn ring(&self) -> bool {
        match &self.target {
            Target::Here(inner) => {
                if let Some(inner) = inner.upgrade() {
                    inner.be_rung();
                }
            }
            Target::Door(door) => {
                if let Some(door) = door.upgrade() {
                    door.wake();
                }
            }
            Target::There(neighbour) => {
                return neighbour.upgrade().is_none_or(|neighbour| neighbour.ring());
            }
        }
        true
    }
}
