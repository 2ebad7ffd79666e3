//! Pending pods that start once others have moved.

use std::sync::Arc;

use dovetail_facts::PendingDemand;
use dovetail_model::node::NAME_LABEL;
use dovetail_model::{
    CounterRule, DeviceAmount, DeviceRequest, Holding, HoldingId, HoldingPhase, Job, JobId, Owner,
    Requirement, RuleCause, RuleKind, Snapshot,
};

use super::*;
use crate::checks::growing::name_growth;
use crate::finding::Move;

/// So many nodes of eight GPUs, each with a pod of a server with four, and pods with eight GPUs of
/// owners of their own that wait.
fn halves(nodes: usize, waiting: &[&str]) -> Facts {
    let mut facts = healthy();
    let replicas = u32::try_from(nodes).unwrap();
    let mut part = workload(ObjectRef::new("Deployment", "prod", "part"), 4, replicas, "");
    for (number, pod) in part.pods.iter_mut().enumerate() {
        let name = format!("h{number}");
        pod.node = Some(name.clone());
        let mut node = gpu_node(&name, "H100");
        let first = 8 * (number as u32 + 1);
        node.devices = (first..first + 8).collect();
        add_node(&mut facts, node);
    }
    facts.workloads.push(part);
    for name in waiting {
        let mut big = workload(ObjectRef::new("Deployment", "prod", name), 8, 1, "");
        big.pods[0].node = None;
        big.template.tolerations = vec![toleration(GPU)];
        facts.workloads.push(big);
    }
    facts
}

fn all_of<'f>(found: &'f [Finding], id: &str) -> Vec<&'f Finding> {
    found.iter().filter(|finding| finding.check.id == id).collect()
}

/// How many of these nodes no pod with four GPUs uses after moves, each of another pod, and that no
/// node has more than two.
fn empty_after(nodes: usize, moves: &[&Move]) -> usize {
    let mut on: BTreeMap<String, String> =
        (0..nodes).map(|number| (format!("part-{number}"), format!("h{number}"))).collect();
    let moved: BTreeSet<&str> = moves.iter().map(|of| &*of.pod.name).collect();
    assert_eq!(moved.len(), moves.len(), "{moves:?}");
    for Move { pod, from, to } in moves {
        let before = on.insert(pod.name.clone(), to.clone());
        assert_eq!(before.as_ref(), Some(from));
    }
    let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
    on.values().for_each(|node| *pods.entry(node).or_default() += 1);
    assert!(pods.values().all(|pods| *pods <= 2), "{on:?}");
    nodes - pods.len()
}

/// By hand: four half-used nodes become two empty ones, one for each of two pods. Each finding
/// alone would empty the same one.
#[test]
fn the_moves_of_all_findings_start_all_their_pods_together() {
    let found = audit(&halves(4, &["big-a", "big-b"]));
    let pieces = all_of(&found, "SCH-08");
    let started: Vec<_> = pieces.iter().map(|of| of.most_milli).collect();
    assert_eq!(started, [Some(8_000); 2], "{pieces:?}");
    let moves: Vec<&Move> = pieces.iter().flat_map(|of| &of.moves).collect();
    assert_eq!(empty_after(4, &moves), 2);
    // The second says what it relies on, and that all of its own moves are needed.
    let first = |of: &Finding| of.evidence.iter().any(|of| of.what == "moves to make first");
    assert_eq!((first(pieces[0]), first(pieces[1])), (false, true));
    let condition = |of: &Finding| {
        let mut evidence = of.evidence.iter();
        evidence.any(|of| of.what.starts_with("pods that start after all") && of.value == "1 of 1")
    };
    assert!(pieces.iter().all(|of| condition(of)), "{pieces:?}");
}

