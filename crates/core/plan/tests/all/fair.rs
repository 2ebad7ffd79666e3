//! Preset `fair`: who has used least for its weight goes first, quotas are given back and taken by
//! nobody else.

use std::collections::BTreeSet;

use dovetail_model::job::EstimateSource;
use dovetail_model::{
    Action, Axis, Bounds, Budget, Estimate, Event, HowEnded, Job, JobId, Node, PendingReason, Plan,
    PodSet, PreemptReason, Queue, Requirement, Snapshot,
};
use dovetail_order::queues::quota::UsageScope;
use dovetail_order::turn_terms::QueueTerms;
use dovetail_order::{ModelWeights, Turns};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Batch, BlockingBudgets, Engine, Order, PolicySpec, PreemptionConfig};
use std::sync::Arc;

use crate::by_hand::{World, asks, placed, whole};

const HOUR_MS: u64 = 3_600_000;

fn queue(name: &str, quota: i64, weight: u32) -> Queue {
    let guaranteed = Bounds::gpus((quota > 0).then_some(quota * 1_000));
    Queue { guaranteed, borrows: true, weight, ..Queue::named(name) }
}

fn config(by_priority: bool) -> EngineConfig {
    EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::Dovetail,
        turns: Turns::preset("fair").expect("a preset"),
        preemption: PreemptionConfig { enabled: true, by_priority, ..PreemptionConfig::default() },
        ..EngineConfig::default()
    }
}

fn snapshot(nodes: usize, queues: Vec<Queue>) -> Snapshot {
    let node = |at: usize| Node::plain(&format!("n{at}"), 64_000, 1_000, 8, "H100");
    Snapshot { nodes: (0..nodes).map(node).collect(), queues, ..Snapshot::default() }
}

/// Submits a job of a queue that runs for so long that nobody waits for its end.
fn submit(world: &mut World, queue: &str, gpus: u16, pods: u32, priority: i32) -> Plan {
    let change = |job: &mut Job| {
        job.queue = queue.to_owned();
        job.priority = priority;
        job.pod_sets = vec![PodSet::fixed("main", Arc::new(asks(whole(gpus))), pods)];
    };
    world.submit(change, asks(whole(gpus)))
}

/// The jobs that are preempted, with the reason.
fn victims(plan: &Plan) -> Option<(BTreeSet<u64>, PreemptReason)> {
    plan.actions.iter().find_map(|action| match action {
        Action::Preempt { victims, reason, .. } => {
            Some((victims.iter().map(|pod| pod.job.0).collect(), *reason))
        }
        _ => None,
    })
}

#[test]
fn a_queue_gets_back_its_quota_from_those_beyond_theirs_at_the_least_loss() {
    let queues = vec![queue("ours", 8, 1), queue("lent", 4, 1), queue("rich", 8, 1)];
    let mut world = World::under(config(false), &snapshot(2, queues));
    for _ in 0..8 {
        world.now_ms += HOUR_MS;
        assert_eq!(placed(&submit(&mut world, "lent", 1, 1, 9)).len(), 1);
    }
    assert_eq!(placed(&submit(&mut world, "rich", 8, 1, 0)).len(), 1);
    world.now_ms += HOUR_MS;
    // Of the borrowing queue, whatever its priority, those that started last lose least.
    let plan = submit(&mut world, "ours", 3, 1, 0);
    assert_eq!(victims(&plan), Some((BTreeSet::from([6, 7, 8]), PreemptReason::Reclaim)));
    for job in [6, 7, 8] {
        world.step(Event::Ended { job: JobId(job), how: HowEnded::Preempted });
    }
    assert!(world.engines[0].job(JobId(10)).is_some_and(|job| job.start_ms.is_some()));
    // One more may be taken before the other queue is down to its quota; two may not.
    assert_eq!(victims(&submit(&mut world, "ours", 2, 1, 0)), None);
    let plan = submit(&mut world, "ours", 1, 1, 0);
    assert_eq!(victims(&plan), Some((BTreeSet::from([5]), PreemptReason::Reclaim)));
    // What is beyond one's own quota is not given back.
    assert_eq!(victims(&submit(&mut world, "ours", 5, 1, 0)), None);
}

