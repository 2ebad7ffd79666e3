//! The figures of one replay that can be compared.

use dovetail_sim::comparison::ArrivalRun;
use dovetail_sim::fgd::curve::POINTS;
use dovetail_sim::timeline::UsageReport;
use serde::Serialize;

use crate::fgd_replay::FgdReplay;
use crate::limits::PolicyBound;
use crate::money::BriefBill;
use crate::timed_replay::TimedFigures;

/// One replay.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayResult {
    pub trace: String,
    /// The policy, or the order with its policy.
    #[serde(rename = "policy")]
    pub variant: String,
    pub seed: u64,
    #[serde(flatten)]
    pub figures: Figures,
    /// GPU-time and money, where the replay keeps an account.
    #[serde(flatten)]
    pub bill: Option<BriefBill>,
    /// What no policy can exceed, where it was computed.
    #[serde(skip)]
    pub limit: Option<PolicyBound>,
    /// Where the GPU-time went, in full.
    #[serde(skip)]
    pub usage: Option<UsageReport>,
    /// What a learning policy knew at the beginning.
    #[serde(skip)]
    pub learning_started_from: Option<String>,
}

/// Figures of either protocol.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Figures {
    /// Arrivals only.
    Fgd(Box<FgdFigures>),
    /// Submit, wait, run, end.
    Timed(Box<TimedFigures>),
}

impl Figures {
    /// Hash of everything that happened.
    pub fn event_log_hash(&self) -> &str {
        match self {
            Self::Fgd(figures) => &figures.event_log_hash,
            Self::Timed(figures) => &figures.event_log_hash,
        }
    }
}

/// What counts at the end of an arrivals-only replay.
#[derive(Clone, Debug, Serialize)]
pub struct FgdFigures {
    /// Allocated share of the cluster when 130% were requested.
    pub allocation_percent_at_130: Option<f64>,
    pub fragmentation_percent_at_130: Option<f64>,
    pub first_rejection_percent: Option<f64>,
    /// Requested share before the first rejected pod: all of it without a rejection.
    pub held_percent: f64,
    pub failed_pods: u64,
    pub decisions: u64,
    pub decisions_per_second: Option<f64>,
    pub event_log_hash: String,
    /// The whole run, for plots.
    #[serde(skip)]
    pub run: ArrivalRun,
}

impl FgdFigures {
    /// What a replay of protocol `fgd` reached, on a cluster of so many milli-GPU.
    pub fn of(replay: &FgdReplay, seed: u64, cluster_milli: i64) -> Self {
        let run = &replay.run;
        let last = POINTS - 1;
        let held = run.samples[..replay.held_pods].last();
        let held_milli = held.map_or(0, |sample| sample.arrived_milli);
        let held_percent = held_milli as f64 * 100.0 / cluster_milli as f64;
        Self {
            allocation_percent_at_130: run.curves.allocation_percent[last],
            fragmentation_percent_at_130: run.curves.fragmentation_percent[last],
            first_rejection_percent: run.first_rejection_percent,
            held_percent,
            failed_pods: run.failed_pods,
            decisions: run.decisions,
            decisions_per_second: replay.decisions_per_second(),
            event_log_hash: run.event_log_hash.clone(),
            run: ArrivalRun::new(seed, run, held_percent),
        }
    }
}

/// A figure that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Key in JSON and CSV.
    pub key: &'static str,
    /// Title in tables, with the unit.
    pub title: &'static str,
    /// Units of the key in one unit of the title.
    scale: f64,
    of: fn(&ReplayResult) -> Option<f64>,
}

/// Metrics that fit into a table, of those that are known. The priced share stands where its
/// dollars stand, and takes no other's place: money without it would say less than it seems to.
pub fn shown<'m>(known: impl IntoIterator<Item = &'m Metric>, most: usize) -> Vec<&'m Metric> {
    let mut left = most;
    let fits = |metric: &&Metric| {
        let is_beside = metric.key == PRICED_SHARE.key;
        let fits = is_beside || left > 0;
        left -= usize::from(fits && !is_beside);
        fits
    };
    known.into_iter().take_while(fits).collect()
}

/// What a column of the priced share says, if there is one.
pub fn money_note(shown: &[&Metric]) -> &'static str {
    match shown.iter().any(|metric| metric.key == PRICED_SHARE.key) {
        true => {
            "priced %: share of the wasted GPU time that has a price; USD amounts cover only that share\n"
        }
        false => "",
    }
}

