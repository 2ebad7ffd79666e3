//! The record of a layout change on a node.

use dovetail_inventory::dump::{Keeper, Pseudonyms};
use serde_json::{Value, json};

use crate::facts::{gathered, node};

/// A node with the record of a change at this step.
fn changed(step: &str) -> Value {
    let side = json!({"config": "canary-layout", "gpus": []});
    let record = json!({"step": step, "sinceMs": 1_795_000_000_000_u64, "startedMs": 5,
        "attempt": 2, "from": side, "to": side, "problem": "pod canary/p uses the GPU"});
    let mut node = node("g1", 8);
    node["metadata"]["annotations"] = json!({"dovetail.dev/partition": record.to_string()});
    node
}

#[test]
fn a_stuck_change_is_told_in_a_dump_in_a_collection_and_in_an_anonymised_one() {
    let since = |node: &Value| gathered(std::slice::from_ref(node)).facts.nodes[0].stuck_since_ms;
    for (step, expected) in [("Stuck", Some(1_795_000_000_000)), ("Done", None), ("new", None)] {
        let dump = changed(step);
        let kept = Keeper::default().keep("Node", "v1", &dump).expect("a node");
        let anonymous = Pseudonyms::new([7; 32]).replace(&kept);
        let whole = Pseudonyms::new([7; 32]).replace(&dump);
        for node in [&dump, &kept, &anonymous, &whole] {
            assert_eq!(since(node), expected, "{node}");
        }
        for told in [kept, anonymous, whole] {
            assert!(!told["metadata"]["annotations"].to_string().contains("canary"), "{told}");
        }
    }
    let mut wrong = node("g1", 8);
    wrong["metadata"]["annotations"] = json!({"dovetail.dev/partition": "no record"});
    assert_eq!(since(&wrong), None);
}
