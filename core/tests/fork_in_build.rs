//! A signal handler that forks while a generator is being made. The generator belongs to the
//! parent, or the fork came first; the two processes never share it.
//!
//! An allocator that forks simulates the handler: at each allocation of the build in turn. This
//! process has a single thread.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::a_generator_that_is_being_made_is_the_parents();
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "fork and an allocator")]
mod linux {
    use std::{
        alloc::{GlobalAlloc, Layout, System},
        sync::atomic::{AtomicI32, AtomicU32, Ordering},
    };

    use randflake::{
        Clock, Encrypted, Error, ErrorKind, Lease, Randflake, Result, Secret, SystemClock,
    };

    type Builder = randflake::Builder<Encrypted>;

    /// At which of the following allocations to fork; 0: never.
    static FORK_AT: AtomicU32 = AtomicU32::new(0);
    /// What the fork returned; -1 if there was none.
    static CHILD: AtomicI32 = AtomicI32::new(-1);

    struct Forking;

    #[global_allocator]
    static ALLOCATOR: Forking = Forking;

    // SAFETY: the system's allocator does all of it.
    unsafe impl GlobalAlloc for Forking {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if FORK_AT.load(Ordering::Relaxed) > 0 && FORK_AT.fetch_sub(1, Ordering::Relaxed) == 1 {
                // SAFETY: this process has one thread.
                CHILD.store(unsafe { libc::fork() }, Ordering::Relaxed);
            }
            // SAFETY: as the caller says.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            // SAFETY: as the caller says.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    /// Returns how often it allocates.
    fn allocations(work: impl FnOnce()) -> u32 {
        FORK_AT.store(u32::MAX, Ordering::Relaxed);
        work();
        u32::MAX - FORK_AT.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn a_generator_that_is_being_made_is_the_parents() {
        let now = SystemClock.now().expect("a time") / 1_000_000_000;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let manual = |builder: Builder| builder.restart_safe(false).build();
        let with_lease = |builder: Builder| builder.lease(lease).build();
        let granted = |builder: Builder| builder.granted_lease(lease).build();
        let replaced = |builder: Builder| {
            let flake = builder.granted_lease(lease).build()?;
            flake.replace_lease(&[2, 3], lease, u32::MAX)?;
            Ok(flake)
        };
        for build in
            [&manual as &dyn Fn(Builder) -> Result<Randflake>, &with_lease, &granted, &replaced]
        {
            // The first round makes the statics.
            for repeated in [false, true] {
                let secret = Secret::random();
                let builder = || Randflake::builder(&secret).node_id(1);
                let first = repeated.then(|| build(builder()).expect("a free node"));
                let count = {
                    let secret = Secret::random();
                    allocations(|| drop(build(Randflake::builder(&secret).node_id(1))))
                };
                for at in 1..=count {
                    let secret = Secret::random();
                    let builder =
                        if repeated { builder() } else { Randflake::builder(&secret).node_id(1) };
                    fork_at(at, || build(builder)?.generate().map(drop));
                }
                drop(first);
            }
        }
    }

    /// Forks during `work`, which must succeed in the parent.
    fn fork_at(allocation: u32, work: impl FnOnce() -> Result<()>) {
        CHILD.store(-1, Ordering::Relaxed);
        FORK_AT.store(allocation, Ordering::Relaxed);
        let outcome = work().map_err(|error: Error| error.kind());
        FORK_AT.store(0, Ordering::Relaxed);
        match CHILD.load(Ordering::Relaxed) {
            -1 => {} // one that is made only once
            0 => {
                // SAFETY: has no precondition. The rest of the process belongs to the parent.
                unsafe { libc::_exit((outcome != Err(ErrorKind::Forked)).into()) }
            }
            child => {
                assert_eq!(outcome, Ok(()), "the parent's");
                let mut status = 0;
                // SAFETY: the status is writable.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(status, 0, "the child has the generator as well ({allocation})");
            }
        }
    }
}
