//! One run of the protocol.

use dovetail_model::{Action, Event, JobId, NodeName, Plan};
use dovetail_plan::meter::FragmentationMeter;
use dovetail_plan::{Batch, Engine, EngineConfig, EngineError, Learnt, TargetPod};
use dovetail_trace::fgd::typical_pods;
use dovetail_trace::{TraceJob, TraceNode};
use std::collections::BTreeMap;

use crate::event_log::EventLog;
use crate::fgd::curve::{CurveSample, Curves, curves};
use crate::world::{self, JobFactory};

/// What the protocol runs on.
#[derive(Clone, Copy, Debug)]
pub struct FgdWorld<'t> {
    /// Machines, in the order of their file.
    pub nodes: &'t [TraceNode],
    /// Pods, in the order of their file.
    pub pods: &'t [TraceJob],
    /// Pods in the order of arrival, as indices into `pods`.
    pub arrivals: &'t [u32],
    /// Machines in tie-break order, as indices into `nodes`.
    pub node_order: &'t [u32],
}

/// What came out of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct FgdRun {
    /// Figures by arrived percent.
    pub curves: Curves,
    /// Pods that fitted nowhere.
    pub failed_pods: u64,
    /// Arrived percent when the first pod was dropped, this pod included; `None` if none was.
    pub first_rejection_percent: Option<f64>,
    /// Pods offered.
    pub decisions: u64,
    /// Time spent deciding and committing, by the caller's clock.
    pub decision_ns: u64,
    /// Time spent building indices, first or for a new policy version, by the caller's clock.
    pub index_ns: u64,
    /// Time of each decision in nanoseconds.
    pub latencies_ns: Vec<u32>,
    /// Hash of everything that happened.
    pub event_log_hash: String,
    /// State after each arrival.
    pub samples: Vec<CurveSample>,
    /// What a learning policy knew at the end.
    pub learnt: Option<Learnt>,
}

impl FgdWorld<'_> {
    /// Milli-GPU of the cluster.
    pub fn cluster_milli(&self) -> i64 {
        self.nodes.iter().map(|node| i64::from(node.gpu_count) * 1000).sum()
    }

    /// The engine at the beginning of a run, and its configuration: the policy `fgd` is told the
    /// target mix.
    ///
    /// # Errors
    /// What the engine says of the configuration or the machines.
    pub fn engine(&self, mut config: EngineConfig) -> Result<(Engine, EngineConfig), EngineError> {
        if config.policy.name == "fgd" {
            config.policy.target_mix = self.target_mix();
        }
        let ranked = self.node_order.iter().map(|row| &self.nodes[*row as usize]);
        let engine = Engine::new(config.clone(), &world::snapshot(ranked))?;
        Ok((engine, config))
    }

    /// The published target mix: the most common pods of the whole trace, which only `fgd` is told.
    pub fn target_mix(&self) -> Vec<TargetPod> {
        typical_pods(self.pods)
            .into_iter()
            .map(|pod| TargetPod {
                cpu_milli: pod.cpu_milli,
                // More than any machine has, in either case.
                gpu_count: pod.gpu_count.try_into().unwrap_or(u16::MAX),
                gpu_milli: pod.gpu_milli,
                gpu_models: pod.gpu_models.into_iter().collect(),
                weight: pod.weight,
            })
            .collect()
    }
}

