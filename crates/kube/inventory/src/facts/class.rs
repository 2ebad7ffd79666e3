//! What a workload does, and whether its pods start together: as far as kinds, labels and images of
//! known servers tell. Where they do not, nobody knows.

use dovetail_facts::{PodTemplate, WorkloadClass};
use dovetail_objects::labels;

use dovetail_objects::{Labels, owner_kind};

/// Kinds whose pods answer requests.
const SERVING_KINDS: [&str; 9] = [
    "DynamoGraphDeployment",
    "InferencePool",
    "InferenceService",
    "LLMInferenceService",
    "ModelServing",
    "NIMService",
    "RayService",
    "SeldonDeployment",
    "Service",
];

/// Parts of image names of inference servers.
const SERVERS: [&str; 10] = [
    "llama.cpp",
    "lmdeploy",
    "nim/",
    "ollama",
    "sglang",
    "tensorrt-llm",
    "text-embeddings-inference",
    "text-generation-inference",
    "tritonserver",
    "vllm",
];

/// Parts of image names of notebooks.
const NOTEBOOKS: [&str; 4] = ["code-server", "jupyter", "notebook", "rstudio"];

/// Parts of image names of exporters of GPU metrics: NVIDIA's, AMD's, Intel's.
const EXPORTERS: [&str; 4] = ["dcgm-exporter", "device-metrics-exporter", "xpumanager", "xpumd"];

/// Part of the image name of the Cluster Autoscaler, and of what people call it.
const CLUSTER_AUTOSCALER: [&str; 1] = ["cluster-autoscaler"];

/// Labels that bind pods into a gang, or hand them to a queue that admits them as a whole.
const GANG_LABELS: [&str; 7] = [
    labels::GANG,
    labels::KUEUE_QUEUE,
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "runai/queue",
    labels::COSCHEDULING_GROUP,
    "volcano.sh/job-name",
];

/// Schedulers that place the pods of one owner as a whole.
const GANG_SCHEDULERS: [&str; 4] = ["kai-scheduler", "runai-scheduler", "volcano", "yunikorn"];

/// Annotations that name a pod group.
pub(super) const GANG_ANNOTATIONS: [&str; 2] = [labels::KAI_GROUP, labels::VOLCANO_GROUP[0]];

/// What the workload does. `dovetail.dev/class` on its pods says it; else the kinds of its owners
/// from the nearest to the top, else the images.
pub(super) fn class_of<'a>(
    labels: &Labels,
    kinds: impl Iterator<Item = &'a str>,
    images: &[String],
) -> Option<WorkloadClass> {
    let named = |text: &str| match text {
        "training" => Some(WorkloadClass::Training),
        "inference" => Some(WorkloadClass::Inference),
        "interactive" => Some(WorkloadClass::Interactive),
        "batch" => Some(WorkloadClass::Batch),
        _ => None,
    };
    if let Some(class) = labels.get(labels::CLASS).and_then(named) {
        return Some(class);
    }
    let has_label = |key: &str| labels.get(key).is_some();
    if has_label("notebook-name") || has_label("hub.jupyter.org/username") {
        return Some(WorkloadClass::Interactive);
    }
    if has_label(labels::KSERVE_SERVICE) || has_label(labels::LLM_D_MODEL) {
        return Some(WorkloadClass::Inference);
    }
    let mut is_job = false;
    for kind in kinds {
        if owner_kind(kind).trains {
            return Some(WorkloadClass::Training);
        }
        if SERVING_KINDS.contains(&kind) {
            return Some(WorkloadClass::Inference);
        }
        if kind == "Notebook" {
            return Some(WorkloadClass::Interactive);
        }
        is_job |= kind == "Job";
    }
    match () {
        () if is_job => Some(WorkloadClass::Batch),
        () if has_part(images, &SERVERS) => Some(WorkloadClass::Inference),
        () if has_part(images, &NOTEBOOKS) => Some(WorkloadClass::Interactive),
        () => None,
    }
}

