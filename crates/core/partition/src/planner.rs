//! The plan: layouts now and next for every GPU, who is served, and what no plan can exceed.

use std::collections::BTreeMap;

use crate::columns::GPU_MILLI;
use crate::improve::{Assignment, assign};
use crate::problem::Problem;
use crate::relaxation::relax;
use crate::world::{Instance, PartitionInput, Rules, WorldError};

/// What becomes of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuPlan {
    /// Idle instances that stay. Where all instances of the GPU are made again
    /// ([`Change::WhenEmpty`](crate::Change::WhenEmpty)) they are there in the new layout, too, at
    /// other starts if need be.
    pub kept: Vec<Instance>,
    /// Idle instances that go.
    pub removed: Vec<Instance>,
    /// New instances; each serves a pod.
    pub created: Vec<Instance>,
    /// Places in [`PartitionInput::demand`] whose pods it serves, and how many of each.
    pub served: Vec<(usize, u32)>,
    /// Unavailable while it changes, in GPU-milliseconds; 0 if it does not change.
    pub unavailable_gpu_ms: i64,
    /// Work that its new instances can do within the horizon of the rules, in GPU-milliseconds.
    pub gain_gpu_ms: i64,
}

impl GpuPlan {
    /// Whether its layout changes.
    pub fn is_changed(&self) -> bool {
        !self.created.is_empty() || !self.removed.is_empty()
    }
}

/// A plan for a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionPlan {
    /// In the order of [`PartitionInput::gpus`].
    pub gpus: Vec<GpuPlan>,
    /// Pods served of each demand, in the order of [`PartitionInput::demand`].
    pub accepted: Vec<u32>,
    pub accepted_compute_slices: i64,
    /// No plan serves more compute slices.
    pub upper_bound_compute_slices: i64,
    /// Steps of the search.
    pub steps: u64,
    /// No plan is better, in any level of the objective.
    pub is_best: bool,
}

impl PartitionPlan {
    /// Instances created.
    pub fn created(&self) -> usize {
        self.gpus.iter().map(|gpu| gpu.created.len()).sum()
    }

    /// Idle instances removed.
    pub fn removed(&self) -> usize {
        self.gpus.iter().map(|gpu| gpu.removed.len()).sum()
    }

    /// GPU-time unavailable during changes, in GPU-milliseconds.
    pub fn unavailable_gpu_ms(&self) -> i64 {
        self.gpus.iter().map(|gpu| gpu.unavailable_gpu_ms).sum()
    }
}

/// Plans layouts for the demand of a world.
///
/// Lexicographic: the compute slices of served pods, by priority; then fewest idle instances
/// cleared; then least GPU-time unavailable; then fewest of them removed; then most room for the
/// mix of the rules. Instances in use stay.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub fn plan(world: &PartitionInput, rules: &Rules) -> Result<PartitionPlan, WorldError> {
    world.check()?;
    let problem = Problem::of(world, rules);
    let relaxation = relax(&problem);
    let assignment = assign(&problem, &relaxation, rules.steps);
    let bound = match problem.is_of_one_priority() {
        true => relaxation.bound / problem.unit,
        false => {
            let mut equal = world.clone();
            equal.demand.iter_mut().for_each(|demand| demand.priority = 0);
            let problem = Problem::of(&equal, rules);
            relax(&problem).bound / problem.unit
        }
    };
    let bound = i64::try_from(bound).unwrap_or(i64::MAX).min(world.offered_compute_slices());
    let steps = relaxation.steps + assignment.steps;
    let is_best = assignment.is_best;
    let (gpus, accepted) = spread(world, rules, &problem, assignment);
    let mut slices = vec![0; world.demand.len()];
    for kind in &problem.kinds {
        kind.entries.iter().for_each(|entry| slices[*entry] = kind.slices);
    }
    let served = slices.into_iter().zip(&accepted);
    let accepted_compute_slices = served.map(|(slices, count)| slices * i64::from(*count)).sum();
    Ok(PartitionPlan {
        gpus,
        accepted,
        accepted_compute_slices,
        upper_bound_compute_slices: bound,
        steps,
        is_best,
    })
}

/// Kinds of pods by number, with how many of each a GPU serves.
type Counts = Vec<(usize, u32)>;

/// Gives the columns of each class to its GPUs, those that change first, and the pods of each kind
/// to the demand it stands for, in order.
fn spread(
    world: &PartitionInput,
    rules: &Rules,
    problem: &Problem,
    assignment: Assignment,
) -> (Vec<GpuPlan>, Vec<u32>) {
    let mut of_class: BTreeMap<usize, Vec<(usize, Counts)>> = BTreeMap::new();
    for ((class, column), served) in assignment.chosen.into_iter().zip(assignment.served) {
        of_class.entry(class).or_default().push((column, served));
    }
    let mut chosen: BTreeMap<usize, (usize, usize, Counts)> = BTreeMap::new();
    for (class, mut columns) in of_class {
        let columns_of = &problem.classes[class].columns;
        columns.sort_by_key(|(column, _)| (columns_of[*column].created.is_empty(), *column));
        for (gpu, (column, served)) in problem.classes[class].gpus.iter().zip(columns) {
            chosen.insert(*gpu, (class, column, served));
        }
    }
    let mut left: Vec<u32> = world.demand.iter().map(|demand| demand.count).collect();
    let mut plans = Vec::new();
    for (number, gpu) in world.gpus.iter().enumerate() {
        let (class, column, served) = &chosen[&number];
        let column = &problem.classes[*class].columns[*column];
        let mut plan = GpuPlan {
            kept: column.kept.clone(),
            removed: column.removed.clone(),
            created: column.created.clone(),
            served: Vec::new(),
            unavailable_gpu_ms: column.unavailable_milli * rules.change_s * 1_000 / GPU_MILLI,
            gain_gpu_ms: gain_gpu_ms(world, rules, gpu.table, &column.created),
        };
        for (kind, count) in served {
            let mut missing = *count;
            for entry in &problem.kinds[*kind].entries {
                let taken = missing.min(left[*entry]);
                if taken > 0 {
                    left[*entry] -= taken;
                    missing -= taken;
                    plan.served.push((*entry, taken));
                }
            }
        }
        plans.push(plan);
    }
    let accepted = world.demand.iter().zip(left).map(|(demand, left)| demand.count - left);
    (plans, accepted.collect())
}

fn gain_gpu_ms(world: &PartitionInput, rules: &Rules, table: usize, created: &[Instance]) -> i64 {
    let table = &world.tables[table];
    let slices: i64 = created
        .iter()
        .map(|instance| i64::from(table.profiles[instance.profile].compute_slices))
        .sum();
    slices * rules.horizon_s * 1_000 / i64::from(table.compute_slices)
}
