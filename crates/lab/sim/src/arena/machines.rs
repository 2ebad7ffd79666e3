//! Machines of regimes whose jobs come from published tables.

use dovetail_plan::EngineError;
use dovetail_trace::limits::MAX_GPUS;
use dovetail_trace::{TraceJob, TraceNode};

use crate::timed::{Autoscaler, impossible_jobs};

const GIB: i64 = 1 << 30;
const MINUTE_MS: u64 = 60_000;

/// Which machines there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachinePool {
    /// Eight GPUs, 96 cores, 768 GiB each.
    Uniform,
    /// Of four machines two with eight GPUs and 96 cores, one with four and 48, one with four and 32.
    Mixed,
    /// Eight GPUs with 56 cores, 448 GiB: seven cores per GPU, where jobs of one GPU ask for 9 on
    /// average.
    CpuTight,
}

/// One kind of machine: GPUs, cores, GiB.
type Kind = (u32, i64, i64);

impl MachinePool {
    /// The name of its regimes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Mixed => "mixed-nodes",
            Self::CpuTight => "cpu-tight",
        }
    }

    fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Uniform => &[(8, 96, 768)],
            Self::Mixed => &[(8, 96, 768), (4, 48, 384), (8, 96, 768), (4, 32, 256)],
            Self::CpuTight => &[(8, 56, 448)],
        }
    }

    /// As few machines, taken in turn from the kinds, as have so many milli-GPU; `None` if no
    /// cluster may have so many.
    pub(crate) fn with_milli(self, milli: u128) -> Option<Vec<TraceNode>> {
        if milli > u128::from(MAX_GPUS) * 1000 {
            return None;
        }
        let mut nodes = Vec::new();
        let mut have_milli = 0;
        for (gpus, cores, gib) in self.kinds().iter().cycle() {
            if have_milli >= milli && nodes.len() >= self.kinds().len() {
                break;
            }
            have_milli += u128::from(*gpus) * 1000;
            nodes.push(TraceNode {
                name: format!("node-{:04}", nodes.len()),
                cpu_milli: cores * 1000,
                memory_bytes: gib * GIB,
                gpu_count: *gpus,
                ..TraceNode::default()
            });
        }
        Some(nodes)
    }
}

/// An autoscaled pool of two of every five machines.
pub(crate) fn pool(nodes: &[TraceNode]) -> Autoscaler {
    let in_pool = nodes.iter().enumerate().filter(|(at, _)| at % 5 >= 3);
    Autoscaler {
        nodes: in_pool.map(|(_, node)| node.name.clone()).collect(),
        start_ms: 10 * MINUTE_MS,
        idle_ms: 10 * MINUTE_MS,
    }
}

/// Puts machines, in their order, into racks of so many.
pub(crate) fn rack(nodes: &mut [TraceNode], per_rack: usize) {
    for (at, node) in nodes.iter_mut().enumerate() {
        node.rack = Some(format!("rack-{:04}", at / per_rack));
    }
}

/// Takes out the jobs that could never start on these machines.
pub(crate) fn keep_possible(
    jobs: &mut Vec<TraceJob>,
    nodes: &[TraceNode],
) -> Result<(), EngineError> {
    let impossible = impossible_jobs(nodes, jobs)?;
    let mut rows = impossible.iter().map(|job| job.row).peekable();
    let mut row = 0;
    jobs.retain(|_| {
        let is_impossible = rows.next_if_eq(&row).is_some();
        row += 1;
        !is_impossible
    });
    Ok(())
}
