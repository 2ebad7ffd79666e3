//! Sharing policies (`dovetail.dev/v1alpha1`): how the GPUs of which nodes may be shared.

use std::collections::BTreeMap;

use dovetail_model::MigTable;
use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::amd::Partition;
use crate::component::Component;
use crate::replicas::{Method, Replicas, shared_resource};

/// A SharingPolicy object.
#[derive(Clone, Debug, PartialEq)]
pub struct SharingPolicy {
    pub name: String,
    pub uid: String,
    pub spec: PolicySpec,
    /// Its status as it was last written.
    pub status: Value,
}

/// How pods share a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    #[default]
    Mig,
    TimeSlicing,
    Mps,
    Whole,
    AmdPartition,
}

/// Whether pods in the way are moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Moves {
    #[default]
    Never,
    Restartable,
}

/// How much may change in a day. Nodes change one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct Budget {
    /// Percentage of the selected nodes that may change within 24 hours; at least one node may.
    #[schemars(with = "i32", range(min = 1, max = 100), extend("default" = 10))]
    pub percent_per_day: u32,
    /// GPU-seconds that pods may lose within an hour where `moves` allows to move them: until their
    /// replacements are ready, and work since the last checkpoint.
    #[schemars(with = "i32", range(min = 1, max = 1_000_000), extend("default" = 600))]
    pub moved_gpu_seconds_per_hour: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { percent_per_day: 10, moved_gpu_seconds_per_hour: 600 }
    }
}

// What people write in `spec`. Its schema is derived from it: the comments of its fields are what
// `kubectl explain sharingpolicy.spec` prints.
/// What may be changed of which nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct PolicySpec {
    /// Labels that a node must have. Without it the policy selects every node with GPUs.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 16))]
    pub node_selector: BTreeMap<String, String>,
    /// How pods share a GPU: mig plans layouts for pending pods; time-slicing and mps let
    /// `replicas` pods share each GPU; whole gives each pod its own; amd-partition divides each AMD
    /// Instinct GPU as `partition` says.
    pub mode: Mode,
    /// MIG profiles that may be created, such as 1g.10gb. Without it all profiles of the GPU.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub profiles: Vec<String>,
    /// Free GPUs of each model that stay whole, besides what pending pods request.
    #[serde(default)]
    #[schemars(with = "i32", range(min = 0, max = 1_000_000), extend("default" = 0))]
    pub keep_whole: u32,
    /// Pods that share a GPU in modes time-slicing and mps, which need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 2, max = 48))]
    pub replicas: Option<u32>,
    /// Compute and memory partition mode of each GPU in mode amd-partition, which needs it: for
    /// example cpx_nps4, or spx_nps1 for whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^(spx|dpx|qpx|cpx)_nps[124]$"))]
    pub partition: Option<Partition>,
    /// Values of the label dovetail.dev/class whose pods may share GPUs in modes time-slicing and
    /// mps. dovetail's scheduler places no other classes there, and pods of others are reported.
    /// Without it any class may, but inference only with mps. The pods of a node must be of one
    /// class with time-slicing, and of one namespace with mps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub classes: Vec<String>,
    /// Whether pods in the way of a change may be moved: never, or restartable ones (pods of a
    /// ReplicaSet with a second ready replica, and pods that declare checkpoints), by eviction.
    #[serde(default)]
    pub moves: Moves,
    /// Minutes for which the GPUs of a node take no new pods while the pods on them finish, if all
    /// of these pods are expected to finish within this time. 0: nodes do not wait.
    #[serde(default = "fifteen")]
    #[schemars(with = "i32", range(min = 0, max = 1_440), extend("default" = 15))]
    pub wait_minutes: u32,
    /// Whether GPUs may be put into MIG mode, and out of it.
    #[serde(default)]
    pub allow_mode_change: bool,
    /// How much may change in a day.
    #[serde(default)]
    pub budget: Budget,
    /// Latency to compare before and after a change. A change that makes it worse is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// Whether `dovetail partition apply` changes the nodes. Otherwise it only reports.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub apply: bool,
}

/// Latency that a change must not worsen: one node changes first, and each further step waits until
/// the latency of the workloads on the changed nodes was compared with the same hours before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct Guard {
    /// PromQL of the buckets of a latency histogram, with `le`. $window, $namespace, $workload and
    /// $pods (a regular expression) are filled in. Without it the histograms of vLLM, TGI, Knative
    /// and Istio are tried.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4_096))]
    pub query: String,
    /// How many hours after a change are compared with the same hours before it.
    #[schemars(with = "i32", range(min = 2, max = 24), extend("default" = 6))]
    pub hours: u32,
}

impl Default for Guard {
    fn default() -> Self {
        Self { query: String::new(), hours: 6 }
    }
}

fn fifteen() -> u32 {
    15
}

/// The server drops fields that it does not know; a file with one is refused.
fn open(schema: &mut Schema) {
    schema.remove("additionalProperties");
}

impl Mode {
    /// The mode as policies spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mig => "mig",
            Self::TimeSlicing => "time-slicing",
            Self::Mps => "mps",
            Self::Whole => "whole",
            Self::AmdPartition => "amd-partition",
        }
    }

    /// The component that gives nodes the layouts of the mode.
    pub fn component(self) -> Component {
        match self {
            Self::Mig => Component::MigManager,
            Self::TimeSlicing | Self::Mps | Self::Whole => Component::DevicePlugin,
            Self::AmdPartition => Component::DeviceConfigManager,
        }
    }

    /// Whether GPUs can be offered as a resource under the mode.
    pub fn provides(self, resource: &str) -> bool {
        match self {
            Self::Mig if resource.starts_with(NVIDIA_MIG) => true,
            Self::Mig | Self::Whole => resource == NVIDIA_GPU,
            Self::TimeSlicing | Self::Mps => resource == shared_resource(),
            Self::AmdPartition => false,
        }
    }
}

impl PolicySpec {
    /// How pods share whole GPUs under the policy; `None` if they do not.
    pub fn sharing(&self) -> Option<Replicas> {
        let count = self.replicas?;
        Some(Replicas { method: Method::named(self.mode.word())?, count })
    }

    /// Whether a node with these labels is selected.
    pub fn selects<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.node_selector.iter().all(|(key, value)| label(key) == Some(value))
    }

    /// Whether instances of a profile may be created. Drivers spell profiles in several ways.
    /// `tables`: all that are known.
    pub fn lists(&self, profile: &str, tables: &[MigTable]) -> bool {
        if self.profiles.is_empty() || self.profiles.iter().any(|name| name == profile) {
            return true;
        }
        let is_same = |name: &String| {
            tables.iter().any(|table| {
                let place = table.named(profile, tables);
                place.is_some() && table.named(name, tables) == place
            })
        };
        self.profiles.iter().any(is_same)
    }
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: PolicySpec,
    #[serde(default)]
    status: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    uid: String,
}

impl<'de> Deserialize<'de> for SharingPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let Object { metadata: Metadata { name, uid }, spec, status } = Object::deserialize(input)?;
        Ok(Self { name, uid, spec, status })
    }
}
