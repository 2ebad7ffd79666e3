//! What queues have used of the cluster, older use counting less.
//!
//! A queue is charged for what it holds beyond its quota while somebody else wants it: another
//! queue with the same parent, or the parent's own jobs. What nobody else wanted is free. With the
//! rate r at which it is charged and the half-life h, its usage u is after a time t
//!
//! > u 2^(−t/h) + r h / ln 2 (1 − 2^(−t/h)),
//!
//! the exact sum of what it held, at whatever times that is asked for.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Charge, Queue, QueueName, QueueUsage};

use super::model_weights::ModelWeights;
use super::quota::{Quota, Rank, UsageScope, share};
use crate::turn_terms::UsageTerms;

/// The whole cluster for a second.
const CLUSTER_SECOND: f64 = 1e9;

/// What a job counts for at once when it starts, so that a queue gains nothing by a burst: an hour
/// of what it holds.
const ENTRY_S: u64 = 3_600;

/// Usage of a queue, or of its own jobs alone where it has queues below it.
type Key = (QueueName, UsageScope);

/// What queues have used.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Half-life of queues that state none, nor any above them; 0 counts no history.
    half_life_ms: u64,
    models: ModelWeights,
    used: BTreeMap<Key, u64>,
    now_ms: u64,
    /// Ranks that are known, of queues that wait.
    ranks: BTreeMap<QueueName, Rank>,
    /// Of which queues a rank was known that is not any more.
    changed: ChangedRanks,
    ranks_version: u64,
}

/// Queues that may have another rank than when it was asked for.
#[derive(Clone, Debug, Default)]
pub struct ChangedRanks {
    /// All may, whichever are named.
    pub all: bool,
    /// These may.
    pub queues: BTreeSet<QueueName>,
}

/// Usage after a time in which the rate was the same; times in the same unit.
pub fn decayed(used: f64, rate: f64, elapsed: f64, half_life: f64) -> f64 {
    if half_life <= 0.0 {
        return 0.0;
    }
    let exponent = elapsed / half_life * std::f64::consts::LN_2;
    let gone = -libm::expm1(-exponent);
    used * (1.0 - gone) + rate * half_life / std::f64::consts::LN_2 * gone
}

impl Usage {
    /// What was known of these queues. What is as of an earlier time has decayed since; what was
    /// used meanwhile nobody has counted.
    pub fn new(half_life_ms: u64, now_ms: u64, (queues, known): (&[Queue], &[QueueUsage])) -> Self {
        let mut quota = Quota::default();
        queues.iter().for_each(|queue| quota.set(queue.clone()));
        let level = |is_own: bool| if is_own { UsageScope::Own } else { UsageScope::All };
        let key = |usage: &QueueUsage| (usage.queue.clone(), level(usage.is_own));
        let used = |usage: &QueueUsage| {
            let elapsed_s = now_ms.saturating_sub(usage.at_ms) as f64 / 1e3;
            if elapsed_s == 0.0 {
                return usage.used;
            }
            let own_ms = quota.half_life_of(&usage.queue).unwrap_or(half_life_ms);
            libm::round(decayed(usage.used as f64, 0.0, elapsed_s, own_ms as f64 / 1e3)) as u64
        };
        let used = known.iter().map(|usage| (key(usage), used(usage))).collect();
        Self { half_life_ms, used, now_ms, ..Self::default() }
    }

    /// The same, with GPUs counted for the weights of their models.
    #[must_use]
    pub fn by_model(self, models: ModelWeights) -> Self {
        Self { models, ..self }
    }

    /// Until when it is counted, in ms.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// As plain data.
    pub fn plain(&self) -> Vec<QueueUsage> {
        let used = self.used.iter().map(|((queue, level), used)| QueueUsage {
            queue: queue.clone(),
            is_own: *level == UsageScope::Own,
            used: *used,
            at_ms: self.now_ms,
        });
        used.collect()
    }

