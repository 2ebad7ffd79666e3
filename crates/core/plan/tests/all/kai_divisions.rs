//! The division of capacity over queues, held against KAI Scheduler's own cases.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use dovetail_order::queues::division::{Asks, divide};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    id: String,
    total: f64,
    queues: BTreeMap<String, Queue>,
    fair_share: BTreeMap<String, f64>,
    remaining: f64,
}

#[derive(Deserialize)]
struct Queue {
    deserved: f64,
    limit: f64,
    over_quota_weight: f64,
    request: f64,
    priority: i32,
    created_unix: i64,
}

/// Where KAI's cases are, if they are here.
pub(crate) fn cases() -> Option<PathBuf> {
    let cases = std::env::var_os("DOVETAIL_KAI_CASES").map(PathBuf::from);
    let traces = || Some(PathBuf::from(std::env::var_os("DOVETAIL_TRACES")?).join("kai_cases"));
    let found = cases.or_else(traces);
    if found.is_none() {
        let text = "skipped: neither DOVETAIL_KAI_CASES nor DOVETAIL_TRACES is set";
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
    found
}

fn bound(amount: f64) -> f64 {
    if amount < 0.0 { f64::INFINITY } else { amount }
}

#[test]
fn capacity_is_divided_as_kai_divides_it() {
    let Some(folder) = cases() else { return };
    let text = std::fs::read_to_string(folder.join("fair_share.json")).expect("KAI's cases");
    let cases: Vec<Case> = serde_json::from_str(&text).expect("as SCHEMA.md says");
    assert_eq!(cases.len(), 80);
    for case in cases {
        let mut queues: Vec<(&String, &Queue)> = case.queues.iter().collect();
        queues.sort_by_key(|(id, queue)| (queue.created_unix, *id));
        let asks = queues.iter().map(|(_, queue)| Asks {
            request: queue.request,
            quota: bound(queue.deserved),
            limit: bound(queue.limit),
            weight: queue.over_quota_weight,
            priority: queue.priority,
        });
        let shares = divide(case.total, &asks.collect::<Vec<_>>());
        for ((id, _), share) in queues.iter().zip(&shares) {
            let expected = case.fair_share[*id];
            assert!((share - expected).abs() < 1e-9, "{}: {id} {share} {expected}", case.id);
        }
        let left = f64::max(case.total - shares.iter().sum::<f64>(), 0.0);
        assert!((left - case.remaining).abs() < 1e-6, "{}: {left}", case.id);
    }
}
