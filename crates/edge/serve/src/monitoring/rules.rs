//! Recording rules and alerts.

use std::fmt::Write as _;

/// A series that others are made of, under a name of the form level:metric:operation.
struct RecordingRule {
    name: &'static str,
    expression: &'static str,
}

/// Something that somebody should look at.
struct Alert {
    name: &'static str,
    expression: &'static str,
    /// How long it must last.
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
    description: &'static str,
}

const fn record(name: &'static str, expression: &'static str) -> RecordingRule {
    RecordingRule { name, expression }
}

/// Several replicas say the same: each series counts once.
const RECORDINGS: [RecordingRule; 10] = [
    record(
        "cluster_team:dovetail_day_gpu_seconds:allocated",
        "sum by (cluster, team) (max by (cluster, team, pool, cause) \
         (dovetail_day_gpu_seconds{cause=~\"provisioning|gang_wait|active_.+|idle|unknown\"}))",
    ),
    record(
        "cluster_team:dovetail_day_gpu_seconds:active",
        "sum by (cluster, team) (max by (cluster, team, pool, cause) \
         (dovetail_day_gpu_seconds{cause=~\"active_.+\"})) or 0 * cluster_team:dovetail_day_gpu_seconds:allocated",
    ),
    record(
        "cluster_team:dovetail_day_gpu_seconds:idle",
        "sum by (cluster, team) (max by (cluster, team, pool, cause) \
         (dovetail_day_gpu_seconds{cause=\"idle\"})) or 0 * cluster_team:dovetail_day_gpu_seconds:allocated",
    ),
    record(
        "cluster_team:dovetail_day_gpu_seconds:unknown",
        "sum by (cluster, team) (max by (cluster, team, pool, cause) \
         (dovetail_day_gpu_seconds{cause=\"unknown\"})) or 0 * cluster_team:dovetail_day_gpu_seconds:allocated",
    ),
    record(
        "cluster_team:dovetail_day_gpu_idle:ratio",
        "cluster_team:dovetail_day_gpu_seconds:idle / cluster_team:dovetail_day_gpu_seconds:allocated",
    ),
    record(
        "cluster_team:dovetail_day_gpu_active:ratio",
        "cluster_team:dovetail_day_gpu_seconds:active / (cluster_team:dovetail_day_gpu_seconds:allocated - \
         cluster_team:dovetail_day_gpu_seconds:unknown)",
    ),
    record(
        "cluster:dovetail_day_gpu_blind:ratio",
        "sum by (cluster) (cluster_team:dovetail_day_gpu_seconds:unknown) / sum by (cluster) \
         (cluster_team:dovetail_day_gpu_seconds:allocated)",
    ),
    record(
        "cluster:dovetail_day_gpu_unpriced:ratio",
        "sum by (cluster) (max by (cluster, team, pool, cause) (dovetail_day_unpriced_gpu_seconds)) / sum by (cluster) \
         (max by (cluster, team, pool, cause) (dovetail_day_gpu_seconds))",
    ),
    record(
        "cluster_cause:dovetail_gpus:free",
        "sum by (cluster, cause) (max by (cluster, team, pool, cause) (dovetail_gpus{cause=~\"free_.+\"}))",
    ),
    record(
        "team:dovetail_month_usd:budget_ratio",
        "sum by (team) (max by (cluster, team) (dovetail_month_usd)) / max by (team) (dovetail_budget_usd)",
    ),
];

