//! A paused simulation, to go on later.

use dovetail_model::Snapshot;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::timed::{Simulation, SimulationProgress, TimedConfig, TimedError, TimedWorld};

/// Version of the checkpoint's form.
const FORMAT: u32 = 1;

/// Everything needed to go on, besides the trace itself, which is named by its digest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Version of its form.
    pub dovetail_checkpoint: u32,
    /// Version of the program that wrote it.
    pub build: String,
    /// SHA-256 of the machines, jobs, cluster events, queues with their history, and bookings.
    pub world_digest: String,
    /// Configuration, with what the policy had learnt.
    pub config: TimedConfig,
    /// The engine.
    pub snapshot: Snapshot,
    /// Where the simulation stands.
    pub progress: SimulationProgress,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// It is of another form.
    #[error("unsupported checkpoint format {found} (this version reads {FORMAT})")]
    Format {
        /// Its form.
        found: u32,
    },
    /// It belongs to another trace.
    #[error(
        "the checkpoint was written with another trace, cluster or history, or with other queues, \
         reservations or cluster events: pass the same files as when it was written"
    )]
    OtherWorld,
    /// The simulation cannot start.
    #[error(transparent)]
    Simulation(#[from] TimedError),
}

impl Checkpoint {
    /// A checkpoint of a simulation between two instants.
    pub fn of(
        simulation: &Simulation,
        world: &TimedWorld,
        config: &TimedConfig,
        build: &str,
    ) -> Self {
        let mut config = config.clone();
        config.engine.policy.learnt = simulation.engine.policy().learnt().cloned();
        Self {
            dovetail_checkpoint: FORMAT,
            build: build.to_owned(),
            world_digest: world_digest(world),
            config,
            snapshot: simulation.engine.snapshot(),
            progress: simulation.progress().clone(),
        }
    }

    /// The simulation as it was.
    ///
    /// # Errors
    /// [`CheckpointError`] if the form is another or the world is not the one it was written for.
    pub fn resume(self, world: TimedWorld) -> Result<Simulation, CheckpointError> {
        if self.dovetail_checkpoint != FORMAT {
            return Err(CheckpointError::Format { found: self.dovetail_checkpoint });
        }
        if self.world_digest != world_digest(&world) {
            return Err(CheckpointError::OtherWorld);
        }
        Ok(Simulation::resume(world, self.config, &self.snapshot, self.progress)?)
    }
}

fn world_digest(world: &TimedWorld) -> String {
    let mut hasher = Sha256::new();
    let TimedWorld {
        nodes,
        jobs,
        cluster_events,
        bookings,
        queues,
        gang_level,
        autoscaler,
        usage: history,
    } = world;
    let parts = (nodes, jobs, cluster_events, queues, gang_level, autoscaler);
    let text = serde_json::to_vec(&parts).expect("a world holds nothing that JSON lacks");
    hasher.update(text);
    if !bookings.is_empty() {
        hasher.update(serde_json::to_vec(bookings).expect("plain data"));
    }
    if !history.is_empty() {
        hasher.update(serde_json::to_vec(history).expect("plain data"));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
