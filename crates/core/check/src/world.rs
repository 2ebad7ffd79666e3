//! The judge's books: the world as plain maps, changed by events and by plans.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::node::DrainWindow;
use dovetail_model::{
    Event, History, Holding, HoldingPhase, HowEnded, Job, JobId, MigTable, Node, NodeAvailability,
    NodeName, Owner, Place, PodId, Queue, QueueName, ReservationId, Selectors, Snapshot, Topology,
};

use crate::node_books::{HeldAmounts, Holder, NodeBooks};
use crate::violation::Violation;

/// Everything the judge knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterBooks {
    pub(crate) now_ms: u64,
    pub(crate) topology: Topology,
    pub(crate) mig_tables: Vec<MigTable>,
    pub(crate) nodes: BTreeMap<NodeName, NodeBooks>,
    pub(crate) queues: BTreeMap<QueueName, Queue>,
    pub(crate) jobs: BTreeMap<JobId, BookedJob>,
    /// Where foreign pods are; `None` while their node is not there.
    pub(crate) foreign: BTreeMap<String, Option<NodeName>>,
    pub(crate) absent_foreign: BTreeMap<String, Holding>,
    /// Those of them that are room kept for jobs of this priority.
    rooms: BTreeMap<String, i32>,
    /// What the plan that is judged has given up of them for a job: under which name, where, and
    /// what.
    pub(crate) given_up: Vec<GivenUp>,
    reserved: BTreeMap<ReservationId, Vec<(NodeName, Holder)>>,
    /// Selector → node → pods it counts there.
    pub(crate) counts: BTreeMap<String, BTreeMap<NodeName, i64>>,
    /// How often those ran and were preempted that are to run again.
    pub(crate) away: BTreeMap<JobId, History>,
    /// Jobs that lost a node and must be given up by the next plan.
    pub(crate) must_be_lost: BTreeSet<JobId>,
    /// Where jobs are to go for which room is kept.
    pub(crate) claims: BTreeMap<JobId, Vec<Place>>,
    /// Who holds something and is about to go, and by when if that was said.
    pub(crate) ending: BTreeMap<Holder, Option<u64>>,
    /// For how long at most queues that want their quota back leave a job alone that was preempted;
    /// `None` is not judged.
    pub(crate) respite_ms: Option<u64>,
    /// Whether the order divides the whole cluster among queues, and not only quotas.
    pub(crate) is_divided: bool,
    /// Whether anything was ever booked: what is kept for that is not in these books.
    pub(crate) has_bookings: bool,
    /// What was wrong in the snapshot the books were opened from.
    pub(crate) faults: Vec<Violation>,
}

/// Room that was kept for others and is given up for a job.
#[derive(Clone, Debug)]
pub(crate) struct GivenUp {
    pub(crate) job: JobId,
    pub(crate) name: String,
    pub(crate) node: NodeName,
    pub(crate) held: HeldAmounts,
}

/// A job with where its pods are.
#[derive(Clone, Debug)]
pub(crate) struct BookedJob {
    pub(crate) job: Job,
    /// Node by (pod set, ordinal).
    pub(crate) pods: BTreeMap<(u16, u32), NodeName>,
}

impl BookedJob {
    pub(crate) fn runs(&self) -> bool {
        self.job.start_ms.is_some()
    }
}

