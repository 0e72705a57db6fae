//! Threads that wait for JavaScript. libuv's pool has few threads, which names and files need, too,
//! and a process or a worker that ends waits for their work.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// What a thread should do.
type Job = Box<dyn FnOnce() + Send>;

/// The threads of one generator. Their number is limited, and none exist while there is nothing to
/// do.
#[derive(Default)]
pub(crate) struct Threads(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: usize,
}

/// Starts a thread for one job. Nothing waits for it when the process or the worker ends.
pub(crate) fn start(job: Job) -> io::Result<()> {
    thread::Builder::new().name("randflake-work".into()).spawn(job).map(drop)
}

impl Threads {
    const MOST: usize = 8;

    /// Makes a thread do the job: a new one, or, if the limit is reached, the first one that has
    /// finished its earlier jobs.
    pub(crate) fn start(self: &Arc<Self>, job: Job) -> io::Result<()> {
        let mut queue = self.lock();
        queue.jobs.push_back(job);
        if queue.running == Self::MOST {
            return Ok(());
        }
        let threads = Arc::clone(self);
        // Under the lock: if no thread can be started, the job is still there to be taken back.
        match start(Box::new(move || threads.work())) {
            Ok(()) => queue.running += 1,
            Err(_) if queue.running > 0 => {}
            Err(error) => {
                queue.jobs.pop_back();
                return Err(error);
            }
        }
        Ok(())
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.running -= 1;
        }
        job
    }

    /// A panic leaves a list of jobs valid.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
