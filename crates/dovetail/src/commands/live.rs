//! Questions about the state of a cluster: `dovetail why`, `dovetail queue`, `dovetail top`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use dovetail_console::app::App;
use dovetail_live::{ClusterSnapshot, queue, top, why};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::namespace::NamespaceFlags;

use crate::commands::scheduler;

/// Which cluster, and whose pods.
#[derive(Debug, Args)]
pub(crate) struct LookFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Read the pods that have this `spec.schedulerName` [default: dovetail]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Option<String>,
    /// Seconds to wait until all objects have been read
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
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
        ClusterSnapshot::read(&self.connection, options, Duration::from_secs(self.timeout))
    }
}

/// Explains why a pod or a gang is pending.
pub(crate) fn why(app: &App, flags: &WhyFlags) -> Result<()> {
    let mut seen = flags.look.look(app, "why")?;
    why::answer(app, &mut seen, &flags.name, flags.namespace.as_deref())
}

/// Prints queues and their pending pods.
pub(crate) fn queue(app: &App, flags: &QueueFlags) -> Result<()> {
    queue::answer(app, &mut flags.look.look(app, "queue")?, &flags.namespace, flags.start)
}

/// Prints nodes and the pods that use their GPUs.
pub(crate) fn top(app: &App, flags: &TopFlags) -> Result<()> {
    top::answer(app, &mut flags.look.look(app, "top")?, &flags.namespace, flags.all)
}
