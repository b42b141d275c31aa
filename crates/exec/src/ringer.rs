//! How one participant wakes another: its bell says whether it sleeps, its ringer wakes it.

use std::sync::{Arc, Weak};

use taut_mem::lane::Bell;

use crate::executor::Inner;
use crate::neighbours::Neighbour;

/// Wakes a participant's driver.
#[derive(Clone)]
pub(crate) struct Ringer {
    pub bell: Arc<Bell>,
    target: Target,
}

#[derive(Clone)]
enum Target {
    /// In this process.
    Here(Weak<Inner>),
    /// In another one.
    There(Weak<Neighbour>),
}

impl Ringer {
    pub fn of(inner: &Arc<Inner>) -> Ringer {
        Ringer { bell: Arc::clone(&inner.bell), target: Target::Here(Arc::downgrade(inner)) }
    }

    /// `None` before its hello.
    pub fn of_neighbour(neighbour: &Arc<Neighbour>) -> Option<Ringer> {
        Some(Ringer { bell: neighbour.bell()?, target: Target::There(Arc::downgrade(neighbour)) })
    }

    /// Wakes whatever waits there, whether its bell is armed or not.
    pub fn ring(&self) {
        match &self.target {
            Target::Here(inner) => {
                if let Some(inner) = inner.upgrade() {
                    inner.be_rung();
                }
            }
            Target::There(neighbour) => {
                if let Some(neighbour) = neighbour.upgrade() {
                    neighbour.ring();
                }
            }
        }
    }
}
