//! The report as text, at most 100 columns wide.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use dovetail_units::amount::{fine_percent, hundredths, whole};
use dovetail_units::duration::duration_of_seconds;

use super::{GroupStats, Quantiles, TraceStats};

const WIDTH: u16 = 100;
const UNKNOWN: &str = "unknown";

/// Renders the report for a terminal or a file; every line ends with a line break.
pub fn stats_table(stats: &TraceStats) -> String {
    let mut sections = vec![overview(stats), sizes(stats), times(stats)];
    sections.extend(arrivals(stats));
    sections.push(outcomes(stats));
    let groups = [("user", &stats.users), ("queue", &stats.queues), ("model", &stats.models)];
    sections.extend(
        groups.into_iter().filter_map(|(kind, group)| Some(group_table(kind, group.as_ref()?))),
    );
    sections.extend(machines(stats));
    let lines = sections.iter().flat_map(|section| {
        let text = section.to_string();
        let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.into_iter().chain([String::new()])
    });
    lines.map(|line| line + "\n").collect()
}

/// A table whose first column is text and whose others are numbers.
fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH).set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn overview(stats: &TraceStats) -> Table {
    let users = stats.users.as_ref().map(|group| group.count as f64);
    let queues = stats.queues.as_ref().map(|group| group.count as f64);
    let demand = stats.demand.as_ref();
    let arrivals = stats.arrivals.as_ref();
    let mut rows = vec![
        ("jobs", whole(stats.jobs as f64)),
        ("pods", whole(stats.pods as f64)),
        ("bad rows skipped", whole(stats.skipped_rows as f64)),
        ("jobs without run time", whole(stats.jobs_without_run_time as f64)),
        ("GPU-hours", maybe(stats.gpu_hours, whole)),
        (
            "days from first to last submission",
            maybe(arrivals.map(|a| a.span_hours / 24.0), hundredths),
        ),
        ("jobs per hour, mean", maybe(arrivals.and_then(|a| a.jobs_per_hour), hundredths)),
        ("jobs per hour, peak", maybe(arrivals.map(|a| a.peak_jobs_per_hour as f64), whole)),
        ("GPUs requested at once, mean", maybe(demand.and_then(|d| d.mean_gpus), hundredths)),
        ("GPUs requested at once, peak", maybe(demand.map(|d| d.peak_gpus), hundredths)),
        (
            "CPU cores requested at once, peak",
            maybe(demand.and_then(|d| d.peak_cpu_cores), hundredths),
        ),
        ("jobs at once, peak", maybe(demand.map(|d| d.peak_jobs as f64), whole)),
        ("GPU jobs that name GPU models", maybe(stats.gpu_model_constrained_share, percent)),
        ("users", maybe(users, whole)),
        ("queues", maybe(queues, whole)),
    ];
    if let Some(estimates) = &stats.estimates {
        rows.push(("jobs with an estimate", percent(estimates.estimated_share)));
        rows.push(("estimates below the run time", percent(estimates.underestimated_share)));
        rows.push(("estimate / run time, p50", hundredths(estimates.ratio_p50)));
        rows.push(("estimate / run time, p90", hundredths(estimates.ratio_p90)));
    } else {
        rows.push(("jobs with an estimate", UNKNOWN.to_owned()));
    }
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    table(&["trace", &stats.source], rows)
}

fn sizes(stats: &TraceStats) -> Table {
    let header =
        ["GPUs", "jobs", "jobs %", "GPU-hours", "GPU-hours %", "run p50", "run p90", "run p99"];
    let rows = stats.sizes.iter().map(|size| {
        let run = |value: fn(&Quantiles) -> f64| {
            maybe(size.run_time_s.as_ref().map(value), duration_of_seconds)
        };
        vec![
            size.gpus.clone(),
            whole(size.jobs as f64),
            percent(size.job_share),
            maybe(size.gpu_hours, whole),
            maybe(size.gpu_hours_share, percent),
            run(|q| q.p50),
            run(|q| q.p90),
            run(|q| q.p99),
        ]
    });
    table(&header, rows.collect())
}

fn times(stats: &TraceStats) -> Table {
    let gaps = stats.arrivals.as_ref().and_then(|arrivals| arrivals.gap_s);
    let all = [
        ("run time", stats.run_time_s),
        ("waiting in the source cluster", stats.waiting_s),
        ("gap between jobs", gaps),
    ];
    let rows = all.into_iter().map(|(name, quantiles)| {
        let value = |value: fn(&Quantiles) -> f64| {
            maybe(quantiles.as_ref().map(value), duration_of_seconds)
        };
        vec![
            name.to_owned(),
            maybe(quantiles.map(|q| q.count as f64), whole),
            value(|q| q.mean),
            value(|q| q.p50),
            value(|q| q.p90),
            value(|q| q.p99),
            value(|q| q.max),
        ]
    });
    table(&["time", "values", "mean", "p50", "p90", "p99", "max"], rows.collect())
}

fn arrivals(stats: &TraceStats) -> Option<Table> {
    let shares = &stats.arrivals.as_ref()?.hour_of_day_share;
    let rows = shares.chunks(6).enumerate().map(|(row, chunk)| {
        let label = format!("{:02}:00 to {:02}:00", row * 6, (row + 1) * 6);
        std::iter::once(label).chain(chunk.iter().map(|share| percent(*share))).collect()
    });
    Some(table(&["jobs by hour of day", "+0", "+1", "+2", "+3", "+4", "+5"], rows.collect()))
}

fn outcomes(stats: &TraceStats) -> Table {
    let rows = stats.outcomes.iter().map(|group| {
        vec![
            group.outcome.name().to_owned(),
            whole(group.jobs as f64),
            percent(group.job_share),
            maybe(group.gpu_hours, whole),
        ]
    });
    table(&["outcome", "jobs", "jobs %", "GPU-hours"], rows.collect())
}

fn group_table(kind: &str, group: &GroupStats) -> Table {
    let named = group.largest.iter().map(|share| {
        vec![
            share.name.clone(),
            whole(share.jobs as f64),
            percent(share.job_share),
            maybe(share.gpu_hours, whole),
        ]
    });
    let mut rows: Vec<Vec<String>> = named.collect();
    let others = group.count - rows.len() as u64;
    if others > 0 {
        rows.push(vec![format!("and {others} more")]);
    }
    if group.unnamed_jobs > 0 {
        rows.push(vec![UNKNOWN.to_owned(), whole(group.unnamed_jobs as f64)]);
    }
    table(&[kind, "jobs", "jobs %", "GPU-hours"], rows)
}

fn machines(stats: &TraceStats) -> Option<Table> {
    let cluster = stats.cluster.as_ref()?;
    let mut rows = vec![vec![
        "all".to_owned(),
        whole(cluster.nodes as f64),
        whole(cluster.gpus as f64),
        hundredths(cluster.cpu_cores),
        whole(cluster.memory_gib),
        maybe(cluster.offered_load, percent),
    ]];
    rows.extend(cluster.gpu_models.iter().map(|group| {
        let model = group.model.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        vec![model, whole(group.nodes as f64), whole(group.gpus as f64)]
    }));
    Some(table(&["GPU model", "nodes", "GPUs", "CPU cores", "memory GiB", "offered load"], rows))
}

fn maybe(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

fn percent(share: f64) -> String {
    fine_percent(share * 100.0)
}
