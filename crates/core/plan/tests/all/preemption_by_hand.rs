//! Preemptions that can be followed with pencil and paper.

use dovetail_model::{
    Action, Bounds, Budget, Device, DeviceRequest, Event, Holding, HoldingPhase, Job, JobId,
    Knowledge, Node, Owner, PendingReason, Plan, PodId, Queue, ReservationId, Snapshot,
};
use dovetail_plan::{Batch, PreemptionConfig};

use crate::by_hand::{World, asks, placed, whole};

/// Nodes with so many GPUs each, on which jobs stop others.
fn nodes(gpus: &[usize]) -> World {
    let node =
        |(at, gpus): (usize, &usize)| Node::plain(&format!("n{at}"), 64_000, 100, *gpus, "h100");
    nodes_of(gpus.iter().enumerate().map(node).collect())
}

fn nodes_of(nodes: Vec<Node>) -> World {
    let preemption = PreemptionConfig {
        enabled: true,
        default_grace_ms: 30,
        slack_ms: 10,
        ..PreemptionConfig::default()
    };
    World::with(&Snapshot { nodes, ..Snapshot::default() }, preemption)
}

impl World {
    /// Submits `pods` pods of so many GPUs.
    fn ask(&mut self, priority: i32, pods: u32, gpus: u16, change: impl FnOnce(&mut Job)) -> Plan {
        let job = |job: &mut Job| {
            job.priority = priority;
            (job.pod_sets[0].min, job.pod_sets[0].max) = (pods, pods);
            change(job);
        };
        self.submit(job, asks(whole(gpus)))
    }

    fn pod_ends(&mut self, job: u64, ordinal: u32) -> Plan {
        self.step(Event::pod_ended(pod(job, ordinal)))
    }
}

fn pod(job: u64, ordinal: u32) -> PodId {
    PodId { job: JobId(job), pod_set: 0, ordinal }
}

fn victims(plan: &Plan) -> Vec<(u64, u32)> {
    let of = |action: &Action| match action {
        Action::Preempt { victims, .. } => victims.clone(),
        _ => Vec::new(),
    };
    plan.actions.iter().flat_map(of).map(|pod| (pod.job.0, pod.ordinal)).collect()
}

fn gives_back(plan: &Plan, job: u64) -> bool {
    plan.actions.contains(&Action::GivenBack { job: JobId(job) })
}

fn waits(plan: &Plan, job: u64) -> Option<PendingReason> {
    plan.actions.iter().find_map(|action| match action {
        Action::Wait { job: waiting, reason } if waiting.0 == job => Some(*reason),
        _ => None,
    })
}

#[test]
fn the_lowest_priority_goes_and_its_room_is_kept() {
    let mut world = nodes(&[4, 4]);
    assert_eq!(placed(&world.ask(2, 1, 4, |_| {})).len(), 1);
    assert_eq!(placed(&world.ask(1, 1, 4, |_| {})).len(), 1);
    let plan = world.ask(5, 1, 4, |_| {});
    assert_eq!(victims(&plan), [(2, 0)]);
    assert_eq!(waits(&plan, 3), Some(PendingReason::WaitingForReservation));
    // Others of the same priority find nobody cheaper, and do not get what is freed.
    let plan = world.ask(5, 1, 4, |_| {});
    assert_eq!(victims(&plan), [(1, 0)]);
    let plan = world.ask(4, 1, 1, |_| {});
    assert_eq!((victims(&plan), placed(&plan)), (vec![], vec![]));
    let plan = world.pod_ends(2, 0);
    let bound = |plan: &Plan| -> Vec<u64> {
        let of = |action: &Action| match action {
            Action::Bind { pod, .. } => Some(pod.job.0),
            _ => None,
        };
        plan.actions.iter().filter_map(of).collect()
    };
    assert_eq!(bound(&plan), [3]);
    assert_eq!(bound(&world.pod_ends(1, 0)), [4]);
}

