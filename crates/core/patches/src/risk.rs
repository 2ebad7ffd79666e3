//! What is at risk when a patch is applied, beside what it restarts.

use std::collections::BTreeSet;

use dovetail_audit::{
    Finding, LimitChange, PatchChange, amount_text, lost_by_eviction, lost_files, taint_text,
};
use dovetail_facts::{Autoscaler, Container, Facts, ObjectRef, Workload, WorkloadClass};
use dovetail_model::{Taint, is_gpu_resource};

use super::node_names::names_of;
use super::owned::FactsByOwner;
use super::pool::held_by_annotation;

/// The risks of a change that fixes a finding.
pub(super) fn of(facts: &FactsByOwner<'_>, finding: &Finding, change: &PatchChange) -> Vec<String> {
    let risk: Option<String> = match change {
        PatchChange::Uncordon { nodes } => Some(uncordoned(nodes, finding)),
        PatchChange::RemoveEmptyNodes => held_nodes(facts, finding),
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
        PatchChange::Gpus { .. }
        | PatchChange::Stop
        | PatchChange::SharedMemory { .. }
        | PatchChange::DropAnnotation { .. } => of_pods(facts, finding, change),
        PatchChange::Tolerate { taints } => tolerated(taints),
        PatchChange::HideGpus { .. } => {
            Some("a container that uses GPUs without requesting them loses access to them".to_owned())
        }
        PatchChange::LimitRetries => Some(
            "finished pods are deleted after 10 minutes, and their logs with them: collect logs elsewhere first"
                .to_owned(),
        ),
        PatchChange::LetOneGo => evicted_one_by_one(facts, &finding.object),
        PatchChange::Prioritise { .. } => Some(
            "pods of a higher priority preempt others when GPUs run short, training without checkpoints included"
                .to_owned(),
        ),
        PatchChange::RollInPlace => {
            Some("during a rollout, one fewer replica serves requests".to_owned())
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
    let more = [
        no_longer_guaranteed(facts, finding, change),
        scaled_by_request(facts, finding, change),
        scaled_elsewhere(facts, finding, change),
        not_replaced(facts, finding, change),
    ];
    risk.into_iter().chain(more.into_iter().flatten()).collect()
}

/// The risk of a request that no longer equals its limit.
fn no_longer_guaranteed(
    facts: &FactsByOwner<'_>,
    finding: &Finding,
    change: &PatchChange,
) -> Option<String> {
    let PatchChange::Amount { container, resource, request, limit } = change else { return None };
    let limit_of = |of: &Container| match limit {
        LimitChange::Stays => of.limits.get(*resource).copied(),
        LimitChange::Is(limit) => Some(*limit),
        LimitChange::Goes => None,
    };
    let loses_class = |workload: &&&Workload| {
        let mut containers = workload.template.containers.iter();
        is_guaranteed(workload)
            && containers.any(|of| of.name == *container && limit_of(of) != Some(*request))
    };
    facts.workloads_of(&finding.object).iter().find(loses_class).map(|_| {
        format!(
            "its pods have the QoS class Guaranteed and become Burstable: they lose exclusive CPUs (static CPU manager \
             policy) and are evicted earlier when memory runs short. To keep the class, also set the {resource} limit \
             of the container to the request"
        )
    })
}

/// The risk of a lower request that an autoscaler divides the use by.
fn scaled_by_request(
    facts: &FactsByOwner<'_>,
    finding: &Finding,
    change: &PatchChange,
) -> Option<String> {
    let PatchChange::Amount { container, resource, request, .. } = change else { return None };
    let is_lower = |of: &Container| {
        let now = of.requests.get(*resource).or(of.limits.get(*resource));
        of.name == *container && now.is_some_and(|now| now > request)
    };
    let workloads = facts.workloads_of(&finding.object).iter();
    let lowered: Vec<&Workload> =
        workloads.copied().filter(|of| of.template.containers.iter().any(is_lower)).collect();
    let by = facts.autoscalers.iter().find(|by| {
        by.by_utilization.contains(*resource)
            && lowered.iter().any(|workload| workload.is_made_by(&by.scales))
    })?;
    let ObjectRef { kind, namespace, name } = &by.object;
    Some(format!(
        "{kind} {namespace}/{name} scales on {resource} utilization, a percentage of the request: with a lower request, \
         it starts more replicas for the same load, so also raise its target utilization"
    ))
}

/// The risk of fewer nodes for the pods that an autoscaler may add.
fn scaled_elsewhere(
    facts: &FactsByOwner<'_>,
    finding: &Finding,
    change: &PatchChange,
) -> Option<String> {
    let grows = |by: &Autoscaler, workload: &Workload| {
        by.most_replicas.is_some_and(|most| most > workload.replicas)
            && workload.is_made_by(&by.scales)
    };
    let (by, workload) = match change {
        PatchChange::AskOfNodes { .. }
        | PatchChange::Respect { .. }
        | PatchChange::SelectNodes { .. } => {
            facts.workloads_of(&finding.object).iter().find_map(|workload| {
                let by = facts.autoscalers.iter().find(|by| grows(by, workload))?;
                Some((by, *workload))
            })
        }
        PatchChange::TaintNodes { taint } => {
            let nodes = finding.affected.iter().filter(|of| of.kind == "Node");
            let nodes: BTreeSet<&str> = nodes.map(|of| of.name.as_str()).collect();
            let is_kept_off = |of: &Workload| {
                let mut on = of.pods.iter().filter_map(|pod| pod.node.as_deref());
                !of.has_gpus()
                    && !of.template.tolerations.iter().any(|own| own.accepts(taint))
                    && on.any(|node| nodes.contains(node))
            };
            facts.autoscalers.iter().find_map(|by| {
                let mut scaled = facts.workloads_of(&by.scales).iter().copied();
                Some((by, scaled.find(|of| grows(by, of) && is_kept_off(of))?))
            })
        }
        _ => None,
    }?;
    let (ObjectRef { kind, namespace, name }, scales) = (&by.object, &by.scales);
    Some(format!(
        "{kind} {namespace}/{name} can scale {} {} from {} to {} pods, which can use fewer nodes after this change: \
         make sure that the nodes that are left have room for all of them",
        scales.kind,
        scales.name,
        workload.replicas,
        by.most_replicas.unwrap_or(workload.replicas)
    ))
}

/// The risk that evicted pods have no successors.
fn not_replaced(
    facts: &FactsByOwner<'_>,
    finding: &Finding,
    change: &PatchChange,
) -> Option<String> {
    let rejected =
        |workload: &Workload| Some((workload.owner.clone(), workload.rejected_by.clone()?));
    let is_on_node = |workload: &Workload| {
        let mut nodes = workload.pods.iter().filter_map(|pod| pod.node.as_ref());
        nodes.any(|node| finding.affected.iter().any(|of| of.kind == "Node" && of.name == *node))
    };
    let (owner, reason) = match change {
        PatchChange::Drain => {
            let moves = |of: &&Workload| of.rejected_by.is_some() && !of.belongs_to_nodes();
            let mut moving = facts.workloads.iter().filter(moves);
            rejected(moving.find(|of| is_on_node(of))?)
        }
        PatchChange::DropAnnotation { .. } => {
            facts.workloads_of(&finding.object).iter().find_map(|of| rejected(of))
        }
        PatchChange::LetOneGo => {
            facts.protected_by(&finding.object).flatten().find_map(|of| rejected(of))
        }
        _ => None,
    }?;
    let ObjectRef { kind, namespace, name } = owner;
    Some(format!(
        "the API server would reject a new pod of {kind} {namespace}/{name}, so an evicted pod is not replaced: \
         {reason}"
    ))
}

/// Whether Kubernetes gives its pods the class Guaranteed: each container requests as much CPU and
/// memory as it may use. A request that is missing is the limit.
fn is_guaranteed(workload: &Workload) -> bool {
    let mut containers = workload.template.containers.iter();
    let is_equal = |of: &Container, resource: &str| {
        let limit = of.limits.get(resource).filter(|limit| **limit > 0);
        limit.is_some() && of.requests.get(resource).or(limit) == limit
    };
    containers.all(|of| is_equal(of, "cpu") && is_equal(of, "memory"))
}

/// What pods that run lose if a change of their template replaces them. Servers go one by one.
pub(super) fn of_restart(facts: &FactsByOwner<'_>, object: &ObjectRef) -> Option<String> {
    let runs = |workload: &&&Workload| workload.pods.iter().any(|pod| pod.node.is_some());
    let workload = facts.workloads_of(object).iter().find(runs)?;
    let class = match object.kind.as_str() {
        "CronJob" | "DaemonSet" => return None,
        "Notebook" => Some(WorkloadClass::Interactive),
        _ => workload.class,
    };
    let is_frozen = ["Job", "JobSet"].contains(&object.kind.as_str());
    match class {
        Some(WorkloadClass::Inference) => None,
        None if !is_frozen => None,
        _ => Some(format!(
            "when its running pods restart, {}",
            lost_by_eviction(Some(workload), class, object)
        )),
    }
}

/// The risk of a change of the pods of a workload.
fn of_pods(facts: &FactsByOwner<'_>, finding: &Finding, change: &PatchChange) -> Option<String> {
    let workload = facts.workloads_of(&finding.object).first().copied();
    let class = match finding.object.kind.as_str() {
        "Notebook" => Some(WorkloadClass::Interactive),
        _ => workload.and_then(|workload| workload.class),
    };
    match change {
        PatchChange::Gpus { .. } if finding.check.id == "REQ-11" => Some(
            "a container that does use GPUs, to compile or to warm up for example, may fail with fewer"
                .to_owned(),
        ),
        PatchChange::Gpus { container, count, .. } if *count > 0 => {
            let containers = workload.into_iter().flat_map(|of| &of.template.containers);
            let mut by = containers.filter(|of| of.name == *container);
            match by.find_map(|of| of.processes_by) {
                Some(argument) => Some(format!(
                    "its command starts as many processes as {argument} states, and processes without a GPU fail: also \
                     change {argument} to fit {count}"
                )),
                None if class == Some(WorkloadClass::Training) => Some(format!(
                    "a launcher that starts one process per GPU must start {count}: also change --nproc_per_node or \
                     the equivalent"
                )),
                None => None,
            }
        }
        PatchChange::Stop => Some(stopped(workload, class, &finding.object)),
        PatchChange::DropAnnotation { .. } => Some(format!(
            "the autoscaler may then evict its pods at any time: {}",
            lost_by_eviction(workload, class, &finding.object)
        )),
        PatchChange::SharedMemory { container, bytes } => {
            Some(memory_in_use(workload, container, *bytes))
        }
        _ => None,
    }
}

/// What is lost when no pods run any longer.
fn stopped(
    workload: Option<&Workload>,
    class: Option<WorkloadClass>,
    object: &ObjectRef,
) -> String {
    match class {
        Some(WorkloadClass::Interactive) => {
            format!("the state in memory is lost, and {}", lost_files(workload))
        }
        Some(WorkloadClass::Inference) => "requests fail until it is started again".to_owned(),
        _ if object.kind == "Pod" => {
            "the pod has no controller, so nothing recreates it: its work is terminated, and its files are lost"
                .to_owned()
        }
        _ => "its running pods are deleted and lose their progress".to_owned(),
    }
}

/// Files in memory are memory of the container that wrote them.
fn memory_in_use(workload: Option<&Workload>, container: &str, bytes: i64) -> String {
    let containers = workload.into_iter().flat_map(|workload| &workload.template.containers);
    let mut of_name = containers.filter(|of| of.name == container);
    let size = amount_text("memory", bytes);
    match of_name.any(|of| of.limits.contains_key("memory")) {
        true => format!(
            "files in /dev/shm count toward the memory limit of the container, which is OOM-killed if they fill it: \
             raise the memory request and limit by {size}, too"
        ),
        false => format!(
            "files in /dev/shm are memory of the container and of its node: raise the memory request by {size}, too"
        ),
    }
}

/// A taint that has not the name of a GPU resource may be there for a reason.
fn tolerated(taints: &[Taint]) -> Option<String> {
    let others = taints.iter().filter(|taint| !is_gpu_resource(&taint.key));
    let named: Vec<String> = others.map(taint_text).collect();
    let taints = if named.len() == 1 { "the taint" } else { "the taints" };
    (!named.is_empty()).then(|| {
        format!(
            "{taints} {} may reserve these nodes for another team, or keep pods from unhealthy GPUs: find out why the \
             nodes are tainted first",
            named.join(", ")
        )
    })
}

/// Nodes are cordoned for a reason, and some stay so.
fn uncordoned(nodes: &[String], finding: &Finding) -> String {
    let reason = "find out why the nodes were cordoned first: `kubectl describe node NAME` shows taints, \
                  conditions and events";
    let others = finding.affected.iter().map(|object| object.name.clone());
    let others: Vec<String> = others.filter(|name| !nodes.contains(name)).collect();
    match others.is_empty() {
        true => reason.to_owned(),
        false => format!(
            "{reason}. The command leaves other nodes cordoned, which need a repair first or can be removed from \
             their pool: {}",
            names_of(&others)
        ),
    }
}

/// Empty nodes that an autoscaler does not remove, whatever their pool allows.
fn held_nodes(facts: &Facts, finding: &Finding) -> Option<String> {
    let names = held_by_annotation(facts);
    let is_held = |of: &&ObjectRef| of.kind == "Node" && names.contains(&*of.name);
    let held = finding.affected.iter().filter(is_held).map(|object| object.name.clone());
    let held: Vec<String> = held.collect();
    (!held.is_empty()).then(|| {
        format!(
            "the autoscaler does not remove nodes with an annotation that disables scale-down: drain and remove {} \
             yourself",
            names_of(&held)
        )
    })
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

/// What is lost when a budget lets pods go one by one.
fn evicted_one_by_one(facts: &FactsByOwner<'_>, budget: &ObjectRef) -> Option<String> {
    let protected: Vec<&[&Workload]> = facts.protected_by(budget).collect();
    let protects = |class: WorkloadClass| {
        protected.iter().copied().flatten().any(|of| of.class == Some(class))
    };
    let replicas = |of: &[&Workload]| of.iter().map(|workload| workload.replicas).sum::<u32>();
    let risk = match () {
        () if protects(WorkloadClass::Training) => {
            "a drain then evicts its pods one by one: training without checkpoints loses its progress, and pods that \
             wait for each other all wait for the new one"
        }
        () if protects(WorkloadClass::Interactive) => {
            "a drain then evicts its pods one by one: the state in memory is lost"
        }
        () if protects(WorkloadClass::Batch) => {
            "a drain then evicts its pods one by one: work without checkpoints starts again from the beginning"
        }
        () if protected.iter().any(|of| replicas(of) == 1) => {
            "it has one replica: a drain then evicts it, and no requests are served until another one is ready; run \
             two first"
        }
        () => return None,
    };
    Some(risk.to_owned())
}
