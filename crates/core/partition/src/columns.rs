//! Everything that could become of one GPU: which pending pods it serves, and what of it changes.
//!
//! Of all ways to serve the same pods one is kept: the one that clears the fewest instances, then
//! is unavailable least, then removes the fewest of them, then leaves the most room.

use std::collections::BTreeMap;

use dovetail_model::MigTable;

use crate::state::GpuCut;
use crate::world::{Change, Gpu, Instance, Rules};

/// Thousandths of a GPU.
pub(crate) const GPU_MILLI: i64 = 1_000;

/// One possible future of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// How many pods of each demanded profile it serves; those that it serves none of are left out.
    pub(crate) served: Vec<(usize, u8)>,
    /// Idle instances that stay, where they are then.
    pub(crate) kept: Vec<Instance>,
    /// Instances that are created; each serves a pod.
    pub(crate) created: Vec<Instance>,
    /// Idle instances that a change clears: those that go, or all where a GPU changes as a whole.
    pub(crate) cleared: i64,
    /// Idle instances that go.
    pub(crate) removed: Vec<Instance>,
    /// Part of the GPU that is unavailable while it changes, in thousandths.
    pub(crate) unavailable_milli: i64,
    /// Room that is left, see [`GpuCut::room`].
    pub(crate) room: i64,
}

impl Column {
    /// Better for the same pods: smaller is better.
    fn cost(&self) -> (i64, i64, usize, i64) {
        (self.cleared, self.unavailable_milli, self.removed.len(), -self.room)
    }
}

/// What the columns of a GPU depend on besides the GPU.
pub(crate) struct Context<'w> {
    pub(crate) table: &'w MigTable,
    /// Which demanded profile each profile of the table is, if any, and at most how many wait.
    pub(crate) wanted: &'w [Option<(usize, u32)>],
    /// Weights of the table's profiles in the room.
    pub(crate) weights: &'w [i64],
    pub(crate) rules: &'w Rules,
}

/// All futures of a GPU, each serving other pods; the first serves none and changes nothing.
pub(crate) fn columns(gpu: &Gpu, context: &Context<'_>) -> Vec<Column> {
    let held = with_all(context, GpuCut::default(), &gpu.held);
    let mut found: BTreeMap<Vec<u8>, Column> = BTreeMap::new();
    for Outcome { kept, removed, created, cut } in outcomes(gpu, held, context) {
        let is_changed = !created.is_empty();
        if is_changed && !is_worth_it(gpu, held, &counts(context, &created), context) {
            continue;
        }
        let unavailable_milli = if is_changed { unavailable_milli(gpu, held, context) } else { 0 };
        let cleared = match gpu.change {
            Change::WhenEmpty if is_changed => gpu.idle.len() as i64,
            _ => removed.len() as i64,
        };
        let served = Vec::new();
        let column = Column { served, kept, created, cleared, removed, unavailable_milli, room: 0 };
        serve(context, &column, cut, &mut found);
    }
    let none: Vec<u8> = vec![0; context.table.profiles.len()];
    let first = found.remove(&none).expect("to leave a GPU as it is is always possible");
    let by_profile = |served: &[u8]| {
        let counts = served.iter().enumerate().filter(|(_, count)| **count > 0);
        let wanted = counts.filter_map(|(place, count)| Some((context.wanted[place]?.0, *count)));
        wanted.collect()
    };
    let mut all = vec![first];
    all.extend(found.into_iter().map(|(served, column)| {
        let served = by_profile(&served);
        Column { served, ..column }
    }));
    all
}

/// What could become of the instances of a GPU.
struct Outcome {
    /// Idle instances that stay, where they are then.
    kept: Vec<Instance>,
    /// Idle instances that go.
    removed: Vec<Instance>,
    created: Vec<Instance>,
    /// The GPU with all of its instances.
    cut: GpuCut,
}

