//! Pending work that leaves GPUs free.

use std::sync::Arc;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{GangCounts, HeldGpus, HeldState, PendingDemand, PendingGang};
use dovetail_model::{
    Bounds, DeviceAmount, DeviceRequest, FreeCause, Holding, HoldingId, HoldingPhase, Job, JobId,
    Owner, Queue, Requirement, Resources, Snapshot,
};

use super::*;

/// Checks that read pending pods.
pub(super) const OF_PENDING: [&str; 5] = ["SCH-13", "SCH-14", "SCH-15", "SHR-08", "GOV-05"];

/// Some nodes of eight H100s, and one pending job of so many pods of eight GPUs.
fn found(nodes: usize, pods: u32, change: impl FnOnce(&mut Snapshot)) -> Vec<Finding> {
    let mut found = all_found(nodes, pods, change);
    found.retain(|finding| OF_PENDING.contains(&finding.check.id));
    found
}

/// The same with the findings of all checks. No node has had a pod for hours.
fn all_found(nodes: usize, pods: u32, change: impl FnOnce(&mut Snapshot)) -> Vec<Finding> {
    let (facts, mut demand) = waiting(nodes, pods);
    change(&mut demand.world);
    audit_at(&facts, &Moment { demand: vec![demand], ..Moment::default() })
}

/// The nodes, and the job that waits.
fn waiting(nodes: usize, pods: u32) -> (Facts, PendingDemand) {
    let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
    let mut world = Snapshot { now_ms: 5_000, ..Snapshot::default() };
    for number in 0..nodes {
        let mut node = gpu_node(&format!("g{number}"), "H100");
        node.node.taints.clear();
        node.without_gpu_pods_since_ms = Some(NOW_MS - 9 * HOUR_MS);
        node.devices = (8 * number as u32..8 * (number as u32 + 1)).collect();
        world.nodes.push(node.node.clone());
        facts.nodes.push(node);
    }
    facts.period = Span { from_ms: 0, to_ms: NOW_MS };
    let requirement = Requirement {
        resources: Resources { pod_slots: 1, ..Resources::default() },
        device: DeviceRequest::Whole { count: 8, same_island: false },
        ..Requirement::default()
    };
    let mut job = Job::single(JobId(1), "ml/run", 0, Arc::new(requirement));
    (job.pod_sets[0].min, job.pod_sets[0].max) = (pods, pods);
    world.jobs.push(job);
    let demand = PendingDemand { resource: GPU.to_owned(), world, ..PendingDemand::default() };
    (facts, demand)
}

fn told(found: &[Finding]) -> Vec<(&str, String, usize)> {
    let told = found.iter().map(|finding| {
        let evidence = finding.evidence.first().map(|of| of.value.clone()).unwrap_or_default();
        (finding.check.id, evidence, finding.claims.len())
    });
    told.collect()
}

#[test]
fn a_gang_that_lacks_one_node_is_found_and_one_that_fits_is_not() {
    let short = found(2, 3, |_| {});
    assert_eq!(told(&short), [("SCH-13", "1 more node like g0".to_owned(), 16)]);
    assert_eq!(short[0].object, ObjectRef::new("Namespace", "", "ml"));
    assert_eq!(told(&found(2, 2, |_| {})), []);
    // Five nodes more are no small step, and nothing is claimed.
    assert_eq!(told(&found(1, 6, |_| {})), []);
}

/// SCH-13 for a JobSet of three pods of eight GPUs, or for a gang that only labels describe; so
/// many of its pods are there.
fn of_gang(there: u32, has_object: bool) -> Finding {
    let (mut facts, mut demand) = waiting(2, 3);
    demand.world.jobs[0].name = "jobset ml/run group 1".to_owned();
    let object = ObjectRef::new("JobSet", "ml", "run");
    let gang = PendingGang {
        object: has_object.then_some(object),
        resource: "jobsets.jobset.x-k8s.io".to_owned(),
        size: "replicas of the JobSet",
        pods: (0..3).map(|number| format!("w-{number}")).collect(),
    };
    demand.gangs.insert(JobId(1), gang);
    if there > 0 {
        let mut workers = workload(ObjectRef::new("JobSet", "ml", "w"), 8, there, "");
        workers.pods.iter_mut().for_each(|pod| pod.node = None);
        facts.workloads.push(workers);
    }
    let found = audit_at(&facts, &Moment { demand: vec![demand], ..Moment::default() });
    found.into_iter().find(|finding| finding.check.id == "SCH-13").expect("a finding")
}

