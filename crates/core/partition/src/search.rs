//! Branch and bound over single GPUs: which column each gets.
//!
//! GPUs come one after another; a partial choice is given up when its value, plus what the rest
//! could earn at the prices of the relaxation, is not more than the best known. Steps are counted:
//! at their end the best choice found counts.

use crate::problem::Problem;
use crate::relaxation::surplus;
use crate::serving::{KindsOfPools, ServedDemand, UnservedPods};

/// Prices, and what follows from them for every column and kind.
pub(crate) struct ColumnPrices {
    /// Of each class, its columns by what they earn, the best first.
    pub(crate) columns: Vec<Vec<(i128, usize)>>,
    /// What one pod of each kind is worth beyond its price.
    pub(crate) surplus: Vec<i128>,
}

impl ColumnPrices {
    pub(crate) fn of(problem: &Problem, prices: &[i128]) -> Self {
        let sorted = |class: &crate::problem::GpuClass| {
            let all = (0..class.columns.len())
                .map(|column| (problem.priced(class, column, prices), column));
            let mut all: Vec<(i128, usize)> = all.collect();
            all.sort_by_key(|(priced, column)| (-priced, *column));
            all
        };
        Self {
            columns: problem.classes.iter().map(sorted).collect(),
            surplus: problem.kinds.iter().map(|kind| surplus(problem, kind, prices)).collect(),
        }
    }
}

/// Which column each GPU of a choice gets, by its rank, and which pods it serves.
pub(crate) type Chosen = Vec<(usize, ServedDemand)>;

pub(crate) struct Search<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) priced: &'p ColumnPrices,
    pub(crate) kinds: &'p KindsOfPools,
    /// Classes of the GPUs to decide, equal ones beside each other.
    pub(crate) gpus: Vec<usize>,
    pub(crate) waiting: UnservedPods,
    pub(crate) steps: u64,
    /// A choice must be worth more than this.
    pub(crate) best: i128,
    pub(crate) found: Option<Chosen>,
    pub(crate) chosen: Chosen,
    /// Ways to serve pods were left out.
    pub(crate) has_skipped: bool,
}

impl Search<'_> {
    /// Searches for a choice that is worth more than `best`; true if all were considered.
    pub(crate) fn run(&mut self) -> bool {
        let supply: i128 = self.gpus.iter().map(|class| self.priced.columns[*class][0].0).sum();
        let demand = self.waiting.left.iter().zip(&self.priced.surplus);
        let demand: i128 = demand.map(|(left, surplus)| i128::from(*left) * surplus).sum();
        self.next(0, 0, supply + demand) && !self.has_skipped
    }

    /// Decides the GPU at `place`; `bound` is what this choice and the rest can be worth at most.
    /// False if no step is left.
    fn next(&mut self, place: usize, worth: i128, bound: i128) -> bool {
        if place == self.gpus.len() {
            // What nobody serves earns nothing: the worth is exact here.
            if worth > self.best {
                self.best = worth;
                self.found = Some(self.chosen.clone());
            }
            return true;
        }
        let class = self.gpus[place];
        let problem = self.problem;
        let of_class = &problem.classes[class];
        let columns = &self.priced.columns[class];
        let is_like_last = place > 0 && self.gpus[place - 1] == class;
        let first = if is_like_last { self.chosen[place - 1].0 } else { 0 };
        let most = columns[0].0;
        for (rank, (priced, column)) in columns.iter().enumerate().skip(first) {
            if bound - (most - priced) <= self.best {
                break;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let (pool, pods) = (&self.kinds[of_class.pool], &of_class.columns[*column].served);
            let ways = self.waiting.ways(pool, &problem.kinds, &self.priced.surplus, pods);
            self.steps = self.steps.saturating_sub(ways.more_steps);
            self.has_skipped |= !ways.is_all;
            for served in ways.served {
                let own = of_class.low[*column] + served.value;
                // Pods that pay less than the price, or more than they could have elsewhere, lower
                // it.
                let bound = bound - most - served.surplus + own;
                if bound <= self.best {
                    continue;
                }
                self.waiting.take(&served);
                self.chosen.push((rank, served));
                let goes_on = self.next(place + 1, worth + own, bound);
                let (_, served) = self.chosen.pop().expect("it was pushed");
                self.waiting.give_back(&served);
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }
}
