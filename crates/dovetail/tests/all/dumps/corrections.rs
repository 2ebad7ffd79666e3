//! What dumps of a stranger brought to light, each made as small as it shows.

use serde_json::{Value, json};

use super::{AT, LONG_AGO, audit, finding, near, node, pod, state};
use crate::cost::dump;
use crate::program::Folder;

const GPU: &str = "nvidia.com/gpu";

fn has(found: &Value, id: &str) -> bool {
    found["findings"].as_array().unwrap().iter().any(|finding| finding["id"] == id)
}

/// A node of GKE whose taint carries the name of the resource, as GKE writes it.
fn gke(name: &str, gpus: u32, labels: &[(&str, &str)]) -> Value {
    let of_gke = [
        ("cloud.google.com/gke-nodepool", "pool"),
        ("cloud.google.com/gke-accelerator", "nvidia-h100-80gb"),
        ("topology.kubernetes.io/region", "us-central1"),
        ("node.kubernetes.io/instance-type", "a3-highgpu-8g"),
    ];
    let labels = [&of_gke[..], labels].concat();
    let mut node = node(name, &format!("gce://p/z/{name}"), &[(GPU, gpus)], &labels);
    node["spec"]["taints"] = json!([{"key": GPU, "value": "present", "effect": "NoSchedule"}]);
    node
}

/// A pod with GPUs on such a node, which the admission plugin let in.
fn admitted(name: &str, gpus: u32, on: &str, since: &str) -> Value {
    let mut pod = pod(name, ("ReplicaSet", "serve-1"), (GPU, gpus), on, since);
    pod["spec"]["tolerations"] =
        json!([{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]);
    pod
}

/// A suspended Job of Kueue for one pod with so many GPUs, and its workload without quota.
fn without_quota(gpus: u32) -> Vec<Value> {
    let since = "2026-11-20T06:00:00Z";
    let amount = json!({GPU: gpus.to_string()});
    let template = json!({"spec": {"containers": [{"name": "main", "image": "python:3.13",
        "resources": {"limits": amount, "requests": amount}}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "eval", "namespace": "ml", "uid": "eval", "creationTimestamp": since,
            "labels": {"kueue.x-k8s.io/queue-name": "llm"}},
        "spec": {"suspend": true, "parallelism": 1, "completions": 1, "template": template},
        "status": {}});
    let workload = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
        "metadata": {"name": "job-eval", "namespace": "ml", "uid": "w", "creationTimestamp": since,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "eval",
                "uid": "eval", "controller": true}]},
        "spec": {"queueName": "llm",
            "podSets": [{"name": "main", "count": 1, "template": template}]},
        "status": {"conditions": [{"type": "QuotaReserved", "status": "False",
            "reason": "Pending", "lastTransitionTime": since,
            "message": "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor spot, 2 more needed"}]}});
    let flavor = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor",
        "metadata": {"name": "spot"},
        "spec": {"tolerations": [{"key": "cloud.google.com/gke-spot", "operator": "Equal",
            "value": "true", "effect": "NoSchedule"}]}});
    vec![job, workload, flavor]
}

#[test]
fn a_job_to_come_gets_the_tolerations_of_admission_and_of_its_flavor() {
    let spot = json!({"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"});
    let mut k1 = gke("k1", 8, &[("cloud.google.com/gke-spot", "true")]);
    k1["spec"]["taints"].as_array_mut().unwrap().push(spot.clone());
    let mut holder = admitted("serve-a", 6, "k1", LONG_AGO);
    let tolerated = json!({"key": "cloud.google.com/gke-spot", "operator": "Exists"});
    holder["spec"]["tolerations"].as_array_mut().unwrap().push(tolerated);
    let objects = [vec![k1, holder], without_quota(2)].concat();
    let found = audit(&objects, "");
    assert_eq!(state(&found, "free_quota").0, 2.0, "{:#}", found["states"]);
    let lacks = finding(&found, "GOV-05");
    assert_eq!(lacks["gpu_hours_per_month"], 1440.0, "{lacks:#}");
    assert_eq!(lacks["since"], "2026-11-20T06:00:00Z");
    assert!(!has(&found, "CAP-06"), "a pending job needs them");
    // Without the flavor the spot taint keeps the job off.
    let found = audit(&objects[..objects.len() - 1], "");
    assert_eq!(state(&found, "free_quota").0, 0.0, "{:#}", found["states"]);
}

