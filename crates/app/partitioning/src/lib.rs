//! Answers of `dovetail partition`: layouts of GPUs planned from what waits, and how few GPUs a
//! list of instances needs.
//!
//! | module | what |
//! |---|---|
//! | `fleet` | GPUs with names, as a file or a cluster has them |
//! | `world_file` | a world in one file |
//! | `objects`, `cluster`, `eligible` | the nodes and pods of a cluster, as a world |
//! | `policy` | what a `SharingPolicy` allows |
//! | `plan`, `size` | the two answers as documents, and as text |

pub mod cluster;
mod eligible;
pub mod fleet;
mod layout;
mod objects;
pub mod plan;
pub mod policy;
pub mod size;
pub mod world_file;
