//! Jobs that were suspended for others are resumed once their pods have terminated: their new pods
//! are pending like all others, with the age and the history of the Job. What is to be resumed is
//! read from the Jobs alone, so that the next leader goes on.

use std::collections::BTreeMap;

use dovetail_cluster::world::SuspendedJob;

use super::known::Known;
use super::news::News;
use crate::order::{OrderEnd, PodOrder};

/// A Job that the server did not let be resumed is resumed after so long, if it is still to be.
const AGAIN_MS: u64 = 30_000;

/// Jobs whose resumption was ordered and that the watch still shows suspended; when to order it
/// again, if it has failed.
#[derive(Debug, Default)]
pub(super) struct Resumes {
    ordered: BTreeMap<SuspendedJob, Option<u64>>,
}

impl Resumes {
    /// Orders to resume the Jobs whose time has come.
    pub(super) fn order(&mut self, known: &mut Known) {
        let ended = known.world.preemption().suspension().ended();
        self.ordered.retain(|job, _| ended.contains(job));
        for job in ended {
            let is_ordered = self.ordered.get(&job).is_some_and(|again_ms| match again_ms {
                Some(again_ms) => *again_ms > known.now_ms,
                None => true,
            });
            if !is_ordered {
                self.ordered.insert(job.clone(), None);
                known.orders.push_back(PodOrder::Resume(Box::new(job)));
            }
        }
    }

    /// Takes what became of an order.
    pub(super) fn ended(&mut self, known: &mut Known, job: &SuspendedJob, end: &OrderEnd) {
        match end {
            OrderEnd::Done => {
                let job = Box::new(job.job.clone());
                known.news.push(News::JobTurned { job, suspended_for: None });
            }
            OrderEnd::Refused { .. } | OrderEnd::Unanswered { .. } => {
                let again_ms = known.now_ms.saturating_add(AGAIN_MS);
                self.ordered.insert(job.clone(), Some(again_ms));
            }
            OrderEnd::Gone | OrderEnd::CalledOff => {}
        }
    }

    /// When the next one is to be ordered again.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.ordered.values().copied().flatten().min()
    }
}
