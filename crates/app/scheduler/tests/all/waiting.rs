//! What waiting pods say, and for whom autoscalers buy nodes.

use std::sync::Arc;

use dovetail_control::status::{self, Reason, WaitingReason, obstacles};
use dovetail_model::topology::Level;
use dovetail_model::{
    Action, Bounds, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase, Job,
    JobId, Node, NodeName, Owner, PendingReason, Queue, Requirement, Resources, Snapshot, Topology,
};
use dovetail_plan::{Engine, EngineConfig};
use dovetail_translate::Rules;

/// What a job says for which nobody is to be stopped that is not stopping.
fn waiting(
    engine: &mut Engine,
    job: JobId,
    reason: PendingReason,
    nodes: &[NodeName],
    rules: &Rules,
) -> Option<WaitingReason> {
    status::waiting(engine, job, reason, nodes, rules, |_| true)
}

struct Cluster {
    engine: Engine,
    nodes: Vec<NodeName>,
}

impl Cluster {
    fn of(names: &[&str]) -> Self {
        let gpus = |name: &&str| Node::plain(name, 8_000, 64 << 30, 2, "H100");
        let nodes: Vec<Node> = names.iter().map(gpus).collect();
        let names = nodes.iter().map(|node| node.name.clone()).collect();
        let snapshot = Snapshot { nodes, ..Snapshot::default() };
        let engine = Engine::new(EngineConfig::default(), &snapshot).unwrap();
        Self { engine, nodes: names }
    }

    /// Submits a job of so many pods; what it says if it has to wait.
    fn submit(&mut self, id: u64, pods: u32, gpus: u16) -> Option<WaitingReason> {
        let job = job(id, pods, gpus);
        let plan = self.engine.step(Event::Submitted(Box::new(job)), 0).unwrap();
        let said = plan.actions.iter().find_map(|action| match action {
            Action::Wait { job, reason } if job.0 == id => Some(*reason),
            _ => None,
        })?;
        waiting(&mut self.engine, JobId(id), said, &self.nodes, &Rules::default())
    }

    fn hold(&mut self, node: &str, phase: HoldingPhase) {
        let devices = (0..2).map(|place| (place, DeviceAmount::share(1000, 0))).collect();
        let holding = Holding {
            id: HoldingId(0),
            node: node.into(),
            owner: Owner::Foreign("others".to_owned()),
            phase,
            reservation: None,
            resources: Resources::pod(1_000, 0),
            devices,
            counts_into: Default::default(),
            attachments: Default::default(),
        };
        self.engine.step(Event::ForeignHeld(Box::new(holding)), 0).unwrap();
    }
}

fn job(id: u64, pods: u32, gpus: u16) -> Job {
    let requirement = Requirement {
        resources: Resources::pod(1_000, 1 << 30),
        device: DeviceRequest::Whole { count: gpus, same_island: false },
        ..Requirement::default()
    };
    let mut job = Job::single(JobId(id), &format!("team/job-{id}"), 0, Arc::new(requirement));
    (job.pod_sets[0].min, job.pod_sets[0].max) = (pods, pods);
    job
}

/// When Cluster Autoscaler and Karpenter buy a node for a pending pod: a condition `PodScheduled`
/// that is false for the reason `Unschedulable` (`pod.ConditionStatus`, `pod.FailedToSchedule`).
fn autoscalers_act(waits: &WaitingReason) -> bool {
    waits.word() == "Unschedulable"
}

