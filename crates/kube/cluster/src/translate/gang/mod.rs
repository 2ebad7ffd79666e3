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
pub(crate) mod topology;
mod workload;

use dovetail_objects::labels;
use std::borrow::Cow;
use std::fmt;

use dovetail_model::TopologyRequest;
use dovetail_objects::labels::{KAI_GROUP, VOLCANO_GROUP};
use dovetail_objects::{Kind, Meta, Pod, PodGroup, Workload, WorkloadKind};

pub use decision::{decision, decision_beside, gang_decision, size_beside, size_in};
pub(crate) use job::JOB_NAME;
pub use parts::Parts;
pub(crate) use plain::TERMS_OF_GANGS;
pub(crate) use workload::{check_apart, made_by};

use super::levels::KnownLevels;
use super::not_yet::NotYet;

/// Annotation of a group or of its pods: what is done when a gang that runs falls below its
/// smallest size.
pub const ON_LOST_MEMBER: &str = "dovetail.dev/on-lost-member";
/// Label of a pod: the queue it is in.
const QUEUE: &str = labels::QUEUE;

/// Whose words say that pods belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// `spec.schedulingGroup` and a PodGroup of `scheduling.k8s.io`.
    Native,
    /// The label `dovetail.dev/gang`.
    Plain,
    /// The label of scheduler-plugins' coscheduling, and its PodGroup.
    SchedulerPlugins,
    /// Volcano's annotation, and its PodGroup.
    Volcano,
    /// KAI's annotation, and its PodGroup.
    Kai,
    /// Kueue's label for groups of plain pods.
    Kueue,
    /// Labels that the controller of a workload writes.
    Workload(WorkloadKind),
}

impl Source {
    /// The sources by which a pod names its gang itself.
    pub const NAMED: [Self; 6] =
        [Self::Native, Self::Plain, Self::SchedulerPlugins, Self::Volcano, Self::Kai, Self::Kueue];

    /// The source whose groups are objects of this kind.
    pub fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::PodGroup => Some(Self::Native),
            Kind::CoschedulingGroup => Some(Self::SchedulerPlugins),
            Kind::VolcanoGroup => Some(Self::Volcano),
            Kind::KaiGroup => Some(Self::Kai),
            Kind::Workload(kind) => Some(Self::Workload(kind)),
            _ => None,
        }
    }

    /// What people call a gang of this source.
    fn noun(self) -> &'static str {
        match self {
            Self::Native => "podgroup",
            Self::Plain => "gang",
            Self::SchedulerPlugins => "podgroup.scheduling.x-k8s.io",
            Self::Volcano => "podgroup.scheduling.volcano.sh",
            Self::Kai => "podgroup.scheduling.run.ai",
            Self::Kueue => "Kueue pod group",
            Self::Workload(kind) => kind.noun(),
        }
    }

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

/// A gang, as its pods name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GangName {
    /// Namespace of all its pods.
    pub namespace: Box<str>,
    /// Whose name it is.
    pub source: Source,
    /// Name, unique in the namespace for the source.
    pub name: Box<str>,
    /// Which gang of several that are described by one object of this name; empty if it is the only
    /// one.
    pub part: Box<str>,
}

impl fmt::Display for GangName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}/{}", self.source.noun(), self.namespace, self.name)?;
        if self.part.is_empty() { Ok(()) } else { write!(out, " group {}", self.part) }
    }
}

/// On what terms the pods of a gang start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Fewest pods that start together; 0: each starts by itself.
    pub min: u32,
    /// Whether that grows, because roles come one after the other.
    pub in_stages: bool,
    /// Pods that are waited for, for a while, before fewer start; at least `min`.
    pub expected: u32,
    /// Most pods that may run at a time; `None` is no limit.
    pub max: Option<u32>,
    /// Fewest pods of some roles.
    pub roles: Vec<RoleTerms>,
    /// What tells the roles.
    pub parts: Parts,
    /// Where all of them must or should be.
    pub topology: TopologyRequest,
    /// What is done when it stays below its smallest size.
    pub on_lost_member: OnLostMember,
}

/// How many pods of one role a gang needs to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleTerms {
    /// The role, as [`Parts::role_of`] says it.
    pub name: Box<str>,
    /// Fewest pods.
    pub min: u32,
    /// Where all of them must or should be, by themselves.
    pub topology: TopologyRequest,
}

