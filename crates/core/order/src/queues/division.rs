//! How much of something each of several queues should have, as NVIDIA's KAI Scheduler divides it.
//!
//! Each gets what it asks for within its quota, even if that is more than there is. What is left
//! goes to queues of the highest priority first and among those by weight, in whole units; a queue
//! that takes less than its part leaves the rest to the others. The units that are left over by
//! rounding go to the largest remainders, then to the oldest queues.

use std::cmp::Reverse;

/// A queue that asks for some of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asks {
    /// What it holds and waits for.
    pub request: f64,
    /// Its quota; infinite is no bound.
    pub quota: f64,
    /// Never more than this; infinite is no bound.
    pub limit: f64,
    /// Of what is left beyond quotas; 0 gets nothing of it.
    pub weight: f64,
    /// Higher is given first of what is left.
    pub priority: i32,
}

impl Asks {
    /// The most that it takes.
    fn most(&self) -> f64 {
        self.request.min(self.limit)
    }
}

/// Divides an amount over queues, the oldest first; what each should have.
pub fn divide(total: f64, queues: &[Asks]) -> Vec<f64> {
    let mut shares: Vec<f64> = queues.iter().map(|queue| queue.quota.min(queue.most())).collect();
    let mut left = total - shares.iter().sum::<f64>();
    let mut priorities: Vec<i32> = queues.iter().map(|queue| queue.priority).collect();
    priorities.sort_unstable_by_key(|priority| Reverse(*priority));
    priorities.dedup();
    for priority in priorities {
        let remainders = by_weight(queues, priority, &mut shares, &mut left);
        for (at, _) in remainders {
            if left <= 0.0 {
                break;
            }
            let more = f64::min(1.0, left).min(queues[at].most() - shares[at]);
            shares[at] += more;
            left -= more;
        }
    }
    shares
}

/// Gives whole units by weight until nobody takes less than its part; the remainders, the largest
/// first.
fn by_weight(
    queues: &[Asks],
    priority: i32,
    shares: &mut [f64],
    left: &mut f64,
) -> Vec<(usize, f64)> {
    loop {
        let wants = |at: &usize| {
            let queue = &queues[*at];
            queue.priority == priority && queue.weight > 0.0 && shares[*at] < queue.most()
        };
        let open: Vec<usize> = (0..queues.len()).filter(wants).collect();
        if *left <= 0.0 || open.is_empty() {
            return Vec::new();
        }
        let weights: f64 = open.iter().map(|at| queues[*at].weight).sum();
        let pool = *left;
        let mut remainders = Vec::new();
        let mut is_over = true;
        for at in open {
            let part = pool * queues[at].weight / weights;
            let missing = queues[at].most() - shares[at];
            let given = if part >= missing { missing } else { libm::floor(part) };
            if part >= missing {
                is_over &= part == missing;
            } else {
                remainders.push((at, part - given));
            }
            shares[at] += given;
            *left -= given;
        }
        if is_over {
            remainders.retain(|(_, remainder)| *remainder > 0.0);
            remainders.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            return remainders;
        }
    }
}