#[test]
fn a_gang_goes_as_a_whole_and_an_elastic_one_down_to_its_smallest_size() {
    let mut world = nodes(&[2, 2]);
    world.ask(0, 2, 2, |_| {});
    assert_eq!(victims(&world.ask(1, 1, 1, |_| {})), [(1, 0), (1, 1)]);

    let mut world = nodes(&[4]);
    world.ask(0, 1, 1, |job| job.pod_sets[0].max = 4);
    assert_eq!(victims(&world.ask(1, 1, 2, |_| {})), [(1, 2), (1, 3)]);
    assert_eq!(placed(&world.pod_ends(1, 3)), []);
    assert_eq!(placed(&world.pod_ends(1, 2)).len(), 1);
    // One pod is left, which only goes with the job.
    assert_eq!(victims(&world.ask(1, 1, 2, |_| {})), [(1, 0), (1, 1)]);
}

/// Each of its pods has a node of its own, and the first is where all the others cost as much.
#[test]
fn of_an_elastic_job_the_last_pod_goes_first() {
    let mut world = nodes(&[1, 1, 1, 1]);
    assert_eq!(placed(&world.ask(0, 1, 1, |job| job.pod_sets[0].max = 4)).len(), 4);
    for pod in [3, 2, 1] {
        assert_eq!(victims(&world.ask(1, 1, 1, |_| {})), [(1, pod)]);
    }
    assert_eq!(victims(&world.ask(1, 1, 1, |_| {})), [(1, 0)]);
}

#[test]
fn nobody_is_stopped_in_vain_or_by_whom_it_must_not_be() {
    let mut world = nodes(&[4]);
    world.ask(3, 1, 2, |job| job.preemption.is_protected = true);
    world.ask(0, 1, 2, |_| {});
    // Even with the other gone there is no room for four, nor for one that does not preempt.
    assert_eq!(victims(&world.ask(9, 1, 4, |_| {})), []);
    assert_eq!(victims(&world.ask(9, 1, 1, |job| job.preemption.never_preempts = true)), []);
    assert_eq!(victims(&world.ask(0, 1, 1, |_| {})), []);
    assert_eq!(victims(&world.ask(9, 2, 1, |_| {})), [(2, 0)]);
}

#[test]
fn who_leaves_anyway_is_waited_for() {
    let mut world = nodes(&[2, 2]);
    world.ask(0, 1, 2, |_| {});
    world.ask(0, 1, 2, |_| {});
    world.step(Event::Ending { job: JobId(1), expected_end_ms: None });
    let plan = world.ask(9, 1, 2, |_| {});
    assert_eq!(victims(&plan), []);
    assert_eq!(placed(&world.end(1)).len(), 1);
}

/// One pod is leaving a full node. When it is late its room is nobody's hope, and the one on the
/// other node goes.
#[test]
fn who_does_not_leave_in_time_is_waited_for_no_longer() {
    let mut world = nodes(&[2, 2]);
    world.ask(0, 1, 2, |_| {});
    world.ask(0, 1, 2, |_| {});
    world.step(Event::Ending { job: JobId(1), expected_end_ms: None });
    assert_eq!(victims(&world.ask(9, 1, 2, |_| {})), []);
    world.now_ms += 100;
    let held = world.engines[0].snapshot().holdings;
    let leaves = |held: &Holding| matches!(held.phase, HoldingPhase::Releasing { .. });
    let late = held.into_iter().find(leaves).expect("one leaves");
    let phase = HoldingPhase::Releasing { expected_end_ms: Some(world.now_ms) };
    let plan = world.step(Event::HeldChanged(Box::new(Holding { phase, ..late })));
    assert_eq!(victims(&plan), [(2, 0)]);
    assert_eq!(placed(&world.end(1)).len(), 1, "it has gone after all");
}

/// Such as on a node that does not answer: the other one is where room is wanted.
#[test]
fn a_gang_of_which_one_pod_is_late_with_ending_can_be_stopped_wherever_it_is() {
    let mut world = nodes(&[1, 2]);
    world.ask(0, 2, 1, |_| {});
    let ends =
        world.engines[0].snapshot().holdings.into_iter().find(|held| held.node == "n0".into());
    let ends = Holding {
        phase: HoldingPhase::Releasing { expected_end_ms: Some(0) },
        ..ends.expect("a pod")
    };
    let Owner::Pod(pod) = ends.owner else { panic!("{ends:?}") };
    world.step(Event::HeldChanged(Box::new(ends)));
    assert_eq!(victims(&world.ask(9, 1, 2, |_| {})), [(1, 1 - pod.ordinal)]);
    assert_eq!(placed(&world.pod_ends(1, 1 - pod.ordinal)).len(), 1);
}

