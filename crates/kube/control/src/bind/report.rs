//! A bind and what became of it.

use std::sync::Arc;

use super::Bind;
use super::answer::BindOutcome;

/// What became of one decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindReport {
    pub bind: Arc<Bind>,
    pub outcome: BindOutcome,
    /// From sending to the answer; `None` if nothing was sent or nothing came.
    pub answered_in_ms: Option<u64>,
}
