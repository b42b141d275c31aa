//! How one participant wakes another: its bell says whether it sleeps, its ringer wakes it.

use std::sync::{Arc, Weak};

use taut_mem::lane::Bell;

use crate::executor::Inner;

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
}

impl Ringer {
    pub fn of(inner: &Arc<Inner>) -> Ringer {
        Ringer { bell: Arc::clone(&inner.bell), target: Target::Here(Arc::downgrade(inner)) }
    }

    /// Wakes whatever waits there, whether its bell is armed or not.
    pub fn ring(&self) {
        match &self.target {
            Target::Here(inner) => {
                if let Some(inner) = inner.upgrade() {
                    inner.be_rung();
                }
            }
        }
    }
}
