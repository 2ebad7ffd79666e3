//! Selectors of devices, against Kubernetes' own evaluation of CEL.

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, allocate,
};
use dovetail_objects::Labels;
use dovetail_testkit::world::{
    DeviceAnswer, Release, SelectorAnswer, SelectorOracle, selected_devices, selector,
};
use serde_json::{Value, from_value, json};

/// How many random selectors are evaluated, each on every device.
const SELECTORS: u64 = 3000;
/// How many are sent at once.
const BATCH: u64 = 100;
/// The states that one device needs are few.
const STEPS: u64 = 1000;

/// Classes by number, and each device alone on a node of its number.
fn catalog(selectors: &[String], devices: &[Value]) -> Catalog {
    let mut catalog = Catalog::new(Features::ALL);
    for (number, expression) in selectors.iter().enumerate() {
        let class = json!({"metadata": {"name": format!("c{number}")},
            "spec": {"selectors": [{"cel": {"expression": expression}}]}});
        catalog.put_class(from_value(class).expect("a class"));
    }
    for (number, device) in devices.iter().enumerate() {
        let node = format!("n{number}");
        let slice = json!({"metadata": {"name": node}, "spec": {"driver": device["driver"],
            "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device["device"]]}});
        catalog.put_slice(from_value(slice).expect("a slice"));
    }
    catalog
}

fn outcome(catalog: &Catalog, class: usize, device: usize) -> AllocationOutcome {
    let claim = json!({"metadata": {"namespace": "team", "name": "c"}, "spec": {"devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": format!("c{class}"),
            "allocationMode": "ExactCount", "count": 1}}]}}});
    let claim = from_value(claim).expect("a claim");
    let place = CandidateNode { node: &format!("n{device}"), labels: &Labels::default() };
    allocate(catalog, &ClaimedDevices::default(), place, &[&claim], STEPS)
}

/// What differs: nothing where both say yes, no, or that it is an error.
fn difference(theirs: &DeviceAnswer, ours: &AllocationOutcome) -> Option<&'static str> {
    match (theirs.error.is_empty(), theirs.meets, ours) {
        (true, true, AllocationOutcome::Fits(_)) => None,
        (true, false, AllocationOutcome::No(_)) => None,
        (false, _, AllocationOutcome::Error(_)) => None,
        (true, _, AllocationOutcome::Error(_)) => Some("an error of ours alone"),
        (false, ..) => Some("an error of Kubernetes alone"),
        _ => Some("met and not met"),
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "what was compared is worth a look: --nocapture shows it")]
fn selectors_are_met_by_the_devices_that_kubernetes_says() {
    let mut oracle = SelectorOracle::start(Release::V1_37).unwrap();
    let devices = selected_devices();
    let (mut refused, mut counted, mut differences) = (0, [0; 3], 0);
    for first in (0..SELECTORS).step_by(BATCH as usize) {
        let selectors: Vec<String> = (first..first + BATCH).map(selector).collect();
        let answers = oracle.judge(&selectors, &devices).unwrap();
        let catalog = catalog(&selectors, &devices);
        for (class, SelectorAnswer { refused: why, devices }) in answers.iter().enumerate() {
            // The API server stores no such class.
            refused += u64::from(!why.is_empty());
            for (device, theirs) in devices.iter().enumerate() {
                counted[if theirs.error.is_empty() { usize::from(theirs.meets) } else { 2 }] += 1;
                let ours = outcome(&catalog, class, device);
                if let Some(what) = difference(theirs, &ours) {
                    differences += 1;
                    let selector = &selectors[class];
                    eprintln!("{what}: {selector}\n  device {device}: {theirs:?}, ours {ours:?}");
                }
            }
        }
    }
    let [no, yes, errors] = counted;
    eprintln!("{SELECTORS} selectors, {refused} refused; not met {no}, met {yes}, errors {errors}");
    assert_eq!(differences, 0, "see above");
    assert!(refused * 5 < SELECTORS && no.min(yes).min(errors) > 500, "{refused} {counted:?}");
}
