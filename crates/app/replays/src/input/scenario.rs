//! The cluster and the jobs of a scenario file.

use std::path::Path;

use anyhow::{Context, Result};
use dovetail_settings::errors::BadInput;
use dovetail_trace::scenario::Scenario;
use dovetail_trace::{Known, Trace};

use crate::input::cluster::NodesFlag;

/// What a scenario file says.
pub struct ScenarioFile<'p> {
    path: &'p Path,
    scenario: Scenario,
}

impl<'p> ScenarioFile<'p> {
    /// Reads a scenario.
    ///
    /// # Errors
    /// Names the file, and the line of what is no scenario.
    pub fn read(path: &'p Path) -> Result<Self> {
        let file = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        let scenario: Scenario = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            BadInput(format!("{file}:{line}: {}", error.message()))
        })?;
        scenario.check().map_err(|problem| BadInput(format!("{file}: {problem}")))?;
        Ok(Self { path, scenario })
    }

    /// The machines, as `--nodes` would say them.
    pub fn nodes(&self) -> Result<NodesFlag> {
        let nodes: Result<NodesFlag, String> = self.scenario.world.nodes.parse();
        let file = self.path.display();
        Ok(nodes.map_err(|problem| BadInput(format!("{file}: world.nodes: {problem}")))?)
    }

    /// The jobs of a seed.
    pub fn trace(&self, seed: u64, cluster_gpus: u64) -> Result<Trace> {
        let file = self.path.display();
        let jobs = self.scenario.jobs(seed, cluster_gpus);
        let jobs = jobs.map_err(|problem| BadInput(format!("{file}: {problem}")))?;
        let known = Known { cpu: false, memory: false, gpu_models: false, ..Known::default() };
        let source = format!("{file} (seed {seed})");
        Ok(Trace { jobs, source, known, ..Trace::default() })
    }
}
