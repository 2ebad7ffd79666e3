//! Whether GPUs are of more use to jobs that wait than to those that hold them.
//!
//! The *rate* of jobs is how many of them are expected to end per time: each counts one for the run
//! time that its standing expects. A job may take the place of others if the rate of those that
//! then run is so much greater than the rate of those that give way. GPUs that nobody uses have no
//! rate, so a job that needs few GPUs of others beside free ones needs little to be worth it; and
//! one that takes more than it asks for is worth that only with others that use the rest.

use std::sync::Arc;

/// The rate of one GPU-thousandth that ends a job of a GPU-ms.
const UNIT: u128 = 1_000_000_000_000_000;

/// How many jobs end per time, where so many GPUs are held for so much expected GPU time (the
/// standing without its age term, in GPU-ms).
pub(crate) fn rate(gpu_milli: u64, size: u64) -> u128 {
    // A job without GPUs counts as a thousandth of one, as in its standing.
    u128::from(gpu_milli.max(1)) * UNIT / u128::from(size.max(1))
}

/// What some give way with: their GPUs in thousandths, and their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub gpu_milli: u64,
    pub rate: u128,
}

impl Given {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            gpu_milli: self.gpu_milli.saturating_add(other.gpu_milli),
            rate: self.rate.saturating_add(other.rate),
        }
    }
}

/// A job that waits and asks who makes place for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    pub standing: u64,
    pub submit_ms: u64,
    pub gpu_milli: u64,
    beside: Beside,
}

/// Those behind a job that would use what it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Beside {
    /// Nothing is known of them but that each GPU-thousandth has at most the rate of this size.
    AtMost(u64),
    /// The GPUs and the rate of the first, of the first two, and so on.
    Known(Arc<[Given]>),
}

impl Claimant {
    /// Of more jobs than this it is not looked who would use what another leaves.
    pub const MOST_BESIDE: usize = 64;

    /// A job of this standing, submitted then, before others that nobody looked at: of none of them
    /// less GPU time is expected than `least`. What it gains is no less than with the others known,
    /// so whatever is not worth it then is not at all.
    pub fn before_any((standing, submit_ms): (u64, u64), gpu_milli: u64, least: u64) -> Self {
        Self { standing, submit_ms, gpu_milli, beside: Beside::AtMost(least) }
    }

    /// A job of this standing, submitted then, before others with so many GPUs and so much expected
    /// GPU time, the first in turn first; [`Self::MOST_BESIDE`] of them count.
    pub fn new(
        (standing, submit_ms): (u64, u64),
        gpu_milli: u64,
        others: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let sum = |sum: &mut Given, (gpu_milli, size): (u64, u64)| {
            *sum = sum.and(Given { gpu_milli, rate: rate(gpu_milli, size) });
            Some(*sum)
        };
        let beside = others.take(Self::MOST_BESIDE).scan(Given::default(), sum).collect();
        Self { standing, submit_ms, gpu_milli, beside: Beside::Known(beside) }
    }

    /// The rate of those that run on GPUs that others gave: of the part of the job that asks for so
    /// many of them, if all of it runs, and of those that use the rest.
    pub(crate) fn gains(&self, size: u64, part_milli: u64, given_milli: u64) -> u128 {
        let own = rate(self.gpu_milli, size);
        let own = own * u128::from(part_milli.max(1)) / u128::from(self.gpu_milli.max(1));
        let rest_milli = given_milli.saturating_sub(part_milli);
        own + self.of_rest(rest_milli)
    }

    /// The rate of those behind that use what is left.
    fn of_rest(&self, rest_milli: u64) -> u128 {
        match &self.beside {
            Beside::AtMost(least) => {
                // Jobs without GPUs count as a thousandth of one each, and only a job without any
                // leaves something to them.
                let without = if self.gpu_milli == 0 { Self::MOST_BESIDE as u64 } else { 0 };
                match rest_milli.saturating_add(without) {
                    0 => 0,
                    milli => rate(milli, *least),
                }
            }
            Beside::Known(sums) => {
                let count = sums.partition_point(|sum| sum.gpu_milli <= rest_milli);
                count.checked_sub(1).map_or(0, |last| sums[last].rate)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected GPU time, in GPU-ms, of which all rates here are whole numbers.
    const SIZE: u64 = 4_000_000;

    #[test]
    fn what_a_job_leaves_counts_as_far_as_others_use_it() {
        // Behind one GPU two jobs of one for twice as long, and one of four.
        let others = [(1_000, 2 * SIZE), (1_000, 2 * SIZE), (4_000, 4 * SIZE)];
        let claimant = Claimant::new((SIZE, 0), 1_000, others.into_iter());
        let once = rate(1_000, SIZE);
        let gains = |given_milli: u64| claimant.gains(SIZE, 1_000, given_milli);
        assert_eq!((gains(500), gains(1_000)), (once, once));
        assert_eq!((gains(2_000), gains(3_000)), (once * 3 / 2, once * 2));
        // Three of four GPUs are not of use to the last one.
        assert_eq!((gains(6_000), gains(7_000)), (once * 2, once * 3));
    }

    #[test]
    fn what_others_use_is_no_more_than_if_nobody_looked_at_them() {
        let others = [(1_000, 2 * SIZE), (3_000, 3 * SIZE), (1_000, SIZE)];
        let known = Claimant::new((SIZE, 0), 1_000, others.into_iter());
        let any = Claimant::before_any((SIZE, 0), 1_000, SIZE);
        for given_milli in [0, 500, 1_000, 1_500, 2_000, 5_000, 6_000, 20_000] {
            let gains = |claimant: &Claimant| claimant.gains(SIZE, 1_000, given_milli);
            assert!(gains(&known) <= gains(&any), "{given_milli}");
        }
        // Where nothing is left, both are what the job gains itself.
        assert_eq!(known.gains(SIZE, 1_000, 1_000), any.gains(SIZE, 1_000, 1_000));
        let without = Claimant::new((SIZE, 0), 0, [(0, SIZE); 2].into_iter());
        let any = Claimant::before_any((SIZE, 0), 0, SIZE);
        assert!(without.gains(SIZE, 0, 0) <= any.gains(SIZE, 0, 0));
    }

    #[test]
    fn a_gang_counts_by_part() {
        let claimant = Claimant::new((16 * SIZE, 0), 16_000, std::iter::empty());
        let whole = claimant.gains(16 * SIZE, 16_000, 16_000);
        assert_eq!(claimant.gains(16 * SIZE, 8_000, 8_000), whole / 2);
    }
}
