//! What the driver's thread asks of the system's scheduler: a real-time priority, processors of its own.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, SysconfVar, sysconf};
use taut_base::{Duration, Error, Result};
use thread_priority::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// What the driver's thread is to have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scheduling {
    /// SCHED_FIFO at this priority, 1 to 99; `None`: as the thread that makes the participant.
    pub priority: Option<u8>,
    /// SCHED_DEADLINE with these times, and no priority; `None`: as the thread that makes the participant.
    pub deadline: Option<DeadlineScheduling>,
    /// The processors that it may run on; none named: as the thread that makes the participant.
    pub cpus: Vec<usize>,
}

/// The times of SCHED_DEADLINE: within `deadline` of when the thread has something to do it gets `runtime`, once in each
/// `period`. *Range*: 2 us up to `deadline`, up to `period`, up to `period`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlineScheduling {
    /// How long it may run in a period; a step that needs more waits for the next one.
    pub runtime: Duration,
    /// How soon it gets that.
    pub deadline: Duration,
    /// The time from one to the next.
    pub period: Duration,
}

impl DeadlineScheduling {
    /// What the kernel takes at least: 1,024 ns.
    pub const SHORTEST: Duration = Duration::from_micros(2);

    /// Are the times as the kernel has them?
    pub fn is_possible(&self) -> bool {
        Self::SHORTEST <= self.runtime && self.runtime <= self.deadline && self.deadline <= self.period
    }
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
        match (self.priority, self.deadline) {
            (Some(_), Some(_)) => Err(Error::BadParameter(
                "driver_priority, driver_deadline: a thread has either a priority or a deadline".into(),
            )),
            (Some(priority), None) => set_fifo(priority),
            (None, Some(times)) => set_deadline(times),
            (None, None) => Ok(()),
        }
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
        let refused = |why: String| {
            Error::Error(format!(
                "sched_setaffinity {:?}: {why}; driver_cpus keeps the driver's thread on processors of its own: \
                 name such as this process may use (/proc/self/status, Cpus_allowed_list)",
                self.cpus
            ))
        };
        sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| refused(errno.to_string()))?;
        let left_out = left_out(&self.cpus);
        if left_out.is_empty() { Ok(()) } else { Err(refused(format!("the kernel leaves out {left_out:?}"))) }
    }
}

/// Those of these processors that the calling thread has asked for and may not run on: as long as there is another one the
/// kernel says nothing. None on a machine with more of them than a set has room for, which does not tell.
fn left_out(asked: &[usize]) -> Vec<usize> {
    let Ok(given) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    asked.iter().copied().filter(|cpu| given.is_set(*cpu) != Ok(true)).collect()
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

fn set_deadline(times: DeadlineScheduling) -> Result<()> {
    let DeadlineScheduling { runtime, deadline, period } = times;
    let shown = format!("{runtime}/{deadline}/{period}");
    if !times.is_possible() {
        return Err(Error::BadParameter(format!(
            "driver_deadline is {shown}: at least {}, and runtime <= deadline <= period",
            DeadlineScheduling::SHORTEST
        )));
    }
    // A thread that a listener makes could not be made otherwise: it does not inherit this.
    let flags = DeadlineFlags::RESET_ON_FORK;
    let wanted = ThreadPriority::Deadline {
        runtime: runtime.into(),
        deadline: deadline.into(),
        period: period.into(),
        flags,
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Deadline);
    /// The kernel's name for the thread that calls: it takes no pthread_t here.
    const THIS_THREAD: thread_priority::ThreadId = 0;
    set_thread_priority_and_policy(THIS_THREAD, wanted, policy).map_err(|_| {
        let errno = nix::Error::last();
        let remedy = remedy_of_deadline(errno, processors());
        Error::Error(format!(
            "sched_setattr SCHED_DEADLINE {shown}: {errno}; driver_deadline has the driver's thread get its runtime \
             within its deadline whatever else runs: {remedy}"
        ))
    })
}

/// What to do about it, for a thread that may use so many of the machine's processors.
fn remedy_of_deadline(errno: nix::Error, (usable, all): (usize, usize)) -> String {
    const NICE: &str =
        "give CAP_SYS_NICE (AmbientCapabilities=CAP_SYS_NICE for a service), which is the only way";
    let remedy = match errno {
        nix::Error::EPERM if usable < all => {
            return format!(
                "such a thread runs on all processors of its partition (cpuset), and this process may use {usable} of \
                 {all}: start it without `taskset` (CPUAffinity= of a service), or `taskset -p -a -c PROCESSORS PID` with \
                 all that the machine or the partition has; and {NICE}"
            );
        }
        nix::Error::EPERM => NICE,
        nix::Error::EBUSY => {
            "there is no such share of the processors left: lower the runtime, or end others"
        }
        _ => {
            "choose a period from kernel.sched_deadline_period_min_us (100us at first) to \
             kernel.sched_deadline_period_max_us (4.19s at first)"
        }
    };
    remedy.into()
}

/// How many processors the calling thread may run on, and how many there are; none where the system does not tell.
fn processors() -> (usize, usize) {
    let may = |set: CpuSet| (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu) == Ok(true)).count();
    let all = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten().and_then(|all| usize::try_from(all).ok());
    let usable = sched_getaffinity(Pid::from_raw(0)).map(may);
    usable.ok().zip(all).unwrap_or_default()
}

/// Can the calling thread make one that drives? One under SCHED_DEADLINE can only if what it makes does not inherit that, so
/// it is tried before others hear of the participant. sched(7).
///
/// *Errors*: [`Error::Error`] with what to do.
pub(crate) fn may_make_threads() -> Result<()> {
    let has_deadline = taut_lock::is_real_time() && !taut_lock::has_fixed_priority();
    if !has_deadline {
        return Ok(());
    }
    std::thread::Builder::new().spawn(|| {}).map(drop).map_err(|error| {
        Error::Error(format!(
            "pthread_create: {error}; a thread under SCHED_DEADLINE can make no other, so it cannot make the participant with \
             its driver's: make the participant before it has the policy, give it the policy with SCHED_FLAG_RESET_ON_FORK \
             (`chrt --reset-on-fork`), or drive with that thread itself (Driver::Inline)"
        ))
    })
}
