//! Node pools: machines that clouds offer, in the mix of a company that trains and serves.

/// A pool of equal nodes.
#[derive(Debug)]
pub(super) struct NodePool {
    pub(super) name: &'static str,
    pub(super) instance: &'static str,
    /// Physical GPUs of a node.
    pub(super) gpus: u32,
    /// Its label `nvidia.com/gpu.product`.
    pub(super) model: &'static str,
    pub(super) gpu_memory_mib: u32,
    /// What pods ask for, and how many of it a node offers.
    pub(super) resource: &'static str,
    pub(super) units: u32,
    /// Offered to pods.
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) taint: Option<&'static str>,
    pub(super) is_spot: bool,
    /// Whether dcgm-exporter runs on its nodes.
    pub(super) is_measured: bool,
    /// Of all nodes, in percent; the shares add up to 100.
    pub(super) share_percent: u32,
}

pub(super) const GPU: &str = "nvidia.com/gpu";

const NONE: NodePool = NodePool {
    name: "general",
    instance: "m7i.16xlarge",
    gpus: 0,
    model: "",
    gpu_memory_mib: 0,
    resource: "",
    units: 0,
    cpu_milli: 63_770,
    memory_mib: 248_000,
    taint: None,
    is_spot: false,
    is_measured: false,
    share_percent: 15,
};

const H100: NodePool = NodePool {
    name: "h100-train",
    instance: "p5.48xlarge",
    gpus: 8,
    model: "NVIDIA-H100-80GB-HBM3",
    gpu_memory_mib: 81_559,
    resource: GPU,
    units: 8,
    cpu_milli: 191_450,
    memory_mib: 2_030_000,
    taint: Some(GPU),
    is_measured: true,
    share_percent: 30,
    ..NONE
};

// Places in [`POOLS`].
pub(super) const TRAIN: usize = 0;
pub(super) const SERVE: usize = 1;
pub(super) const SPOT: usize = 2;
pub(super) const SMALL: usize = 3;
pub(super) const SLICES: usize = 4;
pub(super) const SHARED: usize = 5;
pub(super) const GENERAL: usize = 6;

/// All pools; the last has no GPUs and takes what is left by rounding.
pub(super) static POOLS: [NodePool; 7] = [
    H100,
    NodePool { name: "h100-serve", share_percent: 20, ..H100 },
    NodePool { name: "h100-spot", is_spot: true, share_percent: 5, ..H100 },
    // Nobody tainted it.
    NodePool {
        name: "l4-serve",
        instance: "g6.12xlarge",
        gpus: 4,
        model: "NVIDIA-L4",
        gpu_memory_mib: 23_034,
        units: 4,
        cpu_milli: 47_810,
        memory_mib: 183_000,
        taint: None,
        share_percent: 20,
        ..H100
    },
    NodePool {
        name: "a100-slices",
        instance: "p4de.24xlarge",
        model: "NVIDIA-A100-SXM4-80GB",
        gpu_memory_mib: 81_920,
        resource: "nvidia.com/mig-1g.10gb",
        units: 56,
        cpu_milli: 95_690,
        memory_mib: 1_120_000,
        // Another key than the resource: each workload carries the toleration by hand.
        taint: Some("example.com/slices"),
        share_percent: 5,
        ..H100
    },
    // Nobody measures it.
    NodePool {
        name: "t4-shared",
        instance: "g4dn.12xlarge",
        gpus: 4,
        model: "Tesla-T4",
        gpu_memory_mib: 15_360,
        resource: "nvidia.com/gpu.shared",
        units: 16,
        cpu_milli: 47_810,
        memory_mib: 183_000,
        taint: Some("nvidia.com/gpu.shared"),
        is_measured: false,
        share_percent: 5,
        ..H100
    },
    NONE,
];

/// How many nodes of each pool a cluster has; at least one of each.
pub(super) fn sizes(nodes: u32) -> [u32; 7] {
    let mut sizes = [0; 7];
    for (size, pool) in sizes.iter_mut().zip(&POOLS) {
        *size = (nodes * pool.share_percent / 100).max(1);
    }
    let others: u32 = sizes[..GENERAL].iter().sum();
    sizes[GENERAL] = nodes.saturating_sub(others).max(1);
    sizes
}
