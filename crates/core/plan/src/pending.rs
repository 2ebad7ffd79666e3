//! The pending queue: jobs by class, classes that sleep until an event can help.
//!
//! Jobs that ask for the same (queue, priority aside) form a class: if the first does not fit, none
//! does. Such a class sleeps and names the causes that must go away; an event that touches none of
//! them leaves it asleep.

mod heads;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use dovetail_model::{Job, JobId, PendingReason, QueueName, ReservationId};
use dovetail_order::Order;
pub(crate) use dovetail_order::line::OrderKey;
use dovetail_order::line::{Line, Moved};
use dovetail_order::queues::quota::Rank;
use dovetail_order::queues::ranked::RankedHeads;
use dovetail_order::queues::usage::ChangedRanks;
use rustc_hash::FxHashMap;

use crate::gang::Gang;
use dovetail_state::cause::Help;
use heads::Heads;

/// Jobs that are placeable together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    pub(crate) queue: String,
    pub(crate) gang: Arc<Gang>,
    /// Whether they may stop others.
    pub(crate) preempts: bool,
    /// What is kept for the only one of them.
    pub(crate) claim: Option<ReservationId>,
    /// How long they are expected to run (p90, by bucket), where that decides whether they may
    /// start.
    pub(crate) p90_ms: Option<u64>,
    /// Under which names room is held for the only one of them.
    pub(crate) kept_room: BTreeSet<String>,
}

#[derive(Debug)]
struct Class {
    key: ClassKey,
    jobs: BTreeSet<OrderKey>,
    /// GPUs that each of them asks for at least, in thousandths.
    gpu_milli: i64,
    /// `None` while awake.
    asleep: Option<Sleep>,
}

/// Why a class sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleep {
    /// What must become better.
    pub(crate) wants: Help,
    /// Why its first job has not started.
    pub(crate) reason: PendingReason,
    /// When it wakes in any case: those that are to be preempted write a checkpoint by then.
    pub(crate) until_ms: Option<u64>,
}

impl Sleep {
    /// What its first job is told. While it waits for a checkpoint, its room is as good as there:
    /// new nodes are not what it needs.
    pub(crate) fn told(self) -> PendingReason {
        match self.until_ms {
            Some(_) => PendingReason::WaitingForTurn,
            None => self.reason,
        }
    }

    /// How it goes on after something became better that was not enough: what its first job lacks
    /// may be something else by now.
    pub(crate) fn on(self) -> Self {
        Self { wants: self.wants.with_others(), ..self }
    }
}

/// What the queue of a job has to say in whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ByQueues {
    /// Nothing.
    #[default]
    No,
    /// Among jobs of equal priority.
    WithinPriority,
    /// Before priority, which counts within a queue.
    First,
}

impl ByQueues {
    /// What the priority of a job counts before its queue.
    pub(crate) fn priority_of(self, place: OrderKey) -> Reverse<i32> {
        match self {
            Self::First => Reverse(0),
            Self::No | Self::WithinPriority => place.0,
        }
    }
}

/// All waiting jobs.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    order: Order,
    by_queues: ByQueues,
    /// Whether jobs may pass the first one although the order says otherwise: what that is to have
    /// is reserved.
    backfills: bool,
    classes: Vec<Class>,
    numbers: FxHashMap<ClassKey, usize>,
    /// First job of every class that has one; by queue for orders that look at queues, and where
    /// room is reserved for the first of each queue.
    pub(crate) heads: Heads,
    /// First job of every class that is awake; by queue for orders that look at queues.
    pub(crate) awake: Heads,
    /// The same for orders that look at queues and say which ranks change.
    ranked: RankedHeads,
    waiting: usize,
    /// When sleeping classes wake in any case.
    due: BTreeSet<(u64, usize)>,
    /// Everything that some sleeping class wants, and maybe more.
    wanted: Help,
    /// Who waits behind whom, by GPUs.
    pub(crate) line: Line,
}

impl Pending {
    /// No jobs yet, in this order.
    pub(crate) fn new(order: Order, by_queues: ByQueues, backfills: bool) -> Self {
        Self { order, by_queues, backfills, ..Self::default() }
    }

    /// Whether jobs may pass the first one for which room is reserved.
    pub(crate) fn backfills(&self) -> bool {
        self.backfills
    }

    /// How many jobs wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Adds a job; returns its place and its class.
    pub(crate) fn push(&mut self, job: &Job, value: u64, key: ClassKey) -> (OrderKey, usize) {
        let place = (Reverse(job.priority), value, job.id);
        let number = self.class(key);
        if self.classes[number].jobs.is_empty() {
            self.classes[number].gpu_milli = job.min_gpu_milli();
        }
        self.change(number, |class| class.jobs.insert(place));
        let class = &self.classes[number];
        self.line.enter(place, (class.gpu_milli, number), class.key.claim.is_some());
        self.line.note_submission(job.submit_ms);
        self.waiting += 1;
        (place, number)
    }

