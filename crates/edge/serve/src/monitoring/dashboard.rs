//! A dashboard for Grafana: what GPUs do and cost, why free ones are free, and whether the figures
//! can be trusted.

use serde_json::{Value, json};

/// A panel with one query.
struct Panel {
    title: &'static str,
    description: &'static str,
    kind: &'static str,
    unit: &'static str,
    expression: &'static str,
    legend: &'static str,
    /// Of 24 columns.
    width: u32,
}

const ALL: &str = "cluster=~\"$cluster\"";

const ROWS: [(&str, &[Panel]); 4] = [
    (
        "Now",
        &[
            Panel {
                title: "GPUs installed",
                description: "All GPUs of the clusters at the last scan, in full-GPU equivalents.",
                kind: "stat",
                unit: "short",
                expression: "sum(max by (cluster, team, pool, cause) (dovetail_gpus{ALL}))",
                legend: "installed",
                width: 6,
            },
            Panel {
                title: "Free GPUs",
                description: "GPUs that are not allocated to a pod, for any reason.",
                kind: "stat",
                unit: "short",
                expression: "sum(cluster_cause:dovetail_gpus:free{ALL})",
                legend: "free",
                width: 6,
            },
            Panel {
                title: "Cost of free GPUs",
                description: "Hourly cost of the free GPUs. GPUs without a price are not included.",
                kind: "stat",
                unit: "currencyUSD",
                expression: "sum(max by (cluster, team, pool, cause) \
                             (dovetail_gpus_usd_per_hour{ALL,cause=~\"free_.+\"}))",
                legend: "per hour",
                width: 6,
            },
            Panel {
                title: "Unmeasured share, last 24 h",
                description: "Share of the allocated GPU time for which no signal shows whether GPUs were busy. The \
                              smaller it is, the more accurate the panels below are.",
                kind: "stat",
                unit: "percentunit",
                expression: "cluster:dovetail_day_gpu_blind:ratio{ALL}",
                legend: "{{cluster}}",
                width: 6,
            },
            Panel {
                title: "Free GPUs by cause",
                description: "Why GPUs are free. Each free GPU has exactly one cause (docs/internals/cost.md).",
                kind: "timeseries",
                unit: "short",
                expression: "sum by (cause) (cluster_cause:dovetail_gpus:free{ALL})",
                legend: "{{cause}}",
                width: 12,
            },
            Panel {
                title: "GPUs by state",
                description: "All GPUs: unavailable, free by cause, and allocated by activity.",
                kind: "timeseries",
                unit: "short",
                expression: "sum by (cause) (max by (cluster, team, pool, cause) (dovetail_gpus{ALL}))",
                legend: "{{cause}}",
                width: 12,
            },
        ],
    ),
    (
        "Last 24 hours, from the ledger",
        &[
            Panel {
                title: "Cost by cause",
                description: "Cost of the last 24 full hours by state of the GPUs. GPUs without a price are not \
                              included.",
                kind: "bargauge",
                unit: "currencyUSD",
                expression: "sum by (cause) (max by (cluster, team, pool, cause) (dovetail_day_usd{ALL}))",
                legend: "{{cause}}",
                width: 12,
            },
            Panel {
                title: "Cost by team",
                description: "Cost of the last 24 full hours by team; `(no owner)` is free capacity. GPUs without a \
                              price are not included.",
                kind: "bargauge",
                unit: "currencyUSD",
                expression: "sort_desc(sum by (team) (max by (cluster, team, pool, cause) (dovetail_day_usd{ALL})))",
                legend: "{{team}}",
                width: 12,
            },
            Panel {
                title: "Idle share of allocated GPU time",
                description: "Idle GPU time divided by allocated GPU time over the last 24 hours. The target is less \
                              than 10%.",
                kind: "timeseries",
                unit: "percentunit",
                expression: "cluster_team:dovetail_day_gpu_idle:ratio{ALL}",
                legend: "{{cluster}} {{team}}",
                width: 12,
            },
            Panel {
                title: "Active share of allocated GPU time",
                description: "Active GPU time divided by allocated and measured GPU time over the last 24 hours.",
                kind: "timeseries",
                unit: "percentunit",
                expression: "cluster_team:dovetail_day_gpu_active:ratio{ALL}",
                legend: "{{cluster}} {{team}}",
                width: 12,
            },
            Panel {
                title: "GPU time by pool",
                description: "GPU-seconds of the last 24 full hours, by node pool.",
                kind: "timeseries",
                unit: "s",
                expression: "sum by (pool) (max by (cluster, team, pool, cause) (dovetail_day_gpu_seconds{ALL}))",
                legend: "{{pool}}",
                width: 24,
            },
        ],
    ),
    (
        "This month",
        &[
            Panel {
                title: "Cost of each team",
                description: "Cost of each team since the start of the month (UTC). GPUs without a price are not \
                              included.",
                kind: "timeseries",
                unit: "currencyUSD",
                expression: "sum by (team) (max by (cluster, team) (dovetail_month_usd{ALL}))",
                legend: "{{team}}",
                width: 12,
            },
            Panel {
                title: "Budget used",
                description: "Share of its monthly budget that each team has spent, over all clusters.",
                kind: "timeseries",
                unit: "percentunit",
                expression: "team:dovetail_month_usd:budget_ratio",
                legend: "{{team}}",
                width: 12,
            },
        ],
    ),
    (
        "Data quality",
        &[
            Panel {
                title: "Ledger lag",
                description: "Time since the end of the period that the ledger covers.",
                kind: "timeseries",
                unit: "s",
                expression: "max by (cluster) (dovetail_collection_lag_seconds{ALL})",
                legend: "{{cluster}}",
                width: 6,
            },
            Panel {
                title: "Missing time",
                description: "Part of the `--back` period that is missing from the ledger and not \
                              included in any amount.",
                kind: "timeseries",
                unit: "s",
                expression: "max by (cluster) (dovetail_ledger_missing_seconds{ALL})",
                legend: "{{cluster}}",
                width: 6,
            },
            Panel {
                title: "Collections",
                description: "Collections of cluster data into the ledger per second, by outcome.",
                kind: "timeseries",
                unit: "ops",
                expression: "sum by (outcome) (rate(dovetail_collections_total[$__rate_interval]))",
                legend: "{{outcome}}",
                width: 6,
            },
            Panel {
                title: "HTTP requests",
                description: "HTTP requests per second, by path and status code.",
                kind: "timeseries",
                unit: "reqps",
                expression: "sum by (path, code) (rate(dovetail_http_requests_total[$__rate_interval]))",
                legend: "{{path}} {{code}}",
                width: 6,
            },
            Panel {
                title: "GPU time without a price",
                description: "Share of the GPU time of the last 24 full hours that has no price and is not included in \
                              the amounts above.",
                kind: "timeseries",
                unit: "percentunit",
                expression: "cluster:dovetail_day_gpu_unpriced:ratio{ALL}",
                legend: "{{cluster}}",
                width: 12,
            },
            Panel {
                title: "GPU time without a price, by team",
                description: "GPU-seconds since the start of the month (UTC) that have no price. The costs of these \
                              teams do not include them.",
                kind: "timeseries",
                unit: "s",
                expression: "sum by (team) (max by (cluster, team) (dovetail_month_unpriced_gpu_seconds{ALL}))",
                legend: "{{team}}",
                width: 12,
            },
        ],
    ),
];

