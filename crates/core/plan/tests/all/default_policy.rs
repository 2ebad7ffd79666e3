//! The default policy where it is used: nothing learnt yet, memory that runs out first, large pods
//! last, restarts.

use std::sync::Arc;

use dovetail_model::{
    Action, DeviceRequest, Event, Job, JobId, Node, Plan, Requirement, Resources, Snapshot,
};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Engine, Learnt, PolicySpec};

use crate::drive::written_and_read;

const GIB: i64 = 1 << 30;

/// A sequence that looks random (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % count as u64) as usize
    }

    fn of<T: Clone>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())].clone()
    }
}

/// Cores, GiB, thousandths of a GPU.
type Pod = (i64, i64, i64);

fn requirement((cores, gib, gpu_milli): Pod) -> Arc<Requirement> {
    let device = match gpu_milli {
        0 => DeviceRequest::None,
        1..1000 => DeviceRequest::Share { compute_milli: gpu_milli, memory_bytes: 0 },
        whole => DeviceRequest::Whole { count: (whole / 1000) as u16, same_island: false },
    };
    let resources = Resources::pod(cores * 1000, gib * GIB);
    Arc::new(Requirement { resources, device, ..Requirement::default() })
}

/// Nodes as (how many, cores, GiB, GPUs).
fn nodes(kinds: &[(usize, i64, i64, u16)]) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (count, cores, gib, gpus) in kinds {
        for _ in 0..*count {
            let name = format!("n{}", nodes.len());
            nodes.push(Node::plain(&name, cores * 1000, gib * GIB, usize::from(*gpus), "A100"));
        }
    }
    nodes
}

fn engine(policy: &str, nodes: Vec<Node>, learnt: Option<Learnt>) -> Engine {
    let policy = PolicySpec { learnt, ..PolicySpec::named(policy) };
    let config = EngineConfig { policy, ..EngineConfig::default() };
    Engine::new(config, &Snapshot { nodes, ..Snapshot::default() }).expect("a good world")
}

fn submitted(number: u64, now_ms: u64, pod: Pod) -> Event {
    Event::Submitted(Box::new(Job::single(JobId(number), "pod", now_ms, requirement(pod))))
}

fn is_bound(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| matches!(action, Action::Bind { .. }))
}

/// Milli-GPU that is held after all pods arrived; who does not fit at once goes away.
fn allocated(policy: &str, nodes: Vec<Node>, pods: &[Pod]) -> i64 {
    let mut engine = engine(policy, nodes, None);
    let mut held = 0;
    for (number, pod) in pods.iter().enumerate() {
        let id = number as u64;
        match is_bound(&engine.step(submitted(id, 0, *pod), 0).expect("a good event")) {
            true => held += pod.2,
            false => {
                engine.step(Event::ended(JobId(id)), 0).expect("a job that waits");
            }
        }
    }
    held
}

/// How much more is held under the default than under `best-fit`, in milli-GPU, and what the nodes
/// have.
fn over_best_fit(nodes: &[Node], pods: &[Pod]) -> (i64, i64) {
    let of = |policy| allocated(policy, nodes.to_vec(), pods);
    let has: usize = nodes.iter().map(|node| node.devices.len()).sum();
    (of("dovetail") - of("best-fit"), has as i64 * 1000)
}

#[test]
fn before_anything_is_learnt_it_decides_as_best_fit() {
    let kinds = [(3, 32, 128, 2), (3, 96, 512, 8), (2, 16, 64, 0)];
    let mut engines = ["dovetail", "best-fit"].map(|policy| engine(policy, nodes(&kinds), None));
    let mut draws = Draws(5);
    for number in 0..15 {
        let pod = draws.of(&[(8, 16, 500), (2, 8, 0), (4, 32, 1000), (16, 64, 2000)]);
        let event = submitted(number, 0, pod);
        let [ours, theirs] =
            engines.each_mut().map(|engine| engine.step(event.clone(), 0).expect("a good event"));
        assert_eq!(ours, theirs, "pod {number}");
    }
}

