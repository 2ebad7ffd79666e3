//! Exporters that are asked: how each is reached, and one look at all of them.

use std::time::Duration;

use anyhow::{Context, Result};
use dovetail_apiserver::discover::{Proxies, exporters};
use dovetail_console::plain::plain;
use dovetail_metrics::exporter::host;
use dovetail_metrics::prometheus::{Direct, DirectOptions, Transport};
use dovetail_metrics::scrape::Scrapes;
use dovetail_settings::errors::UsageError;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::Instant;

use crate::kubeconfig::ConnectionFlags;
use crate::through_api_server::ThroughApiServer;

/// One that does not answer at once is not waited for.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A node with sixteen GPUs and every series there is stays far below.
const PAGE_BYTES: usize = 16 << 20;
/// So many are asked at a time.
const AT_A_TIME: usize = 16;
/// What stands behind the address.
const METRICS: &str = "/metrics";

/// An exporter: how it is asked, and what stands for the node where its labels name none.
pub struct ExporterTarget {
    way: Box<dyn Transport>,
    node: String,
}

/// Exporters, and what should be known of the search for them.
pub struct ExporterSearch {
    pub targets: Vec<ExporterTarget>,
    pub told: Vec<String>,
    /// Whether every namespace could be looked through.
    pub is_whole: bool,
}

impl ExporterTarget {
    /// As messages name it.
    pub fn name(&self) -> &str {
        self.way.name()
    }
}

/// Those with an address.
///
/// # Errors
/// An address that is none.
pub fn at(urls: &[String]) -> Result<Vec<ExporterTarget>> {
    let target = |url: &String| {
        let base = url.trim_end_matches('/').trim_end_matches(METRICS);
        let options = DirectOptions { timeout: ANSWER_WITHIN, ..DirectOptions::at(base) };
        let way = Direct::new(&options);
        let way = way.map_err(|error| UsageError(format!("--exporter: {error}")))?;
        Ok(ExporterTarget { way: Box::new(way), node: host_of(base).to_owned() })
    };
    urls.iter().map(target).collect()
}

/// Those that run in namespaces of a cluster.
///
/// # Errors
/// A connection that cannot be used.
pub(crate) async fn running_in(
    namespaces: &[String],
    cluster: Option<&ConnectionFlags>,
) -> Result<ExporterSearch> {
    let mut found = ExporterSearch { targets: Vec::new(), told: Vec::new(), is_whole: true };
    let Some(cluster) = cluster.filter(|_| !namespaces.is_empty()) else { return Ok(found) };
    let config = cluster.connect().await?;
    let proxies = Proxies::new(&config).with_context(|| cluster.name())?;
    for namespace in namespaces {
        let running = exporters(&config, namespace).await.with_context(|| cluster.name())?;
        found.is_whole &= running.unread.is_empty();
        found.told.extend(running.unread.iter().map(|text| plain(text)));
        if running.pods.is_empty() {
            found.told.push(format!(
                "no GPU exporter runs in namespace {}: dovetail reads pods that have a port and \
                 whose label app or app.kubernetes.io/name contains `exporter` or `xpum`",
                plain(namespace)
            ));
        }
        for pod in &running.pods {
            let way = Box::new(ThroughApiServer(proxies.to_pod(pod)));
            found.targets.push(ExporterTarget { way, node: pod.node.clone() });
        }
    }
    Ok(found)
}

/// Asks all of them: one moment for all devices, whoever answers first. Whoever has not answered at
/// the end is silent, asked or not. Answers with what each said, by place.
pub async fn look(
    targets: &[ExporterTarget],
    order: impl Iterator<Item = usize>,
    at_ms: i64,
    end: Instant,
    scrapes: &mut Scrapes,
) -> Vec<Result<(), String>> {
    let late = |target: &ExporterTarget| Err(format!("no answer from {} in time", target.name()));
    let mut said: Vec<Result<(), String>> = targets.iter().map(late).collect();
    let asked = order.map(move |place| async move { (place, page(&targets[place]).await) });
    let mut answers = stream::iter(asked).buffer_unordered(AT_A_TIME);
    while let Ok(Some((place, page))) = tokio::time::timeout_at(end, answers.next()).await {
        said[place] = page.and_then(|page| {
            let taken = scrapes.take(&targets[place].node, &page, at_ms);
            taken.map_err(|error| format!("no GPU metrics from {}: {error}", targets[place].name()))
        });
    }
    said
}

async fn page(target: &ExporterTarget) -> Result<Vec<u8>, String> {
    let asked = tokio::time::timeout(ANSWER_WITHIN, target.way.get(METRICS, PAGE_BYTES)).await;
    let name = target.way.name();
    match asked {
        Ok(Ok(reply)) if reply.status == 200 => Ok(reply.body.to_vec()),
        Ok(Ok(reply)) => Err(format!("{name}{METRICS} returned status {}", reply.status)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer from {name} within {} s", ANSWER_WITHIN.as_secs())),
    }
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    host(rest.split('/').next().unwrap_or(rest))
}
