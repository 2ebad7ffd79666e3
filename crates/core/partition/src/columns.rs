//! Everything that could become of one GPU: which pending pods it serves, and what of it changes.
//!
//! Of all ways to serve the same pods one is kept: the one that clears the fewest instances, then
//! is unavailable least, then has the fewest of them not created again, then leaves the most room.

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
    /// Idle instances that stay, as bits in their order.
    pub(crate) kept: u16,
    /// Instances that are created; each serves a pod.
    pub(crate) created: Vec<Instance>,
    /// Idle instances that a change clears: those that go, or all where a GPU changes as a whole.
    pub(crate) cleared: i64,
    /// Idle instances that go.
    pub(crate) removed: i64,
    /// Part of the GPU that is unavailable while it changes, in thousandths.
    pub(crate) unavailable_milli: i64,
    /// Room that is left, see [`GpuCut::room`].
    pub(crate) room: i64,
}

impl Column {
    /// Better for the same pods: smaller is better.
    fn cost(&self) -> (i64, i64, i64, i64) {
        (self.cleared, self.unavailable_milli, self.removed, -self.room)
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
    let held =
        gpu.held.iter().fold(GpuCut::default(), |cut, instance| take(context, cut, *instance));
    let mut found: BTreeMap<Vec<u8>, Column> = BTreeMap::new();
    let all = (1u16 << gpu.idle.len()) - 1;
    let may_change = match gpu.change {
        Change::Idle => true,
        Change::WhenEmpty => gpu.held.is_empty(),
        Change::Never => false,
    };
    let first = if may_change { 0 } else { all };
    for kept in first..=all {
        let idle = gpu.idle.iter().enumerate().filter(|(place, _)| kept >> place & 1 == 1);
        let mut of_kept = vec![0u8; context.table.profiles.len()];
        let mut cut = held;
        for (_, instance) in idle {
            of_kept[instance.profile] += 1;
            cut = take(context, cut, *instance);
        }
        let mut layouts = Layouts { context, of: BTreeMap::new(), open: Vec::new() };
        if may_change {
            layouts.grow(cut, Instance { profile: 0, start: 0 });
        } else {
            layouts.keep(cut);
        }
        for (created, (cut, instances)) in layouts.of {
            let removed = i64::from((all & !kept).count_ones());
            let is_changed = !instances.is_empty();
            if removed > 0 && !is_changed {
                continue;
            }
            let unavailable_milli =
                if is_changed { unavailable_milli(gpu, held, context) } else { 0 };
            if is_changed && !is_worth_it(gpu, held, &created, context) {
                continue;
            }
            let cleared = match gpu.change {
                Change::WhenEmpty if is_changed => gpu.idle.len() as i64,
                _ => removed,
            };
            let column = Column {
                served: Vec::new(),
                kept,
                created: instances,
                cleared,
                removed,
                unavailable_milli,
                room: 0,
            };
            serve(context, &column, cut, &of_kept, &created, &mut found);
        }
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
fn serve(
    context: &Context<'_>,
    base: &Column,
    cut: GpuCut,
    kept: &[u8],
    created: &[u8],
    found: &mut BTreeMap<Vec<u8>, Column>,
) {
    let mut serving = vec![0u8; kept.len()];
    loop {
        let served: Vec<u8> = serving.iter().zip(created).map(|(one, other)| one + other).collect();
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

/// Ways to add instances to a GPU, one for each choice of counts.
struct Layouts<'c, 'w> {
    context: &'c Context<'w>,
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
            if self.context.wanted[place].is_none() {
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
        let profiles = self.context.table.profiles.len();
        let mut counts = vec![0u8; profiles];
        for instance in &self.open {
            counts[instance.profile] += 1;
        }
        let idle = vec![0u8; profiles];
        let room = |cut: GpuCut| cut.room(self.context.table, self.context.weights, &idle);
        let is_better = |(known, _): &(GpuCut, Vec<Instance>)| room(cut) > room(*known);
        if self.of.get(&counts).is_none_or(is_better) {
            self.of.insert(counts, (cut, self.open.clone()));
        }
    }
}
