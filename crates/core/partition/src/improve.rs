//! A choice of columns for every GPU: rounded from the linear program, then improved by deciding a
//! few GPUs at a time again, exactly.

use crate::problem::Problem;
use crate::relaxation::Relaxation;
use crate::search::{ColumnPrices, Search};
use crate::serving::{KindsOfPools, ServedDemand, UnservedPods, by_price, by_value, has_ways};

/// So many GPUs are decided at once by branch and bound over all of them.
const MOST_EXACT: usize = 8;

/// GPUs that are decided again together, and steps for it.
const TOGETHER: usize = 4;
const STEPS_TOGETHER: u64 = 3_000;

/// Steps in which the first whole choice is looked for.
const STEPS_OF_FIRST: u64 = 200_000;

/// Rounds over all GPUs without an improvement after which it ends.
const MOST_IDLE_ROUNDS: u32 = 3;

/// A column for each GPU.
pub(crate) struct Assignment {
    /// For each GPU that was decided: its class and its column.
    pub(crate) chosen: Vec<(usize, usize)>,
    /// For each of these, which kinds it serves and how many of each.
    pub(crate) served: Vec<Vec<(usize, u32)>>,
    pub(crate) steps: u64,
    /// Nothing is better.
    pub(crate) is_best: bool,
}

struct Slots<'p> {
    problem: &'p Problem,
    priced: &'p ColumnPrices,
    kinds: &'p KindsOfPools,
    /// Class of each GPU.
    classes: Vec<usize>,
    /// Rank of its column.
    ranks: Vec<usize>,
    served: Vec<ServedDemand>,
    waiting: UnservedPods,
    worth: i128,
    steps: u64,
}

pub(crate) fn assign(problem: &Problem, relaxation: &Relaxation, steps: u64) -> Assignment {
    let priced = ColumnPrices::of(problem, &relaxation.prices);
    // Of very many kinds and pools one order is enough, but no proof.
    let kinds = by_value(problem, relaxation.whole.is_some());
    let mut slots = Slots::new(problem, &priced, &kinds, steps);
    let gpus: usize = problem.classes.iter().map(|class| class.gpus.len()).sum();
    let is_complete = if gpus <= MOST_EXACT {
        let is_complete = slots.decide_rest(&vec![0; problem.classes.len()], steps);
        is_complete && relaxation.whole.is_some()
    } else {
        match &relaxation.whole {
            Some(whole) => {
                slots.round(whole, &kinds);
                if has_ways(&kinds) {
                    slots = slots.or_better(whole, &by_price(problem, &priced.surplus));
                }
            }
            None => slots.take_best(),
        }
        slots.improve(relaxation.bound);
        false
    };
    let column = |(class, rank): (&usize, &usize)| (*class, priced.columns[*class][*rank].1);
    Assignment {
        chosen: slots.classes.iter().zip(&slots.ranks).map(column).collect(),
        served: slots.served.into_iter().map(|served| served.of).collect(),
        steps: steps - slots.steps,
        is_best: is_complete || slots.worth >= relaxation.bound,
    }
}

impl<'p> Slots<'p> {
    fn new(
        problem: &'p Problem,
        priced: &'p ColumnPrices,
        kinds: &'p KindsOfPools,
        steps: u64,
    ) -> Self {
        Self {
            problem,
            priced,
            kinds,
            classes: Vec::new(),
            ranks: Vec::new(),
            served: Vec::new(),
            waiting: UnservedPods { left: problem.kinds.iter().map(|kind| kind.count).collect() },
            worth: 0,
            steps,
        }
    }

