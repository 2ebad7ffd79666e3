//! What is changed of a published trace before it is replayed: requests, machines, order of
//! arrival.

use dovetail_trace::synth::{Purpose, Random};
use dovetail_trace::{TraceJob, TraceNode};

/// A change of pods or machines that a policy must not be tuned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// As published.
    Plain,
    /// Each pod asks for so many cores per GPU, at least for one GPU's: memory binds before CPU.
    CoresPerGpu(i64),
    HalfCpu,
    NoCpu,
    NoMemory,
    /// Half as much memory again.
    MoreMemory,
    /// Only the machines of one GPU model; pods may use any.
    OneModel(&'static str),
    /// Thirty percent of the machines, drawn by seed, are not there.
    FewerNodes,
}

/// Share of the machines that [`Transform::FewerNodes`] takes away, in percent.
const MISSING_PERCENT: usize = 30;

impl Transform {
    /// The name of its regimes.
    pub fn name(self) -> String {
        match self {
            Self::Plain => "plain".to_owned(),
            Self::CoresPerGpu(cores) => format!("{cores}-cores-per-gpu"),
            Self::HalfCpu => "half-cpu".to_owned(),
            Self::NoCpu => "no-cpu".to_owned(),
            Self::NoMemory => "no-memory".to_owned(),
            Self::MoreMemory => "more-memory".to_owned(),
            Self::OneModel(model) => format!("only-{}", model.to_lowercase()),
            Self::FewerNodes => "fewer-nodes".to_owned(),
        }
    }

    /// What it does, for people.
    pub fn about(self) -> String {
        match self {
            Self::Plain => "as published".to_owned(),
            Self::CoresPerGpu(cores) => format!("each pod requests {cores} cores per GPU"),
            Self::HalfCpu => "CPU requests halved".to_owned(),
            Self::NoCpu => "CPU requests 0".to_owned(),
            Self::NoMemory => "memory requests 0".to_owned(),
            Self::MoreMemory => "memory requests x 1.5".to_owned(),
            Self::OneModel(model) => format!("only the nodes with {model}, and pods may use any"),
            Self::FewerNodes => format!("{MISSING_PERCENT}% of the nodes removed, by seed"),
        }
    }

    /// The pods after the change.
    pub fn pods(self, pods: &[TraceJob]) -> Vec<TraceJob> {
        let changed = |pod: &TraceJob| {
            let mut pod = pod.clone();
            match self {
                Self::Plain | Self::FewerNodes => {}
                Self::CoresPerGpu(cores) => {
                    pod.cpu_milli = cores * 1000 * i64::from(pod.gpu_count.max(1));
                }
                Self::HalfCpu => pod.cpu_milli /= 2,
                Self::NoCpu => pod.cpu_milli = 0,
                Self::NoMemory => pod.memory_bytes = 0,
                Self::MoreMemory => pod.memory_bytes += pod.memory_bytes / 2,
                Self::OneModel(_) => pod.gpu_models.clear(),
            }
            pod
        };
        pods.iter().map(changed).collect()
    }

    /// The machines after the change.
    pub fn nodes(self, nodes: &[TraceNode], seed: u64) -> Vec<TraceNode> {
        match self {
            Self::OneModel(model) => {
                let has = |node: &&TraceNode| node.gpu_model.as_deref() == Some(model);
                nodes.iter().filter(has).cloned().collect()
            }
            Self::FewerNodes => {
                drawn(nodes, nodes.len() - nodes.len() * MISSING_PERCENT / 100, seed)
            }
            _ => nodes.to_vec(),
        }
    }
}

/// So many of the machines, drawn by seed, in their own order.
pub(crate) fn drawn(nodes: &[TraceNode], count: usize, seed: u64) -> Vec<TraceNode> {
    let mut rows: Vec<usize> = (0..nodes.len()).collect();
    Random::new(seed, Purpose::Machines).shuffle(&mut rows);
    rows.truncate(count);
    rows.sort_unstable();
    rows.into_iter().map(|row| nodes[row].clone()).collect()
}

/// In which order the pods of a trace arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In random order, as published.
    Random,
    /// Small requests first.
    LargeLast,
    /// Pods without GPUs first.
    CpuOnlyFirst,
    /// Pods with a part of a GPU last.
    SharesLast,
    /// Pods with several GPUs only among the last fifth.
    ManyGpusInTheLastFifth,
}

