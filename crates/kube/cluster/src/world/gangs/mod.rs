//! Gangs: what was reported of them to the engine as a whole.
//!
//! A gang is reported as one job when its smallest size could start: that many members are pending,
//! and either all that are expected are or none has appeared for a while. When the engine has
//! started it, its members are pods of a running job. Members that come later, or again, are
//! reported by themselves if the gang has its size or had it, then ahead of all others of their
//! priority. If it never had it, what is missing is one job more, ahead of all others, too.

mod describe;
mod lost;
mod settle;
mod short;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Job, JobId};

use super::causes::RecentCauses;
use super::feed::Feed;
use super::feed::jobs::QueuePosition;
use super::objects::Objects;
use super::readings::gang::GangReading;
use super::report::Gathering;
use dovetail_translate::NotYet;
use dovetail_translate::gang::GangName;
pub use lost::LostMembers;
use short::Shortness;
pub use short::{ShortLook, Unwinding};

/// What was reported of a gang to the engine, and to people.
#[derive(Debug, Default)]
struct GangState {
    /// The job that was reported to the engine, while it is pending.
    waiting: Option<Job>,
    /// The identity of its last job, and whether that goes ahead of others.
    job: Option<(JobId, bool)>,
    shortness: Shortness,
    /// When it is to be looked at again.
    due_ms: Option<u64>,
    /// Whether it was reported that it has its size.
    has_announced_size: bool,
    /// What was reported to be wrong with it.
    contradiction: Option<NotYet>,
    /// What of that was reported recently.
    said: RecentCauses,
    /// What was last reported of the wait for its members.
    announced_wait: Option<Gathering>,
}

#[derive(Debug, Default)]
pub(crate) struct Gangs {
    by_name: BTreeMap<Arc<GangName>, GangState>,
    due: BTreeSet<(u64, Arc<GangName>)>,
    unwinding: Vec<Unwinding>,
}

impl Gangs {
    fn get_mut(&mut self, name: &GangName) -> &mut GangState {
        self.by_name.get_mut(name).expect("a gang with members")
    }

    /// A gang has its first pod.
    pub(crate) fn add(&mut self, name: Arc<GangName>) {
        self.by_name.entry(name).or_default();
    }

    /// Gives a gang the place in the order that goes with its first pod.
    pub(crate) fn reserve_job(&mut self, name: &GangName, feed: &mut Feed) {
        if let Some(gang) = self.by_name.get_mut(name)
            && gang.job.is_none()
        {
            gang.job = Some((feed.jobs.next(QueuePosition::Behind), false));
        }
    }

    pub(crate) fn waiting_jobs(&self) -> impl Iterator<Item = &Job> {
        self.by_name.values().filter_map(|gang| gang.waiting.as_ref())
    }

    /// What a gang lacks of which some pods have nodes.
    pub(crate) fn short_look(&self, gang: &GangReading<'_>) -> Option<ShortLook> {
        self.by_name.get(gang.name)?.shortness.look(gang)
    }

    /// The engine has started a job of a gang.
    pub(crate) fn started(&mut self, name: &GangName, job: JobId) {
        let Some(gang) = self.by_name.get_mut(name) else { return };
        gang.waiting.take_if(|waiting| waiting.id == job);
    }

    /// When the next gang is to be looked at again.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Marks the gangs that are to be looked at again by now.
    pub(crate) fn mark_due(&self, objects: &mut Objects) {
        let due = self.due.iter().take_while(|(due_ms, _)| *due_ms <= objects.now_ms);
        objects.dirty.gangs.extend(due.map(|(_, name)| Arc::clone(name)));
    }

    /// Gangs that are to be given up, since the last call: their pods are to be deleted. One that
    /// is still there after some time comes again.
    pub(crate) fn take_unwinding(&mut self) -> Vec<Unwinding> {
        std::mem::take(&mut self.unwinding)
    }

    /// Looks at a gang again at a time, or when something happens to it.
    fn remind(&mut self, name: &Arc<GangName>, due_ms: Option<u64>) {
        let before = std::mem::replace(&mut self.get_mut(name).due_ms, due_ms);
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
    fn forget(&mut self, name: &Arc<GangName>, objects: &mut Objects, feed: &mut Feed) {
        self.remind(name, None);
        self.by_name.remove(name);
        feed.rooms.forget(name);
        objects.members.forget(name);
    }
}
