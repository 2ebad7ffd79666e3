//! The shares of requests below each bound, over the blocks that both windows have.
//!
//! A block weighs the same in both windows, so requests that move to other hours change nothing:
//! the weight `m·n/(m+n)` of Mantel and Haenszel (1959) is the best one for two counts `m`, `n`.

use crate::window::{TimeBlock, Window};

/// One of two windows, block by block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    /// Share of requests not slower than each bound, by block.
    pub(crate) by_block: Vec<Vec<f64>>,
    /// The same over all blocks.
    pub(crate) shares: Vec<f64>,
    /// Requests of each block.
    pub(crate) totals: Vec<f64>,
    pub(crate) requests: f64,
}

/// Two windows, with the blocks in which both have requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Weight of each block; they sum to 1.
    pub(crate) weights: Vec<f64>,
    pub(crate) before: Side,
    pub(crate) after: Side,
}

impl Pair {
    /// `None` if there is no block in which both have requests.
    pub(crate) fn of(before: &Window, after: &Window) -> Option<Self> {
        let both = before.blocks().iter().zip(after.blocks());
        let both: Vec<(&TimeBlock, &TimeBlock)> = both
            .filter_map(|(before, after)| before.as_ref().zip(after.as_ref()))
            .filter(|(before, after)| before.total > 0.0 && after.total > 0.0)
            .collect();
        let weight = |(m, n): &(&TimeBlock, &TimeBlock)| m.total * n.total / (m.total + n.total);
        let sum: f64 = both.iter().map(weight).sum();
        if both.is_empty() || sum <= 0.0 {
            return None;
        }
        let weights: Vec<f64> = both.iter().map(|pair| weight(pair) / sum).collect();
        let before = Side::of(both.iter().map(|pair| pair.0), &weights);
        let after = Side::of(both.iter().map(|pair| pair.1), &weights);
        Some(Self { weights, before, after })
    }
}

impl Side {
    fn of<'b>(blocks: impl Iterator<Item = &'b TimeBlock>, weights: &[f64]) -> Self {
        let (mut by_block, mut totals) = (Vec::new(), Vec::new());
        for block in blocks {
            totals.push(block.total);
            by_block.push(block.below.iter().map(|count| count / block.total).collect());
        }
        let bounds = by_block.first().map_or(0, Vec::len);
        let share = |bound: usize| {
            let blocks = by_block.iter().zip(weights);
            blocks.map(|(shares, weight): (&Vec<f64>, &f64)| shares[bound] * weight).sum()
        };
        let shares = (0..bounds).map(share).collect();
        let requests = totals.iter().sum();
        Self { by_block, shares, totals, requests }
    }
}
