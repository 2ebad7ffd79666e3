//! LeaderWorkerSets (`leaderworkerset.x-k8s.io/v1`): each group, a leader and its workers, starts
//! together.
//!
//! With start-up policy `LeaderReady`, and with an exclusive topology, workers are created only
//! when their leader is ready or has a node: the leader goes first then.

use serde::Deserialize;

use super::{WorkloadObject, WorkloadRole};
use crate::json::nullable;
use crate::labels::LEADER_WORKER_SET_EXCLUSIVE_TOPOLOGY as EXCLUSIVE_TOPOLOGY;
use crate::meta::Meta;

/// The role of pod number 0.
pub const LEADER: &str = "leader";
/// The role of the others.
pub const WORKERS: &str = "workers";

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SetJson {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    leader_worker_template: TemplateJson,
    #[serde(deserialize_with = "nullable")]
    startup_policy: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateJson {
    size: Option<u32>,
}

impl From<SetJson> for WorkloadObject {
    fn from(SetJson { metadata, spec }: SetJson) -> Self {
        let size = spec.leader_worker_template.size.unwrap_or(1);
        let workers = size.saturating_sub(1);
        let is_exclusive = metadata.annotations.get(EXCLUSIVE_TOPOLOGY).is_some();
        Self {
            roles: [WorkloadRole::fixed(LEADER, 1), WorkloadRole::fixed(WORKERS, workers)].into(),
            in_stages: is_exclusive || &*spec.startup_policy == "LeaderReady",
            meta: metadata,
            ..Self::default()
        }
    }
}
