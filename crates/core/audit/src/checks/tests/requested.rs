//! Which nodes could hold a pod: all of its obstacles count.

use super::*;

/// The models that SCH-05 names for each workload.
fn any_model(facts: &Facts) -> Vec<(String, String)> {
    let found = audit(facts).into_iter().filter(|finding| finding.check.id == "SCH-05");
    found.map(|of| (of.object.name.clone(), of.evidence[0].value.clone())).collect()
}

/// A node of another model with so many GPUs, thousandths of a core and bytes.
fn other(name: &str, gpus: i64, cpu_milli: i64, memory_gib: i64) -> Node {
    let mut node = gpu_node(name, "L4");
    let of_node = node.gpus.get_mut(GPU).expect("it has GPUs");
    (of_node.built_in, of_node.allocatable) = (gpus, gpus);
    node.node.allocatable.cpu_milli = cpu_milli;
    node.node.allocatable.memory_bytes = memory_gib * GIB;
    node
}

/// By hand: a pod of the training has 4 GPUs, 16 cores and 128 GiB, one of the server 1, 4 and 32;
/// the exporter has 4 cores and 32 GiB of each node.
#[test]
fn a_model_counts_only_where_a_node_of_it_could_hold_the_pod() {
    let found = |nodes: &[(i64, i64, i64)]| {
        let mut facts = healthy();
        for (number, (gpus, cpu_milli, memory_gib)) in nodes.iter().enumerate() {
            add_node(&mut facts, other(&format!("l{number}"), *gpus, *cpu_milli, *memory_gib));
        }
        any_model(&facts).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(found(&[(4, 20_000, 160)]), ["serve", "train"]);
    assert_eq!(found(&[(3, 20_000, 160)]), ["serve"]);
    assert_eq!(found(&[(4, 19_000, 160)]), ["serve"]);
    assert_eq!(found(&[(4, 20_000, 159)]), ["serve"]);
    assert_eq!(found(&[(4, 7_000, 160)]), [""; 0]);
    // One node has the CPU and another the memory.
    assert_eq!(found(&[(4, 20_000, 100), (4, 10_000, 160)]), ["serve"]);
    assert_eq!(found(&[(4, 20_000, 100), (4, 10_000, 160), (4, 20_000, 160)]).len(), 2);
}

#[test]
fn models_that_are_too_small_are_not_named() {
    let mut facts = healthy();
    add_node(&mut facts, other("l1", 8, 96_000, 1024));
    let mut small = gpu_node("a1", "A10");
    small.gpus.get_mut(GPU).expect("it has GPUs").allocatable = 2;
    add_node(&mut facts, small);
    let named: BTreeMap<String, String> = any_model(&facts).into_iter().collect();
    assert_eq!(named["train"], "H100, L4");
    assert_eq!(named["serve"], "A10, H100, L4");
}

/// The training fits on no node that the server may use, so neither preempts the other.
#[test]
fn training_that_does_not_fit_on_the_nodes_of_a_server_is_no_rival_of_it() {
    let is_found = |gpus: i64| {
        let mut facts = healthy();
        add_node(&mut facts, other("l1", gpus, 96_000, 1024));
        let server = &mut facts.workloads[SERVE].template;
        (server.priority_class, server.node_conditions) = (None, vec![model_is("L4")]);
        audit(&facts).iter().any(|finding| finding.check.id == "SCH-11")
    };
    assert!(is_found(4) && !is_found(3));
}

/// The node has 8 GPUs, 96 cores and 1 TiB.
#[test]
fn a_pending_pod_that_is_larger_than_each_node_that_it_may_use_is_found() {
    let found = |change: &dyn Fn(&mut Facts)| {
        let mut facts = healthy();
        let mut waiting = workload(ObjectRef::new("Job", "research", "later"), 4, 1, "");
        waiting.pods[0].node = None;
        facts.workloads.push(waiting);
        change(&mut facts);
        let found = audit(&facts).into_iter().filter(|finding| finding.check.id == "REQ-03");
        let values = found.flat_map(|finding| finding.evidence).map(|of| of.value);
        values.collect::<Vec<String>>()
    };
    let last = |facts: &mut Facts, change: &dyn Fn(&mut PodTemplate)| {
        change(&mut facts.workloads.last_mut().expect("it was added").template);
    };
    let most = |asked: &str, most: &str| {
        [format!("{asked}, of which the nodes that it may use have at most {most}")]
    };
    assert_eq!(found(&|_| {}), [""; 0]);
    let cores = |facts: &mut Facts| last(facts, &|of| of.requests.cpu_milli = 97_000);
    assert_eq!(found(&cores), most("97 cpu", "96"));
    let memory = |facts: &mut Facts| last(facts, &|of| of.requests.memory_bytes = 2048 * GIB);
    assert_eq!(found(&memory), most("2048Gi memory", "1024Gi"));
    // No node of the model is there: a pool may be empty now.
    let of_model = |facts: &mut Facts| last(facts, &|of| of.node_conditions = vec![model_is("L4")]);
    assert_eq!(found(&of_model), [""; 0]);
    let of_small = |facts: &mut Facts| {
        of_model(facts);
        add_node(facts, other("l1", 2, 96_000, 1024));
    };
    assert_eq!(found(&of_small), most("4 nvidia.com/gpu", "2"));
    // A CronJob has no pods yet.
    let to_come = |facts: &mut Facts| {
        cores(facts);
        let mut workload = facts.workloads.pop().expect("it was added");
        workload.owner.kind = "CronJob".into();
        facts.to_come.push(ToCome { workload, last_ms: None });
    };
    assert_eq!(found(&to_come), most("97 cpu", "96"));
}

/// A pod of four GPUs waits for the model of two nodes, of which one has two GPUs and the other
/// offers its GPUs in parts. Another layout, or none, makes whole ones of them.
#[test]
fn gpus_in_parts_count_as_gpus_of_their_node() {
    let is_found = |resource: &str, units: i64, label: &str| {
        let mut facts = healthy();
        let mut waiting = workload(ObjectRef::new("Job", "research", "later"), 4, 1, "");
        waiting.pods[0].node = None;
        waiting.template.node_conditions = vec![model_is("L4")];
        facts.workloads.push(waiting);
        add_node(&mut facts, other("l1", 2, 96_000, 1024));
        let mut parted = other("l2", units, 96_000, 1024);
        parted.gpus = parted.gpus.into_values().map(|of| (resource.to_owned(), of)).collect();
        parted.node.labels.insert("nvidia.com/gpu.count".into(), label.into());
        add_node(&mut facts, parted);
        audit(&facts).iter().any(|finding| finding.check.id == "REQ-03")
    };
    for resource in ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"] {
        assert!(!is_found(resource, 28, "4") && is_found(resource, 28, "3"), "{resource}");
        // Without a label they are at most as many as their parts.
        assert!(!is_found(resource, 4, "") && is_found(resource, 3, ""), "{resource}");
    }
}
