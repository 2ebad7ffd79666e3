//! What GPUs do now, from exporters that are asked directly: where no server keeps their series.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use clap::{ArgAction, Args};
use dovetail_audit::UsagePeriod;
use dovetail_kube::discover::{Proxies, exporters};
use dovetail_ledger::device_time::Span;
use dovetail_ledger::signal::ActivityRule;
use dovetail_metrics::exporter::host;
use dovetail_metrics::prometheus::{Direct, DirectOptions, Transport};
use dovetail_metrics::scrape::Scrapes;
use futures_util::StreamExt;
use futures_util::stream;

use crate::app::App;
use crate::exit::UsageError;
use crate::input::connection::connection_runtime;
use crate::input::duration::DurationFlag;
use crate::input::kubeconfig::ConnectionFlags;
use crate::input::through_api_server::ThroughApiServer;
use crate::input::uses::Uses;
use crate::input::uses_of_server::of_pods;
use crate::output::plain::plain;
use crate::output::table::counted;

/// One that does not answer at once is not waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A node with sixteen GPUs and every series there is stays far below.
const PAGE_BYTES: usize = 16 << 20;
/// So many are asked at a time.
const AT_A_TIME: usize = 16;
/// What stands behind the address.
const METRICS: &str = "/metrics";

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct ExporterFlags {
    /// Ask this GPU exporter itself, where no Prometheus keeps its series: http://HOST:PORT; can be given
    /// several times
    #[arg(long, value_name = "URL", action = ArgAction::Append, conflicts_with = "usage")]
    exporter: Vec<String>,
    /// Ask the GPU exporters of this namespace through the API server of --kubeconfig; can be given several
    /// times
    #[arg(long, value_name = "NAMESPACE", action = ArgAction::Append, conflicts_with = "usage")]
    #[arg(requires = "kubeconfig")]
    exporters_in: Vec<String>,
    /// How long exporters are looked at
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    look_for: DurationFlag,
    /// Distance of two looks at exporters
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    look_every: DurationFlag,
}

/// An exporter: how it is asked, and what stands for the node where its labels name none.
struct Target {
    way: Box<dyn Transport>,
    node: String,
}

/// What came of the looks.
#[derive(Default)]
struct Looks {
    scrapes: Scrapes,
    /// Whether each target answered, by place, and why it did not the last time.
    answers: BTreeMap<usize, Result<(), String>>,
}

impl ExporterFlags {
    /// Whether any is named.
    pub(crate) fn are_given(&self) -> bool {
        !self.exporter.is_empty() || !self.exporters_in.is_empty()
    }

    /// Looks at all exporters for a while.
    ///
    /// # Errors
    /// Flags that cannot be, a connection that cannot be used, and exporters of which not one answers.
    pub(crate) fn read(&self, app: &App, kubeconfig: Option<&Path>) -> Result<Uses> {
        let every_ms = self.look_every.ms;
        if every_ms < 1_000 {
            let text = "--look-every: at least 1s: exporters renew their numbers more seldom";
            return Err(UsageError(text.into()).into());
        }
        let count = (self.look_for.ms / every_ms).max(1);
        let runtime = connection_runtime()?;
        let (targets, looks, from_ms) = runtime.block_on(async {
            let targets = self.targets(app, kubeconfig).await?;
            let (looks, from_ms) = look(&targets, count, Duration::from_millis(every_ms)).await;
            anyhow::Ok((targets, looks, from_ms))
        })?;
        tell(app, &targets, &looks)?;
        let span = Span { from_ms, to_ms: from_ms + count * every_ms };
        let (observation, _) = looks.scrapes.observation();
        let time = observation.histories(span, every_ms, &ActivityRule::default());
        if time.holders.is_empty() && !time.devices.is_empty() {
            app.note(
                "exporters name no pod on any GPU: either all GPUs are free, or they do not map them to pods \
                 (dcgm-exporter: DCGM_EXPORTER_KUBERNETES=true)",
            );
        }
        Ok(Uses {
            period: UsagePeriod { span, step_ms: every_ms },
            of_pods: of_pods(&time, span.to_ms),
            series: Vec::new(),
            source: counted(targets.len(), "exporter"),
        })
    }

