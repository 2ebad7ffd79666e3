//! What GPUs did over a period, from whatever answers Prometheus' query API.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgAction, Args};
use dovetail_account::device_time::Span;
use dovetail_account::signal::ActivityRule;
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::connection::connection_runtime;
use dovetail_metrics::exporter::{
    Observation, ObservedTime, PodLabels, SeriesMeasure, mean_over_steps, measures,
    peaks_of_mixed_steps,
};
use dovetail_metrics::prometheus::{
    Direct, DirectOptions, Limits, PrometheusClient, QueryError, RangeQuery, Series, Transport,
};
use dovetail_settings::duration::DurationFlag;
use dovetail_settings::errors::UsageError;
use tokio::runtime::Runtime;

use crate::found_prometheus::{Finding, find};
use crate::kubeconfig::ConnectionFlags;
use crate::period::PeriodFlag;

/// An answer may take this long.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// Flags as written: how a server is reached.
#[derive(Clone, Debug, Default, Args)]
pub struct WayFlags {
    /// File with a bearer token for the server of --prometheus
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with CA certificates (PEM) for the server of --prometheus, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// HTTP header for the server of --prometheus, such as X-Scope-OrgID=team-a; repeatable
    #[arg(long, value_name = "NAME=VALUE", action = ArgAction::Append)]
    header: Vec<String>,
}

const DAY_MS: u64 = 86_400_000;

/// Flags as written: how a server is reached, and which time is asked for.
#[derive(Debug, Args)]
pub struct ServerFlags {
    #[command(flatten)]
    way: WayFlags,
    /// Period to read: a duration before now (24h, 14d), a day (2026-10-14), a month (2026-10), or
    /// START..END of days, months or times (2026-10-01T08:00:00Z..2026-10-14), in UTC [default:
    /// 24h]
    #[arg(long, value_name = "PERIOD")]
    period: Option<PeriodFlag>,
    /// Time between two samples of a GPU, such as 30s; each sample is the mean over that time
    /// [default: 1m, or 5m for a --period of more than 3d]
    #[arg(long, value_name = "DURATION")]
    step: Option<DurationFlag>,
}

/// Which server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerChoice {
    /// One that is found in the cluster of a kubeconfig; none where there is no kubeconfig.
    Auto,
    None,
    /// The one at this address.
    At(String),
}

impl FromStr for ServerChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            url => Self::At(url.to_owned()),
        })
    }
}

/// The server to ask, if any, and what looking for it brought to light.
#[derive(Default)]
pub struct Chosen {
    pub asker: Option<Asker>,
    pub told: Vec<String>,
}

/// However a server is reached.
pub type AnyClient = PrometheusClient<Box<dyn Transport>>;

/// Asks one server about one period.
pub struct Asker {
    pub client: AnyClient,
    pub period: Span,
    /// Where the period begins, if it was said where, and not how long it is.
    begins_ms: Option<u64>,
    pub step_ms: u64,
    runtime: Runtime,
}

/// All series of devices over a period.
pub struct ObservedPeriod {
    pub observation: Observation,
    /// Which labels name holders.
    pub pods: PodLabels,
    /// The same as the history of each device.
    pub time: ObservedTime,
}

impl ServerFlags {
    /// Who asks a server for the period that ends now.
    ///
    /// # Errors
    /// Flags that cannot be, or an address that is none.
    pub fn asker(&self, url: &str) -> Result<Asker> {
        let client = self.way.client(url)?;
        let (period, step_ms) = (self.span()?, self.step_ms()?);
        let (begins_ms, runtime) = (self.begins_ms(period), connection_runtime()?);
        Ok(Asker { client, period, begins_ms, step_ms, runtime })
    }

    /// The client of the chosen server; none where there is no server.
    ///
    /// # Errors
    /// As [`Self::asker`], and a kubeconfig that cannot be used.
    pub fn chosen(
        &self,
        choice: &ServerChoice,
        cluster: Option<&ConnectionFlags>,
    ) -> Result<Chosen> {
        match (choice, cluster) {
            (ServerChoice::None, _) | (ServerChoice::Auto, None) => {
                Ok(Chosen { asker: None, told: Vec::new() })
            }
            _ => {
                let (period, step_ms) = (self.span()?, self.step_ms()?);
                let mut chosen = self.way.chosen(choice, cluster, period, step_ms)?;
                if let Some(asker) = &mut chosen.asker {
                    asker.begins_ms = self.begins_ms(period);
                }
                Ok(chosen)
            }
        }
    }

