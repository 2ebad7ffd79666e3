//! `dovetail scheduler`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use dovetail_cluster::world;
use dovetail_control::lead::LeaseTimes;
use dovetail_control::record::Recording;
use dovetail_live::comparison;
use dovetail_live::recording::LiveRecording;
use dovetail_plan::{EngineConfig, EstimatesConfig, Order, PreemptionConfig, ReserveConfig};
use dovetail_scheduler::lead::LeaseName;
use dovetail_scheduler::{Election, Metrics, Options, Status, endpoints, run};

// Its version of the types holds for all crates.
use k8s_openapi as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use dovetail_console::app::App;
use dovetail_console::clock::{now, now_ms};
use dovetail_console::log;
use dovetail_replays::input::policy;
use dovetail_replays::recording::BUILD;
use dovetail_settings::errors::UsageError;
use dovetail_settings::followed::FollowedSection;
use dovetail_settings::form::Output;
use dovetail_settings::kubernetes_names::split_lease;
use dovetail_settings::scheduler::{
    DEVICE_RESOURCE, LEASE, LISTEN, LogLevel, ORDER, POLICY, SCHEDULER_NAME, SchedulerSection,
};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_sources::prices::PriceFlags;

/// The settings file is looked at again so often.
const SETTINGS_EVERY: Duration = Duration::from_secs(5);

/// What to schedule, and how. What is not said here is taken from the section `[scheduler]` of
/// dovetail.toml.
#[derive(Debug, Args)]
pub(crate) struct SchedulerFlags {
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Make and report decisions without writing to the cluster.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: compare with another scheduler, and report where dovetail would have placed
    /// that scheduler's pods.
    #[arg(long, value_name = "SCHEDULER", requires = "dry_run", conflicts_with = "scheduler_name")]
    of: Option<String>,
    /// Write the inputs and decisions of the engine to a new file, for `dovetail sim replay`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Schedule the pods that have this `spec.schedulerName` [default: dovetail]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Option<String>,
    /// Address of health endpoints (/livez, /readyz) and /metrics [default: 127.0.0.1:10251]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Lease for leader election, as namespace/name [default: kube-system/dovetail]
    #[arg(long, value_name = "LEASE")]
    lease: Option<String>,
    /// Run without leader election; use only if no second scheduler can run.
    #[arg(long)]
    no_leader_election: bool,
    /// How to choose nodes [default: dovetail]
    #[arg(long, value_name = "POLICY", value_parser = policy::names())]
    policy: Option<String>,
    /// Log level; debug logs every decision, trace every request [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    /// Write the log as one JSON object per line instead of text.
    #[arg(long)]
    log_json: bool,
    #[command(flatten)]
    prices: PriceFlags,
}

