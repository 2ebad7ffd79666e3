//! SHR-08: which nodes could provide the instances that pending pods lack, and what is said where
//! none could.

use super::*;

const A100: &str = "NVIDIA-A100-SXM4-80GB";

/// A node with so many A100s that offers these units.
fn node(name: &str, gpus: u32, units: &[(&str, i64)]) -> Node {
    let mut node = gpu_node(name, A100);
    node.node.taints.clear();
    node.devices = (0..gpus).collect();
    let offered = units.iter().map(|(resource, count)| {
        let model = Some(A100.to_owned());
        let gpus = Gpus { model, built_in: *count, allocatable: *count, ..Gpus::default() };
        (format!("nvidia.com/{resource}"), gpus)
    });
    node.gpus = offered.collect();
    node
}

/// A pod on a node, or one that waits, which asks for these units.
fn pod(name: &str, node: Option<&str>, units: &[(&str, i64)]) -> Workload {
    let mut of = workload(ObjectRef::new("Deployment", "prod", name), 0, 1, "");
    let limits = units.iter().map(|(resource, count)| (format!("nvidia.com/{resource}"), *count));
    of.template.containers[0].limits = limits.collect();
    of.pods[0].node = node.map(str::to_owned);
    of
}

fn shr_08(nodes: &[&Node], pods: &[&Workload]) -> Vec<Finding> {
    let facts = Facts {
        now_ms: NOW_MS,
        nodes: nodes.iter().copied().cloned().collect(),
        workloads: pods.iter().copied().cloned().collect(),
        ..Facts::default()
    };
    let mut found = audit(&facts);
    found.retain(|finding| finding.check.id == "SHR-08");
    found
}

/// The evidence of all findings.
fn told(nodes: &[&Node], pods: &[&Workload]) -> Vec<String> {
    let found = shr_08(nodes, pods);
    found.iter().flat_map(|of| &of.evidence).map(|of| of.value.clone()).collect()
}

const HALF: [(&str, i64); 1] = [("mig-3g.40gb", 1)];
const ONE_HALF: &str = "1 that request nvidia.com/mig-3g.40gb, 0 free";

#[test]
fn a_free_whole_gpu_can_be_cut_unless_another_pending_pod_asks_for_it() {
    let whole = node("whole", 2, &[("gpu", 2)]);
    let waits = pod("waits", None, &HALF);
    let cut = [ONE_HALF, "whole", "2 × 3g.40gb", "0"];
    assert_eq!(told(&[&whole], &[&waits]), cut);
    let example = shr_08(&[&whole], &[&waits])[0].fix_example();
    assert!(example.contains("allowModeChange"), "{example}");
    let beside = |gpus: i64, on: Option<&str>| {
        told(&[&whole], &[&pod("asks", on, &[("gpu", gpus)]), &waits])
    };
    assert_eq!(beside(1, None), cut);
    assert_eq!(beside(2, None), [""; 0]);
    assert_eq!(beside(2, Some("whole")), [""; 0]);
    // No driver shows another name of the profile.
    let named = "none: the GPUs that these pods may use offer this profile as 3g.40gb";
    let other = pod("other", None, &[("mig-3g.39gb", 1)]);
    assert_eq!(told(&[&whole], &[&other])[1], named);
    // A GPU in MIG mode needs no change of its mode; a full one is of no use now.
    let sevenths = node("sevenths", 1, &[("mig-1g.10gb", 7)]);
    let uses = pod("uses", Some("sevenths"), &[("mig-1g.10gb", 7)]);
    assert_eq!(told(&[&whole, &sevenths], &[&waits])[1..3], ["sevenths", "2 × 3g.40gb"]);
    assert_eq!(told(&[&whole, &sevenths], &[&uses, &waits])[1], "whole");
}

#[test]
fn whole_gpus_that_plugins_share_are_not_cut() {
    let waits = pod("waits", None, &HALF);
    let more_than_gpus = node("sliced", 1, &[("gpu", 4)]);
    assert_eq!(told(&[&more_than_gpus], &[&waits]), [""; 0]);
    let mut shared = node("sliced", 4, &[("gpu", 4)]);
    assert_eq!(told(&[&shared], &[&waits])[1], "sliced");
    shared.has_unclear_layout = true;
    assert_eq!(told(&[&shared], &[&waits]), [""; 0]);
    // The kubelet keeps a resource that a node no longer offers at 0.
    let unshared = node("unshared", 1, &[("gpu.shared", 0), ("mig-1g.10gb", 7)]);
    assert_eq!(told(&[&unshared], &[&waits])[1], "unshared");
}

