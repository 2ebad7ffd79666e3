//! A recording that is written beside a replay.

use std::path::Path;

use anyhow::Result;
use dovetail_console::file::OutputFile;
use dovetail_plan::{Engine, EngineConfig};
use dovetail_sim::record::Recorder;

/// Version of the program, for recordings and checkpoints.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// A recording being written.
#[derive(Debug)]
pub struct ReplayRecording<'p> {
    path: &'p Path,
    pub recorder: Recorder<OutputFile>,
}

impl<'p> ReplayRecording<'p> {
    /// Starts a recording of an engine as it stands.
    pub fn start(path: &'p Path, config: &EngineConfig, engine: &Engine) -> Result<Self> {
        let file = OutputFile::create(path)?;
        let name = path.display().to_string();
        Ok(Self { path, recorder: Recorder::start(&name, file, BUILD, config, engine) })
    }

    /// Ends it.
    pub fn finish(self) -> Result<()> {
        self.recorder.finish()?.finish(self.path)
    }
}