#[test]
fn a_pending_gang_is_named_by_its_object_with_its_pods_and_its_own_fix() {
    let gang = of_gang(2, true);
    assert_eq!(gang.object, ObjectRef::new("JobSet", "ml", "run"));
    let pods = ["w-0", "w-1"].map(|name| ObjectRef::new("Pod", "ml", name));
    assert_eq!(gang.affected, pods);
    let named = "jobsets.jobset.x-k8s.io/run in namespace ml";
    assert!(gang.evidence.iter().any(|of| of.what == "gang" && of.value == named), "{gang:?}");
    let fix = gang.fix_example();
    assert!(fix.contains("lower replicas of the JobSet") && !fix.contains("minMember"), "{fix}");
    // Labels describe it: the owner of its pods is the object, and else its namespace.
    let labelled = of_gang(2, false);
    assert_eq!(labelled.object, ObjectRef::new("JobSet", "ml", "w"));
    let unmade = of_gang(0, false);
    assert_eq!(unmade.object, ObjectRef::new("Namespace", "", "ml"));
    assert_eq!(unmade.affected, []);
}

#[test]
fn a_job_without_quota_is_found_where_it_would_fit() {
    let limited = |world: &mut Snapshot| {
        world.jobs[0].queue = "research".to_owned();
        let limit = Bounds::gpus(Some(0));
        world.queues.push(Queue { limit, ..Queue::named("research") });
    };
    let quota = found(1, 1, limited);
    assert_eq!(told(&quota), [("GOV-05", format!("1 that requests {GPU}"), 8)]);
    // A ClusterQueue without a cohort borrows nothing: only more quota of its own helps always.
    let fix = quota[0].fix_example();
    assert!(fix.starts_with("nominalQuota: "), "{fix}");
    assert!(fix.contains("a higher borrowingLimit if its cohort has unused quota"), "{fix}");
    // Without a free node no quota helps.
    assert_eq!(told(&found(0, 1, limited)), []);
}

/// It would start since there is no quota for it, or since GPUs are free where it starts, whichever
/// is later.
#[test]
fn a_job_lacks_quota_since_the_condition_and_not_since_anything_was_made() {
    let since = |made_ms: u64, without: Option<Option<u64>>, free_ms: Option<u64>| {
        let (mut facts, mut demand) = waiting(1, 1);
        let limit = Bounds::gpus(Some(0));
        demand.world.queues.push(Queue { limit, ..Queue::named("research") });
        let job = &mut demand.world.jobs[0];
        (job.queue, job.submit_ms) = ("research".to_owned(), made_ms);
        demand.without_quota.extend(without.map(|since_ms| (JobId(1), since_ms)));
        facts.nodes[0].free_since_ms = free_ms;
        let found = audit_at(&facts, &Moment { demand: vec![demand], ..Moment::default() });
        let lacks = found.iter().find(|of| of.check.id == "GOV-05").expect("a finding");
        assert_eq!(lacks.is_undated, lacks.since_ms.is_none());
        lacks.since_ms
    };
    assert_eq!(since(7, None, None), Some(7));
    assert_eq!(since(7, Some(Some(9)), None), Some(9));
    assert_eq!(since(7, Some(Some(9)), Some(8)), Some(9));
    assert_eq!(since(7, Some(Some(9)), Some(12)), Some(12));
    assert_eq!([since(0, None, Some(12)), since(7, Some(None), Some(12))], [None, None]);
}

