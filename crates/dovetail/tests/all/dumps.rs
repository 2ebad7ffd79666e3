//! Small clusters as `kubectl get -o json` writes them, with their GPUs, states and dollars worked
//! out by hand from list prices (us-east-1: p4d.24xlarge 2.7447, g5.12xlarge 1.418, p5.48xlarge
//! 6.88 a GPU-hour; us-central1: a3-highgpu-8g 11.06125). A month has 720 hours.

mod claimed;
mod clusters;
mod corrections;
mod held_back;
mod unknown;

use serde_json::{Value, json};

use crate::audit_and_bill::bill_agrees;
use crate::cost::dump;
use crate::program::Folder;

const AT: &str = "2026-11-20T12:00:00Z";
const USAGE_HEADER: &str = "timestamp_s,pod,gpu,activity_percent,namespace,node\n";
const LONG_AGO: &str = "2026-11-01T00:00:00Z";

/// A cluster of this room, for tests elsewhere.
pub(crate) struct Dump {
    pub(crate) name: &'static str,
    pub(crate) objects: Vec<Value>,
    pub(crate) at: &'static str,
    /// More flags of an audit.
    pub(crate) flags: &'static str,
    /// A usage file.
    pub(crate) usage: Option<String>,
}

/// All clusters that have GPUs.
pub(crate) fn all() -> Vec<Dump> {
    let plain = |(name, objects)| Dump { name, objects, at: AT, flags: "", usage: None };
    let made = [("EKS, MIG", eks()), ("gang", half_a_gang()), ("GKE", gke())];
    let made = made.into_iter().map(plain);
    made.chain(clusters::all()).chain(held_back::all()).collect()
}

/// A node with these amounts of GPUs, labels, and the identity that its provider gives it.
fn node(name: &str, provider: &str, gpus: &[(&str, u32)], labels: &[(&str, &str)]) -> Value {
    let mut offers = json!({"cpu": "192", "memory": "2000Gi", "pods": "110"});
    let mut own = json!({"kubernetes.io/hostname": name});
    for (resource, count) in gpus {
        offers[*resource] = json!(count.to_string());
    }
    for (label, value) in labels {
        own[*label] = json!(value);
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": own, "creationTimestamp": LONG_AGO},
        "spec": {"providerID": provider},
        "status": {"capacity": offers, "allocatable": offers,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]}
    })
}

/// A pod of an owner that holds so many of a resource on a node since a time, or waits.
fn pod(name: &str, owner: (&str, &str), gpus: (&str, u32), node: &str, since: &str) -> Value {
    let is_placed = !node.is_empty();
    let status = if is_placed { "True" } else { "False" };
    let amounts = json!({gpus.0: gpus.1.to_string()});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": since,
            "labels": {"team": "ml"},
            "ownerReferences": [{"kind": owner.0, "name": owner.1, "controller": true}]},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "python:3.13",
            "resources": {"limits": amounts, "requests": amounts}}]},
        "status": {"phase": if is_placed { "Running" } else { "Pending" }, "conditions": [
            {"type": "PodScheduled", "status": status, "lastTransitionTime": since},
            {"type": "Ready", "status": status, "lastTransitionTime": since}]}
    })
}

/// What `audit` says of these objects.
fn audit(objects: &[Value], flags: &str) -> Value {
    audit_with(objects, None, flags)
}

/// The same with samples of GPUs, as the rows of a usage file.
fn audit_with(objects: &[Value], usage: Option<&str>, flags: &str) -> Value {
    let folder = Folder::new();
    folder.write("dump.json", &dump(objects));
    let usage = usage.map_or("", |rows| {
        folder.write("usage.csv", &format!("{USAGE_HEADER}{rows}"));
        "--usage usage.csv"
    });
    let call = format!("audit --from dump.json --at {AT} --output json {usage} {flags}");
    let done = folder.call(&call);
    let found: Value =
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.err));
    bill_agrees(&folder, &found, &format!("--from dump.json --at {AT} {usage} {flags}"));
    found
}