/// The dashboard as a file for Grafana.
pub fn dashboard() -> String {
    let mut panels = Vec::new();
    let mut top = 0;
    for (title, row) in &ROWS {
        let at = json!({"h": 1, "w": 24, "x": 0, "y": top});
        let id = panels.len() + 1;
        panels.push(json!({"id": id, "type": "row", "title": title, "collapsed": false, "gridPos": at, "panels": []}));
        top += 1;
        let (mut left, mut height) = (0, 0);
        for panel in *row {
            if left + panel.width > 24 {
                (left, top) = (0, top + height);
            }
            height = if panel.kind == "stat" { 4 } else { 8 };
            let at = json!({"h": height, "w": panel.width, "x": left, "y": top});
            panels.push(panel.json(panels.len() + 1, &at));
            left += panel.width;
        }
        top += height;
    }
    let source = json!({"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"});
    let cluster = json!({
        "name": "cluster", "label": "Cluster", "type": "query", "datasource": source_of_data(),
        "query": "label_values(dovetail_day_gpu_seconds, cluster)", "refresh": 2, "sort": 1,
        "includeAll": true, "multi": true, "allValue": ".+"
    });
    let whole = json!({
        "uid": "dovetail-gpus", "title": "dovetail: GPU use and cost", "tags": ["dovetail", "gpu"],
        "description": "Written by `cargo xtask codegen dashboard` from crates/edge/serve/src/monitoring/dashboard.rs.",
        "schemaVersion": 39, "version": 1, "editable": false, "refresh": "5m", "timezone": "utc",
        "time": {"from": "now-7d", "to": "now"},
        "templating": {"list": [source, cluster]},
        "panels": panels,
    });
    // What was made of strings can be written.
    let text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text + "\n"
}

