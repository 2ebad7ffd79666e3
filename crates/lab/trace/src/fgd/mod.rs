//! Inputs of the arrivals-only protocol of the FGD experiments (USENIX ATC 2023).
//!
//! Pods arrive in a seeded order, nodes have a seeded order for ties, and the mix of pods that is
//! typical for the trace weighs fragmentation. The order is computed here, or read from a file.

mod go_random;
mod go_random_table;
mod order;
mod order_file;
mod typical;

pub use go_random::GoRandom;
pub use order::{FgdOrders, fgd_orders};
pub use order_file::{read_arrival_order, read_node_order, trace_name};
pub use typical::{TypicalPod, typical_pods};