/// Four pods of one Job, of eight GPUs each: to the engine each is a job of its own.
#[test]
fn pods_that_wait_for_quota_are_one_job_of_their_object() {
    let told = |nodes: usize| {
        let found = found(nodes, 1, |world| {
            let limit = Bounds::gpus(Some(0));
            world.queues.push(Queue { limit, ..Queue::named("research") });
            let first = world.jobs.remove(0);
            for number in 0..4 {
                let name = format!("ml/run-{number} (suspended Job)");
                let (id, queue) = (JobId(number + 1), "research".to_owned());
                world.jobs.push(Job { id, name, queue, ..first.clone() });
            }
        });
        let [finding] = &found[..] else { panic!("{found:?}") };
        finding.evidence.iter().map(|of| of.value.clone()).collect::<Vec<_>>()
    };
    let one = format!("1 that requests {GPU}");
    assert_eq!(told(4), [one.as_str()]);
    assert_eq!(told(2), [one.as_str(), "2 of 4; the free GPUs do not suffice for the others"]);
}

#[test]
fn a_job_that_excludes_the_free_model_is_found() {
    let only = |model: &'static str| {
        move |world: &mut Snapshot| {
            let requirement = Arc::make_mut(&mut world.jobs[0].pod_sets[0].requirement);
            requirement.gpu_models.insert(model.to_owned());
        }
    };
    assert_eq!(told(&found(1, 1, only("A100"))), [("SCH-14", "A100".to_owned(), 8)]);
    assert_eq!(told(&found(1, 1, only("H100"))), []);
    // The node that it could use is not removed at the same time.
    let removed = |change: &dyn Fn(&mut Snapshot)| {
        let found = all_found(1, 1, change);
        let finding = found.iter().find(|finding| finding.check.id == "AUT-03");
        let finding = finding.expect("no pod uses the node");
        (!finding.claims.is_empty(), finding.stays.is_empty())
    };
    assert_eq!(removed(&only("A100")), (false, false));
    assert_eq!(removed(&|world| world.jobs.clear()), (true, true));
}

#[test]
fn a_gang_below_its_minimum_is_found_while_pods_of_it_are_pending() {
    let found_of = |kind: &str, (min, placed, pending)| {
        let mut facts = healthy();
        facts.workloads[TRAIN].owner.kind = kind.into();
        facts.period = Span { from_ms: 0, to_ms: NOW_MS };
        let held = HeldGpus {
            node: "g1".into(),
            resource: GPU.into(),
            workload: TRAIN,
            pod: "train-0".into(),
            units: 4,
            gpu_milli: None,
            state: HeldState::Ready,
            gang: Some(GangCounts { min, placed, pending }),
            uses: Vec::new(),
        };
        let moment = Moment { held: vec![held], ..Moment::default() };
        let mut found = audit_at(&facts, &moment);
        found.retain(|finding| finding.check.id == "SCH-15");
        found
    };
    let found = |counts| found_of("Job", counts);
    // It has no PodGroup.
    let of_leader = found_of("LeaderWorkerSet", (4, 2, 2))[0].fix_example();
    assert!(of_leader.starts_with("leaderWorkerTemplate: {size: "), "{of_leader}");
    let short = found((4, 2, 2));
    assert_eq!(told(&short), [("SCH-15", "2 of at least 4, 2 pending".to_owned(), 8)]);
    assert!(short[0].claims.iter().all(|claim| claim.holder == Some(TRAIN as u32)));
    // The other two have ended, or more than the minimum are wanted.
    assert_eq!((told(&found((4, 2, 0))), told(&found((2, 2, 2)))), (vec![], vec![]));
}

