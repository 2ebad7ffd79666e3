//! The timeline against a second count, with and without pauses.

use std::collections::BTreeMap;

use dovetail_model::{Action, Event, FreeCause, JobId, NodeAvailability, NodeName, Plan};
use dovetail_plan::{Engine, PolicySpec};
use dovetail_trace::synth::{SynthConfig, SynthProfile, Synthetic, synth};

use super::*;
use crate::timed::{FaultModel, Observer, Simulation, TimedConfig, TimedWorld};

const DAY_MS: u64 = 86_400_000;

fn small() -> Synthetic {
    let profile = SynthProfile::Mixed;
    synth(&SynthConfig { seed: 3, nodes: 12, days: 2, load: 1.2, profile }).expect("within limits")
}

fn world(from: &Synthetic) -> TimedWorld {
    TimedWorld {
        nodes: from.cluster.nodes.clone(),
        jobs: from.trace.jobs.clone(),
        ..TimedWorld::default()
    }
}

fn config(policy: &str) -> TimedConfig {
    let mut config = TimedConfig {
        faults: Some(FaultModel {
            mean_time_between_failures_ms: 5 * DAY_MS,
            mean_time_to_repair_ms: DAY_MS / 8,
            seed: 9,
        }),
        ..TimedConfig::default()
    };
    config.engine.policy = PolicySpec::named(policy);
    config
}

fn simulation(from: &Synthetic) -> Simulation {
    Simulation::new(world(from), config("best-fit")).expect("can run")
}

/// Counts for itself beside a timeline: GPUs of nodes, of running jobs, and what waits.
struct SecondCount {
    timeline: Timeline,
    gpu_milli_of_job: Vec<i64>,
    gpus_of_node: BTreeMap<NodeName, i64>,
    running: BTreeMap<JobId, i64>,
    lost: BTreeMap<NodeName, i64>,
    waiting_jobs: i64,
    begun: bool,
    installed: i128,
    unavailable: i128,
    allocated: i128,
    waiting_job_ms: i128,
}

impl SecondCount {
    fn new(from: &Synthetic, config: TimelineConfig) -> Self {
        let mut jobs: Vec<_> = from.trace.jobs.iter().collect();
        jobs.sort_by_key(|job| job.submit_ms);
        let nodes = from.cluster.nodes.iter();
        Self {
            timeline: Timeline::new(config),
            gpu_milli_of_job: jobs.iter().map(|job| job.total_gpu_milli() as i64).collect(),
            gpus_of_node: nodes
                .map(|node| (node.name.as_str().into(), i64::from(node.gpu_count) * 1_000))
                .collect(),
            running: BTreeMap::new(),
            lost: BTreeMap::new(),
            waiting_jobs: 0,
            begun: false,
            installed: 0,
            unavailable: 0,
            allocated: 0,
            waiting_job_ms: 0,
        }
    }
}

impl Observer for SecondCount {
    fn advanced(&mut self, engine: &mut Engine, from_ms: u64, to_ms: u64) {
        self.timeline.advanced(engine, from_ms, to_ms);
        if self.begun {
            let elapsed = i128::from(to_ms - from_ms);
            let sum = |of: &BTreeMap<_, i64>| i128::from(of.values().sum::<i64>());
            self.installed += sum(&self.gpus_of_node) * elapsed;
            self.unavailable += sum(&self.lost) * elapsed;
            self.allocated += i128::from(self.running.values().sum::<i64>()) * elapsed;
            self.waiting_job_ms += i128::from(self.waiting_jobs) * elapsed;
        }
    }

    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.timeline.stepped(engine, now_ms, events, plan);
        for event in events {
            match event {
                Event::Submitted(_) => self.begun = true,
                Event::Ended { job, .. } => {
                    self.running.remove(job);
                }
                Event::NodeCondition { node, condition: NodeAvailability::NotReady } => {
                    self.lost.insert(node.clone(), self.gpus_of_node[node]);
                }
                Event::NodeCondition { node, .. } => {
                    self.lost.remove(node);
                }
                _ => {}
            }
        }
        for action in &plan.actions {
            if let Action::Bind { pod, .. } = action {
                self.running.insert(pod.job, self.gpu_milli_of_job[pod.job.index()]);
            }
        }
        self.waiting_jobs = engine.list().waiting_jobs() as i64;
    }
}

