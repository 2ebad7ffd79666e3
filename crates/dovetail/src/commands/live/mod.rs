//! Questions about a cluster as it is: `dovetail why`, `dovetail queue`, `dovetail top`.
//!
//! Each reads the cluster once, lets the engine decide once, and writes nothing. So the answer is the one that a
//! scheduler of the same settings gives at this moment.

pub(crate) mod comparison;
mod gang;
mod line;
mod not_in_line;
pub(crate) mod queue;
pub(crate) mod recording;
pub(crate) mod top;
pub(crate) mod why;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_control::schedule::Scheduler;
use dovetail_scheduler::{Options, look};
use dovetail_sources::kubeconfig::ConnectionFlags;

use crate::commands::scheduler;

/// Which cluster, and whose pods.
#[derive(Debug, Args)]
pub(crate) struct LookFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Ask about the pods whose `spec.schedulerName` is this [default: dovetail]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Option<String>,
    /// Give up after so many seconds without all objects.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
}

/// The cluster as it is, and when that was.
struct Seen {
    scheduler: Scheduler,
    now_ms: u64,
    /// The namespace of the connection.
    namespace: String,
    /// The scheduler whose pods are asked about.
    scheduler_name: String,
}

impl LookFlags {
    fn look(&self, app: &App) -> Result<Seen> {
        let options: Options = scheduler::watching(app, self.scheduler_name.as_deref());
        connection_runtime()?.block_on(async {
            let config = self.connection.connect().await?;
            let now_ms = now_ms();
            let limit = Duration::from_secs(self.timeout);
            let scheduler = look(&config, &options, limit, now_ms).await;
            Ok(Seen {
                scheduler: scheduler.with_context(|| {
                    let (server, name) = (&config.cluster_url, self.connection.name());
                    format!("cannot read the cluster at {server} ({name})")
                })?,
                now_ms,
                namespace: config.default_namespace,
                scheduler_name: options.world.scheduler,
            })
        })
    }
}
