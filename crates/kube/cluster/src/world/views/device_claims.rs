//! Claims of devices of pods whose nodes are decided: what is to be written next.

use dovetail_devices::CandidateNode;
use dovetail_model::PodId;
use dovetail_objects::{ExtendedClaimStatus, Pod, Readiness, ResourceClaim};
use serde_json::{Value, json};

use super::claim_writes::{
    ClaimPart, ClaimWrite, FINALIZER, consumer, creation, no_devices, pod_status, removal,
    reserved, seconds, write,
};
use crate::world::World;
use crate::world::key::ClaimKey;
use crate::world::objects::Objects;
use crate::world::objects::device_claims::MOST_CONSUMERS;
use crate::world::readings::device_claims::is_reached;
use crate::world::readings::extended::{ExtendedClaim, extended_claim, name_of};
use dovetail_translate::NotYet;

/// Questions about claims of devices.
#[derive(Clone, Copy, Debug)]
pub struct DeviceClaimView<'w> {
    objects: &'w Objects,
}

/// How long devices with binding conditions may take to be ready.
#[derive(Clone, Copy, Debug)]
pub struct DevicePatience {
    /// From their allocation.
    pub within_ms: u64,
    /// From when it counts where a claim does not say when it got them.
    pub since_ms: u64,
}

impl DevicePatience {
    fn until_ms(self, claim: &ResourceClaim) -> u64 {
        let said_ms = claim.allocation.as_ref().map(|has| has.since_ms).filter(|ms| *ms > 0);
        said_ms.unwrap_or(self.since_ms).saturating_add(self.within_ms)
    }
}

impl<'w> DeviceClaimView<'w> {
    /// Those of a world.
    pub fn of(world: &'w World) -> Self {
        Self { objects: &world.index.objects }
    }

    /// Whether a pod that goes to a node has claims of devices, or gets one there.
    pub fn has_any(self, pod: PodId, node: &str) -> bool {
        let refers = self.pod(pod).is_some_and(|pod| !pod.device_claims.is_empty());
        refers || self.gets_claim(pod, node)
    }

    /// Whether a pod that goes to a node gets a claim for its extended resources there.
    pub fn gets_claim(self, pod: PodId, node: &str) -> bool {
        self.pod(pod).is_some_and(|pod| extended_claim(self.objects, pod, node).is_some())
    }

    /// What a claim is known by that is yet to be created for the extended resources of a pod.
    pub fn new_claim_of(self, pod: PodId) -> Option<ClaimKey> {
        let pod = self.pod(pod).filter(|pod| !pod.extended.is_empty())?;
        let (namespace, name) = (pod.meta.namespace.clone(), name_of(pod).into());
        Some(ClaimKey { namespace, name, uid: Box::default() })
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
        if let Some(extended) = extended_claim(self.objects, pod, node) {
            writes.extend(self.next_extended_write(pod, &extended, node)?);
        }
        Ok(writes)
    }

    /// Namespaces and names of a pod and of its claims: what [`Self::next_writes`] asks for differs
    /// only if one of these objects does, or what is set aside, or nodes, slices or classes.
    pub fn rests_on(self, pod: PodId) -> Vec<(Box<str>, Box<str>)> {
        let Some(pod) = self.pod(pod) else { return Vec::new() };
        let named = pod.device_claims.iter().filter_map(|named| named.claim.clone());
        let created = (!pod.extended.is_empty()).then(|| name_of(pod).into());
        let extended = self.objects.device_claims.extended_of(&pod.meta.uid);
        let names = [pod.meta.name.clone()].into_iter().chain(named).chain(created);
        let names = names.chain(extended.map(|claim| claim.meta.name.clone()));
        names.map(|name| (pod.meta.namespace.clone(), name)).collect()
    }

    /// The same of the claim for its extended resources, which is created first.
    fn next_extended_write(
        self,
        pod: &Pod,
        extended: &ExtendedClaim,
        node: &str,
    ) -> Result<Option<ClaimWrite>, NotYet> {
        let Some(claim) = self.objects.device_claims.extended_of(&pod.meta.uid) else {
            return Ok(Some(creation(pod, &extended.claim)));
        };
        let name = || claim.meta.name.to_string();
        if claim.meta.is_deleting() {
            return Err(NotYet::DeviceClaimDeleting { claim: name() });
        }
        if claim.asked.requests != extended.claim.asked.requests {
            return Err(NotYet::DeviceClaimLeft { claim: name() });
        }
        let status = ExtendedClaimStatus {
            claim: claim.meta.name.clone(),
            mappings: extended.mappings.clone(),
        };
        match self.next_write(pod, claim, node)? {
            Some(write) => Ok(Some(write)),
            None if pod.extended_claim.as_deref() == Some(&status) => Ok(None),
            None => Ok(Some(pod_status(pod, claim, &status))),
        }
    }

