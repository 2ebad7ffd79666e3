//! Replays as one HTML file.

use dovetail_comparison::html;
use dovetail_sim::comparison::{
    ArrivalComparison, ArrivalPolicy, ArrivalRun, PrefixLimit, ReportData, RunAccount,
    TimedComparison, TimedPolicy, TimedRun,
};

use dovetail_replays::figures::{Figures, ReplayResult};
use dovetail_replays::limits::PolicyBound;
use dovetail_sim::timed::Impossible;

/// Everything about one trace on one cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'r> {
    pub(crate) nodes: usize,
    pub(crate) gpus: u64,
    /// Rows by policy, then seed.
    pub(crate) rows: &'r [ReplayResult],
    /// Rows of one policy.
    pub(crate) seeds: usize,
    /// The policy that the others are compared with.
    pub(crate) against: &'r str,
    pub(crate) impossible: &'r Impossible,
}

/// The page of some traces.
pub(crate) fn page(title: &str, sections: &[Section<'_>]) -> anyhow::Result<String> {
    let mut data = ReportData {
        title: title.to_owned(),
        program: format!("dovetail {}", env!("CARGO_PKG_VERSION")),
        ..ReportData::default()
    };
    for section in sections {
        match section.rows.first().map(|row| &row.figures) {
            Some(Figures::Fgd(_)) => data.arrivals.push(section.arrivals()),
            Some(Figures::Timed(_)) => data.timed.push(section.timed()),
            None => {}
        }
    }
    Ok(html(&data)?)
}

impl Section<'_> {
    fn arrivals(&self) -> ArrivalComparison {
        let run = |row: &ReplayResult| match &row.figures {
            Figures::Fgd(figures) => Some(ArrivalRun {
                decisions_per_second: figures.decisions_per_second,
                ..figures.run.clone()
            }),
            Figures::Timed(_) => None,
        };
        let policy = |rows: &[ReplayResult]| ArrivalPolicy {
            policy: rows[0].variant.clone(),
            learning_started_from: rows[0].learning_started_from.clone(),
            runs: rows.iter().filter_map(run).collect(),
        };
        let limit = |row: &ReplayResult| match row.limit {
            Some(PolicyBound::Prefix { device_percent, lp_percent }) => Some(PrefixLimit {
                seed: row.seed,
                device_prefix_percent: device_percent,
                lp_prefix_percent: lp_percent,
            }),
            _ => None,
        };
        ArrivalComparison {
            trace: self.trace(),
            nodes: self.nodes as u64,
            gpus: self.gpus,
            limits: self.rows.iter().take(self.seeds).filter_map(limit).collect(),
            policies: self.policies().into_iter().map(policy).collect(),
        }
    }

    fn timed(&self) -> TimedComparison {
        let run = |row: &ReplayResult| match &row.figures {
            Figures::Timed(figures) => Some(TimedRun {
                seed: row.seed,
                metrics: figures.metrics,
                account: row
                    .usage
                    .clone()
                    .zip(figures.series.clone())
                    .map(|(usage, series)| RunAccount { usage, series }),
                event_log_hash: figures.event_log_hash.clone(),
            }),
            Figures::Fgd(_) => None,
        };
        let policy = |rows: &[ReplayResult]| TimedPolicy {
            policy: rows[0].variant.clone(),
            learning_started_from: rows[0].learning_started_from.clone(),
            runs: rows.iter().filter_map(run).collect(),
        };
        let shown = if self.seed_changes_something() { self.seeds } else { 1 };
        let limits = self.rows.first().and_then(|row| match row.limit {
            Some(PolicyBound::Times { average_jct_s, makespan_s }) => {
                Some((average_jct_s, makespan_s))
            }
            _ => None,
        });
        TimedComparison {
            trace: self.trace(),
            nodes: self.nodes as u64,
            gpus: self.gpus,
            limit_average_jct_s: limits.map(|(average_jct_s, _)| average_jct_s),
            limit_makespan_s: limits.map(|(_, makespan_s)| makespan_s),
            impossible_jobs: self.impossible.impossible_jobs,
            first_impossible_jobs: self.impossible.first_impossible_jobs.clone(),
            policies: self.policies().into_iter().map(|rows| policy(&rows[..shown])).collect(),
        }
    }

    /// Whether any policy decides otherwise under another seed. Where none does, several runs are
    /// one, and their spread says nothing.
    fn seed_changes_something(&self) -> bool {
        self.policies().into_iter().any(|rows| {
            let hash = rows[0].figures.event_log_hash();
            rows.iter().any(|row| row.figures.event_log_hash() != hash)
        })
    }

    /// The rows of each policy, those of `against` first.
    fn policies(&self) -> Vec<&[ReplayResult]> {
        let mut policies: Vec<&[ReplayResult]> = self.rows.chunks(self.seeds).collect();
        policies.sort_by_key(|rows| rows[0].variant != self.against);
        policies
    }

    fn trace(&self) -> String {
        self.rows.first().map(|row| row.trace.clone()).unwrap_or_default()
    }
}
