//! Nodes of which AUT-07 says nothing because of resource claims.
//!
//! A pod with claims moves only where its claims get devices, beside those of all other claims.
//! Facts have neither the devices of each node nor what claims ask of them, so the engine cannot be
//! asked, and a reader is told which nodes were left out.

use std::collections::BTreeMap;

use dovetail_facts::{Facts, Moment};

use super::View;
use super::consolidation::WHOLE;
use super::resource_cluster::kept_by_claims;

/// A node that may be nearly empty, and whose removal was not judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimBoundNode {
    pub node: String,
    /// Its pods that use resource claims, with these: `pod ml/a: ResourceClaim two`.
    pub pods: Vec<String>,
}

/// The nodes that pods with resource claims alone keep from being judged by AUT-07, by name.
pub fn claim_bound_nodes(facts: &Facts) -> Vec<ClaimBoundNode> {
    let mut templates = facts.workloads.iter().map(|workload| &workload.template);
    // Pods that were not read may use what looks free: nothing is judged then.
    if facts.lacks_pods || templates.all(|template| template.resource_claims.is_empty()) {
        return Vec::new();
    }
    let moment = Moment::default();
    let view = View::of(facts, &moment);
    let mut bound: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for resource in view.most_gpus.keys().filter(|resource| WHOLE.contains(*resource)) {
        bound.extend(kept_by_claims(&view.cluster(resource)));
    }
    bound.into_iter().map(|(node, pods)| ClaimBoundNode { node, pods }).collect()
}
