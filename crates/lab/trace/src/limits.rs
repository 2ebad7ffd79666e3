//! Largest values that are read, written or generated.
//!
//! They are far above any real cluster, and keep every sum that a simulator or a report forms
//! within 64 bits (single values) or 128 bits (GPU time of a whole trace).

/// Longest time, in ms: about 31,700 years.
pub const MAX_TIME_MS: u64 = 1_000_000_000_000_000;
/// Most CPU of one pod or machine, in thousandths of a core: one thousand million cores.
pub const MAX_CPU_MILLI: i64 = 1_000_000_000_000;
/// Most memory of one pod, machine or GPU, in bytes: 1 EiB.
pub const MAX_MEMORY_BYTES: i64 = 1 << 60;
/// Most GPUs of one pod or machine.
pub const MAX_GPUS: u32 = 1_000_000;
/// Most pods of one job.
pub const MAX_PODS: u32 = 1_000_000;
