//! What counts as training: the one definition that every question about it uses, and tells.

use std::collections::BTreeMap;

use dovetail_facts::{Workload, WorkloadClass};

use crate::from_objects::words;
use crate::names::CLASS;

/// Owners whose pods answer or wait until somebody stops them: nothing ends in them by itself.
const WITHOUT_END: [&str; 14] = [
    "DaemonSet",
    "Deployment",
    "DynamoGraphDeployment",
    "InferenceService",
    "LLMInferenceService",
    "NIMService",
    "Node",
    "Notebook",
    "RayService",
    "ReplicaSet",
    "ReplicationController",
    "Revision",
    "Rollout",
    "StatefulSet",
];

/// Which workloads train.
pub struct Training {
    /// By owner, of those that objects have; `None` where there are no objects.
    by_owner: Option<BTreeMap<String, bool>>,
}

/// Whether pods of an owner of this kind end by themselves, as far as anybody knows.
pub(crate) fn may_end(kind: &str) -> bool {
    !WITHOUT_END.contains(&kind)
}

impl Training {
    /// By what objects say of owners; without them by kinds alone.
    pub fn of(workloads: Option<&[Workload]>) -> Self {
        let trains = |workload: &Workload| match workload.class {
            Some(WorkloadClass::Training) => true,
            Some(WorkloadClass::Inference | WorkloadClass::Interactive) => false,
            // That a Job is a batch says only that nothing is known of it, unless a person said so.
            Some(WorkloadClass::Batch) | None => {
                let is_batch =
                    workload.template.labels.get(CLASS).is_some_and(|value| value == "batch");
                may_end(&workload.owner.kind) && !is_batch
            }
        };
        let by_owner = workloads.map(|workloads| {
            let all = workloads.iter();
            all.map(|workload| (words(&workload.owner), trains(workload))).collect()
        });
        Self { by_owner }
    }

    /// Whether a job (`PyTorchJob vision/train`, or `vision/train` where nobody knows its kind)
    /// trains, whose pods carry this class.
    pub fn is(&self, job: &str, class: Option<&str>) -> bool {
        match class {
            Some("training") => return true,
            Some("batch" | "inference" | "interactive") => return false,
            _ => {}
        }
        let known = self.by_owner.as_ref().and_then(|by_owner| by_owner.get(job).copied());
        known.unwrap_or_else(|| may_end(job.split_once(' ').map_or("", |(kind, _)| kind)))
    }

    /// The definition, for whoever reads an answer.
    pub fn definition(&self) -> &'static str {
        match self.by_owner {
            Some(_) => {
                "training is GPU work that runs to completion (Jobs, the kinds of training operators, bare pods, \
                 owners of unknown kind) or is labeled dovetail.dev/class=training; not Deployments, StatefulSets \
                 or notebooks, and not workloads that are known to serve or are labeled as another class"
            }
            None => {
                "training is GPU work that runs to completion (Jobs, the kinds of training operators, bare pods, owners \
                 of unknown kind), not Deployments, StatefulSets or notebooks; without objects, only the owner's kind \
                 counts: add objects with --from"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_facts::ObjectRef;

    use super::*;

    #[test]
    fn what_ends_by_itself_trains_unless_somebody_says_otherwise() {
        let workload = |kind: &str, name: &str, class, label: Option<&str>| {
            let mut workload = Workload { class, ..Workload::default() };
            workload.owner = ObjectRef::new(kind, "a", name);
            let label = label.map(|value| (CLASS.to_owned(), value.to_owned()));
            workload.template.labels = label.into_iter().collect();
            workload
        };
        let workloads = vec![
            workload("Job", "plain", Some(WorkloadClass::Batch), None),
            workload("Job", "scores", Some(WorkloadClass::Batch), Some("batch")),
            workload("Pod", "chat", Some(WorkloadClass::Inference), None),
            workload("StatefulSet", "ranks", Some(WorkloadClass::Training), Some("training")),
            workload("StatefulSet", "store", None, None),
            workload("PyTorchJob", "train", Some(WorkloadClass::Training), None),
        ];
        let training = Training::of(Some(&workloads));
        let is = |job: &str| training.is(job, None);
        assert!(is("Job a/plain") && is("StatefulSet a/ranks") && is("PyTorchJob a/train"));
        assert!(!is("Job a/scores") && !is("Pod a/chat") && !is("StatefulSet a/store"));
        // Gone from the cluster: by its kind, and by what its own pods say.
        assert!(is("Job a/gone") && is("a/gone") && !is("Deployment a/gone"));
        assert!(!training.is("Job a/gone", Some("batch")));
        assert!(training.is("Deployment a/gone", Some("training")));
        let blind = Training::of(None);
        assert!(blind.is("Job a/scores", None) && !blind.is("StatefulSet a/ranks", None));
    }
}
