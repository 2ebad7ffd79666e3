//! LeaderWorkerSets: each group of one leader and its workers is a gang.

use dovetail_objects::labels::{
    LEADER_WORKER_SET_SIZE as SIZE, LEADER_WORKER_SET_WORKER_INDEX as WORKER_INDEX,
};
use dovetail_objects::{LEADER, Pod, WORKERS, WorkloadKind, WorkloadObject, WorkloadRole};

use super::workload::Membership;
use super::{GangName, NotYet, count};

const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// The same for a group of whom nobody says the number.
const GROUP_KEY: &str = "leaderworkerset.sigs.k8s.io/group-key";

pub(super) fn membership(pod: &Pod) -> Option<Membership<'_>> {
    let labels = &pod.meta.labels;
    let whole = Membership::whole(WorkloadKind::LeaderWorkerSet, labels.get(NAME))?;
    let part = labels.get(GROUP_INDEX).or_else(|| labels.get(GROUP_KEY));
    Some(Membership { part: part.unwrap_or(""), ..whole })
}

pub(super) fn role_of(pod: &Pod) -> &'static str {
    match pod.meta.labels.get(WORKER_INDEX) {
        Some("0") => LEADER,
        _ => WORKERS,
    }
}

/// The roles of one group, by the size that its pods say.
pub(super) fn roles(
    gang: &GangName,
    workload: &WorkloadObject,
    members: &[&Pod],
) -> Result<Vec<WorkloadRole>, NotYet> {
    let mut said: Option<u32> = None;
    for pod in members {
        said = said.max(count(gang, SIZE, pod.meta.annotations.get(SIZE))?);
    }
    let mut roles = workload.roles.to_vec();
    if let Some(size) = said {
        let workers = roles.iter_mut().filter(|role| &*role.name == WORKERS);
        workers.for_each(|role| {
            role.pods = u32::saturating_sub(size, 1);
            role.min = role.pods;
        });
    }
    Ok(roles)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::gang_of;
    use super::super::tests::{pod, read_workload};
    use super::*;

    fn member(group: usize, worker: usize, size: usize) -> Pod {
        let labels = json!({"leaderworkerset.sigs.k8s.io/name": "serve",
            "leaderworkerset.sigs.k8s.io/group-index": group.to_string(),
            "leaderworkerset.sigs.k8s.io/group-key": "689ce1b5",
            "leaderworkerset.sigs.k8s.io/worker-index": worker.to_string()});
        let annotations = json!({"leaderworkerset.sigs.k8s.io/size": size.to_string()});
        let meta = json!({"labels": labels, "annotations": annotations});
        pod(&format!("serve-{group}-{worker}"), json!({"metadata": meta}))
    }

    fn set(startup_policy: &str) -> Option<Value> {
        Some(json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
            "metadata": {"name": "serve", "namespace": "blue"},
            "spec": {"replicas": 2, "startupPolicy": startup_policy,
                "leaderWorkerTemplate": {"size": 8}}}))
    }

    fn min(startup_policy: &str, members: &[Pod]) -> u32 {
        let kind = WorkloadKind::LeaderWorkerSet;
        read_workload(kind, set(startup_policy), members).unwrap().min
    }

    #[test]
    fn each_group_is_a_gang_of_the_size_that_its_pods_say() {
        let members = [member(1, 0, 4), member(1, 1, 4)];
        let name = gang_of(&members[0]).unwrap().expect("a gang");
        assert_eq!(name.to_string(), "leaderworkerset blue/serve group 1");
        assert_ne!(Some(name), gang_of(&member(0, 0, 4)).unwrap());
        assert_eq!(min("LeaderCreated", &members), 4, "the set is being updated to 8");
    }

    #[test]
    fn a_group_without_a_number_is_known_by_its_key() {
        let keyed = |key: &str| {
            let labels = json!({"leaderworkerset.sigs.k8s.io/name": "serve",
                "leaderworkerset.sigs.k8s.io/group-key": key});
            pod("p", json!({"metadata": {"labels": labels}}))
        };
        let name = gang_of(&keyed("689ce1b5")).unwrap().expect("a gang");
        assert_eq!(name.to_string(), "leaderworkerset blue/serve group 689ce1b5");
        assert_ne!(Some(name), gang_of(&keyed("a94f0c2d")).unwrap());
    }

    #[test]
    fn a_size_that_is_no_number_of_pods_is_told() {
        let mut pod = member(0, 0, 4);
        let size = json!({"leaderworkerset.sigs.k8s.io/size": "-1"});
        pod.meta.annotations = serde_json::from_value(size).unwrap();
        assert_eq!(
            read_workload(WorkloadKind::LeaderWorkerSet, set("LeaderCreated"), &[pod]).unwrap_err(),
            "leaderworkerset blue/serve group 0: annotation leaderworkerset.sigs.k8s.io/size is `-1`: write a number \
             from 1 to 4294967295"
        );
    }

    #[test]
    fn where_workers_follow_the_leader_it_starts_alone() {
        assert_eq!(min("LeaderReady", &[member(0, 0, 4)]), 1);
        assert_eq!(min("LeaderReady", &[member(0, 0, 4), member(0, 1, 4)]), 4);
    }
}
