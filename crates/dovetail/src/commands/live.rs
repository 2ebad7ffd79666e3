//! Questions about the state of a cluster: `dovetail why`, `dovetail queue`, `dovetail top`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_live::{ClusterSnapshot, queue, top, why};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::namespace::NamespaceFlags;
use dovetail_sources::own_prices::OwnPriceFlags;
use dovetail_units::duration::parse_duration;

use crate::commands::scheduler;

/// Which cluster, and whose pods.
#[derive(Debug, Args)]
pub(crate) struct LookFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Read the pods that have this `spec.schedulerName` [default: dovetail]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Option<String>,
    /// Maximum time to read all objects: a number of seconds, or a duration such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = timeout)]
    timeout: Duration,
}

/// A time from a second to an hour; a bare number is in seconds.
fn timeout(text: &str) -> Result<Duration, String> {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ms = if is_bare { parse_duration(&format!("{text}s"))? } else { parse_duration(text)? };
    match ms {
        1_000..=3_600_000 => Ok(Duration::from_millis(ms)),
        _ => Err("expected a time from 1s to 1h".to_owned()),
    }
}

/// About what.
#[derive(Debug, Args)]
pub(crate) struct WhyFlags {
    /// Name of a pod or gang, or NAMESPACE/NAME
    #[arg(value_name = "NAME")]
    name: String,
    /// Namespace of the pod or gang [default: that of the context]
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    look: LookFlags,
}

/// Which cluster.
#[derive(Debug, Args)]
pub(crate) struct QueueFlags {
    #[command(flatten)]
    look: LookFlags,
    /// Show when each pending job is expected to start, and what it waits for
    #[arg(long)]
    start: bool,
    #[command(flatten)]
    namespace: NamespaceFlags,
    #[command(flatten)]
    prices: OwnPriceFlags,
}

/// Which cluster.
#[derive(Debug, Args)]
pub(crate) struct TopFlags {
    #[command(flatten)]
    look: LookFlags,
    #[command(flatten)]
    namespace: NamespaceFlags,
    /// Include nodes without GPUs
    #[arg(long)]
    all: bool,
}

impl LookFlags {
    /// The cluster; `command` is known to have the form of output before anything is read.
    fn look(&self, app: &App, command: &str) -> Result<ClusterSnapshot> {
        app.output(command)?;
        let mut options = scheduler::watching(app, self.scheduler_name.as_deref());
        options.election = scheduler::election(&app.settings.scheduler.0)?;
        ClusterSnapshot::read(&self.connection, options, self.timeout)
    }
}

/// Explains why a pod or a gang is pending.
pub(crate) fn why(app: &App, flags: &WhyFlags) -> Result<()> {
    let mut seen = flags.look.look(app, "why")?;
    why::answer(app, &mut seen, &flags.name, flags.namespace.as_deref())
}

/// Prints queues and their pending pods.
pub(crate) fn queue(app: &App, flags: &QueueFlags) -> Result<()> {
    let mut seen = flags.look.look(app, "queue")?;
    queue::answer(app, &mut seen, &flags.namespace, flags.start, &flags.prices)
}

/// Prints nodes and the pods that use their GPUs.
pub(crate) fn top(app: &App, flags: &TopFlags) -> Result<()> {
    top::answer(app, &mut flags.look.look(app, "top")?, &flags.namespace, flags.all)
}
