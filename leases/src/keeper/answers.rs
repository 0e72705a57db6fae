//! What the keeper makes of the outcome of a step.
//!
//! **A store that was replaced** keeps a generator out only as long as its Term lives, which goes
//! on to its end. Then the store may forget which one it was (`LeaseStore::accept_another`), and
//! whatever is there is asked for a fresh lease, never for a renewal. That repeats no id if the
//! operator who put the store there stated the truth: that it is new and no lease of the old one
//! runs, or that it is fenced. A missing file or namespace that the generator creates itself begins
//! in a quarantine as long as the longest lease of the old one.

use std::{mem, time::Duration};

use randflake::{Error, ErrorKind, Result, layout};

use super::{
    Answer, HeldNode, Keeper, LONGEST_OUTAGE_PAUSE, PendingAcquire, Reading, SHORTEST_PAUSE, Step,
    errors::{all_manual, exhausted, lost, passes, quarantined, unasked, unusable},
    window_of,
};
use crate::{
    protocol::{Acquire, Acquired, NodeLease, Operation, Release, Renew, Renewed, Reply, window},
    rules::skewed,
    token::Token,
};

impl Keeper {
    /// Takes the outcome of the last step.
    ///
    /// # Errors
    ///
    /// [`StoreUnavailable`](ErrorKind::StoreUnavailable): this is not the answer to that step, and
    /// the connection that it came from must not be used again. A reply to another request counts
    /// as a failure of this one; an answer of the wrong kind changes nothing.
    pub fn answer(&mut self, answer: Answer, now: Reading) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        let Some((step, asked)) = self.pending.take() else {
            return Err(unasked());
        };
        match (&step, answer) {
            (Step::Acquire(Acquire { token, .. }), Answer::Acquired(reply)) => {
                return self.bound(
                    reply,
                    *token,
                    Operation::Acquire,
                    asked,
                    now,
                    |keeper, outcome| {
                        keeper.requests.compare(outcome.store_now(), asked, now);
                        keeper.acquired(outcome, asked)
                    },
                );
            }
            (Step::Renew(Renew { token, node_ids, .. }), Answer::Renewed(reply)) => {
                return self.bound(
                    reply,
                    *token,
                    Operation::Renew,
                    asked,
                    now,
                    |keeper, outcome| {
                        keeper.requests.compare(outcome.store_now(), asked, now);
                        keeper.renewed(*token, node_ids, outcome, asked)
                    },
                );
            }
            (Step::Release(Release { token, .. }), Answer::Released(reply)) => {
                // A keeper that is stopping tries once: after a failure the lease expires by
                // itself.
                let release = self.releases.pop_front();
                if reply.is_err() && !self.stopping {
                    self.releases.extend(release);
                }
                return self.bound(reply, *token, Operation::Release, asked, now, |_, _| Ok(()));
            }
            (Step::Open { .. }, Answer::Opened(done)) => match done {
                Ok(()) => self.opened = true,
                Err(error) => self.refused(error, now),
            },
            (Step::Extend { .. }, Answer::Extended(done)) => {
                if let Err(error) = done {
                    self.refused(error, now);
                }
            }
            (Step::Replace { .. }, Answer::Replaced(done)) => match done {
                Ok(used_until) => self.queue_releases(used_until),
                Err(error) => self.refused(error, now),
            },
            (Step::Close, Answer::Closed(used_until)) => {
                self.opened = false;
                self.pending_release.append(&mut self.held);
                match used_until {
                    Some(used_until) => self.queue_releases(used_until),
                    None => self.pending_release.clear(), // it is unknown what was stamped
                }
            }
            _ => {
                self.pending = Some((step, asked));
                return Err(unasked());
            }
        }
        Ok(())
    }

    /// Takes the outcome of a reply if it answers this request; otherwise the request has failed.
    fn bound<T>(
        &mut self,
        reply: Result<Reply<T>>,
        token: Token,
        operation: Operation,
        asked: Reading,
        now: Reading,
        take: impl FnOnce(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.requests.count(asked, now);
        let mut bound = Ok(());
        let done = reply.and_then(|reply| {
            let outcome = reply.answer_to(token, operation).inspect_err(|foreign| {
                bound = Err(foreign.clone());
            })?;
            // A keeper that is stopping still reports why.
            if !self.stopping {
                self.last_error = None;
            }
            take(self, outcome)
        });
        match done {
            Ok(()) => self.failures = 0,
            Err(error) => {
                self.requests.count_error(error.kind());
                self.failed(error, now);
            }
        }
        bound
    }

    fn acquired(&mut self, outcome: Acquired, asked: Reading) -> Result<()> {
        let (store_now, leases) = match outcome {
            Acquired::Granted { now, max_ttl, max_skew, leases } => {
                self.limit(max_ttl, max_skew);
                (now, leases)
            }
            Acquired::Busy { now, free_at } => {
                // The next token asks for other node ids.
                return match self.pending_acquire.take() {
                    Some(PendingAcquire { fresh: false, .. }) => {
                        self.pool_exhausted = true;
                        Ok(())
                    }
                    _ if !self.refused_manual.is_empty() => Err(all_manual(&self.refused_manual)),
                    _ => Err(exhausted(now, free_at)),
                };
            }
            Acquired::Quarantined { now, until } => return Err(quarantined(now, until)),
            Acquired::ClockSkew { store_now, max_skew } => {
                return Err(skewed(asked.second(), store_now, max_skew));
            }
        };
        let Some(PendingAcquire { token, fresh, .. }) = self.pending_acquire.take() else {
            return Ok(());
        };
        let granted: Vec<HeldNode> =
            leases.iter().map(|&lease| HeldNode { token, lease }).collect();
        // After many repetitions a request may be answered with a lease that has ended.
        let usable = window(&leases).is_some_and(|window| window.end_exclusive() > store_now);
        if self.stopping || !usable {
            self.release_unused(&granted);
            return if usable { Ok(()) } else { Err(unusable()) };
        }
        let node_ids: Vec<u32> = leases.iter().map(|lease| lease.node_id).collect();
        let manual = (self.find_manual)(&node_ids);
        let (manual, granted): (Vec<HeldNode>, Vec<HeldNode>) =
            granted.into_iter().partition(|row| manual.contains(&row.lease.node_id));
        self.release_unused(&manual);
        if granted.is_empty() {
            self.pool_exhausted |= !fresh;
            // They are released after the next attempt, which therefore cannot return them again.
            self.refused_manual.extend(node_ids);
            return if fresh { Err(all_manual(&self.refused_manual)) } else { Ok(()) };
        }
        self.refused_manual.clear();
        let leases: Vec<NodeLease> = granted.iter().map(|row| row.lease).collect();
        // A node id that is granted again under another token was lost under the first one. Leases
        // without a common second cannot form one Term: only the new ones remain.
        let mut rows = if fresh { Vec::new() } else { self.held.clone() };
        rows.retain(|row| leases.iter().all(|lease| lease.node_id != row.lease.node_id));
        rows.extend(&granted);
        if window_of(&rows).is_none() {
            rows = granted;
        }
        let is_kept = |row: &HeldNode| {
            rows.iter()
                .any(|kept| kept.token == row.token && kept.lease.node_id == row.lease.node_id)
        };
        self.pending_release.extend(self.held.iter().filter(|row| !is_kept(row)));
        // A lost node id that is granted again is not replaced.
        let known: Vec<u32> = self.node_ids();
        let new = rows.iter().filter(|row| !known.contains(&row.lease.node_id)).count();
        if self.opened && new > 0 && (fresh || self.vacant > 0) {
            self.replacements += 1;
        }
        self.vacant = self.vacant.saturating_sub(new);
        self.held = rows;
        self.to_renew.clear();
        (self.needs_new_lease, self.pool_exhausted) = (false, self.pool_exhausted && !fresh);
        self.succeeded(store_now, asked);
        self.replace();
        Ok(())
    }

    fn renewed(
        &mut self,
        token: Token,
        node_ids: &[u32],
        outcome: Renewed,
        asked: Reading,
    ) -> Result<()> {
        let (store_now, leases) = match outcome {
            Renewed::Extended { now, max_ttl, max_skew, leases } => {
                self.limit(max_ttl, max_skew);
                (now, leases)
            }
            Renewed::Lost { now } => (now, Vec::new()),
            Renewed::ClockSkew { store_now, max_skew } => {
                return Err(skewed(asked.second(), store_now, max_skew));
            }
        };
        let before = self.window_end();
        let mut lost_nodes = Vec::new();
        self.held.retain_mut(|row| {
            if row.token != token || !node_ids.contains(&row.lease.node_id) {
                return true;
            }
            // A delayed request can make the store grant a token again after its release. Only the
            // lease that this Term was made for can be extended.
            let NodeLease { node_id, start, .. } = row.lease;
            let same = leases.iter().find(|new| (new.node_id, new.start) == (node_id, start));
            match same {
                Some(new) => {
                    let end = &mut row.lease.end_exclusive;
                    *end = new.end_exclusive.min(layout::LIFETIME_END).max(*end);
                }
                None => lost_nodes.push(*row),
            }
            same.is_some()
        });
        self.to_renew.retain(|other| *other != token);
        if lost_nodes.is_empty() {
            self.renewals += 1;
            if self.to_renew.is_empty() {
                // A request for another Term that has no answer so far is no longer needed.
                self.pending_acquire = self.pending_acquire.filter(|ask| !ask.fresh);
                self.succeeded(store_now, asked);
            }
            if self.window_end() > before {
                let end_exclusive = self.window_end().unwrap_or_default();
                self.actions.push_back(Step::Extend { end_exclusive });
            }
            return Ok(());
        }
        self.losses += lost_nodes.len() as u64;
        self.requests.count_error(ErrorKind::LeaseLost);
        self.last_error = Some((lost(&lost_nodes), asked.second()));
        if self.held.is_empty() {
            // Until others are granted, the Term remains, to the end that it was granted with.
            self.held = lost_nodes;
            self.needs_new_lease = true;
        } else {
            self.vacant += lost_nodes.len();
            self.pending_release.extend(lost_nodes);
            self.pool_exhausted = false;
            self.replace();
        }
        Ok(())
    }

    /// Allows no more than the namespace does: operators, fences and other holders rely on its
    /// limits, whatever this generator was made with. Another store may have others, so what is
    /// asked for stays the same.
    fn limit(&mut self, max_ttl: u32, max_skew: u32) {
        self.longest = self.options.ttl.min(max_ttl);
        self.max_skew = self.options.max_skew.min(max_skew);
    }

    /// Sets the timers after a reply that granted everything that was asked for.
    fn succeeded(&mut self, store_now: i64, asked: Reading) {
        let granted = self.window_end().map_or(0, |end| end.saturating_sub(store_now));
        let granted = u32::try_from(granted.max(1)).unwrap_or(u32::MAX);
        self.ttl = self.longest.min(granted);
        self.last_success = Some(asked);
        let third = Duration::from_secs(self.ttl.into()) / 3;
        self.renew_at = asked.boot + third.mul_f64(1.0 - 0.2 * self.fraction());
    }

    pub(super) fn failed(&mut self, error: Error, now: Reading) {
        let (kind, passes) = (error.kind(), passes(error.kind()));
        self.last_error = Some((error, now.second()));
        if kind == ErrorKind::Forked {
            self.forget();
            return;
        }
        if !self.opened && !self.needs_new_lease {
            self.pool_exhausted = true; // start with what it has
            return;
        }
        self.failures += 1;
        let ttl = Duration::from_secs(self.ttl.into());
        let left = self.left(now);
        if kind == ErrorKind::StoreReplaced && self.opened && left.is_zero() {
            // Every lease of the old store has ended.
            (self.store_replaced, self.needs_new_lease) = (true, true);
            self.to_renew.clear();
        }
        // Before the end of the lease, leave time for another attempt. After it, calls fail until the
        // store is back.
        let cap = if left.is_zero() { LONGEST_OUTAGE_PAUSE } else { left / 4 };
        let cap = cap.min(ttl / 10);
        let ceiling = (SHORTEST_PAUSE * (1 << self.failures.min(16))).min(cap).max(SHORTEST_PAUSE);
        let pause =
            SHORTEST_PAUSE + ceiling.saturating_sub(SHORTEST_PAUSE).mul_f64(self.fraction());
        self.pause_until = now.boot + pause;
        if !self.opened {
            let deadline = self.started.unwrap_or(now.boot) + self.options.acquire_timeout;
            self.pause_until = self.pause_until.min(deadline);
            self.stopping |= !passes || now.boot >= deadline;
        }
    }

    /// Handles a refusal by the generator: the user closed it, or the process was forked.
    fn refused(&mut self, error: Error, now: Reading) {
        if error.kind() == ErrorKind::Forked {
            self.forget();
            return;
        }
        self.last_error = Some((error, now.second()));
        self.stopping = true;
    }

    /// Makes the generator use the held node ids, instead of any earlier plan.
    fn replace(&mut self) {
        if !self.opened {
            self.queue_releases(layout::EPOCH); // never stamped
            return;
        }
        self.actions.clear();
        if let Some((node_ids, lease)) = self.term() {
            self.actions.push_back(Step::Replace { node_ids, lease });
        }
    }

    /// Releases node ids that were never used in a stamp.
    fn release_unused(&mut self, rows: &[HeldNode]) {
        for &HeldNode { token, lease } in rows {
            let NodeLease { node_id, start, end_exclusive } = lease;
            let release = Release { token, node_ids: vec![node_id], used_until: start };
            self.releases.push_back((release, end_exclusive));
        }
    }

    /// Queues the releases of node ids that the generator no longer uses.
    pub(super) fn queue_releases(&mut self, used_until: i64) {
        for row in mem::take(&mut self.pending_release) {
            let NodeLease { node_id, end_exclusive, .. } = row.lease;
            let same = |release: &&mut (Release, i64)| {
                release.0.token == row.token && release.0.used_until == used_until
            };
            if let Some((release, end)) = self.releases.iter_mut().find(same) {
                release.node_ids.push(node_id);
                *end = end_exclusive.max(*end);
            } else {
                let release = Release { token: row.token, node_ids: vec![node_id], used_until };
                self.releases.push_back((release, end_exclusive));
            }
        }
    }
}
