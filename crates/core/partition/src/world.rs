//! What is planned with: GPUs and their instances, pending demand, and rules.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::MigTable;
use thiserror::Error;

use crate::state::GpuCut;

/// An instance on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// Place of the profile in the GPU's table.
    pub profile: usize,
    /// Memory slice at which it starts.
    pub start: u8,
}

/// What may be changed of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Instances nobody uses, beside those in use.
    Idle,
    /// All of the GPU at once, and only while nothing of it is in use (NVIDIA's mig-manager).
    WhenEmpty,
    /// Nothing. Idle instances still serve pods.
    Never,
}

/// One GPU that can be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Place of its table in [`PartitionInput::tables`].
    pub table: usize,
    /// Number of its pool: GPUs to which the same demand may go.
    pub pool: u16,
    /// Not in MIG mode: free as a whole GPU, without instances.
    pub is_whole: bool,
    /// Instances in use, which stay where they are.
    pub held: Vec<Instance>,
    /// Instances nobody uses.
    pub idle: Vec<Instance>,
    /// What may change.
    pub change: Change,
}

/// Pods that wait for one instance each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Name of the profile, as the tables have it.
    pub profile: String,
    /// How many pods.
    pub count: u32,
    /// Higher priorities are served before anything of lower ones counts.
    pub priority: i32,
    /// How long they have waited, in milliseconds.
    pub waiting_ms: i64,
    /// Pools they may go to; `None`: all.
    pub pools: Option<Vec<u16>>,
}

/// When a change is worth it, and how long to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Names of the profiles of which instances may be created; `None`: all. Idle instances of
    /// others serve pods like any, and are made again with a GPU that keeps them.
    pub created: Option<BTreeSet<String>>,
    /// Seconds for which a GPU is unavailable when its instances change (p90 of own receipts).
    pub change_s: i64,
    /// Seconds for which a new layout is assumed to be used.
    pub horizon_s: i64,
    /// A change is made if the work it starts is at least so many percent of its cost.
    pub gain_percent: i64,
    /// Younger demand is not acted for, in milliseconds.
    pub min_age_ms: i64,
    /// Weight of each profile, by name, in the room that should be left; where it is empty all
    /// profiles of a table count alike.
    pub mix: BTreeMap<String, u32>,
    /// Steps of the search; at their end the best plan counts.
    pub steps: u64,
}

impl Rules {
    /// Whether instances of a profile may be created.
    pub fn may_create(&self, profile: &str) -> bool {
        self.created.as_ref().is_none_or(|created| created.contains(profile))
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            created: None,
            change_s: 180,
            horizon_s: 3_600,
            gain_percent: 150,
            min_age_ms: 60_000,
            mix: BTreeMap::new(),
            steps: 2_000_000,
        }
    }
}

/// Everything a plan is made of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PartitionInput {
    /// How GPUs can be cut.
    pub tables: Vec<MigTable>,
    pub gpus: Vec<Gpu>,
    /// Who waits, in scheduling order and within quota.
    pub demand: Vec<Demand>,
}

/// What is wrong with a world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// Instances that cannot lie on one GPU together.
    #[error(
        "GPU number {gpu}: `{profile}` at memory slice {start} does not fit with the instances listed before it"
    )]
    Impossible {
        /// The GPU, from 0.
        gpu: usize,
        /// The first instance that does not fit.
        profile: String,
        start: u8,
    },
    /// A GPU names a table or a profile that does not exist.
    #[error("GPU number {gpu}: there is no such table or profile")]
    Unknown {
        /// The GPU, from 0.
        gpu: usize,
    },
    /// A whole GPU with instances.
    #[error("GPU number {gpu}: a whole GPU has no instances")]
    Whole {
        /// The GPU, from 0.
        gpu: usize,
    },
}

impl PartitionInput {
    /// Compute slices that the GPUs can offer to pending pods: all that are not in use of GPUs that
    /// may change, and the idle instances of the others. Places in tables must be as
    /// [`Self::check`] wants them.
    pub fn offered_compute_slices(&self) -> i64 {
        let of_gpu = |gpu: &Gpu| {
            let table = &self.tables[gpu.table];
            let slices = |instances: &[Instance]| -> i64 {
                let of = |one: &Instance| i64::from(table.profiles[one.profile].compute_slices);
                instances.iter().map(of).sum()
            };
            let may_change = match gpu.change {
                Change::Idle => true,
                Change::WhenEmpty => gpu.held.is_empty(),
                Change::Never => false,
            };
            match may_change {
                true => i64::from(table.compute_slices) - slices(&gpu.held),
                false => slices(&gpu.idle),
            }
        };
        self.gpus.iter().map(of_gpu).sum()
    }

    /// Checks that every GPU is as its table allows.
    ///
    /// # Errors
    /// The first GPU that is not.
    pub fn check(&self) -> Result<(), WorldError> {
        for (number, gpu) in self.gpus.iter().enumerate() {
            let Some(table) = self.tables.get(gpu.table) else {
                return Err(WorldError::Unknown { gpu: number });
            };
            let mut cut = GpuCut::default();
            for instance in gpu.held.iter().chain(&gpu.idle) {
                if gpu.is_whole {
                    return Err(WorldError::Whole { gpu: number });
                }
                let Some(profile) = table.profiles.get(instance.profile) else {
                    return Err(WorldError::Unknown { gpu: number });
                };
                let fits = profile.starts.contains(&instance.start);
                let next = cut.with(table, profile, instance.start).filter(|_| fits);
                let Some(next) = next else {
                    let profile = profile.name.clone();
                    let start = instance.start;
                    return Err(WorldError::Impossible { gpu: number, profile, start });
                };
                cut = next;
            }
        }
        Ok(())
    }
}
