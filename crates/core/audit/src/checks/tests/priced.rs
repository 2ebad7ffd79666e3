//! What findings claim of the time that stood free because of them.

use dovetail_ledger::FreeCause;
use dovetail_ledger::device_time::{DeviceInterval, DeviceState};

use super::{GIB, HOUR_MS, SERVE, TRAIN, healthy, requests, taint};
use crate::checks::audit;
use crate::claim::{DeviceWaste, settle};
use crate::facts::{Facts, Pod};

/// Device-hours that the finding of a check claims, where the first two devices of the node stood free for a day,
/// one for this cause.
fn claimed_hours(facts: &Facts, id: &str, cause: FreeCause) -> i128 {
    let waste = |device, cause| {
        let state = DeviceState::Free(Some(cause));
        let interval = DeviceInterval {
            span: facts.period,
            gpu_milli: 1000,
            state,
            holder: None,
            signal: None,
        };
        DeviceWaste { device, interval, usd_micros_per_gpu_hour: None }
    };
    let wasted = [waste(0, cause), waste(1, FreeCause::NoDemand)];
    let found = audit(facts);
    let settled = settle(&wasted, &found);
    let of_check = found.iter().zip(&settled).filter(|(finding, _)| finding.check.id == id);
    of_check.map(|(_, settled)| settled.claimed.gpu_milli_ms).sum::<i128>()
        / 1000
        / i128::from(HOUR_MS)
}

#[test]
fn what_is_stranded_beside_a_greedy_pod_is_its_findings() {
    let mut facts = healthy();
    requests(&mut facts, SERVE, "cpu", 12_001);
    assert_eq!(claimed_hours(&facts, "REQ-08", FreeCause::StrandedByCpu), 24);
    assert_eq!(claimed_hours(&facts, "REQ-08", FreeCause::StrandedByMemory), 0);
    let mut facts = healthy();
    requests(&mut facts, SERVE, "memory", 129 * GIB);
    assert_eq!(claimed_hours(&facts, "REQ-08", FreeCause::StrandedByMemory), 24);
    assert_eq!(claimed_hours(&facts, "REQ-08", FreeCause::StrandedByCpu), 0);
}

#[test]
fn what_a_taint_keeps_from_pods_that_wait_is_their_findings() {
    let mut facts = healthy();
    facts.nodes[0].node.taints.push(taint("team-b"));
    // Everybody has a node: nothing waits.
    assert_eq!(claimed_hours(&facts, "SCH-04", FreeCause::Taint), 0);
    facts.workloads[TRAIN].pods.push(Pod { name: "waits".into(), ..Pod::default() });
    assert_eq!(claimed_hours(&facts, "SCH-04", FreeCause::Taint), 24);
}
