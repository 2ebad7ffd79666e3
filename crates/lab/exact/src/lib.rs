//! Bounds and exact optima that no policy can exceed.

mod allocation;
mod certificate;
mod completion;
mod device;
mod fluid;
mod input;
mod knapsack;
mod makespan;
mod prefix;
mod world;

pub use allocation::{Exact, Placement, max_allocation};
pub use completion::{CompletionBounds, completion_bounds};
pub use input::{BoundError, BoundNode, BoundPod, DEVICE_MILLI};
pub use makespan::{BoundJob, MakespanBounds, makespan_bounds};
pub use prefix::{PrefixBound, PrefixBounds, fewest_gpus, prefix_bounds};
