//! What one pod of a workload asks for whose containers request MIG instances.

use dovetail_facts::{Node, Workload};
use dovetail_model::{Resources, is_gpu_resource, labels};

use super::node_room::rooms;
use super::resource_cluster::resources;
use super::taints::{keeping_away, tolerates};

/// What one pod asks for. All of it must come from one node.
pub(super) struct InstanceRequest<'w> {
    pub(super) workload: &'w Workload,
    /// MIG instances, by resource.
    pub(super) instances: Vec<(&'w str, i64)>,
    /// GPUs of other kinds, by resource.
    pub(super) beside: Vec<(&'w str, i64)>,
    /// Whatever is no GPU.
    pub(super) others: Resources,
}

impl<'w> InstanceRequest<'w> {
    /// `None` if its pods ask for no MIG instances.
    pub(super) fn of(workload: &'w Workload) -> Option<Self> {
        let all = workload.gpus_per_pod().into_iter().filter(|(_, count)| *count > 0);
        let (instances, beside): (Vec<_>, Vec<_>) =
            all.partition(|(resource, _)| profile_of(resource).is_some());
        if instances.is_empty() {
            return None;
        }
        let mut others = resources(&workload.template, "");
        others.extended.retain(|name, _| !is_gpu_resource(name));
        Some(Self { workload, instances, beside, others })
    }

    /// How many whole GPUs one pod asks for beside its instances.
    pub(super) fn whole_gpus(&self) -> i64 {
        let whole = self.beside.iter().find(|(resource, _)| *resource == labels::NVIDIA_GPU);
        whole.map_or(0, |(_, count)| *count)
    }

    /// Whether labels and taints of a node let its pods in.
    pub(super) fn may_use(&self, node: &Node) -> bool {
        self.workload.accepts_labels(node)
            && keeping_away(node).all(|taint| tolerates(self.workload, taint))
    }

    /// How many of its pods a node has room for beside what is used of it, whatever GPUs it has.
    pub(super) fn rooms(&self, node: &Node, used: &Resources) -> i64 {
        rooms(&node.node.allocatable, &self.others, Some(used))
    }

    /// So many of its pods use this much more of a node.
    pub(super) fn take(&self, used: &mut Resources, pods: i64) {
        used.add_times(&self.others, pods);
    }
}

/// The profile whose instances a resource counts; `None` for other resources, also for replicas of
/// instances, which no layout makes.
pub(super) fn profile_of(resource: &str) -> Option<&str> {
    resource.strip_prefix(labels::NVIDIA_MIG).filter(|name| !name.ends_with(".shared"))
}
