//! Why a GPU is free: the causes and what each means.
//!
//! The unit of judgement is a *piece*: the free part of the devices of one node that are in the same state.
//! Four things are looked at, in this order:
//!
//! 1. A lost device, and whatever is free on a node that is not ready, is *unavailable*, never free. A lost
//!    device is unavailable as a whole, also while a pod still holds it: it computes for nobody.
//! 2. What is free on a cordoned or draining node is [`FreeCause::DrainingOrCordoned`], on a node that is
//!    coming up [`FreeCause::Starting`]. What a reservation keeps is [`FreeCause::Reserved`].
//! 3. Whatever waits is held against each piece of the ready nodes. The cause of a shape at a piece is the
//!    first thing, in the order of [`FreeCause::ALL`], that keeps it from using the piece:
//!
//! | cause | the shape |
//! |---|---|
//! | taint | does not tolerate the node's taints, or its labels, names, volumes or features exclude the node |
//! | type mismatch | may not use the model of the piece, or needs more device memory |
//! | topology | has a rule against the node (spread, affinity, a host port or a disk in use); must share a level that the node is in no domain of; or fits here while its gang would fit as a whole only if it did not have to share a domain |
//! | stranded by CPU, by memory, by another limit | finds too little of it; another limit is ephemeral storage, pod slots, an extended resource, attached volumes, or a node that holds more than it has |
//! | fragmented | finds too little free on the node's devices, or in pieces too small, or this piece is too small |
//! | gang short | fits, but its gang does not fit as a whole at this moment |
//! | quota | fits, gang included, but a queue is at its limit, or a quota of the cluster (ResourceQuota, Kueue) keeps it back |
//! | reserved | fits and is within quota: it waits behind others in the order, so the piece is kept for the head of the line |
//!
//! 4. Waiting demand is finite. A piece gets a cause only for as many milli-GPU as wait for that cause;
//!    each waiting milli-GPU explains one free one. The demand that is nearest to starting explains first:
//!    by cause from reserved up to taint, within a cause by place in the queue, then nodes by rank. Pods of
//!    one shape that wait for the same reason stand at the place of the first of them. What no demand is
//!    left for is [`FreeCause::NoDemand`].
//!
//! So where eight GPUs wait and a thousand are free, at most eight are explained by demand, and they are
//! those on which least stands in the way. Seen from one piece, the demand is eliminated cause by cause
//! until none is left, and the cause that removed the last of it is named.
//!
//! Demand that was turned away for good (the arrival-only protocol, where a rejected pod does not wait) can
//! be added by the caller; where it would fit at a later moment it explains nothing.

use dovetail_plan::Cause;
use serde::{Deserialize, Serialize};

/// Why something is free; the module says what each means. The first that applies is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FreeCause {
    /// The node is cordoned or draining.
    DrainingOrCordoned = 0,
    /// The node is coming up.
    Starting,
    /// A reservation keeps it, or the order keeps it for the head of the line.
    Reserved,
    /// Taints, labels or names keep away what waits.
    Taint,
    /// What waits may not use this model.
    TypeMismatch,
    /// Spread, affinity or a required level keeps away what waits.
    Topology,
    /// Too little CPU is left beside it.
    StrandedByCpu,
    /// Too little memory is left beside it.
    StrandedByMemory,
    /// Too little of something else is left beside it.
    StrandedByOther,
    /// The free pieces are too small or too few.
    Fragmented,
    /// A pod would fit, its whole gang does not.
    GangShort,
    /// A queue or a quota is at its limit.
    Quota,
    /// Nothing waits for it.
    NoDemand,
}

/// Number of causes.
pub(crate) const CAUSES: usize = 13;

impl FreeCause {
    /// All causes in the order in which they are looked at.
    pub const ALL: [Self; CAUSES] = [
        Self::DrainingOrCordoned,
        Self::Starting,
        Self::Reserved,
        Self::Taint,
        Self::TypeMismatch,
        Self::Topology,
        Self::StrandedByCpu,
        Self::StrandedByMemory,
        Self::StrandedByOther,
        Self::Fragmented,
        Self::GangShort,
        Self::Quota,
        Self::NoDemand,
    ];

    /// The causes that rest on waiting demand, the one nearest to starting first.
    pub(crate) const OF_DEMAND: [Self; 10] = [
        Self::Reserved,
        Self::Quota,
        Self::GangShort,
        Self::Fragmented,
        Self::StrandedByOther,
        Self::StrandedByMemory,
        Self::StrandedByCpu,
        Self::Topology,
        Self::TypeMismatch,
        Self::Taint,
    ];

    /// Name as in every output, for example `stranded_by_cpu`.
    pub fn name(self) -> &'static str {
        match self {
            Self::DrainingOrCordoned => "draining_or_cordoned",
            Self::Starting => "starting",
            Self::Reserved => "reserved",
            Self::Taint => "taint",
            Self::TypeMismatch => "type_mismatch",
            Self::Topology => "topology",
            Self::StrandedByCpu => "stranded_by_cpu",
            Self::StrandedByMemory => "stranded_by_memory",
            Self::StrandedByOther => "stranded_by_other",
            Self::Fragmented => "fragmented",
            Self::GangShort => "gang_short",
            Self::Quota => "quota",
            Self::NoDemand => "no_demand",
        }
    }

    /// Whether free time of this cause is waste. Time without demand is, above the configured headroom.
    pub fn is_waste(self) -> bool {
        !matches!(self, Self::Reserved | Self::Starting)
    }

    /// Whether work waits that would use the time, were this out of its way.
    pub fn is_of_demand(self) -> bool {
        Self::OF_DEMAND.contains(&self)
    }

    /// The cause behind an obstacle of placement; `None` if nothing is in the way.
    pub(crate) fn of_obstacle(obstacle: Cause) -> Option<Self> {
        Some(match obstacle {
            Cause::None => return None,
            // A ready node gives none of these three.
            Cause::NotReady | Cause::Cordoned => Self::DrainingOrCordoned,
            Cause::Starting => Self::Starting,
            Cause::Unschedulable
            | Cause::Taint
            | Cause::VolumeDriver
            | Cause::VolumeNodeAffinity
            | Cause::StorageTopology
            | Cause::StorageCapacity
            | Cause::VolumeZone
            | Cause::DeclaredFeatures => Self::Taint,
            // Labels tell kinds of nodes apart, and most of those that pods ask for name a model.
            Cause::Model | Cause::NodeAffinity | Cause::NodeName => Self::TypeMismatch,
            Cause::HostPort
            | Cause::DiskConflict
            | Cause::ReadWriteOncePod
            | Cause::SpreadLabel
            | Cause::Spread
            | Cause::Affinity
            | Cause::AntiAffinity
            | Cause::ExistingAntiAffinity => Self::Topology,
            Cause::Cpu => Self::StrandedByCpu,
            Cause::Memory => Self::StrandedByMemory,
            Cause::Overcommitted
            | Cause::Ephemeral
            | Cause::PodSlots
            | Cause::Extended
            | Cause::VolumeLimit => Self::StrandedByOther,
            Cause::Device => Self::Fragmented,
        })
    }
}
