//! Claims of devices, what drivers offer, and the devices that are set aside for pods that are
//! decided until the watch shows that their claims have them.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_devices::{Allotment, Catalog, ClaimedDevices, DeviceKey};
use dovetail_model::{NodeName, PodId};
use dovetail_objects::{Allocation, Kind, Object, Pod, ResourceClaim, ResourceSlice, labels};

use super::surveys::Surveys;
use crate::world::key::ClaimKey;
use dovetail_translate::NotYet;

/// Pods that a claim can be reserved for (`ResourceClaimReservedForMaxSize`).
pub(crate) const MOST_CONSUMERS: usize = 256;

/// All that decides which devices pods can have where.
#[derive(Debug, Default)]
pub(crate) struct DeviceClaims {
    pub(crate) catalog: Catalog,
    claims: BTreeMap<Key, ResourceClaim>,
    /// Claims for extended resources, by the identity of their pods.
    extended: BTreeMap<Box<str>, Key>,
    /// Pods that are gone, by identity, whose claims for extended resources are still there and
    /// have devices.
    leaving: BTreeMap<Box<str>, Leaving>,
    /// What claims have, and what is set aside for them.
    pub(crate) held: ClaimedDevices,
    /// What is set aside, by claim.
    pledges: BTreeMap<Key, Pledge>,
    /// What nodes answered to claims that ask for the same.
    pub(crate) surveys: Surveys,
}

/// What is left of a pod that had extended resources by a claim.
#[derive(Debug)]
struct Leaving {
    node: Box<str>,
    amounts: BTreeMap<String, i64>,
}

/// Namespace and name.
pub(crate) type Key = (Box<str>, Box<str>);

/// Devices that are set aside for a claim.
#[derive(Clone, Debug)]
pub(crate) struct Pledge {
    uid: Box<str>,
    /// The pod that they are set aside for.
    pod: PodId,
    /// Where its pod is to go.
    pub(crate) node: NodeName,
    pub(crate) allotment: Allotment,
}

/// Devices that were set aside, or given back.
#[derive(Debug, Default)]
pub(crate) struct SetAside {
    /// Claims, by namespace and name.
    pub(crate) claims: Vec<Key>,
    pub(crate) nodes: BTreeSet<NodeName>,
    pub(crate) devices: Vec<DeviceKey>,
}

impl SetAside {
    fn note(&mut self, key: &Key, pledge: &Pledge) {
        self.claims.push(key.clone());
        self.nodes.insert(pledge.node.clone());
        self.devices.extend(pledge.devices());
    }
}

impl Pledge {
    fn devices(&self) -> impl Iterator<Item = DeviceKey> {
        self.allotment.devices.iter().filter_map(|given| given.device.clone())
    }
}

/// How a claim stands to a pod that has no node yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClaimAvailability {
    /// It has nothing.
    Open,
    /// It has devices, and nobody else uses them.
    Own,
    /// It has devices that others use, too.
    Shared,
    /// Devices are set aside for it on this node.
    Pledged(NodeName),
}

impl DeviceClaims {
    /// Notes an object that is there or different; whether claims may fit elsewhere by that.
    pub(crate) fn note(&mut self, object: &Object) -> bool {
        match object {
            Object::DeviceClaim(claim) => return self.put(ResourceClaim::clone(claim)),
            Object::DeviceClass(class) => self.catalog.put_class(class.clone()),
            Object::DeviceTaintRule(rule) => self.catalog.put_taint_rule(rule.clone()),
            Object::ResourceSlice(slice) => self.catalog.put_slice(ResourceSlice::clone(slice)),
            Object::Node(_) => {}
            _ => return false,
        }
        true
    }

    /// Notes that an object is gone; whether claims may fit elsewhere by that.
    pub(crate) fn note_gone(&mut self, kind: Kind, namespace: &str, name: &str) -> bool {
        match kind {
            Kind::DeviceClaim => self.remove(namespace, name),
            Kind::DeviceClass => self.catalog.remove_class(name),
            Kind::DeviceTaintRule => self.catalog.remove_taint_rule(name),
            Kind::ResourceSlice => self.catalog.remove_slice(name),
            Kind::Node => {}
            _ => return false,
        }
        true
    }

