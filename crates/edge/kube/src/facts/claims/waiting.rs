//! What pods that wait want by claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claim::{Wanted, wanted};
use super::{ClaimOf, DeviceObjects, Key};
use crate::facts::gathered::Unjudged;
use crate::facts::inventory::Inventory;
use crate::facts::life::note_claimed;
use crate::facts::pods::Pods;

impl Inventory {
    /// Puts into pods without a node what their claims want and were not given. A claim that several pods wait for is
    /// wanted once.
    pub(super) fn want_claimed(&mut self, objects: &DeviceObjects, unjudged: &mut Vec<Unjudged>) {
        let mut asked: BTreeSet<Key> = BTreeSet::new();
        let Pods { list, groups, lives, lives_by_claims, .. } = &mut self.pods;
        for record in list.iter_mut().filter(|record| record.pod.node.is_empty()) {
            let namespace = &record.pod.meta.namespace;
            let mut all: Wanted = Ok(BTreeMap::new());
            for of in &record.claims {
                let key = (namespace.clone(), of.claim.clone());
                let is_first = of.claim.is_empty() || asked.insert(key);
                let Some(of_claim) = is_first.then(|| objects.wanted(namespace, of)) else {
                    continue;
                };
                all = all.and_then(|mut all| {
                    for (resource, count) in of_claim? {
                        let sum: &mut i64 = all.entry(resource).or_default();
                        *sum = sum.saturating_add(count);
                    }
                    Ok(all)
                });
            }
            match all {
                Ok(wanted) => {
                    let template = &mut groups[record.group].common.template;
                    for (resource, count) in wanted {
                        let pod = Arc::make_mut(&mut record.pod);
                        pod.has_resource_claims = false;
                        let asked = pod.requests.extended.entry(resource.clone()).or_default();
                        *asked = asked.saturating_add(count);
                        note_claimed(lives, lives_by_claims, &record.pod, (&resource, count));
                        template.claimed_gpus.entry(resource).or_insert(count);
                    }
                }
                Err(reason) => unjudged.push(Unjudged {
                    pod: format!("{namespace}/{}", record.pod.meta.name),
                    reason: reason.to_owned(),
                }),
            }
        }
    }
}

impl DeviceObjects {
    /// What a claim of a pod still wants: nothing once it was given something.
    fn wanted(&self, namespace: &str, of: &ClaimOf) -> Wanted {
        let claim = self.claims.get(&(namespace.into(), of.claim.clone()));
        if let Some(claim) = claim {
            return match &claim.given {
                Some(_) => Ok(BTreeMap::new()),
                None => wanted(&claim.requests, &self.classes),
            };
        }
        match self.templates.get(&(namespace.into(), of.template.clone())) {
            Some(requests) => wanted(requests, &self.classes),
            None => Err("it refers to a resource claim that was not read"),
        }
    }
}