    /// What a job's place rests on beside its priority, where the order knows no standings.
    pub(crate) fn value(&self, job: &Job) -> u64 {
        match self.order {
            Order::Fifo | Order::FifoSkip | Order::DominantShare | Order::Dovetail => 0,
            Order::ShortestFirst => job.estimate.map_or(u64::MAX, |estimate| estimate.p50_ms),
        }
    }

    /// Gives a job of a class another value; its new place.
    pub(crate) fn replace(&mut self, place: OrderKey, value: u64, class: usize) -> OrderKey {
        let new = (place.0, value, place.2);
        self.change(class, |class| class.jobs.remove(&place) && class.jobs.insert(new));
        let Class { key, gpu_milli, .. } = &self.classes[class];
        self.line.exit(place, (*gpu_milli, class));
        self.line.enter(new, (*gpu_milli, class), key.claim.is_some());
        new
    }

    /// The number of a class; a new one is awake and has no jobs.
    pub(crate) fn class(&mut self, key: ClassKey) -> usize {
        let next = self.classes.len();
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if number == next {
            self.classes.push(Class { key, jobs: BTreeSet::new(), gpu_milli: 0, asleep: None });
        }
        number
    }

    /// Takes a job out.
    pub(crate) fn remove(&mut self, place: OrderKey, class: usize) {
        self.change(class, |class| class.jobs.remove(&place));
        self.line.exit(place, (self.classes[class].gpu_milli, class));
        self.waiting -= 1;
    }

    /// The job to try next among those behind `after`; `None` if nothing more can start.
    pub(crate) fn next(&self, after: Option<OrderKey>) -> Option<(JobId, usize)> {
        if self.order == Order::Fifo && !self.backfills {
            let (place, class) = self.heads.all.first_key_value()?;
            return self.classes[*class].asleep.is_none().then_some((place.2, *class));
        }
        let from = match after {
            None => Bound::Unbounded,
            Some(place) => Bound::Excluded(place),
        };
        let mut behind = self.awake.all.range((from, Bound::Unbounded));
        behind.next().map(|(place, class)| (place.2, *class))
    }

    /// Whether the order looks at what queues hold: then [`Pending::next_by`] says which job is
    /// next.
    pub(crate) fn looks_at_queues(&self) -> bool {
        self.by_queues != ByQueues::No
    }

    /// The order in which jobs are tried, and what queues have to say in it.
    pub(crate) fn order(&self) -> (Order, ByQueues) {
        (self.order, self.by_queues)
    }

    /// Queues of which jobs wait for what others hold, for orders that look at queues: not those
    /// that only their own bounds stop, nor those for which nothing is the right kind of node.
    pub(crate) fn waiting_queues(&self) -> BTreeSet<QueueName> {
        let waits = |class: &usize| {
            self.classes[*class].asleep.is_none_or(|Sleep { wants, reason, .. }| {
                // What is left within its own bounds is held by others.
                let is_bound = reason == PendingReason::WaitingForQuota && wants != Help::ALL;
                !is_bound && wants.is_given_by_leaving()
            })
        };
        let queues = self.heads.by_queue.iter().filter(|(_, heads)| heads.values().any(waits));
        queues.map(|(queue, _)| queue.clone()).collect()
    }

    /// The job to try next: of those of the highest priority, where that counts before queues, the
    /// one whose queue has the smallest rank. Ranks have `changed` since they were asked for last;
    /// `None` where nobody knows which.
    pub(crate) fn next_by(
        &mut self,
        changed: Option<ChangedRanks>,
        mut rank: impl FnMut(&str, JobId) -> Rank,
    ) -> Option<(JobId, usize)> {
        let by_queues = self.by_queues;
        let priority = |place: OrderKey| by_queues.priority_of(place);
        let is_known = changed.is_some();
        self.ranked.note_ranks(changed.unwrap_or_default());
        let awake = &self.awake.by_queue;
        if is_known && awake.len() > 1 {
            return self.ranked.first(awake, priority, rank);
        }
        let first = self.awake.firsts().map(|(_, place, _)| priority(place)).min()?;
        let mut among = self.awake.firsts().filter(|(_, place, _)| priority(*place) == first);
        let next = match awake.len() {
            1 => among.next(),
            _ => among.min_by_key(|(queue, place, _)| (rank(queue, place.2), *place)),
        };
        next.map(|(_, place, class)| (place.2, class))
    }

    /// Queues with the first jobs of the first of their classes that are awake, for orders that
    /// look at queues.
    pub(crate) fn awake_in_queues(
        &self,
    ) -> impl Iterator<Item = (&QueueName, impl Iterator<Item = (JobId, usize)>)> {
        const MAX_CLASSES: usize = 64;
        self.awake.by_queue.iter().map(|(queue, awake)| {
            let heads = awake.iter().take(MAX_CLASSES);
            (queue, heads.map(|(place, class)| (place.2, *class)))
        })
    }

    /// Puts a class to sleep until something it wants becomes better.
    pub(crate) fn sleep(&mut self, class: usize, sleep: Sleep) {
        self.wanted |= sleep.wants;
        self.change(class, |class| {
            class.asleep = Some(sleep);
            true
        });
    }