fn has_part(images: &[String], parts: &[&str]) -> bool {
    images.iter().any(|image| parts.iter().any(|part| image.to_lowercase().contains(part)))
}

/// What an image is by its name, if the checks know it.
pub(crate) fn known_part(image: &str) -> Option<&'static str> {
    let image = image.to_lowercase();
    let of_nodes = EXPORTERS.iter().chain(&CLUSTER_AUTOSCALER);
    let mut known = SERVERS.iter().chain(&NOTEBOOKS).chain(of_nodes).copied();
    known.find(|part| image.contains(part))
}

/// Labels by which people name what a pod is.
const NAMED_BY: [&str; 4] = ["app", labels::APPLICATION, labels::COMPONENT, "k8s-app"];

/// Whether the containers report what GPUs do: by their images, or, where these come from a
/// registry of one's own under another name, by what labels call the pod.
pub(super) fn exports_gpu_metrics(labels: &Labels, images: &[String]) -> bool {
    has_part(images, &EXPORTERS) || has_part(&names(labels), &EXPORTERS)
}

/// Whether the pods are those of a Cluster Autoscaler: by image, label or the name of their owner.
pub(super) fn scales_node_groups(labels: &Labels, images: &[String], owner: &str) -> bool {
    let mut named = names(labels);
    named.push(owner.to_owned());
    has_part(images, &CLUSTER_AUTOSCALER) || has_part(&named, &CLUSTER_AUTOSCALER)
}

/// What labels call the pod.
fn names(labels: &Labels) -> Vec<String> {
    NAMED_BY.iter().filter_map(|key| labels.get(key)).map(str::to_owned).collect()
}

/// Whether the pods start all or none.
pub(super) fn is_gang(labels: &Labels, scheduler: &str, has_group_annotation: bool) -> bool {
    let by_label = GANG_LABELS.iter().any(|key| labels.get(key).is_some());
    by_label || has_group_annotation || GANG_SCHEDULERS.contains(&scheduler)
}

/// Whether KAI made the pod: of those that share a device it alone asks the device plugin for one.
pub(super) fn reserves_for_others(labels: &Labels, template: &PodTemplate) -> bool {
    labels.get(labels::KAI_DEVICE_GROUP).is_some()
        && template.containers.iter().any(|container| container.gpu_limits().next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exporter_is_known_by_its_image_or_by_its_name() {
        let exports = |label: &[(&str, &str)], image: &str| {
            let labels: Labels = label.iter().map(|(key, value)| (*key, *value)).collect();
            exports_gpu_metrics(&labels, &[image.to_owned()])
        };
        assert!(exports(&[], "nvcr.io/nvidia/k8s/dcgm-exporter:4.2"));
        let own = "registry.example/gpu-metrics:7";
        assert!(exports(&[("app", "nvidia-dcgm-exporter")], own));
        assert!(exports(&[("app.kubernetes.io/name", "device-metrics-exporter")], own));
        assert!(!exports(&[("app", "node-exporter")], own));
    }

    #[test]
    fn labels_say_more_than_kinds_and_kinds_more_than_images() {
        let class = |labels: &[(&str, &str)], kinds: &[&str], image: &str| {
            let labels: Labels = labels.iter().map(|(key, value)| (*key, *value)).collect();
            class_of(&labels, kinds.iter().copied(), &[image.to_owned()])
        };
        let vllm = "registry.example/vllm/vllm-openai:v0.11";
        assert_eq!(class(&[], &["ReplicaSet", "Deployment"], vllm), Some(WorkloadClass::Inference));
        assert_eq!(class(&[], &["Job", "JobSet"], vllm), Some(WorkloadClass::Training));
        assert_eq!(class(&[], &["Job"], vllm), Some(WorkloadClass::Batch));
        let own = [("dovetail.dev/class", "interactive")];
        assert_eq!(class(&own, &["Job", "JobSet"], vllm), Some(WorkloadClass::Interactive));
        assert_eq!(class(&[], &["ReplicaSet"], "python:3.13"), None);
    }
}
