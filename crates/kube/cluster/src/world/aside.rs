//! Devices are set aside for pods whose nodes are decided, and given back.

use std::collections::BTreeMap;

use dovetail_devices::{AllocationOutcome, Allotment, CandidateNode};
use dovetail_model::{Event, NodeName, PodId};
use dovetail_objects::ResourceClaim;

use super::World;
use super::index::Index;
use super::key::ClaimKey;
use super::objects::Objects;
use super::objects::device_changes::DeviceChanges;
use super::objects::device_claims::{ClaimAvailability, SetAside};
use super::readings::device_claims::{on_node, without};
use super::readings::extended::{ExtendedClaim, extended_claim};

/// The first claim of decided pods whose devices were not free together with those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedClaim {
    pub pod: String,
    /// Its name; empty if the pod, or a claim of it, is gone.
    pub claim: String,
    /// The node that was decided.
    pub node: String,
}

/// Devices that are set aside for pods whose nodes are decided, to be changed.
#[derive(Debug)]
pub struct DevicesAside<'w> {
    index: &'w mut Index,
}

impl<'w> DevicesAside<'w> {
    /// Those of a world.
    pub fn of(world: &'w mut World) -> Self {
        Self { index: &mut world.index }
    }

    /// Sets devices aside for the claims of pods that were decided together: for all of them on
    /// their nodes, or for none; what follows from it for the engine. Claims that have devices
    /// within reach keep them. Where a pod would take what one after it needs, the claims of all
    /// pods of a node are served at once.
    pub fn set(mut self, decided: &[(PodId, NodeName)]) -> Result<Vec<Event>, UnservedClaim> {
        let pods: Vec<PodId> = decided.iter().map(|(pod, _)| *pod).collect();
        let in_turn: Vec<(&NodeName, Vec<PodId>)> =
            decided.iter().map(|(pod, node)| (node, vec![*pod])).collect();
        let mut changes = SetAside::default();
        if let Err(unserved) = self.serve(&in_turn, &mut changes) {
            self.index.objects.device_claims.give_back(&pods);
            changes = SetAside::default();
            let mut by_node: BTreeMap<&NodeName, Vec<PodId>> = BTreeMap::new();
            for (pod, node) in decided {
                by_node.entry(node).or_default().push(*pod);
            }
            let at_once: Vec<(&NodeName, Vec<PodId>)> = by_node.into_iter().collect();
            // One pod alone was served at once already.
            if decided.len() < 2 || self.serve(&at_once, &mut changes).is_err() {
                let objects = &mut self.index.objects;
                objects.device_claims.give_back(&pods);
                let nodes = decided.iter().map(|(_, node)| node.clone());
                DeviceChanges::of(objects).refused(nodes);
                return Err(unserved);
            }
        }
        let objects = &mut self.index.objects;
        DeviceChanges::of(objects).set_aside(&changes);
        // How many more of a gang a node takes follows from those that have devices there.
        let slots = decided.iter().filter_map(|(pod, _)| objects.pods.by_id(*pod));
        let gangs = slots.filter_map(|slot| objects.pods.get(slot).gang.as_ref());
        objects.dirty.pods.extend(gangs.flat_map(|gang| objects.members.of(gang)));
        Ok(self.index.settle())
    }

    /// Gives back what was set aside for the claims of pods that go nowhere.
    pub fn give_back(self, pods: &[PodId]) -> Vec<Event> {
        let changes = self.index.objects.device_claims.give_back(pods);
        if changes.claims.is_empty() {
            return Vec::new();
        }
        DeviceChanges::of(&mut self.index.objects).set_aside(&changes);
        self.index.settle()
    }

    /// Sets devices aside for pods on nodes, each entry at once and one after the other; stops at
    /// the first that cannot be served.
    fn serve(
        &mut self,
        decided: &[(&NodeName, Vec<PodId>)],
        changes: &mut SetAside,
    ) -> Result<(), UnservedClaim> {
        let objects = &mut self.index.objects;
        for (node, pods) in decided {
            for (pod, key, allotment) in given(objects, pods, node)? {
                objects.device_claims.set_aside(&key, (pod, *node), allotment, changes);
            }
        }
        Ok(())
    }
}

