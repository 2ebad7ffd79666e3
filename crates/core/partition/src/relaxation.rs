//! The linear program over classes of GPUs, by columns: prices of served pods, a bound on every
//! plan, and how many GPUs of a class should get which column.
//!
//! Dantzig and Wolfe's decomposition: a variable is one choice of columns for a block of classes.
//! Prices are made integers, and the bound is computed from them in integers: whatever the prices
//! are, Σ over GPUs of their best column at these prices + Σ over demand of what it pays beyond
//! them is at least the value of any plan (Lagrange).

use crate::problem::{DemandKind, GpuClass, Problem};
use crate::simplex::{Simplex, Variable};

/// Blocks of classes: few keep the program small, many find the optimum in fewer rounds.
const MOST_BLOCKS: usize = 48;

/// Rounds of new variables, and steps of the simplex method in each.
const MOST_ROUNDS: usize = 400;
const MOST_STEPS: u64 = 2_000;

/// A new variable earns at least this, in compute slices.
const LEAST_PROFIT: f64 = 1e-10;

/// For many GPUs it is enough to know the optimum to so small a part.
const ACCURACY: f64 = 1e-4;

/// So many GPUs are few: their optimum is found exactly.
const FEW_GPUS: usize = 64;

/// With more links and kinds of demand, the program is solved as if all pods could go to all GPUs:
/// its time grows with the third power of their number.
const MOST_LINKS_AND_KINDS: usize = 1_024;

/// Shares of a GPU below this are rounding.
const ROUNDING: f64 = 1e-4;

pub(crate) struct Relaxation {
    /// What a pod served of each profile in each pool is worth to a GPU, in units of the objective.
    pub(crate) prices: Vec<i128>,
    /// No plan is worth more.
    pub(crate) bound: i128,
    /// For each class, how many of its GPUs surely get which column; `None` if the program ignores
    /// which pods may go to which class.
    pub(crate) whole: Option<Vec<Vec<(usize, usize)>>>,
    /// Steps taken.
    pub(crate) steps: u64,
}

/// One choice of columns for a block.
struct ColumnChoice {
    block: usize,
    columns: Vec<usize>,
}

pub(crate) fn relax(problem: &Problem) -> Relaxation {
    if problem.links() + problem.kinds.len() <= MOST_LINKS_AND_KINDS {
        return solve(problem);
    }
    solve_in_one_pool(problem)
}

/// Prices that are the same in all pools, and the bound that follows from them.
fn solve_in_one_pool(problem: &Problem) -> Relaxation {
    let Relaxation { prices, bound, steps, .. } = solve(&problem.in_one_pool());
    let of_pools = |price: i128| std::iter::repeat_n(price, problem.pools);
    let prices = prices.into_iter().flat_map(of_pools).collect();
    Relaxation { prices, bound, whole: None, steps }
}

