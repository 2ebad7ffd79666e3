//! What is written for claims of devices: bodies of requests.

use dovetail_objects::{
    AskedCount, ClaimRequest, Consumer, ExtendedClaimStatus, ExtendedMapping, Pod, ResourceClaim,
    labels,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::world::key::ClaimKey;

/// Keeps a claim that has devices from being deleted while a pod uses them.
pub(super) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// A change of a claim of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimWrite {
    /// The claim: another one of the same name is never meant.
    pub claim: ClaimKey,
    /// Its version: of another version nothing is changed.
    pub version: Box<str>,
    pub what: ClaimPart,
    /// What is changed, as a merge patch (RFC 7386); of a claim that is created, all of it.
    pub patch: Value,
}

/// What is written for a claim of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimPart {
    /// It is created.
    New,
    Metadata,
    Status,
    Deletion,
    /// The status of the pod of this name, which says by which claim it has extended resources.
    Pod(Box<str>),
}

/// The status of a claim that has nothing.
pub(super) fn no_devices() -> Value {
    json!({"allocation": null, "reservedFor": null, "devices": null})
}

/// A time as objects have it: in whole seconds.
pub(super) fn seconds(at_ms: u64) -> Timestamp {
    let seconds = i64::try_from(at_ms / 1_000).unwrap_or_default();
    Timestamp::from_second(seconds).unwrap_or_default()
}

pub(super) fn write(claim: &ResourceClaim, what: ClaimPart, mut patch: Value) -> ClaimWrite {
    let version = claim.meta.resource_version.clone();
    patch["metadata"]["uid"] = json!(claim.meta.uid);
    patch["metadata"]["resourceVersion"] = json!(version);
    ClaimWrite { claim: ClaimKey::of_meta(&claim.meta), version, what, patch }
}

/// A claim is created for a pod, which owns it, with its finalizer, which saves a write.
pub(super) fn creation(pod: &Pod, claim: &ResourceClaim) -> ClaimWrite {
    let request = |request: &ClaimRequest| {
        let asked = request.alternatives.first().cloned().unwrap_or_default();
        let AskedCount::Exactly(count) = asked.count else { return Value::Null };
        let exactly = json!({"deviceClassName": asked.class, "allocationMode": "ExactCount",
            "count": count});
        json!({"name": request.name, "exactly": exactly})
    };
    let requests: Vec<Value> = claim.asked.requests.iter().map(request).collect();
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": pod.meta.name,
        "uid": pod.meta.uid, "controller": true});
    let patch = json!({"apiVersion": labels::RESOURCE_V1, "kind": "ResourceClaim",
        "metadata": {"namespace": claim.meta.namespace, "name": claim.meta.name,
            "annotations": {labels::EXTENDED_RESOURCE_CLAIM: "true"}, "ownerReferences": [owner],
            "finalizers": [FINALIZER]},
        "spec": {"devices": {"requests": requests}}});
    let version = Box::default();
    ClaimWrite { claim: ClaimKey::of_meta(&claim.meta), version, what: ClaimPart::New, patch }
}

/// A pod says by which claim it has its extended resources.
pub(super) fn pod_status(
    pod: &Pod,
    claim: &ResourceClaim,
    status: &ExtendedClaimStatus,
) -> ClaimWrite {
    let mapping = |mapping: &ExtendedMapping| {
        json!({"containerName": mapping.container, "resourceName": mapping.resource,
            "requestName": mapping.request})
    };
    let mappings: Vec<Value> = status.mappings.iter().map(mapping).collect();
    let status = json!({"requestMappings": mappings, "resourceClaimName": status.claim});
    let version = pod.meta.resource_version.clone();
    let patch = json!({"metadata": {"uid": pod.meta.uid, "resourceVersion": version},
        "status": {"extendedResourceClaimStatus": status}});
    let what = ClaimPart::Pod(pod.meta.name.clone());
    ClaimWrite { claim: ClaimKey::of_meta(&claim.meta), version, what, patch }
}

/// What removes a claim next: its finalizer, then itself.
pub(super) fn removal(claim: &ResourceClaim) -> Option<ClaimWrite> {
    let others: Vec<&str> =
        claim.finalizers.iter().map(|one| &**one).filter(|one| *one != FINALIZER).collect();
    if others.len() < claim.finalizers.len() {
        let patch = json!({"metadata": {"finalizers": others}});
        return Some(write(claim, ClaimPart::Metadata, patch));
    }
    let deletion = || write(claim, ClaimPart::Deletion, json!({}));
    (!claim.meta.is_deleting()).then(deletion)
}

pub(super) fn reserved(claim: &ResourceClaim, pod: &Pod) -> Vec<Value> {
    let others = claim.reserved_for.iter().filter(|one| one.uid != pod.meta.uid).map(consumer);
    let this = json!({"resource": "pods", "name": pod.meta.name, "uid": pod.meta.uid});
    others.chain([this]).collect()
}

pub(super) fn consumer(of: &Consumer) -> Value {
    let mut written = json!({"resource": of.resource, "name": of.name, "uid": of.uid});
    if !of.api_group.is_empty() {
        written["apiGroup"] = json!(of.api_group);
    }
    written
}
