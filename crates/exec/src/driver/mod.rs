//! Whoever drives: how it waits, sleeps and is woken, and the steps that it runs. One thread at a time has the role.

pub(crate) mod alarm;
pub(crate) mod background;
pub(crate) mod drive;
#[cfg(test)]
mod drive_tests;
pub(crate) mod driving;
pub(crate) mod hand;
pub(crate) mod holding;
pub(crate) mod news;
pub(crate) mod polling;
pub(crate) mod reminder;
pub(crate) mod rhythm;
pub(crate) mod role;
pub(crate) mod throttle;
pub(crate) mod waiting;
pub(crate) mod watch;