fn solve(problem: &Problem) -> Relaxation {
    let blocks = problem.classes.len().clamp(1, MOST_BLOCKS);
    let unit = problem.unit as f64;
    let links = problem.links();
    let kinds = problem.kinds.len();
    let counts = problem.kinds.iter().map(|kind| f64::from(kind.count));
    let limits: Vec<f64> = std::iter::repeat_n(0.0, links)
        .chain(counts)
        .chain(std::iter::repeat_n(1.0, blocks))
        .collect();
    let mut program = Simplex::new(&limits);
    for (number, kind) in problem.kinds.iter().enumerate() {
        for pool in &kind.pools {
            let link = problem.link(kind.profile, *pool);
            let entries = vec![(link, 1.0), (links + number, 1.0)];
            program.add(Variable { profit: kind.value as f64 / unit, entries });
        }
    }
    let first = limits.len() + problem.kinds.iter().map(|kind| kind.pools.len()).sum::<usize>();
    let mut choices: Vec<ColumnChoice> = Vec::new();
    let mut steps = 0;
    let mut best: Option<(i128, Vec<i128>)> = None;
    for _ in 0..MOST_ROUNDS {
        let duals = program.prices();
        let prices: Vec<i128> = duals[..links].iter().map(|price| scaled(*price, unit)).collect();
        let chosen: Vec<usize> =
            problem.classes.iter().map(|class| best_column(problem, class, &prices)).collect();
        let bound = bound(problem, &prices, &chosen);
        if best.as_ref().is_none_or(|(known, _)| bound < *known) {
            best = Some((bound, prices.clone()));
        }
        let gpus: usize = problem.classes.iter().map(|class| class.gpus.len()).sum();
        let gap = bound as f64 / unit - program.profit();
        if gpus > FEW_GPUS && gap <= ACCURACY * program.profit() {
            break;
        }
        let mut is_new = false;
        for block in 0..blocks {
            let (variable, columns) = choice(problem, (block, blocks), &chosen, links + kinds);
            let earned = variable.profit - paid(&variable, &duals);
            if earned > LEAST_PROFIT {
                program.add(variable);
                choices.push(ColumnChoice { block, columns });
                is_new = true;
            }
        }
        if !is_new {
            break;
        }
        steps += program.run(MOST_STEPS);
    }
    let (bound, prices) = best.expect("there is a round");
    let whole = Some(whole(problem, &program, &choices, first, blocks));
    Relaxation { prices, bound, whole, steps }
}

fn scaled(price: f64, unit: f64) -> i128 {
    // Prices of supply are not negative: a pod that is not served costs nothing.
    (price.max(0.0) * unit) as i128
}

/// The column that earns most at these prices; the first of equal ones.
pub(crate) fn best_column(problem: &Problem, class: &GpuClass, prices: &[i128]) -> usize {
    let mut best = (i128::MIN, 0);
    for column in 0..class.columns.len() {
        let priced = problem.priced(class, column, prices);
        if priced > best.0 {
            best = (priced, column);
        }
    }
    best.1
}

fn bound(problem: &Problem, prices: &[i128], chosen: &[usize]) -> i128 {
    let supply = problem.classes.iter().zip(chosen);
    let supply: i128 = supply
        .map(|(class, column)| problem.priced(class, *column, prices) * class.gpus.len() as i128)
        .sum();
    let demand =
        problem.kinds.iter().map(|kind| surplus(problem, kind, prices) * i128::from(kind.count));
    supply + demand.sum::<i128>()
}

/// What one pod of a kind is worth beyond its price where it is cheapest; never negative.
pub(crate) fn surplus(problem: &Problem, kind: &DemandKind, prices: &[i128]) -> i128 {
    let of = |pool: &usize| kind.value - prices[problem.link(kind.profile, *pool)];
    kind.pools.iter().map(of).max().unwrap_or(0).max(0)
}

fn choice(
    problem: &Problem,
    (block, blocks): (usize, usize),
    chosen: &[usize],
    first_row: usize,
) -> (Variable, Vec<usize>) {
    let mut served = vec![0.0; problem.links()];
    let mut low = 0;
    let mut columns = Vec::new();
    for class in (block..problem.classes.len()).step_by(blocks) {
        let (column, class) = (chosen[class], &problem.classes[class]);
        let gpus = class.gpus.len();
        columns.push(column);
        low += class.low[column] * gpus as i128;
        for (profile, count) in &class.columns[column].served {
            served[problem.link(*profile, class.pool)] -= f64::from(*count) * gpus as f64;
        }
    }
    let mut entries: Vec<(usize, f64)> =
        served.into_iter().enumerate().filter(|(_, count)| *count != 0.0).collect();
    entries.push((first_row + block, 1.0));
    (Variable { profit: low as f64 / problem.unit as f64, entries }, columns)
}

fn paid(variable: &Variable, duals: &[f64]) -> f64 {
    variable.entries.iter().map(|(row, coefficient)| duals[*row] * coefficient).sum()
}

