//! What queues are given and hold: whether a job may start within that, and which queue holds the
//! smallest share of the cluster for its weight.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Axis, BoundBy, Bounds, Charge, Queue, QueueName};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::kai::FairShares;
use crate::turn_terms::ShareTerms;

/// Shares are counted in parts of a billion of what the cluster has.
pub const WHOLE: i128 = 1_000_000_000;

/// Bounds and usage per queue. A queue nobody described has no bounds and no parent.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    queues: BTreeMap<QueueName, Queue>,
    /// Those that nobody described ([`Quota::meet`]).
    nameless: BTreeSet<QueueName>,
    used: BTreeMap<QueueName, QueueCharges>,
    version: u64,
    /// What queues should have, where the order divides the whole cluster.
    pub shares: Option<FairShares>,
}

/// With what is below a queue, or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// Everything of it and below it.
    All,
    /// Its own jobs, which compete with the queues below it.
    Own,
}

/// What a queue holds.
#[derive(Clone, Debug, Default)]
struct QueueCharges {
    /// With everything below it.
    all: Charge,
    /// By its own jobs.
    own: Charge,
}

/// What queues are to hold beyond what they hold; less than nothing is about to be given back.
pub type Beside = BTreeMap<QueueName, Charge>;

/// What keeps a job from starting by the bounds of its queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaBlock {
    /// The queue at its bound: that of the job or one above it.
    pub queue: QueueName,
    /// Of what it would hold too much.
    pub axis: Axis,
    /// What it holds, with everything below it.
    pub used: i64,
    /// What is kept beyond that for jobs that others are being stopped for.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub kept: i64,
    /// What the job needs at its smallest size.
    pub asked: i64,
    /// The most that it may hold.
    pub most: i64,
    /// What bounds it.
    pub by: BoundBy,
}

fn is_nothing(amount: &i64) -> bool {
    *amount == 0
}

/// What a queue holds, and its share of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueUse {
    /// What the queue and everything below it hold.
    pub used: Charge,
    /// The greatest part that this is of anything the cluster has, in parts of a billion: its
    /// dominant share.
    pub share: u64,
}

/// Where a queue and those above it stand, the uppermost first: the smallest goes first.
pub type Rank = SmallVec<[u64; 8]>;

impl Quota {
    /// Without queues; `shares` where the order divides the whole cluster.
    pub fn new(shares: Option<FairShares>) -> Self {
        Self { shares, ..Self::default() }
    }

    /// Another one whenever queues, or what they hold, may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Describes a queue, anew where it was described.
    pub fn set(&mut self, queue: Queue) {
        self.version += 1;
        self.nameless.remove(&queue.name);
        self.queues.insert(queue.name.clone(), queue);
    }

    /// The queue is described no more; what is used of it stays counted.
    pub fn remove(&mut self, name: &str) {
        self.version += 1;
        self.queues.remove(name);
    }

