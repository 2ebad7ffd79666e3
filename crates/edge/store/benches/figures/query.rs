//! A month of a large cluster: how much is kept of it, and how long answers take.

use std::time::{Duration, Instant};

use dovetail_ledger::device_time::{DeviceInterval, DeviceState, Span, Work};
use dovetail_ledger::rollup::HOUR_MS;
use dovetail_ledger::signal::Signal;
use dovetail_model::Money;
use dovetail_store::{Detail, Question, ReadDevice, Reading, Retention, Store, SumRow};

use crate::cluster::{GPUS_PER_NODE, NODES, START_HOUR, bytes_on_disk, ledger, nodes, pods, run};

pub(crate) fn print() {
    let days = std::env::var("DOVETAIL_LEDGER_DAYS").ok().and_then(|text| text.parse().ok());
    let days: u64 = days.unwrap_or(30);
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(async {
        let mut store = ledger(folder.path()).await;
        let start = Instant::now();
        let end_hour = START_HOUR + days * 24;
        for hour in START_HOUR..end_hour {
            let reading = reading(hour);
            store.keep(&reading, reading.span.to_ms).await.expect("kept");
            // Devices of one day are kept: what is measured are the sums.
            if hour % 24 == 23 {
                let retention = Retention { devices_days: 0, nodes_days: 90 };
                store.forget(reading.span.to_ms, &retention).await.expect("forgotten");
            }
        }
        let filled_s = start.elapsed().as_secs_f64();
        let gpu_hours = days * 24 * (NODES * GPUS_PER_NODE) as u64;
        println!("{days} days in {}, filled in {filled_s:.0} s", store.address());
        println!("| what | measured | target |");
        println!("|---|---|---|");
        let by_job = Detail { workload: true, ..Detail::default() };
        for (what, detail, target) in [
            ("cost by team and cause", Detail::default(), "300 ms"),
            ("top 100 jobs", by_job, "1 s"),
        ] {
            // The first one warms.
            let mut times: Vec<(Duration, usize)> = Vec::new();
            for _ in 0..6 {
                let start = Instant::now();
                let rows = sums(&mut store, end_hour, detail).await;
                times.push((start.elapsed(), rows.len()));
            }
            times.remove(0);
            times.sort();
            let (median, rows) = times[times.len() / 2];
            println!("| {what}: {rows} rows, median of 5 | {} ms | {target} |", median.as_millis());
        }
        let from_days = total(&sums(&mut store, end_hour, Detail::default()).await);
        let of_hours = Detail { node: true, ..Detail::default() };
        let from_hours = total(&sums(&mut store, end_hour, of_hours).await);
        println!(
            "| {from_days} by days, {from_hours} by hours | {} | equal |",
            from_days == from_hours
        );
        store.close().await;
        let bytes = bytes_on_disk(folder.path());
        if bytes > 0 {
            println!("| bytes a GPU-hour | {:.1} | 60 |", bytes as f64 / gpu_hours as f64);
        }
    });
}

async fn sums(store: &mut Store, to_hour: u64, detail: Detail) -> Vec<SumRow> {
    let question = Question { cluster: None, from_hour: START_HOUR, to_hour, detail };
    store.sums(&question).await.expect("an answer")
}

fn total(rows: &[SumRow]) -> Money {
    let mut sum = Money::ZERO;
    rows.iter().filter_map(|row| row.costs[0]).for_each(|cost| sum += cost);
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
