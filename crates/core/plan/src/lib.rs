//! The decision engine: order, place, score, explain. Pure: no clock, no I/O, no hidden randomness.
//!
//! [`Engine::step`] takes what happened at a time and answers with a plan: the one function through
//! which the simulator, a replay and the live scheduler change and ask for decisions.
//! Which of the nodes that fit is best is said by `dovetail_policy`; `dovetail_finder` finds it.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | `step`, the pending queue, the decision cycle |
//! | `gang` | all-or-nothing placement of a job over the topology |
//! | [`reserve`] | capacity reserved for the jobs that are next |
//! | [`starts`] | when pending jobs are expected to start |
//! | [`preemption`] | which pods are preempted so that a job of higher priority starts |
//! | `pending` | jobs that are pending, by class; classes that sleep until an event can help |
//! | [`meter`] | how fragmented a node is, as a figure |
//! | [`explain`] | why here, why not, what would help |

pub mod engine;
pub mod explain;
mod gang;
pub mod meter;
mod pending;
pub mod preemption;
pub mod reserve;
pub mod starts;

pub use dovetail_order::Order;
pub use dovetail_order::estimate::{EstimatesConfig, RunTimesError};
pub use dovetail_order::estimate::{check as check_run_times, check_cohorts};
pub use dovetail_order::queues::quota::{QueueUse, QuotaBlock};
pub use dovetail_policy::learn::{
    CHECK_EVERY, HALF_LIFE_ARRIVALS, Learnt, LearntError, LearntFile, LearntFileError, PodKind,
};
pub use dovetail_policy::named::{PolicySpec, UnknownPolicy};
pub use dovetail_policy::target::TargetPod;
pub use dovetail_policy::{Policy, Term};
pub use dovetail_state::State;
pub use dovetail_state::cause::{Cause, CauseCounts};
pub use dovetail_state::shapes::ShapeId;
pub use dovetail_state::view::View;
pub use engine::{Batch, Engine, EngineConfig, EngineError, Learned, ReservedFor, ReservedUnused};
pub use gang::{PlacedPod, UnknownLevel};
pub use preemption::{BlockingBudgets, PreemptionConfig, SearchEffort};
pub use reserve::ReserveConfig;
pub use starts::{
    ExpectedStart, ExpectedWait, Foresight, OctaveCorrection, PastForecasts, StartCorrections,
    reached,
};
