//! The whole world at one moment, as plain data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::action::PendingReason;
use crate::booking::Booked;
use crate::cohort::Cohorts;
use crate::device::MigTable;
use crate::history::History;
use crate::holding::Holding;
use crate::ids::{JobId, NodeName, QueueName, ReservationId};
use crate::job::{Job, PodSet, TopologyRequest};
use crate::node::Node;
use crate::preemption::{Budget, PreemptionReservation, Reserved};
use crate::queue::{Queue, QueueUsage};
use crate::run_time::{Burst, RunTimeTables};
use crate::topology::Topology;

/// Everything a decision may depend on, besides the policy and its version.
///
/// An engine built from a snapshot decides as the engine it was taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub now_ms: u64,
    /// Levels above the node.
    pub topology: Topology,
    /// Tables that devices refer to.
    pub mig_tables: Vec<MigTable>,
    /// Nodes, best tie-break rank first.
    pub nodes: Vec<Node>,
    pub queues: Vec<Queue>,
    /// What queues have used, where the order counts it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<QueueUsage>,
    /// Jobs that wait or run, oldest first.
    pub jobs: Vec<Job>,
    pub holdings: Vec<Holding>,
    /// What is kept for jobs until others have left; the holdings themselves are among the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<PreemptionReservation>,
    /// What is reserved for jobs that are next; the holdings are among the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<Reserved>,
    /// Capacity that is reserved for a time, by name; the holdings are among the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bookings: Vec<Booked>,
    /// Jobs for which no time was found at which they could start, each with how many allocations
    /// without a known end there were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hopeless: Vec<(JobId, u64)>,
    /// The latest expected end of a job that ended before it since reservations were last settled.
    #[serde(skip_serializing_if = "is_zero")]
    pub freed_until_ms: u64,
    /// How many pods may be stopped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
    /// What preempted jobs have behind them that were not submitted again yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<(JobId, History)>,
    /// What order `dovetail` has learnt; `None` with other orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohorts: Option<Cohorts>,
    /// Reasons already given to waiting jobs; each is said once until it changes.
    pub reasons: Vec<(JobId, PendingReason)>,
    /// Random numbers drawn so far, for nodes and for devices; policies that draw none leave both
    /// at 0.
    pub random_draws: [u64; 2],
    /// What was found not to fit and is not tried again before something it wants becomes better.
    pub sleeping: Vec<Sleeping>,
    /// What became better since waiting jobs were last tried, as bits of the engine's own.
    pub helped: u64,
    /// Nodes on which something was freed since then.
    pub helped_nodes: Vec<NodeName>,
    /// What was learned about run times; `None` where the engine does not learn them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_times: Option<RunTimeTables>,
    /// Jobs that came together and are expected to run for about as long, of those whose run times
    /// are expected at all; the oldest burst of each group first. Jobs that are in none are in
    /// those that their submissions say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<Burst>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A class of jobs that ask for the same, found not to fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleeping {
    pub queue: QueueName,
    /// Whether they may stop others.
    #[serde(default)]
    pub preempts: bool,
    /// What is kept for the only one of them.
    #[serde(default)]
    pub claim: Option<ReservationId>,
    /// How long they are expected to run (p90, by bucket), where that decides whether they may
    /// start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_ms: Option<u64>,
    /// Under which names room is held for the only one of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kept_room: BTreeSet<String>,
    /// What they ask for.
    pub pod_sets: Vec<PodSet>,
    pub topology: TopologyRequest,
    /// What must become better first, as bits of the engine's own.
    pub wants: u64,
    /// Why the first of them has not started.
    pub reason: PendingReason,
    /// When they are to be tried again in any case: those that are to be preempted write a
    /// checkpoint by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
}
