//! What work loses when its pods are evicted: progress, memory, files, requests.

use dovetail_facts::{ObjectRef, Workload, WorkloadClass};

/// Kinds of servers: of several replicas, the others serve while one starts again.
const SERVERS: [&str; 4] = ["Deployment", "ReplicaSet", "ReplicationController", "Rollout"];

/// What a workload loses when the node of a pod is drained; `None` if other replicas serve while
/// the pod starts elsewhere.
pub(crate) fn lost_by_drain(workload: &Workload) -> Option<String> {
    let volumes =
        if workload.template.has_host_path { "emptyDir and hostPath" } else { "emptyDir" };
    let of_volume = has_files(workload).then(|| {
        format!(
            "files in {volumes} volumes are lost, and kubectl evicts pods with emptyDir volumes only with \
             --delete-emptydir-data (the Cluster Autoscaler only with --skip-nodes-with-local-storage=false)"
        )
    });
    let is_alone = workload.owner.kind == "Pod";
    let of_drain =
        is_alone.then(|| "kubectl evicts pods without a controller only with --force".to_owned());
    joined([lost_by_start_elsewhere(workload), of_volume, of_drain])
}

/// What a workload loses when one of its pods is evicted and starts on another node; `None` as
/// above. A pod with a hostPath volume does not move.
pub(crate) fn lost_by_move(workload: &Workload) -> Option<String> {
    let of_volume = has_files(workload).then(|| "files in emptyDir volumes are lost".to_owned());
    joined([lost_by_start_elsewhere(workload), of_volume, None])
}

fn joined(lost: [Option<String>; 3]) -> Option<String> {
    let lost: Vec<String> = lost.into_iter().flatten().collect();
    (!lost.is_empty()).then(|| lost.join("; "))
}

/// Whether it has files that end with a pod. kubectl counts emptyDir volumes in memory, too.
fn has_files(workload: &Workload) -> bool {
    workload.template.has_local_data || workload.template.shared_memory.is_some()
}

/// What ends with a pod beside its files.
fn lost_by_start_elsewhere(workload: &Workload) -> Option<String> {
    let class = match workload.owner.kind.as_str() {
        "Notebook" => Some(WorkloadClass::Interactive),
        _ => workload.class,
    };
    let is_server = match class {
        Some(class) => class == WorkloadClass::Inference,
        None => SERVERS.contains(&workload.owner.kind.as_str()),
    };
    match is_server {
        true if workload.replicas > 1 => None,
        true => Some(
            "it has one replica, so no requests are served until the new pod is ready, and the state in memory is lost"
                .to_owned(),
        ),
        false => Some(lost_by_eviction(Some(workload), class, &workload.owner)),
    }
}

/// What is lost when one of its pods is evicted.
pub fn lost_by_eviction(
    workload: Option<&Workload>,
    class: Option<WorkloadClass>,
    object: &ObjectRef,
) -> String {
    let saves = workload.is_some_and(|workload| workload.template.saves_progress);
    let lost = match class {
        _ if object.kind == "Pod" => {
            "no controller recreates them, so their work and their files are lost"
        }
        Some(WorkloadClass::Interactive) => {
            return format!("the state in memory is lost, and {}", lost_files(workload));
        }
        Some(WorkloadClass::Training) if saves => {
            "training loses its progress since the last checkpoint"
        }
        Some(WorkloadClass::Training) => "training without checkpoints loses its progress",
        Some(WorkloadClass::Batch) => "work without checkpoints starts again from the beginning",
        Some(WorkloadClass::Inference) => "requests fail until another replica is ready",
        None => "the state in memory is lost, and work without checkpoints loses its progress",
    };
    lost.to_owned()
}

/// Files that end with a pod in which somebody works.
pub fn lost_files(workload: Option<&Workload>) -> &'static str {
    match workload.is_some_and(|workload| workload.template.has_lasting_volume) {
        true => "files outside its volumes",
        false => "its files, because it has no volume that outlives the pod",
    }
}