/// An elastic gang of four of which two should have ended long ago: the other two are its smallest
/// size, and go together.
#[test]
fn who_is_ending_keeps_nobodys_gang_together() {
    let mut world = nodes(&[1, 3]);
    world.ask(0, 2, 1, |job| job.pod_sets[0].max = 4);
    let held = world.engines[0].snapshot().holdings;
    let first_of = |name: &str| held.iter().find(|held| held.node == name.into()).cloned();
    for ends in ["n0", "n1"].map(|name| first_of(name).expect("a pod")) {
        let phase = HoldingPhase::Releasing { expected_end_ms: Some(0) };
        world.step(Event::HeldChanged(Box::new(Holding { phase, ..ends })));
    }
    assert_eq!(victims(&world.ask(1, 1, 1, |_| {})).len(), 2);
}

#[test]
fn what_is_kept_in_vain_is_given_back() {
    let mut world = nodes(&[2]);
    world.ask(0, 1, 2, |_| {});
    assert_eq!(victims(&world.ask(5, 1, 1, |_| {})), [(1, 0)]);
    world.ask(0, 1, 1, |_| {});
    // The preemptor goes: the room is for everybody.
    let plan = world.end(2);
    assert!(gives_back(&plan, 2));
    assert_eq!(placed(&world.pod_ends(1, 0)).len(), 1);

    let mut world = nodes(&[2, 2]);
    world.ask(0, 1, 2, |_| {});
    world.ask(1, 1, 2, |_| {});
    assert_eq!(victims(&world.ask(5, 1, 1, |_| {})), [(1, 0)]);
    world.now_ms += 40;
    // It did not leave in time: somebody else must.
    let plan = world.step(Event::Tick);
    assert!(gives_back(&plan, 3));
    assert_eq!(victims(&plan), [(2, 0)]);
}

#[test]
fn a_higher_priority_takes_over_what_is_kept() {
    let mut world = nodes(&[2]);
    world.ask(0, 1, 2, |_| {});
    assert_eq!(victims(&world.ask(5, 1, 2, |_| {})), [(1, 0)]);
    let plan = world.ask(7, 1, 2, |_| {});
    assert!(gives_back(&plan, 2) && victims(&plan).is_empty(), "{plan:?}");
    let plan = world.pod_ends(1, 0);
    assert!(matches!(plan.actions[0], Action::Bind { pod, .. } if pod.job == JobId(3)), "{plan:?}");
}

#[test]
fn a_higher_priority_leaves_what_is_kept_beside_it() {
    let asked_after = |gpus: u16| {
        let mut world = nodes(&[4]);
        world.ask(0, 1, 2, |_| {});
        world.ask(1, 1, 2, |_| {});
        assert_eq!(victims(&world.ask(5, 1, 1, |_| {})), [(1, 0)]);
        let plan = world.ask(7, 1, gpus, |_| {});
        assert_eq!(victims(&plan), [(2, 0)]);
        (world, plan)
    };
    let (mut world, plan) = asked_after(3);
    assert!(!gives_back(&plan, 3), "{plan:?}");
    // Nobody gets what either of them waits for.
    assert_eq!(placed(&world.ask(0, 1, 1, |_| {})), []);
    let plan = world.pod_ends(1, 0);
    assert!(matches!(plan.actions[0], Action::Bind { pod, .. } if pod.job == JobId(3)), "{plan:?}");
    let plan = world.pod_ends(2, 0);
    assert!(matches!(plan.actions[0], Action::Bind { pod, .. } if pod.job == JobId(4)), "{plan:?}");
    let (_, plan) = asked_after(4);
    assert!(gives_back(&plan, 3), "{plan:?}");
}

