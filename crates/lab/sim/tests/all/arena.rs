//! The arena as a whole, on small worlds.

use dovetail_sim::arena::{
    ArenaData, ArenaError, ArenaPlan, ArenaRun, Outside, Recipe, Regime, RegimeInput,
    RegimeVerdict, RunRecord, Settings, TimedRecipe, WorkSource, regimes, resumed,
};
use dovetail_trace::synth::SynthProfile;
use dovetail_trace::{TraceJob, TraceNode};
use rayon::prelude::*;

const HOUR_MS: u64 = 3_600_000;

/// Two kinds of worlds, cut down to ten machines and four days.
fn plan() -> ArenaPlan {
    let small = |name: &str| {
        let mut regime =
            regimes().into_iter().find(|regime| regime.name == name).expect("a regime");
        if let Recipe::Timed(recipe) = &mut regime.recipe {
            recipe.days = 4;
            recipe.work = WorkSource::Profile(SynthProfile::Sharing, 10);
        }
        regime
    };
    ArenaPlan {
        regimes: vec![
            small("failing-nodes/50-nodes/load-0.9"),
            small("weighted-queues/50-nodes/load-0.9"),
        ],
        policies: ["best-fit", "dovetail", "random"].map(str::to_owned).to_vec(),
        seeds: vec![42, 43],
        orders: 2,
    }
}

fn verdicts(plan: &ArenaPlan, runs: &[RunRecord]) -> String {
    let of = |regime: &Regime| {
        let own = runs.iter().filter(|record| record.regime == regime.name);
        let own: Vec<ArenaRun> = own.cloned().map(RunRecord::run).collect();
        RegimeVerdict::of(regime, &own)
    };
    let verdicts: Vec<RegimeVerdict> = plan.regimes.iter().map(of).collect();
    serde_json::to_string(&verdicts).unwrap()
}

fn run_all(plan: &ArenaPlan, threads: usize) -> Vec<RunRecord> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let policies: Vec<&str> = plan.policies.iter().map(String::as_str).collect();
    let world = |key: &dovetail_sim::arena::WorldKey| {
        let runs = plan.run(&ArenaData::default(), *key, &policies).unwrap();
        let name = &plan.regimes[key.regime].name;
        runs.into_iter().map(|run| RunRecord::of(name, run)).collect::<Vec<_>>()
    };
    let worlds = plan.worlds();
    let runs: Vec<Vec<RunRecord>> = pool.install(|| worlds.par_iter().map(world).collect());
    runs.into_iter().flatten().collect()
}

#[test]
fn threads_and_pauses_change_nothing() {
    let plan = plan();
    let runs = run_all(&plan, 1);
    assert_eq!(runs.len(), 2 * 2 * 2 * 3);
    assert_eq!(run_all(&plan, 3), runs);
    let whole = verdicts(&plan, &runs);
    // A file that was cut within its ninth run, whose rest is run again.
    let settings = Settings::of(&plan, "b", "none");
    let lines: String = runs.iter().map(|run| settings.run_line(run)).collect();
    let text = settings.line() + &lines;
    let cut = text.lines().take(9).map(|line| line.len() + 1).sum::<usize>() + 20;
    let kept = resumed("runs", &text[..cut], &settings).unwrap().records;
    assert_eq!(kept.len(), 8);
    let rest = runs.iter().filter(|run| !kept.contains(run)).cloned();
    let resumed: Vec<RunRecord> = kept.iter().cloned().chain(rest).collect();
    assert_eq!(verdicts(&plan, &resumed), whole);
}

#[test]
fn every_synthetic_regime_has_its_load_and_no_job_that_cannot_run() {
    let data = ArenaData::default();
    let mut families = Vec::new();
    for regime in regimes().into_iter().filter(|regime| regime.recipe.lacks(&data).is_none()) {
        let Recipe::Timed(recipe) = &regime.recipe else { panic!("{} needs traces", regime.name) };
        families.push(regime.family);
        // The largest ones are as the smaller ones, and take their time.
        let is_repeated = ["demo-month", "learned-run-times"].contains(&regime.family);
        if recipe.days < 14 || recipe.load != 0.9 || is_repeated {
            continue;
        }
        let loads = [1, 2, 3].map(|seed| load_of(&regime, recipe, &data, seed));
        let mean = loads.iter().sum::<f64>() / 3.0;
        assert!((0.5..1.3).contains(&mean), "{}: {loads:?}", regime.name);
    }
    families.dedup();
    let wanted = [
        "mixed",
        "training",
        "sharing",
        "changing",
        "early-jobs",
        "demo-month",
        "gangs-and-failures",
        "estimates",
        "queues",
        "learned-run-times",
    ];
    assert_eq!(families, wanted);
}