/// The plan leaves these nodes alone, too.
#[test]
fn nodes_that_a_plan_leaves_alone_are_not_named() {
    let sevenths = node("sevenths", 2, &[("mig-1g.10gb", 14)]);
    let waits = pod("waits", None, &HALF);
    let with = |key: &str, value: &str| {
        let mut node = sevenths.clone();
        node.node.labels.insert(key.to_owned(), value.to_owned());
        told(&[&node], &[&waits]).len()
    };
    assert_eq!((with("nvidia.com/gpu.count", "2"), with("nvidia.com/gpu.count", "1")), (4, 0));
    assert_eq!(with("nos.nebuly.com/gpu-partitioning", "mig"), 0);
}

/// Three pods, of which one gets the free half: the others lack one since the second was made,
/// however long other instances of the node have been free.
#[test]
fn instances_are_lacked_since_the_first_pod_without_one_was_made() {
    let mut units = node("node", 2, &[("mig-3g.40gb", 1), ("mig-1g.10gb", 7)]);
    units.free_since_ms = Some(1);
    let since = |made: [Option<u64>; 3]| {
        let mut waits = pod("waits", None, &HALF);
        let pod = waits.pods[0].clone();
        let pods = made.map(|created_ms| Pod { created_ms, ..pod.clone() });
        waits.pods = pods.to_vec();
        let found = shr_08(&[&units], &[&waits]);
        assert_eq!((found.len(), found[0].is_undated), (1, found[0].since_ms.is_none()));
        found[0].since_ms
    };
    assert_eq!(since([Some(30), Some(10), Some(20)]), Some(20));
    assert_eq!(since([None, Some(10), None]), None);
}

/// The plan is empty for each of them.
#[test]
fn pods_that_only_wait_until_others_end_are_no_finding() {
    let half = pod("waits", None, &HALF);
    let sevenths = [("mig-1g.10gb", 7)];
    let full = node("full", 1, &sevenths);
    let uses = pod("uses", Some("full"), &sevenths);
    let mut seventh = pod("waits", None, &[("mig-1g.10gb", 1)]);
    assert_eq!(told(&[&full], &[&uses, &seventh]), [""; 0]);
    assert_eq!(told(&[&full], &[&uses, &half]), [""; 0]);
    let halves = node("halves", 1, &[("mig-3g.40gb", 2)]);
    let uses = pod("uses", Some("halves"), &[("mig-3g.40gb", 2)]);
    assert_eq!(told(&[&halves], &[&uses, &half]), [""; 0]);
    // Seven of eight pods start, and no layout has an eighth.
    seventh.pods = vec![seventh.pods[0].clone(); 8];
    assert_eq!(told(&[&full], &[&seventh]), [""; 0]);
}

#[test]
fn instances_in_use_stay_in_the_layout() {
    let mixed = node("mixed", 1, &[("mig-3g.40gb", 1), ("mig-1g.10gb", 4)]);
    let uses = pod("uses", Some("mixed"), &HALF);
    let beside = |profile: &str| told(&[&mixed], &[&uses, &pod("asks", None, &[(profile, 1)])]);
    let leaves = "prod/uses-0 on mixed";
    let layout = "1 × 3g.40gb, 1 × 4g.40gb";
    assert_eq!(beside("mig-4g.40gb")[1..], ["mixed", layout, "1", leaves]);
    assert_eq!(beside("mig-7g.80gb"), [""; 0]);
}

#[test]
fn one_node_provides_all_instances_of_a_pod() {
    let of = |name: &str| node(name, 1, &[("mig-1g.10gb", 7)]);
    let (first, second) = (of("n1"), of("n2"));
    let asks = |count: i64| pod("asks", None, &[("mig-3g.40gb", count)]);
    let none = "none: no node that these pods may use can have all instances of one pod";
    for count in [3, 4] {
        let asked = format!("1 that request {count} × nvidia.com/mig-3g.40gb, 0 free");
        assert_eq!(told(&[&first, &second], &[&asks(count)]), [asked.as_str(), none]);
    }
    let asked = "1 that request 2 × nvidia.com/mig-3g.40gb, 0 free";
    assert_eq!(told(&[&first, &second], &[&asks(2)]), [asked, "n1", "2 × 3g.40gb", "0"]);
    // Of several profiles, too.
    let of_both = |quarters: i64| {
        let units = [("mig-2g.20gb", quarters), ("mig-3g.40gb", 1)];
        told(&[&first], &[&pod("asks", None, &units)])
    };
    let asked = "1 that request 2 × nvidia.com/mig-2g.20gb, 0 free and nvidia.com/mig-3g.40gb, 0 \
                 free";
    assert_eq!(of_both(2), [asked, "n1", "2 × 2g.20gb, 1 × 3g.40gb", "0"]);
    assert_eq!(of_both(3)[1], none);
}