const MINUTE_MS: u64 = 60_000;

/// Of a queue without a quota, a job on all GPUs that has run for so long and writes a checkpoint
/// every ten minutes; what follows when a queue wants so many GPUs of its quota.
fn reclaimed_after(ran_ms: u64, gpus: u16) -> (World, Plan) {
    let queues = vec![queue("ours", 8, 1), queue("lent", 0, 1)];
    let mut world = World::under(config(true), &snapshot(1, queues));
    let checkpoints = |job: &mut Job| {
        job.queue = "lent".to_owned();
        job.interruption.checkpoint_interval_ms = Some(10 * MINUTE_MS);
    };
    assert_eq!(placed(&world.submit(checkpoints, asks(whole(8)))).len(), 1);
    world.now_ms += ran_ms;
    let plan = submit(&mut world, "ours", gpus, 1, 0);
    (world, plan)
}

#[test]
fn a_quota_waits_for_a_near_checkpoint_where_less_is_lost_in_sum() {
    let reclaims = Some((BTreeSet::from([1]), PreemptReason::Reclaim));
    // Two minutes of waiting for eight minutes of work, on as many GPUs.
    let (mut world, plan) = reclaimed_after(8 * MINUTE_MS, 8);
    assert_eq!(victims(&plan), None);
    let waits: Vec<u64> = (0..9)
        .filter_map(|job| world.engines[0].list().waits_for_checkpoint_ms(JobId(job)))
        .collect();
    assert_eq!(waits, [10 * MINUTE_MS]);
    world.now_ms += MINUTE_MS;
    assert_eq!(victims(&submit(&mut world, "lent", 1, 1, 0)), None);
    // Also in an engine that goes on from its snapshot.
    let mut restored = Engine::new(config(true), &world.engines[0].snapshot()).expect("good");
    let plan = loop {
        world.now_ms = world.engines[0].due_ms().expect("it wakes");
        assert_eq!(restored.due_ms(), Some(world.now_ms));
        let plan = world.step(Event::Tick);
        assert_eq!(restored.step(Event::Tick, world.now_ms).as_ref(), Ok(&plan));
        if victims(&plan).is_some() {
            break plan;
        }
    };
    assert_eq!((victims(&plan), world.now_ms), (reclaims.clone(), 10 * MINUTE_MS));
    let lost = plan.actions.iter().find_map(|action| match action {
        Action::Preempt { cost, .. } => Some(cost.work_lost_gpu_milli_ms),
        _ => None,
    });
    assert_eq!(lost, Some(0));
    // Six minutes are longer than a quota waits, and four cost more than four of work.
    for ran_min in [4, 5] {
        let (_, plan) = reclaimed_after(ran_min * MINUTE_MS, 8);
        assert_eq!(victims(&plan), reclaims, "{ran_min}");
    }
    // For a single GPU they cost less.
    let (_, plan) = reclaimed_after(6 * MINUTE_MS, 1);
    assert_eq!(victims(&plan), None);
}

/// New nodes are not what it waits for.
#[test]
fn a_job_whose_victims_write_a_checkpoint_first_waits_for_its_turn() {
    let told = |plan: &Plan| -> Vec<(u64, PendingReason)> {
        let waits = plan.actions.iter().filter_map(|action| match action {
            Action::Wait { job, reason } => Some((job.0, *reason)),
            _ => None,
        });
        waits.collect()
    };
    let (mut world, plan) = reclaimed_after(8 * MINUTE_MS, 8);
    assert_eq!(told(&plan), [(2, PendingReason::WaitingForTurn)]);
    let reasons = world.engines[0].snapshot().reasons;
    assert_eq!(reasons, [(JobId(2), PendingReason::WaitingForTurn)]);
    world.now_ms += 2 * MINUTE_MS;
    let plan = world.step(Event::Tick);
    assert!(victims(&plan).is_some(), "{plan:?}");
    assert_eq!(told(&plan), [(2, PendingReason::WaitingForReservation)]);
}

