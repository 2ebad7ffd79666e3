//! Small worlds by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_capacity::{Picture, what_is_free};
use dovetail_model::{
    DeviceRequest, Event, FreeCause, Job, JobId, Node, PodSet, Requirement, Resources, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, PolicySpec};

/// `EngineConfig` has the order; the module that names it is private.
pub(crate) fn engine(snapshot: &Snapshot, order: &str) -> Engine {
    let config = EngineConfig {
        policy: PolicySpec::named("first-fit"),
        order: serde_json::from_str(&format!("\"{order}\"")).expect("an order"),
        ..EngineConfig::default()
    };
    Engine::new(config, snapshot).expect("a legal world")
}

/// A cluster of the nodes, everything that does not fit is passed over.
pub(crate) fn cluster(nodes: Vec<Node>) -> Engine {
    engine(&Snapshot { nodes, ..Snapshot::default() }, "fifo-skip")
}

/// A node with 96 cores, 1,000 bytes of memory and GPUs of model `a`.
pub(crate) fn node(name: &str, gpus: usize) -> Node {
    Node::plain(name, 96_000, 1_000, gpus, "a")
}

pub(crate) fn whole(count: u16) -> Requirement {
    Requirement {
        resources: Resources::pod(1_000, 1),
        device: DeviceRequest::Whole { count, same_island: false },
        ..Requirement::default()
    }
}

pub(crate) fn share(compute_milli: i64) -> Requirement {
    Requirement {
        resources: Resources::pod(1_000, 1),
        device: DeviceRequest::Share { compute_milli, memory_bytes: 0 },
        ..Requirement::default()
    }
}

/// A job of `pods` equal pods.
pub(crate) fn gang(id: u64, requirement: Requirement, pods: u32) -> Job {
    let requirement = Arc::new(requirement);
    let mut job = Job::single(JobId(id), &format!("job-{id}"), 0, Arc::clone(&requirement));
    job.pod_sets = vec![PodSet::fixed("main", requirement, pods)];
    job
}

pub(crate) fn submit(engine: &mut Engine, job: Job) {
    let now_ms = engine.now_ms();
    engine.step(Event::Submitted(Box::new(job)), now_ms).expect("a legal job");
}

/// What is free by cause, without causes of nothing, after the identity was checked.
pub(crate) fn free(engine: &mut Engine) -> BTreeMap<FreeCause, i64> {
    free_of(&what_is_free(engine, &[]))
}

pub(crate) fn free_of(picture: &Picture) -> BTreeMap<FreeCause, i64> {
    picture.total_gpu_milli.check(i128::from).expect("the identity");
    let causes = &picture.total_gpu_milli.free_by_cause;
    causes.iter().filter(|(_, milli)| **milli != 0).map(|(cause, milli)| (*cause, *milli)).collect()
}
