//! The whole job at each sample: what one member did is understood from what the others did.

use super::attempt::Attempt;
use super::level::JobLevels;
use super::mixture::Mixture;
use super::reading::{Channel, SampleReading};
use super::record::{JobRecord, RunEnd};

/// All members.
#[derive(Debug)]
pub(super) struct JobScene {
    pub(super) members: Vec<MemberScene>,
    /// By sample, to the end of what was read and of what was held.
    pub(super) steps: Vec<CombinedSample>,
    pub(super) levels: JobLevels,
    /// By attempt: the first sample with work, of any member.
    pub(super) first_work: Vec<Option<usize>>,
    /// By attempt: its start was not seen.
    pub(super) underway: Vec<bool>,
}

#[derive(Debug)]
pub(super) struct MemberScene {
    pub(super) readings: Vec<SampleReading>,
    pub(super) mixtures: Vec<Mixture>,
    /// While it works: the usual share of a sample without work, and that without a kernel.
    pub(super) usual_waiting: f64,
    pub(super) usual_idle: f64,
    /// While it works: CPUs in thousandths, and bytes per second inwards.
    usual_cpu_milli: Option<f64>,
    usual_inwards: Option<f64>,
    /// By attempt that completed: the last sample with work, or in which the result was written.
    pub(super) closes: Vec<Option<usize>>,
}

/// What all members together did in one sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CombinedSample {
    /// Most work of any member.
    pub(super) work: f64,
    /// Most spinning of any member.
    pub(super) spin: f64,
    /// Most of what cannot be told apart, of any member.
    pub(super) busy: f64,
    /// Highest rate outwards.
    pub(super) outwards: Option<f64>,
    /// Highest rate inwards.
    pub(super) inwards: Option<f64>,
    /// A host of a member that ran no kernel worked for it.
    pub(super) is_fed: bool,
    /// Members of which something is known.
    pub(super) known: usize,
}

/// A sample with so much work is one in which the job runs.
const RUNS: f64 = 0.25;
/// A sample with so much work belongs to the job's time of work.
const WORKS: f64 = 0.1;
/// Members idle for so much of a sample when their host does it for them.
const WAITS_FOR_HOST: f64 = 0.4;

impl JobScene {
    /// Looks at all samples.
    pub(super) fn of(record: &JobRecord, attempts: &[Attempt]) -> Self {
        let last_ms = record.members.iter().map(|member| member.held.to_ms).max().unwrap_or(0);
        let held = last_ms.saturating_sub(record.from_ms) / record.step_ms + 1;
        let readings: Vec<Vec<SampleReading>> =
            record.members.iter().map(|member| SampleReading::all_of(&member.samples)).collect();
        let levels = JobLevels::of(&readings);
        let read = readings.iter().map(Vec::len).max().unwrap_or(0);
        let count = read.max(held as usize);
        let mut steps = vec![CombinedSample::default(); count];
        let mut members = Vec::new();
        for (member, readings) in record.members.iter().zip(readings) {
            let mixture = |reading: &SampleReading| Mixture::of(reading, &levels, record.ranks);
            let mut mixtures: Vec<Mixture> = readings.iter().map(mixture).collect();
            drop_usual_traffic(&mut mixtures);
            let held = member.held;
            for (number, mixture) in mixtures.iter().enumerate() {
                let middle_ms =
                    record.from_ms + number as u64 * record.step_ms + record.step_ms / 2;
                if held.from_ms <= middle_ms && middle_ms < held.to_ms {
                    steps[number].add(mixture);
                }
            }
            members.push(MemberScene::of(readings, mixtures));
        }
        let mut scene =
            Self { members, steps, levels, first_work: Vec::new(), underway: Vec::new() };
        let range = |attempt: &Attempt| {
            let first = place(attempt.span.from_ms, record);
            first.min(count)..(place(attempt.span.to_ms, record) + 1).min(count)
        };
        let writes = scene.writes();
        for attempt in attempts {
            scene.underway.push(attempt.is_underway);
            scene.first_work.push(first_run(&scene.steps, range(attempt)));
            for member in &mut scene.members {
                let last = member.last_work_in(range(attempt));
                // What is written after the last work is the result.
                let write = writes.iter().rev().find(|row| range(attempt).contains(&row.1));
                let told = place(*record.checkpoints_ms.last().unwrap_or(&0), record);
                let told = Some(told).filter(|told| range(attempt).contains(told));
                let written = write.map(|row| row.1).max(told);
                let closes = last.map(|last| written.map_or(last, |written| last.max(written)));
                member.closes.push(closes.filter(|_| attempt.end == RunEnd::Completed));
            }
        }
        scene
    }

    /// Rows of samples in which something was written, with the highest rate in each: first, last,
    /// rate.
    pub(super) fn writes(&self) -> Vec<(usize, usize, f64)> {
        rows(&self.steps, |step| step.outwards)
    }

    /// The rate at which checkpoints are written: what was written over the time waited for it, as
    /// it mostly is, and no less than was seen.
    pub(super) fn write_rate(&self, writes: &[(usize, usize, f64)]) -> f64 {
        let seen = writes.iter().map(|row| row.2).fold(0.0, f64::max);
        let of_row = |(first, last, _): &(usize, usize, f64)| {
            let steps = *first..=*last;
            let written: f64 = steps.clone().filter_map(|step| self.steps[step].outwards).sum();
            let waited: f64 = steps.map(|step| self.waited(step)).sum();
            (waited > 0.0).then(|| written / waited)
        };
        let usual = median(writes.iter().filter_map(of_row).collect());
        usual.map_or(seen, |usual| usual.max(seen))
    }

