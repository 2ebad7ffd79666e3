//! How busy devices were on average, and when they were hardly busy for long.
//!
//! Active time says whether a device worked, this how much of it: the mean of the best signal there
//! is ([`crate::signal`]). Where nobody measured nobody knows, so a mean has bounds: with all that
//! is unknown as nothing, and as all.
//!
//! | module | what |
//! |---|---|
//! | `mean` | means over devices and time, with bounds |
//! | `low` | windows in which the mean is below a threshold |

mod low;
mod mean;

pub use low::{LowRule, LowTime, low_time};
pub use mean::{BusyLevel, Utilisation, mean_of};