    /// A claim is there, or different. What was set aside for it is not any more once it has
    /// something. Whether what is free differs by that.
    fn put(&mut self, claim: ResourceClaim) -> bool {
        let key = (claim.meta.namespace.clone(), claim.meta.name.clone());
        let devices = self.devices_of(&key, claim.allocation.as_ref());
        let was = self.held.of(&devices);
        self.replace(key, claim);
        was != self.held.of(&devices)
    }

    /// The devices that a claim has, that are set aside for it, and that it gets.
    fn devices_of(&self, key: &Key, gets: Option<&Allocation>) -> Vec<DeviceKey> {
        let has = self.claims.get(key).and_then(|claim| claim.allocation.as_ref());
        let aside = self.pledges.get(key).map(|pledge| pledge.allotment.allocation());
        let all = has.into_iter().chain(&aside).chain(gets).flat_map(|of| &of.devices);
        all.map(DeviceKey::of).collect()
    }

    fn replace(&mut self, key: Key, claim: ResourceClaim) {
        let before = self.forget(&key);
        if claim.allocation.is_none() {
            self.leaving.remove(&claim.meta.controller.uid);
        }
        let had = before.as_ref().and_then(|before| before.allocation.as_ref());
        if let Some(had) = had {
            self.held.remove(had);
        }
        if is_extended(&claim) {
            self.extended.insert(claim.meta.controller.uid.clone(), key.clone());
            // It was created for a pod that has devices set aside.
            let pledge = self.pledges.get_mut(&key).filter(|pledge| pledge.uid.is_empty());
            pledge.into_iter().for_each(|pledge| pledge.uid = claim.meta.uid.clone());
        }
        let is_another = self.pledges.get(&key).is_some_and(|one| one.uid != claim.meta.uid);
        let is_new = claim.allocation.is_some() && claim.allocation.as_ref() != had;
        if is_another || is_new {
            self.unpledge(&key);
        }
        if let Some(has) = &claim.allocation {
            self.held.add(has);
        }
        self.claims.insert(key, claim);
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let key = (namespace.into(), name.into());
        self.unpledge(&key);
        let Some(claim) = self.forget(&key) else { return };
        self.leaving.remove(&claim.meta.controller.uid);
        if let Some(had) = &claim.allocation {
            self.held.remove(had);
        }
    }

    fn forget(&mut self, key: &Key) -> Option<ResourceClaim> {
        let claim = self.claims.remove(key)?;
        let owner = &claim.meta.controller.uid;
        if self.extended.get(owner) == Some(key) {
            self.extended.remove(owner);
        }
        Some(claim)
    }

    /// The claim for the extended resources of the pod of this identity.
    pub(crate) fn extended_of(&self, pod_uid: &str) -> Option<&ResourceClaim> {
        self.claims.get(self.extended.get(pod_uid)?)
    }

    /// A pod is gone: its devices follow when its claim is deleted.
    pub(crate) fn pod_gone(&mut self, pod: &Pod) {
        let has = |claim: &ResourceClaim| claim.allocation.is_some();
        if self.extended_of(&pod.meta.uid).is_some_and(has) {
            let (node, amounts) = (pod.node.clone(), pod.holds().extended.clone());
            self.leaving.insert(pod.meta.uid.clone(), Leaving { node, amounts });
        }
    }

    /// How much of a resource pods that are gone from a node have there until their claims are.
    pub(crate) fn leaving(&self, node: &str, resource: &str) -> i64 {
        let of_node = self.leaving.values().filter(|leaving| *leaving.node == *node);
        of_node.filter_map(|leaving| leaving.amounts.get(resource)).sum()
    }

    /// Whether there are claims for extended resources.
    pub(crate) fn has_extended(&self) -> bool {
        !self.extended.is_empty()
    }

    /// Whether devices are set aside for a claim, be it there or yet to be created.
    pub(crate) fn is_set_aside(&self, namespace: &str, name: &str) -> bool {
        self.pledges.contains_key(&(namespace.into(), name.into()))
    }

