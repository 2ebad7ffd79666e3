//! Two hours of three GPUs, small enough to work out by hand, in a ledger.

use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::{ActiveWork, DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::{HOUR_MS, NodeTerms};
use dovetail_account::split::ListPrices;
use dovetail_serve::LedgerBooks;
use dovetail_store::{
    Address, Party, ReadDevice, ReadKept, ReadNode, ReadPod, ReadUsed, Reading, Store, USED_SLOT_MS,
};
use tempfile::TempDir;

/// 2026-11-18T00:00:00Z.
pub(crate) const BEGIN_MS: u64 = 1_794_960_000_000;

pub(crate) const ACTIVE: DeviceState = DeviceState::Active(ActiveWork::NotSeparable);

fn intervals(states: [(DeviceState, Option<u32>); 2]) -> Vec<DeviceInterval> {
    let hours = states.into_iter().zip([BEGIN_MS, BEGIN_MS + HOUR_MS]);
    let interval = |((state, holder), from_ms)| DeviceInterval {
        span: Span { from_ms, to_ms: from_ms + HOUR_MS },
        gpu_milli: 1000,
        state,
        holder,
        signal: None,
    };
    hours.map(interval).collect()
}

fn pod(namespace: &str, name: &str, job: &str, labels: &[(&str, &str)]) -> ReadPod {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ReadPod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        job: job.to_owned(),
        queue: None,
        model: None,
        namespace_labels: [("team".to_owned(), "all".to_owned())].into(),
        labels: labels.collect(),
    }
}

/// Node `a` has two GPUs at $6 an hour and 32 vCPUs at $0.05; node `b` has one without a price. In
/// the first hour `serve` computes on both GPUs of `a` and keeps 8 of its vCPUs, in the second one
/// GPU is idle and one free; `train` holds the GPU of `b`, and nobody knows what it did.
pub(crate) fn reading() -> Reading {
    let lists = ListPrices { usd_micros_per_vcpu_hour: 50_000, usd_micros_per_gib_hour: 0 };
    let node = |name: &str, usd_micros_per_gpu_hour| ReadNode {
        name: name.to_owned(),
        gpu_type: "H100".to_owned(),
        pool: format!("NodePool {name}s"),
        terms: NodeTerms {
            usd_micros_per_gpu_hour,
            cpu_milli: 32_000,
            memory_bytes: 1 << 38,
            list_prices: Some(lists),
        },
        ..ReadNode::default()
    };
    let device = |node: usize, name: &str, states| ReadDevice {
        node,
        name: name.to_owned(),
        intervals: intervals(states),
    };
    let held = HeldTime { cpu_milli_ms: 8_000 * i128::from(HOUR_MS), memory_byte_ms: 0 };
    // On average 60% busy in the first hour, on two GPUs; idle on one in the second.
    let used = |slot: u64| ReadUsed {
        node: 0,
        pod: 0,
        slot_ms: BEGIN_MS + slot * USED_SLOT_MS,
        measured_gpu_milli_ms: if slot < 12 { 2000 * 300_000 } else { 1000 * 300_000 },
        used_gpu_milli_ms: if slot < 12 { 1200 * 300_000 } else { 0 },
    };
    let nobody = (DeviceState::Free(None), None);
    Reading {
        cluster: "west".to_owned(),
        source: "http://prometheus.example".to_owned(),
        span: Span { from_ms: BEGIN_MS, to_ms: BEGIN_MS + 2 * HOUR_MS },
        step_ms: Some(60_000),
        nodes: vec![node("a", Some(6_000_000)), node("b", None)],
        pods: vec![
            pod("prod", "serve-0", "Deployment prod/serve", &[("team", "eyes")]),
            pod("lab", "train-0", "lab/train", &[]),
        ],
        devices: vec![
            device(0, "GPU-0", [(ACTIVE, Some(0)), (DeviceState::Idle, Some(0))]),
            device(0, "GPU-1", [(ACTIVE, Some(0)), nobody]),
            device(1, "GPU-2", [(DeviceState::Unknown, Some(1)); 2]),
        ],
        kept: Some(vec![ReadKept { hour_ms: BEGIN_MS, node: 0, pod: 0, held }]),
        free: Vec::new(),
        used: (0..24).map(used).collect(),
    }
}

/// A ledger in a folder that goes with it, as it is asked; the team is the label.
pub(crate) async fn ledger() -> (TempDir, LedgerBooks) {
    let folder = tempfile::tempdir().expect("a folder");
    let address = Address::File(folder.path().join("ledger.db"));
    let mut store = Store::open(&address).await.expect("a ledger");
    store.keep(&reading(), BEGIN_MS + 5 * HOUR_MS).await.expect("kept");
    store.close().await;
    let team = |party: &Party| party.labels.get("team").cloned();
    let books = LedgerBooks::open(&address, None, Box::new(team)).expect("a ledger");
    (folder, books)
}
