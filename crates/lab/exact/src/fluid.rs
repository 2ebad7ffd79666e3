//! The fluid bound: pods divided freely over the nodes of a class, under sums and counts that every packing obeys.
//!
//! The primal has one variable per shape and class. What is solved is its dual, the dearest prices: each
//! limit of each class has a price, a pod pays the least it can in any class it fits, and all limits together
//! cost 1. The demand is too large exactly when it pays more than 1.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, Variable};

use crate::certificate::{Prefix, affordable_prefix};
use crate::input::DEVICE_MILLI;
use crate::world::{Class, Shape, World};

/// The longest prefix that the fluid relaxation holds.
pub(crate) fn fluid_prefix(world: &World) -> Prefix {
    let model = Fluid::new(world);
    let mut pods = placeable_prefix(world);
    loop {
        let Some(weights) = model.weights(&world.demand(pods)) else {
            return Prefix { pods, tight: false };
        };
        let (prices, budget) = model.certificate(&weights);
        let longest = affordable_prefix(&world.arrivals[..pods], &prices, budget);
        if longest == pods {
            return Prefix { pods, tight: true };
        }
        pods = longest;
    }
}

/// Pods before the first one that fits no empty node.
fn placeable_prefix(world: &World) -> usize {
    let stuck = world.arrivals.iter().position(|&shape| world.shapes[shape].classes.is_empty());
    stuck.unwrap_or(world.arrivals.len())
}

/// One limit of one class: `amount` of each shape sums to at most `limit`.
struct Limit {
    kind: LimitKind,
    limit: i128,
}

/// What a limit counts. All are valid for whole pods on whole nodes.
#[derive(Debug, Clone, Copy)]
enum LimitKind {
    Cpu,
    Memory,
    GpuMilli,
    /// Shares above a half: one per GPU.
    AboveHalf,
    /// Shares above a third: two per GPU, where one above two thirds counts as two (the dual-feasible
    /// function u^(2) of Fekete and Schepers, "New classes of fast lower bounds for bin packing problems",
    /// Mathematical Programming 91, 2001).
    AboveThird,
    /// Pods on more than 1/(q+1) of the node's GPUs, no two on one GPU: q per node.
    Wide(u32),
    /// Pods with more than half of the node's CPU: one per node.
    MostOfCpu,
}

const LIMIT_KINDS: [LimitKind; 10] = [
    LimitKind::Cpu,
    LimitKind::Memory,
    LimitKind::GpuMilli,
    LimitKind::AboveHalf,
    LimitKind::AboveThird,
    LimitKind::Wide(1),
    LimitKind::Wide(2),
    LimitKind::Wide(4),
    LimitKind::Wide(8),
    LimitKind::MostOfCpu,
];

impl LimitKind {
    /// How much one pod of the shape counts on a node of the class.
    fn amount(self, shape: &Shape, class: &Class) -> i64 {
        let count = i64::from(shape.gpu_count);
        match self {
            Self::Cpu => shape.cpu_milli,
            Self::Memory => shape.memory_bytes,
            Self::GpuMilli => count * shape.gpu_milli,
            Self::AboveHalf if 2 * shape.gpu_milli > DEVICE_MILLI => count,
            Self::AboveThird if 3 * shape.gpu_milli > 2 * DEVICE_MILLI => 2 * count,
            Self::AboveThird if 3 * shape.gpu_milli > DEVICE_MILLI => count,
            Self::Wide(q) => {
                let exclusive = count >= 2 && 2 * shape.gpu_milli > DEVICE_MILLI;
                i64::from(exclusive && count * i64::from(q + 1) > i64::from(class.gpu_count))
            }
            Self::MostOfCpu => i64::from(2 * shape.cpu_milli > class.cpu_milli),
            Self::AboveHalf | Self::AboveThird => 0,
        }
    }

