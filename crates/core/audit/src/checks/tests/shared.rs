//! GPUs of several pods, and of times of which nobody knows: what may be work is no idleness.

use dovetail_facts::{Facts, GpuUse};

use super::models::sized;
use super::seen::advised;
use super::{GPU, HOUR_MS, SERVE, TRAIN, healthy, main_of, map, used};
use crate::checks::audit;
use crate::finding::Finding;

/// The day of a workload's pods on GPUs of several of them, each of which computed for so long.
fn together(facts: &mut Facts, workload: usize, active_ms: &[u64]) {
    used(facts, workload, active_ms);
    for used in facts.workloads[workload].pods.iter_mut().flat_map(|pod| &mut pod.uses) {
        *used = std::mem::take(used).of_each_holder();
    }
}

/// Findings of these checks, with what they rest on.
fn found(checks: &[&str], change: impl Fn(&mut Facts)) -> Vec<(Finding, Vec<String>)> {
    let mut facts = healthy();
    change(&mut facts);
    let found = audit(&facts).into_iter().filter(|finding| checks.contains(&finding.check.id));
    let told = found.map(|finding| {
        let told = finding.evidence.iter().map(|of| format!("{}: {}", of.what, of.value));
        let told = told.collect();
        (finding, told)
    });
    told.collect()
}

/// Each of the GPUs computed for 12 of the 24 hours, or for one minute of them, for one of its
/// pods.
#[test]
fn what_computed_for_one_of_several_pods_was_not_shown_to_stand_still() {
    for active_ms in [12 * HOUR_MS, HOUR_MS / 60] {
        let never = found(&["REQ-04", "REQ-05"], |f| together(f, TRAIN, &[active_ms; 4]));
        assert_eq!(never, [], "{active_ms}");
    }
    // Where none of them computed it stood still for each.
    let never = found(&["REQ-05"], |f| together(f, TRAIN, &[0; 4]));
    assert_eq!(never.len(), 1);
}

/// A pod of four GPUs: one that it used, one that it or another did, and two that nobody did.
#[test]
fn gpus_that_may_have_computed_are_left_to_their_pod() {
    let some = found(&["REQ-04", "REQ-05"], |f| {
        used(f, TRAIN, &[3 * HOUR_MS, HOUR_MS, 0, 0]);
        for pod in &mut f.workloads[TRAIN].pods {
            pod.uses[1] = std::mem::take(&mut pod.uses[1]).of_each_holder();
        }
    });
    let [(finding, told)] = &some[..] else { panic!("{some:?}") };
    assert_eq!(finding.check.id, "REQ-04");
    assert_eq!(told[..2], ["GPUs of one pod: 4", "GPUs that may have been active: 2"]);
}

/// One of two pods used all that it asks for, or three of its four GPUs: the template of both can
/// ask for no less.
#[test]
fn a_template_asks_for_what_its_busiest_pod_used() {
    let of = |first: [u64; 4], second: [u64; 4]| {
        found(&["REQ-04"], |f| {
            used(f, TRAIN, &[0; 4]);
            for (number, (pod, active_ms)) in
                f.workloads[TRAIN].pods.iter_mut().zip([first, second]).enumerate()
            {
                let base = 4 * number as u32;
                pod.devices = (0..4).map(|gpu| vec![(base + gpu, 1_000)]).collect();
                for (used, active_ms) in pod.uses.iter_mut().zip(active_ms) {
                    (used.active_ms, used.idle_ms) = (active_ms, 24 * HOUR_MS - active_ms);
                }
            }
        })
    };
    let h = HOUR_MS;
    assert_eq!(of([h, h, h, h], [h, 0, 0, 0]), []);
    let some = of([h, h, h, 0], [h, 0, 0, 0]);
    let [(finding, told)] = &some[..] else { panic!("{some:?}") };
    assert_eq!(told[..2], ["GPUs of one pod: 4", "GPUs that were ever active: 3"]);
    assert_eq!(finding.fix_example(), "resources: {limits: {nvidia.com/gpu: 3}}");
    // One GPU of each pod, and not the other two of the second.
    let claimed: Vec<(u32, i64)> =
        finding.claims.iter().map(|claim| (claim.device, claim.gpu_milli)).collect();
    assert_eq!(claimed, [(3, 1_000), (5, 1_000)]);
}

/// A hundredth of 24 hours is 14 minutes and 24 seconds.
#[test]
fn a_few_lost_samples_leave_it_shown_and_more_or_contradictions_do_not() {
    let never = |change: fn(&mut GpuUse)| {
        let never = found(&["REQ-05"], |f| {
            used(f, TRAIN, &[0; 4]);
            f.workloads[TRAIN].pods.iter_mut().for_each(|pod| change(&mut pod.uses[2]));
        });
        never.len()
    };
    assert_eq!(never(|used| lose(used, 864_000)), 1);
    assert_eq!(never(|used| lose(used, 864_001)), 0);
    let contradicted = |used: &mut GpuUse| {
        lose(used, 60_000);
        used.contradicted_ms = 60_000;
    };
    assert_eq!(never(contradicted), 0);
}

/// So much of the day nobody knows.
fn lose(used: &mut GpuUse, unknown_ms: u64) {
    (used.idle_ms, used.unknown_ms) = (24 * HOUR_MS - unknown_ms, unknown_ms);
}

/// Idle for 12 of 24 hours is a half, of which four fifths are beyond a tenth of all the time.
#[test]
fn the_idle_part_is_of_all_the_time_that_was_looked_at() {
    let of = |lent_idle_percent: u64| {
        found(&["GOV-03"], |f| {
            f.thresholds.lent_idle_percent = lent_idle_percent;
            f.namespaces[0].gpu_quota = map(&[(GPU, 8)]);
            together(f, TRAIN, &[12 * HOUR_MS; 4]);
        })
    };
    let quota = of(10);
    let [(finding, told)] = &quota[..] else { panic!("{quota:?}") };
    assert_eq!(told[1], "idle share of its allocated GPU time: at least 50.0%");
    assert!(finding.claims.iter().all(|claim| claim.gpu_milli == 800), "{:?}", finding.claims);
    assert_eq!(of(50), []);
}

/// GPUs that computed for an hour and may have for five more: a quarter of the day at most, and for
/// eleven: a half.
#[test]
fn gpus_that_may_have_been_busy_neither_wait_for_cpu_nor_are_too_large() {
    let partly = |f: &mut Facts, unknown_ms: u64| {
        for used in f.workloads[SERVE].pods.iter_mut().flat_map(|pod| &mut pod.uses) {
            (used.active_ms, used.unknown_ms) = (HOUR_MS, unknown_ms);
            used.idle_ms = 23 * HOUR_MS - unknown_ms;
        }
    };
    let of = |unknown_ms: u64| {
        found(&["REQ-09", "MOD-02"], |f| {
            sized(f, 1_000, HOUR_MS);
            main_of(f, SERVE).limits.insert("cpu".into(), 4_000);
            advised(f, "cpu", 6_000, 8_000);
            partly(f, unknown_ms);
        })
    };
    let low = of(5 * HOUR_MS);
    let told: Vec<&String> = low.iter().flat_map(|(_, told)| told.last()).collect();
    assert_eq!(told, ["GPU active: at most 25% of the time"; 2], "{low:?}");
    assert_eq!(of(11 * HOUR_MS), []);
}
