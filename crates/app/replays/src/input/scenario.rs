//! The cluster and the jobs of a scenario file.

use std::path::Path;

use anyhow::Result;
use dovetail_settings::errors::BadInput;
use dovetail_settings::toml_file::TomlFile;
use dovetail_trace::scenario::Scenario;
use dovetail_trace::{KnownFields, Trace};

use crate::input::cluster::NodesFlag;

/// What a scenario file says.
pub struct ScenarioFile<'p> {
    path: &'p Path,
    file: TomlFile,
    scenario: Scenario,
}

impl<'p> ScenarioFile<'p> {
    /// Reads a scenario.
    ///
    /// # Errors
    /// Names the file, and line and field of what is no scenario.
    pub fn read(path: &'p Path) -> Result<Self> {
        let file = TomlFile::read(path)?;
        let scenario: Scenario = file.parse("scenario")?;
        if let Some(problem) = scenario.problem() {
            return Err(file.error_in(problem.field, problem.table, problem.what).into());
        }
        Ok(Self { path, file, scenario })
    }

    /// The machines, as `--nodes` would say them.
    pub fn nodes(&self) -> Result<NodesFlag> {
        let nodes: Result<NodesFlag, String> = self.scenario.world.nodes.parse();
        let told = |problem: String| self.file.error_in("world.nodes", 0, &problem);
        Ok(nodes.map_err(told)?)
    }

    /// The jobs of a seed.
    pub fn trace(&self, seed: u64, cluster_gpus: u64) -> Result<Trace> {
        let file = self.path.display();
        let jobs = self.scenario.jobs(seed, cluster_gpus);
        let jobs = jobs.map_err(|problem| BadInput(format!("{file}: {problem}")))?;
        let known =
            KnownFields { cpu: false, memory: false, gpu_models: false, ..KnownFields::default() };
        let source = format!("{file} (seed {seed})");
        Ok(Trace { jobs, source, known, ..Trace::default() })
    }
}