#[test]
fn two_that_wait_for_the_same_pod_do_not_both_count_on_it() {
    let mut world = nodes(&[4]);
    world.ask(0, 1, 4, |_| {});
    assert_eq!(victims(&world.ask(5, 1, 3, |_| {})), [(1, 0)]);
    let plan = world.ask(5, 1, 3, |_| {});
    assert_eq!((victims(&plan), waits(&plan, 3)), (vec![], Some(PendingReason::Unschedulable)));
    let plan = world.ask(5, 1, 2, |_| {});
    assert_eq!(waits(&plan, 4), Some(PendingReason::Unschedulable));
    assert_eq!(placed(&world.pod_ends(1, 0)).len(), 1);
}

#[test]
fn what_others_took_of_a_claim_is_not_kept_and_hinders_nobody() {
    let mut world = nodes(&[2]);
    world.ask(0, 1, 1, |_| {});
    world.ask(0, 1, 1, |_| {});
    let plan = world.ask(5, 1, 1, |_| {});
    assert_eq!(victims(&plan), [(2, 0)]);
    // Somebody else binds to the device that is to be free, and stays.
    let snapshot = world.engines[0].snapshot();
    let of_victim = |held: &&Holding| held.owner == Owner::Pod(pod(2, 0));
    let victim = snapshot.holdings.iter().find(of_victim).expect("still there").clone();
    let owner = Owner::Foreign("default/other".to_owned());
    let phase = HoldingPhase::Held { expected_end_ms: None };
    world.step(Event::ForeignHeld(Box::new(Holding { owner, phase, ..victim })));
    assert_eq!(victims(&world.ask(5, 1, 1, |_| {})), [(1, 0)]);
}

#[test]
fn what_is_free_beside_a_victim_on_a_claimed_device_is_kept_too() {
    let cut = Device { replicas: 4, ..Device::plain("h100", 100) };
    let node = Node { devices: vec![cut], ..Node::plain("n", 64_000, 100, 0, "") };
    let mut world = nodes_of(vec![node]);
    let replica = |world: &mut World, priority: i32| {
        let job = |job: &mut Job| job.priority = priority;
        world.submit(job, asks(DeviceRequest::Replicas { count: 1 }))
    };
    assert_eq!(placed(&replica(&mut world, 0)).len(), 1);
    assert_eq!(victims(&world.ask(5, 1, 1, |_| {})), [(1, 0)]);
    // Three replicas are free, and one held would keep the device from the job that asks for all of
    // it.
    assert_eq!(placed(&replica(&mut world, 5)), []);
    let plan = world.pod_ends(1, 0);
    assert!(matches!(plan.actions[..], [Action::Bind { pod, .. }, ..] if pod.job == JobId(2)));
}

#[test]
fn a_lost_device_of_a_counted_node_does_not_hide_what_a_victim_would_free() {
    let node = Node { knowledge: Knowledge::Counted, ..Node::plain("n", 64_000, 100, 4, "h100") };
    let mut world = nodes_of(vec![node.clone()]);
    assert_eq!(placed(&world.ask(1, 1, 1, |_| {})).len(), 1);
    assert_eq!(placed(&world.ask(0, 1, 2, |_| {})).len(), 1);
    assert_eq!(placed(&world.ask(1, 1, 1, |_| {})).len(), 1);
    let mut lost = node;
    lost.devices[0].healthy = false;
    // Four are held of three. When the two of job 2 have gone, those of jobs 1 and 3 are all that
    // is held.
    world.step(Event::NodeChanged(Box::new(lost)));
    assert_eq!(victims(&world.ask(1, 1, 1, |_| {})), [(2, 0)]);
    let plan = world.pod_ends(2, 0);
    assert!(matches!(plan.actions[..], [Action::Bind { pod, .. }, ..] if pod.job == JobId(4)));
}

