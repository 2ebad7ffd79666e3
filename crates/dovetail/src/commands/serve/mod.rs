//! `dovetail serve`: fills the ledger continuously, and answers out of it.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use dovetail_collector::collecting::{CollectFlags, Collector};
use dovetail_collector::owner_events::OwnerEvents;
use dovetail_collector::reviews::ClusterReviews;
use dovetail_collector::weekly::WeeklyDigests;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::log;
use dovetail_serve::connections::{Limits, serve};
use dovetail_serve::metrics::Metrics;
use dovetail_serve::{
    AccessGuard, Certificate, LedgerBooks, ListenAddress, Reviewer, Site, TlsFiles, open_to_others,
};
use dovetail_settings::duration::DurationFlag;
use dovetail_settings::errors::UsageError;
use dovetail_settings::scheduler::LogLevel;
use dovetail_sources::kubeconfig::{ConnectionFlags, NoKubeconfig};
use dovetail_store::Address;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::commands::scheduler::stop_signal;

/// How often the certificate is read again.
const READ_CERTIFICATE_EVERY: Duration = Duration::from_secs(60);
/// After a failure the next try comes this much later; each further failure doubles it, up to
/// `--every`.
const FIRST_PAUSE_MS: u64 = 5_000;

/// What is read, and who is answered.
#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    /// Ledger: a file, or postgres://USER@HOST/DATABASE; created if it does not exist
    #[arg(long, value_name = "LEDGER", default_value = "dovetail.db")]
    store: String,
    /// Kubeconfig file of the cluster to read [default: $KUBECONFIG, ~/.kube/config, or the pod's
    /// service account; with --prometheus URL or --exporter URL, none]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]; without --kubeconfig, the file is
    /// $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Read the cluster that this process runs in, with the pod's service account
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    in_cluster: bool,
    /// Time between two scans of the cluster, such as 5m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    every: DurationFlag,
    /// Log level [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
    /// Write the log as one JSON object per line instead of text
    #[arg(long)]
    log_json: bool,
    #[command(flatten)]
    collect: CollectFlags,
    /// Address and port of the HTTP server; any address but loopback needs a certificate
    /// (--tls-certificate) or tokens (--accept-token-file, --accept-cluster-tokens)
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9003",
        help_heading = "HTTP server"
    )]
    listen: String,
    /// File with the certificate chain (PEM) of the server
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "HTTP server")]
    tls_certificate: Option<PathBuf>,
    /// File with the private key (PEM) of --tls-certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "HTTP server")]
    tls_key: Option<PathBuf>,
    /// Accept only requests with the bearer token in this file
    #[arg(long, value_name = "FILE", help_heading = "HTTP server")]
    accept_token_file: Option<PathBuf>,
    /// Accept bearer tokens of the cluster (TokenReview) whose user may `get` the path
    /// (SubjectAccessReview)
    #[arg(long, help_heading = "HTTP server")]
    accept_cluster_tokens: bool,
}

/// Serves until a signal asks to stop.
pub(crate) fn command(app: App, flags: ServeFlags) -> Result<()> {
    if !(10_000..=86_400_000).contains(&flags.every.ms) {
        return Err(UsageError("--every: must be 10s to 1d".to_owned()).into());
    }
    let address: Address =
        flags.store.parse().map_err(|error| UsageError(format!("--store: {error}")))?;
    log::start(flags.log_level.unwrap_or_default(), flags.log_json);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start the threads of the server")?;
    let connection = connection(&flags);
    let (guard, place) = runtime.block_on(entrance(&flags, connection.as_ref()))?;
    let metrics = Arc::<Metrics>::default();
    let budgets = app.settings.cost.budgets_usd_micros();
    metrics.show_budgets(budgets.iter().map(|(team, budget)| (team, *budget)));
    let (team, method) = (flags.collect.team_of(&app), flags.collect.method(&app));
    let events = match app.settings.notices.writes_events() {
        true => Some(runtime.block_on(events(connection.as_ref()))?),
        false => None,
    };
    let digests = WeeklyDigests::of(&app.settings.notices)?;
    let collector = Collector::new(app, flags.collect, &address, connection, Arc::clone(&metrics))?;
    let collector = collector.with_events(events).with_digests(digests);
    let books = LedgerBooks::open(&address, method, team)?;
    let listener = runtime.block_on(TcpListener::bind(place.address));
    let listener = listener.with_context(|| {
        format!("cannot listen on {}; choose another address with --listen", place.address)
    })?;
    let routes = Site::new(books, metrics, guard, now_ms).routes();
    let scheme = if place.tls.is_some() { "https" } else { "http" };
    tracing::info!("listening on {scheme}://{}", listener.local_addr()?);
    let (stop, stopped) = watch::channel(false);
    let collecting = collecting(collector, flags.every.ms, stop.clone());
    runtime.block_on(async {
        end_with(stop, stop_signal()?);
        if let Some(certificate) = &place.tls {
            keep_fresh(certificate.clone());
        }
        let served = serve(listener, &place, routes, Limits::default(), stopped).await;
        served.context("the HTTP server failed")?;
        collecting.await
    })
}

/// The cluster that flags select; else the default one, unless what they name needs none.
fn connection(flags: &ServeFlags) -> Option<ConnectionFlags> {
    if flags.in_cluster {
        return Some(ConnectionFlags::of_pod());
    }
    let named = ConnectionFlags::of(flags.kubeconfig.clone(), flags.context.clone());
    (named.is_given() || flags.collect.needs_cluster()).then_some(named)
}

