//! Gangs: which pods start together, and on what terms.
//!
//! A pod says by a field or a label which gang it belongs to; how many start together stands with a
//! group object, with the pods themselves, or with the workload that made them. Each source has a
//! file of its own. A pod that names gangs of two sources is refused, and so is a gang whose
//! members do not fit together.

mod decision;
mod job;
mod job_set;
mod kubeflow;
mod kueue;
mod leader_worker_set;
mod min_member;
mod native;
pub(crate) mod parts;
mod plain;
mod priority;
mod ray;
mod sizes;
mod slices;
mod sources;
pub mod topology;
mod workload;

use dovetail_objects::labels;
use std::borrow::Cow;

use dovetail_objects::Pod;
use dovetail_objects::labels::{KAI_GROUP, VOLCANO_GROUP};

pub use decision::{decision, decision_beside, gang_decision, size_beside, size_in};
pub use job::JOB_NAME;
pub use plain::TERMS_OF_GANGS;
pub use sources::{
    GangName, GangObjects, GangSource, GangTerms, ON_LOST_MEMBER, OnLostMember, RoleSource,
    RoleTerms, Slices,
};
use sources::{count, impossible, on_lost_member, said, same};
pub use workload::{check_apart, made_by};

use super::levels::KnownLevels;
use super::not_yet::NotYet;

/// Label of a pod: the queue it is in.
const QUEUE: &str = labels::QUEUE;

impl GangSource {
    /// The role of a pod in its gang of this source; empty if it has none.
    pub fn role_of(self, pod: &Pod) -> Cow<'_, str> {
        match self {
            Self::Volcano => Cow::Borrowed(min_member::task_of(pod)),
            Self::Workload(kind) => workload::role_of(kind, pod),
            _ => Cow::Borrowed(""),
        }
    }

    /// The names of gangs that the pod itself names by this source, one for each way to do so;
    /// empty where it does not.
    fn names_in(self, pod: &Pod) -> [&str; 2] {
        let annotated = |key: &str| pod.meta.annotations.get(key).unwrap_or("");
        match self {
            Self::Native => [native::name_in(pod), ""],
            Self::Plain => [plain::name_in(pod), ""],
            Self::SchedulerPlugins => {
                [pod.meta.labels.get(labels::COSCHEDULING_GROUP).unwrap_or(""), ""]
            }
            Self::Volcano => VOLCANO_GROUP.map(annotated),
            Self::Kai => [annotated(KAI_GROUP), ""],
            Self::Kueue => [kueue::name_in(pod), ""],
            Self::Workload(_) => ["", ""],
        }
    }
}

/// The gang that a pod belongs to.
///
/// # Errors
/// When it names two gangs, of two sources or of one.
pub fn gang_of(pod: &Pod) -> Result<Option<GangName>, NotYet> {
    let gang = |source: GangSource, name: &str| GangName {
        namespace: pod.meta.namespace.clone(),
        source,
        name: name.into(),
        part: Box::default(),
    };
    let named = GangSource::NAMED.into_iter();
    let named = named.flat_map(|source| source.names_in(pod).map(|name| (source, name)));
    let mut named = named.filter(|(_, name)| !name.is_empty());
    let Some((source, name)) = named.next() else { return Ok(workload::gang_of(pod)) };
    match named.find(|other| *other != (source, name)) {
        Some((other, its_name)) => Err(NotYet::TwoGangs {
            one: gang(source, name).to_string(),
            other: gang(other, its_name).to_string(),
        }),
        None => Ok(Some(gang(source, name))),
    }
}

/// The terms of a gang. `members` are its pods that are not over, in a fixed order and at least
/// one; `described` are its objects, where its source has some.
///
/// # Errors
/// When the group is missing, or what it and the members say cannot all hold.
pub fn terms(
    gang: &GangName,
    described: GangObjects<'_>,
    members: &[&Pod],
    levels: KnownLevels<'_>,
) -> Result<GangTerms, NotYet> {
    agree(gang, members)?;
    let group = described.group;
    let object = || group.ok_or_else(|| NotYet::GroupMissing { group: gang.to_string() });
    let terms = match gang.source {
        GangSource::Native => native::terms(gang, object()?, members)?,
        GangSource::Plain => plain::terms(gang, members)?,
        GangSource::Kueue => kueue::terms(gang, members)?,
        GangSource::SchedulerPlugins | GangSource::Volcano | GangSource::Kai => {
            let group = object()?;
            let terms = min_member::terms(gang, group, members)?;
            let terms = parts::divide(gang, group, members, levels, terms)?;
            sizes::beside_group(gang, "spec.minMember", &group.meta, members, terms)?
        }
        GangSource::Workload(kind) => workload::terms(gang, kind, described.workload, members)?,
    };
    let terms = slices::divide(gang, members, levels, terms)?;
    let meta = group.map(|group| &group.meta);
    let meta = meta.or(described.workload.map(|workload| &workload.meta));
    let topology = topology::of_gang(gang, meta, group, members, levels)?;
    Ok(GangTerms { topology, ..terms })
}