#[test]
fn budgets_are_the_last_resort_or_a_limit() {
    let order = |respect_budgets: bool, both: bool| {
        let mut world = nodes(&[1, 1]);
        if respect_budgets {
            let config =
                PreemptionConfig { enabled: true, respect_budgets, ..PreemptionConfig::default() };
            let snapshot = world.engines[0].snapshot();
            world = World::with(&snapshot, config);
        }
        let counted = |name: &str| {
            let mut requirement = asks(whole(1));
            requirement.counts_into.insert(name.to_owned());
            requirement
        };
        world.submit(|_| {}, counted("frozen"));
        world.submit(|job| job.priority = 1, counted(if both { "frozen" } else { "free" }));
        let budget = Budget { name: "frozen".to_owned(), disruptions_allowed: 0 };
        world.step(Event::BudgetChanged(budget));
        let plan = world.ask(9, 1, 1, |_| {});
        victims(&plan)
    };
    assert_eq!(order(false, false), [(2, 0)], "a higher priority rather than a violation");
    assert_eq!(order(false, true), [(1, 0)]);
    assert_eq!(order(true, false), [(2, 0)]);
    assert_eq!(order(true, true), []);
}

#[test]
fn who_goes_before_others_that_ask_for_the_same_may_stop_more_than_they() {
    let mut world = nodes(&[1]);
    world.ask(5, 1, 1, |_| {});
    assert_eq!(victims(&world.ask(5, 1, 1, |_| {})), []);
    assert_eq!(victims(&world.ask(6, 1, 1, |_| {})), [(1, 0)]);
}

#[test]
fn what_one_cycle_does_not_search_for_the_next_one_does() {
    let run = |max_operations: u64| {
        let config =
            PreemptionConfig { enabled: true, max_operations, ..PreemptionConfig::default() };
        let mut world = World::with(&nodes(&[1, 1, 2]).engines[0].snapshot(), config);
        for gpus in [1, 1, 2] {
            world.ask(0, 1, gpus, |_| {});
        }
        // Nothing starts before all of them wait.
        world.ask(0, 1, 1, |_| {});
        for gpus in [1, 2] {
            world.ask(9, 1, gpus, |job| job.preemption.never_preempts = true);
        }
        let engine = &mut world.engines[0];
        for job in [5, 6] {
            let mut job = engine.job(JobId(job)).expect("it waits").clone();
            job.preemption.never_preempts = false;
            let changed = Batch::pending(Event::JobChanged(Box::new(job)));
            engine.step(changed, 0).expect("a job that waits");
        }
        let plan = engine.step(Batch::decision(), 0).expect("a decision");
        let due_ms = engine.due_ms();
        let next = engine.step(Event::Tick, 0).expect("time stands still");
        (victims(&plan).len(), due_ms, victims(&next).len(), engine.due_ms())
    };
    let enough = (1..).find(|limit| run(*limit).0 == 2).expect("a limit that is enough");
    assert!(enough > 2, "{enough}");
    assert_eq!(run(enough - 1), (1, Some(0), 1, Some(90_000)));
    assert_eq!(run(1), (0, Some(0), 0, None), "each search has all there is, and is given up");
}

#[test]
fn who_is_told_to_stop_counts_for_budgets_that_do_not_know_it_yet() {
    let config =
        PreemptionConfig { enabled: true, respect_budgets: true, ..PreemptionConfig::default() };
    let mut world = World::with(&nodes(&[1, 1]).engines[0].snapshot(), config);
    for _ in 0..2 {
        let mut requirement = asks(whole(1));
        requirement.counts_into.insert("web".to_owned());
        world.submit(|_| {}, requirement);
    }
    let allow = |disruptions_allowed: i64| {
        Event::BudgetChanged(Budget { name: "web".to_owned(), disruptions_allowed })
    };
    world.step(allow(1));
    assert_eq!(victims(&world.ask(9, 1, 1, |_| {})).len(), 1);
    assert_eq!(victims(&world.ask(9, 1, 1, |_| {})), []);
    // The second one is allowed by now.
    assert_eq!(victims(&world.step(allow(2))).len(), 1);
}

