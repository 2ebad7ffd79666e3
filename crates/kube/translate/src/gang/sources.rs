//! The sources of gangs: each states the name of a gang, and on what terms its pods start.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_model::TopologyRequest;
use dovetail_objects::{Kind, Meta, Pod, PodGroup, SubGroupPolicy, WorkloadKind, WorkloadObject};

use crate::not_yet::NotYet;

/// Annotation of a group or of its pods: what is done when a gang that runs falls below its
/// smallest size.
pub const ON_LOST_MEMBER: &str = "dovetail.dev/on-lost-member";

/// Whose words say that pods belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GangSource {
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

impl GangSource {
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
}

/// A gang, as its pods name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GangName {
    /// Namespace of all its pods.
    pub namespace: Box<str>,
    pub source: GangSource,
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
pub struct GangTerms {
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
    pub parts: RoleSource,
    /// Where all of them must or should be.
    pub topology: TopologyRequest,
    /// What is done when it stays below its smallest size.
    pub on_lost_member: OnLostMember,
}

/// How many pods of one role a gang needs to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleTerms {
    /// The role, as [`RoleSource::role_of`] says it.
    pub name: Box<str>,
    /// Fewest pods.
    pub min: u32,
    /// Where all of them must or should be, by themselves.
    pub topology: TopologyRequest,
}

impl RoleTerms {
    /// A role whose pods may be anywhere.
    pub(super) fn anywhere(name: &str, min: u32) -> Self {
        Self { name: name.into(), min, topology: TopologyRequest::default() }
    }
}

/// What describes the gangs of a source: the objects of one gang, as far as they exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct GangObjects<'a> {
    pub group: Option<&'a PodGroup>,
    /// The workload whose pods it has.
    pub workload: Option<&'a WorkloadObject>,
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

/// What tells which role a pod of a gang has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RoleSource {
    /// Its source: see [`GangSource::role_of`].
    #[default]
    Roles,
    /// KAI's label.
    SubGroups,
    /// Volcano's policies: a subgroup for each value of their labels.
    Policies(Box<[SubGroupPolicy]>),
    /// Its number among the pods of its role.
    Slices(Slices),
}

/// Sizes of the slices of roles that have some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slices(pub(super) BTreeMap<Box<str>, u32>);

/// That all members say the same about something.
pub(super) fn same<'a, T: PartialEq + fmt::Display>(
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
pub(super) fn count(
    gang: &GangName,
    annotation: &str,
    said: Option<&str>,
) -> Result<Option<u32>, NotYet> {
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

pub(super) fn impossible(gang: &GangName, problem: String) -> NotYet {
    NotYet::Gang { gang: gang.to_string(), problem }
}

/// What an annotation says, on the object that describes a gang or on all its pods.
pub(super) fn said<'a>(
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
                "annotation {annotation} is `{one}` on it and `{other}` on its pods: make them \
                 equal or keep only one"
            );
            Err(impossible(gang, problem))
        }
        (on_object, on_pods) => Ok(on_object.or(on_pods)),
    }
}

/// What the object that describes a gang, or else its first pod, says about lost members.
pub(super) fn on_lost_member(
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
