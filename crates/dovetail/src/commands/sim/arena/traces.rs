//! Outside traces of the arena, from a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dovetail_console::app::App;
use dovetail_settings::errors::BadInput;
use dovetail_sim::arena::{ArenaData, ArenaError, DataError, OPENB_LISTS, Outside};
use dovetail_trace::{ReadOptions, Trace, TraceJob, read_cluster, read_trace};
use sha2::{Digest, Sha256};

use dovetail_replays::timed_replay::hexadecimal;

/// Traces that were found.
#[derive(Debug)]
pub(crate) struct Traces {
    pub(crate) data: ArenaData,
    /// Tells other data apart; `none` without any.
    pub(crate) fingerprint: String,
    /// Their files and lines; the jobs are in `data`.
    places: BTreeMap<Outside, Trace>,
    folder: PathBuf,
}

impl Traces {
    /// Reads what the folder has; without a folder there is nothing.
    pub(crate) fn read(app: &App, folder: Option<&Path>) -> Result<Self> {
        let mut traces = Self {
            data: ArenaData::default(),
            fingerprint: "none".to_owned(),
            places: BTreeMap::new(),
            folder: folder.map(Path::to_owned).unwrap_or_default(),
        };
        if folder.is_none() {
            app.note(
                "no external traces: set DOVETAIL_TRACES for the regimes of openb, Philly and ITP",
            );
            return Ok(traces);
        }
        std::fs::read_dir(&traces.folder)
            .with_context(|| format!("--traces {}", traces.folder.display()))?;
        traces.data.philly = traces.timed_jobs(Outside::Philly)?;
        traces.data.itp = traces.timed_jobs(Outside::Itp)?;
        let nodes = traces.folder.join(Outside::Nodes.file());
        if nodes.exists() {
            traces.data.openb_nodes = read_cluster(&nodes, &ReadOptions::default())?.nodes;
        }
        for list in OPENB_LISTS {
            let pods = traces.jobs(Outside::Pods(list.to_owned()), Ok)?;
            if !pods.is_empty() {
                traces.data.openb_pods.insert(list.to_owned(), pods);
            }
        }
        traces.fingerprint = fingerprint(&traces.data)?;
        Ok(traces)
    }

    fn timed_jobs(&mut self, outside: Outside) -> Result<Vec<TraceJob>> {
        self.jobs(outside, |trace| Ok(trace.with_run_times(false, "the arena")?))
    }

    /// The jobs of a file, if it is there.
    fn jobs(
        &mut self,
        outside: Outside,
        checked: impl Fn(Trace) -> Result<Trace>,
    ) -> Result<Vec<TraceJob>> {
        let path = self.folder.join(outside.file());
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut trace = checked(read_trace(&path, &ReadOptions::default())?)?;
        let jobs = std::mem::take(&mut trace.jobs);
        self.places.insert(outside, trace);
        Ok(jobs)
    }

    /// What a world of a regime could not be made of, with its place.
    pub(crate) fn told(&self, regime: &str, error: ArenaError) -> anyhow::Error {
        let error: anyhow::Error = match error {
            ArenaError::Data(DataError { trace, row, problem }) => {
                let row = row.and_then(|row| Some(self.places.get(&trace)?.place(row)));
                let all = || self.folder.join(trace.file()).display().to_string();
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
}

/// A hash over everything that was read.
fn fingerprint(data: &ArenaData) -> Result<String> {
    let text = serde_json::to_vec(&(&data.openb_nodes, &data.openb_pods, &data.philly, &data.itp))?;
    Ok(hexadecimal(&Sha256::digest(text)[..8]))
}
