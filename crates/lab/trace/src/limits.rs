//! Largest values that are read, written or generated; `docs/reference/trace-formats.md` lists
//! them.
//!
//! They are far above any real cluster. Every sum over one job or one machine fits 64 bits, every
//! sum over a file or a replay 128 bits, and the bounds of `lab/exact` take all of them.

/// Longest time, in ms: a century of leap years.
pub const MAX_TIME_MS: u64 = 100 * 366 * 86_400_000;
/// Most CPU of one pod or machine, in thousandths of a core: a million cores.
pub const MAX_CPU_MILLI: i64 = 1_000_000_000;
/// Most memory of one pod, machine or GPU, in bytes: 8 PiB.
pub const MAX_MEMORY_BYTES: i64 = 1 << 53;
/// Most memory of all pods of a job, in bytes: 1 EiB.
pub const MAX_JOB_MEMORY_BYTES: i64 = 1 << 60;
/// Most GPUs of one machine.
pub const MAX_NODE_GPUS: u32 = 1_024;
/// Most GPUs of all machines of a cluster, and of all pods of a job.
pub const MAX_GPUS: u32 = 1_000_000;
/// Most pods of one job.
pub const MAX_PODS: u32 = 1_000_000;