/// GPUs in a state, and its dollars: a month's, and those so far.
fn state(document: &Value, name: &str) -> (f64, Option<f64>, Option<f64>) {
    let states = document["states"].as_array().unwrap();
    let Some(state) = states.iter().find(|state| state["state"] == name) else {
        return (0.0, None, None);
    };
    let usd = |key: &str| state[key].as_f64().map(|micros| micros / 1e6);
    (state["gpus"].as_f64().unwrap(), usd("usd_micros_per_month"), usd("usd_micros_so_far"))
}

fn finding<'d>(document: &'d Value, id: &str) -> &'d Value {
    let mut findings = document["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("{id}"))
}

/// Alike but for what is rounded to the thousandth of a GPU.
fn near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= expected.abs() / 1000.0 + 0.005,
        "{found}, by hand {expected}"
    );
}

/// EKS with Karpenter: A100s in the balanced MIG layout (two 1g, a 2g, a 3g each), and A10Gs that a
/// plugin offers four times each without GPU Feature Discovery.
fn eks() -> Vec<Value> {
    let mut objects = vec![
        node(
            "mig-1",
            "aws:///us-east-1a/i-1",
            &[
                ("nvidia.com/mig-1g.5gb", 16),
                ("nvidia.com/mig-2g.10gb", 8),
                ("nvidia.com/mig-3g.20gb", 8),
            ],
            &[
                ("karpenter.sh/nodepool", "a100"),
                ("topology.kubernetes.io/region", "us-east-1"),
                ("node.kubernetes.io/instance-type", "p4d.24xlarge"),
                ("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"),
                ("nvidia.com/gpu.count", "8"),
            ],
        ),
        node(
            "ts-1",
            "aws:///us-east-1b/i-2",
            &[("nvidia.com/gpu", 16)],
            &[
                ("karpenter.sh/nodepool", "a10g"),
                ("topology.kubernetes.io/region", "us-east-1"),
                ("node.kubernetes.io/instance-type", "g5.12xlarge"),
                ("karpenter.k8s.aws/instance-gpu-name", "a10g"),
                ("karpenter.k8s.aws/instance-gpu-count", "4"),
            ],
        ),
    ];
    let replica_set = ("ReplicaSet", "serve-1");
    for number in 0..8 {
        let name = format!("three-{number}");
        objects.push(pod(&name, replica_set, ("nvidia.com/mig-3g.20gb", 1), "mig-1", LONG_AGO));
    }
    for number in 0..4 {
        let name = format!("one-{number}");
        objects.push(pod(&name, replica_set, ("nvidia.com/mig-1g.5gb", 1), "mig-1", LONG_AGO));
        let name = format!("slice-{number}");
        objects.push(pod(&name, replica_set, ("nvidia.com/gpu", 1), "ts-1", LONG_AGO));
    }
    objects
}

#[test]
fn mig_and_time_slicing_on_eks_cost_their_list_price() {
    let found = audit(&eks(), "");
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 12.0);
    // 8 · 2.7447 and 4 · 1.418 an hour.
    let bill = 720.0 * (8.0 * 2.7447 + 4.0 * 1.418);
    near(head["bill_usd_micros_per_month"].as_f64().unwrap() / 1e6, bill);
    assert_eq!(state(&found, "unavailable").0, 0.0);
    assert_eq!(state(&found, "free_layout_rest").0, 0.0);
    // Held: 8 · 3/7 and 4 · 1/7 of an A100, and 4 · 1/4 of an A10G.
    near(state(&found, "unknown").0, 4.0 + 1.0);
    let (free, usd, _) = state(&found, "free_no_demand");
    near(free, 4.0 + 3.0);
    near(usd.unwrap(), 720.0 * (4.0 * 2.7447 + 3.0 * 1.418));
    assert_eq!(found["prices"][0]["is_estimate"], false);
    // The report names that a plugin offers 16.
    let told = found["unseen"].to_string();
    assert!(told.contains("16 according to the device plugin"), "{told}");
}

