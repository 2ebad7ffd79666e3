//! Attempts of one run put together: what it cost, and how much of that went into attempts that
//! failed.
//!
//! [`runs`] takes pods with their owners, labels, times and costs, and gives each to exactly one
//! [`Run`], so that runs add up to what the pods cost. The first of these that applies says which
//! run a pod is of:
//!
//! | join | pods are of one run if |
//! |---|---|
//! | [`Join::Label`] | they, or other pods of their owner, carry the same `dovetail.dev/run` in one namespace |
//! | [`Join::Owner`] | one owner made them: its retries are attempts |
//! | [`Join::Experiment`] | their owners' pods carry the same experiment label in one namespace |
//! | [`Join::Name`] | inferred: their owners differ in a generated suffix at most, and one began after the last end and within 24 hours of it |
//!
//! | module | what |
//! |---|---|
//! | `pod`, `run` | what goes in, and what comes out |
//! | `instance` | pods of one owner |
//! | `attempt` | the times in which an owner's pods ran together |
//! | `join` | owners of one run |
//! | `stem` | names without what was generated |

mod attempt;
mod instance;
mod join;
mod pod;
mod run;
mod stem;
#[cfg(test)]
mod tests;

pub use join::{MOST_APART_MS, runs};
pub use pod::{PodEnd, RunOwner, RunPod};
pub use run::{AttemptEnd, Join, Run, RunAmount, RunAttempt};
pub use stem::stem;