    /// The note where a period is asked for and no server knows the past.
    pub fn without_effect(&self) -> Option<String> {
        let flag = self.flag_of_history()?;
        Some(format!(
            "{flag} has no effect: without --prometheus there is one snapshot and no history, and \
             figures are its run rate"
        ))
    }

    /// Refuses a period of the generated cluster, unless it is asked of a server with an address.
    ///
    /// # Errors
    /// Names the flag.
    pub fn refuse_period_of_example(&self, choice: &ServerChoice) -> Result<()> {
        match (choice, self.flag_of_history()) {
            (ServerChoice::At(_), _) | (_, None) => Ok(()),
            (_, Some(flag)) => {
                let text = format!(
                    "{flag} cannot be used with --example: the generated cluster is one snapshot \
                     without history; omit {flag}"
                );
                Err(UsageError(text).into())
            }
        }
    }

    /// The first given flag that only a server with history needs.
    fn flag_of_history(&self) -> Option<&'static str> {
        let flags = [("--period", self.period.is_some()), ("--step", self.step.is_some())];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    fn period(&self) -> PeriodFlag {
        self.period.unwrap_or(PeriodFlag::Last { ms: DAY_MS })
    }

    /// Whether both ends of the period were said, and not how long it is.
    pub fn is_between(&self) -> bool {
        matches!(self.period(), PeriodFlag::Between(_))
    }

    fn begins_ms(&self, period: Span) -> Option<u64> {
        self.is_between().then_some(period.from_ms)
    }

    /// The period as far as it is over, in whole steps.
    ///
    /// # Errors
    /// Flags that cannot be.
    pub fn span(&self) -> Result<Span> {
        Ok(self.period().span(now_ms(), self.step_ms()?)?)
    }

    fn step_ms(&self) -> Result<u64> {
        const SHORT_MS: u64 = 3 * 86_400_000;
        let period_ms = self.period().length_ms(now_ms());
        let default_ms = if period_ms <= SHORT_MS { 60_000 } else { 300_000 };
        let step_ms = self.step.map_or(default_ms.min(period_ms.max(1_000)), |step| step.ms);
        match step_ms {
            _ if period_ms < 1_000 && !self.is_between() => {
                let text = "--period: must be at least 1s: use a duration such as 24h";
                Err(UsageError(text.into()).into())
            }
            step_ms if step_ms < 1_000 => {
                let text =
                    "--step: must be at least 1s: dovetail scrapes exporters at most once a second";
                Err(UsageError(text.into()).into())
            }
            // A period of which nothing is over says so itself.
            step_ms if step_ms > period_ms && period_ms > 0 => {
                Err(UsageError("--step is longer than --period: shorten it".into()).into())
            }
            step_ms => Ok(step_ms),
        }
    }
}

impl WayFlags {
    /// The client of the chosen server for a period; none where there is no server.
    ///
    /// # Errors
    /// Flags that cannot be, an address that is none, and a connection to a cluster that cannot be
    /// used.
    pub fn chosen(
        &self,
        choice: &ServerChoice,
        cluster: Option<&ConnectionFlags>,
        period: Span,
        step_ms: u64,
    ) -> Result<Chosen> {
        let runtime = connection_runtime()?;
        let (client, told) = match (choice, cluster) {
            (ServerChoice::At(url), _) => (Some(self.client(url)?), Vec::new()),
            (ServerChoice::Auto, Some(cluster)) => {
                let Finding { connection, told } = runtime.block_on(find(cluster))?;
                (connection.map(|way| PrometheusClient::new(way, Limits::default())), told)
            }
            _ => (None, Vec::new()),
        };
        let asker =
            client.map(|client| Asker { client, period, begins_ms: None, step_ms, runtime });
        Ok(Chosen { asker, told })
    }

    /// A client of the chosen server, from within a runtime; none where there is no server. With it
    /// comes what looking for it brought to light.
    ///
    /// # Errors
    /// As [`Self::chosen`].
    pub async fn reach(
        &self,
        choice: &ServerChoice,
        cluster: &ConnectionFlags,
    ) -> Result<(Option<AnyClient>, Vec<String>)> {
        match choice {
            ServerChoice::None => Ok((None, Vec::new())),
            ServerChoice::At(url) => Ok((Some(self.client(url)?), Vec::new())),
            ServerChoice::Auto => {
                let Finding { connection, told } = find(cluster).await?;
                let client = connection.map(|way| PrometheusClient::new(way, Limits::default()));
                Ok((client, told))
            }
        }
    }

    fn client(&self, url: &str) -> Result<AnyClient> {
        let connection: Box<dyn Transport> = Box::new(self.connection(url)?);
        Ok(PrometheusClient::new(connection, Limits::default()))
    }