    /// What all nodes of the class take in together.
    fn limit(self, class: &Class) -> i128 {
        let gpus = i128::from(class.gpu_count);
        let per_node = match self {
            Self::Cpu => i128::from(class.cpu_milli),
            Self::Memory => i128::from(class.memory_bytes),
            Self::GpuMilli => gpus * i128::from(DEVICE_MILLI),
            Self::AboveHalf => gpus,
            Self::AboveThird => 2 * gpus,
            Self::Wide(q) => i128::from(q),
            Self::MostOfCpu => 1,
        };
        per_node * i128::from(class.nodes)
    }
}

struct Fluid<'a> {
    world: &'a World,
    /// Limits of each class that some shape counts in.
    limits: Vec<Vec<Limit>>,
}

impl<'a> Fluid<'a> {
    fn new(world: &'a World) -> Self {
        let limits = world
            .classes
            .iter()
            .enumerate()
            .map(|(index, class)| {
                let counted = |kind: LimitKind| {
                    let mut fitting =
                        world.shapes.iter().filter(|shape| shape.classes.contains(&index));
                    fitting.any(|shape| kind.amount(shape, class) > 0)
                };
                let kinds = LIMIT_KINDS.into_iter().filter(|&kind| counted(kind));
                kinds.map(|kind| Limit { kind, limit: kind.limit(class) }).collect()
            })
            .collect();
        Self { world, limits }
    }

    /// For each class and limit the part of the budget of 1 that the limit costs, such that the demand pays
    /// most; `None` if the solver gave up.
    fn weights(&self, demand: &[i64]) -> Option<Vec<Vec<f64>>> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let weights: Vec<Vec<Variable>> = self
            .limits
            .iter()
            .map(|limits| limits.iter().map(|_| problem.add_var(0.0, (0.0, 1.0))).collect())
            .collect();
        let all: Vec<(Variable, f64)> =
            weights.iter().flatten().map(|&weight| (weight, 1.0)).collect();
        problem.add_constraint(all, ComparisonOp::Le, 1.0);
        for (shape, &count) in self.world.shapes.iter().zip(demand) {
            if count == 0 {
                continue;
            }
            let pays = problem.add_var(1.0, (0.0, f64::INFINITY));
            for &class in &shape.classes {
                let mut row = vec![(pays, -1.0)];
                for (limit, &weight) in self.limits[class].iter().zip(&weights[class]) {
                    let amount = limit.kind.amount(shape, &self.world.classes[class]);
                    if amount > 0 {
                        row.push((weight, count as f64 * amount as f64 / limit.limit as f64));
                    }
                }
                problem.add_constraint(row, ComparisonOp::Ge, 0.0);
            }
        }
        let solution = problem.solve().ok()?.into_solution().ok()?;
        let value =
            |solution: &Solution, weight: Variable| solution.var_value(weight).clamp(0.0, 1.0);
        Some(
            weights
                .iter()
                .map(|limits| limits.iter().map(|&weight| value(&solution, weight)).collect())
                .collect(),
        )
    }

    /// Integer prices of pods and the budget of the cluster.
    fn certificate(&self, weights: &[Vec<f64>]) -> (Vec<Option<i128>>, i128) {
        let unit_price = |class: usize, index: usize| {
            (weights[class][index] * BUDGET_SCALE / self.limits[class][index].limit as f64) as i128
        };
        let unit_prices: Vec<Vec<i128>> = (0..self.limits.len())
            .map(|class| {
                (0..self.limits[class].len()).map(|index| unit_price(class, index)).collect()
            })
            .collect();
        let budget = self.limits.iter().flatten().zip(unit_prices.iter().flatten());
        let budget = budget.map(|(limit, price)| limit.limit * price).sum();
        let cost = |shape: &Shape, class: usize| -> i128 {
            let priced = self.limits[class].iter().zip(&unit_prices[class]);
            let amount =
                |limit: &Limit| i128::from(limit.kind.amount(shape, &self.world.classes[class]));
            priced.map(|(limit, price)| amount(limit) * price).sum()
        };
        let cheapest = |shape: &Shape| shape.classes.iter().map(|&class| cost(shape, class)).min();
        (self.world.shapes.iter().map(cheapest).collect(), budget)
    }
}

/// The whole budget in integers, 2^90: far below the range of `i128`, far finer than `f64`.
const BUDGET_SCALE: f64 = (1_u128 << 90) as f64;
