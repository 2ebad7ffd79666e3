//! GPUs that pods get by resource claims: the same findings, and no change of what containers ask
//! for.

use super::consolidated::one_server_on_each_node;
use super::*;

/// The healthy cluster with its GPUs offered by slices and given by claims, and pods that tolerate
/// the nodes' taint, since Kubernetes adds no toleration for what no container asks for.
fn by_claims() -> Facts {
    let mut facts = healthy();
    for workload in &mut facts.workloads {
        let template = &mut workload.template;
        for container in &mut template.containers {
            container.requests.remove(GPU);
            if let Some(count) = container.limits.remove(GPU).filter(|count| *count > 0) {
                template.claimed_gpus.insert(GPU.to_owned(), count);
                template.tolerations = vec![toleration(GPU), toleration("dedicated")];
            }
        }
    }
    for gpus in facts.nodes.iter_mut().flat_map(|node| node.gpus.values_mut()) {
        (gpus.by_claims, gpus.claimable) = (true, true);
    }
    facts
}

/// What is found once something is changed: ids, and how many changes of objects would mend each.
fn found(change: impl Fn(&mut Facts)) -> Vec<(&'static str, usize)> {
    let mut facts = by_claims();
    change(&mut facts);
    audit(&facts).iter().map(|finding| (finding.check.id, finding.remedies.len())).collect()
}

#[test]
fn nobody_is_told_to_change_what_containers_ask_for() {
    assert_eq!(found(|_| {}), []);
    let gpus = |facts: &mut Facts, count| {
        facts.workloads[SERVE].template.claimed_gpus.insert(GPU.to_owned(), count);
    };
    assert_eq!(found(|facts| gpus(facts, 9)), [("REQ-03", 0)]);
    // What pods share now is in the node all the same.
    let share = |facts: &mut Facts, allocatable, set_apart| {
        gpus(facts, 8);
        for of_node in facts.nodes.iter_mut().filter_map(|node| node.gpus.get_mut(GPU)) {
            (of_node.allocatable, of_node.set_apart) = (allocatable, set_apart);
        }
    };
    let too_large = |set_apart| {
        found(|facts| share(facts, 7, set_apart)).iter().filter(|(id, _)| *id == "REQ-03").count()
    };
    assert_eq!((too_large(0), too_large(1)), (1, 0));
    let mut facts = by_claims();
    share(&mut facts, 6, 1);
    facts.nodes[0].gpus.get_mut(GPU).expect("it has GPUs").built_in = 7;
    let found_of_node = audit(&facts);
    let broken = found_of_node.iter().find(|finding| finding.check.id == "CAP-01");
    let evidence = format!("{:?}", broken.expect("one is broken").evidence);
    assert!(evidence.contains("7 of 8 on g1"), "{evidence}");
    // A taint of the resource's name would keep away whom Kubernetes gives no toleration.
    assert_eq!(found(|facts| facts.nodes[0].node.taints.clear()), [("SCH-01", 0)]);
    assert_eq!(found(|facts| facts.nodes[0].node.taints = vec![taint("dedicated")]), []);
    let forget = |facts: &mut Facts| facts.workloads[SERVE].template.tolerations.clear();
    assert_eq!(found(forget), [("SCH-04", 1)]);
    assert_eq!(found(|facts| facts.has_gpu_admission_policy = Some(false)), [("GOV-04", 0)]);
    let limited = |facts: &mut Facts, name: Option<&str>| {
        facts.namespaces[1].quota_resources = Some(name.map(str::to_owned).into_iter().collect());
    };
    assert_eq!(found(|facts| limited(facts, None)), [("GOV-01", 0)]);
    let of_class = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices";
    assert_eq!(found(|facts| limited(facts, Some(of_class))), []);
}

/// Whether the claims of a pod get devices on another node is not asked: no node is emptied of such
/// a pod, and the reader is told which were not judged.
#[test]
fn a_nearly_empty_node_with_a_pod_that_has_claims_is_not_judged() {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    let empties = |facts: &Facts| audit(facts).iter().any(|finding| finding.check.id == "AUT-07");
    assert!(empties(&facts));
    assert_eq!(claim_bound_nodes(&facts), []);
    // Of a network card: its GPU comes from the device plugin.
    facts.workloads[SERVE].template.resource_claims = vec!["ResourceClaim nic".into()];
    assert!(!empties(&facts));
    let bound = |node: &str, pod: &str| ClaimBoundNode {
        node: node.into(),
        pods: vec![format!("pod prod/{pod}: ResourceClaim nic")],
    };
    assert_eq!(claim_bound_nodes(&facts), [bound("g2", "serve-0"), bound("g3", "serve-1")]);
    // It would stay for another reason, too.
    facts.workloads[SERVE].template.has_lasting_volume = true;
    assert_eq!(claim_bound_nodes(&facts), []);
}