/// Quota alone would start the job: it does not lack GPUs on one node, whatever its quota is.
#[test]
fn a_job_that_lacks_only_quota_is_not_one_whose_gpus_are_on_different_nodes() {
    let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
    facts.period = Span { from_ms: 0, to_ms: NOW_MS };
    let mut world = Snapshot::default();
    for (name, held) in [("g0", 6), ("g1", 4)] {
        let mut node = gpu_node(name, "H100");
        node.node.taints.clear();
        world.nodes.push(node.node.clone());
        facts.nodes.push(node);
        let holding = |device| Holding {
            id: HoldingId(0),
            node: name.into(),
            owner: Owner::Foreign(format!("ml/{name}-{device}")),
            phase: HoldingPhase::Held { expected_end_ms: None },
            reservation: None,
            resources: Resources::pod(0, 0),
            devices: vec![(device, DeviceAmount::share(1_000, 0))],
            counts_into: Default::default(),
            attachments: Default::default(),
        };
        world.holdings.extend((0..held).map(holding));
    }
    for (holding, number) in world.holdings.iter_mut().zip(0..) {
        holding.id = HoldingId(number);
    }
    let objects = |gpus: u16, has_quota: bool, gang: Option<PendingGang>| {
        let device = DeviceRequest::Whole { count: gpus, same_island: false };
        let requirement = Requirement { device, ..Requirement::default() };
        let mut job = Job::single(JobId(1), "ml/run", 0, Arc::new(requirement));
        let mut world = world.clone();
        if !has_quota {
            job.queue = "research".to_owned();
            let limit = Bounds::gpus(Some(0));
            world.queues.push(Queue { limit, ..Queue::named("research") });
        }
        if gang.is_some() {
            job.name = "podgroup.scheduling.volcano.sh ml/run".to_owned();
        }
        let gangs = gang.into_iter().map(|gang| (JobId(1), gang)).collect();
        world.jobs.push(job);
        let resource = GPU.to_owned();
        let demand = PendingDemand { resource, world, gangs, ..PendingDemand::default() };
        let mut found = audit_at(&facts, &Moment { demand: vec![demand], ..Moment::default() });
        found.retain(|finding| ["SCH-08", "GOV-05"].contains(&finding.check.id));
        found.into_iter().map(|finding| (finding.check.id, finding.object)).collect::<Vec<_>>()
    };
    let found = |gpus: u16, has_quota: bool| {
        let found = objects(gpus, has_quota, None).into_iter();
        found.map(|(check, _)| check).collect::<Vec<_>>()
    };
    // Two and four are free.
    assert_eq!(found(4, false), ["GOV-05"]);
    assert_eq!(found(6, false), ["SCH-08"]);
    assert_eq!(found(6, true), ["SCH-08"]);
    assert_eq!(found(7, true), [""; 0]);
    let object = ObjectRef::new("PodGroup.scheduling.volcano.sh", "ml", "run");
    let group = |object: Option<ObjectRef>| Some(PendingGang { object, ..PendingGang::default() });
    assert_eq!(objects(6, true, group(Some(object.clone()))), [("SCH-08", object)]);
    let namespace = ObjectRef::new("Namespace", "", "ml");
    assert_eq!(objects(6, true, group(None)), [("SCH-08", namespace.clone())]);
    assert_eq!(objects(4, false, group(None)), [("GOV-05", namespace)]);
}

