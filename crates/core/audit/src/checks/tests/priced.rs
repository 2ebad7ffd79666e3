//! What findings claim of the time that stood free because of them.

use dovetail_account::device_time::{DeviceInterval, DeviceState};
use dovetail_facts::{ContainerKind, DeviceWaste, Facts, Pod, WorkloadClass};
use dovetail_model::FreeCause;

use super::{
    GIB, HOUR_MS, NOW_MS, SERVE, TRAIN, cases, healthy, helper, label, owned, requests, taint, used,
};
use crate::attribution::settle;
use crate::checks::audit;

/// Device-hours that the finding of a check claims, where the first two devices of the node stood
/// free for a day, one for this cause.
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
        DeviceWaste { device, interval, usd_micros_per_gpu_hour: None, since_ms: None }
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
    requests(&mut facts, SERVE, "cpu", 12_601);
    assert_eq!(claimed_hours(&facts, "REQ-08", FreeCause::StrandedByCpu), 24);
    assert_eq!(claimed_hours(&facts, "REQ-08", FreeCause::StrandedByMemory), 0);
    let mut facts = healthy();
    requests(&mut facts, SERVE, "memory", 135 * GIB);
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

/// GPU-hours by check, where each device of the training was idle for so much of the day.
fn claimed_of_idle(facts: &mut Facts, idle_hours: [u64; 5]) -> Vec<(&'static str, f64)> {
    // The first pod of the training has a device for each of its units.
    facts.workloads[TRAIN].pods.truncate(1);
    let pod = &mut facts.workloads[TRAIN].pods[0];
    pod.devices = (0..pod.uses.len() as u32).map(|device| vec![(device, 1000)]).collect();
    let waste = |(device, hours): (u32, u64)| {
        let span = facts.period;
        let span =
            dovetail_account::device_time::Span { to_ms: span.from_ms + hours * HOUR_MS, ..span };
        let state = DeviceState::Idle;
        let holder = Some(TRAIN as u32);
        let interval = DeviceInterval { span, gpu_milli: 1000, state, holder, signal: None };
        DeviceWaste { device, interval, usd_micros_per_gpu_hour: None, since_ms: None }
    };
    let wasted: Vec<DeviceWaste> = (0..).zip(idle_hours).map(waste).collect();
    let found = audit(facts);
    let settled = settle(&wasted, &found);
    let hours = |time: i128| time as f64 / 1000.0 / HOUR_MS as f64;
    found
        .iter()
        .zip(&settled)
        .map(|(finding, settled)| (finding.check.id, hours(settled.claimed.gpu_milli_ms)))
        .collect()
}

#[test]
fn a_helper_has_the_idle_time_of_as_many_gpus_as_it_adds() {
    let mut facts = healthy();
    // Two helpers with a GPU each; the second and the fourth device computed least.
    facts.workloads[TRAIN].template.containers.push(helper(ContainerKind::Sidecar, 1));
    used(&mut facts, TRAIN, &[20, 1, 18, 4, 19].map(|hours| hours * HOUR_MS));
    let idle_hours = [4, 23, 6, 20, 5];
    assert_eq!(claimed_of_idle(&mut facts, idle_hours), [("REQ-11", 23.0)]);
    facts.workloads[TRAIN].template.containers.push(helper(ContainerKind::Sidecar, 1));
    assert_eq!(claimed_of_idle(&mut facts, idle_hours), [("REQ-11", 43.0)]);
    // Nobody measured: no dollars.
    facts.workloads[TRAIN].pods[0].uses.clear();
    assert_eq!(claimed_of_idle(&mut facts, idle_hours), [("REQ-11", 0.0)]);
}

#[test]
fn a_notebook_has_three_quarters_of_the_idle_time_of_its_large_gpu() {
    let mut facts = healthy();
    used(&mut facts, TRAIN, &[4 * HOUR_MS; 4]);
    let train = &mut facts.workloads[TRAIN];
    (train.class, train.is_gang) = (Some(WorkloadClass::Interactive), false);
    label(&mut facts, "nvidia.com/gpu.memory", "81559");
    let claimed = claimed_of_idle(&mut facts, [20, 20, 20, 20, 0]);
    assert_eq!(claimed.iter().find(|(id, _)| *id == "SHR-02"), Some(&("SHR-02", 60.0)));
}

#[test]
fn a_team_that_owns_has_its_idle_time_beyond_a_tenth() {
    let mut facts = healthy();
    owned(&mut facts, 6 * HOUR_MS);
    // Four devices idle for 6 of 24 hours: 24 hours, of which 9.6 are a tenth of what is held.
    let claimed = claimed_of_idle(&mut facts, [6, 6, 6, 6, 0]);
    assert_eq!(claimed, [("GOV-03", 14.4)]);
}

#[test]
fn a_ledger_is_asked_for_the_time_that_findings_claim() {
    let mut claims = 0;
    for (id, triggers, _) in cases() {
        let mut facts = healthy();
        triggers(&mut facts);
        for finding in audit(&facts).iter().filter(|finding| finding.check.id == id) {
            for state in finding.claims.iter().flat_map(|claim| &claim.states) {
                let reach = finding.check.reach.states();
                assert!(reach.contains(state), "{id} claims {state:?}");
                claims += 1;
            }
        }
    }
    assert!(claims > 0);
}

#[test]
fn a_cordoned_node_claims_what_stood_free_on_it_since() {
    let mut facts = healthy();
    facts.nodes[0].cordoned_since_ms = Some(NOW_MS - 10 * HOUR_MS);
    let found = audit(&facts);
    // One device free for the whole day, one held all along.
    let interval = |state, holder| DeviceInterval {
        span: facts.period,
        gpu_milli: 1000,
        state,
        holder,
        signal: None,
    };
    let waste = |device, interval| DeviceWaste {
        device,
        interval,
        usd_micros_per_gpu_hour: None,
        since_ms: None,
    };
    let draining = DeviceState::Free(Some(FreeCause::DrainingOrCordoned));
    let wasted =
        [waste(0, interval(draining, None)), waste(1, interval(DeviceState::Idle, Some(1)))];
    let settled = settle(&wasted, &found);
    assert_eq!(settled[0].claimed.gpu_milli_ms, 1000 * 10 * i128::from(HOUR_MS));
}
