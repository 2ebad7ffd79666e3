//! Reads, writes, describes and generates cluster traces.
//!
//! | what | where |
//! |---|---|
//! | jobs, machines, a whole trace | [`TraceJob`], [`TraceNode`], [`TraceCluster`], [`Trace`] |
//! | reading files (plain or gzip, six formats) | [`read_trace`], [`read_cluster`], [`ReadOptions`] |
//! | other CSV files by the same rules | [`SmallTable`] |
//! | writing files | [`write_trace`], [`write_cluster`], [`write_job_table`] |
//! | orders and typical pods of the FGD experiments | [`fgd`] |
//! | what a person asks first, as figures and as text | [`stats`] |
//! | jobs out of what was seen of GPUs | [`ObservedAllocations`] |
//! | seeded clusters and job streams | [`synth`] |
//! | clusters and job streams from a few lines | [`scenario`] |
//!
//! `docs/reference/trace-formats.md` describes the files. Nothing here touches a clock or draws
//! randomness of its own; every result follows from the input and the seed.

mod error;
pub mod fgd;
mod format;
mod job;
pub mod limits;
mod node;
mod read;
pub mod scenario;
mod seen;
pub mod stats;
pub mod synth;
mod trace;
mod write;

pub use error::{RowError, SkippedRow, TraceError};
pub use format::{FORMATS, ReadOptions, SwfProcessors, TraceFormat};
pub use job::{ExactTimes, PodSplit, RecordedOutcome, StopCosts, TraceJob, UnseenEnds};
pub use node::{TraceCluster, TraceNode};
pub use read::{
    RowProblem, SmallRow, SmallTable, detect_format, read_cluster, read_cluster_from, read_trace,
    read_trace_from,
};
pub use seen::{ObservedAllocations, SeenPart, SeenPod};
pub use trace::{KnownFields, Trace};
pub use write::{write_cluster, write_job_table, write_trace};
