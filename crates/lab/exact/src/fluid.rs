//! The linear-programming bounds: pods divided freely over the nodes of a class, under limits every
//! packing obeys.
//!
//! The primal has one variable per shape and class. What is solved is its dual, the dearest prices:
//! each limit of each class has a price, a pod pays the least it can in any class it fits, and all
//! limits together cost 1. The demand is too large exactly when it pays more than 1.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, Variable};

use crate::certificate::{Prefix, affordable_prefix};
use crate::device::{CuttingStock, terms};
use crate::limit::LimitKind;
use crate::world::{PackingProblem, PodShape};

/// The longest prefix that the limits of the classes allow.
pub(crate) fn limits_prefix(world: &PackingProblem) -> Prefix {
    Fluid::new(world, &LimitKind::ALL, None).prefix(world.arrivals.len())
}

/// The longest prefix of the first `pods` for which each class also cuts its devices into the
/// shares it gets: cutting stock per class instead of counts of shares, together with CPU and
/// memory.
pub(crate) fn class_devices_prefix(
    world: &PackingProblem,
    stock: &CuttingStock,
    pods: usize,
) -> Prefix {
    Fluid::new(world, &LimitKind::WITHOUT_SHARES, Some(stock)).prefix(pods)
}

/// Pods before the first one that fits no empty node.
fn placeable_prefix(world: &PackingProblem) -> usize {
    let stuck = world.arrivals.iter().position(|&shape| world.shapes[shape].classes.is_empty());
    stuck.unwrap_or(world.arrivals.len())
}

/// One limit of one class: `amount` of each shape sums to at most `limit`.
struct FluidLimit {
    kind: LimitKind,
    limit: i128,
}

/// A class as the linear program sees it.
struct ClassLimits {
    /// Limits that some fitting shape counts in.
    limits: Vec<FluidLimit>,
    /// GPUs of the class that are cut into shares; 0 if shares are only counted by the limits.
    rolls: i128,
    /// Ways to cut one of them that the prices must respect; more are found while solving.
    patterns: Vec<Vec<u32>>,
}

/// What the solver decides for one class.
struct ClassVariables {
    /// Part of the budget of 1 that each limit costs.
    limits: Vec<Variable>,
    /// Part of the budget that all rolls cost, and the price of a piece, for as many pieces as
    /// there are rolls.
    roll: Option<Variable>,
    pieces: Vec<Variable>,
}

/// The values it found.
struct ClassPrices {
    limits: Vec<f64>,
    roll: f64,
    pieces: Vec<f64>,
}

struct Fluid<'a> {
    world: &'a PackingProblem,
    stock: Option<&'a CuttingStock>,
    classes: Vec<ClassLimits>,
}

impl<'a> Fluid<'a> {
    fn new(
        world: &'a PackingProblem,
        kinds: &[LimitKind],
        stock: Option<&'a CuttingStock>,
    ) -> Self {
        let limits_of = |index: usize| {
            let class = &world.classes[index];
            let counted = |kind: LimitKind| {
                let mut fitting = world.shapes.iter().filter(|s| s.classes.contains(&index));
                fitting.any(|shape| kind.amount(shape, class) > 0)
            };
            let limits = kinds.iter().filter(|&&kind| counted(kind));
            let limits =
                limits.map(|&kind| FluidLimit { kind, limit: kind.limit(class) }).collect();
            let rolls = i128::from(class.gpu_count) * i128::from(class.nodes);
            match stock {
                Some(stock) if rolls > 0 => {
                    ClassLimits { limits, rolls, patterns: stock.patterns.clone() }
                }
                _ => ClassLimits { limits, rolls: 0, patterns: Vec::new() },
            }
        };
        Self { world, stock, classes: (0..world.classes.len()).map(limits_of).collect() }
    }

