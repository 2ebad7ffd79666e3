//! What objects leave open of GPUs is told: whole in JSON, and in short to people.

use serde_json::{Value, json};

use crate::cost::{document, dump, folder, node, pod};

const GPU: &str = "nvidia.com/gpu";

fn write(folder: &crate::program::Folder, objects: &[Value]) {
    folder.write("dump.json", &dump(objects));
}

/// What cannot be so is cut, and what contradicts the pod's own scheduler is unknown; both are
/// told.
#[test]
fn what_could_not_be_read_is_told_with_the_figures() {
    let folder = folder();
    let mut odd = pod("vision", "odd-0", 1, "g1");
    odd["spec"]["containers"] = json!(7);
    let objects = [node("g1", 8, "h100"), odd];
    folder.write("dump.json", &dump(&objects));
    let notes = document(&folder, "--by node")["notes"].to_string();
    let told = "objects that could not be read are not included in any figure: 1 object \
         (first: dump.json: Pod vision/odd-0: field";
    assert!(notes.contains(told), "{notes}");
}

#[test]
fn what_objects_say_that_cannot_be_is_told() {
    let folder = folder();
    let mut huge = node("g2", 1, "h100");
    huge["status"]["allocatable"][GPU] = json!("1e18");
    let mut waits = pod("vision", "wait-0", 2, "");
    waits["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let objects = [
        node("g1", 8, "h100"),
        huge,
        node("g3", 1, "h100"),
        pod("nlp", "fat-0", 4, "g3"),
        pod("vision", "train-0", 6, "g1"),
        waits,
    ];
    folder.write("dump.json", &dump(&objects));
    let found = document(&folder, "--by node,cause");
    let notes = found["notes"].to_string();
    let told = "2 numbers of GPUs in the objects out of range: node g2 offers 1000000000000000000 nvidia.com/gpu \
                (4096 counted); pods on node g3 have 4 nvidia.com/gpu allocated, most of it nlp/fat-0 (1 \
                counted)";
    assert!(notes.contains(told), "{notes}");
    assert!(
        notes.contains("1 pending pod, each of which would fit on nodes with free GPUs")
            && notes.contains("is unknown: vision/wait-0"),
        "{notes}"
    );
    let causes: Vec<&str> = found["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["key"]["cause"].as_str())
        .collect();
    assert!(
        causes.contains(&"free_of_unknown_cause") && !causes.contains(&"free_reserved"),
        "{causes:?}"
    );
    let audit = folder
        .call("audit --from dump.json --at 2026-11-20T12:00:00Z --output json --fail-on never");
    let audit: Value = serde_json::from_str(&audit.out).expect("JSON");
    let unseen = audit["unseen"].to_string();
    assert!(
        unseen.contains(told)
            && unseen.contains("which nodes fit 1 pending pod (")
            && unseen.contains("): vision/wait-0"),
        "{unseen}"
    );
}

/// Eight nodes that say what cannot be: JSON names them all, people see five and how many more
/// there are.
#[test]
fn json_has_every_doubt_and_people_see_the_first() {
    let folder = folder();
    let huge = |place: usize| {
        let mut node = node(&format!("odd-{place}"), 1, "h100");
        node["status"]["allocatable"][GPU] = json!("1e18");
        node
    };
    write(&folder, &(0..8).map(huge).collect::<Vec<_>>());
    let call = |command: &str, form: &str| {
        let at = "--from dump.json --at 2026-11-20T12:00:00Z";
        folder.call(&format!("{command} {at} --output {form}")).out
    };
    for command in ["cost", "cost questions idle", "audit --all-findings"] {
        let (whole, short) = (call(command, "json"), call(command, "table"));
        assert!((0..8).all(|place| whole.contains(&format!("odd-{place} offers"))), "{whole}");
        let short = short.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(short.contains("odd-4 offers") && !short.contains("odd-5 offers"), "{short}");
        assert!(short.contains("; and 3 more"), "{short}");
    }
}

/// Eight GPUs, and a pod that asks for one by HAMi, which nobody judges: seven are free for lack of
/// demand.
#[test]
fn pods_that_nobody_judges_are_told_and_keep_no_gpu_from_having_a_cause() {
    let folder = folder();
    let mut waits = pod("vision", "wait-0", 1, "");
    waits["status"] = json!({"phase": "Pending"});
    waits["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpucores"] = json!(30);
    write(&folder, &[node("g1", 8, "h100"), waits]);
    let found = document(&folder, "--by cause");
    let hours = |cause: &str| {
        let rows = found["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["key"]["cause"] == cause);
        row.map(|row| row["gpu_hours"].as_f64())
    };
    assert_eq!(hours("free_no_demand"), Some(Some(7.0 * 720.0)));
    assert_eq!(hours("free_of_unknown_cause"), Some(Some(720.0)));
    let notes = found["notes"].to_string();
    assert!(notes.contains("why GPUs that 1 pending pod could use are free is unknown"), "{notes}");
    assert!(notes.contains("gpucores") && notes.contains(": vision/wait-0"), "{notes}");
}