#[test]
fn instances_that_are_free_on_different_nodes_do_not_serve_one_pod() {
    let of = |name: &str| node(name, 1, &[("mig-3g.40gb", 1), ("mig-1g.10gb", 4)]);
    let (first, second) = (of("n1"), of("n2"));
    let asks = pod("asks", None, &[("mig-3g.40gb", 2)]);
    let asked = "1 that request 2 × nvidia.com/mig-3g.40gb, 2 free, but not all where a whole pod \
                 fits";
    assert_eq!(told(&[&first, &second], &[&asks]), [asked, "n1", "2 × 3g.40gb", "0"]);
    // Both instances are three of seven compute slices.
    assert_eq!(shr_08(&[&first, &second], &[&asks])[0].most_milli, Some(857));
}

#[test]
fn a_node_provides_instances_only_to_pods_that_fit_there() {
    let of = |name: &str| node(name, 1, &[("mig-1g.10gb", 7)]);
    let (first, second) = (of("n1"), of("n2"));
    let of_cores = |name: &str, on: Option<&str>, cores: i64, units: &[(&str, i64)]| {
        let mut of = pod(name, on, units);
        of.template.requests = Resources::pod(1_000 * cores, GIB);
        of
    };
    let small = "none: one pod requests more CPU, memory or other resources than the nodes that \
                 it may use have";
    let large = of_cores("asks", None, 97, &HALF);
    assert_eq!(told(&[&first, &second], &[&large]), [ONE_HALF, small]);
    // The CPU of the first node is in use.
    let web = of_cores("web", Some("n1"), 90, &[]);
    let asks = of_cores("asks", None, 10, &HALF);
    assert_eq!(told(&[&first, &second], &[&web, &asks])[1], "n2");
    assert_eq!(told(&[&first], &[&web, &asks]), [""; 0]);
}

#[test]
fn layouts_have_the_names_that_their_node_shows() {
    let shows = node("shows", 1, &[("mig-3g.39gb", 1), ("mig-1g.10gb", 3)]);
    let old = pod("old", None, &[("mig-3g.39gb", 2)]);
    assert_eq!(told(&[&shows], &[&old])[2], "2 × 3g.39gb");
    // A pod starts where its name is free, whichever name further instances get.
    let both = node("both", 1, &[("mig-3g.39gb", 1), ("mig-3g.40gb", 1)]);
    let old = pod("old", None, &[("mig-3g.39gb", 1)]);
    assert_eq!(told(&[&both], &[&old]), [""; 0]);
}

#[test]
fn a_free_instance_serves_one_pending_pod() {
    let of = |name: &str| node(name, 1, &[("mig-3g.40gb", 1), ("mig-1g.10gb", 4)]);
    let mixed = of("mixed");
    let (first, second) = (pod("first", None, &HALF), pod("second", None, &HALF));
    assert_eq!(told(&[&mixed], &[&first]), [""; 0]);
    let found = shr_08(&[&mixed], &[&first, &second]);
    let names: Vec<&str> = found.iter().map(|of| of.object.name.as_str()).collect();
    assert_eq!(names, ["second"]);
    let needs = [ONE_HALF, "mixed", "2 × 3g.40gb", "0"];
    assert_eq!(told(&[&mixed], &[&first, &second]), needs);
    // The first one starts where the names of nodes begin, and no plan changes that node then.
    let (one, other) = (of("a"), of("b"));
    let large = pod("large", None, &[("mig-4g.40gb", 1)]);
    assert_eq!(told(&[&one, &other], &[&first, &large])[1], "b");
}

#[test]
fn a_layout_is_named_for_the_pod_that_is_pending_longest() {
    let sevenths = node("sevenths", 1, &[("mig-1g.10gb", 7)]);
    let asks = |name: &str, created_ms: u64| {
        let mut of = pod(name, None, &[("mig-3g.40gb", 2)]);
        of.pods[0].created_ms = Some(created_ms);
        of
    };
    let (young, old) = (asks("a", NOW_MS - 1), asks("b", NOW_MS - 2));
    let found = shr_08(&[&sevenths], &[&young, &old]);
    let names: Vec<&str> = found.iter().map(|of| of.object.name.as_str()).collect();
    assert_eq!(names, ["b"]);
    // What the layout has beside the instances of one pod serves another one.
    let one = |name: &str| pod(name, None, &HALF);
    assert_eq!(shr_08(&[&sevenths], &[&one("a"), &one("b")]).len(), 2);
    assert_eq!(shr_08(&[&sevenths], &[&one("a"), &one("b"), &one("c")]).len(), 2);
}

