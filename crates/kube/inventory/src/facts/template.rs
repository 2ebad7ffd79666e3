//! What a pod is made from, as the checks see it.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Container, ContainerKind, HostPorts, PodTemplate, ServedModel, SharedMemory};
use dovetail_model::requirement::Operator;
use dovetail_model::{NodeCondition, SelectorTerm, Toleration};
use dovetail_objects::json::{JsonQuantity, JsonText};
use dovetail_objects::{Labels, Pod};
use dovetail_translate::ports;

use super::detail::{
    AmountsDetail, ContainerDetail, PodClaimDetail, PodDetail, PodSpecDetail, VolumeDetail,
};
use super::launcher::count_of_processes;
use super::model::model_of_words;

/// Annotations by which a pod asks an autoscaler to leave it where it is, with the value that does.
const HELD_BY: [(&str, &str); 3] = [
    (labels::SAFE_TO_EVICT, "false"),
    (labels::KARPENTER_DO_NOT_DISRUPT, "true"),
    (labels::KARPENTER_DO_NOT_EVICT, "true"),
];

/// Labels that name the model of a pod.
const MODEL_LABELS: [&str; 2] = [labels::LLM_D_MODEL, "model"];

/// Tolerations that Kubernetes adds itself.
const ADDED_BY_KUBERNETES: &str = "node.kubernetes.io/";

/// What Kubernetes gives a pod that asks for nothing else.
const DEFAULT_GRACE_S: i64 = 30;

const HOST_NAME: &str = labels::HOST_NAME;

/// What a pod is made from.
pub(super) fn template(pod: &Pod, detail: &PodDetail<'_>) -> PodTemplate {
    let labels = owned(&pod.meta.labels);
    PodTemplate { labels, ..template_without_labels(pod, detail) }
}

/// What a claim of a pod is, by what its author wrote.
fn claim_in_words(of: &PodClaimDetail) -> String {
    match &*of.resource_claim_template_name {
        "" => format!("ResourceClaim {}", of.resource_claim_name),
        template => format!("ResourceClaimTemplate {template}"),
    }
}

/// The same but for its labels: pods whose templates are alike share one, with labels of a pod.
pub(super) fn template_without_labels(pod: &Pod, detail: &PodDetail<'_>) -> PodTemplate {
    let spec = &detail.spec;
    let main = spec.containers.iter().map(|c| container(c, ContainerKind::Main, &spec.volumes));
    let init = spec.init_containers.iter().map(|c| {
        let keeps_running = c.restart_policy == "Always";
        let kind = if keeps_running { ContainerKind::Sidecar } else { ContainerKind::Init };
        container(c, kind, &spec.volumes)
    });
    let held_by = |(key, value): &(&str, &str)| {
        let is_set = detail.metadata.annotation(key) == Some(*value);
        is_set.then(|| format!("{key}: {value}"))
    };
    let written = |toleration: &&Toleration| !toleration.key.starts_with(ADDED_BY_KUBERNETES);
    PodTemplate {
        labels: BTreeMap::new(),
        containers: init.chain(main).collect(),
        requests: pod.requests.clone(),
        // Slices and claims say it, when all of them are read.
        claimed_gpus: BTreeMap::new(),
        resource_claims: spec.resource_claims.iter().map(claim_in_words).collect(),
        shares_gpus_by: labels::FRACTION
            .into_iter()
            .find(|key| detail.metadata.annotation(key).is_some()),
        chooses_gpus_by: labels::HAMI_CHOICES
            .into_iter()
            .find(|key| detail.metadata.annotation(key).is_some()),
        tolerations: pod.tolerations.iter().filter(written).cloned().collect(),
        node_conditions: node_conditions(pod),
        priority_class: Some((*spec.priority_class_name).to_owned())
            .filter(|name| !name.is_empty()),
        shared_memory: shared_memory(detail),
        keeps_apart_by: keeps_apart_by(pod),
        depends_on_pods: pod.between_pods.is_some() || !pod.spread.is_empty(),
        keeps_others_off: keeps_others_off(pod),
        host_ports: HostPorts {
            taken: ports::counted_by(pod).collect(),
            rules: ports::rules(pod).collect(),
        },
        eviction_held_by: HELD_BY.iter().filter_map(held_by).collect(),
        has_local_data: spec.volumes.iter().any(is_local),
        has_host_path: spec.volumes.iter().any(|volume| volume.host_path.is_some()),
        has_lasting_volume: spec.volumes.iter().any(outlives_the_pod),
        saves_progress: detail.metadata.annotation(labels::CHECKPOINT_INTERVAL).is_some(),
        grace_s: spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_S),
        model: model(pod, spec),
    }
}

/// The model that a pod serves, by its arguments, else by its labels.
fn model(pod: &Pod, spec: &PodSpecDetail<'_>) -> Option<ServedModel> {
    let by_words = spec.containers.iter().find_map(|container| {
        let words = container.command.iter().chain(&container.args).flatten();
        model_of_words(words.map(|word| &**word))
    });
    let by_label = || {
        let name = MODEL_LABELS.iter().find_map(|key| pod.meta.labels.get(key))?;
        ServedModel::of_name(name)
    };
    by_words.or_else(by_label)
}

