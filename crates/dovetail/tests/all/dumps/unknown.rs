//! GPUs of which nobody can say whether pods have them: they are no waste, and no patch touches
//! their nodes. A p5.48xlarge has eight H100s for 6.88 an hour each, $39,628.80 a month.

use serde_json::{Value, json};

use super::{AT, LONG_AGO, audit, audit_with, near, node, pod, state};
use crate::cost::dump;
use crate::program::Folder;

const GPU: &str = "nvidia.com/gpu";
const OWNER: (&str, &str) = ("ReplicaSet", "train-1");

/// A node that costs $39,628.80 a month, and what its plugins offer.
fn p5(name: &str, offers: &[(&str, u32)]) -> Value {
    let labels = [
        ("topology.kubernetes.io/region", "us-east-1"),
        ("node.kubernetes.io/instance-type", "p5.48xlarge"),
        ("eks.amazonaws.com/nodegroup", "h100"),
    ];
    node(name, &format!("aws:///us-east-1a/{name}"), offers, &labels)
}

fn without_gpus(name: &str) -> Value {
    let labels = [("node.kubernetes.io/instance-type", "m5.4xlarge")];
    node(name, &format!("aws:///us-east-1a/{name}"), &[], &labels)
}

/// A pod that sees all GPUs of its node and requests none.
fn seeing(name: &str, on: &str) -> Value {
    let mut pod = pod(name, ("ReplicaSet", "lab-1"), ("cpu", 1), on, LONG_AGO);
    pod["spec"]["containers"][0]["env"] =
        json!([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]);
    pod
}

/// Findings that have dollars, and those that change nodes or pods.
fn costly(found: &Value) -> Vec<String> {
    let findings = found["findings"].as_array().unwrap().iter();
    let has = |finding: &&Value| {
        finding["usd_micros_per_month"].as_f64().is_some_and(|micros| micros > 0.0)
            || finding["usd_micros_so_far"].as_f64().is_some_and(|micros| micros > 0.0)
    };
    findings.filter(has).map(|finding| finding["id"].as_str().unwrap().to_owned()).collect()
}

fn wasted(found: &Value) -> f64 {
    found["headline"]["waste_usd_micros_per_month"].as_f64().unwrap_or(0.0) / 1e6
}

