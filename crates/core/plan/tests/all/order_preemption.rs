//! With order `dovetail` the victims are those that lose the least work: every set is tried on
//! small worlds. What a restart is declared to cost counts as far as its user is right about run
//! times.

use std::sync::Arc;

use dovetail_cases::cases;
use dovetail_model::{
    Action, DeviceRequest, Event, HowEnded, InterruptionCost, Job, JobId, Node, Requirement,
    Resources, RunProfile, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, EstimatesConfig, Order, PolicySpec, PreemptionConfig};
use proptest::prelude::*;

const NODE_GPUS: u16 = 6;

fn job(id: u64, gpus: u16, priority: i32, interval_ms: Option<u64>) -> Job {
    let requirement = Requirement {
        resources: Resources::pod(10, 10),
        device: DeviceRequest::Whole { count: gpus, same_island: false },
        ..Requirement::default()
    };
    Job {
        priority,
        interruption: InterruptionCost {
            checkpoint_interval_ms: interval_ms,
            restart_cost_ms: Some(7),
            ..InterruptionCost::default()
        },
        ..Job::single(JobId(id), "job", 0, Arc::new(requirement))
    }
}

/// The same with several pods that start together.
fn gang(id: u64, pods: u32, gpus: u16, priority: i32, interval_ms: Option<u64>) -> Job {
    let mut job = job(id, gpus, priority, interval_ms);
    (job.pod_sets[0].min, job.pod_sets[0].max) = (pods, pods);
    job
}

fn engine(nodes: usize, estimates: EstimatesConfig) -> Engine {
    let node = |at: usize| Node::plain(&format!("n{at}"), 64_000, 1000, usize::from(NODE_GPUS), "");
    let snapshot = Snapshot { nodes: (0..nodes).map(node).collect(), ..Snapshot::default() };
    let config = EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::Dovetail,
        estimates,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        ..EngineConfig::default()
    };
    Engine::new(config, &snapshot).expect("a good world")
}

/// A running job: the nodes of its pods, the GPUs of each and what stopping it would lose, in
/// milli-GPU x ms.
type Running = (Vec<usize>, u16, u64);

/// The least loss that makes room for so many pods with so many GPUs each, over every set of jobs.
fn least_loss(running: &[Running], nodes: usize, pods: u32, gpus: u16) -> Option<u64> {
    let of = |set: u32| {
        let stays = |at: usize| set >> at & 1 == 0;
        let mut free = vec![NODE_GPUS; nodes];
        let mut loss = 0;
        for (at, (places, gpus, lost)) in running.iter().enumerate() {
            match stays(at) {
                true => places.iter().for_each(|node| free[*node] -= gpus),
                false => loss += lost,
            }
        }
        let room: u32 = free.iter().map(|free| u32::from(free / gpus)).sum();
        (room >= pods).then_some(loss)
    };
    (0..1_u32 << running.len()).filter_map(of).min()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(1_000) })]

    #[test]
    fn victims_lose_the_least_work_of_all_sets(
        nodes in 1..=3_usize,
        jobs in prop::collection::vec(
            (
                (1..=3_u16, 1..=2_u32),
                0..50_u64,
                prop_oneof![Just(None), Just(Some(3_u64)), Just(Some(20)), Just(Some(90))],
                prop_oneof![Just(None), Just(None), Just(Some(5_u64))],
            ),
            1..=10,
        ),
        pods in 1..=3_u32,
        gpus in 1..=NODE_GPUS,
    ) {
        let mut engine = engine(nodes, EstimatesConfig::default());
        let mut now_ms = 0;
        let mut placed: Vec<(Vec<usize>, u64)> = vec![(Vec::new(), 0); jobs.len()];
        for (id, ((gpus, pods), after_ms, interval_ms, save_ms)) in (1..).zip(&jobs) {
            now_ms += after_ms;
            let mut job = gang(id, *pods, *gpus, 0, *interval_ms);
            job.interruption.save_on_notice_ms = *save_ms;
            let plan = engine.step(Event::Submitted(Box::new(job)), now_ms).expect("a new job");
            for action in &plan.actions {
                if let Action::Bind { pod, node, .. } = action {
                    let node = node.strip_prefix('n').and_then(|at| at.parse().ok());
                    let (places, start_ms) = &mut placed[pod.job.index() - 1];
                    places.push(node.expect("the number of a node"));
                    *start_ms = now_ms;
                }
            }
        }
        now_ms += 40;
        let mut running = Vec::new();
        for ((places, start_ms), ((gpus, pods), _, interval_ms, save_ms)) in
            placed.into_iter().zip(&jobs).filter(|((places, _), _)| !places.is_empty())
        {
            let ran_ms = now_ms - start_ms;
            let unsaved_ms = interval_ms.map_or(ran_ms, |interval_ms| ran_ms % interval_ms);
            // Told to stop, some save their work in 5 ms.
            let unsaved_ms = unsaved_ms.min(save_ms.unwrap_or(u64::MAX));
            let gpu_milli = u64::from(*pods) * u64::from(*gpus) * 1_000;
            running.push((places, *gpus, (unsaved_ms + 7) * gpu_milli));
        }
        let urgent = Box::new(gang(99, pods, gpus, 1, None));
        let plan = engine.step(Event::Submitted(urgent), now_ms).expect("a new job");
        let found = plan.actions.iter().find_map(|action| match action {
            Action::Preempt { cost, .. } => Some(cost.work_lost_gpu_milli_ms),
            Action::Bind { pod, .. } if pod.job == JobId(99) => Some(0),
            _ => None,
        });
        prop_assert_eq!(found, least_loss(&running, nodes, pods, gpus), "{:?}", plan);
    }
}