#[test]
fn a_queue_at_its_limit_makes_room_in_itself_and_not_in_others() {
    let mut world = nodes(&[2, 2, 2]);
    let limited = |name: &str| Queue { limit: Bounds::gpus(Some(2_000)), ..Queue::named(name) };
    world.step(Event::QueueChanged(Box::new(limited("ours"))));
    let ours = |job: &mut Job| job.queue = "ours".to_owned();
    world.ask(0, 1, 1, ours);
    world.ask(1, 1, 1, ours);
    world.ask(0, 1, 2, |_| {});
    // There is room, and the queue may hold two: its own least important pod goes, however cheap
    // others are.
    let plan = world.ask(5, 1, 1, ours);
    assert_eq!(victims(&plan), [(1, 0)]);
    assert_eq!(waits(&plan, 4), Some(PendingReason::WaitingForReservation));
    // What it gives back is kept: a pod as important, and one less, find nothing of it.
    assert_eq!(victims(&world.ask(5, 1, 1, ours)), [(2, 0)]);
    let plan = world.ask(1, 1, 1, ours);
    assert_eq!((victims(&plan), waits(&plan, 6)), (vec![], Some(PendingReason::WaitingForQuota)));
    assert_eq!(placed(&world.pod_ends(2, 0)).len(), 1);
    let block = world.engines[0].list().quota_block(JobId(6)).expect("it waits for quota");
    assert_eq!((block.used, block.asked, block.most), (2_000, 1_000, 2_000));
    assert_eq!(placed(&world.pod_ends(1, 0)).len(), 1);
}

#[test]
fn what_leaves_a_queue_is_kept_for_whom_it_leaves() {
    let mut world = nodes(&[2, 2]);
    let ours = |job: &mut Job| job.queue = "ours".to_owned();
    world.step(Event::QueueChanged(Box::new(Queue {
        limit: Bounds::gpus(Some(3_000)),
        ..Queue::named("ours")
    })));
    world.ask(0, 2, 1, ours);
    world.ask(9, 1, 1, ours);
    // The gang goes for one GPU: the first that it gives back starts the pod, the other one is for
    // others.
    assert_eq!(victims(&world.ask(5, 1, 1, ours)), [(1, 0), (1, 1)]);
    let plan = world.ask(0, 1, 1, ours);
    assert_eq!(waits(&plan, 4), Some(PendingReason::WaitingForQuota));
    let started = |plan: &Plan, job: u64| {
        let of_it =
            |action: &Action| matches!(action, Action::Bind { pod, .. } if pod.job.0 == job);
        placed(plan).len() == 1 && plan.actions.iter().any(of_it)
    };
    assert!(started(&world.pod_ends(1, 1), 3));
    assert!(started(&world.pod_ends(1, 0), 4));
    // A queue that may hold less now gives back what it can no longer use.
    let mut world = nodes(&[2]);
    world.step(Event::QueueChanged(Box::new(Queue::named("ours"))));
    world.ask(0, 1, 2, |_| {});
    assert_eq!(victims(&world.ask(5, 1, 2, ours)), [(1, 0)]);
    let none = Queue { limit: Bounds::gpus(Some(0)), ..Queue::named("ours") };
    assert!(!gives_back(&world.step(Event::QueueChanged(Box::new(none))), 2));
    let plan = world.pod_ends(1, 0);
    assert!(gives_back(&plan, 2) && placed(&plan).is_empty(), "{plan:?}");
}

#[test]
fn a_restart_remembers_what_is_kept() {
    let mut world = nodes(&[2]);
    world.ask(0, 1, 2, |_| {});
    world.ask(5, 1, 1, |_| {});
    let snapshot = world.engines[0].snapshot();
    let [claim] = snapshot.claims.as_slice() else { panic!("{:?}", snapshot.claims) };
    assert_eq!((claim.job, claim.until_ms), (JobId(2), 40));
    assert!(claim.reservation >= ReservationId(1 << 31));
    let phase = snapshot.holdings[0].phase;
    assert_eq!(phase, HoldingPhase::Releasing { expected_end_ms: Some(40) });
    let config = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let mut again = World::with(&snapshot, config);
    assert_eq!(again.engines[0].snapshot(), snapshot);
    // Job 2 is there already, as far as the names of this world go.
    again.step(Event::Tick);
    let plan = again.step(Event::pod_ended(pod(1, 0)));
    assert!(matches!(plan.actions[..], [Action::Bind { pod, .. }] if pod.job == JobId(2)));
}