#[test]
fn pods_that_ask_for_a_mig_instance_find_the_node_and_the_layout_that_would_serve_them() {
    let found = |resource: &str, free: i64, is_tainted: bool| {
        let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
        let mut node = gpu_node("m1", "NVIDIA-A100-SXM4-80GB");
        node.node.taints.clear();
        if is_tainted {
            node.node.taints.push(taint("team"));
        }
        let instances = |count| Gpus { built_in: count, allocatable: count, ..Gpus::default() };
        let model = Some("NVIDIA-A100-SXM4-80GB".to_owned());
        node.gpus = map(&[
            ("nvidia.com/mig-3g.40gb", Gpus { model, ..instances(14) }),
            ("nvidia.com/mig-2g.20gb", instances(free)),
        ]);
        facts.nodes.push(node);
        let mut asks = workload(ObjectRef::new("Deployment", "prod", "rank"), 0, 2, "m1");
        asks.template.containers[0].limits = map(&[(resource, 1)]);
        asks.pods.iter_mut().for_each(|pod| pod.node = None);
        facts.workloads.push(asks);
        let mut found = audit(&facts);
        found.retain(|finding| finding.check.id == "SHR-08");
        // Another layout helps where a node has one; where none has, the plan would be empty.
        for finding in &found {
            let has_node = finding.evidence.len() > 2;
            let example = finding.fix_example();
            assert_eq!(example.starts_with("dovetail partition plan"), has_node, "{example}");
            assert_eq!(example.contains("toleration"), !has_node, "{example}");
            // Each instance that is missing is two of seven compute slices of a GPU.
            let most_milli = if free == 1 { 286 } else { 571 };
            assert_eq!(finding.most_milli, Some(if has_node { most_milli } else { 0 }));
        }
        let evidence = found.iter().flat_map(|finding| &finding.evidence);
        evidence.map(|of| of.value.clone()).collect::<Vec<_>>()
    };
    let asked = |free| format!("2 that request nvidia.com/mig-2g.20gb, {free} free");
    let layout = "1 × 1g.10gb, 3 × 2g.20gb";
    assert_eq!(found("nvidia.com/mig-2g.20gb", 1, false), [&asked(1), "m1", layout, "0"]);
    assert_eq!(found("nvidia.com/mig-2g.20gb", 2, false), [""; 0]);
    let none = "none: no GPU on a node that these pods may use supports this profile";
    assert_eq!(found("nvidia.com/mig-2g.20gb", 0, true), [&asked(0), none]);
    assert_eq!(found("nvidia.com/gpu", 0, false), [""; 0]);
}

/// Two empty nodes of halves, a node of sevenths in use, and so many pods that wait for one seventh
/// each: each of the halves has seven of them on each of its eight GPUs.
fn waiting_for_sevenths(count: u32) -> Vec<Finding> {
    let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
    facts.period = Span { from_ms: 0, to_ms: NOW_MS };
    let model = Some("NVIDIA-A100-SXM4-80GB".to_owned());
    let of_nodes = [("h1", "3g.40gb", 16), ("h2", "3g.40gb", 16), ("s1", "1g.10gb", 56)];
    for (number, (name, profile, units)) in (0..).zip(of_nodes) {
        let mut node = gpu_node(name, "NVIDIA-A100-SXM4-80GB");
        node.node.taints.clear();
        node.pool = ObjectRef::new("Node", "", name);
        node.devices = (8 * number..8 * (number + 1)).collect();
        let gpus =
            Gpus { model: model.clone(), built_in: units, allocatable: units, ..Gpus::default() };
        node.gpus = map(&[(&*format!("nvidia.com/mig-{profile}"), gpus)]);
        node.free_since_ms = Some(NOW_MS - 9 * HOUR_MS);
        node.without_gpu_pods_since_ms = (name != "s1").then_some(NOW_MS - 9 * HOUR_MS);
        facts.nodes.push(node);
    }
    let with = |name: &str, pods: u32, node: Option<&str>| {
        let mut of = workload(ObjectRef::new("Deployment", "prod", name), 0, pods, "");
        of.template.containers[0].limits = map(&[("nvidia.com/mig-1g.10gb", 1)]);
        of.template.requests = Resources::pod(100, GIB);
        of.pods.iter_mut().for_each(|pod| pod.node = node.map(str::to_owned));
        of
    };
    facts.workloads.push(with("holds", 56, Some("s1")));
    facts.workloads.push(with("waits", count, None));
    audit(&facts)
}

