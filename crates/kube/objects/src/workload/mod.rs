//! Workloads: objects whose controllers make pods that start together. Their pods carry labels that
//! say to which one they belong and in what role; kept is what no label says: how many pods of each
//! role there will be.

mod job;
mod job_set;
mod kind;
mod kubeflow;
mod leader_worker_set;
mod pods_made;
mod ray;

pub use job::JobSpec;
pub use job_set::{JobSetSpec, has_exclusive_domains, leaders_of};
pub use kind::WorkloadKind;
pub use kubeflow::TrainingSpec;
pub use leader_worker_set::{LEADER, WORKERS};
pub use pods_made::PodsMade;
pub use ray::{HEAD_GROUP, RaySpec};

use super::meta::Meta;
use super::read::{Strange, read as read_as};

/// What is kept of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadObject {
    /// Name, identity, annotations.
    pub meta: Meta,
    /// Its kinds of pods. None: its pods do not start together.
    pub roles: Box<[WorkloadRole]>,
    /// By which of its settings its pods do not start together; empty if they do, or if it has
    /// none.
    pub apart: Box<str>,
    /// Fewest pods of all roles together, where that is said beside them.
    pub min: Option<u32>,
    /// Whether its controller makes the pods of some roles only when those of others have a node or
    /// run.
    pub in_stages: bool,
    /// Whether it is suspended: its pods are not to run.
    pub suspended: bool,
    /// Whether it makes one pod, and another one only in place of that.
    pub is_of_one_pod: bool,
    /// After how many seconds it is ended.
    pub active_deadline_s: Option<u32>,
}

/// One kind of pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadRole {
    /// Its name, as the labels of its pods say it.
    pub name: Box<str>,
    /// Pods that there will be.
    pub pods: u32,
    /// How many of them are needed to start.
    pub min: u32,
}

impl WorkloadRole {
    /// A role all of whose pods are needed.
    fn fixed(name: &str, pods: u32) -> Self {
        Self { name: name.into(), pods, min: pods }
    }
}

pub(super) fn read(kind: WorkloadKind, json: &[u8]) -> Result<WorkloadObject, Box<Strange>> {
    let name = kind.name();
    match kind {
        WorkloadKind::Job => read_as::<job::JobJson>(name, json).map(WorkloadObject::from),
        WorkloadKind::JobSet => {
            read_as::<job_set::JobSetJson>(name, json).map(WorkloadObject::from)
        }
        WorkloadKind::LeaderWorkerSet => {
            read_as::<leader_worker_set::SetJson>(name, json).map(WorkloadObject::from)
        }
        WorkloadKind::RayCluster => {
            read_as::<ray::ClusterJson>(name, json).map(WorkloadObject::from)
        }
        WorkloadKind::PyTorchJob
        | WorkloadKind::TfJob
        | WorkloadKind::TrainingMpiJob
        | WorkloadKind::MpiJob
        | WorkloadKind::XgBoostJob
        | WorkloadKind::PaddleJob
        | WorkloadKind::JaxJob => {
            read_as::<kubeflow::JobJson>(name, json).map(WorkloadObject::from)
        }
    }
}
