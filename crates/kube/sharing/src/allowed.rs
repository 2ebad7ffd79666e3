//! Which policy lets pods ask for a resource.

use dovetail_model::MigTable;
use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG};

use crate::policy::SharingPolicy;
use crate::replicas::shared_resource;
use crate::verdict::GpuNode;

/// Why a policy does not do: the further down, the nearer it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    NotAllowed,
    NoGpu(String),
    NoRoom(String),
}

/// The first policy that changes nodes and lets pods ask for a resource there. `tables`: all that
/// are known. `takes`: whether a node takes the pods (taints, labels, CPU and memory), whatever
/// GPUs are free there.
///
/// # Errors
/// Why no policy does, and what to do.
pub fn allowed_by<'p>(
    resource: &str,
    policies: impl Iterator<Item = &'p SharingPolicy>,
    nodes: &[GpuNode<'_>],
    tables: &[MigTable],
    takes: impl Fn(&str) -> bool,
) -> Result<&'p SharingPolicy, String> {
    let profile = resource.strip_prefix(NVIDIA_MIG);
    if profile.is_none() && resource != NVIDIA_GPU && resource != shared_resource() {
        return Err(format!(
            "{resource} is not a resource that a SharingPolicy provides: use {NVIDIA_GPU}, {} or {NVIDIA_MIG}PROFILE",
            shared_resource()
        ));
    }
    let mut nearest = Miss::NotAllowed;
    for policy in policies.filter(|policy| policy.spec.apply) {
        let miss = if !is_allowed(policy, resource, profile, tables) {
            Miss::NotAllowed
        } else {
            let of_policy = |node: &&GpuNode<'_>| policy.spec.selects(|key| node.labels.get(key));
            let has_gpu = |node: &&GpuNode<'_>| {
                profile.is_none_or(|profile| {
                    node.table.is_some_and(|table| table.named(profile, tables).is_some())
                })
            };
            let fitting: Vec<_> = nodes.iter().filter(of_policy).filter(has_gpu).collect();
            if fitting.iter().any(|node| takes(node.name)) {
                return Ok(policy);
            }
            match fitting.is_empty() {
                true => Miss::NoGpu(policy.name.clone()),
                false => Miss::NoRoom(policy.name.clone()),
            }
        };
        nearest = nearest.max(miss);
    }
    Err(match nearest {
        Miss::NotAllowed => format!(
            "no SharingPolicy with `apply: true` that is ready allows {resource}: {}",
            match profile {
                Some(profile) => format!("list {profile} in the `profiles` of one with mode mig"),
                None if resource == NVIDIA_GPU => "create one with mode whole or mig".to_owned(),
                None => "create one with mode time-slicing or mps".to_owned(),
            }
        ),
        Miss::NoGpu(policy) => format!(
            "policy {policy} allows {resource}, but no node that it selects has GPUs with it: change its \
             nodeSelector"
        ),
        Miss::NoRoom(policy) => format!(
            "policy {policy} allows {resource}, but none of its nodes takes the pods: check taints, node \
             selector, affinity, CPU and memory of the template"
        ),
    })
}

fn is_allowed(
    policy: &SharingPolicy,
    resource: &str,
    profile: Option<&str>,
    tables: &[MigTable],
) -> bool {
    policy.spec.mode.provides(resource)
        && profile.is_none_or(|profile| policy.spec.lists(profile, tables))
}

#[cfg(test)]
mod tests {
    use dovetail_objects::Labels;
    use serde_json::{Value, json};

    use super::*;

    fn policy(name: &str, spec: Value) -> SharingPolicy {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        serde_json::from_value(object).expect("a policy")
    }

    #[test]
    fn a_resource_needs_a_policy_that_applies_it_on_a_node_that_takes_the_pods() {
        let labels: Labels = serde_json::from_value(json!({"pool": "a"})).expect("labels");
        let table = MigTable::of_model("A100-80GB");
        let nodes = [GpuNode { name: "n", labels: &labels, table: table.as_ref() }];
        let tables: Vec<MigTable> = MigTable::all().collect();
        let slices = json!({"mode": "mig", "profiles": ["1g.10gb"], "apply": true});
        let asked = |resource: &str, policies: &[SharingPolicy], takes: bool| {
            let found = allowed_by(resource, policies.iter(), &nodes, &tables, |_| takes);
            found.map(|policy| policy.name.clone())
        };
        let one = [policy("slices", slices.clone())];
        assert_eq!(asked("nvidia.com/mig-1g.10gb", &one, true), Ok("slices".to_owned()));
        assert_eq!(asked("nvidia.com/gpu", &one, true), Ok("slices".to_owned()));
        let refused = |resource: &str, policies: &[SharingPolicy], takes: bool, words: &str| {
            let why = asked(resource, policies, takes).expect_err(words);
            assert!(why.contains(words), "{why}");
        };
        refused("nvidia.com/mig-1g.10gb", &[], true, "no SharingPolicy with `apply: true`");
        refused("nvidia.com/mig-2g.20gb", &one, true, "list 2g.20gb in the `profiles`");
        refused("nvidia.com/gpu.shared", &one, true, "mode time-slicing or mps");
        refused(
            "amd.com/gpu",
            &one,
            true,
            "amd.com/gpu is not a resource that a SharingPolicy provides",
        );
        refused("nvidia.com/mig-1g.10gb", &one, false, "none of its nodes takes the pods");
        let mut reports = slices.clone();
        reports["apply"] = json!(false);
        let reports = [policy("slices", reports)];
        refused("nvidia.com/mig-1g.10gb", &reports, true, "no SharingPolicy with `apply: true`");
        let mut elsewhere = slices;
        elsewhere["nodeSelector"] = json!({"pool": "b"});
        let both = [policy("b", elsewhere), policy("c", json!({"mode": "mps", "replicas": 4}))];
        refused("nvidia.com/mig-1g.10gb", &both, true, "policy b allows");
        // Another GPU has no such profile.
        let all = [policy("all", json!({"mode": "mig", "apply": true}))];
        refused("nvidia.com/mig-1g.5gb", &all, true, "no node that it selects has GPUs with it");
        let shared = [policy("t", json!({"mode": "mps", "replicas": 4, "apply": true}))];
        assert_eq!(asked("nvidia.com/gpu.shared", &shared, true), Ok("t".to_owned()));
    }
}
