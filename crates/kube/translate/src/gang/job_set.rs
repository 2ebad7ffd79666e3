//! JobSets: their pods carry the names of the JobSet and of the replicated Job.

use dovetail_objects::labels;
use std::borrow::Cow;
use std::collections::BTreeSet;

use dovetail_objects::{Pod, WorkloadKind, WorkloadRole, has_exclusive_domains, leaders_of};

use super::job::COMPLETION_INDEX;
use super::workload::Membership;
use super::{GangName, NotYet, impossible};

const JOB_SET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
const REPLICATED_JOB_NAME: &str = labels::REPLICATED_JOB;

pub(super) fn membership(pod: &Pod) -> Option<Membership<'_>> {
    Membership::whole(WorkloadKind::JobSet, pod.meta.labels.get(JOB_SET_NAME))
}

pub(super) fn role_of(pod: &Pod) -> Cow<'_, str> {
    let labels = &pod.meta.labels;
    let name = labels.get(REPLICATED_JOB_NAME).unwrap_or("");
    let is_first = labels.get(COMPLETION_INDEX) == Some("0");
    match is_first && has_exclusive_domains(&pod.meta) {
        true => Cow::Owned(leaders_of(name).into_string()),
        false => Cow::Borrowed(name),
    }
}

/// Refuses pods that name a replicated Job which their JobSet does not have: nothing says how many
/// of them start together.
pub(super) fn check_roles(
    gang: &GangName,
    roles: &[WorkloadRole],
    members: &[&Pod],
) -> Result<(), NotYet> {
    let named = |pod: &&Pod| pod.meta.labels.get(REPLICATED_JOB_NAME).map(str::to_owned);
    let is_there =
        |name: &str| roles.iter().any(|role| *role.name == *name || role.name == leaders_of(name));
    let unknown =
        members.iter().find_map(|pod| Some((pod, named(pod)?)).filter(|(_, name)| !is_there(name)));
    let Some((pod, name)) = unknown else { return Ok(()) };
    let known = roles.iter().map(|role| role.name.split('/').next().unwrap_or_default());
    let known: BTreeSet<&str> = known.collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    let problem = format!(
        "label {REPLICATED_JOB_NAME} of pod {} is `{name}`, but its replicated jobs with pods are \
         {known}: set one of these, or remove the pod from the jobset",
        pod.meta.name
    );
    Err(impossible(gang, problem))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{pod, read_workload};
    use super::super::{GangSource, gang_of};
    use super::*;

    fn member(replicated: &str, job: usize, index: usize, annotations: Value) -> Pod {
        let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train",
            "jobset.sigs.k8s.io/replicatedjob-name": replicated,
            "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
            "jobset.sigs.k8s.io/job-index": job.to_string(),
            "jobset.sigs.k8s.io/restart-attempt": "0",
            "batch.kubernetes.io/job-name": format!("train-{replicated}-{job}"),
            "batch.kubernetes.io/job-completion-index": index.to_string()});
        let meta = json!({"labels": labels, "annotations": annotations});
        pod(&format!("train-{replicated}-{job}-{index}"), json!({"metadata": meta}))
    }

    fn job_set(annotations: Value, order: &str) -> Option<Value> {
        let replicated = |name: &str, replicas: u32, pods: u32| {
            json!({"name": name, "replicas": replicas, "template": {"spec": {
                "parallelism": pods, "completions": pods, "completionMode": "Indexed"}}})
        };
        Some(json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "train", "namespace": "blue", "annotations": annotations},
            "spec": {"replicatedJobs": [replicated("driver", 1, 1), replicated("workers", 2, 4)],
                "startupPolicy": {"startupPolicyOrder": order}}}))
    }

    #[test]
    fn all_jobs_are_one_gang_whose_name_is_the_job_sets() {
        let members = [member("driver", 0, 0, json!({})), member("workers", 1, 3, json!({}))];
        let name = gang_of(&members[1]).unwrap().expect("a gang");
        assert_eq!(name.source, GangSource::Workload(WorkloadKind::JobSet));
        assert_eq!(name.to_string(), "jobset blue/train");
        let terms =
            read_workload(WorkloadKind::JobSet, job_set(json!({}), "AnyOrder"), &members).unwrap();
        let roles: Vec<(&str, u32)> =
            terms.roles.iter().map(|role| (&*role.name, role.min)).collect();
        assert_eq!((terms.min, terms.expected), (9, 9));
        assert_eq!(roles, [("driver", 1), ("workers", 8)]);
    }

    #[test]
    fn a_pod_of_a_replicated_job_that_is_not_there_is_told_with_those_that_are() {
        let members = [member("driver", 0, 0, json!({})), member("nope", 0, 0, json!({}))];
        for annotations in
            [json!({}), json!({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})]
        {
            let set = job_set(annotations, "AnyOrder");
            assert_eq!(
                read_workload(WorkloadKind::JobSet, set, &members).unwrap_err(),
                "jobset blue/train: label jobset.sigs.k8s.io/replicatedjob-name of pod train-nope-0-0 is `nope`, but \
                 its replicated jobs with pods are driver, workers: set one of these, or remove the pod from the \
                 jobset"
            );
        }
    }

    #[test]
    fn in_stages_only_what_has_appeared_is_waited_for() {
        let in_order = || job_set(json!({}), "InOrder");
        let driver = [member("driver", 0, 0, json!({}))];
        assert_eq!(read_workload(WorkloadKind::JobSet, in_order(), &driver).unwrap().min, 1);
        let both = [driver[0].clone(), member("workers", 0, 0, json!({}))];
        assert_eq!(read_workload(WorkloadKind::JobSet, in_order(), &both).unwrap().min, 9);
    }

    #[test]
    fn with_exclusive_domains_the_first_pods_go_first() {
        let marked = || json!({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"});
        let set = || job_set(marked(), "AnyOrder");
        let driver = member("driver", 0, 0, marked());
        let first = [driver.clone(), member("workers", 0, 0, marked())];
        let terms = read_workload(WorkloadKind::JobSet, set(), &first).unwrap();
        assert_eq!(terms.min, 3, "the driver and the first pod of each of two Jobs");
        let follower = [driver, first[1].clone(), member("workers", 0, 1, marked())];
        assert_eq!(read_workload(WorkloadKind::JobSet, set(), &follower).unwrap().min, 9);
    }
}
