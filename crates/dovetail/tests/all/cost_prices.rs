//! Which price a node has where its labels say little, and what is said of prices.

use serde_json::json;

use crate::cost::{HOURS, document, folder, node, of};

/// A node of no cloud that anybody knows has the price that names none, and else that of another place, as an estimate. A
/// price of a day that is yet to come is told.
#[test]
fn a_node_of_an_unknown_provider_is_priced_as_one_or_by_an_estimate_that_is_told() {
    let folder = folder();
    let mut own = node("own", 1, "h100");
    own["spec"]["providerID"] = json!("metal3://rack/7");
    // It is not known whose region that is.
    own["metadata"]["labels"]["topology.kubernetes.io/region"] = json!("rack-row-7");
    folder.write("dump.json", &json!({"kind": "List", "items": [own]}).to_string());
    folder.write("aws.csv", "gpu_model,provider,region,usd_per_gpu_hour\nH100,aws,us-east-1,9\n");
    let found = document(&folder, "--by node --prices aws.csv");
    let place = ["provider", "region"].map(|key| &found["prices"][0][key]);
    assert_eq!(place, [&json!("aws"), &json!("us-east-1")]);
    let price = |rows: &str| {
        let head = "gpu_model,provider,region,usd_per_gpu_hour,as_of\n";
        folder.write("mine.csv", &format!("{head}{rows}"));
        let found = document(&folder, "--by node --prices mine.csv");
        (of(&found, &json!({"node": "own"})) / HOURS, found["notes"].to_string())
    };
    let estimate = "1 GPU of model H100 on nodes whose provider nobody knows: at the price of aws us-east-1, which is an \
                    estimate";
    let (named, notes) = price("H100,aws,us-east-1,9,\n");
    assert_eq!(named, 9_000_000);
    assert!(notes.contains(estimate), "{notes}");
    let (unnamed, notes) = price("H100,aws,us-east-1,9,\nH100,,,2,2999-01-01\n");
    assert_eq!(unnamed, 2_000_000);
    assert!(!notes.contains("estimate"), "{notes}");
    assert!(
        notes.contains("prices of H100 are of 2999-01-01, a day that is yet to come"),
        "{notes}"
    );
}