/// Whole GPUs of the fractional solution.
fn whole(
    problem: &Problem,
    program: &Simplex,
    choices: &[ColumnChoice],
    first: usize,
    blocks: usize,
) -> Vec<Vec<(usize, usize)>> {
    let mut shares: Vec<Vec<(usize, f64)>> = vec![Vec::new(); problem.classes.len()];
    for (number, value) in program.solution() {
        let Some(choice) = number.checked_sub(first).and_then(|place| choices.get(place)) else {
            continue;
        };
        let classes = (choice.block..problem.classes.len()).step_by(blocks);
        for (class, column) in classes.zip(&choice.columns) {
            let share = value * problem.classes[class].gpus.len() as f64;
            match shares[class].iter_mut().find(|(known, _)| known == column) {
                Some((_, known)) => *known += share,
                None => shares[class].push((*column, share)),
            }
        }
    }
    let rounded = |(class, shares): (usize, Vec<(usize, f64)>)| {
        let mut left = problem.classes[class].gpus.len();
        let whole = shares.into_iter().map(|(column, share)| {
            let count = ((share + ROUNDING).max(0.0) as usize).min(left);
            left -= count;
            (column, count)
        });
        whole.filter(|(_, count)| *count > 0).collect()
    };
    shares.into_iter().enumerate().map(rounded).collect()
}

#[cfg(test)]
mod tests {
    use dovetail_model::MigTable;

    use super::*;
    use crate::improve::assign;
    use crate::world::{Change, Demand, Gpu, PartitionInput, Rules};

    fn world(pools: u16) -> PartitionInput {
        let (held, idle, change) = (Vec::new(), Vec::new(), Change::WhenEmpty);
        let gpu = Gpu { table: 0, pool: 0, is_whole: false, held, idle, change };
        let gpus = (0..2 * pools).map(|place| Gpu { pool: place / 2, ..gpu.clone() }).collect();
        let demand = |profile: &str, count: u32, priority: i32, pools: Option<Vec<u16>>| {
            let profile = profile.to_owned();
            Demand { profile, count, priority, waiting_ms: 60_000, pools }
        };
        let demand = vec![
            demand("3g.20gb", 5, 0, Some(vec![0])),
            demand("2g.10gb", 3, 1, Some(vec![1])),
            demand("1g.5gb", 4, 0, Some(vec![0, pools - 1])),
            demand("1g.5gb", 9, 0, None),
            // No node takes it.
            demand("7g.40gb", 2, 1, Some(vec![pools])),
        ];
        PartitionInput {
            tables: vec![MigTable::of_model("A100-40GB").expect("a table")],
            gpus,
            demand,
        }
    }

    /// Pods that may go to every GPU can be worth more, and never less.
    #[test]
    fn the_bound_of_one_pool_is_a_bound_of_many() {
        for pools in 2..4 {
            let problem = Problem::of(&world(pools), &Rules::default());
            let (exact, loose) = (solve(&problem), solve_in_one_pool(&problem));
            let best = assign(&problem, &exact, 100_000);
            let value = |((class, column), served): (&(usize, usize), &Vec<(usize, u32)>)| {
                let served = served.iter();
                let of_pods =
                    served.map(|(kind, count)| problem.kinds[*kind].value * i128::from(*count));
                problem.classes[*class].low[*column] + of_pods.sum::<i128>()
            };
            let best: i128 = best.chosen.iter().zip(&best.served).map(value).sum();
            assert!(best <= loose.bound, "{pools} pools: {best} > {}", loose.bound);
            // The bound is what follows from the prices where all pools are told apart.
            let choose = |class: &GpuClass| best_column(&problem, class, &loose.prices);
            let chosen: Vec<usize> = problem.classes.iter().map(choose).collect();
            assert_eq!(bound(&problem, &loose.prices, &chosen), loose.bound, "{pools} pools");
        }
    }
}
