//! Job classes, their order and budgets, and how long the longest step of each took.

use std::time::Duration;

/// A class of middleware work, highest first. DESIGN's order; classes whose work does not exist yet
/// have no entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum JobClass {
    /// What a caller has written while the token was taken.
    Writes,
    /// Datagrams on the user's addresses.
    ReceiveUser,
    /// Fresh changes, acknowledgements and repairs of user data, in their own order.
    SendUser,
    /// Heartbeats, leases, liveliness, announcements that are due.
    Timers,
    /// Datagrams on discovery's addresses.
    ReceiveMeta,
    /// Liveliness and discovery.
    SendMeta,
}

impl JobClass {
    /// All, highest first.
    pub const ALL: [JobClass; 6] = [
        JobClass::Writes,
        JobClass::ReceiveUser,
        JobClass::SendUser,
        JobClass::Timers,
        JobClass::ReceiveMeta,
        JobClass::SendMeta,
    ];

    /// The most one step of the class does. *Units*: writes or datagrams. Higher makes a class below
    /// another wait longer; lower costs a round of the loop per burst.
    pub const fn budget(self) -> usize {
        match self {
            JobClass::Writes => 64,
            JobClass::ReceiveUser => 32,
            JobClass::SendUser => 64,
            JobClass::Timers => usize::MAX,
            JobClass::ReceiveMeta => 16,
            JobClass::SendMeta => 32,
        }
    }
}

/// What is known of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JobReport {
    /// Steps run.
    pub steps: u64,
    /// The longest of them: with the longest step of the other classes it bounds the waiting of a job.
    pub longest: Duration,
}

/// The accounts of all classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    reports: [JobReport; JobClass::ALL.len()],
}

impl Accounts {
    /// Accounts for one step of a class.
    pub fn note(&mut self, class: JobClass, took: Duration) {
        if let Some(report) = self.reports.get_mut(class as usize) {
            report.steps += 1;
            report.longest = report.longest.max(took);
        }
    }

    pub fn reports(&self) -> [(JobClass, JobReport); JobClass::ALL.len()] {
        let mut all = JobClass::ALL.map(|class| (class, JobReport::default()));
        for ((_, to), from) in all.iter_mut().zip(self.reports) {
            *to = from;
        }
        all
    }
}
