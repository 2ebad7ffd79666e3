//! What is said of a check, and in which terms.

use super::reach::Reach;

/// One check.
#[derive(Debug, PartialEq, Eq)]
pub struct Check {
    /// Stable id, for example `SCH-01`.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One line, as a statement about the object.
    pub title: &'static str,
    /// Why that costs, and when it does not.
    pub explanation: &'static str,
    /// What a finding shows.
    pub evidence: &'static str,
    /// What is edited.
    pub fix: FixKind,
    /// The edit, by example.
    pub fix_example: &'static str,
    /// When its claims on wasted time are served.
    pub layer: Layer,
    /// What mending brings at least; whether it is money at once is found for each finding.
    pub worth: Worth,
    /// Whether it rests on what a workload seems to do, on the name of its model, or on GPUs
    /// without their hosts: its findings are likely, those of others are certain.
    pub is_inferred: bool,
    /// Which GPU-time ends once it is mended: what a ledger confirms.
    pub reach: Reach,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs, or will.
    Warning,
    /// Does not work, or costs much.
    Error,
}

/// What is edited to mend a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixKind {
    /// The template of the top owner.
    OwnerTemplate,
    /// The pods themselves, whatever they are made from.
    Pod,
    /// The node pool or group.
    NodePool,
    /// Something that belongs to a namespace, such as a quota.
    Namespace,
    /// A disruption budget.
    Budget,
    /// What changes the number of replicas.
    Autoscaler,
    /// The configuration of the scheduler.
    Scheduler,
    ClusterPolicy,
    /// What measures GPUs.
    Exporter,
}

/// Findings that claim the same wasted time are served in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// What should never be let in.
    Guard,
    /// Less of the same.
    RightSize,
    /// Several on one device.
    Share,
    /// Better placed.
    Schedule,
    /// Off while nobody needs it.
    ScaleToZero,
    /// Cheaper capacity.
    SpotAndRegion,
}

/// What mending brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Worth {
    /// Money: a node can go, or waiting work fits.
    Returned,
    /// GPU-hours: money once somebody uses them.
    Capacity,
    /// Less risk; it has no price, which is not a price of zero.
    Risk,
}
