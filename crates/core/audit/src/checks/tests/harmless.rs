//! Findings that offer no change where it could harm somebody who is not part of the finding.

use super::*;
use crate::remedy::PatchChange;

/// How many changes the findings of a check offer.
fn offered(id: &str, change: impl FnOnce(&mut Facts)) -> usize {
    let mut facts = healthy();
    change(&mut facts);
    let found = audit(&facts);
    let mut of_check = found.iter().filter(|finding| finding.check.id == id);
    let finding = of_check.next().expect("a finding");
    finding.remedies.len()
}

/// Takes the work from the node with GPUs.
fn rest(facts: &mut Facts) {
    for workload in [TRAIN, SERVE] {
        facts.workloads[workload].pods.clear();
        facts.workloads[workload].replicas = 0;
    }
}

#[test]
fn a_quota_is_offered_only_where_no_more_pods_can_come() {
    let unlimited = |facts: &mut Facts, namespace: usize| {
        facts.namespaces[namespace].quota_resources = Some(BTreeSet::new());
    };
    // Servers that an autoscaler scales, then servers alone.
    assert_eq!(offered("GOV-01", |facts| unlimited(facts, 1)), 0);
    let fixed = |facts: &mut Facts| {
        facts.autoscalers.clear();
        unlimited(facts, 1);
    };
    assert_eq!(offered("GOV-01", fixed), 1);
    // The next job would be refused.
    assert_eq!(offered("GOV-01", |facts| unlimited(facts, 0)), 0);
    let reserves = |facts: &mut Facts| {
        fixed(facts);
        facts.workloads[SERVE].reserves_for_others = true;
    };
    assert_eq!(offered("GOV-01", reserves), 0);
}

#[test]
fn taints_of_unhealthy_nodes_are_not_tolerated() {
    let tainted = |key: &'static str, value: &'static str| {
        move |facts: &mut Facts| {
            let added = Taint { value: value.into(), ..taint(key) };
            facts.nodes[0].node.taints.push(added);
        }
    };
    assert_eq!(offered("SCH-04", tainted("team-b", "")), 1);
    assert_eq!(offered("SCH-04", tainted("gpu-health", "XID-79")), 0);
    assert_eq!(offered("SCH-04", tainted("example.com/out-of-service", "")), 0);
    // Another node is only reserved.
    let one_of_two = |facts: &mut Facts| {
        let mut other = gpu_node("g2", "H100");
        other.node.taints.push(taint("team-b"));
        add_node(facts, other);
        tainted("under-repair", "")(facts);
    };
    assert_eq!(offered("SCH-04", one_of_two), 1);
}

#[test]
fn a_node_is_drained_or_given_to_an_autoscaler_only_without_work() {
    let broken = |facts: &mut Facts| {
        facts.nodes[0].gpus.get_mut(GPU).expect("it has GPUs").allocatable = 7;
    };
    assert_eq!(offered("CAP-01", broken), 0);
    let broken_and_empty = |facts: &mut Facts| {
        broken(facts);
        rest(facts);
    };
    assert_eq!(offered("CAP-01", broken_and_empty), 1);
    let kept = |facts: &mut Facts| {
        facts.nodes[0].scale_down_held_by = Some("scale-down-disabled: \"true\"".into());
    };
    assert_eq!(offered("AUT-04", kept), 0);
    let kept_and_empty = |facts: &mut Facts| {
        kept(facts);
        rest(facts);
    };
    assert_eq!(offered("AUT-04", kept_and_empty), 1);
}

#[test]
fn a_node_that_is_being_removed_is_not_uncordoned() {
    let cordoned = |facts: &mut Facts| facts.nodes[0].cordoned_since_ms = Some(0);
    assert_eq!(offered("AUT-06", cordoned), 1);
    let removed = |facts: &mut Facts| {
        cordoned(facts);
        facts.nodes[0].is_being_removed = true;
    };
    assert_eq!(offered("AUT-06", removed), 0);
    // Only its removal lowers the bill; pods that wait cannot have it.
    let leaving = |change: &dyn Fn(&mut Facts)| {
        let (_, finding) = self::cordoned(|facts| {
            facts.nodes[0].is_being_removed = true;
            change(facts);
        });
        let example = finding.fix_example();
        assert!(example.starts_with("kubectl describe node g1"), "{example}");
        finding.claims.len()
    };
    assert_eq!(leaving(&|_| {}), 8);
    assert_eq!(leaving(&pending), 0);
}

