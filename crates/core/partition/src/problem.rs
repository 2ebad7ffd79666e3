//! Classes of equal GPUs, kinds of demand, and the objective as one number.
//!
//! The objective is lexicographic: the value of what is served, by priority; then the fewest
//! instances cleared; then the least GPU-time unavailable; then the fewest instances removed; then
//! the most room. Each level is multiplied by more than all lower ones together can be worth, so
//! that one integer compares plans.

use std::collections::BTreeMap;
use std::rc::Rc;

use dovetail_model::MigTable;

use crate::columns::{Column, Context, GPU_MILLI, columns};
use crate::world::{Gpu, PartitionInput, Rules};

/// Value is so many times larger than everything below it: the bound of the linear program is then
/// not blurred by lower levels.
const VALUE_MARGIN: i128 = 1_024;

/// All values together stay below this power of two, so that no sum overflows. Priorities that no
/// longer fit below it count as one, the lowest first.
const MOST_BITS: u32 = 116;

/// Equal GPUs.
pub(crate) struct GpuClass {
    /// Places of the GPUs in the world.
    pub(crate) gpus: Vec<usize>,
    pub(crate) pool: usize,
    /// The same number where they are equal but for the pool.
    state: usize,
    pub(crate) columns: Rc<Vec<Column>>,
    /// Of each column what it is worth below the value of what it serves; never negative.
    pub(crate) low: Vec<i128>,
}

/// Demand that is worth the same and may go to the same GPUs.
#[derive(Clone, Debug)]
pub(crate) struct DemandKind {
    /// Which demanded profile.
    pub(crate) profile: usize,
    pub(crate) count: u32,
    /// What serving one is worth, in units of the objective.
    pub(crate) value: i128,
    /// Compute slices of one.
    pub(crate) slices: i64,
    pub(crate) pools: Vec<usize>,
    /// The demand it stands for, in order.
    pub(crate) entries: Vec<usize>,
}

pub(crate) struct Problem {
    pub(crate) classes: Vec<GpuClass>,
    pub(crate) kinds: Vec<DemandKind>,
    pub(crate) profiles: usize,
    pub(crate) pools: usize,
    /// What one compute slice of the lowest priority is worth.
    pub(crate) unit: i128,
}

impl Problem {
    pub(crate) fn of(world: &PartitionInput, rules: &Rules) -> Self {
        let names = demanded(world, rules);
        let pools: BTreeMap<u16, usize> = numbered(world.gpus.iter().map(|gpu| gpu.pool));
        let wanted: Vec<Vec<Option<(usize, u32)>>> =
            world.tables.iter().map(|table| wanted(table, &names)).collect();
        let weights: Vec<Vec<i64>> =
            world.tables.iter().map(|table| weights(table, rules)).collect();
        let mut by_state: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (place, gpu) in world.gpus.iter().enumerate() {
            let mut held = gpu.held.clone();
            held.sort_unstable();
            let key = (gpu.table, gpu.pool, gpu.change, held, gpu.idle.clone());
            by_state.entry(key).or_default().push(place);
        }
        let mut states: BTreeMap<_, (usize, Rc<Vec<Column>>)> = BTreeMap::new();
        let classes = by_state.into_iter().map(|((table, pool, change, held, idle), gpus)| {
            let next = states.len();
            let known = states.entry((table, change, held, idle));
            let (state, columns) = known.or_insert_with_key(|(_, _, held, idle)| {
                let (held, idle) = (held.clone(), idle.clone());
                let gpu = Gpu { table, pool, is_whole: false, held, idle, change };
                let context = Context {
                    table: &world.tables[table],
                    wanted: &wanted[table],
                    weights: &weights[table],
                    rules,
                };
                (next, Rc::new(columns(&gpu, &context)))
            });
            let low = vec![0; columns.len()];
            let (state, columns) = (*state, Rc::clone(columns));
            GpuClass { gpus, pool: pools[&pool], state, columns, low }
        });
        let mut problem = Self {
            classes: classes.collect(),
            kinds: Vec::new(),
            profiles: names.len(),
            pools: pools.len(),
            unit: 1,
        };
        let low = problem.weigh(world);
        problem.kinds = kinds(world, rules, &names, &pools, &mut problem.unit, low);
        problem
    }

