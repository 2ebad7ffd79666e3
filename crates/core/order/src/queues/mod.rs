//! What queues are given, hold and have used.
//!
//! | file | what |
//! |---|---|
//! | `quota` | bounds and holdings of queues: whether a job may start within them |
//! | `usage` | GPU-time that queues have used, decayed |
//! | `model_weights` | what a GPU of a model counts in that |
//! | `kai` | what each queue should have where the whole cluster is divided |
//! | `division` | how KAI Scheduler divides capacity over queues |

pub mod division;
pub mod kai;
pub mod model_weights;
pub mod quota;
pub mod ranked;
pub mod usage;
