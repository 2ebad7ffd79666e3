//! Live decisions: changes and outcomes in; binds, orders and news out.
//!
//! [`Scheduler`] is the loop without its wires and can be driven by a test.

mod anew;
mod comparison;
mod decisions;
mod drift;
mod in_the_way;
mod known;
mod looks;
mod news;
mod no_room;
mod outbox;
mod pauses;
mod preempting;
mod provisioning;
mod questions;
mod record;
mod refusals;
mod refused;
mod scheduler;
mod stops;
mod waits;

pub use comparison::{Compared, Comparison};
pub use looks::Looks;
pub use news::{News, Preempts, StopRefused, Stopped, shown};
pub use questions::Questions;
pub use record::{Record, Recording};
pub use scheduler::{Counts, Modes, Scheduler};