/// By hand: six half-used nodes have room for one pod with eight GPUs and two nodes too many.
#[test]
fn pods_are_packed_on_nodes_that_stay() {
    let found = audit(&halves(6, &["big"]));
    let [pieces] = all_of(&found, "SCH-08")[..] else { panic!("{found:?}") };
    assert_eq!(pieces.most_milli, Some(8_000), "{pieces:?}");
    let removed = all_of(&found, "AUT-07");
    let gone = removed.iter().flat_map(|of| &of.affected).map(|node| &*node.name);
    let gone: BTreeSet<&str> = gone.collect();
    assert_eq!(gone.len(), 2);
    let touched = pieces.moves.iter().flat_map(|of| [&*of.from, &*of.to]);
    assert_eq!(touched.filter(|node| gone.contains(node)).count(), 0, "{found:?}");
    let moves: Vec<&Move> =
        removed.iter().copied().chain([pieces]).flat_map(|of| &of.moves).collect();
    assert_eq!(empty_after(6, &moves), 3);
}

/// By hand: both pods fit on one of their nodes. The node without pods, which was read first, is
/// as good for them, and can go.
#[test]
fn no_pod_moves_without_need_to_a_node_that_can_be_removed() {
    let mut facts = halves(2, &["big"]);
    facts.workloads.last_mut().unwrap().template.node_conditions = vec![model_is("H100")];
    let mut unused = gpu_node("unused", "H100");
    unused.devices = (100..108).collect();
    unused.node.labels = map(&[("model", "other".to_owned())]);
    unused.pool = ObjectRef::new("Node", "", "unused");
    unused.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
    add_node(&mut facts, unused);
    facts.nodes.rotate_right(1);
    let found = audit(&facts);
    let [pieces] = all_of(&found, "SCH-08")[..] else { panic!("{found:?}") };
    assert_eq!((pieces.most_milli, pieces.moves.len()), (Some(8_000), 1), "{pieces:?}");
    assert_ne!(pieces.moves[0].to, "unused");
    let [goes] = all_of(&found, "AUT-03")[..] else { panic!("{found:?}") };
    assert!(goes.stays.is_empty() && !goes.claims.is_empty(), "{goes:?}");
}

/// Which devices a claim of the pending pod gets is not asked.
#[test]
fn a_pending_pod_with_a_claim_is_not_said_to_start() {
    let mut facts = halves(2, &["big"]);
    let started = |facts: &Facts| {
        let found = audit(facts);
        let [pieces] = all_of(&found, "SCH-08")[..] else { panic!("{found:?}") };
        (pieces.most_milli, pieces.moves.len(), pieces.claims.is_empty())
    };
    assert_eq!(started(&facts), (Some(8_000), 1, false));
    let big = facts.workloads.last_mut().unwrap();
    big.template.resource_claims = vec!["ResourceClaim nic".into()];
    assert_eq!(started(&facts), (None, 0, true));
}

/// Each but the first and the last accepts none of the two half-used nodes.
#[test]
fn what_is_free_depends_on_everything_that_pods_ask_of_nodes() {
    let names = ["fits", "model", "taint", "claim", "given"];
    let mut facts = halves(2, &names);
    let first = facts.workloads.len() - names.len();
    let [_, model, taint, claim, given] = &mut facts.workloads[first..] else { unreachable!() };
    model.template.node_conditions = vec![model_is("A100")];
    taint.template.tolerations.clear();
    claim.template.containers[0].limits.clear();
    claim.template.claimed_gpus = map(&[(GPU, 8)]);
    // Kubernetes gave its running pod the toleration.
    given.template.tolerations.clear();
    given.pods.push(Pod { name: "given-1".into(), node: Some("c1".into()), ..Pod::default() });
    let found = audit(&facts);
    let objects = all_of(&found, "SCH-08").into_iter().map(|of| &*of.object.name);
    assert_eq!(objects.collect::<BTreeSet<_>>(), BTreeSet::from(["fits", "given"]));
}

