//! The fields of objects that a collection keeps, and what becomes of the texts in them when names
//! are hidden: one table for both. What is not in it is not kept, and a text in it is a name unless
//! it says otherwise.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use TextRule::*;

/// What becomes of the texts of a field when names are hidden. Numbers and switches stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextRule {
    /// They are replaced by hashes.
    Name,
    /// They stay; in parts of a field, what is said of these.
    Plain,
    /// All that is in the field stays.
    Whole,
    /// Amounts by resource.
    Amounts,
    /// Numbers of pods and percentages stay.
    Count,
    /// What an autoscaler looks at of a resource.
    Measured,
    /// The name of a resource.
    Resource,
    /// The key of a label stays where everybody has it.
    LabelKey,
    Labels,
    Annotations,
    /// Numbers by name of a task.
    Tasks,
    /// Of devices; those of a node's topology are a list.
    Attributes,
    DeviceClass,
    /// Drivers of GPUs stay.
    Driver,
    /// Of an expression, what tells GPUs.
    Selector,
    /// Schedulers that everybody knows stay.
    Scheduler,
    /// Conditions and strategies that Kubernetes itself has stay.
    Type,
    /// Shared memory stays.
    Mount,
    /// Devices of GPUs are told apart from other paths.
    Path,
    /// Reasons that Kubernetes itself gives stay.
    Reason,
    /// The provider of a machine stays.
    Provider,
    /// What kind of image it seems to be stays.
    Image,
}

/// Paths of fields, by what becomes of their texts.
pub(super) type Fields = &'static [(TextRule, &'static [&'static str])];

pub(super) fn paths(fields: Fields) -> impl Iterator<Item = &'static str> {
    fields.iter().flat_map(|(_, paths)| paths.iter().copied())
}

/// What becomes of the texts of fields of this name, wherever they are.
pub(super) fn text_of(name: &str) -> TextRule {
    static BY_NAME: LazyLock<BTreeMap<&str, TextRule>> = LazyLock::new(|| names().collect());
    BY_NAME.get(name).copied().unwrap_or(Name)
}

/// Every field by the last part of its path.
fn names() -> impl Iterator<Item = (&'static str, TextRule)> {
    let shared = [METADATA, POD_SPEC, CONTAINER, STATUS, OWNER, INSIDE];
    let fields = shared.into_iter().chain(OTHERS.iter().map(|(_, fields)| *fields)).flatten();
    fields.flat_map(|(text, paths)| {
        paths.iter().map(|path| (path.rsplit_once('.').map_or(*path, |(_, name)| name), *text))
    })
}

/// Of the metadata of every object.
pub(super) const METADATA: Fields = &[
    (
        Name,
        &[
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
            "metadata.resourceVersion",
            "metadata.ownerReferences",
        ],
    ),
    (Plain, &["metadata.creationTimestamp", "metadata.deletionTimestamp"]),
    (Labels, &["metadata.labels"]),
];

/// Of a pod's spec, also in a template. Of a volume on NFS it stays that it is one, and not where
/// it leads.
pub(super) const POD_SPEC: Fields = &[
    (
        Name,
        &[
            "activeDeadlineSeconds",
            "affinity",
            "hostNetwork",
            "hostUsers",
            "nodeName",
            "priority",
            "priorityClassName",
            "resourceClaims",
            "resources",
            "schedulingGates",
            "schedulingGroup",
            "terminationGracePeriodSeconds",
            "tolerations",
            "topologySpreadConstraints",
            "volumes.name",
            "volumes.awsElasticBlockStore",
            "volumes.azureDisk",
            "volumes.emptyDir",
            "volumes.ephemeral.volumeClaimTemplate.spec.storageClassName",
            "volumes.gcePersistentDisk",
            "volumes.iscsi.iqn",
            "volumes.iscsi.targetPortal",
            "volumes.nfs.readOnly",
            "volumes.persistentVolumeClaim",
        ],
    ),
    (Amounts, &["overhead"]),
    (Labels, &["nodeSelector"]),
    (Scheduler, &["schedulerName"]),
    (Path, &["volumes.hostPath.path"]),
    (Image, &["volumes.rbd.image"]),
];

pub(super) const CONTAINER: Fields = &[
    (Name, &["name", "ports.hostIP", "resources", "securityContext.privileged", "volumeMounts"]),
    (Plain, &["ports.hostPort", "ports.protocol", "restartPolicy"]),
    (Image, &["image"]),
];