#[test]
fn sums_are_those_of_a_second_count_and_the_series_adds_up_to_them() {
    let from = small();
    let mut simulation = simulation(&from);
    let mut count = SecondCount::new(&from, TimelineConfig::default());
    assert!(simulation.run(None, &mut count).expect("runs"));
    let usage = count.timeline.usage().expect("adds up");
    let total = &usage.total_gpu_milli_ms;
    assert!(count.unavailable > 0 && total.free > 0, "nothing to see");
    assert_eq!(total.installed, count.installed);
    assert_eq!(total.unavailable, count.unavailable);
    assert_eq!(total.allocated, count.allocated);
    assert_eq!(total.installed, total.unavailable + total.allocated + total.free);
    let series = count.timeline.series().expect("adds up");
    assert!(series.points.len() <= MAX_POINTS && series.points.len() > MAX_POINTS / 2);
    let sum = |of: &dyn Fn(&SeriesPoint) -> f64| -> f64 {
        series.points.iter().map(|point| of(point) * point.length_ms as f64).sum()
    };
    let close = |sum: f64, whole: i128, unit: f64| {
        let whole = whole as f64 / unit;
        assert!((sum - whole).abs() <= whole * 1e-9, "{sum} {whole}");
    };
    close(sum(&|point| point.installed_gpus), count.installed, 1e3);
    close(sum(&|point| point.allocated_gpus), count.allocated, 1e3);
    close(sum(&|point| point.unavailable_gpus), count.unavailable, 1e3);
    close(sum(&|point| point.waiting_jobs), count.waiting_job_ms, 1.0);
    for cause in FreeCause::ALL {
        let of = |point: &SeriesPoint| point.free_gpus_by_cause.get(&cause).copied().unwrap_or(0.0);
        close(sum(&of), total.free_by(cause), 1e3);
    }
    let lengths: u64 = series.points.iter().map(|point| point.length_ms).sum();
    assert_eq!((lengths, series.to_ms), (usage.to_ms - usage.from_ms, usage.to_ms));
}

#[test]
fn watching_changes_no_decision_and_a_pause_changes_no_sum() {
    let from = small();
    let mut unwatched = simulation(&from);
    assert!(unwatched.run(None, &mut ()).expect("runs"));
    let config = TimelineConfig { cause_period_ms: 0, until_ms: None };
    let (mut whole, mut timeline) = (simulation(&from), Timeline::new(config));
    assert!(whole.run(None, &mut timeline).expect("runs"));
    assert_eq!(whole.event_log_hash(), unwatched.event_log_hash());
    let (mut paused, mut parts) = (simulation(&from), Timeline::new(config));
    for pause_ms in [0, DAY_MS / 3, DAY_MS, DAY_MS + 1] {
        paused.run(Some(pause_ms), &mut parts).expect("runs");
        let state = parts.pause().expect("adds up");
        let file = serde_json::to_string(&state).expect("plain data");
        parts = Timeline::resume(serde_json::from_str(&file).expect("the same"));
    }
    assert!(paused.run(None, &mut parts).expect("runs"));
    assert_eq!(parts.usage(), timeline.usage());
    assert_eq!(parts.series(), timeline.series());
}

#[test]
fn causes_are_judged_as_often_whether_or_not_a_run_is_resumed() {
    let from = small();
    let first_fit = || config("first-fit");
    // With the longest period, only what opens is judged after the first time.
    for (cause_period_ms, is_resumed) in [(600_000, false), (600_000, true), (u64::MAX, true)] {
        let watch = TimelineConfig { cause_period_ms, until_ms: None };
        let mut whole = Simulation::new(world(&from), first_fit()).expect("can run");
        let mut timeline = Timeline::new(watch);
        assert!(whole.run(None, &mut timeline).expect("runs"));
        let mut paused = Simulation::new(world(&from), first_fit()).expect("can run");
        let mut parts = Timeline::new(watch);
        let pauses_ms = [DAY_MS / 3, DAY_MS, DAY_MS + DAY_MS / 7];
        for pause_ms in pauses_ms {
            assert!(!paused.run(Some(pause_ms), &mut parts).expect("runs"));
            let state = parts.pause().expect("adds up");
            let file = serde_json::to_string(&state).expect("plain data");
            parts = Timeline::resume(serde_json::from_str(&file).expect("the same"));
            if is_resumed {
                let (snapshot, progress) = (paused.engine.snapshot(), paused.progress().clone());
                let resumed = Simulation::resume(world(&from), first_fit(), &snapshot, progress);
                paused = resumed.expect("the same world");
            }
        }
        assert!(paused.run(None, &mut parts).expect("runs"));
        let (whole, parts) = (timeline.usage().expect("adds up"), parts.usage().expect("adds up"));
        assert_eq!(parts.cause_samples, whole.cause_samples, "{cause_period_ms}");
        let (of_whole, of_parts) = (&whole.total_gpu_milli_ms, &parts.total_gpu_milli_ms);
        assert_eq!((of_parts.free, of_parts.allocated), (of_whole.free, of_whole.allocated));
        // Each pause rounds the split of each model once more.
        let rounded = 2 * (pauses_ms.len() * whole.models_gpu_milli_ms.len()) as i128;
        for cause in FreeCause::ALL.into_iter().filter(|_| !is_resumed) {
            let difference = of_parts.free_by(cause) - of_whole.free_by(cause);
            assert!(difference.abs() <= rounded, "{cause_period_ms} {cause:?}: {difference}");
        }
    }
}

