//! Gangs: who belongs to them, and what the engine was told of them as a whole.
//!
//! A gang is told as one job when its smallest size could start: that many members wish for a node,
//! and either all that are expected do or none has appeared for a while. When the engine has
//! started it, its members are pods of a running job. Members that come later, or again, are told
//! by themselves if the gang has its size or had it, then ahead of all others of their priority. If
//! it never had it, what is missing is one job more, ahead of all others, too.

mod companions;
mod describe;
mod kept;
mod look;
mod lost;
mod numbered;
mod recognise;
mod rejoin;
mod roll;
mod short;
mod tell;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, Job, JobId};
use dovetail_objects::{Kind, Labels, Meta, PodGroup, Workload, WorkloadKind};

use super::World;
use super::causes::SaidOfLate;
use super::pods::Slot;
use crate::translate::NotYet;
use crate::translate::gang::{Described, GangName, Source, Terms, gang_of, terms};
use crate::world::Gathering;
use crate::world::tell::Place;
use kept::Kept;
pub use look::{GangLook, MemberLook, ShortLook};
pub use lost::LostMembers;
use numbered::Numbered;
use short::Shortness;
pub use short::Unwinding;

/// How long gangs are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A gang that has its smallest size, but not all pods that are expected, starts when none has
    /// appeared for so long.
    pub quiet_ms: u64,
    /// When a gang of which some pods have nodes, fewer than its smallest size, is given up.
    pub complete_within_ms: u64,
    /// For how long room is kept for a member that was lost while others of its gang have nodes.
    pub keep_for_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { quiet_ms: 2_000, complete_within_ms: 60_000, keep_for_ms: 30_000 }
    }
}

/// A gang with what is known about it.
#[derive(Debug, Default)]
struct Gang {
    /// Its pods, oldest first, then by name: who has the highest number is the last.
    members: BTreeMap<(u64, Numbered), Slot>,
    /// When one last appeared.
    appeared_ms: u64,
    /// The job that the engine was told of, while it waits.
    waiting: Option<Job>,
    /// The identity of its last job, and whether that goes ahead of others.
    job: Option<(JobId, bool)>,
    shortness: Shortness,
    kept: Vec<Kept>,
    /// Until when room was kept that those have who are to start there and are not seen on their
    /// nodes yet.
    heirs: BTreeMap<Slot, u64>,
    /// When it is to be looked at again.
    due_ms: Option<u64>,
    /// Whether it was told that it has its size.
    is_told_of_size: bool,
    /// What was said to be wrong with it.
    contradiction: Option<NotYet>,
    /// What of that was said of late.
    said: SaidOfLate,
    /// What its object was last said to wait for.
    told_to_wait: Option<Gathering>,
}

/// Objects by namespace and name.
type ByNamespace<T> = BTreeMap<Box<str>, BTreeMap<Box<str>, T>>;

/// All gangs, and the objects that describe them.
#[derive(Debug, Default)]
pub(super) struct Gangs {
    by_name: BTreeMap<Arc<GangName>, Gang>,
    groups: BTreeMap<GangName, PodGroup>,
    workloads: BTreeMap<WorkloadKind, ByNamespace<Workload>>,
    due: BTreeSet<(u64, Arc<GangName>)>,
    unwinding: Vec<Unwinding>,
    /// Those of which pods run apart from their job.
    apart: BTreeSet<Arc<GangName>>,
    /// Whether other room is kept than when that was last asked.
    is_room_kept_anew: bool,
}

impl Gangs {
    fn get(&self, name: &GangName) -> Option<&Gang> {
        self.by_name.get(name)
    }

    fn get_mut(&mut self, name: &GangName) -> &mut Gang {
        self.by_name.get_mut(name).expect("a gang with members")
    }