#[test]
fn nobody_takes_what_a_queue_holds_within_its_quota() {
    let queues = vec![queue("safe", 4, 1), queue("other", 0, 1)];
    let mut world = World::under(config(true), &snapshot(1, queues.clone()));
    for _ in 0..6 {
        submit(&mut world, "safe", 1, 1, 0);
    }
    submit(&mut world, "other", 2, 1, 0);
    // Two of six are borrowed, and two are the other queue's own.
    assert_eq!(victims(&submit(&mut world, "other", 5, 1, 9)), None);
    let plan = submit(&mut world, "other", 4, 1, 9);
    let (victims, reason) = victims(&plan).expect("four can go");
    assert_eq!((victims.len(), reason), (3, PreemptReason::Priority));
}

/// Nothing is lost but the restart. The queues of two jobs are told apart by how long their jobs
/// waited to start again after earlier preemptions.
#[test]
fn of_equal_losses_the_job_goes_that_is_expected_to_start_again_sooner() {
    let queues = vec![queue("ours", 8, 1), queue("slow", 0, 1), queue("quick", 0, 1)];
    for slow_first in [true, false] {
        let mut world = World::under(config(false), &snapshot(1, queues.clone()));
        let names = if slow_first { ["slow", "quick"] } else { ["quick", "slow"] };
        for name in names {
            let waited_ms = if name == "slow" { HOUR_MS } else { MINUTE_MS };
            let was_preempted = |job: &mut Job| {
                job.queue = name.to_owned();
                job.history.attempts = 1;
                job.history.preemptions = 1;
                job.history.last_end_ms = 10 * HOUR_MS - waited_ms;
            };
            world.now_ms = 10 * HOUR_MS;
            assert_eq!(placed(&world.submit(was_preempted, asks(whole(4)))).len(), 1);
        }
        // What they have done since they started is the same; so is what would be lost.
        world.now_ms += 30 * HOUR_MS;
        let plan = submit(&mut world, "ours", 4, 1, 0);
        let gone = victims(&plan).expect("one of them goes").0;
        let expected = if slow_first { 2 } else { 1 };
        assert_eq!(gone, BTreeSet::from([expected]), "{slow_first}");
        let cost = plan.actions.iter().find_map(|action| match action {
            Action::Preempt { cost, .. } => Some(*cost),
            _ => None,
        });
        let waits = cost.map(|cost| cost.requeue_gpu_milli_ms);
        assert_eq!(waits, Some(4_000 * MINUTE_MS));
    }
}

/// Whoever is evicted for a quota goes through the API, which refuses what budgets do not allow.
#[test]
fn what_is_reclaimed_stays_within_disruption_budgets() {
    let queues = vec![queue("ours", 8, 1), queue("lent", 0, 1)];
    let mut world = World::under(config(true), &snapshot(1, queues));
    let allow = |disruptions_allowed| {
        Event::BudgetChanged(Budget { name: "kept".to_owned(), disruptions_allowed })
    };
    world.step(allow(1));
    for _ in 0..8 {
        let mut requirement = asks(whole(1));
        requirement.counts_into.insert("kept".to_owned());
        world.submit(|job| job.queue = "lent".to_owned(), requirement);
    }
    assert_eq!(victims(&submit(&mut world, "ours", 2, 1, 0)), None, "two must go, one may");
    let plan = world.step(allow(2));
    let (gone, reason) = victims(&plan).expect("two may go");
    assert_eq!((gone.len(), reason), (2, PreemptReason::Reclaim));
}

/// Asking changes nothing.
fn blocking(world: &mut World, job: JobId) -> Option<BlockingBudgets> {
    let [found, naive] = world.engines.each_mut().map(|engine| {
        engine.take_search_effort();
        let before = engine.snapshot();
        let found = engine.ask().blocking_budgets(job, 100_000);
        assert_eq!(before, engine.snapshot());
        assert_eq!(engine.take_search_effort().searches, 0);
        found
    });
    assert_eq!(found, naive);
    found
}

