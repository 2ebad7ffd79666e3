//! Ray clusters (`ray.io/v1`): the head and the workers start together. With the autoscaler of Ray
//! only the smallest number of workers is needed, as in the gangs that KubeRay makes for other
//! schedulers.

use serde::Deserialize;

use super::pods_made::{PodsMade, Unread};
use super::{WorkloadObject, WorkloadRole};
use crate::json::nullable;
use crate::meta::Meta;

/// The group of the head.
pub const HEAD_GROUP: &str = "headgroup";

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClusterJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: RaySpec<Unread>,
}

/// What a Ray cluster says of its pods; `T` is their template.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct RaySpec<T> {
    #[serde(deserialize_with = "nullable")]
    head_group_spec: HeadGroupJson<T>,
    #[serde(deserialize_with = "nullable")]
    worker_group_specs: Vec<WorkerGroupJson<T>>,
    #[serde(deserialize_with = "nullable")]
    enable_in_tree_autoscaling: bool,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de> + Default"))]
struct HeadGroupJson<T> {
    #[serde(deserialize_with = "nullable")]
    template: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de> + Default"))]
struct WorkerGroupJson<T> {
    #[serde(deserialize_with = "nullable")]
    group_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    replicas: u32,
    #[serde(deserialize_with = "nullable")]
    min_replicas: u32,
    num_of_hosts: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    suspend: bool,
    #[serde(deserialize_with = "nullable")]
    template: T,
}

impl<T> RaySpec<T> {
    /// The pods that it makes: the head, and the workers by group.
    pub fn pods_made(&self) -> impl Iterator<Item = PodsMade<'_, T>> {
        let template = &self.head_group_spec.template;
        let head = PodsMade { name: HEAD_GROUP, parts: 1, pods_each: 1, template };
        [head].into_iter().chain(self.groups().map(|group| PodsMade {
            name: &group.group_name,
            parts: group.replicas.max(group.min_replicas),
            pods_each: group.num_of_hosts.unwrap_or(1),
            template: &group.template,
        }))
    }

    /// Groups of workers that are to run.
    fn groups(&self) -> impl Iterator<Item = &WorkerGroupJson<T>> {
        self.worker_group_specs.iter().filter(|group| !group.suspend)
    }
}

impl<T> WorkerGroupJson<T> {
    fn role(&self, autoscales: bool) -> WorkloadRole {
        let needed = if autoscales { self.min_replicas } else { self.replicas };
        let hosts = self.num_of_hosts.unwrap_or(1);
        let min = needed.saturating_mul(hosts);
        let pods = self.replicas.saturating_mul(hosts).max(min);
        WorkloadRole { name: self.group_name.clone(), pods, min }
    }
}

impl From<ClusterJson> for WorkloadObject {
    fn from(ClusterJson { metadata, spec }: ClusterJson) -> Self {
        let workers = spec.groups().map(|group| group.role(spec.enable_in_tree_autoscaling));
        let head = WorkloadRole::fixed(HEAD_GROUP, 1);
        Self {
            roles: [head].into_iter().chain(workers).filter(|role| role.pods > 0).collect(),
            suspended: spec.suspend,
            meta: metadata,
            ..Self::default()
        }
    }
}
