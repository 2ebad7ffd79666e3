//! The exact optimum of a small world: the most GPU that any packing of the given pods allocates.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, SolveOptions, Variable};

use crate::input::{BoundError, BoundNode, BoundPod, DEVICE_MILLI, validate};
use crate::knapsack::greatest_common_divisor;

/// An optimal packing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    /// The most milli-GPU that any choice and placement of the pods allocates.
    pub gpu_milli: i64,
    /// One packing that allocates it, by pod; `None` for a pod left out. Pods without GPU are
    /// always left out: they can only take room.
    pub assignment: Vec<Option<Placement>>,
}

/// Where a pod of the optimal packing lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Position in the node list.
    pub node: usize,
    /// The pod's devices on that node, ascending, from 0.
    pub devices: Vec<usize>,
}

/// Yes-or-no decisions a model may have.
const DECISION_LIMIT: usize = 1_500;
/// Branch-and-bound nodes after which the search gives up; a count, so that the outcome repeats.
const SEARCH_LIMIT: u64 = 20_000;

/// Finds the packing of `pods` on empty `nodes` that allocates the most GPU, all subsets of pods
/// allowed.
///
/// A pod lies on one node, holds its CPU and memory there and its share of `gpu_count` different
/// devices, and a device gives out at most 1000 milli. Solved as a mixed-integer program; the
/// packing found is checked again in integers. Meant as an oracle in tests: nearly all worlds of 6
/// nodes and 10 pods are solved within a second, mostly within a few hundredths; a rare one, and
/// more often a few pods more, ends in [`BoundError::Solver`].
///
/// # Errors
/// [`BoundError::Node`] and [`BoundError::Pod`] for a field out of range, [`BoundError::TooLarge`]
/// for a world beyond its reach, [`BoundError::Solver`] if the search ended without proof.
pub fn max_allocation(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<Exact, BoundError> {
    validate(nodes, pods)?;
    let program = Program::new(nodes, pods)?;
    let mut options = SolveOptions::default();
    options.node_limit = Some(SEARCH_LIMIT);
    let failed = |message: &str| BoundError::Solver { message: message.to_owned() };
    let outcome = program.problem.solve_with(options);
    let outcome = outcome.map_err(|error| BoundError::Solver { message: error.to_string() })?;
    if !outcome.is_optimal() {
        return Err(failed("too many branches"));
    }
    let solution = outcome.into_solution().map_err(|_| failed("no packing found"))?;
    let assignment = program.assignment(&solution);
    if !is_packing(nodes, pods, &assignment) {
        return Err(failed("its packing breaks a capacity after rounding"));
    }
    let placed = pods.iter().zip(&assignment).filter(|(_, placement)| placement.is_some());
    Ok(Exact { gpu_milli: placed.map(|(pod, _)| pod.requested_milli()).sum(), assignment })
}

/// Whether the assignment respects every pod, node and device, in integers and without the model's
/// variables.
fn is_packing(nodes: &[BoundNode], pods: &[BoundPod], assignment: &[Option<Placement>]) -> bool {
    let mut free: Vec<(i64, i64, Vec<i64>)> = nodes
        .iter()
        .map(|node| {
            (node.cpu_milli, node.memory_bytes, vec![DEVICE_MILLI; node.gpu_count as usize])
        })
        .collect();
    for (pod, placement) in pods.iter().zip(assignment) {
        let Some(placement) = placement else { continue };
        let (cpu_milli, memory_bytes, devices) = &mut free[placement.node];
        *cpu_milli -= pod.cpu_milli;
        *memory_bytes -= pod.memory_bytes;
        for &device in &placement.devices {
            devices[device] -= pod.gpu_milli;
        }
        let ascending = placement.devices.windows(2).all(|pair| pair[0] < pair[1]);
        let fits = pod.fits_empty(&nodes[placement.node])
            && placement.devices.len() == pod.gpu_count as usize;
        if !(ascending && fits) {
            return false;
        }
    }
    let held = |(cpu_milli, memory_bytes, devices): &(i64, i64, Vec<i64>)| {
        *cpu_milli >= 0 && *memory_bytes >= 0 && devices.iter().all(|&milli| milli >= 0)
    };
    free.iter().all(held)
}

/// The decision that one pod lies on one node.
struct PlacementChoice {
    pod: usize,
    node: usize,
    chosen: Variable,
    /// Which devices a pod with a share uses; empty for pods on whole devices, which take any
    /// unused one.
    devices: Vec<Variable>,
}

struct Program {
    problem: Problem,
    choices: Vec<PlacementChoice>,
    pod_gpu_counts: Vec<usize>,
    node_gpu_counts: Vec<usize>,
}

impl Program {
    fn new(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<Self, BoundError> {
        check_size(nodes, pods)?;
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let mut choices = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let on_node = choices_of(&mut problem, index, node, pods);
            limit_node(&mut problem, node, pods, &on_node);
            limit_devices(&mut problem, node, pods, &on_node);
            choices.extend(on_node);
        }
        for pod in 0..pods.len() {
            let places = choices.iter().filter(|choice| choice.pod == pod);
            let row: Vec<_> = places.map(|choice| (choice.chosen, 1.0)).collect();
            problem.add_constraint(row, ComparisonOp::Le, 1.0);
        }
        Ok(Self {
            problem,
            choices,
            pod_gpu_counts: pods.iter().map(|pod| pod.gpu_count as usize).collect(),
            node_gpu_counts: nodes.iter().map(|node| node.gpu_count as usize).collect(),
        })
    }

    fn assignment(&self, solution: &Solution) -> Vec<Option<Placement>> {
        let yes = |variable: Variable| solution.var_value(variable) > 0.5;
        let chosen: Vec<&PlacementChoice> =
            self.choices.iter().filter(|choice| yes(choice.chosen)).collect();
        let mut assignment = vec![None; self.pod_gpu_counts.len()];
        let mut used: Vec<Vec<bool>> =
            self.node_gpu_counts.iter().map(|&count| vec![false; count]).collect();
        for choice in chosen.iter().filter(|choice| !choice.devices.is_empty()) {
            let devices = (0..choice.devices.len()).filter(|&device| yes(choice.devices[device]));
            let devices: Vec<usize> = devices.collect();
            devices.iter().for_each(|&device| used[choice.node][device] = true);
            assignment[choice.pod] = Some(Placement { node: choice.node, devices });
        }
        for choice in chosen.iter().filter(|choice| choice.devices.is_empty()) {
            let unused = &mut used[choice.node];
            let devices = (0..unused.len()).filter(|&device| !unused[device]);
            let devices: Vec<usize> = devices.take(self.pod_gpu_counts[choice.pod]).collect();
            devices.iter().for_each(|&device| unused[device] = true);
            assignment[choice.pod] = Some(Placement { node: choice.node, devices });
        }
        assignment
    }
}

fn needs_whole_devices(pod: &BoundPod) -> bool {
    pod.gpu_milli == DEVICE_MILLI
}

fn check_size(nodes: &[BoundNode], pods: &[BoundPod]) -> Result<(), BoundError> {
    let of_pair = |node: &BoundNode, pod: &BoundPod| match pod.gpu_count {
        0 => 0,
        _ if needs_whole_devices(pod) => 1,
        _ => 1 + node.gpu_count as usize,
    };
    let variables =
        nodes.iter().map(|node| pods.iter().map(|pod| of_pair(node, pod)).sum::<usize>()).sum();
    if variables > DECISION_LIMIT {
        let (nodes, pods) = (nodes.len(), pods.len());
        return Err(BoundError::TooLarge { nodes, pods, variables, limit: DECISION_LIMIT });
    }
    Ok(())
}

/// Devices are alike, so they may be numbered in the order in which the pods with shares first use
/// them: the i-th such pod needs no device beyond the sum of the first i device counts.
fn choices_of(
    problem: &mut Problem,
    index: usize,
    node: &BoundNode,
    pods: &[BoundPod],
) -> Vec<PlacementChoice> {
    let mut reachable = 0;
    let mut choices = Vec::new();
    for (pod_index, pod) in pods.iter().enumerate() {
        if pod.gpu_count == 0 || !pod.fits_empty(node) {
            continue;
        }
        let chosen = problem.add_binary_var(pod.requested_milli() as f64);
        let devices = if needs_whole_devices(pod) {
            Vec::new()
        } else {
            reachable = (reachable + pod.gpu_count).min(node.gpu_count);
            (0..reachable).map(|_| problem.add_binary_var(0.0)).collect()
        };
        choices.push(PlacementChoice { pod: pod_index, node: index, chosen, devices });
    }
    choices
}

/// CPU and memory of one node.
fn limit_node(
    problem: &mut Problem,
    node: &BoundNode,
    pods: &[BoundPod],
    choices: &[PlacementChoice],
) {
    let pods_here = || choices.iter().map(|choice| &pods[choice.pod]);
    let cpu: Vec<i64> = pods_here().map(|pod| pod.cpu_milli).collect();
    let memory: Vec<i64> = pods_here().map(|pod| pod.memory_bytes).collect();
    for (capacity, amounts) in [(node.cpu_milli, cpu), (node.memory_bytes, memory)] {
        // Small whole numbers keep the solver's tolerance far below one unit.
        let unit = amounts.iter().copied().fold(0, greatest_common_divisor).max(1);
        let row = choices.iter().zip(&amounts);
        let row: Vec<_> =
            row.map(|(choice, amount)| (choice.chosen, (amount / unit) as f64)).collect();
        problem.add_constraint(row, ComparisonOp::Le, (capacity / unit) as f64);
    }
}

/// Shares on each device, and devices of one node.
fn limit_devices(
    problem: &mut Problem,
    node: &BoundNode,
    pods: &[BoundPod],
    choices: &[PlacementChoice],
) {
    let reachable = choices.iter().map(|choice| choice.devices.len()).max().unwrap_or(0);
    let opened: Vec<Variable> = (0..reachable).map(|_| problem.add_binary_var(0.0)).collect();
    let mut held: Vec<(Variable, f64)> = opened.iter().map(|&open| (open, 1.0)).collect();
    for choice in choices {
        let count = f64::from(pods[choice.pod].gpu_count);
        if choice.devices.is_empty() {
            held.push((choice.chosen, count));
            continue;
        }
        let mut row: Vec<_> = choice.devices.iter().map(|&device| (device, 1.0)).collect();
        row.push((choice.chosen, -count));
        problem.add_constraint(row, ComparisonOp::Eq, 0.0);
    }
    problem.add_constraint(held, ComparisonOp::Le, f64::from(node.gpu_count));
    for (device, &open) in opened.iter().enumerate() {
        let mut row = vec![(open, -(DEVICE_MILLI as f64))];
        for choice in choices.iter().filter(|choice| choice.devices.len() > device) {
            row.push((choice.devices[device], pods[choice.pod].gpu_milli as f64));
        }
        problem.add_constraint(row, ComparisonOp::Le, 0.0);
    }
}