#[test]
fn who_lacks_nodes_says_what_they_lack() {
    let mut cluster = Cluster::of(&["a", "b"]);
    let waits = cluster.submit(1, 1, 3).unwrap();
    assert_eq!(waits.message, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
    assert!(autoscalers_act(&waits));
    let waits = cluster.submit(2, 3, 2).unwrap();
    let expected = "0/2 nodes are available for all 3 pods at once: 2 could take one of them.";
    assert_eq!(waits.message, expected);
    assert!(autoscalers_act(&waits));
}

#[test]
fn who_is_kept_out_by_a_topology_level_says_which() {
    let node = |(at, rack): (usize, &str)| {
        let mut node = Node::plain(&format!("n{at}"), 8_000, 64 << 30, 2, "H100");
        node.labels.insert("rack".to_owned(), rack.to_owned());
        node
    };
    let nodes: Vec<Node> = ["r1", "r1", "r2", "r2"].into_iter().enumerate().map(node).collect();
    let names = nodes.iter().map(|node| node.name.clone()).collect();
    let levels = vec![Level { name: "rack".to_owned(), label: "rack".to_owned() }];
    let snapshot = Snapshot { nodes, topology: Topology { levels }, ..Snapshot::default() };
    let engine = Engine::new(EngineConfig::default(), &snapshot).unwrap();
    let mut cluster = Cluster { engine, nodes: names };
    let mut says = |id: u64, pods: u32| {
        let mut job = job(id, pods, 2);
        job.topology.required = Some("rack".to_owned());
        cluster.engine.step(Event::Submitted(Box::new(job)), 0).unwrap();
        let said = PendingReason::Unschedulable;
        waiting(&mut cluster.engine, JobId(id), said, &cluster.nodes, &Rules::default())
            .unwrap()
            .message
    };
    assert_eq!(
        says(1, 3),
        "0/4 nodes are available for all 3 pods at once within one rack, as they require: 4 could take one of them; \
         without that requirement they would start now."
    );
    assert!(says(2, 5).ends_with("nor would they start without that requirement."));
}

#[test]
fn nobody_buys_nodes_for_who_waits_for_something_else() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.submit(1, 1, 3).unwrap();
    let second = cluster.submit(2, 1, 3).unwrap();
    assert_eq!(second.reason, Reason::Pending(PendingReason::WaitingForTurn));
    assert!(!autoscalers_act(&second));

    let mut cluster = Cluster::of(&["a"]);
    cluster.hold("a", HoldingPhase::Held { expected_end_ms: None });
    assert!(autoscalers_act(&cluster.submit(1, 1, 2).unwrap()), "what is held is not ending");
    let said = PendingReason::Unschedulable;

    let mut cluster = Cluster::of(&["a"]);
    let limited = Queue { limit: Bounds::gpus(Some(1_000)), ..Queue::named("") };
    cluster.engine.step(Event::QueueChanged(Box::new(limited)), 0).unwrap();
    let over = cluster.submit(1, 1, 2).unwrap();
    assert_eq!(over.word(), "WaitingForQuota");
    let numbers = "queue default is limited to 1 nvidia.com/gpu: it uses 0, and 2 more would be \
         needed, more than the queue may ever use: raise its quota or limit, or request less";
    assert_eq!(over.message, numbers);
    assert!(!autoscalers_act(&over));
    let behind = cluster.submit(2, 1, 2).unwrap();
    assert_eq!(
        behind.message,
        "other jobs that request the same resources go first; queue default uses 0 nvidia.com/gpu \
         (dominant share of the cluster: 0.0%)"
    );
    assert!(!autoscalers_act(&behind));
    for reason in [PendingReason::WaitingForReservation, PendingReason::WaitingForMembers] {
        let nodes = cluster.nodes.clone();
        let waits = waiting(&mut cluster.engine, JobId(1), reason, &nodes, &Rules::default());
        assert!(waits.is_some_and(|waits| !autoscalers_act(&waits)), "{reason:?}");
    }
    cluster.engine.step(Event::ended(JobId(1)), 0).unwrap();
    let nodes = cluster.nodes.clone();
    let rules = Rules::default();
    assert_eq!(waiting(&mut cluster.engine, JobId(1), said, &nodes, &rules), None, "it is gone");
}

#[test]
fn what_keeps_pods_off_the_nodes_is_named_as_kube_scheduler_names_it() {
    let mut cluster = Cluster::of(&["a", "b", "c"]);
    cluster.hold("a", HoldingPhase::Held { expected_end_ms: None });
    let mut job = job(1, 1, 1);
    let asks = Arc::make_mut(&mut job.pod_sets[0].requirement);
    asks.resources.cpu_milli = 7_500;
    asks.resources.extended.insert("rdma/hca".to_owned(), 1);
    let found = obstacles(&mut cluster.engine, &job, &cluster.nodes, &Rules::default());
    let found = found[0].iter().map(|one| (one.nodes, one.reason.as_str()));
    // Node a is short of GPUs, too; CPU is looked at first.
    let expected = [(2, "Insufficient rdma/hca"), (1, "Insufficient cpu")];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}
