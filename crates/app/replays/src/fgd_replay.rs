//! One replay of arrivals.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use dovetail_console::progress::Progress;
use dovetail_model::Action;
use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_sim::fgd::{FgdRun, FgdWorld, run_fgd};
use dovetail_sim::world::snapshot;

use crate::check::{Check, ReplayWatch};
use crate::recording::ReplayRecording;

/// What came out of one replay.
#[derive(Debug)]
pub struct FgdReplay {
    pub run: FgdRun,
    /// Pods that arrived before the first one that was rejected.
    pub held_pods: usize,
}

/// One replay under the eyes of the judge, and of a recorder if there is a file for it.
pub fn replay(
    world: &FgdWorld<'_>,
    policy: PolicySpec,
    check: Check,
    record: Option<&Path>,
    progress: &Progress,
) -> Result<FgdReplay> {
    let started = Instant::now();
    let mut clock_ns = || started.elapsed().as_nanos() as u64;
    let config = EngineConfig { policy, ..EngineConfig::default() };
    let ranked = world.node_order.iter().map(|row| &world.nodes[*row as usize]);
    let mut judge = ReplayWatch::new(check, &snapshot(ranked));
    let start = |path| -> Result<ReplayRecording<'_>> {
        let (engine, config) = world.engine(config.clone())?;
        ReplayRecording::start(path, &config, &engine)
    };
    let mut recording = record.map(start).transpose()?;
    let (mut arrived, mut held_pods) = (0, None);
    let run = run_fgd(world, config, &mut clock_ns, &mut |_, event, plan| {
        let is_placed = plan.actions.iter().any(|action| matches!(action, Action::Bind { .. }));
        if !is_placed {
            held_pods.get_or_insert(arrived);
        }
        arrived += 1;
        judge.step(std::slice::from_ref(event), plan, 0);
        if let Some(recording) = &mut recording {
            recording.recorder.step(0, std::slice::from_ref(event), plan);
        }
        progress.advance(1);
    })?;
    recording.map_or(Ok(()), ReplayRecording::finish)?;
    judge.verdict()?;
    Ok(FgdReplay { run, held_pods: held_pods.unwrap_or(arrived) })
}

impl FgdReplay {
    /// Speed of deciding and committing, where the clock has seen any time pass.
    pub fn decisions_per_second(&self) -> Option<f64> {
        let speed = self.run.decisions as f64 * 1e9 / self.run.decision_ns as f64;
        (self.run.decision_ns > 0).then(|| speed.round())
    }
}