impl Metric {
    /// The figure, where the replay has it.
    pub fn of(&self, row: &ReplayResult) -> Option<f64> {
        (self.of)(row)
    }

    /// A figure in the unit of the title.
    pub fn shown(&self, figure: f64) -> f64 {
        figure / self.scale
    }
}

fn fgd(row: &ReplayResult) -> Option<&FgdFigures> {
    match &row.figures {
        Figures::Fgd(figures) => Some(figures),
        Figures::Timed(_) => None,
    }
}

fn timed(row: &ReplayResult) -> Option<&TimedFigures> {
    match &row.figures {
        Figures::Timed(figures) => Some(figures),
        Figures::Fgd(_) => None,
    }
}

/// What is compared under `fgd`, the most important first.
pub const FGD_METRICS: [Metric; 5] = [
    Metric {
        key: "allocation_percent_at_130",
        title: "allocated %",
        scale: 1.0,
        of: |row| fgd(row)?.allocation_percent_at_130,
    },
    Metric {
        key: "first_rejection_percent",
        title: "first reject %",
        scale: 1.0,
        of: |row| fgd(row)?.first_rejection_percent,
    },
    Metric {
        key: "distance_to_limit_percent",
        title: "below limit %",
        scale: 1.0,
        of: |row| Some(row.limit?.figure() - fgd(row)?.held_percent),
    },
    Metric {
        key: "fragmentation_percent_at_130",
        title: "fragmented %",
        scale: 1.0,
        of: |row| fgd(row)?.fragmentation_percent_at_130,
    },
    Metric {
        key: "failed_pods",
        title: "rejected pods",
        scale: 1.0,
        of: |row| Some(fgd(row)?.failed_pods as f64),
    },
];

/// How much of the wasted GPU-time the wasted dollars are of.
const PRICED_SHARE: Metric = Metric {
    key: "wasted_priced_share",
    title: "priced %",
    scale: 0.01,
    of: |row| row.bill?.wasted_priced_share,
};

/// What is compared under `timed`, the most important first.
pub const TIMED_METRICS: [Metric; 10] = [
    Metric {
        key: "average_jct_s",
        title: "mean time h",
        scale: 3600.0,
        of: |row| timed(row)?.metrics.average_jct_s,
    },
    Metric {
        key: "average_queue_s",
        title: "mean wait h",
        scale: 3600.0,
        of: |row| timed(row)?.metrics.average_queue_s,
    },
    Metric {
        key: "above_limit_percent",
        title: "over bound %",
        scale: 1.0,
        of: |row| {
            let limit = row.limit.map(PolicyBound::figure).filter(|limit| *limit > 0.0)?;
            Some((timed(row)?.metrics.average_jct_s? / limit - 1.0) * 100.0)
        },
    },
    Metric {
        key: "wasted_usd_micros_per_month",
        title: "wasted USD a month",
        scale: 1e6,
        of: |row| Some(row.bill?.wasted_usd_micros_per_month? as f64),
    },
    PRICED_SHARE,
    Metric {
        key: "wasted_gpu_hours",
        title: "wasted GPU-h",
        scale: 1.0,
        of: |row| Some(row.bill?.wasted_gpu_hours),
    },
    Metric {
        key: "p99_jct_s",
        title: "p99 time h",
        scale: 3600.0,
        of: |row| timed(row)?.metrics.p99_jct_s,
    },
    Metric {
        key: "makespan_s",
        title: "makespan h",
        scale: 3600.0,
        of: |row| timed(row)?.metrics.makespan_s,
    },
    Metric {
        key: "gpu_occupancy",
        title: "GPU used %",
        scale: 0.01,
        of: |row| timed(row)?.metrics.gpu_occupancy,
    },
    Metric {
        key: "unfinished_jobs",
        title: "not ended",
        scale: 1.0,
        of: |row| Some(timed(row)?.metrics.unfinished_jobs as f64),
    },
];

/// The metrics of a row's protocol.
pub fn metrics_of(row: &ReplayResult) -> &'static [Metric] {
    match row.figures {
        Figures::Fgd(_) => &FGD_METRICS,
        Figures::Timed(_) => &TIMED_METRICS,
    }
}
