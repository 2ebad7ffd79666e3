//! Branch and bound over single GPUs: which column each gets.
//!
//! GPUs come one after another; a partial choice is given up when its value, plus what the rest
//! could earn at the prices of the relaxation, is not more than the best known. Steps are counted:
//! at their end the best choice found counts.

use crate::problem::{DemandKind, Problem};
use crate::relaxation::surplus;

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

/// Pods that still wait, and which of them a column would serve.
#[derive(Clone)]
pub(crate) struct UnservedPods {
    pub(crate) left: Vec<u32>,
}

/// What serving a column takes of the demand.
pub(crate) struct ServedDemand {
    pub(crate) value: i128,
    pub(crate) surplus: i128,
    /// Kind and count.
    pub(crate) of: Vec<(usize, u32)>,
}

impl UnservedPods {
    /// The pods of a column on a GPU: the most valuable that wait, of equal ones those with the
    /// fewest pools. `None` if fewer wait. `by_profile`: the kinds that may go to its pool.
    pub(crate) fn serve(
        &self,
        by_profile: &[Vec<usize>],
        kinds: &[DemandKind],
        surplus: &[i128],
        served: &[(usize, u8)],
    ) -> Option<ServedDemand> {
        let mut all = ServedDemand { value: 0, surplus: 0, of: Vec::new() };
        for (profile, count) in served {
            let mut missing = u32::from(*count);
            for kind in &by_profile[*profile] {
                if missing == 0 {
                    break;
                }
                let taken = missing.min(self.left[*kind]);
                if taken == 0 {
                    continue;
                }
                missing -= taken;
                all.value += kinds[*kind].value * i128::from(taken);
                all.surplus += surplus[*kind] * i128::from(taken);
                all.of.push((*kind, taken));
            }
            if missing > 0 {
                return None;
            }
        }
        Some(all)
    }

    pub(crate) fn take(&mut self, served: &ServedDemand) {
        served.of.iter().for_each(|(kind, count)| self.left[*kind] -= count);
    }

    pub(crate) fn give_back(&mut self, served: &ServedDemand) {
        served.of.iter().for_each(|(kind, count)| self.left[*kind] += count);
    }
}

/// By pool and profile the kinds that may go there, in the order in which they are served.
pub(crate) fn by_pool(problem: &Problem) -> Vec<Vec<Vec<usize>>> {
    let mut kinds: Vec<usize> = (0..problem.kinds.len()).collect();
    kinds
        .sort_by_key(|kind| (-problem.kinds[*kind].value, problem.kinds[*kind].pools.len(), *kind));
    let mut by_pool = vec![vec![Vec::new(); problem.profiles]; problem.pools];
    for number in kinds {
        let kind = &problem.kinds[number];
        kind.pools.iter().for_each(|pool| by_pool[*pool][kind.profile].push(number));
    }
    by_pool
}

pub(crate) struct Search<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) priced: &'p ColumnPrices,
    pub(crate) by_pool: &'p [Vec<Vec<usize>>],
    /// Classes of the GPUs to decide, equal ones beside each other.
    pub(crate) gpus: Vec<usize>,
    pub(crate) waiting: UnservedPods,
    pub(crate) steps: u64,
    /// A choice must be worth more than this.
    pub(crate) best: i128,
    pub(crate) found: Option<Vec<usize>>,
    pub(crate) chosen: Vec<usize>,
}

impl Search<'_> {
    /// Searches for a choice that is worth more than `best`; true if all were considered.
    pub(crate) fn run(&mut self) -> bool {
        let supply: i128 = self.gpus.iter().map(|class| self.priced.columns[*class][0].0).sum();
        let demand = self.waiting.left.iter().zip(&self.priced.surplus);
        let demand: i128 = demand.map(|(left, surplus)| i128::from(*left) * surplus).sum();
        self.next(0, 0, supply + demand)
    }

    /// Decides the GPU at `place`; `bound` is what this choice and the rest can be worth at most.
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
        let first = if is_like_last { self.chosen[place - 1] } else { 0 };
        let most = columns[0].0;
        for (rank, (priced, column)) in columns.iter().enumerate().skip(first) {
            if bound - (most - priced) <= self.best {
                break;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let (pool, pods) = (&self.by_pool[of_class.pool], &of_class.columns[*column].served);
            let served = self.waiting.serve(pool, &problem.kinds, &self.priced.surplus, pods);
            let Some(served) = served else { continue };
            let own = of_class.low[*column] + served.value;
            // Pods that pay less than the price, or more than they could have elsewhere, lower it.
            let bound = bound - most - served.surplus + own;
            if bound <= self.best {
                continue;
            }
            self.waiting.take(&served);
            self.chosen.push(rank);
            let is_complete = self.next(place + 1, worth + own, bound);
            self.chosen.pop();
            self.waiting.give_back(&served);
            if !is_complete {
                return false;
            }
        }
        true
    }
}
