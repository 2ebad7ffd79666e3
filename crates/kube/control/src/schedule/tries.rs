//! How many pods were to be stopped in vain for each job that waits: where the server lets nobody go, not every pod of
//! the cluster is tried for it.

use std::collections::BTreeMap;

use dovetail_model::JobId;

use crate::pause::doubled;

/// After so many stops in vain, one after the other, a job stops nobody for a while.
pub(super) const MOST_TRIES: u32 = 16;
/// First and longest such pause, in milliseconds.
const PAUSES_MS: (u64, u64) = (60_000, 600_000);

/// Jobs for which a stop was in vain, and none went well since.
#[derive(Debug, Default)]
pub(super) struct Tries {
    jobs: BTreeMap<JobId, InVain>,
}

#[derive(Debug, Default)]
struct InVain {
    tries: u32,
    pauses: u32,
    /// Until when it stops nobody.
    until_ms: Option<u64>,
}

impl Tries {
    /// A stop was in vain. Whether nobody is to be stopped for the job now.
    pub(super) fn in_vain(&mut self, job: JobId, now_ms: u64) -> bool {
        let known = self.jobs.entry(job).or_default();
        known.tries += 1;
        if known.tries < MOST_TRIES {
            return false;
        }
        known.until_ms = Some(now_ms.saturating_add(doubled(PAUSES_MS, known.pauses)));
        known.tries = 0;
        known.pauses += 1;
        true
    }

    /// Until when a job stops nobody, if that is so.
    pub(super) fn until_ms(&self, job: JobId) -> Option<u64> {
        self.jobs.get(&job)?.until_ms
    }

    /// Jobs whose pause is over.
    pub(super) fn take_due(&mut self, now_ms: u64) -> Vec<JobId> {
        let is_due = |known: &InVain| known.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let mut due = Vec::new();
        for (job, known) in self.jobs.iter_mut().filter(|(_, known)| is_due(known)) {
            known.until_ms = None;
            due.push(*job);
        }
        due
    }

    /// When the first pause is over.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.jobs.values().filter_map(|known| known.until_ms).min()
    }

    /// A stop went well, or the job waits no more.
    pub(super) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_so_many_in_a_row_comes_a_pause_that_doubles() {
        let (one, other) = (JobId(1), JobId(2));
        let mut tries = Tries::default();
        let mut now_ms = 0;
        for pause_ms in [60_000, 120_000, 240_000, 480_000, 600_000, 600_000] {
            assert!((1..MOST_TRIES).all(|_| !tries.in_vain(one, now_ms)));
            assert!(!tries.in_vain(other, now_ms) && tries.until_ms(one).is_none());
            assert!(tries.in_vain(one, now_ms));
            now_ms += pause_ms;
            assert_eq!((tries.take_due(now_ms - 1), tries.due_ms()), (vec![], Some(now_ms)));
            assert_eq!((tries.take_due(now_ms), tries.due_ms()), (vec![one], None));
        }
        tries.forget(one);
        assert!(!tries.in_vain(one, now_ms));
    }
}
