//! Pods of workloads: JobSet, LeaderWorkerSet, indexed Job, Kubeflow, Ray. Labels of a pod name the
//! workload and the pod's role; the workload says how many pods of each role start together.
//!
//! A pod that names a gang by itself belongs to that one: what is said on purpose is stronger than
//! what follows from who made the pod. Of two workloads, one of which made the other, the outer one
//! counts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use dovetail_objects::{Pod, WorkloadKind, WorkloadObject, WorkloadRole};

use super::plain::{MIN_MEMBERS, TERMS_OF_GANGS};
use super::{
    GangName, GangSource, GangTerms, NotYet, RoleTerms, count, impossible, job, job_set, kubeflow,
    leader_worker_set, on_lost_member, ray, said, sizes,
};

/// The workload that a pod says it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership<'a> {
    pub(super) kind: WorkloadKind,
    pub(super) name: &'a str,
    /// Which of several gangs of the workload.
    pub(super) part: &'a str,
}

impl<'a> Membership<'a> {
    /// In the only gang of a workload; `None` without a name.
    pub(super) fn whole(kind: WorkloadKind, name: Option<&'a str>) -> Option<Self> {
        let name = name.filter(|name| !name.is_empty())?;
        Some(Self { kind, name, part: "" })
    }
}

/// The gang that a pod belongs to by its workload.
pub(super) fn gang_of(pod: &Pod) -> Option<GangName> {
    let Membership { kind, name, part } = membership(pod)?;
    Some(GangName {
        namespace: pod.meta.namespace.clone(),
        source: GangSource::Workload(kind),
        name: name.into(),
        part: part.into(),
    })
}

fn membership(pod: &Pod) -> Option<Membership<'_>> {
    job_set::membership(pod)
        .or_else(|| leader_worker_set::membership(pod))
        .or_else(|| kubeflow::membership(pod))
        .or_else(|| ray::membership(pod))
        .or_else(|| job::membership(pod))
}

/// The workloads that made a pod, by its labels, whichever gang it is in: the outer one, and its
/// Job.
pub fn made_by(pod: &Pod) -> impl Iterator<Item = (WorkloadKind, &str)> {
    let outer = membership(pod).map(|Membership { kind, name, .. }| (kind, name));
    let job = pod.meta.labels.get(job::JOB_NAME).map(|name| (WorkloadKind::Job, name));
    outer.into_iter().chain(job)
}

pub(super) fn role_of(kind: WorkloadKind, pod: &Pod) -> Cow<'_, str> {
    match kind {
        WorkloadKind::Job => Cow::Borrowed(""),
        WorkloadKind::JobSet => job_set::role_of(pod),
        WorkloadKind::LeaderWorkerSet => Cow::Borrowed(leader_worker_set::role_of(pod)),
        WorkloadKind::RayCluster => Cow::Borrowed(ray::role_of(pod)),
        _ => Cow::Borrowed(kubeflow::role_of(pod)),
    }
}

pub(super) fn terms(
    gang: &GangName,
    kind: WorkloadKind,
    workload: Option<&WorkloadObject>,
    members: &[&Pod],
) -> Result<GangTerms, NotYet> {
    let owner = || gang.to_string();
    let workload = workload.ok_or_else(|| NotYet::WorkloadMissing { workload: owner() })?;
    if workload.suspended {
        return Err(NotYet::WorkloadSuspended { workload: owner() });
    }
    let all = match kind {
        WorkloadKind::LeaderWorkerSet => leader_worker_set::roles(gang, workload, members)?,
        _ => workload.roles.to_vec(),
    };
    if kind == WorkloadKind::JobSet {
        job_set::check_roles(gang, &all, members)?;
    }
    let there: BTreeSet<Cow<'_, str>> = members.iter().map(|pod| role_of(kind, pod)).collect();
    let counts = |role: &&WorkloadRole| !workload.in_stages || there.contains(&*role.name);
    let counted: Vec<&WorkloadRole> = all.iter().filter(counts).collect();
    let expected = sum(counted.iter().map(|role| role.pods));
    let pods = sum(all.iter().map(|role| role.pods));
    sizes::check_most(gang, &size_of(kind, workload, pods), Some(&workload.meta), members, pods)?;
    let (min, roles) = match said_min(gang, kind, workload, members, pods)? {
        Some(min) => (min.min(expected), Vec::new()),
        None => {
            let terms = |role: &&WorkloadRole| RoleTerms::anywhere(&role.name, role.min);
            (sum(counted.iter().map(|role| role.min)), counted.iter().map(terms).collect())
        }
    };
    Ok(GangTerms {
        min,
        in_stages: workload.in_stages,
        expected,
        max: None,
        roles,
        on_lost_member: on_lost_member(gang, Some(&workload.meta), members)?,
        ..GangTerms::default()
    })
}

