//! A month of a large cluster: how much is kept of it, and how long answers take.
//!
//! Hours in which all jobs of a turn run are kept as a program keeps them; all others are copied from these in the
//! database, each node from the turn that it is in. Days are then added up in the database, by a statement that is shown
//! first to give what the program wrote.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dovetail_ledger::device_time::{DeviceInterval, DeviceState, Span, Work};
use dovetail_ledger::rollup::HOUR_MS;
use dovetail_ledger::signal::Signal;
use dovetail_store::{Address, Detail, Question, ReadDevice, Reading, Retention, Store, SumRow};
use dovetail_testkit::PostgresServer;

use crate::cluster::{GPUS_PER_NODE, HOURS_PER_JOB, NODES, START_HOUR, address, nodes, pods, run};
use crate::month::Month;

/// Answers are timed so often, after one that warms.
const TIMES: usize = 9;

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
    let last_turn = START_HOUR + (days * 24).next_multiple_of(HOURS_PER_JOB);
    for hour in (START_HOUR..=last_turn).step_by(HOURS_PER_JOB as usize) {
        let reading = reading(hour);
        store.keep(&reading, reading.span.to_ms).await.expect("kept");
    }
    // Devices have been rolled up: what is left is measured.
    let retention = Retention { devices_days: 0, nodes_days: 90 };
    let now_ms = (last_turn + 1).next_multiple_of(24) * HOUR_MS;
    store.forget(now_ms, &retention).await.expect("forgotten");
    let mut month = Month::open(address).await;
    month.fill(START_HOUR, end_hour).await;
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

/// How long answers take, and that they are the hours' to the micro-dollar.
async fn answers(store: &mut Store, end_hour: u64) {
    let by_job = Detail { workload: true, ..Detail::default() };
    let of_hours = Detail { node: true, ..Detail::default() };
    let by_hours = total(&sums(store, end_hour, of_hours).await);
    for (what, detail, most, target_ms) in [
        ("cost by team and cause", Detail::default(), None, 300),
        ("top 100 jobs", by_job, Some(100), 1000),
    ] {
        let (mut times, mut shown) = (Vec::new(), 0);
        for _ in 0..=TIMES {
            let start = Instant::now();
            let rows = sums(store, end_hour, detail).await;
            shown = most.map_or(rows.len(), |most| dearest(&rows, most).len());
            times.push(start.elapsed());
        }
        times.remove(0);
        times.sort();
        let [least, median] = [times[0], times[TIMES / 2]].map(|time: Duration| time.as_millis());
        println!(
            "| {what}: {shown} rows, median of {TIMES} (least) | {median} ms ({least}) | {target_ms} ms |"
        );
        let by_days = total(&sums(store, end_hour, detail).await);
        assert_eq!(by_days, by_hours, "{what}: days are their hours");
        println!("| {what}: GPU-time and cost by five methods | those of the hours | equal |");
    }
}

async fn sums(store: &mut Store, to_hour: u64, detail: Detail) -> Vec<SumRow> {
    let question = Question { cluster: None, from_hour: START_HOUR, to_hour, detail };
    store.sums(&question).await.expect("an answer")
}

/// The jobs that cost most, over all causes.
fn dearest(rows: &[SumRow], most: usize) -> Vec<(i64, &str)> {
    let mut jobs: HashMap<&str, i64> = HashMap::new();
    for row in rows {
        let Some(workload) = &row.workload else { continue };
        let cost = row.costs[0].map_or(0, |cost| cost.usd_micros);
        *jobs.entry(&workload.job).or_default() += cost;
    }
    // order-free: sorted by cost and name.
    let mut jobs: Vec<(i64, &str)> = jobs.into_iter().map(|(job, cost)| (cost, job)).collect();
    jobs.sort_unstable_by(|one, other| other.cmp(one));
    jobs.truncate(most);
    jobs
}

/// Costs under each method, in micro-dollars, and GPU-time.
fn total(rows: &[SumRow]) -> ([i128; 5], i128) {
    let mut sum = ([0; 5], 0);
    for row in rows {
        sum.1 += row.gpu_milli_ms;
        for (sum, cost) in sum.0.iter_mut().zip(row.costs) {
            *sum += cost.map_or(0, |cost| i128::from(cost.usd_micros));
        }
    }
    sum
}

/// Each GPU computes for most of the hour and idles for the rest; every tenth node has two free ones.
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
            let active = DeviceState::Active(Work::NotSeparable);
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
        free: Vec::new(),
    }
}
