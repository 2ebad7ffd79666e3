//! Claims that get their volume when a pod is placed (`VolumeBinding`, `WaitForFirstConsumer`).

use dovetail_model::node::NAME_LABEL;
use dovetail_model::requirement::Operator;
use dovetail_model::{ConditionCause, NodeCondition, SelectorTerm};
use dovetail_objects::{
    LabelSelector, LabelTerm, LabelTest, PersistentVolume, StorageCapacity, StorageClass,
    VolumeClaim,
};

use super::not_yet::NotYet;
use super::referred::ReferredObjects;

/// The provisioner of classes that provision nothing.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// What a claim without a volume asks of the node.
pub(super) fn unbound(
    claim: &VolumeClaim,
    facts: &ReferredObjects,
) -> Result<Vec<NodeCondition>, NotYet> {
    let class = waiting_class(claim, facts)?;
    let mut conditions = Vec::new();
    match &claim.selected_node {
        Some(node) => {
            let term = one_of(NAME_LABEL, vec![node.to_string()]);
            conditions.push(topology(vec![vec![term]]));
        }
        None => {
            let mut existing = facts.volumes_of(&claim.class);
            if let Some(volume) = existing.find(|volume| could_take(claim, volume)) {
                return Err(NotYet::StaticVolume {
                    claim: claim.meta.name.to_string(),
                    volume: volume.meta.name.to_string(),
                });
            }
        }
    }
    if class.provisioner.is_empty() || &*class.provisioner == NO_PROVISIONER {
        conditions.push(topology(Vec::new()));
        return Ok(conditions);
    }
    conditions.extend(class.allowed_topologies.clone().map(topology));
    conditions.extend(with_room(claim, class, facts));
    Ok(conditions)
}

/// The class of a claim that waits for its first consumer.
fn waiting_class<'a>(
    claim: &VolumeClaim,
    facts: &'a ReferredObjects,
) -> Result<&'a StorageClass, NotYet> {
    let unbound = || NotYet::ClaimUnbound { claim: claim.meta.name.to_string() };
    let class = facts.class(&claim.class).ok_or_else(unbound)?;
    match class.waits_for_consumer {
        None => Err(NotYet::ClassWithoutBindingMode { class: claim.class.to_string() }),
        Some(true) if claim.volume.is_empty() => Ok(class),
        Some(_) => Err(unbound()),
    }
}

/// Whether kube-scheduler could bind the claim to this volume on some node.
fn could_take(claim: &VolumeClaim, volume: &PersistentVolume) -> bool {
    let kept_for_claim = volume.claim.as_ref().map(|kept| {
        let same = kept.namespace == claim.meta.namespace && kept.name == claim.meta.name;
        same && (kept.uid.is_empty() || kept.uid == claim.meta.uid)
    });
    let mode = |mode: &str| if mode.is_empty() { "Filesystem".to_owned() } else { mode.to_owned() };
    let large_enough = volume.capacity_bytes.unwrap_or(0) >= claim.request_bytes.unwrap_or(0);
    let like = mode(&volume.volume_mode) == mode(&claim.volume_mode)
        && volume.attributes_class == claim.attributes_class;
    if kept_for_claim == Some(false) || !large_enough || !like || volume.meta.is_deleting() {
        return false;
    }
    let chosen = claim.selector.as_ref().is_none_or(|pods| pods.matches(&volume.meta.labels));
    let modes = claim.access_modes.iter().all(|mode| volume.access_modes.contains(mode));
    kept_for_claim == Some(true) || (volume.available && chosen && modes)
}

/// Nodes that reach room for the claim, if its driver publishes where it has room.
fn with_room(
    claim: &VolumeClaim,
    class: &StorageClass,
    facts: &ReferredObjects,
) -> Option<NodeCondition> {
    let size_bytes = claim.request_bytes?;
    facts.driver(&class.provisioner).filter(|driver| driver.tracks_capacity)?;
    let enough = facts.capacities_of(&class.meta.name).filter(|c| c.has_room_for(size_bytes));
    let any_of = enough.filter_map(reached_from).collect();
    Some(NodeCondition { any_of, cause: ConditionCause::StorageCapacity })
}

fn reached_from(capacity: &StorageCapacity) -> Option<Vec<SelectorTerm>> {
    let LabelSelector::Of(terms) = &capacity.nodes else { return None };
    let values = |values: &[Box<str>]| values.iter().map(|value| value.to_string()).collect();
    let term = |term: &LabelTerm| {
        let (operator, values) = match &term.test {
            LabelTest::In(list) => (Operator::In, values(list)),
            LabelTest::NotIn(list) => (Operator::NotIn, values(list)),
            LabelTest::Exists => (Operator::Exists, Vec::new()),
            LabelTest::DoesNotExist => (Operator::DoesNotExist, Vec::new()),
        };
        SelectorTerm { key: term.key.to_string(), operator, values }
    };
    Some(terms.iter().map(term).collect())
}

fn topology(any_of: Vec<Vec<SelectorTerm>>) -> NodeCondition {
    NodeCondition { any_of, cause: ConditionCause::StorageTopology }
}

fn one_of(key: &str, values: Vec<String>) -> SelectorTerm {
    SelectorTerm { key: key.to_owned(), operator: Operator::In, values }
}