/// Half of a training of four pods with eight GPUs each holds its GPUs for six hours.
fn half_a_gang() -> Vec<Value> {
    let labels = [
        ("topology.kubernetes.io/region", "us-east-1"),
        ("node.kubernetes.io/instance-type", "p5.48xlarge"),
        ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"),
        ("nvidia.com/gpu.count", "8"),
    ];
    let gpus = ("nvidia.com/gpu", 8);
    let since = "2026-11-20T06:00:00Z";
    let mut objects: Vec<Value> = ["h1", "h2"]
        .into_iter()
        .map(|name| node(name, "aws:///us-east-1a/i-0", &[gpus], &labels))
        .collect();
    for (number, on) in ["h1", "h2", "", ""].into_iter().enumerate() {
        objects.push(pod(&format!("run-{number}"), ("PyTorchJob", "run"), gpus, on, since));
    }
    objects
}

#[test]
fn half_a_gang_is_money_so_far_and_no_month_of_it() {
    let since = "2026-11-20T06:00:00Z";
    let found = audit(&half_a_gang(), "");
    // 16 GPUs · 6 h · 6.88.
    assert_eq!(state(&found, "gang_wait"), (16.0, None, Some(660.48)));
    let head = &found["headline"];
    assert_eq!(head["waste_usd_micros_per_month"], 0);
    assert_eq!(head["waste_usd_micros_so_far"], 660_480_000);
    assert_eq!(head["waste_gpu_hours_so_far"], 96.0);
    let claimed = finding(&found, "SCH-09");
    assert_eq!(claimed["usd_micros_so_far"], 660_480_000);
    assert_eq!(claimed["usd_micros_per_month"], Value::Null);
    assert_eq!(claimed["gpu_hours_per_month"], Value::Null);
    assert_eq!(claimed["since"], since);
    assert_eq!(claimed["formula"], "96.0 GPU-hours so far × $6.88 per GPU-hour");
}

/// GKE: a node whose pod has started twelve seconds ago, and one that is empty since it joined.
fn gke() -> Vec<Value> {
    let labels = [
        ("topology.kubernetes.io/region", "us-central1"),
        ("node.kubernetes.io/instance-type", "a3-highgpu-8g"),
        ("cloud.google.com/gke-accelerator", "nvidia-h100-80gb"),
        ("cloud.google.com/gke-accelerator-count", "8"),
        ("cloud.google.com/gke-nodepool", "h100"),
    ];
    let gpus = ("nvidia.com/gpu", 8);
    let mut starts =
        pod("serve-1-a", ("ReplicaSet", "serve-1"), gpus, "k1", "2026-11-20T11:59:48Z");
    starts["status"]["conditions"][1]["status"] = json!("False");
    vec![
        node("k1", "gce://project/us-central1-a/k1", &[gpus], &labels),
        node("k2", "gce://project/us-central1-a/k2", &[gpus], &labels),
        starts,
    ]
}

#[test]
fn seconds_are_no_months_and_an_empty_node_is() {
    let found = audit(&gke(), "");
    // 8 GPUs · 12 s · 11.06125, cut off to the micro-dollar.
    assert_eq!(state(&found, "provisioning"), (8.0, None, Some(0.294_966)));
    // 8 · 720 · 11.06125.
    let month = 63_712.8;
    assert_eq!(state(&found, "free_no_demand"), (8.0, Some(month), None));
    let head = &found["headline"];
    assert_eq!(head["bill_usd_micros_per_month"], 127_425_600_000_i64);
    assert_eq!(head["waste_usd_micros_per_month"], 63_712_800_000_i64);
    // The node can go, and nothing else is wasted.
    assert_eq!(head["returned"]["usd_micros_per_month"], 63_712_800_000_i64);
    assert_eq!(head["returned"]["gpu_hours_per_month"], 5760.0);
    assert_eq!(head["freed"]["gpu_hours_per_month"], 0.0);
    assert_eq!(head["unexplained"]["gpu_hours_per_month"], 0.0);
    assert_eq!(finding(&found, "AUT-03")["since"], LONG_AGO);
}

