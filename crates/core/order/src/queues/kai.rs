//! Queues as NVIDIA's KAI Scheduler orders them: by what each should have ([`super::division`]).
//!
//! What each queue should have is divided anew at every cycle, level by level of the tree and for
//! GPUs, CPU and memory by themselves, over what queues hold and wait for.

use std::collections::BTreeMap;

use dovetail_model::{Axis, Bounds, Charge, Queue, QueueName};

use super::division::{Asks, divide};
use super::quota::{Quota, Rank, UsageScope};
use crate::terms::KaiTerms;

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

    /// Where the first job of a queue stands, which asks for so much ([`Self::terms`]).
    pub fn rank(&self, quota: &Quota, name: &str, asked: &Charge) -> Rank {
        let key = |queue: &Queue, level| self.terms(quota, name, asked, (queue, level)).key();
        quota.by_level(name, key).into_iter().flatten().collect()
    }

    /// What decides on one level for the first job of a queue of this name, which asks for so much:
    /// queues within what they should have go first, then those within their quota with the job,
    /// then those of higher priority, then the smaller part of what they should have (their quota
    /// if that is more), with and without the job. The job counts in its own queue alone: siblings
    /// share those above, and which of them asks for more says nothing of it.
    pub fn terms(
        &self,
        quota: &Quota,
        name: &str,
        asked: &Charge,
        (queue, level): (&Queue, UsageScope),
    ) -> KaiTerms {
        let held = quota.held(queue, level);
        let is_above = level == UsageScope::All && queue.name != name;
        let with_job = |axis: &Axis| match is_above {
            true => held.get(axis),
            false => held.get(axis).saturating_add(asked.get(axis)),
        };
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
