//! Run times: a log-normal body up to the 90th percentile, a Pareto tail above it.
//!
//! The three published quantiles p50, p90, p99 fix everything: the body has median p50 and meets
//! p90; the tail starts at p90 with the exponent that meets p99. The tail ends at 30 days, the
//! order of the longest jobs seen (18 days in ITP, 54 in Philly).

use super::random::Random;

const LONGEST_S: f64 = 30.0 * 86_400.0;
/// 90th percentile of the standard normal distribution.
const NORMAL_P90: f64 = 1.281_551_565_544_600_4;

/// Quantiles of a published sample, in s, and what the sample was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunTime {
    pub(super) p50_s: f64,
    pub(super) p90_s: f64,
    pub(super) p99_s: f64,
    /// True when the sample holds successful jobs alone, so that jobs which fail run shorter.
    pub(super) of_successful_jobs: bool,
}

impl RunTime {
    fn sigma(&self) -> f64 {
        libm::log(self.p90_s / self.p50_s) / NORMAL_P90
    }

    /// Exponent of the tail: Q(0.99) = p90 * 10^(1/alpha).
    fn alpha(&self) -> f64 {
        libm::log(10.0) / libm::log(self.p99_s / self.p90_s)
    }

    /// One run time, in s.
    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        let normal = random.normal();
        if normal <= NORMAL_P90 {
            return self.p50_s * libm::exp(self.sigma() * normal);
        }
        let tail = self.p90_s * libm::pow(random.uniform(), -1.0 / self.alpha());
        tail.min(LONGEST_S)
    }

    /// Probability that a run time is at most `seconds`.
    pub(super) fn probability_up_to(&self, seconds: f64) -> f64 {
        if seconds >= LONGEST_S {
            1.0
        } else if seconds > self.p90_s {
            1.0 - 0.1 * libm::pow(self.p90_s / seconds, self.alpha())
        } else if seconds > 0.0 {
            normal_probability(libm::log(seconds / self.p50_s) / self.sigma())
        } else {
            0.0
        }
    }

    /// Mean of the k-th power, in s^k.
    pub(super) fn moment(&self, k: i32) -> f64 {
        let k = f64::from(k);
        let (sigma, alpha) = (self.sigma(), self.alpha());
        // Of a log-normal cut at its 90th percentile.
        let body = libm::pow(self.p50_s, k)
            * libm::exp(k * k * sigma * sigma / 2.0)
            * normal_probability(NORMAL_P90 - k * sigma);
        // Of min(Pareto, longest): integral up to the end, and the rest of the mass at the end.
        let reach = libm::pow(LONGEST_S / self.p90_s, k - alpha);
        let tail = libm::pow(self.p90_s, k) * (alpha - k * reach) / (alpha - k);
        body + 0.1 * tail
    }
}

/// Distribution function of the standard normal.
fn normal_probability(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_met_and_moments_agree_with_summation() {
        let fits = [
            (3446.0, 14_173.0, 90_357.0),
            (539.0, 9235.0, 77_910.0),
            (352.0, 59_901.0, 275_690.0),
            (758.0, 6030.0, 243_803.0),
        ];
        for (p50_s, p90_s, p99_s) in fits {
            let fit = RunTime { p50_s, p90_s, p99_s, of_successful_jobs: true };
            for (seconds, probability) in [(p50_s, 0.5), (p90_s, 0.9), (p99_s, 0.99)] {
                assert!((fit.probability_up_to(seconds) - probability).abs() < 1e-9);
            }
            // E[X^k] = integral of k x^(k-1) P(X > x), summed on a logarithmic grid.
            for k in [1, 2] {
                let step: f64 = 1e-4;
                let points = ((LONGEST_S / 1e-3).ln() / step) as i64;
                let sum: f64 = (0..points)
                    .map(|i| 1e-3 * (step * (i as f64 + 0.5)).exp())
                    .map(|x| f64::from(k) * x.powi(k) * (1.0 - fit.probability_up_to(x)) * step)
                    .sum();
                assert!((fit.moment(k) / sum - 1.0).abs() < 1e-3, "{k}: {} {sum}", fit.moment(k));
            }
        }
    }
}
