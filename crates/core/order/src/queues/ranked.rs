//! First awake jobs of queues in the order of their turns, for orders that say which ranks change:
//! each job that is tried moves one queue, not all of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{JobId, QueueName};

use super::quota::Rank;
use super::usage::ChangedRanks;
use crate::line::OrderKey;

/// First jobs of queues, each with the number of its class, best place first.
pub type OfQueues = BTreeMap<QueueName, BTreeMap<OrderKey, usize>>;

/// By what counts of a priority before queues, the rank of the queue and the place.
type QueueTurn = (Reverse<i32>, Rank, OrderKey);

/// The first job of each queue, the one whose turn it is first.
#[derive(Debug, Default)]
pub struct RankedHeads {
    by_turn: BTreeMap<QueueTurn, usize>,
    of_queue: BTreeMap<QueueName, QueueTurn>,
    /// Queues that may have another first job or another rank.
    stale: BTreeSet<QueueName>,
    is_all_stale: bool,
}

impl RankedHeads {
    /// A queue may have another first job.
    pub fn note_head(&mut self, queue: &QueueName) {
        if !self.stale.contains(queue) {
            self.stale.insert(queue.clone());
        }
    }

    /// Some queues may have another rank.
    pub fn note_ranks(&mut self, changed: ChangedRanks) {
        self.is_all_stale |= changed.all;
        self.stale.extend(changed.queues);
    }

    /// The job whose turn it is, of these that are awake.
    pub fn first(
        &mut self,
        awake: &OfQueues,
        priority: impl Fn(OrderKey) -> Reverse<i32>,
        mut rank: impl FnMut(&str, JobId) -> Rank,
    ) -> Option<(JobId, usize)> {
        let mut stale = std::mem::take(&mut self.stale);
        if std::mem::take(&mut self.is_all_stale) {
            (self.by_turn, self.of_queue) = Default::default();
            stale = awake.keys().cloned().collect();
        }
        for queue in stale {
            if let Some(before) = self.of_queue.remove(&queue) {
                self.by_turn.remove(&before);
            }
            let head = awake.get(&queue).and_then(BTreeMap::first_key_value);
            let Some((place, class)) = head else { continue };
            let turn = (priority(*place), rank(&queue, place.2), *place);
            self.by_turn.insert(turn.clone(), *class);
            self.of_queue.insert(queue, turn);
        }
        let ((_, _, place), class) = self.by_turn.first_key_value()?;
        Some((place.2, *class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by a look at each queue.
    fn looked_up(awake: &OfQueues, ranks: &BTreeMap<QueueName, u64>) -> Option<(JobId, usize)> {
        let heads = awake.iter().filter_map(|(queue, of_queue)| {
            let (place, class) = of_queue.first_key_value()?;
            Some(((place.0, ranks[queue], *place), *class))
        });
        heads.min().map(|((_, _, place), class)| (place.2, class))
    }

    #[test]
    fn the_first_of_all_queues_is_the_one_that_a_look_at_each_finds() {
        let mut seed = 7_u64;
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        let queues: Vec<QueueName> = (0..6).map(|number| format!("q{number}")).collect();
        let mut ranks: BTreeMap<QueueName, u64> =
            queues.iter().map(|queue| (queue.clone(), 0)).collect();
        let (mut ranked, mut awake) = (RankedHeads::default(), OfQueues::default());
        let mut found = 0;
        for step in 0..5_000 {
            let queue = queues[below(6) as usize].clone();
            match below(8) {
                0 => {
                    ranks.insert(queue.clone(), below(3));
                    let queues = BTreeSet::from([queue]);
                    ranked.note_ranks(ChangedRanks { all: false, queues });
                }
                1 if below(8) == 0 => {
                    ranks.values_mut().for_each(|rank| *rank = below(3));
                    ranked.note_ranks(ChangedRanks { all: true, ..ChangedRanks::default() });
                }
                2..=4 => {
                    let place = (Reverse(below(2) as i32), below(4), JobId(step));
                    awake.entry(queue.clone()).or_default().insert(place, step as usize);
                    ranked.note_head(&queue);
                }
                _ => {
                    if let Some(of_queue) = awake.get_mut(&queue) {
                        of_queue.pop_first();
                        if of_queue.is_empty() {
                            awake.remove(&queue);
                        }
                        ranked.note_head(&queue);
                    }
                }
            }
            let rank = |queue: &str, _: JobId| Rank::from_slice(&[ranks[queue]]);
            let first = ranked.first(&awake, |place| place.0, rank);
            assert_eq!(first, looked_up(&awake, &ranks), "{step}");
            found += usize::from(first.is_some());
        }
        assert!(found > 1_000, "{found}");
    }
}
