//! Resources that nodes offer and that may be GPUs under names that are not counted: virtual GPUs
//! of other schedulers, devices for virtual machines, a plugin that was told another name.

use dovetail_model::is_gpu_resource;
use dovetail_objects::Node;

use super::share::counted_as;
use super::units::offered;

/// How the names of resources begin that are no GPUs and that nodes with GPUs offer, too: network
/// devices, huge pages, devices of the kernel, accelerators of other kinds.
const NO_GPUS: [&str; 25] = [
    "aliyun/",
    "alibabacloud.com/eni",
    "amd.com/node_metrics",
    "attachable-volumes-",
    "cloud.google.com/",
    "devices.kubevirt.io/",
    "dsa.intel.com/",
    "fpga.intel.com/",
    "github.com/fuse",
    "gpu.intel.com/",
    "habana.ai/",
    "hugepages-",
    "intel.com/",
    "kubernetes.io/",
    "mellanox.com/",
    "networking.gke.io",
    "nvidia.com/hostdev",
    "nvidia.com/rdma",
    "openshift.io/",
    "qat.intel.com/",
    "rdma/",
    "sgx.intel.com/",
    "smarter-devices/",
    "tke.cloud.tencent.com/",
    "vpc.amazonaws.com/",
];

/// What the names of resources have that are some vendor's or scheduler's GPUs.
const OF_GPUS: [&str; 4] = ["gpu", "cuda", "nvidia.com/", "amd.com/"];

/// Resources of a node that may be its GPUs and are not counted as such, in the order of their
/// names.
pub(super) fn perhaps_gpus(node: &Node) -> Vec<String> {
    let built_in = |name: &str| offered(node, name).1;
    let may_be = |name: &&String| {
        !is_gpu_resource(name)
            && built_in(name) > 0
            && counted_as(built_in, name).is_none()
            && !NO_GPUS.iter().any(|begin| name.starts_with(begin))
    };
    node.capacity.extended.keys().filter(may_be).cloned().collect()
}

/// Resources of a node that are named like GPUs and are not counted as such.
pub fn named_like_gpus(node: &Node) -> Vec<String> {
    let mut names = perhaps_gpus(node);
    names.retain(|name| {
        let name = name.to_ascii_lowercase();
        OF_GPUS.iter().any(|of| name.contains(of))
    });
    names
}
