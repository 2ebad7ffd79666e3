//! Why a job waits, and the smallest changes that would start it now.
//!
//! Every constraint that could be given up is tried alone, then in pairs of which neither helps
//! alone: all minimal relaxations of size one and two. Each is verified by the placement that would
//! be used, so applying one makes the job placeable.

use std::sync::Arc;

use dovetail_model::requirement::Toleration;
use dovetail_model::{
    Bounds, Charge, ConditionCause, HoldingId, Job, JobId, Owner, PendingReason, Requirement,
    RuleCause,
};
use serde::Serialize;

use crate::engine::dividing;
use crate::engine::models::{self, Models};
use crate::engine::{Placement, Questions};
use crate::gang::{Gang, GangSet};
use dovetail_order::queues::quota::{Beside, QuotaBlock};
use dovetail_state::cause::CauseCounts;
use dovetail_state::view::View;

/// A constraint that could be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relaxation {
    /// What the queue, or one above it, is guaranteed and limited to.
    Quota,
    /// GPU models and least device memory.
    GpuModel,
    /// Required topology levels.
    Level,
    Cpu,
    Memory,
    /// Ephemeral storage.
    Ephemeral,
    /// Extended resources.
    Extended,
    /// Taints: tolerate all.
    Taint,
    /// Node labels and names.
    Selector,
    /// Where the devices are that claims ask for.
    DeviceClaims,
    /// Features that a node must declare.
    Features,
    /// Who shares GPUs with whom.
    SharedGpus,
    /// Spread and affinity rules.
    Rule,
    HostPort,
    /// Where volumes are, can be made and may be attached, and who else uses them.
    Volume,
    /// Capacity kept for others.
    Reservation,
    /// All devices of a pod in one island.
    Island,
}

impl Relaxation {
    /// All of them, in the order in which they are tried and shown.
    pub const ALL: [Self; 17] = [
        Self::Quota,
        Self::GpuModel,
        Self::Level,
        Self::Cpu,
        Self::Memory,
        Self::Ephemeral,
        Self::Extended,
        Self::Taint,
        Self::Selector,
        Self::DeviceClaims,
        Self::Features,
        Self::SharedGpus,
        Self::Rule,
        Self::HostPort,
        Self::Volume,
        Self::Reservation,
        Self::Island,
    ];
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingJob {
    pub job: JobId,
    /// The reason last given; `None` if it has not been tried yet.
    pub reason: Option<PendingReason>,
    /// The bound of a queue that keeps the job from starting.
    pub quota: Option<QuotaBlock>,
    /// Per pod set: nodes by the first thing that keeps a pod off them.
    pub obstacles: Vec<CauseCounts>,
    /// Minimal sets of constraints, of size one and two, without which the job would start now.
    pub relaxations: Vec<Vec<Relaxation>>,
}

impl Questions<'_> {
    /// Why a job waits; `None` if it does not.
    pub fn why(&mut self, job: JobId) -> Option<WaitingJob> {
        let record = self.books.jobs.waiting(job)?;
        let (owned, gang, reason) = (record.job.clone(), record.gang.clone(), record.reason);
        let quota = self.books.bounded().block(job);
        let own = self.books.room_held_for(job);
        let obstacles = self.books.placement.as_if_free(own, |placement| {
            let Placement { state, policy, finder, .. } = placement;
            let of = |set: &GangSet| finder.finder().obstacles(state, &mut **policy, set.shape);
            gang.sets.iter().map(of).collect()
        });
        let relaxations = self.minimal_relaxations(&owned);
        Some(WaitingJob { job, reason, quota, obstacles, relaxations })
    }

    /// Whether a waiting job could start now if the constraints were given up.
    pub fn fits_without(&mut self, job: &Job, given_up: &[Relaxation]) -> bool {
        let relaxed = relax(job, given_up);
        // Who asks for less may be within its quota.
        let asked = Charge::of_smallest(&relaxed);
        let kept = match given_up.contains(&Relaxation::Reservation) {
            true => Beside::default(),
            false => self.books.bounded().quota_kept(job.id),
        };
        if !given_up.contains(&Relaxation::Quota)
            && (self.books.quota.blocked_by(&job.queue, &asked, &kept).is_some()
                || dividing::is_beyond_firm_quota(job.id, self.books))
        {
            return false;
        }
        let Ok(gang) = Gang::of(&mut self.books.placement.state, &relaxed) else { return false };
        let models = match given_up.contains(&Relaxation::Quota) {
            true => Models::AsAsked,
            false => {
                let headroom = self.books.quota.headroom(&job.queue, &kept);
                models::within(&gang, &headroom, self.books)
            }
        };
        let gang = match models {
            Models::AsAsked => gang,
            Models::Fewer(fewer) => fewer,
            Models::Nothing => return false,
        };
        let view = match given_up.contains(&Relaxation::Reservation) {
            true => View::Without(self.kept()),
            false => View::Now,
        };
        let own = self.books.room_held_for(job.id);
        self.books.what_if(own, &gang, &view, Bounds::default()).is_some()
    }

