//! Claims and their volumes (`VolumeBinding`, `VolumeZone`, `NodeVolumeLimits`).

use dovetail_objects::labels;
use std::collections::BTreeSet;

use dovetail_model::requirement::Operator;
use dovetail_model::{Attachment, ConditionCause, NodeCondition, SelectorTerm};
use dovetail_objects::{InTreePlugin, PersistentVolume, Pod, PodVolume, VolumeClaim, VolumeSource};

use super::node::driver_label;
use super::not_yet::NotYet;
use super::referred::ReferredObjects;
use super::unbound::unbound;

const ZONE: &str = labels::ZONE;
const REGION: &str = labels::REGION;
const OLD_ZONE: &str = labels::OLD_ZONE;
const OLD_REGION: &str = labels::OLD_REGION;

/// What the pod's volumes ask of its node.
pub(super) fn conditions(pod: &Pod, facts: &ReferredObjects) -> Result<Vec<NodeCondition>, NotYet> {
    let mut conditions = Vec::new();
    for volume in &pod.volumes {
        let Some(claim) = claim_of(pod, volume, facts)? else { continue };
        if !claim.is_bound() {
            conditions.extend(unbound(claim, facts)?);
            continue;
        }
        let Some(bound) = facts.volume(&claim.volume) else {
            return Err(NotYet::VolumeMissing {
                claim: claim.meta.name.to_string(),
                volume: claim.volume.to_string(),
            });
        };
        refuse_in_tree(claim, bound)?;
        conditions.extend(
            bound
                .node_affinity
                .clone()
                .map(|any_of| NodeCondition { any_of, cause: ConditionCause::VolumeNodeAffinity }),
        );
        if matches!(volume, PodVolume::Claim(_)) {
            conditions.extend(zones(bound));
        }
    }
    let drivers: BTreeSet<String> =
        attachments(pod, facts).into_iter().map(|attachment| attachment.limit).collect();
    let must_run = drivers
        .iter()
        .filter(|name| facts.driver(name).is_some_and(|driver| driver.must_be_on_node));
    conditions.extend(must_run.map(|driver| NodeCondition {
        any_of: vec![vec![exists(driver_label(driver))]],
        cause: ConditionCause::VolumeDriver,
    }));
    Ok(conditions)
}

/// The volumes that the pod has attached to its node. Those of claims that are missing are left
/// out.
pub(super) fn attachments(pod: &Pod, facts: &ReferredObjects) -> BTreeSet<Attachment> {
    let source = |volume: &PodVolume| match volume {
        PodVolume::Claim(name) | PodVolume::Ephemeral(name) => {
            let claim = facts.claim(&pod.meta.namespace, name)?;
            claimed(claim, facts)
        }
        PodVolume::Disk(disk) => disk.migrated.clone(),
    };
    let sources = pod.volumes.iter().filter_map(source);
    let named = sources.filter(|source| !source.driver.is_empty() && !source.handle.is_empty());
    named
        .map(|source| Attachment { limit: source.driver.into(), volume: source.handle.into() })
        .collect()
}

/// The driver and volume of a claim. A claim without a volume counts as one of its class's driver,
/// under a name of its own.
fn claimed(claim: &VolumeClaim, facts: &ReferredObjects) -> Option<VolumeSource> {
    if let Some(volume) = facts.volume(&claim.volume) {
        return volume.source.clone();
    }
    let class = facts.class(&claim.class)?;
    let migrated = InTreePlugin::named(&class.provisioner).map(InTreePlugin::driver);
    Some(VolumeSource {
        driver: migrated.map_or_else(|| class.provisioner.clone(), Box::from),
        handle: format!("claim:{}/{}", claim.meta.namespace, claim.meta.name).into(),
    })
}

/// The claim behind a volume, if it is one, in a state in which its pod can be placed.
fn claim_of<'a>(
    pod: &Pod,
    volume: &PodVolume,
    facts: &'a ReferredObjects,
) -> Result<Option<&'a VolumeClaim>, NotYet> {
    let (name, ephemeral) = match volume {
        PodVolume::Claim(name) => (name, false),
        PodVolume::Ephemeral(name) => (name, true),
        PodVolume::Disk(_) => return Ok(None),
    };
    let text = name.to_string();
    let Some(claim) = facts.claim(&pod.meta.namespace, name) else {
        return Err(match ephemeral {
            true => NotYet::EphemeralClaimMissing { claim: text },
            false => NotYet::ClaimMissing { claim: text },
        });
    };
    if claim.lost {
        return Err(NotYet::ClaimLost { claim: text, volume: claim.volume.to_string() });
    }
    if claim.meta.is_deleting() {
        return Err(NotYet::ClaimDeleting { claim: text });
    }
    if ephemeral && claim.meta.controller.uid != pod.meta.uid {
        return Err(NotYet::ClaimOfAnother {
            namespace: pod.meta.namespace.to_string(),
            claim: text,
            pod: pod.meta.name.to_string(),
        });
    }
    Ok(Some(claim))
}

/// What the zone and region labels of a volume ask: a node that has any such label must have the
/// same.
fn zones(volume: &PersistentVolume) -> impl Iterator<Item = NodeCondition> {
    let labels = [OLD_ZONE, OLD_REGION, ZONE, REGION];
    labels.into_iter().filter_map(move |key| {
        let text = volume.meta.labels.get(key)?;
        let values: Vec<String> = text.split("__").map(|zone| zone.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return None;
        }
        let is_one_of = |key: &str| SelectorTerm {
            key: key.to_owned(),
            operator: Operator::In,
            values: values.clone(),
        };
        let mut any_of = vec![labels.map(absent).to_vec(), vec![is_one_of(key)]];
        let newer = match key {
            OLD_ZONE => Some(ZONE),
            OLD_REGION => Some(REGION),
            _ => None,
        };
        any_of.extend(newer.map(|newer| vec![absent(key), is_one_of(newer)]));
        Some(NodeCondition { any_of, cause: ConditionCause::VolumeZone })
    })
}

/// CSI migration changes the node affinity of such volumes node by node; pods of those that have
/// one are left alone.
fn refuse_in_tree(claim: &VolumeClaim, volume: &PersistentVolume) -> Result<(), NotYet> {
    let zoned = [ZONE, OLD_ZONE].iter().any(|label| volume.meta.labels.get(label).is_some());
    match volume.in_tree {
        Some(plugin) if zoned || volume.node_affinity.is_some() => Err(NotYet::InTreeVolume {
            claim: claim.meta.name.to_string(),
            volume: volume.meta.name.to_string(),
            plugin: plugin.name(),
        }),
        _ => Ok(()),
    }
}

/// The label is there, whatever its value.
pub(super) fn exists(key: String) -> SelectorTerm {
    SelectorTerm { key, operator: Operator::Exists, values: Vec::new() }
}

fn absent(key: &str) -> SelectorTerm {
    SelectorTerm { key: key.to_owned(), operator: Operator::DoesNotExist, values: Vec::new() }
}