#[test]
fn the_account_ends_where_it_is_told() {
    let from = small();
    let until_ms = Some(DAY_MS + 12_345);
    let config = TimelineConfig { until_ms, ..TimelineConfig::default() };
    let (mut stopped, mut timeline) = (simulation(&from), Timeline::new(config));
    assert!(stopped.run(None, &mut timeline).expect("runs"));
    let usage = timeline.usage().expect("adds up");
    assert_eq!(Some(usage.to_ms), until_ms);
    let gpus = i128::from(from.cluster.total_gpus());
    let elapsed = i128::from(usage.to_ms - usage.from_ms);
    assert_eq!(usage.total_gpu_milli_ms.installed, gpus * 1_000 * elapsed);
}

#[test]
fn an_account_that_saw_nothing_says_so() {
    let mut timeline = Timeline::new(TimelineConfig::default());
    assert_eq!(timeline.usage(), Err(TimelineError::NothingSeen));
    assert_eq!(timeline.series(), Err(TimelineError::NothingSeen));
}

#[test]
fn a_month_is_the_period_scaled_and_unknown_stays_unknown() {
    use dovetail_account::{GpuPrice, Priced};
    let from = small();
    let until_ms = Some(DAY_MS);
    let config = TimelineConfig { until_ms, ..TimelineConfig::default() };
    let (mut simulation, mut timeline) = (simulation(&from), Timeline::new(config));
    simulation.run(None, &mut timeline).expect("runs");
    let usage = timeline.usage().expect("adds up");
    let model = usage.models_gpu_milli_ms.keys().next().expect("a model").clone();
    let price =
        GpuPrice { usd_micros_per_gpu_hour: 2_000_000, source: String::new(), assumed: false };
    let prices = BTreeMap::from([(Some(model.clone()), Priced::Known(price))]);
    let report = UsageReport::new(&usage, &prices).unwrap();
    let known = report.models.iter().find(|of| of.model.as_ref() == Some(&model)).expect("listed");
    let gpus = from.cluster.nodes.iter().filter(|node| node.gpu_model.as_ref() == Some(&model));
    let gpus: u32 = gpus.map(|node| node.gpu_count).sum();
    let month = known.states.installed.estimated_usd_micros_per_month.expect("has a price");
    // 720 hours a month; the period is rounded to the micro-dollar before it is scaled.
    assert!((month - i64::from(gpus) * 720 * 2_000_000).abs() <= 30, "{month}");
    let others = report.models.iter().filter(|of| of.model.as_ref() != Some(&model));
    let others: Vec<_> = others.collect();
    assert!(!others.is_empty());
    assert!(others.iter().all(|of| of.states.installed.usd_micros.is_none()));
    assert_eq!(report.unknown_price_models.len(), others.len());
    let share = report.total.installed.priced_share.expect("installed");
    assert!(share > 0.0 && share < 1.0);
    let waited = report.free_while_work_waited();
    let free = &report.total.free_by_cause;
    let other = [FreeCause::NoDemand, FreeCause::Starting, FreeCause::DrainingOrCordoned];
    let without: i128 = other.iter().map(|cause| free[cause].gpu_milli_ms).sum();
    assert_eq!(waited.gpu_milli_ms, report.total.free.gpu_milli_ms - without);
}