    fn minimal_relaxations(&mut self, job: &Job) -> Vec<Vec<Relaxation>> {
        if self.fits_without(job, &[]) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut open = Vec::new();
        for relaxation in Relaxation::ALL {
            if !self.binds(job, relaxation) {
                continue;
            }
            match self.fits_without(job, &[relaxation]) {
                true => found.push(vec![relaxation]),
                false => open.push(relaxation),
            }
        }
        for (index, first) in open.iter().enumerate() {
            for second in &open[index + 1..] {
                if self.fits_without(job, &[*first, *second]) {
                    found.push(vec![*first, *second]);
                }
            }
        }
        found
    }

    /// Whether giving the constraint up changes anything about the job.
    fn binds(&self, job: &Job, relaxation: Relaxation) -> bool {
        match relaxation {
            Relaxation::Quota => self.books.quota.bounds(&job.queue),
            Relaxation::Reservation => !self.kept().is_empty(),
            _ => relax(job, &[relaxation]) != *job,
        }
    }

    fn kept(&self) -> Vec<HoldingId> {
        let kept = self
            .books
            .placement
            .state
            .holdings
            .iter()
            .filter(|(_, r)| r.owner == Owner::Reservation);
        kept.map(|(id, _)| id).collect()
    }
}

/// The job with constraints given up.
pub fn relax(job: &Job, given_up: &[Relaxation]) -> Job {
    let mut relaxed = job.clone();
    if given_up.contains(&Relaxation::Level) {
        relaxed.topology.required = None;
        relaxed.pod_sets.iter_mut().for_each(|set| set.topology.required = None);
    }
    for set in &mut relaxed.pod_sets {
        let mut requirement = Requirement::clone(&set.requirement);
        for relaxation in given_up {
            relax_pod(&mut requirement, *relaxation);
        }
        set.requirement = Arc::new(requirement);
    }
    relaxed
}

fn relax_pod(pod: &mut Requirement, relaxation: Relaxation) {
    match relaxation {
        Relaxation::Quota | Relaxation::Level | Relaxation::Reservation => {}
        Relaxation::GpuModel => {
            pod.gpu_models.clear();
            pod.min_device_memory_bytes = 0;
        }
        Relaxation::Cpu => pod.resources.cpu_milli = 0,
        Relaxation::Memory => pod.resources.memory_bytes = 0,
        Relaxation::Ephemeral => pod.resources.ephemeral_bytes = 0,
        Relaxation::Extended => pod.resources.extended.clear(),
        Relaxation::Taint => {
            pod.tolerations = vec![Toleration { any_value: true, ..Toleration::default() }];
        }
        Relaxation::Selector => {
            pod.node_conditions.retain(|c| of_condition(c.cause) != relaxation);
            pod.node_names.clear();
        }
        Relaxation::DeviceClaims | Relaxation::Features | Relaxation::SharedGpus => {
            pod.node_conditions.retain(|c| of_condition(c.cause) != relaxation);
            pod.rules.retain(|rule| of_rule(rule.cause) != relaxation);
        }
        Relaxation::Rule | Relaxation::HostPort => {
            pod.rules.retain(|rule| of_rule(rule.cause) != relaxation);
        }
        Relaxation::Volume => {
            pod.node_conditions.retain(|c| of_condition(c.cause) != relaxation);
            pod.rules.retain(|rule| of_rule(rule.cause) != relaxation);
            pod.attachments.clear();
        }
        Relaxation::Island => {
            if let dovetail_model::DeviceRequest::Whole { same_island, .. } = &mut pod.device {
                *same_island = false;
            }
        }
    }
}

/// What gives a condition up.
fn of_condition(cause: ConditionCause) -> Relaxation {
    match cause {
        ConditionCause::NodeAffinity => Relaxation::Selector,
        ConditionCause::DeviceClaims => Relaxation::DeviceClaims,
        ConditionCause::DeclaredFeatures => Relaxation::Features,
        ConditionCause::SharedGpus => Relaxation::SharedGpus,
        ConditionCause::VolumeDriver
        | ConditionCause::VolumeNodeAffinity
        | ConditionCause::VolumeZone
        | ConditionCause::StorageTopology
        | ConditionCause::StorageCapacity => Relaxation::Volume,
    }
}

/// What gives a rule up.
fn of_rule(cause: RuleCause) -> Relaxation {
    match cause {
        RuleCause::Spread
        | RuleCause::Affinity
        | RuleCause::AntiAffinity
        | RuleCause::ExistingAntiAffinity => Relaxation::Rule,
        RuleCause::HostPort => Relaxation::HostPort,
        RuleCause::DiskConflict | RuleCause::ReadWriteOncePod => Relaxation::Volume,
        RuleCause::DeviceClaims => Relaxation::DeviceClaims,
        RuleCause::SharedGpus => Relaxation::SharedGpus,
    }
}
