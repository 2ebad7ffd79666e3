//! When the containers of a pod ran, and how they ended, from kube-state-metrics.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_phases::job_phases::{ContainerRun, RunEnd};

use super::query::{JobSeries, NOTE};
use crate::prometheus::{Labels, SeriesSample, own_label};

/// What is known of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodEvents {
    /// By container: when it started, in ms.
    starts_ms: BTreeMap<String, BTreeSet<u64>>,
    /// By container: moments of samples at which it ran.
    running_ms: BTreeMap<String, BTreeSet<u64>>,
    end: Option<RunEnd>,
    /// Its containers started again after something else than success.
    failed_before: bool,
    /// They started again after success.
    succeeded_before: bool,
    /// When checkpoints were complete, as far as it told, on its own clock.
    checkpoints_ms: BTreeSet<u64>,
}

impl PodEvents {
    pub(super) fn take(&mut self, kind: JobSeries, labels: &Labels, samples: &[SeriesSample]) {
        let text = |name: &str| own_label(labels, name).unwrap_or_default();
        // Years 1970 to 10000.
        let is_time = |seconds: f64| (1.0..253_402_300_800.0).contains(&seconds);
        let is_one = samples.iter().any(|sample| sample.value == 1.0);
        match kind {
            JobSeries::Started => {
                let times = samples.iter().filter(|sample| is_time(sample.value));
                let times = times.map(|sample| (sample.value * 1000.0) as u64);
                self.starts_ms.entry(text("container")).or_default().extend(times);
            }
            JobSeries::Running => {
                let times = samples.iter().filter(|sample| sample.value == 1.0);
                let times = times.filter_map(|sample| u64::try_from(sample.at_ms).ok());
                self.running_ms.entry(text("container")).or_default().extend(times);
            }
            JobSeries::CheckpointCounted => {
                let times = samples.iter().filter(|sample| is_time(sample.value));
                self.checkpoints_ms.extend(times.map(|sample| (sample.value * 1000.0) as u64));
            }
            JobSeries::CheckpointNoted => {
                let noted = text(NOTE).parse::<jiff::Timestamp>().ok();
                let at_ms = noted.and_then(|at| u64::try_from(at.as_millisecond()).ok());
                self.checkpoints_ms.extend(at_ms);
            }
            JobSeries::Ended if is_one => {
                self.end = Some(match text("phase").as_str() {
                    "Succeeded" => RunEnd::Completed,
                    _ => RunEnd::Lost,
                });
            }
            JobSeries::EndedBefore if is_one => match text("reason").as_str() {
                "Completed" => self.succeeded_before = true,
                _ => self.failed_before = true,
            },
            _ => {}
        }
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (container, times) in &more.starts_ms {
            self.starts_ms.entry(container.clone()).or_default().extend(times);
        }
        for (container, times) in &more.running_ms {
            self.running_ms.entry(container.clone()).or_default().extend(times);
        }
        self.end = more.end.or(self.end);
        self.failed_before |= more.failed_before;
        self.succeeded_before |= more.succeeded_before;
        self.checkpoints_ms.extend(&more.checkpoints_ms);
    }

    /// Whether anybody told how the pod ended.
    pub(super) fn has_end(&self) -> bool {
        self.end.is_some()
    }

    /// When checkpoints were complete, as far as the pod told, on its own clock.
    pub(super) fn checkpoints_ms(&self) -> impl Iterator<Item = u64> {
        self.checkpoints_ms.iter().copied()
    }

    /// When a container is known to have started first, on its own clock.
    pub(super) fn first_start_ms(&self, container: &str) -> Option<u64> {
        of(&self.starts_ms, container).first().copied()
    }

    /// Whether a container started after a moment.
    pub(super) fn started_after(&self, at_ms: u64) -> bool {
        self.starts_ms.values().any(|starts| starts.range(at_ms..).next().is_some())
    }

