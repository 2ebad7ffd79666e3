//! Nodes by name, in a sentence.

use dovetail_audit::first_of;

/// Nodes that are named one by one; of more, how many there are.
const MOST_NAMED: usize = 10;

/// The first of these nodes, and how many more there are.
pub(super) fn names_of(nodes: &[String]) -> String {
    first_of(nodes.iter(), MOST_NAMED)
}