    /// The same as if all pods could go to all GPUs: no plan of it is worth less.
    pub(crate) fn in_one_pool(&self) -> Self {
        let mut classes: BTreeMap<usize, GpuClass> = BTreeMap::new();
        for class in &self.classes {
            let alike = classes.entry(class.state).or_insert_with(|| GpuClass {
                gpus: Vec::new(),
                pool: 0,
                state: class.state,
                columns: Rc::clone(&class.columns),
                low: class.low.clone(),
            });
            alike.gpus.extend(&class.gpus);
        }
        let mut kinds: BTreeMap<(usize, i128), DemandKind> = BTreeMap::new();
        for kind in self.kinds.iter().filter(|kind| !kind.pools.is_empty()) {
            let alike = kinds.entry((kind.profile, kind.value)).or_insert_with(|| {
                let (pools, entries) = (vec![0], Vec::new());
                DemandKind { count: 0, pools, entries, ..*kind }
            });
            alike.count = alike.count.saturating_add(kind.count);
        }
        let (classes, kinds) = (classes.into_values().collect(), kinds.into_values().collect());
        Self { classes, kinds, profiles: self.profiles, pools: 1, unit: self.unit }
    }

    /// Puts the lower levels of the objective into one number each; returns more than all of them.
    fn weigh(&mut self, world: &PartitionInput) -> i128 {
        let all = |of: fn(&Column) -> i64| -> i128 {
            let of_class = |class: &GpuClass| {
                let most = class.columns.iter().map(of).max().unwrap_or(0);
                i128::from(most) * class.gpus.len() as i128
            };
            self.classes.iter().map(of_class).sum()
        };
        let idle: i128 = world.gpus.iter().map(|gpu| gpu.idle.len() as i128).sum();
        let removed = all(|column| column.room) + 1;
        let unavailable = removed * (idle + 1);
        let cleared = unavailable * (i128::from(GPU_MILLI) * world.gpus.len() as i128 + 1);
        for class in &mut self.classes {
            let idle = world.gpus[class.gpus[0]].idle.len() as i64;
            let worth = |column: &Column| {
                i128::from(idle - column.cleared) * cleared
                    + i128::from(GPU_MILLI - column.unavailable_milli) * unavailable
                    + i128::from(idle - column.removed.len() as i64) * removed
                    + i128::from(column.room)
            };
            class.low = class.columns.iter().map(worth).collect();
        }
        cleared * (idle + 1)
    }

    /// The demand that a link (a profile in a pool) is for, or its number.
    pub(crate) fn link(&self, profile: usize, pool: usize) -> usize {
        profile * self.pools + pool
    }

    /// Whether all demand counts alike per compute slice.
    pub(crate) fn is_of_one_priority(&self) -> bool {
        self.kinds.iter().all(|kind| kind.value == self.unit * i128::from(kind.slices))
    }

    pub(crate) fn links(&self) -> usize {
        self.profiles * self.pools
    }

    /// What a GPU's column earns at these prices of served pods.
    pub(crate) fn priced(&self, class: &GpuClass, column: usize, prices: &[i128]) -> i128 {
        let served = class.columns[column].served.iter();
        let paid = served
            .map(|(profile, count)| prices[self.link(*profile, class.pool)] * i128::from(*count));
        class.low[column] + paid.sum::<i128>()
    }
}

/// Names of what is waited for long enough, with how many.
fn demanded(world: &PartitionInput, rules: &Rules) -> Vec<(String, u32)> {
    let mut names: Vec<(String, u32)> = Vec::new();
    for demand in world.demand.iter().filter(|demand| is_due(demand.waiting_ms, rules)) {
        match names.iter_mut().find(|(name, _)| *name == demand.profile) {
            Some((_, count)) => *count = count.saturating_add(demand.count),
            None => names.push((demand.profile.clone(), demand.count)),
        }
    }
    names
}

