//! What a catalog keeps between questions changes no answer.

use dovetail_devices::{
    AllocationOutcome, CandidateNode, Catalog, ClaimedDevices, Features, allocate,
};
use dovetail_objects::{Labels, ResourceClaim};
use serde_json::{Value, json};

/// With a class of all devices.
fn catalog() -> Catalog {
    let mut catalog = Catalog::new(Features::ALL);
    let class = json!({"metadata": {"name": "any"}, "spec": {}});
    catalog.put_class(serde_json::from_value(class).expect("a class"));
    catalog
}

/// A slice with one device of a node.
fn put(catalog: &mut Catalog, name: &str, node: &str, pool: Value, device: &Value) {
    let spec = json!({"driver": "d", "nodeName": node, "pool": pool, "devices": [device]});
    let slice = json!({"metadata": {"name": name}, "spec": spec});
    catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
}

fn answer(catalog: &Catalog, node: &str, selector: &str) -> AllocationOutcome {
    let selectors = json!([{"cel": {"expression": selector}}]);
    let exactly = json!({"deviceClassName": "any", "selectors": selectors});
    let spec = json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}});
    let claim = json!({"metadata": {"name": "c"}, "spec": spec});
    let claim: ResourceClaim = serde_json::from_value(claim).expect("a claim");
    let (held, labels) = (ClaimedDevices::default(), Labels::default());
    allocate(catalog, &held, CandidateNode { node, labels: &labels }, &[&claim], 100)
}

#[test]
fn what_a_node_offers_follows_the_slices_of_its_pools() {
    let mut catalog = catalog();
    let fits = |catalog: &Catalog| {
        matches!(answer(catalog, "n", "device.driver == 'd'"), AllocationOutcome::Fits(_))
    };
    let pool = |generation: u32, slices: u32| -> Value {
        json!({"name": "p", "generation": generation, "resourceSliceCount": slices})
    };
    let device = json!({"name": "a"});
    put(&mut catalog, "first", "n", pool(1, 2), &device);
    assert!(!fits(&catalog), "a slice is missing");
    put(&mut catalog, "second", "other", pool(1, 2), &json!({"name": "b"}));
    assert!(fits(&catalog), "another node completes the pool");
    put(&mut catalog, "second", "other", pool(2, 1), &json!({"name": "b"}));
    assert!(!fits(&catalog), "another generation replaces the pool");
    catalog.remove_slice("second");
    assert!(!fits(&catalog), "a slice is missing again");
    put(&mut catalog, "first", "n", pool(3, 1), &device);
    assert!(fits(&catalog), "the pool is one slice");
    let tainted = json!({"name": "a", "taints": [{"key": "k", "effect": "NoSchedule"}]});
    put(&mut catalog, "first", "n", pool(3, 1), &tainted);
    assert!(!fits(&catalog), "the device is another");
    put(&mut catalog, "first", "other", pool(3, 1), &device);
    assert!(!fits(&catalog), "the slice is of another node");
}

#[test]
fn devices_that_are_equal_in_what_a_selector_reads_differ_where_it_reads_more() {
    let attributes = [
        json!({}),
        json!({"type": {"string": "gpu"}}),
        json!({"d/type": {"string": "mig"}}),
        json!({"e/type": {"string": "gpu"}}),
        json!({"type": {"string": "mig"}, "e/type": {"string": "mig"}, "uuid": {"string": "1"}}),
        json!({"type": {"string": "mig"}, "e/type": {"string": "mig"}, "uuid": {"string": "2"}}),
        json!({"type": {"bool": true}}),
        json!({"type": {"string": "gpu"}, "driverVersion": {"version": "no version"}}),
        json!({"type": {"string": "gpu"}, "driverVersion": {"version": "1.0.0"}}),
        json!({"type": {"string": "gpu"}, "odd": {}}),
    ];
    let devices: Vec<Value> = attributes
        .iter()
        .flat_map(|attributes| {
            ["1Gi", "2Gi"].map(|memory| {
                json!({"name": "a", "attributes": attributes,
                    "capacity": {"memory": {"value": memory}}})
            })
        })
        .collect();
    let selectors = [
        "device.attributes['d'].type == 'gpu'",
        "device.attributes['d']['type'] == 'mig'",
        "has(device.attributes['e'].type)",
        "device.attributes['e'].type == device.attributes['d'].type",
        "device.attributes['d'].exists(name, name == 'uuid')",
        "'type' in device.attributes['d']",
        "device.capacity['d'].memory.compareTo(quantity('2Gi')) >= 0",
        "['d', 'e'].all(domain, has(device.attributes[domain].type))",
        "device.driver == 'd'",
        "device.attributes['d'].uuid == '2'",
    ];
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let mut all = catalog();
    for (number, device) in devices.iter().enumerate() {
        let pool = json!({"name": format!("p{number}"), "generation": 1, "resourceSliceCount": 1});
        put(&mut all, &format!("s{number}"), &format!("n{number}"), pool, device);
    }
    for selector in selectors {
        for (number, device) in devices.iter().enumerate() {
            let mut alone = catalog();
            put(&mut alone, "s", "n", pool.clone(), device);
            let kept = answer(&all, &format!("n{number}"), selector);
            let expected = answer(&alone, "n", selector);
            let kind = |outcome: &AllocationOutcome| match outcome {
                AllocationOutcome::Error(problem) => {
                    problem.replace(&format!("/p{number}/"), "/p/")
                }
                AllocationOutcome::Fits(_) => "fits".to_owned(),
                other => format!("{other:?}").replace(char::is_numeric, ""),
            };
            assert_eq!(kind(&kept), kind(&expected), "{selector} of {device}");
        }
    }
}
