//! Where the objects come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use dovetail_kube::dump::{DumpError, read_paths};
use dovetail_kube::facts::Inventory;

use crate::app::App;
use crate::exit::{BadInput, UsageError};
use crate::output::plain::plain;

/// Flags as written.
#[derive(Debug, Args)]
pub(super) struct SourceFlags {
    /// Dumps of `kubectl get nodes,pods,... -A -o json`: files, or folders with them, plain or gzip
    #[arg(long, value_name = "PATH", num_args = 1..)]
    from: Vec<PathBuf>,
    /// When the objects were read, such as 2026-11-20T12:00:00Z [default: when the newest file was
    /// written]
    #[arg(long, value_name = "TIME", requires = "from")]
    at: Option<jiff::Timestamp>,
    /// Where GPU metrics are: `none` looks at objects alone
    #[arg(long, value_name = "SOURCE", default_value = "none")]
    prometheus: PrometheusFlag,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrometheusFlag {
    /// Objects alone
    None,
}

/// Objects, and where they were read.
pub(super) struct Read {
    pub(super) inventory: Inventory,
    pub(super) sources: Vec<String>,
}

impl SourceFlags {
    /// Reads all objects.
    pub(super) fn read(&self, app: &App) -> Result<Read> {
        let PrometheusFlag::None = self.prometheus;
        if self.from.is_empty() {
            let text =
                "name what to audit: --from with files of `kubectl get nodes,pods,... -A -o json`";
            return Err(UsageError(text.to_owned()).into());
        }
        let now_ms = match self.at {
            Some(at) => at.as_millisecond().max(0).cast_unsigned(),
            None => newest(&self.from)?,
        };
        let mut inventory = Inventory::new(now_ms);
        let objects = read_paths(&self.from, &mut inventory).map_err(told)?;
        if objects == 0 {
            let text = "--from: there is no object in it: write it with `kubectl get nodes,pods -A -o json`";
            return Err(BadInput(text.to_owned()).into());
        }
        let (skipped, count) = inventory.left_out();
        for skipped in skipped.iter().take(10) {
            app.note(&format!("left out {}", plain(&skipped.to_string())));
        }
        if count > 10 {
            app.note(&format!("{count} objects left out; --output json lists them"));
        }
        let sources = self.from.iter().map(|path| path.display().to_string()).collect();
        Ok(Read { inventory, sources })
    }
}

/// What is no dump is bad input; what cannot be opened is not.
fn told(error: DumpError) -> anyhow::Error {
    match error {
        DumpError::Io { .. } => error.into(),
        error => BadInput(plain(&error.to_string())).into(),
    }
}

/// When the newest of the files was written.
fn newest(paths: &[PathBuf]) -> Result<u64> {
    fn written(path: &Path) -> Result<SystemTime> {
        let told = || format!("{}: cannot read it", path.display());
        let metadata = fs::metadata(path).with_context(told)?;
        if !metadata.is_dir() {
            return metadata.modified().with_context(told);
        }
        let mut newest = UNIX_EPOCH;
        for entry in fs::read_dir(path).with_context(told)? {
            let metadata = entry.with_context(told)?.metadata().with_context(told)?;
            newest = newest.max(metadata.modified().with_context(told)?);
        }
        Ok(newest)
    }
    let mut newest = UNIX_EPOCH;
    for path in paths {
        newest = newest.max(written(path)?);
    }
    let ms = newest.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Ok(u64::try_from(ms).unwrap_or(0))
}