/// The GPU as it is, and all changes that create something. `held`: the GPU with what is in use.
fn outcomes(gpu: &Gpu, held: GpuCut, context: &Context<'_>) -> Vec<Outcome> {
    let mut all = vec![Outcome {
        kept: gpu.idle.clone(),
        removed: Vec::new(),
        created: Vec::new(),
        cut: with_all(context, held, &gpu.idle),
    }];
    match gpu.change {
        Change::Idle => beside(gpu, held, context, &mut all),
        Change::WhenEmpty if gpu.held.is_empty() => made_again(gpu, context, &mut all),
        Change::WhenEmpty | Change::Never => {}
    }
    all
}

/// Changes beside idle instances that stay where they are.
fn beside(gpu: &Gpu, held: GpuCut, context: &Context<'_>, all: &mut Vec<Outcome>) {
    for stays in 0..1u16 << gpu.idle.len() {
        let idle = gpu.idle.iter().enumerate();
        let (kept, removed): (Vec<_>, Vec<_>) =
            idle.partition(|(place, _)| stays >> place & 1 == 1);
        let bare = |idle: Vec<(usize, &Instance)>| idle.into_iter().map(|(_, one)| *one).collect();
        let (kept, removed): (Vec<Instance>, Vec<Instance>) = (bare(kept), bare(removed));
        let cut = with_all(context, held, &kept);
        for (cut, created) in layouts(context, cut, &[]) {
            if !created.is_empty() {
                let (kept, removed) = (kept.clone(), removed.clone());
                all.push(Outcome { kept, removed, created, cut });
            }
        }
    }
}

/// Changes of a GPU all of whose instances are made again, at starts that the driver chooses: of
/// each profile as many idle instances stay as the new layout has.
fn made_again(gpu: &Gpu, context: &Context<'_>, all: &mut Vec<Outcome>) {
    for (cut, instances) in layouts(context, GpuCut::default(), &gpu.idle) {
        let (kept, created) = first_of(&instances, counts(context, &gpu.idle));
        if !created.is_empty() {
            let (_, removed) = first_of(&gpu.idle, counts(context, &instances));
            all.push(Outcome { kept, removed, created, cut });
        }
    }
}

/// Of each profile the first so many instances, and the others.
fn first_of(instances: &[Instance], mut left: Vec<u8>) -> (Vec<Instance>, Vec<Instance>) {
    instances.iter().copied().partition(|one| {
        let left = &mut left[one.profile];
        let is_first = *left > 0;
        *left = left.saturating_sub(1);
        is_first
    })
}

/// How many instances of each profile of the table there are.
fn counts(context: &Context<'_>, instances: &[Instance]) -> Vec<u8> {
    let mut counts = vec![0; context.table.profiles.len()];
    instances.iter().for_each(|one| counts[one.profile] += 1);
    counts
}

/// A GPU with instances that it is known to have room for.
fn with_all(context: &Context<'_>, cut: GpuCut, instances: &[Instance]) -> GpuCut {
    instances.iter().fold(cut, |cut, instance| take(context, cut, *instance))
}

fn take(context: &Context<'_>, cut: GpuCut, instance: Instance) -> GpuCut {
    let profile = &context.table.profiles[instance.profile];
    cut.with(context.table, profile, instance.start).expect("the world is checked")
}

/// Part of the GPU that nobody can use during the change.
fn unavailable_milli(gpu: &Gpu, held: GpuCut, context: &Context<'_>) -> i64 {
    let all = i64::from(context.table.compute_slices);
    match gpu.change {
        Change::WhenEmpty => GPU_MILLI,
        _ => (all - i64::from(held.compute)) * GPU_MILLI / all,
    }
}

/// The work that the new instances start, against the work that cannot be done meanwhile; both in
/// compute-slice seconds of this GPU.
fn is_worth_it(gpu: &Gpu, held: GpuCut, created: &[u8], context: &Context<'_>) -> bool {
    let slices = context.table.profiles.iter().zip(created);
    let slices: i64 =
        slices.map(|(profile, count)| i64::from(profile.compute_slices) * i64::from(*count)).sum();
    let free = match gpu.change {
        Change::WhenEmpty => i64::from(context.table.compute_slices),
        _ => i64::from(context.table.compute_slices) - i64::from(held.compute),
    };
    let rules = context.rules;
    slices * rules.horizon_s * 100 >= free * rules.change_s * rules.gain_percent
}

