//! What the book is asked for.

use std::collections::BTreeMap;

use crate::price::Purchase;

/// A GPU that wants a price. What is open asks for the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriceQuery<'a> {
    /// Its model, as a label or any other of its names; none (or an empty one) is a node that
    /// states no model.
    pub model: Option<&'a str>,
    /// Provider by its name in the book, such as `aws`; none where nobody knows.
    pub provider: Option<&'a str>,
    /// Region by its name in the book, such as `us-east-1`.
    pub region: Option<&'a str>,
    /// Type of its machine, such as `p5.48xlarge`.
    pub instance_type: Option<&'a str>,
    /// How it is bought.
    pub purchase: Purchase,
    /// The node's `spec.providerID`, which may be empty.
    pub provider_id: &'a str,
    /// Resources by which pods ask for it on that node, such as `amd.com/gpu`.
    pub resources: &'a [String],
    /// The node's labels, where there is a node.
    pub labels: Option<&'a BTreeMap<String, String>>,
}