impl Arrival {
    /// The name of its regimes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::LargeLast => "large-last",
            Self::CpuOnlyFirst => "cpu-only-first",
            Self::SharesLast => "shares-last",
            Self::ManyGpusInTheLastFifth => "many-gpus-in-the-last-fifth",
        }
    }

    /// Rearranges arrivals, given as rows of `pods`; pods that are alike keep their order.
    pub fn arrange(self, pods: &[TraceJob], arrivals: &mut Vec<u32>) {
        let pod = |row: &u32| &pods[*row as usize];
        match self {
            Self::Random => {}
            Self::LargeLast => arrivals.sort_by_key(|row| pod(row).total_gpu_milli()),
            Self::CpuOnlyFirst => arrivals.sort_by_key(|row| pod(row).gpu_count > 0),
            Self::SharesLast => arrivals.sort_by_key(|row| pod(row).is_share()),
            Self::ManyGpusInTheLastFifth => {
                let has_many = |row: &u32| pod(row).gpu_count > 1;
                let many = arrivals.iter().filter(|row| has_many(row)).count();
                let others_late = (arrivals.len() / 5).saturating_sub(many);
                let others = arrivals.len() - many;
                let mut seen = 0;
                // Stable: what is early keeps its order, and so does the mixture that is late.
                let is_late: Vec<bool> = arrivals
                    .iter()
                    .map(|row| {
                        seen += usize::from(!has_many(row));
                        has_many(row) || seen > others - others_late
                    })
                    .collect();
                let part = |late: bool| {
                    let rows = arrivals.iter().zip(&is_late).filter(move |(_, is)| **is == late);
                    rows.map(|(row, _)| *row)
                };
                *arrivals = part(false).chain(part(true)).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(gpu_count: u32, gpu_milli: i64) -> TraceJob {
        TraceJob {
            pod_count: 1,
            cpu_milli: 6_000,
            memory_bytes: 100,
            gpu_count,
            gpu_milli,
            gpu_models: vec!["T4".into()],
            ..TraceJob::default()
        }
    }

    #[test]
    fn transforms_change_what_they_say_and_nothing_else() {
        let before = [pod(0, 0), pod(1, 500), pod(8, 1000)];
        let cpu = |transform: Transform| {
            transform.pods(&before).iter().map(|pod| pod.cpu_milli).collect::<Vec<_>>()
        };
        assert_eq!(cpu(Transform::CoresPerGpu(2)), [2_000, 2_000, 16_000]);
        assert_eq!(cpu(Transform::HalfCpu), [3_000; 3]);
        assert_eq!(cpu(Transform::NoCpu), [0; 3]);
        assert_eq!(cpu(Transform::MoreMemory), [6_000; 3]);
        assert!(Transform::MoreMemory.pods(&before).iter().all(|pod| pod.memory_bytes == 150));
        assert!(Transform::NoMemory.pods(&before).iter().all(|pod| pod.memory_bytes == 0));
        assert!(Transform::OneModel("A").pods(&before).iter().all(|pod| pod.gpu_models.is_empty()));
        assert_eq!(Transform::Plain.pods(&before), before);
    }

    #[test]
    fn machines_are_taken_away_by_model_or_by_seed() {
        let node = |at: usize| TraceNode {
            name: at.to_string(),
            gpu_model: Some(if at.is_multiple_of(5) { "P100" } else { "T4" }.into()),
            ..TraceNode::default()
        };
        let nodes: Vec<TraceNode> = (0..100).map(node).collect();
        assert_eq!(Transform::OneModel("P100").nodes(&nodes, 1).len(), 20);
        let [one, two] = [1, 2].map(|seed| Transform::FewerNodes.nodes(&nodes, seed));
        assert_eq!((one.len(), two.len()), (70, 70));
        assert_ne!(one, two);
        assert_eq!(one, Transform::FewerNodes.nodes(&nodes, 1));
    }

    #[test]
    fn adversarial_orders_keep_the_pods_and_move_the_named_kind() {
        let pods = [pod(0, 0), pod(1, 500), pod(1, 1000), pod(8, 1000)];
        // Forty arrivals, four with eight GPUs, some of them early.
        let drawn: Vec<u32> = (0..40).map(|at| if at % 10 == 0 { 3 } else { at % 3 }).collect();
        let arranged = |arrival: Arrival| {
            let mut rows = drawn.clone();
            arrival.arrange(&pods, &mut rows);
            let mut same = rows.clone();
            same.sort_unstable();
            let mut before = drawn.clone();
            before.sort_unstable();
            assert_eq!(same, before, "{arrival:?} keeps every pod");
            rows
        };
        assert_eq!(arranged(Arrival::Random), drawn);
        assert!(
            arranged(Arrival::LargeLast)
                .is_sorted_by_key(|row| [0, 500, 1000, 8000][*row as usize])
        );
        assert!(arranged(Arrival::CpuOnlyFirst).is_sorted_by_key(|row| *row > 0));
        assert!(arranged(Arrival::SharesLast).is_sorted_by_key(|row| *row == 1));
        let late = arranged(Arrival::ManyGpusInTheLastFifth);
        assert!(late[..32].iter().all(|row| *row != 3));
        assert_eq!(late[32..].iter().filter(|row| **row == 3).count(), 4);
        assert!(late[32..].iter().any(|row| *row != 3), "others arrive among them");
    }
}
