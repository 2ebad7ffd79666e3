//! The order in which pods arrive and nodes break ties, for one seed.
//!
//! Steps of the published experiment (hkust-adsl/kubernetes-scheduler-simulator, Apache-2.0):
//! shuffle the pods sorted by name; add random pods again, or remove random pods, until the
//! requested GPU is 1.3 times the cluster's; permute the nodes sorted by name.

use super::go_random::GoRandom;
use crate::error::TraceError;
use crate::job::TraceJob;
use crate::node::TraceNode;

/// The generator is drawn once for the argument of a log line before the shuffle.
const DRAWS_BEFORE_SHUFFLE: u32 = 1;
/// Ten watches start between the pods and the nodes and draw once each for their back-off.
const DRAWS_BEFORE_NODES: u32 = 10;
/// Requested GPU over the GPU of the cluster, in tenths.
const TARGET_TENTHS: u128 = 13;
/// A trace that asks for so little GPU that it would have to be repeated beyond this is refused.
const MOST_ARRIVALS: usize = 20_000_000;

/// The seeded orders of one run, as row indices (from 0) into the pods and nodes given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FgdOrders {
    /// Pods in the order of arrival; a pod can come several times or never.
    pub arrivals: Vec<u32>,
    /// Nodes, the one that wins ties first.
    pub nodes: Vec<u32>,
}

/// Computes both orders for a seed.
///
/// # Errors
/// [`TraceError::Protocol`] without pods, nodes or GPU demand, or with jobs of several pods.
pub fn fgd_orders(
    pods: &[TraceJob],
    nodes: &[TraceNode],
    seed: i64,
) -> Result<FgdOrders, TraceError> {
    check(pods, nodes)?;
    let cluster: u128 = nodes.iter().map(|node| u128::from(node.gpu_count) * 1000).sum();
    let mut random = GoRandom::new(seed);
    discard(&mut random, DRAWS_BEFORE_SHUFFLE);
    let by_name = sorted_by_name(pods, |pod| &pod.id);
    let mut arrivals = by_name.clone();
    random.shuffle(&mut arrivals);
    tune(&mut random, pods, &by_name, &mut arrivals, cluster * TARGET_TENTHS / 10)?;
    discard(&mut random, DRAWS_BEFORE_NODES);
    Ok(FgdOrders { arrivals, nodes: node_order(&mut random, nodes) })
}

fn check(pods: &[TraceJob], nodes: &[TraceNode]) -> Result<(), TraceError> {
    if pods.iter().all(|pod| pod.gpu_count == 0) {
        let problem = "no pod from here on requests a GPU".to_owned();
        let (job, expected) = ((!pods.is_empty()).then_some(0), "pods that request GPUs");
        return Err(TraceError::Protocol { job, problem, expected });
    }
    if let Some(job) = pods.iter().position(|pod| pod.pod_count != 1) {
        let problem = format!("job {} has {} pods", pods[job].id, pods[job].pod_count);
        let expected = "jobs of one pod each";
        return Err(TraceError::Protocol { job: Some(job), problem, expected });
    }
    if nodes.is_empty() || pods.len().max(nodes.len()) > i32::MAX as usize {
        let problem = format!("there are {} pods and {} nodes", pods.len(), nodes.len());
        let expected = "1 to 2^31 - 1 pods and nodes";
        return Err(TraceError::Protocol { job: None, problem, expected });
    }
    Ok(())
}

/// Row indices in lexicographic order of the names.
fn sorted_by_name<T>(rows: &[T], name: impl Fn(&T) -> &str) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by_key(|row| name(&rows[*row as usize]));
    order
}

/// Adds or removes random pods until the requested GPU is at the target.
fn tune(
    random: &mut GoRandom,
    pods: &[TraceJob],
    by_name: &[u32],
    arrivals: &mut Vec<u32>,
    target: u128,
) -> Result<(), TraceError> {
    let demand = |row: u32| pods[row as usize].total_gpu_milli();
    let mut requested: u128 = arrivals.iter().map(|row| demand(*row)).sum();
    if requested < target {
        loop {
            let row = by_name[random.below(by_name.len() as u32) as usize];
            // As published: the share of one GPU decides, not that of all GPUs of the pod.
            if requested + u128::from(pods[row as usize].gpu_milli.unsigned_abs()) > target {
                return Ok(());
            }
            if arrivals.len() >= MOST_ARRIVALS {
                let problem =
                    format!("{MOST_ARRIVALS} arrivals request {requested} of {target} milli-GPU");
                let expected = "pods that request more GPU";
                return Err(TraceError::Protocol { job: None, problem, expected });
            }
            requested += demand(row);
            arrivals.push(row);
        }
    }
    while requested > target {
        let row = arrivals.remove(random.below(arrivals.len() as u32) as usize);
        requested -= demand(row);
    }
    Ok(())
}

/// Node number i (by name) gets rank q[i] of a random permutation; the lowest rank wins ties.
fn node_order(random: &mut GoRandom, nodes: &[TraceNode]) -> Vec<u32> {
    let by_name = sorted_by_name(nodes, |node| &node.name);
    let ranks = random.permutation(nodes.len() as u32);
    let mut order = vec![0; nodes.len()];
    for (row, rank) in by_name.into_iter().zip(ranks) {
        order[rank as usize] = row;
    }
    order
}

fn discard(random: &mut GoRandom, draws: u32) {
    for _ in 0..draws {
        random.uint64();
    }
}