/// The plain answer, in one line.
fn words(objects: &[Value]) -> String {
    let folder = Folder::new();
    folder.write("dump.json", &dump(objects));
    let done = folder.call(&format!("audit --from dump.json --at {AT}"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    done.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn gpus_that_pods_use_without_requests_are_neither_free_nor_to_be_removed() {
    let objects = [p5("n1", &[(GPU, 8)]), without_gpus("c1"), seeing("lab-1-a", "n1")];
    let found = audit(&objects, "");
    assert_eq!(state(&found, "unknown").0, 8.0, "{:#}", found["states"]);
    near(wasted(&found), 0.0);
    assert!(costly(&found).is_empty(), "{:#}", found["findings"]);
    let findings = found["findings"].as_array().unwrap();
    let of = |id: &str| findings.iter().filter(|finding| finding["id"] == id).count();
    assert_eq!((of("REQ-02"), of("SCH-02"), of("AUT-03")), (1, 0, 0), "{findings:#?}");
    assert!(found["unseen"].to_string().contains("1 pod may use on 1 node without requests"));
    let short = words(&objects);
    assert!(short.contains("None is known to be free"), "{short}");
    // A pod that holds some of them leaves the others open.
    let holder = pod("train-1-a", OWNER, (GPU, 6), "n1", LONG_AGO);
    let found = audit(&[&objects[..], &[holder]].concat(), "");
    assert_eq!(state(&found, "unknown").0, 8.0, "{:#}", found["states"]);
    near(wasted(&found), 0.0);
    // Without it they are free.
    let found = audit(&objects[..2], "");
    near(wasted(&found), 39_628.8);
}

#[test]
fn no_patch_keeps_pods_off_the_gpus_that_they_use_without_requests() {
    let objects = [p5("n1", &[(GPU, 8)]), without_gpus("c1"), seeing("lab-1-a", "n1")];
    let found = audit(&objects, "");
    let findings = found["findings"].as_array().unwrap().iter();
    let moves = findings.filter(|of| of["id"].as_str().unwrap().starts_with("SCH-0"));
    let patches: Vec<&Value> = moves.filter(|of| of["patches"] != json!([])).collect();
    assert!(patches.is_empty(), "{patches:#?}");
}

/// While the device plugin restarts, the kubelet offers nothing; pods keep their GPUs.
#[test]
fn gpus_that_pods_hold_are_not_unavailable() {
    let of = |offered: u32, more: &[Value], usage: Option<&str>| {
        let mut node = p5("n1", &[(GPU, 8)]);
        node["status"]["allocatable"][GPU] = json!(offered.to_string());
        audit_with(&[&[node][..], more].concat(), usage, "")
    };
    let six = [pod("train-1-a", OWNER, (GPU, 6), "n1", LONG_AGO)];
    for (offered, unavailable) in [(0, 2.0), (5, 2.0), (7, 1.0)] {
        let found = of(offered, &six, None);
        assert_eq!(state(&found, "unavailable").0, unavailable, "{:#}", found["states"]);
        assert_eq!(state(&found, "unknown").0, 6.0, "{:#}", found["states"]);
        let free: f64 = ["free_no_demand", "free"].map(|name| state(&found, name).0).iter().sum();
        assert_eq!(free, 2.0 - unavailable, "{:#}", found["states"]);
    }
    // What was measured counts: all of them busy for a day.
    let noon_s = 1_795_176_000_u64;
    let samples = (1..=144).flat_map(|step| (0..6).map(move |gpu| (noon_s - 600 * step, gpu)));
    let busy: String =
        samples.map(|(time_s, gpu)| format!("{time_s},train-1-a,{gpu},90,ml,n1\n")).collect();
    let found = of(0, &six, Some(&busy));
    assert_eq!(state(&found, "unavailable").0, 2.0, "{:#}", found["states"]);
    near(wasted(&found), 2.0 * 4_953.6);
    // A node that lists none any more, while its type has eight.
    let found = audit(&[&[p5("n1", &[])][..], &six].concat(), "");
    assert_eq!(state(&found, "unavailable").0, 2.0, "{:#}", found["states"]);
    assert_eq!(state(&found, "unknown").0, 6.0, "{:#}", found["states"]);
    let full = [pod("train-1-a", OWNER, (GPU, 8), "n1", LONG_AGO)];
    near(wasted(&of(0, &full, None)), 0.0);
    near(wasted(&of(0, &[], None)), 39_628.8);
}

#[test]
fn the_headline_tells_unavailable_gpus_from_allocated_ones() {
    let mut node = p5("n1", &[(GPU, 8)]);
    node["status"]["allocatable"][GPU] = json!("6");
    let short = words(&[node, pod("train-1-a", OWNER, (GPU, 6), "n1", LONG_AGO)]);
    assert!(short.contains("None is free, and 2 are unavailable."), "{short}");
    assert!(!short.contains("All are allocated"), "{short}");
}

#[test]
fn gpus_under_other_names_are_unknown_and_named() {
    for name in [
        "volcano.sh/vgpu-number",
        "aliyun.com/gpu-mem",
        "k8s.amazonaws.com/vgpu",
        "nvidia.com/GH100_H100_SXM5_80GB",
        "example.com/h100",
    ] {
        let objects = [p5("n1", &[(name, 80)]), without_gpus("c1")];
        let found = audit(&objects, "");
        assert_eq!(state(&found, "unknown").0, 8.0, "{name}: {:#}", found["states"]);
        near(wasted(&found), 0.0);
        assert!(costly(&found).is_empty(), "{name}: {:#}", found["findings"]);
        let told = format!("{name} of node n1");
        assert!(found["unseen"].to_string().contains(&told), "{:#}", found["unseen"]);
    }
    // Network devices hide no GPUs: these are lost.
    let found = audit(&[p5("n1", &[("vpc.amazonaws.com/efa", 32), ("hugepages-2Mi", 5)])], "");
    assert_eq!(state(&found, "unavailable").0, 8.0, "{:#}", found["states"]);
}

#[test]
fn a_cluster_whose_gpus_have_other_names_is_not_called_one_without_gpus() {
    let mut plain = without_gpus("n1");
    for field in ["capacity", "allocatable"] {
        plain["status"][field]["volcano.sh/vgpu-number"] = json!("10");
    }
    let short = words(&[plain, without_gpus("c1")]);
    let expected = "No node has allocatable GPUs, but nodes may offer GPUs as \
                    volcano.sh/vgpu-number of node n1: whether GPUs are wasted is unknown.";
    assert!(short.starts_with(expected), "{short}");
}

#[test]
fn gpus_of_pods_on_nodes_that_list_none_are_not_included() {
    let objects = [
        p5("n1", &[(GPU, 8)]),
        without_gpus("c1"),
        pod("full", OWNER, (GPU, 8), "n1", LONG_AGO),
        pod("odd", OWNER, (GPU, 2), "c1", LONG_AGO),
    ];
    let found = audit(&objects, "");
    assert_eq!(found["headline"]["unknown_gpus"], 2.0);
    assert_eq!(found["headline"]["installed_gpus"], 8.0);
    assert_eq!(found["headline"]["can_only_be_more"], false);
    let told = "2 GPUs of 1 pod on nodes without GPUs: node c1";
    assert!(found["unseen"].to_string().contains(told), "{:#}", found["unseen"]);
}

/// Somebody else's machines, billed by the pod: a limit is no GPU that anybody pays for.
#[test]
fn what_virtual_nodes_offer_is_no_waste() {
    let labels = [("type", "virtual-kubelet"), ("node.kubernetes.io/instance-type", "p5.48xlarge")];
    let objects = [
        p5("n1", &[(GPU, 8)]),
        pod("full", OWNER, (GPU, 8), "n1", LONG_AGO),
        node("virtual-1", "", &[(GPU, 500)], &labels),
        pod("burst", OWNER, (GPU, 3), "virtual-1", LONG_AGO),
    ];
    let found = audit(&objects, "");
    let head = &found["headline"];
    assert_eq!((&head["installed_gpus"], &head["unknown_gpus"]), (&json!(8.0), &json!(3.0)));
    near(wasted(&found), 0.0);
    assert!(costly(&found).is_empty(), "{:#}", found["findings"]);
    assert!(found["unseen"].to_string().contains("GPUs of virtual nodes"), "{:#}", found["unseen"]);
}
