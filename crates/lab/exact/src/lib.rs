//! Bounds and exact optima that no policy can exceed.

mod certificate;
mod device;
mod fluid;
mod input;
mod knapsack;
mod prefix;
mod world;

pub use input::{BoundError, BoundNode, BoundPod, DEVICE_MILLI};
pub use prefix::{PrefixBound, PrefixBounds, fewest_gpus, prefix_bounds};
