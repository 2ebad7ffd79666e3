//! What is to happen, and requests on their way.

use dovetail_control::request::{ApiRequest, ApiResponse};

use crate::kubelets::{Identity, KubeletWrite, PodTransition};
use crate::lease::{LeaseAnswer, LeaseCall};
use crate::network::NetworkFault;

/// Something that is to happen.
#[derive(Debug)]
pub(crate) enum Event {
    Step(usize),
    StepOver(usize),
    Calm,
    Owners,
    KubeletsLook,
    Kubelet(String, PodTransition),
    KubeletWrites(Identity, KubeletWrite),
    Wake { slot: usize, generation: u64 },
    Deliver { slot: usize, generation: u64, epoch: u64, at: usize },
    Arrives(Box<Flight>),
    Answered { slot: usize, generation: u64, epoch: u64, answer: ApiResponse },
    LeaseArrives { slot: usize, generation: u64, call: LeaseCall, back_ms: u64, is_lost: bool },
    LeaseAnswered { slot: usize, generation: u64, answer: LeaseAnswer },
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) slot: usize,
    pub(crate) generation: u64,
    pub(crate) epoch: u64,
    pub(crate) request: ApiRequest,
    pub(crate) back_ms: u64,
    pub(crate) fault: Option<NetworkFault>,
    pub(crate) over_ms: u64,
    /// When the sender gives it up.
    pub(crate) given_up_ms: u64,
    /// Version of the first list of pods in this leadership.
    pub(crate) pods_listed: u64,
}

impl Event {
    /// Whether it is about more than waiting.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self, Self::Wake { .. } | Self::LeaseArrives { .. } | Self::LeaseAnswered { .. })
    }

    /// The process that has to act, if one has.
    pub(crate) fn acts(&self) -> Option<usize> {
        match self {
            Self::Wake { slot, .. }
            | Self::Deliver { slot, .. }
            | Self::Answered { slot, .. }
            | Self::LeaseAnswered { slot, .. } => Some(*slot),
            _ => None,
        }
    }
}
