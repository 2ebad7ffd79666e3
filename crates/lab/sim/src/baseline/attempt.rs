//! The attempts of one job: what it has left to do, and what stops of it cost.

use dovetail_model::InterruptionCost;

/// Where a job stands. Times in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptState {
    costs: Option<InterruptionCost>,
    /// Work that nothing keeps yet, as of the start of the running attempt.
    work_us: u64,
    started_us: u64,
    stops: u32,
    /// Time of its attempts that did nothing: work done again, and restarts.
    pub(super) lost_us: u64,
}

impl AttemptState {
    /// A job that has not started.
    pub(super) fn new(service_us: u64, costs: Option<InterruptionCost>) -> Self {
        Self { costs, work_us: service_us, started_us: 0, stops: 0, lost_us: 0 }
    }

    /// Starts at a time; how long it takes to the end, given what remains without costs.
    pub(super) fn start(&mut self, now_us: u64, remaining_us: u64) -> u64 {
        self.started_us = now_us;
        match &self.costs {
            None => remaining_us,
            Some(costs) => {
                self.lost_us += costs.restart_ms(self.stops == 0);
                costs.attempt_ms(self.work_us, self.stops == 0)
            }
        }
    }

    /// Stops at a time; what remains then, given what would remain without costs.
    pub(super) fn stop(&mut self, now_us: u64, remaining_us: u64) -> u64 {
        let is_first = self.stops == 0;
        self.stops += 1;
        let Some(costs) = &self.costs else { return remaining_us };
        let did = costs.preempted_after(now_us - self.started_us, is_first);
        // The whole time to come back was counted when it started.
        let cut_short_us = costs.restart_ms(is_first) - did.restart_ms;
        self.lost_us = self.lost_us + did.unsaved_ms - cut_short_us;
        self.work_us = self.work_us.saturating_sub(did.saved_ms);
        self.work_us
    }

    pub(super) fn stops(&self) -> u32 {
        self.stops
    }
}
