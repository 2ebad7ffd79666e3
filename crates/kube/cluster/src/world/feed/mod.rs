//! The feed: what was reported to the engine of pods, nodes and queues, and the events that report
//! the difference.
//!
//! | part | what |
//! |---|---|
//! | `jobs` | identities of jobs |
//! | `pods`, `nodes` | what is reported of pods and nodes |
//! | `running` | pods that run, reported again as pods of another job |
//! | `rooms` | room kept for members of gangs that were lost |
//! | `counted`, `missing` | queues: for which each job counts, and which are not there |

mod counted;
pub(crate) mod jobs;
mod missing;
mod nodes;
mod pods;
pub(crate) mod rooms;
pub(crate) mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, Job, JobId, PodId, PodSet, Requirement};

use super::causes::cause_of;
use super::key::PodKey;
use super::objects::Objects;
use super::objects::pods::Slot;
use super::objects::receipts::remember;
use super::objects::reported::{Reported, full_name, only_pod};
use super::readings::gang::{GangReading, terms_of};
use super::readings::requirements::Requirements;
use super::readings::roll::{roll, smallest};
use super::report::ObjectReport;
use counted::{QueuesNoted, ReportedQueues};
use dovetail_translate::gang::GangName;
use dovetail_translate::{JobDeclaration, NotYet, held, how_ended, preemption_rules, started_ms};
use jobs::{JobsNamed, LAST_AHEAD, QueuePosition};
use rooms::Rooms;

/// Events in the order in which the engine must take them: what frees, queues, nodes, what holds,
/// what is pending.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) freed: Vec<Event>,
    pub(crate) queues: Vec<Event>,
    pub(crate) nodes: Vec<Event>,
    pub(crate) held: Vec<Event>,
    pub(crate) waiting: Vec<Event>,
    /// They are dropped: before an engine starts it learns everything from the snapshot.
    pub(crate) unheard: bool,
}

/// What was reported to the engine.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) events: Events,
    /// Reports for people.
    pub(crate) reports: Vec<ObjectReport>,
    pub(crate) jobs: JobsNamed,
    pub(crate) requirements: Requirements,
    pub(crate) rooms: Rooms,
    pub(crate) counted: ReportedQueues,
    /// Gangs of which pods run apart from their job.
    pub(crate) apart: BTreeSet<Arc<GangName>>,
}

