//! What a rule answers.

/// What a rule found.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) violations: Vec<Violation>,
    /// What was looked at, with its count.
    pub(super) looked_at: String,
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) message: String,
    pub(super) mend: String,
}
