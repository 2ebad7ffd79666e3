//! The file formats, how they are told apart, and how to read them.

use std::fmt;
use std::num::NonZeroU32;

use serde::Serialize;

/// A file format; `docs/reference/trace-formats.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// dovetail's own CSV of jobs.
    Jobs,
    /// dovetail's own CSV of machines.
    Nodes,
    /// A table of jobs with times in seconds.
    JobTable,
    /// Pods of the Alibaba openb trace.
    OpenbPods,
    /// Machines of the Alibaba openb trace.
    OpenbNodes,
    /// The Standard Workload Format of the Parallel Workloads Archive.
    Swf,
}

/// How to read a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// The format; `None` tells it from the first line.
    pub format: Option<TraceFormat>,
    /// Leave bad rows out and list them, instead of stopping at the first.
    pub skip_bad_rows: bool,
    /// What a processor of a Standard Workload Format file is.
    pub swf_processors: SwfProcessors,
}

/// What a processor of a Standard Workload Format file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SwfProcessors {
    #[default]
    AsGpus,
    /// One CPU core; jobs have no GPU.
    AsCpuCores,
    /// One CPU core, and this many of them come with one GPU; a started group counts as whole.
    PerGpu(NonZeroU32),
}

/// All formats, in the order in which they are described.
pub const FORMATS: [TraceFormat; 6] = [
    TraceFormat::Jobs,
    TraceFormat::Nodes,
    TraceFormat::JobTable,
    TraceFormat::OpenbPods,
    TraceFormat::OpenbNodes,
    TraceFormat::Swf,
];

impl TraceFormat {
    /// The name for the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Nodes => "nodes",
            Self::JobTable => "job-table",
            Self::OpenbPods => "openb-pods",
            Self::OpenbNodes => "openb-nodes",
            Self::Swf => "swf",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        FORMATS.into_iter().find(|format| format.name() == name)
    }

    /// True when the format holds machines, false when it holds jobs.
    pub fn holds_nodes(self) -> bool {
        matches!(self, Self::Nodes | Self::OpenbNodes)
    }

    /// The columns by which a CSV format is known; none for formats without a header.
    fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Jobs => &["job_id", "gpu_count"],
            Self::Nodes => &["node_name"],
            Self::JobTable => &["job_id", "submit_s"],
            Self::OpenbPods => &["name", "num_gpu"],
            Self::OpenbNodes => &["sn", "gpu"],
            Self::Swf => &[],
        }
    }

    /// What the first line looks like, for messages.
    pub(crate) fn description(self) -> String {
        match self {
            Self::Swf => "swf (18 numbers separated by spaces; comments start with ;)".into(),
            csv => format!("{} (columns {})", csv.name(), csv.marks().join(", ")),
        }
    }

    /// The format of a CSV header.
    pub(crate) fn of_header(columns: &[String]) -> Option<Self> {
        FORMATS.into_iter().find(|format| {
            let marks = format.marks();
            !marks.is_empty() && marks.iter().all(|mark| columns.iter().any(|c| c == mark))
        })
    }

    /// True when a first line can only be Standard Workload Format.
    pub(crate) fn looks_like_swf(line: &str) -> bool {
        let comment = line.trim_start().starts_with(';');
        let mut words = line.split_ascii_whitespace();
        comment || (words.clone().count() == 18 && words.all(|word| word.parse::<f64>().is_ok()))
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