/// Kueue took its quota away half an hour ago: one GPU-hour of two GPUs, and no month, however old
/// the job is.
#[test]
fn a_job_lacks_quota_since_kueue_says_so() {
    let mut objects = vec![gke("k1", 8, &[]), admitted("serve-a", 6, "k1", LONG_AGO)];
    objects.extend(without_quota(2));
    let since = json!("2026-11-20T11:30:00Z");
    objects[3]["status"]["conditions"][0]["lastTransitionTime"] = since.clone();
    let found = audit(&objects, "");
    let lacks = finding(&found, "GOV-05");
    assert_eq!((&lacks["since"], &lacks["gpu_hours_so_far"]), (&since, &json!(1.0)));
    assert_eq!(lacks["gpu_hours_per_month"], Value::Null, "{lacks:#}");
}

#[test]
fn free_pieces_are_claimed_for_a_job_that_has_no_pods_yet() {
    let mut objects = vec![gke("k1", 8, &[]), gke("k2", 8, &[])];
    objects.extend(["k1", "k2"].map(|on| admitted(&format!("serve-{on}"), 6, on, LONG_AGO)));
    let mut job = without_quota(4).remove(0);
    job["metadata"]["labels"] = json!({});
    objects.push(job);
    let found = audit(&objects, "");
    assert_eq!(state(&found, "free_fragmented").0, 4.0, "{:#}", found["states"]);
    let pieces = finding(&found, "SCH-08");
    assert_eq!(pieces["gpu_hours_per_month"], 4.0 * 720.0, "{pieces:#}");
    assert_eq!(pieces["evidence"][0]["value"], "eval-0 requests nvidia.com/gpu");
}

#[test]
fn gpus_that_pending_pods_need_are_not_called_unneeded() {
    let mut l = node("l1", "", &[(GPU, 8)], &[("nvidia.com/gpu.product", "NVIDIA-L40S")]);
    l["spec"]["taints"] = json!([{"key": GPU, "value": "present", "effect": "NoSchedule"}]);
    let mut objects = vec![l, admitted("serve-a", 5, "l1", LONG_AGO)];
    for number in 0..3 {
        let name = format!("tts-{number}");
        objects.push(pod(&name, ("ReplicaSet", "tts"), (GPU, 1), "", LONG_AGO));
    }
    let found = audit(&objects, "--gpu-price L40S=0.80");
    assert_eq!(state(&found, "free_taint").0, 3.0, "{:#}", found["states"]);
    assert!(!has(&found, "CAP-06"), "{:#}", found["findings"]);
    assert_eq!(finding(&found, "SCH-04")["usd_micros_per_month"], 1_728_000_000_i64);
}

