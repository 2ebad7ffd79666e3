//! A cluster of 40,000 GPUs: 5,000 nodes in 20 pools; 2,500 jobs of 16 GPUs at a time, of 200
//! teams, each for 30 hours, 60,000 in 30 days; they start and end at hours of their own. A job
//! stands in one pool, a team's in most of them.

use std::future::Future;

use dovetail_account::rollup::NodeTerms;
use dovetail_account::split::ListPrices;
use dovetail_store::{Address, ReadNode, ReadPod, Store};

pub(crate) const NODES: usize = 5_000;
pub(crate) const GPUS_PER_NODE: usize = 8;
const NODES_PER_JOB: usize = 2;
pub(crate) const JOBS: usize = NODES / NODES_PER_JOB;
const TEAMS: usize = 200;
/// Jobs of a place in the cluster follow each other.
pub(crate) const HOURS_PER_JOB: u64 = 30;
const NODES_PER_POOL: usize = NODES / 20;
/// A day, and the begin of a turn of all jobs.
pub(crate) const START_HOUR: u64 = 20_000 * 24;

/// The job of a node in an hour.
pub(crate) fn job(node: usize, hour: u64) -> usize {
    let turn = (hour + ahead_hours(node)) / HOURS_PER_JOB;
    turn as usize * JOBS + node / NODES_PER_JOB
}

/// How much earlier than others the jobs of a node begin and end.
pub(crate) fn ahead_hours(node: usize) -> u64 {
    (node / NODES_PER_JOB) as u64 % HOURS_PER_JOB
}

/// The pod of a job on a node.
pub(crate) fn pod_name(node: usize, job: usize) -> String {
    format!("train-{job}-{}", node % NODES_PER_JOB)
}

pub(crate) fn namespace(job: usize) -> String {
    format!("team-{}", job * 7919 % TEAMS)
}

pub(crate) fn node_name(node: usize) -> String {
    format!("ip-10-{}-{}.ec2.internal", node / NODES_PER_POOL, node % NODES_PER_POOL)
}

pub(crate) fn nodes() -> Vec<ReadNode> {
    let list_prices =
        ListPrices { usd_micros_per_vcpu_hour: 40_000, usd_micros_per_gib_hour: 5_000 };
    let terms = NodeTerms {
        usd_micros_per_gpu_hour: Some(6_880_000),
        cpu_milli: 192_000,
        memory_bytes: 2 << 40,
        list_prices: Some(list_prices),
    };
    let node = |node: usize| ReadNode {
        name: node_name(node),
        gpu_type: if node < 4 * NODES_PER_POOL { "A100-80GB" } else { "H100" }.to_owned(),
        pool: format!("NodePool p{}", node / NODES_PER_POOL),
        terms,
        ..ReadNode::default()
    };
    (0..NODES).map(node).collect()
}

/// The pod of each node, by place of the node.
pub(crate) fn pods(hour: u64) -> Vec<ReadPod> {
    let pod = |node: usize| {
        let job = job(node, hour);
        ReadPod {
            namespace: namespace(job),
            name: pod_name(node, job),
            job: format!("Job {}/train-{job}", namespace(job)),
            ..ReadPod::default()
        }
    };
    (0..NODES).map(pod).collect()
}

/// An empty ledger: a file in a temporary folder, or the database that is named.
pub(crate) async fn ledger(folder: &std::path::Path) -> Store {
    Store::open(&address(folder)).await.expect("a ledger")
}

pub(crate) fn address(folder: &std::path::Path) -> Address {
    match std::env::var("DOVETAIL_LEDGER") {
        Ok(url) => url.parse().expect("an address"),
        Err(_) => Address::File(folder.join("ledger.db")),
    }
}

pub(crate) fn bytes_on_disk(folder: &std::path::Path) -> u64 {
    std::fs::metadata(folder.join("ledger.db")).map_or(0, |file| file.len())
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}
