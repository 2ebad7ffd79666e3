//! `dovetail partition`: plans and sizes, and bad input.

use serde_json::{Value, json};

use crate::program::Folder;

const WORLD: &str = r#"{"gpus": [[["1g.5gb", 5], ["2g.10gb", 2]], [["3g.20gb", 0]], []],
 "demand": {"1g.5gb": 3, "3g.20gb": 2, "4g.20gb": 1}, "mix": "ignored"}"#;

#[test]
fn fifty_tenants_need_eight_gpus() {
    let folder = Folder::new();
    let call = "partition size --gpu A100-80GB --demand 1g.10gb=50 --gpu-price A100-80GB=0.66";
    let size = folder.json(call);
    assert_eq!((&size["gpus"], &size["lower_bound"]), (&json!(8), &json!(8)));
    let dollars = |key: &str| (size[key].as_f64().unwrap() * 100.0).round();
    assert_eq!(
        (dollars("usd_per_month"), dollars("whole_usd_per_month")),
        (380_160.0, 2_376_000.0)
    );
    let text = folder.call(call).out;
    assert!(text.contains("8 × A100-80GB (proven minimum): $3,801.60 a month"), "{text}");
    // The names that pods use.
    for name in ["mig-1g.10gb", "nvidia.com/mig-1g.10gb"] {
        let of_name = folder.json(&call.replace("1g.10gb", name));
        assert_eq!((&of_name["gpus"], &of_name["demand"]), (&size["gpus"], &size["demand"]));
    }
}

#[test]
fn a_world_is_planned_around_what_is_in_use() {
    let folder = Folder::new();
    folder.write("world.json", WORLD);
    let call = "partition plan --world world.json --gpu-price A100-40GB=2";
    let plan = folder.json(call);
    assert_eq!(plan["accepted"], json!({"1g.5gb": 3, "3g.20gb": 2, "4g.20gb": 1}));
    assert_eq!(plan["accepted_compute_slices"], plan["upper_bound_compute_slices"]);
    assert_eq!((&plan["created"], &plan["removed"]), (&json!(6), &json!(0)));
    for gpu in plan["gpus"].as_array().unwrap() {
        for held in gpu["from"].as_array().unwrap() {
            assert!(gpu["to"].as_array().unwrap().contains(held), "{gpu}");
        }
    }
    // 13 of 21 slices of GPUs at two dollars, for 720 hours.
    let dollars = plan["usd_per_month"].as_f64().unwrap();
    assert!((dollars - 13.0 / 7.0 * 2.0 * 720.0).abs() < 0.01, "{dollars}");
    let empty = r#"{"gpus": [], "demand": {"1g.5gb": 1}}"#;
    folder.write("empty.json", empty);
    let nothing = folder.call("partition plan --world empty.json --output json").out;
    assert!(!nothing.contains("-0.0"), "{nothing}");
    let text = folder.call(call).out;
    for told in ["6 of 6", "13 (no plan serves more)", "6 created, 0 removed", "[3g]"] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn slices_that_come_and_go_are_rejected_less_often_than_by_kube_scheduler() {
    let folder = Folder::new();
    let call = "sim run --protocol slices --nodes 5x8 --gpu A100-40GB --mix bimodal --load 0.9 \
                --requests 2000 --seed 3";
    let ours = folder.json(call);
    assert_eq!((&ours["policy"], &ours["gpus"]), (&json!("dovetail"), &json!(40)));
    assert_eq!((&ours["requests"], &ours["requests_counted"]), (&json!(2_000), &json!(1_500)));
    assert_eq!((&ours["moves"], &ours["moved_gpu_s"]), (&json!(0), &json!(0.0)));
    let h100 = folder.json(&call.replace("A100-40GB", "H100").replace("2000", "20"));
    assert_eq!(h100["gpu"], "H100", "{h100}");
    let kube = folder.json(&format!("{call} --policy kube-default"));
    let share = |of: &Value| of["rejected_share"].as_f64().unwrap();
    assert!(share(&ours) < 0.75 * share(&kube), "{ours} {kube}");
    let moving = folder.json(&format!("{call} --moves 1"));
    assert!(share(&moving) < share(&ours) && moving["moves"].as_u64() > Some(0), "{moving}");
    let seconds = |key: &str| moving[key].as_f64().unwrap();
    assert!(seconds("moved_gpu_s") <= 0.012 * seconds("served_gpu_s"), "{moving}");
    let text = folder.call(&format!("{call} --moves 1")).out;
    assert!(text.contains("of the GPU time served"), "{text}");
}

#[test]
fn flags_of_slices_are_refused_with_what_to_do() {
    let folder = Folder::new();
    let call = "sim run --protocol slices --nodes 5x8 --gpu A100-40GB --mix big --load 0.9";
    for (more, told) in [
        ("--order fifo", "--order requires --protocol timed; omit it"),
        ("--record r", "--record: runs with --protocol slices cannot be recorded; omit it"),
        (
            "--policy dot-product",
            "--policy dot-product does not support slices; use dovetail, kube-",
        ),
        ("--moves 101", "--moves 101: expected 0 to 100 percent"),
        ("--requests 0", "--requests 0: expected 1 to 10000000"),
    ] {
        let called = folder.call(&format!("{call} {more}"));
        assert!(called.code == Some(2) && called.err.contains(told), "{more}: {}", called.err);
    }
    for load in ["0", "1e-300", "0.0009", "10.1", "nan", "inf"] {
        let called = folder.call(&call.replace("0.9", load));
        assert_eq!(called.code, Some(2), "{load}: {}", called.err);
        assert!(called.err.contains(": expected 0.001 to 10"), "{load}: {}", called.err);
    }
    let least = folder.json(&call.replace("0.9", "0.001 --requests 20"));
    assert_eq!(least["rejected"], 0, "{least}");
    let unknown = folder.call(&call.replace("A100-40GB", "V100"));
    assert!(unknown.err.contains("--gpu V100: its MIG profiles are unknown"), "{}", unknown.err);
}

pub(crate) fn node(name: &str, offers: &Value, labels: &Value) -> Value {
    let mut all = json!({"cpu": "64", "memory": "512Gi", "pods": "110"});
    all.as_object_mut().unwrap().extend(offers.as_object().unwrap().clone());
    let mut of_node = json!({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
        "nvidia.com/gpu.count": "2", "kubernetes.io/hostname": name});
    of_node.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": of_node},
        "status": {"capacity": all, "allocatable": all,
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

pub(crate) fn pod(
    name: &str,
    resource: &str,
    count: u32,
    node: Option<&str>,
    more: &Value,
) -> Value {
    let amounts = json!({"cpu": "1", "memory": "1Gi", (resource): count.to_string()});
    let mut spec = json!({"containers": [{"name": "c", "image": "i",
        "resources": {"requests": amounts, "limits": amounts}}]});
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
    }
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": "2026-11-20T11:00:00Z"},
        "spec": spec, "status": {"phase": if node.is_some() { "Running" } else { "Pending" }}})
}