    /// Queues that somebody described.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.values().filter(|queue| !self.nameless.contains(&queue.name))
    }

    /// These, and those that jobs name although nobody described them.
    pub fn all(&self) -> impl Iterator<Item = &Queue> {
        self.queues.values()
    }

    /// Whether there is a queue of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    /// A job names a queue: without a description it is given nothing and bound by nothing.
    pub fn meet(&mut self, name: &str) {
        if !self.knows(name) {
            self.version += 1;
            self.nameless.insert(name.to_owned());
            self.queues.insert(name.to_owned(), Queue::named(name));
        }
    }

    /// The queue above another, if it is known.
    pub fn parent(&self, queue: &Queue) -> Option<QueueName> {
        queue.parent.clone().filter(|parent| self.knows(parent))
    }

    /// What a queue holds.
    pub fn held(&self, queue: &Queue, level: UsageScope) -> &Charge {
        const NOTHING: &Charge = &Charge {
            gpu_milli: 0,
            cpu_milli: 0,
            memory_bytes: 0,
            extended: BTreeMap::new(),
            by_model: BTreeMap::new(),
        };
        let used = self.used.get(&queue.name);
        used.map_or(NOTHING, |used| match level {
            UsageScope::All => &used.all,
            UsageScope::Own => &used.own,
        })
    }

    /// What a queue gets back from others, and nobody takes: its quota, or what it should have
    /// where the order divides the whole cluster.
    pub fn entitled<'q>(&self, queue: &'q Queue) -> Cow<'q, Bounds> {
        match &self.shares {
            Some(shares) => Cow::Owned(shares.bounds(&queue.name)),
            None => Cow::Borrowed(&queue.guaranteed),
        }
    }

    /// The half-life of what a queue has used, its own or that of the nearest queue above it that
    /// states one.
    pub fn half_life_of(&self, queue: &str) -> Option<u64> {
        self.way_up(queue).find_map(|queue| queue.half_life_ms)
    }

    /// Whether anything bounds what a queue holds.
    pub fn bounds(&self, queue: &str) -> bool {
        self.way_up(queue).any(|queue| queue.bounded().next().is_some())
    }

    /// Whether a queue or one above it can be at a bound: at its quota, it is not if it borrows.
    pub fn limits(&self, queue: &str) -> bool {
        self.way_up(queue)
            .any(|queue| !queue.limit.is_empty() || !queue.borrows && !queue.guaranteed.is_empty())
    }

    /// The first bound, of the queue itself or of one above, that keeps a job from starting which
    /// asks for so much, with what they are to hold besides.
    pub fn blocked_by(&self, queue: &str, asked: &Charge, beside: &Beside) -> Option<QuotaBlock> {
        self.blocks(queue, asked, beside).next()
    }

    /// Every bound that keeps a job from starting which asks for so much.
    pub fn blocks<'b>(
        &'b self,
        queue: &str,
        asked: &'b Charge,
        beside: &'b Beside,
    ) -> impl Iterator<Item = QuotaBlock> + use<'b> {
        let way_up = self.way_up(queue);
        way_up.flat_map(move |queue| self.blocks_of(queue, asked, beside))
    }

    fn blocks_of<'b>(
        &'b self,
        queue: &'b Queue,
        asked: &'b Charge,
        beside: &'b Beside,
    ) -> impl Iterator<Item = QuotaBlock> + use<'b> {
        let used = self.used.get(&queue.name).map(|used| &used.all);
        let kept = beside.get(&queue.name);
        let asked = asked.iter().filter(|(_, amount)| *amount > 0);
        asked.filter_map(move |(axis, asked)| {
            let (most, by) = queue.most(&axis)?;
            let used = used.map_or(0, |used| used.get(&axis));
            let kept = kept.map_or(0, |kept| kept.get(&axis));
            let queue = queue.name.clone();
            let after = used.saturating_add(kept).saturating_add(asked);
            let block = QuotaBlock { queue, axis, used, kept, asked, most, by };
            (after > most).then_some(block)
        })
    }

    /// How much more the queue may hold, by its own bounds and those above, with what they are to
    /// hold besides.
    pub fn headroom(&self, queue: &str, beside: &Beside) -> Bounds {
        let mut headroom = Bounds::default();
        for queue in self.way_up(queue) {
            let used = self.used.get(&queue.name).map(|used| &used.all);
            let kept = beside.get(&queue.name);
            for axis in queue.bounded() {
                let Some((most, _)) = queue.most(&axis) else { continue };
                let used = used.map_or(0, |used| used.get(&axis));
                let kept = kept.map_or(0, |kept| kept.get(&axis));
                let left = most.saturating_sub(used).saturating_sub(kept);
                let least = headroom.get(&axis).map_or(left, |known| known.min(left));
                headroom.set(&axis, least);
            }
        }
        headroom
    }

    /// Counts a charge so many times (negative: takes back) for the queue and all above it.
    pub fn add(&mut self, queue: &str, charge: &Charge, times: i64) {
        self.version += 1;
        if !self.queues.contains_key(queue) {
            return;
        }
        let names: SmallVec<[QueueName; 4]> =
            self.way_up(queue).map(|queue| queue.name.clone()).collect();
        for (above, name) in names.into_iter().enumerate() {
            let used = self.used.entry(name).or_default();
            used.all.add_times(charge, times);
            if above == 0 {
                used.own.add_times(charge, times);
            }
        }
    }

    /// Recounts usage after the tree changed.
    pub fn recount<'a>(&mut self, holds: impl Iterator<Item = (&'a str, &'a Charge)>) {
        self.version += 1;
        self.used.clear();
        for (queue, charge) in holds {
            self.add(queue, charge, 1);
        }
    }

    /// What a queue holds of what the cluster has.
    pub fn use_of(&self, queue: &str, capacity: &Charge) -> QueueUse {
        let used = self.used.get(queue).map(|used| used.all.clone()).unwrap_or_default();
        let share = share(&used, capacity, 1);
        QueueUse { used, share }
    }

    /// Where the jobs of a queue stand among those of the same priority, by dominant shares.
    pub fn rank(&self, queue: &str, capacity: &Charge) -> Rank {
        let key = |queue: &Queue, level| self.terms(queue, level, capacity).key();
        self.by_level(queue, key).into_iter().collect()
    }

    /// What decides between a queue and those beside it, by dominant shares.
    pub fn terms(&self, queue: &Queue, level: UsageScope, capacity: &Charge) -> ShareTerms {
        ShareTerms { share: share(self.held(queue, level), capacity, 1), weight: queue.weight }
    }

    /// A value of each queue above this one, the uppermost first, and of this one; its own jobs
    /// come last: they compete with the queues below it.
    pub fn by_level<'s, T>(
        &'s self,
        queue: &str,
        mut value: impl FnMut(&'s Queue, UsageScope) -> T,
    ) -> SmallVec<[T; 4]> {
        let path: SmallVec<[&'s Queue; 4]> = self.way_up(queue).collect();
        let above = path.iter().rev().map(|queue| (*queue, UsageScope::All));
        let own = path.first().map(|own| (*own, UsageScope::Own));
        above.chain(own).map(|(queue, level)| value(queue, level)).collect()
    }

    /// The queue and its parents; a cycle ends where it closes.
    pub fn way_up<'s>(&'s self, queue: &str) -> impl Iterator<Item = &'s Queue> + use<'s> {
        let mut next = self.queues.get(queue);
        let mut seen: SmallVec<[&'s str; 8]> = SmallVec::new();
        std::iter::from_fn(move || {
            let current = next.filter(|queue| !seen.contains(&queue.name.as_str()))?;
            seen.push(&current.name);
            next = current.parent.as_ref().and_then(|parent| self.queues.get(parent));
            Some(current)
        })
    }
}

/// The dominant share for a weight (Ghodsi et al., Dominant Resource Fairness, NSDI 2011). Of what
/// the cluster has nothing of, anything is everything.
pub fn share(used: &Charge, capacity: &Charge, weight: u32) -> u64 {
    let part = |(axis, used): (Axis, i64)| match capacity.get(&axis) {
        have if have > 0 => i128::from(used) * WHOLE / i128::from(have),
        _ => WHOLE,
    };
    // GPUs of one model are GPUs, and count as those.
    let counts = |(axis, amount): &(Axis, i64)| *amount > 0 && !matches!(axis, Axis::GpuModel(_));
    let dominant = used.iter().filter(counts).map(part).max().unwrap_or(0);
    u64::try_from(dominant / i128::from(weight.max(1))).unwrap_or(u64::MAX)
}
