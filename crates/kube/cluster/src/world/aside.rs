//! Devices are set aside for pods whose nodes are decided, and given back.

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
use super::readings::extended::extended_claim;

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
    /// their nodes, or for none (`None`); what follows from it for the engine. Claims that have
    /// devices within reach keep them.
    pub fn set(self, decided: &[(PodId, NodeName)]) -> Option<Vec<Event>> {
        let objects = &mut self.index.objects;
        let mut changes = SetAside::default();
        for (at, (pod, node)) in decided.iter().enumerate() {
            let Some(given) = given(objects, *pod, node) else {
                let before: Vec<PodId> = decided[..at].iter().map(|(pod, _)| *pod).collect();
                objects.device_claims.give_back(&before);
                let nodes = decided.iter().map(|(_, node)| node.clone());
                DeviceChanges::of(objects).refused(nodes);
                return None;
            };
            for (key, allotment) in given {
                let at = (*pod, node);
                objects.device_claims.set_aside(&key, at, allotment, &mut changes);
            }
        }
        DeviceChanges::of(objects).set_aside(&changes);
        // How many more of a gang a node takes follows from those that have devices there.
        let slots = decided.iter().filter_map(|(pod, _)| objects.pods.by_id(*pod));
        let gangs = slots.filter_map(|slot| objects.pods.get(slot).gang.as_ref());
        objects.dirty.pods.extend(gangs.flat_map(|gang| objects.members.of(gang)));
        Some(self.index.settle())
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
}

/// What the claims of a pod get on a node beside what they have; `None` if they cannot be served
/// there.
fn given(objects: &Objects, pod: PodId, node: &NodeName) -> Option<Vec<(ClaimKey, Allotment)>> {
    let pod = &objects.pods.get(objects.pods.by_id(pod)?).pod;
    let claims = objects.device_claims.of_pod(pod).ok()?;
    let mut to_allocate: Vec<&ResourceClaim> = Vec::new();
    for claim in claims {
        match objects.device_claims.standing(claim, pod) {
            ClaimAvailability::Pledged(pledged) if pledged != *node => return None,
            ClaimAvailability::Pledged(_) | ClaimAvailability::Shared => {}
            ClaimAvailability::Open | ClaimAvailability::Own => to_allocate.push(claim),
        }
    }
    let extended = extended_claim(objects, pod, node);
    to_allocate.extend(extended.as_ref().map(|extended| &extended.claim));
    if to_allocate.is_empty() {
        return Some(Vec::new());
    }
    let object = objects.nodes.get(node)?;
    let place = CandidateNode { node, labels: &object.meta.labels };
    let held = without(&objects.device_claims.held, &to_allocate);
    let AllocationOutcome::Fits(allotments) = on_node(objects, &held, place, &to_allocate) else {
        return None;
    };
    let keeps = |claim: &&&ResourceClaim| {
        let has = claim.allocation.as_ref();
        has.is_some_and(|has| super::readings::device_claims::is_reached(has, place))
    };
    let open = to_allocate.iter().filter(|claim| !keeps(claim));
    let keys = open.map(|claim| ClaimKey::of_meta(&claim.meta));
    Some(keys.zip(allotments).collect())
}
