//! Outside traces that regimes are made of, and what can be wrong with one.

use std::collections::BTreeMap;

use dovetail_trace::{TraceJob, TraceNode};
use thiserror::Error;

/// Traces that regimes are made of. What is empty is not there.
#[derive(Clone, Debug, Default)]
pub struct ArenaData {
    /// Machines of openb with GPUs.
    pub openb_nodes: Vec<TraceNode>,
    /// Pods of openb by name of the list, such as `default`.
    pub openb_pods: BTreeMap<String, Vec<TraceJob>>,
    pub philly: Vec<TraceJob>,
    /// Jobs of an ITP cluster.
    pub itp: Vec<TraceJob>,
}

/// One of these traces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outside {
    /// Machines of openb.
    Nodes,
    /// A list of openb pods, by name.
    Pods(String),
    Philly,
    Itp,
}

/// A trace of which a world cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {problem}", .trace.file())]
pub struct DataError {
    pub trace: Outside,
    /// The row of the trace that is concerned, from 0; `None` for all of it.
    pub row: Option<usize>,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl Outside {
    /// Its file in the folder of traces.
    pub fn file(&self) -> String {
        match self {
            Self::Nodes => "openb/openb_node_list_gpu_node.csv".to_owned(),
            Self::Pods(list) => format!("openb/openb_pod_list_{list}.csv"),
            Self::Philly => "jobs/philly_pass_82k.csv".to_owned(),
            Self::Itp => "jobs/itp_cluster04.csv".to_owned(),
        }
    }

    /// An error about all of it.
    pub(crate) fn bad(&self, problem: impl Into<String>) -> DataError {
        DataError { trace: self.clone(), row: None, problem: problem.into() }
    }
}

impl ArenaData {
    /// Whether a trace is there.
    pub(crate) fn has(&self, trace: &Outside) -> bool {
        match trace {
            Outside::Nodes => !self.openb_nodes.is_empty(),
            Outside::Pods(list) => self.openb_pods.get(list).is_some_and(|pods| !pods.is_empty()),
            Outside::Philly => !self.philly.is_empty(),
            Outside::Itp => !self.itp.is_empty(),
        }
    }

    /// Why the machines of openb are too few for so many, if they are.
    pub(crate) fn lacks_nodes(&self, wanted: usize) -> Option<String> {
        let found = self.openb_nodes.len();
        let file = Outside::Nodes.file();
        (found < wanted).then(|| format!("{file} has {found} of the {wanted} nodes that it needs"))
    }
}