fn source_of_data() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

impl Panel {
    fn expression(&self) -> String {
        self.expression.replace("{ALL", &format!("{{{ALL}"))
    }

    fn json(&self, id: usize, at: &Value) -> Value {
        let is_instant = self.kind != "timeseries";
        json!({
            "id": id, "type": self.kind, "title": self.title, "description": self.description, "gridPos": at,
            "datasource": source_of_data(),
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "targets": [{
                "refId": "A", "datasource": source_of_data(), "expr": self.expression(), "legendFormat": self.legend,
                "instant": is_instant, "range": !is_instant
            }],
        })
    }
}

/// Names of our series in an expression.
#[cfg(test)]
pub(super) fn series_of(expression: &str) -> Vec<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let words = expression.split(|letter| !is_name(letter));
    words.filter(|word| word.contains("dovetail_")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_file_is_what_the_code_says() {
        let file = include_str!("../../../../../deploy/monitoring/dashboard.json");
        assert!(file == dashboard(), "run `cargo xtask codegen dashboard`");
    }

    /// The rules of Grafana's own linter that hold without its server.
    #[test]
    fn every_panel_can_be_read_and_shows_what_there_is() {
        let metrics = crate::metrics::Metrics::default();
        let served = metrics.described().iter().map(|described| described.name.clone());
        let recorded = super::super::rules::recorded().map(str::to_owned);
        let known: BTreeSet<String> = served.chain(recorded).collect();
        let units = ["short", "percentunit", "currencyUSD", "s", "ops", "reqps"];
        let (mut shown, mut titles) = (BTreeSet::new(), BTreeSet::new());
        for panel in ROWS.iter().flat_map(|(_, row)| row.iter()) {
            assert!(titles.insert(panel.title), "{} is there twice", panel.title);
            assert!(
                panel.description.ends_with('.') && !panel.legend.is_empty(),
                "{}",
                panel.title
            );
            assert!(units.contains(&panel.unit), "{}", panel.title);
            let expression = panel.expression();
            let series = series_of(&expression);
            assert!(!series.is_empty(), "{}", panel.title);
            for name in series {
                assert!(known.contains(&name), "{}: {name}", panel.title);
                // A counter is only looked at as a rate, over a window that Grafana chooses.
                let is_rated =
                    expression.contains("rate(") && expression.contains("[$__rate_interval]");
                assert_eq!(name.ends_with("_total"), is_rated, "{}", panel.title);
                shown.insert(name);
            }
            let by_cluster = expression.contains(ALL);
            let has_cluster =
                !expression.contains("_total") && !expression.contains("budget_ratio");
            assert_eq!(by_cluster, has_cluster, "{}: {expression}", panel.title);
        }
        assert!(shown.len() >= 12, "{shown:?}");
        let whole: Value = serde_json::from_str(&dashboard()).unwrap();
        let mut taken: BTreeSet<(u64, u64)> = BTreeSet::new();
        for panel in whole["panels"].as_array().unwrap() {
            let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            for y in at("y")..at("y") + at("h") {
                for x in at("x")..at("x") + at("w") {
                    assert!(x < 24 && taken.insert((x, y)), "{} lies on another", panel["title"]);
                }
            }
        }
    }
}
