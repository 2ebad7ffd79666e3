//! Tolerations that a pod gets when it is created or admitted, and that its template lacks.
//!
//! The admission plugin `ExtendedResourceToleration` adds one for each extended resource that a pod
//! requests. GKE always does so; elsewhere pods that have one which their template lacks show it.
//! Kueue adds those of the flavor that it assigns; which one that will be is unknown, so a pod that
//! waits for quota gets those of all flavors.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;
use dovetail_model::{Taint, TaintEffect, Toleration, is_gpu_resource};
use dovetail_objects::{Node, Pod, labels, read};
use serde_json::Value;

use crate::dump::{RawObject, Skipped};
use crate::facts::owner::Owners;
use crate::facts::pods::Pods;
use crate::facts::source::SourceTexts;
use crate::facts::to_come;

/// What is added.
#[derive(Default)]
pub(in crate::facts) struct Admission {
    /// Whether pods get tolerations by the names of their resources.
    of_resources: bool,
    of_flavors: Vec<Toleration>,
}

impl Admission {
    /// What nodes, pods and their templates show of a cluster with these flavors.
    pub(in crate::facts) fn of<'n>(
        mut nodes: impl Iterator<Item = &'n Node>,
        (pods, owners): (&Pods, &Owners),
        sources: &SourceTexts,
    ) -> Self {
        let is_gke = |node: &Node| node.meta.labels.get(labels::GKE_ACCELERATOR).is_some();
        Self {
            of_resources: nodes.any(is_gke) || are_added(pods, owners, sources),
            of_flavors: owners.unmade.flavors.values().flatten().cloned().collect(),
        }
    }

    /// Adds what a pod gets that is created.
    pub(in crate::facts) fn create(&self, pod: &mut Pod) {
        if self.of_resources {
            let added = untolerated(pod).map(by_name).collect::<Vec<_>>();
            add(pod, added);
        }
    }

    /// Adds what a pod gets for which Kueue has quota.
    pub(in crate::facts) fn admit(&self, pod: &mut Pod) {
        add(pod, self.of_flavors.clone());
    }
}

fn add(pod: &mut Pod, added: Vec<Toleration>) {
    if !added.is_empty() {
        pod.tolerations = pod.tolerations.iter().cloned().chain(added).collect();
    }
}

/// What the plugin adds for a resource.
fn by_name(resource: &str) -> Toleration {
    let effect = Some(TaintEffect::NoSchedule);
    Toleration { key: resource.to_owned(), any_value: true, value: String::new(), effect }
}

/// GPU resources of a pod that it does not tolerate by name.
fn untolerated(pod: &Pod) -> impl Iterator<Item = &str> {
    let asked = pod.requests.extended.keys().filter(|name| is_gpu_resource(name));
    asked.map(|name| &**name).filter(move |resource| {
        let key = (*resource).to_owned();
        let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
        !pod.tolerations.iter().any(|toleration| toleration.accepts(&taint))
    })
}

/// Whether any pod has such a toleration, and the template that it was made from has not.
fn are_added(pods: &Pods, owners: &Owners, sources: &SourceTexts) -> bool {
    let mut have: BTreeMap<ObjectRef, BTreeSet<&str>> = BTreeMap::new();
    for record in &pods.list {
        let keys: Vec<&str> = (record.pod.tolerations.iter())
            .filter(|of| of.any_value && of.effect == Some(TaintEffect::NoSchedule))
            .map(|of| of.key.as_str())
            .filter(|key| is_gpu_resource(key))
            .collect();
        if !keys.is_empty() {
            for owner in owners.chain(&pods.groups[record.group].owner, None) {
                have.entry(owner).or_default().extend(&keys);
            }
        }
    }
    if have.is_empty() {
        return false;
    }
    sources.texts().any(|(object, text)| {
        have.get(object).is_some_and(|keys| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            let templates = to_come::templates(object, &value);
            let lacks = |pod: &Pod| untolerated(pod).any(|resource| keys.contains(resource));
            templates.iter().any(|template| lacks(&template.pod))
        })
    })
}

/// Whether an object is a flavor of Kueue.
pub(super) fn is_flavor(kind: &str, api_version: &str) -> bool {
    kind == "ResourceFlavor" && api_version.starts_with(super::kueue::GROUP)
}

/// The tolerations of a flavor.
///
/// # Errors
/// If they are none.
pub(super) fn read_flavor(raw: &RawObject<'_>) -> Result<Vec<Toleration>, Skipped> {
    let flavor: Value = serde_json::from_str(raw.json)
        .map_err(|problem| raw.skipped("spec.tolerations", &problem.to_string()))?;
    // They are those of a pod.
    let pod = serde_json::json!({
        "metadata": {"name": raw.name},
        "spec": {"tolerations": flavor["spec"]["tolerations"], "containers": []}
    });
    let pod: Pod =
        read("Pod", pod.to_string().as_bytes()).map_err(|strange| raw.strange(&strange))?;
    Ok(pod.tolerations.to_vec())
}