/// Schedules until a signal asks to stop.
pub(crate) fn command(app: &App, flags: SchedulerFlags) -> Result<()> {
    let section = app.settings.scheduler.0.clone();
    let output = app.output("scheduler")?;
    if let Some(flag) = flags.prices.given().filter(|_| flags.of.is_none()) {
        let text = format!("{flag}: prices apply only with --dry-run --of SCHEDULER");
        return Err(UsageError(text).into());
    }
    let name = flags.scheduler_name.as_deref().or(section.scheduler_name.as_deref());
    of_its_own(name, flags.dry_run)?;
    // Prices that cannot be read are told before the cluster is looked at for hours.
    flags.prices.of_models(BTreeSet::new(), &app.settings)?;
    let level = flags.log_level.or(section.log_level).unwrap_or_default();
    log::start(level, flags.log_json || section.log_json.unwrap_or(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the threads of the scheduler")?;
    runtime.block_on(schedule(app, &flags, section, output))
}

/// The name that pods have which name no scheduler.
const OF_KUBE_SCHEDULER: &str = "default-scheduler";

/// Refuses kube-scheduler's name for a scheduler that writes.
fn of_its_own(name: Option<&str>, is_dry_run: bool) -> Result<()> {
    if name != Some(OF_KUBE_SCHEDULER) || is_dry_run {
        return Ok(());
    }
    let text = format!(
        "scheduler_name `{OF_KUBE_SCHEDULER}` is kube-scheduler's, and both would bind the same \
         pods: use another name in dovetail.toml or --scheduler-name, or compare with --dry-run \
         --of {OF_KUBE_SCHEDULER}"
    );
    Err(UsageError(text).into())
}

async fn schedule(
    app: &App,
    flags: &SchedulerFlags,
    section: SchedulerSection,
    output: Output,
) -> Result<()> {
    let config = flags.connection.connect().await?;
    let mut options = options(app, flags, &section)?;
    // A flag is stronger than the file, whatever that says later.
    if flags.policy.is_none() {
        options.policies = Some(policies(app));
    }
    let recording =
        flags.record.as_deref().map(|path| LiveRecording::into(path, BUILD)).transpose()?;
    let unrecorded = recording.as_ref().map(LiveRecording::problem).unwrap_or_default();
    options.recording = recording.map(Recording::new);
    let listen = flags.listen.clone().or(section.listen).unwrap_or_else(|| LISTEN.to_owned());
    let listener = TcpListener::bind(&listen).await;
    let listener = listener.with_context(|| {
        format!("cannot listen on `{listen}`; choose another address with --listen")
    })?;
    if let Ok(address) = listener.local_addr() {
        info!(%address, "serving health endpoints and metrics");
    }
    let comparison = options.comparison.clone();
    let (status, metrics) = (Arc::<Status>::default(), Arc::<Metrics>::default());
    let probes = tokio::spawn(endpoints::serve(listener, status.clone(), metrics.clone()));
    let ended = run(&config, options, status, metrics, stop_signal()?).await;
    probes.abort();
    ended.context("cannot schedule")?;
    if let (Some(comparison), Some(of)) = (comparison, &flags.of) {
        let compared = comparison.lock().unwrap_or_else(PoisonError::into_inner);
        comparison::print(app, output, of, &compared.until(now_ms()), &flags.prices)?;
    }
    match unrecorded.get() {
        Some(problem) => {
            bail!("the recording is incomplete: {problem}: free disk space, then record again")
        }
        None => Ok(()),
    }
}

/// The policy that the settings file names, whenever it names another. Other settings hold from
/// the next start on.
fn policies(app: &App) -> watch::Receiver<String> {
    let (section, path) = app.settings.scheduler.clone();
    let name =
        |section: &SchedulerSection| section.policy.clone().unwrap_or_else(|| POLICY.to_owned());
    let (policy, policies) = watch::channel(name(&section));
    let mut file = FollowedSection::new(path, section);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SETTINGS_EVERY).await;
            match file.changed() {
                Ok(None) => {}
                Ok(Some((mut before, now))) => {
                    policy.send_if_modified(|known| {
                        let named = name(&now);
                        std::mem::replace(known, named.clone()) != named
                    });
                    before.policy.clone_from(&now.policy);
                    if before != now {
                        warn!(
                            "settings other than the policy changed: restart the scheduler to \
                             apply them"
                        );
                    }
                }
                Err(problem) => warn!("the previous settings stay in use: {problem}"),
            }
        }
    });
    policies
}

/// Becomes true when a signal asks to stop.
pub(crate) fn stop_signal() -> Result<watch::Receiver<bool>> {
    let (stop, stopped) = watch::channel(false);
    let mut interrupt =
        signal(SignalKind::interrupt()).context("cannot install the Ctrl-C handler")?;
    let mut terminate =
        signal(SignalKind::terminate()).context("cannot install the SIGTERM handler")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.send_replace(true);
    });
    Ok(stopped)
}

/// How processes agree on one that writes, by these settings; `None`: they do not.
pub(crate) fn election(section: &SchedulerSection) -> Result<Option<Election>> {
    let lease = lease(section.lease.as_deref().unwrap_or(LEASE))?;
    let elects = section.leader_election.unwrap_or(true);
    Ok(elects.then(|| Election { lease, identity: identity(), terms: LeaseTimes::default() }))
}

/// Flags, then the file, then what holds where nobody says anything.
fn options(app: &App, flags: &SchedulerFlags, section: &SchedulerSection) -> Result<Options> {
    let mut said = section.clone();
    said.lease = flags.lease.clone().or(said.lease);
    if flags.no_leader_election {
        said.leader_election = Some(false);
    }
    let election = election(&said)?;
    let name = flags.of.as_deref().or(flags.scheduler_name.as_deref());
    let mut options = watching(app, name);
    if let Some(policy) = &flags.policy {
        options.engine.policy = policy::seeded(policy, app.settings.seed.value);
    }
    // What is compared with another scheduler's decisions must not count its pods as gone.
    options.engine.preemption.enabled &= flags.of.is_none();
    Ok(Options {
        dry_run: flags.dry_run,
        election,
        instance: format!("{}-{}", options.world.scheduler, host()),
        comparison: flags.of.as_ref().map(|_| Arc::default()),
        ..options
    })
}