/// What AUT-06 finds of a node that has been cordoned for long and runs no pods, once something is
/// changed.
fn cordoned(change: impl FnOnce(&mut Facts)) -> (Facts, Finding) {
    let mut facts = healthy();
    rest(&mut facts);
    facts.nodes[0].cordoned_since_ms = Some(0);
    facts.nodes[0].node.unschedulable = true;
    change(&mut facts);
    let mut found = audit(&facts).into_iter();
    let finding = found.find(|finding| finding.check.id == "AUT-06").expect("a finding");
    (facts, finding)
}

/// A pending pod with GPUs.
fn pending(facts: &mut Facts) {
    let mut later = workload(ObjectRef::new("Job", "research", "later"), 4, 1, "");
    later.pods[0].node = None;
    facts.workloads.push(later);
}

/// An open node without work costs what a cordoned one costs.
#[test]
fn a_cordoned_node_that_no_pod_needs_is_removed_and_not_uncordoned() {
    let is_removed = |change: &dyn Fn(&mut Facts)| {
        let (_, finding) = cordoned(change);
        let example = finding.fix_example();
        let is_removed = example.starts_with("kubectl drain g1 --ignore-daemonsets");
        assert_eq!(finding.stays.is_empty(), is_removed, "{example}");
        assert_eq!(finding.claims.len(), 8);
        (is_removed, finding.remedies.len())
    };
    assert_eq!(is_removed(&|_| {}), (true, 0));
    assert_eq!(is_removed(&pending), (false, 1));
    assert_eq!(
        is_removed(&|facts| {
            let mut later = workload(ObjectRef::new("CronJob", "research", "later"), 4, 1, "");
            later.pods[0].node = None;
            facts.to_come.push(ToCome { workload: later, last_ms: None });
        }),
        (false, 1)
    );
    // A pod without GPUs has no other node.
    let alone = |facts: &mut Facts| {
        facts.workloads[WEB].pods[0].node = Some("g1".into());
        requests(facts, WEB, "memory", 2_000 * GIB);
    };
    assert_eq!(is_removed(&alone), (false, 0));
}

/// Of two nodes of a pool the pod needs one: the change leaves the other one out.
#[test]
fn only_those_nodes_of_a_pool_are_uncordoned_that_pods_need() {
    let (_, finding) = cordoned(|facts| {
        let mut other = gpu_node("g2", "H100");
        (other.cordoned_since_ms, other.devices) = (Some(0), (8..16).collect());
        other.node.unschedulable = true;
        other.repair_marks = vec!["condition GpuHealthy=False".into()];
        add_node(facts, other);
        pending(facts);
    });
    let changes: Vec<&PatchChange> = finding.changes().collect();
    assert_eq!(changes, [&PatchChange::Uncordon { nodes: vec!["g1".into()] }]);
    let concerned: Vec<&str> = finding.affected.iter().map(|node| &*node.name).collect();
    assert_eq!(concerned, ["g1", "g2"]);
}

/// One example for each action, with the nodes of the pool that it is for.
#[test]
fn commands_for_nodes_of_a_pool_name_the_nodes_that_they_are_for() {
    let example = |marks: Vec<String>| {
        let (_, finding) = cordoned(|facts| {
            let mut other = gpu_node("g2", "H100");
            (other.cordoned_since_ms, other.devices) = (Some(0), (8..16).collect());
            other.node.unschedulable = true;
            other.repair_marks = marks;
            add_node(facts, other);
        });
        finding.fix_example()
    };
    let alike = example(Vec::new());
    assert!(alike.starts_with("kubectl drain g1 g2 --ignore-daemonsets  # "), "{alike}");
    let apart = example(vec!["condition GpuHealthy=False".into()]);
    assert!(apart.contains("kubectl drain g1 --ignore-daemonsets  # "), "{apart}");
    assert!(apart.contains("kubectl describe node g2  # "), "{apart}");
}

