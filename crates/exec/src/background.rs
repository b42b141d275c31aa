//! The background thread: drives while no thread of the user does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use taut_base::{Error, Result};

use crate::executor::Inner;
use crate::role::GRACE;

/// Starts the thread.
pub(crate) fn spawn(inner: &Arc<Inner>) -> Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    let builder = std::thread::Builder::new().name("taut".into());
    builder.spawn(move || run(&inner)).map_err(|error| {
        Error::Error(format!("no thread: {error}; raise the limit (ulimit -u) or use the inline driver"))
    })
}

fn run(inner: &Inner) {
    while !inner.closing.load(Ordering::SeqCst) {
        if inner.role.claim_background() {
            while !inner.closing.load(Ordering::SeqCst) && !inner.role.is_wanted() {
                inner.drive_once(None);
            }
            inner.release_role();
        }
        stand_by(inner);
    }
}

/// Waits until nobody has driven for a while, or it is called. While users come and go it looks now and then, [`GRACE`];
/// while one user's wait goes on it sleeps until that user wakes it.
fn stand_by(inner: &Inner) {
    let mut seen = None;
    let mut grace = GRACE.0;
    while !inner.closing.load(Ordering::SeqCst) {
        let look = inner.role.look();
        let (free, user, _) = look;
        if free && !inner.role.is_wanted() && (seen == Some(look) || inner.role.is_called()) {
            return;
        }
        if seen == Some(look) && user {
            inner.role.parked.store(true, Ordering::SeqCst);
            if inner.role.look() == look && !inner.closing.load(Ordering::SeqCst) {
                std::thread::park();
            }
            inner.role.parked.store(false, Ordering::SeqCst);
            (seen, grace) = (None, GRACE.0);
            continue;
        }
        if seen.is_some() {
            grace = (grace * 2).min(GRACE.1);
        }
        seen = Some(look);
        std::thread::park_timeout(grace);
    }
}