#[test]
fn the_budgets_that_hold_up_a_reclaim_are_named() {
    let queues = vec![queue("ours", 8, 1), queue("lent", 0, 1)];
    let mut world = World::under(config(true), &snapshot(1, queues));
    let allow = |name: &str, disruptions_allowed| {
        Event::BudgetChanged(Budget { name: name.to_owned(), disruptions_allowed })
    };
    world.step(allow("kept", 1));
    world.step(allow("other", 0));
    for _ in 0..8 {
        let mut requirement = asks(whole(1));
        requirement.counts_into.insert("kept".to_owned());
        world.submit(|job| job.queue = "lent".to_owned(), requirement);
    }
    assert_eq!(victims(&submit(&mut world, "ours", 2, 1, 0)), None, "two must go, one may");
    let ours = JobId(world.last_job());
    let found = blocking(&mut world, ours).expect("a budget holds it up");
    assert_eq!((found.budgets, found.victims.len()), (vec!["kept".to_owned()], 2));
    // A job of a queue that has no quota left takes nothing from others, whatever budgets allow.
    submit(&mut world, "lent", 1, 1, 0);
    let lent = JobId(world.last_job());
    assert_eq!(blocking(&mut world, lent), None);
    world.step(allow("kept", 2));
    assert_eq!(blocking(&mut world, ours), None, "room is kept for it now");
}

/// A budget may say what it allowed before the pods had gone that were told to stop since.
#[test]
fn pods_that_were_told_to_stop_count_for_the_budget_that_is_named() {
    let queues = vec![queue("ours", 8, 1), queue("lent", 0, 1)];
    let mut world = World::under(config(true), &snapshot(1, queues));
    let budget = Budget { name: "kept".to_owned(), disruptions_allowed: 2 };
    world.step(Event::BudgetChanged(budget));
    for _ in 0..8 {
        let mut requirement = asks(whole(1));
        requirement.counts_into.insert("kept".to_owned());
        world.submit(|job| job.queue = "lent".to_owned(), requirement);
    }
    let (gone, _) = victims(&submit(&mut world, "ours", 1, 1, 0)).expect("two may go");
    assert_eq!(gone.len(), 1);
    assert_eq!(victims(&submit(&mut world, "ours", 2, 1, 0)), None, "two must go, one more may");
    let ours = JobId(world.last_job());
    let found = blocking(&mut world, ours).expect("a budget holds it up");
    assert_eq!((found.budgets, found.victims.len()), (vec!["kept".to_owned()], 2));
}

#[test]
fn bounds_refute_a_gang_that_fits_whoever_goes() {
    let queues = vec![queue("ours", 800, 1), queue("lent", 0, 1)];
    let snapshot = snapshot(200, queues);
    let mut engine = Engine::new(config(false), &snapshot).expect("a good world");
    for at in 0..1_600 {
        let mut job = Job::single(JobId(at), "low", 0, Arc::new(asks(whole(1))));
        job.queue = "lent".to_owned();
        // One pod of each node stays.
        job.preemption.is_protected = at % 8 == 0;
        let batch = Batch::pending(Event::Submitted(Box::new(job)));
        engine.step(batch, 0).expect("a good job");
    }
    engine.step(Batch::decision(), 1).expect("a decision");
    engine.take_search_effort();
    let gang = |id: u64, gpus: u16| {
        let mut job = Job::single(JobId(id), "gang", 2, Arc::default());
        job.queue = "ours".to_owned();
        job.pod_sets = vec![PodSet::fixed("main", Arc::new(asks(whole(gpus))), 100)];
        Event::Submitted(Box::new(job))
    };
    let plan = engine.step(gang(10_000, 8), 2).expect("a good job");
    assert_eq!(victims(&plan), None);
    let effort = engine.take_search_effort();
    assert_eq!((effort.searches, effort.refuted), (1, 1));
    assert!(effort.operations < 1_000, "{effort:?}");
    let plan = engine.step(gang(10_001, 7), 3).expect("a good job");
    assert_eq!(victims(&plan).map(|(victims, _)| victims.len()), Some(700));
}