    async fn targets(&self, app: &App, kubeconfig: Option<&Path>) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        for url in &self.exporter {
            let base = url.trim_end_matches('/').trim_end_matches(METRICS);
            let options = DirectOptions { timeout: ANSWER_WITHIN, ..DirectOptions::at(base) };
            let way = Direct::new(&options);
            let way = way.map_err(|error| UsageError(format!("--exporter: {error}")))?;
            let node = host_of(base).to_owned();
            targets.push(Target { way: Box::new(way), node });
        }
        let Some(path) = kubeconfig.filter(|_| !self.exporters_in.is_empty()) else {
            return Ok(targets);
        };
        let cluster = ConnectionFlags::of_file(path.to_owned());
        let config = cluster.connect().await?;
        let proxies = Proxies::new(&config).with_context(|| cluster.name())?;
        for namespace in &self.exporters_in {
            let found = exporters(&config, namespace).await.with_context(|| cluster.name())?;
            found.unread.iter().for_each(|text| app.note(&plain(text)));
            if found.pods.is_empty() {
                app.note(&format!(
                    "no GPU exporter runs in namespace {}: a pod is one by its label app or app.kubernetes.io/name \
                     with `exporter` or `xpum` in it, and a port",
                    plain(namespace)
                ));
            }
            for pod in &found.pods {
                let way = Box::new(ThroughApiServer(proxies.to_pod(pod)));
                targets.push(Target { way, node: pod.node.clone() });
            }
        }
        Ok(targets)
    }
}

/// Asks all of them so often, and when the first look was.
async fn look(targets: &[Target], count: u64, every: Duration) -> (Looks, u64) {
    let mut looks = Looks::default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let from_ms = now.as_millis() as u64;
    let mut clock = tokio::time::interval(every);
    for round in 0..count {
        clock.tick().await;
        // One moment for all devices, whoever answered first.
        let at_ms = (from_ms + round * every.as_millis() as u64) as i64;
        let asked =
            targets.iter().enumerate().map(async |(place, target)| (place, page(target).await));
        let mut answers = stream::iter(asked).buffer_unordered(AT_A_TIME);
        while let Some((place, page)) = answers.next().await {
            let node = &targets[place].node;
            let taken = page.and_then(|page| {
                looks.scrapes.take(node, &page, at_ms).map_err(|error| error.to_string())
            });
            // Who answered once is not told as silent.
            let known = looks.answers.entry(place).or_insert_with(|| taken.clone());
            if taken.is_ok() {
                *known = taken;
            }
        }
    }
    (looks, from_ms)
}

async fn page(target: &Target) -> Result<Vec<u8>, String> {
    let asked = tokio::time::timeout(ANSWER_WITHIN, target.way.get(METRICS, PAGE_BYTES)).await;
    let name = target.way.name();
    match asked {
        Ok(Ok(reply)) if reply.status == 200 => Ok(reply.body.to_vec()),
        Ok(Ok(reply)) => Err(format!("{name}{METRICS} answers with status {}", reply.status)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer from {name} within {} s", ANSWER_WITHIN.as_secs())),
    }
}

/// Says who did not answer; an error where nobody did.
fn tell(app: &App, targets: &[Target], looks: &Looks) -> Result<()> {
    let silent: Vec<&String> = looks.answers.values().filter_map(|a| a.as_ref().err()).collect();
    if let (Some(first), true) = (silent.first(), silent.len() == targets.len()) {
        return Err(anyhow!("no exporter of {} answers: {}", targets.len(), plain(first)));
    }
    if let Some(first) = silent.first() {
        app.note(&format!(
            "{} of {} did not answer, so their GPUs are blind: {}",
            silent.len(),
            counted(targets.len(), "exporter"),
            plain(first)
        ));
    }
    if let Some(refused) = looks.scrapes.refused() {
        app.note(&format!(
            "{} of exporters left out: line {} of {} {}",
            counted(usize::try_from(refused.count).unwrap_or(usize::MAX), "line"),
            refused.line,
            plain(&refused.source),
            refused.problem
        ));
    }
    Ok(())
}

/// The host of a URL.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    host(rest.split('/').next().unwrap_or(rest))
}
