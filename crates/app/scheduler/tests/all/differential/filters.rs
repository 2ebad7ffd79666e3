//! Dovetail without one of its filters: what a pod asks of that filter is taken out of its
//! requirement. The comparison must notice each.

use dovetail_model::node::UNSCHEDULABLE;
use dovetail_model::{ConditionCause, Node, Requirement, RuleCause, TaintEffect, Toleration};

/// A filter that can be switched off.
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) take_out: fn(&mut Requirement, &[Node]),
}

/// Every filter, in parts where it has several.
pub(crate) const FILTERS: [Filter; 24] = [
    Filter { name: "node name", take_out: |pod, _| pod.node_names.clear() },
    Filter { name: "unschedulable", take_out: |pod, _| tolerate(pod, UNSCHEDULABLE) },
    Filter {
        name: "taints",
        take_out: |pod, nodes| {
            let taints = nodes.iter().flat_map(|node| &node.taints);
            let hard = taints.filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
            for taint in hard.filter(|taint| taint.key != UNSCHEDULABLE) {
                tolerate(pod, &taint.key);
            }
        },
    },
    Filter { name: "node affinity", take_out: |pod, _| forget(pod, ConditionCause::NodeAffinity) },
    Filter { name: "host ports", take_out: |pod, _| drop_rules(pod, RuleCause::HostPort) },
    Filter { name: "cpu", take_out: |pod, _| pod.resources.cpu_milli = 0 },
    Filter { name: "memory", take_out: |pod, _| pod.resources.memory_bytes = 0 },
    Filter { name: "ephemeral storage", take_out: |pod, _| pod.resources.ephemeral_bytes = 0 },
    Filter { name: "pod slots", take_out: |pod, _| pod.resources.pod_slots = 0 },
    Filter { name: "extended resources", take_out: |pod, _| pod.resources.extended.clear() },
    Filter { name: "devices", take_out: |pod, _| pod.device = Default::default() },
    Filter { name: "disk conflicts", take_out: |pod, _| drop_rules(pod, RuleCause::DiskConflict) },
    Filter {
        name: "claims for one pod",
        take_out: |pod, _| drop_rules(pod, RuleCause::ReadWriteOncePod),
    },
    Filter { name: "volume drivers", take_out: |pod, _| forget(pod, ConditionCause::VolumeDriver) },
    Filter { name: "volume limits", take_out: |pod, _| pod.attachments.clear() },
    Filter {
        name: "volume affinity",
        take_out: |pod, _| forget(pod, ConditionCause::VolumeNodeAffinity),
    },
    Filter {
        name: "storage topology",
        take_out: |pod, _| forget(pod, ConditionCause::StorageTopology),
    },
    Filter {
        name: "storage capacity",
        take_out: |pod, _| forget(pod, ConditionCause::StorageCapacity),
    },
    Filter { name: "volume zones", take_out: |pod, _| forget(pod, ConditionCause::VolumeZone) },
    Filter { name: "spread", take_out: |pod, _| drop_rules(pod, RuleCause::Spread) },
    Filter { name: "affinity", take_out: |pod, _| drop_rules(pod, RuleCause::Affinity) },
    Filter { name: "anti-affinity", take_out: |pod, _| drop_rules(pod, RuleCause::AntiAffinity) },
    Filter {
        name: "anti-affinity of others",
        take_out: |pod, _| drop_rules(pod, RuleCause::ExistingAntiAffinity),
    },
    Filter {
        name: "declared features",
        take_out: |pod, _| forget(pod, ConditionCause::DeclaredFeatures),
    },
];

fn tolerate(pod: &mut Requirement, key: &str) {
    let toleration = Toleration { key: key.to_owned(), any_value: true, ..Toleration::default() };
    pod.tolerations.push(toleration);
}

fn forget(pod: &mut Requirement, cause: ConditionCause) {
    pod.node_conditions.retain(|condition| condition.cause != cause);
}

fn drop_rules(pod: &mut Requirement, cause: RuleCause) {
    pod.rules.retain(|rule| rule.cause != cause);
}