#[test]
fn a_gang_preempts_a_thousand_pods_none_of_which_can_be_spared() {
    let queues = vec![queue("ours", 1_024, 1), queue("lent", 0, 1)];
    let mut engine = Engine::new(config(false), &snapshot(128, queues)).expect("a good world");
    for at in 0..1_024 {
        let mut job = Job::single(JobId(at), "low", 0, Arc::new(asks(whole(1))));
        job.queue = "lent".to_owned();
        let batch = Batch::pending(Event::Submitted(Box::new(job)));
        engine.step(batch, 0).expect("a good job");
    }
    engine.step(Batch::decision(), 1).expect("a decision");
    engine.take_search_effort();
    let mut gang = Job::single(JobId(10_000), "gang", 2, Arc::default());
    gang.queue = "ours".to_owned();
    gang.pod_sets = vec![PodSet::fixed("main", Arc::new(asks(whole(8))), 128)];
    let plan = engine.step(Event::Submitted(Box::new(gang)), 2).expect("a good job");
    assert_eq!(victims(&plan).map(|(victims, _)| victims.len()), Some(1_024));
    // To place the gang without each of them would take more than a million.
    let effort = engine.take_search_effort();
    assert!(effort.operations < 300_000, "{effort:?}");
}

#[test]
fn a_job_holds_nothing_beyond_a_quota_that_others_of_its_queue_hold_within_it() {
    for (quota, preempts) in [(5, true), (4, false)] {
        let queues = vec![queue("ours", quota, 1), queue("theirs", 3, 1)];
        let mut engine = Engine::new(config(true), &snapshot(1, queues)).expect("a good world");
        let mut submit = |id: u64, queue: &str, gpus: u16, priority: i32| {
            let mut job = Job::single(JobId(id), "job", id, Arc::new(asks(whole(gpus))));
            job.queue = queue.to_owned();
            job.priority = priority;
            engine.step(Event::Submitted(Box::new(job)), id).expect("a good job")
        };
        submit(1, "ours", 2, 5);
        submit(2, "ours", 2, -3);
        submit(3, "theirs", 3, 5);
        // With it in the place of the second job, its queue holds 5 GPUs.
        let plan = submit(4, "ours", 3, 0);
        assert_eq!(victims(&plan).is_some(), preempts, "{quota}: {plan:?}");
    }
}

/// A job of each queue more waits; the queue of the one that starts when a job has ended.
fn next_of(world: &mut World, queues: &[&str], ends: u64) -> String {
    for queue in queues {
        assert_eq!(placed(&submit(world, queue, 8, 1, 0)).len(), 0);
    }
    let plan = world.end(ends);
    let started = plan.actions.iter().find_map(|action| match action {
        Action::Bind { pod, .. } => Some(pod.job),
        _ => None,
    });
    let job = world.engines[0].job(started.expect("the node is free"));
    job.expect("it runs").queue.clone()
}

#[test]
fn who_has_used_least_for_its_weight_goes_first_and_free_use_is_free() {
    let queues = || vec![queue("a", 0, 1), queue("b", 0, 1), queue("heavy", 0, 4)];
    // While nobody else waits, use is free.
    let mut world = World::under(config(false), &snapshot(1, queues()));
    submit(&mut world, "b", 8, 1, 0);
    world.now_ms += 100 * HOUR_MS;
    assert_eq!(next_of(&mut world, &["b", "a"], 1), "b");
    // Somebody waits: what is held counts. The other of equal weight goes first now, although
    // another job of this one came before.
    world.now_ms += 3 * HOUR_MS;
    assert_eq!(next_of(&mut world, &["b", "a"], 2), "a");
    // After three hours of each, a queue of weight 4 has used least with none.
    world.now_ms += 3 * HOUR_MS;
    assert_eq!(next_of(&mut world, &["heavy"], 3), "heavy");
}

