//! Names of the series of NVIDIA's DCGM that are read, once for the whole program.

/// Share of the streaming multiprocessors with at least one warp, 0 to 1.
pub const SM_ACTIVE: &str = "DCGM_FI_PROF_SM_ACTIVE";
/// Share of time in which the graphics or compute engine was active, 0 to 1.
pub const GR_ENGINE_ACTIVE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
/// The same in newer DCGM.
pub const GR_ENGINE_UTIL_RATIO: &str = "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO";
/// Share of time in which any kernel ran, in percent.
pub const GPU_UTIL: &str = "DCGM_FI_DEV_GPU_UTIL";
/// The same in newer DCGM, 0 to 1.
pub const GPU_UTIL_RATIO: &str = "DCGM_FI_DEV_GPU_UTIL_RATIO";
/// Share of time in which tensor cores worked, 0 to 1.
pub const TENSOR_ACTIVE: &str = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE";
/// Share of time in which memory was read or written, 0 to 1.
pub const DRAM_ACTIVE: &str = "DCGM_FI_PROF_DRAM_ACTIVE";
/// Bytes per second sent over NVLink.
pub const NVLINK_SENT: &str = "DCGM_FI_PROF_NVLINK_TX_BYTES";
/// Bytes per second received over NVLink.
pub const NVLINK_RECEIVED: &str = "DCGM_FI_PROF_NVLINK_RX_BYTES";
/// Memory in use, in MiB.
pub const MEMORY_USED: &str = "DCGM_FI_DEV_FB_USED";
/// Free memory, in MiB.
pub const MEMORY_FREE: &str = "DCGM_FI_DEV_FB_FREE";
/// Power drawn, in watts.
pub const POWER_USAGE: &str = "DCGM_FI_DEV_POWER_USAGE";