/// A missing kubeconfig, with what can be read without one.
fn with_prometheus(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<NoKubeconfig>() {
        Some(missing) => {
            anyhow::anyhow!("{missing}, or pass --prometheus URL to read only a Prometheus server")
        }
        None => error,
    }
}

/// Who writes events on owners; named in the settings, and never otherwise.
async fn events(connection: Option<&ConnectionFlags>) -> Result<OwnerEvents> {
    let Some(connection) = connection else {
        let text = "notices.idle_events: recording events requires a cluster: pass --in-cluster or --kubeconfig";
        return Err(UsageError(text.to_owned()).into());
    };
    OwnerEvents::new(connection.connect().await?).with_context(|| connection.name())
}

/// Who is answered, and where.
async fn entrance(
    flags: &ServeFlags,
    connection: Option<&ConnectionFlags>,
) -> Result<(AccessGuard, ListenAddress)> {
    // A connection that cannot be made is told now, not in the log; nothing is sent yet.
    let config = match connection {
        Some(connection) => {
            Some((connection, connection.connect().await.map_err(with_prometheus)?))
        }
        None => None,
    };
    let reviewer: Option<Arc<dyn Reviewer>> = match (flags.accept_cluster_tokens, config) {
        (false, _) => None,
        (true, Some((connection, config))) => {
            let reviews = ClusterReviews::new(config).with_context(|| connection.name())?;
            Some(Arc::new(reviews))
        }
        (true, None) => {
            let text =
                "--accept-cluster-tokens: requires a cluster: pass --in-cluster or --kubeconfig";
            return Err(UsageError(text.to_owned()).into());
        }
    };
    let guard = AccessGuard::new(flags.accept_token_file.as_deref(), reviewer);
    let guard = guard.map_err(|error| UsageError(format!("--accept-token-file: {error}")))?;
    if let Some(open) = flags.accept_token_file.as_deref().and_then(open_to_others) {
        tracing::warn!("--accept-token-file: {open}");
    }
    let files = flags.tls_certificate.clone().zip(flags.tls_key.clone());
    let files = files.map(|(certificate, key)| TlsFiles { certificate, key });
    let place = ListenAddress::new(&flags.listen, files.as_ref(), guard.is_closed());
    let place = place.map_err(|error| UsageError(format!("--listen: {error}")))?;
    Ok((guard, place))
}

/// Reads the certificate again and again: it is renewed long before it ends, by who writes its
/// files.
fn keep_fresh(certificate: Certificate) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(READ_CERTIFICATE_EVERY).await;
            match certificate.read_again() {
                Ok(false) => {}
                Ok(true) => tracing::info!("the certificate was renewed and is in use"),
                Err(error) => tracing::warn!("the previous certificate stays in use: {error}"),
            }
        }
    });
}

/// Makes `stop` true when another becomes it.
fn end_with(stop: watch::Sender<bool>, mut signal: watch::Receiver<bool>) {
    tokio::spawn(async move {
        _ = signal.wait_for(|stop| *stop).await;
        stop.send_replace(true);
    });
}

/// Ends everything when it is dropped: also where the collector panics.
struct EndsAll(watch::Sender<bool>);

impl Drop for EndsAll {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

/// Collects on a thread of its own until it is to stop. What is returned is ready when the thread
/// has ended, or a while after it should have: what it has not committed by then it reads again
/// next time.
fn collecting(
    collector: Collector,
    every_ms: u64,
    stop: watch::Sender<bool>,
) -> impl Future<Output = Result<()>> {
    const GRACE: Duration = Duration::from_secs(10);
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let ends_all = EndsAll(stop);
        rounds(collector, every_ms, &ends_all.0.subscribe());
        // Who does not wait any more need not hear it.
        _ = ended.send(());
    });
    async move {
        match tokio::time::timeout(GRACE, end).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => bail!("the collector panicked; this is a bug: report it"),
            Err(_) => {
                tracing::warn!(
                    "a server did not respond before the shutdown: its data is read again at the \
                     next start"
                );
                Ok(())
            }
        }
    }
}

fn rounds(mut collector: Collector, every_ms: u64, stopped: &watch::Receiver<bool>) {
    let mut failures = 0_u32;
    while !*stopped.borrow() {
        let pause_ms = match collector.round(&|| !*stopped.borrow()) {
            Ok(round) => {
                failures = 0;
                tracing::info!(
                    parts = round.parts,
                    missing_s = round.missing_ms / 1000,
                    "recorded the cluster in the ledger"
                );
                every_ms
            }
            Err(error) => {
                let pause_ms = pause_ms(failures, every_ms);
                failures = failures.saturating_add(1);
                let causes = format!("{error:#}");
                tracing::warn!(again_in_s = pause_ms / 1000, "cannot collect data: {causes}");
                pause_ms
            }
        };
        let mut stopped = stopped.clone();
        let is_stopped = async move {
            _ = stopped.wait_for(|stop| *stop).await;
        };
        collector.wait(is_stopped, pause_ms);
    }
    if let Err(error) = collector.end() {
        tracing::warn!("data since the last scan is lost: {error:#}");
    }
}

/// The pause after a failure that followed on so many others.
fn pause_ms(failures: u32, every_ms: u64) -> u64 {
    FIRST_PAUSE_MS.saturating_mul(1 << failures.min(20)).min(every_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_after_failures_grow_up_to_the_usual_one() {
        let pauses: Vec<u64> = (0..5).map(|failures| pause_ms(failures, 30_000)).collect();
        assert_eq!(pauses, [5_000, 10_000, 20_000, 30_000, 30_000]);
        assert_eq!(pause_ms(u32::MAX, 30_000), 30_000);
    }
}