#[test]
fn a_turn_is_told_by_the_terms_that_are_compared() {
    let queues = vec![queue("a", 4, 1), queue("b", 0, 2)];
    let mut world = World::under(config(false), &snapshot(1, queues));
    submit(&mut world, "a", 6, 1, 0);
    submit(&mut world, "b", 8, 1, 3);
    world.now_ms += HOUR_MS;
    let change = |job: &mut Job| {
        (job.queue, job.priority) = ("a".to_owned(), 3);
        job.estimate = Some(Estimate {
            p50_ms: 2 * HOUR_MS,
            p90_ms: 2 * HOUR_MS,
            source: EstimateSource::User,
        });
    };
    assert_eq!(placed(&world.submit(change, asks(whole(8)))).len(), 0);
    let now_ms = world.now_ms;
    let mut turn = |job: u64| world.engines[0].ask().turn(JobId(job), now_ms);
    assert_eq!(turn(1), None, "it runs");
    let (of_b, of_a) = (turn(2).expect("it waits"), turn(3).expect("it waits"));
    assert_eq!((of_a.order, of_a.priority, of_a.is_by_queue_first), (Order::Dovetail, 3, false));
    let scopes: Vec<_> = of_a.queues.iter().map(|level| (&*level.queue, level.scope)).collect();
    assert_eq!(scopes, [("a", UsageScope::All), ("a", UsageScope::Own)]);
    let QueueTerms::FairTree(terms) = of_a.queues[0].terms else { panic!("{of_a:?}") };
    // A quarter of the cluster beyond its quota, for one hour out of a half-life of a week.
    assert!((896e9..900e9).contains(&(terms.used as f64)), "{terms:?}");
    assert_eq!((terms.entry, terms.is_below_quota, terms.weight), (900_000_000_000, false, 1));
    let QueueTerms::FairTree(terms) = of_b.queues[0].terms else { panic!("{of_b:?}") };
    assert_eq!((terms.entry, terms.used, terms.is_below_quota), (0, 0, false));
    assert!(of_b.queues[0].terms.key() < of_a.queues[0].terms.key());
    let score = of_a.standing.expect("the order has standings");
    assert_eq!((score.expected_ms, score.is_estimated), (Some(2 * HOUR_MS), true));
    // A hundredth of 16 GPU-hours, and nothing for its age.
    assert_eq!((score.size, score.run_time), (576_000, 0));
    assert_eq!(score.waited, score.submitted);
    let place = world.engines[0].list().place_of(JobId(3)).expect("it waits");
    assert_eq!(place.1, score.sum());
}

#[test]
fn a_job_for_which_no_node_is_right_makes_nobody_pay() {
    let of_model = |model: &str| {
        let mut shape = asks(whole(1));
        shape.gpu_models = [model.to_owned()].into();
        shape
    };
    for (model, pays) in [("H200", false), ("H100", true)] {
        let queues = vec![queue("pays", 0, 1), queue("waits", 0, 1)];
        let mut world = World::under(config(false), &snapshot(1, queues));
        submit(&mut world, "pays", 8, 1, 0);
        let plan = world.submit(|job| job.queue = "waits".to_owned(), of_model(model));
        assert_eq!(placed(&plan).len(), 0);
        world.now_ms += HOUR_MS;
        world.end(1);
        let used = world.engines[0].list().queue_usage("pays").expect("it is counted");
        assert_eq!(used > 0.0, pays, "{model}: {used}");
    }
}

#[test]
fn a_queue_that_may_not_have_more_of_a_model_waits_for_the_others() {
    let mut limited = queue("limited", 0, 1);
    limited.limit.set(&Axis::GpuModel("H200".to_owned()), 2_000);
    let mut world = snapshot(1, vec![limited, queue("others", 0, 1)]);
    world.nodes.push(Node::plain("other", 64_000, 1_000, 8, "H200"));
    let mut world = World::under(config(false), &world);
    for _ in 0..2 {
        submit(&mut world, "others", 6, 1, 0);
    }
    for _ in 0..2 {
        assert_eq!(placed(&submit(&mut world, "limited", 2, 1, 0)).len(), 1);
    }
    assert_eq!(placed(&submit(&mut world, "limited", 2, 1, 0)).len(), 0);
    world.now_ms += HOUR_MS;
    world.end(3);
    let used = world.engines[0].list().queue_usage("others").expect("it is counted");
    assert!(used > 0.0, "{used}");
}

#[test]
fn an_engine_from_a_snapshot_knows_what_queues_used() {
    let queues = vec![queue("a", 0, 1), queue("b", 0, 3)];
    let mut world = World::under(config(false), &snapshot(1, queues));
    submit(&mut world, "a", 8, 1, 0);
    submit(&mut world, "b", 8, 1, 0);
    submit(&mut world, "a", 8, 1, 0);
    world.now_ms += 50 * HOUR_MS;
    world.end(1);
    world.now_ms += 50 * HOUR_MS;
    let before = world.engines[0].snapshot();
    assert!(before.usage.iter().any(|usage| usage.queue == "a" && usage.used > 0), "{before:?}");
    let restored = Engine::new(config(false), &before).expect("its own snapshot");
    assert_eq!(restored.snapshot(), before);
}