#[test]
fn a_node_that_is_marked_for_a_repair_is_not_uncordoned_and_the_mark_is_named() {
    let reasons = |change: &dyn Fn(&mut Facts)| {
        let (_, finding) = cordoned(|facts| {
            pending(facts);
            change(facts);
        });
        assert_eq!(finding.remedies, []);
        assert!(finding.fix_example().starts_with("kubectl describe node g1"));
        // The pending pod may need it once it is repaired.
        assert!(finding.stays.contains("g1"));
        let reasons = finding.evidence.iter().filter(|of| of.what == "probable reason");
        reasons.map(|of| of.value.clone()).collect::<Vec<_>>()
    };
    let tainted = |facts: &mut Facts| {
        let xid = Taint { value: "79".into(), ..taint("nvidia.com/gpu-xid") };
        facts.nodes[0].node.taints.push(xid);
    };
    assert_eq!(reasons(&tainted), ["taint nvidia.com/gpu-xid=79:NoSchedule on g1"]);
    let marked = |facts: &mut Facts| {
        facts.nodes[0].repair_marks = vec!["condition GpuHealthy=False".into()];
    };
    assert_eq!(reasons(&marked), ["condition GpuHealthy=False on g1"]);
}

/// Karpenter keeps such a node, whatever its NodePool allows.
#[test]
fn an_annotation_that_keeps_an_empty_node_leaves_its_removal_to_a_person() {
    let of = |annotation: Option<&str>| {
        let mut facts = healthy();
        rest(&mut facts);
        facts.nodes[0].without_gpu_pods_since_ms = Some(0);
        facts.nodes[0].scale_down_held_by = annotation.map(str::to_owned);
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "AUT-03").expect("one");
        (finding.remedies.len(), finding.fix_example().contains("delete the machine"))
    };
    assert_eq!(of(None), (1, false));
    assert_eq!(of(Some("karpenter.sh/do-not-disrupt: true")), (0, true));
}

/// The GPU nodes of each vendor have labels of their own.
#[test]
fn pods_without_gpus_stay_off_the_nodes_of_all_vendors() {
    let labels = |amd: &[(&str, &str)]| {
        let mut facts = healthy();
        let mut other = gpu_node("g2", "MI300X");
        other.node.labels = map(&[]);
        let labels = amd.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        other.node.labels.extend(labels);
        add_node(&mut facts, other);
        let nvidia = &mut facts.nodes[0].node.labels;
        nvidia.insert("nvidia.com/gpu.present".into(), "true".into());
        nvidia.insert("nvidia.com/gpu.product".into(), "H100".into());
        facts.workloads[WEB].pods[0].node = Some("g2".into());
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "SCH-02").expect("one");
        let keys = finding.remedies.iter().map(|remedy| match &remedy.change {
            PatchChange::AskOfNodes { term } => term.key.clone(),
            change => panic!("{change:?}"),
        });
        (keys.collect::<Vec<_>>(), finding.fix_example().contains("nvidia.com/gpu.present"))
    };
    let product = ("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM");
    assert_eq!(labels(&[product]).0, ["nvidia.com/gpu.present", "amd.com/gpu.product-name"]);
    // No label is known of the node of the pod.
    assert_eq!(labels(&[]), (Vec::new(), false));
}

/// HAMi chooses models by annotation: such a pod has made its choice, and gets no selector.
#[test]
fn a_pod_that_chooses_its_gpus_by_annotation_accepts_not_every_model() {
    let of = |choice: Option<&'static str>| {
        let mut facts = healthy();
        add_node(&mut facts, gpu_node("g2", "L4"));
        for workload in [TRAIN, SERVE] {
            facts.workloads[workload].template.chooses_gpus_by = choice;
        }
        audit(&facts).iter().filter(|finding| finding.check.id == "SCH-05").count()
    };
    assert_eq!((of(None), of(Some("nvidia.com/use-gputype"))), (2, 0));
}
