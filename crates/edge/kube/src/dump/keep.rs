//! What a collection keeps of an object: fields by allow-list, nothing else.
//!
//! Environment variables, arguments, commands, messages, Secrets and ConfigMaps are on no list. Of the
//! environment one fact is kept: that a container is shown all GPUs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::facts::cluster::{is_policy, speaks_of_gpus};

/// Fields of the metadata of every object.
const METADATA: [&str; 7] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.labels",
    "metadata.ownerReferences",
];

/// Annotations that a check reads.
const ANNOTATIONS: [&str; 13] = [
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "dovetail.dev/checkpoint-interval",
    "dovetail.dev/ignore",
    "gpu-fraction",
    "gpu-memory",
    "karpenter.sh/do-not-consolidate",
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-evict",
    "pod-group-name",
    "pv.kubernetes.io/bind-completed",
    "scheduling.k8s.io/group-name",
    "storage.alpha.kubernetes.io/migrated-plugins",
];

/// Fields of a pod's spec, also in a template.
const POD_SPEC: [&str; 27] = [
    "affinity",
    "hostNetwork",
    "hostUsers",
    "nodeName",
    "nodeSelector",
    "overhead",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "schedulerName",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes.name",
    "volumes.awsElasticBlockStore",
    "volumes.azureDisk",
    "volumes.emptyDir",
    "volumes.ephemeral.volumeClaimTemplate.spec.storageClassName",
    "volumes.gcePersistentDisk",
    "volumes.hostPath.path",
    "volumes.iscsi.iqn",
    "volumes.iscsi.targetPortal",
    // That there is one, and not where it leads.
    "volumes.nfs.readOnly",
    "volumes.persistentVolumeClaim",
    "volumes.rbd.image",
];

/// Fields of a container.
const CONTAINER: [&str; 9] = [
    "image",
    "name",
    "ports.hostIP",
    "ports.hostPort",
    "ports.protocol",
    "resources",
    "restartPolicy",
    "securityContext.privileged",
    "volumeMounts",
];

/// Fields of the status of a pod or of a node.
const STATUS: [&str; 22] = [
    "status.allocatable",
    "status.allocatedResources",
    "status.capacity",
    "status.conditions.lastTransitionTime",
    "status.conditions.reason",
    "status.conditions.status",
    "status.conditions.type",
    "status.containerStatuses.allocatedResources",
    "status.containerStatuses.lastState.terminated.finishedAt",
    "status.containerStatuses.lastState.terminated.reason",
    "status.containerStatuses.name",
    "status.containerStatuses.resources",
    "status.containerStatuses.restartCount",
    "status.containerStatuses.state.terminated.finishedAt",
    "status.containerStatuses.state.terminated.reason",
    "status.containerStatuses.state.waiting.reason",
    "status.declaredFeatures",
    "status.initContainerStatuses.lastState.terminated.finishedAt",
    "status.initContainerStatuses.lastState.terminated.reason",
    "status.nominatedNodeName",
    "status.phase",
    "status.resources.requests",
];

/// Fields of other kinds.
const OTHERS: [(&str, &[&str]); 11] = [
    ("CSIDriver", &["spec.storageCapacity", "spec.attachRequired"]),
    ("CSINode", &["spec.drivers"]),
    ("DeviceClass", &["spec.extendedResourceName"]),
    (
        "HorizontalPodAutoscaler",
        &[
            "spec.metrics.containerResource.name",
            "spec.metrics.external.metric.name",
            "spec.metrics.object.metric.name",
            "spec.metrics.pods.metric.name",
            "spec.metrics.resource.name",
            "spec.scaleTargetRef.kind",
            "spec.scaleTargetRef.name",
        ],
    ),
    ("Node", &["spec.providerID", "spec.taints", "spec.unschedulable"]),
    (
        "PersistentVolume",
        &[
            "spec.accessModes",
            "spec.awsElasticBlockStore",
            "spec.azureDisk",
            "spec.capacity",
            "spec.claimRef",
            "spec.csi.driver",
            "spec.csi.volumeHandle",
            "spec.gcePersistentDisk",
            "spec.nodeAffinity",
            "spec.storageClassName",
            "spec.volumeMode",
        ],
    ),
    (
        "PersistentVolumeClaim",
        &["spec.accessModes", "spec.resources", "spec.storageClassName", "spec.volumeName"],
    ),
    ("PodDisruptionBudget", &["spec.maxUnavailable", "spec.minAvailable", "spec.selector"]),
    ("ResourceQuota", &["spec.hard"]),
    ("ResourceSlice", &["spec.driver", "spec.nodeName"]),
    ("StorageClass", &["allowedTopologies", "provisioner", "volumeBindingMode"]),
];

/// A tree of fields; one without branches is kept with all that is in it.
#[derive(Default)]
struct Fields(BTreeMap<String, Fields>);

