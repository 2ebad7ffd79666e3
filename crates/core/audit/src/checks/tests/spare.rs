//! CAP-06: what is free and usable beside pods, and what pending pods would take of it.

use std::sync::Arc;

use dovetail_facts::{NodeGpus, PendingDemand, Units};
use dovetail_model::{
    DeviceRequest, GpuFraction, GpuParts, Job, JobId, Requirement, Resources, Snapshot,
};

use super::*;

const SLICE: &str = "nvidia.com/mig-1g.10gb";

/// What CAP-06 finds: its evidence, and how much it explains at most.
fn found(facts: &Facts, moment: &Moment) -> Option<(Vec<String>, Option<i64>)> {
    let found = audit_at(facts, moment);
    let finding = found.into_iter().find(|finding| finding.check.id == "CAP-06")?;
    let evidence = finding.evidence.into_iter().map(|of| of.value).collect();
    Some((evidence, finding.most_milli))
}

/// A node with four whole GPUs, of which a server has one, and with a fifth one of seven instances;
/// and a pod with two GPUs and so much CPU that waits for another model.
fn cut_beside_whole(cpu_milli: i64) -> (Facts, Moment) {
    let mut facts = healthy();
    free_beside_a_server(&mut facts, Some(NOW_MS - HOUR_MS));
    let node = facts.nodes.last_mut().expect("it was added");
    let gpus = |count| Gpus {
        model: Some("H100".to_owned()),
        built_in: count,
        allocatable: count,
        ..Gpus::default()
    };
    node.gpus = map(&[(GPU, gpus(4)), (SLICE, gpus(7))]);
    node.devices = (8..13).collect();
    let units = |resource: &str, count, of| Units {
        resource: resource.to_owned(),
        count,
        parts: GpuParts::Equal(GpuFraction { part: 1, of }),
        unknown: 0,
        is_shared: false,
    };
    let of_node = NodeGpus {
        node: "g2".to_owned(),
        gpus: 5,
        units: vec![units(GPU, 4, 1), units(SLICE, 7, 7)],
        ..NodeGpus::default()
    };
    let mut open = node.node.clone();
    open.devices.truncate(4);
    let requirement = Requirement {
        resources: Resources::pod(cpu_milli, GIB),
        device: DeviceRequest::Whole { count: 2, same_island: false },
        gpu_models: BTreeSet::from(["A100".to_owned()]),
        tolerations: vec![toleration(GPU)],
        ..Requirement::default()
    };
    let job = Job::single(JobId(1), "ml/run", 0, Arc::new(requirement));
    let world = Snapshot { nodes: vec![open], jobs: vec![job], ..Snapshot::default() };
    let demand = PendingDemand { resource: GPU.to_owned(), world, ..PendingDemand::default() };
    (facts, Moment { nodes: vec![of_node], demand: vec![demand], ..Moment::default() })
}

/// By hand: the node has 96 CPU for 11 units, the server has 4 of them. Two GPUs are left to the
/// pending pod, so one GPU and seven instances remain, with 8 × 8.7 CPU.
#[test]
fn what_a_pending_pod_would_not_take_of_a_node_is_offered_to_other_work() {
    let (facts, moment) = cut_beside_whole(20_000);
    let beside = ["1 of 3 nvidia.com/gpu on g2", "7 of 7 nvidia.com/mig-1g.10gb on g2"];
    let beside = beside.map(str::to_owned).to_vec();
    assert_eq!(found(&facts, &moment), Some((beside, Some(2_000))));
    // It would leave too little CPU for the rest.
    let (facts, moment) = cut_beside_whole(40_000);
    assert_eq!(found(&facts, &moment), None);
    let alone = Moment { demand: Vec::new(), ..moment };
    let all = ["3 of 3 nvidia.com/gpu on g2", "7 of 7 nvidia.com/mig-1g.10gb on g2"];
    assert_eq!(found(&facts, &alone), Some((all.map(str::to_owned).to_vec(), None)));
}

/// By hand: a launcher takes one of three free GPUs and a worker two. Which of them starts on which
/// node is not known, so none is left.
#[test]
fn a_gang_leaves_what_its_largest_pods_would_leave() {
    let (facts, mut moment) = cut_beside_whole(10_000);
    let job = &mut moment.demand[0].world.jobs[0];
    let mut launcher = job.pod_sets[0].clone();
    launcher.name = "launcher".to_owned();
    let device = DeviceRequest::Whole { count: 1, same_island: false };
    Arc::make_mut(&mut launcher.requirement).device = device;
    job.pod_sets.insert(0, launcher);
    let instances = vec!["7 of 7 nvidia.com/mig-1g.10gb on g2".to_owned()];
    assert_eq!(found(&facts, &moment), Some((instances, Some(1_000))));
}

/// By hand: on one node all seven free GPUs are usable, on the other there is CPU for three.
#[test]
fn a_node_without_a_bound_does_not_lift_that_of_another_node_of_its_pool() {
    let mut facts = healthy();
    free_beside_a_server(&mut facts, Some(NOW_MS - HOUR_MS));
    let mut short = gpu_node("g3", "H100");
    (short.devices, short.free_since_ms) = ((16..24).collect(), Some(NOW_MS - HOUR_MS));
    add_node(&mut facts, short);
    let mut large = workload(ObjectRef::new("Deployment", "prod", "large"), 1, 1, "g3");
    large.template.requests.cpu_milli = 56_000;
    facts.workloads.push(large);
    // No pod moves, so AUT-07 empties no node.
    facts.workloads.iter_mut().for_each(|of| of.template.has_lasting_volume = true);
    let both = ["7 of 7 nvidia.com/gpu on g2", "3 of 7 nvidia.com/gpu on g3"];
    let both = both.map(str::to_owned).to_vec();
    assert_eq!(found(&facts, &Moment::default()), Some((both, Some(10_000))));
}

/// By hand: of 96 CPU the server has so many, and the exporter 4. Each of eight GPUs has 12 CPU.
#[test]
fn of_free_gpus_as_many_are_usable_as_there_is_cpu_for() {
    let usable = |cpu_milli: i64| {
        let mut facts = healthy();
        free_beside_a_server(&mut facts, Some(NOW_MS - HOUR_MS));
        facts.workloads[SERVE].template.requests.cpu_milli = cpu_milli;
        found(&facts, &Moment::default())
    };
    let of_seven = |count: i64, most_milli: Option<i64>| {
        Some((vec![format!("{count} of 7 nvidia.com/gpu on g2")], most_milli))
    };
    assert_eq!(usable(4_000), of_seven(7, None));
    assert_eq!(usable(56_000), of_seven(3, Some(3_000)));
    assert_eq!(usable(56_001), of_seven(2, Some(2_000)));
    assert_eq!(usable(80_001), None);
}
