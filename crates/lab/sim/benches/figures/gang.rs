//! A large gang with a preferred rack on a half-full cluster.

use std::sync::Arc;
use std::time::Instant;

use dovetail_model::topology::Level;
use dovetail_model::{
    Action, DeviceAmount, DeviceRequest, Event, Holding, HoldingId, HoldingPhase, Job, JobId, Node,
    Owner, PodSet, Requirement, Resources, Snapshot, Topology, TopologyRequest,
};
use dovetail_plan::{Engine, EngineConfig};
use dovetail_trace::fgd::GoRandom;

const NODES: u32 = 10_000;
const EMPTY: usize = 5_000;
const NODES_PER_RACK: u32 = 64;
const GANG_PODS: u32 = 512;
const ROUNDS: u64 = 20;
const RACK: &str = "dovetail.dev/rack";

pub(crate) fn print() {
    let mut engine = Engine::new(EngineConfig::default(), &world()).expect("an engine");
    let mut times_us = Vec::new();
    let mut racks = 0;
    for round in 0..ROUNDS {
        let start = Instant::now();
        let plan = engine.step(Event::Submitted(Box::new(gang(round))), 0).expect("a step");
        times_us.push(start.elapsed().as_micros());
        let mut used: Vec<u32> = plan.actions.iter().filter_map(rack_of).collect();
        assert_eq!(used.len(), GANG_PODS as usize, "all pods of the gang are bound");
        used.sort_unstable();
        used.dedup();
        racks = used.len();
        engine.step(Event::ended(JobId(round)), 0).expect("the end of a gang");
    }
    let cold = times_us.remove(0);
    times_us.sort_unstable();
    println!("| what | measured | target |");
    println!("|---|---|---|");
    println!(
        "| warm, median of {} | {:.2} ms | 5 ms |",
        times_us.len(),
        ms(times_us[times_us.len() / 2])
    );
    println!("| warm, slowest | {:.2} ms | |", ms(times_us[times_us.len() - 1]));
    println!("| first of its shape | {:.2} ms | |", ms(cold));
    println!("| racks used | {racks} | |");
}

fn ms(us: u128) -> f64 {
    us as f64 / 1000.0
}

fn rack_of(action: &Action) -> Option<u32> {
    let Action::Bind { node, .. } = action else { return None };
    node.trim_start_matches("node-").parse::<u32>().ok().map(|number| number / NODES_PER_RACK)
}

fn world() -> Snapshot {
    let node = |number: u32| {
        let mut node = Node::plain(&name(number), 128_000, 1 << 40, 8, "H100");
        node.labels.insert(RACK.to_owned(), format!("rack-{:03}", number / NODES_PER_RACK));
        node
    };
    let mut order: Vec<u32> = (0..NODES).collect();
    GoRandom::new(42).shuffle(&mut order);
    let full = order.split_off(EMPTY);
    Snapshot {
        topology: Topology {
            levels: vec![Level { name: "rack".to_owned(), label: RACK.to_owned() }],
        },
        nodes: (0..NODES).map(node).collect(),
        holdings: full.into_iter().map(held).collect(),
        ..Snapshot::default()
    }
}

fn held(number: u32) -> Holding {
    Holding {
        id: HoldingId(u64::from(number)),
        node: name(number).into(),
        owner: Owner::Foreign(format!("other-{number}")),
        phase: HoldingPhase::Held { expected_end_ms: None },
        reservation: None,
        resources: Resources::pod(64_000, 1 << 39),
        devices: (0..8).map(|index| (index, DeviceAmount::share(1000, 0))).collect(),
        counts_into: Default::default(),
        attachments: Default::default(),
    }
}

fn name(number: u32) -> String {
    format!("node-{number:05}")
}

fn gang(number: u64) -> Job {
    let requirement = Requirement {
        resources: Resources::pod(64_000, 1 << 38),
        device: DeviceRequest::Whole { count: 8, same_island: false },
        ..Requirement::default()
    };
    let mut job = Job::single(JobId(number), "gang", 0, Arc::new(Requirement::default()));
    job.pod_sets = vec![PodSet::fixed("worker", Arc::new(requirement), GANG_PODS)];
    job.topology = TopologyRequest { required: None, preferred: Some("rack".to_owned()) };
    job
}
