//! The same jobs under every policy, side by side.

use anyhow::Result;
use dovetail_check::Watch;
use dovetail_model::{Event, Plan};
use dovetail_plan::{Engine, EngineConfig, Order, PolicySpec};
use dovetail_sim::comparison::{RunAccount, TimedComparison, TimedPolicy, TimedRun};
use dovetail_sim::timed::{Estimates, Impossible, Observer, Simulation, TimedConfig, TimedWorld};
use dovetail_sim::timeline::{Timeline, TimelineConfig, UsageReport};
use dovetail_trace::{TraceCluster, TraceJob};
use rayon::prelude::*;

use crate::host::{Host, Prices};

/// Two settings of the scheduler that clusters have, a simple policy, and the default.
pub(crate) const POLICIES: [&str; 4] =
    ["kube-default", "kube-most-allocated", "best-fit", "dovetail"];
/// How long a judgement of causes may be out of date; the sums are exact whatever this is.
const CAUSE_PERIOD_MS: u64 = 600_000;

pub(crate) fn compared(
    trace: &str,
    cluster: &TraceCluster,
    jobs: &[TraceJob],
    prices: &Prices,
    host: &dyn Host,
) -> Result<TimedComparison> {
    host.started((jobs.len() * POLICIES.len()) as u64);
    let impossible = Impossible::of(&cluster.nodes, jobs)?;
    let policies = POLICIES
        .par_iter()
        .map(|policy| replay(policy, cluster, jobs, prices, host))
        .collect::<Result<Vec<TimedPolicy>>>()?;
    Ok(TimedComparison {
        trace: trace.to_owned(),
        nodes: cluster.nodes.len() as u64,
        gpus: cluster.total_gpus(),
        policies,
        impossible_jobs: impossible.impossible_jobs,
        first_impossible_jobs: impossible.first_impossible_jobs,
        ..TimedComparison::default()
    })
}

fn replay(
    policy: &str,
    cluster: &TraceCluster,
    jobs: &[TraceJob],
    prices: &Prices,
    host: &dyn Host,
) -> Result<TimedPolicy> {
    let spec = PolicySpec::named(policy);
    let engine = EngineConfig { policy: spec, order: Order::FifoSkip, ..EngineConfig::default() };
    let config = TimedConfig { engine, estimates: Estimates::Trace, ..TimedConfig::default() };
    let world =
        TimedWorld { nodes: cluster.nodes.clone(), jobs: jobs.to_vec(), ..TimedWorld::default() };
    // Behind the last submission a trace offers nothing, and an emptying cluster says nothing.
    let until_ms = jobs.iter().map(|job| job.submit_ms).max();
    let timeline = Timeline::new(TimelineConfig { cause_period_ms: CAUSE_PERIOD_MS, until_ms });
    let mut simulation = Simulation::new(world, config)?;
    let judge = Watch::new(&simulation.engine.snapshot(), Watch::SAMPLED);
    let mut eyes = Eyes { timeline, judge, host };
    simulation.run(None, &mut eyes)?;
    eyes.judge.verdict()?;
    let usage = UsageReport::new(&eyes.timeline.usage()?, prices)?;
    let learns = simulation.engine.policy().learnt().is_some();
    let run = TimedRun {
        seed: 0,
        metrics: simulation.metrics(),
        account: Some(RunAccount { usage, series: eyes.timeline.series()? }),
        event_log_hash: simulation.event_log_hash(),
    };
    Ok(TimedPolicy {
        policy: policy.to_owned(),
        learning_started_from: learns.then(|| "nothing".to_owned()),
        runs: vec![run],
    })
}

/// The account of GPU-time, the judge of every action, and who shows the progress.
struct Eyes<'h> {
    timeline: Timeline,
    judge: Watch,
    host: &'h dyn Host,
}

impl Observer for Eyes<'_> {
    fn advanced(&mut self, engine: &mut Engine, from_ms: u64, to_ms: u64) {
        self.timeline.advanced(engine, from_ms, to_ms);
    }

    fn stepped(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.timeline.stepped(engine, now_ms, events, plan);
        self.judge.step(events, plan, now_ms);
        let ended = events.iter().filter(|event| matches!(event, Event::Ended { .. }));
        self.host.advanced(ended.count() as u64);
    }
}