#[test]
fn usage_of_jobs_without_a_queue_outlasts_a_restart_while_none_of_them_is_there() {
    let mut world = World::under(config(false), &snapshot(1, vec![queue("a", 0, 1)]));
    assert_eq!(placed(&submit(&mut world, "", 8, 1, 0)).len(), 1);
    assert_eq!(placed(&submit(&mut world, "a", 8, 1, 0)).len(), 0);
    world.now_ms += 50 * HOUR_MS;
    assert_eq!(placed(&world.end(1)).len(), 1);
    let mut restored = Engine::new(config(false), &world.engines[0].snapshot()).expect("good");
    world.now_ms += HOUR_MS;
    world.step(Event::Tick);
    restored.step(Event::Tick, world.now_ms).expect("a step");
    let used = world.engines[0].snapshot().usage;
    assert!(used.iter().any(|usage| usage.queue.is_empty() && usage.used > 0), "{used:?}");
    assert_eq!(restored.snapshot().usage, used);
}

#[test]
fn a_queue_that_is_removed_and_comes_back_has_used_nothing() {
    let queues = vec![queue("a", 0, 1), queue("b", 0, 1)];
    let mut world = World::under(config(false), &snapshot(1, queues));
    submit(&mut world, "b", 8, 1, 0);
    submit(&mut world, "a", 8, 1, 0);
    world.now_ms += 50 * HOUR_MS;
    world.end(1);
    let used_by_b = |engine: &Engine| engine.snapshot().usage.iter().any(|it| it.queue == "b");
    assert!(used_by_b(&world.engines[0]));
    world.step(Event::QueueRemoved { name: "b".to_owned() });
    let mut restored = Engine::new(config(false), &world.engines[0].snapshot()).expect("good");
    let back = Event::QueueChanged(Box::new(queue("b", 0, 1)));
    world.step(back.clone());
    restored.step(back, world.now_ms).expect("a step");
    assert!(!used_by_b(&world.engines[0]));
    assert_eq!(restored.snapshot().usage, world.engines[0].snapshot().usage);
}

/// Two nodes: a gang that fills them, and a queue with a quota that wants one GPU again and again.
fn thrashed(change: impl Fn(&mut Job)) -> World {
    let queues = vec![queue("ours", 8, 1), queue("lent", 0, 1)];
    let mut world = World::under(config(false), &snapshot(2, queues));
    let mut gang = Job::single(JobId(1_000), "gang", 0, Arc::default());
    gang.queue = "lent".to_owned();
    gang.pod_sets = vec![PodSet::fixed("main", Arc::new(asks(whole(8))), 2)];
    change(&mut gang);
    let submit_gang = |world: &mut World| {
        let mut gang = gang.clone();
        gang.submit_ms = world.now_ms;
        world.step(Event::Submitted(Box::new(gang)))
    };
    assert_eq!(placed(&submit_gang(&mut world)).len(), 2);
    world.now_ms += HOUR_MS / 2;
    let plan = submit(&mut world, "ours", 1, 1, 0);
    assert_eq!(victims(&plan), Some((BTreeSet::from([1_000]), PreemptReason::Reclaim)));
    world.step(Event::Ended { job: JobId(1_000), how: HowEnded::Preempted });
    assert_eq!(placed(&submit_gang(&mut world)).len(), 0);
    assert_eq!(placed(&world.end(1)).len(), 2, "the gang comes back");
    world
}

