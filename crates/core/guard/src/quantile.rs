//! A quantile out of the shares of requests below some bounds.

use crate::normal;

/// Requests that must lie beyond a bound before its share says anything.
const LEAST_BEYOND: f64 = 5.0;

/// A quantile and how it follows the shares at the bounds of its bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantile {
    /// Its natural logarithm.
    pub(crate) log: f64,
    /// The lower bound of its bucket, by place; the upper one follows it.
    pub(crate) lower: usize,
    /// Growth of `log` with the share at the lower bound.
    pub(crate) by_lower: f64,
    /// The same at the upper bound.
    pub(crate) by_upper: f64,
}

/// The quantile `p` of `requests` requests. Between the bounds `a` and `b` of its bucket, with the
/// shares `F(a)` and `F(b)` below them, the normal quantile of the share is a straight line in
/// the logarithm of latency:
///
/// ```text
/// log q = log a + log(b/a) · (z(p) − z(F(a))) / (z(F(b)) − z(F(a)))
/// ```
///
/// which is exact for a log-normal distribution. The line that Prometheus' `histogram_quantile`
/// draws in the share and the latency themselves is not enough here: with vLLM's buckets it reports
/// anything from 3% to 28% for log-normal latency (spread 0.8) that grew by 10%.
///
/// `None` if a bound of the bucket is missing, or fewer than five requests lie beyond it: where the
/// quantile is in the bucket is unknown then.
pub(crate) fn quantile(p: f64, bounds: &[f64], shares: &[f64], requests: f64) -> Option<Quantile> {
    let upper = shares.iter().position(|share| *share > p)?;
    let lower = upper.checked_sub(1)?;
    let (low, high) = (shares[lower], shares[upper]);
    if low * requests < LEAST_BEYOND || (1.0 - high) * requests < LEAST_BEYOND {
        return None;
    }
    let [z_low, z_high, z] = [low, high, p].map(normal::quantile);
    let (width, span) = (libm::log(bounds[upper] / bounds[lower]), z_high - z_low);
    let log = libm::log(bounds[lower]) + width * (z - z_low) / span;
    let by_lower = -width * (z_high - z) / (span * span * normal::density(z_low));
    let by_upper = -width * (z - z_low) / (span * span * normal::density(z_high));
    Some(Quantile { log, lower, by_lower, by_upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [f64; 4] = [2.5, 5.0, 10.0, 20.0];

    fn shares(median: f64, spread: f64) -> Vec<f64> {
        let share = |bound: &f64| {
            let z = libm::log(bound / median) / spread;
            0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
        };
        BOUNDS.iter().map(share).collect()
    }

    #[test]
    fn the_quantile_of_a_log_normal_latency_is_exact_and_its_growth_that_of_differences() {
        let spread = 0.7;
        let shares = shares(6.0, spread);
        for (p, z) in [(0.5, 0.0), (0.95, 1.644_853_6)] {
            let found = quantile(p, &BOUNDS, &shares, 1e4).expect("a quantile");
            assert!((found.log - (libm::log(6.0) + z * spread)).abs() < 1e-6, "{p}");
            let grown = |place: usize| {
                let mut moved = shares.clone();
                moved[place] += 1e-6;
                let moved = quantile(p, &BOUNDS, &moved, 1e4).expect("a quantile");
                (moved.log - found.log) / 1e-6
            };
            assert!((grown(found.lower) / found.by_lower - 1.0).abs() < 1e-3, "{p}");
            assert!((grown(found.lower + 1) / found.by_upper - 1.0).abs() < 1e-3, "{p}");
        }
    }

    #[test]
    fn a_quantile_beyond_what_was_measured_is_unknown() {
        let at = |shares: &[f64]| quantile(0.5, &BOUNDS, shares, 1_000.0);
        assert!(at(&[0.1, 0.8, 1.0, 1.0]).is_some());
        // In the first bucket, in the last one, and in one that has all requests.
        for shares in [[0.6, 0.8, 0.9, 1.0], [0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 1.0, 1.0]] {
            assert_eq!(at(&shares), None, "{shares:?}");
        }
    }
}
