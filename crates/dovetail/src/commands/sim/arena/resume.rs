//! Finished runs in a file, so that a long comparison can be stopped and resumed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use dovetail_console::app::App;
use dovetail_console::table::counted;
use dovetail_settings::errors::BadInput;
use dovetail_sim::arena::{ArenaPlan, ArenaRun, RunRecord, Settings, WorldKey, resumed};
use sha2::{Digest, Sha256};

use dovetail_replays::recording::BUILD;
use dovetail_replays::timed_replay::hexadecimal;

/// Regime, policy, seed, order.
type Key = (String, String, u64, u64);

/// Runs that finished before, and the file that new ones are added to.
pub(crate) struct Ledger {
    known: BTreeMap<Key, ArenaRun>,
    file: Option<RunFile>,
}

struct RunFile {
    path: PathBuf,
    /// Of which comparison its runs are.
    settings: Settings,
    file: Mutex<File>,
}

impl Ledger {
    /// Runs that are not saved.
    pub(crate) fn none() -> Self {
        Self { known: BTreeMap::new(), file: None }
    }

    /// Reads the runs of a file if there is one, and takes off what was cut at its end.
    pub(crate) fn open(app: &App, path: &Path, plan: &ArenaPlan, data: &str) -> Result<Self> {
        let name = path.display().to_string();
        if path.is_dir() {
            anyhow::bail!("{name}: is a directory; pass a file");
        }
        let settings = Settings::of(plan, &build()?, data);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("{name}: cannot be opened"))?;
        lock(&file, &name)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("{name}: cannot be read"))?;
        // A cut may lie within a character.
        let text = String::from_utf8_lossy(&bytes);
        let found =
            resumed(&name, &text, &settings).map_err(|error| BadInput(error.to_string()))?;
        let write = |file: &mut File| -> std::io::Result<()> {
            file.set_len(found.whole_bytes as u64)?;
            if found.whole_bytes == 0 {
                file.write_all(settings.line().as_bytes())?;
            }
            Ok(())
        };
        write(&mut file).with_context(|| format!("{name}: cannot be written"))?;
        if !found.records.is_empty() {
            app.note(&format!("{name} has {}", counted(found.records.len(), "finished run")));
        }
        let keyed = found.records.into_iter().map(|record| {
            let key = key(&record.regime, &record.policy, record.seed, record.order);
            (key, record.run())
        });
        let file = RunFile { path: path.to_owned(), settings, file: Mutex::new(file) };
        Ok(Self { known: keyed.collect(), file: Some(file) })
    }

    /// Whether a run finished before.
    pub(crate) fn has(&self, regime: &str, policy: &str, world: WorldKey) -> bool {
        self.known.contains_key(&key(regime, policy, world.seed, world.order))
    }

    /// Writes down a finished run, and gives it back as a file would.
    pub(crate) fn keep(&self, regime: &str, run: ArenaRun) -> Result<ArenaRun> {
        let record = RunRecord::of(regime, run);
        if let Some(RunFile { path, settings, file }) = &self.file {
            let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // One write for a line: what is cut is its end.
            let written = file.write_all(settings.run_line(&record).as_bytes());
            written.with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        Ok(record.run())
    }

    /// All runs of a world in the order of the policies, the fresh ones given.
    pub(crate) fn of_world(
        &self,
        regime: &str,
        plan: &ArenaPlan,
        world: WorldKey,
        fresh: Vec<ArenaRun>,
    ) -> Vec<ArenaRun> {
        let mut fresh: BTreeMap<String, ArenaRun> =
            fresh.into_iter().map(|run| (run.policy.clone(), run)).collect();
        let of = |policy: &String| {
            let known = self.known.get(&key(regime, policy, world.seed, world.order)).cloned();
            known.or_else(|| fresh.remove(policy))
        };
        plan.policies.iter().filter_map(of).collect()
    }
}

/// Keeps the file for this process as long as it is open.
fn lock(file: &File, name: &str) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "{name}: another process is writing to this file: wait until it finishes, or name \
                 another file"
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{name}: cannot be locked"))
        }
    }
}

fn key(regime: &str, policy: &str, seed: u64, order: u64) -> Key {
    (regime.to_owned(), policy.to_owned(), seed, order)
}

/// Version and fingerprint of this program: runs of another one may have decided otherwise.
fn build() -> Result<String> {
    let path = std::env::current_exe()
        .context("cannot determine the path of the dovetail executable, which --resume needs")?;
    let bytes =
        std::fs::read(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    Ok(format!("{BUILD} ({})", hexadecimal(&Sha256::digest(bytes)[..6])))
}
