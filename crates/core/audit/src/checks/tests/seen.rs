//! What recommenders and exporters have seen, or not.

use std::collections::BTreeMap;

use dovetail_account::signal::Signal;
use dovetail_facts::{Advice, Facts, ObjectRef, Recommended};

use super::sharing::offered_as;
use super::{Case, EXPORTER, HOUR_MS, SERVE, main_of, map, used};

/// A recommender that has seen what the servers need of a resource: nearly always, and at most.
pub(super) fn advised(facts: &mut Facts, resource: &str, target: i64, upper: i64) {
    let recommended =
        Recommended { target: map(&[(resource, target)]), upper: map(&[(resource, upper)]) };
    let by = ObjectRef::new("VerticalPodAutoscaler", "prod", "serve");
    let advice = Advice { by, containers: map(&[("main", recommended)]) };
    facts.advice = Some(BTreeMap::from([(facts.workloads[SERVE].owner.clone(), advice)]));
}

/// Servers that compute so long of each day and may use so much CPU, of which they need six cores.
pub(super) fn throttled(facts: &mut Facts, active_ms: u64, limit_milli: i64) {
    used(facts, SERVE, &[active_ms]);
    main_of(facts, SERVE).limits.insert("cpu".into(), limit_milli);
    advised(facts, "cpu", 6_000, 8_000);
}

/// Servers that are busy, measured by a signal, and whose signals contradict each other for so
/// long.
pub(super) fn seen_by(facts: &mut Facts, signal: Signal, contradicted_ms: u64) {
    used(facts, SERVE, &[23 * HOUR_MS]);
    for pod in &mut facts.workloads[SERVE].pods {
        (pod.uses[0].signal, pod.uses[0].contradicted_ms) = (Some(signal), contradicted_ms);
    }
}

/// Servers of which a sample names a GPU that they cannot have had, for so long.
pub(super) fn misplaced_for(facts: &mut Facts, misplaced_ms: u64) {
    used(facts, SERVE, &[23 * HOUR_MS]);
    for pod in &mut facts.workloads[SERVE].pods {
        pod.uses[0].misplaced_ms = misplaced_ms;
    }
}

pub(super) const VISIBILITY: [Case; 5] = [
    (
        "VIS-01",
        |f| f.workloads[EXPORTER].pods.clear(),
        // Others have no exporter that anybody knows.
        |f| {
            f.workloads[EXPORTER].pods.clear();
            offered_as(f, "aws.amazon.com/neuron");
        },
    ),
    (
        "VIS-02",
        |f| seen_by(f, Signal::SmActive, 600_001),
        |f| seen_by(f, Signal::SmActive, 600_000),
    ),
    (
        "VIS-03",
        |f| seen_by(f, Signal::GrEngineActive, 0),
        |f| seen_by(f, Signal::AmdGfxActivity, 0),
    ),
    (
        "VIS-04",
        |f| f.advice = Some(BTreeMap::new()),
        // Nobody could read what recommenders say.
        |f| f.advice = None,
    ),
    ("VIS-05", |f| misplaced_for(f, 600_001), |f| misplaced_for(f, 600_000)),
];

#[test]
fn what_was_measured_has_an_exporter_whatever_it_is_called() {
    let found = |active_ms: &[u64]| {
        let mut facts = super::healthy();
        facts.workloads[EXPORTER].pods.clear();
        used(&mut facts, SERVE, active_ms);
        let found = crate::checks::audit(&facts);
        found.iter().filter(|finding| finding.check.id == "VIS-01").count()
    };
    assert_eq!((found(&[]), found(&[23 * HOUR_MS])), (1, 0));
}

#[test]
fn the_exporter_that_is_asked_for_is_that_of_the_vendor() {
    let found = |resource: Option<&str>| {
        let mut facts = super::healthy();
        facts.workloads[EXPORTER].pods.clear();
        if let Some(resource) = resource {
            offered_as(&mut facts, resource);
        }
        let mut found = crate::checks::audit(&facts);
        found.retain(|finding| finding.check.id == "VIS-01");
        found.pop()
    };
    let vendors = [
        (None, "no dcgm-exporter on", "dcgm-exporter"),
        (Some("amd.com/gpu"), "no device-metrics-exporter on", "device-metrics-exporter"),
        (Some("gpu.intel.com/xe"), "no XPU Manager on", "XPU Manager"),
    ];
    for (resource, missing, own) in vendors {
        let finding = found(resource).expect("one");
        let example = finding.fix_example();
        assert_eq!(finding.evidence[0].what, missing);
        // Its own, and of no other vendor.
        let named =
            vendors.map(|(.., name)| name).into_iter().filter(|name| example.contains(name));
        assert_eq!(named.collect::<Vec<_>>(), [own], "{example}");
    }
    for resource in ["google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi"] {
        assert_eq!(found(Some(resource)), None, "{resource}");
    }
}