/// The pod that waits for one of two half-used nodes must be in no domain of a label with the pods
/// that use them; and the world in which its rule is translated.
fn apart_from_parts(label: &str) -> (Facts, Moment) {
    let mut facts = halves(2, &["big"]);
    facts.workloads.last_mut().unwrap().template.depends_on_pods = true;
    for node in &mut facts.nodes {
        node.node.labels.insert("zone".to_owned(), "a".to_owned());
    }
    let selector = "app=part".to_owned();
    let mut world = Snapshot::default();
    for number in 0..2 {
        let name = format!("h{number}");
        let node = facts.nodes.iter().find(|of| *of.node.name == *name).unwrap();
        world.nodes.push(node.node.clone());
        world.holdings.push(Holding {
            id: HoldingId(number + 1),
            node: name.as_str().into(),
            owner: Owner::Foreign(format!("prod/part-{number}")),
            phase: HoldingPhase::Held { expected_end_ms: None },
            reservation: None,
            resources: Resources::pod(0, 0),
            devices: (0..4).map(|device| (device, DeviceAmount::share(1_000, 0))).collect(),
            counts_into: [selector.clone()].into(),
            attachments: Default::default(),
        });
    }
    let rule = CounterRule {
        selector,
        label: label.to_owned(),
        kind: RuleKind::AntiAffinity,
        scope: Default::default(),
        cause: RuleCause::AntiAffinity,
    };
    let requirement = Requirement {
        device: DeviceRequest::Whole { count: 8, same_island: false },
        tolerations: vec![toleration(GPU)],
        rules: vec![rule],
        ..Requirement::default()
    };
    world.jobs.push(Job::single(JobId(1), "prod/big-0", 0, Arc::new(requirement)));
    let demand = PendingDemand { resource: GPU.to_owned(), world, ..PendingDemand::default() };
    (facts, Moment { demand: vec![demand], ..Moment::default() })
}

/// By hand: after one move one node is empty, and both pods are on the other, which is in the same
/// zone.
#[test]
fn a_pending_pod_with_affinity_starts_only_where_that_allows_it_after_the_moves() {
    let started = |facts: &Facts, moment: &Moment| {
        let found = audit_at(facts, moment);
        let [pieces] = all_of(&found, "SCH-08")[..] else { panic!("{found:?}") };
        let told = pieces.evidence.iter().find(|of| of.what == "moving pods");
        let is_judged = told.is_none_or(|of| !of.value.starts_with("not judged"));
        (pieces.most_milli, pieces.moves.len(), pieces.claims.is_empty(), is_judged)
    };
    let (facts, moment) = apart_from_parts(NAME_LABEL);
    assert_eq!(started(&facts, &moment), (Some(8_000), 1, false, true));
    let (facts, moment) = apart_from_parts("zone");
    assert_eq!(started(&facts, &moment), (None, 0, true, true));
    // Volumes bind its pods to different nodes.
    let (mut facts, mut moment) = apart_from_parts(NAME_LABEL);
    let big = facts.workloads.last_mut().unwrap();
    big.pods.push(Pod { name: "big-1".to_owned(), ..big.pods[0].clone() });
    let jobs = &mut moment.demand[0].world.jobs;
    let mut requirement = Arc::clone(&jobs[0].pod_sets[0].requirement);
    Arc::make_mut(&mut requirement).node_names.insert("h1".to_owned());
    jobs.push(Job::single(JobId(2), "prod/big-1", 0, requirement));
    assert_eq!(started(&facts, &moment), (None, 0, true, false));
    // No world has its rules.
    assert_eq!(started(&facts, &Moment::default()), (None, 0, true, false));
}

/// A node that an autoscaler removes does not come back, and a shell could read an invalid name.
#[test]
fn a_command_names_a_cordoned_node_only_if_it_can_accept_pods_again() {
    let example = |name: &str, is_being_removed: bool| {
        let mut facts = halves(2, &["big"]);
        let mut node = gpu_node(name, "H100");
        node.devices = (24..32).collect();
        node.node.condition = NodeAvailability::Cordoned;
        node.node.unschedulable = true;
        node.is_being_removed = is_being_removed;
        add_node(&mut facts, node);
        let found = audit(&facts);
        let [pieces] = all_of(&found, "SCH-08")[..] else { panic!("{found:?}") };
        pieces.fix_example()
    };
    let command = example("h9", false);
    assert!(command.starts_with("kubectl uncordon h9  #"), "{command}");
    let command = example("$(reboot)", false);
    assert!(command.starts_with("kubectl uncordon NODES  #"), "{command}");
    let command = example("h9", true);
    assert!(!command.contains("uncordon h9"), "{command}");
}

