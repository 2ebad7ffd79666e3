//! Every threshold decides, within one of its units.

use std::collections::BTreeSet;

use dovetail_account::signal::Signal;
use dovetail_facts::{Facts, THRESHOLDS, WorkloadClass, threshold};

use super::models::{asked, cheaper, hung, sized};
use super::seen::{advised, misplaced_for, seen_by, throttled};
use super::sharing::{crowded, notebook, unused};
use super::{
    GIB, HOUR_MS, NOW_MS, SERVE, TRAIN, healthy, held, ids, killed, limits, owned, small, still,
    toleration, used,
};
use crate::catalogue::check;
use crate::checks::audit;
use crate::remedy::PatchChange;

const MINUTE_MS: u64 = 60_000;

/// A threshold, a check, a world, a value under which the world has the finding, and the next one,
/// under which it has none.
type Moved = (&'static str, &'static str, fn(&mut Facts), u64, u64);

const OF_PODS: [Moved; 14] = [
    ("least_measured_hours", "REQ-04", |f| used(f, TRAIN, &[3 * HOUR_MS, 0, 0, 0]), 24, 25),
    ("least_measured_hours", "REQ-05", |f| used(f, TRAIN, &[0; 4]), 24, 25),
    ("least_measured_hours", "REQ-06", |f| small(f, 34_285_714, 40 * GIB), 24, 25),
    ("least_measured_hours", "GOV-03", |f| owned(f, 3 * HOUR_MS), 24, 25),
    ("slice_busy_percent", "REQ-06", |f| small(f, 34_285_714, 40 * GIB), 80, 79),
    ("over_request_percent", "REQ-07", |f| advised(f, "memory", 12 * GIB, 16 * GIB), 199, 200),
    // A third of the time.
    ("starved_active_percent", "REQ-09", |f| throttled(f, 8 * HOUR_MS, 5_999), 34, 33),
    ("tolerated_memory_kills", "REQ-10", |f| killed(f, 5), 4, 5),
    // All training has 16 GiB.
    ("small_shared_memory_mib", "REQ-12", |_| {}, 16_384, 16_383),
    ("large_gpu_mib", "SHR-02", |f| notebook(f, "24000"), 24_000, 24_001),
    ("full_memory_percent", "SHR-05", |f| crowded(f, 4_001), 50, 51),
    ("unused_profile_hours", "SHR-11", |f| unused(f, 24), 24, 25),
    ("lent_idle_percent", "GOV-03", |f| owned(f, 6 * HOUR_MS), 24, 25),
    ("half_empty_percent", "AUT-01", |f| held(f, 1), 26, 25),
];

const OF_TIME: [Moved; 11] = [
    (
        "idle_notebook_minutes",
        "IDL-01",
        |f| still(f, WorkloadClass::Interactive, 1, since(20)),
        20,
        21,
    ),
    ("idle_server_minutes", "IDL-02", |f| still(f, WorkloadClass::Inference, 2, since(20)), 20, 21),
    (
        "oversized_minutes",
        "REQ-03",
        |f| {
            limits(f, TRAIN, 9);
            f.workloads[TRAIN].template.tolerations = vec![toleration("nvidia.com/gpu")];
            for pod in &mut f.workloads[TRAIN].pods {
                (pod.node, pod.created_ms) = (None, Some(NOW_MS - since(20)));
            }
        },
        20,
        21,
    ),
    (
        "starting_minutes",
        "IDL-05",
        |f| {
            let pod = &mut f.workloads[SERVE].pods[0];
            (pod.is_starting, pod.placed_since_ms) = (true, Some(NOW_MS - since(3)));
        },
        3,
        4,
    ),
    (
        "overdue_minutes",
        "IDL-06",
        |f| f.workloads[SERVE].pods[0].should_be_gone_ms = Some(NOW_MS - since(30)),
        30,
        31,
    ),
    ("hung_minutes", "IDL-08", |f| hung(f, 20 * MINUTE_MS), 20, 21),
    (
        "empty_node_minutes",
        "AUT-03",
        |f| f.nodes[0].without_gpu_pods_since_ms = Some(NOW_MS - since(30)),
        30,
        31,
    ),
    (
        "cordoned_minutes",
        "AUT-06",
        |f| f.nodes[0].cordoned_since_ms = Some(NOW_MS - since(60)),
        60,
        61,
    ),
    (
        "spot_unsaved_minutes",
        "SPT-01",
        |f| {
            f.nodes[0].is_spot = Some(true);
            f.workloads[SERVE].class = None;
        },
        119,
        120,
    ),
    ("contradicted_minutes", "VIS-02", |f| seen_by(f, Signal::SmActive, since(30)), 30, 31),
    ("contradicted_minutes", "VIS-05", |f| misplaced_for(f, since(30)), 30, 31),
];