/// One's own AMD machine: no cloud, no price, until a resource has one. One pod cannot be read, one
/// stands on a node that was not handed over.
#[test]
fn what_has_no_price_is_hours_and_what_was_not_read_is_not_free() {
    let labels = [("amd.com/gpu.product-name", "MI300X")];
    let gpus = |count| ("amd.com/gpu", count);
    let owner = ("ReplicaSet", "serve-1");
    let mut broken = pod("broken", owner, gpus(2), "amd-1", LONG_AGO);
    broken["spec"]["tolerations"] = json!("none");
    let objects = [
        node("amd-1", "", &[gpus(8)], &labels),
        pod("serve-1-a", owner, gpus(2), "amd-1", LONG_AGO),
        pod("elsewhere", owner, gpus(4), "amd-9", LONG_AGO),
        broken,
    ];
    let found = audit(&objects, "");
    let head = &found["headline"];
    assert_eq!(state(&found, "unknown").0, 2.0 + 2.0);
    assert_eq!(state(&found, "free_no_demand"), (4.0, None, None));
    // Those of the broken pod are among the eight of its node.
    assert_eq!(head["unknown_gpus"], 4.0);
    assert_eq!(head["can_only_be_more"], false);
    assert_eq!(head["bill_usd_micros_per_month"], Value::Null);
    assert_eq!(head["unpriced_gpu_hours_per_month"], 5760.0);
    let notes = found["notes"].to_string();
    assert!(notes.contains("--gpu-price amd.com/gpu=USD"), "{notes}");
    let priced = audit(&objects, "--gpu-price amd.com/gpu=2.10");
    let head = &priced["headline"];
    // 8 · 720 · 2.10, and half of it is free.
    assert_eq!(head["bill_usd_micros_per_month"], 12_096_000_000_i64);
    assert_eq!(head["waste_usd_micros_per_month"], 6_048_000_000_i64);
    assert_eq!(head["unpriced_gpu_hours_per_month"], 0.0);
}

/// Two machines of one's own, the first of which a pod holds, as a dump in a folder.
fn two_owned(second: &str, is_held: bool) -> Folder {
    let gpus = ("nvidia.com/gpu", 8);
    let owner = ("ReplicaSet", "serve-1");
    let mut web = pod("web-a", ("ReplicaSet", "web"), ("cpu", 1), "l1", LONG_AGO);
    web["metadata"]["namespace"] = json!("web");
    let mut objects = vec![
        node("l1", "", &[gpus], &[("nvidia.com/gpu.product", "NVIDIA-L40S")]),
        node("l2", "", &[gpus], &[("nvidia.com/gpu.product", second)]),
        pod("serve-1-a", owner, gpus, "l1", LONG_AGO),
        web,
    ];
    if is_held {
        objects.push(pod("serve-1-b", owner, gpus, "l2", LONG_AGO));
    }
    let folder = Folder::new();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    folder.write("dump.json", &list.to_string());
    folder
}