    /// Names of all gangs.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<GangName>> {
        self.by_name.keys()
    }

    /// The object of a gang.
    pub(super) fn group(&self, kind: Kind, namespace: &str, name: &str) -> Option<&PodGroup> {
        self.groups.get(&key(kind, namespace, name)?)
    }

    /// Labels of the object of a gang: its group, or the workload whose pods it has.
    pub(super) fn labels(&self, name: &GangName) -> Option<&Labels> {
        let group = self.groups.get(name).map(|group| &group.meta.labels);
        group.or_else(|| Some(&self.workload_of(name)?.meta.labels))
    }

    /// The object that describes a gang, if one does.
    fn described_by(&self, name: &GangName) -> Option<(Kind, &Meta)> {
        let kind = kind_of(name)?;
        let group = self.groups.get(name).map(|group| &group.meta);
        let meta = group.or_else(|| Some(&self.workload_of(name)?.meta))?;
        Some((kind, meta))
    }

    /// All objects of a kind.
    pub(super) fn groups(&self, kind: Kind) -> impl Iterator<Item = &PodGroup> {
        let source = Source::of(kind);
        let of_source = self.groups.iter().filter(move |(name, _)| Some(name.source) == source);
        of_source.map(|(_, group)| group)
    }

    /// The jobs of gangs that wait.
    pub(super) fn waiting_jobs(&self) -> impl Iterator<Item = &Job> {
        self.by_name.values().filter_map(|gang| gang.waiting.as_ref())
    }

    /// The engine has started a job of a gang.
    pub(super) fn started(&mut self, name: &GangName, job: JobId) {
        let Some(gang) = self.by_name.get_mut(name) else { return };
        gang.waiting.take_if(|waiting| waiting.id == job);
    }

    /// Looks at a gang again at a time, or when something happens to it.
    fn remind(&mut self, name: &Arc<GangName>, due_ms: Option<u64>) {
        let gang = self.by_name.get_mut(name).expect("a gang with members");
        let before = std::mem::replace(&mut gang.due_ms, due_ms);
        if before == due_ms {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, Arc::clone(name)));
        }
        if let Some(due_ms) = due_ms {
            self.due.insert((due_ms, Arc::clone(name)));
        }
    }

    /// Forgets a gang without members.
    fn forget(&mut self, name: &Arc<GangName>) {
        self.remind(name, None);
        self.by_name.remove(name);
    }
}

impl World {
    /// Time passes: what follows from it for the engine. Call it before every change.
    pub fn pass(&mut self, now_ms: u64) -> Vec<Event> {
        let due_ms = self.due_ms();
        let before_ms = self.now_ms;
        self.now_ms = before_ms.max(now_ms);
        if !self.is_ready || due_ms.is_none_or(|due_ms| due_ms > self.now_ms) {
            return Vec::new();
        }
        self.dirty.pods.extend(self.pods.late_between(before_ms, self.now_ms));
        let due = self.gangs.due.iter().take_while(|(due_ms, _)| *due_ms <= self.now_ms);
        self.dirty.gangs.extend(due.map(|(_, name)| Arc::clone(name)));
        self.settle()
    }

    /// When time alone may change something.
    pub fn due_ms(&self) -> Option<u64> {
        let gangs_ms = self.gangs.due.first().map(|(due_ms, _)| *due_ms);
        gangs_ms.into_iter().chain(self.pods.next_late_ms(self.now_ms)).min()
    }

    /// Gangs that are to be given up, since the last call: their pods are to be deleted. One that
    /// is still there after some time comes again.
    pub fn unwinding(&mut self) -> Vec<Unwinding> {
        std::mem::take(&mut self.gangs.unwinding)
    }

    /// The native group whose pods a job is about, if it is one's.
    pub fn group_of_job(&self, job: JobId) -> Option<&PodGroup> {
        let slot = self.slots_of(job).next()?;
        let gang = self.pods.get(slot).gang.as_ref();
        let gang = gang.filter(|gang| gang.source == Source::Native)?;
        self.gangs.groups.get(&**gang)
    }

    /// A native group of pods.
    pub fn native_group(&self, namespace: &str, name: &str) -> Option<&PodGroup> {
        self.gangs.group(Kind::PodGroup, namespace, name)
    }

