//! How many devices of a class are free, where pods take them one by one.

use dovetail_devices::{CandidateNode, Catalog, ClaimedDevices, Features, free_of_class};
use dovetail_objects::Labels;
use serde_json::{Value, json};

/// A device that draws from a counter of 4; `is_conditional`: it becomes ready after it was
/// allocated.
fn device(name: &str, draws: u32, is_conditional: bool) -> Value {
    let counters = json!({"slices": {"value": draws.to_string()}});
    let mut device = json!({"name": name,
        "consumesCounters": [{"counterSet": "whole", "counters": counters}]});
    if is_conditional {
        device["bindingConditions"] = json!(["ready"]);
        device["bindingFailureConditions"] = json!(["broken"]);
    }
    device
}

fn free(devices: &[Value]) -> usize {
    let mut catalog = Catalog::new(Features::ALL);
    let class = json!({"metadata": {"name": "any"}, "spec": {}});
    catalog.put_class(serde_json::from_value(class).expect("a class"));
    let sets = json!([{"name": "whole", "counters": {"slices": {"value": "4"}}}]);
    for (name, field, content) in
        [("s0", "sharedCounters", sets), ("s1", "devices", json!(devices))]
    {
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
        let mut spec = json!({"driver": "d", "nodeName": "n", "pool": pool});
        spec[field] = content;
        let slice = json!({"metadata": {"name": name}, "spec": spec});
        catalog.put_slice(serde_json::from_value(slice).expect("a slice"));
    }
    let labels = Labels::default();
    let place = CandidateNode { node: "n", labels: &labels };
    free_of_class(&catalog, &ClaimedDevices::default(), place, "any")
}

#[test]
fn devices_under_conditions_count_where_they_leave_more_of_the_others_free() {
    for is_conditional in [false, true] {
        let small = |name: &str| device(name, 2, is_conditional);
        assert_eq!(free(&[device("large", 3, false), small("one"), small("two")]), 2);
    }
}
