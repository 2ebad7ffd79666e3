//! What excludes how many devices, for people.

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, allocate, explain,
};
use dovetail_objects::{Labels, ResourceClaim};
use serde_json::{Value, json};

/// A node with these devices in one slice, and counter sets.
fn catalog(devices: &Value, counter_sets: &Value) -> Catalog {
    let mut catalog = Catalog::new(Features::ALL);
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": []}});
    catalog.put_class(serde_json::from_value(class).expect("a class"));
    let slices = [("devices", "devices", devices), ("counters", "sharedCounters", counter_sets)];
    let slices = slices.into_iter().filter(|(.., content)| !content.is_null());
    let slices: Vec<_> = slices.collect();
    for (name, field, content) in &slices {
        let pool = json!({"name": "n0", "generation": 1, "resourceSliceCount": slices.len()});
        let slice = json!({"metadata": {"name": name}, "spec": {"driver": "gpu.example.com",
            "nodeName": "n0", "pool": pool, *field: content}});
        catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
    }
    catalog
}

/// What is said of a claim that does not fit.
fn told(catalog: &Catalog, requests: Value, constraints: Value) -> Vec<String> {
    let claim = json!({"metadata": {"name": "c", "namespace": "n"},
        "spec": {"devices": {"requests": requests, "constraints": constraints}}});
    let claim: ResourceClaim = serde_json::from_value(claim).expect("a claim");
    let (labels, held) = (Labels::default(), ClaimedDevices::default());
    let place = CandidateNode { node: "n0", labels: &labels };
    let outcome = allocate(catalog, &held, place, &[&claim], 10_000);
    assert!(matches!(outcome, AllocationOutcome::No(_)), "{outcome:?}");
    explain(catalog, &held, place, &[&claim]).iter().map(ToString::to_string).collect()
}

fn request(name: &str, count: usize) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": "gpu", "count": count}})
}

/// Devices `d0`, `d1`, … with this attribute; one without it where it is null.
fn on_numa(nodes: &[Value]) -> Value {
    let device = |(at, numa): (usize, &Value)| match numa {
        Value::Null => json!({"name": format!("d{at}")}),
        numa => {
            let attributes = json!({"example.com/numa": {"int": numa}});
            json!({"name": format!("d{at}"), "attributes": attributes})
        }
    };
    nodes.iter().enumerate().map(device).collect()
}

#[test]
fn a_constraint_says_how_many_devices_it_excludes() {
    let numa = |rule: &str| json!([{"requests": ["r"], rule: "example.com/numa"}]);
    // Two, two and one device of a value, and one without any: three of one value there are not.
    let catalog = catalog(
        &on_numa(&[json!(0), json!(0), json!(1), json!(1), json!(2), Value::Null]),
        &Value::Null,
    );
    assert_eq!(
        told(&catalog, json!([request("r", 3)]), numa("matchAttribute")),
        ["request r of claim c needs 3 devices of class gpu; of 6 devices accessible from the \
          node, 6 excluded by constraint #0 (matchAttribute example.com/numa), 0 left"]
    );
    // Three values are there, not four.
    assert_eq!(
        told(&catalog, json!([request("r", 4)]), numa("distinctAttribute")),
        ["request r of claim c needs 4 devices of class gpu; of 6 devices accessible from the \
          node, 3 excluded by constraint #0 (distinctAttribute example.com/numa), 3 left"]
    );
    // Two values serve one request, none both: what each could have alone is not counted.
    let both = json!([{"requests": [], "matchAttribute": "example.com/numa"}]);
    let told = told(&catalog, json!([request("r", 2), request("s", 1)]), both);
    assert!(
        told.iter().all(|line| line
            .ends_with("6 excluded by constraint #0 (matchAttribute example.com/numa), 0 left")),
        "{told:#?}"
    );
}

#[test]
fn constraints_that_only_exclude_together_exclude_no_device_alone() {
    let catalog = catalog(&on_numa(&[json!(0), json!(0), json!(1), json!(1)]), &Value::Null);
    let constraints = json!([
        {"requests": ["r"], "matchAttribute": "example.com/numa"},
        {"requests": ["r"], "distinctAttribute": "example.com/numa"},
    ]);
    assert_eq!(
        told(&catalog, json!([request("r", 2)]), constraints),
        ["request r of claim c needs 2 devices of class gpu; of 4 devices accessible from the \
          node, 4 left"]
    );
}

#[test]
fn a_counter_is_named() {
    let consumes =
        |amount: &str| json!([{"counterSet": "gpu-0", "counters": {"memory": {"value": amount}}}]);
    let devices = json!([
        {"name": "whole", "consumesCounters": consumes("50Gi")},
        {"name": "slice", "consumesCounters": consumes("10Gi")},
    ]);
    let sets = json!([{"name": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}]);
    assert_eq!(
        told(&catalog(&devices, &sets), json!([request("r", 2)]), Value::Null),
        ["request r of claim c needs 2 devices of class gpu; of 2 devices accessible from the \
          node, 1 with too little left in shared counter memory, 1 left"]
    );
}
