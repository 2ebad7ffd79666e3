//! A month of a large cluster: how much is kept of it, and how long answers take.
//!
//! Hours in which all jobs of a turn run are kept as a program keeps them; all others are copied
//! from these in the database, each node from the turn that it is in. Days are then added up in the
//! database, by a statement that is shown first to give what the program wrote.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dovetail_account::device_time::{ActiveWork, DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::HOUR_MS;
use dovetail_account::signal::Signal;
use dovetail_account::split::SplitMethod;
use dovetail_store::{
    Address, Detail, ReadDevice, Reading, Retention, Store, SumQuery, SumRow, TopJobs,
    default_method,
};
use dovetail_testkit::PostgresServer;

use crate::cluster::{GPUS_PER_NODE, HOURS_PER_JOB, NODES, START_HOUR, address, nodes, pods, run};
use crate::month::Month;

/// Answers are timed so often, after one that warms.
const TIMES: usize = 9;
const MOST_JOBS: u32 = 100;

pub(crate) fn print() {
    let days = std::env::var("DOVETAIL_LEDGER_DAYS").ok().and_then(|text| text.parse().ok());
    let days: u64 = days.unwrap_or(30);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = address(folder.path());
    run(figures(&first, days));
    if matches!(first, Address::File(_))
        && let Some(server) = PostgresServer::start()
    {
        run(figures(&Address::Server(server.url()), days));
    }
}

async fn figures(address: &Address, days: u64) {
    let start = Instant::now();
    let mut store = Store::open(address).await.expect("a ledger");
    let end_hour = START_HOUR + days * 24;
    let mut month = Month::open(address).await;
    // What an earlier run has filled is asked again.
    if store.clusters().await.expect("clusters").is_empty() {
        fill(&mut store, &mut month, end_hour).await;
    }
    let kind = if matches!(address, Address::File(_)) { "SQLite" } else { "PostgreSQL" };
    println!("\n{days} days in {kind}, filled in {:.0} s\n", start.elapsed().as_secs_f64());
    println!("| what | measured | target |");
    println!("|---|---|---|");
    answers(&mut store, end_hour).await;
    store.close().await;
    let gpu_hours = days * 24 * (NODES * GPUS_PER_NODE) as u64;
    for (table, bytes, target) in month.bytes().await {
        println!(
            "| bytes a GPU-hour, {table} | {:.1} | {target} |",
            bytes as f64 / gpu_hours as f64
        );
    }
}

async fn fill(store: &mut Store, month: &mut Month, end_hour: u64) {
    let hours = (end_hour - START_HOUR).next_multiple_of(HOURS_PER_JOB);
    let last_turn = START_HOUR + hours;
    for hour in (START_HOUR..=last_turn).step_by(HOURS_PER_JOB as usize) {
        let reading = reading(hour);
        store.keep(&reading, reading.span.to_ms).await.expect("kept");
    }
    // Devices have been rolled up: what is left is measured.
    let retention = Retention { devices_days: 0, nodes_days: 90 };
    let now_ms = (last_turn + 1).next_multiple_of(24) * HOUR_MS;
    retention.apply(store, now_ms).await.expect("forgotten");
    month.fill(START_HOUR, end_hour).await;
}

/// What a question is.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Teams,
    TopJobs,
    AllJobs,
}

/// How long answers take, and that they are the hours' to the micro-dollar.
async fn answers(store: &mut Store, end_hour: u64) {
    let whole = (START_HOUR, end_hour, "");
    // At either end half a day, for which there are hours alone.
    let noons = (START_HOUR + 12, end_hour - 12, ", from noon to noon");
    for ((from, to, which), asked, target) in [
        (whole, Asked::Teams, "300 ms"),
        (whole, Asked::TopJobs, "1000 ms"),
        (noons, Asked::Teams, ""),
        (noons, Asked::TopJobs, ""),
        (whole, Asked::AllJobs, ""),
    ] {
        let what = match asked {
            Asked::Teams => "cost by team and cause",
            Asked::TopJobs => "top 100 jobs",
            Asked::AllJobs => "all jobs",
        };
        let mut times = Vec::new();
        for _ in 0..=TIMES {
            let start = Instant::now();
            _ = ask(store, asked, (from, to)).await;
            times.push(start.elapsed());
        }
        times.remove(0);
        times.sort();
        let [least, median] = [times[0], times[TIMES / 2]].map(|time: Duration| time.as_millis());
        let found = ask(store, asked, (from, to)).await;
        println!(
            "| {what}{which}: {} rows, median of {TIMES} (least) | {median} ms ({least}) | {target} |",
            found.rows.len()
        );
        let by_node = Detail { workload: true, node: true, ..Detail::default() };
        let question = SumQuery { cluster: None, from_hour: from, to_hour: to, detail: by_node };
        let hours = store.sums(&question).await.expect("an answer");
        let all = found.rows.iter().chain(&found.others);
        assert_eq!(total(all), total(&hours), "{what}: days are their hours");
        if matches!(asked, Asked::TopJobs) {
            let place = place(default_method(&hours));
            let expected = dearest(&hours, place);
            assert_eq!(dearest(&found.rows, place), expected, "{what}: as of the hours");
        }
        println!(
            "| {what}{which}: GPU time and cost by five methods | those of the hours | equal |"
        );
    }
}

