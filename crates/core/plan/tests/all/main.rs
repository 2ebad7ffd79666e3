//! Tests of the engine as its callers see it: plain data in, plans out.
//!
//! Worlds come from [`recipe`]: bytes that decode to nodes, shapes, jobs and events, so that a
//! failing world shrinks to few records with few features. [`drive`] turns a recipe into steps of
//! any number of engines.

mod awaited;
mod by_hand;
mod change_log;
mod conservation;
mod constraints;
mod coverage;
mod default_policy;
mod determinism;
mod differential;
mod drive;
mod expected_starts;
mod explain;
mod fair;
mod forgetting;
mod images;
mod kai_cases;
mod kai_divisions;
mod kai_turns;
mod kept_room;
mod lent_room;
mod many_shapes;
mod model_limits;
mod models_in_use;
mod order_preemption;
mod preemption;
mod preemption_by_hand;
mod preemption_effort;
mod queues;
mod recipe;
mod requeue;
mod sleeping;
mod topology;
mod wide_tree;
