//! The decision engine: order, place, score, explain. Pure: no clock, no I/O, no hidden randomness.
//!
//! [`Engine::step`] takes what happened at a time and answers with a plan: the one function through
//! which the simulator, a replay and the live scheduler change and ask for decisions.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | `step`, the pending queue, the decision cycle |
//! | `gang` | all-or-nothing placement of a job over the topology |
//! | [`reserve`] | capacity reserved for the jobs that are next |
//! | [`starts`] | when pending jobs are expected to start |
//! | [`policy`] | which of the nodes that fit is best |
//! | [`preemption`] | which pods are preempted so that a job of higher priority starts |
//! | [`view`] | now, after releasing, at a time, without victims |
//! | [`index`] | exact score trees and room per domain, refreshed from the change log |
//! | [`naive`] | the same answers by exhaustive search, for tests |
//! | [`estimate`] | how long jobs run, learned from those that ended |
//! | [`explain`] | why here, why not, what would help |
//! | [`state`] | nodes, devices, holdings, counters, with transactions |

pub mod cause;
mod device;
pub mod engine;
pub mod estimate;
pub mod explain;
mod finder;
mod fit;
mod gang;
pub mod index;
mod learn;
pub mod naive;
pub mod order;
pub mod policy;
pub mod preemption;
mod queue;
pub mod reserve;
mod rules;
pub mod starts;
pub mod state;
pub mod view;

pub use cause::{Cause, CauseCounts};
pub use engine::{Batch, Engine, EngineConfig, EngineError};
pub use estimate::EstimatesConfig;
pub use gang::{PlacedPod, UnknownLevel};
pub use learn::{CHECK_EVERY, HALF_LIFE_ARRIVALS, Learnt, PodKind};
pub use policy::named::{PolicySpec, UnknownPolicy};
pub use policy::target::TargetPod;
pub use policy::{Policy, Term};
pub use preemption::{PreemptionConfig, SearchEffort};
pub use queue::quota::{QueueUse, QuotaBlock};
pub use queue::{Order, division};
pub use reserve::ReserveConfig;
pub use starts::{ExpectedStart, Foresight, PastForecasts};
pub use state::State;
pub use state::shapes::ShapeId;
pub use view::View;