/// Runs the protocol. `clock_ns` is read before and after each decision; it changes nothing but the
/// reported times. `watch` sees every plan.
pub fn run_fgd(
    world: &FgdWorld<'_>,
    config: EngineConfig,
    clock_ns: &mut dyn FnMut() -> u64,
    watch: &mut dyn FnMut(&Engine, &Event, &Plan),
) -> Result<FgdRun, EngineError> {
    let mix = world.target_mix();
    let (mut engine, _) = world.engine(config)?;
    let mut tally = RunningTotals::new(world, &mut engine, &mix);
    let mut factory = JobFactory::for_nodes(world.nodes);
    for (number, row) in world.arrivals.iter().enumerate() {
        let pod = &world.pods[*row as usize];
        let id = JobId(number as u64);
        let mut job = factory.job(id, pod);
        job.submit_ms = 0;
        let event = Event::Submitted(Box::new(job));
        tally.log.happened(0, &event);
        let mut plan = engine.step(Batch::pending(event.clone()), 0)?;
        let prepare_ns = clock_ns();
        engine.prepare();
        let started_ns = clock_ns();
        plan.actions.extend(engine.step(Batch::decision(), 0)?.actions);
        tally.spent(clock_ns() - started_ns);
        tally.index_ns += started_ns - prepare_ns;
        watch(&engine, &event, &plan);
        let placed = tally.note(&engine, pod, &plan);
        if !placed {
            let dropped = Event::ended(id);
            engine.step(Batch::pending(dropped.clone()), 0)?;
            tally.log.happened(0, &dropped);
            watch(&engine, &dropped, &Plan::default());
        }
    }
    Ok(tally.finish(world, &engine))
}

struct RunningTotals {
    meter: FragmentationMeter,
    node_fragments: BTreeMap<NodeName, f64>,
    log: EventLog,
    now: CurveSample,
    samples: Vec<CurveSample>,
    failed_pods: u64,
    first_rejection_milli: Option<i64>,
    latencies_ns: Vec<u32>,
    decision_ns: u64,
    index_ns: u64,
}

impl RunningTotals {
    fn new(world: &FgdWorld<'_>, engine: &mut Engine, mix: &[TargetPod]) -> Self {
        let mut meter = FragmentationMeter::new(engine, mix);
        let mut node_fragments = BTreeMap::new();
        for node in world.nodes {
            let name = NodeName::from(node.name.as_str());
            let fragmented = meter.node_milli(engine, &name);
            node_fragments.insert(name, fragmented);
        }
        let fragmented_milli = node_fragments.values().sum();
        Self {
            meter,
            node_fragments,
            log: EventLog::default(),
            now: CurveSample { arrived_milli: 0, allocated_milli: 0, fragmented_milli },
            samples: Vec::with_capacity(world.arrivals.len()),
            failed_pods: 0,
            first_rejection_milli: None,
            latencies_ns: Vec::with_capacity(world.arrivals.len()),
            decision_ns: 0,
            index_ns: 0,
        }
    }

    fn spent(&mut self, ns: u64) {
        self.decision_ns += ns;
        self.latencies_ns.push(u32::try_from(ns).unwrap_or(u32::MAX));
    }

    /// Notes the outcome of an arrival; true if the pod was placed.
    fn note(&mut self, engine: &Engine, pod: &TraceJob, plan: &Plan) -> bool {
        let asked_milli = pod.total_gpu_milli() as i64;
        self.now.arrived_milli += asked_milli;
        let mut placed = false;
        for action in &plan.actions {
            self.log.decided(action);
            if let Action::Bind { node, .. } = action {
                placed = true;
                let after = self.meter.node_milli(engine, node);
                if let Some(before) = self.node_fragments.get_mut(node) {
                    self.now.fragmented_milli += after - *before;
                    *before = after;
                }
            }
        }
        if placed {
            self.now.allocated_milli += asked_milli;
        } else {
            self.failed_pods += 1;
            self.first_rejection_milli.get_or_insert(self.now.arrived_milli);
        }
        self.samples.push(self.now);
        placed
    }

    fn finish(self, world: &FgdWorld<'_>, engine: &Engine) -> FgdRun {
        let cluster_milli = world.cluster_milli();
        let percent = |milli: i64| 100.0 * milli as f64 / cluster_milli as f64;
        FgdRun {
            curves: curves(&self.samples, cluster_milli),
            failed_pods: self.failed_pods,
            first_rejection_percent: self.first_rejection_milli.map(percent),
            decisions: world.arrivals.len() as u64,
            decision_ns: self.decision_ns,
            index_ns: self.index_ns,
            latencies_ns: self.latencies_ns,
            event_log_hash: self.log.hash(),
            samples: self.samples,
            learnt: engine.policy().learnt().cloned(),
        }
    }
}
