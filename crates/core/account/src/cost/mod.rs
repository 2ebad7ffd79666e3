//! What a node cost over a period, as charges: each has one payer and one cause, and together they
//! are the price to the micro-dollar, however they are grouped.
//!
//! [`charges`] takes one [`NodeBill`]: the price, what the node offered, how long its GPUs were in
//! which state for whom, and how much CPU and memory was kept for whom. The price is cut into
//! budgets by a method of [`crate::split`]; the GPU budget is shared out by device-time, the others
//! by what was kept × time.
//!
//! | cause of a charge | paid for |
//! |---|---|
//! | the name of a state ([`crate::device_time::DeviceState`]) | GPUs while they were that |
//! | `cpu_memory_held` | CPU and memory kept for a pod |
//! | `cpu_memory_unused` | CPU and memory that no pod requested |
//! | `unused_distributed` | a pod's share of what nobody had, where that is distributed |
//!
//! GPUs that nobody had are waste or not as their cause says; CPU and memory that nobody had are a
//! second line of waste, in money alone.

mod bill;
mod sum;
#[cfg(test)]
mod tests;

pub use bill::{Charge, HeldTime, NodeBill, Paid, charges};
pub use sum::{CostSum, add_up};
