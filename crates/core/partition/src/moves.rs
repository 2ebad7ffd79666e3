//! One move that makes room: an instance in use goes to another GPU, where it fits as things are,
//! so that an instance that fits nowhere fits where it was.

use dovetail_model::MigTable;

use crate::state::GpuCut;
use crate::world::Instance;

/// An instance to move away from a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceMove {
    /// Number of the GPU.
    pub gpu: usize,
    /// The place of the instance in the GPU's list.
    pub instance: usize,
}

/// The move of the fewest compute slices after which an instance of `profile` fits on the GPU that
/// is left, the first such; `None` if no single move makes room. All GPUs are cut by one table;
/// `gpus` lists what is in use on each.
pub fn move_for(table: &MigTable, gpus: &[Vec<Instance>], profile: usize) -> Option<InstanceMove> {
    let cuts: Vec<GpuCut> = gpus.iter().map(|held| cut(table, held.iter())).collect();
    let fits_elsewhere = |of: usize, moved: usize| {
        cuts.iter().enumerate().any(|(gpu, cut)| gpu != of && fits(table, *cut, moved))
    };
    let mut best: Option<(u8, InstanceMove)> = None;
    for (gpu, held) in gpus.iter().enumerate() {
        for (instance, moved) in held.iter().enumerate() {
            let size = table.profiles[moved.profile].compute_slices;
            if best.is_some_and(|(least, _)| least <= size) {
                continue;
            }
            let others = held.iter().enumerate().filter(|(other, _)| *other != instance);
            let left = cut(table, others.map(|(_, other)| other));
            if fits(table, left, profile) && fits_elsewhere(gpu, moved.profile) {
                best = Some((size, InstanceMove { gpu, instance }));
            }
        }
    }
    best.map(|(_, found)| found)
}

fn cut<'i>(table: &MigTable, held: impl Iterator<Item = &'i Instance>) -> GpuCut {
    let add = |cut: GpuCut, instance: &Instance| {
        // What lies there already is a fact, whether it should or not.
        cut.with(table, &table.profiles[instance.profile], instance.start).unwrap_or(cut)
    };
    held.fold(GpuCut::default(), add)
}

fn fits(table: &MigTable, cut: GpuCut, profile: usize) -> bool {
    let profile = &table.profiles[profile];
    profile.starts.iter().any(|start| cut.with(table, profile, *start).is_some())
}