    /// On what terms a gang starts, by its objects and its pods that are not over; `None` if there
    /// is none of these.
    fn terms_of(&self, name: &GangName) -> Option<Result<Terms, NotYet>> {
        let members = self.live_members(self.gangs.get(name)?);
        if members.is_empty() {
            return None;
        }
        let group = self.gangs.groups.get(name);
        let described = Described { group, workload: self.gangs.workload_of(name) };
        Some(terms(name, described, &members, self.network.known()))
    }

    /// Notes the gang of a pod that is new or different.
    pub(super) fn join_gang(&mut self, slot: Slot) {
        let entry = self.pods.get(slot);
        let wanted = match entry.strange {
            true => None,
            // Pods of two gangs are refused where they are read.
            false => gang_of(&entry.pod).ok().flatten(),
        };
        if wanted.as_ref() == entry.gang.as_deref() {
            return;
        }
        self.leave_gang(slot);
        let Some(wanted) = wanted else { return };
        let known = self.gangs.by_name.get_key_value(&wanted);
        let name = known.map_or_else(|| Arc::new(wanted), |(name, _)| Arc::clone(name));
        let meta = &self.pods.get(slot).pod.meta;
        let is_new = !self.gangs.by_name.contains_key(&name);
        let gang = self.gangs.by_name.entry(Arc::clone(&name)).or_default();
        gang.members.insert((meta.created_ms, Numbered(meta.name.clone())), slot);
        // What the first list shows has been there.
        let appeared_ms = match self.is_ready {
            true => self.now_ms,
            false => meta.created_ms.min(self.now_ms),
        };
        gang.appeared_ms = gang.appeared_ms.max(appeared_ms);
        if is_new && self.is_ready {
            self.reserve_job(&name);
        }
        self.pods.get_mut(slot).gang = Some(name);
    }

    /// Gives a gang the place in the order that goes with its first pod.
    pub(super) fn reserve_job(&mut self, name: &GangName) {
        if self.gangs.get(name).is_some_and(|gang| gang.job.is_none()) {
            let job = self.new_job(Place::Behind);
            self.gangs.get_mut(name).job = Some((job, false));
        }
    }

    /// A pod is no member any more.
    pub(super) fn leave_gang(&mut self, slot: Slot) {
        let entry = self.pods.get_mut(slot);
        entry.wish = None;
        let Some(name) = entry.gang.take() else { return };
        let gang = self.gangs.get_mut(&name);
        gang.members.retain(|_, member| *member != slot);
        self.dirty.gangs.insert(name);
    }

    /// A gang's object is there or different.
    pub(super) fn put_group(&mut self, kind: Kind, group: PodGroup) {
        let Some(name) = key(kind, &group.meta.namespace, &group.meta.name) else { return };
        let labels = group.meta.labels.clone();
        let before = self.gangs.groups.insert(name.clone(), group);
        let may_name_a_queue = before.is_none_or(|before| before.meta.labels != labels);
        self.mark_gang(&name, may_name_a_queue);
    }

    /// A gang's object is gone.
    pub(super) fn remove_group(&mut self, kind: Kind, namespace: &str, name: &str) {
        let Some(name) = key(kind, namespace, name) else { return };
        self.mark_gang(&name, true);
        self.gangs.groups.remove(&name);
    }

    fn mark_gang(&mut self, name: &GangName, with_pods: bool) {
        let Some((name, gang)) = self.gangs.by_name.get_key_value(name) else { return };
        self.dirty.gangs.insert(Arc::clone(name));
        if with_pods {
            self.dirty.pods.extend(gang.members.values());
        }
    }
}

/// The kind of the object that describes a gang.
fn kind_of(name: &GangName) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| Source::of(*kind) == Some(name.source))
}

/// The gang that an object of this kind describes.
fn key(kind: Kind, namespace: &str, name: &str) -> Option<GangName> {
    let source = Source::of(kind)?;
    Some(GangName { namespace: namespace.into(), source, name: name.into(), part: Box::default() })
}
