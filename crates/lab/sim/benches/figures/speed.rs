//! Decisions per second: decision and commit, index build beside it, naive beside both.

use std::time::Instant;

use dovetail_model::{Action, Event, JobId};
use dovetail_plan::{Batch, Engine, EngineConfig};
use dovetail_sim::fgd::{FgdRun, FgdWorld};
use dovetail_sim::world::{JobFactory, snapshot};
use dovetail_trace::TraceNode;
use dovetail_trace::fgd::{GoRandom, fgd_orders};

use crate::openb;

const SEED: i64 = 42;
const COPIES: usize = 80;
/// Decisions of the large run up to which the naive search is compared; it takes seconds each.
const LARGE_COMPARED: usize = 20_000;

pub(crate) fn print() {
    let Some(folder) = openb::folder() else { return };
    let (nodes, pods) = (openb::nodes(&folder), openb::pods(&folder, "default"));
    let orders = fgd_orders(&pods, &nodes, SEED).expect("seeded orders");
    let world = FgdWorld {
        nodes: &nodes,
        pods: &pods,
        arrivals: &orders.arrivals,
        node_order: &orders.nodes,
    };
    header();
    for policy in ["fgd", "dovetail"] {
        let best = (0..5).map(|_| openb::timed_run(&world, openb::config(policy, 42)));
        row(policy, nodes.len(), &best.min_by_key(|run| run.decision_ns).expect("five runs"));
    }
    println!(
        "\nThe fastest of five runs; targets: fgd 300,000/s, dovetail half of that, p99 100,000 ns.\n"
    );
    against_naive(&world, "1,213 nodes, one in 10", 10, usize::MAX);
}

/// The same with [`COPIES`] times the nodes and pods.
pub(crate) fn print_large() {
    let Some(folder) = openb::folder() else { return };
    let (nodes, pods) = (openb::nodes(&folder), openb::pods(&folder, "default"));
    let orders = fgd_orders(&pods, &nodes, SEED).expect("seeded orders");
    let (nodes, node_order, arrivals) = enlarge(&nodes, &orders.nodes, &orders.arrivals);
    let world =
        FgdWorld { nodes: &nodes, pods: &pods, arrivals: &arrivals, node_order: &node_order };
    header();
    for policy in ["fgd", "dovetail"] {
        row(policy, nodes.len(), &openb::timed_run(&world, openb::config(policy, 42)));
    }
    println!("\nTargets: fgd 200,000/s, dovetail half of that, p99 100,000 ns.\n");
    against_naive(&world, "97,040 nodes, one in 1,000 of the first 20,000", 1_000, LARGE_COMPARED);
    against_every_node(&world, 1_000);
}

fn header() {
    println!("| policy | nodes | decisions | decisions/s | p50 ns | p99 ns | index build ms |");
    println!("|---|---|---|---|---|---|---|");
}

fn row(policy: &str, nodes: usize, run: &FgdRun) {
    let mut latencies = run.latencies_ns.clone();
    latencies.sort_unstable();
    let at = |share: usize| latencies[latencies.len() * share / 100];
    let per_second = run.decisions as f64 / run.decision_ns as f64 * 1e9;
    println!(
        "| {policy} | {nodes} | {} | {per_second:.0} | {} | {} | {:.1} |",
        run.decisions,
        at(50),
        at(99),
        run.index_ns as f64 / 1e6
    );
}

/// The machines [`COPIES`] times under other names, the arrivals as often, shuffled by seed.
fn enlarge(
    nodes: &[TraceNode],
    order: &[u32],
    arrivals: &[u32],
) -> (Vec<TraceNode>, Vec<u32>, Vec<u32>) {
    let copy = |copy: usize| {
        nodes
            .iter()
            .map(move |node| TraceNode { name: format!("{}-{copy:02}", node.name), ..node.clone() })
    };
    let many: Vec<TraceNode> = (0..COPIES).flat_map(copy).collect();
    let count = nodes.len() as u32;
    let order = (0..COPIES as u32).flat_map(|copy| order.iter().map(move |row| copy * count + row));
    let mut pods: Vec<u32> = (0..COPIES).flat_map(|_| arrivals.iter().copied()).collect();
    GoRandom::new(SEED).shuffle(&mut pods);
    (many, order.collect(), pods)
}

/// Runs the indexed engine and lets a naive one, built from its snapshot, take every `every`-th
/// decision.
fn against_naive(world: &FgdWorld<'_>, what: &str, every: usize, most: usize) {
    let ranked = world.node_order.iter().map(|row| &world.nodes[*row as usize]);
    let mut config = openb::config("fgd", 42);
    config.policy.target_mix = world.target_mix();
    let mut engine = Engine::new(config.clone(), &snapshot(ranked)).expect("an engine");
    let mut factory = JobFactory::for_nodes(world.nodes);
    let naive_config = EngineConfig { naive: true, ..config };
    let (mut compared, mut naive_ns, mut index_ns) = (0u32, 0u128, 0u128);
    for (number, row) in world.arrivals.iter().enumerate().take(most) {
        let id = JobId(number as u64);
        let event = Event::Submitted(Box::new(factory.job(id, &world.pods[*row as usize])));
        let naive = (number % every == 0).then(|| {
            let mut naive =
                Engine::new(naive_config.clone(), &engine.snapshot()).expect("a naive engine");
            let start = Instant::now();
            let plan = naive.step(event.clone(), 0).expect("a step");
            naive_ns += start.elapsed().as_nanos();
            plan
        });
        let start = Instant::now();
        let plan = engine.step(event, 0).expect("a step");
        let spent_ns = start.elapsed().as_nanos();
        if let Some(naive) = naive {
            index_ns += spent_ns;
            compared += 1;
            assert_eq!(plan, naive, "decision {number} of {what}");
        }
        if !plan.actions.iter().any(|action| matches!(action, Action::Bind { .. })) {
            engine.step(Batch::pending(Event::ended(id)), 0).expect("a dropped pod");
        }
    }
    println!(
        "identical to naive in {compared} decisions ({what}); naive takes {:.0} times as long",
        naive_ns as f64 / index_ns as f64
    );
}

/// Holds every `every`-th decision of a run against a look at every node.
fn against_every_node(world: &FgdWorld<'_>, every: usize) {
    let ranked = world.node_order.iter().map(|row| &world.nodes[*row as usize]);
    let mut config = openb::config("fgd", 42);
    config.policy.target_mix = world.target_mix();
    let mut engine = Engine::new(config, &snapshot(ranked)).expect("an engine");
    let mut factory = JobFactory::for_nodes(world.nodes);
    let (mut compared, mut refused) = (0, 0);
    for (number, row) in world.arrivals.iter().enumerate() {
        let job = factory.job(JobId(number as u64), &world.pods[*row as usize]);
        let (id, compares) = (job.id, number % every == 0);
        let best = compares.then(|| engine.ask().best_of_every_node(&job).expect("a known level"));
        let plan = engine.step(Event::Submitted(Box::new(job)), 0).expect("a step");
        let bound = plan.actions.into_iter().find_map(|action| match action {
            Action::Bind { node, .. } => Some(node),
            _ => None,
        });
        if bound.is_none() {
            engine.step(Batch::pending(Event::ended(id)), 0).expect("a dropped pod");
        }
        if let Some(best) = best {
            compared += 1;
            refused += usize::from(best.is_none());
            assert_eq!(bound, best, "decision {number}");
        }
    }
    println!(
        "as a look at every node finds in {compared} decisions ({refused} refusals), one in {every} of all"
    );
}
