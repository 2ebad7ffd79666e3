//! `dovetail scheduler`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use dovetail_kube::lead::{LeaseName, Terms};
use dovetail_kube::schedule::{Election, Metrics, Options, Status, endpoints, run};
use dovetail_kube::world;
// Its version of the types holds for all crates.
use k8s_openapi as _;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::UsageError;

/// What to schedule, and how.
#[derive(Debug, Args)]
pub(crate) struct SchedulerFlags {
    /// Connection to the cluster; without it, that of kubectl or of the pod this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Decide and report, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Place the pods whose `spec.schedulerName` is this.
    #[arg(long, value_name = "NAME", default_value = "dovetail")]
    scheduler_name: String,
    /// Where probes (`/livez`, `/readyz`) and `/metrics` are answered.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10251")]
    listen: String,
    /// The Lease whose holder writes, as namespace/name.
    #[arg(long, value_name = "LEASE", default_value = "kube-system/dovetail")]
    lease: String,
    /// Write without election: only where no second process can run.
    #[arg(long)]
    no_leader_election: bool,
    /// What is logged: errors alone, or down to every decision.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
    /// One JSON object per line instead of text.
    #[arg(long)]
    log_json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// Schedules until a signal asks to stop.
pub(crate) fn command(flags: SchedulerFlags) -> Result<()> {
    start_log(&flags);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the threads of the scheduler")?.block_on(schedule(flags))
}

async fn schedule(flags: SchedulerFlags) -> Result<()> {
    let config = connection(&flags).await?;
    let election = match flags.no_leader_election {
        true => None,
        false => Some(Election {
            lease: lease(&flags.lease)?,
            identity: identity(),
            terms: Terms::default(),
        }),
    };
    let options = Options {
        dry_run: flags.dry_run,
        election,
        world: world::Settings { scheduler: flags.scheduler_name, ..world::Settings::default() },
        ..Options::default()
    };
    let listener = TcpListener::bind(&flags.listen).await;
    let listener = listener
        .with_context(|| format!("cannot listen on `{}`: name another --listen", flags.listen))?;
    let (status, metrics) = (Arc::<Status>::default(), Arc::<Metrics>::default());
    let probes = tokio::spawn(endpoints::serve(listener, status.clone(), metrics.clone()));
    let (stop, stopped) = watch::channel(false);
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.send_replace(true);
    });
    let ended = run(&config, options, status, metrics, stopped).await;
    probes.abort();
    ended.context("cannot schedule")
}

async fn connection(flags: &SchedulerFlags) -> Result<Config> {
    let Some(path) = &flags.kubeconfig else {
        let found = Config::infer().await;
        return found.context("no connection to a cluster: name a file with --kubeconfig");
    };
    let named = || format!("kubeconfig {}", path.display());
    let file = Kubeconfig::read_from(path).with_context(named)?;
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(file, &options).await.with_context(named)
}

fn lease(text: &str) -> Result<LeaseName> {
    let parts = text.split_once('/').filter(|(space, name)| !space.is_empty() && !name.is_empty());
    let Some((namespace, name)) = parts else {
        let problem =
            format!("--lease: `{text}` is not a namespace and a name: write kube-system/dovetail");
        return Err(UsageError(problem).into());
    };
    Ok(LeaseName { namespace: namespace.to_owned(), name: name.to_owned() })
}

/// Tells this process from any other, also from one of the same name after a restart.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().or_else(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned())
    });
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}_{}_{started:x}", host.as_deref().unwrap_or("dovetail"), std::process::id())
}

fn start_log(flags: &SchedulerFlags) {
    let level = match flags.log_level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    match flags.log_json {
        true => log.json().init(),
        false => log.with_ansi(false).init(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_namespace_and_a_name() {
        let LeaseName { namespace, name } = lease("kube-system/dovetail").unwrap();
        assert_eq!((&*namespace, &*name), ("kube-system", "dovetail"));
        for bad in ["dovetail", "/dovetail", "kube-system/"] {
            assert!(lease(bad).unwrap_err().to_string().contains(bad));
        }
        assert_ne!(identity(), identity());
    }
}
