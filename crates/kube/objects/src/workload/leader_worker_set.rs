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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::WorkloadKind;
    use super::super::tests::{read_value, roles};

    fn set(annotations: Value, startup_policy: &str) -> Value {
        let template = json!({"size": 4, "workerTemplate": {"spec": {"containers": []}}});
        json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": {"name": "serve", "namespace": "blue", "annotations": annotations},
            "spec": {"replicas": 2, "leaderWorkerTemplate": template,
                "startupPolicy": startup_policy}})
    }

    #[test]
    fn a_group_is_a_leader_and_its_workers() {
        let read = read_value(WorkloadKind::LeaderWorkerSet, &set(json!({}), "LeaderCreated"));
        assert_eq!(roles(&read), [("leader", 1, 1), ("workers", 3, 3)]);
        assert!(!read.in_stages);
        let ready = set(json!({}), "LeaderReady");
        assert!(read_value(WorkloadKind::LeaderWorkerSet, &ready).in_stages);
        let topology = json!({"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"});
        let exclusive = set(topology, "LeaderCreated");
        assert!(read_value(WorkloadKind::LeaderWorkerSet, &exclusive).in_stages);
    }
}
