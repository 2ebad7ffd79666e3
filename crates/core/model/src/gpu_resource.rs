//! Which resources count GPUs.

use crate::labels;

/// Resource names of GPUs and of parts of them, whole or by prefix.
const GPU_RESOURCES: [&str; 6] = [
    labels::NVIDIA_GPU,
    labels::NVIDIA_SHARED,
    labels::AMD_GPU,
    "amd.com/gpu.shared",
    labels::HABANA_GAUDI,
    labels::GOOGLE_TPU,
];
const GPU_RESOURCE_PREFIXES: [&str; 4] =
    [labels::NVIDIA_MIG, "gpu.intel.com/", "amd.com/cpx", labels::AWS_NEURON];
/// Beside devices Intel's plugin offers what goes with them.
const NO_DEVICES: [&str; 3] =
    ["gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles"];

/// Whether a resource counts GPUs, other accelerators, or parts of them.
pub fn is_gpu_resource(resource: &str) -> bool {
    let is_part = GPU_RESOURCE_PREFIXES.iter().any(|prefix| resource.starts_with(prefix));
    // `i915_monitoring` and its like let one container watch all GPUs of a node.
    let is_device = !NO_DEVICES.contains(&resource) && !resource.ends_with("_monitoring");
    GPU_RESOURCES.contains(&resource) || is_part && is_device
}