    fn search(&self, gpus: Vec<usize>, steps: u64, best: i128) -> Search<'_> {
        Search {
            problem: self.problem,
            priced: self.priced,
            kinds: self.kinds,
            gpus,
            waiting: self.waiting.clone(),
            steps,
            best,
            found: None,
            chosen: Vec::new(),
            has_skipped: false,
        }
    }

    /// What a GPU of a class serves by the column of this rank, of what waits, in this order.
    fn served(&self, class: usize, rank: usize, order: &KindsOfPools) -> Option<ServedDemand> {
        let of_class = &self.problem.classes[class];
        let column = self.priced.columns[class][rank].1;
        let (pool, pods) = (&order[of_class.pool], &of_class.columns[column].served);
        self.waiting.serve(pool, &self.problem.kinds, &self.priced.surplus, pods)
    }

    fn low(&self, class: usize, rank: usize) -> i128 {
        self.problem.classes[class].low[self.priced.columns[class][rank].1]
    }

    fn add(&mut self, class: usize, rank: usize, order: &KindsOfPools) -> bool {
        let Some(served) = self.served(class, rank, order) else { return false };
        self.put(class, rank, served);
        true
    }

    fn put(&mut self, class: usize, rank: usize, served: ServedDemand) {
        self.waiting.take(&served);
        self.worth += self.low(class, rank) + served.value;
        self.classes.push(class);
        self.ranks.push(rank);
        self.served.push(served);
    }

    /// Takes whole GPUs from the linear program, which serve pods in this order, and searches for
    /// the rest.
    fn round(&mut self, whole: &[Vec<(usize, usize)>], order: &KindsOfPools) {
        let mut decided = vec![0; self.problem.classes.len()];
        for (class, columns) in whole.iter().enumerate() {
            for (column, count) in columns {
                let ranked = self.priced.columns[class].iter();
                let rank = ranked.map(|(_, column)| column).position(|known| known == column);
                let rank = rank.expect("every column has a rank");
                for _ in 0..*count {
                    decided[class] += usize::from(self.add(class, rank, order));
                }
            }
        }
        self.decide_rest(&decided, STEPS_OF_FIRST);
    }

    /// This choice, or the one in which GPUs serve pods in another order, if that is worth more.
    fn or_better(mut self, whole: &[Vec<(usize, usize)>], order: &KindsOfPools) -> Self {
        let mut other = Self::new(self.problem, self.priced, self.kinds, self.steps);
        other.round(whole, order);
        self.steps = other.steps;
        if other.worth > self.worth { other } else { self }
    }

    /// Takes for one GPU after the other the column that is worth most with the pods that wait.
    fn take_best(&mut self) {
        let (problem, order) = (self.problem, self.kinds);
        for (class, of_class) in problem.classes.iter().enumerate() {
            for _ in &of_class.gpus {
                let worth = |rank: &usize| {
                    let served = self.served(class, *rank, order)?;
                    Some(self.low(class, *rank) + served.value)
                };
                // Of equal ones the first.
                let best = (0..of_class.columns.len()).rev().max_by_key(worth);
                if let Some(rank) = best {
                    self.add(class, rank, order);
                }
            }
        }
    }

    /// Decides the GPUs of every class that are not decided yet; true if nothing is better.
    fn decide_rest(&mut self, decided: &[usize], steps: u64) -> bool {
        let rest = self.problem.classes.iter().zip(decided).enumerate();
        let rest = rest.flat_map(|(class, (of_class, decided))| {
            std::iter::repeat_n(class, of_class.gpus.len() - decided)
        });
        let gpus: Vec<usize> = rest.collect();
        let steps = steps.min(self.steps);
        let mut search = self.search(gpus.clone(), steps, -1);
        let is_complete = search.run();
        let (left, found) = (search.steps, search.found);
        self.steps -= steps - left;
        if let Some(found) = found {
            for (class, (rank, served)) in gpus.into_iter().zip(found) {
                self.put(class, rank, served);
            }
            return is_complete;
        }
        // To leave every GPU as it is, is always possible.
        for class in gpus {
            let columns = &self.priced.columns[class];
            let rank = columns.iter().position(|(_, column)| *column == 0).unwrap_or(0);
            self.add(class, rank, self.kinds);
        }
        is_complete
    }

    /// Decides a few GPUs together again, those first that earn least of what they could.
    fn improve(&mut self, bound: i128) {
        let mut random = 1u64;
        let mut idle_rounds = 0;
        while idle_rounds < MOST_IDLE_ROUNDS && self.worth < bound && !self.classes.is_empty() {
            let before = self.worth;
            for slot in self.by_loss() {
                let mut together = vec![slot];
                while together.len() < TOGETHER.min(self.classes.len()) {
                    // Knuth's MMIX constants.
                    random = random.wrapping_mul(6_364_136_223_846_793_005);
                    random = random.wrapping_add(1_442_695_040_888_963_407);
                    let other = (random >> 33) as usize % self.classes.len();
                    if !together.contains(&other) {
                        together.push(other);
                    }
                }
                if self.steps == 0 || self.worth >= bound {
                    return;
                }
                self.decide_again(together);
            }
            idle_rounds = if self.worth > before { 0 } else { idle_rounds + 1 };
        }
    }

    fn by_loss(&self) -> Vec<usize> {
        let loss = |slot: &usize| {
            let columns = &self.priced.columns[self.classes[*slot]];
            columns[self.ranks[*slot]].0 - columns[0].0
        };
        let mut slots: Vec<usize> = (0..self.classes.len()).collect();
        slots.sort_by_key(|slot| (loss(slot), *slot));
        slots
    }

    fn decide_again(&mut self, mut slots: Vec<usize>) {
        slots.sort_by_key(|slot| (self.classes[*slot], *slot));
        let gpus: Vec<usize> = slots.iter().map(|slot| self.classes[*slot]).collect();
        let mut worth = 0;
        for slot in &slots {
            self.waiting.give_back(&self.served[*slot]);
            worth += self.low(self.classes[*slot], self.ranks[*slot]) + self.served[*slot].value;
        }
        let steps = STEPS_TOGETHER.min(self.steps);
        let mut search = self.search(gpus, steps, worth);
        search.run();
        let (left, found, best) = (search.steps, search.found, search.best);
        self.steps -= steps - left;
        let Some(found) = found else {
            slots.iter().for_each(|slot| self.waiting.take(&self.served[*slot]));
            return;
        };
        for (slot, (rank, served)) in slots.iter().zip(found) {
            self.waiting.take(&served);
            self.served[*slot] = served;
            self.ranks[*slot] = rank;
        }
        self.worth += best - worth;
    }
}
