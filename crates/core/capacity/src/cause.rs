//! Why a GPU is free: the causes and what each means.
//!
//! The unit of judgement is a *piece*: the free part of the devices of one node that are in the
//! same state. Four things are looked at, in this order:
//!
//! 1. A lost device, and whatever is free on a node that is not ready, is *unavailable*, never
//!    free. A lost device is unavailable as a whole, also while a pod still holds it: it computes
//!    for nobody.
//! 2. What is free on a cordoned or draining node is [`FreeCause::DrainingOrCordoned`], on a node
//!    that is coming up [`FreeCause::Starting`]. What a reservation keeps is
//!    [`FreeCause::Reserved`].
//! 3. Whatever waits is held against each piece of the ready nodes. The cause of a shape at a piece
//!    is the first thing, in the order of [`FreeCause::ALL`], that keeps it from using the piece:
//!
//! | cause | the shape |
//! |---|---|
//! | taint | does not tolerate the node's taints, or its volumes or features exclude the node, and nothing but this and the type keeps it from using the piece: a toleration alone would not make room for it |
//! | type mismatch | may not use the model of the piece or the node by its name or labels, or needs more device memory, and nothing else keeps it from using the piece: another model alone would not make room for it |
//! | topology | has a rule against the node (spread, affinity, a host port or a disk in use); must share a level that the node is in no domain of; or fits here while its gang would fit as a whole only if it did not have to share a domain |
//! | stranded by CPU, by memory, by another limit | finds enough devices on the node and too little of it; another limit is ephemeral storage, pod slots, an extended resource, attached volumes, or a node that holds more than it has |
//! | fragmented | finds too little free on the node's devices, or in pieces too small, or this piece is too small |
//! | gang short | fits, but its gang does not fit as a whole at this moment |
//! | quota | fits, gang included, but a queue is at its limit, or a quota of the cluster (ResourceQuota, Kueue) keeps it back |
//! | reserved | fits and is within quota: it waits behind others in the order, so the piece is kept for the head of the line |
//!
//! 4. Waiting demand is finite. A piece gets a cause only for as many milli-GPU as wait for that
//!    cause; each waiting milli-GPU explains one free one. The demand that is nearest to starting
//!    explains first: by cause from reserved up to taint, within a cause by place in the queue,
//!    then nodes by rank. Pods of one shape that wait for the same reason stand at the place of the
//!    first of them. What no demand is left for is [`FreeCause::NoDemand`].
//!
//! So where eight GPUs wait and a thousand are free, at most eight are explained by demand, and
//! they are those on which least stands in the way. Seen from one piece, the demand is eliminated
//! cause by cause until none is left, and the cause that removed the last of it is named.
//!
//! Demand that was turned away for good (the arrival-only protocol, where a rejected pod does not
//! wait) can be added by the caller; where it would fit at a later moment it explains nothing.

use dovetail_model::FreeCause;
use dovetail_plan::Cause;

pub(crate) const CAUSES: usize = FreeCause::ALL.len();

/// The cause behind an obstacle of placement; `None` if nothing is in the way.
pub(crate) fn of_obstacle(obstacle: Cause) -> Option<FreeCause> {
    Some(match obstacle {
        Cause::None => return None,
        // A ready node gives none of these three.
        Cause::NotReady | Cause::Cordoned => FreeCause::DrainingOrCordoned,
        Cause::Starting => FreeCause::Starting,
        Cause::Unschedulable
        | Cause::Taint
        | Cause::VolumeDriver
        | Cause::VolumeNodeAffinity
        | Cause::StorageTopology
        | Cause::StorageCapacity
        | Cause::VolumeZone
        | Cause::DeviceClaims
        | Cause::DeclaredFeatures => FreeCause::Taint,
        // Labels tell kinds of nodes apart, and most of those that pods ask for name a model.
        Cause::Model | Cause::NodeAffinity | Cause::NodeName => FreeCause::TypeMismatch,
        Cause::HostPort
        | Cause::DiskConflict
        | Cause::ReadWriteOncePod
        | Cause::SpreadLabel
        | Cause::Spread
        | Cause::Affinity
        | Cause::AntiAffinity
        | Cause::ExistingAntiAffinity
        | Cause::SharedGpus => FreeCause::Topology,
        Cause::Cpu => FreeCause::StrandedByCpu,
        Cause::Memory => FreeCause::StrandedByMemory,
        Cause::Overcommitted
        | Cause::Ephemeral
        | Cause::PodSlots
        | Cause::Extended
        | Cause::VolumeLimit => FreeCause::StrandedByOther,
        Cause::Device => FreeCause::Fragmented,
    })
}
