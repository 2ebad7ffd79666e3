//! Simulations that are paused in a file and go on later.

use std::fmt::Display;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use dovetail_console::file::{check_place, write_whole};
use dovetail_console::open::open;
use dovetail_settings::errors::{BadInput, UsageError};
use dovetail_sim::record::Checkpoint;
use dovetail_sim::timed::{QueueWatchState, Simulation, TimedConfig, TimedWorld};
use dovetail_sim::timeline::{Timeline, TimelineState};
use dovetail_units::place::bad_json;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::recording::BUILD;
use crate::timed_replay::hexadecimal;

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct PauseFlags {
    /// timed: pause once all events up to this second of the trace have been simulated [required
    /// with --checkpoint]
    #[arg(long, value_name = "SECONDS", requires = "checkpoint")]
    pub pause_at: Option<u64>,
    /// timed: file for the paused simulation, gzip if it ends in .gz [required with --pause-at]
    #[arg(long, value_name = "FILE", requires = "pause_at")]
    pub checkpoint: Option<PathBuf>,
    /// timed: resume a paused simulation; trace, cluster and policy must be the same
    #[arg(long, value_name = "FILE")]
    pub from_checkpoint: Option<PathBuf>,
}

/// When to pause, and where to keep what is needed to go on.
#[derive(Clone, Copy, Debug)]
pub struct Pause<'f> {
    pub at_ms: u64,
    pub path: &'f Path,
}

impl PauseFlags {
    /// The first flag that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--pause-at", self.pause_at.is_some()),
            ("--checkpoint", self.checkpoint.is_some()),
            ("--from-checkpoint", self.from_checkpoint.is_some()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag)
    }

    /// The pause asked for.
    pub fn pause(&self) -> Result<Option<Pause<'_>>> {
        let Some((seconds, path)) = self.pause_at.zip(self.checkpoint.as_deref()) else {
            return Ok(None);
        };
        let at_ms = seconds.checked_mul(1_000);
        let at_ms = at_ms.ok_or_else(|| {
            UsageError(format!(
                "--pause-at {seconds}: the value is too large; use a second of the trace"
            ))
        })?;
        check_place(path)?;
        Ok(Some(Pause { at_ms, path }))
    }
}

/// First line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// SHA-256 of the second line, without its end.
    sha256: String,
}

/// Second line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    checkpoint: Checkpoint,
    /// The account of GPU-time so far.
    account: TimelineState,
    /// What the watch of queues has seen so far, where there is one.
    #[serde(default)]
    queues: Option<QueueWatchState>,
}

/// A simulation that goes on, with what watched it.
pub struct Resumed {
    pub simulation: Simulation,
    /// The account of GPU-time so far.
    pub account: Timeline,
    /// What the watch of queues had seen.
    pub queues: Option<QueueWatchState>,
}

/// Keeps a simulation that stands between two instants.
pub fn write(
    path: &Path,
    simulation: &Simulation,
    world: &TimedWorld,
    config: &TimedConfig,
    (account, queues): (Timeline, Option<QueueWatchState>),
) -> Result<()> {
    let checkpoint = Checkpoint::of(simulation, world, config, BUILD);
    let body = Body { checkpoint, account: account.pause()?, queues };
    let body = serde_json::to_string(&body).context("cannot write the checkpoint as JSON")?;
    let head = Head { sha256: hexadecimal(&Sha256::digest(&body)) };
    let head = serde_json::to_string(&head).context("cannot write the checkpoint as JSON")?;
    write_whole(path, |file| writeln!(file, "{head}\n{body}"))
}

/// A simulation as it was kept, with what watched it.
pub fn resume(path: &Path, world: TimedWorld, config: &TimedConfig) -> Result<Resumed> {
    let Body { checkpoint, account, queues } = read(path)?;
    // What was learnt until the pause differs from what the flags start with.
    let mut kept = checkpoint.config.clone();
    kept.engine.policy.learnt.clone_from(&config.engine.policy.learnt);
    if kept != *config {
        let text = format!(
            "--from-checkpoint {}: it was written with another order, policy, seed or other \
             simulation settings (policy {}, seed {}): pass the same flags",
            path.display(),
            kept.engine.policy.name,
            kept.engine.policy.seed
        );
        return Err(UsageError(text).into());
    }
    let simulation = checkpoint.resume(world).with_context(|| path.display().to_string())?;
    Ok(Resumed { simulation, account: Timeline::resume(account), queues })
}

fn read(path: &Path) -> Result<Body> {
    let bad = |line: u64, problem: &dyn Display| {
        let (file, what) = (path.display().to_string(), "not a file that --checkpoint writes");
        BadInput(bad_json(&file, line, what, &problem.to_string()))
    };
    let mut bytes = Vec::new();
    let read = open(path)?.read_to_end(&mut bytes);
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput
        | std::io::ErrorKind::InvalidData
        | std::io::ErrorKind::UnexpectedEof => bad(1, &error).into(),
        _ => anyhow::Error::from(error).context(format!("{}: cannot be read", path.display())),
    })?;
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let (head, body) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let head: Head = serde_json::from_slice(head).map_err(|error| bad(1, &error))?;
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    if hexadecimal(&Sha256::digest(body)) != head.sha256 {
        return Err(bad(2, &"the file was truncated or modified").into());
    }
    Ok(serde_json::from_slice(body).map_err(|error| bad(2, &error))?)
}