    fn prefix(mut self, longest: usize) -> Prefix {
        let mut pods = longest.min(placeable_prefix(self.world));
        loop {
            let Some((prices, complete)) = self.prices(&self.world.demand(pods)) else {
                return Prefix { pods, tight: false };
            };
            let (pod_prices, budget) = self.certificate(&prices);
            let affordable = affordable_prefix(&self.world.arrivals[..pods], &pod_prices, budget);
            if affordable == pods {
                return Prefix { pods, tight: complete };
            }
            pods = affordable;
        }
    }

    /// Prices under which the demand pays most, and whether they are proven to be; `None` if the
    /// solver gave up before it had any.
    fn prices(&mut self, demand: &[i64]) -> Option<(Vec<ClassPrices>, bool)> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let variables = self.price_variables(&mut problem);
        self.pods_pay_the_least(&mut problem, &variables, demand);
        let mut solution = problem.solve().ok()?.into_solution().ok()?;
        loop {
            let prices: Vec<ClassPrices> =
                variables.iter().map(|class| class.values(&solution)).collect();
            let cuts = self.overpriced_rolls(&prices);
            if cuts.is_empty() {
                return Some((prices, true));
            }
            for (class, pattern) in cuts {
                if self.classes[class].patterns.contains(&pattern) {
                    return Some((prices, false));
                }
                let row = roll_row(&variables[class], &pattern);
                let added = solution.add_constraint(row, ComparisonOp::Ge, 0.0);
                let Some(next) = added.ok().and_then(|outcome| outcome.into_solution().ok()) else {
                    return Some((prices, false));
                };
                solution = next;
                self.classes[class].patterns.push(pattern);
            }
        }
    }

    /// All limits and rolls cost 1 together, and no known way to cut a roll is worth more than the
    /// roll.
    fn price_variables(&self, problem: &mut Problem) -> Vec<ClassVariables> {
        let mut budget = Vec::new();
        let mut all = Vec::new();
        for class in &self.classes {
            let mut part = || {
                let variable = problem.add_var(0.0, (0.0, 1.0));
                budget.push((variable, 1.0));
                variable
            };
            let limits = class.limits.iter().map(|_| part()).collect();
            let roll = (class.rolls > 0).then(part);
            let piece_sizes = self.stock.filter(|_| roll.is_some()).map_or(0, |s| s.piece_sizes());
            let pieces = (0..piece_sizes).map(|_| problem.add_var(0.0, (0.0, 1.0))).collect();
            let variables = ClassVariables { limits, roll, pieces };
            for pattern in &class.patterns {
                problem.add_constraint(roll_row(&variables, pattern), ComparisonOp::Ge, 0.0);
            }
            all.push(variables);
        }
        problem.add_constraint(budget, ComparisonOp::Le, 1.0);
        all
    }

    /// The pods of a shape together pay at most their cost in each class they fit.
    fn pods_pay_the_least(
        &self,
        problem: &mut Problem,
        variables: &[ClassVariables],
        demand: &[i64],
    ) {
        for (shape, &count) in self.world.shapes.iter().zip(demand) {
            if count == 0 {
                continue;
            }
            let pays = problem.add_var(1.0, (0.0, f64::INFINITY));
            for &class in &shape.classes {
                let mut row = vec![(pays, -1.0)];
                let limits = self.classes[class].limits.iter();
                for (limit, &variable) in limits.zip(&variables[class].limits) {
                    let amount = limit.kind.amount(shape, &self.world.classes[class]);
                    if amount > 0 {
                        row.push((variable, count as f64 * amount as f64 / limit.limit as f64));
                    }
                }
                if let Some(&piece) = self.piece_of(shape, &variables[class].pieces) {
                    let pieces = count as f64 * f64::from(shape.gpu_count);
                    row.push((piece, pieces / self.classes[class].rolls as f64));
                }
                problem.add_constraint(row, ComparisonOp::Ge, 0.0);
            }
        }
    }

    fn piece_of<'p, T>(&self, shape: &PodShape, pieces: &'p [T]) -> Option<&'p T> {
        pieces.get(self.stock?.piece_of(shape.gpu_milli)?)
    }

    /// The classes and ways to cut a roll that are worth more than the roll costs.
    fn overpriced_rolls(&self, prices: &[ClassPrices]) -> Vec<(usize, Vec<u32>)> {
        let mut cuts = Vec::new();
        let Some(stock) = self.stock else { return cuts };
        for (index, class) in prices.iter().enumerate() {
            if self.classes[index].rolls > 0 {
                let pieces: Vec<i128> = class.pieces.iter().map(|&p| scaled(p)).collect();
                let (worth, pattern) = stock.dearest_roll(&pieces);
                if worth > scaled(class.roll + ROLL_TOLERANCE) {
                    cuts.push((index, pattern));
                }
            }
        }
        cuts
    }

    /// Integer prices of pods and the budget of the cluster.
    fn certificate(&self, prices: &[ClassPrices]) -> (Vec<Option<i128>>, i128) {
        let mut budget = 0;
        let unit_prices: Vec<(Vec<i128>, Vec<i128>)> = self
            .classes
            .iter()
            .zip(prices)
            .map(|(class, prices)| {
                let unit = |price: f64, limit: i128| scaled(price) / limit;
                let limits = class.limits.iter().zip(&prices.limits);
                let limits: Vec<i128> =
                    limits.map(|(limit, &price)| unit(price, limit.limit)).collect();
                let pieces: Vec<i128> =
                    prices.pieces.iter().map(|&price| unit(price, class.rolls)).collect();
                let limited = class.limits.iter().zip(&limits);
                budget += limited.map(|(limit, price)| limit.limit * price).sum::<i128>();
                let stock = self.stock.filter(|_| class.rolls > 0);
                budget += stock.map_or(0, |s| s.dearest_roll(&pieces).0 * class.rolls);
                (limits, pieces)
            })
            .collect();
        let cost = |shape: &PodShape, class: usize| -> i128 {
            let (limits, pieces) = &unit_prices[class];
            let priced = self.classes[class].limits.iter().zip(limits);
            let amount = |limit: &FluidLimit| {
                i128::from(limit.kind.amount(shape, &self.world.classes[class]))
            };
            let piece = self.piece_of(shape, pieces).map_or(0, |&price| price);
            priced.map(|(limit, price)| amount(limit) * price).sum::<i128>()
                + piece * i128::from(shape.gpu_count)
        };
        let cheapest =
            |shape: &PodShape| shape.classes.iter().map(|&class| cost(shape, class)).min();
        (self.world.shapes.iter().map(cheapest).collect(), budget)
    }
}

impl ClassVariables {
    fn values(&self, solution: &Solution) -> ClassPrices {
        // Rounding may leave a value just outside its bounds; prices must not be negative.
        let value = |variable: &Variable| solution.var_value(*variable).clamp(0.0, 1.0);
        ClassPrices {
            limits: self.limits.iter().map(value).collect(),
            roll: self.roll.as_ref().map_or(0.0, value),
            pieces: self.pieces.iter().map(value).collect(),
        }
    }
}

/// The roll costs at least the pieces of the pattern.
fn roll_row(variables: &ClassVariables, pattern: &[u32]) -> Vec<(Variable, f64)> {
    let mut row: Vec<(Variable, f64)> = terms(&variables.pieces, pattern);
    row.iter_mut().for_each(|term| term.1 = -term.1);
    row.extend(variables.roll.map(|roll| (roll, 1.0)));
    row
}

/// A roll may be overpriced by a billionth of the budget: less than a thousandth of a GPU in the
/// largest clusters.
const ROLL_TOLERANCE: f64 = 1e-9;

/// A part of the budget in integers, where all of it is 2^90: far below the range of `i128`, far
/// finer than `f64`.
fn scaled(part: f64) -> i128 {
    (part * (1_u128 << 90) as f64) as i128
}
