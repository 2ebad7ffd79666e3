//! What every order shares: the clock, the progress of running jobs, and the event stream.

use super::{
    BaselineError, BaselineEvent, BaselineEventKind, BaselineJob, JobOutcome,
    attempt::AttemptState, job::Arrival,
};

/// State of a replay between two events. Jobs are numbered by arrival.
pub(super) struct Replay<'a> {
    jobs: &'a [BaselineJob],
    arrivals: &'a [Arrival],
    on_event: &'a mut dyn FnMut(BaselineEvent),
    now_us: u64,
    arrived: usize,
    remaining_us: Vec<u64>,
    attempts: Vec<AttemptState>,
    is_running: Vec<bool>,
    /// Numbers of the running jobs, ascending.
    running: Vec<u32>,
    next_end_us: Option<u64>,
    start_us: Vec<Option<u64>>,
    end_us: Vec<Option<u64>>,
    held_gpu_us: u128,
}

impl<'a> Replay<'a> {
    pub(super) fn new(
        jobs: &'a [BaselineJob],
        arrivals: &'a [Arrival],
        on_event: &'a mut dyn FnMut(BaselineEvent),
    ) -> Self {
        Self {
            jobs,
            arrivals,
            on_event,
            now_us: 0,
            arrived: 0,
            remaining_us: arrivals.iter().map(|arrival| arrival.service_us).collect(),
            attempts: arrivals
                .iter()
                .map(|a| AttemptState::new(a.service_us, a.stop_costs))
                .collect(),
            is_running: vec![false; arrivals.len()],
            running: Vec::new(),
            next_end_us: None,
            start_us: vec![None; arrivals.len()],
            end_us: vec![None; arrivals.len()],
            held_gpu_us: 0,
        }
    }

    /// The next instant at which a job arrives or ends; none when everything has ended.
    pub(super) fn next_event_us(&self) -> Option<u64> {
        let next_arrival_us = self.arrivals.get(self.arrived).map(|arrival| arrival.submit_us);
        next_arrival_us.into_iter().chain(self.next_end_us).min()
    }

    /// Moves the clock to `time_us`, which must not lie beyond the next event: ends the jobs that
    /// are due, takes what the others did off their remaining service, and returns the time passed.
    pub(super) fn advance_to(&mut self, time_us: u64) -> u64 {
        let elapsed_us = time_us - self.now_us;
        let due = self.next_end_us == Some(time_us);
        let mut still_running = Vec::with_capacity(self.running.len());
        for job in std::mem::take(&mut self.running) {
            let number = job as usize;
            let arrival = &self.arrivals[number];
            self.held_gpu_us += u128::from(elapsed_us) * u128::from(arrival.num_gpu);
            if due && self.remaining_us[number] == elapsed_us {
                self.end_us[number] = Some(time_us);
                self.is_running[number] = false;
                self.now_us = time_us;
                self.emit(job, BaselineEventKind::End);
            } else {
                self.remaining_us[number] -= elapsed_us.saturating_sub(arrival.overhead_us);
                still_running.push(job);
            }
        }
        self.running = still_running;
        self.now_us = time_us;
        elapsed_us
    }

    /// Numbers of the jobs submitted by now that were not handed out before.
    pub(super) fn take_arrivals(&mut self) -> std::ops::Range<u32> {
        let first = self.arrived;
        while self.arrivals.get(self.arrived).is_some_and(|next| next.submit_us <= self.now_us) {
            self.arrived += 1;
        }
        first as u32..self.arrived as u32
    }

    /// Makes `chosen` the running set: stops and starts what differs, and expects the next end.
    pub(super) fn run_only(&mut self, mut chosen: Vec<u32>) -> Result<(), BaselineError> {
        chosen.sort_unstable();
        let previous = std::mem::replace(&mut self.running, chosen);
        for &job in &previous {
            if self.running.binary_search(&job).is_err() {
                let number = job as usize;
                self.is_running[number] = false;
                self.remaining_us[number] =
                    self.attempts[number].stop(self.now_us, self.remaining_us[number]);
                self.emit(job, BaselineEventKind::Stop);
            }
        }
        self.next_end_us = None;
        for position in 0..self.running.len() {
            let job = self.running[position];
            let number = job as usize;
            if !self.is_running[number] {
                self.is_running[number] = true;
                self.start_us[number].get_or_insert(self.now_us);
                self.remaining_us[number] =
                    self.attempts[number].start(self.now_us, self.remaining_us[number]);
                self.emit(job, BaselineEventKind::Start);
            }
            let end_us = self.now_us.checked_add(self.remaining_us[number]).ok_or_else(|| {
                let input_index = self.arrivals[number].input_index as usize;
                BaselineError::TimeTooLarge { job: self.jobs[input_index].name.clone() }
            })?;
            self.next_end_us = Some(self.next_end_us.map_or(end_us, |next| next.min(end_us)));
        }
        Ok(())
    }

    pub(super) fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(super) fn running(&self) -> &[u32] {
        &self.running
    }

    pub(super) fn is_running(&self, job: u32) -> bool {
        self.is_running[job as usize]
    }

    pub(super) fn has_ended(&self, job: u32) -> bool {
        self.end_us[job as usize].is_some()
    }

    pub(super) fn remaining_us(&self, job: u32) -> u64 {
        self.remaining_us[job as usize]
    }

    pub(super) fn num_gpu(&self, job: u32) -> u32 {
        self.arrivals[job as usize].num_gpu
    }

    /// How often jobs were stopped, and the GPU-microseconds that this cost.
    pub(super) fn stops(&self) -> (u64, u128) {
        let stops = self.attempts.iter().map(|attempt| u64::from(attempt.stops())).sum();
        let lost =
            self.attempts.iter().zip(self.arrivals).map(|(attempt, arrival)| {
                u128::from(attempt.lost_us) * u128::from(arrival.num_gpu)
            });
        (stops, lost.sum())
    }

    pub(super) fn jobs_in_total(&self) -> usize {
        self.arrivals.len()
    }

    /// Times of every job in the order of the input, and the GPU-microseconds held by all.
    pub(super) fn into_outcomes(self) -> (Vec<JobOutcome>, u128) {
        let mut outcomes: Vec<JobOutcome> = self
            .jobs
            .iter()
            .map(|job| JobOutcome { submit_us: job.submit_us, start_us: 0, end_us: 0 })
            .collect();
        for (number, arrival) in self.arrivals.iter().enumerate() {
            let outcome = &mut outcomes[arrival.input_index as usize];
            // Every job fits an empty cluster, so a replay that has no next event has ended all.
            outcome.start_us = self.start_us[number].expect("every job has started");
            outcome.end_us = self.end_us[number].expect("every job has ended");
        }
        (outcomes, self.held_gpu_us)
    }

    fn emit(&mut self, job: u32, kind: BaselineEventKind) {
        let job = self.arrivals[job as usize].input_index;
        (self.on_event)(BaselineEvent { time_us: self.now_us, job, kind });
    }
}
