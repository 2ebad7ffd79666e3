//! The live scheduler: watch, decide, bind, confirm.
//!
//! [`Scheduler`] is the loop without its wires and can be driven by a test; [`run`] connects it to a
//! server. [`endpoints`] answers probes, [`Metrics`] counts.

mod announcing;
mod comparison;
pub mod endpoints;
mod first_lists;
mod in_the_way;
mod look;
mod looks;
mod lost;
mod metrics;
mod news;
mod no_room;
mod outbox;
mod pauses;
mod preempt;
mod provisioning;
mod record;
mod rightless;
mod run;
mod scheduler;
mod spared;
mod status;
mod stops;
mod term;
mod tries;
mod waits;
mod would_wait;

pub use comparison::{Compared, Comparison};
pub use first_lists::ListPatience;
pub use look::{LookError, look};
pub use metrics::Metrics;
pub use news::{News, PodName, Preempts, StopRefused, Stopped};
pub use record::{Record, Recording};
pub use run::{Election, Options, RunError, run};
pub use scheduler::{Counts, Scheduler};
pub use status::{Standing, Status};

use run::Shared;