#[test]
fn the_first_pods_are_held_as_under_best_fit() {
    let sizes = [(2, 8, 300), (4, 16, 500), (8, 32, 1000), (8, 64, 1000), (16, 64, 2000)];
    for first in [64, 256, 1024] {
        let (mut over, mut has) = (0, 0);
        for seed in 0..24 {
            let mut draws = Draws(seed * 1000 + first);
            // About as much as all pods ask for, so that the last ones find nodes nearly full.
            let count = first as usize / 9;
            let kinds = [(count, 64, 256, 4), (count / 2 + 1, 96, 512, 8)];
            let pods: Vec<Pod> = (0..first).map(|_| draws.of(&sizes)).collect();
            let (more, all) = over_best_fit(&nodes(&kinds), &pods);
            (over, has) = (over + more, has + all);
        }
        assert!(over * 1000 >= -3 * has, "{first} arrivals: {over} of {has} milli-GPU");
    }
}

#[test]
fn memory_that_runs_out_first_is_not_wasted() {
    // CPU never runs out; only the nodes of the second kind carry four of the large pods.
    let kinds = [(40, 128, 160, 4), (40, 128, 512, 4)];
    for seed in 0..4 {
        let mut draws = Draws(seed);
        let pods: Vec<Pod> = (0..420).map(|_| draws.of(&[(1, 24, 1000), (1, 120, 1000)])).collect();
        let (over, has) = over_best_fit(&nodes(&kinds), &pods);
        assert!(over * 100 >= 2 * has, "seed {seed}: {over} of {has} milli-GPU");
    }
}

/// What runs out before the GPUs do.
#[derive(Clone, Copy, Debug)]
enum Short {
    Memory,
    EphemeralStorage,
    ExtendedResource,
    DeviceMemory,
    PodSlots,
}

/// The extended resource that runs out.
const NIC: &str = "rdma/hca";

impl Short {
    /// A node of four GPUs that has `amount` of it.
    fn node(self, name: &str, amount: i64) -> Node {
        let mut node = Node::plain(name, 128_000, 1 << 40, 4, "A100");
        match self {
            Self::Memory => node.allocatable.memory_bytes = amount * GIB,
            Self::EphemeralStorage => node.allocatable.ephemeral_bytes = amount * GIB,
            Self::ExtendedResource => drop(node.allocatable.extended.insert(NIC.into(), amount)),
            Self::DeviceMemory => {
                node.devices.iter_mut().for_each(|device| device.memory_bytes = amount / 4 * GIB);
            }
            Self::PodSlots => node.allocatable.pod_slots = amount,
        }
        node
    }

    /// A pod of so much of a GPU that asks for `amount` of it.
    fn requirement(self, amount: i64, gpu_milli: i64) -> Arc<Requirement> {
        let mut requirement = (*requirement((1, 1, gpu_milli))).clone();
        let resources = &mut requirement.resources;
        match self {
            Self::Memory => resources.memory_bytes = amount * GIB,
            Self::EphemeralStorage => resources.ephemeral_bytes = amount * GIB,
            Self::ExtendedResource => drop(resources.extended.insert(NIC.into(), amount)),
            Self::DeviceMemory => {
                let memory_bytes = amount * GIB;
                requirement.device =
                    DeviceRequest::Share { compute_milli: gpu_milli, memory_bytes };
            }
            Self::PodSlots => {}
        }
        Arc::new(requirement)
    }
}

