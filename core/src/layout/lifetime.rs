//! The end of a layout's lifetime.

use std::time::Duration;

use super::Layout;
use crate::{Clock, Error, ErrorKind, SystemClock, clock};

/// A layout that ends sooner than this causes a warning: two years.
const WARNING_MS: i64 = 2 * 365 * 86_400_000;

impl Layout {
    /// Returns the first unix millisecond that no id can carry. A generator never wraps there: it
    /// refuses with [`LifetimeOver`](ErrorKind::LifetimeOver).
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::baidu().ends_at(), 1732109056000); // 2024-11-20T13:24:16Z
    /// ```
    #[must_use]
    pub const fn ends_at(&self) -> i64 {
        self.unix_ms_of(self.lifetime())
    }

    /// Returns the unix millisecond from which ids are negative in a signed 64-bit column, and so sort
    /// before all others there. `None` if they never are, or if a field other than the time decides
    /// it.
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert_eq!(Layout::simpleflake().negative_from(), Some(2046214427776)); // in 2034
    /// assert_eq!(Layout::twitter().negative_from(), None);
    /// ```
    #[must_use]
    pub const fn negative_from(&self) -> Option<i64> {
        if self.is_unsigned() && self.time.shift + self.time.bits == 64 {
            Some(self.unix_ms_of(1 << (self.time.bits - 1)))
        } else {
            None
        }
    }

    /// Returns how much time the layout has left after a unix millisecond; zero once it has ended.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use randflake::Layout;
    /// let twitter = Layout::twitter();
    /// assert_eq!(twitter.remaining_at(twitter.ends_at() - 1500), Duration::from_millis(1500));
    /// assert_eq!(twitter.remaining_at(i64::MAX), Duration::ZERO);
    /// ```
    #[must_use]
    pub const fn remaining_at(&self, unix_ms: i64) -> Duration {
        let left = self.ends_at().saturating_sub(unix_ms);
        Duration::from_millis(if left > 0 { left.unsigned_abs() } else { 0 })
    }

    /// Returns how much time the layout has left on the machine's clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use randflake::Layout;
    /// assert_eq!(Layout::baidu().remaining(), Duration::ZERO);
    /// assert!(Layout::sonyflake2().remaining() > Duration::ZERO);
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining_at(system_ms())
    }

    /// Returns a warning if the layout ends within two years of a unix millisecond. Show it when a
    /// generator is made.
    ///
    /// ```
    /// # use randflake::Layout;
    /// let baidu = Layout::baidu();
    /// assert_eq!(baidu.warning_at(1600000000000), None); // in 2020
    /// let warning = baidu.warning_at(1700000000000).unwrap(); // in 2023
    /// assert!(warning.contains("2024-11-20T13:24:16Z"));
    /// ```
    #[must_use]
    pub fn warning_at(&self, unix_ms: i64) -> Option<String> {
        let ends_at = self.ends_at();
        (ends_at.saturating_sub(unix_ms) < WARNING_MS).then(|| {
            format!(
                "the layout {} ends at {}: {} days are left; switch to another layout before then",
                self.name,
                clock::utc(ends_at),
                self.remaining_at(unix_ms).as_secs() / 86_400
            )
        })
    }

    /// Returns the warning by the machine's clock; see [`warning_at`](Self::warning_at).
    ///
    /// ```
    /// # use randflake::Layout;
    /// assert!(Layout::baidu().warning().is_some());
    /// assert_eq!(Layout::sonyflake2().warning(), None);
    /// ```
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.warning_at(system_ms())
    }
}

/// Makes the error of a layout that has no time [left](Layout::remaining).
#[cold]
#[must_use]
pub fn lifetime_over(layout: &Layout) -> Error {
    let end = layout.ends_at();
    Error::new(
        ErrorKind::LifetimeOver,
        format!(
            "{} (unix second {}) is the first time that ids of the layout {} cannot carry; \
             new ids need a layout with a later epoch or more bits for the time",
            clock::utc(end),
            clock::seconds(end),
            layout.name
        ),
    )
}

fn system_ms() -> i64 {
    SystemClock.now().map_or(i64::MAX, clock::to_ms) // it does not fail
}
