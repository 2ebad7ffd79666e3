//! The cluster and the jobs of a scenario file.

use std::path::Path;

use anyhow::Result;
use dovetail_settings::errors::BadInput;
use dovetail_settings::toml_file::TomlFile;
use dovetail_trace::scenario::{Scenario, ScenarioProblem};
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
        Ok(Self::of(path, TomlFile::read(path)?)?)
    }

    /// The scenario of a file that was read.
    ///
    /// # Errors
    /// As [`ScenarioFile::read`].
    pub fn of(path: &'p Path, file: TomlFile) -> Result<Self, BadInput> {
        let scenario: Scenario = file.parse("scenario")?;
        match scenario.problem() {
            Some(problem) => Err(told(&file, problem)),
            None => Ok(Self { path, file, scenario }),
        }
    }

    /// The machines, as `--nodes` would say them.
    pub fn nodes(&self) -> Result<NodesFlag> {
        let nodes: Result<NodesFlag, String> = self.scenario.world.nodes.parse();
        let told = |problem: String| self.file.error_in("world.nodes", 0, &problem);
        Ok(nodes.map_err(told)?)
    }

    /// The jobs of a seed.
    ///
    /// # Errors
    /// Line and field of what no stream can be drawn from.
    pub fn trace(&self, seed: u64, cluster_gpus: u64) -> Result<Trace> {
        let file = self.path.display();
        let jobs = self.scenario.jobs(seed, cluster_gpus);
        let jobs = jobs.map_err(|problem| told(&self.file, problem))?;
        let known =
            KnownFields { cpu: false, memory: false, gpu_models: false, ..KnownFields::default() };
        let source = format!("{file} (seed {seed})");
        Ok(Trace { jobs, source, known, ..Trace::default() })
    }
}

/// A problem with file and line.
fn told(file: &TomlFile, problem: ScenarioProblem) -> BadInput {
    file.error_in(problem.field, problem.table, problem.what)
}