#[test]
fn a_job_is_not_preempted_again_and_again_for_a_quota() {
    // Without checkpoints, all that it did is lost: it is left alone for a day.
    let mut world = thrashed(|_| {});
    assert_eq!(victims(&submit(&mut world, "ours", 1, 1, 0)), None);
    world.now_ms += 24 * HOUR_MS - 1;
    assert_eq!(victims(&world.step(Event::Tick)), None);
    world.now_ms += 1;
    assert_eq!(
        victims(&world.step(Event::Tick)).map(|(_, reason)| reason),
        Some(PreemptReason::Reclaim)
    );
    // With them, it is left alone until a tenth of what it held is lost at most.
    let mut world = thrashed(|gang| gang.interruption.checkpoint_interval_ms = Some(600_000));
    assert_eq!(victims(&submit(&mut world, "ours", 1, 1, 0)), None);
    world.now_ms += 70 * 60_000 - 1;
    assert_eq!(victims(&world.step(Event::Tick)), None);
    world.now_ms += 1;
    assert!(victims(&world.step(Event::Tick)).is_some());
}

#[test]
fn a_job_runs_for_its_minimum_before_it_is_preempted_for_a_quota() {
    let queues = vec![queue("ours", 8, 1), queue("lent", 0, 1)];
    let mut world = World::under(config(false), &snapshot(1, queues));
    let change = |job: &mut Job| {
        job.queue = "lent".to_owned();
        job.preemption.min_run_ms = Some(HOUR_MS);
    };
    world.submit(change, asks(whole(8)));
    assert_eq!(victims(&submit(&mut world, "ours", 1, 1, 0)), None);
    world.now_ms += HOUR_MS;
    assert!(victims(&world.step(Event::Tick)).is_some());
}

#[test]
fn a_job_that_exceeds_the_quota_of_its_queue_is_borrowed_as_a_whole() {
    let queues = vec![queue("ours", 8, 1), queue("lent", 8, 1)];
    let mut world = World::under(config(false), &snapshot(3, queues));
    assert_eq!(placed(&submit(&mut world, "lent", 8, 2, 0)).len(), 2);
    assert_eq!(placed(&submit(&mut world, "lent", 8, 1, 0)).len(), 1);
    // The job within the quota stays, although it would lose less.
    let plan = submit(&mut world, "ours", 1, 1, 0);
    assert_eq!(victims(&plan), Some((BTreeSet::from([1]), PreemptReason::Reclaim)));
}

#[test]
fn a_gpu_counts_in_usage_what_its_model_weighs() {
    let node = |name: &str, model: &str| Node::plain(name, 64_000, 1_000, 8, model);
    let nodes = vec![node("big", "H100"), node("small", "T4")];
    let queues = vec![queue("big", 0, 1), queue("small", 0, 1)];
    let snapshot = Snapshot { nodes, queues, ..Snapshot::default() };
    // Both queues use a node for a day while both want more, and then start again at the same time.
    let first = |weights: &[(&str, u32)]| {
        let weights = weights.iter().map(|(model, weight)| ((*model).to_owned(), *weight));
        let model_weights = ModelWeights(weights.collect());
        let config = EngineConfig { model_weights, ..config(false) };
        let mut world = World::under(config, &snapshot);
        let ask = |world: &mut World, queue: &str, models: &[&str]| {
            let models = models.iter().map(|model| (*model).to_owned()).collect();
            let asks = Requirement { gpu_models: models, ..asks(whole(8)) };
            world.submit(|job| job.queue = queue.to_owned(), asks)
        };
        // A pod that may have either model counts for the one it gets.
        assert_eq!(placed(&ask(&mut world, "big", &["H100", "T4"])).len(), 1);
        assert_eq!(placed(&ask(&mut world, "small", &["T4"])).len(), 1);
        for queue in ["big", "small"] {
            ask(&mut world, queue, &["T4"]);
        }
        world.now_ms += 24 * HOUR_MS;
        world.step(Event::Ended { job: JobId(1), how: HowEnded::Completed });
        world.step(Event::Ended { job: JobId(2), how: HowEnded::Completed });
        let runs =
            |job: &u64| world.engines[0].job(JobId(*job)).is_some_and(|job| job.start_ms.is_some());
        (0..9).filter(runs).collect::<Vec<_>>()
    };
    // The jobs are 3 of `big` and 4 of `small`; the first submitted goes first if all is equal.
    assert_eq!(first(&[]), [3]);
    assert_eq!(first(&[("H100", 4_000)]), [4]);
    assert_eq!(first(&[("T4", 4_000)]), [3]);
}