impl Feed {
    /// Events since the last call, in the order in which the engine must take them.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        let Events { freed, queues, nodes, held, waiting, .. } = std::mem::take(&mut self.events);
        let order = [queues, nodes, held, waiting];
        freed.into_iter().chain(order.into_iter().flatten()).collect()
    }

    /// Reports what is different of queues.
    pub(crate) fn note_queues(&mut self, noted: QueuesNoted) {
        self.events.queues.extend(noted.events);
        let missing = noted.missing.into_iter();
        self.reports.extend(missing.map(|one| ObjectReport::QueueMissing(Box::new(one))));
    }

    /// Gives a pod a job of its own.
    pub(crate) fn set_own_job(&mut self, objects: &mut Objects, slot: Slot, place: QueuePosition) {
        let job = self.jobs.next(place);
        objects.pods.set_id(slot, Some(only_pod(job)), false);
    }

    /// A pod that the engine need not know, or no longer.
    pub(crate) fn release(&mut self, objects: &mut Objects, slot: Slot) {
        self.rooms.keep(objects, &mut self.requirements, slot);
        self.end(objects, slot);
        self.note(objects, slot, Reported::Nothing);
        objects.pods.unassign(slot);
        objects.pods.index(slot);
    }

    /// Takes back whatever was reported.
    pub(crate) fn end(&mut self, objects: &Objects, slot: Slot) {
        self.counted.stop_counting(objects, slot);
        let entry = objects.pods.get(slot);
        let id = || entry.id.expect("what waits or runs has a name");
        self.events.freed.extend(match &entry.reported {
            // The job of a gang is reported as a whole.
            Reported::Nothing | Reported::Member { .. } => None,
            Reported::Waiting { .. } => Some(Event::ended(id().job)),
            Reported::Assumed { .. } | Reported::Running { .. } => {
                Some(Event::PodEnded { pod: id(), how: how_ended(&entry.pod) })
            }
            Reported::Foreign { .. } => {
                Some(Event::ForeignReleased { name: full_name(&entry.pod) })
            }
        });
    }

    /// Notes what was reported, and which attached volumes are accounted for by it.
    pub(crate) fn note(&mut self, objects: &mut Objects, slot: Slot, reported: Reported) {
        let account = reported.node().and_then(|node| {
            let pod = &objects.pods.get(slot).pod;
            let held = held(pod, &objects.facts, &objects.settings.rules);
            (!held.attachments.is_empty()).then(|| (Box::from(&**node), held.attachments))
        });
        objects.attachments.account(slot, account);
        objects.pods.get_mut(slot).reported = reported;
    }

    /// Reports once why a pod is left untouched.
    pub(crate) fn refuse(&mut self, objects: &mut Objects, slot: Slot, refused: Option<NotYet>) {
        let entry = objects.pods.get_mut(slot);
        if entry.refused == refused {
            return;
        }
        entry.refused.clone_from(&refused);
        let Some(reason) = refused else { return };
        let namespace = entry.pod.meta.namespace.clone();
        let cause = cause_of(&reason, |word| objects.pods.find(&namespace, word).is_some());
        let entry = objects.pods.get_mut(slot);
        let is_repeat = entry.said.is_repeat(cause, objects.now_ms);
        self.reports.push(ObjectReport::Refused { pod: PodKey::of(&entry.pod), reason, is_repeat });
    }

    /// A pod that is to be placed by itself.
    pub(crate) fn submit(
        &mut self,
        objects: &mut Objects,
        slot: Slot,
        requirement: Arc<Requirement>,
    ) {
        let id = objects.pods.get(slot).id.expect("what waits has a name").job;
        let job = Box::new(self.job(objects, slot, id, Arc::clone(&requirement)));
        let (priority, queue, kept_room) = (job.priority, job.queue.clone(), job.kept_room.clone());
        let reported = Reported::Waiting { requirement, priority, queue, kept_room };
        match &objects.pods.get(slot).reported {
            known if *known == reported => return,
            Reported::Waiting { .. } => self.events.waiting.push(Event::JobChanged(job)),
            _ => {
                self.end(objects, slot);
                self.events.waiting.push(Event::Submitted(job));
            }
        }
        self.note(objects, slot, reported);
    }

    /// A member of a gang that is not reported.
    pub(crate) fn set_aside(&mut self, objects: &mut Objects, slot: Slot, reason: Option<NotYet>) {
        self.end(objects, slot);
        self.note(objects, slot, Reported::Nothing);
        objects.pods.set_id(slot, None, false);
        self.refuse(objects, slot, reason);
    }

    pub(crate) fn job(
        &self,
        objects: &Objects,
        slot: Slot,
        id: JobId,
        requirement: Arc<Requirement>,
    ) -> Job {
        let entry = objects.pods.get(slot);
        let (pod, gang) = (&entry.pod, entry.gang.as_deref());
        let job = Job::single(id, &full_name(pod), pod.meta.created_ms, requirement);
        let mut preemption = preemption_rules([&**pod]);
        preemption.is_protected |= objects.is_exempt(slot) || replaces_another(objects, slot, id);
        preemption.never_preempts |= objects.exempt.preemptors.contains(&id);
        let (queue, kept_room) = (objects.queue_of(slot), self.rooms.for_pod(gang, slot));
        let said = JobDeclaration::of([&**pod], &objects.settings.rules);
        let said = said.within(objects.descriptions.time_limit_ms(pod));
        let job = Job { preemption, kept_room, ..said.told(job) };
        remember(objects, slot, Job { priority: pod.priority, queue, ..job })
    }

    /// The job of a pod that runs.
    pub(crate) fn running_job(
        &mut self,
        objects: &Objects,
        slot: Slot,
        id: JobId,
        start_ms: u64,
    ) -> Job {
        let requirement = self.requirements.would_need(objects, slot);
        let mut job = self.job(objects, slot, id, requirement);
        job.pod_sets[0].present = 1;
        job.start_ms = Some(start_ms);
        job
    }

    /// The job of pods of a gang that run by one job.
    pub(crate) fn running_gang(
        &mut self,
        objects: &Objects,
        id: JobId,
        pods: &BTreeMap<PodId, Slot>,
        now_ms: u64,
    ) -> Job {
        let sets = pods.keys().last().map_or(0, |pod| usize::from(pod.pod_set) + 1);
        let number = |set: usize| PodSet::fixed(&set.to_string(), Arc::default(), 0);
        let mut pod_sets: Vec<PodSet> = (0..sets).map(number).collect();
        let mut start_ms = now_ms;
        for (pod, slot) in pods {
            let set = &mut pod_sets[usize::from(pod.pod_set)];
            if set.present == 0 {
                set.requirement = self.requirements.would_need(objects, *slot);
            }
            set.present += 1;
            start_ms = start_ms.min(started_ms(&objects.pods.get(*slot).pod));
        }
        let smallest = smallest_of_running(objects, &pod_sets, pods);
        for (set, smallest) in pod_sets.iter_mut().zip(smallest) {
            (set.min, set.max) = (smallest, set.present);
        }
        let first = pods.values().next().copied();
        let entry = first.map(|slot| objects.pods.get(slot));
        let name = entry.and_then(|entry| entry.gang.as_deref()).map(GangName::to_string);
        let priority = entry.map_or(0, |entry| entry.pod.priority);
        let all = || pods.values().map(|slot| &*objects.pods.get(*slot).pod);
        let mut preemption = preemption_rules(all());
        let said = JobDeclaration::of(all(), &objects.settings.rules);
        let said = said.within(objects.descriptions.shortest_limit_ms(all()));
        preemption.is_protected |= pods.values().any(|slot| objects.is_exempt(*slot));
        let submit_ms = all().map(|pod| pod.meta.created_ms).min().unwrap_or(start_ms);
        let job = Job::single(id, &name.unwrap_or_default(), submit_ms, Arc::default());
        let queue = self.counted.counted_for(id).to_owned();
        let start_ms = Some(start_ms);
        let job = Job { priority, queue, pod_sets, start_ms, preemption, ..said.told(job) };
        match first {
            Some(first) => remember(objects, first, job),
            None => job,
        }
    }
}