#[test]
fn the_first_cordoned_node_with_enough_free_gpus_is_named() {
    let mut facts = halves(2, &["big", "also"]);
    for (number, (name, gpus)) in [("six", 6), ("eight", 8), ("more", 8)].into_iter().enumerate() {
        let mut node = gpu_node(name, "H100");
        let first = 8 * (number as u32 + 3);
        node.devices = (first..first + 8).collect();
        node.gpus.get_mut(GPU).unwrap().allocatable = gpus;
        node.node.condition = NodeAvailability::Cordoned;
        node.node.unschedulable = true;
        add_node(&mut facts, node);
    }
    facts.workloads.last_mut().unwrap().template.node_conditions = vec![model_is("H100")];
    let found = audit(&facts);
    let evidence = all_of(&found, "SCH-08").into_iter().flat_map(|of| &of.evidence);
    let named = evidence.filter(|of| of.what == "would start on the cordoned node");
    assert_eq!(named.map(|of| &*of.value).collect::<Vec<_>>(), ["eight"; 2]);
}

/// Nothing is drained, and a pod that moves starts again.
#[test]
fn moves_that_drain_no_node_have_risks_of_their_own() {
    let mut facts = halves(2, &["big"]);
    for (node, is_spot) in
        facts.nodes.iter_mut().filter(|of| of.has_gpus()).skip(1).zip([true, false])
    {
        node.is_spot = Some(is_spot);
    }
    let found = audit(&facts);
    let [pieces] = all_of(&found, "SCH-08")[..] else { panic!("{found:?}") };
    let [moved] = &pieces.moves[..] else { panic!("{pieces:?}") };
    let risks = |what: &str| -> Vec<&str> {
        let risks = pieces.evidence.iter().filter(|of| of.what == what);
        risks.map(|of| of.value.as_str()).collect()
    };
    assert_eq!(risks("risk of the drain"), [""; 0]);
    let risks = risks("risk of the moves");
    let of_files = "Deployment prod/part: files in emptyDir volumes are lost";
    assert!(risks.contains(&of_files), "{risks:?}");
    let is_to_spot = risks.iter().any(|of| of.contains("from on-demand to spot capacity"));
    assert_eq!(is_to_spot, moved.to == "h0", "{risks:?}");
}

/// By hand: with both of its pods where they are, two nodes have room for one more training pod of
/// four GPUs each; after the move one has room for two and the other for one.
#[test]
fn an_autoscaler_relies_on_no_move_that_may_not_be_made() {
    let risks = |most: u32, moves: bool| {
        let mut facts = healthy();
        for (number, name) in ["g2", "g3", "g4"].into_iter().enumerate() {
            add_node(&mut facts, gpu_node(name, "H100"));
            let owner = ObjectRef::new("Deployment", "prod", &format!("two-{number}"));
            let two = workload(owner, 2, u32::from(number > 0), name);
            facts.workloads.push(two);
        }
        facts.autoscalers[0].scales = facts.workloads[TRAIN].owner.clone();
        facts.autoscalers[0].most_replicas = Some(most);
        let pool = ObjectRef::new("EKSNodegroup", "", "gpus");
        let of = |id: &str| Finding::new(check(id).expect("a check"), &pool);
        let gone = of("AUT-03").affecting([ObjectRef::new("Node", "", "g2")]);
        let mut pieces = of("SCH-08");
        if moves {
            let pod = ObjectRef::new("Pod", "prod", "two-1-0");
            pieces.moves.push(Move { pod, from: "g3".into(), to: "g4".into() });
        }
        let mut found = vec![gone, pieces];
        let moment = Moment::default();
        name_growth(&View::of(&facts, &moment), &mut found);
        found[0].evidence.len()
    };
    // Of two training pods there are as many.
    assert_eq!((risks(4, false), risks(5, false)), (0, 1));
    assert_eq!((risks(4, true), risks(5, true)), (0, 1));
}
