//! The objects that describe gangs: groups of pods, and workloads.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_objects::{Kind, Labels, Meta, Pod, PodGroup, WorkloadKind, WorkloadObject, labels};

use super::listing::Key;
use dovetail_translate::gang::{
    GangName, GangObjects, GangSource, JOB_NAME, TERMS_OF_GANGS, check_apart, made_by,
};
use dovetail_translate::{NotYet, time_limit_ms};

/// Objects by namespace and name.
type ByNamespace<T> = BTreeMap<Box<str>, BTreeMap<Box<str>, T>>;

/// The groups and the workloads.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    groups: BTreeMap<GangName, PodGroup>,
    workloads: BTreeMap<WorkloadKind, ByNamespace<WorkloadObject>>,
    /// The Jobs and JobSets that dovetail has suspended.
    suspended_by_us: BTreeSet<(WorkloadKind, Key)>,
}

/// Which pods a workload concerns that is there, different, or gone, beside those of its gangs.
#[derive(Debug)]
pub(crate) struct WorkloadNoted {
    /// It was suspended, or is not any more: all that it made.
    pub(crate) is_turned: bool,
    /// It says something else about pods that are in no gang of it.
    pub(crate) concerns_others: bool,
}

impl Descriptions {
    /// The object of a gang.
    pub(crate) fn group(&self, kind: Kind, namespace: &str, name: &str) -> Option<&PodGroup> {
        self.groups.get(&key(kind, namespace, name)?)
    }

    pub(crate) fn group_of(&self, gang: &GangName) -> Option<&PodGroup> {
        self.groups.get(gang)
    }

    pub(crate) fn groups(&self, kind: Kind) -> impl Iterator<Item = &PodGroup> {
        let source = GangSource::of(kind);
        let of_source = self.groups.iter().filter(move |(name, _)| Some(name.source) == source);
        of_source.map(|(_, group)| group)
    }

    pub(crate) fn workload(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> Option<&WorkloadObject> {
        self.workloads.get(&kind)?.get(namespace)?.get(name)
    }

    /// The Jobs and JobSets that dovetail has suspended, each with its annotation that says so.
    pub(crate) fn suspended_by_us(
        &self,
    ) -> impl Iterator<Item = (WorkloadKind, &WorkloadObject, &str)> {
        self.suspended_by_us.iter().filter_map(move |(kind, (namespace, name))| {
            let job = self.workload(*kind, namespace, name)?;
            Some((*kind, job, mark(job)?))
        })
    }

    /// Namespaces and names of all workloads of a kind.
    pub(crate) fn workload_names(&self, kind: WorkloadKind) -> impl Iterator<Item = Key> + '_ {
        let of_kind = self.workloads.get(&kind).into_iter().flatten();
        of_kind.flat_map(|(namespace, all)| {
            all.keys().map(move |name| (namespace.clone(), name.clone()))
        })
    }

    /// The workload whose pods a gang has.
    fn workload_of(&self, gang: &GangName) -> Option<&WorkloadObject> {
        match gang.source {
            GangSource::Workload(kind) => self.workload(kind, &gang.namespace, &gang.name),
            _ => None,
        }
    }

