//! The Rust cases. Says on the first line which there are, then does one run of each case that
//! it is asked for by name; see `../run.py`.

#![allow(clippy::disallowed_methods, reason = "the clock of the library is not the stopwatch")]

mod cases;
mod counting;

use std::{
    io::{self, BufRead, Write},
    time::{Duration, Instant},
};

/// The cipher alone, which the library keeps to itself: its own files, compiled once more.
#[path = "../../../core/src"]
#[allow(dead_code, reason = "only the batches are measured")]
mod library {
    pub mod sparx;
}

/// The secret that the cipher's file looks for at the root of its crate.
pub struct Secret(pub [u8; 16]);

impl Secret {
    fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The other name that it looks for; the secret here is not secret.
mod secret {
    pub(crate) fn erasing_the_stack<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
}

/// How long one run takes.
const RUN: Duration = Duration::from_millis(5);

/// Something to measure.
pub struct Case {
    /// Its name in `../goals.py`.
    pub name: &'static str,
    /// Its name in tables and plots.
    pub label: &'static str,
    /// `us`, `peer` or `part` (of us).
    pub kind: &'static str,
    /// Runs so many times and returns how long that took for how many ids.
    pub run: Box<dyn FnMut(u64) -> (Duration, u64)>,
    /// How many times make a run; 0 before the first.
    pub times: u64,
}

impl Case {
    /// Returns the nanoseconds per id.
    fn run(&mut self) -> f64 {
        if self.times == 0 {
            self.times = 1;
            while (self.run)(self.times).0 < RUN / 2 {
                self.times *= 2;
            }
        }
        // Earlier cases have evicted this one from the caches.
        (self.run)(self.times / 4 + 1);
        let (took, ids) = (self.run)(self.times);
        // A disturbance of the first runs must not decide how long the others are.
        let factor = RUN.as_secs_f64() / took.as_secs_f64();
        self.times = ((self.times as f64 * factor) as u64).max(1);
        took.as_secs_f64() * 1e9 / ids as f64
    }
}

/// Returns how long `work` takes.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn main() -> io::Result<()> {
    let memory = cases::memory();
    let mut cases = cases::all();
    let listed: Vec<String> = cases
        .iter()
        .map(|case| format!(r#"["{}", "{}", "{}"]"#, case.name, case.label, case.kind))
        .collect();
    let backend = cases::backend();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        r#"{{"cases": [{}], "facts": {{"backend": "{backend}", "memory": {memory}}}}}"#,
        listed.join(", ")
    )?;
    out.flush()?;
    for name in io::stdin().lock().lines() {
        let name = name?;
        let case = cases.iter_mut().find(|case| case.name == name);
        writeln!(out, "{}", case.expect("a case of the list").run())?;
        out.flush()?;
    }
    Ok(())
}