    /// The node of the pod that devices are set aside for, of a claim.
    pub(crate) fn pledged_node(&self, namespace: &str, name: &str) -> Option<&NodeName> {
        Some(&self.pledges.get(&(namespace.into(), name.into()))?.node)
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&ResourceClaim> {
        self.claims.get(&(namespace.into(), name.into()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &ResourceClaim> {
        self.claims.values()
    }

    /// The claims of a pod, each once; why it cannot be placed with them otherwise.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Result<Vec<&ResourceClaim>, NotYet> {
        let mut claims: Vec<&ResourceClaim> = Vec::new();
        for named in &pod.device_claims {
            let Some(name) = named.claim.as_deref() else {
                return Err(NotYet::DeviceClaimNotMade { name: named.name.to_string() });
            };
            let Some(claim) = self.get(&pod.meta.namespace, name) else {
                return Err(NotYet::DeviceClaimMissing { claim: name.to_owned() });
            };
            if claim.meta.is_deleting() {
                return Err(NotYet::DeviceClaimDeleting { claim: name.to_owned() });
            }
            if named.is_from_template && claim.meta.controller.uid != pod.meta.uid {
                let pod = pod.meta.name.to_string();
                return Err(NotYet::DeviceClaimOfAnother { claim: name.to_owned(), pod });
            }
            if claims.iter().all(|one| one.meta.name != claim.meta.name) {
                claims.push(claim);
            }
        }
        Ok(claims)
    }

    pub(crate) fn standing(&self, claim: &ResourceClaim, pod: &Pod) -> ClaimAvailability {
        if let Some(pledge) = self.pledge(claim) {
            return ClaimAvailability::Pledged(pledge.node.clone());
        }
        let is_own = claim.reserved_for.iter().all(|one| one.uid == pod.meta.uid);
        match (&claim.allocation, is_own) {
            (None, _) => ClaimAvailability::Open,
            (Some(_), true) => ClaimAvailability::Own,
            (Some(_), false) => ClaimAvailability::Shared,
        }
    }

    pub(crate) fn pledge(&self, claim: &ResourceClaim) -> Option<&Pledge> {
        let key = (claim.meta.namespace.clone(), claim.meta.name.clone());
        self.pledges.get(&key).filter(|pledge| pledge.uid == claim.meta.uid)
    }

    /// A claim is to get these devices, on the node of its pod. Adds to what changes.
    pub(crate) fn set_aside(
        &mut self,
        key: &ClaimKey,
        (pod, node): (PodId, &NodeName),
        allotment: Allotment,
        changes: &mut SetAside,
    ) {
        self.held.add(&allotment.allocation());
        let pledge = Pledge { uid: key.uid.clone(), pod, node: node.clone(), allotment };
        let key = (key.namespace.clone(), key.name.clone());
        changes.note(&key, &pledge);
        self.pledges.insert(key, pledge);
    }

    /// Gives back what is set aside for pods: what changes by that.
    pub(crate) fn give_back(&mut self, pods: &[PodId]) -> SetAside {
        let mut changes = SetAside::default();
        let of_them = self.pledges.iter().filter(|(_, pledge)| pods.contains(&pledge.pod));
        of_them.for_each(|(key, pledge)| changes.note(key, pledge));
        changes.claims.iter().for_each(|key| self.unpledge(key));
        changes
    }

    /// Devices that are set aside for a claim.
    pub(crate) fn pledged_devices(&self, namespace: &str, name: &str) -> Vec<DeviceKey> {
        let pledge = self.pledges.get(&(namespace.into(), name.into()));
        pledge.into_iter().flat_map(Pledge::devices).collect()
    }

    fn unpledge(&mut self, key: &Key) {
        if let Some(pledge) = self.pledges.remove(key) {
            self.held.remove(&pledge.allotment.allocation());
        }
    }

    /// Whether drivers may offer devices that a node reaches.
    pub(crate) fn may_reach(&self, node: &str) -> bool {
        self.catalog.has_slices_of_several() || self.catalog.slices_of(node).next().is_some()
    }
}

/// Whether a claim was created for the extended resources of a pod, by whichever scheduler.
fn is_extended(claim: &ResourceClaim) -> bool {
    claim.meta.annotations.get(labels::EXTENDED_RESOURCE_CLAIM) == Some("true")
}
