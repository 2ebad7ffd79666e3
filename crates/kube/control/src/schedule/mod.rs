//! Live decisions: changes and outcomes in; binds, orders and news out.
//!
//! [`Scheduler`] is the loop without its wires and can be driven by a test.

mod comparison;
mod in_the_way;
mod looks;
mod lost;
mod news;
mod no_room;
mod outbox;
mod pauses;
mod preempt;
mod provisioning;
mod record;
mod rightless;
mod scheduler;
mod spared;
mod stops;
mod tries;
mod waits;

pub use comparison::{Compared, Comparison};
pub use looks::Looks;
pub use news::{News, PodName, Preempts, StopRefused, Stopped};
pub use record::{Record, Recording};
pub use scheduler::{Counts, Scheduler};
