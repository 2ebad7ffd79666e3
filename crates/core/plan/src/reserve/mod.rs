//! Reservations for jobs that are next: backfill that does not push the head of the line back.
//!
//! The first pending job of each queue that does not fit gets a reservation: the places where the
//! real placement would put it, and the earliest time at which that succeeds if running jobs end
//! when half of such jobs do (p50). What is free of these places is held for it, and what running
//! jobs leave of them as they do. Jobs behind it start anywhere else, and in its room if nine of
//! ten such jobs end before its time (p90): the room is lent to them.
//!
//! Work that was lent room and outlives its expected end pushes the job back. How much is bounded
//! without any trust in estimates: what running jobs hold of the room that one job lends them is at
//! most B times its own GPUs. So the GPU-time by which they delay it is at most B x its GPUs x the
//! time it has waited, whatever they do ([`ReserveConfig::lent_percent`] is B).
//!
//! A reservation is kept while it is good: until its job starts or leaves, one of its nodes
//! changes, or the end of a running job it counts on is raised. It is moved to an earlier time if a
//! job has ended that was expected to hold on until then. The searches of a cycle share one counted
//! budget.
//!
//! | file | what |
//! |---|---|
//! | `book` | all reservations, and to whom their room is lent |
//! | `awaited` | on whose ends reservations count, and what follows when one is over |
//! | `heads` | which jobs get one, and when it is searched for again |
//! | `known_heads` | which these are known to be, until something changes |
//! | `search` | the earliest time at which a job can start |
//! | `lend`, `bound` | which jobs start in the room of others, and how much room may be lent |
//! | `lent` | whose room is lent to whom |
//! | `share` | how much of the room of a job others are in |
//! | `bookings` | what is reserved from one time to another, and who may use it |
//! | `calendar` | bookings as time goes on: admitted or refused, in force, over |

mod awaited;
mod book;
mod bookings;
mod bound;
mod calendar;
mod heads;
mod known_heads;
mod lend;
mod lent;
mod search;
mod share;

use serde::{Deserialize, Serialize};

pub(crate) use awaited::{awaited_jobs, end_reservation, note_no_longer_awaited};
pub(crate) use book::{Reservations, that_lend};
pub(crate) use bookings::{Bookings, Opened};
pub(crate) use calendar::{Calendar, gang_of};
pub(crate) use lend::{Lenders, lends_to, lent_until_ms};
pub(crate) use lent::LentRooms;

/// Whether and how capacity is reserved for jobs that are next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReserveConfig {
    /// How many jobs have a reservation at a time, at most one of each queue; 0 reserves nothing.
    pub heads: u32,
    /// GPUs that running jobs have in the room that one job has lent them, in percent of its own
    /// GPUs: the bound of what they delay it by.
    pub lent_percent: u32,
    /// Holds and releases that the searches of one cycle may take together. A search that does not
    /// end within them finds nothing; what there was before stays.
    pub max_operations: u64,
}

impl Default for ReserveConfig {
    fn default() -> Self {
        Self { heads: 0, lent_percent: 100, max_operations: 200_000 }
    }
}

impl ReserveConfig {
    /// Whether nothing differs from what an engine does by default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
