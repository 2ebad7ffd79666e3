//! Bounds that no policy can exceed.
//!
//! A scheduler is judged here by its distance to what is possible at all. Everything in this crate
//! is pure computation on plain inputs; it knows no engine, no policy and no clock, so that it can
//! judge them.
//!
//! # How many arriving pods fit: [`prefix_bounds`]
//!
//! Pods arrive in a given order on an empty cluster and none departs. A bound says: *no* placement,
//! not even one that knows the whole order and may move pods at will, holds more than this many of
//! the first arrivals together. So every policy rejects a pod at the latest right after that
//! prefix.
//!
//! - [`PrefixBounds::device`]: cutting stock over GPU shares. It sees how shares like 460 milli
//!   waste the rest of a device; it ignores nodes, models, CPU and memory.
//! - [`PrefixBounds::lp`]: a linear program over shapes and node classes. It sees CPU, memory, GPU
//!   models, pods that need several GPUs of one node and, coarsely, shares; it divides pods freely
//!   over the nodes of a class.
//! - [`PrefixBounds::limit`]: the smaller of the two.
//! - [`PrefixBounds::combined`], by [`combined_prefix_bounds`] alone: the same linear program with
//!   cutting stock inside each class; tighter where pods name GPU models.
//!
//! What they do not say: that some policy reaches them; anything about the pods after the first
//! rejection (who may reject freely can fill a cluster to 100% when enough small pods wait);
//! anything about clusters in which pods end.
//!
//! **A prefix bound is never too small.** The floating-point solver only proposes prices; the bound
//! follows from the same prices in integers, so that a wrong answer of the solver can make it
//! looser, never wrong (then [`PrefixBound::tight`] is false).
//!
//! # How early jobs can end: [`makespan_bounds`], [`completion_bounds`]
//!
//! For jobs with known submission, duration and GPUs on one pool of equal GPUs: no schedule,
//! preemptive or not, with free preemption and full knowledge of the future, ends earlier or has a
//! smaller sum of completion times. All in integers. They ignore node boundaries, models and start
//! costs, and each bound is approached by a different schedule: meeting one says nothing about the
//! others.

mod certificate;
mod completion;
mod device;
mod fluid;
mod input;
mod knapsack;
mod limit;
mod makespan;
mod prefix;
mod world;

pub use completion::{CompletionBounds, completion_bounds};
pub use input::{BoundError, BoundNode, BoundPod, DEVICE_MILLI};
pub use knapsack::greatest_common_divisor;
pub use makespan::{BoundJob, CAPACITY_LIMIT, MakespanBounds, makespan_bounds};
pub use prefix::{PrefixBound, PrefixBounds, combined_prefix_bounds, prefix_bounds};
