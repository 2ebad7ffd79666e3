//! Pods of an openb list that arrive and stay.

use dovetail_trace::fgd::{FgdOrders, fgd_orders};
use dovetail_trace::synth::{Purpose, Random};
use dovetail_trace::{TraceError, TraceJob, TraceNode};

use crate::arena::data::{ArenaData, DataError, Outside};
use crate::arena::recipe::{ArenaError, RegimeInput, shuffle_by};
use crate::arena::streams::cluster_milli;
use crate::arena::transform::{Arrival, Transform, drawn};

/// Arrived GPU over the GPU of the cluster where nothing else is said, in percent.
pub(crate) const ARRIVED_PERCENT: u128 = 130;

/// Pods of an openb list on openb machines.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalRecipe {
    pub list: String,
    /// What is changed.
    pub transform: Transform,
    /// In which order pods arrive.
    pub arrival: Arrival,
    pub machines: ArrivalNodes,
}

/// On which machines pods arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalNodes {
    All,
    /// So many, drawn by seed.
    Drawn(usize),
    /// Only so many pods arrive, on as few machines, drawn by seed, as they fill to 130%.
    FilledBy(usize),
    /// So many pods arrive and then as many of another list, likewise.
    FilledByBoth(usize, String),
}

impl ArrivalRecipe {
    /// Names of the lists that it needs.
    pub(crate) fn lists(&self) -> Vec<&str> {
        match &self.machines {
            ArrivalNodes::FilledByBoth(_, other) => vec![&self.list, other],
            _ => vec![&self.list],
        }
    }

    /// Whether its machines are few, so that draws differ much.
    pub(crate) fn is_small(&self) -> bool {
        self.machines != ArrivalNodes::All
    }

    /// What the machines lack.
    pub(crate) fn lacks(&self, data: &ArenaData) -> Option<String> {
        if let ArrivalNodes::Drawn(count) = self.machines {
            return data.lacks_nodes(count);
        }
        let Transform::OneModel(model) = self.transform else { return None };
        let of_model = self.transform.nodes(&data.openb_nodes, 0);
        let file = Outside::Nodes.file();
        (cluster_milli(&of_model) == 0).then(|| format!("no node in {file} has {model} GPUs"))
    }

    pub(crate) fn world(
        &self,
        data: &ArenaData,
        seed: u64,
        order: u64,
    ) -> Result<RegimeInput, ArenaError> {
        let mut pods = self.transform.pods(&data.openb_pods[&self.list]);
        let mut nodes = self.transform.nodes(&data.openb_nodes, seed);
        if let ArrivalNodes::Drawn(count) = self.machines {
            nodes = drawn(&nodes, count, seed);
        }
        if cluster_milli(&nodes) == 0 {
            let problem = format!("the nodes chosen by seed {seed} have no GPU");
            return Err(Outside::Nodes.bad(problem).into());
        }
        let mut orders = orders_of(&self.list, &pods, &nodes, seed)?;
        self.arrival.arrange(&pods, &mut orders.arrivals);
        if let ArrivalNodes::FilledBy(count) | ArrivalNodes::FilledByBoth(count, _) = &self.machines
        {
            orders.arrivals.truncate(*count);
            if let ArrivalNodes::FilledByBoth(count, other) = &self.machines {
                let others = &data.openb_pods[other];
                let later = orders_of(other, others, &nodes, seed)?.arrivals;
                let before = pods.len() as u32;
                orders.arrivals.extend(later.into_iter().take(*count).map(|row| before + row));
                pods.extend(others.iter().cloned());
            }
            nodes = filled(&nodes, &pods, &orders.arrivals, seed);
            orders.nodes = orders_of(&self.list, &pods, &nodes, seed)?.nodes;
        }
        shuffle_by(&mut orders.nodes, seed, order);
        let (arrivals, node_order) = (orders.arrivals, orders.nodes);
        Ok(RegimeInput::Arrivals { nodes, pods, arrivals, node_order })
    }
}