    /// Time goes on; until now nothing changed of what queues hold and who waits.
    pub fn advance(
        &mut self,
        now_ms: u64,
        (quota, capacity): (&Quota, &Charge),
        waiting: &BTreeSet<QueueName>,
    ) {
        let elapsed_s = now_ms.saturating_sub(self.now_ms) as f64 / 1e3;
        self.now_ms = self.now_ms.max(now_ms);
        if elapsed_s == 0.0 {
            return;
        }
        self.note_all();
        let rivals = Rivals::of(quota, waiting);
        let capacity = &*self.models.weighed(capacity);
        for queue in quota.all() {
            let half_life_ms = quota.half_life_of(&queue.name).unwrap_or(self.half_life_ms);
            for level in [UsageScope::All, UsageScope::Own] {
                let held = quota.held(queue, level);
                let rate = match rivals.want(quota, queue, level) {
                    true => self.charged(queue, level, held, capacity) as f64,
                    false => 0.0,
                };
                let key = (queue.name.clone(), level);
                let before = self.used.get(&key).copied().unwrap_or(0);
                if before == 0 && rate == 0.0 {
                    continue;
                }
                let half_life_s = half_life_ms as f64 / 1e3;
                let after = libm::round(decayed(before as f64, rate, elapsed_s, half_life_s));
                match after as u64 {
                    0 => drop(self.used.remove(&key)),
                    after => drop(self.used.insert(key, after)),
                }
            }
        }
    }

    /// Forgets what was used by queues that are gone.
    pub fn forget_gone(&mut self, quota: &Quota) {
        self.used.retain(|(queue, _), _| quota.knows(queue));
    }

    /// What a queue has used and holds, for its weight: the smallest goes first, after those that
    /// hold less than their quota.
    pub fn rank(&mut self, name: &str, quota: &Quota, capacity: &Charge) -> Rank {
        if let Some(known) = self.ranks.get(name) {
            return known.clone();
        }
        let terms = |queue: &Queue, level| self.terms(queue, level, quota, capacity).key();
        let rank: Rank = quota.by_level(name, terms).into_iter().flatten().collect();
        self.ranks.insert(name.to_owned(), rank.clone());
        rank
    }

    /// What decides between a queue and those beside it.
    pub fn terms(
        &self,
        queue: &Queue,
        level: UsageScope,
        quota: &Quota,
        capacity: &Charge,
    ) -> UsageTerms {
        let held = quota.held(queue, level);
        let capacity = &*self.models.weighed(capacity);
        UsageTerms {
            is_below_quota: level == UsageScope::All && is_below_quota(queue, held),
            used: self.used.get(&(queue.name.clone(), level)).copied().unwrap_or(0),
            entry: self.charged(queue, level, held, capacity).saturating_mul(ENTRY_S),
            weight: queue.weight,
        }
    }

    /// A queue holds more or less: what it and those beside it come to is to be computed again.
    pub fn note(&mut self, queue: &str, quota: &Quota) {
        let root = |name: &str| quota.way_up(name).last().map(|queue| queue.name.clone());
        let above = root(queue);
        self.ranks_version += 1;
        let Self { ranks, changed, .. } = self;
        ranks.retain(|name, _| {
            let is_known = root(name) != above;
            if !is_known {
                changed.queues.insert(name.clone());
            }
            is_known
        });
    }

    /// Everything is to be computed again.
    pub fn note_all(&mut self) {
        self.ranks_version += 1;
        self.ranks.clear();
        self.changed = ChangedRanks { all: true, queues: BTreeSet::new() };
    }

    /// Another one whenever a queue may have another rank.
    pub fn ranks_version(&self) -> u64 {
        self.ranks_version
    }

    /// Which queues may have another rank, since the last call.
    pub fn take_changed_ranks(&mut self) -> ChangedRanks {
        std::mem::take(&mut self.changed)
    }

