//! The live scheduler: watch, decide, bind, confirm.
//!
//! [`Scheduler`] is the loop without its wires and can be driven by a test; [`run`] connects it to a
//! server. [`endpoints`] answers probes, [`Metrics`] counts.

pub mod endpoints;
mod metrics;
mod news;
mod outbox;
mod pauses;
mod run;
mod scheduler;
mod status;
mod term;

pub use metrics::Metrics;
pub use news::{News, PodName};
pub use run::{Election, Options, RunError, run};
pub use scheduler::{Counts, Scheduler};
pub use status::{Standing, Status};

use run::Shared;
