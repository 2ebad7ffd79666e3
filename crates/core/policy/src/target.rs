//! The target mix: which pods are expected, and how often.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::requirement::DeviceRequest;
use dovetail_model::{Requirement, Resources};
use serde::{Deserialize, Serialize};

/// One kind of expected pod. Memory is left out, as in the FGD paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetPod {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Devices; 0 for a pod without.
    pub gpu_count: u16,
    /// Compute per device in thousandths; below 1000 only with one device.
    pub gpu_milli: i64,
    /// Models it may use; empty is any.
    pub gpu_models: BTreeSet<String>,
    /// Share of this kind among all expected pods; the shares of a mix sum to 1.
    pub weight: f64,
}

impl TargetPod {
    /// The requirement of one such pod.
    pub fn requirement(&self) -> Arc<Requirement> {
        let device = match (self.gpu_count, self.gpu_milli) {
            (0, _) => DeviceRequest::None,
            (1, 1..1000) => DeviceRequest::Share { compute_milli: self.gpu_milli, memory_bytes: 0 },
            (count, _) => DeviceRequest::Whole { count, same_island: false },
        };
        Arc::new(Requirement {
            resources: Resources::pod(self.cpu_milli, 0),
            device,
            gpu_models: self.gpu_models.clone(),
            ..Requirement::default()
        })
    }
}