    /// The part of the cluster, whose GPUs are weighed, that a queue is charged for: what it holds
    /// beyond its quota. Its own jobs have none of their own.
    fn charged(&self, queue: &Queue, level: UsageScope, held: &Charge, capacity: &Charge) -> u64 {
        if level == UsageScope::Own {
            return share(&self.models.weighed(held), capacity, 1);
        }
        let mut beyond = held.clone();
        for (axis, quota) in queue.guaranteed.iter() {
            let over = held.get(&axis).saturating_sub(quota).max(0);
            beyond.set(&axis, over);
        }
        beyond.gpu_milli = self.models.part(held, beyond.gpu_milli);
        share(&beyond, capacity, 1)
    }

    /// What a queue has used, in cluster-seconds.
    pub fn of(&self, queue: &str) -> f64 {
        let used = self.used.get(&(queue.to_owned(), UsageScope::All));
        used.map_or(0.0, |used| *used as f64 / CLUSTER_SECOND)
    }
}

/// Whether a queue holds less than its quota of everything that it has one of.
pub fn is_below_quota(queue: &Queue, held: &Charge) -> bool {
    let mut guaranteed = queue.guaranteed.iter().peekable();
    guaranteed.peek().is_some() && guaranteed.all(|(axis, quota)| held.get(&axis) < quota)
}

/// Who wants what others hold.
struct Rivals {
    /// Of each parent, how many of the queues below it wait, and whether its own jobs do.
    waiting_below: BTreeMap<Option<QueueName>, usize>,
    /// Queues that wait, or those below them.
    waiting: BTreeSet<QueueName>,
    /// Queues of which jobs of their own wait.
    own: BTreeSet<QueueName>,
}

impl Rivals {
    fn of(quota: &Quota, own: &BTreeSet<QueueName>) -> Self {
        let mut all = Self {
            waiting_below: BTreeMap::new(),
            waiting: BTreeSet::new(),
            own: own.iter().filter(|name| quota.knows(name)).cloned().collect(),
        };
        for name in &all.own {
            *all.waiting_below.entry(Some(name.clone())).or_default() += 1;
            for queue in quota.way_up(name) {
                if !all.waiting.insert(queue.name.clone()) {
                    break;
                }
                *all.waiting_below.entry(quota.parent(queue)).or_default() += 1;
            }
        }
        all
    }

    /// Whether any but these jobs wait for what they hold.
    fn want(&self, quota: &Quota, queue: &Queue, level: UsageScope) -> bool {
        let (group, waits) = match level {
            UsageScope::All => (quota.parent(queue), self.waiting.contains(&queue.name)),
            UsageScope::Own => (Some(queue.name.clone()), self.own.contains(&queue.name)),
        };
        let waiting = self.waiting_below.get(&group).copied().unwrap_or(0);
        waiting > usize::from(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held against steps so fine that it makes no difference whether they decay before or after
    /// they are charged.
    #[test]
    fn usage_is_what_fine_steps_of_time_add_up_to() {
        let pieces = [(0.3, 5_000.0), (0.0, 86_400.0), (1.0, 1.0), (0.7, 250_000.0)];
        for half_life in [3_600.0, 86_400.0, 604_800.0] {
            let (mut exact, mut stepped) = (42.0, 42.0_f64);
            for (rate, elapsed) in pieces {
                exact = decayed(exact, rate, elapsed, half_life);
                let steps = 1_000_000;
                let step = elapsed / f64::from(steps);
                let kept = libm::exp2(-step / half_life);
                let half_kept = libm::exp2(-step / half_life / 2.0);
                for _ in 0..steps {
                    stepped = stepped * kept + rate * step * half_kept;
                }
            }
            assert!((exact / stepped - 1.0).abs() < 1e-9, "{half_life}: {exact} {stepped}");
        }
    }

    #[test]
    fn it_makes_no_difference_how_often_usage_is_asked_for() {
        let at_once = decayed(7.0, 0.4, 9_000.0, 3_600.0);
        let halves = decayed(decayed(7.0, 0.4, 4_500.0, 3_600.0), 0.4, 4_500.0, 3_600.0);
        assert!((at_once / halves - 1.0).abs() < 1e-14);
        assert_eq!(decayed(7.0, 0.4, 9_000.0, 0.0), 0.0);
    }
}