#[test]
fn fixes_by_example_are_of_the_platform() {
    let shared = [
        ("cloud.google.com/gke-gpu-sharing-strategy", "time-sharing"),
        ("cloud.google.com/gke-max-shared-clients-per-gpu", "4"),
        ("cloud.google.com/gke-accelerator-count", "4"),
        ("cloud.google.com/gke-spot", "true"),
    ];
    let mut serve = admitted("serve-a", 1, "k1", LONG_AGO);
    serve["spec"]["containers"][0]["image"] = json!("vllm/vllm-openai:v0.11");
    let mut alone = admitted("debug", 1, "k1", LONG_AGO);
    alone["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    let found = audit(&[gke("k1", 16, &shared), serve, alone], "");
    let example = |id: &str| finding(&found, id)["fix"]["example"].as_str().unwrap().to_owned();
    assert!(example("SHR-01").contains("gpu-sharing-strategy=mps"), "{}", example("SHR-01"));
    assert!(example("SHR-03").contains("cloud.google.com/gke-gpu"), "{}", example("SHR-03"));
    assert!(example("SPT-03").contains("cloud.google.com/gke-prov"), "{}", example("SPT-03"));
    let pod = finding(&found, "AUT-05");
    assert!(pod["fix"]["edits"].as_str().unwrap().starts_with("pod ("), "{pod:#}");
}

/// A price of two dollars; a pod with two GPUs should be gone since a time.
fn overdue(since: &str) -> Value {
    let labels = [("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")];
    let mut gone = pod("old", ("Job", "old"), (GPU, 2), "h1", LONG_AGO);
    gone["metadata"]["deletionTimestamp"] = json!(since);
    let stays = pod("serve-a", ("ReplicaSet", "serve-1"), (GPU, 6), "h1", LONG_AGO);
    audit(&[node("h1", "", &[(GPU, 8)], &labels), gone, stays], "--gpu-price H100=2")
}

#[test]
fn a_pod_that_should_be_gone_wastes_its_gpus_since_then() {
    let found = overdue("2026-11-20T11:20:00Z");
    let stuck = finding(&found, "IDL-06");
    assert_eq!(stuck["since"], "2026-11-20T11:20:00Z");
    // A change of the owner's template would free nothing: the fix is about the pod, by its name.
    assert_eq!(stuck["fix"]["edits"], "pod");
    let fix = stuck["fix"]["example"].as_str().unwrap();
    assert!(
        fix.starts_with("kubectl get pod old -n ml -o jsonpath={.metadata.finalizers}"),
        "{fix}"
    );
    // 2 · 40 min · $2, and no month of it.
    near(stuck["usd_micros_so_far"].as_f64().unwrap() / 1e6, 2.667);
    assert_eq!(stuck["usd_micros_per_month"], Value::Null);
    let found = overdue("2026-11-20T09:00:00Z");
    let stuck = finding(&found, "IDL-06");
    assert_eq!(stuck["usd_micros_per_month"], 2_880_000_000_i64, "{stuck:#}");
    assert_eq!(stuck["since"], "2026-11-20T09:00:00Z");
}

/// What `dovetail` answers about a dump.
fn answer(objects: &[Value], call: &str) -> (String, String) {
    let folder = Folder::new();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    folder.write("dump.json", &list);
    let done = folder.call(&format!("{call} --from dump.json --at {AT}"));
    assert_eq!(done.code, Some(0), "{}", done.err);
    (done.out, done.err)
}

fn answered(objects: &[Value], name: &str) -> Value {
    let (out, _) = answer(objects, &format!("cost questions {name} --output json"));
    let document: Value = serde_json::from_str(&out).unwrap();
    document["answers"][0].clone()
}

#[test]
fn questions_know_gpus_that_a_pod_cannot_have_and_jobs_that_wait_for_quota() {
    let mut lost = gke("k2", 8, &[]);
    lost["status"]["conditions"] =
        json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": LONG_AGO}]);
    let mut objects = vec![gke("k1", 8, &[]), lost];
    objects.extend(["k1", "k2"].map(|on| admitted(&format!("serve-{on}"), 6, on, LONG_AGO)));
    objects.extend(without_quota(4));
    let beside = answered(&objects, "beside");
    assert_eq!(beside["rows"], json!([]), "a pod on a lost node asks for GPUs");
    // Nothing was measured, so nobody knows of any idle time.
    let idle = answered(&objects, "idle");
    assert_eq!(idle["rows"][0]["idle_share"], Value::Null, "{idle:#}");
    let wait = answered(&objects, "wait");
    assert_eq!(wait["rows"][0]["still_waiting"], 1, "{wait:#}");
}

#[test]
fn a_namespace_without_pods_is_named() {
    let objects = [gke("k1", 8, &[]), admitted("serve-a", 6, "k1", LONG_AGO)];
    let (out, _) = answer(&objects, "cost -n nosuch");
    assert!(out.contains("namespace nosuch has no pod"), "{out}");
    let (_, err) = answer(&objects, "audit -n nosuch");
    let first = err.lines().find(|line| line.starts_with("note:")).unwrap_or_default();
    assert!(first.starts_with("note: namespace nosuch is not in the input"), "{err}");
    let (out, _) = answer(&objects, "cost -n ml");
    assert!(out.contains("rows and total include only pods of namespace ml"), "{out}");
    assert!(!out.contains("where you may list pods"), "{out}");
}

#[test]
fn a_collection_keeps_the_tasks_of_volcano() {
    let labels = [("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3")];
    let mut objects =
        vec![node("h1", "", &[(GPU, 8)], &labels), node("h2", "", &[(GPU, 8)], &labels)];
    let group = "scheduling.k8s.io/group-name";
    for (number, on) in ["h1", ""].into_iter().enumerate() {
        let since = "2026-11-20T06:00:00Z";
        let mut pod = pod(&format!("run-{number}"), ("Job", "run"), (GPU, 6), on, since);
        pod["metadata"]["annotations"] = json!({group: "run", "volcano.sh/task-spec": "worker"});
        pod["spec"]["schedulerName"] = json!("volcano");
        pod["spec"]["nodeSelector"] = json!({"nvidia.com/gpu.product": "NVIDIA-H200"});
        objects.push(pod);
    }
    objects.push(json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "run", "namespace": "ml"},
        "spec": {"minMember": 2, "minTaskMember": {"worker": 2}}, "status": {"phase": "Inqueue"}}));
    let folder = Folder::new();
    folder.write("dump.json", &dump(&objects));
    for flags in ["", "--anonymize --names names.json"] {
        let done =
            folder.call(&format!("collect --from dump.json --at {AT} --to c.json.gz {flags}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        let states = ["dump.json", "c.json.gz"].map(|file| {
            let done = folder.call(&format!("audit --from {file} --at {AT} --output json"));
            let found: Value = serde_json::from_str(&done.out).expect("JSON");
            found["states"].clone()
        });
        assert_eq!(states[0], states[1], "{flags}");
        std::fs::remove_file(folder.path("c.json.gz")).unwrap();
    }
}