#[test]
fn free_nodes_come_before_nodes_whose_pods_must_leave_first() {
    let of = |name: &str| node(name, 1, &[("mig-1g.10gb", 7)]);
    let (busy, idle) = (of("busy"), of("idle"));
    let uses = pod("uses", Some("busy"), &[("mig-1g.10gb", 1)]);
    let mut asks = pod("asks", None, &HALF);
    assert_eq!(told(&[&busy, &idle], &[&uses, &asks])[1], "idle");
    let example = |asks: &Workload| shr_08(&[&busy, &idle], &[&uses, asks])[0].fix_example();
    assert!(!example(&asks).contains("must leave first"), "{}", example(&asks));
    asks.pods = vec![asks.pods[0].clone(); 3];
    let values = told(&[&busy, &idle], &[&uses, &asks]);
    assert_eq!(values[1..], ["idle", "2 × 3g.40gb", "0", "busy", "prod/uses-0 on busy"]);
    assert_eq!(told(&[&busy], &[&uses, &asks])[1], "busy");
    let fix = shr_08(&[&busy], &[&uses, &asks])[0].fix_example();
    assert!(fix.contains("must leave first"), "{fix}");
}

#[test]
fn pods_that_are_alike_are_judged_together() {
    let nodes: Vec<Node> =
        (0..40).map(|number| node(&format!("n{number:02}"), 1, &[("mig-1g.10gb", 7)])).collect();
    let pods: Vec<Workload> = (0..60).map(|of| pod(&format!("p{of:02}"), None, &HALF)).collect();
    let found = shr_08(&nodes.iter().collect::<Vec<_>>(), &pods.iter().collect::<Vec<_>>());
    assert_eq!(found.len(), 60);
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for name in found.iter().flat_map(|of| &of.starts_on) {
        *named.entry(name).or_default() += 1;
    }
    // Each node has two halves, in the order of the names.
    assert_eq!(named.len(), 30);
    assert!(named.iter().all(|(_, pods)| *pods == 2), "{named:?}");
}

#[test]
fn nothing_is_said_of_gpus_whose_memory_size_is_unknown() {
    let mut unknown = node("unknown", 1, &[("mig-1g.10gb", 7)]);
    for gpus in unknown.gpus.values_mut() {
        gpus.model = Some("NVIDIA-A100".to_owned());
    }
    let waits = pod("waits", None, &HALF);
    assert_eq!(told(&[&unknown], &[&waits]), [""; 0]);
    let named = |node: &Node, pods: &[&Workload]| {
        let facts = Facts {
            nodes: vec![node.clone()],
            workloads: pods.iter().copied().cloned().collect(),
            ..Facts::default()
        };
        let nodes = nodes_without_memory_size(&facts);
        nodes.iter().map(|node| node.node.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(named(&unknown, &[&waits]), ["unknown"]);
    assert_eq!(named(&unknown, &[]), [""; 0]);
    let mut lost = unknown.clone();
    lost.node.condition = NodeAvailability::NotReady;
    assert_eq!(named(&lost, &[&waits]), [""; 0]);
    let memory = ("nvidia.com/gpu.memory".to_owned(), "81920".to_owned());
    unknown.node.labels.extend([memory]);
    assert_eq!(named(&unknown, &[&waits]), [""; 0]);
    assert_eq!(told(&[&unknown], &[&waits])[1], "unknown");
}

/// By hand: of 56 instances on eight GPUs pods use 28. One GPU is cut into halves for the pending
/// pod, and takes seven free instances with it at most.
#[test]
fn free_instances_of_gpus_that_keep_their_layout_are_offered_to_other_work() {
    let mut sevenths = node("sevenths", 8, &[("mig-1g.10gb", 56)]);
    sevenths.free_since_ms = Some(NOW_MS - HOUR_MS);
    let mut uses = pod("uses", Some("sevenths"), &[("mig-1g.10gb", 28)]);
    let usable = |pods: &[&Workload]| {
        let facts = Facts {
            now_ms: NOW_MS,
            nodes: vec![sevenths.clone()],
            workloads: pods.iter().copied().cloned().collect(),
            ..Facts::default()
        };
        let found = audit(&facts);
        let spare = found.iter().find(|finding| finding.check.id == "CAP-06");
        spare.map(|of| (of.evidence[0].value.clone(), of.most_milli))
    };
    let of = |count: i64| format!("{count} of 28 nvidia.com/mig-1g.10gb on sevenths");
    assert_eq!(usable(&[&uses]), Some((of(28), None)));
    let waits = pod("waits", None, &HALF);
    assert_eq!(usable(&[&uses, &waits]), Some((of(21), Some(3_000))));
    // The pods leave too little CPU for as many instances.
    uses.template.requests.cpu_milli = 60_000;
    assert_eq!(usable(&[&uses, &waits]), None);
}
