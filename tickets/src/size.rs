//! How many numbers to draw at once: as many as last for a while, and no more than a kill may lose.

use std::time::Duration;

/// Two measurements closer together than this say little about a rate.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// The largest block, as a multiple of what was handed out since the second-to-last draw: a short
/// burst at the start is no rate.
const GROWTH: u64 = 8;

/// The bounds of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Sizes {
    /// For how long two blocks should last.
    pub(super) reserve: Duration,
    pub(super) min_block: u64,
    /// How many numbers a process may hold at once.
    pub(super) max_block: u64,
}

/// What decides about the next block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// On a clock that only rises. It decides about sizes alone.
    pub(super) now: Duration,
    /// How many numbers this process has handed out.
    pub(super) handed_out: u64,
    /// How many are left.
    pub(super) left: u64,
    /// How many a batch needs.
    pub(super) demand: u64,
    /// Calls had to wait for the last block.
    pub(super) starved: bool,
}

/// The last two decisions.
#[derive(Debug, Default)]
pub(super) struct History {
    /// When, and how many numbers were handed out by then.
    decisions: [Option<(Duration, u64)>; 2],
    last_block: u64,
}

impl Sizes {
    /// Returns after how many numbers of a block the next one is drawn.
    pub(super) fn lead(&self) -> u64 {
        self.min_block / 2
    }

    /// Returns the largest block that leaves room for another one.
    fn largest(&self) -> u64 {
        (self.max_block / 2).max(1)
    }

    /// Decides how many numbers to draw now; none while there is no room.
    pub(super) fn want(&self, need: Need, history: &mut History) -> Option<u64> {
        let room = self.max_block.saturating_sub(need.left);
        if room == 0 {
            return None;
        }
        let [before, last] = history.decisions;
        let since = before.or(last);
        let wanted = since.map_or(0, |(then, handed_out)| {
            let count = need.handed_out.saturating_sub(handed_out);
            let interval = need.now.saturating_sub(then).max(SHORTEST_INTERVAL);
            let half = self.reserve.as_nanos() / 2;
            let lasting = u128::from(count) * half / interval.as_nanos();
            let doubled = if need.starved { history.last_block.saturating_mul(2) } else { 0 };
            let lasting = u64::try_from(lasting).unwrap_or(u64::MAX).max(doubled);
            lasting.min(count.saturating_mul(GROWTH))
        });
        let want = wanted.clamp(self.min_block.min(self.largest()), self.largest());
        let want = want.max(need.demand.saturating_sub(need.left)).min(room);
        history.decisions = [last, Some((need.now, need.handed_out))];
        history.last_block = want;
        Some(want)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes =
        Sizes { reserve: Duration::from_secs(2), min_block: 10, max_block: 1_000_000 };

    /// Hands out so many numbers a second, and draws as the thread does. Returns the largest block,
    /// and the largest number of numbers that the process held.
    fn run(sizes: Sizes, per_second: u64, seconds: u64) -> (u64, u64) {
        let mut history = History::default();
        let (mut largest, mut most, mut left, mut handed_out) = (0, 0, 0, 0);
        let mut now = Duration::ZERO;
        let mut draw_at = 0;
        while now < Duration::from_secs(seconds) && handed_out < 20 * sizes.max_block.max(1000) {
            if left <= draw_at {
                let need = Need { now, handed_out, left, demand: 0, starved: left == 0 };
                if let Some(want) = sizes.want(need, &mut history) {
                    left += want;
                    draw_at = (want - sizes.lead().min(want / 2)).min(left);
                    largest = largest.max(want);
                    most = most.max(left);
                }
            }
            let step = (left - draw_at.min(left)).max(1).min(left);
            left -= step;
            handed_out += step;
            now += Duration::from_nanos(1_000_000_000 * step / per_second);
        }
        (largest, most)
    }

    #[test]
    fn a_slow_counter_draws_the_smallest_blocks() {
        for per_second in [1, 2, 5] {
            assert_eq!(run(SIZES, per_second, 1000), (10, 15), "{per_second} a second");
        }
    }

    #[test]
    fn a_block_lasts_for_half_of_the_reserve() {
        for per_second in [100, 5_000, 200_000] {
            let (largest, most) = run(SIZES, per_second, 100);
            let range = per_second * 9 / 10..=per_second * 11 / 10;
            assert!(range.contains(&largest), "{largest} at {per_second} a second");
            assert!(most <= per_second * 22 / 10, "{most} held at {per_second} a second");
        }
    }

    #[test]
    fn no_rate_brings_more_than_the_largest_number_that_a_kill_may_lose() {
        for max_block in [1, 2, 3, 9, 10, 11, 1000] {
            for per_second in [1, 1_000, 100_000_000] {
                let sizes = Sizes { max_block, min_block: 10.min(max_block), ..SIZES };
                let (_, most) = run(sizes, per_second, 10.min(1_000_000 / per_second + 1));
                assert!(most <= max_block, "{most} at {per_second} a second");
            }
        }
    }

    #[test]
    fn a_burst_at_the_start_draws_a_few_times_as_much_and_not_a_second_of_it() {
        let mut history = History::default();
        let need = |micros, handed_out, left| Need {
            now: Duration::from_micros(micros),
            handed_out,
            left,
            demand: 0,
            starved: false,
        };
        assert_eq!(SIZES.want(need(0, 0, 0), &mut history), Some(10));
        assert_eq!(SIZES.want(need(1, 5, 5), &mut history), Some(40));
        assert_eq!(SIZES.want(need(2, 15, 35), &mut history), Some(120));
    }

    #[test]
    fn calls_that_waited_bring_at_least_the_double() {
        let mut history = History::default();
        let need = |seconds, handed_out| Need {
            now: Duration::from_secs(seconds),
            handed_out,
            left: 0,
            demand: 0,
            starved: true,
        };
        // A store that takes longer to answer than the reserve lasts.
        let drawn: Vec<_> = [(0, 0), (10, 10), (20, 30), (30, 70), (40, 150)]
            .map(|(seconds, handed_out)| SIZES.want(need(seconds, handed_out), &mut history))
            .into();
        assert_eq!(drawn, [10, 20, 40, 80, 160].map(Some));
    }

    #[test]
    fn a_batch_brings_what_it_needs_as_far_as_there_is_room() {
        let sizes = Sizes { max_block: 1000, ..SIZES };
        for (demand, left, want) in [
            (1, 0, Some(10)),
            (700, 0, Some(700)),
            (5000, 0, Some(1000)),
            (700, 400, Some(300)),
            (900, 600, Some(300)),
            (1, 1000, None),
        ] {
            let need = Need { now: Duration::ZERO, handed_out: 0, left, demand, starved: true };
            assert_eq!(sizes.want(need, &mut History::default()), want, "{demand} with {left}");
        }
    }
}