/// What holds for gangs of every source: all members have the same scheduler, priority and queue.
fn agree(gang: &GangName, members: &[&Pod]) -> Result<(), NotYet> {
    let Some(first) = members.first() else { return Ok(()) };
    same(gang, members, "priority", |pod| pod.priority)?;
    same(gang, members, "queue", |pod| pod.meta.labels.get(QUEUE).unwrap_or(""))?;
    // Who bound a pod does not matter once it has a node.
    let unbound: Vec<&Pod> = members.iter().filter(|pod| pod.node.is_empty()).copied().collect();
    let unbound = if unbound.is_empty() { vec![*first] } else { unbound };
    same(gang, &unbound, "scheduler", |pod| &*pod.scheduler)
}

#[cfg(test)]
mod tests {
    use dovetail_objects::{Kind, Object, PodGroup, WorkloadKind};
    use serde_json::{Value, json};

    use super::*;
    use crate::levels::{LevelLabels, Rivals, TopologyLevels};

    pub(super) fn pod(name: &str, json: Value) -> Pod {
        let mut json = json;
        json["metadata"]["name"] = json!(name);
        json["metadata"]["namespace"] = json!("blue");
        serde_json::from_value(json).unwrap()
    }

    /// The terms, or what people read instead.
    pub(super) fn read(group: Option<Value>, pods: &[Pod]) -> Result<GangTerms, String> {
        let group: Option<PodGroup> = group.map(|group| serde_json::from_value(group).unwrap());
        let labels = ["example.com/rack", "hypernode:1"].map(str::to_owned).to_vec();
        let rack = LevelLabels { name: "rack".into(), labels };
        let levels = TopologyLevels::new(vec![rack]).unwrap();
        let described = GangObjects { group: group.as_ref(), workload: None };
        read_described(described, pods, &levels)
    }

    /// The terms of a gang whose pods a workload has made, or what people read instead.
    pub(super) fn read_workload(
        kind: WorkloadKind,
        workload: Option<Value>,
        pods: &[Pod],
    ) -> Result<GangTerms, String> {
        let read = |value: Value| {
            let object = Object::read(Kind::Workload(kind), value.to_string().as_bytes());
            let Object::Workload(_, workload) = object else { panic!("{object:?}") };
            *workload
        };
        let workload = workload.map(read);
        let described = GangObjects { group: None, workload: workload.as_ref() };
        read_described(described, pods, &TopologyLevels::default())
    }

    fn read_described(
        described: GangObjects<'_>,
        pods: &[Pod],
        levels: &TopologyLevels,
    ) -> Result<GangTerms, String> {
        let gang = gang_of(&pods[0]).map_err(|refused| refused.to_string())?.expect("a gang");
        let pods: Vec<&Pod> = pods.iter().collect();
        let levels = KnownLevels { levels, carried: u32::MAX, rivals: &Rivals::new() };
        terms(&gang, described, &pods, levels).map_err(|refused| refused.to_string())
    }

    #[test]
    fn what_a_pod_says_itself_is_stronger_than_who_made_it() {
        let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train", "dovetail.dev/gang": "a"});
        let gang = gang_of(&pod("p", json!({"metadata": {"labels": labels}})));
        assert_eq!(gang.unwrap().map(|gang| gang.source), Some(GangSource::Plain));
        // Of workloads that made each other the outer one counts.
        let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train",
            "batch.kubernetes.io/job-name": "train-workers-0",
            "batch.kubernetes.io/job-completion-index": "0"});
        let gang = gang_of(&pod("p", json!({"metadata": {"labels": labels}})));
        assert_eq!(gang.unwrap().expect("a gang").to_string(), "jobset blue/train");
    }

    #[test]
    fn a_pod_that_names_two_groups_of_volcano_is_in_none() {
        let gang = |one: &str, other: &str| {
            let annotations = json!({"scheduling.k8s.io/group-name": one,
                "scheduling.volcano.sh/group-name": other});
            let gang = gang_of(&pod("p", json!({"metadata": {"annotations": annotations}})));
            gang.map(|gang| gang.expect("a gang").name).map_err(|refused| refused.to_string())
        };
        assert_eq!(gang("v5", "v5"), Ok("v5".into()));
        assert_eq!(gang("", "v6"), Ok("v6".into()));
        assert_eq!(
            gang("v5", "v6").unwrap_err(),
            "the pod belongs to podgroup.scheduling.volcano.sh blue/v5 and to \
             podgroup.scheduling.volcano.sh blue/v6: remove it from one of them"
        );
    }

    #[test]
    fn a_pod_is_in_one_gang_or_in_none() {
        assert_eq!(gang_of(&pod("p", json!({}))), Ok(None));
        let both = json!({"metadata": {"labels": {"dovetail.dev/gang": "a"}},
            "spec": {"schedulingGroup": {"podGroupName": "b"}}});
        assert_eq!(
            gang_of(&pod("p", both)).unwrap_err().to_string(),
            "the pod belongs to podgroup blue/b and to gang blue/a: remove it from one of them"
        );
    }
}
