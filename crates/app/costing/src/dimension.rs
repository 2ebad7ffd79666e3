//! What a row of a bill is about.

use std::borrow::Cow;

use clap::ValueEnum;
use dovetail_account::cost::Paid;
use dovetail_account::device_time::DeviceState;

/// One part of the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Dimension {
    /// Namespace of the pod
    Namespace,
    /// Team, from the mapping in dovetail.toml or from labels
    Team,
    /// Queue of the pod
    Queue,
    /// Top-level owner of the pod
    Job,
    /// AI model named in the pod's labels
    Model,
    /// The pod
    Pod,
    /// Model of the node's GPUs
    GpuType,
    /// Node pool or node group
    NodePool,
    /// The node
    Node,
    /// The cluster
    Cluster,
    /// State of the GPUs, or why they were free
    Cause,
}

/// Rows of what nobody has.
pub(crate) const NO_OWNER: &str = "(no owner)";
/// Rows of what nobody knows.
pub const UNKNOWN: &str = "(unknown)";
/// The GPU type of nodes without GPUs.
pub(crate) const NO_GPUS: &str = "(no GPUs)";

/// Who has what no pod is named for: nobody, or somebody unknown.
fn without_holder(paid: Paid) -> &'static str {
    match paid {
        Paid::Gpus(DeviceState::Unknown) => UNKNOWN,
        _ => NO_OWNER,
    }
}

/// What charges are told apart by. What is not known is empty.
pub(crate) struct ChargeKeys<'n> {
    pub(crate) cluster: &'n str,
    pub(crate) gpu_type: &'n str,
    pub(crate) pool: &'n str,
    pub(crate) node: &'n str,
    pub(crate) paid: Paid,
    /// `None` where no pod pays.
    pub(crate) pod: Option<PodNames<'n>>,
}

/// The pod that pays.
pub(crate) struct PodNames<'n> {
    pub(crate) namespace: &'n str,
    pub(crate) name: &'n str,
    pub(crate) team: Option<Cow<'n, str>>,
    pub(crate) queue: Option<&'n str>,
    pub(crate) job: &'n str,
    pub(crate) model: Option<&'n str>,
}

impl Dimension {
    /// Name in flags and outputs.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The part of the key of charges with these names.
    pub(crate) fn key(self, names: &ChargeKeys<'_>) -> String {
        let known = |text: &str| if text.is_empty() { UNKNOWN } else { text }.to_owned();
        let of_pod = |text: fn(&PodNames<'_>) -> String| match &names.pod {
            Some(pod) => known(&text(pod)),
            None => without_holder(names.paid).to_owned(),
        };
        match self {
            Self::Namespace => of_pod(|pod| pod.namespace.to_owned()),
            Self::Team => of_pod(|pod| pod.team.as_deref().unwrap_or_default().to_owned()),
            Self::Queue => of_pod(|pod| pod.queue.unwrap_or_default().to_owned()),
            Self::Job => of_pod(|pod| pod.job.to_owned()),
            Self::Model => of_pod(|pod| pod.model.unwrap_or_default().to_owned()),
            Self::Pod => of_pod(|pod| format!("{}/{}", pod.namespace, pod.name)),
            Self::GpuType => known(names.gpu_type),
            Self::NodePool => known(names.pool),
            Self::Node => known(names.node),
            Self::Cluster => known(names.cluster),
            Self::Cause => names.paid.name(),
        }
    }
}
