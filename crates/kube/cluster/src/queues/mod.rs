//! Queues as people write and read them.
//!
//! | module | what |
//! |---|---|
//! | `definition` | the CustomResourceDefinition |
//! | `tree` | what is wrong with the tree of queues, and each queue in the words of the engine |
//! | `admission` | in which queue a pod is, and whether that queue takes it |
//! | `amounts` | amounts by resource, in the engine's units and in people's |
//! | `status` | what a queue says of itself |

mod admission;
pub mod amounts;
mod definition;
mod status;
mod tree;

pub use admission::{QUEUE_LABEL, admit, queue_of};
pub use definition::definition;
pub use status::{KnownUsage, borrowed, patch, reported_use, status, usage};
pub use tree::{QueueProblem, problems, queue};

/// The queue of pods that name none. It need not exist as an object.
pub const DEFAULT_QUEUE: &str = "default";

/// A queue's name in the engine, where that of the default queue is empty.
pub fn engine_name(name: &str) -> String {
    if name == DEFAULT_QUEUE { String::new() } else { name.to_owned() }
}

/// A queue's name as people know it.
pub fn shown_name(engine_name: &str) -> &str {
    if engine_name.is_empty() { DEFAULT_QUEUE } else { engine_name }
}
