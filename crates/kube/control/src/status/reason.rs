//! Why a node does not take a pod, in the words of kube-scheduler's filters, so that people and
//! programs who know its events can read ours.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_plan::Cause;
use dovetail_plan::explain::Refusal;

use dovetail_translate::Rules;

/// The filter plugin of kube-scheduler that rejects for this cause; `None` for causes it does not
/// know.
pub fn plugin(cause: Cause) -> Option<&'static str> {
    Some(match cause {
        Cause::None | Cause::NotReady | Cause::Starting | Cause::Cordoned => return None,
        Cause::NodeName => "NodeName",
        Cause::Unschedulable => "NodeUnschedulable",
        Cause::Taint => "TaintToleration",
        Cause::NodeAffinity => "NodeAffinity",
        Cause::HostPort => "NodePorts",
        Cause::Overcommitted
        | Cause::Model
        | Cause::PodSlots
        | Cause::Cpu
        | Cause::Memory
        | Cause::Ephemeral
        | Cause::Extended
        | Cause::Device => "NodeResourcesFit",
        Cause::DiskConflict | Cause::ReadWriteOncePod => "VolumeRestrictions",
        Cause::VolumeDriver | Cause::VolumeLimit => "NodeVolumeLimits",
        Cause::VolumeNodeAffinity | Cause::StorageTopology | Cause::StorageCapacity => {
            "VolumeBinding"
        }
        Cause::VolumeZone => "VolumeZone",
        Cause::SpreadLabel | Cause::Spread => "PodTopologySpread",
        Cause::Affinity | Cause::AntiAffinity | Cause::ExistingAntiAffinity => "InterPodAffinity",
        Cause::DeviceClaims => "DynamicResources",
        Cause::DeclaredFeatures => "NodeDeclaredFeatures",
        Cause::SharedGpus => "GpuSharing",
    })
}

/// What an event says of a node that refuses a pod.
pub fn reason(refusal: &Refusal, rules: &Rules) -> Cow<'static, str> {
    Cow::Borrowed(match refusal.cause {
        Cause::None => "node(s) fit",
        Cause::NotReady => "node(s) were not ready",
        Cause::Starting => "node(s) were starting",
        Cause::Cordoned => "node(s) accepted no pods because their allocations were unknown",
        Cause::NodeName => "node(s) didn't match the requested node name",
        Cause::Unschedulable => "node(s) were unschedulable",
        Cause::Taint => "node(s) had untolerated taint(s)",
        Cause::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
        Cause::HostPort => "node(s) didn't have free ports for the requested pod ports",
        Cause::PodSlots => "Too many pods",
        Cause::Cpu => "Insufficient cpu",
        Cause::Memory => "Insufficient memory",
        Cause::Ephemeral => "Insufficient ephemeral-storage",
        Cause::Overcommitted | Cause::Model | Cause::Device => {
            return Cow::Owned(format!("Insufficient {}", rules.device_resource));
        }
        Cause::Extended => {
            let name = refusal.resource.as_deref().unwrap_or("extended resource");
            return Cow::Owned(format!("Insufficient {name}"));
        }
        Cause::DiskConflict => "node(s) had no available disk",
        Cause::ReadWriteOncePod => {
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
             already in-use by another pod"
        }
        Cause::VolumeDriver => "CSI driver is not installed on the node",
        Cause::VolumeLimit => "node(s) exceed max volume count",
        Cause::VolumeNodeAffinity => "node(s) didn't match PersistentVolume's node affinity",
        Cause::StorageTopology => "node(s) didn't find available persistent volumes to bind",
        Cause::StorageCapacity => "node(s) did not have enough free storage",
        Cause::VolumeZone => "node(s) had no available volume zone",
        Cause::SpreadLabel => {
            "node(s) didn't match pod topology spread constraints (missing required label)"
        }
        Cause::Spread => "node(s) didn't match pod topology spread constraints",
        Cause::Affinity => "node(s) didn't match pod affinity rules",
        Cause::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
        Cause::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
        Cause::DeviceClaims => "cannot allocate all claims",
        Cause::DeclaredFeatures => "node(s) didn't match Pod's required features",
        Cause::SharedGpus => {
            "node(s) had shared GPUs that did not admit the pod's class or namespace"
        }
    })
}

/// What an event says of a pod that no node takes, from the reasons that each node gives: every one
/// with the number of nodes that give it, in the order and punctuation of kube-scheduler.
pub fn none_is_available(nodes: impl Iterator<Item = BTreeSet<Cow<'static, str>>>) -> String {
    let mut count = 0;
    let mut by_reason: BTreeMap<Cow<'static, str>, usize> = BTreeMap::new();
    for given in nodes {
        count += 1;
        for reason in given {
            *by_reason.entry(reason).or_default() += 1;
        }
    }
    if count == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut parts: Vec<String> =
        by_reason.into_iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
    parts.sort();
    format!("0/{count} nodes are available: {}.", parts.join(", "))
}
