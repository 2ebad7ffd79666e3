//! Values at and beyond the limits, in every column of every reader: a file is refused with its
//! place, or taken; and what is taken never panics in a simulation.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;

use dovetail_account::{GpuPrice, Priced};
use dovetail_cases::cases;
use dovetail_plan::{EngineConfig, Order, PolicySpec};
use dovetail_sim::baseline::{
    BaselineCluster, BaselineJob, BaselineOrder, StartOverheads, replay_baseline,
};
use dovetail_sim::fgd::{FgdWorld, run_fgd};
use dovetail_sim::timed::cluster_events::read_cluster_events;
use dovetail_sim::timed::{
    FaultModel, Simulation, TimedConfig, TimedError, TimedWorld, impossible_jobs,
};
use dovetail_sim::timeline::{Timeline, TimelineConfig, TimelineError, UsageReport};
use dovetail_trace::fgd::{read_arrival_order, read_node_order};
use dovetail_trace::{
    ReadOptions, StopCosts, Trace, TraceCluster, TraceError, read_cluster_from, read_trace_from,
    stats, write_cluster, write_job_table, write_trace,
};
use proptest::prelude::*;

const EXTREMES: [&str; 33] = [
    "+1",
    "-0",
    " 1",
    ".5",
    "1e-400",
    "",
    "0",
    "1",
    "-1",
    "1000",
    "1024",
    "1025",
    "65535",
    "65536",
    "1000000",
    "1000001",
    "2147483647",
    "-2147483648",
    "4294967296",
    "1000000000",
    "3162240000",
    "3162240001",
    "3162240000000",
    "3162240000001",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0.0000005",
    "1e3",
    "NaN",
    "inf",
];

