//! What is counted, for Prometheus.
//!
//! Amounts of the ledger are gauges over times that are named, not counters: an hour that is read
//! again restates them, and a counter must not go back. What nobody knows is absent, never 0.

mod cells;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use dovetail_exposition::ExpositionFormat;
use dovetail_model::Money;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

pub use cells::{OTHERS, SeriesLabels, SeriesValue, cells, fewer, teams};

type Real = Gauge<f64, AtomicU64>;

/// All metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    /// Held while something is replaced, and while all is written: nobody sees the half of it.
    whole: Mutex<()>,
    registry: Registry,
    described: Vec<Described>,
    gpus: Family<OfPlace, Real>,
    gpus_usd_per_hour: Family<OfPlace, Real>,
    gpus_unpriced: Family<OfPlace, Real>,
    day_gpu_seconds: Family<OfPlace, Real>,
    day_usd: Family<OfPlace, Real>,
    day_unpriced_gpu_seconds: Family<OfPlace, Real>,
    month_usd: Family<OfTeam, Real>,
    month_unpriced_gpu_seconds: Family<OfTeam, Real>,
    budget_usd: Family<BudgetLabels, Real>,
    collections: Family<OutcomeLabels, Counter>,
    collection_s: Family<OfCluster, Real>,
    lag_s: Family<OfCluster, Real>,
    missing_s: Family<OfCluster, Real>,
    exporters: Family<Answering, Real>,
    requests: Family<RequestLabels, Counter>,
    /// Cluster, and the moment until which it was read, in ms since 1970.
    read: Mutex<Option<(String, u64)>>,
}