/// Both orders for pods of a list.
fn orders_of(
    list: &str,
    pods: &[TraceJob],
    nodes: &[TraceNode],
    seed: u64,
) -> Result<FgdOrders, ArenaError> {
    fgd_orders(pods, nodes, seed as i64).map_err(|error| match error {
        TraceError::Protocol { job: row, problem, expected } => {
            let problem = format!("{problem}; arrivals need {expected}");
            DataError { trace: Outside::Pods(list.to_owned()), row, problem }.into()
        }
        error => error.into(),
    })
}

/// As few machines, drawn by seed, as the arrivals fill to at most 130%.
fn filled(nodes: &[TraceNode], pods: &[TraceJob], arrivals: &[u32], seed: u64) -> Vec<TraceNode> {
    let asked: u128 = arrivals.iter().map(|row| pods[*row as usize].total_gpu_milli()).sum();
    let mut rows: Vec<usize> = (0..nodes.len()).collect();
    Random::new(seed, Purpose::Machines).shuffle(&mut rows);
    let mut milli = 0;
    let enough = rows.iter().position(|row| {
        milli += u128::from(nodes[*row].gpu_count) * 1000;
        milli * ARRIVED_PERCENT >= asked * 100
    });
    rows.truncate(enough.map_or(rows.len(), |last| last + 1));
    rows.sort_unstable();
    rows.into_iter().map(|row| nodes[row].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> ArenaData {
        let node = |at: usize| TraceNode {
            name: format!("n{at:03}"),
            cpu_milli: 64_000,
            memory_bytes: 1 << 38,
            gpu_count: 2 + 2 * (at as u32 % 2),
            ..TraceNode::default()
        };
        let pod = |list: &str, at: usize, gpus: u32| TraceJob {
            id: format!("{list}{at:03}"),
            pod_count: 1,
            gpu_count: gpus,
            gpu_milli: 1000,
            ..TraceJob::default()
        };
        let list = |name: &str, gpus: u32| {
            (name.to_owned(), (0..90).map(|at| pod(name, at, gpus)).collect())
        };
        ArenaData {
            openb_nodes: (0..50).map(node).collect(),
            openb_pods: [list("a", 1), list("b", 2)].into(),
            ..ArenaData::default()
        }
    }

    fn world(machines: ArrivalNodes) -> (Vec<TraceNode>, Vec<u32>) {
        let (transform, arrival) = (Transform::Plain, Arrival::Random);
        let recipe = ArrivalRecipe { list: "a".to_owned(), transform, arrival, machines };
        match recipe.world(&data(), 7, 0).unwrap() {
            RegimeInput::Arrivals { nodes, arrivals, .. } => (nodes, arrivals),
            RegimeInput::Timed { .. } => panic!("pods that stay"),
        }
    }

    #[test]
    fn a_new_cluster_is_filled_by_its_first_arrivals() {
        let (nodes, arrivals) = world(ArrivalNodes::FilledBy(64));
        assert_eq!(arrivals.len(), 64);
        let gpus: u32 = nodes.iter().map(|node| node.gpu_count).sum();
        // 64 GPUs are 130% of 49.2; the last machine has at most four.
        assert!((50..54).contains(&gpus), "{gpus}");
    }

    #[test]
    fn the_mix_changes_after_so_many_arrivals() {
        let (nodes, arrivals) = world(ArrivalNodes::FilledByBoth(30, "b".to_owned()));
        assert_eq!(arrivals.len(), 60);
        assert!(arrivals[..30].iter().all(|row| *row < 90));
        assert!(arrivals[30..].iter().all(|row| (90..180).contains(row)));
        let gpus: u32 = nodes.iter().map(|node| node.gpu_count).sum();
        // 30 + 60 GPUs are 130% of 69.2.
        assert!((70..74).contains(&gpus), "{gpus}");
    }
}
