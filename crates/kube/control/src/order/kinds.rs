//! Orders about pods other than binds, and claims: what is to be done, in which steps, and how it
//! ended.

use dovetail_cluster::world::{ClaimKey, ClaimWrite, PodKey, SuspendedJob};

use super::eviction::{EvictionCause, EvictionDecision, Leaves, NotEvicted};
use super::step::OrderWrite;
use crate::announce::PodCondition;

/// What is to be done with a pod, or with a claim of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodOrder {
    Evict {
        pod: PodKey,
        why: EvictionCause,
        /// With which others.
        decision: EvictionDecision,
    },
    /// Ask whether it could be evicted; nothing is done to it.
    MayEvict { pod: PodKey, why: EvictionCause },
    /// Remove the mark that it is about to be evicted.
    Unmark { pod: PodKey },
    /// Say which node is freed for it; none any more if `node` is empty.
    Nominate {
        pod: PodKey,
        node: String,
        /// What it says of that in the same write, as far as it has not got a node meanwhile.
        says: Option<Box<PodCondition>>,
    },
    /// Say for which node a claim is to get its volume.
    SelectNode {
        claim: ClaimKey,
        /// Its version: of another version nothing is changed.
        version: Box<str>,
        node: String,
    },
    /// Change a claim of devices.
    WriteClaim(Box<ClaimWrite>),
    /// Let the Job controller create pods again for what dovetail has suspended.
    Resume(Box<SuspendedJob>),
}

impl PodOrder {
    /// Say that no node is freed for a pod.
    pub fn nominate_nowhere(pod: PodKey) -> Self {
        Self::Nominate { pod, node: String::new(), says: None }
    }

    /// The pod that is to name the node which is freed for it.
    pub fn nominated(&self) -> Option<&PodKey> {
        match self {
            Self::Nominate { pod, .. } => Some(pod),
            Self::Evict { .. }
            | Self::MayEvict { .. }
            | Self::Unmark { .. }
            | Self::SelectNode { .. }
            | Self::WriteClaim(_)
            | Self::Resume(_) => None,
        }
    }

    /// Whether its pod leaves because its Job is suspended by the order about another pod.
    pub(super) fn leaves_with_another(&self) -> bool {
        match self {
            Self::Evict { pod, decision, .. } => {
                decision.suspends(pod).is_some_and(|(_, is_first)| !is_first)
            }
            _ => false,
        }
    }

    /// The pod that is to be evicted.
    pub fn evicted(&self) -> Option<&PodKey> {
        match self {
            Self::Evict { pod, .. } => Some(pod),
            Self::MayEvict { .. }
            | Self::Unmark { .. }
            | Self::Nominate { .. }
            | Self::SelectNode { .. }
            | Self::WriteClaim(_)
            | Self::Resume(_) => None,
        }
    }
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderReport {
    pub order: PodOrder,
    pub end: OrderEnd,
}

/// How an order ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderEnd {
    /// It is carried out.
    Done,
    /// The object is gone, or has another version than the order names.
    Gone,
    /// It is an eviction, and those decided with it were called off before it began.
    CalledOff,
    /// The server refuses it, such as for missing rights or by admission, and will again; or it has
    /// again and again (429, 500).
    Refused {
        code: u16,
        /// What the server says.
        message: String,
    },
    /// The server failed to answer again and again.
    Unanswered {
        /// What went wrong.
        problem: String,
    },
}

impl PodOrder {
    /// The writes that carry it out, one after the other.
    pub(super) fn steps(&self) -> Vec<OrderWrite> {
        match self {
            Self::Evict { pod, why, decision } => {
                if let Some((job, is_first)) = decision.suspends(pod) {
                    let mark = OrderWrite::Mark(pod.clone(), *why);
                    let suspend = || OrderWrite::Suspend(pod.clone(), job.clone(), *why);
                    return [mark].into_iter().chain(is_first.then(suspend)).collect();
                }
                let leaves = why.leaves();
                let mut steps = vec![
                    OrderWrite::Mark(pod.clone(), *why),
                    OrderWrite::Leave(pod.clone(), leaves),
                ];
                steps.extend(
                    (leaves == Leaves::Evicted).then(|| OrderWrite::SayWhy(pod.clone(), *why)),
                );
                steps
            }
            Self::MayEvict { pod, why } => {
                vec![
                    OrderWrite::WouldMark(pod.clone(), *why),
                    OrderWrite::WouldLeave(pod.clone(), why.leaves()),
                ]
            }
            Self::Unmark { pod } => vec![OrderWrite::Unmark(pod.clone(), NotEvicted::ForNow)],
            Self::Nominate { pod, node, says } => {
                vec![OrderWrite::Nominate(pod.clone(), node.clone(), says.clone())]
            }
            Self::SelectNode { claim, version, node } => {
                vec![OrderWrite::SelectNode(claim.clone(), version.clone(), node.clone())]
            }
            Self::WriteClaim(write) => vec![OrderWrite::WriteClaim(write.clone())],
            Self::Resume(job) => vec![OrderWrite::Resume(job.clone())],
        }
    }
}