/// Thresholds are the targets of FinOps for GPUs: less than 10% of what is held idles, more than
/// 30% of it computes.
const ALERTS: [Alert; 10] = [
    Alert {
        name: "DovetailGpuIdleAllocated",
        expression: "cluster_team:dovetail_day_gpu_idle:ratio > 0.10 and \
                     cluster_team:dovetail_day_gpu_seconds:idle >= 86400",
        lasts: "1h",
        severity: "warning",
        summary: "Team {{ $labels.team }} has idle GPUs",
        description: "{{ $value | humanizePercentage }} of the GPU time allocated to team {{ $labels.team }} in cluster \
                      {{ $labels.cluster }} over the last 24 hours was idle, at least one GPU-day. For the workloads \
                      and fixes, run `dovetail audit`.",
    },
    Alert {
        name: "DovetailGpuUtilizationLow",
        expression: "cluster_team:dovetail_day_gpu_active:ratio < 0.30 and \
                     cluster_team:dovetail_day_gpu_seconds:allocated >= 86400",
        lasts: "6h",
        severity: "warning",
        summary: "GPUs of team {{ $labels.team }} are active less than 30% of the time",
        description: "Of the measured GPU time allocated to team {{ $labels.team }} in cluster {{ $labels.cluster }} \
                      over the last 24 hours, {{ $value | humanizePercentage }} was active. For the workloads and \
                      fixes, run `dovetail audit`.",
    },
    Alert {
        name: "DovetailGpuFragmented",
        expression: "cluster_cause:dovetail_gpus:free{cause=\"free_fragmented\"} >= 1",
        lasts: "1h",
        severity: "warning",
        summary: "Free GPUs of cluster {{ $labels.cluster }} are too fragmented for pending jobs",
        description: "{{ $value | humanize }} GPUs of cluster {{ $labels.cluster }} have been free for an hour while \
                      jobs are pending that would fit if the free GPUs were on fewer nodes. For the jobs and fixes, run \
                      `dovetail audit`.",
    },
    Alert {
        name: "DovetailGpuStranded",
        expression: "sum by (cluster) (cluster_cause:dovetail_gpus:free{cause=~\"free_stranded_by_.+\"}) >= 1",
        lasts: "1h",
        severity: "warning",
        summary: "Free GPUs of cluster {{ $labels.cluster }} are on nodes that lack CPU, memory or another resource",
        description: "{{ $value | humanize }} GPUs of cluster {{ $labels.cluster }} have been free for an hour while \
                      jobs are pending: their nodes lack other resources that the jobs request. For the pods that use \
                      these resources, run `dovetail audit`.",
    },
    Alert {
        name: "DovetailGpuBlind",
        expression: "cluster:dovetail_day_gpu_blind:ratio > 0.05",
        lasts: "1h",
        severity: "warning",
        summary: "GPU use in cluster {{ $labels.cluster }} is partly unmeasured",
        description: "For {{ $value | humanizePercentage }} of the GPU time allocated in cluster {{ $labels.cluster }} \
                      over the last 24 hours, no signal shows whether GPUs were busy. For the nodes without an \
                      exporter, run `dovetail audit`.",
    },
    Alert {
        name: "DovetailGpuUnpriced",
        expression: "cluster:dovetail_day_gpu_unpriced:ratio > 0.05",
        lasts: "1h",
        severity: "info",
        summary: "GPUs of cluster {{ $labels.cluster }} have no price",
        description: "{{ $value | humanizePercentage }} of the GPU time of cluster {{ $labels.cluster }} over the last \
                      24 hours has no price, so amounts are too low. `dovetail cost` lists the models; set their prices \
                      with `--gpu-price` or `[[prices.rates]]`.",
    },
    Alert {
        name: "DovetailCollectionBehind",
        expression: "max by (cluster) (dovetail_collection_lag_seconds) > 1800",
        lasts: "15m",
        severity: "warning",
        summary: "The ledger of cluster {{ $labels.cluster }} is behind",
        description: "The ledger has no data for the last {{ $value | humanizeDuration }}. For the cause, read the log \
                      of `dovetail serve`. No data is lost as long as Prometheus retains it.",
    },
    Alert {
        name: "DovetailCollectionMissing",
        expression: "max by (cluster) (dovetail_ledger_missing_seconds) > 7200",
        lasts: "6h",
        severity: "info",
        summary: "The ledger of cluster {{ $labels.cluster }} has gaps",
        description: "{{ $value | humanizeDuration }} of the period that `dovetail serve` fills (`--back`) is missing \
                      from the ledger, so amounts are too low. For the cause, read the log of `dovetail serve`.",
    },
    Alert {
        name: "DovetailBudgetBurn",
        expression: "team:dovetail_month_usd:budget_ratio > 0.1 and team:dovetail_month_usd:budget_ratio > \
                     1.2 * scalar((day_of_month() - 1 + hour() / 24) / days_in_month())",
        lasts: "3h",
        severity: "warning",
        summary: "Team {{ $labels.team }} is on course to exceed its monthly budget",
        description: "Team {{ $labels.team }} has spent {{ $value | humanizePercentage }} of its monthly budget, more \
                      than 1.2 times the share of the month that has passed.",
    },
    Alert {
        name: "DovetailBudgetSpent",
        expression: "team:dovetail_month_usd:budget_ratio >= 1",
        lasts: "0m",
        severity: "critical",
        summary: "Team {{ $labels.team }} has spent its budget",
        description: "Team {{ $labels.team }} has spent {{ $value | humanizePercentage }} of its budget for this \
                      month.",
    },
];

/// The rules as a file for Prometheus.
pub fn rules() -> String {
    let mut text = String::from(
        "# Written by `cargo xtask codegen rules`. Change crates/edge/serve/src/monitoring/rules.rs.\n\
         # Rules over the metrics of `dovetail serve` (docs/reference/metrics.md).\ngroups:\n",
    );
    // In one group, so that alerts see what has just been recorded.
    text += "  - name: dovetail\n    rules:\n";
    for RecordingRule { name, expression } in &RECORDINGS {
        // Writing to a string does not fail.
        _ = write!(text, "      - record: {name}\n        expr: {}\n", quoted(expression));
    }
    for alert in &ALERTS {
        _ = write!(
            text,
            "      - alert: {}\n        expr: {}\n        for: {}\n        labels:\n          severity: {}\n        \
             annotations:\n          summary: {}\n          description: {}\n",
            alert.name,
            quoted(alert.expression),
            alert.lasts,
            alert.severity,
            quoted(alert.summary),
            quoted(alert.description),
        );
    }
    text
}

/// A string of JSON is one of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Names of all recorded series.
#[cfg(test)]
pub(super) fn recorded() -> impl Iterator<Item = &'static str> {
    RECORDINGS.iter().map(|recording| recording.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_what_the_code_says() {
        let file = include_str!("../../../../../deploy/monitoring/rules.yaml");
        assert!(file == rules(), "run `cargo xtask codegen rules`");
    }

    #[test]
    fn rules_rest_on_metrics_that_are_served() {
        let known: Vec<String> = crate::metrics::Metrics::default()
            .described()
            .iter()
            .map(|described| described.name.clone())
            .chain(recorded().map(str::to_owned))
            .collect();
        let expressions = RECORDINGS.iter().map(|one| one.expression);
        for expression in expressions.chain(ALERTS.iter().map(|one| one.expression)) {
            for name in crate::monitoring::dashboard::series_of(expression) {
                assert!(known.contains(&name), "{name} in {expression}");
            }
        }
    }
}
