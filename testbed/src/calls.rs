//! The system calls of a thread, counted from outside: the test traces it, in a process of its own, and sees each call that
//! it makes, whoever in Taut makes it.

use std::collections::BTreeMap;

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What a thread marks itself by. It does nothing to who is not traced.
const MARK: Signal = Signal::SIGURG;

/// The number of a `sendto` without bytes, which has the kernel send what is in a ring of AF_XDP.
pub const KICK: i64 = -1;

/// The calls of the marks themselves, for who counts all.
pub const OF_MARKS: u64 = 6;

/// The calls from this one to the next are counted, and those after that one no more.
pub fn mark() {
    raise(MARK).expect("it is a signal");
}

/// How often a thread makes each system call, by its number or as [`KICK`], between the two marks of each of so many pairs. `go`
/// has it begin.
pub fn calls_between_marks(thread: i64, pairs: usize, mut go: impl FnMut()) -> Vec<BTreeMap<i64, u64>> {
    let thread = Pid::from_raw(thread.try_into().expect("a thread"));
    ptrace::seize(thread, ptrace::Options::PTRACE_O_TRACESYSGOOD).expect("root may");
    ptrace::interrupt(thread).expect("it is ours");
    let (mut marks, mut calls, mut is_in_call) = (0, vec![BTreeMap::new(); pairs], false);
    loop {
        match waitpid(thread, Some(WaitPidFlag::__WALL)).expect("it is ours") {
            // Each stops it when it begins and when it ends.
            WaitStatus::PtraceSyscall(_) => {
                is_in_call = !is_in_call;
                if is_in_call && marks % 2 == 1 {
                    *calls[marks / 2].entry(call(thread)).or_default() += 1;
                }
            }
            WaitStatus::Stopped(_, MARK) => marks += 1,
            WaitStatus::PtraceEvent(..) => go(),
            other => panic!("{other:?}"),
        }
        if marks == 2 * pairs {
            ptrace::detach(thread, None).expect("it is ours");
            return calls;
        }
        ptrace::syscall(thread, None).expect("it is stopped");
    }
}

/// The number of the system call that a thread, which is stopped, is in.
fn call(thread: Pid) -> i64 {
    let shown = std::fs::read_to_string(format!("/proc/{thread}/syscall")).expect("it is stopped");
    let mut words = shown.split(' ');
    let call = words.next().and_then(|word| word.parse().ok()).expect("a number");
    let is_empty = words.nth(2) == Some("0x0");
    if call == libc::SYS_sendto && is_empty { KICK } else { call }
}