/// Whether a pod replaces one that its gang has lost: it is not preempted by itself.
fn replaces_another(objects: &Objects, slot: Slot, job: JobId) -> bool {
    objects.pods.get(slot).gang.is_some() && job.0 <= LAST_AHEAD
}

/// How many pods of each set of a gang that runs must stay, beside its pods that are no pods of
/// this job; all of them where that is not known.
fn smallest_of_running(
    objects: &Objects,
    sets: &[PodSet],
    pods: &BTreeMap<PodId, Slot>,
) -> Vec<u32> {
    let all = || sets.iter().map(|set| set.present).collect();
    let first = pods.values().next();
    let Some(name) = first.and_then(|slot| objects.pods.get(*slot).gang.as_ref()) else {
        return all();
    };
    let Some(Ok(terms)) = terms_of(objects, name) else { return all() };
    let gang = GangReading { objects, name, terms: &terms };
    let inside: BTreeSet<Slot> = pods.values().copied().collect();
    let roll = roll(objects, name);
    let lack = gang.lack(roll.settled().filter(|slot| !inside.contains(slot)));
    let role_of_set = |set: usize| {
        let slot = pods.iter().find(|(pod, _)| usize::from(pod.pod_set) == set)?.1;
        gang.role(*slot)
    };
    let counts: Vec<(Option<usize>, u32)> =
        sets.iter().enumerate().map(|(set, of)| (role_of_set(set), of.present)).collect();
    smallest(&counts, &lack)
}
