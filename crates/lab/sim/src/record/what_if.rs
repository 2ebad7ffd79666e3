//! What another policy would have chosen at each recorded decision, with the cluster as it was.
//!
//! The other policy is asked before each decision; then the recorded one is carried out: who
//! starts, for whom others are stopped, what is kept, and what is given back or up. So both stand
//! before the same cluster every time, and a difference is a difference of taste and not of what
//! went before. Who is stopped is not asked.

use std::io::BufRead;

use dovetail_model::{
    Action, Event, HeldDevices, Holding, HoldingId, HoldingPhase, Job, JobId, NodeName, Owner,
    PodId, Snapshot,
};
use dovetail_plan::{Batch, Engine, EngineConfig, PolicySpec};
use serde::Serialize;

use super::replay::{JsonLines, RecordLine};
use crate::record::{RecordError, RecordedStep};

/// Differences that are listed; the rest is counted.
const LISTED: usize = 20;

/// What the other policy would have chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhatIf {
    /// Version of the program that wrote the recording.
    pub recorded_by: String,
    /// Name of the policy that decided.
    pub recorded_policy: String,
    /// Name of the policy that was asked.
    pub policy: String,
    /// Jobs that were placed.
    pub decisions: u64,
    /// Jobs for which it would have chosen the same nodes.
    pub same_nodes: u64,
    /// Jobs for which it would have chosen other nodes.
    pub other_nodes: u64,
    /// Jobs that it would not have placed at all.
    pub not_placed: u64,
    /// As of a [`ReplayReport`](super::ReplayReport).
    pub cut_off_after_line: Option<u64>,
    /// The first differences.
    pub differences: Vec<Difference>,
}

/// A job that the two policies place differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Line of the recording, from 1.
    pub line: u64,
    /// When it was decided, in milliseconds.
    pub now_ms: u64,
    pub job: String,
    /// The nodes of its pods, as recorded, in the order of names.
    pub recorded: Vec<String>,
    /// The nodes that the other policy would have chosen; none if it would not have placed it.
    pub chosen: Vec<String>,
}

/// One placed pod as it was recorded.
type Placed = (PodId, NodeName, HeldDevices);

/// Asks another policy at each decision of a recording.
///
/// # Errors
/// As [`replay`](super::replay()).
pub fn what_if(file: &str, input: impl BufRead, policy: PolicySpec) -> Result<WhatIf, RecordError> {
    what_if_lines(JsonLines::of(file, input)?, policy)
}

/// Asks another policy about the recording of an engine, of which the first line has been read.
///
/// # Errors
/// As [`replay`](super::replay()).
pub fn what_if_lines(
    mut lines: JsonLines<'_, impl BufRead>,
    policy: PolicySpec,
) -> Result<WhatIf, RecordError> {
    let header = lines.engine_header()?;
    let mut asked = ComparedPolicy::of(header.build, policy);
    let begun = asked.engine(header.engine, &header.snapshot);
    begun.map_err(|problem| lines.problem(&problem))?;
    loop {
        match lines.next_step()? {
            RecordLine::Step(step) => {
                let followed = asked.step(step, lines.line());
                followed.map_err(|problem| lines.problem(&problem))?;
            }
            RecordLine::End(_) => return Ok(asked.report),
            RecordLine::CutOff => {
                asked.report.cut_off_after_line = Some(lines.line() - 1);
                return Ok(asked.report);
            }
        }
    }
}

/// Another policy, asked about one recorded engine after the other.
pub struct ComparedPolicy {
    policy: PolicySpec,
    engine: Option<Engine>,
    /// What it would have chosen so far.
    pub report: WhatIf,
}

impl ComparedPolicy {
    /// A policy that was not asked yet.
    pub fn of(recorded_by: String, policy: PolicySpec) -> Self {
        let report = WhatIf {
            recorded_by,
            recorded_policy: String::new(),
            policy: policy.name.clone(),
            decisions: 0,
            same_nodes: 0,
            other_nodes: 0,
            not_placed: 0,
            cut_off_after_line: None,
            differences: Vec::new(),
        };
        Self { policy, engine: None, report }
    }

