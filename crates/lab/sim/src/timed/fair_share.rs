//! What each queue should hold at a moment: its demand-limited max-min share.
//!
//! On every level of the tree a queue first gets what it asks for within its quota, then all that
//! ask for more get equally much for their weight, until they have what they ask for or may hold
//! (water-filling). Amounts are fluid: no job has a size here.

use dovetail_model::{Axis, Queue};

/// The tree of queues, by place in a list.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    weights: Vec<f64>,
    quotas: Vec<f64>,
    limits: Vec<f64>,
    /// Queues below each, and those below none.
    below: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

/// Of what a queue is given in GPUs.
fn gpus(amount: Option<i64>, otherwise: f64) -> f64 {
    amount.map_or(otherwise, |milli| milli as f64 / 1e3)
}

impl Tree {
    pub(super) fn of(queues: &[Queue]) -> Self {
        let at = |name: &String| queues.iter().position(|queue| queue.name == *name);
        let parents: Vec<Option<usize>> =
            queues.iter().map(|queue| queue.parent.as_ref().and_then(at)).collect();
        let mut below = vec![Vec::new(); queues.len()];
        for (child, parent) in parents.iter().enumerate() {
            parent.iter().for_each(|parent| below[*parent].push(child));
        }
        let most = |queue: &Queue| queue.most(&Axis::Gpu).map(|(most, _)| most);
        Self {
            weights: queues.iter().map(|queue| f64::from(queue.weight.max(1))).collect(),
            quotas: queues.iter().map(|queue| gpus(queue.guaranteed.gpu_milli, 0.0)).collect(),
            limits: queues.iter().map(|queue| gpus(most(queue), f64::INFINITY)).collect(),
            below,
            roots: (0..queues.len()).filter(|at| parents[*at].is_none()).collect(),
        }
    }

    /// What each queue should hold of a cluster where its own jobs ask for so much, in GPUs.
    pub(super) fn shares(&self, cluster: f64, asked: &[f64]) -> Vec<f64> {
        let mut asks = asked.to_vec();
        for root in &self.roots {
            self.ask(*root, &mut asks);
        }
        let mut shares = vec![0.0; asked.len()];
        self.give(cluster, &self.roots, (asked, &asks), &mut shares);
        shares
    }

    /// What a queue and everything below it ask for.
    fn ask(&self, at: usize, asks: &mut [f64]) -> f64 {
        let below: f64 = self.below[at].iter().map(|child| self.ask(*child, asks)).sum();
        asks[at] = (asks[at] + below).min(self.limits[at]);
        asks[at]
    }

    fn give(
        &self,
        amount: f64,
        group: &[usize],
        (own, asks): (&[f64], &[f64]),
        shares: &mut [f64],
    ) {
        let wants: Vec<(f64, f64, f64)> =
            group.iter().map(|at| (asks[*at], self.quotas[*at], self.weights[*at])).collect();
        for (at, share) in group.iter().zip(water_fill(amount, &wants)) {
            match self.below[*at].is_empty() {
                true => shares[*at] = share,
                // Its own jobs come after the queues below it.
                false => {
                    self.give(share, &self.below[*at], (own, asks), shares);
                    let below: f64 = self.below[*at].iter().map(|child| shares[*child]).sum();
                    shares[*at] = own[*at].min(f64::max(share - below, 0.0));
                }
            }
        }
    }
}

/// Divides an amount over those who ask for so much and have a quota and a weight.
fn water_fill(amount: f64, wants: &[(f64, f64, f64)]) -> Vec<f64> {
    let quotas: f64 = wants.iter().map(|(asked, quota, _)| quota.min(*asked)).sum();
    let scale = if quotas > amount { amount / quotas } else { 1.0 };
    let mut shares: Vec<f64> =
        wants.iter().map(|(asked, quota, _)| quota.min(*asked) * scale).collect();
    let mut left = amount - shares.iter().sum::<f64>();
    loop {
        let is_open = |at: &usize| wants[*at].0 - shares[*at] > 1e-9;
        let open: Vec<usize> = (0..wants.len()).filter(is_open).collect();
        let weights: f64 = open.iter().map(|at| wants[*at].2).sum();
        if left <= 1e-9 || open.is_empty() {
            return shares;
        }
        // So much for a weight of 1 until the first has what it asks for.
        let to_first = open.iter().map(|at| (wants[*at].0 - shares[*at]) / wants[*at].2);
        let step = to_first.fold(left / weights, f64::min);
        for at in open {
            shares[at] += step * wants[at].2;
        }
        left -= step * weights;
    }
}

#[cfg(test)]
mod tests {
    use dovetail_model::Bounds;

    use super::*;

    #[test]
    fn shares_follow_demand_quotas_weights_limits_and_the_tree() {
        let queue = |name: &str, parent: Option<&str>, quota: i64, weight: u32| Queue {
            parent: parent.map(str::to_owned),
            guaranteed: Bounds::gpus((quota > 0).then_some(quota * 1_000)),
            borrows: true,
            weight,
            ..Queue::named(name)
        };
        let flat = [queue("a", None, 0, 1), queue("b", None, 0, 3), queue("c", None, 0, 1)];
        let shares = |queues: &[Queue], asked: &[f64]| Tree::of(queues).shares(10.0, asked);
        assert_eq!(shares(&flat, &[9.0, 9.0, 9.0]), [2.0, 6.0, 2.0]);
        assert_eq!(shares(&flat, &[9.0, 1.0, 9.0]), [4.5, 1.0, 4.5]);
        assert_eq!(shares(&flat, &[1.0, 1.0, 1.0]), [1.0, 1.0, 1.0]);
        let quotas = [queue("a", None, 6, 1), queue("b", None, 0, 1)];
        assert_eq!(shares(&quotas, &[9.0, 9.0]), [8.0, 2.0]);
        let limited = Queue { limit: Bounds::gpus(Some(2_000)), ..queue("a", None, 0, 1) };
        assert_eq!(shares(&[limited, queue("b", None, 0, 1)], &[9.0, 9.0]), [2.0, 8.0]);
        let tree = [queue("a", None, 0, 1), queue("b", Some("a"), 0, 1), queue("c", None, 0, 1)];
        // What is left of five is for the own jobs of a.
        assert_eq!(shares(&tree, &[9.0, 3.0, 9.0]), [2.0, 3.0, 5.0]);
    }
}
