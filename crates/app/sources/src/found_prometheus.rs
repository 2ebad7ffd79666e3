//! A server that answers Prometheus' query API, found in a cluster.
//!
//! What a service is called is a reason to ask it. It is believed after it has answered with series
//! of GPU exporters.

use anyhow::{Context, Result};
use dovetail_apiserver::discover::{CandidateService, Proxies, find as candidates};
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_metrics::exporter::measures;
use dovetail_metrics::kube_state::KubeTable;
use dovetail_metrics::prometheus::{Limits, PrometheusClient, Series, Transport};

use crate::kubeconfig::ConnectionFlags;
use crate::through_api_server::ThroughApiServer;

/// More services are not asked: each may take its time.
const MOST_ASKED: usize = 8;

/// The way to a server, if one is believed, and what people should know of the search.
pub struct Finding {
    pub connection: Option<Box<dyn Transport>>,
    pub told: Vec<String>,
}

/// Looks for a server in a cluster, and reaches it through the API server.
///
/// # Errors
/// A connection that cannot be used. A cluster without a server is none.
pub async fn find(cluster: &ConnectionFlags) -> Result<Finding> {
    let config = cluster.connect().await?;
    let named = || cluster.name();
    let found = candidates(&config).await.with_context(named)?;
    let proxies = Proxies::new(&config).with_context(named)?;
    let mut asked: Vec<String> = found.unread;
    for candidate in found.candidates.iter().take(MOST_ASKED) {
        let proxy = proxies.to_service(candidate);
        let connection: Box<dyn Transport> = Box::new(ThroughApiServer(proxy));
        match seen(connection).await {
            Ok((connection, seen)) if seen.gpus => {
                let told = believed(candidate, seen);
                return Ok(Finding { connection: Some(connection), told: vec![told] });
            }
            Ok((_, seen)) => asked.push(format!("{}: {}", candidate.name(), seen.without_gpus())),
            Err(problem) => asked.push(problem),
        }
    }
    let left = found.candidates.len().saturating_sub(MOST_ASKED);
    if left > 0 {
        asked.push(format!("{} more: not tried", counted(left, "service")));
    }
    Ok(Finding { connection: None, told: nobody(&asked) })
}

fn believed(candidate: &CandidateService, seen: AvailableSeries) -> String {
    let objects = if seen.objects { "" } else { "; it has no kube-state-metrics series" };
    format!(
        "GPU metrics come from {}, found by {}{objects}; to use another server, pass --prometheus URL; to use \
         only objects, pass --prometheus none",
        plain(&candidate.name()),
        plain(&candidate.reason)
    )
}

/// A line for the result, and one for each that was asked.
fn nobody(asked: &[String]) -> Vec<String> {
    let found = "no Prometheus, Thanos, Mimir or VictoriaMetrics with GPU metrics was found in the cluster: name a \
                 server with --prometheus URL, or read exporters with --exporters-in NAMESPACE";
    let asked = asked.iter().map(|answer| plain(&format!("looking for Prometheus: {answer}")));
    [found.to_owned()].into_iter().chain(asked).collect()
}

/// Which series a server has at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AvailableSeries {
    gpus: bool,
    objects: bool,
}

impl AvailableSeries {
    fn of(series: &[Series]) -> Self {
        let names = series.iter().filter_map(|series| series.labels.get("__name__"));
        names.fold(Self::default(), |seen, name| {
            let gpus = seen.gpus || measures().any(|(measure, ..)| measure == name);
            Self { gpus, objects: seen.objects || name == KubeTable::PodInfo.series() }
        })
    }

    fn without_gpus(self) -> &'static str {
        if self.objects {
            "it has kube-state-metrics series but no GPU exporter series"
        } else {
            "it has neither GPU exporter nor kube-state-metrics series"
        }
    }
}

/// What a server has; the connection comes back for more.
async fn seen(
    connection: Box<dyn Transport>,
) -> Result<(Box<dyn Transport>, AvailableSeries), String> {
    let names: Vec<&str> = measures().map(|(name, ..)| name).collect();
    let query = format!(
        "count by (__name__) ({{__name__=~\"{}|{}\"}})",
        names.join("|"),
        KubeTable::PodInfo.series()
    );
    // One that does not answer at once is not waited for.
    let limits = Limits { tries: 1, answer_bytes: 1 << 20, ..Limits::default() };
    let mut client = PrometheusClient::new(connection, limits);
    let series = client.instant(&query, now_ms().cast_signed()).await;
    let series = series.map_err(|error| error.to_string())?;
    Ok((client.into_transport(), AvailableSeries::of(&series)))
}