const OF_MODELS: [Moved; 4] = [
    ("cheaper_region_percent", "SPT-04", |f| cheaper(f, 5_600_000), 20, 21),
    ("many_requests_per_day", "MOD-01", |f| asked(f, 500, None), 499, 500),
    // 20 of 67.1 GB.
    ("small_model_percent", "MOD-02", |f| sized(f, 10_000, 11 * HOUR_MS), 30, 29),
    ("busy_model_percent", "MOD-02", |f| sized(f, 8_388, 18 * HOUR_MS), 76, 75),
];

/// Longer than so many minutes, if only just.
const fn since(minutes: u64) -> u64 {
    minutes * MINUTE_MS + 1
}

fn with(world: fn(&mut Facts), name: &str, value: u64) -> Facts {
    let mut facts = healthy();
    world(&mut facts);
    threshold(name).expect("a threshold").set(&mut facts.thresholds, value);
    facts
}

#[test]
fn the_next_value_of_a_threshold_moves_a_finding_over_or_under_it() {
    let moved = || OF_PODS.iter().chain(&OF_TIME).chain(&OF_MODELS);
    for (name, id, world, found_at, none_at) in moved() {
        assert_eq!(ids(&with(*world, name, *found_at)), [*id], "{name} = {found_at}");
        // What is free for less time is another check's.
        let otherwise = match *id {
            "SHR-11" => vec!["CAP-06"],
            _ => Vec::new(),
        };
        assert_eq!(ids(&with(*world, name, *none_at)), otherwise, "{name} = {none_at}");
    }
    // Every threshold and check, but for what patches and evidence are made with.
    let tested: BTreeSet<(&str, &str)> = moved().map(|(name, id, ..)| (*name, *id)).collect();
    let of_texts = ["request_headroom", "memory_raise", "transfer"];
    for threshold in THRESHOLDS {
        let checks = threshold.checks;
        assert!(checks.iter().all(|id| check(id).is_some()), "{checks:?}");
        let is_of_texts = of_texts.iter().any(|start| threshold.name.starts_with(start));
        for id in threshold.checks.iter().filter(|_| !is_of_texts) {
            assert!(tested.contains(&(threshold.name, *id)), "{} of {id}", threshold.name);
        }
    }
}

#[test]
fn patches_and_evidence_are_made_with_what_was_set() {
    let request = |world: fn(&mut Facts), name, value| {
        let found = audit(&with(world, name, value));
        match &found[0].remedies[0].change {
            PatchChange::Amount { request, .. } => *request,
            change => panic!("{change:?}"),
        }
    };
    let advised: fn(&mut Facts) = |f| advised(f, "memory", 12 * GIB, 15 * GIB);
    assert_eq!(request(advised, "request_headroom_percent", 50), 18 * GIB);
    assert_eq!(request(advised, "request_headroom_percent", 0), 12 * GIB);
    // The training asks for 128 GiB.
    let killed: fn(&mut Facts) = |f| killed(f, 3);
    assert_eq!(request(killed, "memory_raise_percent", 25), 160 * GIB);
    let pays_back = |name, value| {
        let found = audit(&with(|f| cheaper(f, 5_000_000), name, value));
        let mut evidence = found[0].evidence.iter();
        let found = evidence.find(|of| of.what.starts_with("pays back"));
        found.expect("it pays back").value.clone()
    };
    let text = pays_back("transfer_payback_days", 60);
    assert_eq!(text, "28800 GB per GPU in 60 days, at an assumed $0.10 per GB");
    let text = pays_back("transfer_cents_per_gb", 2);
    assert_eq!(text, "72000 GB per GPU in 30 days, at an assumed $0.02 per GB");
}
