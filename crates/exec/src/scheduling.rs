//! What the driver's thread asks of the system's scheduler: a real-time priority, processors of its own.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use taut_base::{Error, Result};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// What the driver's thread is to have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scheduling {
    /// SCHED_FIFO at this priority, 1 to 99; `None`: as the thread that makes the participant.
    pub priority: Option<u8>,
    /// The processors that it may run on; none named: all that the process may use.
    pub cpus: Vec<usize>,
}

impl Scheduling {
    /// Is anything asked for?
    pub fn is_any(&self) -> bool {
        *self != Scheduling::default()
    }

    /// Asks for it, for the calling thread.
    ///
    /// *Errors*: [`Error::BadParameter`] for what no system has, [`Error::Error`] for what this one refuses, with
    /// the way to have it granted.
    pub(crate) fn apply(&self) -> Result<()> {
        if !self.cpus.is_empty() {
            self.pin()?;
        }
        self.priority.map_or(Ok(()), set_fifo)
    }

    fn pin(&self) -> Result<()> {
        let mut set = CpuSet::new();
        for cpu in &self.cpus {
            set.set(*cpu).map_err(|_| {
                Error::BadParameter(format!(
                    "driver_cpus: {cpu} is no processor, at most {} are",
                    CpuSet::count() - 1
                ))
            })?;
        }
        sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| {
            Error::Error(format!(
                "sched_setaffinity {:?}: {errno}; driver_cpus keeps the driver's thread on processors of its own: \
                 name some that this process may use (/proc/self/status, Cpus_allowed_list)",
                self.cpus
            ))
        })
    }
}

fn set_fifo(priority: u8) -> Result<()> {
    let value = ThreadPriorityValue::try_from(priority).ok().filter(|_| priority > 0);
    let Some(value) = value else {
        return Err(Error::BadParameter(format!("driver_priority is {priority}: SCHED_FIFO has 1 to 99")));
    };
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(value), fifo).map_err(|error| {
        let why = match error {
            thread_priority::Error::OS(errno) => nix::Error::from_raw(errno).to_string(),
            other => format!("{other:?}"),
        };
        Error::Error(format!(
            "SCHED_FIFO {priority}: {why}; driver_priority has the driver's thread run before all others, which may \
             keep it waiting for milliseconds: allow it by `ulimit -r {priority}` (LimitRTPRIO={priority} for a \
             service, rtprio in limits.conf) or give CAP_SYS_NICE"
        ))
    })
}