/// A metric as people read about it.
#[derive(Clone, Debug)]
pub struct Described {
    /// Name as it is queried.
    pub name: String,
    /// `counter` or `gauge`.
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// How the ledger stands after something was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerProgress<'n> {
    pub cluster: &'n str,
    /// Until when it was read, in ms since 1970; `None` where it never was.
    pub read_until_ms: Option<u64>,
    /// What of the time that should be there was never read.
    pub missing_ms: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPlace {
    cluster: String,
    team: String,
    pool: String,
    cause: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfTeam {
    cluster: String,
    team: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BudgetLabels {
    team: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfCluster {
    cluster: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answering {
    cluster: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    path: &'static str,
    code: u16,
}

const PLACE: &[&str] = &["cluster", "team", "pool", "cause"];

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            whole: Mutex::default(),
            registry: Registry::default(),
            described: Vec::new(),
            gpus: Family::default(),
            gpus_usd_per_hour: Family::default(),
            gpus_unpriced: Family::default(),
            day_gpu_seconds: Family::default(),
            day_usd: Family::default(),
            day_unpriced_gpu_seconds: Family::default(),
            month_usd: Family::default(),
            month_unpriced_gpu_seconds: Family::default(),
            budget_usd: Family::default(),
            collections: Family::default(),
            collection_s: Family::default(),
            lag_s: Family::default(),
            missing_s: Family::default(),
            exporters: Family::default(),
            requests: Family::default(),
            read: Mutex::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let help = "GPUs at the last scan, in full-GPU equivalents, by `cause`: the state of \
                    allocated GPUs, or why they are free";
        self.add("dovetail_gpus", PLACE, help, self.gpus.clone());
        let help = "Hourly cost of the GPUs in `dovetail_gpus` that have a price, in USD; absent \
                    if none has one";
        self.add("dovetail_gpus_usd_per_hour", PLACE, help, self.gpus_usd_per_hour.clone());
        let help = "GPUs in `dovetail_gpus` without a price, not included in any amount; absent if \
                    all have one";
        self.add("dovetail_gpus_unpriced", PLACE, help, self.gpus_unpriced.clone());
        let help = "GPU-seconds of the last 24 full hours in the ledger, in full-GPU equivalents, \
                    by `cause`";
        self.add("dovetail_day_gpu_seconds", PLACE, help, self.day_gpu_seconds.clone());
        let help = "Cost of these 24 hours in USD, including CPU and memory; absent if nothing has \
                    a price";
        self.add("dovetail_day_usd", PLACE, help, self.day_usd.clone());
        let help = "GPU-seconds of these 24 hours without a price; no amount includes them or the \
                    CPU and memory of their nodes; absent if all have a price";
        let unpriced = self.day_unpriced_gpu_seconds.clone();
        self.add("dovetail_day_unpriced_gpu_seconds", PLACE, help, unpriced);
        let help = "Cost of a team this month (UTC) in USD, from the ledger; GPUs without a price are \
                    not included; absent if none has a price";
        self.add("dovetail_month_usd", &["cluster", "team"], help, self.month_usd.clone());
        let help = "GPU-seconds without a price that a team used this month (UTC); dovetail_month_usd \
                    does not include them; absent if all GPUs have a price";
        let unpriced = self.month_unpriced_gpu_seconds.clone();
        self.add("dovetail_month_unpriced_gpu_seconds", &["cluster", "team"], help, unpriced);
        let help = "Monthly budget of a team in USD, from the setting `cost.budgets`";
        self.add("dovetail_budget_usd", &["team"], help, self.budget_usd.clone());
        self.register_collection();
    }

    fn register_collection(&mut self) {
        let help = "Collections of cluster data into the ledger, by `outcome`: done, failed";
        self.add("dovetail_collections", &["outcome"], help, self.collections.clone());
        let help = "Duration of the last collection, in seconds";
        self.add("dovetail_collection_seconds", &["cluster"], help, self.collection_s.clone());
        let help = "Seconds since the end of the period that the ledger covers";
        self.add("dovetail_collection_lag_seconds", &["cluster"], help, self.lag_s.clone());
        let help = "Seconds of the `--back` period that are missing from the ledger; no amount \
                    includes them";
        self.add("dovetail_ledger_missing_seconds", &["cluster"], help, self.missing_s.clone());
        let help = "GPU exporters that dovetail scrapes, by `state` at the last scrape: answering, \
                    silent; absent if dovetail reads Prometheus";
        self.add("dovetail_exporters", &["cluster", "state"], help, self.exporters.clone());
        let help = "HTTP requests by `path` and response `code`";
        self.add("dovetail_http_requests", &["path", "code"], help, self.requests.clone());
    }

    fn add(
        &mut self,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        metric: impl Metric,
    ) {
        let (kind, ending) = match metric.metric_type() {
            MetricType::Counter => ("counter", "_total"),
            _ => ("gauge", ""),
        };
        self.described.push(Described { name: format!("{name}{ending}"), kind, labels, help });
        self.registry.register(name, help, metric);
    }

    /// All metrics as people read about them.
    pub fn described(&self) -> &[Described] {
        &self.described
    }

    /// The same as a table of Markdown.
    pub fn reference(&self) -> String {
        let mut text = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
        for Described { name, kind, labels, help } in &self.described {
            // Writing to a string does not fail.
            _ = writeln!(text, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
        }
        text
    }

    /// Everything in one of the formats that Prometheus reads; `now_ms` is the present.
    pub fn text(&self, format: ExpositionFormat, now_ms: u64) -> String {
        format.write(self.open_metrics(now_ms))
    }

    fn open_metrics(&self, now_ms: u64) -> String {
        let _whole = lock(&self.whole);
        if let Some((cluster, until_ms)) = &*lock(&self.read) {
            let of = OfCluster { cluster: cluster.clone() };
            self.lag_s.get_or_create(&of).set(seconds(now_ms.saturating_sub(*until_ms)));
        }
        let mut text = String::new();
        _ = encode(&mut text, &self.registry);
        text
    }

    /// GPUs as objects have them; amounts are of one hour.
    pub fn show_moment(&self, cells: &[SeriesValue]) {
        let _whole = lock(&self.whole);
        let hour = 3_600_000.0;
        let families = [&self.gpus, &self.gpus_usd_per_hour, &self.gpus_unpriced];
        fill(families, cells, |time| time as f64 / 1000.0 / hour);
    }

    /// The last 24 whole hours.
    pub fn show_day(&self, cells: &[SeriesValue]) {
        let _whole = lock(&self.whole);
        let families = [&self.day_gpu_seconds, &self.day_usd, &self.day_unpriced_gpu_seconds];
        fill(families, cells, gpu_seconds);
    }

    /// The month until now, by team.
    pub fn show_month(&self, cells: &[SeriesValue]) {
        let _whole = lock(&self.whole);
        self.month_usd.clear();
        self.month_unpriced_gpu_seconds.clear();
        for SeriesValue { place, cost, unpriced_gpu_milli_ms, .. } in cells {
            let of = OfTeam { cluster: place.cluster.clone(), team: place.team.clone() };
            if *unpriced_gpu_milli_ms != 0 {
                let unpriced = self.month_unpriced_gpu_seconds.get_or_create(&of);
                unpriced.set(gpu_seconds(*unpriced_gpu_milli_ms));
            }
            if let Some(cost) = cost {
                self.month_usd.get_or_create(&of).set(usd(*cost));
            }
        }
    }

    /// What teams may cost in a month.
    pub fn show_budgets<'b>(&self, budgets: impl Iterator<Item = (&'b String, Money)>) {
        let _whole = lock(&self.whole);
        self.budget_usd.clear();
        for (team, budget) in budgets {
            self.budget_usd.get_or_create(&BudgetLabels { team: team.clone() }).set(usd(budget));
        }
    }

    /// A cluster was read, or was to be.
    pub fn collected(&self, cluster: &str, is_done: bool, took_ms: u64) {
        let outcome = if is_done { "done" } else { "failed" };
        self.collections.get_or_create(&OutcomeLabels { outcome }).inc();
        let of = OfCluster { cluster: cluster.to_owned() };
        self.collection_s.get_or_create(&of).set(seconds(took_ms));
    }

    /// How the ledger stands.
    pub fn stands(&self, standing: LedgerProgress<'_>) {
        let of = OfCluster { cluster: standing.cluster.to_owned() };
        self.missing_s.get_or_create(&of).set(seconds(standing.missing_ms));
        if let Some(until_ms) = standing.read_until_ms {
            *lock(&self.read) = Some((standing.cluster.to_owned(), until_ms));
        }
    }

    /// So many exporters answered when they were last looked at, and so many did not.
    pub fn asked_exporters(&self, cluster: &str, answering: usize, silent: usize) {
        for (state, count) in [("answering", answering), ("silent", silent)] {
            let of = Answering { cluster: cluster.to_owned(), state };
            self.exporters.get_or_create(&of).set(count as f64);
        }
    }

    /// A question was answered.
    pub(crate) fn asked(&self, path: &'static str, code: u16) {
        self.requests.get_or_create(&RequestLabels { path, code }).inc();
    }
}

/// Replaces all values. What has no time is not shown as one.
fn fill(
    [times, costs, unpriced]: [&Family<OfPlace, Real>; 3],
    cells: &[SeriesValue],
    unit: impl Fn(i128) -> f64,
) {
    [times, costs, unpriced].into_iter().for_each(Family::clear);
    for SeriesValue { place, gpu_milli_ms, unpriced_gpu_milli_ms, cost } in cells {
        let SeriesLabels { cluster, team, pool, cause } = place.clone();
        let of = OfPlace { cluster, team, pool, cause };
        if *gpu_milli_ms != 0 {
            times.get_or_create(&of).set(unit(*gpu_milli_ms));
        }
        if let Some(cost) = cost {
            costs.get_or_create(&of).set(usd(*cost));
        }
        if *unpriced_gpu_milli_ms != 0 {
            unpriced.get_or_create(&of).set(unit(*unpriced_gpu_milli_ms));
        }
    }
}

fn gpu_seconds(gpu_milli_ms: i128) -> f64 {
    gpu_milli_ms as f64 / 1e6
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

fn usd(money: Money) -> f64 {
    money.usd_micros as f64 / 1e6
}