/// The smallest size that is said beside the roles, of which there are `pods` pods.
fn said_min(
    gang: &GangName,
    kind: WorkloadKind,
    workload: &WorkloadObject,
    members: &[&Pod],
    pods: u32,
) -> Result<Option<u32>, NotYet> {
    const MIN_AVAILABLE: &str = "spec.runPolicy.schedulingPolicy.minAvailable";
    let annotated = said(gang, &workload.meta, members, MIN_MEMBERS)?;
    let annotated = count(gang, MIN_MEMBERS, annotated)?;
    let (min, what) = match (annotated, workload.min) {
        (None, None) => return Ok(None),
        (Some(one), Some(other)) if one != other => {
            let problem = format!(
                "annotation {MIN_MEMBERS} is {one} and {MIN_AVAILABLE} is {other}: keep only one"
            );
            return Err(impossible(gang, problem));
        }
        (Some(min), _) => (min, format!("annotation {MIN_MEMBERS}")),
        (None, Some(min)) => (min, MIN_AVAILABLE.to_owned()),
    };
    // Pods that start one by one are as good as a gang of one.
    if min == 1 && !workload.apart.is_empty() {
        return Ok(None);
    }
    match min > pods {
        true => {
            let own = size_of(kind, workload, pods);
            Err(impossible(gang, format!("{what} is {min}, and {own}")))
        }
        false => Ok(Some(min)),
    }
}

/// What a workload says about how many pods there are.
fn size_of(kind: WorkloadKind, workload: &WorkloadObject, pods: u32) -> String {
    match (kind, &*workload.apart) {
        (WorkloadKind::Job, "") => format!("its spec.parallelism is {pods}"),
        (_, "") => format!("its replicas are {pods} pods"),
        (_, why) => format!("its pods do not start together, because {why}"),
    }
}

/// That a workload whose pods do not start together, and are in no gang of it, does not say on what
/// terms they do.
pub fn check_apart(kind: WorkloadKind, workload: &WorkloadObject) -> Result<(), NotYet> {
    let meta = &workload.meta;
    let said = |name: &&str| meta.annotations.get(name).is_some_and(|value| value != "1");
    let Some(annotation) = TERMS_OF_GANGS.into_iter().find(said) else { return Ok(()) };
    let gang = format!("{} {}/{}", kind.noun(), meta.namespace, meta.name);
    let why = match &*workload.apart {
        "" => "they have no index labels",
        why => why,
    };
    let problem = format!(
        "annotation {annotation} defines how its pods start together, but they do not, because \
         {why}: name a gang in \
         label dovetail.dev/gang of the pods, or remove the annotation"
    );
    Err(NotYet::Gang { gang, problem })
}

fn sum(counts: impl Iterator<Item = u32>) -> u32 {
    counts.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{pod, read_workload};
    use super::*;

    fn py_torch_job(annotations: Value, run_policy: Value) -> Value {
        let replicas = json!({"Master": {"replicas": 1}, "Worker": {"replicas": 3}});
        json!({"metadata": {"name": "train", "namespace": "blue", "annotations": annotations},
            "spec": {"pytorchReplicaSpecs": replicas, "runPolicy": run_policy}})
    }

    fn member(role: &str, annotations: Value) -> Pod {
        let labels = json!({"training.kubeflow.org/job-name": "train",
            "training.kubeflow.org/operator-name": "pytorchjob-controller",
            "training.kubeflow.org/replica-type": role});
        pod(role, json!({"metadata": {"labels": labels, "annotations": annotations}}))
    }

    fn read(job: Option<Value>, members: &[Pod]) -> Result<GangTerms, String> {
        read_workload(WorkloadKind::PyTorchJob, job, members)
    }

    #[test]
    fn settings_that_cannot_all_hold_are_named() {
        let members = [member("master", json!({}))];
        let refused = |annotations: Value, min_available: Value| {
            let policy = json!({"schedulingPolicy": {"minAvailable": min_available}});
            read(Some(py_torch_job(annotations, policy)), &members).unwrap_err()
        };
        assert_eq!(
            refused(json!({}), json!(5)),
            "pytorchjob blue/train: spec.runPolicy.schedulingPolicy.minAvailable is 5, and its \
             replicas are 4 pods"
        );
        let three = json!({"dovetail.dev/min-members": "3"});
        assert_eq!(
            refused(three.clone(), json!(2)),
            "pytorchjob blue/train: annotation dovetail.dev/min-members is 3 and \
             spec.runPolicy.schedulingPolicy.minAvailable is 2: keep only one"
        );
        let policy = json!({});
        let pods = [member("master", json!({"dovetail.dev/min-members": "2"}))];
        assert_eq!(
            read(Some(py_torch_job(three, policy)), &pods).unwrap_err(),
            "pytorchjob blue/train: annotation dovetail.dev/min-members is `3` on it and `2` on its \
             pods: make them equal or keep only one"
        );
    }

    #[test]
    fn an_annotation_says_that_fewer_will_do() {
        let one = json!({"dovetail.dev/min-members": "1"});
        let members = [member("master", json!({})), member("worker", json!({}))];
        let terms = read(Some(py_torch_job(one, json!({}))), &members).unwrap();
        assert_eq!((terms.min, terms.expected, terms.roles), (1, 4, vec![]));
        let terms = read(Some(py_torch_job(json!({}), json!({}))), &members).unwrap();
        assert_eq!((terms.min, terms.expected), (4, 4));
    }

    #[test]
    fn without_its_workload_or_while_that_is_suspended_a_pod_waits() {
        let members = [member("master", json!({}))];
        assert_eq!(
            read(None, &members).unwrap_err(),
            "pytorchjob blue/train does not exist, and only it defines how many pods start \
             together: create it, or remove its name from the pod's labels"
        );
        let suspended = py_torch_job(json!({}), json!({"suspend": true}));
        assert_eq!(
            read(Some(suspended), &members).unwrap_err(),
            "pytorchjob blue/train is suspended: its pods wait until it is resumed"
        );
    }
}
