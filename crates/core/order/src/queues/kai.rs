//! Queues as NVIDIA's KAI Scheduler orders them: by what each should have ([`super::division`]).
//!
//! What each queue should have is divided anew at every cycle, level by level of the tree and for
//! GPUs, CPU and memory by themselves, over what queues hold and wait for.

use std::collections::BTreeMap;

use dovetail_model::{Axis, Bounds, Charge, Queue, QueueName};
use smallvec::SmallVec;

use super::division::{Asks, divide};
use super::quota::{Quota, Rank, UsageScope};
use crate::turn_terms::KaiTerms;

const AXES: [Axis; 3] = [Axis::Gpu, Axis::Cpu, Axis::Memory];

/// KAI counts whole GPUs.
const UNITS: [f64; 3] = [1e3, 1.0, 1.0];

/// What queues should have, in the units of [`UNITS`].
#[derive(Clone, Debug, Default)]
pub struct FairShares(BTreeMap<QueueName, [f64; 3]>);

impl FairShares {
    /// Divides a cluster over queues of which jobs of their own wait for so much.
    pub fn of(quota: &Quota, capacity: &Charge, waiting: &BTreeMap<QueueName, Charge>) -> Self {
        let mut requests: BTreeMap<&str, Charge> = BTreeMap::new();
        for queue in quota.all() {
            requests.insert(&queue.name, quota.held(queue, UsageScope::All).clone());
        }
        for (name, asked) in waiting {
            for queue in quota.way_up(name) {
                requests.entry(&queue.name).or_default().add_times(asked, 1);
            }
        }
        let mut below: BTreeMap<Option<QueueName>, Vec<&Queue>> = BTreeMap::new();
        for queue in quota.all() {
            below.entry(quota.parent(queue)).or_default().push(queue);
        }
        let mut shares = Self::default();
        let total = std::array::from_fn(|at| capacity.get(&AXES[at]) as f64 / UNITS[at]);
        shares.give(&None, total, &below, &requests);
        shares
    }

    fn give(
        &mut self,
        parent: &Option<QueueName>,
        total: [f64; 3],
        below: &BTreeMap<Option<QueueName>, Vec<&Queue>>,
        requests: &BTreeMap<&str, Charge>,
    ) {
        let Some(group) = below.get(parent) else { return };
        let mut shares = vec![[0.0; 3]; group.len()];
        for (axis, name) in AXES.iter().enumerate() {
            let asks = group.iter().map(|queue| Asks {
                request: requests[queue.name.as_str()].get(name) as f64 / UNITS[axis],
                quota: queue.guaranteed.get(name).map_or(0.0, |quota| quota as f64 / UNITS[axis]),
                limit: queue
                    .limit
                    .get(name)
                    .map_or(f64::INFINITY, |limit| limit as f64 / UNITS[axis]),
                weight: f64::from(queue.weight),
                priority: queue.priority,
            });
            let divided = divide(total[axis], &asks.collect::<Vec<_>>());
            shares.iter_mut().zip(divided).for_each(|(share, of)| share[axis] = of);
        }
        for (queue, share) in group.iter().zip(shares) {
            self.0.insert(queue.name.clone(), share);
            self.give(&Some(queue.name.clone()), share, below, requests);
        }
    }

    /// What a queue should have of something, in its own units.
    pub fn get(&self, queue: &str, axis: &Axis) -> i64 {
        let at = AXES.iter().position(|known| known == axis);
        let share = at.and_then(|at| Some(self.0.get(queue)?[at] * UNITS[at]));
        share.map_or(i64::MAX, |share| share as i64)
    }

    /// All that a queue should have.
    pub fn bounds(&self, queue: &str) -> Bounds {
        let mut bounds = Bounds::default();
        AXES.iter().for_each(|axis| bounds.set(axis, self.get(queue, axis)));
        bounds
    }