/// Of the status of a pod or of a node.
pub(super) const STATUS: Fields = &[
    (
        Name,
        &[
            "status.containerStatuses.name",
            "status.containerStatuses.resources",
            "status.containerStatuses.restartCount",
            "status.initContainerStatuses.restartCount",
            "status.nominatedNodeName",
            "status.resourceClaimStatuses",
        ],
    ),
    (
        Plain,
        &[
            "status.conditions.lastTransitionTime",
            "status.conditions.status",
            "status.containerStatuses.lastState.terminated.finishedAt",
            "status.containerStatuses.state.terminated.finishedAt",
            "status.declaredFeatures",
            "status.initContainerStatuses.lastState.terminated.finishedAt",
            "status.initContainerStatuses.state.terminated.finishedAt",
            "status.phase",
        ],
    ),
    (
        Amounts,
        &[
            "status.allocatable",
            "status.allocatedResources",
            "status.capacity",
            "status.containerStatuses.allocatedResources",
            "status.resources.requests",
        ],
    ),
    (Type, &["status.conditions.type"]),
    (
        Reason,
        &[
            "status.conditions.reason",
            "status.containerStatuses.lastState.terminated.reason",
            "status.containerStatuses.state.terminated.reason",
            "status.containerStatuses.state.waiting.reason",
            "status.initContainerStatuses.lastState.terminated.reason",
            "status.initContainerStatuses.state.terminated.reason",
        ],
    ),
];

/// Of whatever may own pods.
pub(super) const OWNER: Fields = &[
    (
        Name,
        &[
            "spec.active",
            "spec.backoffLimit",
            "spec.completions",
            "spec.jobTemplate.spec.backoffLimit",
            "spec.jobTemplate.spec.ttlSecondsAfterFinished",
            "spec.parallelism",
            "spec.paused",
            "spec.replicas",
            "spec.runPolicy.suspend",
            "spec.strategy",
            "spec.suspend",
            "spec.ttlSecondsAfterFinished",
            "spec.updateStrategy",
            "status.active",
            "status.replicas",
            "status.succeeded",
        ],
    ),
    (
        Plain,
        &[
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
            "status.conditions.lastTransitionTime",
            "status.conditions.status",
            "status.jobDeploymentStatus",
            "status.lastScheduleTime",
            "status.state.phase",
        ],
    ),
    (Type, &["status.conditions.type"]),
    (Reason, &["status.conditions.reason"]),
];