pub(super) fn owned(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn container(
    detail: &ContainerDetail<'_>,
    kind: ContainerKind,
    volumes: &[VolumeDetail<'_>],
) -> Container {
    let words = detail.command.iter().chain(&detail.args).flatten();
    Container {
        name: (*detail.name).to_owned(),
        kind,
        requests: amounts(&detail.resources.requests),
        limits: amounts(&detail.resources.limits),
        sees_gpus_by: sees_gpus_by(detail, volumes),
        processes_by: count_of_processes(words.map(|word| &**word)),
    }
}

/// CPU in thousandths, all else in whole units.
fn amounts(written: &AmountsDetail<'_>) -> BTreeMap<String, i64> {
    let amount = |(name, amount): (&JsonText<'_>, &JsonQuantity)| {
        let number = if name == "cpu" { amount.0.to_milli() } else { amount.0.to_units() };
        ((**name).to_owned(), number)
    };
    written.iter().map(amount).collect()
}

/// What shows GPUs to a container beside its limits.
fn sees_gpus_by(detail: &ContainerDetail<'_>, volumes: &[VolumeDetail<'_>]) -> Option<String> {
    let shows_all = |env: &&super::detail::EnvDetail<'_>| {
        env.name == "NVIDIA_VISIBLE_DEVICES" && env.value.trim() == "all"
    };
    if detail.env.iter().any(|env| shows_all(&env)) {
        return Some("NVIDIA_VISIBLE_DEVICES=all".to_owned());
    }
    let device = detail.volume_mounts.iter().find_map(|mount| {
        let volume = volumes.iter().find(|volume| volume.name == mount.name)?;
        let path = &volume.host_path.as_ref()?.path;
        let is_gpu = ["/dev/nvidia", "/dev/dri", "/dev/kfd"].iter().any(|d| path.starts_with(d));
        is_gpu.then(|| format!("hostPath {path}"))
    });
    let privileged = detail.security_context.privileged == Some(true);
    device.map(|path| if privileged { format!("{path}, privileged") } else { path })
}

/// Node selector and required node affinity.
fn node_conditions(pod: &Pod) -> Vec<NodeCondition> {
    let mut conditions = Vec::new();
    if !pod.node_selector.is_empty() {
        let term = |(key, value): (&str, &str)| SelectorTerm {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        };
        let terms = pod.node_selector.iter().map(term).collect();
        conditions.push(NodeCondition::node_affinity(vec![terms]));
    }
    let affinity = pod.node_affinity.as_ref();
    conditions.extend(affinity.map(|any_of| NodeCondition::node_affinity(any_of.to_vec())));
    conditions
}

/// What is mounted at `/dev/shm` of a container.
fn shared_memory(detail: &PodDetail<'_>) -> Option<SharedMemory> {
    let mounts = detail.spec.containers.iter().flat_map(|container| &container.volume_mounts);
    let mount =
        mounts.into_iter().find(|mount| mount.mount_path.trim_end_matches('/') == "/dev/shm")?;
    let volume = detail.spec.volumes.iter().find(|volume| volume.name == mount.name)?;
    let limit = volume.empty_dir.as_ref().and_then(|dir| dir.size_limit.as_ref());
    Some(SharedMemory { limit_bytes: limit.map(|limit| limit.0.to_units()) })
}

/// The rule that keeps two pods of the same kind off one node.
fn keeps_apart_by(pod: &Pod) -> Option<String> {
    let terms = pod.between_pods.as_deref().map(|between| &between.anti_affinity);
    let mut apart = terms.into_iter().flatten().filter(|term| &*term.topology_key == HOST_NAME);
    if apart.any(|term| term.pods.selector.matches(&pod.meta.labels)) {
        return Some(format!("required podAntiAffinity on {HOST_NAME}"));
    }
    let spread = pod.spread.iter().find(|spread| {
        &*spread.topology_key == HOST_NAME
            && spread.max_skew == 1
            && spread.selector.matches(&pod.meta.labels)
    });
    spread.map(|_| format!("topologySpreadConstraints on {HOST_NAME}, DoNotSchedule"))
}

/// Topology keys of required anti-affinity to pods of other owners, as far as labels say.
fn keeps_others_off(pod: &Pod) -> BTreeSet<String> {
    let terms = pod.between_pods.as_deref().map(|between| &between.anti_affinity);
    let of_others = terms.into_iter().flatten();
    let of_others = of_others.filter(|term| !term.pods.selector.matches(&pod.meta.labels));
    of_others.map(|term| term.topology_key.to_string()).collect()
}

/// Whether a volume lives and dies with its node. What is in memory dies with the pod anyway.
fn is_local(volume: &VolumeDetail<'_>) -> bool {
    let on_disk = volume.empty_dir.as_ref().is_some_and(|dir| dir.medium.is_empty());
    on_disk || volume.host_path.is_some()
}

fn outlives_the_pod(volume: &VolumeDetail<'_>) -> bool {
    volume.persistent_volume_claim.is_some() || volume.nfs.is_some()
}
