//! System calls that the kernel refuses, as the policy of a sandbox has it: a filter of seccomp. seccomp(2).

use std::mem::offset_of;

use nix::libc;

/// What an argument of a refused call is, by its lower half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// This number.
    Is(i32),
    /// One with at least one of these bits.
    Has(i32),
}

/// Refuses a system call to this thread, and to those that it starts, for as long as they run: the one of this number, with an
/// errno, where its arguments are as listed with their places.
pub fn refuse(call: i64, arguments: &[(usize, Argument)], errno: i32) {
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |at: usize| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at as u32, 0, 0);
    let test = |how: u32, value: u32, jf: u8| step(libc::BPF_JMP | how | libc::BPF_K, value, 0, jf);
    let end = |with: u32| step(libc::BPF_RET | libc::BPF_K, with, 0, 0);
    // Whatever is otherwise leads to the last step, past two for each argument and the one that refuses.
    let mut left = 2 * arguments.len() as u8 + 1;
    let mut steps = vec![load(offset_of!(libc::seccomp_data, nr)), test(libc::BPF_JEQ, call as u32, left)];
    for (place, argument) in arguments {
        left -= 2;
        let (how, value) = match *argument {
            Argument::Is(value) => (libc::BPF_JEQ, value),
            Argument::Has(bits) => (libc::BPF_JSET, bits),
        };
        steps.push(load(offset_of!(libc::seccomp_data, args) + 8 * place));
        steps.push(test(how, value.cast_unsigned(), left));
    }
    steps.extend([end(libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()), end(libc::SECCOMP_RET_ALLOW)]);
    nix::sys::prctl::set_no_new_privs().expect("prctl");
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program and its steps live until the call returns; the kernel copies them.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(set, 0, "seccomp");
}
