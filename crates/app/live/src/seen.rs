//! The cluster as it is, read once.

use std::time::Duration;

use anyhow::{Context, Result};
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_control::schedule::Scheduler;
use dovetail_scheduler::{Options, look};
use dovetail_sources::kubeconfig::ConnectionFlags;

/// The cluster as it is, and when that was.
pub struct Seen {
    pub(crate) scheduler: Scheduler,
    pub(crate) now_ms: u64,
    /// The namespace of the connection.
    pub(crate) namespace: String,
    /// The scheduler whose pods are asked about.
    pub(crate) scheduler_name: String,
}

impl Seen {
    /// Reads all objects and lets the engine of these options decide once.
    ///
    /// # Errors
    /// When there is no connection, and when not all objects came within the limit.
    pub fn read(connection: &ConnectionFlags, options: Options, limit: Duration) -> Result<Self> {
        connection_runtime()?.block_on(async {
            let config = connection.connect().await?;
            let now_ms = now_ms();
            let scheduler = look(&config, &options, limit, now_ms).await;
            Ok(Self {
                scheduler: scheduler.with_context(|| {
                    let (server, name) = (&config.cluster_url, connection.name());
                    format!("cannot read the cluster at {server} ({name})")
                })?,
                now_ms,
                namespace: config.default_namespace,
                scheduler_name: options.world.scheduler,
            })
        })
    }
}
