//! The clocks of machines, and how wrong they are.

use super::*;

impl<F: Ids> World<F> {
    pub(super) fn skew(&self) -> i64 {
        i64::from(self.namespace.limits().max_skew) * SECOND
    }

    /// Returns the error of a clock that is within the skew of every other clock.
    pub(super) fn tame_offset(&mut self) -> i64 {
        let most = self.skew() / 2;
        match self.random.below(4) {
            0 => most,
            1 => -most,
            2 => 0,
            _ => self.random.between(-most, most),
        }
    }

    pub(super) fn wild_offset(&mut self) -> i64 {
        let ttl = i64::from(self.scenario.options.ttl) * SECOND;
        match self.random.below(5) {
            0 => self.random.between(-3 * SECOND, 3 * SECOND),
            1 => self.random.pick(&[-3600, 3600, -86_400, 86_400]) * SECOND,
            _ => self.random.between(-2 * ttl, 2 * ttl),
        }
    }

    pub(super) fn note_wrong_clocks(&mut self) {
        let (now, most) = (self.now, self.skew() / 2);
        for machine in &mut self.machines {
            if machine.offset(now).abs() > most {
                machine.wrong_until = now;
            }
        }
    }
}
