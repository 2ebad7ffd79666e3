//! Changes of nodes and node pools.

use dovetail_facts::Node;

use super::*;

fn node(name: &str) -> ObjectRef {
    ObjectRef::new("Node", "", name)
}

/// What a check finds of these nodes of a pool.
fn found(id: &str, pool: &ObjectRef, nodes: [&str; 2], change: PatchChange) -> Finding {
    let check = check(id).expect("a check");
    Finding::new(check, pool).affecting(nodes.map(node)).mended_by(change)
}

/// By hand: a busy node, one that a pod needs, one that can go.
#[test]
fn a_managed_pool_shrinks_only_by_the_nodes_that_no_work_needs() {
    let command = |kind: &str, needed: &[&str]| {
        let pool = ObjectRef::new(kind, "", "gpus");
        let plain = |name| dovetail_model::Node::plain(name, 96_000, 1 << 40, 8, "H100");
        let nodes = ["g1", "e0", "e1"].map(|name| Node::new(plain(name), pool.clone()));
        let facts = Facts { nodes: nodes.into(), ..Facts::default() };
        let mut finding = found("AUT-03", &pool, ["e0", "e1"], PatchChange::RemoveEmptyNodes);
        finding.stays = needed.iter().map(|name| (*name).to_owned()).collect();
        let all = patches(&FactsByOwner::of(&facts), &[&finding], None);
        all[0].command(None).expect("a command")
    };
    for (kind, none, two) in [
        ("EKSNodegroup", "minSize=0", "minSize=2"),
        ("GKENodePool", " --total-min-nodes=0 --total-max-nodes=MAX", "--total-min-nodes=2"),
        ("AKSNodePool", "--min-count 0", "--min-count 2"),
    ] {
        assert!(command(kind, &[]).contains(none), "{}", command(kind, &[]));
        assert!(command(kind, &["e1"]).contains(two), "{}", command(kind, &["e1"]));
    }
}

#[test]
fn only_those_nodes_of_a_pool_are_uncordoned_that_pods_need() {
    let uncordon = PatchChange::Uncordon { nodes: vec!["g1".into()] };
    let pool = ObjectRef::new("NodePool", "", "gpus");
    let finding = found("AUT-06", &pool, ["g1", "g2"], uncordon);
    let all = patches(&FactsByOwner::of(&Facts::default()), &[&finding], None);
    let [patch] = &all[..] else { panic!("{all:#?}") };
    assert_eq!(patch.command(None).as_deref(), Some("kubectl uncordon g1"));
    assert!(patch.warnings[0].ends_with("can be removed from their pool: g2"), "{patch:#?}");
}

#[test]
fn only_empty_nodes_of_a_pool_are_removed() {
    let patch = |disruption: Json| {
        let pool =
            source("NodePool", "karpenter.sh/v1", Json::object([("disruption", disruption)]));
        let mut finding = finding(Vec::new()).mended_by(PatchChange::RemoveEmptyNodes);
        finding.object = pool.object.clone();
        let all = patches(&FactsByOwner::of(&Facts::default()), &[&finding], Some(&pool));
        all.first().map(|patch| patch.body().expect("a body").to_line())
    };
    let of = |policy: &str, after: &str| {
        patch(Json::object([
            ("consolidationPolicy", text(policy)),
            ("consolidateAfter", text(after)),
        ]))
    };
    let only_after = r#"{"spec":{"disruption":{"consolidateAfter":"5m"}}}"#;
    let both =
        r#"{"spec":{"disruption":{"consolidateAfter":"5m","consolidationPolicy":"WhenEmpty"}}}"#;
    assert_eq!(of("WhenEmpty", "Never").as_deref(), Some(only_after));
    assert_eq!(of("WhenEmptyOrUnderutilized", "Never").as_deref(), Some(both));
    assert_eq!(of("WhenEmptyOrUnderutilized", "30s"), None);
}
