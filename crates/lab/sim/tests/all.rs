//! Published and reference results, and what every simulation must keep.

#[path = "all/arena.rs"]
mod arena;
#[path = "all/autoscale.rs"]
mod autoscale;
#[path = "all/bookings.rs"]
mod bookings;
#[path = "all/estimates.rs"]
mod estimates;
#[path = "all/extremes.rs"]
mod extremes;
#[path = "all/fair_queues.rs"]
mod fair_queues;
#[path = "all/fgd_published.rs"]
mod fgd_published;
#[path = "all/order_dovetail.rs"]
mod order_dovetail;
#[path = "all/preempting_heads.rs"]
mod preempting_heads;
#[path = "all/preemption.rs"]
mod preemption;
#[path = "all/queues.rs"]
mod queues;
#[path = "all/reclaim.rs"]
mod reclaim;
#[path = "all/recordings.rs"]
mod recordings;
#[path = "all/reservations.rs"]
mod reservations;
#[path = "all/shared_heads.rs"]
mod shared_heads;
#[path = "all/slices.rs"]
mod slices;
#[path = "all/small_worlds.rs"]
mod small_worlds;
#[path = "all/starts.rs"]
mod starts;
#[path = "all/timed_reference.rs"]
mod timed_reference;
#[path = "all/traces.rs"]
mod traces;
