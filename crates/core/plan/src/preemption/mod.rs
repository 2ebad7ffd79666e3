//! Preemption: which pods are evicted so that a job of higher priority starts, and what is reserved
//! for it meanwhile.
//!
//! The rules are kube-scheduler's: victims have a strictly lower priority, whoever is protected or
//! already ending is none, a job that never preempts waits, and nobody is stopped unless the job
//! then starts: the last word has the placement that would be used. A gang is stopped as a whole,
//! an elastic one also down to its smallest size. What is chosen is cheapest in the order of
//! [`dovetail_model::PreemptionCost`], and none of the victims can be spared: what does not need to
//! go is put back, the most important first.
//!
//! | file | what |
//! |---|---|
//! | `relation` | who may preempt whom, and for which reason |
//! | `guarantees` | quotas as what nobody else may take, and what their owners get back |
//! | `units` | what can be stopped, and how important it is |
//! | `prey` | whom a job may stop, by node and by queue |
//! | `bounds` | proofs, before any search, that a gang does not fit whoever goes |
//! | `node_plan` | the cheapest way to make one pod fit on one node |
//! | `put_back` | who of those that may go is tried first, whether it can stay |
//! | `glance` | what that costs at least |
//! | `covering` | what victims cost at least for the devices that a pod lacks on a node |
//! | `worth` | whether a job is worth what those give that make place for it by the order |
//! | `survey` | what is known of each node for one more pod |
//! | `stepwise` | pods of a gang one after the other, each where that costs least |
//! | `shortage` | what queues must get back before a job may start, and what is kept of that |
//! | `search` | the whole gang as it would be placed, and who can be spared |
//! | `sparing` | a bound that proves that some of many victims cannot be spared |
//! | `checkpoints` | whether to wait for the next checkpoint of the victims |
//! | `claims` | what is kept for a job until its victims have left |
//! | `kept` | all that is kept for jobs, and how one is placed in what is kept for it |
//! | `lower_claims` | which claims of jobs of a lower priority stay beside it |
//! | `rooms` | rooms that are kept for others: how important, and whether one can be held again |
//! | `needed_rooms` | which rooms of jobs of a lower priority are needed for it |
//! | `decide` | how the cycle uses all that |
//! | `blocked` | which budgets alone keep a job from making room for itself |
//!
//! A job that its queue's bounds keep from starting stops others of the queues at their bounds:
//! what those give back is counted beside the room that they leave.
//!
//! The searches of a cycle count their operations and end at a limit, never after a time.

mod blocked;
mod bounds;
mod checkpoints;
pub(crate) mod claims;
mod cost;
mod covering;
mod decide;
mod for_gangs;
mod glance;
mod guarantees;
mod kept;
mod lower_claims;
mod needed_rooms;
mod node_plan;
mod prey;
mod put_back;
mod relation;
mod rooms;
mod search;
mod shortage;
mod sparing;
mod stepwise;
mod survey;
mod units;
mod worth;

use dovetail_order::Turns;
use serde::{Deserialize, Serialize};

pub use blocked::BlockingBudgets;
pub(crate) use bounds::might_fit_without;
pub(crate) use claims::{Claims, FIRST_OF_RESERVED};
pub use decide::SearchEffort;
pub(crate) use decide::{PreemptOutcome, Preemption, might_clear};
pub(crate) use guarantees::{exceeds_kept, might_reclaim, reclaims};
pub(crate) use kept::{News, ReservedCapacity};
pub(crate) use relation::{Preemptor, Relation};
pub(crate) use rooms::has_room_for;
pub(crate) use shortage::{Bounded, KeptQuota};
pub(crate) use survey::OutlookSurvey;

/// Whether and how jobs stop others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreemptionConfig {
    /// Whether any job may stop others.
    pub enabled: bool,
    /// Whether a higher priority is a reason to; the order may know others.
    #[serde(skip_serializing_if = "is_so")]
    pub by_priority: bool,
    /// Nobody is stopped beyond what budgets allow; else that is the last resort of priority.
    /// Other reasons never go beyond them.
    pub respect_budgets: bool,
    /// Holds, releases and looks that the searches of one cycle may take together. Who is not
    /// searched for by then is in the next cycle; a search that needs more than all of it finds
    /// nothing.
    pub max_operations: u64,
    /// Time that a pod takes to leave where its job does not say; Kubernetes' default is 30 s.
    pub default_grace_ms: u64,
    /// Victims are waited for so much longer than the longest of them may take.
    pub slack_ms: u64,
}

impl PreemptionConfig {
    /// As the weights of order `dovetail` say: which of its reasons jobs may stop others for.
    pub fn of_turns(turns: &Turns) -> Self {
        let enabled = turns.preempts || turns.reclaims;
        Self { enabled, by_priority: turns.preempts, ..Self::default() }
    }
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_so(value: &bool) -> bool {
    *value
}

impl Default for PreemptionConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            by_priority: true,
            respect_budgets: false,
            max_operations: 1_000_000,
            default_grace_ms: 30_000,
            slack_ms: 60_000,
        }
    }
}
