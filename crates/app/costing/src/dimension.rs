//! What a row of a bill is about.

use clap::ValueEnum;
use dovetail_account::cost::{Charge, Paid};
use dovetail_account::device_time::DeviceState;

use super::account::Account;

/// One part of the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Dimension {
    /// Namespace of the pod
    Namespace,
    /// Team, by the mapping of dovetail.toml or labels
    Team,
    /// Queue that the pod names
    Queue,
    /// Top owner of the pod
    Job,
    /// Model that the pod names
    Model,
    /// The pod
    Pod,
    /// Model of the node's GPUs
    GpuType,
    /// Pool or group of the node
    NodePool,
    /// The node
    Node,
    /// The cluster
    Cluster,
    /// State of the GPUs, or why they were free
    Cause,
}

/// Rows of what nobody has.
pub(crate) const NOBODY: &str = "(nobody)";
/// Rows of what nobody knows.
pub const UNKNOWN: &str = "(unknown)";
/// The GPU type of nodes without GPUs.
const NO_GPUS: &str = "(no GPUs)";

/// Who has what no pod is named for: nobody, or somebody unknown.
pub(crate) fn without_holder(paid: Paid) -> &'static str {
    match paid {
        Paid::Gpus(DeviceState::Unknown) => UNKNOWN,
        _ => NOBODY,
    }
}

impl Dimension {
    /// Name in flags and outputs.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The part of a charge's key.
    pub fn key(self, account: &Account, node: usize, charge: &Charge) -> String {
        let node = &account.nodes[node];
        let known = |text: &str| if text.is_empty() { UNKNOWN } else { text }.to_owned();
        let pod = charge.holder.map(|number| &account.pods[number as usize]);
        let of_pod = |text: fn(&super::account::CostPod) -> String| {
            pod.map_or_else(|| without_holder(charge.paid).to_owned(), |pod| known(&text(pod)))
        };
        match self {
            Self::Namespace => of_pod(|pod| pod.namespace.clone()),
            Self::Team => of_pod(|pod| pod.team.clone().unwrap_or_default()),
            Self::Queue => of_pod(|pod| pod.queue.clone().unwrap_or_default()),
            Self::Job => of_pod(|pod| pod.job.clone()),
            Self::Model => of_pod(|pod| pod.model.clone().unwrap_or_default()),
            Self::Pod => of_pod(|pod| format!("{}/{}", pod.namespace, pod.name)),
            Self::GpuType if node.gpus == 0 => NO_GPUS.to_owned(),
            Self::GpuType => known(&node.gpu_type),
            Self::NodePool => known(&node.pool),
            Self::Node => known(&node.name),
            Self::Cluster => known(&account.cluster),
            Self::Cause => charge.paid.name(),
        }
    }
}
