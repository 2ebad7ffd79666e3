//! Sharing GPUs: which MIG instances each GPU should have for the pods that wait.
//!
//! [`plan`] proposes layouts for a fleet: it serves as much pending work as it can, leaves alone
//! what is in use, creates no instance that no pod waits for, and changes as little as possible.
//! [`size`] answers how few GPUs of one model a list of instances needs. Both give an upper or
//! lower bound beside their answer, so that the gap to the best answer is known. [`shared_by`]
//! answers how many pods can share each GPU by time-slicing or MPS.
//!
//! | module | what |
//! |---|---|
//! | `world` | what is planned with: GPUs, demand, rules |
//! | `state` | a GPU with some instances on it, and the room that is left |
//! | `columns` | everything that could become of one GPU |
//! | `problem` | classes of equal GPUs, kinds of demand, the objective as one number |
//! | `simplex`, `relaxation` | the linear program over these classes: prices, a bound, a start |
//! | `serving` | which pods a GPU serves, of those that ask for the same |
//! | `search`, `improve` | whole GPUs: branch and bound, and improvement step by step |
//! | `moves` | one instance in use that goes elsewhere to make room |
//! | `planner`, `sizing` | the two questions |
//! | `counted` | layouts of GPUs of which only the number of instances is known |
//! | `replicas` | how many pods can share a GPU without instances |

mod columns;
mod counted;
mod improve;
mod moves;
mod planner;
mod problem;
mod relaxation;
mod replicas;
mod search;
mod serving;
mod simplex;
mod sizing;
mod state;
mod world;

pub use counted::layouts_of_counts;
pub use moves::{InstanceMove, move_for};
pub use planner::{GpuPlan, PartitionPlan, plan};
pub use replicas::{MeasuredUse, SharedBy, SharingLimit, shared_by};
pub use sizing::{Sizing, SizingError, least_gpus, size};
pub use state::GpuCut;
pub use world::{Change, Demand, Gpu, Instance, PartitionInput, Rules, WorldError};
