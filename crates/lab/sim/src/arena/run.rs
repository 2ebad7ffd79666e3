//! One policy in one world.

use dovetail_plan::{EngineConfig, PolicySpec};

use crate::arena::figures::{RunFigures, arrival_figures, timed_figures};
use crate::arena::recipe::{ArenaError, RegimeInput};
use crate::arena::streams;
use crate::fgd::{FgdWorld, run_fgd};
use crate::timed::Simulation;

/// Machine-hours of the autoscaled pool.
pub const POOL_NODE_HOURS: &str = "pool_node_hours";

/// GPU-time that the jobs can use inside the stream, over that of the machines: the load as it came
/// out.
pub const LOAD: &str = "load";

impl RegimeInput {
    /// Runs a policy, which knows nothing at the beginning but for `fgd`: that is told the mix. The
    /// seed is that of `random`.
    ///
    /// # Errors
    /// [`ArenaError`] if the engine refuses the world or the policy.
    pub fn run(&self, policy: &str, seed: u64) -> Result<RunFigures, ArenaError> {
        self.run_with(PolicySpec { seed, ..PolicySpec::named(policy) })
    }

    /// Runs a policy with everything that it is told.
    ///
    /// # Errors
    /// [`ArenaError`] if the engine refuses the world or the policy.
    pub fn run_with(&self, policy: PolicySpec) -> Result<RunFigures, ArenaError> {
        match self {
            Self::Arrivals { nodes, pods, arrivals, node_order } => {
                let world = FgdWorld { nodes, pods, arrivals, node_order };
                let config = EngineConfig { policy, ..EngineConfig::default() };
                let run = run_fgd(&world, config, &mut || 0, &mut |_, _, _| {})?;
                Ok(arrival_figures(&run, world.cluster_milli()))
            }
            Self::Timed { world, config, window } => {
                let mut config = (**config).clone();
                config.engine.policy = policy;
                if config.engine.policy.name == "fgd" {
                    config.engine.policy.target_mix = Simulation::target_mix(&world.jobs);
                }
                let cluster_milli = streams::cluster_milli(&world.nodes);
                let asked = streams::demand_inside(&world.jobs, window.end_ms) as f64;
                let mut simulation = Simulation::new((**world).clone(), config)?;
                simulation.run(Some(window.end_ms), &mut ())?;
                let mut figures = timed_figures(simulation.outcomes(), *window, cluster_milli);
                let capacity = cluster_milli as f64 * window.end_ms as f64;
                figures.insert(LOAD.to_owned(), asked / capacity);
                let pool_hours = simulation.pool_node_hours();
                figures.extend(pool_hours.map(|hours| (POOL_NODE_HOURS.to_owned(), hours)));
                Ok(figures)
            }
        }
    }
}