/// How pods are read and decided about, by the settings file; whose pods, by a flag if there is
/// one.
pub(crate) fn watching(app: &App, scheduler_name: Option<&str>) -> Options {
    let section = &app.settings.scheduler.0;
    let or = |in_file: &Option<String>, default: &str| {
        in_file.clone().unwrap_or_else(|| default.to_owned())
    };
    let (order, turns) = (section.order.unwrap_or(ORDER), section.turns());
    let preempts = section.preemption.unwrap_or(true);
    let rules = dovetail_translate::Rules {
        device_resource: or(&section.device_resource, DEVICE_RESOURCE),
        node_selector: section.node_selector.clone().unwrap_or_default(),
        max_declared_loss_ms: Some(section.max_declared_loss_ms()),
        queues_borrow: order == Order::Dovetail && turns.reclaims && preempts,
        mixes_shared_gpus: false,
    };
    // What the file says was looked at when it was read.
    let levels = section.levels().unwrap_or_default();
    let scheduler = scheduler_name.map(str::to_owned);
    let scheduler = scheduler.unwrap_or_else(|| or(&section.scheduler_name, SCHEDULER_NAME));
    let policy = policy::seeded(&or(&section.policy, POLICY), app.settings.seed.value);
    let preemption = PreemptionConfig {
        enabled: preempts,
        respect_budgets: section.respect_pdb.unwrap_or(false),
        ..PreemptionConfig::default()
    };
    let preempt_foreign = section.preempt_foreign.unwrap_or(false);
    Options {
        engine: EngineConfig {
            policy,
            order,
            turns,
            model_weights: section.model_weights(),
            reserve: ReserveConfig {
                heads: section.reserve_heads.unwrap_or(0),
                ..ReserveConfig::default()
            },
            preemption,
            estimates: EstimatesConfig { learn: true, only_learned: true },
            ..EngineConfig::default()
        },
        world: world::Settings {
            scheduler,
            rules,
            levels,
            preempt_foreign,
            never_suspends: !section.suspend.unwrap_or(true),
            patience: section.patience(),
            ..world::Settings::default()
        },
        volumes: section.volume_patience(),
        ..Options::default()
    }
}

pub(crate) fn print_metrics(app: &App) -> Result<()> {
    let table = Metrics::default().reference();
    let of_serve = dovetail_serve::metrics::Metrics::default().reference();
    app.print(&format!(
        "<!-- Written by `cargo xtask codegen metrics`. Change crates/app/scheduler/src/metrics.rs and \
         crates/edge/serve/src/metrics/mod.rs. -->\n\
         # Metrics of `dovetail scheduler`\n\n\
         This page is for operators who build dashboards and alerts. `dovetail scheduler` serves these\n\
         metrics at `http://127.0.0.1:10251/metrics` (`--listen`). Metrics with the prefix `scheduler_` have\n\
         the names and meanings of kube-scheduler's metrics.\n\n\
         {table}\n\
         # Metrics of `dovetail serve`\n\n\
         `dovetail serve` serves these metrics at `http://127.0.0.1:9003/metrics` (`--listen`). Amounts from\n\
         the [ledger](../track-cost.md) are gauges for the period in their name. They change if\n\
         dovetail re-reads the data for an hour.\n\n\
         {of_serve}"
    ))
}

fn lease(text: &str) -> Result<LeaseName> {
    let (namespace, name) = split_lease(text)
        .map_err(|expected| UsageError(format!("--lease: `{text}`: expected {expected}")))?;
    Ok(LeaseName { namespace: namespace.to_owned(), name: name.to_owned() })
}

/// Tells this process from any other, also from one of the same name after a restart.
fn identity() -> String {
    let started = now().as_nanosecond();
    format!("{}_{}_{started:x}", host(), std::process::id())
}

/// Name of this machine, or of the pod that this runs in.
fn host() -> String {
    let named = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let named = named.or_else(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned())
    });
    named.unwrap_or_else(|| "unnamed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_namespace_and_a_name() {
        let LeaseName { namespace, name } = lease("kube-system/dovetail").unwrap();
        assert_eq!((&*namespace, &*name), ("kube-system", "dovetail"));
        for bad in ["dovetail", "/dovetail", "kube-system/", "a/b/c"] {
            assert!(lease(bad).unwrap_err().to_string().contains(bad));
        }
        assert_ne!(identity(), identity());
    }

    #[test]
    fn only_a_dry_run_may_have_the_name_of_kube_scheduler() {
        for (name, is_dry_run) in
            [(None, false), (Some("dovetail"), false), (Some("default-scheduler"), true)]
        {
            assert!(of_its_own(name, is_dry_run).is_ok(), "{name:?}");
        }
        let refused = of_its_own(Some("default-scheduler"), false).unwrap_err();
        assert!(refused.is::<UsageError>() && refused.to_string().contains("--dry-run --of"));
    }

    #[test]
    fn the_command_line_of_the_manifests_is_read() {
        use clap::Parser as _;
        let manifest = include_str!("../../../../deploy/deployment.yaml");
        let line = manifest.lines().find_map(|line| line.trim().strip_prefix("args: [")).unwrap();
        let words = line.trim_end_matches(']').split(", ");
        let read = crate::cli::Cli::try_parse_from(["dovetail"].into_iter().chain(words));
        assert!(read.is_ok(), "{read:?}");
    }
}