    /// When a class wakes in any case, the earliest first.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let with_jobs = self.due.iter().find(|(_, class)| self.class_len(*class) > 0);
        with_jobs.map(|(due_ms, _)| *due_ms)
    }

    /// Wakes the classes whose time has come.
    pub(crate) fn wake_due(&mut self, now_ms: u64) {
        while let Some((due_ms, class)) = self.due.first().copied().filter(|(at, _)| *at <= now_ms)
        {
            self.due.remove(&(due_ms, class));
            self.wake(class);
        }
    }

    /// Why a class sleeps; `None` while it is awake.
    pub(crate) fn asleep(&self, class: usize) -> Option<Sleep> {
        self.classes[class].asleep
    }

    /// All sleeping classes, also those without jobs.
    pub(crate) fn sleeping(&self) -> impl Iterator<Item = (&ClassKey, Sleep)> {
        self.classes.iter().filter_map(|class| Some((&class.key, class.asleep?)))
    }

    pub(crate) fn first_of(&self, class: usize) -> Option<JobId> {
        self.classes[class].jobs.first().map(|place| place.2)
    }

    /// Sleeping classes with jobs that want any of what became better, or that more room may be
    /// lent to. Those without jobs just wake.
    pub(crate) fn asleep_wanting(&mut self, helped: Help) -> Vec<usize> {
        let mut found = Vec::new();
        let is_lent = helped.meets(Help::LENT);
        if !helped.meets(self.wanted) && !is_lent {
            return found;
        }
        self.wanted = Help::NONE;
        for (number, class) in self.classes.iter_mut().enumerate() {
            let Some(Sleep { wants, .. }) = class.asleep else { continue };
            let is_lent = is_lent && class.key.p90_ms.is_some();
            if !wants.meets(helped) && !is_lent {
                self.wanted |= wants;
            } else if class.jobs.is_empty() {
                class.asleep = None;
                self.due.retain(|(_, of)| *of != number);
            } else {
                self.wanted |= wants;
                found.push(number);
            }
        }
        found
    }

    /// What the jobs of a class have in common.
    pub(crate) fn asks(&self, class: usize) -> &ClassKey {
        &self.classes[class].key
    }

    pub(crate) fn wake(&mut self, class: usize) {
        self.change(class, |class| {
            class.asleep = None;
            true
        });
    }

    /// First job of each class, best place first.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (JobId, usize)> {
        self.heads.all.iter().map(|(place, class)| (place.2, *class))
    }

    /// Queues of which jobs wait, where room is reserved.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.heads.by_queue.keys()
    }

    /// First job of each class of a queue, best place first, where room is reserved.
    pub(crate) fn heads_in(&self, queue: &str) -> impl Iterator<Item = (JobId, usize)> {
        let heads = self.heads.by_queue.get(queue).filter(|_| self.backfills).into_iter().flatten();
        heads.map(|(place, class)| (place.2, *class))
    }

    /// Every class with how many jobs it has.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&ClassKey, u64)> {
        self.classes.iter().map(|class| (&class.key, class.jobs.len() as u64))
    }

    /// How many jobs of a class wait.
    pub(crate) fn class_len(&self, class: usize) -> usize {
        self.classes[class].jobs.len()
    }

    fn change(&mut self, number: usize, action: impl FnOnce(&mut Class) -> bool) {
        let class = &mut self.classes[number];
        let head = |class: &Class| class.jobs.first().copied();
        let awake = |class: &Class| head(class).filter(|_| class.asleep.is_none());
        let due = |class: &Class| class.asleep.and_then(|sleep| sleep.until_ms);
        let is_bound = |class: &Class| {
            class.asleep.is_some_and(|sleep| sleep.reason == PendingReason::WaitingForQuota)
        };
        let (before, was_bound) = ((head(class), awake(class), due(class)), is_bound(class));
        action(class);
        let after = (head(class), awake(class), due(class));
        if was_bound != is_bound(class) {
            self.heads.note_bound();
        }
        if before.2 != after.2 {
            before.2.map(|at_ms| self.due.remove(&(at_ms, number)));
            after.2.map(|at_ms| self.due.insert((at_ms, number)));
        }
        let by_queues = self.looks_at_queues();
        let queue = &self.classes[number].key.queue;
        let of_heads = (by_queues || self.backfills).then_some(queue);
        self.heads.change(number, of_heads, (before.0, after.0));
        if by_queues && before.1 != after.1 {
            self.ranked.note_head(queue);
        }
        self.awake.change(number, by_queues.then_some(queue), (before.1, after.1));
    }
}

/// Sleeping classes that have another first job, or whose first job looks at one of these
/// places behind it: with others behind them, they may take more.
pub(crate) fn asleep_before(pending: &Pending, moved: &Moved) -> BTreeSet<usize> {
    let is_asleep = |class: &usize| pending.classes[*class].asleep.is_some();
    let Some(before) = pending.line.before(moved) else {
        return pending.heads.all.values().copied().filter(is_asleep).collect();
    };
    let first = before.iter().filter_map(|place| pending.heads.all.get(place)).copied();
    let own = moved.classes().filter(|class| pending.class_len(*class) > 0);
    first.chain(own).filter(is_asleep).collect()
}