#[test]
fn whatever_runs_out_before_the_gpus_is_not_wasted() {
    // Two kinds of nodes, by what they have of it, and two kinds of pods, of which the first fills
    // the GPUs of the first kind of nodes and the second those of the second kind only.
    let cases = [
        (Short::Memory, [160, 512], [(24, 1000), (120, 1000)], 420),
        (Short::EphemeralStorage, [160, 512], [(24, 1000), (120, 1000)], 420),
        (Short::ExtendedResource, [160, 512], [(24, 1000), (120, 1000)], 420),
        (Short::DeviceMemory, [160, 480], [(10, 250), (30, 250)], 1_680),
        (Short::PodSlots, [4, 110], [(0, 1000), (0, 250)], 720),
    ];
    let mut all = Vec::new();
    for (short, has, asks, count) in cases {
        let mut over = 0;
        for seed in 0..4 {
            let mut draws = Draws(seed);
            let kinds = asks.map(|(amount, gpu_milli)| short.requirement(amount, gpu_milli));
            let pods: Vec<_> = (0..count).map(|_| draws.of(&kinds)).collect();
            let held = |policy: &str| {
                let node = |at: usize| short.node(&format!("n{at}"), has[at / 40]);
                let mut engine = engine(policy, (0..80).map(node).collect(), None);
                let mut held = 0;
                for (number, pod) in (0..).zip(&pods) {
                    let job = Job::single(JobId(number), "pod", 0, Arc::clone(pod));
                    let plan = engine.step(Event::Submitted(Box::new(job)), 0).expect("an event");
                    match (is_bound(&plan), &pod.device) {
                        (true, DeviceRequest::Share { compute_milli, .. }) => held += compute_milli,
                        (true, _) => held += 1000,
                        (false, _) => drop(engine.step(Event::ended(JobId(number)), 0)),
                    }
                }
                held
            };
            over += held("dovetail") - held("best-fit");
        }
        all.push((short, over));
    }
    // At least one GPU in a hundred; with pod slots best-fit does as well, and nothing is lost.
    let least = |short: &Short| match short {
        Short::PodSlots => 0,
        _ => 4 * 80 * 4 * 1000 / 100,
    };
    assert!(all.iter().all(|(short, over)| *over >= least(short)), "{all:?} milli-GPU");
}

#[test]
fn large_pods_that_come_last_find_whole_nodes() {
    let kinds = [(24, 96, 768, 8), (24, 96, 768, 2)];
    for seed in 0..4 {
        let mut draws = Draws(seed);
        let small = [(4, 16, 1000), (6, 24, 500), (2, 8, 250)];
        let mut pods: Vec<Pod> = (0..90).map(|_| draws.of(&small)).collect();
        pods.extend([(32, 256, 8000); 24]);
        let (over, has) = over_best_fit(&nodes(&kinds), &pods);
        assert!(over >= 0, "seed {seed}: {over} of {has} milli-GPU");
    }
}

/// The next thing that happens where jobs come and go.
fn next(draws: &mut Draws, number: u64, running: &mut Vec<u64>) -> Event {
    if running.len() > 30 || (!running.is_empty() && draws.below(3) == 0) {
        let place = draws.below(running.len());
        return Event::ended(JobId(running.swap_remove(place)));
    }
    running.push(number);
    let pod = draws.of(&[(8, 16, 500), (2, 8, 0), (4, 32, 1000), (16, 64, 2000), (32, 128, 4000)]);
    submitted(number, number * 60_000, pod)
}

#[test]
fn a_restart_keeps_what_was_learnt_of_arrivals_and_ends() {
    let kinds = [(4, 64, 256, 4), (3, 96, 512, 8)];
    let mut first = engine("dovetail", nodes(&kinds), None);
    let (mut draws, mut running, mut again) = (Draws(9), Vec::new(), None::<Engine>);
    for number in 0..1500 {
        let now_ms = number * 60_000;
        if number == 700 {
            let policy =
                PolicySpec { learnt: written_and_read(&first), ..PolicySpec::named("dovetail") };
            let config = EngineConfig { policy, ..EngineConfig::default() };
            again = Some(Engine::new(config, &first.snapshot()).expect("its own world"));
        }
        let event = next(&mut draws, number, &mut running);
        let plan = first.step(event.clone(), now_ms).expect("a good event");
        if let Some(again) = &mut again {
            assert_eq!(plan, again.step(event, now_ms).expect("a good event"), "event {number}");
        }
    }
    let values = first.policy().published_values();
    assert!(values.contains(&("turnover".to_owned(), 8)), "jobs come and go");
    assert!(values.iter().any(|(name, _)| name.starts_with("gpu-time ")), "and run for a while");
    assert_eq!(values, again.expect("restarted").policy().published_values());
}