#[test]
fn a_node_that_another_layout_lets_serve_waiting_pods_is_not_removed() {
    let removed = |found: &[Finding]| {
        let of_check = found.iter().filter(|finding| finding.check.id == "AUT-03");
        let removed = of_check.filter(|finding| !finding.claims.is_empty());
        removed.map(|finding| finding.object.name.clone()).collect::<Vec<_>>()
    };
    // One node serves 56 of them, and the other is needed for one more.
    let some = waiting_for_sevenths(56);
    assert_eq!(removed(&some), ["h2"]);
    assert_eq!(removed(&waiting_for_sevenths(57)), [""; 0]);
    let waits = some.iter().find(|finding| finding.check.id == "SHR-08").expect("it is found");
    assert_eq!((waits.claims.len(), waits.most_milli), (8, Some(8_000)));
    assert!(waits.claims.iter().all(|claim| {
        let free = [FreeCause::NoDemand, FreeCause::TypeMismatch];
        free.map(|cause| DeviceState::Free(Some(cause))).iter().all(|of| claim.states.contains(of))
    }));
    let mut of_h1 = some.iter().filter(|finding| finding.object.name == "h1");
    let kept = of_h1.find(|finding| finding.check.id == "AUT-03").expect("it is found");
    assert!(kept.stays.contains("h1") && waits.stays.contains("h1"), "{kept:?}");
    assert!(kept.fix_example().starts_with("keep the node"), "{}", kept.fix_example());
}

/// An H100 has a profile that is nearly as large as one of the H200, under another name.
#[test]
fn a_node_that_could_provide_a_mig_instance_has_it_under_the_requested_name() {
    let node_for = |resource: &str, nodes: &[(&str, &str, &str)]| {
        let mut facts = Facts { now_ms: NOW_MS, ..Facts::default() };
        for (name, model, offers) in nodes {
            let mut node = gpu_node(name, model);
            node.node.taints.clear();
            let model = Some((*model).to_owned());
            let gpus = Gpus { built_in: 3, allocatable: 3, model, ..Gpus::default() };
            node.gpus = map(&[(*offers, gpus)]);
            facts.nodes.push(node);
        }
        let mut asks = workload(ObjectRef::new("Deployment", "prod", "rank"), 0, 4, "h100");
        asks.template.containers[0].limits = map(&[(resource, 1)]);
        asks.pods.iter_mut().for_each(|pod| pod.node = None);
        facts.workloads.push(asks);
        let mut found = audit(&facts);
        found.retain(|finding| finding.check.id == "SHR-08");
        found.first().map(|finding| finding.evidence[1].value.clone())
    };
    let h100 = ("h100", "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-1g.20gb");
    let h200 = ("h200", "NVIDIA-H200", "nvidia.com/mig-7g.141gb");
    let asked = "nvidia.com/mig-1g.18gb";
    assert_eq!(node_for(asked, &[h100, h200]).as_deref(), Some("h200"));
    assert!(node_for(asked, &[h100]).is_some_and(|none| none.starts_with("none: ")));
    // A driver has one name for a profile: that of the table, if no node with such GPUs shows it.
    let cut = ("cut", "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig-1g.10gb");
    let shows = ("shows", "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig-3g.39gb");
    let (old, new) = ("nvidia.com/mig-3g.39gb", "nvidia.com/mig-3g.40gb");
    let none = |name: &str| {
        Some(format!("none: the GPUs that these pods may use offer this profile as {name}"))
    };
    assert_eq!(node_for(new, &[cut]).as_deref(), Some("cut"));
    assert_eq!(node_for(old, &[cut]), none("3g.40gb"));
    assert_eq!(node_for(old, &[cut, shows]).as_deref(), Some("cut"));
    assert_eq!(node_for(new, &[cut, shows]), none("3g.39gb"));
    // What GPUs of another model show says nothing, whatever label names the model.
    let of_h100 = ("cut", "NVIDIA-H100-80GB-HBM3", "nvidia.com/mig-1g.10gb");
    assert_eq!(node_for(new, &[of_h100, shows]).as_deref(), Some("cut"));
    let shows = ("shows", "NVIDIA-A100-80GB-PCIe", "nvidia.com/mig-3g.39gb");
    assert_eq!(node_for(new, &[cut, shows]), none("3g.39gb"));
}
