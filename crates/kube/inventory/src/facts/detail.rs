//! What the audit reads of objects beyond what a scheduler needs. Kept only while an object is
//! read; of an environment variable nothing is kept but whether it shows GPUs, of arguments nothing
//! but how large a model they name.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use dovetail_objects::json::{JsonQuantity, JsonText, nullable};

/// A moment in ms since 1970; absent, or not a time, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimeMs(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for TimeMs {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = Option::<JsonText<'de>>::deserialize(input)?.unwrap_or_default();
        let time = text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        Ok(Self(time.and_then(|ms| u64::try_from(ms).ok())))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PodDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) metadata: MetaDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) spec: PodSpecDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) status: PodStatusDetail<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MetaDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) annotations: BTreeMap<JsonText<'a>, Option<JsonText<'a>>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) owner_references: Vec<OwnerReference<'a>>,
    pub(super) creation_timestamp: TimeMs,
    /// When a deleted object should be gone: its grace period is part of it.
    pub(super) deletion_timestamp: TimeMs,
}

impl MetaDetail<'_> {
    /// The owner that controls the object.
    pub(super) fn controller(&self) -> Option<&OwnerReference<'_>> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// The value of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)?.as_deref()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OwnerReference<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) kind: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) uid: JsonText<'a>,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpecDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) priority_class_name: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) containers: Vec<ContainerDetail<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) init_containers: Vec<ContainerDetail<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) volumes: Vec<VolumeDetail<'a>>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_claims: Vec<PodClaimDetail>,
    pub(super) termination_grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) image: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) resources: ResourcesDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) env: Vec<EnvDetail<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) command: Vec<Option<JsonText<'a>>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) args: Vec<Option<JsonText<'a>>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) volume_mounts: Vec<MountDetail<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) restart_policy: JsonText<'a>,
    #[serde(deserialize_with = "nullable")]
    pub(super) security_context: SecurityDetail,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourcesDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) requests: AmountsDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) limits: AmountsDetail<'a>,
}

/// Amounts by the names of resources.
pub(super) type AmountsDetail<'a> = BTreeMap<JsonText<'a>, JsonQuantity>;

/// A variable by name; its value is only compared, never kept.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct EnvDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) value: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MountDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) mount_path: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SecurityDetail {
    pub(super) privileged: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct VolumeDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: JsonText<'a>,
    #[serde(borrow)]
    pub(super) host_path: Option<HostPathDetail<'a>>,
    #[serde(borrow)]
    pub(super) empty_dir: Option<EmptyDirDetail<'a>>,
    pub(super) persistent_volume_claim: Option<IgnoredAny>,
    pub(super) nfs: Option<IgnoredAny>,
}

/// A resource claim that a pod refers to, or its template; in the status the claim that was made
/// from that.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodClaimDetail {
    #[serde(deserialize_with = "nullable")]
    pub(super) name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_claim_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_claim_template_name: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct HostPathDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) path: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct EmptyDirDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) medium: JsonText<'a>,
    pub(super) size_limit: Option<JsonQuantity>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStatusDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) conditions: Vec<ConditionDetail<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) container_statuses: Vec<ContainerStatusDetail<'a>>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) init_container_statuses: Vec<ContainerStatusDetail<'a>>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_claim_statuses: Vec<PodClaimDetail>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ConditionDetail<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "nullable")]
    pub(super) kind: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) status: JsonText<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) reason: JsonText<'a>,
    pub(super) last_transition_time: TimeMs,
    pub(super) last_heartbeat_time: TimeMs,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatusDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) name: JsonText<'a>,
    #[serde(deserialize_with = "nullable")]
    pub(super) restart_count: u32,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) state: StateDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) last_state: StateDetail<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StateDetail<'a> {
    #[serde(borrow)]
    pub(super) terminated: Option<TerminatedDetail<'a>>,
    #[serde(borrow)]
    pub(super) waiting: Option<WaitingDetail<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TerminatedDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) reason: JsonText<'a>,
    pub(super) finished_at: TimeMs,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WaitingDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) reason: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) metadata: MetaDetail<'a>,
    #[serde(deserialize_with = "nullable")]
    pub(super) spec: NodeSpecDetail,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) status: NodeStatusDetail<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NodeSpecDetail {
    #[serde(rename = "providerID", deserialize_with = "nullable")]
    pub(super) provider_id: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) taints: Vec<TaintDetail>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TaintDetail {
    #[serde(deserialize_with = "nullable")]
    pub(super) key: String,
    pub(super) time_added: TimeMs,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatusDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) conditions: Vec<ConditionDetail<'a>>,
}

