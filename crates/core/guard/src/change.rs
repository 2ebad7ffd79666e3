//! How much a quantile changed, and how sure that is.

use std::f64::consts::PI;

use crate::quantile::{Quantile, quantile};
use crate::shares::{Pair, Side};

/// Degrees of freedom of the error between blocks: so many slow waves are fitted to it.
pub(crate) const FREEDOM: usize = 8;

/// A change of the logarithm of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileChange {
    /// Relative change: 0.1 is 10% slower.
    pub estimate: f64,
    /// The change is at least this, with 99% confidence for the three quantiles together.
    pub low: f64,
    /// The change is at most this, with the same confidence.
    pub high: f64,
}

impl QuantileChange {
    /// A change out of the difference of logarithms, its standard error, and how many of them the
    /// bounds are away.
    pub(crate) fn of(log: f64, error: f64, errors: f64) -> Self {
        let [estimate, low, high] =
            [log, log - errors * error, log + errors * error].map(libm::expm1);
        Self { estimate, low, high }
    }
}

/// The change of the logarithm of quantile `p`, and its standard error; `None` where the buckets
/// are too coarse.
///
/// The error follows from the shares of the blocks (delta method): what a block adds to the change
/// is linear in its two shares, so the sum over blocks has the variance of its terms. Latency
/// drifts: a slow quarter of an hour is followed by another, and terms are alike. So the variance
/// of their sum is taken from their slowest waves (equal-weighted cosines; Lazarus, Lewis, Stock
/// and Watson, Journal of Business & Economic Statistics 36, 2018), with as many degrees of freedom
/// as waves.
/// The error is never below the one of independent requests.
pub(crate) fn log_change(p: f64, bounds: &[f64], pair: &Pair) -> Option<(f64, f64)> {
    let of = |side: &Side| quantile(p, bounds, &side.shares, side.requests);
    let (before, after) = (of(&pair.before)?, of(&pair.after)?);
    let terms: Vec<f64> = (0..pair.weights.len())
        .map(|block| {
            let after = deviation(&pair.after, after, block);
            pair.weights[block] * (after - deviation(&pair.before, before, block))
        })
        .collect();
    let independent = of_requests(&pair.before, before, &pair.weights)
        + of_requests(&pair.after, after, &pair.weights);
    let variance = of_blocks(&terms).max(independent);
    Some((after.log - before.log, libm::sqrt(variance)))
}

/// What the shares of a block would change the logarithm of a quantile by, if all had them.
fn deviation(side: &Side, quantile: Quantile, block: usize) -> f64 {
    let off = |bound: usize| side.by_block[block][bound] - side.shares[bound];
    quantile.by_lower * off(quantile.lower) + quantile.by_upper * off(quantile.lower + 1)
}

/// Variance of a sum of terms that follow each other in time.
fn of_blocks(terms: &[f64]) -> f64 {
    let count = terms.len() as f64;
    let wave = |number: usize| -> f64 {
        let phase = |block: usize| PI * number as f64 * (block as f64 + 0.5) / count;
        terms.iter().enumerate().map(|(block, term)| term * libm::cos(phase(block))).sum()
    };
    let powers = (1..=FREEDOM).map(|number| 2.0 * wave(number) * wave(number));
    powers.sum::<f64>() / FREEDOM as f64
}

/// Variance of the logarithm of a quantile if every request is independent of the others.
fn of_requests(side: &Side, quantile: Quantile, weights: &[f64]) -> f64 {
    let (low, high) = (side.shares[quantile.lower], side.shares[quantile.lower + 1]);
    // A request not slower than the lower bound is below both, one in the bucket below the upper.
    let (in_both, in_upper) = (quantile.by_lower + quantile.by_upper, quantile.by_upper);
    let mean = low * in_both + (high - low) * in_upper;
    let square = low * in_both * in_both + (high - low) * in_upper * in_upper;
    let each = (square - mean * mean).max(0.0);
    weights.iter().zip(&side.totals).map(|(weight, total)| weight * weight * each / total).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_follow_each_other_make_a_sum_less_sure() {
        let runs = |length: usize| -> Vec<f64> {
            (0..24_usize).map(|i| if (i / length).is_multiple_of(2) { 1.0 } else { -1.0 }).collect()
        };
        // Independent terms of size 1 would have the variance 24.
        assert!(of_blocks(&runs(1)) < 12.0);
        assert!(of_blocks(&runs(6)) > 48.0);
    }
}
