//! Simple rules, restated, with which the engine is compared.

use std::collections::BTreeMap;

use dovetail_model::{MigProfile, MigTable};
use dovetail_partition::GpuCut;
use dovetail_plan::EngineError;
use dovetail_trace::synth::{Purpose, Random};

use crate::slices::{Places, SlicePosition, SlicesWorld};

/// The rules by name, with what they do.
pub const RULES: [(&str, &str); 5] = [
    (
        "kube-default",
        "kube-scheduler: the node with the most left; its first GPU and placement that fit",
    ),
    ("random", "any node that fits, chosen by seed; its first GPU and placement"),
    ("first-fit", "the first GPU and placement that fit"),
    ("best-fit", "the GPU with the fewest compute slices left; its first placement"),
    (
        "least-room-lost",
        "the GPU and placement that leave the most room for all profiles (arXiv 2511.18906)",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlacementRule {
    KubeDefault,
    Random,
    FirstFit,
    BestFit,
    LeastRoomLost,
}

/// A rule at work.
#[derive(Debug)]
pub struct ByRule {
    rule: PlacementRule,
    table: MigTable,
    /// Numbers of the first GPUs of the nodes, and the number of all GPUs at the end.
    nodes: Vec<usize>,
    gpus: Vec<GpuCut>,
    /// By profile: 1 for those without media engines and without extra memory.
    weights: Vec<i64>,
    /// By profile: no instance is idle.
    idle: Vec<u8>,
    pods: BTreeMap<u64, (usize, SlicePosition)>,
    random: Random,
}

impl ByRule {
    /// A rule by its name; `None` if there is no such rule.
    pub fn named(name: &str, world: &SlicesWorld) -> Option<Self> {
        let rule = match name {
            "kube-default" => PlacementRule::KubeDefault,
            "random" => PlacementRule::Random,
            "first-fit" => PlacementRule::FirstFit,
            "best-fit" => PlacementRule::BestFit,
            "least-room-lost" => PlacementRule::LeastRoomLost,
            _ => return None,
        };
        let mut nodes = vec![0];
        for gpus in &world.node_gpus {
            nodes.push(nodes[nodes.len() - 1] + *gpus as usize);
        }
        Some(Self {
            rule,
            weights: basic(&world.table),
            idle: vec![0; world.table.profiles.len()],
            table: world.table.clone(),
            nodes,
            gpus: vec![GpuCut::default(); world.gpus()],
            pods: BTreeMap::new(),
            random: Random::new(world.seed, Purpose::Machines),
        })
    }

    fn choose(&mut self, profile: &MigProfile) -> Option<SlicePosition> {
        let first = |gpu: usize| self.first_on(gpu, profile);
        match self.rule {
            PlacementRule::FirstFit => (0..self.gpus.len()).find_map(first),
            PlacementRule::BestFit => {
                (0..self.gpus.len()).filter_map(first).min_by_key(|slice| self.left(slice.gpu))
            }
            PlacementRule::KubeDefault => {
                let fitting = self.fitting_nodes(profile);
                let left = |node: usize| -> u32 {
                    (self.nodes[node]..self.nodes[node + 1])
                        .map(|gpu| u32::from(self.left(gpu)))
                        .sum()
                };
                let node = fitting.into_iter().rev().max_by_key(|node| left(*node))?;
                (self.nodes[node]..self.nodes[node + 1]).find_map(first)
            }
            PlacementRule::Random => {
                let fitting = self.fitting_nodes(profile);
                if fitting.is_empty() {
                    return None;
                }
                let node = fitting[self.random.below(fitting.len())];
                (self.nodes[node]..self.nodes[node + 1]).find_map(|gpu| self.first_on(gpu, profile))
            }
            PlacementRule::LeastRoomLost => {
                let all = (0..self.gpus.len()).flat_map(|gpu| self.starts_on(gpu, profile));
                all.min_by_key(|slice| self.room_lost(*slice, profile))
            }
        }
    }

    fn fitting_nodes(&self, profile: &MigProfile) -> Vec<usize> {
        let fits = |node: &usize| {
            (self.nodes[*node]..self.nodes[*node + 1])
                .any(|gpu| self.first_on(gpu, profile).is_some())
        };
        (0..self.nodes.len() - 1).filter(fits).collect()
    }

    fn left(&self, gpu: usize) -> u8 {
        self.gpus[gpu].compute_left(&self.table)
    }

    fn starts_on<'s>(
        &'s self,
        gpu: usize,
        profile: &'s MigProfile,
    ) -> impl Iterator<Item = SlicePosition> + 's {
        let fits = move |start: &&u8| self.gpus[gpu].with(&self.table, profile, **start).is_some();
        profile.starts.iter().filter(fits).map(move |start| SlicePosition { gpu, start: *start })
    }

    fn first_on(&self, gpu: usize, profile: &MigProfile) -> Option<SlicePosition> {
        self.starts_on(gpu, profile).next()
    }

    /// Room as Σ over basic profiles of compute slices × how many would fit.
    fn room_lost(&self, slice: SlicePosition, profile: &MigProfile) -> i64 {
        let room = |cut: GpuCut| cut.room(&self.table, &self.weights, &self.idle);
        let now = self.gpus[slice.gpu];
        let after = now.with(&self.table, profile, slice.start);
        room(now) - after.map_or(0, room)
    }
}

fn basic(table: &MigTable) -> Vec<i64> {
    let least = |profile: &MigProfile| {
        let alike = table.profiles.iter().filter(|p| p.compute_slices == profile.compute_slices);
        alike.map(|p| p.memory_slices).min() == Some(profile.memory_slices)
    };
    let weight = |profile: &MigProfile| i64::from(!profile.has_media() && least(profile));
    table.profiles.iter().map(weight).collect()
}

impl Places for ByRule {
    fn place(
        &mut self,
        pod: u64,
        profile: usize,
        _: u64,
    ) -> Result<Option<SlicePosition>, EngineError> {
        let of = self.table.profiles[profile].clone();
        let Some(slice) = self.choose(&of) else { return Ok(None) };
        let cut = self.gpus[slice.gpu].with(&self.table, &of, slice.start);
        self.gpus[slice.gpu] = cut.unwrap_or(self.gpus[slice.gpu]);
        self.pods.insert(pod, (profile, slice));
        Ok(Some(slice))
    }

    fn end(&mut self, pod: u64, _: u64) -> Result<(), EngineError> {
        if let Some((profile, slice)) = self.pods.remove(&pod) {
            let of = &self.table.profiles[profile];
            self.gpus[slice.gpu] = self.gpus[slice.gpu].without(of, slice.start);
        }
        Ok(())
    }
}