impl RoleTerms {
    /// A role whose pods may be anywhere.
    fn anywhere(name: &str, min: u32) -> Self {
        Self { name: name.into(), min, topology: TopologyRequest::default() }
    }
}

/// What describes the gangs of a source: the objects of one gang, as far as they exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described<'a> {
    /// Its group.
    pub group: Option<&'a PodGroup>,
    /// The workload whose pods it has.
    pub workload: Option<&'a Workload>,
}

/// What is done about a gang of which some pods have nodes, fewer than its smallest size, and for
/// whose other pods there is no room for a stated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLostMember {
    /// If it never had its size, its pods are deleted, so that their owner makes them anew and they
    /// start together; if it had, it goes on waiting.
    #[default]
    Wait,
    /// Its pods are deleted in both cases.
    Restart,
    /// Its pods are kept in both cases.
    Keep,
}

/// The gang that a pod belongs to.
///
/// # Errors
/// When it names two gangs, of two sources or of one.
pub fn gang_of(pod: &Pod) -> Result<Option<GangName>, NotYet> {
    let gang = |source: Source, name: &str| GangName {
        namespace: pod.meta.namespace.clone(),
        source,
        name: name.into(),
        part: Box::default(),
    };
    let named = Source::NAMED.into_iter();
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
    described: Described<'_>,
    members: &[&Pod],
    levels: KnownLevels<'_>,
) -> Result<Terms, NotYet> {
    agree(gang, members)?;
    let group = described.group;
    let object = || group.ok_or_else(|| NotYet::GroupMissing { group: gang.to_string() });
    let terms = match gang.source {
        Source::Native => native::terms(gang, object()?, members)?,
        Source::Plain => plain::terms(gang, members)?,
        Source::Kueue => kueue::terms(gang, members)?,
        Source::SchedulerPlugins | Source::Volcano | Source::Kai => {
            let group = object()?;
            let terms = min_member::terms(gang, group, members)?;
            let terms = parts::divide(gang, group, members, levels, terms)?;
            sizes::beside_group(gang, "spec.minMember", &group.meta, members, terms)?
        }
        Source::Workload(kind) => workload::terms(gang, kind, described.workload, members)?,
    };
    let terms = slices::divide(gang, members, levels, terms)?;
    let meta = group.map(|group| &group.meta);
    let meta = meta.or(described.workload.map(|workload| &workload.meta));
    let topology = topology::of_gang(gang, meta, group, members, levels)?;
    Ok(Terms { topology, ..terms })
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

/// That all members say the same about something.
fn same<'a, T: PartialEq + fmt::Display>(
    gang: &GangName,
    members: &[&'a Pod],
    what: &str,
    of: impl Fn(&'a Pod) -> T,
) -> Result<(), NotYet> {
    let mut all = members.iter().map(|pod| (pod, of(pod)));
    let Some((one, its_value)) = all.next() else { return Ok(()) };
    match all.find(|(_, value)| *value != its_value) {
        None => Ok(()),
        Some((other, other_value)) => Err(NotYet::MembersDiffer {
            gang: gang.to_string(),
            what: what.to_owned(),
            one: format!("{} has `{its_value}`", one.meta.name),
            other: format!("{} has `{other_value}`", other.meta.name),
        }),
    }
}

/// A number of pods in an annotation: digits and nothing else.
fn count(gang: &GangName, annotation: &str, said: Option<&str>) -> Result<Option<u32>, NotYet> {
    let Some(text) = said else { return Ok(None) };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(count) if is_plain && count > 0 => Ok(Some(count)),
        _ => {
            let most = u32::MAX;
            let problem =
                format!("annotation {annotation} is `{text}`: write a number from 1 to {most}");
            Err(impossible(gang, problem))
        }
    }
}

fn impossible(gang: &GangName, problem: String) -> NotYet {
    NotYet::Gang { gang: gang.to_string(), problem }
}

/// What an annotation says, on the object that describes a gang or on all its pods.
fn said<'a>(
    gang: &GangName,
    object: &'a Meta,
    members: &[&'a Pod],
    annotation: &str,
) -> Result<Option<&'a str>, NotYet> {
    same(gang, members, annotation, |pod| pod.meta.annotations.get(annotation).unwrap_or(""))?;
    let on_object = object.annotations.get(annotation);
    let on_pods = members.first().and_then(|pod| pod.meta.annotations.get(annotation));
    match (on_object, on_pods) {
        (Some(one), Some(other)) if one != other => {
            let problem = format!(
                "annotation {annotation} is `{one}` on it and `{other}` on its pods: make them equal \
                 or leave one"
            );
            Err(impossible(gang, problem))
        }
        (on_object, on_pods) => Ok(on_object.or(on_pods)),
    }
}