    pub(crate) fn of(&self, gang: &GangName) -> GangObjects<'_> {
        GangObjects { group: self.groups.get(gang), workload: self.workload_of(gang) }
    }

    /// Labels of the object of a gang: its group, or the workload whose pods it has.
    pub(crate) fn labels(&self, gang: &GangName) -> Option<&Labels> {
        let group = self.groups.get(gang).map(|group| &group.meta.labels);
        group.or_else(|| Some(&self.workload_of(gang)?.meta.labels))
    }

    /// The object that describes a gang, if one does.
    pub(crate) fn object_of(&self, gang: &GangName) -> Option<(Kind, &Meta)> {
        let kind = kind_of(gang)?;
        let group = self.groups.get(gang).map(|group| &group.meta);
        let meta = group.or_else(|| Some(&self.workload_of(gang)?.meta))?;
        Some((kind, meta))
    }

    /// The outer one of the workloads that made a pod, of those that are there.
    pub(crate) fn maker_of(&self, pod: &Pod) -> Option<(Kind, &WorkloadObject)> {
        let namespace = &pod.meta.namespace;
        made_by(pod).find_map(|(kind, name)| {
            Some((Kind::Workload(kind), self.workload(kind, namespace, name)?))
        })
    }

    /// After how long a pod is ended, by itself or by any of the workloads that made it.
    pub(crate) fn time_limit_ms(&self, pod: &Pod) -> Option<u64> {
        let namespace = &pod.meta.namespace;
        let makers = made_by(pod).filter_map(|(kind, name)| self.workload(kind, namespace, name));
        let of_makers = makers.filter_map(limit_ms).min();
        let own = time_limit_ms(&pod.meta, pod.active_deadline_s);
        own.into_iter().chain(of_makers).min()
    }

    pub(crate) fn shortest_limit_ms<'p>(&self, pods: impl Iterator<Item = &'p Pod>) -> Option<u64> {
        pods.filter_map(|pod| self.time_limit_ms(pod)).min()
    }

    /// Name, identity and annotations of a group or a workload.
    pub(crate) fn meta(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Meta> {
        match kind {
            Kind::Workload(kind) => Some(&self.workload(kind, namespace, name)?.meta),
            _ => Some(&self.group(kind, namespace, name)?.meta),
        }
    }

    /// A gang's object is there or different; which gang, and whether it may name another queue.
    pub(crate) fn put_group(&mut self, kind: Kind, group: PodGroup) -> Option<(GangName, bool)> {
        let name = key(kind, &group.meta.namespace, &group.meta.name)?;
        let labels = group.meta.labels.clone();
        let before = self.groups.insert(name.clone(), group);
        Some((name, before.is_none_or(|before| before.meta.labels != labels)))
    }

    /// A gang's object is gone; which gang.
    pub(crate) fn remove_group(
        &mut self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Option<GangName> {
        let name = key(kind, namespace, name)?;
        self.groups.remove(&name);
        Some(name)
    }

    /// A workload is there or different.
    pub(crate) fn put_workload(
        &mut self,
        kind: WorkloadKind,
        workload: WorkloadObject,
    ) -> WorkloadNoted {
        let (namespace, name) = (workload.meta.namespace.clone(), workload.meta.name.clone());
        let before = self.workload(kind, &namespace, &name);
        let noted = WorkloadNoted {
            is_turned: before.is_some_and(|before| before.suspended) != workload.suspended,
            concerns_others: of_others(before) != of_others(Some(&workload)),
        };
        if may_be_suspended(kind) {
            let key = (kind, (namespace.clone(), name.clone()));
            match mark(&workload) {
                Some(_) => self.suspended_by_us.insert(key),
                None => self.suspended_by_us.remove(&key),
            };
        }
        let of_kind = self.workloads.entry(kind).or_default();
        of_kind.entry(namespace).or_default().insert(name, workload);
        noted
    }

    pub(crate) fn remove_workload(
        &mut self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
    ) -> WorkloadNoted {
        let before = self.workload(kind, namespace, name);
        let noted = WorkloadNoted {
            is_turned: before.is_some_and(|before| before.suspended),
            concerns_others: of_others(before) != of_others(None),
        };
        self.suspended_by_us.remove(&(kind, (namespace.into(), name.into())));
        if let Some(of_kind) = self.workloads.get_mut(&kind)
            && let Some(of_namespace) = of_kind.get_mut(namespace)
        {
            of_namespace.remove(name);
            if of_namespace.is_empty() {
                of_kind.remove(namespace);
            }
        }
        noted
    }

    /// That a pod in no gang is of no Job which says how many of its pods start together.
    pub(crate) fn may_start_alone(&self, pod: &Pod) -> Result<(), NotYet> {
        let kind = WorkloadKind::Job;
        let job = job_of(pod).and_then(|name| self.workload(kind, &pod.meta.namespace, name));
        job.map_or(Ok(()), |job| check_apart(kind, job))
    }

    /// That no workload which made a pod is suspended: its owner, or a queueing system, holds it
    /// back.
    pub(crate) fn is_resumed(&self, pod: &Pod) -> Result<(), NotYet> {
        let namespace = &pod.meta.namespace;
        let suspended = |(kind, name): &(WorkloadKind, &str)| {
            self.workload(*kind, namespace, name).is_some_and(|workload| workload.suspended)
        };
        match made_by(pod).find(suspended) {
            None => Ok(()),
            Some((kind, name)) => {
                let workload = format!("{} {namespace}/{name}", kind.noun());
                Err(NotYet::WorkloadSuspended { workload })
            }
        }
    }
}

/// Whether dovetail suspends and resumes workloads of a kind.
fn may_be_suspended(kind: WorkloadKind) -> bool {
    matches!(kind, WorkloadKind::Job | WorkloadKind::JobSet)
}

/// What a Job says of its suspension by dovetail, if it is suspended and not about to be gone.
fn mark(job: &WorkloadObject) -> Option<&str> {
    let is_suspended = job.suspended && !job.meta.is_deleting();
    job.meta.annotations.get(labels::SUSPENDED).filter(|_| is_suspended)
}

/// The kind of the object that describes a gang.
pub(crate) fn kind_of(name: &GangName) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| GangSource::of(*kind) == Some(name.source))
}

/// The gang that an object of this kind describes.
fn key(kind: Kind, namespace: &str, name: &str) -> Option<GangName> {
    let source = GangSource::of(kind)?;
    Some(GangName { namespace: namespace.into(), source, name: name.into(), part: Box::default() })
}

/// The Job that made a pod, by its label.
pub(crate) fn job_of(pod: &Pod) -> Option<&str> {
    pod.meta.labels.get(JOB_NAME)
}

fn limit_ms(workload: &WorkloadObject) -> Option<u64> {
    time_limit_ms(&workload.meta, workload.active_deadline_s)
}

/// What a workload says about pods that are in no gang of it.
fn of_others(workload: Option<&WorkloadObject>) -> (Option<[Option<&str>; 4]>, Option<u64>) {
    (apart_terms(workload), workload.and_then(limit_ms))
}

/// How a workload says that such pods start together; `None` if it does not.
fn apart_terms(workload: Option<&WorkloadObject>) -> Option<[Option<&str>; 4]> {
    let workload = workload?;
    let [min, max, required] = TERMS_OF_GANGS.map(|name| workload.meta.annotations.get(name));
    let has_terms = min.or(max).or(required).is_some();
    has_terms.then_some([min, max, required, Some(&*workload.apart)])
}
