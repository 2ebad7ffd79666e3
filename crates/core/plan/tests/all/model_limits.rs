//! Limits of queues by GPU model, and jobs that may have several models and preempt others.

use std::collections::BTreeSet;

use dovetail_model::{
    Action, Event, HowEnded, Job, JobId, Node, Plan, Queue, Requirement, Snapshot,
};
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Order, PolicySpec, PreemptionConfig};

use crate::by_hand::{World, asks, placed, whole};

const BOTH: [&str; 2] = ["A100", "H100"];

/// Orders in which a higher priority preempts.
fn configs() -> [EngineConfig; 2] {
    let config = EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: Order::FifoSkip,
        preemption: PreemptionConfig { enabled: true, ..PreemptionConfig::default() },
        ..EngineConfig::default()
    };
    let turns = Turns::preset("fair").expect("a preset");
    [config.clone(), EngineConfig { order: Order::Dovetail, turns, ..config }]
}

/// A node of four GPUs of each model; one of two queues may hold so many GPUs of these models.
fn world(config: EngineConfig, limits: &[(&str, i64)]) -> World {
    let node = |model: &str| Node::plain(&format!("n-{model}"), 64_000, 1_000, 4, model);
    let mut limited = Queue { borrows: true, ..Queue::named("limited") };
    let limits = limits.iter().map(|(model, gpus)| ((*model).to_owned(), gpus * 1_000));
    limited.limit.by_model = limits.collect();
    let queues = vec![limited, Queue { borrows: true, ..Queue::named("free") }];
    let nodes = BOTH.map(node).into();
    World::under(config, &Snapshot { nodes, queues, ..Snapshot::default() })
}

/// Submits a job of one pod with so many GPUs of any of these models.
fn submit(world: &mut World, queue: &str, models: &[&str], gpus: u16, priority: i32) -> Plan {
    let gpu_models = models.iter().map(|model| (*model).to_owned()).collect();
    let change = |job: &mut Job| {
        job.queue = queue.to_owned();
        job.priority = priority;
    };
    world.submit(change, Requirement { gpu_models, ..asks(whole(gpus)) })
}

fn victims(plan: &Plan) -> BTreeSet<u64> {
    let of = |action: &Action| match action {
        Action::Preempt { victims, .. } => victims.clone(),
        _ => Vec::new(),
    };
    plan.actions.iter().flat_map(of).map(|pod| pod.job.0).collect()
}

/// A victim has left; the nodes of the pods that start then.
fn leaves(world: &mut World, job: u64) -> Vec<String> {
    let plan = world.step(Event::Ended { job: JobId(job), how: HowEnded::Preempted });
    placed(&plan).into_iter().map(|(_, node, _)| node).collect()
}

#[test]
fn a_job_of_several_models_preempts_one_that_holds_the_limit_of_a_model() {
    for config in configs() {
        let mut world = world(config, &[("H100", 2)]);
        // The other model has no limit and no room.
        assert_eq!(placed(&submit(&mut world, "free", &["A100"], 4, 9)).len(), 1);
        assert_eq!(placed(&submit(&mut world, "limited", &["H100"], 2, 0)).len(), 1);
        let plan = submit(&mut world, "limited", &BOTH, 2, 5);
        assert_eq!((victims(&plan), placed(&plan)), (BTreeSet::from([2]), vec![]));
        assert_eq!(leaves(&mut world, 2), ["n-H100"]);
    }
}

#[test]
fn a_victim_of_several_models_gives_back_the_one_that_it_has() {
    for config in configs() {
        let mut world = world(config, &[("A100", 2), ("H100", 2)]);
        let low = placed(&submit(&mut world, "limited", &BOTH, 2, 0));
        let high = placed(&submit(&mut world, "limited", &BOTH, 2, 7));
        assert_ne!(low[0].1, high[0].1, "both models are at their limits");
        let plan = submit(&mut world, "limited", &BOTH, 2, 5);
        assert_eq!((victims(&plan), placed(&plan)), (BTreeSet::from([1]), vec![]));
        assert_eq!(leaves(&mut world, 1), [low[0].1.as_str()]);
        // One of a lower priority preempts nobody.
        let plan = submit(&mut world, "limited", &BOTH, 2, 4);
        assert_eq!((victims(&plan), placed(&plan)), (BTreeSet::new(), vec![]));
    }
}

#[test]
fn what_victims_give_back_of_a_model_is_kept_for_the_job_that_preempted_them() {
    for config in configs() {
        let mut world = world(config, &[("H100", 2)]);
        assert_eq!(placed(&submit(&mut world, "free", &["A100"], 4, 9)).len(), 1);
        for _ in 0..2 {
            assert_eq!(placed(&submit(&mut world, "limited", &["H100"], 1, 0)).len(), 1);
        }
        let plan = submit(&mut world, "limited", &BOTH, 2, 5);
        assert_eq!(victims(&plan), BTreeSet::from([2, 3]));
        // Of the same priority, it would take what the first of them gives back.
        let plan = submit(&mut world, "limited", &BOTH, 1, 5);
        assert_eq!((victims(&plan), placed(&plan)), (BTreeSet::new(), vec![]));
        assert_eq!(leaves(&mut world, 2), [""; 0]);
        assert_eq!(leaves(&mut world, 3), ["n-H100"]);
    }
}