    fn connection(&self, url: &str) -> Result<Direct> {
        let mut headers = Vec::new();
        for header in &self.header {
            let pair = header.split_once('=').ok_or_else(|| {
                UsageError(format!(
                    "--header {header}: write NAME=VALUE, such as X-Scope-OrgID=team-a"
                ))
            })?;
            headers.push((pair.0.to_owned(), pair.1.to_owned()));
        }
        let options = DirectOptions {
            url: url.to_owned(),
            token_file: self.token_file.clone(),
            authority_file: self.ca_file.clone(),
            headers,
            timeout: ANSWER_WITHIN,
        };
        Direct::new(&options).map_err(|error| UsageError(format!("--prometheus: {error}")).into())
    }
}

impl Asker {
    /// Ends the period at a moment at the latest, in whole steps: moves it back, as long as it is,
    /// and where it was said when it begins cuts it.
    ///
    /// # Errors
    /// A period that was said to begin later.
    pub(crate) fn end_by(&mut self, at_ms: u64) -> Result<()> {
        let length_ms = self.period.to_ms - self.period.from_ms;
        let to_ms = self.period.to_ms.min((at_ms / self.step_ms).max(1) * self.step_ms);
        let from_ms = self.begins_ms.unwrap_or(to_ms.saturating_sub(length_ms));
        if from_ms >= to_ms {
            let text = "--period: it starts after the objects were read: use an earlier period, or \
                 later objects";
            return Err(UsageError(text.to_owned()).into());
        }
        self.period = Span { from_ms, to_ms };
        Ok(())
    }

    /// Reads every series that a device may have, and says what they make of each device.
    ///
    /// # Errors
    /// A server that does not answer, or answers with something else.
    pub fn observe(&mut self) -> Result<ObservedPeriod> {
        let observed = observe(&mut self.client, self.period, self.step_ms);
        let (observation, pods) = self.runtime.block_on(observed)?;
        let time = observation.histories(self.period, self.step_ms, &ActivityRule::default());
        Ok(ObservedPeriod { observation, pods, time })
    }

    /// The value of each series of a query at one moment.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub fn instant(&mut self, query: &str, at_ms: u64) -> Result<Vec<Series>> {
        Ok(self.runtime.block_on(self.client.instant(query, at_ms as i64))?)
    }

    /// The values of each series of a query at every step of the period.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub fn range(&mut self, query: &str) -> Result<Vec<Series>> {
        let range = range_of(query.to_owned(), self.period, self.step_ms);
        Ok(self.runtime.block_on(all(&mut self.client, &range))?)
    }

    /// Tells what the server said beside its answers.
    pub fn tell_warnings(&self, app: &App) {
        self.client.notes().warnings.iter().for_each(|text| {
            let server = self.client.server();
            app.note(&format!("{server} returned a warning, so data may be missing: {text}"));
        });
    }
}

fn range_of(query: String, period: Span, step_ms: u64) -> RangeQuery {
    RangeQuery {
        query,
        from_ms: period.from_ms as i64,
        to_ms: period.to_ms as i64 - 1,
        step_ms: step_ms as i64,
    }
}

async fn all(client: &mut AnyClient, range: &RangeQuery) -> Result<Vec<Series>, QueryError> {
    let mut all = Vec::new();
    client.range(range, |series| all.extend(series)).await?;
    Ok(all)
}

/// What `pod` means is decided over all series of a scrape job. Where a step has samples that were
/// active and others that were not, its highest one is asked for too: with the mean it says how
/// many were.
async fn observe(
    client: &mut AnyClient,
    period: Span,
    step_ms: u64,
) -> Result<(Observation, PodLabels)> {
    let mut read: Vec<Vec<Series>> = Vec::new();
    for (name, _, _) in measures() {
        let range = range_of(mean_over_steps(name, step_ms), period, step_ms);
        read.push(all(client, &range).await?);
    }
    let pods = PodLabels::of(read.iter().flatten().map(|series| &series.labels));
    let mut observation = Observation::default();
    for ((_, measure, scale), series) in measures().zip(read) {
        observation.take(measure, scale, &pods, series);
    }
    let rule = ActivityRule::default();
    for (name, measure, scale) in measures() {
        if measure == SeriesMeasure::Power || !observation.has(measure) {
            continue;
        }
        let query = peaks_of_mixed_steps(name, scale, &rule, step_ms);
        let peaks = all(client, &range_of(query, period, step_ms)).await?;
        observation.take_peaks(measure, scale, &pods, peaks);
    }
    Ok((observation, pods))
}
