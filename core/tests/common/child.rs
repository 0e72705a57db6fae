//! Forked children, each of which runs a check. Also used by the tests of `randflake-leases`.
#![allow(unsafe_code, reason = "fork")]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns 0 in the child and its process id in the parent.
pub(crate) type Fork = fn() -> libc::pid_t;

pub(crate) fn libc_fork() -> libc::pid_t {
    // SAFETY: the child calls only what POSIX allows, or the process has one thread, or it is what
    // glibc makes usable in the child of one with more: its allocator.
    unsafe { libc::fork() }
}

/// A fork that no `pthread_atfork` handler sees.
pub(crate) fn raw_clone() -> libc::pid_t {
    let (flags, stack) = (libc::c_long::from(libc::SIGCHLD), 0);
    // The stack comes first there.
    let [first, second] = if cfg!(target_arch = "s390x") { [stack, flags] } else { [flags, stack] };
    // SAFETY: without a new stack, and with no flag that shares anything, clone is fork. The
    // process has one thread.
    let child = unsafe { libc::syscall(libc::SYS_clone, first, second, 0, 0, 0) };
    child.try_into().expect("a process id")
}

/// Runs a check in a forked child, and fails if it fails.
pub(crate) fn in_child(fork: Fork, check: impl FnOnce()) {
    let child = fork();
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // SAFETY: has no precondition. A child that hangs is killed.
        unsafe { libc::alarm(120) };
        let outcome = catch_unwind(AssertUnwindSafe(check));
        // SAFETY: has no precondition. The rest of the process belongs to the parent.
        unsafe { libc::_exit(outcome.is_err().into()) }
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0), "the child says why, or was killed");
}
