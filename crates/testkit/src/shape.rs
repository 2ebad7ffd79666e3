//! Kinds of GPU machines, written as `8xH100`, and the Node objects that stand for them.

use std::str::FromStr;

use serde_json::{Value, json};
use thiserror::Error;

/// A machine with some GPUs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineShape {
    gpus: u32,
    kind: &'static CloudShape,
}

/// What a cloud sells with eight GPUs of a kind.
#[derive(Debug, PartialEq, Eq)]
struct CloudShape {
    name: &'static str,
    /// The label value of NVIDIA's feature discovery.
    product: &'static str,
    gpu_memory_mib: u32,
    cpus_for_eight: u32,
    memory_gib_for_eight: u32,
}

/// Processors and memory as Amazon publishes them for p5.48xlarge, p5e.48xlarge, p4de.24xlarge,
/// g6e.48xlarge, g6.48xlarge and g4dn.metal.
const KINDS: [CloudShape; 6] = [
    CloudShape {
        name: "H100",
        product: "NVIDIA-H100-80GB-HBM3",
        gpu_memory_mib: 81_559,
        cpus_for_eight: 192,
        memory_gib_for_eight: 2048,
    },
    CloudShape {
        name: "H200",
        product: "NVIDIA-H200",
        gpu_memory_mib: 143_771,
        cpus_for_eight: 192,
        memory_gib_for_eight: 2048,
    },
    CloudShape {
        name: "A100",
        product: "NVIDIA-A100-SXM4-80GB",
        gpu_memory_mib: 81_920,
        cpus_for_eight: 96,
        memory_gib_for_eight: 1152,
    },
    CloudShape {
        name: "L40S",
        product: "NVIDIA-L40S",
        gpu_memory_mib: 46_068,
        cpus_for_eight: 192,
        memory_gib_for_eight: 1536,
    },
    CloudShape {
        name: "L4",
        product: "NVIDIA-L4",
        gpu_memory_mib: 23_034,
        cpus_for_eight: 192,
        memory_gib_for_eight: 768,
    },
    CloudShape {
        name: "T4",
        product: "Tesla-T4",
        gpu_memory_mib: 15_360,
        cpus_for_eight: 96,
        memory_gib_for_eight: 384,
    },
];

/// A root disk; nothing here depends on its size.
const ROOT_DISK_GIB: u32 = 100;

/// How many pods a kubelet takes by default.
const POD_SLOTS: u32 = 110;

impl MachineShape {
    /// A ready Node object of this shape. Processors and memory are in proportion to the GPUs.
    #[must_use]
    pub fn node(&self, name: &str) -> Value {
        let Self { gpus, kind } = self;
        let resources = json!({
            "cpu": (kind.cpus_for_eight * gpus / 8).to_string(),
            "memory": format!("{}Gi", kind.memory_gib_for_eight * gpus / 8),
            "ephemeral-storage": format!("{ROOT_DISK_GIB}Gi"),
            "pods": POD_SLOTS.to_string(),
            "nvidia.com/gpu": gpus.to_string(),
        });
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "nvidia.com/gpu.count": gpus.to_string(),
                    "nvidia.com/gpu.memory": kind.gpu_memory_mib.to_string(),
                    "nvidia.com/gpu.present": "true",
                    "nvidia.com/gpu.product": kind.product,
                },
            },
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "conditions": [{
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                }],
            },
        })
    }
}

impl FromStr for MachineShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let error = || ShapeError(text.to_owned());
        let (gpus, name) = text.split_once('x').ok_or_else(error)?;
        let gpus = gpus.parse().ok().filter(|gpus| (1..=16).contains(gpus)).ok_or_else(error)?;
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(error)?;
        Ok(Self { gpus, kind })
    }
}

/// A text that names no shape.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "shape `{0}`: write 1 to 16 GPUs, `x` and H100, H200, A100, L40S, L4 or T4, such as `8xH100`"
)]
pub struct ShapeError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_and_becomes_a_node() {
        let node = "4xA100".parse::<MachineShape>().unwrap().node("gpu-1");
        assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "4");
        assert_eq!(node["status"]["allocatable"]["cpu"], "48");
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "gpu-1");
        for bad in ["", "8", "x", "8xH1", "0xH100", "17xT4", "8XH100", "-1xL4"] {
            assert!(bad.parse::<MachineShape>().is_err(), "{bad}");
        }
    }
}
