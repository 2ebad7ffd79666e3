//! What an attempt of a job does, and what is left of it when it is stopped.

use dovetail_model::{HowEnded, InterruptionCost};

use crate::timed::progress::JobProgress;

impl JobProgress {
    /// How long the attempt takes that begins now, if nothing stops it.
    pub(crate) fn attempt_ms(&self, costs: &InterruptionCost) -> u64 {
        costs.attempt_ms(self.remaining_ms, self.outcome.restarts == 0)
    }

    /// The job has done all its work.
    pub(crate) fn finish(&mut self, costs: &InterruptionCost, gpu_milli: u128, now_ms: u64) {
        let restart_ms = costs.restart_ms(self.outcome.restarts == 0);
        self.outcome.restart_gpu_milli_ms += gpu_milli * u128::from(restart_ms);
        self.outcome.end_ms = Some(now_ms);
        self.remaining_ms = 0;
    }

    /// The attempt is stopped after it ran so long: what no checkpoint kept is to be done again.
    pub(crate) fn interrupt(
        &mut self,
        costs: &InterruptionCost,
        gpu_milli: u128,
        how: HowEnded,
        ran_ms: u64,
    ) {
        let is_first = self.outcome.restarts == 0;
        let did = match how {
            HowEnded::Preempted => costs.preempted_after(ran_ms, is_first),
            _ => costs.stopped_after(ran_ms, is_first),
        };
        self.remaining_ms = self.remaining_ms.saturating_sub(did.saved_ms);
        let outcome = &mut self.outcome;
        outcome.restarts += 1;
        outcome.preemptions += u32::from(how == HowEnded::Preempted);
        outcome.repeated_gpu_milli_ms += gpu_milli * u128::from(did.unsaved_ms);
        outcome.restart_gpu_milli_ms += gpu_milli * u128::from(did.restart_ms);
    }
}
