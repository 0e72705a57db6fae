//! What the keeper does next.
//!
//! It renews at a third of the ttl, with a jitter. It asks for another lease when it has lost one,
//! when little of it is left, or when the clock has stepped by more than the skew. It gives back
//! what it replaces once the generator is sealed for it. Readings of the clocks only decide when to
//! ask: no id depends on them.

use std::time::Duration;

use randflake::{Error, ErrorKind, layout};

use super::{Keeper, LONGEST_SLEEP, PendingAcquire, Reading, Step};
use crate::protocol::{Acquire, Renew};

impl Keeper {
    /// Returns what to do now.
    pub fn step(&mut self, now: Reading) -> Step {
        if self.stopped {
            return Step::Stopped;
        }
        self.started.get_or_insert(now.boot);
        if let Some((step, _)) = &self.pending {
            return step.clone();
        }
        self.detect_clock_step(now);
        let step = self.next(now);
        match &step {
            Step::Sleep(pause) => return Step::Sleep(LONGEST_SLEEP.min(*pause)),
            Step::Stopped => self.stopped = true,
            _ => self.pending = Some((step.clone(), now)),
        }
        step
    }

    fn next(&mut self, now: Reading) -> Step {
        if self.stopping && self.opened {
            return Step::Close;
        }
        if self.stopping {
            // Without a generator, nothing was stamped with them.
            self.pending_release.append(&mut self.held);
            self.queue_releases(layout::EPOCH);
            let release = self.releases.front().map(|(release, _)| release.clone());
            return release.map_or(Step::Stopped, Step::Release);
        }
        if let Some(action) = self.actions.pop_front() {
            return action;
        }
        if now.boot < self.pause_until {
            return Step::Sleep(self.pause_until.saturating_sub(now.boot));
        }
        // Close to the end, the keeper alternates between a new lease, which the store may not have,
        // and another attempt to renew this one.
        let short = self.left(now) < Duration::from_secs(self.ttl.into()) / 6;
        if self.needs_new_lease || (short && self.failures % 2 == 1) {
            return self.acquire(true, self.options.node_count, now);
        }
        if self.opened && self.to_renew.is_empty() && now.boot >= self.renew_at {
            self.pool_exhausted = false;
            self.to_renew = self.held.iter().map(|row| row.token).collect();
            self.to_renew.dedup();
        }
        if let Some(&token) = self.to_renew.last() {
            return Step::Renew(Renew {
                token,
                node_ids: self
                    .held
                    .iter()
                    .filter(|row| row.token == token)
                    .map(|row| row.lease.node_id)
                    .collect(),
                ttl: self.options.ttl,
                client_now: now.second(),
                next: None,
            });
        }
        let missing = (self.options.node_count as usize).saturating_sub(self.held.len());
        if missing > 0 && !self.pool_exhausted {
            return self.acquire(false, u32::try_from(missing).expect("a count"), now);
        }
        // The generator is made once all node ids have been requested, with those that were
        // granted.
        if !self.opened {
            let (node_ids, lease) = self.term().expect("granted leases share their seconds");
            return Step::Open { node_ids, lease };
        }
        // A lease that has expired needs no release.
        self.releases.retain(|(_, end)| *end > now.second());
        if let Some((release, _)) = self.releases.front() {
            return Step::Release(release.clone());
        }
        Step::Sleep(self.renew_at.saturating_sub(now.boot))
    }

    /// Returns the time to the next planned request to the store. A [`Step::Sleep`] may be shorter.
    #[must_use]
    pub fn rests_for(&self, now: Reading) -> Duration {
        let pauses = now.boot < self.pause_until;
        let until = if pauses { self.pause_until } else { self.renew_at };
        until.saturating_sub(now.boot)
    }

    fn acquire(&mut self, fresh: bool, want: u32, now: Reading) -> Step {
        let ask = self.pending_acquire.filter(|ask| ask.fresh == fresh);
        let PendingAcquire { token, want, .. } =
            ask.unwrap_or_else(|| PendingAcquire { token: self.token(), want, fresh });
        self.pending_acquire = Some(PendingAcquire { token, want, fresh });
        let (ttl, note) = (self.options.ttl, self.note);
        Step::Acquire(Acquire { token, want, ttl, client_now: now.second(), note })
    }

    fn detect_clock_step(&mut self, now: Reading) {
        let Some(good) = self.last_success else { return };
        let wall = i128::from(now.wall) - i128::from(good.wall);
        let boot = now.boot.as_nanos().cast_signed() - good.boot.as_nanos().cast_signed();
        let step = wall - boot;
        // The two clocks are not read at the same instant.
        let allowed = Duration::from_secs(self.max_skew.max(1).into());
        if step.unsigned_abs() <= allowed.as_nanos() {
            return;
        }
        let error = Error::new(
            ErrorKind::ClockSkew,
            format!(
                "the machine's clock has stepped by {} seconds; at most {} are allowed; a new \
                 lease is needed",
                step / 1_000_000_000,
                self.max_skew
            ),
        );
        self.last_error = Some((error, now.second()));
        self.last_success = None;
        self.needs_new_lease = true;
        self.to_renew.clear();
        self.pause_until = Duration::ZERO;
    }
}