    /// Whose turn it is of the first jobs of queues, each with what it asks for and its place. On
    /// each level of the tree, the first of those below a queue stands for it; of equal ones, the
    /// levels below count, then the place.
    pub fn first<'q, P: Ord>(
        &self,
        quota: &'q Quota,
        jobs: impl Iterator<Item = (&'q str, Charge, P)>,
    ) -> Option<P> {
        let level_of = |asked: &Charge, queue: &'q Queue, scope: UsageScope| {
            let key = self.terms(quota, asked, (queue, scope)).key();
            ((queue.name.as_str(), scope), key)
        };
        let mut left: Vec<Head<'q, P>> = jobs
            .map(|(name, asked, place)| {
                let levels = quota.by_level(name, |queue, scope| level_of(&asked, queue, scope));
                Head { levels, place }
            })
            .collect();
        let deepest = left.iter().map(|head| head.levels.len()).max()?;
        for depth in (0..=deepest).rev() {
            left.sort_by(|one, other| {
                let above = one.above(depth).cmp(other.above(depth));
                let below = || one.keys_from(depth).cmp(other.keys_from(depth));
                above.then_with(below).then_with(|| one.place.cmp(&other.place))
            });
            left.dedup_by(|later, first| {
                let is_below = |head: &Head<'q, P>| head.levels.len() > depth;
                is_below(later) && is_below(first) && later.above(depth).eq(first.above(depth))
            });
        }
        left.into_iter().next().map(|head| head.place)
    }

    /// Where any job of a queue stands that asks for so much, whichever others wait: above its own
    /// queue it does not count, as siblings share those, and which of them asks for more says
    /// nothing of it.
    pub fn rank(&self, quota: &Quota, name: &str, asked: &Charge) -> Rank {
        let nothing = Charge::default();
        let key = |queue: &Queue, scope: UsageScope| {
            let is_above = scope == UsageScope::All && queue.name != name;
            let counted = if is_above { &nothing } else { asked };
            self.terms_with(quota, (asked, counted), (queue, scope)).key()
        };
        quota.by_level(name, key).into_iter().flatten().collect()
    }

    /// What decides between a queue and those beside it if this job, which asks for so much, is the
    /// first below it: queues within what they should have go first, then those within their quota
    /// with the job, then those of higher priority, then the smaller part of what they should have
    /// (their quota if that is more), with and without the job.
    pub fn terms(
        &self,
        quota: &Quota,
        asked: &Charge,
        (queue, scope): (&Queue, UsageScope),
    ) -> KaiTerms {
        self.terms_with(quota, (asked, asked), (queue, scope))
    }

    /// The same where the job asks for so much and counts so much.
    fn terms_with(
        &self,
        quota: &Quota,
        (asked, counted): (&Charge, &Charge),
        (queue, scope): (&Queue, UsageScope),
    ) -> KaiTerms {
        let held = quota.held(queue, scope);
        let with_job = |axis: &Axis| held.get(axis).saturating_add(counted.get(axis));
        let asks = || AXES.iter().filter(|axis| asked.get(axis) > 0);
        let part = |amount: &dyn Fn(&Axis) -> i64| {
            let parts = AXES.iter().map(|axis| {
                let quota = queue.guaranteed.get(axis).unwrap_or(0);
                let share = self.get(&queue.name, axis).max(quota);
                let amount = amount(axis);
                match (amount, share) {
                    (0, _) => 0.0,
                    (_, 0) => 1e9,
                    _ => amount as f64 / share as f64,
                }
            });
            (parts.fold(0.0, f64::max).min(1e9) * 1e6) as u64
        };
        KaiTerms {
            is_over_share: AXES.iter().any(|axis| held.get(axis) > self.get(&queue.name, axis)),
            is_beyond_quota: asks()
                .any(|axis| with_job(axis) > queue.guaranteed.get(axis).unwrap_or(0)),
            priority: queue.priority,
            part_with_job: part(&with_job),
            part: part(&|axis| held.get(axis)),
        }
    }
}

/// A queue on one level of the tree, with what decides there.
type Level<'q> = ((&'q str, UsageScope), [u64; 5]);

/// The first job of a queue among others.
struct Head<'q, P> {
    /// Its queue and those above, the uppermost first.
    levels: SmallVec<[Level<'q>; 4]>,
    place: P,
}

impl<P> Head<'_, P> {
    /// The queues above a depth of the tree.
    fn above(&self, depth: usize) -> impl Iterator<Item = (&str, UsageScope)> {
        self.levels.iter().take(depth).map(|(queue, _)| *queue)
    }

    /// What decides from a depth of the tree on.
    fn keys_from(&self, depth: usize) -> impl Iterator<Item = &[u64; 5]> {
        self.levels.iter().skip(depth).map(|(_, key)| key)
    }
}
