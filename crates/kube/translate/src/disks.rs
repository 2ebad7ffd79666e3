//! Disks named in pods, and claims for one pod only (`VolumeRestrictions`).

use dovetail_model::node::{CLUSTER_LABEL, NAME_LABEL};
use dovetail_model::{CounterRule, CounterScope, RuleCause, RuleKind};
use dovetail_objects::{Disk, Pod, PodVolume};

use super::referred::ReferredObjects;

/// The counters that count the pod because of its disks and claims.
pub(super) fn counted_by(pod: &Pod, facts: &ReferredObjects) -> Vec<String> {
    let mut counted = Vec::new();
    for disk in disks(pod) {
        for name in &disk.conflicts {
            counted.push(any_use(name));
            if !disk.read_only {
                counted.push(writing(name));
            }
        }
    }
    counted.extend(claims_for_one_pod(pod, facts).map(|claim| claim_use(pod, claim)));
    counted
}

/// What the pod's disks ask of its node, and its claims of the cluster.
pub(super) fn rules(pod: &Pod, facts: &ReferredObjects) -> Vec<CounterRule> {
    let keep_off = |selector, label: &str, cause| CounterRule {
        selector,
        label: label.to_owned(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause,
    };
    let disks = disks(pod).flat_map(|disk| {
        let others = if disk.readers_share && disk.read_only { writing } else { any_use };
        disk.conflicts.iter().map(move |name| others(name))
    });
    let disks = disks.map(|selector| keep_off(selector, NAME_LABEL, RuleCause::DiskConflict));
    let claims = claims_for_one_pod(pod, facts)
        .map(|claim| keep_off(claim_use(pod, claim), CLUSTER_LABEL, RuleCause::ReadWriteOncePod));
    disks.chain(claims).collect()
}

fn disks(pod: &Pod) -> impl Iterator<Item = &Disk> {
    pod.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Disk(disk) => Some(&**disk),
        PodVolume::Claim(_) | PodVolume::Ephemeral(_) => None,
    })
}

/// Claims that the pod names itself; one made for it alone is used by no other.
fn claims_for_one_pod<'a>(
    pod: &'a Pod,
    facts: &'a ReferredObjects,
) -> impl Iterator<Item = &'a str> {
    pod.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Claim(name) => {
            let claim = facts.claim(&pod.meta.namespace, name)?;
            claim.is_for_one_pod().then_some(&**name)
        }
        PodVolume::Ephemeral(_) | PodVolume::Disk(_) => None,
    })
}

fn any_use(disk: &str) -> String {
    format!("disk:{disk}")
}

fn writing(disk: &str) -> String {
    format!("disk:{disk}:written")
}

fn claim_use(pod: &Pod, claim: &str) -> String {
    format!("claim:{}/{claim}", pod.meta.namespace)
}
