//! What is reported about a lease.

use randflake::{Clock, Format, Generator, Lease};

use super::{LeaseStatus, shared::SharedState, source::LeaseSource};
use crate::keeper::Reading;

/// The status that was reported last: what has changed since then is reported next. `None` if the generator was
/// closed before it was kept.
pub(super) struct LastReported(pub(super) Option<LeaseStatus>);

impl LastReported {
    /// Returns the status if its state or its node ids have changed. What the keeper is in the middle of
    /// changing is reported when it is done.
    pub(super) fn changed<F: Format, C: Clock>(
        &mut self,
        state: &SharedState,
        generator: &Generator<F, C>,
        source: &LeaseSource,
        now: Reading,
    ) -> Option<&LeaseStatus> {
        let keeper = state.keeper.as_ref().filter(|keeper| keeper.is_settled())?;
        let reported = self.0.as_mut()?;
        let status = source.status(keeper, generator, now)?;
        if (reported.state, &reported.node_ids) == (status.state, &status.node_ids) {
            return None;
        }
        *reported = status.after(reported);
        Some(reported)
    }

    /// Returns the last status, after which nothing keeps the lease any more.
    pub(super) fn ended<F: Format, C: Clock>(
        self,
        state: &SharedState,
        generator: &Generator<F, C>,
        source: &LeaseSource,
        now: Reading,
    ) -> Option<LeaseStatus> {
        let (keeper, reported) = (state.keeper.as_ref()?, self.0?);
        if let Some(open) = source.status(keeper, generator, now) {
            return Some(open.given_up());
        }
        // It was closed, so it has no node ids any more.
        let lease = Lease::new(reported.start, reported.end_exclusive).ok()?;
        Some(source.status_of(keeper, reported.node_ids, lease, now, None))
    }
}
