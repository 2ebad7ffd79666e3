//! Parts of a pod group with smallest sizes and places of their own: KAI's subgroups, Volcano's
//! subgroup policies.

use serde::Deserialize;

use super::json::nullable;
use super::label_selector::LabelSelector;
use super::pod_group::{NetworkTopology, NetworkTopologyJson};

/// Where pods must and should be, by node labels whose value they share (KAI's
/// `topologyConstraint`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TopologyConstraint {
    /// Label of the level in one of whose domains they must be; empty if none.
    #[serde(rename = "requiredTopologyLevel", deserialize_with = "nullable")]
    pub required: Box<str>,
    /// Label of the level in one of whose domains they should be; empty if none.
    #[serde(rename = "preferredTopologyLevel", deserialize_with = "nullable")]
    pub preferred: Box<str>,
}

/// A subgroup of KAI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubGroup {
    /// Its name, which its pods have as a label.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// The subgroup that it is part of; empty if of none.
    #[serde(deserialize_with = "nullable")]
    pub parent: Box<str>,
    /// Fewest pods.
    pub min_member: Option<u32>,
    /// Fewest of its own subgroups.
    #[serde(rename = "minSubGroup")]
    pub min_sub_groups: Option<u32>,
    /// Where its pods must and should be.
    #[serde(rename = "topologyConstraint", deserialize_with = "nullable")]
    pub topology: TopologyConstraint,
}

/// A policy of Volcano: some pods of a group, in subgroups that start whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubGroupPolicy {
    pub name: Box<str>,
    /// Whose pods it is about; [`LabelSelector::Nothing`]: of the whole group.
    pub pods: LabelSelector,
    /// Labels whose values tell its subgroups apart.
    pub keys: Box<[Box<str>]>,
    /// Pods of each subgroup.
    pub size: Option<u32>,
    /// How many subgroups are enough.
    pub min_sub_groups: Option<u32>,
    /// Where the pods of each subgroup must or should be.
    pub topology: Option<NetworkTopology>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PolicyJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    label_selector: LabelSelector,
    #[serde(deserialize_with = "nullable")]
    match_label_keys: Vec<Box<str>>,
    /// As earlier versions wrote the same.
    #[serde(deserialize_with = "nullable")]
    match_policy: Vec<MatchJson>,
    sub_group_size: Option<u32>,
    min_sub_groups: Option<u32>,
    network_topology: Option<NetworkTopologyJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MatchJson {
    #[serde(deserialize_with = "nullable")]
    label_key: Box<str>,
}

impl<'de> Deserialize<'de> for SubGroupPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let policy = PolicyJson::deserialize(input)?;
        let earlier = policy.match_policy.into_iter().map(|one| one.label_key);
        Ok(Self {
            name: policy.name,
            pods: policy.label_selector,
            keys: policy.match_label_keys.into_iter().chain(earlier).collect(),
            size: policy.sub_group_size,
            min_sub_groups: policy.min_sub_groups,
            topology: policy.network_topology.map(NetworkTopology::from),
        })
    }
}