/// Pods of other namespaces may have what the one pod that was read leaves.
#[test]
fn gpus_that_pods_of_other_namespaces_may_have_are_counted_as_unknown() {
    let objects = [
        node("n1", "", &[(GPU, 8)], &[]),
        node("n2", "", &[(GPU, 8)], &[]),
        pod("serve-1-a", ("ReplicaSet", "serve-1"), (GPU, 1), "n1", LONG_AGO),
    ];
    let folder = Folder::new();
    folder.write("dump.json", &json!({"kind": "List", "items": objects}).to_string());
    folder.write("whole.json", &dump(&objects));
    let run = |file: &str, flags: &str| {
        let done = folder.call(&format!("audit --from {file} --at {AT} {flags}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        done.out
    };
    let found = |file: &str| -> Value {
        let found: Value = serde_json::from_str(&run(file, "-o json")).expect("JSON");
        json!([found["headline"]["unknown_gpus"], found["ladder"][0]["held_share"]])
    };
    assert_eq!(found("dump.json"), json!([15.0, null]));
    assert_eq!(found("whole.json"), json!([0.0, 0.0625]));
    let words = |flags: &str| {
        let out = run("dump.json", flags);
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let short = words("");
    assert!(short.contains("whether 15 GPUs are allocated or free is unknown"), "{short}");
    assert!(!short.contains("not included in any figure"), "{short}");
    let all = words("--all-findings");
    assert!(all.contains("none yet 0") && all.contains(" unknown |"), "{all}");
    assert!(words("-o markdown").contains(" | unknown | | guard |"));
    assert!(words("-o html").contains("GPUs are allocated or free"));
}

/// A label that contradicts the instance type changes neither the price of the node nor goes
/// unsaid: a g5.12xlarge is $5.672 an hour, and has four GPUs.
#[test]
fn a_node_has_its_list_price_however_many_gpus_a_label_counts() {
    let of = |offered: u32, more: &[(&str, &str)]| {
        let labels = [
            ("topology.kubernetes.io/region", "us-east-1"),
            ("node.kubernetes.io/instance-type", "g5.12xlarge"),
            ("nvidia.com/gpu.product", "NVIDIA-A10G"),
        ];
        let labels = [&labels[..], more].concat();
        let found = audit(&[node("g1", "aws:///us-east-1a/i-1", &[(GPU, offered)], &labels)], "");
        let head = &found["headline"];
        near(head["bill_usd_micros_per_month"].as_f64().unwrap() / 1e6, 720.0 * 5.672);
        (head["installed_gpus"].clone(), found["unseen"].to_string())
    };
    for (offered, labels, gpus, said) in [
        (
            8,
            &[("nvidia.com/gpu.count", "8")][..],
            4.0,
            "4 according to instance type g5.12xlarge, not 8 according to nvidia.com/gpu.count",
        ),
        // Sixteen replicas of two GPUs.
        (
            16,
            &[("nvidia.com/gpu.count", "2")],
            2.0,
            "2 according to nvidia.com/gpu.count, not 4 according to instance type g5.12xlarge",
        ),
        // Labels and plugin agree on eight.
        (
            16,
            &[("nvidia.com/gpu.count", "8"), ("nvidia.com/gpu.replicas", "2")],
            8.0,
            "8 according to the device plugin, not 4 according to instance type g5.12xlarge",
        ),
    ] {
        let (counted, told) = of(offered, labels);
        assert_eq!(counted, gpus, "{labels:?}");
        assert!(told.contains(said), "{told}");
    }
}
