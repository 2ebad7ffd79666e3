//! Outside traces of the arena, from a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dovetail_console::app::App;
use dovetail_settings::errors::BadInput;
use dovetail_sim::arena::{ArenaData, ArenaError, DataError, OPENB_LISTS, Outside, Regime};
use dovetail_trace::{ReadOptions, Trace, read_cluster, read_trace};
use sha2::{Digest, Sha256};

use dovetail_replays::timed_replay::hexadecimal;

/// Traces that were found.
#[derive(Debug)]
pub(crate) struct Traces {
    pub(crate) data: ArenaData,
    /// Their files and lines; the jobs are in `data`.
    places: BTreeMap<Outside, Trace>,
    folder: Option<PathBuf>,
}

impl Traces {
    /// Reads what these regimes need of what the folder has; without a folder there is nothing.
    pub(crate) fn read(app: &App, folder: Option<&Path>, regimes: &[Regime]) -> Result<Self> {
        let mut traces = Self {
            data: ArenaData::default(),
            places: BTreeMap::new(),
            folder: folder.map(Path::to_owned),
        };
        let Some(folder) = folder else {
            app.note(
                "no external traces: set DOVETAIL_TRACES for the regimes of openb, Philly and ITP",
            );
            return Ok(traces);
        };
        std::fs::read_dir(folder).with_context(|| format!("--traces {}", folder.display()))?;
        let needed: BTreeSet<Outside> =
            regimes.iter().flat_map(|regime| regime.recipe.traces()).collect();
        for outside in needed {
            let path = folder.join(outside.file());
            if path.exists() {
                traces.take(outside, &path)?;
            }
        }
        Ok(traces)
    }

    /// Reads a file that is there.
    fn take(&mut self, outside: Outside, path: &Path) -> Result<()> {
        let options = ReadOptions::default();
        if outside == Outside::Nodes {
            self.data.openb_nodes = read_cluster(path, &options)?.nodes;
            return Ok(());
        }
        let mut trace = read_trace(path, &options)?;
        if matches!(outside, Outside::Philly | Outside::Itp) {
            trace = trace.with_run_times(false, "the arena")?;
        }
        let jobs = std::mem::take(&mut trace.jobs);
        match &outside {
            Outside::Philly => self.data.philly = jobs,
            Outside::Itp => self.data.itp = jobs,
            Outside::Pods(_) if jobs.is_empty() => {}
            Outside::Pods(list) => {
                self.data.openb_pods.insert(list.clone(), jobs);
            }
            Outside::Nodes => {}
        }
        self.places.insert(outside, trace);
        Ok(())
    }

    /// What a world of a regime could not be made of, with its place.
    pub(crate) fn told(&self, regime: &str, error: ArenaError) -> anyhow::Error {
        let error: anyhow::Error = match error {
            ArenaError::Data(DataError { trace, row, problem }) => {
                let row = row.and_then(|row| Some(self.places.get(&trace)?.place(row)));
                let folder = self.folder.as_deref().unwrap_or(Path::new(""));
                let all = || folder.join(trace.file()).display().to_string();
                let place = row.unwrap_or_else(all);
                return BadInput(format!("{place}: {problem} (regime {regime})")).into();
            }
            ArenaError::Stream(error) => error.into(),
            ArenaError::Trace(error) => error.into(),
            ArenaError::Timed(error) => error.into(),
            ArenaError::Engine(error) => error.into(),
        };
        error.context(format!("the regime {regime} cannot be run"))
    }

    /// Tells other data apart: a hash over all files of the folder that any regime reads, so that a
    /// comparison of some regimes is resumed with others; `none` without a folder.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        let Some(folder) = &self.folder else { return Ok("none".to_owned()) };
        let lists = OPENB_LISTS.map(|list| Outside::Pods(list.to_owned()));
        let mut digest = Sha256::new();
        for outside in [Outside::Nodes, Outside::Philly, Outside::Itp].into_iter().chain(lists) {
            let path = folder.join(outside.file());
            if path.exists() {
                let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
                digest.update(outside.file());
                digest.update(bytes.len().to_le_bytes());
                digest.update(bytes);
            }
        }
        Ok(hexadecimal(&digest.finalize()[..8]))
    }
}
