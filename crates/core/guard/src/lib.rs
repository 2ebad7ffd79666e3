//! Whether the latency of a workload became worse between two windows of the same hours.
//!
//! [`judge`] compares the p50, p95 and p99 of a histogram before and after a change. Buckets are
//! coarse: a quantile that grows by 10% usually stays in its bucket, and only the shares of
//! requests below the bounds of the bucket move. So quantiles are interpolated where a
//! log-normal distribution is a straight line, and a quantile is judged only where both bounds
//! of its bucket were measured.
//!
//! | module | what |
//! |---|---|
//! | `window` | requests by latency, block of time by block of time |
//! | `shares` | the shares of requests below each bound, over the blocks that both windows have |
//! | `quantile` | a quantile out of these shares, and how it follows them |
//! | `change` | how much a quantile changed, and how sure that is |
//! | `verdict` | the three quantiles together, and when nothing can be said |
//! | `normal` | quantiles of the normal and of Student's distribution |

mod change;
mod normal;
mod quantile;
mod shares;
mod verdict;
mod window;

pub use change::QuantileChange;
pub use verdict::{
    Judgement, LatencyVerdict, Load, MOST_LOAD_CHANGE, QUANTILES, QuantileVerdict, Unknown,
    WORSE_BY, judge,
};
pub use window::{TimeBlock, Window, WindowError};
