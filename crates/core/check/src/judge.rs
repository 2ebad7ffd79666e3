//! The judge: told every event and every plan, it keeps books of its own and says what is wrong.

use std::collections::BTreeSet;

use dovetail_model::{
    Action, Event, HeldDevices, JobId, NodeName, Plan, PodId, Reserved, Snapshot,
};

use crate::audit::{audit, compare};
use crate::booked::judge_bookings;
use crate::gang::{judge_gang, judge_pod};
use crate::limits::judge_limits;
use crate::node_books::{HeldAmounts, Holder};
use crate::placing::Placing;
use crate::preempting::{judge_kept, judge_rooms_of_started};
use crate::reserved::{judge_lent, judge_reserved};
use crate::violation::Violation;
use crate::world::ClusterBooks;

/// A judge with books of its own.
///
/// An action costs what it touches: the devices of one node, the pods of one job; for pods with
/// spread or affinity rules also the nodes that hold counted pods, for jobs of bounded queues all
/// jobs.
#[derive(Clone, Debug)]
pub struct Judge {
    world: ClusterBooks,
    /// GPUs that one job may have lent of its reservation, in percent of its own.
    lent_percent: Option<u32>,
    /// Whether nothing else takes reserved places.
    judges_places: bool,
}

/// Judges one plan between two snapshots, everything from scratch. The event that led to the plan
/// must already be in `before`, and jobs that a removed node took with it must still be there.
pub fn check_plan(before: &Snapshot, plan: &Plan, after: &Snapshot) -> Vec<Violation> {
    let mut judge = Judge::new(before);
    let mut found = audit(&judge.world);
    found.extend(judge.plan(plan));
    found.extend(audit(&judge.world));
    found.extend(judge.compare(after));
    found
}

