//! What pods that wait want by claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_objects::Pod;

use super::apply::Claimed;
use super::by_class::full_name;
use super::claim::{NotTold, WantedGpus, wanted};
use super::whose::Whose;
use super::{ClaimOf, DeviceObjects, Key, UntoldPod};
use crate::facts::life::note_claimed;
use crate::facts::pods::Pods;
use crate::facts::shown_by;
use crate::facts::unmade::{Fate, UnmadePod};

/// Parts of GPUs by resource, with the resource of the whole ones that they can be cut from.
pub(super) type Cuttable = BTreeMap<String, &'static str>;

impl Claimed<'_> {
    /// Puts into pods without a node what their claims want and were not given. A claim that
    /// several pods wait for is wanted once. A pod that is being deleted waits for nothing.
    pub(super) fn want_claimed(
        &mut self,
        objects: &DeviceObjects,
        cuttable: &Cuttable,
        untold: &mut Vec<UntoldPod>,
    ) {
        let mut asked: BTreeSet<Key> = BTreeSet::new();
        let Pods { list, groups, lives, lives_by_claims, .. } = &mut *self.pods;
        for record in list.iter_mut().filter(|record| record.pod.node.is_empty()) {
            let namespace = &record.pod.meta.namespace;
            let goes = record.pod.meta.is_deleting();
            // What it shares with others is wanted by them.
            let mut of_its_own = BTreeSet::new();
            let asked = if goes { &mut of_its_own } else { &mut asked };
            let WantedGpus { gpus, not_told } = objects.wanted(namespace, &record.claims, asked);
            let template = &mut groups[record.group].common.template;
            for (resource, count) in &gpus {
                note_claimed(lives, lives_by_claims, &record.pod, (resource, *count));
                template.claimed_gpus.entry(resource.clone()).or_insert(*count);
            }
            match not_told {
                _ if goes => {}
                Some(not_told) => {
                    let pod = UntoldPod::of(full_name(&record.pod), not_told);
                    untold.push(pod.beside(&gpus, cuttable));
                    continue;
                }
                None => {}
            }
            record.wants_claimed |= !gpus.is_empty();
            for (resource, count) in gpus {
                want(Arc::make_mut(&mut record.pod), &resource, count);
            }
            if !goes {
                untold.extend(that_could_be_cut(&record.pod, cuttable));
            }
        }
        for UnmadePod { pod, claims, wants_claimed, fate, .. } in &mut self.waiting.pods {
            let WantedGpus { gpus, not_told } =
                objects.wanted(&pod.meta.namespace, claims, &mut asked);
            if let Some(not_told) = not_told {
                let pod = UntoldPod::of(full_name(pod), not_told);
                untold.push(pod.beside(&gpus, cuttable));
                continue;
            }
            *wants_claimed |= !gpus.is_empty();
            gpus.iter().for_each(|(name, count)| want(pod, name, *count));
            if *fate == Fate::Refused {
                let refused = UntoldPod::refused(full_name(pod));
                untold.push(refused.beside(&pod.requests.extended, cuttable));
                continue;
            }
            untold.extend(that_could_be_cut(pod, cuttable));
        }
        // Whatever refuses them, no node does.
        self.waiting.pods.retain(|unmade| unmade.fate != Fate::Refused);
    }
}

/// Puts into a pod what it wants by a claim.
fn want(pod: &mut Pod, resource: &str, count: i64) {
    pod.has_resource_claims = false;
    let asked = pod.requests.extended.entry(resource.to_owned()).or_default();
    *asked = asked.saturating_add(count);
}

/// Of the parts that a pod waits for those that whole GPUs could be cut into: these are not free
/// for lack of demand.
fn that_could_be_cut<'c>(
    pod: &'c Pod,
    cuttable: &'c Cuttable,
) -> impl Iterator<Item = UntoldPod> + use<'c> {
    pod.requests.extended.iter().filter_map(move |(part, units)| {
        let whole = *cuttable.get(part)?;
        (*units > 0).then(|| UntoldPod::of_parts(full_name(pod), part, whole, *units))
    })
}

impl DeviceObjects {
    /// What the claims of a pod still want, but for those that another pod `asked` for already.
    fn wanted(&self, namespace: &str, claims: &[ClaimOf], asked: &mut BTreeSet<Key>) -> WantedGpus {
        let mut all = WantedGpus::default();
        for of in claims {
            let key = (namespace.into(), of.claim.clone());
            if of.claim.is_empty() || asked.insert(key) {
                all = all.and(self.wanted_by(namespace, of));
            }
        }
        all
    }

    /// What a claim of a pod still wants: nothing once it was given something.
    fn wanted_by(&self, namespace: &str, of: &ClaimOf) -> WantedGpus {
        let claim = self.claims.get(&(namespace.into(), of.claim.clone()));
        if let Some(claim) = claim {
            return match &claim.given {
                Some(_) => WantedGpus::default(),
                None => wanted(&claim.requests, &self.classes),
            };
        }
        match self.templates.get(&(namespace.into(), of.template.clone())) {
            Some(requests) => wanted(requests, &self.classes),
            None => NotTold::of("it refers to a resource claim that was not read", Whose::ANYBODY)
                .shown_by(shown_by::DEVICE_CLAIMS)
                .into(),
        }
    }
}
