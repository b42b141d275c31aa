//! The background thread: drives while no thread of the user does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use taut_base::{Error, Result};

use crate::executor::Inner;
use crate::role::GRACE;
use crate::scheduling::Scheduling;

/// Starts the thread.
///
/// *Errors*: there is none to be had, or none as it is to be scheduled.
pub(crate) fn spawn(inner: &Arc<Inner>, scheduling: &Scheduling) -> Result<JoinHandle<()>> {
    let (inner, scheduling) = (Arc::clone(inner), scheduling.clone());
    let (tell, told) = sync_channel(1);
    let builder = std::thread::Builder::new().name("taut".into());
    let thread = builder.spawn(move || {
        let outcome = scheduling.apply();
        let goes_on = outcome.is_ok();
        // Whoever starts it waits to hear it.
        let _ = tell.send(outcome);
        if goes_on {
            run(&inner);
        }
    });
    let thread = thread.map_err(|error| {
        Error::Error(format!("no thread: {error}; raise the limit (ulimit -u) or use the inline driver"))
    })?;
    told.recv().unwrap_or(Ok(()))?;
    Ok(thread)
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