/// What the claims of pods get together on a node beside what they have.
fn given(
    objects: &Objects,
    pods: &[PodId],
    node: &NodeName,
) -> Result<Vec<(PodId, ClaimKey, Allotment)>, UnservedClaim> {
    let extended: Vec<(PodId, ExtendedClaim)> = pods
        .iter()
        .filter_map(|id| {
            let pod = &objects.pods.get(objects.pods.by_id(*id)?).pod;
            Some((*id, extended_claim(objects, pod, node)?))
        })
        .collect();
    let mut to_allocate: Vec<(PodId, &ResourceClaim)> = Vec::new();
    for id in pods {
        for claim in open_claims(objects, *id, node)? {
            // Pods of one namespace may share it.
            let name = |claim: &ResourceClaim| ClaimKey::of_meta(&claim.meta);
            if to_allocate.iter().all(|(_, known)| name(known) != name(claim)) {
                to_allocate.push((*id, claim));
            }
        }
    }
    to_allocate.extend(extended.iter().map(|(id, extended)| (*id, &extended.claim)));
    let Some((first, claim)) = to_allocate.first() else { return Ok(Vec::new()) };
    let unserved = || UnservedClaim::of(objects, *first, &claim.meta.name, node);
    let object = objects.nodes.get(node).ok_or_else(unserved)?;
    let place = CandidateNode { node, labels: &object.meta.labels };
    let claims: Vec<&ResourceClaim> = to_allocate.iter().map(|(_, claim)| *claim).collect();
    let held = without(&objects.device_claims.held, &claims);
    let AllocationOutcome::Fits(allotments) = on_node(objects, &held, place, &claims) else {
        return Err(unserved());
    };
    let keeps = |claim: &ResourceClaim| {
        let has = claim.allocation.as_ref();
        has.is_some_and(|has| super::readings::device_claims::is_reached(has, place))
    };
    let open = to_allocate.iter().filter(|(_, claim)| !keeps(claim));
    let keys = open.map(|(pod, claim)| (*pod, ClaimKey::of_meta(&claim.meta)));
    Ok(keys.zip(allotments).map(|((pod, key), allotment)| (pod, key, allotment)).collect())
}

/// The claims of a pod that need devices on a node, or have some that no other pod uses.
fn open_claims<'o>(
    objects: &'o Objects,
    id: PodId,
    node: &NodeName,
) -> Result<Vec<&'o ResourceClaim>, UnservedClaim> {
    let slot = objects.pods.by_id(id).ok_or_else(|| UnservedClaim::of(objects, id, "", node))?;
    let pod = &objects.pods.get(slot).pod;
    let claims = objects.device_claims.of_pod(pod);
    let claims = claims.map_err(|_| UnservedClaim::of(objects, id, "", node))?;
    let mut open = Vec::new();
    for claim in claims {
        match objects.device_claims.standing(claim, pod) {
            ClaimAvailability::Pledged(pledged) if pledged != *node => {
                return Err(UnservedClaim::of(objects, id, &claim.meta.name, node));
            }
            ClaimAvailability::Pledged(_) | ClaimAvailability::Shared => {}
            ClaimAvailability::Open | ClaimAvailability::Own => open.push(claim),
        }
    }
    Ok(open)
}

impl UnservedClaim {
    fn of(objects: &Objects, pod: PodId, claim: &str, node: &NodeName) -> Self {
        let slot = objects.pods.by_id(pod);
        let name = slot.map(|slot| objects.pods.get(slot).pod.meta.name.to_string());
        let (pod, claim, node) = (name.unwrap_or_default(), claim.to_owned(), node.to_string());
        Self { pod, claim, node }
    }
}