    /// An engine begins to decide.
    ///
    /// # Errors
    /// When it does not take the world.
    pub fn engine(&mut self, config: EngineConfig, world: &Snapshot) -> Result<(), String> {
        self.report.recorded_policy.clone_from(&config.policy.name);
        let config = EngineConfig { policy: self.policy.clone(), ..config };
        self.engine = Some(Engine::new(config, world).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// What it would have chosen at a step, which is then carried out as it was recorded.
    ///
    /// # Errors
    /// When the engine does not take what was recorded.
    pub fn step(&mut self, step: RecordedStep, line: u64) -> Result<(), String> {
        let Some(engine) = &mut self.engine else { return Ok(()) };
        follow(engine, step, line, &mut self.report)
    }
}

fn follow(
    engine: &mut Engine,
    step: RecordedStep,
    line: u64,
    report: &mut WhatIf,
) -> Result<(), String> {
    let now_ms = step.now_ms;
    let told = engine.step(Batch::of(step.events).undecided(), now_ms);
    told.map_err(|error| error.to_string())?;
    for decision in decisions(step.actions) {
        let (id, placed) = match decision {
            JobDecision::Started(job, placed) => (job, placed),
            JobDecision::Other(action) => {
                engine.follow(&action);
                continue;
            }
        };
        let known = engine.job(id).cloned();
        let job = known.ok_or_else(|| format!("job {} is placed and was never submitted", id.0))?;
        let asked = engine.ask().would_choose(id);
        let mut recorded: Vec<String> =
            placed.iter().map(|(_, node, _)| node.to_string()).collect();
        let chosen = asked.unwrap_or_default().into_iter().map(|pod| pod.node.to_string());
        let mut chosen: Vec<String> = chosen.collect();
        recorded.sort_unstable();
        chosen.sort_unstable();
        report.decisions += 1;
        match (chosen == recorded, chosen.is_empty()) {
            (true, _) => report.same_nodes += 1,
            (false, true) => report.not_placed += 1,
            (false, false) => report.other_nodes += 1,
        }
        if chosen != recorded && report.differences.len() < LISTED {
            let job = job.name.clone();
            report.differences.push(Difference { line, now_ms, job, recorded, chosen });
        }
        carry_out(engine, job, placed, now_ms)?;
    }
    Ok(())
}

/// What was decided about one job.
enum JobDecision {
    /// It starts: all of its binds that follow each other.
    Started(JobId, Vec<Placed>),
    /// Anything else.
    Other(Action),
}

/// The decisions of an instant, in their order.
fn decisions(actions: Vec<Action>) -> Vec<JobDecision> {
    let mut decisions: Vec<JobDecision> = Vec::new();
    for action in actions {
        let Action::Bind { pod, node, devices } = action else {
            decisions.push(JobDecision::Other(action));
            continue;
        };
        match decisions.last_mut() {
            Some(JobDecision::Started(job, placed)) if *job == pod.job => {
                placed.push((pod, node, devices));
            }
            _ => decisions.push(JobDecision::Started(pod.job, vec![(pod, node, devices)])),
        }
    }
    decisions
}

/// The job runs where it was recorded to run.
fn carry_out(
    engine: &mut Engine,
    mut job: Job,
    placed: Vec<Placed>,
    now_ms: u64,
) -> Result<(), String> {
    let mut holdings = Vec::new();
    for (pod, node, devices) in placed {
        engine.follow(&Action::Bind { pod, node: node.clone(), devices: devices.clone() });
        let set = job.pod_sets.get_mut(usize::from(pod.pod_set));
        let set = set.ok_or_else(|| format!("job {} has no pod set {}", job.name, pod.pod_set))?;
        set.present += 1;
        holdings.push(Holding {
            id: HoldingId(0),
            node,
            owner: Owner::Pod(pod),
            phase: HoldingPhase::Assumed,
            reservation: None,
            resources: set.requirement.resources.clone(),
            devices,
            counts_into: set.requirement.counts_into.clone(),
            attachments: set.requirement.attachments.clone(),
        });
    }
    job.start_ms = Some(now_ms);
    let ended = Event::ended(job.id);
    let runs = Event::Adopted { job: Box::new(job), holdings };
    let told = engine.step(Batch::of([ended, runs]).undecided(), now_ms);
    told.map(drop).map_err(|error| error.to_string())
}
