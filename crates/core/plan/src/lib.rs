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
//! | [`index`] | exact score trees and room per domain, refreshed from the change log |
//! | [`naive`] | the same answers by exhaustive search, for tests |
//! | `pending` | jobs that are pending, by class; classes that sleep until an event can help |
//! | [`explain`] | why here, why not, what would help |

pub mod engine;
pub mod explain;
mod finder;
mod gang;
pub mod index;
mod learn;
pub mod naive;
mod pending;
pub mod policy;
pub mod preemption;
pub mod reserve;
pub mod starts;

pub use dovetail_order::Order;
pub use dovetail_order::estimate::EstimatesConfig;
pub use dovetail_order::queues::quota::{QueueUse, QuotaBlock};
pub use dovetail_state::State;
pub use dovetail_state::cause::{Cause, CauseCounts};
pub use dovetail_state::shapes::ShapeId;
pub use dovetail_state::view::View;
pub use engine::{Batch, Engine, EngineConfig, EngineError};
pub use gang::{PlacedPod, UnknownLevel};
pub use learn::{CHECK_EVERY, HALF_LIFE_ARRIVALS, Learnt, LearntError, PodKind};
pub use policy::named::{PolicySpec, UnknownPolicy};
pub use policy::target::TargetPod;
pub use policy::{Policy, Term};
pub use preemption::{PreemptionConfig, SearchEffort};
pub use reserve::ReserveConfig;
pub use starts::{ExpectedStart, Foresight, PastForecasts};
