//! What each pod of a node costs: the node's price split by a named method.
//!
//! A node has one price; nobody sells its CPU, memory and GPUs apart. Every method therefore first
//! cuts the price into a budget for each resource, and that is all they differ in:
//!
//! | method | CPU : memory : GPU |
//! |---|---|
//! | `all-in` | the GPUs carry everything; where there is none, as `opencost` |
//! | `residual` | CPU and memory at their list prices, the rest is the GPUs' |
//! | `aws-split` | 0.9 per vCPU : 0.1 per GiB : 9 per GPU (AWS split cost allocation data, accelerated instances) |
//! | `opencost` | 0.031611 per vCPU : 0.004237 per GiB : 0.95 per GPU (OpenCost's default prices, as weights) |
//! | `datadog` | 3% : 2% : 95% of a node with GPUs, 60% : 40% of one without |
//!
//! Then each pod pays of each budget what it has of the resource: the larger of what it reserved
//! and what it used. What nobody has is *unused*: shown as such, or distributed over the pods in
//! proportion to what they have of the same resource; a resource nobody has stays unused either
//! way. Where pods use more than there is, they share the whole budget and nothing is unused.
//!
//! Everything is a whole number of micro-dollars, cut by largest remainders, so the parts are the
//! price exactly, whatever they are grouped by.

mod budget;
mod headline;
mod method;
mod node;
#[cfg(test)]
mod tests;

pub use budget::split_money;
pub(crate) use budget::{budgets, share_out};
pub use headline::{Headline, headline, is_range};
pub use method::SplitMethod;
pub use node::{ByResource, ListPrices, NodeCost, NodeParts, SplitError, Unused};