    /// What removes claims that attempts left which did not start their pods: for extended
    /// resources, of pods without a node for which none is decided.
    pub fn writes_to_remove(self) -> Vec<ClaimWrite> {
        let Objects { device_claims, pods, .. } = self.objects;
        if !device_claims.has_extended() {
            return Vec::new();
        }
        let left = pods.extended.unplaced().map(|slot| pods.get(slot));
        let left = left.filter(|entry| !entry.is_decided() && self.objects.is_ours(&entry.pod));
        let claims = left.filter_map(|entry| device_claims.extended_of(&entry.pod.meta.uid));
        claims.filter_map(removal).collect()
    }

    /// The claims of a pod that are there.
    fn claims_of(self, pod: &Pod) -> Result<Vec<&'w ResourceClaim>, NotYet> {
        let claims = &self.objects.device_claims;
        let mut all = claims.of_pod(pod)?;
        all.extend(claims.extended_of(&pod.meta.uid));
        Ok(all)
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
            let place = place.map(|object| CandidateNode { node, labels: &object.meta.labels });
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
            return Ok(Some(write(
                claim,
                ClaimPart::Status,
                json!({"status": {"reservedFor": reserved}}),
            )));
        };
        if claim.allocation.is_some() {
            // It has devices elsewhere that nobody uses.
            return Ok(Some(write(claim, ClaimPart::Status, json!({"status": no_devices()}))));
        }
        if !claim.finalizers.iter().any(|one| **one == *FINALIZER) {
            let all: Vec<&str> =
                claim.finalizers.iter().map(|one| &**one).chain([FINALIZER]).collect();
            return Ok(Some(write(
                claim,
                ClaimPart::Metadata,
                json!({"metadata": {"finalizers": all}}),
            )));
        }
        let mut allocation = pledge.allotment.to_json(&claim.meta.uid);
        if pledge.allotment.awaits_conditions() {
            // From then on kube-scheduler counts how long that may take, and so do we.
            allocation["allocationTimestamp"] = json!(seconds(self.objects.now_ms));
        }
        let status = json!({"allocation": allocation, "reservedFor": reserved(claim, pod)});
        Ok(Some(write(claim, ClaimPart::Status, json!({"status": status}))))
    }

    /// The devices, as `driver/pool/device`, that are not ready yet for a pod whose claims have all
    /// that [`Self::next_writes`] asks for.
    ///
    /// # Errors
    ///
    /// A device will not be ready, or was not in time.
    pub fn not_ready(
        self,
        pod: PodId,
        node: &str,
        patience: DevicePatience,
    ) -> Result<Vec<String>, NotYet> {
        let Some(pod) = self.pod(pod) else { return Ok(Vec::new()) };
        let mut not_ready = Vec::new();
        for claim in self.claims_of(pod)? {
            let name = || claim.meta.name.to_string();
            let devices = match claim.readiness() {
                Readiness::Ready => continue,
                Readiness::Waits(devices) => devices,
                Readiness::Failed { device, condition } => {
                    return Err(NotYet::DeviceFailed { claim: name(), device, condition });
                }
            };
            if patience.until_ms(claim) <= self.objects.now_ms {
                let (node, device) = (node.to_owned(), devices.join(", "));
                let within_s = patience.within_ms / 1_000;
                return Err(NotYet::DeviceNotReady { claim: name(), device, node, within_s });
            }
            not_ready.extend(devices);
        }
        Ok(not_ready)
    }

    /// When the first claim of a pod is given up whose devices are not ready by then.
    pub fn ready_by_ms(self, pod: PodId, patience: DevicePatience) -> Option<u64> {
        let claims = self.claims_of(self.pod(pod)?).ok()?;
        let waits = |claim: &&ResourceClaim| matches!(claim.readiness(), Readiness::Waits(_));
        claims.into_iter().filter(waits).map(|claim| patience.until_ms(claim)).min()
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
                (true, true) => no_devices(),
                (true, false) => json!({"reservedFor": others}),
            };
            Some(write(claim, ClaimPart::Status, json!({"status": status})))
        };
        claims.into_iter().filter_map(undo).collect()
    }

    fn pod(self, pod: PodId) -> Option<&'w Pod> {
        let slot = self.objects.pods.by_id(pod)?;
        Some(&self.objects.pods.get(slot).pod)
    }
}