/// Header and good rows of a file.
type File = (&'static str, &'static [&'static str]);

const JOBS: [File; 5] = [
    (
        "job_id,submit_ms,duration_ms,estimate_ms,start_ms,pod_count,cpu_milli,memory_bytes,\
         gpu_count,gpu_milli,gpu_models,user,queue,model,service_class,priority,deadline_ms,\
         outcome,cut,checkpoint_interval_ms,checkpoint_cost_ms,restart_cost_ms,save_on_notice_ms",
        &[
            "a,0,60000,50000,5,1,1000,1000,1,1000,,u,q,m,s,0,90000,completed,,10000,500,3000,2000",
            "b,9,60000,50000,10,2,1000,1000,1,500,T4,u,q,m,s,5,90000,completed,,,,,",
            "c,9,60000,,,1,1000,1000,0,0,,,,,,0,,unknown,end,,,,",
        ],
    ),
    (
        "job_id,submit_s,duration_s,num_gpu,gpu_milli,nodes,queue,user,model,deadline_s,\
         estimate_s,priority,status,checkpoint_interval_s,checkpoint_cost_s,restart_cost_s,\
         save_on_notice_s",
        &["a,0,60,1,,1,q,u,m,90,50,0,pass,10,0.5,3,2", "b,1.5,60,8,,4,q,u,m,90,50,3,pass,,,,"],
    ),
    // The other names of the run time and of the queue.
    ("job_id,submit_s,service_s,num_gpu,vc", &["a,0,60.25,1,v", "b,1.5,60,8,w"]),
    (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
         deletion_time,scheduled_time",
        &["a,4000,512,1,460,,LS,Succeeded,10,400,12", "b,1000,0,2,1000,,BE,Running,20,40,20"],
    ),
    // The fields of the Standard Workload Format have blanks between them.
    (
        "",
        &["1 0 5 60 1 -1 -1 1 120 2048 1 3 1 -1 2 -1 -1 -1", "2 1 0 9 2 0 0 2 9 1 0 1 1 1 1 1 0 0"],
    ),
];

const NODES: [File; 2] = [
    (
        "node_name,cpu_milli,memory_bytes,gpu_count,gpu_model,gpu_memory_bytes,rack,zone",
        &["x,64000,274877906944,4,T4,16000000000,r,z", "y,64000,274877906944,8,H100,,r,z"],
    ),
    ("sn,cpu_milli,memory_mib,gpu,model", &["x,64000,262144,4,T4", "y,64000,262144,8,H100"]),
];

const EVENTS: File = ("at_s,action,node", &["10,fail,x", "20,repair,x", "30,remove,y", "40,add,y"]);
/// Lines of order files for two pods or two nodes, `@` for what is replaced, and whether they are
/// of nodes.
const ORDERS: [(&str, bool); 7] = [
    ("@,0 1", false),
    ("8,@ 1", false),
    ("8,1 @", false),
    ("@,8,0 1", true),
    ("a,@,0 1", true),
    ("a,8,@ 1", true),
    ("a,8,0 @", true),
];
const OVERHEADS: File = ("num_gpu,model,overhead_s", &["1,m,7", "8,m,7.5"]);

/// A cell that is replaced: file, row (`None` is all of them), column, by which extreme.
type Change = (usize, Option<usize>, usize, usize);

/// A file with some of its cells replaced.
fn changed((header, rows): File, changes: &[Change]) -> Cursor<Vec<u8>> {
    let separator = if header.is_empty() { ' ' } else { ',' };
    let mut rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(separator).collect()).collect();
    for (_, row, column, extreme) in changes {
        let count = rows.len();
        for (place, cells) in rows.iter_mut().enumerate() {
            if row.is_none_or(|row| row % count == place) {
                let column = column % cells.len();
                cells[column] = EXTREMES[*extreme];
            }
        }
    }
    let line = |cells: Vec<&str>| cells.join(&separator.to_string());
    let lines: Vec<String> = rows.into_iter().map(line).collect();
    let head = if header.is_empty() { String::new() } else { format!("{header}\n") };
    Cursor::new(format!("{head}{}\n", lines.join("\n")).into_bytes())
}

/// What a reader gives, or nothing if it refuses a row with its place.
fn taken<T>(result: Result<T, TraceError>) -> Result<Option<T>, TestCaseError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(TraceError::Row(error)) => {
            prop_assert!(error.line >= 1, "{error}");
            let place = format!("f:{}: ", error.line);
            prop_assert!(error.to_string().starts_with(&place), "{error}");
            Ok(None)
        }
        // A first line of Standard Workload Format that is none any more.
        Err(TraceError::UnknownFormat { .. }) => Ok(None),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// The simulation of what was read, under some policy and order, with its account in money.
fn simulate(world: TimedWorld, trace: &Trace, kind: usize) -> Result<(), TestCaseError> {
    let policies = ["first-fit", "dovetail", "fgd", "kube-default", "best-fit", "fgd-learnt"];
    let mut policy = PolicySpec::named(policies[kind % policies.len()]);
    if policy.name == "fgd" {
        policy.target_mix = Simulation::target_mix(&world.jobs);
    }
    let order = [Order::Fifo, Order::FifoSkip, Order::ShortestFirst][kind % 3];
    let mut engine = EngineConfig { policy, order, ..EngineConfig::default() };
    engine.preemption.enabled = kind.is_multiple_of(2);
    // Rare enough that even a job of a century comes to its end.
    let faults = kind.is_multiple_of(5).then_some(FaultModel {
        mean_time_between_failures_ms: 30_000_000_000_000,
        mean_time_to_repair_ms: 1_000,
        seed: kind as u64,
    });
    let config = TimedConfig { engine, faults, ..TimedConfig::default() };
    let mut timeline = Timeline::new(TimelineConfig { cause_period_ms: u64::MAX, until_ms: None });
    let run = Simulation::new(world, config)
        .and_then(|mut simulation| simulation.run(None, &mut timeline).map(|_| simulation));
    match run {
        Ok(simulation) => {
            simulation.metrics();
        }
        Err(TimedError::NoDuration { .. } | TimedError::TooLate { .. }) => return Ok(()),
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    }
    for usd_micros_per_gpu_hour in [0, 2_500_000, 1_000_000_000_000] {
        let price = GpuPrice { usd_micros_per_gpu_hour, source: "test".to_owned(), assumed: false };
        let models = [None, Some("T4".to_owned()), Some("H100".to_owned())];
        let prices =
            models.into_iter().map(|model| (model, Priced::Known(price.clone()))).collect();
        let usage = timeline.usage().map_err(|error| TestCaseError::fail(error.to_string()))?;
        match UsageReport::new(&usage, &prices) {
            Ok(report) => drop(report.free_while_work_waited()),
            Err(TimelineError::Money { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
    prop_assert_eq!(trace.lines.len(), trace.jobs.len());
    Ok(())
}

/// The published orders on what was read.
fn replay(trace: &Trace, cluster: &TraceCluster, overheads: &StartOverheads) {
    let Ok(jobs) = BaselineJob::of_trace(trace) else { return };
    let charged = BaselineJob::charged(trace, StopCosts::default()).expect("as without costs");
    let gpus = cluster.nodes.iter().map(|node| node.gpu_count).collect();
    let Ok(pool) = BaselineCluster::new(gpus) else { return };
    for order in BaselineOrder::ALL {
        for (jobs, table) in [(&jobs, None), (&jobs, Some(overheads)), (&charged, None)] {
            // Refusals name the job; whoever read the trace knows its place.
            if let Err(error) = replay_baseline(jobs, &pool, order, table, &mut |_| {}) {
                assert!(error.job().is_some(), "{error}");
            }
        }
    }
}

fn change(files: usize) -> impl Strategy<Value = Change> {
    (0..files, proptest::option::of(0..4_usize), 0..32_usize, 0..EXTREMES.len())
}

/// Reads all files with these changes and uses what was taken.
fn use_all(
    jobs: usize,
    nodes: usize,
    changes: &[Change],
    kind: usize,
) -> Result<(), TestCaseError> {
    let of = |file: usize| -> Vec<Change> {
        changes.iter().filter(|(changed, ..)| *changed == file).copied().collect()
    };
    let options = ReadOptions::default();
    let trace = taken(read_trace_from(changed(JOBS[jobs], &of(0)), "f", &options))?;
    let cluster = taken(read_cluster_from(changed(NODES[nodes], &of(1)), "f", &options))?;
    let overheads = taken(StartOverheads::read("f", changed(OVERHEADS, &of(2))))?;
    let Some(trace) = trace else { return Ok(()) };
    stats::describe(&trace, cluster.as_ref());
    write_trace(&trace, Vec::new()).expect("what was read can be written");
    if trace.jobs.iter().all(|job| job.duration_ms.is_some()) {
        write_job_table(&trace, Vec::new()).expect("what was read can be written");
    }
    let Some(cluster) = cluster else { return Ok(()) };
    let events = taken(read_cluster_events(changed(EVENTS, &of(3)), "f", &cluster))?;
    impossible_jobs(&cluster.nodes, &trace.jobs).expect("an answer for every job");
    replay(&trace, &cluster, &overheads.unwrap_or_default());
    let (nodes, jobs) = (cluster.nodes, trace.jobs.clone());
    let world = TimedWorld {
        nodes,
        jobs,
        cluster_events: events.unwrap_or_default(),
        ..TimedWorld::default()
    };
    simulate(world, &trace, kind)
}

#[test]
fn every_extreme_in_every_column_is_taken_or_refused_with_its_place() {
    let columns = |(header, rows): File| match header {
        "" => rows[0].split(' ').count(),
        header => header.split(',').count(),
    };
    let mut kind = 0;
    for (jobs, of_jobs) in JOBS.into_iter().enumerate() {
        for (nodes, of_nodes) in NODES.into_iter().enumerate() {
            let files = [of_jobs, of_nodes, OVERHEADS, EVENTS];
            for (file, of) in files.into_iter().enumerate() {
                for column in 0..columns(of) {
                    for extreme in 0..EXTREMES.len() {
                        for row in [Some(0), None] {
                            kind += 1;
                            let change = (file, row, column, extreme);
                            let used = use_all(jobs, nodes, &[change], kind);
                            used.unwrap_or_else(|problem| panic!("{change:?}: {problem}"));
                        }
                    }
                }
            }
        }
    }
}

/// An extreme in an order file is refused with its line, or names a seed or a trace that nobody
/// asked for, or the order is replayed.
#[test]
fn every_extreme_in_an_order_file_is_replayed_or_refused_with_its_place() {
    let options = ReadOptions::default();
    let trace = read_trace_from(changed(JOBS[2], &[]), "f", &options).expect("good pods");
    let cluster = read_cluster_from(changed(NODES[1], &[]), "f", &options).expect("good nodes");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extreme_orders.csv");
    let both: [u32; 2] = [0, 1];
    let mut replayed = 0;
    for (line, is_of_nodes) in ORDERS {
        for extreme in EXTREMES {
            let line = line.replace('@', extreme);
            let first = if is_of_nodes { "a,7,0 1" } else { "7,0 1" };
            std::fs::write(&file, format!("{first}\n{line}\n")).expect("a file");
            let read = match is_of_nodes {
                true => read_node_order(&file, "a", 8, 2),
                false => read_arrival_order(&file, 8, 2),
            };
            let order = match read {
                Ok(order) => order,
                Err(TraceError::Row(error)) => {
                    assert_eq!(error.line, 2, "{line}: {error}");
                    continue;
                }
                Err(TraceError::NoOrder { .. }) => continue,
                Err(other) => panic!("{line}: {other}"),
            };
            let (arrivals, node_order) =
                if is_of_nodes { (&both[..], &order[..]) } else { (&order[..], &both[..]) };
            let (nodes, pods) = (cluster.nodes.as_slice(), trace.jobs.as_slice());
            let world = FgdWorld { nodes, pods, arrivals, node_order };
            let policy = PolicySpec::named("dovetail");
            let config = EngineConfig { policy, ..EngineConfig::default() };
            run_fgd(&world, config, &mut || 0, &mut |_, _, _| {}).expect("an order is replayed");
            replayed += 1;
        }
    }
    assert!(replayed > 0);
}

/// Writers write every column of their format: one that is new there must be added here.
#[test]
fn no_column_of_our_own_formats_is_left_out() {
    let options = ReadOptions::default();
    let jobs =
        |at: usize| read_trace_from(changed(JOBS[at], &[]), "f", &options).expect("good jobs");
    let cluster = read_cluster_from(changed(NODES[0], &[]), "f", &options).expect("good nodes");
    let mut written: [Vec<u8>; 3] = Default::default();
    write_trace(&jobs(0), &mut written[0]).expect("written");
    write_job_table(&jobs(1), &mut written[1]).expect("written");
    write_cluster(&cluster, &mut written[2]).expect("written");
    let columns = |header: &str| header.split(',').map(str::to_owned).collect::<BTreeSet<String>>();
    for (bytes, (header, _)) in written.into_iter().zip([JOBS[0], JOBS[1], NODES[0]]) {
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(columns(text.lines().next().expect("a header")), columns(header));
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn extremes_that_meet_never_panic(
        jobs in 0..JOBS.len(),
        nodes in 0..NODES.len(),
        changes in proptest::collection::vec(change(4), 1..6),
        kind in 0..30_usize,
    ) {
        use_all(jobs, nodes, &changes, kind)?;
    }
}