    /// The runs of a container within the time for which its device was held, on the clock of the
    /// bill: one step after their own.
    pub(super) fn runs(&self, container: &str, held: Span, step_ms: u64) -> Vec<ContainerRun> {
        let last_end = self.end.unwrap_or(RunEnd::Open);
        let starts = of(&self.starts_ms, container);
        let running = of(&self.running_ms, container);
        let starts: Vec<u64> = starts
            .iter()
            .map(|at_ms| at_ms.saturating_add(step_ms))
            .filter(|at_ms| *at_ms < held.to_ms)
            .collect();
        if starts.is_empty() {
            return vec![ContainerRun { span: held, end: last_end }];
        }
        // What a container ran before is what happened before the device was held.
        let first = starts.iter().rposition(|at_ms| *at_ms <= held.from_ms).unwrap_or(0);
        let starts = &starts[first..];
        let mut runs = Vec::with_capacity(starts.len());
        for (place, start_ms) in starts.iter().enumerate() {
            let from_ms = (*start_ms).max(held.from_ms);
            let next_ms = starts.get(place + 1).copied();
            let limit_ms = next_ms.unwrap_or(held.to_ms);
            // A sample before the next start is still of this run.
            let before_ms = next_ms.map_or(limit_ms, |next_ms| next_ms.saturating_sub(step_ms));
            let seen_ms = running.range(..before_ms).next_back().map(|at_ms| at_ms + step_ms);
            let seen_ms = seen_ms.filter(|at_ms| *at_ms > from_ms).map(|at_ms| at_ms.min(limit_ms));
            let (to_ms, end) = match next_ms {
                Some(next_ms) => (seen_ms.unwrap_or(next_ms), self.end_before()),
                None if self.end.is_some() => (seen_ms.unwrap_or(held.to_ms), last_end),
                None => (held.to_ms, RunEnd::Open),
            };
            runs.push(ContainerRun { span: Span { from_ms, to_ms }, end });
        }
        runs
    }

    /// How a run ended after which another came. Nobody restarts what is done, unless it is told
    /// to.
    fn end_before(&self) -> RunEnd {
        if self.succeeded_before && !self.failed_before { RunEnd::Completed } else { RunEnd::Lost }
    }
}

/// What is known of a container; where it is not named, of all of them.
fn of(by_container: &BTreeMap<String, BTreeSet<u64>>, container: &str) -> BTreeSet<u64> {
    match by_container.get(container) {
        Some(times) => times.clone(),
        // A pod with helpers: the one that started first and most often stands for it.
        None => by_container.values().max_by_key(|times| times.len()).cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_MS: u64 = 60_000;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn minutes(range: std::ops::Range<i64>, value: impl Fn(i64) -> f64) -> Vec<SeriesSample> {
        range.map(|minute| SeriesSample { at_ms: minute * 60_000, value: value(minute) }).collect()
    }

    /// Held from minute 10 to 60; the image took until 12; it failed at 30, came back at 35, and
    /// was done at 58.
    #[test]
    fn a_restart_in_place_is_two_runs() {
        let main = labels(&[("container", "main")]);
        let mut events = PodEvents::default();
        let started = |minute: i64| if minute < 35 { 12.0 * 60.0 } else { 35.0 * 60.0 };
        events.take(JobSeries::Started, &main, &minutes(12..58, started));
        let ran = |minute: i64| f64::from(u8::from(!(31..35).contains(&minute)));
        events.take(JobSeries::Running, &main, &minutes(12..59, ran));
        let failed = labels(&[("container", "main"), ("reason", "Error")]);
        events.take(JobSeries::EndedBefore, &failed, &minutes(60..61, |_| 1.0));
        events.take(
            JobSeries::Ended,
            &labels(&[("phase", "Succeeded")]),
            &minutes(60..61, |_| 1.0),
        );
        events.take(JobSeries::Ended, &labels(&[("phase", "Failed")]), &minutes(60..61, |_| 0.0));
        let span = |from: u64, to: u64| Span { from_ms: from * STEP_MS, to_ms: to * STEP_MS };
        let run = |from, to, end| ContainerRun { span: span(from, to), end };
        // On the clock of the bill: one minute later.
        let wanted = [run(13, 31, RunEnd::Lost), run(36, 59, RunEnd::Completed)];
        assert_eq!(events.runs("main", span(11, 61), STEP_MS), wanted);
        // A name that nobody knows is that of the container whose starts are known.
        assert_eq!(events.runs("", span(11, 61), STEP_MS), wanted);
        // Only what lies within the holding.
        let late = [run(40, 59, RunEnd::Completed)];
        assert_eq!(events.runs("main", span(40, 61), STEP_MS), late);
        let unknown = PodEvents::default().runs("main", span(1, 2), STEP_MS);
        assert_eq!(unknown, [run(1, 2, RunEnd::Open)]);
    }
}
