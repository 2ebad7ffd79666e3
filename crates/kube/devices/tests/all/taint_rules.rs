//! Devices that a DeviceTaintRule taints, beside the taints of their drivers.

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, allocate,
};
use dovetail_objects::{Labels, ResourceClaim};
use serde_json::{Value, json};

/// Two devices of each of two drivers on one node.
fn catalog(features: Features) -> Catalog {
    let mut catalog = Catalog::new(features);
    for driver in ["gpu.example.com", "nic.example.com"] {
        let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
        let class = json!({"metadata": {"name": driver}, "spec": {"selectors": selectors}});
        catalog.put_class(serde_json::from_value(class).expect("a class"));
        let pool = json!({"name": "n0", "generation": 1, "resourceSliceCount": 1});
        let slice = json!({"metadata": {"name": driver}, "spec": {"driver": driver,
            "nodeName": "n0", "pool": pool, "devices": [{"name": "d0"}, {"name": "d1"}]}});
        catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
    }
    catalog
}

fn rule(name: &str, selector: Value, effect: &str) -> Value {
    let taint = json!({"key": "example.com/broken", "value": "fan", "effect": effect});
    json!({"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}})
}

fn put(catalog: &mut Catalog, rule: Value) {
    catalog.put_taint_rule(serde_json::from_value(rule).expect("a rule"));
}

/// How a claim of so many devices of a driver is answered.
fn answer(catalog: &Catalog, driver: &str, count: usize, tolerations: Value) -> AllocationOutcome {
    let exactly = json!({"deviceClassName": driver, "count": count, "tolerations": tolerations});
    let claim = json!({"metadata": {"name": "c", "namespace": "n"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}});
    let claim: ResourceClaim = serde_json::from_value(claim).expect("a claim");
    let labels = Labels::default();
    let place = CandidateNode { node: "n0", labels: &labels };
    allocate(catalog, &ClaimedDevices::default(), place, &[&claim], 1_000)
}

/// How many devices of a driver a claim without tolerations can have.
fn free(catalog: &Catalog, driver: &str) -> usize {
    let fits = |count: &usize| {
        matches!(answer(catalog, driver, *count, Value::Null), AllocationOutcome::Fits(_))
    };
    (1..=2).take_while(fits).count()
}

#[test]
fn a_rule_taints_the_devices_that_all_fields_of_its_selector_match() {
    let driver = "gpu.example.com";
    for (selector, left) in [
        (Value::Null, (2, 2)),
        (json!({}), (0, 0)),
        (json!({"driver": driver}), (0, 2)),
        (json!({"pool": "n0"}), (0, 0)),
        (json!({"pool": "n1"}), (2, 2)),
        (json!({"device": "d1"}), (1, 1)),
        (json!({"driver": driver, "pool": "n0", "device": "d1"}), (1, 2)),
        (json!({"driver": driver, "pool": "n1", "device": "d1"}), (2, 2)),
    ] {
        for effect in ["NoSchedule", "NoExecute"] {
            let mut catalog = catalog(Features::ALL);
            put(&mut catalog, rule("maintenance", selector.clone(), effect));
            let free = (free(&catalog, driver), free(&catalog, "nic.example.com"));
            assert_eq!(free, left, "{selector} {effect}");
        }
    }
}

#[test]
fn effects_that_only_inform_and_rules_that_are_gone_taint_nothing() {
    let mut catalog = catalog(Features::ALL);
    put(&mut catalog, rule("maintenance", json!({}), "None"));
    assert_eq!(free(&catalog, "gpu.example.com"), 2);
    put(&mut catalog, rule("maintenance", json!({}), "NoSchedule"));
    assert_eq!(free(&catalog, "gpu.example.com"), 0);
    catalog.remove_taint_rule("maintenance");
    assert_eq!(free(&catalog, "gpu.example.com"), 2);
}

#[test]
fn a_toleration_accepts_the_taint_of_a_rule() {
    let mut catalog = catalog(Features::ALL);
    put(&mut catalog, rule("maintenance", json!({}), "NoExecute"));
    for (toleration, is_accepted) in [
        (json!({"operator": "Exists"}), true),
        (json!({"key": "example.com/broken", "value": "fan", "effect": "NoExecute"}), true),
        (json!({"key": "example.com/broken", "value": "psu"}), false),
        (json!({"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"}), false),
    ] {
        let answer = answer(&catalog, "gpu.example.com", 2, json!([toleration]));
        assert_eq!(matches!(answer, AllocationOutcome::Fits(_)), is_accepted, "{toleration}");
    }
}

#[test]
fn who_gets_no_device_reads_of_which_rule_its_taint_is() {
    let mut catalog = catalog(Features::ALL);
    put(&mut catalog, rule("maintenance", json!({"device": "d1"}), "NoSchedule"));
    let AllocationOutcome::No(looks) = answer(&catalog, "gpu.example.com", 2, Value::Null) else {
        panic!("one device is not tainted");
    };
    let says = "1 with the taint example.com/broken=fan:NoSchedule of DeviceTaintRule maintenance";
    assert!(looks[0].to_string().contains(says), "{}", looks[0]);
}