fn is_due(waiting_ms: i64, rules: &Rules) -> bool {
    waiting_ms >= rules.min_age_ms
}

fn numbered<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let sorted: std::collections::BTreeSet<T> = values.collect();
    sorted.into_iter().enumerate().map(|(number, value)| (value, number)).collect()
}

fn wanted(table: &MigTable, names: &[(String, u32)]) -> Vec<Option<(usize, u32)>> {
    let of = |profile: &dovetail_model::MigProfile| {
        let number = names.iter().position(|(name, _)| *name == profile.name)?;
        Some((number, names[number].1)).filter(|(_, count)| *count > 0)
    };
    table.profiles.iter().map(of).collect()
}

fn weights(table: &MigTable, rules: &Rules) -> Vec<i64> {
    let of = |profile: &dovetail_model::MigProfile| match rules.mix.get(&profile.name) {
        Some(weight) => i64::from(*weight),
        None => i64::from(rules.mix.is_empty() && !profile.has_media()),
    };
    table.profiles.iter().map(of).collect()
}

/// Demand by what it is worth and where it may go. Every priority is worth more than all lower ones
/// that the GPUs could serve.
fn kinds(
    world: &PartitionInput,
    rules: &Rules,
    names: &[(String, u32)],
    pools: &BTreeMap<u16, usize>,
    unit: &mut i128,
    low: i128,
) -> Vec<DemandKind> {
    *unit = low * VALUE_MARGIN;
    let due =
        || world.demand.iter().enumerate().filter(|(_, demand)| is_due(demand.waiting_ms, rules));
    let mut priorities: Vec<i32> = due().map(|(_, demand)| demand.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let installed: i128 =
        world.gpus.iter().map(|gpu| i128::from(world.tables[gpu.table].compute_slices)).sum();
    let asked: i128 = due().map(|(_, demand)| i128::from(demand.count)).sum();
    let told_apart = priorities.len() - levels(*unit, installed, asked, priorities.len());
    let mut found: BTreeMap<(usize, usize, Vec<usize>), DemandKind> = BTreeMap::new();
    for (entry, demand) in due() {
        let place = priorities.partition_point(|priority| *priority < demand.priority);
        let level = place.saturating_sub(told_apart);
        let Some(profile) = names.iter().position(|(name, _)| *name == demand.profile) else {
            continue;
        };
        let slices = slices_of(world, &demand.profile);
        let Some(slices) = slices else { continue };
        let worth = (0..level).fold(*unit, |worth, _| worth * (installed + 1));
        let of = |pool: &u16| pools.get(pool).copied();
        let mut allowed: Vec<usize> = match &demand.pools {
            Some(named) => named.iter().filter_map(of).collect(),
            None => pools.values().copied().collect(),
        };
        allowed.sort_unstable();
        allowed.dedup();
        let kind =
            found.entry((profile, usize::MAX - level, allowed.clone())).or_insert(DemandKind {
                profile,
                count: 0,
                value: worth * i128::from(slices),
                slices,
                pools: allowed,
                entries: Vec::new(),
            });
        kind.count = kind.count.saturating_add(demand.count);
        kind.entries.push(entry);
    }
    found.into_values().collect()
}

/// How many of so many priorities can each be worth more than all lower ones.
fn levels(unit: i128, installed: i128, asked: i128, priorities: usize) -> usize {
    let mut levels = priorities.min(1);
    let mut worth = unit;
    while levels < priorities
        && let Some(next) = worth.checked_mul(installed + 1)
    {
        let all = next.checked_mul((asked + installed + 1) * 16);
        if all.is_none_or(|all| all >> MOST_BITS != 0) {
            break;
        }
        (worth, levels) = (next, levels + 1);
    }
    levels
}

fn slices_of(world: &PartitionInput, name: &str) -> Option<i64> {
    let mut profiles = world.tables.iter().flat_map(|table| &table.profiles);
    profiles.find(|profile| profile.name == name).map(|profile| i64::from(profile.compute_slices))
}
