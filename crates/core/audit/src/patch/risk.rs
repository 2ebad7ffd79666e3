//! What is at risk when a patch is applied, beside what it restarts.

use super::change::PatchChange;
use crate::facts::{Facts, ObjectRef, Workload, WorkloadClass};
use crate::finding::Finding;

/// The risks of a change that fixes a finding.
pub(super) fn of(facts: &Facts, finding: &Finding, change: &PatchChange) -> Vec<String> {
    let needs_workload = matches!(change, PatchChange::Gpus { .. } | PatchChange::Stop);
    let mut workloads = facts.workloads.iter().filter(|_| needs_workload);
    let workload = workloads.find(|workload| workload.owner == finding.object);
    let risk: Option<String> = match change {
        PatchChange::Uncordon => Some(uncordoned(facts, finding)),
        PatchChange::Drain => Some(
            "work on the other GPUs of the nodes is terminated, too, and a Job without retries (backoffLimit) fails \
             permanently: first check the device plugin's log and the GPU's errors (Xid in the kernel log), and drain \
             only for a repair. Pods that no controller owns block the drain, and data on local volumes is lost"
                .to_owned(),
        ),
        PatchChange::Amount { .. } if finding.check.id == "REQ-08" => Some(
            "the request becomes the GPUs' share of the node, whatever the pods use: compare it with their use first \
             (kubectl top pod)"
                .to_owned(),
        ),
        PatchChange::Gpus { .. } if finding.check.id == "REQ-11" => Some(
            "a container that does use GPUs, to compile or to warm up for example, may fail with fewer"
                .to_owned(),
        ),
        PatchChange::Gpus { count, .. } if workload.is_some_and(trains) => Some(format!(
            "a launcher that starts one process per GPU must start {count}: also change --nproc_per_node or the equivalent"
        )),
        PatchChange::HideGpus { .. } => {
            Some("a container that uses GPUs without requesting them loses access to them".to_owned())
        }
        PatchChange::LimitRetries => Some(
            "finished pods are deleted after 10 minutes, and their logs with them: collect logs elsewhere first"
                .to_owned(),
        ),
        PatchChange::Stop
            if finding.object.kind == "Notebook" || workload.is_some_and(is_interactive) =>
        {
            Some(format!("the state in memory is lost, and {}", lost_files(workload)))
        }
        PatchChange::Stop if workload.is_some_and(is_inference) => {
            Some("requests fail until it is started again".to_owned())
        }
        PatchChange::Stop if finding.object.kind == "Pod" => Some(
            "the pod has no controller, so nothing recreates it: its work is terminated, and its files are lost"
                .to_owned(),
        ),
        PatchChange::Stop => {
            Some("its running pods are deleted and lose their progress".to_owned())
        }
        PatchChange::LetOneGo if protects_one(facts, &finding.object) => Some(
            "it has one replica: a drain then evicts it, and no requests are served until another one is ready; run \
             two first"
                .to_owned(),
        ),
        PatchChange::Prioritise { .. } => Some(
            "pods of a higher priority preempt others when GPUs run short, training without checkpoints included"
                .to_owned(),
        ),
        PatchChange::RollInPlace => {
            Some("during a rollout one replica fewer serves requests".to_owned())
        }
        PatchChange::Gang { .. } => Some(
            "the label defines a gang only for the scheduler dovetail (schedulerName); with Kueue, \
             use kueue.x-k8s.io/queue-name, with other schedulers a PodGroup"
                .to_owned(),
        ),
        PatchChange::ShareNodes => {
            Some("one failed node can then take several replicas with it".to_owned())
        }
        _ => None,
    };
    risk.into_iter().collect()
}

fn is_inference(workload: &Workload) -> bool {
    workload.class == Some(WorkloadClass::Inference)
}

/// Nodes are cordoned for a reason, and a node without work costs the same once it is open.
fn uncordoned(facts: &Facts, finding: &Finding) -> String {
    let is_empty = |object: &&ObjectRef| {
        let mut nodes = facts.nodes.iter();
        let node = nodes.find(|node| object.kind == "Node" && *node.node.name == *object.name);
        node.is_some_and(|node| node.without_gpu_pods_since_ms.is_some())
    };
    let reason = "find out why the nodes were cordoned first: `kubectl describe node NAME` shows taints, \
                  conditions and events";
    match finding.affected.iter().filter(is_empty).count() {
        0 => reason.to_owned(),
        1 => format!(
            "{reason}. One of them runs no pod with GPUs: if no pending pod needs it, only removing it from its pool \
             lowers the bill"
        ),
        count => format!(
            "{reason}. {count} of them run no pods with GPUs: if no pending pod needs them, only removing them from \
             their pool lowers the bill"
        ),
    }
}

/// Files that end with a pod in which somebody works.
fn lost_files(workload: Option<&Workload>) -> &'static str {
    match workload.is_some_and(|workload| workload.template.has_lasting_volume) {
        true => "files outside its volumes",
        false => "its files, because it has no volume that outlives the pod",
    }
}

/// The risks of a new object.
pub(super) fn of_created(object: &ObjectRef) -> Vec<String> {
    let risk = match object.kind.as_str() {
        "ResourceQuota" => {
            "new work and a rolling update that starts more than one new pod at a time are rejected beyond the \
             quota: raise it first"
        }
        _ => return Vec::new(),
    };
    vec![risk.to_owned()]
}

fn protects_one(facts: &Facts, budget: &ObjectRef) -> bool {
    let mut budgets = facts.budgets.iter().filter(|of| of.object == *budget);
    budgets.any(|of| {
        let protected = facts.workloads.iter().filter(|workload| workload.owner == of.protects);
        protected.map(|workload| workload.replicas).sum::<u32>() == 1
    })
}

fn trains(workload: &Workload) -> bool {
    workload.class == Some(WorkloadClass::Training)
}

fn is_interactive(workload: &Workload) -> bool {
    workload.class == Some(WorkloadClass::Interactive)
}
