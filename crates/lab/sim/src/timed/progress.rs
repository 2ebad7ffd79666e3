//! Where a simulation stands: everything besides the engine that must be kept to go on later.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use dovetail_model::{JobId, NodeName};
use serde::{Deserialize, Serialize};

use crate::event_log::EventLog;
use crate::timed::autoscale::{PoolDue, PoolState};
use crate::timed::calibration::Calibrations;
use crate::timed::faults::FaultDraws;
use crate::timed::metrics::JobOutcome;

/// Something that will happen, unless it is overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Due {
    /// A running attempt of a job ends.
    End {
        job: JobId,
        attempt: u32,
    },
    /// A machine, by position in the world, fails.
    Failure(u32),
    Repair(u32),
    /// Something with a machine of the pool.
    Pool(PoolDue),
}

/// One job on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobProgress {
    pub(crate) outcome: JobOutcome,
    /// Work left, as of the start of the running attempt.
    pub(crate) remaining_ms: u64,
    pub(crate) attempt: u32,
    /// When the running attempt started.
    pub(crate) running_since_ms: Option<u64>,
}

/// Where a simulation stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SimulationProgress {
    pub(crate) now_ms: u64,
    /// Jobs submitted so far, in order of submission.
    pub(crate) submitted: usize,
    /// Cluster events taken so far.
    pub(crate) cluster_events: usize,
    /// Bookings asked for so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) booked: usize,
    pub(crate) due: BinaryHeap<Reverse<(u64, Due)>>,
    pub(crate) jobs: Vec<JobProgress>,
    /// Jobs running on each machine.
    #[serde(with = "as_pairs")]
    pub(crate) running_on: BTreeMap<NodeName, Vec<JobId>>,
    pub(crate) unfinished: usize,
    pub(crate) faults: Option<FaultDraws>,
    #[serde(default)]
    pub(crate) pool: PoolState,
    /// GPU of the jobs that wait, in thousandths.
    #[serde(default)]
    pub(crate) waiting_milli: u128,
    /// How good expected run times were.
    #[serde(default)]
    pub(crate) calibrations: Calibrations,
    pub(crate) log: EventLog,
    pub(crate) steps: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl SimulationProgress {
    /// Virtual time.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Jobs that have not ended yet, the ones not yet submitted included.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Instants at which something happened.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Maps keyed by shared names, as lists of pairs.
mod as_pairs {
    use std::collections::BTreeMap;

    use dovetail_model::{JobId, NodeName};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Map = BTreeMap<NodeName, Vec<JobId>>;

    pub(super) fn serialize<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(d: D) -> Result<Map, D::Error> {
        Ok(Vec::<(NodeName, Vec<JobId>)>::deserialize(d)?.into_iter().collect())
    }
}
