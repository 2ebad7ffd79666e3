//! Labels that name queues and models, as the systems that read them write them.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_settings::cost::CostSection;

use super::teams::{Labels, Teams};

/// Labels of pods that name their queue; of namespaces the first one does.
const QUEUES: [&str; 6] = [
    labels::QUEUE,
    labels::KUEUE_QUEUE,
    "kai.scheduler/queue",
    "runai/queue",
    "volcano.sh/queue-name",
    "queue",
];

/// Labels of pods that name the model they serve or train.
const MODELS: [&str; 3] = [labels::LLM_D_MODEL, labels::KSERVE_SERVICE, "model"];

/// The label that names the run of a pod.
pub(crate) const RUN: &str = labels::RUN;

/// The label that says what a pod does: `training`, `inference`, `interactive`, `batch`.
pub(crate) const CLASS: &str = labels::CLASS;

/// Labels of pods that say what is a training run, and join its attempts.
pub(crate) fn of_runs(section: &CostSection) -> impl Iterator<Item = String> {
    let experiments = section.experiment_labels.iter().flatten().cloned();
    [RUN, CLASS].map(str::to_owned).into_iter().chain(experiments)
}

/// Labels of pods that a bill is grouped by.
pub fn wanted(teams: &Teams) -> BTreeSet<String> {
    let known = QUEUES.into_iter().chain(MODELS).map(str::to_owned);
    known.chain(teams.labels().cloned()).collect()
}

/// The queue of a pod.
pub fn queue(of_namespace: &Labels, of_pod: &Labels) -> Option<String> {
    first(of_pod, &QUEUES).or_else(|| first(of_namespace, &QUEUES[..1]))
}

/// The model of a pod.
pub fn model(of_pod: &Labels) -> Option<String> {
    first(of_pod, &MODELS)
}

fn first(labels: &BTreeMap<String, String>, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| labels.get(*key).filter(|value| !value.is_empty()));
    found.cloned()
}
