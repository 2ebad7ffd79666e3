//! Thresholds of `dovetail audit` in `dovetail.toml`, and what `--explain` says of them.

use serde_json::{Value, json};

use crate::program::Folder;

/// A node that has been cordoned for two hours.
fn folder() -> Folder {
    let folder = Folder::new();
    let offers = json!({"cpu": "190", "memory": "2000Gi", "pods": "110", "nvidia.com/gpu": "8"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "g1", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"unschedulable": true, "taints": [{"key": "node.kubernetes.io/unschedulable",
            "effect": "NoSchedule", "timeAdded": "2026-11-20T10:00:00Z"}]},
        "status": {"capacity": offers, "allocatable": offers,
            "conditions": [{"type": "Ready", "status": "True"}]}
    });
    folder.write("dump.json", &node.to_string());
    folder
}

const CALL: &str = "audit --from dump.json --at 2026-11-20T12:00:00Z --fail-on never";

fn ids(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("findings");
    findings.iter().map(|finding| finding["id"].as_str().expect("an id")).collect()
}

#[test]
fn a_threshold_of_the_file_moves_a_finding_and_is_told() {
    let folder = folder();
    let document = folder.json(CALL);
    assert!(!ids(&document).contains(&"AUT-06"), "{document:#}");
    assert_eq!(document["thresholds"], json!([]));
    folder.write("dovetail.toml", "[audit]\ncordoned_minutes = 119\n");
    let document = folder.json(CALL);
    assert!(ids(&document).contains(&"AUT-06"), "{document:#}");
    let told = json!([{"name": "cordoned_minutes", "value": 119, "default": 240}]);
    assert_eq!(document["thresholds"], told);
    for form in ["table", "markdown", "html"] {
        let text = folder.call(&format!("{CALL} --all-findings --output {form}")).out;
        let text = text.replace("\\_", "_").replace("&#58;", ":");
        let text: Vec<&str> = text.split_whitespace().collect();
        let text = text.join(" ");
        assert!(text.contains("Thresholds that you set: cordoned_minutes = 119."), "{text}");
    }
    let settings = folder.json("config");
    let lines = settings["settings"].as_array().expect("settings");
    let line = lines.iter().find(|line| line["setting"] == "audit.cordoned_minutes");
    let line = line.expect("a threshold");
    assert_eq!((&line["value"], &line["origin"]), (&json!("119"), &json!("file dovetail.toml")));
}

#[test]
fn explaining_a_check_says_the_threshold_in_force_and_where_it_comes_from() {
    let folder = folder();
    let text = folder.call("audit --explain AUT-06").out;
    assert!(text.contains("  cordoned_minutes = 240 (default): Time that"), "{text}");
    folder.write("dovetail.toml", "[audit]\ncordoned_minutes = 60\nlent_idle_percent = 10\n");
    let text = folder.call("audit --explain aut-06").out;
    let told = "  cordoned_minutes = 60 (file dovetail.toml; the default is 240): Time that";
    assert!(text.contains(told), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // What the file says counts as said there, even where it says the default.
    let text = folder.call("audit --explain GOV-03").out;
    assert!(text.contains("lent_idle_percent = 10 (file dovetail.toml"), "{text}");
    assert!(text.contains("least_measured_hours = 12 (default)"), "{text}");
    // A check without thresholds says nothing of any.
    let text = folder.call("audit --explain GOV-01").out;
    assert!(text.contains("ResourceQuota") || text.contains("quota"), "{text}");
    assert!(!text.contains("Thresholds"), "{text}");
}

#[test]
fn a_threshold_that_cannot_be_ends_the_audit() {
    let folder = folder();
    for (section, told) in [
        ("cordoned_minutes = 0", "dovetail.toml:2: audit.cordoned_minutes: 0: expected"),
        ("cordoned_hours = 4", "dovetail.toml:2: audit.cordoned_hours: unknown field"),
        (
            "cordoned_minutes = \"4h\"",
            "dovetail.toml:2: audit.cordoned_minutes: the text \"4h\": expected",
        ),
    ] {
        folder.write("dovetail.toml", &format!("[audit]\n{section}\n"));
        let done = folder.call(CALL);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{section}: {}", done.err);
        assert!(done.err.contains(told), "{section}: {}", done.err);
    }
}
