//! Pod groups: the native ones (`scheduling.k8s.io/v1beta1`), and those of scheduler-plugins,
//! Volcano and KAI, which say `minMember`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::json::nullable;
use super::meta::Meta;
use super::sub_group::{SubGroup, SubGroupPolicy, TopologyConstraint};

/// Type of the condition.
pub const INITIALLY_SCHEDULED: &str = "PodGroupInitiallyScheduled";

/// Pods that start together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroup {
    pub meta: Meta,
    /// Fewest pods that may start; `None`: each starts by itself.
    pub min_count: Option<u32>,
    /// Fewest pods of each task, by its name (Volcano's `minTaskMember`).
    pub min_tasks: Box<[(Box<str>, u32)]>,
    /// Node labels whose value all pods must share.
    pub topology_keys: Box<[Box<str>]>,
    /// Where all pods must or should be (Volcano's `networkTopology`).
    pub network_topology: Option<NetworkTopology>,
    /// Higher goes first; `None` if it does not say.
    pub priority: Option<i32>,
    /// The name of its priority class; empty if it names none.
    pub priority_class: Box<str>,
    /// Where all pods must and should be (KAI's `topologyConstraint`).
    pub topology_constraint: TopologyConstraint,
    /// KAI's subgroups.
    pub sub_groups: Box<[SubGroup]>,
    /// How many of them are enough.
    pub min_sub_groups: Option<u32>,
    /// Volcano's subgroups.
    pub sub_group_policies: Box<[SubGroupPolicy]>,
    /// Whether none of its pods may be stopped without all others (the native
    /// `disruptionMode: {all: {}}`).
    pub is_stopped_whole: bool,
    /// Its condition `PodGroupInitiallyScheduled`; null if it has none.
    pub initially_scheduled: Value,
}

/// How near to each other the pods of a group of Volcano must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkTopology {
    /// Whether that must be so, and not only should (mode `hard`).
    pub is_hard: bool,
    /// The highest tier of HyperNodes that they may need to share.
    pub highest_tier: Option<u32>,
}

impl From<NetworkTopologyJson> for NetworkTopology {
    /// As Volcano defaults it.
    fn from(json: NetworkTopologyJson) -> Self {
        Self { is_hard: &*json.mode != "soft", highest_tier: json.highest_tier_allowed }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
    #[serde(deserialize_with = "nullable")]
    status: StatusJson,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusJson {
    conditions: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    scheduling_policy: PolicyJson,
    #[serde(deserialize_with = "nullable")]
    scheduling_constraints: ConstraintsJson,
    priority: Option<i32>,
    #[serde(deserialize_with = "nullable")]
    priority_class_name: Box<str>,
    min_member: Option<u32>,
    /// Volcano's.
    #[serde(deserialize_with = "nullable")]
    min_task_member: BTreeMap<Box<str>, u32>,
    /// Volcano's.
    network_topology: Option<NetworkTopologyJson>,
    /// KAI's.
    #[serde(deserialize_with = "nullable")]
    topology_constraint: TopologyConstraint,
    /// KAI's.
    #[serde(deserialize_with = "nullable")]
    sub_groups: Vec<SubGroup>,
    /// KAI's.
    min_sub_group: Option<u32>,
    /// Volcano's.
    #[serde(deserialize_with = "nullable")]
    sub_group_policy: Vec<SubGroupPolicy>,
    /// An object with the one mode as its key.
    disruption_mode: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NetworkTopologyJson {
    #[serde(deserialize_with = "nullable")]
    mode: Box<str>,
    highest_tier_allowed: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PolicyJson {
    gang: Option<GangJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GangJson {
    #[serde(deserialize_with = "nullable")]
    min_count: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConstraintsJson {
    #[serde(deserialize_with = "nullable")]
    topology: Vec<TopologyJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TopologyJson {
    #[serde(deserialize_with = "nullable")]
    key: Box<str>,
}

impl<'de> Deserialize<'de> for PodGroup {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let GroupJson { metadata, spec, status } = GroupJson::deserialize(input)?;
        let mut conditions = status.conditions.as_array().into_iter().flatten();
        let said = conditions.find(|one| one["type"] == INITIALLY_SCHEDULED);
        let levels = spec.scheduling_constraints.topology.into_iter();
        Ok(Self {
            meta: metadata,
            min_count: spec.scheduling_policy.gang.map(|gang| gang.min_count).or(spec.min_member),
            min_tasks: spec.min_task_member.into_iter().collect(),
            topology_constraint: spec.topology_constraint,
            sub_groups: spec.sub_groups.into(),
            min_sub_groups: spec.min_sub_group,
            sub_group_policies: spec.sub_group_policy.into(),
            topology_keys: levels.map(|level| level.key).collect(),
            network_topology: spec.network_topology.map(NetworkTopology::from),
            priority: spec.priority,
            priority_class: spec.priority_class_name,
            is_stopped_whole: spec.disruption_mode.get("all").is_some_and(|all| !all.is_null()),
            initially_scheduled: said.cloned().unwrap_or_default(),
        })
    }
}