/// A pending pod whose queue may hold no more, as the scheduler says.
fn beyond_quota(mut pod: Value) -> Value {
    pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False",
        "reason": "WaitingForQuota", "message": "queue team is at its limit"}]);
    pod
}

/// Two nodes that are cut for small pods, one of them in use; one with whole GPUs.
fn cluster(folder: &Folder, pods: Vec<Value>) {
    let small = json!({"nvidia.com/mig-1g.10gb": "14"});
    let whole = json!({"nvidia.com/gpu": "2"});
    let mut items = vec![
        node("empty", &small, &json!({"nvidia.com/mig.config.state": "success"})),
        node("busy", &small, &json!({})),
        node("whole", &whole, &json!({"pool": "shared"})),
        pod("runs", "nvidia.com/mig-1g.10gb", 1, Some("busy"), &json!({})),
    ];
    items.extend(pods);
    folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
}

const CALL: &str = "partition plan --from dump.json --at 2026-11-20T12:00:00Z";

pub(crate) fn row<'p>(plan: &'p Value, node: &str, index: u64) -> &'p Value {
    let mut rows = plan["gpus"].as_array().unwrap().iter();
    rows.find(|row| row["node"] == node && row["index"] == index).unwrap()
}

pub(crate) fn profiles(row: &Value, layout: &str) -> Vec<String> {
    let instances = row[layout].as_array().unwrap().iter();
    instances.map(|one| one["profile"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_cluster_is_planned_on_nodes_without_gpu_pods() {
    let folder = Folder::new();
    let elsewhere = json!({"nodeSelector": {"kubernetes.io/hostname": "busy"}});
    cluster(
        &folder,
        vec![
            pod("large-0", "nvidia.com/mig-3g.40gb", 1, None, &json!({})),
            pod("large-1", "nvidia.com/mig-3g.40gb", 1, None, &json!({})),
            pod("large-2", "nvidia.com/mig-3g.40gb", 1, None, &elsewhere),
            pod("small", "nvidia.com/mig-1g.10gb", 1, None, &elsewhere),
            pod("two", "nvidia.com/mig-1g.10gb", 2, None, &json!({})),
            pod("strange", "nvidia.com/mig-1g.5gb", 1, None, &json!({})),
            beyond_quota(pod("waits", "nvidia.com/mig-2g.20gb", 1, None, &json!({}))),
        ],
    );
    let plan = folder.json(CALL);
    // Both on one GPU of the empty node; the small one has an instance where it may go, and the pod
    // with two has both on one node.
    assert_eq!(plan["accepted"], json!({"1g.10gb": 3, "3g.40gb": 2}));
    assert_eq!(plan["demand"], json!({"1g.10gb": 3, "3g.40gb": 3}));
    let changed: Vec<&Value> =
        plan["gpus"].as_array().unwrap().iter().filter(|row| row["from"] != row["to"]).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0]["node"], "empty");
    assert_eq!(profiles(changed[0], "from"), ["1g.10gb"; 7]);
    assert_eq!(profiles(changed[0], "to")[..2], ["3g.40gb", "3g.40gb"]);
    assert_eq!(plan["unavailable_gpu_s"], 180.0);
    assert!(profiles(row(&plan, "whole", 0), "to").is_empty());
    let text = folder.call(CALL).out;
    for told in [
        "4 of 5",
        "180 GPU-seconds",
        "no GPU of the cluster has a profile `1g.5gb`",
        "waits for the quota of its queue",
        "whole",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

/// A node with one GPU of a product, which offers so many of a resource.
pub(crate) fn one_gpu(name: &str, product: &str, resource: &str, count: u32) -> Value {
    let labels = json!({"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "1"});
    node(name, &json!({(resource): count.to_string()}), &labels)
}

/// Nodes that a plan for these objects changes.
pub(crate) fn changed(plan: &Value) -> Vec<&str> {
    let rows = plan["gpus"].as_array().unwrap().iter();
    rows.filter(|row| row["from"] != row["to"]).map(|row| row["node"].as_str().unwrap()).collect()
}

pub(crate) fn planned(folder: &Folder, items: &[Value], more: &str) -> Value {
    folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
    folder.json(&format!("{CALL} {more}"))
}

pub(crate) const A100: &str = "NVIDIA-A100-SXM4-80GB";

/// A policy lists what may be created: what is there and not listed serves the pods that wait.
#[test]
fn idle_instances_that_the_policy_does_not_list_serve_pods() {
    let folder = Folder::new();
    let halves = one_gpu("halves", A100, "nvidia.com/mig-3g.40gb", 2);
    let small = one_gpu("small", A100, "nvidia.com/mig-1g.10gb", 7);
    let asks = |name: &str, profile: &str| {
        pod(name, &format!("nvidia.com/mig-{profile}"), 1, None, &json!({}))
    };
    let pods = vec![asks("a", "3g.40gb"), asks("b", "3g.40gb"), asks("c", "7g.80gb")];
    let object = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
        "metadata": {"name": "p"}, "spec": {"mode": "mig", "profiles": ["7g.80gb"]}});
    folder.write("policy.json", &object.to_string());
    let plan_of = |nodes: Vec<Value>, pods: Vec<Value>| {
        planned(&folder, &[nodes, pods].concat(), "--policy policy.json")
    };
    let both = plan_of(vec![halves.clone(), small], pods.clone());
    assert_eq!(both["accepted"], json!({"3g.40gb": 2, "7g.80gb": 1}));
    assert_eq!((changed(&both), &both["accepted_compute_slices"]), (vec!["small"], &json!(13)));
    // The pods start there as it is, and no later change would make up for it.
    let one = plan_of(vec![halves.clone()], pods.clone());
    assert_eq!(one["accepted"], json!({"3g.40gb": 2, "7g.80gb": 0}));
    assert_eq!((changed(&one), &one["upper_bound_compute_slices"]), (vec![], &json!(7)));
    // For a third one nothing is created.
    let third = plan_of(vec![halves.clone()], [pods, vec![asks("d", "3g.40gb")]].concat());
    assert_eq!(third["demand"], json!({"3g.40gb": 2, "7g.80gb": 1}));
    assert_eq!(third["not_planned"], json!({"the policy does not list the profile `3g.40gb`": 1}));
    // Nothing waits for them.
    let free = plan_of(vec![halves], vec![asks("c", "7g.80gb")]);
    assert_eq!((&free["accepted"], changed(&free)), (&json!({"7g.80gb": 1}), vec!["halves"]));
}

#[test]
fn a_pod_that_is_being_deleted_causes_no_change() {
    let folder = Folder::new();
    let small = one_gpu("small", A100, "nvidia.com/mig-1g.10gb", 7);
    let mut asks = pod("asks", "nvidia.com/mig-3g.40gb", 1, None, &json!({}));
    let stays = planned(&folder, &[small.clone(), asks.clone()], "");
    assert_eq!(changed(&stays), ["small"]);
    asks["metadata"]["deletionTimestamp"] = json!("2026-11-20T11:30:00Z");
    asks["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    let goes = planned(&folder, &[small, asks], "");
    assert_eq!((&goes["accepted"], changed(&goes)), (&json!({}), vec![]));
}

#[test]
fn the_example_shows_a_change_that_is_worth_it() {
    let folder = Folder::new();
    let call = "partition plan --example";
    let plan = folder.json(call);
    let changed: Vec<&Value> =
        plan["gpus"].as_array().unwrap().iter().filter(|row| row["from"] != row["to"]).collect();
    assert_eq!(changed.len(), 2, "{changed:?}");
    for row in changed {
        assert_eq!(profiles(row, "from"), ["1g.10gb"; 7]);
        assert_eq!(profiles(row, "to"), ["3g.40gb"; 2]);
    }
    assert_eq!(plan["accepted"], json!({"3g.40gb": 4}));
    assert_eq!(plan["unavailable_gpu_s"], 360.0);
    assert!(plan["usd_per_month"].as_f64().is_some_and(|usd| usd > 0.0), "{plan}");
    let text = folder.call(call).out;
    for told in ["[1g]×7", "[3g][3g]", "2 of 164 GPUs change", "360 GPU-seconds", "put to use"] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn the_purchase_option_of_a_flag_counts_before_that_of_a_label() {
    let folder = Folder::new();
    folder.write(
        "p.csv",
        "gpu_model,usd_per_gpu_hour,purchase\nA100-80GB,3,on_demand\nA100-80GB,1,spot\n",
    );
    let mut node = one_gpu("spot", A100, "nvidia.com/mig-1g.10gb", 7);
    node["metadata"]["labels"]["karpenter.sh/capacity-type"] = json!("spot");
    let asks = pod("asks", "nvidia.com/mig-3g.40gb", 1, None, &json!({}));
    let usd = |flags: &str| {
        let flags = format!("--prices p.csv {flags}");
        let plan = planned(&folder, &[node.clone(), asks.clone()], &flags);
        plan["usd_per_month"].as_f64().expect("a price")
    };
    let by_label = usd("");
    assert!((usd("--purchase spot") - by_label).abs() < 0.01, "{by_label}");
    let by_flag = usd("--purchase on_demand");
    assert!((by_flag / by_label - 3.0).abs() < 0.01, "{by_flag} of {by_label}");
}

/// Nodes that HAMi or Volcano shares out, and one on which Volcano has given out a GPU although the
/// node does not say that it does: their GPUs are not free, and do not change.
#[test]
fn gpus_that_hami_or_volcano_gives_out_do_not_change() {
    let folder = Folder::new();
    let whole = json!({"nvidia.com/gpu": "2"});
    let registered = |name: &str, offers: Value, key: &str, list: &str| {
        let mut node = node(name, &offers, &json!({}));
        node["metadata"]["annotations"] = json!({(key): list});
        node
    };
    let mut shares = pod("shares", "example.com/none", 0, Some("unsaid"), &json!({}));
    shares["metadata"]["annotations"] = json!({"volcano.sh/gpu-index": "1"});
    let mut items = vec![
        registered(
            "hami",
            json!({"nvidia.com/gpu": "20"}),
            "hami.io/node-nvidia-register",
            "GPU-1,10,81920,100,NVIDIA-A100,0,true:GPU-2,10,81920,100,NVIDIA-A100,0,true:",
        ),
        registered(
            "volcano",
            json!({"volcano.sh/vgpu-number": "20"}),
            "volcano.sh/node-vgpu-register",
            "GPU-3,10,81920,NVIDIA-A100,true:GPU-4,10,81920,NVIDIA-A100,true:",
        ),
        node("unsaid", &whole, &json!({})),
        shares,
        pod("small", "nvidia.com/mig-1g.10gb", 1, None, &json!({})),
    ];
    let object = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
        "metadata": {"name": "p"}, "spec": {"mode": "mig", "allowModeChange": true}});
    folder.write("policy.json", &object.to_string());
    let call = format!("{CALL} --policy policy.json");
    let planned = |items: &[Value]| {
        folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
        (folder.json(&call)["accepted"].clone(), folder.call(&call).out)
    };
    let (accepted, text) = planned(&items);
    assert_eq!(accepted, json!({"1g.10gb": 0}));
    for told in [
        "HAMi shares the GPUs of the node (hami.io/node-nvidia-register)",
        "Volcano shares the GPUs of the node (volcano.sh/node-vgpu-register)",
        "pods use GPUs of the node",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    items[3]["metadata"]["annotations"] = json!({});
    assert_eq!(planned(&items).0, json!({"1g.10gb": 1}));
}

#[test]
fn whole_gpus_are_cut_where_the_policy_allows_it_and_nobody_waits_for_them() {
    let folder = Folder::new();
    let half = |name| pod(name, "nvidia.com/mig-4g.40gb", 1, None, &json!({}));
    let policy = |spec: Value| {
        let object = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
            "metadata": {"name": "p"}, "spec": spec});
        folder.write("policy.json", &object.to_string());
        folder.json(&format!("{CALL} --policy policy.json"))
    };
    cluster(&folder, vec![half("a"), half("b"), half("c")]);
    let shared =
        json!({"mode": "mig", "nodeSelector": {"pool": "shared"}, "allowModeChange": true});
    let plan = policy(shared.clone());
    assert_eq!(plan["accepted"], json!({"4g.40gb": 2}));
    assert_eq!(profiles(row(&plan, "whole", 0), "to"), ["4g.40gb"]);
    let mut kept = shared.clone();
    kept["keepWhole"] = json!(1);
    assert_eq!(policy(kept)["accepted"], json!({"4g.40gb": 1}));
    let mut other = shared.clone();
    other["profiles"] = json!(["3g.40gb"]);
    assert_eq!(policy(other)["accepted"], json!({}));
    cluster(&folder, vec![half("a"), half("b"), pod("w", "nvidia.com/gpu", 1, None, &json!({}))]);
    assert_eq!(policy(shared.clone())["accepted"], json!({"4g.40gb": 1}));
    let waits = beyond_quota(pod("w", "nvidia.com/gpu", 1, None, &json!({})));
    cluster(&folder, vec![half("a"), half("b"), waits]);
    assert_eq!(policy(shared)["accepted"], json!({"4g.40gb": 2}));
}

/// Files that are refused: name, text, call and what is said.
fn refuses(cases: &[(&str, &str, &str, &str)]) {
    let folder = Folder::new();
    cluster(&folder, Vec::new());
    for (file, text, call, told) in cases {
        folder.write(file, text);
        let done = folder.call(&format!("partition plan {call}"));
        assert_eq!(done.code, Some(3), "{file}: {done:?}");
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
}

#[test]
fn bad_worlds_end_with_exit_code_three_and_name_the_field() {
    refuses(&[
        (
            "w.json",
            r#"{"gpus": [[["1g.5gb", "x"]]], "demand": {}}"#,
            "--world w.json",
            "w.json:1:25: field `gpus[0][0][1]`",
        ),
        (
            "w.json",
            "{\"gpus\": [\n[],\n[[\"1g.5gb\", 0], [\"7g.40gb\", 0]]], \"demand\": {}}",
            "--world w.json",
            "w.json:3: field `gpus[1]`: GPU number 1: `7g.40gb` at memory slice 0",
        ),
        (
            "w.json",
            "{\"model\": \"A30\", \"gpus\": [],\n\"demand\": {\"1g.6gb\": 1,\n\"7g.40gb\": 1}}",
            "--world w.json",
            "w.json:3: field `demand`: A30 has no profile `7g.40gb`",
        ),
        (
            "w.json",
            r#"{"gpus": []}"#,
            "--world w.json",
            "w.json:1:12: not a world: missing field `demand`",
        ),
        (
            "w.json",
            r#"{"gpus": [], "demand": {"9g.99gb": 1}}"#,
            "--world w.json",
            "w.json:1: no known GPU model has all profiles",
        ),
        ("w.json", "[{}]", "--world w.json", "w.json:1: a list: write each"),
        (
            "w.json",
            r#"{"model": "A30", "gpus": [], "demand": {}} more"#,
            "--world w.json",
            "w.json:1:44: text after the world",
        ),
        (
            "w.json",
            "{\"gpus\": [[]], \"demand\": {\"1g.5gb\": 1},\n\"modle\": \"A100-40GB\"}",
            "--world w.json",
            "w.json:2: unknown field `modle`: expected gpus, demand, model",
        ),
        (
            "w.json",
            r#"{"gpus": [[]], "demand": {"1g.5gb": 1, "1g.5gb": 2}}"#,
            "--world w.json",
            ": field `demand`: 1g.5gb is listed twice",
        ),
        (
            "w.json",
            r#"{"gpus": [[]], "demand": {"1g.5gb": 4000000000}}"#,
            "--world w.json",
            ": field `demand`: 1g.5gb: 4000000000 pods: expected at most 1000000",
        ),
    ]);
}

#[test]
fn bad_policies_and_tables_end_with_exit_code_three_and_name_the_field() {
    refuses(&[
        (
            "p.json",
            r#"{"kind": "SharingPolicy", "apiVersion": "dovetail.dev/v1alpha1", "spec": {"mode": "mps"}}"#,
            "--from dump.json --policy p.json",
            "p.json:1: field `spec.replicas`: mode mps needs",
        ),
        (
            "p.json",
            r#"{"kind": "SharingPolicy", "apiVersion": "dovetail.dev/v1alpha1", "spec": {"mode": "whole"}}"#,
            "--from dump.json --policy p.json",
            "p.json:1: field `spec.mode`: `whole`: only mode `mig` has layouts to plan",
        ),
        (
            "p.json",
            r#"{"kind": "SharingPolicy", "apiVersion": "dovetail.dev/v1alpha1", "spec": {"mode": "mig", "profiles": ["1g.10gb", "1g.10gb"]}}"#,
            "--from dump.json --policy p.json",
            "p.json:1: field `spec.profiles[1]`: 1g.10gb is listed twice",
        ),
        (
            "p.json",
            r#"{"kind": "SharingPolicy", "apiVersion": "dovetail.dev/v1alpha1", "spec": {"mode": "mig", "kepWhole": 1}}"#,
            "--from dump.json --policy p.json",
            "unknown field `kepWhole`",
        ),
        (
            "p.yaml",
            "kind: SharingPolicy\napiVersion: dovetail.dev/v1alpha1\nspec:\n  mode: mig\n  keepWhole: 2000000\n",
            "--from dump.json --policy p.yaml",
            "p.yaml:5: field `spec.keepWhole`: 2000000: must be 0 to 1000000",
        ),
        ("dovetail.toml", "[[mig.table\nname = \"X\"\n", "--from dump.json", ": mig.table: "),
        (
            "dovetail.toml",
            "[[mig.table]]\nname = \"X\"\nmemory_slices = 0\ncompute_slices = 4\nprofiles = []\n",
            "--from dump.json",
            "dovetail.toml:3: mig.table, number 1: memory_slices: 0: expected 1 to 15",
        ),
    ]);
}

#[test]
fn sizes_of_unknown_gpus_and_profiles_are_refused() {
    let folder = Folder::new();
    for (call, told) in [
        (
            "partition size --gpu A100 --demand 1g.10gb=1",
            "--gpu A100: add its memory size, such as A100-40GB or A100-80GB",
        ),
        (
            "partition size --gpu T4 --demand 1g.5gb=1",
            "--gpu T4: its MIG profiles are unknown; use one of",
        ),
        (
            "partition size --gpu A100-40GB --demand 1g.10gb",
            "--demand 1g.10gb: write PROFILE=COUNT",
        ),
        (
            "partition size --gpu A30 --demand 1g.10gb=1",
            "A30 has no profile `1g.10gb`; it has 1g.6gb",
        ),
    ] {
        let done = folder.call(call);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains(told), "{told}: {}", done.err);
    }
}

#[test]
fn a_node_that_contradicts_its_label_is_left_alone() {
    let folder = Folder::new();
    let full = json!({"nvidia.com/mig-7g.80gb": "2"});
    for (count, left) in [("1", true), ("2", false)] {
        let items = json!([
            node("odd", &full, &json!({"nvidia.com/gpu.count": count})),
            pod("p", "nvidia.com/mig-3g.40gb", 1, None, &json!({})),
        ]);
        folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
        let plan = folder.json(CALL);
        let why = "its instances need more GPUs than it has according to nvidia.com/gpu.count; \
                   replicas of MIG instances are not planned";
        assert_eq!(plan["left_alone"].get(why).is_some(), left, "{plan}");
        assert_eq!(plan["gpus"].as_array().unwrap().is_empty(), left, "{plan}");
    }
}

#[test]
fn a_world_without_gpus_serves_nothing() {
    let folder = Folder::new();
    folder.write("w.json", r#"{"model": "A100-40GB", "gpus": [], "demand": {"1g.5gb": 3}}"#);
    let plan = folder.json("partition plan --world w.json");
    assert_eq!(
        (&plan["accepted_compute_slices"], &plan["upper_bound_compute_slices"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn layouts_are_shown_gpu_by_gpu() {
    let folder = Folder::new();
    cluster(&folder, vec![pod("whole-1", "nvidia.com/gpu", 1, Some("whole"), &json!({}))]);
    let call = "partition show --from dump.json --at 2026-11-20T12:00:00Z";
    let show = folder.json(call);
    let node = |name: &str| {
        let mut nodes = show["nodes"].as_array().unwrap().iter();
        nodes.find(|node| node["node"] == name).unwrap().clone()
    };
    let busy = node("busy");
    assert_eq!(
        busy["pods"],
        json!([{"pod": "team/runs", "amounts": {"nvidia.com/mig-1g.10gb": 1}}])
    );
    let states = |gpu: usize| {
        let instances = busy["gpus"][gpu]["instances"].as_array().unwrap().iter();
        instances.filter(|one| one["state"] == "held").count()
    };
    assert_eq!((states(0), states(1)), (1, 0));
    assert!(busy["stays"].as_str().unwrap().contains("pods use GPUs"), "{busy}");
    assert_eq!(node("empty")["stays"], Value::Null);
    assert_eq!(node("whole")["gpus"][0]["is_whole"], json!(true));
    // As in the table, and in plans.
    assert_eq!(busy["model"], "A100-80GB", "{busy}");
    let text = folder.call(call).out;
    for told in ["[1g]×7", "1 of 7", "1 of 2", "team/runs", "team/whole-1"] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn a_table_of_the_settings_describes_another_gpu() {
    let folder = Folder::new();
    folder.write(
        "dovetail.toml",
        "[[mig.table]]\nname = \"X1\"\nmemory_slices = 4\ncompute_slices = 4\nprofiles = [\
         { name = \"1g.6gb\", compute_slices = 1, memory_slices = 1, starts = [0, 1, 2, 3] }]\n",
    );
    let size = folder.json("partition size --gpu x1 --demand 1g.6gb=9");
    assert_eq!((&size["gpus"], &size["lower_bound"]), (&json!(3), &json!(3)));
    assert_eq!(size["usd_per_month"], Value::Null);
    // Whichever way a table and a flag spell a model.
    for (table, gpu) in [("Tesla-T4", "T4"), ("T4", "Tesla-T4"), ("NVIDIA-T4", "tesla-t4")] {
        folder.write(
            "dovetail.toml",
            &format!(
                "[[mig.table]]\nname = \"{table}\"\nmemory_slices = 4\ncompute_slices = 4\nprofiles = [\
                 {{ name = \"1g.4gb\", compute_slices = 1, memory_slices = 1, starts = [0, 1] }}]\n"
            ),
        );
        let size = folder.json(&format!("partition size --gpu {gpu} --demand 1g.4gb=4"));
        assert_eq!((&size["gpu"], &size["gpus"]), (&json!("T4"), &json!(2)), "{table}: {size}");
    }
}

/// A record that cannot be read is named with what to do.
#[test]
fn a_node_with_an_unreadable_record_is_named() {
    let folder = Folder::new();
    let offers = json!({"nvidia.com/mig-1g.10gb": "7"});
    let mut one = node("n0", &offers, &json!({"nvidia.com/gpu.count": "1"}));
    let call = "partition show --from dump.json --at 2026-11-20T12:00:00Z";
    for (record, is_named) in [(Value::Null, false), (json!("garbage"), true)] {
        one["metadata"]["annotations"] = json!({"dovetail.dev/partition": record});
        if record.is_null() {
            one["metadata"]["annotations"] = json!({});
        }
        folder.write("dump.json", &json!({"kind": "List", "items": [one]}).to_string());
        let shown = folder.call(call).out;
        let told = "node n0: annotation dovetail.dev/partition is invalid";
        assert_eq!(shown.contains(told), is_named, "{shown}");
    }
}

/// A built-in table is replaced with a note, and a node with an instance that the own table lacks
/// has an unknown layout.
#[test]
fn a_table_of_the_settings_replaces_a_built_in_one_with_a_note() {
    let folder = Folder::new();
    let offers = json!({"nvidia.com/mig-1g.10gb": "4", "nvidia.com/mig-1g.20gb": "1"});
    let one = node("n0", &offers, &json!({"nvidia.com/gpu.count": "1"}));
    folder.write("dump.json", &json!({"kind": "List", "items": [one]}).to_string());
    let call = "partition show --from dump.json --at 2026-11-20T12:00:00Z";
    let known = folder.call(call);
    assert!(known.out.contains("[1g.20gb]"), "{}", known.out);
    assert!(!known.err.contains("built-in"), "{}", known.err);
    assert_eq!(folder.json(call)["nodes"][0]["unplaced_instances"], Value::Null);
    folder.write(
        "dovetail.toml",
        "[[mig.table]]\nname = \"a100-80gb\"\nmemory_slices = 8\ncompute_slices = 7\nprofiles = [\
         { name = \"1g.10gb\", compute_slices = 1, memory_slices = 1, starts = [0, 1] }]\n",
    );
    let shown = folder.call(call);
    let note = "dovetail.toml: mig.table: `a100-80gb` replaces the built-in MIG table";
    assert!(shown.err.contains(note), "{}", shown.err);
    assert!(shown.out.contains("unknown:") && !shown.out.contains("no MIG"), "{}", shown.out);
    let node = &folder.json(call)["nodes"][0];
    assert_eq!(node["unplaced_instances"], json!({"1g.10gb": 4, "1g.20gb": 1}));
    assert_eq!(node["stays"], "the MIG table of the model has no profile `1g.20gb`");
}

/// Instances that stay are neither created nor removed, wherever a driver places them next.
#[test]
fn only_the_difference_of_layouts_is_created_and_removed() {
    let folder = Folder::new();
    let offers = json!({"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "1"});
    let items = json!([
        node("n0", &offers, &json!({"nvidia.com/gpu.count": "1"})),
        pod("large", "nvidia.com/mig-4g.40gb", 1, None, &json!({})),
        pod("small-0", "nvidia.com/mig-1g.10gb", 1, None, &json!({})),
        pod("small-1", "nvidia.com/mig-1g.10gb", 1, None, &json!({})),
    ]);
    folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
    let plan = folder.json(CALL);
    assert_eq!(plan["accepted"], json!({"1g.10gb": 2, "4g.40gb": 1}));
    assert_eq!((&plan["created"], &plan["removed"]), (&json!(2), &json!(1)));
}

/// A pod that requests one instance and so many of the 64 CPUs of a node.
fn pod_with_cpu(name: &str, resource: &str, cpu: &str) -> Value {
    let mut pod = pod(name, resource, 1, None, &json!({}));
    for kind in ["requests", "limits"] {
        pod["spec"]["containers"][0]["resources"][kind]["cpu"] = json!(cpu);
    }
    pod
}

#[test]
fn the_pods_served_on_a_node_fit_its_cpu_together() {
    let folder = Folder::new();
    let planned = |items: Vec<Value>| {
        folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
        folder.json(CALL)
    };
    let one_gpu =
        |name: &str, offers: &Value| node(name, offers, &json!({"nvidia.com/gpu.count": "1"}));
    let why = "the nodes have too little CPU, memory or disk for the pod and the other pods of the \
               plan";
    let plan = planned(vec![
        one_gpu("n0", &json!({"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "1"})),
        pod_with_cpu("large", "nvidia.com/mig-4g.40gb", "32"),
        pod_with_cpu("small-0", "nvidia.com/mig-1g.10gb", "32"),
        pod_with_cpu("small-1", "nvidia.com/mig-1g.10gb", "32"),
    ]);
    assert_eq!(plan["accepted"], json!({"1g.10gb": 1, "4g.40gb": 1}));
    assert_eq!((&plan["created"], &plan["not_planned"][why]), (&json!(1), &json!(1)), "{plan}");
    // Two pods fit on each node, wherever the planner would like them best.
    let small = json!({"nvidia.com/mig-1g.10gb": "7"});
    let mut items = vec![one_gpu("n0", &small), one_gpu("n1", &small)];
    items.extend((0..6).map(|n| pod_with_cpu(&format!("p{n}"), "nvidia.com/mig-1g.10gb", "32")));
    let plan = planned(items);
    assert_eq!(plan["accepted"], json!({"1g.10gb": 4}), "{plan}");
    assert_eq!(plan["not_planned"][why], json!(2), "{plan}");
    for gpu in plan["gpus"].as_array().unwrap() {
        assert_eq!(gpu["served"], json!({"1g.10gb": 2}));
    }
}

#[test]
fn a_pod_larger_than_the_free_cpu_of_each_node_is_not_planned_for() {
    let folder = Folder::new();
    cluster(&folder, vec![pod_with_cpu("large", "nvidia.com/mig-3g.40gb", "65")]);
    let plan = folder.json(CALL);
    assert_eq!(plan["demand"], json!({}));
    let text = folder.call(CALL).out;
    assert!(text.contains("the pod fits on no node with GPUs of this model"), "{text}");
}

#[test]
fn a_pod_with_several_instances_gets_all_of_them_on_one_node_or_none() {
    let folder = Folder::new();
    let plan = |nodes: [&str; 2], asked: Value| {
        let mut items: Vec<Value> = Vec::new();
        for (name, offers) in ["n0", "n1"].into_iter().zip(nodes) {
            let offers = json!({(offers): "1"});
            items.push(node(name, &offers, &json!({"nvidia.com/gpu.count": "1"})));
        }
        let mut several = pod("several", "nvidia.com/mig-3g.40gb", 1, None, &json!({}));
        for kind in ["requests", "limits"] {
            let resources = &mut several["spec"]["containers"][0]["resources"][kind];
            *resources = json!({"cpu": "1", "memory": "1Gi"});
            resources.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
        }
        items.push(several);
        folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
        folder.json(CALL)
    };
    let why = "requests several instances, and dovetail found no plan that provides all of them on \
               one node and serves more";
    // One of each node would do for two pods.
    let halves = ["nvidia.com/mig-3g.40gb", "nvidia.com/mig-3g.40gb"];
    let two = plan(halves, json!({"nvidia.com/mig-3g.40gb": "2"}));
    assert_eq!(two["accepted"], json!({"3g.40gb": 2}), "{two}");
    let served = two["gpus"].as_array().unwrap().iter().map(|gpu| &gpu["served"]);
    assert!(served.clone().any(|served| *served == json!({"3g.40gb": 2})), "{two}");
    assert!(folder.call(CALL).out.contains("1 of 1"), "a pod counts once");
    let mixed = plan(halves, json!({"nvidia.com/mig-4g.40gb": "1", "nvidia.com/mig-3g.40gb": "1"}));
    assert_eq!(mixed["accepted"], json!({"3g.40gb": 1, "4g.40gb": 1}), "{mixed}");
    let three = plan(halves, json!({"nvidia.com/mig-3g.40gb": "3"}));
    assert_eq!((&three["accepted"], &three["created"]), (&json!({}), &json!(0)), "{three}");
    assert_eq!(three["not_planned"][why], 1, "{three}");
}

#[test]
fn a_node_that_is_emptied_serves_only_pods_that_fit_its_cpu_together() {
    let folder = Folder::new();
    let spec = json!({"mode": "mig", "waitMinutes": 15});
    let policy = json!({"apiVersion": "dovetail.dev/v1alpha1", "kind": "SharingPolicy",
        "metadata": {"name": "p"}, "spec": spec});
    folder.write("policy.json", &policy.to_string());
    let plan = |cpu: &str| {
        let small = json!({"nvidia.com/mig-1g.10gb": "7"});
        let mut ends = pod("ends", "nvidia.com/mig-1g.10gb", 1, Some("n0"), &json!({}));
        ends["metadata"]["creationTimestamp"] = json!("2026-11-20T11:55:00Z");
        ends["metadata"]["annotations"] = json!({"dovetail.dev/runtime": "10m"});
        let items = vec![
            node("n0", &small, &json!({"nvidia.com/gpu.count": "1"})),
            ends,
            pod_with_cpu("large-0", "nvidia.com/mig-3g.40gb", cpu),
            pod_with_cpu("large-1", "nvidia.com/mig-3g.40gb", cpu),
        ];
        folder.write("dump.json", &json!({"kind": "List", "items": items}).to_string());
        folder.json(&format!("{CALL} --policy policy.json"))
    };
    let fits = plan("32");
    assert_eq!(fits["accepted"], json!({"3g.40gb": 2}), "the CPU of the pod that ends is free");
    assert_eq!(fits["moves"].as_array().unwrap().len(), 1, "{fits}");
    let crowded = plan("40");
    assert_eq!(crowded["accepted"], json!({"3g.40gb": 0}), "{crowded}");
    assert_eq!(crowded["moves"], json!([]), "{crowded}");
}