/// What the object that describes a gang, or else its first pod, says about lost members.
fn on_lost_member(
    gang: &GangName,
    object: Option<&Meta>,
    members: &[&Pod],
) -> Result<OnLostMember, NotYet> {
    let of_group = object.and_then(|meta| meta.annotations.get(ON_LOST_MEMBER));
    let of_pod = || members.first().and_then(|pod| pod.meta.annotations.get(ON_LOST_MEMBER));
    match of_group.or_else(of_pod) {
        None | Some("wait") => Ok(OnLostMember::Wait),
        Some("restart") => Ok(OnLostMember::Restart),
        Some("keep") => Ok(OnLostMember::Keep),
        Some(other) => {
            let known = "write wait, restart or keep";
            Err(impossible(gang, format!("annotation {ON_LOST_MEMBER} is `{other}`: {known}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_objects::Object;
    use serde_json::{Value, json};

    use super::*;
    use crate::translate::levels::{LevelLabels, Levels, Rivals};

    pub(super) fn pod(name: &str, json: Value) -> Pod {
        let mut json = json;
        json["metadata"]["name"] = json!(name);
        json["metadata"]["namespace"] = json!("blue");
        serde_json::from_value(json).unwrap()
    }

    /// The terms, or what people read instead.
    pub(super) fn read(group: Option<Value>, pods: &[Pod]) -> Result<Terms, String> {
        let group: Option<PodGroup> = group.map(|group| serde_json::from_value(group).unwrap());
        let labels = ["example.com/rack", "hypernode:1"].map(str::to_owned).to_vec();
        let rack = LevelLabels { name: "rack".into(), labels };
        let levels = Levels::new(vec![rack]).unwrap();
        let described = Described { group: group.as_ref(), workload: None };
        read_described(described, pods, &levels)
    }

    /// The terms of a gang whose pods a workload has made, or what people read instead.
    pub(super) fn read_workload(
        kind: WorkloadKind,
        workload: Option<Value>,
        pods: &[Pod],
    ) -> Result<Terms, String> {
        let read = |value: Value| {
            let object = Object::read(Kind::Workload(kind), value.to_string().as_bytes());
            let Object::Workload(_, workload) = object else { panic!("{object:?}") };
            *workload
        };
        let workload = workload.map(read);
        let described = Described { group: None, workload: workload.as_ref() };
        read_described(described, pods, &Levels::default())
    }

    fn read_described(
        described: Described<'_>,
        pods: &[Pod],
        levels: &Levels,
    ) -> Result<Terms, String> {
        let gang = gang_of(&pods[0]).map_err(|refused| refused.to_string())?.expect("a gang");
        let pods: Vec<&Pod> = pods.iter().collect();
        let levels = KnownLevels { levels, carried: u32::MAX, rivals: &Rivals::new() };
        terms(&gang, described, &pods, levels).map_err(|refused| refused.to_string())
    }

    #[test]
    fn what_a_pod_says_itself_is_stronger_than_who_made_it() {
        let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train", "dovetail.dev/gang": "a"});
        let gang = gang_of(&pod("p", json!({"metadata": {"labels": labels}})));
        assert_eq!(gang.unwrap().map(|gang| gang.source), Some(Source::Plain));
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
            "the pod belongs to podgroup.scheduling.volcano.sh blue/v5 and to podgroup.scheduling.volcano.sh blue/v6: \
             leave it in one of them"
        );
    }

    #[test]
    fn a_pod_is_in_one_gang_or_in_none() {
        assert_eq!(gang_of(&pod("p", json!({}))), Ok(None));
        let both = json!({"metadata": {"labels": {"dovetail.dev/gang": "a"}},
            "spec": {"schedulingGroup": {"podGroupName": "b"}}});
        assert_eq!(
            gang_of(&pod("p", both)).unwrap_err().to_string(),
            "the pod belongs to podgroup blue/b and to gang blue/a: leave it in one of them"
        );
    }
}