impl Judge {
    /// Opens the books from a snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self { world: ClusterBooks::of(snapshot), lent_percent: None, judges_places: false }
    }

    /// The same, which also judges how much jobs with a reservation lend of it: at most so many
    /// percent of their own GPUs.
    #[must_use]
    pub fn with_lent_percent(self, lent_percent: u32) -> Self {
        Self { lent_percent: Some(lent_percent), ..self }
    }

    /// The same, which also judges the places of reservations and bookings. For worlds in which
    /// nothing takes room but what the engine places: what comes from outside may take what is
    /// reserved.
    #[must_use]
    pub fn with_reserved_places(self, lent_percent: u32) -> Self {
        Self { judges_places: true, ..self.with_lent_percent(lent_percent) }
    }

    /// The same, which also judges whether preempted jobs are left alone by queues that want their
    /// quota back, for so long at most.
    #[must_use]
    pub fn with_respite_ms(mut self, respite_ms: u64) -> Self {
        self.world.respite_ms = Some(respite_ms);
        self
    }

    /// The same for an order that divides the whole cluster among queues, as preset `kai` does.
    /// What a queue should have beyond its quota is not known here: of a reclaim it is judged
    /// whether its victims are open to it.
    #[must_use]
    pub fn with_divided_cluster(mut self, is_divided: bool) -> Self {
        self.world.is_divided = is_divided;
        self
    }

    /// Takes over what happened outside. Call it before the plan that answers the event; do not
    /// call it for an event that the engine refused.
    pub fn event(&mut self, event: &Event, now_ms: u64) {
        self.world.take_event(event, now_ms);
    }

    /// Judges a plan action by action, each against the world just before it, and takes it over.
    pub fn plan(&mut self, plan: &Plan) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut started: BTreeSet<JobId> = BTreeSet::new();
        let mut starts = None;
        for action in &plan.actions {
            // All pods of a job come one after the other; what is left then may go to others.
            let next = match action {
                Action::Bind { pod, .. } => Some(pod.job),
                _ => None,
            };
            if let Some(job) = starts.filter(|_| starts != next) {
                judge_rooms_of_started(&self.world, job, &mut found);
            }
            starts = next;
            match action {
                Action::Bind { pod, node, devices } => {
                    if self.bind(*pod, node, devices, &mut found) {
                        started.insert(pod.job);
                    }
                }
                Action::Lost { job } => self.lose(*job, &mut found),
                Action::Wait { job, .. } => match self.world.jobs.get(job) {
                    None => found.push(Violation::UnknownJob { job: *job }),
                    Some(booked) if booked.runs() || !booked.pods.is_empty() => {
                        found.push(Violation::NotWaiting { job: *job });
                    }
                    Some(_) => {}
                },
                Action::Preempt { .. } => self.world.preempt(action, &mut found),
                Action::GivenBack { job } => drop(self.world.claims.remove(job)),
                Action::RoomGivenUp { job, name } => {
                    self.world.give_up_room(*job, name, &mut found);
                }
                Action::Publish { .. } => {}
            }
        }
        if let Some(job) = starts {
            judge_rooms_of_started(&self.world, job, &mut found);
        }
        self.world.given_up.clear();
        for job in std::mem::take(&mut self.world.must_be_lost) {
            found.push(Violation::NotGivenUp { job });
        }
        for job in started {
            judge_gang(&self.world, job, &mut found);
            judge_limits(&self.world, job, &mut found);
            self.start(job);
        }
        found
    }

    /// Adds everything up again and compares it with the running sums.
    pub fn recheck_all(&self) -> Vec<Violation> {
        audit(&self.world)
    }

    /// Compares the books with another account of the same world, and judges what that reserves.
    pub fn compare(&self, snapshot: &Snapshot) -> Vec<Violation> {
        let mut found = compare(&self.world, snapshot);
        found.extend(self.lent(&snapshot.reserved));
        if let Some(lent_percent) = self.lent_percent.filter(|_| self.judges_places) {
            judge_reserved(&self.world, &snapshot.reserved, &mut found);
            judge_bookings(&self.world, snapshot, lent_percent, &mut found);
        }
        found
    }

    /// Judges how much reservations have lent. Who is in their room is said with them, and how many
    /// GPUs these have there is in the books.
    pub fn lent(&self, reserved: &[Reserved]) -> Vec<Violation> {
        let mut found = Vec::new();
        if let Some(lent_percent) = self.lent_percent {
            judge_lent(&self.world, reserved, lent_percent, &mut found);
        }
        found
    }

    /// Judges one pod and puts it into the books; false if it cannot be booked at all.
    fn bind(
        &mut self,
        pod: PodId,
        node: &NodeName,
        devices: &HeldDevices,
        found: &mut Vec<Violation>,
    ) -> bool {
        if let Some(violation) = judge_pod(&self.world, pod) {
            found.push(violation);
            return false;
        }
        self.world.end_room_held_for(pod.job);
        let Some(books) = self.world.nodes.get(node) else {
            found.push(Violation::UnknownNode { pod, node: node.clone() });
            return false;
        };
        let booked = &self.world.jobs[&pod.job];
        let requirement = &*booked.job.pod_sets[usize::from(pod.pod_set)].requirement;
        let placing = Placing { world: &self.world, pod, requirement, name: node, books, devices };
        found.extend(placing.violations());
        let held = HeldAmounts {
            resources: requirement.resources.clone(),
            devices: devices.clone(),
            counts_into: requirement.counts_into.clone(),
            attachments: requirement.attachments.clone(),
        };
        self.world.hold(node, Holder::Pod(pod), held);
        let booked = self.world.jobs.get_mut(&pod.job).expect("judged above");
        booked.pods.insert((pod.pod_set, pod.ordinal), node.clone());
        // All pods of a job come one after the other.
        self.world.claims.remove(&pod.job);
        judge_kept(&self.world, pod, node, found);
        true
    }

    fn lose(&mut self, job: JobId, found: &mut Vec<Violation>) {
        if !self.world.must_be_lost.remove(&job) {
            found.push(match self.world.jobs.contains_key(&job) {
                true => Violation::GivenUpWrongly { job },
                false => Violation::UnknownJob { job },
            });
        }
        self.world.end_job(job);
    }

    /// From here on the job runs.
    fn start(&mut self, job: JobId) {
        let now_ms = self.world.now_ms;
        let booked = self.world.jobs.get_mut(&job).expect("it started in this plan");
        booked.job.start_ms = Some(now_ms);
        for (index, set) in booked.job.pod_sets.iter_mut().enumerate() {
            let pods = booked.pods.keys().filter(|(set, _)| usize::from(*set) == index);
            set.present = pods.count() as u32;
        }
    }
}
