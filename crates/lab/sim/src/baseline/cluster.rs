//! The cluster as these baselines see it: a list of GPU counts.

use super::BaselineError;

/// GPUs per node, in node order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineCluster {
    gpus_per_node: Vec<u32>,
    total_gpus: u32,
}

impl BaselineCluster {
    /// A cluster of nodes with these GPU counts; nodes without GPUs are allowed and stay unused.
    ///
    /// # Errors
    /// When the nodes together hold no GPU, or more than `u32::MAX`.
    pub fn new(gpus_per_node: Vec<u32>) -> Result<Self, BaselineError> {
        let gpus = gpus_per_node.iter().copied().map(u64::from).sum();
        let nodes = gpus_per_node.len();
        match u32::try_from(gpus) {
            Ok(total_gpus) if total_gpus > 0 => Ok(Self { gpus_per_node, total_gpus }),
            _ => Err(BaselineError::BadCluster { nodes, gpus }),
        }
    }

    /// GPUs of each node.
    #[must_use]
    pub fn gpus_per_node(&self) -> &[u32] {
        &self.gpus_per_node
    }

    /// GPUs of all nodes together.
    #[must_use]
    pub fn total_gpus(&self) -> u32 {
        self.total_gpus
    }
}
