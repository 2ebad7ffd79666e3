//! Claims of devices of pods whose nodes are decided: what is to be written next.

use dovetail_devices::Place;
use dovetail_model::PodId;
use dovetail_objects::{Consumer, Pod, ResourceClaim};
use serde_json::{Value, json};

use crate::translate::NotYet;
use crate::world::World;
use crate::world::key::ClaimKey;
use crate::world::objects::Objects;
use crate::world::objects::device_claims::MOST_CONSUMERS;
use crate::world::readings::device_claims::is_reached;

/// Keeps a claim that has devices from being deleted while a pod uses them.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// Questions about claims of devices.
#[derive(Clone, Copy, Debug)]
pub struct DeviceClaimView<'w> {
    objects: &'w Objects,
}

/// A change of a claim of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimWrite {
    /// The claim: another one of the same name is never meant.
    pub claim: ClaimKey,
    /// Its version: of another version nothing is changed.
    pub version: Box<str>,
    /// Whether it is about its status.
    pub is_status: bool,
    /// What is changed, as a merge patch (RFC 7386).
    pub patch: Value,
}

impl<'w> DeviceClaimView<'w> {
    /// Those of a world.
    pub fn of(world: &'w World) -> Self {
        Self { objects: &world.index.objects }
    }

    /// Whether a pod refers to claims of devices.
    pub fn has_any(self, pod: PodId) -> bool {
        self.pod(pod).is_some_and(|pod| !pod.device_claims.is_empty())
    }

    /// What is to be written before a pod is bound to a node, one change of each of its claims at
    /// most; nothing once all have their devices and are reserved for it.
    ///
    /// # Errors
    ///
    /// The pod cannot go there with its claims as they are.
    pub fn next_writes(self, pod: PodId, node: &str) -> Result<Vec<ClaimWrite>, NotYet> {
        let Some(pod) = self.pod(pod) else { return Ok(Vec::new()) };
        let mut writes = Vec::new();
        for claim in self.objects.device_claims.of_pod(pod)? {
            writes.extend(self.next_write(pod, claim, node)?);
        }
        Ok(writes)
    }

    fn next_write(
        self,
        pod: &Pod,
        claim: &ResourceClaim,
        node: &str,
    ) -> Result<Option<ClaimWrite>, NotYet> {
        let pledge = self.objects.device_claims.pledge(claim);
        let is_reserved = claim.reserved_for.iter().any(|one| one.uid == pod.meta.uid);
        let name = || claim.meta.name.to_string();
        let Some(pledge) = pledge else {
            let place = self.objects.nodes.get(node);
            let place = place.map(|object| Place { node, labels: &object.meta.labels });
            let has = claim.allocation.as_ref();
            if !place.zip(has).is_some_and(|(place, has)| is_reached(has, place)) {
                return Err(NotYet::DevicesElsewhere { claim: name(), node: node.to_owned() });
            }
            if is_reserved {
                return Ok(None);
            }
            if claim.reserved_for.len() >= MOST_CONSUMERS {
                let problem = format!("claim {} is reserved for {MOST_CONSUMERS} pods", name());
                return Err(NotYet::NoDevices { problem });
            }
            let reserved = reserved(claim, pod);
            return Ok(Some(write(claim, true, json!({"status": {"reservedFor": reserved}}))));
        };
        if claim.allocation.is_some() {
            // It has devices elsewhere that nobody uses.
            let none = json!({"status": {"allocation": null, "reservedFor": null}});
            return Ok(Some(write(claim, true, none)));
        }
        if !claim.finalizers.iter().any(|one| **one == *FINALIZER) {
            let all: Vec<&str> =
                claim.finalizers.iter().map(|one| &**one).chain([FINALIZER]).collect();
            return Ok(Some(write(claim, false, json!({"metadata": {"finalizers": all}}))));
        }
        let allocation = pledge.allotment.to_json(&claim.meta.uid);
        let status = json!({"allocation": allocation, "reservedFor": reserved(claim, pod)});
        Ok(Some(write(claim, true, json!({"status": status}))))
    }

    /// What takes back what was written for a pod that does not go to a node after all.
    pub fn writes_to_undo(self, pod: PodId) -> Vec<ClaimWrite> {
        let Some(pod) = self.pod(pod).filter(|pod| pod.node.is_empty()) else { return Vec::new() };
        let claims = self.objects.device_claims.of_pod(pod).unwrap_or_default();
        let undo = |claim: &ResourceClaim| {
            let others: Vec<Value> = claim
                .reserved_for
                .iter()
                .filter(|one| one.uid != pod.meta.uid)
                .map(consumer)
                .collect();
            let is_reserved = others.len() < claim.reserved_for.len();
            let status = match (is_reserved, others.is_empty()) {
                (false, _) => return None,
                (true, true) => json!({"allocation": null, "reservedFor": null}),
                (true, false) => json!({"reservedFor": others}),
            };
            Some(write(claim, true, json!({"status": status})))
        };
        claims.into_iter().filter_map(undo).collect()
    }

    fn pod(self, pod: PodId) -> Option<&'w Pod> {
        let slot = self.objects.pods.by_id(pod)?;
        Some(&self.objects.pods.get(slot).pod)
    }
}

fn write(claim: &ResourceClaim, is_status: bool, mut patch: Value) -> ClaimWrite {
    let version = claim.meta.resource_version.clone();
    patch["metadata"]["uid"] = json!(claim.meta.uid);
    patch["metadata"]["resourceVersion"] = json!(version);
    ClaimWrite { claim: ClaimKey::of_meta(&claim.meta), version, is_status, patch }
}

fn reserved(claim: &ResourceClaim, pod: &Pod) -> Vec<Value> {
    let others = claim.reserved_for.iter().filter(|one| one.uid != pod.meta.uid).map(consumer);
    let this = json!({"resource": "pods", "name": pod.meta.name, "uid": pod.meta.uid});
    others.chain([this]).collect()
}

fn consumer(of: &Consumer) -> Value {
    let mut written = json!({"resource": of.resource, "name": of.name, "uid": of.uid});
    if !of.api_group.is_empty() {
        written["apiGroup"] = json!(of.api_group);
    }
    written
}
