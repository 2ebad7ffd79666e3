//! The machines of a simulation: a file, or numbers of GPUs such as `4x8,2x4`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use dovetail_console::app::App;
use dovetail_console::places::Named;
use dovetail_trace::limits::{MAX_GPUS, MAX_NODE_GPUS};
use dovetail_trace::{TraceCluster, TraceNode};

use crate::input::trace_file::{self, RowFlags};

/// Most machines given by numbers.
const MAX_NODES: u64 = 1_000_000;

/// What `--nodes` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodesFlag {
    /// Machines and the GPUs of each.
    Sizes(Vec<(u32, u32)>),
    /// A file with machines.
    File(PathBuf),
}

impl NodesFlag {
    /// The file that lists the machines, where one was given.
    pub fn file(&self) -> Named<'_> {
        let file = match self {
            Self::Sizes(_) => None,
            Self::File(path) => Some(path.as_path()),
        };
        ("--nodes", file)
    }
}

impl FromStr for NodesFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Whatever has other characters can only be a file.
        let looks_like_sizes = text.chars().all(|c| c.is_ascii_digit() || "xX*,".contains(c));
        if !looks_like_sizes || Path::new(text).exists() {
            return Ok(Self::File(text.into()));
        }
        let sizes: Vec<(u32, u32)> = text.split(',').map(size).collect::<Result<_, _>>()?;
        let nodes: u64 = sizes.iter().map(|(count, _)| u64::from(*count)).sum();
        let gpus: u64 =
            sizes.iter().map(|(count, gpus)| u64::from(*count) * u64::from(*gpus)).sum();
        match nodes {
            _ if gpus > u64::from(MAX_GPUS) => Err(format!("more than {MAX_GPUS} GPUs")),
            0 => Err("no nodes: the counts before x add up to 0".to_owned()),
            nodes if nodes > MAX_NODES => Err(format!("more than {MAX_NODES} nodes")),
            _ => Ok(Self::Sizes(sizes)),
        }
    }
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let both = text.split_once('x').filter(|(count, gpus)| is_number(count) && is_number(gpus));
    let (count, gpus) = both.ok_or(
        "expected a CSV file with nodes, or COUNTxGPUS such as 8x8, several joined with commas \
         such as 4x8,2x4",
    )?;
    // What is no u32 is larger than one.
    let count = count.parse().map_err(|_| format!("more than {MAX_NODES} nodes"))?;
    let gpus = gpus.parse().ok().filter(|gpus| *gpus <= MAX_NODE_GPUS);
    Ok((count, gpus.ok_or_else(|| format!("more than {MAX_NODE_GPUS} GPUs per node"))?))
}

impl NodesFlag {
    /// The machines.
    pub fn cluster(&self, app: &App, rows: RowFlags) -> Result<TraceCluster> {
        match self {
            Self::File(path) => trace_file::machines(app, path, rows),
            Self::Sizes(sizes) => Ok(cluster_of(sizes)),
        }
    }
}

/// Machines that have so many GPUs each and more of everything else than jobs ask for.
pub fn cluster_of(sizes: &[(u32, u32)]) -> TraceCluster {
    let gpus = sizes.iter().flat_map(|(count, gpus)| std::iter::repeat_n(*gpus, *count as usize));
    let node = |(number, gpu_count): (usize, u32)| TraceNode {
        name: format!("node-{number:06}"),
        cpu_milli: dovetail_traces::AMPLE_CPU_MILLI,
        memory_bytes: dovetail_traces::AMPLE_MEMORY_BYTES,
        gpu_count,
        ..TraceNode::default()
    };
    let text: Vec<String> = sizes.iter().map(|(count, gpus)| format!("{count}x{gpus}")).collect();
    TraceCluster {
        nodes: gpus.enumerate().map(node).collect(),
        source: text.join(","),
        ..TraceCluster::default()
    }
}
