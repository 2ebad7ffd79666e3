//! Waiting pods of which nobody can say where they could go.

/// A waiting pod that was held against no node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// Namespace and name.
    pub pod: String,
    /// Why.
    pub reason: String,
    /// The command that shows more of that.
    pub command: String,
}
