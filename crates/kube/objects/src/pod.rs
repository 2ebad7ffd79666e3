//! Pods.

use std::sync::Arc;

use dovetail_model::{Resources, SelectorTerm, Toleration};
use serde::{Deserialize, Deserializer};

use super::affinity::{InterPodAffinity, PreferredNode, SpreadConstraint};
use super::label_set::Labels;
use super::meta::Meta;
use super::pod_extended::{ExtendedClaimStatus, ExtendedContainer};
use super::pod_json::PodJson;
use super::pod_preemption::PodPreemption;
use super::pod_volume::PodVolume;

/// A pod, as far as a scheduler needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    pub meta: Meta,
    /// The scheduler that is to place it.
    pub scheduler: Box<str>,
    /// The node it is bound to; empty if to none.
    pub node: Box<str>,
    /// The node another scheduler wants to free for it; empty if none.
    pub nominated_node: Box<str>,
    pub phase: PodPhase,
    /// What its condition `PodScheduled` says while that is false and it has no node.
    pub unscheduled: Option<Box<Unscheduled>>,
    /// When it got its node, in milliseconds since 1970, as its condition `PodScheduled` says; 0 if
    /// it does not.
    pub scheduled_ms: u64,
    /// Higher goes first.
    pub priority: i32,
    /// The name of its priority class; empty if it names none.
    pub priority_class: Box<str>,
    /// Whether scheduling gates block it.
    pub gated: bool,
    /// After how many seconds on its node it is ended (`spec.activeDeadlineSeconds`).
    pub active_deadline_s: Option<u32>,
    /// What it asks for: over all containers, at any time, with overhead, and one pod slot.
    pub requests: Resources,
    /// What it holds where it runs, if that is not what it asks for: the greatest of what was asked
    /// for, allocated and put into force, per resource.
    pub held: Option<Box<Resources>>,
    /// Labels that its node must have.
    pub node_selector: Labels,
    /// Alternatives of its required node affinity; `None` if it has none.
    pub node_affinity: Option<Box<[Vec<SelectorTerm>]>>,
    /// Taints it accepts.
    pub tolerations: Arc<[Toleration]>,
    /// Required affinity between pods; `None` if it has none.
    pub between_pods: Option<Box<InterPodAffinity>>,
    /// Spread constraints that must hold (`DoNotSchedule`).
    pub spread: Box<[SpreadConstraint]>,
    /// Spread constraints that are wishes (`ScheduleAnyway`); none once it has a node.
    pub soft_spread: Box<[SpreadConstraint]>,
    /// Terms of its preferred node affinity; none once it has a node.
    pub preferred_nodes: Box<[PreferredNode]>,
    /// Images that its containers, init containers and image volumes are made from, with tag or
    /// digest, ascending; one name for each of them. None once it has a node.
    pub images: Box<[Box<str>]>,
    /// Ports it takes on its node.
    pub ports: Box<[HostPort]>,
    /// Volumes that matter for placing it.
    pub volumes: Box<[PodVolume]>,
    /// Features that its node must declare.
    pub features: Box<[Feature]>,
    /// The native pod group it belongs to (`spec.schedulingGroup.podGroupName`); empty if to none.
    pub pod_group: Box<str>,
    /// Whether it refers to resource claims (DRA).
    pub has_resource_claims: bool,
    /// The resource claims that it refers to.
    pub device_claims: Box<[PodClaim]>,
    /// The containers that request extended resources; none once it has a node.
    pub extended: Box<[ExtendedContainer]>,
    /// The claim by which it has extended resources, as its status says; `None` once it has a node.
    pub extended_claim: Option<Box<ExtendedClaimStatus>>,
    /// Whether it stops others, and others it.
    pub preemption: PodPreemption,
}

impl Pod {
    /// What it holds on the node it is bound to.
    pub fn holds(&self) -> &Resources {
        self.held.as_deref().unwrap_or(&self.requests)
    }

    /// Whether it is over: it holds nothing any more.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        PodJson::deserialize(input).map(PodJson::read)
    }
}

/// A resource claim that a pod refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodClaim {
    /// By which containers refer to it.
    pub name: Box<str>,
    /// Name of the claim; `None` until one is made of the template.
    pub claim: Option<Box<str>>,
    /// Whether the pod's own claim is made from a template.
    pub is_from_template: bool,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum PodPhase {
    /// Its containers have not all started.
    Pending,
    Running,
    /// It is over and went well.
    Succeeded,
    /// It is over and did not go well.
    Failed,
    /// Its node does not answer, or the phase is not said.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Why a pod has no node, as its condition says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unscheduled {
    /// In one word.
    pub reason: Box<str>,
    pub message: Box<str>,
}

/// A port taken on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Box<str>,
    /// Number, from 1.
    pub port: u32,
    /// Address; `0.0.0.0` is every address of the node.
    pub address: Box<str>,
}

/// A feature that a node declares in `status.declaredFeatures` and a pod may need.
///
/// The list is kube-scheduler 1.37's: other declared features matter for changing a pod, not for
/// placing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// A container's exit restarts all containers.
    RestartAllContainersOnContainerExits,
    /// A user namespace of its own with the node's network.
    UserNamespacesHostNetworkSupport,
    VolumeBindMountOptions,
}

impl Feature {
    /// The name by which nodes declare it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RestartAllContainersOnContainerExits => "RestartAllContainersOnContainerExits",
            Self::UserNamespacesHostNetworkSupport => "UserNamespacesHostNetworkSupport",
            Self::VolumeBindMountOptions => "VolumeBindMountOptions",
        }
    }
}