/// An owner of pods, or of owners of pods.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OwnerDetail<'a> {
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) metadata: MetaDetail<'a>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) spec: OwnerSpecDetail<'a>,
    /// `None` if it has none, or if nobody kept it.
    #[serde(borrow)]
    pub(super) status: Option<OwnerStatusDetail<'a>>,
}

impl OwnerDetail<'_> {
    /// Pods of a Job that are to succeed yet; without a number of completions none starts once one
    /// has.
    pub(super) fn left_to_complete(&self) -> u64 {
        let succeeded = self.status.as_ref().and_then(|status| status.succeeded).unwrap_or(0);
        match self.spec.completions {
            Some(all) => all.saturating_sub(succeeded),
            None if succeeded > 0 => 0,
            None => u64::MAX,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OwnerSpecDetail<'a> {
    pub(super) replicas: Option<serde_json::Value>,
    pub(super) parallelism: Option<serde_json::Value>,
    #[serde(deserialize_with = "count")]
    completions: Option<u64>,
    suspend: Option<serde_json::Value>,
    run_policy: Option<serde_json::Value>,
    #[serde(borrow)]
    pub(super) template: Option<&'a serde_json::value::RawValue>,
}

impl OwnerSpecDetail<'_> {
    /// Whether it is suspended, itself or by the policy of a training operator.
    pub(super) fn is_suspended(&self) -> bool {
        let of_policy = self.run_policy.as_ref().and_then(|policy| policy.get("suspend"));
        let yes = serde_json::Value::Bool(true);
        self.suspend.as_ref() == Some(&yes) || of_policy == Some(&yes)
    }

    /// Pods that it wants at a time: one where it does not say.
    pub(super) fn wanted(&self) -> u64 {
        let said = self.replicas.as_ref().or(self.parallelism.as_ref());
        said.and_then(serde_json::Value::as_u64).unwrap_or(1)
    }
}

/// Phases of a Job of Volcano in which it makes no more pods.
const VOLCANO_ENDS: [&str; 4] = ["Aborted", "Completed", "Failed", "Terminated"];

/// What an owner says of its pods.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OwnerStatusDetail<'a> {
    #[serde(deserialize_with = "count")]
    pub(super) replicas: Option<u64>,
    #[serde(deserialize_with = "count")]
    pub(super) active: Option<u64>,
    #[serde(deserialize_with = "count")]
    succeeded: Option<u64>,
    /// Of a RayJob.
    #[serde(borrow, deserialize_with = "nullable")]
    job_deployment_status: Cow<'a, str>,
    /// Of a Job of Volcano, which has a phase in it; other kinds have a text there.
    state: Option<serde_json::Value>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) conditions: Vec<OwnerConditionDetail<'a>>,
}

impl OwnerStatusDetail<'_> {
    /// Whether a Job, a JobSet, or the job of an operator makes no more pods.
    pub(super) fn is_over(&self) -> bool {
        let ends =
            ["Complete", "Completed", "Failed", "FailureTarget", "SuccessCriteriaMet", "Succeeded"];
        let is_end = |c: &OwnerConditionDetail<'_>| ends.contains(&&*c.kind) && c.status == "True";
        let phase = self.state.as_ref().and_then(|state| state["phase"].as_str());
        matches!(&*self.job_deployment_status, "Complete" | "Failed")
            || phase.is_some_and(|phase| VOLCANO_ENDS.contains(&phase))
            || self.conditions.iter().any(is_end)
    }
}

/// A condition of an owner, or of a workload of Kueue.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OwnerConditionDetail<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "nullable")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) status: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) reason: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) message: Cow<'a, str>,
    #[serde(rename = "lastTransitionTime")]
    pub(super) last_transition_time: TimeMs,
    /// What a collection keeps of the message: whether it is about quota.
    #[serde(borrow, deserialize_with = "nullable")]
    pub(super) about: Cow<'a, str>,
}

/// A number of pods; what is none is nothing that is known.
fn count<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<serde_json::Value>::deserialize(input)?
        .as_ref()
        .and_then(serde_json::Value::as_u64))
}