    /// The most that any member waited beyond the usual.
    fn waited(&self, step: usize) -> f64 {
        let waited = self.members.iter().filter_map(|member| {
            let mixture = member.mixtures.get(step)?;
            Some(member.excess(mixture.waiting()))
        });
        waited.fold(0.0, f64::max)
    }

    /// The same of what was read.
    pub(super) fn reads(&self) -> Vec<(usize, usize, f64)> {
        rows(&self.steps, |step| step.inwards)
    }
}

/// The sample of a moment.
fn place(at_ms: u64, record: &JobRecord) -> usize {
    (at_ms.saturating_sub(record.from_ms) / record.step_ms) as usize
}

/// What goes out all the time while a member works is no checkpoint: gradients, for example.
fn drop_usual_traffic(mixtures: &mut [Mixture]) {
    const MORE: f64 = 3.0;
    let working = mixtures.iter().filter(|mixture| mixture.work + mixture.busy > RUNS);
    let rates = working.map(|mixture| mixture.host.outwards.unwrap_or(0.0));
    let usual = median(rates.collect()).unwrap_or(0.0);
    for mixture in mixtures {
        mixture.host.outwards = mixture.host.outwards.filter(|rate| *rate > MORE * usual);
    }
}

fn rows(
    steps: &[CombinedSample],
    rate: impl Fn(&CombinedSample) -> Option<f64>,
) -> Vec<(usize, usize, f64)> {
    let mut rows: Vec<(usize, usize, f64)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let Some(rate) = rate(step) else { continue };
        match rows.last_mut().filter(|row| row.1 + 1 == number) {
            Some(row) => (row.1, row.2) = (number, row.2.max(rate)),
            None => rows.push((number, number, rate)),
        }
    }
    rows
}

/// The first of two samples with work in a row: one alone is a test of the device.
fn first_run(steps: &[CombinedSample], range: std::ops::Range<usize>) -> Option<usize> {
    let runs = |number: usize| {
        steps.get(number).is_none_or(|step| step.known == 0 || step.work + step.busy > RUNS)
    };
    let is_known = |number: &usize| steps[*number].known > 0;
    let mut places = range.filter(is_known);
    places.find(|number| runs(*number) && runs(*number + 1))
}

impl CombinedSample {
    fn add(&mut self, mixture: &Mixture) {
        let host = mixture.host;
        self.work = self.work.max(mixture.work);
        self.spin = self.spin.max(mixture.spin);
        self.busy = self.busy.max(mixture.busy);
        self.outwards = max(self.outwards, host.outwards);
        self.inwards = max(self.inwards, host.inwards);
        self.is_fed |= mixture.idle > WAITS_FOR_HOST && (host.feeds() || host.outwards.is_some());
        self.known += usize::from(mixture.unknown < 1.0);
    }
}

fn max(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

impl MemberScene {
    fn of(readings: Vec<SampleReading>, mixtures: Vec<Mixture>) -> Self {
        let works = |number: &usize| {
            let mixture: &Mixture = &mixtures[*number];
            mixture.work + mixture.busy > RUNS && mixture.host.outwards.is_none()
        };
        let working: Vec<usize> = (0..mixtures.len()).filter(works).collect();
        let usual = |of: &dyn Fn(usize) -> Option<f64>| {
            median(working.iter().filter_map(|number| of(*number)).collect())
        };
        Self {
            usual_waiting: usual(&|number| Some(mixtures[number].waiting())).unwrap_or(0.0),
            usual_idle: usual(&|number| Some(mixtures[number].idle)).unwrap_or(0.0),
            usual_cpu_milli: usual(&|number| readings[number].get(Channel::Cpu)),
            usual_inwards: usual(&|number| readings[number].inwards()),
            closes: Vec::new(),
            readings,
            mixtures,
        }
    }

    fn last_work_in(&self, range: std::ops::Range<usize>) -> Option<usize> {
        let works = |number: &usize| {
            self.mixtures.get(*number).is_some_and(|mixture| mixture.work + mixture.busy > WORKS)
        };
        range.rev().find(works)
    }

    /// What part of a sample was wait beyond the usual.
    pub(super) fn excess(&self, waiting: f64) -> f64 {
        const NOISE: f64 = 0.04;
        let excess = (waiting - self.usual_waiting) / (1.0 - self.usual_waiting).max(0.05);
        if excess < NOISE { 0.0 } else { excess }
    }

    /// The host did less for the device in a sample than it usually does, in such a measure that it
    /// was not what the device waited for.
    pub(super) fn is_slack(&self, number: usize) -> bool {
        let (reading, mixture) = (&self.readings[number], &self.mixtures[number]);
        let excess = (mixture.idle - self.usual_idle) / (1.0 - self.usual_idle).max(0.05);
        let ratio = |now: Option<f64>, usual: Option<f64>, least: f64| {
            let usual = usual.filter(|usual| *usual > least)?;
            Some(now? / usual)
        };
        let cpu = ratio(reading.get(Channel::Cpu), self.usual_cpu_milli, 1500.0);
        let inwards = ratio(reading.inwards(), self.usual_inwards, 12e6);
        max(cpu, inwards).is_some_and(|ratio| excess > 0.08 && ratio < 1.0 - 0.42 * excess)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}
