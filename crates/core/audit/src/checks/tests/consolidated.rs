//! Nodes whose pods fit elsewhere.

use super::*;

/// Two more nodes of eight GPUs with one server each.
pub(super) fn one_server_on_each_node(facts: &mut Facts) {
    for (place, name) in ["g2", "g3"].into_iter().enumerate() {
        let mut node = gpu_node(name, "H100");
        node.devices = (8 * (place as u32 + 1)..8 * (place as u32 + 2)).collect();
        add_node(facts, node);
        facts.workloads[SERVE].pods[place].node = Some(name.into());
    }
}

/// By hand: both nodes have seven free GPUs. One of them goes, and its server takes one of the
/// seven of the other: eight GPUs are no longer free.
#[test]
fn a_node_whose_pods_fit_elsewhere_frees_as_many_gpus_as_it_has() {
    let mut facts = healthy();
    one_server_on_each_node(&mut facts);
    let found = audit(&facts);
    let [finding] = &found[..] else { panic!("{found:?}") };
    let moves: Vec<_> =
        finding.moves.iter().map(|of| (&*of.pod.name, &*of.from, &*of.to)).collect();
    assert_eq!(moves, [("serve-0", "g2", "g3")]);
    // Of g2 all but the first device, which is held; of g3 the first that is free.
    let claimed: Vec<u32> = finding.claims.iter().map(|claim| claim.device).collect();
    assert_eq!(claimed, [9, 10, 11, 12, 13, 14, 15, 17]);
    // A third server beside it has no room to move its pod to, and stays.
    facts.workloads[SERVE].template.containers[0].requests.insert("cpu".into(), 60_000);
    facts.workloads[SERVE].template.containers[0].requests.insert("memory".into(), 4 * GIB);
    assert!(audit(&facts).iter().all(|finding| finding.check.id != "AUT-07"));
}