/// The answer for people, in one line.
fn told(folder: &Folder, command: &str) -> String {
    let done = folder.call(&format!("{command} --from dump.json --at {AT}"));
    assert!(done.out.lines().all(|line| line.chars().count() <= 100), "{}", done.out);
    done.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_node_that_can_go_is_none_for_pending_pods_where_nothing_has_a_price() {
    let folder = two_owned("NVIDIA-L40S", false);
    let text = told(&folder, "audit");
    assert!(text.contains("Fixes let you remove nodes with 5,760 GPU-hours a month."), "{text}");
    assert!(text.contains("--gpu-price L40S=USD") && !text.contains("pending pods"), "{text}");
    let text = told(&folder, "audit --gpu-price L40S=1");
    assert!(text.contains("Fixes lower the bill by about $5,760 ("), "{text}");
    assert!(!text.contains("=USD"), "{text}");
}

#[test]
fn amounts_say_how_many_gpu_hours_they_leave_out() {
    let folder = two_owned("NVIDIA-H100-80GB-HBM3", true);
    let flags = "--gpu-price L40S=1";
    let text = told(&folder, &format!("audit {flags}"));
    let paid =
        "You pay about $5,760 a month for 8 of 16 GPUs; the others (H100) have no known price.";
    assert!(text.contains(paid), "{text}");
    let left_out = "Amounts leave out 5,760 GPU-hours a month";
    assert!(text.contains(&format!("{left_out} (50.0% of all), which have no price.")), "{text}");
    let state = "allocated, use not measured (5,760 GPU-h unpriced) 16.0 100.0% ≥ $5,760";
    assert!(text.contains(state), "{text}");
    let text = told(&folder, &format!("cost {flags} --by namespace"));
    assert!(text.contains(&format!("{left_out}, which have no price.")), "{text}");
    assert!(text.contains("11,520 5,760 ≥ $5,760.00"), "{text}");
}

/// Nothing names the model of the last node.
#[test]
fn gpus_of_unknown_model_are_among_those_without_a_price() {
    let of = |name: &str, model: &str| {
        node(name, "", &[("nvidia.com/gpu", 8)], &[("nvidia.com/gpu.product", model)])
    };
    let objects = [
        of("l1", "NVIDIA-L40S"),
        of("h1", "NVIDIA-H100-80GB-HBM3"),
        node("g1", "", &[("habana.ai/gaudi", 8)], &[]),
    ];
    let folder = Folder::new();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    folder.write("dump.json", &list.to_string());
    let text = told(&folder, "audit --gpu-price L40S=1");
    let others = "for 8 of 24 GPUs; the others (H100, 8 of unknown model) have no known price.";
    assert!(text.contains(others), "{text}");
}

/// Where no price is known: the same machine in the nearest region that is, spot by what it costs
/// elsewhere, and both say so.
#[test]
fn prices_of_other_regions_are_estimates_that_name_theirs() {
    let of = |bought: &str| {
        let labels = [
            ("topology.kubernetes.io/region", "eu-west-1"),
            ("node.kubernetes.io/instance-type", "p5.48xlarge"),
            ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"),
            ("karpenter.sh/capacity-type", bought),
        ];
        let objects = [node("h1", "aws:///eu-west-1a/i-0", &[("nvidia.com/gpu", 8)], &labels)];
        audit(&objects, "")["prices"][0].clone()
    };
    let on_demand = of("on-demand");
    assert_eq!(on_demand["usd_micros_per_gpu_hour"], 6_880_000);
    assert_eq!(
        (&on_demand["is_estimate"], &on_demand["estimated_from"]),
        (&json!(true), &json!("us-east-1"))
    );
    let spot = of("spot");
    let usd = spot["usd_micros_per_gpu_hour"].as_f64().unwrap() / 1e6;
    // The median of what Google's spot H100s cost of those on demand, over 73 machines and regions.
    near(usd, 6.88 * 0.390_945);
    let source = spot["source"].as_str().unwrap();
    assert!(source.starts_with("estimate: ") && source.contains("us-east-1"), "{source}");
}

/// The free GPUs are those without a price, not those that the bill covers.
#[test]
fn free_gpus_are_counted_of_all_where_some_have_no_price() {
    let text = told(&two_owned("NVIDIA-H100-80GB-HBM3", false), "audit --gpu-price L40S=1");
    let free = "; the others (H100) have no known price. 8 of all 16 GPUs are allocated to no pod.";
    assert!(text.contains(free), "{text}");
}

/// Nothing is extrapolated to a month yet, and no pod is pending.
#[test]
fn a_young_node_whose_pods_fit_elsewhere_is_for_no_pending_pods() {
    let recently = "2026-11-20T11:40:00Z";
    let gpus = ("nvidia.com/gpu", 8);
    let mut objects = Vec::new();
    for (name, on) in [("serve-1-a", "l1"), ("serve-1-b", "l2")] {
        let mut young = node(on, "", &[gpus], &[("nvidia.com/gpu.product", "NVIDIA-L40S")]);
        young["metadata"]["creationTimestamp"] = json!(recently);
        objects.push(young);
        objects.push(pod(name, ("ReplicaSet", "serve-1"), ("nvidia.com/gpu", 2), on, recently));
    }
    let mut web = pod("web-a", ("ReplicaSet", "web"), ("cpu", 1), "l1", recently);
    web["metadata"]["namespace"] = json!("web");
    objects.push(web);
    let found = audit(&objects, "--gpu-price L40S=1");
    let emptied = found["findings"].as_array().unwrap();
    let emptied = emptied.iter().find(|finding| finding["id"] == "AUT-07");
    let emptied = emptied.unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(emptied["usd_micros_per_month"], Value::Null);
    assert_eq!(emptied["brings"], "lowers the bill: a node can be removed");
}
