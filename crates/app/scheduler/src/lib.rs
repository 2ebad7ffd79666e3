//! The live scheduler: watch, decide, bind, confirm.
//!
//! [`run`] connects [`dovetail_control::Control`] to a server. [`endpoints`] answers probes,
//! [`Metrics`] counts.
//!
//! | module | what |
//! |---|---|
//! | [`bind`] | tasks that send binds and orders, each with its deadline |
//! | [`lead`] | keeps the lease |

mod announcer;
pub mod bind;
pub mod endpoints;
mod first_lists;
pub mod lead;
mod log;
mod look;
mod metrics;
mod run;
mod status;
mod term;

pub use announcer::Announcer;
pub use first_lists::ListPatience;
pub use look::{LookError, look};
pub use metrics::Metrics;
pub use run::{Election, Options, RunError, run};
pub use status::{Standing, Status};

use run::Shared;
