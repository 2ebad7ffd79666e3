//! What a trace says about the machines.

use serde::Serialize;

use crate::error::SkippedRow;
use crate::job::{Violation, out_of_range};
use crate::limits::{MAX_CPU_MILLI, MAX_MEMORY_BYTES, MAX_NODE_GPUS};

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TraceNode {
    /// Name, unique within its cluster.
    pub name: String,
    /// CPU, in thousandths of a core.
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    pub gpu_count: u32,
    /// GPU model; `None` without GPUs or when the source does not say.
    pub gpu_model: Option<String>,
    pub gpu_memory_bytes: Option<i64>,
    pub rack: Option<String>,
    pub zone: Option<String>,
}

/// The machines of one cluster, in the order of their source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TraceCluster {
    pub nodes: Vec<TraceNode>,
    /// Where they come from: a file, or the generator and its seed.
    pub source: String,
    /// Rows that were left out, with reasons; empty unless asked for.
    pub skipped: Vec<SkippedRow>,
    /// What else the reader wants known, for example columns it does not use.
    pub notes: Vec<String>,
}

impl TraceCluster {
    /// GPUs of all machines.
    pub fn total_gpus(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.gpu_count)).sum()
    }
}

impl TraceNode {
    /// Checks every rule stated on the fields; the first broken one is returned.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        if self.name.is_empty() {
            return Err(Violation::new("node_name", "", "is empty", "a name"));
        }
        if !(0..=MAX_CPU_MILLI).contains(&self.cpu_milli) {
            return Err(out_of_range("cpu_milli", self.cpu_milli, 0, MAX_CPU_MILLI));
        }
        if !(0..=MAX_MEMORY_BYTES).contains(&self.memory_bytes) {
            return Err(out_of_range("memory_bytes", self.memory_bytes, 0, MAX_MEMORY_BYTES));
        }
        if self.gpu_count > MAX_NODE_GPUS {
            return Err(out_of_range("gpu_count", self.gpu_count, 0, MAX_NODE_GPUS));
        }
        if let (0, Some(model)) = (self.gpu_count, &self.gpu_model) {
            let expected = "no model, because gpu_count is 0";
            return Err(Violation::new("gpu_model", model, "needs a GPU", expected));
        }
        match self.gpu_memory_bytes {
            Some(bytes) if self.gpu_count == 0 => {
                let expected = "no value, because gpu_count is 0";
                Err(Violation::new("gpu_memory_bytes", bytes, "needs a GPU", expected))
            }
            Some(bytes) if !(1..=MAX_MEMORY_BYTES).contains(&bytes) => {
                Err(out_of_range("gpu_memory_bytes", bytes, 1, MAX_MEMORY_BYTES))
            }
            _ => Ok(()),
        }
    }
}
