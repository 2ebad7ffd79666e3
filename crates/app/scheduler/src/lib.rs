//! The live scheduler: watch, decide, bind, confirm.
//!
//! [`run`] connects [`dovetail_control::Control`] to a server. [`endpoints`] answers probes,
//! [`Metrics`] counts.
//!
//! | module | what |
//! |---|---|
//! | [`Wires`] | performs requests, each with its deadline |
//! | [`lead`] | keeps the lease |

pub mod endpoints;
mod first_lists;
pub mod lead;
mod leader_loop;
mod log;
mod look;
mod metrics;
mod reading;
mod run;
mod status;
mod wires;

pub use first_lists::ListPatience;
pub use look::{LookError, Looked, look};
pub use metrics::Metrics;
pub use run::{Election, Options, RunError, run};
pub use status::{ProcessPhase, Status};
pub use wires::Wires;

use run::Shared;
