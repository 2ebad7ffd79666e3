//! What the node pool of an autoscaler says of the removal of its nodes.

/// When Karpenter removes an empty node of a pool (`spec.disruption` of its NodePool).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalRule {
    /// How long a node is empty before it is removed, in ms; `None` if none is, or if nobody knows.
    pub removes_empty_after_ms: Option<u64>,
    /// Disruption budgets that let no empty node be removed.
    pub zero_budgets: Vec<ZeroBudget>,
}

/// A disruption budget of a NodePool that allows no disruption of empty nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZeroBudget {
    /// As it is written.
    pub words: String,
    /// Whether it applies at all times, and not by a schedule.
    pub is_always: bool,
}
