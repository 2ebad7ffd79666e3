//! What entries are told apart by.

use std::str::FromStr;

use dovetail_store::{Detail, Party, SumRow};

/// One part of the name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Cluster,
    Node,
    Namespace,
    /// Kind and name of the pod's top owner.
    Controller,
    /// Its kind alone.
    ControllerKind,
    /// The top owner's name where it is of this kind (in small letters).
    OfKind(&'static str),
    Pod,
    /// A label that may name a team, of the pod or else of its namespace.
    Label(String),
    /// The team, as the settings map it. Not OpenCost's.
    Team,
    /// The queue. Not OpenCost's.
    Queue,
    /// The model that is served or trained. Not OpenCost's.
    Model,
    /// Model of the node's GPUs. Not OpenCost's.
    GpuType,
    /// Pool of the node. Not OpenCost's.
    NodePool,
    /// What the GPUs were. Not OpenCost's.
    Cause,
}

/// The name of what has no value of an aggregate.
pub(super) const UNALLOCATED: &str = "__unallocated__";

/// Owners that OpenCost has by name.
const KINDS: [&str; 4] = ["deployment", "statefulset", "daemonset", "job"];

impl FromStr for Aggregate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(key) = text.strip_prefix("label:").filter(|key| !key.is_empty()) {
            return Ok(Self::Label(key.to_owned()));
        }
        let lower = text.to_ascii_lowercase();
        if let Some(kind) = KINDS.into_iter().find(|kind| *kind == lower) {
            return Ok(Self::OfKind(kind));
        }
        Ok(match lower.as_str() {
            "cluster" => Self::Cluster,
            "node" => Self::Node,
            "namespace" => Self::Namespace,
            "controller" => Self::Controller,
            "controllerkind" => Self::ControllerKind,
            "pod" => Self::Pod,
            "team" => Self::Team,
            "queue" => Self::Queue,
            "model" => Self::Model,
            "gpu-type" => Self::GpuType,
            "node-pool" => Self::NodePool,
            "cause" => Self::Cause,
            _ => {
                return Err(format!(
                    "aggregate: unsupported key `{text}`: use cluster, node, namespace, controller, controllerKind, \
                     {}, pod, label:KEY, team, queue, model, gpu-type, node-pool or cause",
                    KINDS.join(", ")
                ));
            }
        })
    }
}

impl Aggregate {
    /// What a ledger must tell apart for these.
    pub(super) fn detail(all: &[Self]) -> Detail {
        let any = |is: fn(&Self) -> bool| all.iter().any(is);
        Detail {
            workload: any(|one| {
                matches!(
                    one,
                    Self::Controller
                        | Self::ControllerKind
                        | Self::OfKind(_)
                        | Self::Queue
                        | Self::Model
                )
            }),
            group: any(|one| matches!(one, Self::GpuType | Self::NodePool)),
            pod: any(|one| *one == Self::Pod),
            node: any(|one| *one == Self::Node),
        }
    }

    /// The part of the name of a row that somebody pays.
    pub(super) fn part(
        &self,
        row: &SumRow,
        party: &Party,
        team: &dyn Fn(&Party) -> Option<String>,
    ) -> String {
        let workload = row.workload.as_deref();
        let owner = workload.map(|workload| TopOwner::of(&workload.job));
        let found = match self {
            Self::Cluster => Some(row.cluster.to_string()),
            Self::Node => row.node.as_deref().map(str::to_owned),
            Self::Namespace => Some(party.namespace.clone()),
            Self::Pod => row.pod.as_deref().map(str::to_owned),
            Self::Controller => owner.map(|owner| owner.words()),
            Self::ControllerKind => owner.map(|owner| owner.kind),
            Self::OfKind(kind) => {
                owner.filter(|owner| owner.kind == *kind).map(|owner| owner.name.to_owned())
            }
            Self::Label(key) => {
                let labels = party.labels.get(key).filter(|value| !value.is_empty());
                labels.or_else(|| party.namespace_labels.get(key)).cloned()
            }
            Self::Team => team(party),
            Self::Queue => workload.and_then(|workload| workload.queue.clone()),
            Self::Model => workload.and_then(|workload| workload.model.clone()),
            Self::GpuType => row.group.as_deref().map(|group| group.gpu_type.clone()),
            Self::NodePool => row.group.as_deref().map(|group| group.pool.clone()),
            Self::Cause => Some(row.paid.name()),
        };
        found.filter(|text| !text.is_empty()).unwrap_or_else(|| UNALLOCATED.to_owned())
    }
}

/// The top owner of a pod.
pub(super) struct TopOwner<'j> {
    /// In small letters; empty where only the pods' names tell it.
    pub(super) kind: String,
    pub(super) name: &'j str,
}

impl<'j> TopOwner<'j> {
    /// Of a job as a ledger has it: `Deployment prod/serve`, or `prod/serve` where the kind is
    /// unknown.
    pub(super) fn of(job: &'j str) -> Self {
        let (kind, rest) = job.split_once(' ').unwrap_or(("", job));
        let name = rest.rsplit_once('/').map_or(rest, |(_, name)| name);
        Self { kind: kind.to_lowercase(), name }
    }

    /// As OpenCost names a controller.
    fn words(&self) -> String {
        match self.kind.as_str() {
            "" => self.name.to_owned(),
            kind => format!("{kind}:{}", self.name),
        }
    }
}