/// Of other kinds; groups of pods are those of every scheduler.
pub(super) const OTHERS: &[(&str, Fields)] = &[
    ("CSIDriver", &[(Name, &["spec.storageCapacity", "spec.attachRequired"])]),
    ("CSINode", &[(Name, &["spec.drivers"])]),
    (
        "DeviceClass",
        &[
            (Resource, &["spec.extendedResourceName"]),
            (Selector, &["spec.selectors.cel.expression"]),
        ],
    ),
    (
        "HorizontalPodAutoscaler",
        &[
            (
                Name,
                &[
                    "spec.maxReplicas",
                    "spec.metrics.containerResource.name",
                    "spec.metrics.external.metric.name",
                    "spec.metrics.object.metric.name",
                    "spec.metrics.pods.metric.name",
                    "spec.metrics.resource.name",
                    "spec.scaleTargetRef.name",
                ],
            ),
            (Plain, &["spec.scaleTargetRef.apiVersion", "spec.scaleTargetRef.kind"]),
            (
                Type,
                &[
                    "spec.metrics.containerResource.target.type",
                    "spec.metrics.resource.target.type",
                ],
            ),
        ],
    ),
    (
        "ScaledObject",
        &[
            (Name, &["spec.maxReplicaCount", "spec.scaleTargetRef.name"]),
            (Plain, &["spec.scaleTargetRef.apiVersion", "spec.scaleTargetRef.kind"]),
            (
                Type,
                &["spec.triggers.metadata.type", "spec.triggers.metricType", "spec.triggers.type"],
            ),
        ],
    ),
    (
        "NodePool",
        &[
            (Name, &["spec.template.spec.taints"]),
            (Plain, &["spec.disruption.consolidateAfter", "spec.disruption.consolidationPolicy"]),
            (Whole, &["spec.disruption.budgets"]),
            (Labels, &["spec.template.metadata.labels"]),
        ],
    ),
    (
        "HyperNode",
        &[(Name, &["spec.members.selector", "spec.tier"]), (Type, &["spec.members.type"])],
    ),
    (
        "Node",
        &[
            (Name, &["spec.taints"]),
            (Plain, &["spec.unschedulable"]),
            (Provider, &["spec.providerID"]),
        ],
    ),
    ("NodeResourceTopology", &[(Whole, &["topologyPolicies"]), (Attributes, &["attributes"])]),
    (
        "VerticalPodAutoscaler",
        &[
            (
                Name,
                &[
                    "spec.targetRef.name",
                    "status.recommendation.containerRecommendations.containerName",
                ],
            ),
            (Plain, &["spec.targetRef.kind"]),
            (
                Amounts,
                &[
                    "status.recommendation.containerRecommendations.target",
                    "status.recommendation.containerRecommendations.upperBound",
                ],
            ),
        ],
    ),
    (
        "PersistentVolume",
        &[
            (
                Name,
                &[
                    "spec.awsElasticBlockStore",
                    "spec.azureDisk",
                    "spec.claimRef",
                    "spec.csi.volumeHandle",
                    "spec.gcePersistentDisk",
                    "spec.nodeAffinity",
                    "spec.storageClassName",
                ],
            ),
            (Plain, &["spec.volumeMode"]),
            (Whole, &["spec.accessModes"]),
            (Amounts, &["spec.capacity"]),
            (Driver, &["spec.csi.driver"]),
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            (Name, &["spec.resources", "spec.storageClassName", "spec.volumeName"]),
            (Whole, &["spec.accessModes"]),
        ],
    ),
    (
        "PodGroup",
        &[
            (
                Name,
                &[
                    "spec.disruptionMode",
                    "spec.minMember",
                    "spec.minSubGroup",
                    "spec.networkTopology.highestTierAllowed",
                    "spec.priority",
                    "spec.priorityClassName",
                    "spec.schedulingPolicy.gang.minCount",
                    "spec.subGroupPolicy",
                    "spec.subGroups",
                ],
            ),
            (Plain, &["spec.networkTopology.mode", "status.conditions.status"]),
            (
                LabelKey,
                &[
                    "spec.schedulingConstraints.topology.key",
                    "spec.topologyConstraint.preferredTopologyLevel",
                    "spec.topologyConstraint.requiredTopologyLevel",
                ],
            ),
            (Tasks, &["spec.minTaskMember"]),
            (Type, &["status.conditions.type"]),
        ],
    ),
    (
        "Queue",
        &[
            (Name, &["spec.namespaceSelector", "spec.parent", "spec.weight"]),
            (Plain, &["spec.borrowing"]),
            (Amounts, &["spec.guaranteed", "spec.limit"]),
        ],
    ),
    ("Topology", &[(LabelKey, &["spec.levels.nodeLabel"])]),
    (
        "PodDisruptionBudget",
        &[(Name, &["spec.selector"]), (Count, &["spec.maxUnavailable", "spec.minAvailable"])],
    ),
    (
        "LimitRange",
        &[
            (
                Amounts,
                &[
                    "spec.limits.default",
                    "spec.limits.defaultRequest",
                    "spec.limits.max",
                    "spec.limits.maxLimitRequestRatio",
                    "spec.limits.min",
                ],
            ),
            (Type, &["spec.limits.type"]),
        ],
    ),
    (
        "ResourceQuota",
        &[
            (Name, &["spec.scopeSelector"]),
            (Plain, &["spec.scopes"]),
            (Amounts, &["spec.hard", "status.hard", "status.used"]),
        ],
    ),
    (
        "ResourceClaim",
        &[
            (
                Name,
                &[
                    "spec.devices.requests.exactly",
                    "spec.devices.requests.firstAvailable",
                    "status.allocation.devices.results.adminAccess",
                    "status.allocation.devices.results.device",
                    "status.allocation.devices.results.pool",
                    "status.allocation.nodeSelector.nodeSelectorTerms",
                    "status.reservedFor.name",
                ],
            ),
            (Amounts, &["status.allocation.devices.results.consumedCapacity"]),
            (Measured, &["status.reservedFor.resource"]),
            (Driver, &["status.allocation.devices.results.driver"]),
        ],
    ),
    (
        "ResourceClaimTemplate",
        &[(
            Name,
            &["spec.spec.devices.requests.exactly", "spec.spec.devices.requests.firstAvailable"],
        )],
    ),
    (
        "ResourceSlice",
        &[
            (
                Name,
                &[
                    "spec.devices.allowMultipleAllocations",
                    "spec.devices.name",
                    "spec.devices.nodeName",
                    "spec.nodeName",
                    "spec.pool.generation",
                    "spec.pool.name",
                    "spec.pool.resourceSliceCount",
                ],
            ),
            (Plain, &["spec.devices.taints.effect"]),
            (Amounts, &["spec.devices.capacity"]),
            (Attributes, &["spec.devices.attributes"]),
            (Driver, &["spec.driver"]),
        ],
    ),
    ("ResourceFlavor", &[(Name, &["spec.nodeLabels", "spec.tolerations"])]),
    (
        "StorageClass",
        &[(Name, &["allowedTopologies", "provisioner"]), (Plain, &["volumeBindingMode"])],
    ),
];

/// Of parts that are kept with all that is in them, and of what a collection adds.
const INSIDE: Fields = &[
    (
        Plain,
        &[
            "about",
            "allocationMode",
            "apiVersion",
            "collectedAt",
            "medium",
            "minDomains",
            "nodeAffinityPolicy",
            "nodeTaintsPolicy",
            "operator",
            "policy",
            "scopeName",
            "sizeLimit",
            "timeAdded",
            "whenUnsatisfiable",
        ],
    ),
    (Whole, &["args", "complete", "env"]),
    (Amounts, &["limits", "lowerBound"]),
    (Count, &["maxSurge"]),
    (Measured, &["containerResource"]),
    (LabelKey, &["labelKey", "matchLabelKeys", "mismatchLabelKeys", "topologyKey"]),
    (Labels, &["matchLabels"]),
    (Annotations, &["annotations"]),
    (DeviceClass, &["deviceClassName"]),
    (Mount, &["mountPath"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_one_name_are_hidden_alike() {
        let mut known = BTreeMap::new();
        for (name, text) in names() {
            assert_eq!(*known.entry(name).or_insert(text), text, "{name}");
        }
    }
}