async fn ask(store: &mut Store, asked: Asked, (from_hour, to_hour): (u64, u64)) -> TopJobs {
    let workload = matches!(asked, Asked::AllJobs);
    let detail = Detail { workload, ..Detail::default() };
    let question = SumQuery { cluster: None, from_hour, to_hour, detail };
    match asked {
        Asked::TopJobs => TopJobs::of(store, &question, MOST_JOBS, None).await.expect("an answer"),
        Asked::Teams | Asked::AllJobs => {
            let rows = store.sums(&question).await.expect("an answer");
            TopJobs { rows, ..TopJobs::default() }
        }
    }
}

fn place(method: SplitMethod) -> usize {
    SplitMethod::ALL.iter().position(|known| *known == method).expect("a method")
}

/// Costs under a method of the jobs that cost most, over all causes.
fn dearest(rows: &[SumRow], place: usize) -> Vec<i64> {
    let mut jobs: BTreeMap<&str, i64> = BTreeMap::new();
    for row in rows {
        let Some(workload) = &row.workload else { continue };
        let cost = row.costs[place].map_or(0, |cost| cost.usd_micros);
        *jobs.entry(&workload.job).or_default() += cost;
    }
    let mut costs: Vec<i64> = jobs.into_values().collect();
    costs.sort_unstable_by(|one, other| other.cmp(one));
    costs.truncate(MOST_JOBS as usize);
    costs
}

/// Costs under each method, in micro-dollars, and GPU-time.
fn total<'r>(rows: impl IntoIterator<Item = &'r SumRow>) -> ([i128; 5], i128) {
    let mut sum = ([0; 5], 0);
    for row in rows {
        sum.1 += row.gpu_milli_ms;
        for (sum, cost) in sum.0.iter_mut().zip(row.costs) {
            *sum += cost.map_or(0, |cost| i128::from(cost.usd_micros));
        }
    }
    sum
}

/// Each GPU computes for most of the hour and idles for the rest; every tenth node has two free
/// ones.
fn reading(hour: u64) -> Reading {
    let span = Span { from_ms: hour * HOUR_MS, to_ms: (hour + 1) * HOUR_MS };
    let device = |(node, gpu): (usize, usize)| {
        let cut_ms = span.from_ms + (1 + (hour + (node * 7 + gpu) as u64) % 110) * 30_000;
        let interval = |from_ms, to_ms, state, holder| DeviceInterval {
            span: Span { from_ms, to_ms },
            gpu_milli: 1000,
            state,
            holder,
            signal: Some(Signal::GrEngineActive).filter(|_| holder.is_some()),
        };
        let holder = Some(node as u32);
        let intervals = if node.is_multiple_of(10) && gpu > 5 {
            vec![interval(span.from_ms, span.to_ms, DeviceState::Free(None), None)]
        } else {
            let active = DeviceState::Active(ActiveWork::NotSeparable);
            vec![
                interval(span.from_ms, cut_ms, DeviceState::Idle, holder),
                interval(cut_ms, span.to_ms, active, holder),
            ]
        };
        ReadDevice { node, name: format!("GPU-{node:08x}-{gpu:04x}"), intervals }
    };
    let devices = (0..NODES).flat_map(|node| (0..GPUS_PER_NODE).map(move |gpu| (node, gpu)));
    Reading {
        cluster: "bench".to_owned(),
        source: "http://prometheus".to_owned(),
        span,
        step_ms: Some(60_000),
        devices: devices.map(device).collect(),
        pods: pods(hour),
        nodes: nodes(),
        kept: None,
        ..Reading::default()
    }
}