#[test]
fn another_policy_takes_over_a_running_cluster() {
    let kinds = [(4, 64, 256, 4), (3, 96, 512, 8)];
    let mut first = engine("dovetail", nodes(&kinds), None);
    let (mut draws, mut running) = (Draws(9), Vec::new());
    let mut events = (0..900).map(|number| (number * 60_000, number));
    for (now_ms, number) in events.by_ref().take(600) {
        first.step(next(&mut draws, number, &mut running), now_ms).expect("a good event");
    }
    // A restart with another policy in the settings, and the table that the first one wrote.
    let restarted = |name: &str, naive| {
        let policy = PolicySpec { learnt: written_and_read(&first), ..PolicySpec::named(name) };
        let config = EngineConfig { policy, naive, ..EngineConfig::default() };
        Engine::new(config, &first.snapshot()).expect("its own world")
    };
    let [mut second, mut judge] = [false, true].map(|naive| restarted("best-fit", naive));
    assert_eq!(second.policy().name(), "best-fit");
    // And a change while it runs, after what the first policy remembers was used.
    let mut changed = restarted("dovetail", false);
    let learnt = written_and_read(&changed);
    let now_ms = changed.now_ms();
    let mut change = |name: &str| {
        let to = Event::PolicyChanged { name: name.to_owned() };
        changed.step(to, now_ms).map(|plan| (plan, changed.policy().name()))
    };
    assert!(change("best").unwrap_err().to_string().contains("unknown policy `best`"));
    assert_eq!(change("best-fit"), Ok((Plan::default(), "best-fit")));
    let mut others = 0;
    for (now_ms, number) in events {
        let event = next(&mut draws, number, &mut running);
        let plan = second.step(event.clone(), now_ms).expect("a good event");
        for engine in [&mut judge, &mut changed] {
            assert_eq!(plan, engine.step(event.clone(), now_ms).expect("a good event"), "{number}");
        }
        others += usize::from(plan != first.step(event, now_ms).expect("a good event"));
    }
    assert!(others > 0, "the first policy would have decided the same");
    let back = Event::PolicyChanged { name: "dovetail".to_owned() };
    changed.step(back, changed.now_ms()).expect("a policy");
    assert!(learnt.is_some() && written_and_read(&changed) == learnt, "it is not forgotten");
}

#[test]
fn who_starts_without_a_table_learns_from_the_jobs_that_are_there() {
    let mut first = engine("dovetail", nodes(&[(4, 64, 256, 4)]), None);
    for number in 0..12 {
        first.step(submitted(number, 0, (8, 32, 1000)), 0).expect("a good event");
    }
    let mut again = Engine::new(EngineConfig::default(), &first.snapshot()).expect("its own world");
    for number in 12..16 {
        again.step(submitted(number, 0, (8, 32, 1000)), 0).expect("a good event");
    }
    assert_eq!(again.policy().version(), 1, "16 arrivals are known");
}

#[test]
fn a_table_of_another_form_is_a_cold_start() {
    // As it was before memory and ends were learnt; and one in which nothing is left of it.
    let old = r#"{"version":3,"histogram":{"arrivals":40,"checked":32,"masses":[[{"cpu_milli":4000,
        "gpu_count":1,"gpu_milli":1000,"gpu_models":[]},171798691840]]},"shares":[[{"cpu_milli":4000,
        "gpu_count":1,"gpu_milli":1000,"gpu_models":[]},1048576]],"order":[],"supply":
        {"milli_by_model":{"A100":16000},"largest_cpu_milli":64000,"largest_gpu_count":4}}"#;
    for table in [old, "{}", r#"{"version":9}"#] {
        let learnt: Learnt = serde_json::from_str(table).expect("a table of some form");
        let mut engine = engine("dovetail", nodes(&[(2, 64, 256, 4)]), Some(learnt));
        for number in 0..40 {
            engine.step(submitted(number, 0, (4, 16, 500)), 0).expect("a good event");
        }
        assert!(engine.list().waiting_jobs() > 0, "two nodes hold sixteen halves");
    }
}