impl Fields {
    fn add(&mut self, path: &str) {
        let mut at = self;
        for field in path.split('.') {
            at = at.0.entry(field.to_owned()).or_default();
        }
    }

    /// The kept part of a value; a list is a list of kept parts.
    fn keep(&self, value: &Value) -> Option<Value> {
        if self.0.is_empty() {
            return Some(value.clone());
        }
        match value {
            Value::Object(fields) => {
                let kept = self.0.iter().filter_map(|(name, inner)| {
                    Some((name.clone(), inner.keep(fields.get(name)?)?))
                });
                Some(Value::Object(kept.collect()))
            }
            Value::Array(items) => {
                Some(Value::Array(items.iter().filter_map(|item| self.keep(item)).collect()))
            }
            _ => None,
        }
    }
}

/// What a collection keeps of each kind.
pub struct Keeper {
    any: Fields,
    kinds: BTreeMap<&'static str, Fields>,
}

impl Default for Keeper {
    fn default() -> Self {
        let pod = |fields: &mut Fields, spec: &str| {
            POD_SPEC.iter().for_each(|field| fields.add(&format!("{spec}.{field}")));
            for list in ["containers", "initContainers"] {
                CONTAINER.iter().for_each(|field| fields.add(&format!("{spec}.{list}.{field}")));
            }
        };
        let with = |paths: &[&str]| {
            let mut fields = Fields::default();
            METADATA.iter().chain(paths).for_each(|path| fields.add(path));
            fields
        };
        // Whatever may own pods.
        let mut any = with(&["spec.parallelism", "spec.replicas", "spec.suspend"]);
        METADATA.iter().for_each(|path| any.add(&format!("spec.template.{path}")));
        pod(&mut any, "spec.template.spec");
        let mut kinds: BTreeMap<&'static str, Fields> = BTreeMap::new();
        for (kind, paths) in OTHERS {
            kinds.insert(kind, with(paths));
        }
        let mut pods = with(&STATUS);
        pod(&mut pods, "spec");
        kinds.insert("Pod", pods);
        let nodes = kinds.entry("Node").or_default();
        STATUS.iter().for_each(|path| nodes.add(path));
        kinds.insert("Namespace", with(&[]));
        Self { any, kinds }
    }
}

impl Keeper {
    /// The kept part of an object; `None` if nothing of its kind is kept.
    pub fn keep(&self, kind: &str, api_version: &str, object: &Value) -> Option<Value> {
        if ["ConfigMap", "Secret", "Event", "Lease"].contains(&kind) {
            return None;
        }
        let fields = self.kinds.get(kind).unwrap_or(&self.any);
        let mut kept = fields.keep(object)?;
        let top = kept.as_object_mut()?;
        top.insert("kind".to_owned(), json!(kind));
        top.insert("apiVersion".to_owned(), json!(api_version));
        if is_policy(kind, api_version) {
            // Of a policy nothing but whether it is about GPUs.
            let about = if speaks_of_gpus(&object.to_string()) { "gpu" } else { "other" };
            top.insert("spec".to_owned(), json!({"about": about}));
        }
        keep_annotations(object, top);
        for path in ["/spec", "/spec/template/spec"] {
            if let (Some(from), Some(to)) = (object.pointer(path), kept.pointer_mut(path)) {
                keep_shown_gpus(from, to);
            }
        }
        Some(kept)
    }
}

fn keep_annotations(object: &Value, kept: &mut Map<String, Value>) {
    let Some(annotations) = object.pointer("/metadata/annotations").and_then(Value::as_object)
    else {
        return;
    };
    let known = annotations.iter().filter(|(key, _)| ANNOTATIONS.contains(&key.as_str()));
    let known: Map<String, Value> =
        known.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (false, Some(metadata)) =
        (known.is_empty(), kept.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.insert("annotations".to_owned(), Value::Object(known));
    }
}

/// Of the environment one thing: that the container is shown all GPUs.
fn keep_shown_gpus(from: &Value, to: &mut Value) {
    let shows_all = |env: &Value| {
        env["name"] == "NVIDIA_VISIBLE_DEVICES"
            && env["value"].as_str().map(str::trim) == Some("all")
    };
    for list in ["containers", "initContainers"] {
        let (Some(from), Some(to)) = (from[list].as_array(), to[list].as_array_mut()) else {
            continue;
        };
        // An item that is no object is not kept; behind one nothing belongs together any more.
        if from.len() != to.len() {
            continue;
        }
        for (from, to) in from.iter().zip(to) {
            let is_shown = from["env"].as_array().is_some_and(|env| env.iter().any(shows_all));
            if let (true, Some(container)) = (is_shown, to.as_object_mut()) {
                let env = json!([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]);
                container.insert("env".to_owned(), env);
            }
        }
    }
}