fn load_of(regime: &Regime, recipe: &TimedRecipe, data: &ArenaData, seed: u64) -> f64 {
    let world = regime.recipe.world(data, seed, 0).unwrap();
    let RegimeInput::Timed { world, window, .. } = world else { panic!("{}", regime.name) };
    assert_eq!(window.end_ms, u64::from(recipe.days) * 86_400_000);
    assert!(world.jobs.is_sorted_by_key(|job| job.submit_ms), "{}", regime.name);
    let asked = dovetail_sim::arena::demand_inside(&world.jobs, window.end_ms) as f64;
    let gpus: f64 = world.nodes.iter().map(|node| f64::from(node.gpu_count)).sum();
    asked / (gpus * 1000.0 * window.end_ms as f64)
}

#[test]
fn published_jobs_that_no_node_can_hold_are_no_load() {
    // One job in five asks for two nodes' worth of GPUs in one pod: a third of the GPU-time.
    let job = |number: u64| TraceJob {
        id: number.to_string(),
        submit_ms: number * HOUR_MS / 8,
        duration_ms: Some(3 * HOUR_MS),
        pod_count: 1,
        gpu_count: if number.is_multiple_of(5) { 16 } else { 8 },
        gpu_milli: 1000,
        ..TraceJob::default()
    };
    let philly = (0..8 * 24 * 20).map(job).collect();
    let data = ArenaData { philly, ..ArenaData::default() };
    let name = "philly/uniform/load-0.9";
    let regime = regimes().into_iter().find(|regime| regime.name == name).expect("a regime");
    let Recipe::Timed(recipe) = &regime.recipe else { panic!("jobs that end") };
    let load = load_of(&regime, recipe, &data, 42);
    assert!((0.88..0.92).contains(&load), "{load}");
}

#[test]
fn node_orders_move_machines_and_nothing_else() {
    let plan = plan();
    let worlds =
        [0, 1, 2].map(|order| plan.regimes[0].recipe.world(&ArenaData::default(), 42, order));
    let worlds = worlds.map(|world| match world.unwrap() {
        RegimeInput::Timed { world, .. } => world,
        RegimeInput::Arrivals { .. } => panic!("a timed world"),
    });
    let sorted = |world: &dovetail_sim::timed::TimedWorld| {
        let mut names: Vec<String> = world.nodes.iter().map(|node| node.name.clone()).collect();
        names.sort();
        names
    };
    assert!(worlds.iter().all(|world| world.jobs == worlds[0].jobs));
    assert!(worlds.iter().all(|world| sorted(world) == sorted(&worlds[0])));
    assert_ne!(worlds[0].nodes, worlds[1].nodes);
    assert_ne!(worlds[1].nodes, worlds[2].nodes);
}

const OPENB: &str = "openb-timed/20-nodes/load-0.9";

/// A pod of openb, or a job of philly, of one hour.
fn pod(gpu_count: u32) -> TraceJob {
    TraceJob {
        id: format!("pod-{gpu_count}"),
        pod_count: 1,
        gpu_count,
        gpu_milli: if gpu_count == 0 { 0 } else { 1000 },
        duration_ms: Some(HOUR_MS),
        ..TraceJob::default()
    }
}

/// A folder with so many nodes of openb, these pods of its default list, and these jobs of philly.
fn folder(pods: &[TraceJob], philly: &[TraceJob], nodes: usize) -> ArenaData {
    let node = |at: usize| TraceNode {
        name: at.to_string(),
        cpu_milli: 64_000,
        gpu_count: 8,
        ..TraceNode::default()
    };
    ArenaData {
        openb_nodes: (0..nodes).map(node).collect(),
        openb_pods: [("default".to_owned(), pods.to_vec())].into(),
        philly: philly.to_vec(),
        ..ArenaData::default()
    }
}