/// Adds a column for each choice of kept instances that serve.
fn serve(context: &Context<'_>, base: &Column, cut: GpuCut, found: &mut BTreeMap<Vec<u8>, Column>) {
    let (kept, created) = (counts(context, &base.kept), counts(context, &base.created));
    let mut serving = vec![0u8; kept.len()];
    loop {
        let served: Vec<u8> =
            serving.iter().zip(&created).map(|(one, other)| one + other).collect();
        let waits = |(place, count): (usize, &u8)| {
            let most = context.wanted[place].map_or(0, |(_, waiting)| waiting);
            u32::from(*count) <= most
        };
        if served.iter().enumerate().all(waits) {
            let idle: Vec<u8> = kept.iter().zip(&serving).map(|(all, used)| all - used).collect();
            let room = cut.room(context.table, context.weights, &idle);
            let column = Column { room, ..base.clone() };
            let is_better = |known: &Column| column.cost() < known.cost();
            if found.get(&served).is_none_or(is_better) {
                found.insert(served, column);
            }
        }
        // The next choice, as a number whose digits are counts.
        let Some(place) = (0..kept.len()).find(|place| serving[*place] < kept[*place]) else {
            return;
        };
        serving[place] += 1;
        serving[..place].fill(0);
    }
}

/// Ways to add instances that pods wait for and that may be created, and as many as there are of
/// `more`, to a GPU: of each choice of counts the one that leaves most room.
fn layouts(
    context: &Context<'_>,
    cut: GpuCut,
    more: &[Instance],
) -> impl Iterator<Item = (GpuCut, Vec<Instance>)> {
    let wanted = context.wanted.iter().zip(&context.table.profiles);
    let waiting = wanted.map(|(wanted, profile)| match wanted {
        Some((_, waiting)) if context.rules.may_create(&profile.name) => *waiting,
        _ => 0,
    });
    let more = counts(context, more).into_iter().map(u32::from);
    let most = waiting.zip(more).map(|(waiting, more)| waiting.saturating_add(more)).collect();
    let mut layouts = Layouts { context, most, of: BTreeMap::new(), open: Vec::new() };
    layouts.grow(cut, Instance { profile: 0, start: 0 });
    layouts.of.into_values()
}

/// Ways to add instances to a GPU, one for each choice of counts.
struct Layouts<'c, 'w> {
    context: &'c Context<'w>,
    /// At most so many instances of each profile are added.
    most: Vec<u32>,
    /// By how many instances of each profile: the state and the instances that leave most room.
    of: BTreeMap<Vec<u8>, (GpuCut, Vec<Instance>)>,
    open: Vec<Instance>,
}

impl Layouts<'_, '_> {
    /// Remembers what is placed, and places further instances at or behind `next`.
    fn grow(&mut self, cut: GpuCut, next: Instance) {
        self.keep(cut);
        let table = self.context.table;
        for place in next.profile..table.profiles.len() {
            let added = self.open.iter().filter(|one| one.profile == place).count();
            if added as u32 >= self.most[place] {
                continue;
            }
            let profile = &table.profiles[place];
            for start in &profile.starts {
                let is_behind = place > next.profile || *start >= next.start;
                let Some(with) = cut.with(table, profile, *start).filter(|_| is_behind) else {
                    continue;
                };
                self.open.push(Instance { profile: place, start: *start });
                self.grow(with, Instance { profile: place, start: *start + 1 });
                self.open.pop();
            }
        }
    }

    fn keep(&mut self, cut: GpuCut) {
        let counts = counts(self.context, &self.open);
        let idle = vec![0u8; counts.len()];
        let room = |cut: GpuCut| cut.room(self.context.table, self.context.weights, &idle);
        let is_better = |(known, _): &(GpuCut, Vec<Instance>)| room(cut) > room(*known);
        if self.of.get(&counts).is_none_or(is_better) {
            self.of.insert(counts, (cut, self.open.clone()));
        }
    }
}
