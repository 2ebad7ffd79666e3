//! The device bound: cutting stock over GPU shares alone.
//!
//! Every GPU is a roll of 1000 milli, every share a piece. The linear relaxation over all ways to
//! cut a roll (Gilmore and Gomory, "A linear programming approach to the cutting-stock problem",
//! Operations Research 9,
//! 1961) needs at most as many rolls as any packing. Solved here from the dual side: prices of
//!       pieces such that no roll is worth more than 1, found by cutting planes; the pricing
//!       problem is an exact knapsack.

use std::collections::BTreeMap;

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

use crate::certificate::{Prefix, affordable_prefix};
use crate::input::DEVICE_MILLI;
use crate::knapsack::{dearest_filling, greatest_common_divisor};
use crate::world::PackingProblem;

/// The longest prefix whose device shares the cutting-stock relaxation packs into the cluster's
/// GPUs.
pub(crate) fn device_prefix(world: &PackingProblem, stock: &mut CuttingStock) -> Prefix {
    let mut pods = world.arrivals.len();
    loop {
        let (prices, complete) = stock.prices(&stock.pieces(world, pods));
        let budget = prices.roll * i128::from(world.gpus);
        let longest =
            affordable_prefix(&world.arrivals[..pods], &stock.pod_prices(world, &prices), budget);
        if longest == pods {
            return Prefix { pods, tight: complete };
        }
        pods = longest;
    }
}

/// Integer prices that no roll exceeds: `roll` is exactly the worth of the dearest one.
pub(crate) struct Prices {
    pub(crate) piece: Vec<i128>,
    pub(crate) roll: i128,
}

/// The piece sizes of a world and the ways to cut a roll met so far.
pub(crate) struct CuttingStock {
    /// Distinct shares in milli, ascending, and as units of their greatest common divisor.
    milli: Vec<i64>,
    size: Vec<usize>,
    capacity: usize,
    pub(crate) patterns: Vec<Vec<u32>>,
}

impl CuttingStock {
    pub(crate) fn new(world: &PackingProblem) -> Self {
        let counts: BTreeMap<i64, ()> = world
            .shapes
            .iter()
            .filter(|shape| shape.gpu_count > 0)
            .map(|shape| (shape.gpu_milli, ()))
            .collect();
        let milli: Vec<i64> = counts.into_keys().collect();
        let unit = milli.iter().copied().fold(0, greatest_common_divisor).max(1);
        let size: Vec<usize> = milli.iter().map(|&share| (share / unit) as usize).collect();
        let capacity = (DEVICE_MILLI / unit) as usize;
        let patterns = (0..size.len())
            .map(|item| {
                let mut pattern = vec![0; size.len()];
                pattern[item] = (capacity / size[item]) as u32;
                pattern
            })
            .collect();
        Self { milli, size, capacity, patterns }
    }

    /// Which piece size a share is; `None` for no share.
    pub(crate) fn piece_of(&self, share_milli: i64) -> Option<usize> {
        self.milli.binary_search(&share_milli).ok()
    }

    pub(crate) fn piece_sizes(&self) -> usize {
        self.size.len()
    }

    /// The worth of the dearest way to cut a roll, exact, and that way.
    pub(crate) fn dearest_roll(&self, piece: &[i128]) -> (i128, Vec<u32>) {
        dearest_filling(self.capacity, &self.size, piece)
    }

    /// Pieces of each size that the first `pods` arrivals ask for.
    fn pieces(&self, world: &PackingProblem, pods: usize) -> Vec<i64> {
        let mut pieces = vec![0; self.milli.len()];
        for (shape, count) in world.shapes.iter().zip(world.demand(pods)) {
            if let Some(piece) = self.piece_of(shape.gpu_milli) {
                pieces[piece] += count * i64::from(shape.gpu_count);
            }
        }
        pieces
    }

    fn pod_prices(&self, world: &PackingProblem, prices: &Prices) -> Vec<Option<i128>> {
        let price_of = |share| self.piece_of(share).map_or(0, |piece| prices.piece[piece]);
        world
            .shapes
            .iter()
            .map(|shape| Some(price_of(shape.gpu_milli) * i128::from(shape.gpu_count)))
            .collect()
    }

    /// Prices that make the given pieces as dear as possible, and whether they are proven dearest.
    ///
    /// Whatever the solver does, the prices are valid: `roll` is recomputed exactly. Without any
    /// answer from it they are the sizes, which is the bound by volume.
    fn prices(&mut self, pieces: &[i64]) -> (Prices, bool) {
        let volume = self.size.iter().map(|&size| size as i128).collect();
        let mut best = Prices { piece: volume, roll: self.capacity as i128 };
        let mut worth = relative_worth(pieces, &best);
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let variables: Vec<Variable> =
            pieces.iter().map(|&count| problem.add_var(count as f64, (0.0, 1.0))).collect();
        for pattern in &self.patterns {
            problem.add_constraint(terms(&variables, pattern), ComparisonOp::Le, 1.0);
        }
        let mut outcome = problem.solve();
        while let Some(solution) = outcome.ok().and_then(|outcome| outcome.into_solution().ok()) {
            let piece: Vec<i128> =
                variables.iter().map(|&variable| to_price(solution.var_value(variable))).collect();
            let (roll, pattern) = self.dearest_roll(&piece);
            let excess = roll - PRICE_ONE;
            let prices = Prices { piece, roll: roll.max(1) };
            let value = relative_worth(pieces, &prices);
            if value > worth {
                (best, worth) = (prices, value);
            }
            if excess <= PRICE_TOLERANCE || self.patterns.contains(&pattern) {
                return (best, excess <= PRICE_TOLERANCE);
            }
            outcome = solution.add_constraint(terms(&variables, &pattern), ComparisonOp::Le, 1.0);
            self.patterns.push(pattern);
        }
        (best, false)
    }
}

/// A price of 1 in integers.
const PRICE_ONE: i128 = 1 << 40;
/// A roll worth at most 1 + 1e-9 ends the search: the bound differs from the optimum by less than a
/// thousandth of a GPU in a cluster of a million.
const PRICE_TOLERANCE: i128 = PRICE_ONE / 1_000_000_000;

fn to_price(value: f64) -> i128 {
    (value.clamp(0.0, 1.0) * PRICE_ONE as f64) as i128
}

/// Rolls needed at these prices; only compares candidates, so that floating point is enough.
fn relative_worth(pieces: &[i64], prices: &Prices) -> f64 {
    let total: f64 =
        pieces.iter().zip(&prices.piece).map(|(&count, &price)| count as f64 * price as f64).sum();
    total / prices.roll as f64
}

pub(crate) fn terms(variables: &[Variable], pattern: &[u32]) -> Vec<(Variable, f64)> {
    let used = variables.iter().zip(pattern).filter(|(_, count)| **count > 0);
    used.map(|(&variable, &count)| (variable, f64::from(count))).collect()
}
