//! Everything that reads what strangers wrote, as functions of bytes: for the fuzz targets, and for
//! the tests that feed them garbage.

use std::fmt::Display;
use std::io::{BufReader, Cursor};

use dovetail_account::device_time::Span;
use dovetail_account::signal::ActivityRule;
use dovetail_account::{IdleRule, idle_runs};
use dovetail_audit::{NodePrice, SuppressionPolicy, report};
use dovetail_bill::import::{self, BilledMachines, Cost};
use dovetail_facts::device_states;
use dovetail_inventory::dump::{Pseudonyms, read_objects};
use dovetail_inventory::facts::{Inventory, TEAM_LABELS};
use dovetail_metrics::exporter::{Observation, PodLabels, measures};
use dovetail_metrics::file::{UsageFileOptions, read_usage_file};
use dovetail_metrics::prometheus;
use dovetail_metrics::scrape::Scrapes;
use dovetail_price::{PriceBook, Purchase};
use dovetail_trace::{ReadOptions, read_cluster_from, read_trace_from, stats};

/// Name of the file in messages.
pub(super) const FILE: &str = "input-from-a-stranger";

/// 2026-11-20T12:00:00Z.
const NOW_MS: u64 = 1_795_176_000_000;

/// What came of it: taken, or why not.
pub(super) type Outcome = Result<(), String>;

/// A reader, and something that it takes.
pub(super) struct Reader {
    /// What it reads.
    pub(super) name: &'static str,
    /// Reads and uses what was read.
    pub(super) read: fn(&[u8]) -> Outcome,
    /// Good input.
    pub(super) seed: &'static str,
}

/// All of them.
pub(super) const READERS: [Reader; 9] = [
    Reader { name: "bill", read: bill, seed: include_str!("seeds/bill.csv") },
    Reader { name: "cluster", read: cluster, seed: include_str!("seeds/cluster.csv") },
    Reader { name: "dump", read: dump, seed: include_str!("seeds/dump.json") },
    Reader { name: "exporter", read: exporter, seed: include_str!("seeds/exporter.txt") },
    Reader { name: "names", read: names, seed: include_str!("seeds/names.json") },
    Reader { name: "prices", read: prices, seed: include_str!("seeds/prices.csv") },
    Reader { name: "prometheus", read: prometheus_answer, seed: include_str!("seeds/answer.json") },
    Reader { name: "trace", read: trace, seed: include_str!("seeds/trace.csv") },
    Reader { name: "usage", read: usage, seed: include_str!("seeds/usage.csv") },
];

/// A provider's bill, and what it says of a machine.
pub(super) fn bill(bytes: &[u8]) -> Outcome {
    let machines = BilledMachines::new([("aws:///us-east-1a/i-1", 0)]);
    let bill = import::read(bytes, FILE, &machines).map_err(told)?;
    bill.cost(0, 0, NOW_MS);
    bill.cost(0, NOW_MS - 1, u64::MAX);
    bill.rate(Cost::Effective, 0, 3_600_000);
    bill.unmatched();
    bill.bought(0);
    let usd = bill.in_usd(1_080_000_000_000).map_err(|problem| format!("{FILE}: {problem}"))?;
    usd.cost(0, 0, NOW_MS);
    Ok(())
}

/// Machines of a simulated cluster.
pub(super) fn cluster(bytes: &[u8]) -> Outcome {
    let input = Cursor::new(bytes.to_vec());
    read_cluster_from(input, FILE, &ReadOptions::default()).map_err(told)?;
    Ok(())
}

/// What `kubectl get -o json` writes, and the audit of it.
pub(super) fn dump(bytes: &[u8]) -> Outcome {
    let mut inventory = Inventory::new(NOW_MS);
    read_objects(BufReader::new(bytes), FILE, &mut inventory).map_err(told)?;
    let mut gathered = inventory.facts(TEAM_LABELS.map(str::to_owned).into());
    let states = device_states(&mut gathered.facts, &gathered.moment).map_err(told)?;
    let prices = vec![NodePrice::default(); gathered.facts.nodes.len()];
    report(&gathered.facts, &gathered.moment, states, &prices, &SuppressionPolicy::default());
    Ok(())
}

/// The page of a GPU exporter, and the devices on it.
pub(super) fn exporter(bytes: &[u8]) -> Outcome {
    let mut scrapes = Scrapes::default();
    scrapes.take(FILE, bytes, (NOW_MS - 60_000) as i64).map_err(told)?;
    let refused =
        scrapes.refused().map(|refused| format!("line {} {}", refused.line, refused.problem));
    let (observation, _) = scrapes.observation();
    let period = Span { from_ms: NOW_MS - 60_000, to_ms: NOW_MS };
    observation.histories(period, 15_000, &ActivityRule::default());
    refused.map_or(Ok(()), Err)
}

/// The owner's table of names that were replaced by hashes.
pub(super) fn names(bytes: &[u8]) -> Outcome {
    let text = std::str::from_utf8(bytes).map_err(told)?;
    Pseudonyms::from_json(text).map_err(told)?;
    Ok(())
}

/// A user's prices.
pub(super) fn prices(bytes: &[u8]) -> Outcome {
    let book = PriceBook::built_in().with_overrides_csv(bytes, FILE).map_err(told)?;
    book.lookup(Some("H100"), None, None, Purchase::OnDemand);
    Ok(())
}

/// What Prometheus answers, as every measure that exporters have.
pub(super) fn prometheus_answer(bytes: &[u8]) -> Outcome {
    let answer = prometheus::read(bytes).map_err(told)?;
    let mut observation = Observation::default();
    let pods = PodLabels::of(answer.series.iter().map(|series| &series.labels));
    for (_, measure, scale) in measures() {
        observation.take(measure, scale, &pods, answer.series.clone());
    }
    let period = Span { from_ms: NOW_MS - 86_400_000, to_ms: NOW_MS };
    observation.histories(period, 60_000, &ActivityRule::default());
    Ok(())
}

/// Jobs of a trace, told apart by their header, and what is in it.
pub(super) fn trace(bytes: &[u8]) -> Outcome {
    let input = Cursor::new(bytes.to_vec());
    let trace = read_trace_from(input, FILE, &ReadOptions::default()).map_err(told)?;
    let input = Cursor::new(bytes.to_vec());
    let lenient = ReadOptions { skip_bad_rows: true, ..ReadOptions::default() };
    read_trace_from(input, FILE, &lenient).map_err(told)?;
    stats::describe(&trace, None);
    Ok(())
}

/// Samples of what GPUs did, and their idle runs.
pub(super) fn usage(bytes: &[u8]) -> Outcome {
    let lenient = UsageFileOptions { skip_bad_rows: true, latest_ms: NOW_MS };
    let rule = IdleRule { threshold_micro_percent: 5_000_000, min_run_ms: 1, grace_ms: 0 };
    if let Ok(samples) = read_usage_file(bytes, FILE, &lenient) {
        idle_runs(samples.of_pods(), &rule);
    }
    let strict = UsageFileOptions { skip_bad_rows: false, latest_ms: NOW_MS };
    read_usage_file(bytes, FILE, &strict).map_err(told)?;
    Ok(())
}

fn told(error: impl Display) -> String {
    error.to_string()
}