/// A regime and a folder, and which trace of it, in which row, is refused with which words.
type Hostile = (&'static str, ArenaData, Outside, Option<usize>, &'static str);

/// What a stranger's folder may hold.
fn hostile_folders() -> [Hostile; 11] {
    let pods = [pod(1), pod(2)];
    let vast = pods.clone().map(|pod| TraceJob { cpu_milli: 100_000_000, ..pod });
    let gang = [TraceJob { pod_count: 2, ..pod(1) }];
    let runs =
        |gpu_count, duration_ms| TraceJob { duration_ms: Some(duration_ms), ..pod(gpu_count) };
    let both = [runs(1, HOUR_MS), runs(2, HOUR_MS)];
    let wide = [runs(1_000_000, 1 << 40), runs(1_000_000, 1 << 40)];
    let (list, philly) = (|| Outside::Pods("default".to_owned()), Outside::Philly);
    let (uniform, plain) = ("philly/uniform/load-0.9", "openb/default/plain");
    let little = "too small (number of jobs: 1)";
    [
        (OPENB, folder(&pods, &both[..1], 20), philly.clone(), None, "no job has several GPUs"),
        (OPENB, folder(&pods, &both[1..], 20), philly.clone(), None, "no job has at most one GPU"),
        (OPENB, folder(&vast, &both, 20), list(), None, "too small (number of jobs: 0)"),
        (OPENB, folder(&pods[..1], &[runs(1, 0)], 20), list(), None, little),
        (OPENB, folder(&pods[..1], &[runs(1, 1)], 20), list(), None, little),
        (OPENB, folder(&[pod(0)], &both[..1], 20), list(), None, little),
        (uniform, folder(&[], &[runs(1, 0)], 0), philly.clone(), None, "request no GPU time"),
        (uniform, folder(&[], &[runs(0, HOUR_MS)], 0), philly.clone(), None, "request no GPU time"),
        (uniform, folder(&[], &wide, 0), philly, None, "request more than a million GPUs"),
        (plain, folder(&gang, &[], 1), list(), Some(0), "job pod-1 has 2 pods"),
        (plain, folder(&[pod(0)], &[], 1), list(), Some(0), "requests a GPU"),
    ]
}

/// Each is refused by name, and none panics or goes on for ever.
#[test]
fn hostile_traces_are_refused_by_name() {
    for (name, data, trace, row, problem) in hostile_folders() {
        let regime = regimes().into_iter().find(|regime| regime.name == name).expect("a regime");
        assert_eq!(regime.recipe.lacks(&data), None, "{name}: {problem}");
        match regime.recipe.world(&data, 42, 0) {
            Err(ArenaError::Data(error)) => {
                assert_eq!((&error.trace, error.row), (&trace, row), "{error}");
                assert!(error.problem.contains(problem), "{error}");
            }
            other => panic!("{name}: {problem}: {:?}", other.map(|_| ())),
        }
    }
    let lacks = |name: &str, data: &ArenaData| {
        let regime = regimes().into_iter().find(|regime| regime.name == name).expect("a regime");
        regime.recipe.lacks(data).unwrap_or_default()
    };
    let one_node = folder(&[pod(1), pod(2)], &[pod(1), pod(2)], 1);
    for (name, lacked) in [
        (OPENB, "openb/openb_node_list_gpu_node.csv has 1 of the 20 nodes that it needs"),
        ("openb/default/5-nodes", "has 1 of the 5 nodes that it needs"),
        ("openb/default/only-p100", "openb_node_list_gpu_node.csv has P100 GPUs"),
        ("openb/cpu050/plain", "openb/openb_pod_list_cpu050.csv does not exist"),
        ("itp/uniform/load-0.9", "jobs/itp_cluster04.csv does not exist"),
        ("openb/default/plain", ""),
    ] {
        assert!(lacks(name, &one_node).contains(lacked), "{name}: {}", lacks(name, &one_node));
    }
}