/// A job that states an hour and declares that a restart takes ten minutes.
fn stated(id: u64, owner: &str) -> Job {
    let mut job = job(id, NODE_GPUS, 0, None);
    job.interruption.restart_cost_ms = Some(600_000);
    let (owner, stated_ms) = (owner.to_owned(), Some(3_600_000));
    Job { profile: RunProfile { owner, stated_ms, ..RunProfile::default() }, ..job }
}

#[test]
fn declared_restart_costs_count_as_far_as_their_user_is_right_about_run_times() {
    // Each of two jobs has a node. The first has run for a minute longer, so it loses more.
    let victim_after = |runs: &[(&str, u64)]| {
        let estimates = EstimatesConfig { learn: true, ..EstimatesConfig::default() };
        let mut engine = engine(2, estimates);
        let mut now_ms = 0;
        for (id, (owner, ran_ms)) in (100..).zip(runs) {
            engine.step(Event::Submitted(Box::new(stated(id, owner))), now_ms).expect("a new job");
            now_ms += ran_ms;
            let ended = Event::Ended { job: JobId(id), how: HowEnded::Completed };
            engine.step(ended, now_ms).expect("it runs");
        }
        for (id, owner) in [(1, "padder"), (2, "exact")] {
            let job = Box::new(stated(id, owner));
            engine.step(Event::Submitted(job), now_ms).expect("a new job");
            now_ms += 60_000;
        }
        let urgent = Box::new(job(3, NODE_GPUS, 1, None));
        let plan = engine.step(Event::Submitted(urgent), now_ms).expect("a new job");
        plan.actions.iter().find_map(|action| match action {
            Action::Preempt { victims, .. } => victims.first().map(|pod| pod.job.0),
            _ => None,
        })
    };
    assert_eq!(victim_after(&[]), Some(2));
    // Its jobs took a quarter of the time that they stated.
    let runs: Vec<_> = (0..40)
        .map(|n| if n % 2 == 0 { ("padder", 900_000) } else { ("exact", 3_600_000) })
        .collect();
    assert_eq!(victim_after(&runs), Some(1));
    // Too short a statement makes no declared cost larger.
    let runs: Vec<_> = (0..40)
        .map(|n| if n % 2 == 0 { ("padder", 7_200_000) } else { ("exact", 3_600_000) })
        .collect();
    assert_eq!(victim_after(&runs), Some(2));
}