impl ClusterBooks {
    /// Opens the books.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut world = Self {
            now_ms: snapshot.now_ms,
            topology: snapshot.topology.clone(),
            mig_tables: snapshot.mig_tables.clone(),
            queues: snapshot.queues.iter().map(|q| (q.name.clone(), q.clone())).collect(),
            ..Self::default()
        };
        for node in &snapshot.nodes {
            world.change_node(node.clone());
        }
        for job in &snapshot.jobs {
            world.jobs.insert(job.id, BookedJob { job: job.clone(), pods: BTreeMap::new() });
        }
        world.has_bookings = !snapshot.bookings.is_empty();
        world.away = snapshot.away.iter().copied().collect();
        world.claims = snapshot.claims.iter().map(|c| (c.job, c.places.clone())).collect();
        let reserved = snapshot.reserved.iter().map(|reserved| &reserved.claim);
        let booked = snapshot.bookings.iter().map(|booked| &booked.claim);
        let claims = snapshot.claims.iter().chain(reserved).chain(booked);
        let kept: BTreeSet<_> = claims.map(|claim| claim.reservation).collect();
        let of_claim = |number: Option<_>| number.is_some_and(|number| kept.contains(&number));
        let own = |holding: &&Holding| {
            holding.owner == Owner::Reservation && of_claim(holding.reservation)
        };
        for holding in snapshot.holdings.iter().filter(|holding| !own(holding)) {
            world.adopt(holding);
        }
        world
    }

    fn adopt(&mut self, holding: &Holding) {
        self.note_phase(holding);
        let stray = |problem| Violation::Stray {
            holder: format!("{:?}", holding.owner),
            node: holding.node.clone(),
            problem,
        };
        if let Owner::Foreign(_) = &holding.owner {
            return self.hold_foreign(holding);
        }
        if !self.nodes.contains_key(&holding.node) {
            return self.faults.push(stray("there is no such node"));
        }
        let held = held_of(holding);
        match &holding.owner {
            Owner::Pod(pod) => {
                let Some(booked) = self.jobs.get_mut(&pod.job) else {
                    return self.faults.push(stray("its job is not known"));
                };
                let pod_sets = booked.job.pod_sets.len();
                if usize::from(pod.pod_set) >= pod_sets {
                    return self.faults.push(Violation::UnknownPodSet { pod: *pod, pod_sets });
                }
                let at = (pod.pod_set, pod.ordinal);
                if booked.pods.insert(at, holding.node.clone()).is_some() {
                    let node = holding.node.clone();
                    return self.faults.push(Violation::HeldTwice { pod: *pod, node });
                }
                self.hold(&holding.node, Holder::Pod(*pod), held);
            }
            Owner::Reservation => match holding.reservation {
                Some(reservation) => self.hold_reserved(reservation, &holding.node, held),
                None => self.faults.push(stray("it belongs to no reservation")),
            },
            Owner::Foreign(_) => {}
        }
    }

    fn note_phase(&mut self, holding: &Holding) {
        let holder = match &holding.owner {
            Owner::Pod(pod) => Holder::Pod(*pod),
            Owner::Foreign(name) => Holder::Foreign(name.clone()),
            Owner::Reservation => return,
        };
        match holding.phase {
            HoldingPhase::Releasing { expected_end_ms } => {
                self.ending.insert(holder, expected_end_ms)
            }
            _ => self.ending.remove(&holder),
        };
    }

    /// Takes over what came from outside.
    pub(crate) fn take_event(&mut self, event: &Event, now_ms: u64) {
        self.now_ms = now_ms;
        match event {
            Event::NodeChanged(node) => self.change_node(Node::clone(node)),
            Event::NodeCondition { node, condition } => {
                if let Some(books) = self.nodes.get_mut(node) {
                    books.node.condition = *condition;
                }
            }
            Event::NodeRemoved { node } => self.remove_node(node),
            Event::QueueChanged(queue) => {
                self.queues.insert(queue.name.clone(), Queue::clone(queue));
            }
            Event::QueueRemoved { name } => {
                self.queues.remove(name);
            }
            Event::Submitted(job) => self.submit(Job::clone(job)),
            Event::JobChanged(job) => {
                if let Some(booked) = self.jobs.get_mut(&job.id) {
                    booked.job = Job::clone(job);
                }
            }
            Event::Adopted { job, holdings } => {
                let mut job = Job::clone(job);
                job.start_ms.get_or_insert(now_ms);
                self.jobs.insert(job.id, BookedJob { job, pods: BTreeMap::new() });
                holdings.iter().for_each(|holding| self.adopt(holding));
            }
            Event::Confirmed { .. } => {}
            Event::BindFailed { pod } => {
                if self.release_pod(*pod)
                    && let Some(booked) = self.jobs.get_mut(&pod.job)
                {
                    booked.job.start_ms = None;
                }
            }
            Event::PodEnded { pod, .. } => {
                if self.release_pod(*pod) {
                    self.jobs.remove(&pod.job);
                }
            }
            Event::HeldChanged(holding) => self.change_held(holding),
            Event::Ended { job, how } => {
                self.note_run(*job, *how);
                self.end_job(*job);
            }
            Event::Checkpointed { job, at_ms } => {
                if let Some(booked) = self.jobs.get_mut(job) {
                    let last = &mut booked.job.interruption.last_checkpoint_ms;
                    *last = (*last).max(Some(*at_ms));
                }
            }
            Event::Ending { job, expected_end_ms } => self.note_ending(*job, *expected_end_ms),
            Event::BookingSet(_) => self.has_bookings = true,
            Event::BudgetChanged(_)
            | Event::BudgetRemoved { .. }
            | Event::BookingRemoved { .. }
            | Event::PolicyChanged { .. }
            | Event::Tick => {}
            Event::ForeignHeld(holding) => self.hold_foreign(holding),
            Event::ForeignReleased { name } => drop(self.release_foreign(name)),
            Event::CountsChanged { owner, counts_into } => self.change_counts(owner, counts_into),
            Event::ReservationEnded { reservation } => {
                for (node, holder) in self.reserved.remove(reservation).unwrap_or_default() {
                    self.release(&node, &holder);
                }
            }
        }
    }

    /// Books a job that waits, with what is known of it from before.
    fn submit(&mut self, mut job: Job) {
        if let Some(history) = self.away.remove(&job.id) {
            job.history = history;
        }
        let booked = BookedJob { job, pods: BTreeMap::new() };
        self.jobs.insert(booked.job.id, booked);
    }

    /// Remembers how often a job ran that is to run again.
    fn note_run(&mut self, job: JobId, how: HowEnded) {
        let booked = self.jobs.get(&job).filter(|booked| booked.runs() && how.runs_again());
        if let Some(booked) = booked {
            let mut history = booked.job.history;
            history.attempts += 1;
            history.preemptions += u32::from(how == HowEnded::Preempted);
            self.away.insert(job, history);
        }
    }

    /// All pods of a job are about to go.
    fn note_ending(&mut self, job: JobId, expected_end_ms: Option<u64>) {
        let pods = self.jobs.get(&job).into_iter().flat_map(|booked| booked.pods.keys());
        let pods =
            pods.map(|(pod_set, ordinal)| PodId { job, pod_set: *pod_set, ordinal: *ordinal });
        let ends = pods.map(|pod| (Holder::Pod(pod), expected_end_ms));
        self.ending.extend(ends);
    }

    fn change_node(&mut self, node: Node) {
        let held = self.nodes.remove(&node.name).map(|books| books.held).unwrap_or_default();
        let name = node.name.clone();
        self.nodes.insert(name.clone(), NodeBooks::new(node, held));
        let arrived: Vec<Holding> =
            self.absent_foreign.values().filter(|holding| holding.node == name).cloned().collect();
        arrived.iter().for_each(|holding| self.hold_foreign(holding));
    }

    fn remove_node(&mut self, name: &NodeName) {
        let Some(books) = self.nodes.get(name) else { return };
        for holder in books.held.keys().cloned().collect::<Vec<_>>() {
            self.release(name, &holder);
            match holder {
                Holder::Pod(pod) => {
                    if let Some(booked) = self.jobs.get_mut(&pod.job) {
                        booked.pods.remove(&(pod.pod_set, pod.ordinal));
                        self.must_be_lost.insert(pod.job);
                    }
                }
                Holder::Foreign(foreign) => {
                    self.foreign.remove(&foreign);
                }
                Holder::Reserved(reservation, _) => {
                    if let Some(kept) = self.reserved.get_mut(&reservation) {
                        kept.retain(|(node, _)| node != name);
                    }
                }
            }
        }
        self.nodes.remove(name);
    }

    /// Forgets a job and frees what it holds.
    pub(crate) fn end_job(&mut self, job: JobId) {
        let Some(booked) = self.jobs.remove(&job) else { return };
        for ((pod_set, ordinal), node) in &booked.pods {
            let pod = dovetail_model::PodId { job, pod_set: *pod_set, ordinal: *ordinal };
            self.release(node, &Holder::Pod(pod));
        }
    }

    /// Frees what a pod holds; true if its job holds nothing then.
    fn release_pod(&mut self, pod: PodId) -> bool {
        let Some(booked) = self.jobs.get_mut(&pod.job) else { return false };
        let Some(node) = booked.pods.remove(&(pod.pod_set, pod.ordinal)) else { return false };
        let set = &mut booked.job.pod_sets[usize::from(pod.pod_set)];
        set.present = set.present.saturating_sub(1);
        let was_last = booked.pods.is_empty();
        self.release(&node, &Holder::Pod(pod));
        was_last
    }

    fn change_held(&mut self, holding: &Holding) {
        let Owner::Pod(pod) = &holding.owner else { return };
        let Some(booked) = self.jobs.get_mut(&pod.job) else { return };
        let at = (pod.pod_set, pod.ordinal);
        let Some(node) = booked.pods.insert(at, holding.node.clone()) else { return };
        let told = self.ending.get(&Holder::Pod(*pod)).copied().flatten();
        self.release(&node, &Holder::Pod(*pod));
        self.hold(&holding.node, Holder::Pod(*pod), held_of(holding));
        self.note_phase(holding);
        // By when was said before.
        if let Some(ends) = self.ending.get_mut(&Holder::Pod(*pod)) {
            *ends = ends.or(told);
        }
    }

    fn hold_foreign(&mut self, holding: &Holding) {
        let Owner::Foreign(name) = &holding.owner else { return };
        drop(self.release_foreign(name));
        if let HoldingPhase::Kept { priority } = holding.phase {
            self.rooms.insert(name.clone(), priority);
        }
        if !self.nodes.contains_key(&holding.node) {
            self.foreign.insert(name.clone(), None);
            self.absent_foreign.insert(name.clone(), holding.clone());
            return;
        }
        self.foreign.insert(name.clone(), Some(holding.node.clone()));
        self.hold(&holding.node, Holder::Foreign(name.clone()), held_of(holding));
        self.note_phase(holding);
    }

    pub(crate) fn release_foreign(&mut self, name: &str) -> Option<HeldAmounts> {
        self.absent_foreign.remove(name);
        self.rooms.remove(name);
        let node = self.foreign.remove(name).flatten()?;
        self.release(&node, &Holder::Foreign(name.to_owned()))
    }

    /// Room that is kept for others is free for a job: only for one of a higher priority that waits
    /// and may stop others.
    pub(crate) fn give_up_room(&mut self, job: JobId, name: &str, found: &mut Vec<Violation>) {
        let may = self.jobs.get(&job).zip(self.rooms.get(name)).is_some_and(|(booked, of)| {
            !booked.runs() && !booked.job.preemption.never_preempts && booked.job.priority > *of
        });
        if !may {
            found.push(Violation::RoomTaken { job, name: name.to_owned() });
        }
        let node = self.foreign.get(name).cloned().flatten();
        if let Some((held, node)) = self.release_foreign(name).zip(node) {
            let name = name.to_owned();
            self.given_up.push(GivenUp { job, name, node, held });
        }
    }

    /// What was held for a job alone is free: it starts, or what it needs is kept for it elsewhere.
    pub(crate) fn end_room_held_for(&mut self, job: JobId) {
        let names = self.jobs.get(&job).map(|booked| booked.job.kept_room.clone());
        names.into_iter().flatten().for_each(|name| drop(self.release_foreign(&name)));
    }

    fn change_counts(&mut self, owner: &Owner, counts_into: &Selectors) {
        let (node, holder) = match owner {
            Owner::Pod(pod) => {
                let booked = self.jobs.get(&pod.job);
                let node = booked.and_then(|b| b.pods.get(&(pod.pod_set, pod.ordinal)).cloned());
                (node, Holder::Pod(*pod))
            }
            Owner::Foreign(name) => {
                if let Some(absent) = self.absent_foreign.get_mut(name) {
                    absent.counts_into = counts_into.clone();
                }
                (self.foreign.get(name).cloned().flatten(), Holder::Foreign(name.clone()))
            }
            Owner::Reservation => return,
        };
        let Some(node) = node else { return };
        let ends = self.ending.get(&holder).map(|end_ms| (holder.clone(), *end_ms));
        let Some(held) = self.release(&node, &holder) else { return };
        self.ending.extend(ends);
        self.hold(&node, holder, HeldAmounts { counts_into: counts_into.clone(), ..held });
    }

    fn hold_reserved(&mut self, reservation: ReservationId, node: &NodeName, held: HeldAmounts) {
        let kept = self.reserved.entry(reservation).or_default();
        let holder = Holder::Reserved(reservation, kept.len() as u32);
        kept.push((node.clone(), holder.clone()));
        self.hold(node, holder, held);
    }

    /// Holds something on a node that is there.
    pub(crate) fn hold(&mut self, node: &NodeName, holder: Holder, held: HeldAmounts) {
        for selector in &held.counts_into {
            let counts = self.counts.entry(selector.clone()).or_default();
            *counts.entry(node.clone()).or_default() += 1;
        }
        self.nodes.get_mut(node).expect("held on a node that is there").hold(holder, held);
    }

    pub(crate) fn release(&mut self, node: &NodeName, holder: &Holder) -> Option<HeldAmounts> {
        let held = self.nodes.get_mut(node)?.release(holder)?;
        self.ending.remove(holder);
        for selector in &held.counts_into {
            let counts = self.counts.entry(selector.clone()).or_default();
            let left = counts.entry(node.clone()).or_default();
            *left -= 1;
            if *left == 0 {
                counts.remove(node);
            }
        }
        Some(held)
    }

    /// Whether the node takes anything new now.
    pub(crate) fn is_open(&self, node: &Node) -> bool {
        let drains = |window: DrainWindow| (window.from_ms..window.to_ms).contains(&self.now_ms);
        node.condition == NodeAvailability::Ready && !node.drain_window.is_some_and(drains)
    }

    /// Labels of the node at the levels of the topology, the widest first, up to `depth` levels;
    /// `None` if it lacks one of them. Below the last level is the node itself.
    pub(crate) fn domain_of(&self, node: &Node, depth: usize) -> Option<Vec<String>> {
        let levels = self.topology.levels.iter().take(depth + 1);
        if depth >= self.topology.levels.len() {
            return Some(vec![node.name.to_string()]);
        }
        levels.map(|level| node.labels.get(&level.label).cloned()).collect()
    }
}

fn held_of(holding: &Holding) -> HeldAmounts {
    HeldAmounts {
        resources: holding.resources.clone(),
        devices: holding.devices.clone(),
        counts_into: holding.counts_into.clone(),
        attachments: holding.attachments.clone(),
    }
}
